//! The reaction of a server to arguments, by the form of its answer. Its wording only tells a refusal
//! without `isError` apart from a result.

use karat_core::expect::Answer;
use serde_json::Value;

use super::refusal;
use crate::observation::Outcome;

/// The reaction to one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reaction {
    /// A result.
    Accepted,
    /// An error that marks the arguments as wrong.
    Refused,
    /// A result that reads as a refusal, without `isError`.
    RefusedAsText,
    /// A tool error of any other kind.
    Failed,
    /// No answer.
    NoAnswer,
}

/// The code of protocol errors that refuse arguments.
pub(crate) const INVALID_PARAMS: i64 = -32602;

/// Marks that validators leave in tool errors.
const REFUSALS: [&str; 4] =
    ["-32602", "Input validation error", "validation error for ", "validation errors for "];

impl From<&Outcome> for Reaction {
    fn from(outcome: &Outcome) -> Reaction {
        match outcome {
            Outcome::Result { .. } if outcome.is_tool_error() => {
                let text = text(outcome);
                match REFUSALS.iter().any(|mark| text.contains(mark)) {
                    true => Reaction::Refused,
                    false => Reaction::Failed,
                }
            }
            Outcome::Result { result } => {
                match refusal::is_refusal(result, Answer::new(result).text()) {
                    true => Reaction::RefusedAsText,
                    false => Reaction::Accepted,
                }
            }
            Outcome::ProtocolError { .. } => Reaction::Refused,
            Outcome::Transport { why } if why.starts_with("HTTP status 4") => Reaction::Refused,
            _ => Reaction::NoAnswer,
        }
    }
}

/// Everything that the server said, wherever in the answer it is.
pub(crate) fn text(outcome: &Outcome) -> String {
    let mut text = String::new();
    match outcome {
        Outcome::Result { result } => gather(result, &mut text),
        Outcome::ProtocolError { message, data, .. } => {
            add(&mut text, message);
            data.iter().for_each(|data| gather(data, &mut text));
        }
        Outcome::Crash { .. } | Outcome::Timeout => {}
        Outcome::Invalid { why } | Outcome::Transport { why } => text.clone_from(why),
    }
    text
}

fn add(into: &mut String, line: &str) {
    into.push_str(line);
    into.push('\n');
}

/// Collects every text, name and number in a value, each on a line of its own.
fn gather(value: &Value, into: &mut String) {
    match value {
        Value::String(text) => add(into, text),
        Value::Number(number) => add(into, &number.to_string()),
        Value::Array(list) => list.iter().for_each(|value| gather(value, into)),
        Value::Object(fields) => {
            for (name, value) in fields {
                add(into, name);
                gather(value, into);
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}
