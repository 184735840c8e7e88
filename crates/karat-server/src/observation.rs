//! Observations of a server: raw facts, written to the journal before anything is judged.
//!
//! Secrets of the server's spec are removed first, so that no journal, report or snapshot can hold
//! them: what is judged is what is kept.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use karat_core::dataset::Digest;
use karat_core::expect::Answer;
use karat_core::report::Property;
use karat_io::private;
use karat_mcp::{CallError, Redactor};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::tasks::TaskRun;

/// The number of characters of an answer that are kept for display.
const SHOWN_CHARS: usize = 4_000;

/// The purpose of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Prepares the case.
    Setup,
    /// Is the case itself.
    Call,
    /// Checks the effects of the case.
    Then,
    /// Cleans up.
    Teardown,
}

impl Role {
    /// The name in suites and journals.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Role::Setup => "setup",
            Role::Call => "call",
            Role::Then => "then",
            Role::Teardown => "teardown",
        }
    }
}

/// The part of a server that a call asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Feature {
    /// A tool, which is called.
    #[default]
    Tool,
    /// A resource, which is read.
    Resource,
    /// A prompt, which is got.
    Prompt,
    /// Any other method.
    Method,
}

impl Feature {
    /// The key of suites, and the name of the slice.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Feature::Tool => Property::Tool.name(),
            Feature::Resource => "resource",
            Feature::Prompt => "prompt",
            Feature::Method => "method",
        }
    }

    /// The name for reports: that of a tool, or the feature with its name.
    pub(crate) fn label(self, name: &str) -> String {
        match self {
            Feature::Tool => name.to_owned(),
            other => format!("{} {name}", other.name()),
        }
    }

    /// Returns whether it is a tool.
    pub(crate) fn is_tool(&self) -> bool {
        *self == Feature::Tool
    }
}

/// Everything that was observed of one case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseRun {
    /// The attempts, in order.
    pub attempts: Vec<Attempt>,
    /// The requests of the case; none in journals of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Asked>,
}

/// The requests of a case as fingerprints. A later version of the suite is judged by the answers only if it makes the
/// same requests: answers to other ones are neither right nor wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// The digest of what holds for all cases: the calls before the first one, and the session.
    pub session: Digest,
    /// The digest of the calls as the suite has them, and of the calls that save values for them.
    pub calls: Digest,
    /// The tools among them that the server listed: true for one that declares an output schema.
    pub tools: BTreeMap<String, bool>,
    /// True if the case quotes secrets of the server, which only the run itself knows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_secrets: bool,
    /// The digests of the strings that quote them, without the secrets, each with its number; empty in journals of
    /// earlier versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub quoted: BTreeMap<Digest, u64>,
}

/// One attempt at a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// The calls, in the order in which they were made.
    pub calls: Vec<Called>,
    /// The reason for which not all of them were made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
}

impl Attempt {
    /// The call of the case itself, if it was made.
    pub(crate) fn call(&self) -> Option<&Called> {
        self.find(Role::Call, 0)
    }

    /// The call with this role and number, if it was made.
    pub(crate) fn find(&self, role: Role, number: usize) -> Option<&Called> {
        self.calls.iter().find(|called| (called.role, called.number) == (role, number))
    }

    /// The time that the call of the case took.
    pub(crate) fn latency(&self) -> Option<Duration> {
        self.call().map(|called| Duration::from_nanos(called.nanos))
    }
}

/// One call and its outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Called {
    /// The purpose of the call.
    pub role: Role,
    /// The number among the calls of this role, from 0.
    pub number: usize,
    /// The part of the server that was asked for.
    #[serde(default, skip_serializing_if = "Feature::is_tool")]
    pub feature: Feature,
    /// The name of the tool or prompt, the URI of the resource, or the method.
    pub tool: String,
    /// The arguments that were sent, without secrets.
    pub arguments: Map<String, Value>,
    /// The outcome.
    pub outcome: Outcome,
    /// The time that it took, in nanoseconds.
    pub nanos: u64,
    /// The notifications that came meanwhile, where some are expected, without secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notifications: Vec<Value>,
    /// The headers of the response that are expected, without secrets; none over stdio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<BTreeMap<String, String>>,
    /// The task, where the call was made as one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskRun>,
    /// The first violation of the output schema that the tool declared then, without secrets. A run is
    /// judged by the definitions themselves, a recording without them by this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub violation: Option<String>,
}

impl Called {
    /// The same without secrets.
    pub(crate) fn redacted(mut self, redactor: &Redactor) -> Called {
        redactor.hide_in_fields(&mut self.arguments);
        // By the name of a tool its definition is found; the address of a resource is only shown.
        if !self.feature.is_tool() {
            self.tool = redactor.hidden(std::mem::take(&mut self.tool));
        }
        if let Some(why) = &mut self.violation {
            *why = redactor.hidden(std::mem::take(why));
        }
        self.outcome.redact(redactor);
        self
    }

    /// The same without anything that reads as private ([`karat_io::private`]).
    pub(crate) fn without_private(mut self) -> Called {
        let mut arguments = Value::Object(std::mem::take(&mut self.arguments));
        private::hide_in(&mut arguments);
        if let Value::Object(arguments) = arguments {
            self.arguments = arguments;
        }
        self.outcome.hide_private();
        self.notifications.iter_mut().for_each(private::hide_in);
        for (name, value) in self.headers.iter_mut().flatten() {
            *value = private::hide(name, value).into_owned();
        }
        if let Some(why) = &mut self.violation {
            *why = private::hide("", why).into_owned();
        }
        self
    }
}

/// The outcome of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "ended")]
pub enum Outcome {
    /// A result, as it was on the wire except for secrets.
    Result {
        /// The result.
        result: Value,
    },
    /// A protocol error.
    ProtocolError {
        /// The code.
        code: i64,
        /// The message.
        message: String,
        /// Additional data.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<Value>,
    },
    /// No answer in time.
    Timeout,
    /// The end of the server.
    Crash {
        /// The reason.
        why: String,
    },
    /// An answer that breaks the protocol.
    Invalid {
        /// The problem.
        why: String,
    },
    /// A connection that failed, or an HTTP status instead of an answer.
    Transport {
        /// The reason.
        why: String,
    },
}

impl Outcome {
    /// The answer as text, before secrets are taken out.
    pub(crate) fn describe(&self) -> String {
        let start = |text: &str| text.chars().take(SHOWN_CHARS).collect::<String>();
        match self {
            Outcome::Result { result } => {
                let kind = if self.is_tool_error() { "error: " } else { "" };
                let answer = Answer::new(result);
                match answer.text() {
                    "" => format!("{kind}{}", start(&result.to_string())),
                    text => format!("{kind}{}", start(text)),
                }
            }
            Outcome::ProtocolError { data: Some(data), .. } => {
                format!("{self}: {}", start(&data.to_string()))
            }
            other => other.to_string(),
        }
    }

    /// Returns whether the tool reports an error.
    pub(crate) fn is_tool_error(&self) -> bool {
        matches!(self, Outcome::Result { result } if result.get("isError") == Some(&Value::Bool(true)))
    }

    /// The class of the outcome, as it is counted in reports.
    pub(crate) fn class(&self) -> &'static str {
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

    /// Returns whether the server answered at all.
    pub(crate) fn is_answer(&self) -> bool {
        matches!(self, Outcome::Result { .. } | Outcome::ProtocolError { .. })
    }

    fn hide_private(&mut self) {
        if let Outcome::ProtocolError { data: Some(data), .. } = self {
            private::hide_in(data);
        }
        match self {
            Outcome::Result { result } => private::hide_in(result),
            Outcome::ProtocolError { message: text, .. }
            | Outcome::Crash { why: text }
            | Outcome::Invalid { why: text }
            | Outcome::Transport { why: text } => *text = private::hide("", text).into_owned(),
            Outcome::Timeout => {}
        }
    }

    fn redact(&mut self, redactor: &Redactor) {
        if let Outcome::ProtocolError { data: Some(data), .. } = self {
            redactor.hide_in(data);
        }
        match self {
            Outcome::Result { result } => redactor.hide_in(result),
            Outcome::ProtocolError { message: text, .. }
            | Outcome::Crash { why: text }
            | Outcome::Invalid { why: text }
            | Outcome::Transport { why: text } => *text = redactor.hidden(std::mem::take(text)),
            Outcome::Timeout => {}
        }
    }
}

/// A noun phrase that follows "ended with".
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Result { .. } if self.is_tool_error() => f.write_str("a tool error"),
            Outcome::Result { .. } => f.write_str("a result"),
            Outcome::ProtocolError { code, message, .. } => {
                write!(f, "protocol error {code}: {message}")
            }
            Outcome::Timeout => f.write_str("no answer in time"),
            Outcome::Crash { why } => write!(f, "the end of the server: {why}"),
            Outcome::Invalid { why } => write!(f, "an invalid answer: {why}"),
            Outcome::Transport { why } => write!(f, "a failed connection: {why}"),
        }
    }
}

impl From<Result<Value, CallError>> for Outcome {
    fn from(answered: Result<Value, CallError>) -> Outcome {
        match answered {
            Ok(result) => Outcome::Result { result },
            Err(CallError::Timeout { .. }) => Outcome::Timeout,
            Err(CallError::Protocol { code, message, data }) => {
                Outcome::ProtocolError { code, message, data }
            }
            Err(CallError::Closed { why }) => Outcome::Crash { why },
            Err(
                error @ (CallError::Transport { .. }
                | CallError::Http { .. }
                | CallError::Expired { .. }),
            ) => Outcome::Transport { why: error.to_string() },
            Err(error @ (CallError::Invalid { .. } | CallError::TooLarge { .. })) => {
                Outcome::Invalid { why: error.to_string() }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_in_the_address_of_a_resource_is_not_kept() {
        let mut redactor = Redactor::default();
        redactor.add("first-secret-1");
        let kept = |feature: Feature| {
            let called = Called {
                role: Role::Call,
                number: 0,
                feature,
                tool: "docs://all?token=first-secret-1".to_owned(),
                arguments: Map::new(),
                outcome: Outcome::Timeout,
                nanos: 0,
                notifications: Vec::new(),
                headers: None,
                task: None,
                violation: None,
            };
            called.redacted(&redactor).tool
        };
        assert_eq!(kept(Feature::Resource), "docs://all?token=[redacted]");
        // The definition of a tool is found by its name.
        assert!(kept(Feature::Tool).ends_with("first-secret-1"));
    }
}
