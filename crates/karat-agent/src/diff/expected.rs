//! What was expected beside what was called: the same alignment as between two runs, with calls that
//! leave a choice.
//!
//! For reading, not for scoring: the scores come from the metrics, which look for the best reading of
//! an expectation. Calls that may come in any order are put into the order in which they were made.

use std::collections::BTreeMap;

use karat_metrics::calls::expected::{ExpectedCall as Wanted, ExtraArguments};
use karat_metrics::calls::{Call, Value};
use serde_json::json;

use super::{Common, Difference, FULL, MOST, PART, Sides, Step};
use crate::marks::clipped;
use crate::trace::expectation::{Expectation, ExpectedCall, Step as ExpectedStep};
use crate::trace::{Arguments, CallMade, Trace};

/// How many expected calls are shown.
const SHOWN: usize = 40;

/// The expected calls as they are shown, and what became of each of them and of each call.
pub(crate) fn against(
    expect: &Expectation,
    trace: &Trace,
    made: &[Call<'_>],
) -> (Vec<serde_json::Value>, Vec<Step>) {
    let made = &made[..made.len().min(MOST)];
    let fits = |wanted: &Wanted<'_>, j: usize| -> u32 {
        let unknown = trace.calls[j].arguments == Arguments::NotRecorded;
        match wanted.name == made[j].name {
            true if unknown || wanted.accepts(&made[j]) => FULL,
            true => PART,
            false => 0,
        }
    };
    let calls = in_order(expect, &|wanted| (0..made.len()).find(|j| fits(wanted, *j) == FULL));
    let calls = &calls[..calls.len().min(MOST)];
    let wanted: Vec<Wanted<'_>> = calls.iter().map(|call| expect.expected_call(call)).collect();
    let sides = Sides {
        before: calls.iter().map(|call| call.tool.shown()).collect(),
        after: trace.calls.iter().take(made.len()).map(CallMade::shown).collect(),
        worth: &|i, j| fits(&wanted[i], j),
        differences: &|i, j| differences(calls[i], &wanted[i], &made[j]),
    };
    let (steps, _) = sides.align(Common::default());
    let steps = steps.into_iter().map(|step| match step {
        Step::Missing { tool, at } if calls[at - 1].optional => Step::LeftOut { tool, at },
        other => other,
    });
    (calls.iter().take(SHOWN).map(|call| shown(call)).collect(), steps.collect())
}

/// The expected calls; those that may come in any order by where they were first made.
fn in_order<'e>(
    expect: &'e Expectation,
    place: &dyn Fn(&Wanted<'_>) -> Option<usize>,
) -> Vec<&'e ExpectedCall> {
    let mut calls = Vec::new();
    for step in expect.calls.iter().flatten() {
        match step {
            ExpectedStep::Call(call) => calls.push(call),
            ExpectedStep::AnyOrder(group) => {
                let mut group: Vec<&ExpectedCall> = group.iter().collect();
                group.sort_by_key(|call| place(&expect.expected_call(call)).unwrap_or(usize::MAX));
                calls.extend(group);
            }
        }
    }
    calls
}

/// The arguments that are not as expected.
fn differences(call: &ExpectedCall, wanted: &Wanted<'_>, made: &Call<'_>) -> Vec<Difference> {
    let words: BTreeMap<String, String> = call.words().into_iter().collect();
    let given = made.arguments();
    let mut found = Vec::new();
    for argument in &wanted.arguments {
        let value = given.get(&argument.name);
        let fits = match value {
            Some(value) => argument.accepted.accepts(value),
            None => argument.may_be_omitted,
        };
        if !fits {
            found.push(Difference {
                name: argument.name.to_string(),
                before: words.get(argument.name.as_ref()).map(|text| clipped(text)),
                after: value.map(json_text),
            });
        }
    }
    if wanted.extra_arguments == ExtraArguments::Refused {
        let known = |name: &str| wanted.arguments.iter().any(|argument| argument.name == name);
        let extra = given.iter().filter(|(name, _)| !known(name));
        found.extend(extra.map(|(name, value)| Difference {
            name: name.to_owned(),
            before: None,
            after: Some(json_text(value)),
        }));
    }
    found
}

fn json_text(value: &Value<'_>) -> String {
    clipped(&value.to_string())
}

/// An expected call with what will do for each argument, in words.
fn shown(call: &ExpectedCall) -> serde_json::Value {
    let words: BTreeMap<String, String> =
        call.words().into_iter().map(|(name, text)| (name, clipped(&text))).collect();
    let mut shown = json!({"name": call.tool.shown(), "accepts": words});
    if call.optional {
        shown["optional"] = json!(true);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::marks;
    use crate::tools::Tools;

    /// The kinds of the steps, and the differences of the changed one.
    fn steps(calls: &str, expected: &str) -> (Vec<String>, serde_json::Value) {
        let record = format!(r#"{{"id":"t","calls":{calls},"expect":{{"calls":{expected}}}}}"#);
        let marks = marks::mark(&Trace::parse(&record).unwrap(), &Tools::default(), &[]);
        let steps = marks.observed["steps"].as_array().unwrap();
        let kind = |step: &serde_json::Value| {
            format!("{} {}", step["change"].as_str().unwrap(), step["tool"].as_str().unwrap())
        };
        let changed = steps.iter().find(|step| step["change"] == "changed");
        let arguments = changed.map(|step| step["arguments"].clone()).unwrap_or_default();
        (steps.iter().map(kind).collect(), arguments)
    }

    #[test]
    fn each_kind_of_deviation_is_named() {
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
    fn arguments_that_were_not_recorded_are_no_difference() {
        let (kinds, _) = steps(r#"[{"name":"a"}]"#, r#"[{"name":"a","arguments":{"x":1}}]"#);
        assert_eq!(kinds, ["same a"]);
    }
}
