//! Errors between a session and its server, by class.
//!
//! Text of the server is made printable and short before it becomes part of a message, and the secrets of
//! the spec are removed from it.

use karat_io::text::{clip, printable};
use karat_io::{Failure, FailureClass};
use serde_json::Value;

/// Columns of a server's text in a message.
const QUOTED: usize = 300;
/// Columns of an explanation, which may quote more than one text of a server.
const EXPLAINED: usize = 700;

/// A server's text as messages quote it.
pub(crate) fn quoted(text: &str) -> String {
    clip(&printable(text.trim()), QUOTED).into_owned()
}

/// A session that could not be opened.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum StartError {
    /// The spec is wrong and must be changed. Nothing was started.
    #[error("{why}")]
    Spec {
        /// The mistake and the remedy.
        why: String,
    },
    /// The program could not be started, or the address not be reached.
    #[error("the server did not start: {why}")]
    NotStarted {
        /// The reason.
        why: String,
    },
    /// The server is running but did not open a session.
    #[error("the server did not open a session: {why}")]
    Handshake {
        /// The reason.
        why: String,
    },
    /// There was no session within the time for starting.
    #[error("the server was not ready within {seconds} s{said}")]
    Timeout {
        /// The time for starting.
        seconds: f64,
        /// The end of its stderr and its protocol violations, if any.
        said: String,
    },
    /// The server does not speak an allowed revision of the protocol.
    #[error("the server speaks MCP {answered}, not {asked}")]
    Revision {
        /// The requested revision.
        asked: String,
        /// The revision of the server.
        answered: String,
    },
}

/// A request without a result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CallError {
    /// There was no answer in time. The server was sent a cancellation.
    #[error("no answer in time{said}")]
    Timeout {
        /// Protocol violations in the meantime, if any.
        said: String,
    },
    /// The server answered with a protocol error.
    #[error("protocol error {code}: {}", quoted(message))]
    Protocol {
        /// The code, such as -32602.
        code: i64,
        /// The message.
        message: String,
        /// The data of the error.
        data: Option<Value>,
    },
    /// The server is gone, and the session with it.
    #[error("the server was lost: {why}")]
    Closed {
        /// The reason.
        why: String,
    },
    /// The server ended the session; another one may be opened.
    #[error("{why}")]
    Expired {
        /// The reason.
        why: String,
    },
    /// The connection of this request failed; another request may succeed.
    #[error("{why}")]
    Transport {
        /// The reason.
        why: String,
    },
    /// The server answered with an HTTP error status.
    #[error("HTTP status {status}{}", after_colon(said))]
    Http {
        /// The status.
        status: u16,
        /// The start of the body, or the target of a redirect.
        said: String,
    },
    /// The answer is not valid in the protocol.
    #[error("{why}")]
    Invalid {
        /// The reason.
        why: String,
    },
    /// The answer is larger or deeper than the limits allow.
    #[error("the answer has more than {limit} {what}")]
    TooLarge {
        /// The limit.
        limit: usize,
        /// Its unit: `bytes`, `levels`, `pages`, `entries`.
        what: &'static str,
    },
}

fn after_colon(said: &str) -> String {
    if said.is_empty() {
        return String::new();
    }
    format!(": {}", clip(&printable(said.trim()), EXPLAINED))
}

impl CallError {
    /// The class in journals and reports.
    pub fn class(&self) -> FailureClass {
        match self {
            CallError::Timeout { .. } => FailureClass::Timeout,
            CallError::Protocol { .. } => FailureClass::Refused,
            CallError::Closed { .. }
            | CallError::Expired { .. }
            | CallError::Transport { .. }
            | CallError::Http { .. } => FailureClass::Transport,
            CallError::Invalid { .. } | CallError::TooLarge { .. } => FailureClass::InvalidAnswer,
        }
    }

    /// True if the session is over, so that further calls will fail too.
    pub fn is_lost(&self) -> bool {
        matches!(self, CallError::Closed { .. } | CallError::Expired { .. })
    }

    /// The error as a [`Failure`] of a measured system.
    pub fn failure(&self) -> Failure {
        Failure { lost: self.is_lost(), ..Failure::new(self.class(), self.to_string()) }
    }

    pub(crate) fn timeout() -> CallError {
        CallError::Timeout { said: String::new() }
    }

    pub(crate) fn invalid(why: impl Into<String>) -> CallError {
        CallError::Invalid { why: why.into() }
    }
}
