//! The table of metrics.
//!
//! A metric is defined once, in a `METRICS` or `MEASURES` slice next to the code that computes it.
//! This module joins the slices and looks ids up; help texts, documentation, report legends, the
//! order of importance and the check of metric names are all derived from it.

use std::cmp::Ordering::{Equal, Greater, Less};
use std::sync::LazyLock;

pub use crate::metric::{Better, Metric, MetricKind, Rank, Unit};
use crate::metric::{ParsedId, compare, key, parse_cutoff};
use crate::{MetricId, calls, classification, definitions, ranking, stats};

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
    Family { title: "Triggers", metrics: definitions::triggers::METRICS },
    Family { title: "Classification", metrics: classification::METRICS },
    Family { title: "Tool calls", metrics: calls::METRICS },
    Family { title: "Suites", metrics: definitions::suites::METRICS },
    Family { title: "Fuzzing and attacks", metrics: definitions::probes::METRICS },
    Family { title: "Resilience", metrics: definitions::resilience::METRICS },
    Family { title: "Repeated runs", metrics: stats::METRICS },
    Family { title: "Benchmarks", metrics: definitions::outcomes::METRICS },
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
/// one is near enough: one mistake is allowed for every three letters.
///
/// ```
/// use karat_metrics::registry;
///
/// assert_eq!(registry::nearest("recal@5").as_deref(), Some("recall@5"));
/// assert_eq!(registry::nearest("nope"), None);
/// assert_eq!(registry::nearest("something else entirely"), None);
/// ```
#[must_use]
pub fn nearest(id: &str) -> Option<String> {
    let (stem, cutoff) = split_cutoff(id);
    let allowed = (stem.chars().count() / 3).max(1);
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
        .filter(|(distance, ..)| *distance <= allowed)
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
            leading[leading.len() - 7..],
            ["recall@5", "mrr", "ndcg@10", "recall", "fpr_hard", "precision", "f1"]
        );
    }
}
