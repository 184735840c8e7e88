//! The definition of a metric, and what a table of definitions needs at compile time.

use std::cmp::Ordering::{self, Equal, Greater, Less};
use std::num::NonZeroU32;

/// The direction in which a metric improves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Better {
    /// More is better (recall).
    Higher,
    /// Less is better (false-positive rate).
    Lower,
}

/// The unit of a metric's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unit {
    /// A share of something: always between 0 and 1.
    Share,
    /// A number of things.
    Count,
    /// Tokens of a language model.
    Tokens,
    /// Milliseconds.
    Milliseconds,
    /// Microseconds.
    Microseconds,
    /// A number of calls per second.
    PerSecond,
    /// Any other number: coefficients, ratios and differences, which can be negative or above 1.
    Number,
}

/// The relation between a metric and the scored items (queries, entries, cases, traces).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MetricKind {
    /// Each item either is or is not a hit, and the metric is the share of hits.
    Rate,
    /// Each item has a score, and the metric is the mean of the scores.
    Mean,
    /// The metric is computed from all items together, such as `mcc` or a percentile of latencies.
    Aggregate,
}

/// The position of a metric in the order of importance, which decides which metrics a summary shows
/// first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank {
    /// The position. Lower comes first; the gaps leave room for new metrics.
    pub place: u16,
    /// The cut-off that is shown, for a metric that has one.
    pub cutoff: Option<NonZeroU32>,
}

impl Rank {
    pub(crate) const fn new(place: u16) -> Rank {
        Rank { place, cutoff: None }
    }

    pub(crate) const fn at_cutoff(place: u16, cutoff: u32) -> Rank {
        Rank { place, cutoff: NonZeroU32::new(cutoff) }
    }
}

/// The definition of a metric, or of a family of metrics that differ in a cut-off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metric {
    /// The id that reports use. `@k` and `^k` represent any positive whole number.
    pub id: &'static str,
    /// The meaning in one line.
    pub summary: &'static str,
    /// The formula in plain text.
    pub formula: &'static str,
    /// The direction of improvement.
    pub better: Better,
    /// The unit of the value.
    pub unit: Unit,
    /// The relation to the scored items.
    pub kind: MetricKind,
    /// The position among the leading metrics; `None` if it is not one of them.
    pub rank: Option<Rank>,
    /// The cases in which it has no value; empty if it always has one.
    pub undefined: &'static str,
    /// Conventions, and differences from other implementations. May be empty. Markdown.
    pub notes: &'static str,
    /// `true` if an id may carry settings after a `|`.
    pub has_settings: bool,
}

impl Metric {
    /// The values of the optional fields. Claims nothing: the unit is a plain number.
    pub(crate) const DEFAULT: Metric = Metric {
        id: "",
        summary: "",
        formula: "",
        better: Better::Higher,
        unit: Unit::Number,
        kind: MetricKind::Mean,
        rank: None,
        undefined: "",
        notes: "",
        has_settings: false,
    };

    /// `true` if the value always lies between 0 and 1.
    ///
    /// ```
    /// use karat_metrics::registry;
    ///
    /// assert!(registry::find("recall@5").is_some_and(|metric| metric.is_share()));
    /// assert!(registry::find("mcc").is_some_and(|metric| !metric.is_share()));
    /// ```
    #[must_use]
    pub const fn is_share(&self) -> bool {
        matches!(self.unit, Unit::Share)
    }
}

/// The parts of an id that decide which definition it has.
pub(crate) struct ParsedId<'a> {
    /// The id up to its cut-off: `recall@` for `recall@5`, `mrr` for `mrr`.
    pub(crate) key: &'a [u8],
    pub(crate) cutoff: Option<NonZeroU32>,
    pub(crate) has_settings: bool,
}

impl ParsedId<'_> {
    /// Splits an id; `None` if its cut-off is not a positive whole number.
    pub(crate) const fn new(id: &str) -> Option<ParsedId<'_>> {
        let (id, has_settings) = match position(id.as_bytes(), b"|") {
            Some(at) => (id.as_bytes().split_at(at).0, true),
            None => (id.as_bytes(), false),
        };
        let Some(marker) = position(id, b"@^") else {
            return Some(ParsedId { key: id, cutoff: None, has_settings });
        };
        let (key, digits) = id.split_at(marker + 1);
        match parse_cutoff(digits) {
            Some(cutoff) => Some(ParsedId { key, cutoff: Some(cutoff), has_settings }),
            None => None,
        }
    }
}

/// The index of the first byte that is one of `wanted`.
const fn position(text: &[u8], wanted: &[u8]) -> Option<usize> {
    let mut at = 0;
    while at < text.len() {
        let mut candidate = 0;
        while candidate < wanted.len() {
            if text[at] == wanted[candidate] {
                return Some(at);
            }
            candidate += 1;
        }
        at += 1;
    }
    None
}

/// Reads the digits of a cut-off. A sign or a leading zero is refused, so that an id has one
/// spelling.
pub(crate) const fn parse_cutoff(digits: &[u8]) -> Option<NonZeroU32> {
    if digits.is_empty() || digits[0] == b'0' {
        return None;
    }
    let mut value: u32 = 0;
    let mut at = 0;
    while at < digits.len() {
        if !digits[at].is_ascii_digit() {
            return None;
        }
        let Some(shifted) = value.checked_mul(10) else { return None };
        let Some(sum) = shifted.checked_add((digits[at] - b'0') as u32) else { return None };
        value = sum;
        at += 1;
    }
    NonZeroU32::new(value)
}

/// The part of a registered id in front of the letter that represents a cut-off.
pub(crate) const fn key(id: &str) -> &[u8] {
    match id.as_bytes() {
        [_, .., b'@' | b'^', b'k'] => id.as_bytes().split_at(id.len() - 1).0,
        whole => whole,
    }
}

/// The order of two byte strings, in a constant.
pub(crate) const fn compare(left: &[u8], right: &[u8]) -> Ordering {
    let mut at = 0;
    while at < left.len() && at < right.len() {
        if left[at] != right[at] {
            return if left[at] < right[at] { Less } else { Greater };
        }
        at += 1;
    }
    if left.len() == right.len() {
        Equal
    } else if left.len() < right.len() {
        Less
    } else {
        Greater
    }
}

/// `true` if two byte strings are equal, in a constant.
pub(crate) const fn same(left: &[u8], right: &[u8]) -> bool {
    matches!(compare(left, right), Equal)
}

/// The number of elements of all slices together.
pub(crate) const fn total<T>(parts: &[&[T]]) -> usize {
    let (mut count, mut part) = (0, 0);
    while part < parts.len() {
        count += parts[part].len();
        part += 1;
    }
    count
}

/// The elements of all slices, in order. `N` must be their [`total`].
pub(crate) const fn join<T: Copy, const N: usize>(parts: &[&[T]]) -> [T; N] {
    let mut joined = [parts[0][0]; N];
    let (mut count, mut part) = (0, 0);
    while part < parts.len() {
        let mut index = 0;
        while index < parts[part].len() {
            joined[count] = parts[part][index];
            count += 1;
            index += 1;
        }
        part += 1;
    }
    joined
}
