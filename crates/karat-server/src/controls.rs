//! Simulated servers of known quality, on the same suite without starting anything.
//!
//! They prove that the suite can fail: a server that refuses every call, one whose every tool fails,
//! and one that answers every call with nothing.

use std::sync::Arc;

use karat_core::aggregate;
use karat_core::expect::Matcher;
use karat_core::report::{Control, Item};
use karat_io::text::first_few;
use serde_json::{Value, json};

use crate::compliance::Contract;
use crate::observation::{Attempt, Called, CaseRun, Outcome};
use crate::score::{self, PASS_RATE};
use crate::suite::{Case, Ending, Feature, Role, Step};
use crate::warnings::NAMED;

/// A server that answers every call in the same way.
struct Simulated {
    name: &'static str,
    expected: &'static str,
    outcome: fn(Feature) -> Outcome,
    /// True if a case may pass with this answer and still prove something.
    may_pass: fn(&Case) -> bool,
}

const SIMULATED: &[Simulated] = &[
    Simulated {
        name: "refuses-all",
        expected: "a server that refuses every call fails each case that expects a result",
        outcome: |_| refusal(),
        may_pass: |case| !expects_result(case),
    },
    Simulated {
        name: "fails-all",
        expected: "a server whose every tool fails does not pass any case that expects a result",
        outcome: |feature| match feature {
            Feature::Tool => Outcome::Result { result: json!({"content": [], "isError": true}) },
            _ => refusal(),
        },
        may_pass: |case| !expects_result(case),
    },
    Simulated {
        name: "answers-nothing",
        expected: "a server that answers every call with nothing fails each case that expects something in the answer, and each that expects an error",
        outcome: |feature| Outcome::Result { result: nothing(feature) },
        may_pass: |case| accepts_nothing(&case.step) && case.then.iter().all(accepts_nothing),
    },
];

fn refusal() -> Outcome {
    Outcome::ProtocolError { code: -32603, message: String::new(), data: None }
}

/// An answer with nothing in it.
pub(crate) fn nothing(feature: Feature) -> Value {
    match feature {
        Feature::Tool => json!({"content": []}),
        Feature::Resource => json!({"contents": []}),
        Feature::Prompt => json!({"messages": []}),
        Feature::Method => json!({}),
    }
}

fn expects_result(case: &Case) -> bool {
    matches!(case.step.ending, Ending::Success | Ending::Answered)
}

/// Returns whether an empty answer can be right: any answer is, or an empty one is expected, or
/// something must be missing.
fn accepts_nothing(step: &Step) -> bool {
    matches!(step.ending, Ending::Success | Ending::Answered | Ending::Denied | Ending::Whatever)
        && step.matchers.iter().all(Matcher::can_hold_of_nothing)
}

/// Runs every control over the cases.
pub(crate) fn run(
    cases: &[Arc<Case>],
    contract: &Contract,
    target: f64,
    seed: u64,
) -> Vec<Control> {
    SIMULATED.iter().map(|server| simulate(server, cases, contract, target, seed)).collect()
}

fn simulate(
    server: &Simulated,
    cases: &[Arc<Case>],
    contract: &Contract,
    target: f64,
    seed: u64,
) -> Control {
    let answered = |case: &Case| {
        let run = answer_all(case, server.outcome);
        score::score(case, &run, contract, target, &std::convert::identity).item
    };
    let items: Vec<Item> = cases.iter().map(|case| answered(case)).collect();
    let passes = |item: &Item| item.metrics.get(&PASS_RATE).copied().flatten() == Some(1.0);
    let passed: Vec<&str> = cases
        .iter()
        .zip(&items)
        .filter(|(case, item)| passes(item) && !(server.may_pass)(case))
        .map(|(case, _)| case.id.as_str())
        .collect();
    let cases = match passed.is_empty() {
        true => String::new(),
        false => format!("; it passes {}", first_few(&passed, NAMED)),
    };
    Control {
        name: server.name.to_owned(),
        expected: format!("{}{cases}", server.expected),
        metrics: vec![aggregate::measure(&PASS_RATE, &items.iter().collect::<Vec<_>>(), 1, seed)],
        ok: passed.is_empty(),
    }
}

fn answer_all(case: &Case, outcome: fn(Feature) -> Outcome) -> CaseRun {
    let steps = case.judged_steps().filter(|(role, _, _)| *role != Role::Setup);
    let calls = steps.map(|(role, number, step)| Called {
        role,
        number,
        feature: step.feature,
        tool: step.tool.clone(),
        arguments: step.input.clone(),
        outcome: outcome(step.feature),
        nanos: 0,
        notifications: Vec::new(),
        headers: None,
        task: None,
        violation: None,
    });
    CaseRun { attempts: vec![Attempt { calls: calls.collect(), stopped: None }], asked: None }
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
        run(&suite.cases, &contract, 0.95, 0).pop().unwrap()
    }

    #[test]
    fn a_case_that_an_empty_answer_may_satisfy_does_not_fail_the_control() {
        for case in [
            "{tool: t}",
            "{tool: t, expect: {lacks: secret}}",
            "{tool: t, expect: {not: {contains: secret}}}",
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
    fn an_empty_answer_fails_a_case_that_expects_something() {
        for case in ["{tool: t, expect: {contains: x}}", "{tool: t, error: any}"] {
            let control = answers_nothing(case);
            assert!(control.ok, "{case}: {control:?}");
            assert_eq!(control.metrics[0].value, Some(0.0), "{case}");
        }
    }
}
