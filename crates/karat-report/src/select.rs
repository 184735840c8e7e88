//! Lookups in a report that several renderers need.

use karat_core::report::{Check, CheckReport, Delta, Kind, Measured, Report, Slice, Verdict};

/// The change of a metric over all items.
pub(crate) fn delta<'a>(report: &'a Report, metric: &str) -> Option<&'a Delta> {
    let deltas = &report.comparison.as_ref()?.deltas;
    deltas.iter().find(|delta| delta.metric == metric && delta.slice.is_none())
}

/// The slices by one property.
pub(crate) fn slices<'a>(report: &'a Report, by: &str) -> Vec<&'a Slice> {
    report.slices.iter().filter(|slice| slice.by == by).collect()
}

/// The kinds of queries of a ranking, and its servers, the worst first: both empty for other reports
/// and where there is only one.
pub(crate) fn rankings(report: &Report) -> [(&'static str, Vec<&Slice>); 2] {
    let several = |by| match slices(report, by) {
        found if found.len() > 1 && report.kind == Kind::Ranking => found,
        _ => Vec::new(),
    };
    let mut servers = several("server");
    let recall = |slice: &Slice| metric(&slice.metrics, "recall@5").and_then(|one| one.value);
    servers.sort_by(|a, b| recall(a).unwrap_or(2.0).total_cmp(&recall(b).unwrap_or(2.0)));
    [("kind", several("kind")), ("server, worst first", servers)]
}

/// A metric by its id.
pub(crate) fn metric<'a>(metrics: &'a [Measured], id: &str) -> Option<&'a Measured> {
    metrics.iter().find(|metric| metric.id == id)
}

/// The checks of a report with this verdict.
pub(crate) fn checks(report: &Report, verdict: Verdict) -> impl Iterator<Item = &Check> {
    let all = report.gate.iter().flat_map(|gate| &gate.checks);
    all.filter(move |check| check.verdict == verdict)
}

/// The failed checks of all reports, each with its report.
pub(crate) fn failed(check: &CheckReport) -> impl Iterator<Item = (&Report, &Check)> {
    let of = |report| checks(report, Verdict::Fail).map(move |check| (report, check));
    check.reports.iter().flat_map(of)
}
