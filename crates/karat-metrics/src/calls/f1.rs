//! `calls.f1`: the calls as multisets.
//!
//! Precision and recall over whole calls, in any order, each call counting as often as it was made.
//! Calls are compared by JSON equality; outputs are ignored, and arguments that were not recorded
//! count as none.

use super::{Call, Equality, classes};
use crate::metric::{Better, Metric, Rank, Unit};

/// The metrics of this file.
pub(super) const METRICS: &[Metric] = &[Metric {
    id: "calls.f1",
    summary: "F1 over the multisets of calls",
    formula: "2 matched / (expected calls + called calls), matched being the size of the multisets' intersection. Both lists empty: 1",
    better: Better::Higher,
    unit: Unit::Share,
    rank: Some(Rank::new(110)),
    notes: "Each call counts as often as it was made; calls are equal as in `calls.exact`, all or nothing. Two empty lists are equal, and F1 is 1 for equal multisets: an agent that rightly calls nothing must neither score 0 (as in `ragas.tool_call_f1`) nor drop out of the mean. With acceptable values the best assignment of calls to expectations counts; optional calls that were made are left out on both sides.",
    ..Metric::DEFAULT
}];

/// Returns the F1 of two multisets of calls (`calls.f1`): 1 exactly if both lists have the same calls
/// equally often.
///
/// ```
/// use karat_metrics::calls::f1::f1;
/// use karat_metrics::calls::{Call, Object};
///
/// let [a, b] = ["a", "b"].map(|name| Call::new(name, Object::new()));
/// assert_eq!(f1(&[b.clone(), a.clone()], &[a.clone(), b.clone()]), 1.0);
/// assert_eq!(f1(&[a.clone(), a.clone()], &[a, b]), 0.5);
/// ```
#[must_use]
pub fn f1(called: &[Call<'_>], expected: &[Call<'_>]) -> f64 {
    let few = called.len() * expected.len() <= classes::FEW_PAIRS;
    let by_pairs = if few { matched_by_pairs(called, expected) } else { None };
    let matched = by_pairs.unwrap_or_else(|| matched_by_class(called, expected));
    from_counts(matched, expected.len(), called.len())
}

/// F1 from the number of matched, expected and called calls.
pub(super) fn from_counts(matched: usize, expected: usize, called: usize) -> f64 {
    if expected + called == 0 {
        return 1.0;
    }
    2.0 * matched as f64 / (expected + called) as f64
}

/// The size of the intersection, found pair by pair; `None` if there are too many expected calls.
fn matched_by_pairs(called: &[Call<'_>], expected: &[Call<'_>]) -> Option<usize> {
    if expected.len() > 64 {
        return None;
    }
    // Taking the first equal call is as good as any other: equality is transitive.
    let mut taken = 0_u64;
    for call in called {
        let free = |position: &usize| taken & (1 << position) == 0;
        let equal = |position: &usize| Equality::Json.calls(call, &expected[*position]);
        if let Some(position) = (0..expected.len()).filter(free).find(equal) {
            taken |= 1 << position;
        }
    }
    Some(taken.count_ones() as usize)
}

fn matched_by_class(called: &[Call<'_>], expected: &[Call<'_>]) -> usize {
    let (called, expected, count) = classes::of(called, expected, Equality::Json);
    let mut counts = vec![(0, 0); count];
    called.iter().for_each(|&class| counts[class].0 += 1);
    expected.iter().for_each(|&class| counts[class].1 += 1);
    counts.into_iter().map(|(called, expected): (usize, usize)| called.min(expected)).sum()
}

#[cfg(test)]
mod tests {
    use super::super::json;
    use super::*;

    fn calls(arguments: &[&'static str]) -> Vec<Call<'static>> {
        let call = |text| Call::new("f", json::Reader::new(text).read_object().unwrap());
        arguments.iter().map(|text| call(*text)).collect()
    }

    #[test]
    fn repeated_calls_count_as_often_as_they_were_made() {
        let once = calls(&[r#"{"x":1}"#]);
        let twice = calls(&[r#"{"x":1}"#, r#"{"x":1.0}"#]);
        assert_eq!(f1(&twice, &once), 2.0 / 3.0);
        assert_eq!(f1(&once, &twice), 2.0 / 3.0);
        assert_eq!(f1(&twice, &twice), 1.0);
    }

    #[test]
    fn no_calls_are_right_where_none_were_expected() {
        let once = calls(&["{}"]);
        assert_eq!(f1(&[], &[]), 1.0);
        assert_eq!(f1(&once, &[]), 0.0);
        assert_eq!(f1(&[], &once), 0.0);
    }

    #[test]
    fn counting_by_pairs_and_by_classes_agree() {
        let called = calls(&[r#"{"x":1}"#, r#"{"x":true}"#, r#"{"x":[1]}"#, r#"{"x":1.0}"#]);
        let expected = calls(&[r#"{"x":[1.0]}"#, r#"{"x":1}"#, r#"{"x":1}"#, r#"{"x":1}"#]);
        assert_eq!(matched_by_pairs(&called, &expected), Some(3));
        assert_eq!(matched_by_class(&called, &expected), 3);
    }
}
