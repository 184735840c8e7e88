//! The reaction of a server to arguments, by the form of its answer. Its wording only tells a refusal
//! without `isError` apart from a result.

use std::collections::BTreeSet;

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
    /// An error of any other kind.
    Failed,
    /// No answer.
    NoAnswer,
}

/// The code of protocol errors that refuse arguments.
pub(crate) const INVALID_PARAMS: i64 = -32602;

/// The code of protocol errors that say nothing of the cause.
pub(crate) const INTERNAL_ERROR: i64 = -32603;

/// The codes of messages that cannot be read or are not requests: the input is refused before a tool sees it.
const UNREADABLE: [i64; 2] = [-32700, -32600];

/// Marks that validators leave in errors of any kind.
const VALIDATOR_MARKS: [&str; 4] =
    ["-32602", "Input validation error", "validation error for ", "validation errors for "];

/// Marks that validators leave in internal errors (-32603), which say nothing of the arguments otherwise: of Zod, Ajv,
/// jsonschema, serde and Go.
const INTERNAL_VALIDATOR_MARKS: [&str; 18] = [
    "invalid_type",
    "invalid_literal",
    "invalid_union",
    "invalid_enum_value",
    "invalid_value",
    "unrecognized_keys",
    "too_small",
    "too_big",
    "ValidationError",
    "must have required property",
    "must NOT have",
    "must be ",
    "is a required property",
    "is not of type",
    "invalid type: ",
    "missing field `",
    "unknown field `",
    "cannot unmarshal",
];

/// HTTP statuses that refuse the content of a request, not its sender (401, 403) or its frequency (429).
const CONTENT_REFUSED: [&str; 7] = ["400", "406", "413", "414", "415", "422", "431"];

/// The HTTP status in the reason of a failed connection, such as `403 Forbidden`.
pub(crate) fn http_status(why: &str) -> Option<&str> {
    why.strip_prefix("HTTP status ")
}

/// Returns whether an HTTP status refuses the content of a request.
pub(crate) fn refuses_content(status: &str) -> bool {
    CONTENT_REFUSED.iter().any(|code| status.starts_with(code))
}

fn has_mark(outcome: &Outcome, marks: &[&str]) -> bool {
    let text = text(outcome);
    marks.iter().any(|mark| text.contains(mark))
}

impl From<&Outcome> for Reaction {
    fn from(outcome: &Outcome) -> Reaction {
        match outcome {
            Outcome::Result { .. } if outcome.is_tool_error() => {
                match has_mark(outcome, &VALIDATOR_MARKS) {
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
            Outcome::ProtocolError { code, .. } => {
                let is_refusal = *code == INVALID_PARAMS
                    || UNREADABLE.contains(code)
                    || has_mark(outcome, &VALIDATOR_MARKS)
                    || (*code == INTERNAL_ERROR && has_mark(outcome, &INTERNAL_VALIDATOR_MARKS));
                if is_refusal { Reaction::Refused } else { Reaction::Failed }
            }
            Outcome::Transport { why } => match http_status(why) {
                Some(status) if refuses_content(status) => Reaction::Refused,
                Some(status) if status.starts_with('4') => Reaction::Failed,
                _ => Reaction::NoAnswer,
            },
            _ => Reaction::NoAnswer,
        }
    }
}

/// The words of an answer, in no order: some servers list their complaints in a random one.
pub(crate) fn words_of(outcome: &Outcome) -> BTreeSet<String> {
    let text = text(outcome);
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

/// The words of a failure, without those that have a digit: a time or an id differs from one failure to the next.
pub(crate) fn failure_of(outcome: &Outcome) -> Option<BTreeSet<String>> {
    let is_failure = !matches!(Reaction::from(outcome), Reaction::Accepted | Reaction::NoAnswer);
    let mut words = is_failure.then(|| words_of(outcome))?;
    words.retain(|word| !word.chars().any(char::is_numeric));
    Some(words)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_error_about_the_arguments_is_a_refusal() {
        let protocol = |code: i64, message: &str| {
            let (message, data) = (message.to_owned(), None);
            Reaction::from(&Outcome::ProtocolError { code, message, data })
        };
        let refused = [
            (-32602, "no"),
            (-32700, "cannot be parsed"),
            (-32600, "not a request"),
            (-32603, r#"[{"code": "invalid_type", "path": ["n"]}]"#),
        ];
        for (code, message) in refused {
            assert_eq!(protocol(code, message), Reaction::Refused, "{code} {message}");
        }
        let failed = [(-32603, "database is not available"), (-32000, "Rate limit exceeded")];
        for (code, message) in failed {
            assert_eq!(protocol(code, message), Reaction::Failed, "{code} {message}");
        }
    }

    #[test]
    fn an_http_status_about_the_sender_is_not_a_refusal_of_the_arguments() {
        let status = |why: &str| Reaction::from(&Outcome::Transport { why: why.to_owned() });
        for (why, reaction) in [
            ("HTTP status 400 Bad Request", Reaction::Refused),
            ("HTTP status 413", Reaction::Refused),
            ("HTTP status 401", Reaction::Failed),
            ("HTTP status 429 Too Many Requests", Reaction::Failed),
            ("HTTP status 500", Reaction::NoAnswer),
        ] {
            assert_eq!(status(why), reaction, "{why}");
        }
    }
}
