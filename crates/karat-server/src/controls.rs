//! Servers of known quality, played on the same suite without starting anything.
//!
//! They prove that the suite can fail: a server that refuses every call, one whose every tool fails,
//! and one that answers every call with nothing.

use karat_core::aggregate;
use karat_core::report::{Control, Item};
use serde_json::json;

use crate::compliance::Contract;
use crate::observation::{Attempt, Called, Observed, Outcome, Role};
use crate::score::{self, PASS_RATE};
use crate::suite::matcher::Prepared;
use crate::suite::{Case, Ending, Step};

/// How many cases of a control that fails are named.
const NAMED: usize = 5;

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
        may_pass: |case| nothing_will_do(&case.step) && case.then.iter().all(nothing_will_do),
    },
];

/// Whether an answer with nothing in it is all that a call asks for: it need only end, or must lack
/// something, or nothing is what must come back.
fn nothing_will_do(step: &Step) -> bool {
    matches!(step.ending, Ending::Success | Ending::Whatever)
        && step.matchers.iter().all(Prepared::can_hold_of_nothing)
}

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
    let let_through: Vec<&str> = scored
        .iter()
        .filter(|(case, item)| passes(item) && !(played.may_pass)(case))
        .map(|(case, _)| case.id.as_str())
        .collect();
    let items: Vec<&Item> = scored.iter().map(|(_, item)| item).collect();
    Control {
        name: played.name.to_owned(),
        expected: format!("{}{}", played.expected, passed_by(&let_through)),
        metrics: vec![aggregate::measure(PASS_RATE, &items, 1, seed)],
        ok: let_through.is_empty(),
    }
}

/// The cases that let a control through although they must not.
fn passed_by(ids: &[&str]) -> String {
    if ids.is_empty() {
        return String::new();
    }
    let named = ids[..ids.len().min(NAMED)].join(", ");
    match ids.len().saturating_sub(NAMED) {
        0 => format!("; it passes {named}"),
        more => format!("; it passes {named} and {more} more"),
    }
}

fn answered(case: &Case, outcome: fn() -> Outcome) -> Observed {
    let calls = |role: Role, steps: &[Step]| -> Vec<Called> {
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use karat_mcp::{Definition, Revision};

    use super::*;
    use crate::suite::Suite;

    fn answers_nothing(cases: &str) -> Control {
        let text = format!("cases:\n  - {cases}\n");
        let suite = Suite::parse(Path::new("s.yaml"), text.as_bytes()).unwrap();
        let tool =
            Definition::new(json!({"name": "t", "inputSchema": {"type": "object"}})).unwrap();
        let contract = Contract::new(&[tool], Revision::default());
        let cases: Vec<&Case> = suite.cases.iter().map(AsRef::as_ref).collect();
        run(&cases, &contract, 0.95, 0).pop().unwrap()
    }

    #[test]
    fn a_case_that_nothing_satisfies_rightly_does_not_fail_the_control() {
        for case in [
            "{tool: t}",
            "{tool: t, expect: {lacks: secret}}",
            "{tool: t, expect: {json: $.password, exists: false}}",
            "{tool: t, then: [{tool: t}]}",
            "{tool: t, then: [{tool: t, expect: {lacks: x}}]}",
            "{tool: t, expect: {equals: ''}}",
            "{tool: t, expect: {result: $.content, count: 0}}",
            "{tool: t, expect: {matches: ^$}}",
            "{tool: t, error: allowed}",
        ] {
            let control = answers_nothing(case);
            assert!(control.ok, "{case}: {control:?}");
            assert_eq!(control.metrics[0].value, Some(1.0), "{case}");
        }
    }

    #[test]
    fn a_case_that_proves_nothing_fails_the_control_and_is_named() {
        for case in [
            "{id: weak, tool: t, expect: {result: $.content, exists: true}}",
            "{id: weak, tool: t, expect: {schema: {type: string}}}",
            "{id: weak, tool: t, expect: {result: $, contains: content}}",
            "{id: weak, tool: t, then: [{tool: t, expect: {schema: {type: string}}}]}",
        ] {
            let control = answers_nothing(case);
            assert!(!control.ok, "{case}");
            assert!(control.expected.ends_with("; it passes weak"), "{case}: {control:?}");
        }
    }

    #[test]
    fn a_case_that_says_what_must_come_back_is_failed_by_nothing() {
        for case in ["{tool: t, expect: {contains: x}}", "{tool: t, error: any}"] {
            let control = answers_nothing(case);
            assert!(control.ok, "{case}: {control:?}");
            assert_eq!(control.metrics[0].value, Some(0.0), "{case}");
        }
    }
}
