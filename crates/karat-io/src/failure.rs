//! A failed request to a system, with its class.

use std::time::Duration;

/// The kind of a failure. The names appear in journals and reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailureClass {
    /// No answer in time.
    Timeout,
    /// The connection or the process failed.
    Transport,
    /// The answer does not have the expected form.
    InvalidAnswer,
    /// The system answered with an error.
    Refused,
}

impl FailureClass {
    /// The name in journals and reports.
    pub fn name(self) -> &'static str {
        match self {
            FailureClass::Timeout => "timeout",
            FailureClass::Transport => "transport",
            FailureClass::InvalidAnswer => "invalid_answer",
            FailureClass::Refused => "refused",
        }
    }

    /// True if asking again may help.
    pub fn worth_retrying(self) -> bool {
        matches!(self, FailureClass::Timeout | FailureClass::Transport)
    }
}

/// A request without an answer.
///
/// ```
/// use karat_io::{Failure, FailureClass};
///
/// let failure = Failure::new(FailureClass::Timeout, "no answer after 5 s");
/// assert!(failure.class.worth_retrying());
/// assert!(!FailureClass::Refused.worth_retrying());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The kind.
    pub class: FailureClass,
    /// The reason, with what the system said.
    pub message: String,
    /// The system is gone, so further requests will fail too.
    pub lost: bool,
    /// Asking again cannot help: a wrong key, a wrong address, nothing that listens.
    pub permanent: bool,
    /// Set if the system is busy: the time to wait before the next attempt.
    pub retry_after: Option<Duration>,
}

impl Failure {
    /// A failure of this request alone.
    pub fn new(class: FailureClass, message: impl Into<String>) -> Failure {
        let message = message.into();
        Failure { class, message, lost: false, permanent: false, retry_after: None }
    }

    /// A failure after which the system is gone.
    pub fn lost(message: impl Into<String>) -> Failure {
        Failure { lost: true, ..Failure::new(FailureClass::Transport, message) }
    }
}
