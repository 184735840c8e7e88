//! The public score report of mcpproxy, for scripts that read it.
//!
//! The format has room for one retrieval report and one table of detectors, and every rate in it is a
//! number. So the first report of each kind is written; further ones, and detectors with an undefined
//! rate, are named in `left_out`, not dropped silently or given a made-up zero.

use karat_core::report::{
    CORPUS_VERSION, CheckReport, GOLDEN_VERSION, Gate, Kind, Measured, Property, Report, Slice,
    Verdict,
};
use karat_metrics::{MetricId, metric};
use serde_json::{Map, Value, json};

use crate::select;

/// The document, with a final newline.
///
/// # Errors
/// If the check has nothing that the format can hold.
pub(crate) fn document(check: &CheckReport) -> Result<String, String> {
    let mut document = Map::new();
    let mut left_out = Vec::new();
    if let Some(report) = first(check, &Kind::Ranking, &mut left_out) {
        document.insert("retrieval".to_owned(), retrieval(report)?);
    }
    if let Some(report) = first(check, &Kind::Verdicts, &mut left_out) {
        document.insert("security".to_owned(), security(report, &mut left_out));
    }
    if document.is_empty() {
        return Err(
            "a score report holds retrieval and detection results, and neither was measured".into(),
        );
    }
    if !left_out.is_empty() {
        document.insert("left_out".to_owned(), json!(left_out));
    }
    Ok(format!("{:#}\n", Value::Object(document)))
}

fn first<'a>(
    check: &'a CheckReport,
    kind: &Kind,
    left_out: &mut Vec<String>,
) -> Option<&'a Report> {
    let mut reports = check.reports.iter().filter(|report| report.kind == *kind);
    let first = reports.next();
    left_out.extend(
        reports.map(|report| format!("{} {}: not the first", report.evaluation, report.name)),
    );
    first
}

fn retrieval(report: &Report) -> Result<Value, String> {
    let needed = |id: MetricId| {
        value(&report.metrics, &id).ok_or_else(|| {
            format!("{}: {id} is undefined, which a score report cannot express", report.name)
        })
    };
    let mut recall = Map::new();
    for (k, id) in [
        ("1", metric!("recall@1")),
        ("3", metric!("recall@3")),
        ("5", metric!("recall@5")),
        ("10", metric!("recall@10")),
    ] {
        recall.insert(k.to_owned(), json!(needed(id)?));
    }
    let version = |name| report.conventions.get(name).unwrap_or(&report.dataset.version);
    // What mcpproxy calls mrr and map stops at ten results.
    let mut section = json!({
        "corpus_version": version(CORPUS_VERSION),
        "golden_version": version(GOLDEN_VERSION),
        "runs_averaged": report.runs.max(1),
        "metrics": {
            "recall_at": recall,
            "mrr": needed(metric!("mrr@10"))?,
            "ndcg_at_10": needed(metric!("ndcg@10"))?,
            "map": needed(metric!("map@10"))?,
        },
        "gate": {"passed": passed(report.gate.as_ref())},
    });
    if let Some(comparison) = &report.comparison {
        let deltas: Map<String, Value> = comparison
            .deltas
            .iter()
            .filter(|delta| delta.slice.is_none())
            .filter_map(|delta| Some((delta.metric.to_string(), json!(delta.delta?))))
            .collect();
        section["baseline_delta"] = Value::Object(deltas);
    }
    // The format has one metric: the first whose drop is gated.
    let gated = report.gate.iter().flat_map(|gate| &gate.checks);
    if let Some(check) = gated.clone().find(|check| check.rule == "max_drop") {
        section["gate"]["metric"] = json!(check.metric);
        if let Some(tolerance) = check.threshold {
            section["gate"]["tolerance"] = json!(tolerance);
        }
    }
    Ok(section)
}

fn security(report: &Report, left_out: &mut Vec<String>) -> Value {
    let detectors: Vec<Value> = select::slices(report, Property::Detector)
        .into_iter()
        .filter_map(|slice| {
            let detector = detector(report, slice);
            if detector.is_none() {
                left_out.push(format!("detector {}: a rate is undefined", slice.value));
            }
            detector
        })
        .collect();
    json!({"runs_averaged": report.runs.max(1), "per_detector": detectors})
}

fn detector(report: &Report, slice: &Slice) -> Option<Value> {
    let mut row = Map::new();
    row.insert("detector".to_owned(), json!(slice.value));
    for id in [metric!("precision"), metric!("recall"), metric!("f1"), metric!("fpr")] {
        row.insert(id.to_string(), json!(value(&slice.metrics, &id)?));
    }
    for (id, hit, missed) in [(metric!("recall"), "tp", "fn"), (metric!("fpr"), "fp", "tn")] {
        let count = select::metric(&slice.metrics, &id)?.count.as_ref();
        if let Some(count) = count {
            row.insert(hit.to_owned(), json!(count.hits));
            row.insert(missed.to_owned(), json!(count.of.saturating_sub(count.hits)));
        }
    }
    // The gate of an entry is about its combined detector.
    if slice.value == report.name || slice.value == report.system.name {
        row.insert("gate".to_owned(), detector_gate(report));
    }
    Some(Value::Object(row))
}

fn detector_gate(report: &Report) -> Value {
    let mut gate = json!({"passed": passed(report.gate.as_ref())});
    let limit = |metrics: &[MetricId], rule: &str| {
        let mut checks = report.gate.iter().flat_map(|gate| &gate.checks);
        checks
            .find(|check| metrics.iter().any(|id| *id == check.metric) && check.rule == rule)?
            .threshold
    };
    if let Some(ceiling) = limit(&[metric!("fpr_hard"), metric!("fpr")], "max") {
        gate["fpr_ceiling"] = json!(ceiling);
    }
    if let Some(floor) = limit(&[metric!("recall")], "min") {
        gate["recall_floor"] = json!(floor);
    }
    gate
}

fn passed(gate: Option<&Gate>) -> bool {
    gate.is_some_and(|gate| gate.verdict == Verdict::Pass)
}

fn value(metrics: &[Measured], id: &MetricId) -> Option<f64> {
    select::metric(metrics, id)?.value
}
