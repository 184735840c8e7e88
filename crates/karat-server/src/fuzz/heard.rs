//! Answers as far as they say something about the schema.
//!
//! An error that may have nothing to do with the input (a rate limit, a database that is not there) is outside of the
//! rates of valid and invalid inputs. So is an invalid input that fails in the words in which valid ones usually fail:
//! that a tool which fails with everything fails with it too proves no check. An error of any kind that only invalid
//! inputs of a working tool get is about them: many servers refuse with an internal error.

use std::collections::{BTreeMap, BTreeSet};

use karat_core::observed::FuzzCounts;

use super::case::{InputKind, Validity};
use crate::observation::Outcome;
use crate::probe::reaction::{Reaction, failure_of};

/// One answer.
#[derive(Clone, Debug)]
pub(super) struct Heard {
    /// None if validators may differ.
    is_valid: Option<bool>,
    is_hostile: bool,
    reaction: Reaction,
    /// The words of a failure.
    failure: Option<BTreeSet<String>>,
    /// True if the kind of the error does not say that it is about the input.
    is_elsewhere: bool,
}

impl Heard {
    pub(super) fn of(kind: InputKind, validity: &Validity, outcome: &Outcome) -> Heard {
        Heard {
            is_valid: match validity {
                Validity::Valid => Some(true),
                Validity::Invalid { .. } => Some(false),
                Validity::Unclear => None,
            },
            is_hostile: kind.is_hostile(),
            reaction: Reaction::from(outcome),
            failure: failure(outcome),
            is_elsewhere: is_elsewhere(outcome),
        }
    }
}

/// The words of a failure; none of an HTTP status, whose words are the same whatever is wrong.
fn failure(outcome: &Outcome) -> Option<BTreeSet<String>> {
    failure_of(outcome).filter(|_| outcome.is_answer())
}

/// Returns whether the kind of an error does not say that it is about the input. That of a tool error does.
fn is_elsewhere(outcome: &Outcome) -> bool {
    Reaction::from(outcome) == Reaction::Failed && !outcome.is_tool_error()
}

/// The answers of a tool to valid inputs.
#[derive(Debug, Default)]
pub(super) struct Usual {
    /// The failure of more than half of the ordinary ones, if there is one.
    failure: Option<BTreeSet<String>>,
    /// Every failure of them.
    failures: BTreeSet<BTreeSet<String>>,
    /// True if one of them succeeded.
    has_succeeded: bool,
    /// The number of valid inputs that were answered.
    pub(super) valid: u64,
}

impl Usual {
    pub(super) fn of(heard: &[Heard]) -> Usual {
        let answered = heard.iter().filter(|one| one.reaction != Reaction::NoAnswer);
        let valid: Vec<&Heard> = answered.filter(|one| one.is_valid == Some(true)).collect();
        // A server may refuse hostile text in the words in which it refuses invalid input.
        let ordinary: Vec<&Heard> = valid.iter().copied().filter(|one| !one.is_hostile).collect();
        let mut counts: BTreeMap<&BTreeSet<String>, usize> = BTreeMap::new();
        for words in ordinary.iter().filter_map(|one| one.failure.as_ref()) {
            *counts.entry(words).or_default() += 1;
        }
        let most = counts.into_iter().max_by_key(|(_, count)| *count);
        let most = most.filter(|(_, count)| count * 2 > ordinary.len());
        Usual {
            failure: most.map(|(words, _)| words.clone()),
            failures: valid.iter().filter_map(|one| one.failure.clone()).collect(),
            has_succeeded: valid.iter().any(|one| one.reaction == Reaction::Accepted),
            valid: valid.len() as u64,
        }
    }

    /// Returns whether an answer to an invalid input says nothing about it.
    pub(super) fn is_unrelated(&self, outcome: &Outcome) -> bool {
        is_elsewhere(outcome) || self.is_failure(failure(outcome).as_ref())
    }

    fn is_failure(&self, words: Option<&BTreeSet<String>>) -> bool {
        words.is_some() && self.failure.as_ref() == words
    }

    /// Returns whether only invalid inputs of a working tool fail in these words.
    fn is_of_invalid(&self, words: Option<&BTreeSet<String>>) -> bool {
        self.has_succeeded && words.is_some_and(|words| !self.failures.contains(words))
    }

    /// Counts the answers that say something about the schema; returns the number of the others.
    pub(super) fn count(&self, counts: &mut FuzzCounts, heard: &[Heard]) -> u64 {
        let mut unrelated = 0;
        for one in heard.iter().filter(|one| one.reaction != Reaction::NoAnswer) {
            let failure = one.failure.as_ref();
            match one.is_valid {
                Some(false) if one.is_elsewhere && self.is_of_invalid(failure) => {
                    counts.invalid += 1;
                    counts.invalid_refused += 1;
                }
                _ if one.is_elsewhere => unrelated += 1,
                Some(true) => {
                    counts.valid += 1;
                    counts.valid_not_refused += u64::from(one.reaction != Reaction::Refused);
                    counts.valid_succeeded += u64::from(one.reaction == Reaction::Accepted);
                }
                Some(false) if self.is_failure(failure) => unrelated += 1,
                Some(false) => {
                    counts.invalid += 1;
                    counts.invalid_refused += u64::from(one.reaction != Reaction::Accepted);
                }
                None => {}
            }
        }
        unrelated
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn heard(is_valid: bool, outcome: &Outcome) -> Heard {
        let validity = match is_valid {
            true => Validity::Valid,
            false => Validity::Invalid {
                keyword: "type".to_owned(),
                at: String::new(),
                why: "x".to_owned(),
            },
        };
        Heard::of(InputKind::Edge, &validity, outcome)
    }

    fn tool_error(text: &str) -> Outcome {
        let content = json!([{"type": "text", "text": text}]);
        Outcome::Result { result: json!({"content": content, "isError": true}) }
    }

    fn counted(heard: &[Heard]) -> (FuzzCounts, u64) {
        let mut counts = FuzzCounts::default();
        let unrelated = Usual::of(heard).count(&mut counts, heard);
        (counts, unrelated)
    }

    #[test]
    fn a_failure_that_valid_inputs_share_does_not_refuse_an_invalid_one() {
        let down = |number: u64| tool_error(&format!("retry in {number} s"));
        let (counts, unrelated) = counted(&[heard(true, &down(1)), heard(false, &down(2))]);
        assert_eq!((counts.valid, counts.invalid, unrelated), (1, 0, 1));
        let own = tool_error("the path must be a text");
        let (counts, unrelated) = counted(&[heard(true, &down(1)), heard(false, &own)]);
        assert_eq!((counts.invalid, counts.invalid_refused, unrelated), (1, 1, 0));
    }

    #[test]
    fn half_of_the_valid_inputs_are_not_most_of_them() {
        let fine = Outcome::Result { result: json!({"content": []}) };
        let same = || tool_error("the path is wrong");
        let half = [heard(true, &same()), heard(true, &fine), heard(false, &same())];
        let (counts, unrelated) = counted(&half);
        assert_eq!((counts.valid, counts.invalid, unrelated), (2, 1, 0));
        let more = [&half[..], &[heard(true, &same())]].concat();
        let (counts, unrelated) = counted(&more);
        assert_eq!((counts.valid, counts.invalid, unrelated), (3, 0, 1));
    }

    #[test]
    fn an_error_of_another_kind_is_outside_of_both_rates() {
        let error =
            |code: i64| Outcome::ProtocolError { code, message: "no".to_owned(), data: None };
        let (counts, unrelated) =
            counted(&[heard(true, &error(-32000)), heard(false, &error(-32000))]);
        assert_eq!((counts.valid, counts.invalid, unrelated), (0, 0, 2));
        let fine = Outcome::Result { result: json!({"content": []}) };
        let (counts, unrelated) = counted(&[heard(true, &fine), heard(false, &error(-32602))]);
        assert_eq!((counts.valid, counts.invalid_refused, unrelated), (1, 1, 0));
        let limited = Outcome::Transport { why: "HTTP status 429".to_owned() };
        let (counts, unrelated) = counted(&[heard(true, &fine), heard(false, &limited)]);
        assert_eq!((counts.valid, counts.invalid, unrelated), (1, 0, 1));
    }

    #[test]
    fn an_internal_error_that_only_invalid_inputs_get_refuses_them() {
        let internal = |text: &str| {
            let (code, message, data) = (-32603, text.to_owned(), None);
            Outcome::ProtocolError { code, message, data }
        };
        let fine = Outcome::Result { result: json!({"content": []}) };
        let refused = heard(false, &internal("Invalid arguments"));
        let (counts, unrelated) = counted(&[heard(true, &fine), refused.clone()]);
        assert_eq!((counts.invalid, counts.invalid_refused, unrelated), (1, 1, 0));
        // A tool that never worked, and one whose valid inputs fail so too, show nothing.
        let absent = heard(true, &internal("no such file"));
        let (counts, unrelated) = counted(&[absent, refused.clone()]);
        assert_eq!((counts.invalid, unrelated), (0, 2));
        let same = heard(true, &internal("Invalid arguments"));
        let (counts, unrelated) = counted(&[heard(true, &fine), heard(true, &fine), same, refused]);
        assert_eq!((counts.valid, counts.invalid, unrelated), (2, 0, 2));
    }
}
