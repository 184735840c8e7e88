//! The expected calls next to those that were made.
//!
//! For reading, not for scoring: the scores come from the metrics, which look for the best reading of
//! an expectation. Calls that may come in any order are put into the order in which they were made.

use std::collections::BTreeMap;

use karat_core::observed::{Difference, ShownExpectation, Step};
use karat_metrics::calls::expected::{ExpectedCall, ExtraArguments, Presence, Step as Expected};
use karat_metrics::calls::{Call, Value};

use super::calls::as_call;
use crate::alignment::{Common, FULL, MAX_ALIGNED, PART, Sides};
use crate::shown::{MAX_CALLS, clipped};
use crate::trace::expectation::Expectation;
use crate::trace::expected_calls::{ExpectedCalls, Wanted, accepted_text};
use crate::trace::{Arguments, CallMade, Trace};

/// The expected calls as they are shown, and the place of each of them and of each call.
pub(super) fn align(
    expect: &Expectation,
    expected: &ExpectedCalls,
    trace: &Trace,
) -> (Vec<ShownExpectation>, Vec<Step>) {
    let made: Vec<Call<'_>> =
        trace.calls.iter().take(MAX_ALIGNED).map(|call| as_call(Some(expect), call)).collect();
    let fits = |wanted: &ExpectedCall<'_>, j: usize| -> u32 {
        let unknown = trace.calls[j].arguments == Arguments::NotRecorded;
        match wanted.name == made[j].name {
            true if unknown || wanted.accepts(&made[j]) => FULL,
            true => PART,
            false => 0,
        }
    };
    let first_made = |wanted: &ExpectedCall<'_>| {
        (0..made.len()).find(|j| fits(wanted, *j) == FULL).unwrap_or(usize::MAX)
    };
    let calls = in_order(expect, expected, &first_made);
    let calls = &calls[..calls.len().min(MAX_ALIGNED)];
    let sides = Sides {
        before: calls.iter().map(|(tool, _)| tool.shown()).collect(),
        after: trace.calls.iter().take(made.len()).map(CallMade::shown).collect(),
        worth: &|i, j| fits(calls[i].1, j),
        differences: &|i, j| differences(calls[i].1, &made[j]),
    };
    let (steps, _) = sides.align(Common::default());
    let optional = |at: usize| calls[at - 1].1.presence == Presence::Optional;
    let steps = steps.into_iter().map(|step| match step {
        Step::Missing { tool, at } if optional(at) => Step::LeftOut { tool, at },
        other => other,
    });
    (calls.iter().take(MAX_CALLS).map(|call| shown(*call)).collect(), steps.collect())
}

/// The expected calls; those in any order by the place at which they were first made.
fn in_order<'e>(
    expect: &'e Expectation,
    expected: &ExpectedCalls,
    first_made: &dyn Fn(&ExpectedCall<'_>) -> usize,
) -> Vec<Wanted<'e>> {
    let mut calls: Vec<Wanted<'e>> = expect.all_calls().collect();
    let mut start = 0;
    for step in &expected.steps.steps {
        let end = match step {
            Expected::Call(_) => start + 1,
            Expected::AnyOrder(group) => start + group.len(),
        };
        calls[start..end].sort_by_cached_key(|(_, wanted)| first_made(wanted));
        start = end;
    }
    calls
}

/// The arguments that are not as expected.
fn differences(wanted: &ExpectedCall<'_>, made: &Call<'_>) -> Vec<Difference> {
    let accepted: BTreeMap<String, String> = accepted_text(wanted).into_iter().collect();
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
                before: accepted.get(argument.name.as_ref()).map(|text| clipped(text)),
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

fn shown((tool, wanted): Wanted<'_>) -> ShownExpectation {
    let accepts = accepted_text(wanted).into_iter();
    ShownExpectation {
        name: tool.shown(),
        accepts: accepts.map(|(name, text)| (name, clipped(&text))).collect(),
        optional: wanted.presence == Presence::Optional,
    }
}
