//! Lookups in a report that several renderers need.

use karat_core::report::{
    Check, CheckReport, Delta, Kind, Measured, Property, Report, Slice, Verdict,
};
use karat_metrics::{MetricId, metric, registry};

/// The metrics in tables of rankings.
pub(crate) static RANKING_COLUMNS: [MetricId; 4] =
    [metric!("recall@1"), metric!("recall@5"), metric!("mrr"), metric!("ndcg@10")];
/// The rates in tables of detectors.
pub(crate) static DETECTOR_COLUMNS: [MetricId; 5] =
    [metric!("recall"), metric!("precision"), metric!("f1"), metric!("fpr_hard"), metric!("fpr")];
/// The rates of what one detector adds to the others: on attacks, hard negatives and benign entries.
pub(crate) static ADDED_COLUMNS: [MetricId; 3] =
    [metric!("recall"), metric!("fpr_hard"), metric!("fpr")];
/// The measures of how far two detectors agree.
pub(crate) static AGREEMENT_COLUMNS: [MetricId; 2] = [metric!("kappa"), metric!("jaccard")];

/// The change of a metric over all items.
pub(crate) fn delta<'a>(report: &'a Report, metric: &str) -> Option<&'a Delta> {
    let deltas = &report.comparison.as_ref()?.deltas;
    deltas.iter().find(|delta| delta.metric == metric && delta.slice.is_none())
}

/// The value that a rule is about.
pub(crate) fn measured<'a>(
    report: &'a Report,
    metric: &str,
    slice: Option<&str>,
) -> Option<&'a Measured> {
    match slice {
        None => report.metric(metric),
        Some(slice) => {
            let (by, value) = slice.split_once('=')?;
            report.slice_metric(by, value, metric)
        }
    }
}

/// The change of a metric over a slice, or over everything.
pub(crate) fn delta_over<'a>(
    report: &'a Report,
    metric: &str,
    slice: Option<&str>,
) -> Option<&'a Delta> {
    let deltas = report.comparison.as_ref().map(|comparison| &comparison.deltas)?;
    deltas.iter().find(|delta| delta.metric == metric && delta.slice.as_deref() == slice)
}

/// Returns whether only the first of several runs is observed. Scores are means over all of them, so an item
/// that got worse may look right in the first.
pub(crate) fn shows_first_run(report: &Report) -> bool {
    report.runs > 1 && matches!(report.kind, Kind::Ranking | Kind::Verdicts)
}

/// The slices by one property.
pub(crate) fn slices(report: &Report, by: Property) -> Vec<&Slice> {
    report.slices.iter().filter(|slice| slice.by == by.name()).collect()
}

/// The kinds of queries of a ranking, and its servers, the worst first: both empty for other reports
/// and where there is only one.
pub(crate) fn rankings(report: &Report) -> [(&'static str, Vec<&Slice>); 2] {
    let several = |by| match slices(report, by) {
        found if found.len() > 1 && report.kind == Kind::Ranking => found,
        _ => Vec::new(),
    };
    let mut servers = several(Property::Server);
    let recall = |slice: &Slice| metric(&slice.metrics, &metric!("recall@5"))?.value;
    servers.sort_by(|a, b| recall(a).unwrap_or(2.0).total_cmp(&recall(b).unwrap_or(2.0)));
    [("kind", several(Property::Kind)), ("server, worst first", servers)]
}

/// A metric by its id.
pub(crate) fn metric<'a>(metrics: &'a [Measured], id: &str) -> Option<&'a Measured> {
    metrics.iter().find(|metric| metric.id == id)
}

/// The checks of a report with this verdict, those of leading metrics first.
pub(crate) fn checks(report: &Report, verdict: Verdict) -> impl Iterator<Item = &Check> {
    let all = report.gate.iter().flat_map(|gate| &gate.checks);
    let mut chosen: Vec<&Check> = all.filter(|check| check.verdict == verdict).collect();
    chosen.sort_by_key(|check| place(&check.metric));
    chosen.into_iter()
}

/// The place of a metric among the leading ones; the others come after them.
pub(crate) fn place(metric: &str) -> usize {
    let leading = registry::leading();
    leading.iter().position(|id| id.as_str() == metric).unwrap_or(leading.len())
}

/// The slice that the rules about a metric are about, what failed first; none if they are about all items or
/// there are none.
pub(crate) fn gated_slice<'a>(report: &'a Report, metric: &str) -> Option<&'a str> {
    let all = report.gate.iter().flat_map(|gate| &gate.checks);
    let about = all.filter(|check| check.metric == metric && check.rule != "protected");
    // The first of the worst, as the line of the entry shows it.
    about.rev().max_by_key(|check| check.verdict)?.slice.as_deref()
}

/// The failed check whose items explain the failure: the first that compares with the baseline and names
/// items, or else the first that names any. Every output lists the items of this one.
pub(crate) fn explaining<'a>(broken: &[&'a Check]) -> Option<&'a Check> {
    let named = || broken.iter().copied().filter(|check| !check.items.is_empty());
    let compares = |check: &&Check| matches!(check.rule.as_str(), "max_drop" | "max_rise");
    named().find(compares).or_else(|| named().next())
}

/// Returns whether the items of a check are those that got worse, not those that a limit is about.
pub(crate) fn names_worsened(check: &Check) -> bool {
    matches!(check.rule.as_str(), "max_drop" | "max_rise" | "protected")
}

/// Returns whether new scores in the baseline would change the verdict: some rule failed or is undecided against
/// the baseline, not only against a limit that stays.
pub(crate) fn can_accept(report: &Report) -> bool {
    let open = report.gate.iter().flat_map(|gate| &gate.checks);
    let mut open = open.filter(|check| check.verdict != Verdict::Pass);
    report.comparison.is_some() && open.any(names_worsened)
}

/// The entry as commands take it: its name alone may be that of an entry of another evaluation, which the check
/// need not have measured.
pub(crate) fn entry_path(report: &Report) -> String {
    format!("{}/{}", report.evaluation, report.name)
}

/// The failed checks of all reports, each with its report.
pub(crate) fn failed(check: &CheckReport) -> impl Iterator<Item = (&Report, &Check)> {
    let of = |report| checks(report, Verdict::Fail).map(move |check| (report, check));
    check.reports.iter().flat_map(of)
}
