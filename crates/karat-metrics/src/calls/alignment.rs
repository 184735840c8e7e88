//! `calls.exact` and `calls.alignment`: the calls in order, all or nothing and graded.
//!
//! Both compare calls by JSON equality, ignore outputs, and treat arguments that were not recorded as
//! none. The alignment pairs calls without crossing, so that one inserted or forgotten call costs
//! that call and nothing else, where a comparison by position would lose all calls after it.

use super::{Call, Equality};
use crate::metric::{Better, Metric, MetricKind, Unit};

/// The metrics of this file.
pub(super) const METRICS: &[Metric] = &[
    Metric {
        id: "calls.exact",
        summary: "The share of traces with exactly the right calls: tools, arguments and order",
        formula: "1 if both lists have the same length and the calls at each position have the same name and equal arguments, else 0. Both lists empty: 1",
        better: Better::Higher,
        unit: Unit::Share,
        kind: MetricKind::Rate,
        notes: "Arguments are equal as in JSON Schema: `1` is `1.0`, `true` is not `1`, the order of keys does not matter, that of lists does. Missing and extra arguments both count. Expectations may name several acceptable values, calls in any order and optional calls; the score is then 1 if some reading of them fits all calls.",
        ..Metric::DEFAULT
    },
    Metric {
        id: "calls.alignment",
        summary: "The share of the calls that agree in order, under the best alignment",
        formula: "(largest sum of w over pairings of called with expected calls that keep both orders) / max(expected calls, called calls), with w = (1 + equal arguments) / (1 + arguments on either side) for calls of the same tool and 0 otherwise. Both lists empty: 1",
        better: Better::Higher,
        unit: Unit::Share,
        notes: "Symmetric, from 0 to 1, and 1 exactly if `calls.exact` is 1. One call inserted into or forgotten from n right ones leaves n / (n + 1) or (n - 1) / n: it costs one call of the longer list. (The other symmetric choice, 2 matched / (expected + called), would charge an inserted call half a call.) In w the tool's name counts as one more argument, so the right tool with wrong arguments is worth something and an extra argument costs. Optional calls that were made are left out on both sides.",
        ..Metric::DEFAULT
    },
];

/// Returns `true` if the calls are the expected ones in the expected order (`calls.exact`).
///
/// ```
/// use karat_metrics::calls::alignment::exact;
/// use karat_metrics::calls::{Call, Object};
///
/// let [a, b] = ["a", "b"].map(|name| Call::new(name, Object::new()));
/// assert!(exact(&[a.clone(), b.clone()], &[a.clone(), b.clone()]));
/// assert!(!exact(&[b.clone(), a.clone()], &[a, b]));
/// ```
#[must_use]
pub fn exact(called: &[Call<'_>], expected: &[Call<'_>]) -> bool {
    called.len() == expected.len()
        && called.iter().zip(expected).all(|(a, b)| Equality::Json.calls(a, b))
}

/// Returns the share of both lists that agrees under the best alignment (`calls.alignment`).
///
/// ```
/// use karat_metrics::calls::alignment::alignment;
/// use karat_metrics::calls::{Call, Object};
///
/// let [a, b, c] = ["a", "b", "c"].map(|name| Call::new(name, Object::new()));
/// let expected = [a.clone(), b.clone()];
/// assert_eq!(alignment(&[a, c, b], &expected), 2.0 / 3.0);
/// ```
#[must_use]
pub fn alignment(called: &[Call<'_>], expected: &[Call<'_>]) -> f64 {
    let longer = called.len().max(expected.len());
    if longer == 0 {
        return 1.0;
    }
    // Equal calls at the ends can be paired without loss: no pair is worth more than they are.
    let same = |(a, b): &(&Call<'_>, &Call<'_>)| Equality::Json.calls(a, b);
    let front = called.iter().zip(expected).take_while(same).count();
    let (called, expected) = (&called[front..], &expected[front..]);
    let back = called.iter().rev().zip(expected.iter().rev()).take_while(same).count();
    let called = &called[..called.len() - back];
    let expected = &expected[..expected.len() - back];
    ((front + back) as f64 + best_sum(called, expected)) / longer as f64
}

/// The largest sum of [`agreement`] over pairings that keep both orders.
fn best_sum(called: &[Call<'_>], expected: &[Call<'_>]) -> f64 {
    if called.is_empty() || expected.is_empty() {
        return 0.0;
    }
    // best[j]: over the expected calls so far and the first j called ones.
    let mut best = vec![0.0_f64; called.len() + 1];
    for expected in expected {
        let mut diagonal = 0.0;
        for (j, called) in (1..).zip(called) {
            let paired = diagonal + agreement(called, expected);
            diagonal = best[j];
            best[j] = paired.max(diagonal).max(best[j - 1]);
        }
    }
    best[called.len()]
}

/// Returns the agreement of two calls: 0 for different tools, 1 for equal calls.
///
/// ```
/// use karat_metrics::calls::alignment::agreement;
/// use karat_metrics::calls::{Call, Object, Value};
///
/// let call = |x: i64, y: i64| {
///     let arguments: Object = [("x", Value::from(x)), ("y", Value::from(y))].into_iter().collect();
///     Call::new("move", arguments)
/// };
/// // The name and one of two arguments agree.
/// assert_eq!(agreement(&call(1, 2), &call(1, 3)), 2.0 / 3.0);
/// ```
#[must_use]
pub fn agreement(a: &Call<'_>, b: &Call<'_>) -> f64 {
    if a.name != b.name {
        return 0.0;
    }
    let (a, b) = (a.arguments(), b.arguments());
    let mut in_b = b.lookup();
    let (mut common, mut equal) = (0, 0);
    for (position, (key, value)) in a.iter().enumerate() {
        if let Some(other) = in_b.find(key, position) {
            common += 1;
            equal += usize::from(Equality::Json.values(value, other));
        }
    }
    let union = a.len() + b.len() - common;
    (1 + equal) as f64 / (1 + union) as f64
}

#[cfg(test)]
mod tests {
    use super::super::json;
    use super::*;

    fn call<'a>(name: &'a str, arguments: &'a str) -> Call<'a> {
        Call::new(name, json::Reader::new(arguments).read_object().unwrap())
    }

    #[test]
    fn the_name_counts_as_one_more_argument() {
        let expected = call("f", r#"{"a":1,"b":2}"#);
        let with = |arguments| agreement(&call("f", arguments), &expected);
        assert_eq!(with(r#"{"b":2.0,"a":1}"#), 1.0);
        assert_eq!(with(r#"{"a":1,"b":3}"#), 2.0 / 3.0);
        assert_eq!(with(r#"{"a":1}"#), 2.0 / 3.0);
        assert_eq!(with(r#"{"a":1,"b":2,"c":3}"#), 3.0 / 4.0);
        assert_eq!(with("{}"), 1.0 / 3.0);
        assert_eq!(agreement(&call("g", r#"{"a":1,"b":2}"#), &expected), 0.0);
    }

    #[test]
    fn an_inserted_call_costs_one_call() {
        let [a, b, c] = ["a", "b", "c"].map(|name| call(name, "{}"));
        let expected = [a.clone(), b.clone()];
        assert_eq!(alignment(&[a.clone(), c.clone(), b.clone()], &expected), 2.0 / 3.0);
        assert_eq!(alignment(&[c, a.clone(), b.clone()], &expected), 2.0 / 3.0);
        assert_eq!(alignment(std::slice::from_ref(&b), &expected), 1.0 / 2.0);
        assert_eq!(alignment(&[b, a], &expected), 1.0 / 2.0);
        assert_eq!(alignment(&[], &expected), 0.0);
        assert_eq!(alignment(&[], &[]), 1.0);
    }

    #[test]
    fn the_best_pairing_is_used_not_the_first() {
        let expected = [call("f", r#"{"x":2}"#), call("g", "{}")];
        let called = [call("f", r#"{"x":1}"#), call("f", r#"{"x":2}"#), call("g", "{}")];
        assert_eq!(alignment(&called, &expected), 2.0 / 3.0);
    }

    #[test]
    fn exact_requires_every_call_and_argument() {
        let expected = [call("f", r#"{"x":1}"#)];
        assert!(exact(&[call("f", r#"{"x":1.0}"#)], &expected));
        assert!(!exact(&[call("f", r#"{"x":true}"#)], &expected));
        assert!(!exact(&[call("f", r#"{"x":1,"y":2}"#)], &expected));
        assert!(!exact(&[], &expected));
        assert!(exact(&[], &[]));
    }
}
