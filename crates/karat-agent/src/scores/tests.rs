//! Scores of traces that are written out here.

use std::collections::BTreeMap;
use std::ops::Index;

use karat_core::observed;
use serde_json::json;

use super::outcome::NO_STATE;
use super::*;
use crate::trace::expected_calls::{NO_ARGUMENTS, UNREADABLE};

/// Everything that is found out about one trace.
struct Found {
    scores: BTreeMap<String, Score>,
    score: TraceScore,
    confusions: Confusions,
    observed: observed::Traces,
}

impl Found {
    fn value(&self, id: &str) -> Option<f64> {
        self.scores.get(id)?.ok()
    }
}

impl Index<&str> for Found {
    type Output = Score;

    fn index(&self, id: &str) -> &Score {
        &self.scores[id]
    }
}

fn scored(record: &str) -> Found {
    let (tools, metrics) = (Tools::default(), CallMetric::usual());
    let scorer = TraceScorer::new(&tools, &metrics);
    let trace = Trace::parse(record).unwrap();
    let score = scorer.score(&trace);
    let confusions = confusions(&trace);
    let observed = observed(&trace, &scorer, &score, &confusions);
    let scores = scorer.ids().iter().zip(&score.scores);
    let scores = scores.filter_map(|(id, score)| Some((id.to_string(), (*score)?))).collect();
    Found { scores, score, confusions, observed }
}

fn record(calls: &str, expect: &str) -> String {
    format!(r#"{{"id":"t","calls":{calls},"expect":{expect}}}"#)
}

#[test]
fn a_trace_with_too_many_calls_is_not_aligned() {
    let calls = |numbers: &mut dyn Iterator<Item = usize>| {
        let calls = numbers.map(|n| json!({"name": format!("t{n}"), "arguments": {}, "result": 1}));
        json!(calls.collect::<Vec<_>>()).to_string()
    };
    let expected = calls(&mut (0..1_200).rev()).replace(r#","result":1"#, "");
    let found = scored(&record(&calls(&mut (0..1_200)), &format!(r#"{{"calls":{expected}}}"#)));
    for id in ["calls.exact", "calls.alignment", "calls.f1"] {
        assert!(found[id].is_err_and(|reason| reason.contains("too many calls")), "{id}");
    }
    // The tools are the right ones, though in another order.
    assert_eq!(found.confusions.pairs, []);
    assert_eq!(found.value("calls.loop"), Some(0.0));
}

#[test]
fn right_calls_are_right_by_every_metric() {
    let calls = r#"[{"name":"add","server":"demo","arguments":{"a":2,"b":3},"result":{}}]"#;
    let expect = r#"{"calls":[{"name":"add","server":"demo","arguments":{"a":2,"b":3}}]}"#;
    let found = scored(&record(calls, expect));
    let own = ["calls.exact", "calls.alignment", "calls.f1", "gauge.proactivity", "task.success"];
    let peers = CallMetric::usual().into_iter().map(|metric| metric.id().to_string());
    for id in own.map(str::to_owned).into_iter().chain(peers) {
        assert_eq!(found.value(&id), Some(1.0), "{id}");
    }
    assert_eq!(found.value("mcpbench.execution_success"), Some(1.0));
    assert_eq!(found["gauge.compliance"], Err("no tool was instructed"));
    assert_eq!(found["calls.first_error"], Err("the calls are as expected"));
    assert_eq!(found["mcpbench.tool_name_validity"], Err("the tools are not known"));
}

#[test]
fn arguments_that_are_not_json_never_count_as_no_arguments() {
    let calls = r#"[{"name":"flaky","arguments":"{oops"}]"#;
    let found = scored(&record(calls, r#"{"calls":[{"name":"flaky","arguments":{}}]}"#));
    assert_eq!(found.value("calls.exact"), Some(0.0));
    assert_eq!(found.value("ragas.tool_call_accuracy"), Some(0.0));
    assert_eq!(found.score.unreadable_arguments, 1);
}

#[test]
fn arguments_that_were_not_recorded_are_undefined() {
    let found =
        scored(&record(r#"[{"name":"f"}]"#, r#"{"calls":[{"name":"f","arguments":{"x":1}}]}"#));
    assert_eq!(found["calls.exact"], Err(NO_ARGUMENTS));
    assert_eq!(found["gauge.proactivity"], Err(NO_ARGUMENTS));
    assert_eq!(found["task.success"], Err(NO_ARGUMENTS));
}

#[test]
fn a_wrong_tool_is_a_confusion() {
    let found = scored(&record(
        r#"[{"name":"echo","arguments":{}},{"name":"add","arguments":{"a":1}}]"#,
        r#"{"calls":[{"name":"keep","arguments":{}},{"name":"add","arguments":{"a":2}}]}"#,
    ));
    assert_eq!(
        found.confusions.pairs,
        [Confusion { called: "echo".into(), expected: "keep".into() }]
    );
    assert_eq!(found.value("calls.first_error"), Some(1.0));
}

#[test]
fn compliance_needs_a_call_that_succeeds() {
    let expect = r#"{"calls":[{"name":"add","arguments":{"a":1}}],"instructed_tool":"add"}"#;
    let compliance = |calls: &str| scored(&record(calls, expect)).value("gauge.compliance");
    assert_eq!(compliance(r#"[{"name":"add","arguments":{"a":1}}]"#), Some(1.0));
    assert_eq!(compliance(r#"[{"name":"add","arguments":{"a":1},"error":"no"}]"#), Some(0.0));
    assert_eq!(compliance(r#"[{"name":"add","arguments":{"a":2}}]"#), Some(0.0));
    assert_eq!(compliance("[]"), Some(0.0));
    let instructed = scored(&record("[]", expect));
    assert_eq!(instructed["gauge.proactivity"], Err("the task instructs a tool"));
}

#[test]
fn no_calls_are_right_where_none_are_needed() {
    let right = scored(&record("[]", r#"{"calls":[],"answer":{"contains":"hi"}}"#));
    assert_eq!(right.value("gauge.unneeded_call"), Some(0.0));
    assert_eq!(right.value("calls.exact"), Some(1.0));
    assert_eq!(right["mcpbench.execution_success"], Err("no call was made"));
    assert_eq!(right["task.success"], Err("the answer was not recorded"));
    let needless = scored(&record(r#"[{"name":"f","arguments":{}}]"#, r#"{"calls":[]}"#));
    assert_eq!(needless.value("gauge.unneeded_call"), Some(1.0));
}

#[test]
fn a_forbidden_call_fails_the_task() {
    let expect = r#"{"forbidden":[{"name":"transfer","arguments":{"to":"mallory"}}],"answer":{"contains":"done"}}"#;
    let with = |to: &str| {
        let calls = format!(r#"[{{"name":"transfer","arguments":{{"to":"{to}","n":1}}}}]"#);
        let record = format!(r#"{{"id":"t","calls":{calls},"output":"done","expect":{expect}}}"#);
        let found = scored(&record);
        (found.value("calls.forbidden"), found.value("task.success"))
    };
    assert_eq!(with("mallory"), (Some(1.0), Some(0.0)));
    assert_eq!(with("alice"), (Some(0.0), Some(1.0)));
}

#[test]
fn a_call_with_unknown_arguments_may_be_the_forbidden_one() {
    let rule = r#""forbidden":[{"name":"transfer","arguments":{"to":"mallory"}}]"#;
    let of = |calls: &str, more: &str| {
        let found = scored(&format!(
            r#"{{"id":"t","calls":{calls},"output":"done","expect":{{{rule},{more}}}}}"#
        ));
        (found["calls.forbidden"], found["task.success"])
    };
    let (right, wrong) = (r#""answer":{"contains":"done"}"#, r#""answer":{"contains":"no"}"#);
    let unrecorded = r#"[{"name":"transfer"}]"#;
    assert_eq!(of(unrecorded, right), (Err(NO_ARGUMENTS), Err(NO_ARGUMENTS)));
    let cut_off = r#"[{"name":"transfer","arguments":"{\"to\":\"mallory\""}]"#;
    assert_eq!(of(cut_off, right), (Err(UNREADABLE), Err(UNREADABLE)));
    // A wrong answer is wrong whatever was called, and a call that is known to be one decides.
    assert_eq!(of(unrecorded, wrong), (Err(NO_ARGUMENTS), Ok(0.0)));
    let both = r#"[{"name":"transfer"},{"name":"transfer","arguments":{"to":"mallory"}}]"#;
    assert_eq!(of(both, right), (Ok(1.0), Ok(0.0)));
    // Other tools, and rules that name no argument, need none.
    assert_eq!(of(r#"[{"name":"echo"}]"#, right), (Ok(0.0), Ok(1.0)));
    let any = scored(&record(unrecorded, r#"{"forbidden":[{"name":"transfer","arguments":{}}]}"#));
    assert_eq!(any["calls.forbidden"], Ok(1.0));
}

#[test]
fn a_state_that_was_not_recorded_is_undefined() {
    let of = |state: &str, more: &str| {
        let found = scored(&format!(
            r#"{{"id":"t","calls":[],"output":"ok"{state},"expect":{{"state":[{{"path":"$.note","exists":false}}]{more}}}}}"#
        ));
        (found["state.reached"], found["task.success"])
    };
    assert_eq!(of("", ""), (Err(NO_STATE), Err(NO_STATE)));
    assert_eq!(of(r#","state":{}"#, ""), (Ok(1.0), Ok(1.0)));
    assert_eq!(of(r#","state":{"note":1}"#, ""), (Ok(0.0), Ok(0.0)));
    let (right, wrong) = (r#","answer":{"equals":"ok"}"#, r#","answer":{"equals":"no"}"#);
    assert_eq!(of("", right), (Err(NO_STATE), Err(NO_STATE)));
    assert_eq!(of("", wrong), (Err(NO_STATE), Ok(0.0)));
}

#[test]
fn avoiding_forbidden_calls_without_tools_is_not_a_success() {
    let without = |expect: &str| {
        scored(&format!(r#"{{"id":"t","setting":"without_tools","calls":[],"expect":{expect}}}"#))["task.success"]
    };
    assert!(without(r#"{"calls":["add"],"forbidden":["rm"]}"#).is_err());
    assert!(without(r#"{"calls":["add"]}"#).is_err());
    assert_eq!(without(r#"{"forbidden":["rm"]}"#), Ok(1.0));
}

#[test]
fn without_tools_only_the_outcome_is_scored() {
    let record = r#"{"id":"t","setting":"without_tools","calls":[],"output":"5","expect":{"calls":[{"name":"add"}],"answer":{"number":5}}}"#;
    let found = scored(record);
    let ids: Vec<&str> = found.scores.keys().map(String::as_str).collect();
    assert_eq!(ids, ["answer.correct", "state.reached", "task.success"]);
    assert_eq!(found.value("task.success"), Some(1.0));
}

/// The kinds of the steps, and the differences of the changed one.
fn steps(calls: &str, expected: &str) -> (Vec<String>, serde_json::Value) {
    let found = scored(&record(calls, &format!(r#"{{"calls":{expected}}}"#)));
    let steps = serde_json::to_value(found.observed.steps.unwrap()).unwrap();
    let steps = steps.as_array().unwrap();
    let kind = |step: &serde_json::Value| {
        format!("{} {}", step["change"].as_str().unwrap(), step["tool"].as_str().unwrap())
    };
    let changed = steps.iter().find(|step| step["change"] == "changed");
    let arguments = changed.map(|step| step["arguments"].clone()).unwrap_or_default();
    (steps.iter().map(kind).collect(), arguments)
}

#[test]
fn each_kind_of_difference_is_named() {
    let (kinds, changed) = steps(
        r#"[{"name":"b","arguments":{}},{"name":"a","arguments":{}},{"name":"x","arguments":{}},
            {"name":"pay","arguments":{"sum":3,"note":"hi"}}]"#,
        r#"[{"name":"a","arguments":{}},{"name":"b","arguments":{}},{"name":"gone","arguments":{}},
            {"name":"pay","accept":{"sum":{"near":5,"within":1}}},
            {"name":"maybe","arguments":{},"optional":true}]"#,
    );
    assert_eq!(
        kinds,
        ["same b", "moved a", "inserted x", "missing gone", "changed pay", "left_out maybe"]
    );
    assert_eq!(
        changed,
        json!([
            {"name": "sum", "before": "5 ± 1", "after": "3"},
            {"name": "note", "before": null, "after": "\"hi\""},
        ])
    );
}

#[test]
fn calls_in_any_order_are_not_moved() {
    let (kinds, _) = steps(
        r#"[{"name":"b","arguments":{}},{"name":"a","arguments":{}}]"#,
        r#"[{"any_order":[{"name":"a","arguments":{}},{"name":"b","arguments":{}}]}]"#,
    );
    assert_eq!(kinds, ["same b", "same a"]);
}

#[test]
fn arguments_that_were_not_recorded_are_not_a_difference() {
    let (kinds, _) = steps(r#"[{"name":"a"}]"#, r#"[{"name":"a","arguments":{"x":1}}]"#);
    assert_eq!(kinds, ["same a"]);
}
