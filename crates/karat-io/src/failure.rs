//! A question that was not answered, and the class of the failure.

use std::time::Duration;

/// What kind of failure it was. The names stand in journals and reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailureClass {
    /// No answer in time.
    Timeout,
    /// The connection or the process was in the way.
    Transport,
    /// The answer is not of the agreed form.
    InvalidAnswer,
    /// The system answered that it failed.
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

    /// Whether asking again may help.
    pub fn worth_retrying(self) -> bool {
        matches!(self, FailureClass::Timeout | FailureClass::Transport)
    }
}

/// A question that was not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What kind.
    pub class: FailureClass,
    /// What happened, with what the system said.
    pub message: String,
    /// The system is gone: asking further questions makes no sense.
    pub lost: bool,
    /// The system is busy and asks to be asked again, not before this time has passed.
    pub retry_after: Option<Duration>,
}

impl Failure {
    /// A failure of this one question.
    pub fn new(class: FailureClass, message: impl Into<String>) -> Failure {
        Failure { class, message: message.into(), lost: false, retry_after: None }
    }

    /// The system is gone.
    pub fn lost(message: impl Into<String>) -> Failure {
        Failure { lost: true, ..Failure::new(FailureClass::Transport, message) }
    }
}
