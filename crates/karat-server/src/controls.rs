//! Servers of known quality, played on the same suite without starting anything.
//!
//! They prove that the suite can fail: a server that refuses every call, one whose every tool fails,
//! and one that answers every call with nothing.

use karat_core::aggregate;
use karat_core::report::{Control, Item};
use serde_json::json;

use crate::compliance::Contract;
use crate::observation::{Attempt, Called, Observed, Outcome, Role};
use crate::score::{self, SPECS};
use crate::suite::{Case, Ending};

/// A server that answers every call in one way.
struct Played {
    name: &'static str,
    expected: &'static str,
    outcome: fn() -> Outcome,
    /// Whether a case may pass with this answer and the suite still be a suite.
    may_pass: fn(&Case) -> bool,
}

const PLAYED: &[Played] = &[
    Played {
        name: "refuses-all",
        expected: "a server that refuses every call fails each case that wants a result",
        outcome: || Outcome::ProtocolError { code: -32603, message: String::new(), data: None },
        may_pass: |case| case.step.ending != Ending::Success,
    },
    Played {
        name: "fails-all",
        expected: "a server whose every tool fails fails each case that wants a result",
        outcome: || Outcome::Result { result: json!({"content": [], "isError": true}) },
        may_pass: |case| case.step.ending != Ending::Success,
    },
    Played {
        name: "answers-nothing",
        expected: "a server that answers every call with nothing fails each case that says what must come back, and each that wants an error",
        outcome: || Outcome::Result { result: json!({"content": []}) },
        may_pass: |case| {
            case.step.ending == Ending::Whatever
                || (case.step.ending == Ending::Success
                    && case.step.matchers.is_empty()
                    && case.then.is_empty())
        },
    },
];

/// Plays every control over the cases.
#[must_use]
pub fn run(cases: &[&Case], contract: &Contract, target: f64, seed: u64) -> Vec<Control> {
    PLAYED.iter().map(|played| play(played, cases, contract, target, seed)).collect()
}

fn play(played: &Played, cases: &[&Case], contract: &Contract, target: f64, seed: u64) -> Control {
    let scored: Vec<(&Case, Item)> = cases
        .iter()
        .map(|case| {
            (*case, score::score(case, &answered(case, played.outcome), contract, target).item)
        })
        .collect();
    let passes = |item: &Item| item.metrics.get("pass_rate").copied().flatten() == Some(1.0);
    let ok = scored.iter().all(|(case, item)| !passes(item) || (played.may_pass)(case));
    let items: Vec<&Item> = scored.iter().map(|(_, item)| item).collect();
    Control {
        name: played.name.to_owned(),
        expected: played.expected.to_owned(),
        metrics: SPECS[..1].iter().map(|spec| aggregate::measure(*spec, &items, 1, seed)).collect(),
        ok,
    }
}

fn answered(case: &Case, outcome: fn() -> Outcome) -> Observed {
    let calls = |role: Role, steps: &[crate::suite::Step]| -> Vec<Called> {
        steps
            .iter()
            .enumerate()
            .map(|(number, step)| Called {
                role,
                number,
                tool: step.tool.clone(),
                arguments: step.input.clone(),
                outcome: outcome(),
                nanos: 0,
            })
            .collect()
    };
    let mut made = calls(Role::Call, std::slice::from_ref(&case.step));
    made.extend(calls(Role::Then, &case.then));
    Observed { attempts: vec![Attempt { calls: made, stopped: None }] }
}
