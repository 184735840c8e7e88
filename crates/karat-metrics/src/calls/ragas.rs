//! The tool-call metrics of RAGAS 0.4.3 (`ToolCallAccuracy`, `ToolCallF1`), value for value.
//!
//! The classes in `ragas.metrics` and those in `ragas.metrics.collections` agree, so one function
//! covers both. Nothing is corrected here: both metrics have surprises, which the notes describe.
//! Metrics that we find better defined are `calls.exact`, `calls.alignment` and `calls.f1`.

use std::cmp::Ordering;

use super::{Call, Equality, Object, Value, classes, python};
use crate::metric::{Better, Metric, Unit};

/// The metrics of this file.
pub(super) const METRICS: &[Metric] = &[
    Metric {
        id: "ragas.tool_call_accuracy",
        summary: "Share of the reference arguments that were given, if the tools and their order are right (RAGAS, strict order)",
        formula: "0 if the sequences of tool names differ; otherwise the mean over the calls of (reference arguments with the same text) / (reference arguments). A call whose reference has no arguments scores 1 if it has none either, else 0. Both lists empty: 1; one empty: 0",
        better: Better::Higher,
        unit: Unit::Share,
        notes: "As `ToolCallAccuracy()` of RAGAS 0.4.3, `strict_order=True`. Arguments are compared by Python's `str()`: `1` equals `\"1\"`, `null` equals `\"None\"`, but `1` differs from `1.0`, and nested objects in another key order differ. Extra arguments are ignored. A missing or an extra call gives 0 for the whole sample, with the warning `length_mismatch`.",
        ..Metric::DEFAULT
    },
    Metric {
        id: "ragas.tool_call_accuracy_unordered",
        summary: "Share of the reference arguments that were given, if the tools are right in any order (RAGAS)",
        formula: "ragas.tool_call_accuracy after sorting both lists by name, then by each argument's name and text, arguments in order of their names",
        better: Better::Higher,
        unit: Unit::Share,
        notes: "As `ToolCallAccuracy(strict_order=False)` of RAGAS 0.4.3. Calls are paired by their place after sorting, not by the best fit, so it can be **lower** than the strict score.",
        ..Metric::DEFAULT
    },
    Metric {
        id: "ragas.tool_call_accuracy_levenshtein",
        summary: "ragas.tool_call_accuracy with graded similarity of argument texts",
        formula: "ragas.tool_call_accuracy where each reference argument that was given counts 1 - (Levenshtein distance of the texts) / (length of the longer), in code points, instead of 0 or 1",
        better: Better::Higher,
        unit: Unit::Share,
        notes: "As the older `ToolCallAccuracy(arg_comparison_metric=NonLLMStringSimilarity())` of RAGAS 0.4.3. The newer class in `ragas.metrics.collections` ignores that option.",
        ..Metric::DEFAULT
    },
    Metric {
        id: "ragas.tool_call_f1",
        summary: "F1 over the sets of distinct calls (RAGAS)",
        formula: "2PR / (P + R) with P and R over the sets of (name, arguments), rounded to 4 decimals, half to even; 0 where a denominator is 0",
        better: Better::Higher,
        unit: Unit::Share,
        notes: "As `ToolCallF1` of RAGAS 0.4.3. Arguments are compared by Python's `==`: `1`, `1.0` and `true` are the same, `\"1\"` is not; the order of keys does not matter. Repeated calls count once. Both lists empty gives **0**, where the accuracy gives 1. `calls.f1` is the variant with multisets, JSON equality and no rounding.",
        ..Metric::DEFAULT
    },
];

/// An accuracy, and the warning that RAGAS gives while computing it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accuracy {
    /// From 0 to 1.
    pub score: f64,
    /// A reason to doubt the score.
    pub warning: Option<Warning>,
}

/// A warning of RAGAS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Warning {
    /// Calls were expected and none was made.
    NoPredictedCalls,
    /// Calls were made and none was expected.
    EmptyReference,
    /// The lists have different lengths; the score is 0 whatever the calls are.
    LengthMismatch,
}

impl Warning {
    /// Returns a short name for reports.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Warning::NoPredictedCalls => "no_predicted_calls",
            Warning::EmptyReference => "empty_reference",
            Warning::LengthMismatch => "length_mismatch",
        }
    }
}

/// Returns the accuracy of the calls in order (`ragas.tool_call_accuracy`).
///
/// ```
/// use karat_metrics::calls::ragas::{Warning, tool_call_accuracy};
/// use karat_metrics::calls::{Call, Object};
///
/// let [a, b] = ["a", "b"].map(|name| Call::new(name, Object::new()));
/// assert_eq!(tool_call_accuracy(&[a.clone(), b.clone()], &[a.clone(), b.clone()]).score, 1.0);
/// let missing = tool_call_accuracy(&[a.clone()], &[a, b]);
/// assert_eq!((missing.score, missing.warning), (0.0, Some(Warning::LengthMismatch)));
/// ```
#[must_use]
pub fn tool_call_accuracy(called: &[Call<'_>], reference: &[Call<'_>]) -> Accuracy {
    by_position(called, reference, exact_similarity)
}

/// Returns the accuracy of the calls in order, with graded similarity of argument texts
/// (`ragas.tool_call_accuracy_levenshtein`).
///
/// ```
/// use karat_metrics::calls::ragas::{tool_call_accuracy, tool_call_accuracy_levenshtein};
/// use karat_metrics::calls::{Call, json::Reader};
///
/// let call = |arguments| Reader::new(arguments).read_object().map(|a| Call::new("open", a));
/// let (called, reference) = ([call(r#"{"path": "notes"}"#)?], [call(r#"{"path": "note"}"#)?]);
/// // One of five letters differs.
/// assert_eq!(tool_call_accuracy_levenshtein(&called, &reference).score, 0.8);
/// assert_eq!(tool_call_accuracy(&called, &reference).score, 0.0);
/// # Ok::<(), karat_metrics::calls::json::JsonError>(())
/// ```
#[must_use]
pub fn tool_call_accuracy_levenshtein(called: &[Call<'_>], reference: &[Call<'_>]) -> Accuracy {
    by_position(called, reference, levenshtein_similarity)
}

/// Returns the accuracy of the sorted calls (`ragas.tool_call_accuracy_unordered`).
///
/// ```
/// use karat_metrics::calls::ragas::tool_call_accuracy_unordered;
/// use karat_metrics::calls::{Call, Object};
///
/// let [a, b] = ["a", "b"].map(|name| Call::new(name, Object::new()));
/// assert_eq!(tool_call_accuracy_unordered(&[b.clone(), a.clone()], &[a, b]).score, 1.0);
/// ```
#[must_use]
pub fn tool_call_accuracy_unordered(called: &[Call<'_>], reference: &[Call<'_>]) -> Accuracy {
    if let Some(decided) = decided_by_length(called, reference) {
        return decided;
    }
    if same_letters_in_any_order(called, reference) {
        return Accuracy { score: 1.0, warning: None };
    }
    with_sorted_calls(called, |called_order| {
        with_sorted_calls(reference, |reference_order| {
            let called = called_order.iter().map(|&position| &called[position]);
            let reference = reference_order.iter().map(|&position| &reference[position]);
            accuracy(called, reference, exact_similarity)
        })
    })
}

/// Returns the F1 of the calls as sets (`ragas.tool_call_f1`).
///
/// ```
/// use karat_metrics::calls::ragas::tool_call_f1;
/// use karat_metrics::calls::{Call, Object};
///
/// let [a, b] = ["a", "b"].map(|name| Call::new(name, Object::new()));
/// assert_eq!(tool_call_f1(&[a.clone()], &[a, b]), 0.6667);
/// assert_eq!(tool_call_f1(&[], &[]), 0.0);
/// ```
#[must_use]
pub fn tool_call_f1(called: &[Call<'_>], reference: &[Call<'_>]) -> f64 {
    if !called.is_empty() && same_letters_in_any_order(called, reference) {
        return 1.0;
    }
    let sizes = if called.len().max(reference.len()).pow(2) <= classes::FEW_PAIRS {
        set_sizes_by_pairs(called, reference)
    } else {
        set_sizes_by_class(called, reference)
    };
    let ratio = |of: usize| if of > 0 { sizes.both as f64 / of as f64 } else { 0.0 };
    let (precision, recall) = (ratio(sizes.called), ratio(sizes.reference));
    if precision + recall > 0.0 {
        round_to_4_decimals(2.0 * precision * recall / (precision + recall))
    } else {
        0.0
    }
}

fn by_position(
    called: &[Call<'_>],
    reference: &[Call<'_>],
    similarity: impl Fn(&Value<'_>, &Value<'_>) -> f64,
) -> Accuracy {
    decided_by_length(called, reference)
        .unwrap_or_else(|| accuracy(called.iter(), reference.iter(), similarity))
}

/// The score where the numbers of calls already decide it.
fn decided_by_length(called: &[Call<'_>], reference: &[Call<'_>]) -> Option<Accuracy> {
    let warned = |warning| Some(Accuracy { score: 0.0, warning: Some(warning) });
    match (called.len(), reference.len()) {
        (0, 0) => Some(Accuracy { score: 1.0, warning: None }),
        (0, _) => warned(Warning::NoPredictedCalls),
        (_, 0) => warned(Warning::EmptyReference),
        // RAGAS continues with the names, which certainly differ then.
        (called, reference) if called != reference => warned(Warning::LengthMismatch),
        _ => None,
    }
}

/// The score of lists of equal length, paired by position.
fn accuracy<'c, 'a: 'c, 'b: 'c>(
    called: impl ExactSizeIterator<Item = &'c Call<'a>>,
    reference: impl Iterator<Item = &'c Call<'b>>,
    similarity: impl Fn(&Value<'_>, &Value<'_>) -> f64,
) -> Accuracy {
    let count = called.len() as f64;
    let mut sum = 0.0;
    for (called, reference) in called.zip(reference) {
        if called.name != reference.name {
            return Accuracy { score: 0.0, warning: None };
        }
        sum += if called.written_alike(reference) {
            1.0
        } else {
            argument_score(called.arguments(), reference.arguments(), &similarity)
        };
    }
    Accuracy { score: sum / count, warning: None }
}

fn argument_score(
    called: &Object<'_>,
    reference: &Object<'_>,
    similarity: impl Fn(&Value<'_>, &Value<'_>) -> f64,
) -> f64 {
    if reference.is_empty() {
        return if called.is_empty() { 1.0 } else { 0.0 };
    }
    let mut in_called = called.lookup();
    let mut sum = 0.0;
    for (position, (key, value)) in reference.iter().enumerate() {
        if let Some(given) = in_called.find(key, position) {
            sum += similarity(given, value);
        }
    }
    sum / reference.len() as f64
}

fn exact_similarity(called: &Value<'_>, reference: &Value<'_>) -> f64 {
    if python::same_text(called, reference) { 1.0 } else { 0.0 }
}

/// 1 - rapidfuzz's `Levenshtein.normalized_distance`.
fn levenshtein_similarity(called: &Value<'_>, reference: &Value<'_>) -> f64 {
    if python::same_text(called, reference) {
        return 1.0;
    }
    let (called, reference) = (python::str(called), python::str(reference));
    let longer = called.chars().count().max(reference.chars().count());
    1.0 - strsim::levenshtein(&called, &reference) as f64 / longer as f64
}

/// Returns `true` if the calls are a permutation of the reference by the text of their arguments: by
/// far the most frequent case, and the cheapest to detect. Tried on short lists only.
fn same_letters_in_any_order(called: &[Call<'_>], reference: &[Call<'_>]) -> bool {
    if called.len() != reference.len() || called.len() > 16 {
        return false;
    }
    let mut taken = 0_u32;
    called.iter().enumerate().all(|(position, call)| {
        // Its own position first, which is usually the right one.
        let places = std::iter::once(position).chain(0..reference.len());
        let fits = |place: &usize| {
            let other = &reference[*place];
            taken & (1 << place) == 0 && call.name == other.name && call.written_alike(other)
        };
        let found = { places }.find(fits);
        taken |= found.map_or(0, |place| 1 << place);
        found.is_some()
    })
}

/// Calls `use_order` with the positions 0 to `count` sorted; few of them need no allocation.
fn with_sorted<R>(
    count: usize,
    compare: impl Fn(usize, usize) -> Ordering,
    use_order: impl FnOnce(&[usize]) -> R,
) -> R {
    let mut few = [0; 16];
    let mut many = Vec::new();
    let order = match few.get_mut(..count) {
        Some(order) => order,
        None => {
            many.resize(count, 0);
            &mut many[..]
        }
    };
    for (position, slot) in order.iter_mut().enumerate() {
        *slot = position;
    }
    order.sort_by(|&a, &b| compare(a, b));
    use_order(order)
}

fn with_sorted_calls<R>(calls: &[Call<'_>], use_order: impl FnOnce(&[usize]) -> R) -> R {
    with_sorted(calls.len(), |a, b| sort_order(&calls[a], &calls[b]), use_order)
}

fn with_sorted_keys<R>(object: &Object<'_>, use_order: impl FnOnce(&[usize]) -> R) -> R {
    with_sorted(object.len(), |a, b| object.entry(a).0.cmp(object.entry(b).0), use_order)
}

/// By name, then by (argument name, argument text) in order of the argument names; the shorter one
/// first.
fn sort_order(a: &Call<'_>, b: &Call<'_>) -> Ordering {
    a.name.cmp(&b.name).then_with(|| {
        if a.written_alike(b) {
            return Ordering::Equal;
        }
        let (a, b) = (a.arguments(), b.arguments());
        with_sorted_keys(a, |a_order| {
            with_sorted_keys(b, |b_order| {
                let pairs = a_order.iter().zip(b_order).map(|(&x, &y)| (a.entry(x), b.entry(y)));
                pairs
                    .map(|((x, x_value), (y, y_value))| {
                        x.cmp(y).then_with(|| python::compare_text(x_value, y_value))
                    })
                    .find(|order| order.is_ne())
                    .unwrap_or_else(|| a.len().cmp(&b.len()))
            })
        })
    })
}

/// The sizes of the two sets of calls and of their intersection.
#[derive(Debug, Default, PartialEq, Eq)]
struct SetSizes {
    called: usize,
    reference: usize,
    both: usize,
}

fn set_sizes_by_pairs(called: &[Call<'_>], reference: &[Call<'_>]) -> SetSizes {
    let holds = |calls: &[Call<'_>], call: &Call<'_>| {
        calls.iter().any(|other| Equality::Python.calls(call, other))
    };
    let mut sizes = SetSizes::default();
    for (position, call) in called.iter().enumerate() {
        if !holds(&called[..position], call) {
            sizes.called += 1;
            sizes.both += usize::from(holds(reference, call));
        }
    }
    for (position, call) in reference.iter().enumerate() {
        sizes.reference += usize::from(!holds(&reference[..position], call));
    }
    sizes
}

fn set_sizes_by_class(called: &[Call<'_>], reference: &[Call<'_>]) -> SetSizes {
    let (called, reference, count) = classes::of(called, reference, Equality::Python);
    let mut members = vec![(false, false); count];
    called.iter().for_each(|&class| members[class].0 = true);
    reference.iter().for_each(|&class| members[class].1 = true);
    members.into_iter().fold(SetSizes::default(), |mut sizes, (in_called, in_reference)| {
        sizes.called += usize::from(in_called);
        sizes.reference += usize::from(in_reference);
        sizes.both += usize::from(in_called && in_reference);
        sizes
    })
}

/// Python's `round(value, 4)` for a value from 0 to 1: the nearest decimal to the exact binary value,
/// an exact tie to the even digit.
fn round_to_4_decimals(value: f64) -> f64 {
    let scaled = value * 1e4;
    if (scaled.fract() - 0.5).abs() > 1e-6 {
        // Too far from a tie for the multiplication's rounding to matter. The quotient of two
        // exact integers is the float nearest to the decimal.
        return scaled.round() / 1e4;
    }
    format!("{value:.4}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::super::json;
    use super::*;

    fn calls(text: &str) -> Vec<Call<'_>> {
        let mut calls = Vec::new();
        let mut reader = json::Reader::new(text);
        reader
            .object(|reader, name| {
                calls.push(Call::new(name, reader.read_object()?));
                Ok::<_, json::JsonError>(())
            })
            .unwrap();
        calls
    }

    #[test]
    fn an_exact_tie_is_rounded_to_the_even_digit() {
        assert_eq!(round_to_4_decimals(1.0 / 32.0), 0.0312);
        assert_eq!(round_to_4_decimals(3.0 / 32.0), 0.0938);
        assert_eq!(round_to_4_decimals(2.0 / 3.0), 0.6667);
        assert_eq!(round_to_4_decimals(1.0), 1.0);
    }

    #[test]
    fn extra_arguments_are_ignored_unless_none_are_expected() {
        let called = calls(r#"{"f":{"a":1,"b":2}}"#);
        assert_eq!(tool_call_accuracy(&called, &calls(r#"{"f":{"a":1}}"#)).score, 1.0);
        assert_eq!(tool_call_accuracy(&called, &calls(r#"{"f":{}}"#)).score, 0.0);
    }

    #[test]
    fn sorting_puts_the_shorter_of_two_otherwise_equal_calls_first() {
        let both = calls(r#"{"f":{"a":1,"b":2},"f":{"a":1}}"#);
        assert_eq!(sort_order(&both[1], &both[0]), Ordering::Less);
        assert_eq!(sort_order(&both[0], &both[0]), Ordering::Equal);
    }

    #[test]
    fn both_ways_to_count_sets_agree() {
        let called = calls(r#"{"f":{"a":1},"f":{"a":true},"g":{"a":{"x":[1.0]}},"h":{}}"#);
        let reference = calls(r#"{"g":{"a":{"x":[true]}},"f":{"a":2},"f":{"a":2.0},"h":{}}"#);
        let sizes = set_sizes_by_pairs(&called, &reference);
        assert_eq!(sizes, SetSizes { called: 3, reference: 3, both: 2 });
        assert_eq!(sizes, set_sizes_by_class(&called, &reference));
    }
}
