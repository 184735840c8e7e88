//! The table of metrics.
//!
//! A metric is defined once, in a `METRICS` or `MEASURES` slice next to the code that computes it.
//! This module joins the slices and looks ids up; help texts, documentation, report legends, the
//! order of importance and the check of metric names are all derived from it.

use std::cmp::Ordering::{self, Equal, Greater, Less};
use std::num::NonZeroU32;
use std::sync::LazyLock;

use crate::{MetricId, calls, classification, definitions, ranking, stats};

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

/// A heading and the metrics below it.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// The heading.
    pub title: &'static str,
    /// The metrics, in the order in which they are shown.
    pub metrics: &'static [Metric],
}

/// Every metric, by family.
pub const FAMILIES: &[Family] = &[
    Family { title: "Ranking", metrics: ranking::METRICS },
    Family { title: "Classification", metrics: classification::METRICS },
    Family { title: "Tool calls", metrics: calls::METRICS },
    Family { title: "Suites", metrics: definitions::suites::METRICS },
    Family { title: "Fuzzing and attacks", metrics: definitions::probes::METRICS },
    Family { title: "Repeated runs", metrics: stats::METRICS },
    Family { title: "Cost", metrics: definitions::cost::METRICS },
    Family { title: "Load", metrics: definitions::load::METRICS },
];

/// Returns all metrics in the order of [`FAMILIES`].
///
/// ```
/// use karat_metrics::registry;
///
/// let shares = registry::all().filter(|metric| metric.is_share());
/// assert!(shares.map(|metric| metric.id).any(|id| id == "ndcg@k"));
/// ```
pub fn all() -> impl Iterator<Item = &'static Metric> {
    FAMILIES.iter().flat_map(|family| family.metrics)
}

/// Returns the definition of an id such as `recall@5`, or `None` if the id is unknown.
///
/// An id may carry settings after a `|`, as in `deepeval.tool_correctness|ordered|name`, where the
/// metric has settings; they are not checked here.
///
/// ```
/// use karat_metrics::registry;
///
/// assert_eq!(registry::find("recall@5").map(|metric| metric.id), Some("recall@k"));
/// assert!(registry::find("recall@0").is_none());
/// ```
#[must_use]
pub const fn find(id: &str) -> Option<&'static Metric> {
    let Some(parsed) = ParsedId::new(id) else { return None };
    let (mut low, mut high) = (0, SORTED.len());
    while low < high {
        let middle = low + (high - low) / 2;
        match compare(key(SORTED[middle].id), parsed.key) {
            Less => low = middle + 1,
            Greater => high = middle,
            Equal => {
                let metric = SORTED[middle];
                let acceptable = metric.has_settings || !parsed.has_settings;
                return if acceptable { Some(metric) } else { None };
            }
        }
    }
    None
}

/// Returns the ids of the leading metrics, most important first.
///
/// ```
/// use karat_metrics::registry;
///
/// assert_eq!(registry::leading()[0], "pass_rate");
/// assert!(registry::leading().iter().any(|id| id == "recall@5"));
/// ```
pub fn leading() -> &'static [MetricId] {
    static LEADING: LazyLock<Vec<MetricId>> = LazyLock::new(|| {
        let mut ranked: Vec<(Rank, &Metric)> =
            all().filter_map(|metric| Some((metric.rank?, metric))).collect();
        ranked.sort_unstable_by_key(|(rank, _)| *rank);
        ranked.into_iter().map(|(rank, metric)| MetricId::at_cutoff(metric, rank.cutoff)).collect()
    });
    &LEADING
}

/// Returns the known id that is nearest to a mistyped one, with the cut-off of the mistyped id, if
/// one is near enough.
///
/// ```
/// use karat_metrics::registry;
///
/// assert_eq!(registry::nearest("recal@5").as_deref(), Some("recall@5"));
/// assert_eq!(registry::nearest("something else entirely"), None);
/// ```
#[must_use]
pub fn nearest(id: &str) -> Option<String> {
    let (stem, cutoff) = split_cutoff(id);
    let number = cutoff.filter(|cutoff| parse_cutoff(&cutoff.as_bytes()[1..]).is_some());
    all()
        .map(|metric| {
            let (known, known_cutoff) = split_cutoff(metric.id);
            let distance = strsim::damerau_levenshtein(&stem.to_lowercase(), known);
            let spelled = match (known_cutoff, number) {
                (Some(marker), Some(k)) => format!("{known}{}{}", &marker[..1], &k[1..]),
                _ => metric.id.to_owned(),
            };
            // Among equally near ones, prefer those that agree in having a cut-off.
            (distance, known_cutoff.is_some() != cutoff.is_some(), spelled)
        })
        .filter(|(distance, _, spelled)| *distance <= 2.max(spelled.len() / 4))
        .min()
        .map(|(_, _, spelled)| spelled)
}

/// Splits `recall@5` into `recall` and `@5`, `pass^k` into `pass` and `^k`.
fn split_cutoff(id: &str) -> (&str, Option<&str>) {
    match id.find(['@', '^']) {
        Some(at) => (&id[..at], Some(&id[at..])),
        None => (id, None),
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
const fn parse_cutoff(digits: &[u8]) -> Option<NonZeroU32> {
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
const fn compare(left: &[u8], right: &[u8]) -> Ordering {
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

const COUNT: usize = {
    let (mut count, mut family) = (0, 0);
    while family < FAMILIES.len() {
        count += FAMILIES[family].metrics.len();
        family += 1;
    }
    count
};

/// All metrics, sorted by [`key`] at compile time.
const SORTED: &[&Metric; COUNT] = &{
    let mut sorted = [&Metric::DEFAULT; COUNT];
    let (mut count, mut family) = (0, 0);
    while family < FAMILIES.len() {
        let metrics = FAMILIES[family].metrics;
        let mut index = 0;
        while index < metrics.len() {
            let mut place = count;
            while place > 0
                && matches!(compare(key(metrics[index].id), key(sorted[place - 1].id)), Less)
            {
                sorted[place] = sorted[place - 1];
                place -= 1;
            }
            sorted[place] = &metrics[index];
            count += 1;
            index += 1;
        }
        family += 1;
    }
    sorted
};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_is_found_and_no_other_spelling_is() {
        for metric in all() {
            let id = metric.id.replace("@k", "@7").replace("^k", "^7");
            assert_eq!(find(&id), Some(metric), "{id}");
        }
        for wrong in [
            "",
            "@",
            "@5",
            "|",
            "recall@0",
            "recall@",
            "recall@x",
            "recall@k",
            "recall^5",
            "recall@-1",
            "recall@+1",
            "recall@05",
            "recall@4294967296",
            "recall@5@5",
            "recal",
            "recall@5|ordered",
            "mrr|",
            "zzz",
            "MRR",
        ] {
            assert_eq!(find(wrong), None, "{wrong}");
        }
        assert!(find("recall@4294967295").is_some());
    }

    #[test]
    fn settings_are_accepted_only_where_a_metric_has_them() {
        let metric = find("deepeval.tool_correctness|ordered|name+input").unwrap();
        assert_eq!(metric.id, "deepeval.tool_correctness");
        assert_eq!(all().filter(|metric| metric.has_settings).count(), 1);
    }

    #[test]
    fn a_mistyped_id_keeps_its_cutoff() {
        assert_eq!(nearest("recal@5").as_deref(), Some("recall@5"));
        assert_eq!(nearest("ncdg@10").as_deref(), Some("ndcg@10"));
        assert_eq!(nearest("mmr").as_deref(), Some("mrr"));
        assert_eq!(nearest("something else entirely"), None);
    }

    #[test]
    fn a_wrong_cutoff_is_not_suggested_again() {
        for wrong in ["recall@0", "recall@", "recall@x", "recall@+1", "recall@99999999999"] {
            assert_eq!(nearest(wrong).as_deref(), Some("recall@k"), "{wrong}");
        }
    }

    #[test]
    fn a_suggestion_for_a_wrong_id_with_a_cutoff_is_a_known_id() {
        for wrong in ["recal@5", "passs^3", "pas@3", "succes@10", "recall^5"] {
            let near = nearest(wrong).unwrap();
            assert!(find(&near).is_some(), "{wrong}: {near}");
        }
    }

    #[test]
    fn ids_are_unique_and_every_definition_is_complete() {
        let mut ids: Vec<_> = all().map(|metric| metric.id).collect();
        ids.sort_unstable();
        let before = ids.len();
        ids.dedup();
        assert_eq!((before, COUNT), (ids.len(), ids.len()));
        for metric in all() {
            assert!(!metric.summary.is_empty() && !metric.formula.is_empty(), "{}", metric.id);
        }
    }

    #[test]
    fn rates_are_shares() {
        for metric in all().filter(|metric| metric.kind == MetricKind::Rate) {
            assert!(metric.is_share(), "{}", metric.id);
        }
    }

    #[test]
    fn leading_metrics_have_distinct_ranks_and_known_ids() {
        let mut places: Vec<_> = all().filter_map(|metric| Some(metric.rank?.place)).collect();
        places.sort_unstable();
        let before = places.len();
        places.dedup();
        assert_eq!(before, places.len());
        let leading: Vec<&str> = leading().iter().map(MetricId::as_str).collect();
        assert_eq!(leading.len(), before);
        assert!(leading.iter().all(|id| find(id).is_some()), "{leading:?}");
        assert_eq!(leading[..3], ["pass_rate", "reliability", "attacks_held"]);
        assert_eq!(
            leading[14..],
            ["recall@5", "mrr", "ndcg@10", "recall", "fpr_hard", "precision", "f1"]
        );
    }
}
