//! What can go wrong between us and a server, by class.
//!
//! Text that comes from the server is made printable and short before it stands in a message, and
//! secrets of the spec are taken out of it.

use karat_io::text::{clip, printable};
use karat_io::{Failure, FailureClass};
use serde_json::Value;

/// How much of a server's text stands in a message.
const QUOTED: usize = 300;

/// A server's text as it stands in a message.
pub(crate) fn quoted(text: &str) -> String {
    clip(&printable(text.trim()), QUOTED).into_owned()
}

/// Why a session did not begin.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum StartError {
    /// The spec is wrong: nothing was started. The user must change it.
    #[error("{why}")]
    Spec {
        /// What is wrong and what to do.
        why: String,
    },
    /// The program could not be started or the address not be reached.
    #[error("the server did not start: {why}")]
    NotStarted {
        /// What happened.
        why: String,
    },
    /// The server was there, but no session came of it.
    #[error("the server did not open a session: {why}")]
    Handshake {
        /// What happened.
        why: String,
    },
    /// No session within the time for starting.
    #[error("the server was not ready within {seconds} s{said}")]
    Timeout {
        /// The time for starting.
        seconds: f64,
        /// What it said on stderr and sent instead, if anything.
        said: String,
    },
    /// The server speaks no revision that we may speak.
    #[error("the server speaks MCP {answered}, not {asked}")]
    Revision {
        /// What was asked for.
        asked: String,
        /// What the server speaks.
        answered: String,
    },
}

/// Why a request has no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CallError {
    /// No answer in time. The server was told that nobody waits any more.
    #[error("no answer in time{said}")]
    Timeout {
        /// What came instead of it, if anything did.
        said: String,
    },
    /// The server answered with a protocol error.
    #[error("protocol error {code}: {}", quoted(message))]
    Protocol {
        /// The code, such as -32602.
        code: i64,
        /// What the server says.
        message: String,
        /// More that it says.
        data: Option<Value>,
    },
    /// The server is gone, and with it the session.
    #[error("the server is gone: {why}")]
    Closed {
        /// How it ended.
        why: String,
    },
    /// The connection of this one request failed; another may work.
    #[error("{why}")]
    Transport {
        /// What happened.
        why: String,
    },
    /// The server answered with an HTTP status instead of a message.
    #[error("HTTP status {status}{}", after_colon(said))]
    Http {
        /// The status.
        status: u16,
        /// The start of the body, or where a redirect leads.
        said: String,
    },
    /// The answer is not of the form that the protocol asks for.
    #[error("{why}")]
    Invalid {
        /// What is wrong with it.
        why: String,
    },
    /// The answer is larger or deeper than the limits allow.
    #[error("the answer has more than {limit} {what}")]
    TooLarge {
        /// The limit that it broke.
        limit: usize,
        /// Of what: `bytes`, `levels`, `pages`, `entries`.
        what: &'static str,
    },
}

fn after_colon(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!(": {}", quoted(said)) }
}

impl CallError {
    /// The class in journals and reports.
    pub fn class(&self) -> FailureClass {
        match self {
            CallError::Timeout { .. } => FailureClass::Timeout,
            CallError::Protocol { .. } => FailureClass::Refused,
            CallError::Closed { .. } | CallError::Transport { .. } | CallError::Http { .. } => {
                FailureClass::Transport
            }
            CallError::Invalid { .. } | CallError::TooLarge { .. } => FailureClass::InvalidAnswer,
        }
    }

    /// Whether the session is over: further calls will fail too.
    pub fn is_lost(&self) -> bool {
        matches!(self, CallError::Closed { .. })
    }

    /// The failure as [`karat_core::run`] wants it.
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
