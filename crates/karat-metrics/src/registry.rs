//! The one table of metrics.
//!
//! Each family keeps its metrics' definitions beside their code, in a slice named `METRICS`; this
//! module joins the slices and looks ids up. `karat metrics`, docs/metrics.md, the legend of the
//! report and the check of a gate's metric names are all read from here.

use crate::{calls, classification, cost, load, probes, ranking, stats, suites};

/// In which direction a metric is an improvement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// More is better (recall).
    Higher,
    /// Less is better (false-positive rate).
    Lower,
}

/// The definition of one metric, or of one family of metrics that differ in a cut-off.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// The id as it stands in reports; `@k` and `^k` stand for any positive whole number.
    pub id: &'static str,
    /// What it tells, in one line.
    pub summary: &'static str,
    /// The formula, in plain text.
    pub formula: &'static str,
    /// Which direction is better.
    pub better: Better,
    /// When it has no value; empty if it always has one.
    pub undefined: &'static str,
    /// Conventions, and where other implementations differ. May be empty. Markdown.
    pub notes: &'static str,
}

/// A heading and the metrics below it.
pub struct Family {
    /// The heading in `karat metrics` and in docs/metrics.md.
    pub title: &'static str,
    /// The metrics, in the order in which they are shown.
    pub metrics: &'static [Metric],
}

/// Every metric that Karat knows, by family.
pub const FAMILIES: &[Family] = &[
    Family { title: "Ranking", metrics: ranking::METRICS },
    Family { title: "Classification", metrics: classification::METRICS },
    Family { title: "Tool calls", metrics: calls::METRICS },
    Family { title: "Suites", metrics: suites::METRICS },
    Family { title: "Fuzzing and attacks", metrics: probes::METRICS },
    Family { title: "Repeated runs", metrics: stats::METRICS },
    Family { title: "Cost", metrics: cost::METRICS },
    Family { title: "Load", metrics: load::METRICS },
];

/// What lies from 0 to 1 by its definition. Costs, counts, differences, ratios and coefficients that
/// can be negative do not.
const SHARES: &[&str] = &[
    "accuracy",
    "answer.correct",
    "attacks_held",
    "average_precision",
    "balanced_accuracy",
    "bpref",
    "brier",
    "calls.alignment",
    "calls.exact",
    "calls.f1",
    "calls.forbidden",
    "calls.loop",
    "comprehensiveness@k",
    "coverage",
    "crash_rate",
    "error_rate",
    "f0.5",
    "f1",
    "f1@k",
    "f2",
    "fnr",
    "fpr",
    "fpr_hard",
    "gauge.compliance",
    "gauge.proactivity",
    "gauge.success_with_tools",
    "gauge.success_without_tools",
    "gauge.unneeded_call",
    "hang_rate",
    "hard_negative_rate",
    "invalid_result_rate",
    "jaccard",
    "leak_rate",
    "map",
    "map@k",
    "mcpbench.execution_success",
    "mcpbench.schema_compliance",
    "mcpbench.tool_name_validity",
    "mrr",
    "mrr@k",
    "ndcg",
    "ndcg@k",
    "ndcg_exp",
    "ndcg_exp@k",
    "npv",
    "p@k",
    "pass@k",
    "pass^k",
    "pass_rate",
    "precision",
    "precision_at_prevalence_0.1pct",
    "precision_at_prevalence_1pct",
    "r_precision",
    "ragas.tool_call_accuracy",
    "ragas.tool_call_f1",
    "recall",
    "recall@k",
    "recall_at_fpr_0",
    "recall_at_fpr_1pct",
    "recall_at_fpr_5pct",
    "reliability",
    "roc_auc",
    "schema.accepts_valid",
    "schema.input",
    "schema.output",
    "schema.rejects_invalid",
    "set_f1",
    "set_precision",
    "set_recall",
    "specificity",
    "state.reached",
    "success@k",
    "task.success",
];

impl Metric {
    /// Whether the value lies from 0 to 1, whatever is measured; `false` where that is not certain.
    pub fn is_share(&self) -> bool {
        SHARES.binary_search(&self.id).is_ok()
    }
}

/// All metrics, in the order of [`FAMILIES`].
pub fn all() -> impl Iterator<Item = &'static Metric> {
    FAMILIES.iter().flat_map(|family| family.metrics)
}

/// The definition behind an id such as `recall@5`, or `deepeval.tool_correctness|ordered|name` with
/// the settings after the bar; `None` if no metric has that id.
pub fn find(id: &str) -> Option<&'static Metric> {
    let id = calls::registered_id(id);
    all().find(|metric| matches(metric.id, id))
}

/// The known id nearest to a mistyped one, with the cut-off the user wrote, if one is near enough.
pub fn nearest(id: &str) -> Option<String> {
    let (stem, cut) = split_cut(id);
    let number = cut.filter(|cut| is_cut(cut));
    all()
        .map(|metric| {
            let (known, known_cut) = split_cut(metric.id);
            let distance = strsim::damerau_levenshtein(&stem.to_lowercase(), known);
            let spelled = match (known_cut, number) {
                (Some(_), Some(k)) => format!("{known}{k}"),
                _ => metric.id.to_owned(),
            };
            // Among equally near ones, those that have a cut-off as the user's has, or has not.
            (distance, known_cut.is_some() != cut.is_some(), spelled)
        })
        .filter(|(distance, _, spelled)| *distance <= 2.max(spelled.len() / 4))
        .min()
        .map(|(_, _, spelled)| spelled)
}

/// Splits `recall@5` into `recall` and `@5`, `pass^k` into `pass` and `^k`.
fn split_cut(id: &str) -> (&str, Option<&str>) {
    match id.find(['@', '^']) {
        Some(at) => (&id[..at], Some(&id[at..])),
        None => (id, None),
    }
}

fn matches(pattern: &str, id: &str) -> bool {
    let (stem, cut) = split_cut(pattern);
    let (id_stem, id_cut) = split_cut(id);
    if stem != id_stem {
        return false;
    }
    match (cut, id_cut) {
        (None, None) => true,
        (Some(pattern_cut), Some(id_cut)) => pattern_cut[..1] == id_cut[..1] && is_cut(id_cut),
        _ => false,
    }
}

/// Whether a cut-off such as `@5` has a positive number.
fn is_cut(cut: &str) -> bool {
    cut[1..].parse::<u32>().is_ok_and(|k| k > 0 && !cut[1..].starts_with('+'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_off_is_any_positive_number() {
        assert!(matches("recall@k", "recall@5"));
        assert!(matches("pass^k", "pass^3"));
        for wrong in
            ["recall", "recall@0", "recall@", "recall@x", "recall^5", "recall@-1", "recall@+1"]
        {
            assert!(!matches("recall@k", wrong), "{wrong}");
        }
    }

    #[test]
    fn a_mistyped_id_keeps_its_cut_off() {
        assert_eq!(nearest("recal@5").as_deref(), Some("recall@5"));
        assert_eq!(nearest("ncdg@10").as_deref(), Some("ndcg@10"));
        assert_eq!(nearest("mmr").as_deref(), Some("mrr"));
        assert_eq!(nearest("something else entirely"), None);
    }

    #[test]
    fn a_wrong_cut_off_is_not_suggested_again() {
        for wrong in ["recall@0", "recall@", "recall@x", "recall@+1", "recall@99999999999"] {
            assert_eq!(nearest(wrong).as_deref(), Some("recall@k"), "{wrong}");
        }
    }

    #[test]
    fn shares_are_sorted_and_known() {
        assert!(SHARES.is_sorted());
        for id in SHARES {
            assert!(all().any(|metric| metric.id == *id), "{id}");
        }
        assert!(find("recall@5").unwrap().is_share());
        assert!(!find("latency.p99").unwrap().is_share() && !find("mcc").unwrap().is_share());
    }

    #[test]
    fn ids_are_unique() {
        let mut ids: Vec<_> = all().map(|metric| metric.id).collect();
        ids.sort_unstable();
        let before = ids.len();
        ids.dedup();
        assert_eq!(before, ids.len());
    }
}
