//! Judges the answer to an input. Pure: the same answer to the same input always has the same flaws.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Map, Value};

use super::case::{COERCION, Validity};
use super::leak;
use super::rules::{
    ACCEPTED, COERCED, CRASH, EXTRA, HANG, INVALID_RESULT, OVERSIZED, PLACE, PROTOCOL, REJECTED,
    SECRET, SLOW, TRACE, UNMARKED,
};
use crate::compliance::Contract;
use crate::observation::Outcome;
use crate::probe::Rule;
use crate::probe::encodings::find_encoded;
use crate::probe::reaction::{self, INTERNAL_ERROR, INVALID_PARAMS, Reaction};

/// A flaw of an answer.
#[derive(Clone, Debug)]
pub(super) struct Flaw {
    pub(super) rule: &'static Rule,
    /// Distinguishes flaws of the same rule on the same tool.
    pub(super) key: String,
    pub(super) message: String,
    /// The place in the tool's definition.
    pub(super) at: String,
}

impl Flaw {
    /// Returns whether both are the same flaw, seen with different inputs.
    pub(super) fn is_same(&self, other: &Flaw) -> bool {
        self.rule.id == other.rule.id && self.key == other.key
    }

    /// Notes whether the server answered a ping while a call was without an answer for this long.
    pub(super) fn note_ping(&mut self, is_alive: bool, waited: Duration) {
        if self.rule.id != HANG.id {
            return;
        }
        self.message = format!("no answer within {} s", waited.as_secs_f64());
        if is_alive {
            self.rule = &SLOW;
            self.message.push_str(", but the server answers a ping");
        } else {
            self.message.push_str(", nor to a ping");
        }
    }

    /// The cause that it shares with other tools of the server; none if it is a matter of its tool.
    pub(super) fn cause(&self) -> Option<String> {
        let rule = self.rule.id;
        let is_shared = [UNMARKED.id, COERCED.id, PROTOCOL.id, EXTRA.id].contains(&rule);
        let keyword = self.key.split(' ').next().unwrap_or_default();
        if is_shared {
            Some(rule.to_owned())
        } else if rule == ACCEPTED.id {
            Some(format!("{rule} {keyword}"))
        } else if rule == INVALID_RESULT.id && self.at.is_empty() {
            Some(format!("{rule} {}", self.key))
        } else if rule == REJECTED.id {
            // What is refused in the same words is refused by the same code.
            Some(format!("{rule} {}", self.message))
        } else {
            None
        }
    }

    /// Marks a crash from which the server did not recover: it is a finding of its own, even if a
    /// smaller input broke a connection before.
    pub(super) fn mark_as_gone(&mut self) {
        if self.rule.id == CRASH.id {
            "gone".clone_into(&mut self.key);
            self.message.push_str(", and the server did not come back");
        }
    }
}

/// Finds what is wrong with answers.
pub(super) struct Judge<'a> {
    /// The schemas of the tools.
    pub(super) contract: &'a Contract,
    /// A value that must not be in any answer.
    pub(super) secret: &'a str,
    /// The tools that run programs: a stack trace in their answers is the program's.
    pub(super) runners: &'a BTreeSet<String>,
}

impl Judge<'_> {
    /// The flaws of an answer, the most severe first.
    pub(super) fn flaws(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        validity: &Validity,
        outcome: &Outcome,
    ) -> Vec<Flaw> {
        let reaction = Reaction::from(outcome);
        let mut flaws = Vec::new();
        let mut add = |rule: &'static Rule, key: &str, at: &str, message: String| {
            flaws.push(Flaw { rule, key: key.to_owned(), message, at: at.to_owned() });
        };
        match outcome {
            Outcome::Crash { why } => add(&CRASH, "crash", "", format!("the server ended: {why}")),
            Outcome::Transport { .. } if reaction != Reaction::NoAnswer => {}
            Outcome::Transport { why } => {
                let why = why.trim_start_matches("the connection failed: ");
                add(&CRASH, "connection", "", format!("the connection failed: {why}"));
            }
            Outcome::Timeout => add(&HANG, "hang", "", "no answer in time".to_owned()),
            Outcome::Invalid { why } if why.starts_with("the answer has more than") => {
                // A deep value that comes back is the client's own.
                if !why.contains(" levels") || depth(arguments) < DEEP {
                    add(&OVERSIZED, "oversized", "", why.clone());
                }
            }
            Outcome::Invalid { why } => add(&INVALID_RESULT, "protocol", "", why.clone()),
            Outcome::Result { result } => {
                if let Some(why) = self.contract.malformed(result) {
                    add(&INVALID_RESULT, why, "", why.to_owned());
                } else if let Some(why) = self.contract.output(tool, outcome).reasons().first() {
                    let message = format!("the result violates the output schema: {why}");
                    add(&INVALID_RESULT, "output", "/outputSchema", message);
                }
            }
            Outcome::ProtocolError { .. } => {}
        }
        let text = reaction::text(outcome);
        if let Some(how) = find_encoded(&text, self.secret) {
            let message = format!("the answer contains an environment variable, {how}");
            add(&SECRET, "secret", "", message);
        }
        // What was sent and comes back is not a leak.
        let echoed = || Value::Object(arguments.clone()).to_string();
        let is_program = self.runners.contains(tool);
        if let Some(language) = leak::stack_trace(&text).filter(|_| !is_program) {
            add(&TRACE, language, "", format!("the answer contains a {language} stack trace"));
        } else if reaction != Reaction::Accepted
            && !is_program
            && let Some(place) = leak::source_place(&text)
            && !echoed().contains(place)
        {
            add(&PLACE, "place", "", format!("the error names {place}"));
        }
        match (validity, reaction) {
            (Validity::Invalid { keyword, at, why }, Reaction::Accepted) => {
                let rule = match keyword.as_str() {
                    "additionalProperties" | "unevaluatedProperties" => &EXTRA,
                    COERCION => &COERCED,
                    _ => &ACCEPTED,
                };
                let at = format!("/inputSchema{at}");
                add(rule, &format!("{keyword} {at}"), &at, format!("accepted although {why}"));
            }
            (Validity::Invalid { why, .. }, Reaction::RefusedAsText) => {
                let message = format!("refused as text, without isError ({why})");
                add(&UNMARKED, "unmarked", "", message);
            }
            (Validity::Valid, Reaction::Refused) => {
                let message = format!("a valid input was refused with {outcome}");
                add(&REJECTED, "valid", "/inputSchema", message);
            }
            _ => {}
        }
        // A message that cannot be parsed is answered before it reaches the tool, so other codes are
        // not the tool's, and an internal error may have nothing to do with the arguments.
        if let (
            Validity::Invalid { why, .. },
            Reaction::Refused,
            Outcome::ProtocolError { code: code @ (INVALID_PARAMS | INTERNAL_ERROR), .. },
        ) = (validity, reaction, outcome)
        {
            let message = format!("protocol error {code} instead of a tool error ({why})");
            add(&PROTOCOL, "protocol error", "", message);
        }
        flaws.sort_by_key(|flaw| std::cmp::Reverse(flaw.rule.severity));
        flaws
    }
}

/// The depth from which an argument explains a deep answer.
const DEEP: usize = 32;

fn depth(arguments: &Map<String, Value>) -> usize {
    fn of(value: &Value) -> usize {
        let inner = match value {
            Value::Array(list) => list.iter().map(of).max(),
            Value::Object(fields) => fields.values().map(of).max(),
            _ => return 0,
        };
        1 + inner.unwrap_or(0)
    }
    arguments.values().map(of).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use karat_mcp::{Definition, Revision};
    use serde_json::json;

    use super::*;

    fn found(validity: &Validity, outcome: &Outcome) -> Vec<&'static str> {
        found_in("t", validity, outcome)
    }

    fn found_in(name: &str, validity: &Validity, outcome: &Outcome) -> Vec<&'static str> {
        let tool = json!({"name": name, "outputSchema": {"type": "object", "required": ["a"]}});
        let contract = Contract::new(&[Definition::new(tool).unwrap()], Revision::default());
        let runners = BTreeSet::from(["run".to_owned()]);
        let judge = Judge { contract: &contract, secret: "hush-hush", runners: &runners };
        let flaws = judge.flaws(name, &Map::new(), validity, outcome);
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
    fn crashes_hangs_and_broken_answers_are_flaws_for_every_input() {
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
        let limited = Outcome::Transport { why: "HTTP status 429".to_owned() };
        assert_eq!(found(&valid, &limited), [""; 0]);
    }

    #[test]
    fn an_oversized_answer_is_not_a_violation() {
        let deep = Outcome::Invalid { why: "the answer has more than 64 levels".to_owned() };
        assert_eq!(found(&Validity::Valid, &deep), ["fuzz-oversized-answer"]);
        let contract = Contract::new(&[], Revision::default());
        let runners = BTreeSet::new();
        let judge = Judge { contract: &contract, secret: "hush-hush", runners: &runners };
        let nested = (0..100).fold(json!([]), |value, _| json!([value]));
        let arguments = json!({"a": nested}).as_object().unwrap().clone();
        assert!(judge.flaws("t", &arguments, &invalid("type"), &deep).is_empty());
    }

    #[test]
    fn a_correct_answer_has_no_flaw_and_a_wrong_one_has() {
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
    fn a_tool_error_is_right_and_a_protocol_error_is_noted() {
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
    fn refusals_in_the_same_words_have_one_cause() {
        let refused = |text: &str| {
            let outcome =
                Outcome::ProtocolError { code: -32602, message: text.to_owned(), data: None };
            let contract = Contract::new(&[], Revision::default());
            let runners = BTreeSet::new();
            let judge = Judge { contract: &contract, secret: "hush-hush", runners: &runners };
            let flaws = judge.flaws("t", &Map::new(), &Validity::Valid, &outcome);
            flaws[0].cause().unwrap()
        };
        assert_eq!(refused("expected record"), refused("expected record"));
        assert_ne!(refused("expected record"), refused("no such field"));
    }

    #[test]
    fn leaks_are_found_in_every_kind_of_answer() {
        let trace = "Traceback (most recent call last):\n  File \"/a.py\", line 1, in f";
        let error = result(trace, &json!({"isError": true}));
        assert_eq!(found(&invalid("type"), &error), ["fuzz-stack-trace"]);
        assert_eq!(found_in("run", &invalid("type"), &error), [""; 0]);
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
