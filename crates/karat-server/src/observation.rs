//! What was seen of a server: raw facts, journalled before anything is judged.
//!
//! Raw but for one thing: the secrets of the server's spec are taken out first, so that no journal,
//! report or snapshot can hold them. What is judged is what is kept.

use std::time::Duration;

use karat_mcp::{CallError, Redactor};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Everything that one case brought to light.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Observed {
    /// One entry for each repetition, in order.
    pub attempts: Vec<Attempt>,
}

/// One run of a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// The calls, in the order in which they were made.
    pub calls: Vec<Called>,
    /// Why not all of them were made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
}

/// One call and how it ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Called {
    /// What the call is for.
    pub role: Role,
    /// Which of the calls of this role, from 0.
    pub number: usize,
    /// The tool.
    pub tool: String,
    /// The arguments as they were sent, but for secrets.
    pub arguments: Map<String, Value>,
    /// How it ended.
    pub outcome: Outcome,
    /// How long it took.
    pub nanos: u64,
}

/// What a call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Before the case.
    Setup,
    /// The case itself.
    Call,
    /// What the case left behind.
    Then,
    /// Cleaning up.
    Teardown,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "ended")]
pub enum Outcome {
    /// With a result, as it was on the wire but for secrets.
    Result {
        /// The result.
        result: Value,
    },
    /// With a protocol error.
    ProtocolError {
        /// The code.
        code: i64,
        /// What the server said.
        message: String,
        /// What more it said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<Value>,
    },
    /// With no answer in time.
    Timeout,
    /// With the end of the server.
    Crash {
        /// How it ended.
        why: String,
    },
    /// With an answer that the protocol does not know.
    Invalid {
        /// What is wrong with it.
        why: String,
    },
    /// With a connection that failed, or an HTTP status instead of an answer.
    Transport {
        /// What happened.
        why: String,
    },
}

impl Outcome {
    /// Whether the tool says that it failed.
    #[must_use]
    pub fn is_tool_error(&self) -> bool {
        matches!(self, Outcome::Result { result } if result.get("isError") == Some(&Value::Bool(true)))
    }

    /// The class of the ending, as it is counted in reports.
    #[must_use]
    pub fn class(&self) -> &'static str {
        match self {
            Outcome::Result { .. } if self.is_tool_error() => "tool_error",
            Outcome::Result { .. } => "result",
            Outcome::ProtocolError { .. } => "protocol_error",
            Outcome::Timeout => "timeout",
            Outcome::Crash { .. } => "crash",
            Outcome::Invalid { .. } => "invalid_answer",
            Outcome::Transport { .. } => "transport",
        }
    }

    /// The ending in words.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Outcome::Result { .. } if self.is_tool_error() => "a tool error".to_owned(),
            Outcome::Result { .. } => "a result".to_owned(),
            Outcome::ProtocolError { code, message, .. } => {
                format!("protocol error {code}: {message}")
            }
            Outcome::Timeout => "no answer in time".to_owned(),
            Outcome::Crash { why } => format!("the end of the server: {why}"),
            Outcome::Invalid { why } => format!("an invalid answer: {why}"),
            Outcome::Transport { why } => format!("a failed connection: {why}"),
        }
    }

    fn hide(&mut self, redactor: &Redactor) {
        match self {
            Outcome::Result { result } => redactor.hide_in(result),
            Outcome::ProtocolError { message: text, .. }
            | Outcome::Crash { why: text }
            | Outcome::Invalid { why: text }
            | Outcome::Transport { why: text } => *text = redactor.hidden(std::mem::take(text)),
            Outcome::Timeout => {}
        }
    }

    /// Whether the server answered at all.
    #[must_use]
    pub fn is_answer(&self) -> bool {
        matches!(self, Outcome::Result { .. } | Outcome::ProtocolError { .. })
    }
}

impl From<CallError> for Outcome {
    fn from(error: CallError) -> Outcome {
        match error {
            CallError::Timeout { .. } => Outcome::Timeout,
            CallError::Protocol { code, message, data } => {
                Outcome::ProtocolError { code, message, data }
            }
            CallError::Closed { why } => Outcome::Crash { why },
            CallError::Transport { .. } | CallError::Http { .. } => {
                Outcome::Transport { why: error.to_string() }
            }
            CallError::Invalid { .. } | CallError::TooLarge { .. } => {
                Outcome::Invalid { why: error.to_string() }
            }
        }
    }
}

impl Called {
    /// The same without secrets.
    pub(crate) fn hidden(mut self, redactor: &Redactor) -> Called {
        redactor.hide_in_fields(&mut self.arguments);
        self.outcome.hide(redactor);
        self
    }
}

impl Attempt {
    /// The call that the case is about, if it was made.
    #[must_use]
    pub fn call(&self) -> Option<&Called> {
        self.calls.iter().find(|called| called.role == Role::Call)
    }

    /// How long the call of the case took.
    #[must_use]
    pub fn latency(&self) -> Option<Duration> {
        self.call().map(|called| Duration::from_nanos(called.nanos))
    }
}
