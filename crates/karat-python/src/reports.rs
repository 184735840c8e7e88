//! Reports, as their JSON text: comparison, gate, and tables of metrics and items.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use karat_core::aggregate;
use karat_core::baseline::Baseline;
use karat_core::compare::{SliceKey, compare};
use karat_core::gate::{self, Policy};
use karat_core::report::{self, Better, Report};
use karat_metrics::MetricId;
use pyo3::prelude::*;

use crate::error;
use crate::tables::Batch;

/// The name of a report that is not from a file, for messages.
const HERE: &str = "the report";

/// Reads the report in a text.
fn parse(py: Python<'_>, name: &str, text: &str) -> PyResult<Report> {
    let mut reports =
        report::parse_reports(Path::new(name), text).map_err(|error| error::input(py, &error))?;
    match (reports.pop(), reports.is_empty()) {
        (Some(report), true) => Ok(report),
        _ => Err(error::plain(py, format!("{name}: one report is needed"))),
    }
}

/// Reads a baseline file's text, or makes a baseline of a report.
fn baseline(py: Python<'_>, name: &str, text: &str) -> PyResult<Baseline> {
    #[derive(serde::Deserialize)]
    struct Head {
        schema: String,
    }
    let head = serde_json::from_str::<Head>(text);
    if head.is_ok_and(|head| head.schema.starts_with("karat.baseline/")) {
        return Baseline::parse(Path::new(name), text).map_err(|error| error::input(py, &error));
    }
    Ok(Baseline::from_report(&parse(py, name, text)?))
}

fn written<T: serde::Serialize>(py: Python<'_>, document: &T) -> PyResult<String> {
    serde_json::to_string(document).map_err(|error| error::plain(py, error))
}

/// Checks that a text is a report, or several, and returns each as JSON in the present version.
#[pyfunction]
pub(crate) fn read_reports(py: Python<'_>, name: &str, text: &str) -> PyResult<Vec<String>> {
    let reports = py.detach(|| report::parse_reports(Path::new(name), text));
    let reports = reports.map_err(|error| error::input(py, &error))?;
    reports.iter().map(|report| written(py, report)).collect()
}

/// Compares two reports item by item.
#[pyfunction]
pub(crate) fn compare_reports(
    py: Python<'_>,
    before: &str,
    after: &str,
    slices: Vec<String>,
    primary: Option<&str>,
) -> PyResult<String> {
    let before = baseline(py, "before", before)?;
    let after = parse(py, "after", after)?;
    let slices: Vec<SliceKey> = slices
        .iter()
        .map(|slice| slice.parse::<SliceKey>().map_err(|error| error::plain(py, error)))
        .collect::<PyResult<_>>()?;
    let found = py.detach(|| compare(&before, &after, &slices));
    let mut found = found.map_err(|error| error::plain(py, error))?;
    if let Some(id) = primary
        && !found.set_primary(id)
    {
        return Err(error::plain(py, format!("{id:?} was not compared: both need it")));
    }
    written(py, &found)
}

/// Judges a report by a policy (the table `gate` of an entry, as JSON) and returns it with its gate.
/// Without rules, no metric may be worse than in the baseline by more than `tolerance`.
#[pyfunction]
pub(crate) fn judge_report(
    py: Python<'_>,
    report: &str,
    before: Option<&str>,
    policy: Option<&str>,
    tolerance: f64,
) -> PyResult<String> {
    let mut report = parse(py, HERE, report)?;
    let before = before.map(|text| baseline(py, "baseline", text)).transpose()?;
    let policy = match policy {
        Some(text) => serde_json::from_str::<Policy>(text)
            .map_err(|error| error::plain(py, format!("the gate: {error}")))?,
        None => nothing_worse(before.as_ref(), tolerance),
    };
    if policy == Policy::default() {
        return Err(error::plain(py, "the gate has no rule: give one, or a baseline with metrics"));
    }
    let judged = py.detach(|| gate::judge(&mut report, &policy, before.as_ref()));
    judged.map_err(|error| error::plain(py, error))?;
    written(py, &report)
}

/// A rule for each metric that has a value in the baseline.
fn nothing_worse(before: Option<&Baseline>, tolerance: f64) -> Policy {
    let mut policy = Policy::default();
    let metrics = before.map(|before| before.metrics.as_slice()).unwrap_or_default();
    for metric in metrics.iter().filter(|metric| metric.value.is_some()) {
        let rule = policy.metrics.entry(metric.id.to_string()).or_default();
        match aggregate::better(&metric.id) {
            Better::Higher => rule.max_drop = Some(tolerance),
            Better::Lower => rule.max_rise = Some(tolerance),
        }
    }
    policy
}

/// The metrics of a report, one in a row.
#[pyfunction]
pub(crate) fn metrics_table(py: Python<'_>, report: &str) -> PyResult<Batch> {
    let report = parse(py, HERE, report)?;
    let rows = &report.metrics;
    let ends = |end: fn(&report::Interval) -> f64| {
        rows.iter().map(|row| row.interval.as_ref().map(end)).collect::<Float64Array>()
    };
    let texts = |text: fn(&report::Measured) -> Option<&str>| {
        rows.iter().map(text).collect::<StringArray>()
    };
    let better = |row: &report::Measured| match row.better {
        Better::Higher => Some("higher"),
        Better::Lower => Some("lower"),
    };
    let method = |row: &report::Measured| row.interval.as_ref().map(|found| found.method.clone());
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("metric", Arc::new(texts(|row| Some(row.id.as_str())))),
        ("value", Arc::new(rows.iter().map(|row| row.value).collect::<Float64Array>())),
        ("n", Arc::new(rows.iter().map(|row| Some(row.n)).collect::<UInt64Array>())),
        ("better", Arc::new(rows.iter().map(better).collect::<StringArray>())),
        ("low", Arc::new(ends(|interval| interval.low))),
        ("high", Arc::new(ends(|interval| interval.high))),
        ("level", Arc::new(ends(|interval| interval.level))),
        ("method", Arc::new(rows.iter().map(method).collect::<StringArray>())),
        ("undefined", Arc::new(texts(|row| row.undefined.as_deref()))),
    ];
    table(py, columns.into_iter().map(|(name, column)| (name.to_owned(), column)))
}

/// The items of a report, one in a row, with a column for each metric that one of them has.
#[pyfunction]
pub(crate) fn items_table(py: Python<'_>, report: &str) -> PyResult<Batch> {
    let report = parse(py, HERE, report)?;
    let items = &report.items;
    let ids: StringArray = items.iter().map(|item| Some(item.id.as_str())).collect();
    let groups: StringArray = items.iter().map(|item| item.group.as_deref()).collect();
    let errors: StringArray =
        items.iter().map(|item| item.error.as_ref().map(|error| error.message.as_str())).collect();
    let metrics: BTreeSet<&MetricId> = items.iter().flat_map(|item| item.metrics.keys()).collect();
    let scores = metrics.into_iter().map(|id| {
        let values = items.iter().map(|item| item.metrics.get(id).copied().flatten());
        (id.to_string(), Arc::new(values.collect::<Float64Array>()) as ArrayRef)
    });
    let fixed: [(&str, ArrayRef); 3] =
        [("id", Arc::new(ids)), ("group", Arc::new(groups)), ("error", Arc::new(errors))];
    let fixed = fixed.into_iter().map(|(name, column)| (name.to_owned(), column));
    table(py, fixed.chain(scores))
}

fn table(py: Python<'_>, columns: impl Iterator<Item = (String, ArrayRef)>) -> PyResult<Batch> {
    let (fields, columns): (Vec<Field>, Vec<ArrayRef>) = columns
        .map(|(name, column)| (Field::new(name, DataType::clone(column.data_type()), true), column))
        .unzip();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns);
    batch.map(Batch).map_err(|error| error::plain(py, error))
}

/// Every metric that Karat knows: id, summary, formula and direction.
#[pyfunction]
pub(crate) fn metric_definitions() -> Vec<(&'static str, &'static str, &'static str, &'static str)>
{
    let better = |better| match better {
        karat_metrics::registry::Better::Higher => "higher",
        karat_metrics::registry::Better::Lower => "lower",
    };
    let all = karat_metrics::registry::all();
    all.map(|metric| (metric.id, metric.summary, metric.formula, better(metric.better))).collect()
}
