//! What an answer to an input says about the server. Talks to nobody: the same answer to the same
//! input is always the same flaw.

use serde_json::{Map, Value};

use super::{Validity, leak};
use crate::compliance::Contract;
use crate::observation::Outcome;
use crate::probe::disguise::carried;
use crate::probe::{Rule, Severity};

/// The server ended.
pub const CRASH: Rule = Rule {
    id: "fuzz-crash",
    severity: Severity::Error,
    summary: "an input ends the server or its connection",
    help: "Every other client of the server is cut off with it. Catch the failure where the input is \
           read, and answer with a tool error.",
};
/// The server does not answer.
pub const HANG: Rule = Rule {
    id: "fuzz-hang",
    severity: Severity::Error,
    summary: "an input is never answered",
    help: "A client waits until it gives up, and so does its user. Bound the work by the input's size \
           and by time, and refuse what is beyond. --timeout-ms says how long is waited.",
};
/// The result breaks the protocol or the tool's own schema.
pub const INVALID_RESULT: Rule = Rule {
    id: "fuzz-invalid-result",
    severity: Severity::Error,
    summary: "a result breaks the protocol or the tool's output schema",
    help: "Clients that check results drop it. Return what the output schema promises, or a result \
           with isError.",
};
/// The input breaks the schema and is taken.
pub const ACCEPTED: Rule = Rule {
    id: "fuzz-accepted-invalid",
    severity: Severity::Error,
    summary: "an input that breaks the input schema is answered as if it were right",
    help: "A model that errs is not told, and the tool works on values that it was not made for. \
           Check the arguments against the schema before using them.",
};
/// The input has fields that the schema forbids.
pub const EXTRA: Rule = Rule {
    id: "fuzz-accepted-extra",
    severity: Severity::Warning,
    summary: "fields that the input schema forbids are passed over",
    help: "A mistyped optional parameter goes unnoticed. Refuse unknown fields, or allow them in the \
           schema.",
};
/// A stack trace is in the answer.
pub const TRACE: Rule = Rule {
    id: "fuzz-stack-trace",
    severity: Severity::Error,
    summary: "an answer carries a stack trace",
    help: "It tells an attacker how the server is built, and a model nothing that it could use. Say \
           what was wrong with the input, and log the rest.",
};
/// A secret of the environment is in the answer.
pub const SECRET: Rule = Rule {
    id: "fuzz-leaked-secret",
    severity: Severity::Error,
    summary: "an answer carries a secret from the server's environment",
    help: "Whatever a tool answers goes to a model, its provider and its logs. Never put the \
           environment into an answer.",
};
/// A place in the code is in an error.
pub const PLACE: Rule = Rule {
    id: "fuzz-internal-path",
    severity: Severity::Warning,
    summary: "an error names a file and line of the server's own code",
    help: "It tells how and where the server is installed. Say what was wrong with the input instead.",
};
/// The input keeps the schema and is refused as invalid.
pub const REJECTED: Rule = Rule {
    id: "fuzz-rejected-valid",
    severity: Severity::Warning,
    summary: "an input that keeps the input schema is refused as invalid",
    help: "The schema promises more than the tool can take, and a model has nothing else to go by. \
           Write the limit into the schema.",
};
/// Bad arguments come back as a protocol error.
pub const PROTOCOL: Rule = Rule {
    id: "fuzz-protocol-error",
    severity: Severity::Note,
    summary: "bad arguments are answered with a protocol error, not with a tool error",
    help: "Many clients do not show protocol errors to the model, so it cannot correct itself. Return \
           a result with isError and say what is wrong.",
};
/// No valid input came to a success.
pub const NEVER: Rule = Rule {
    id: "fuzz-never-succeeded",
    severity: Severity::Note,
    summary: "no valid input led to a success",
    help: "The tool may need things that exist (a file, an id), so only its error paths were tried. \
           Give such values as examples or defaults in the schema.",
};

/// Every rule, in the order of weight.
pub const RULES: &[&Rule] = &[
    &CRASH,
    &HANG,
    &SECRET,
    &TRACE,
    &INVALID_RESULT,
    &ACCEPTED,
    &EXTRA,
    &REJECTED,
    &PLACE,
    &PROTOCOL,
    &NEVER,
];

/// Something wrong with an answer.
#[derive(Clone, Debug)]
pub struct Flaw {
    /// Which rule.
    pub rule: &'static Rule,
    /// What tells it from other flaws of the same rule on the same tool.
    pub key: String,
    /// In words.
    pub message: String,
    /// Where in the tool's definition.
    pub at: String,
}

/// What an answer amounts to, for the rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A success.
    Accepted,
    /// An error that says that the input is wrong, by its form.
    Refused,
    /// A tool error of any other kind.
    Failed,
    /// No answer that could be called either.
    NoAnswer,
}

/// The codes with which arguments are refused as a protocol error.
pub(crate) const INVALID_PARAMS: i64 = -32602;
const INTERNAL_ERROR: i64 = -32603;

/// Marks that validators leave in tool errors.
const REFUSALS: [&str; 4] =
    ["-32602", "Input validation error", "validation error for ", "validation errors for "];

/// What the answer amounts to.
#[must_use]
pub fn verdict(outcome: &Outcome) -> Verdict {
    match outcome {
        Outcome::Result { .. } if outcome.is_tool_error() => {
            let text = text(outcome);
            match REFUSALS.iter().any(|mark| text.contains(mark)) {
                true => Verdict::Refused,
                false => Verdict::Failed,
            }
        }
        Outcome::Result { .. } => Verdict::Accepted,
        Outcome::ProtocolError { .. } => Verdict::Refused,
        Outcome::Transport { why } if why.starts_with("HTTP status 4") => Verdict::Refused,
        _ => Verdict::NoAnswer,
    }
}

/// What the judge knows beside the answer.
pub struct Judge<'a> {
    /// The schemas.
    pub contract: &'a Contract,
    /// What must not be in any answer.
    pub secret: Option<&'a str>,
}

impl Judge<'_> {
    /// All that is wrong with an answer, the worst first.
    #[must_use]
    pub fn flaws(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        validity: &Validity,
        outcome: &Outcome,
    ) -> Vec<Flaw> {
        let mut flaws = Vec::new();
        let mut add = |rule: &'static Rule, key: &str, at: &str, message: String| {
            flaws.push(Flaw { rule, key: key.to_owned(), message, at: at.to_owned() });
        };
        match outcome {
            Outcome::Crash { why } => add(&CRASH, "crash", "", format!("the server ended: {why}")),
            Outcome::Transport { .. } if verdict(outcome) == Verdict::Refused => {}
            Outcome::Transport { why } => {
                let why = why.trim_start_matches("the connection failed: ");
                add(&CRASH, "connection", "", format!("the connection failed: {why}"));
            }
            Outcome::Timeout => add(&HANG, "hang", "", "there was no answer in time".to_owned()),
            Outcome::Invalid { why } => add(&INVALID_RESULT, "protocol", "", why.clone()),
            Outcome::Result { result } => {
                if let Some(why) = self.contract.malformed(result) {
                    add(&INVALID_RESULT, why, "", why.to_owned());
                } else if let Some(why) = self.contract.output(tool, outcome).reasons().first() {
                    let message = format!("the result breaks the output schema: {why}");
                    add(&INVALID_RESULT, "output", "/outputSchema", message);
                }
            }
            Outcome::ProtocolError { .. } => {}
        }
        let text = text(outcome);
        if let Some(how) = self.secret.and_then(|secret| carried(&text, secret)) {
            let message = format!("the answer has the value of an environment variable, {how}");
            add(&SECRET, "secret", "", message);
        }
        // What was sent and came back is no leak.
        let echoed = || Value::Object(arguments.clone()).to_string();
        if let Some(language) = leak::stack_trace(&text) {
            add(&TRACE, language, "", format!("the answer has a stack trace of {language}"));
        } else if verdict(outcome) != Verdict::Accepted
            && let Some(place) = leak::source_place(&text)
            && !echoed().contains(place)
        {
            add(&PLACE, "place", "", format!("the error names {place}"));
        }
        match (validity, verdict(outcome)) {
            (Validity::Invalid { keyword, at, why }, Verdict::Accepted) => {
                let surplus =
                    matches!(keyword.as_str(), "additionalProperties" | "unevaluatedProperties");
                let rule = if surplus { &EXTRA } else { &ACCEPTED };
                let at = format!("/inputSchema{at}");
                add(
                    rule,
                    &format!("{keyword} {at}"),
                    &at,
                    format!("it was accepted although {why}"),
                );
            }
            (Validity::Valid, Verdict::Refused) => {
                let message = format!("a valid input was refused with {}", outcome.words());
                add(&REJECTED, "valid", "/inputSchema", message);
            }
            _ => {}
        }
        // What cannot be read at all is answered by whoever reads it, and not by the tool.
        if let (
            Validity::Invalid { why, .. },
            Outcome::ProtocolError { code: code @ (INVALID_PARAMS | INTERNAL_ERROR), .. },
        ) = (validity, outcome)
        {
            let message = format!("protocol error {code} where a tool error is due ({why})");
            add(&PROTOCOL, "protocol error", "", message);
        }
        flaws.sort_by_key(|flaw| std::cmp::Reverse(flaw.rule.severity));
        flaws
    }
}

/// Marks what a server did not come back from: it is a finding of its own, whatever smaller input broke
/// a connection before.
pub(super) fn gone(flaw: &mut Flaw) {
    if flaw.rule.id == CRASH.id {
        "gone".clone_into(&mut flaw.key);
        flaw.message = format!("{}, and the server did not come back", flaw.message);
    }
}

/// What the server said, in whatever way.
pub(crate) fn text(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Result { result } => {
            let mut text = String::new();
            gather(result, &mut text);
            text
        }
        Outcome::ProtocolError { message, data, .. } => {
            let mut text = format!("{message}\n");
            if let Some(data) = data {
                gather(data, &mut text);
            }
            text
        }
        Outcome::Crash { .. } | Outcome::Timeout => String::new(),
        Outcome::Invalid { why } | Outcome::Transport { why } => why.clone(),
    }
}

/// Every text, name and number in a value, one after the other, each on a line of its own.
fn gather(value: &Value, into: &mut String) {
    match value {
        Value::String(text) => {
            into.push_str(text);
            into.push('\n');
        }
        Value::Number(number) => {
            into.push_str(&number.to_string());
            into.push('\n');
        }
        Value::Array(list) => list.iter().for_each(|value| gather(value, into)),
        Value::Object(fields) => {
            for (name, value) in fields {
                into.push_str(name);
                into.push('\n');
                gather(value, into);
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use karat_mcp::{Definition, Revision};
    use serde_json::json;

    use super::*;

    fn found(validity: &Validity, outcome: &Outcome) -> Vec<&'static str> {
        let tool = json!({"name": "t", "outputSchema": {"type": "object", "required": ["a"]}});
        let contract = Contract::new(&[Definition::new(tool).unwrap()], Revision::default());
        let judge = Judge { contract: &contract, secret: Some("hush-hush") };
        let flaws = judge.flaws("t", &Map::new(), validity, outcome);
        flaws.into_iter().map(|flaw| flaw.rule.id).collect()
    }

    fn invalid(keyword: &str) -> Validity {
        Validity::Invalid { keyword: keyword.to_owned(), at: String::new(), why: "x".to_owned() }
    }

    fn result(text: &str, more: &Value) -> Outcome {
        let mut result = json!({"content": [{"type": "text", "text": text}]});
        result.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Outcome::Result { result }
    }

    #[test]
    fn endings_that_no_input_excuses() {
        let valid = Validity::Valid;
        assert_eq!(found(&valid, &Outcome::Crash { why: String::new() }), ["fuzz-crash"]);
        assert_eq!(found(&valid, &Outcome::Timeout), ["fuzz-hang"]);
        assert_eq!(
            found(&valid, &Outcome::Invalid { why: String::new() }),
            ["fuzz-invalid-result"]
        );
        let broken = Outcome::Transport { why: "HTTP status 500".to_owned() };
        assert_eq!(found(&valid, &broken), ["fuzz-crash"]);
        let refused = Outcome::Transport { why: "HTTP status 413".to_owned() };
        assert_eq!(found(&invalid("type"), &refused), [""; 0]);
    }

    #[test]
    fn a_good_answer_has_no_flaw_and_a_bad_one_has() {
        let good = result("fine", &json!({"structuredContent": {"a": 1}}));
        assert_eq!(found(&Validity::Valid, &good), [""; 0]);
        assert_eq!(found(&Validity::Unclear, &good), [""; 0]);
        assert_eq!(found(&invalid("type"), &good), ["fuzz-accepted-invalid"]);
        assert_eq!(found(&invalid("additionalProperties"), &good), ["fuzz-accepted-extra"]);
        let bare = result("fine", &json!({}));
        assert_eq!(found(&Validity::Valid, &bare), ["fuzz-invalid-result"]);
        let odd = Outcome::Result { result: json!({"content": [{"type": "song"}]}) };
        assert_eq!(found(&Validity::Valid, &odd), ["fuzz-invalid-result"]);
    }

    #[test]
    fn errors_are_due_and_their_kind_is_noted() {
        let error = result("there is no such file", &json!({"isError": true}));
        assert_eq!(found(&Validity::Valid, &error), [""; 0]);
        assert_eq!(found(&invalid("type"), &error), [""; 0]);
        let refusal = result("MCP error -32602: no", &json!({"isError": true}));
        assert_eq!(found(&Validity::Valid, &refusal), ["fuzz-rejected-valid"]);
        let protocol =
            Outcome::ProtocolError { code: -32602, message: "no".to_owned(), data: None };
        assert_eq!(found(&invalid("type"), &protocol), ["fuzz-protocol-error"]);
        assert_eq!(found(&Validity::Valid, &protocol), ["fuzz-rejected-valid"]);
    }

    #[test]
    fn leaks_are_found_in_whatever_answer() {
        let trace = "Traceback (most recent call last):\n  File \"/a.py\", line 1, in f";
        let error = result(trace, &json!({"isError": true}));
        assert_eq!(found(&invalid("type"), &error), ["fuzz-stack-trace"]);
        let secret = Outcome::ProtocolError {
            code: -32603,
            message: String::new(),
            data: Some(json!({"environment": ["hush-hush"]})),
        };
        assert!(found(&Validity::Unclear, &secret).contains(&"fuzz-leaked-secret"));
        let place = result("failed at /srv/app/a.js:3", &json!({"isError": true}));
        assert_eq!(found(&Validity::Valid, &place), ["fuzz-internal-path"]);
    }
}
