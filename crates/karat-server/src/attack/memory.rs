//! The state that a run keeps from one attack to the next: the plain calls of the tools, and the proofs that may still
//! turn up.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use karat_core::observed::AttackEvidence;
use serde_json::{Map, Value};

use super::attempts::{Attempt, Proof};
use super::canary_site::CanarySite;
use super::judgement::{is_refused_as_invalid, side_effect};
use super::result::AttackResult;
use crate::observation::Outcome;
use crate::probe::reaction::{Reaction, words_of};

/// The time after an attempt in which a side effect still counts.
const LATE: Duration = Duration::from_secs(2);

/// The id of the attack that has addresses of this machine called.
const LOOPBACK: &str = "ssrf-loopback";

/// Proofs of an attempt that may still turn up.
struct Pending {
    id: String,
    about: String,
    sent: String,
    proofs: Vec<Proof>,
    at: Instant,
}

/// A call of a tool without an attack: the input around which attacks are made.
#[derive(Clone, Default)]
pub(super) struct PlainCall {
    /// The values that it was made with, as far as they are known.
    pub(super) known: Map<String, Value>,
    /// The arguments of the call that the outcome is of.
    pub(super) arguments: Map<String, Value>,
    /// Its answer; none if there was none.
    pub(super) outcome: Option<Outcome>,
}

impl PlainCall {
    /// Returns whether even this call is refused as invalid: then a refusal proves nothing about the attack in
    /// the arguments.
    pub(super) fn is_refused(&self) -> bool {
        self.outcome.as_ref().is_some_and(is_refused_as_invalid)
    }

    pub(super) fn is_slow(&self) -> bool {
        self.outcome == Some(Outcome::Timeout)
    }

    /// The words that it failed with, if it did.
    pub(super) fn failure(&self) -> Option<BTreeSet<String>> {
        let outcome = self.outcome.as_ref().filter(|outcome| outcome.is_answer())?;
        (Reaction::from(outcome) != Reaction::Accepted).then(|| words_of(outcome))
    }
}

/// The state that a run keeps from one attack to the next.
pub(super) struct Memory {
    /// The last input that was sent.
    pub(super) last: Option<String>,
    /// The reason for which the server was lost, and the last input before.
    pub(super) lost: Option<String>,
    /// The plain call of each tool.
    pub(super) plain: BTreeMap<String, PlainCall>,
    /// The ids of results that show that a file outside was looked at.
    pub(super) looked_at: BTreeSet<String>,
    /// The ids of results of `ssrf-loopback` that proved nothing.
    unproven: BTreeSet<String>,
    /// True if the last attempt had an answer that can be read; true before the first one.
    pub(super) is_answering: bool,
    pending: Vec<Pending>,
}

impl Default for Memory {
    fn default() -> Memory {
        Memory {
            last: None,
            lost: None,
            plain: BTreeMap::new(),
            looked_at: BTreeSet::new(),
            unproven: BTreeSet::new(),
            is_answering: true,
            pending: Vec::new(),
        }
    }
}

impl Memory {
    /// Keeps the proofs of an attempt that may still turn up after its answer.
    pub(super) fn keep(&mut self, result: &AttackResult, attempt: &Attempt, sent: &str) {
        if attempt.proofs.iter().any(Proof::is_side_effect) {
            self.pending.push(Pending {
                id: result.id(),
                about: attempt.about.clone(),
                sent: sent.to_owned(),
                proofs: attempt.proofs.clone(),
                at: Instant::now(),
            });
        }
    }

    /// Keeps that attempts to have this machine called proved nothing.
    pub(super) fn keep_unproven(&mut self, result: &AttackResult) {
        if result.attack == LOOPBACK {
            self.unproven.insert(result.id());
        }
    }

    /// Returns whether attempts of `ssrf-loopback` through the parameter of a result, which proved nothing, have led
    /// to a call of this machine since; none if there were no such attempts.
    pub(super) fn calls_late(&self, result: &AttackResult, site: &CanarySite) -> Option<bool> {
        let id = AttackResult { attack: LOOPBACK.to_owned(), ..result.clone() }.id();
        self.unproven.contains(&id).then(|| self.late_evidence(&id, site).is_some())
    }

    /// The time until nothing more can turn up for the results with these ids.
    pub(super) fn wait_for(&self, ids: &BTreeSet<String>) -> Duration {
        let of_results = self.pending.iter().filter(|pending| ids.contains(&pending.id));
        let last = of_results.map(|pending| pending.at).max();
        last.map_or(Duration::ZERO, |at| LATE.saturating_sub(at.elapsed()))
    }

    /// The evidence of a proof that turned up after the answer.
    pub(super) fn late_evidence(&self, id: &str, site: &CanarySite) -> Option<AttackEvidence> {
        let mut of_result = self.pending.iter().filter(|pending| pending.id == id);
        of_result.find_map(|pending| {
            let canary = pending.proofs.iter().find_map(|proof| side_effect(proof, site))?;
            Some(AttackEvidence {
                about: pending.about.clone(),
                sent: pending.sent.clone(),
                answer: "(the proof came after the answer)".to_owned(),
                canary,
            })
        })
    }
}

/// Attacks on files, each with those that show by their answers that such a file was looked at.
/// A tool that looks anywhere is not confined by refusing another way there.
const ON_FILES: [(&str, &[&str]); 5] = [
    ("absolute-path", &["absolute-path"]),
    ("path-traversal", &["path-traversal", "absolute-path"]),
    ("secret-file", &["absolute-path", "path-traversal"]),
    ("sibling-folder", &["absolute-path", "path-traversal"]),
    ("symbolic-link", &["absolute-path", "path-traversal"]),
];

impl Memory {
    /// The reason for which an attack on files is not held, although nothing proves it: the server looked at a file
    /// outside, and only failed to use its content.
    pub(super) fn doubt(&self, result: &AttackResult) -> Option<String> {
        let (_, shown_by) = ON_FILES.iter().find(|(attack, _)| *attack == result.attack)?;
        let id = |attack: &&&str| {
            let shown = AttackResult { attack: (**attack).to_owned(), ..result.clone() };
            self.looked_at.contains(&shown.id())
        };
        shown_by.iter().find(id)?;
        Some(format!(
            "{} answers differently for a file outside that exists and one that does not, so it looked at it, \
             and may use one of the kind that it reads",
            result.tool
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::attacks::ATTACKS;
    use super::*;

    #[test]
    fn a_tool_that_looks_at_any_file_is_not_held_by_another_way_there() {
        let result = |id: &str, tool: &str| {
            let attack = ATTACKS.iter().find(|attack| attack.id() == id).unwrap();
            AttackResult {
                parameter: Some("path".to_owned()),
                ..AttackResult::new(attack, tool, None)
            }
        };
        let mut memory = Memory::default();
        memory.looked_at.insert(result("absolute-path", "list").id());
        for id in
            ["absolute-path", "path-traversal", "secret-file", "sibling-folder", "symbolic-link"]
        {
            assert!(memory.doubt(&result(id, "list")).is_some(), "{id}");
            assert!(memory.doubt(&result(id, "read")).is_none(), "{id}");
        }
        assert!(memory.doubt(&result("command-injection", "list")).is_none());
    }
}
