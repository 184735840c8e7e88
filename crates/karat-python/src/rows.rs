//! Rows that Python has as lists, as batches; and scored batches as the items of a report.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::builder::{Int64Builder, ListBuilder, StringBuilder, StructBuilder};
use arrow_array::cast::AsArray as _;
use arrow_array::types::Float64Type;
use arrow_array::{Array as _, ArrayRef, Float64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Fields};
use karat_core::report::{Item, ItemError, Report, Scores};
use karat_metrics::MetricId;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;

use crate::error;
use crate::tables::{self, Batch};

/// The columns of scored rows that are not metrics, of any kind.
const NOT_METRICS: [&str; 8] =
    ["id", "group", "error", "setting", "latency_ms", "malicious", "hard_negative", "score"];

fn texts(column: &[Option<PyBackedStr>]) -> ArrayRef {
    Arc::new(column.iter().map(|text| text.as_deref()).collect::<StringArray>())
}

fn ids(column: &[PyBackedStr]) -> ArrayRef {
    Arc::new(column.iter().map(|text| Some(&**text)).collect::<StringArray>())
}

fn batch<const N: usize>(py: Python<'_>, columns: [(&str, ArrayRef); N]) -> PyResult<Batch> {
    let made = RecordBatch::try_from_iter(columns);
    made.map(Batch).map_err(|error| error::plain(py, error))
}

/// Traces, each as its JSON text.
#[pyfunction]
pub(crate) fn trace_rows(
    py: Python<'_>,
    id: Vec<PyBackedStr>,
    group: Vec<Option<PyBackedStr>>,
    trace: Vec<PyBackedStr>,
) -> PyResult<Batch> {
    batch(py, [("id", ids(&id)), ("group", texts(&group)), ("trace", ids(&trace))])
}

/// Rankings with their graded ids.
#[pyfunction]
pub(crate) fn ranking_rows(
    py: Python<'_>,
    id: Vec<PyBackedStr>,
    group: Vec<Option<PyBackedStr>>,
    ranked: Vec<Vec<PyBackedStr>>,
    relevant: Vec<Vec<(PyBackedStr, i64)>>,
) -> PyResult<Batch> {
    let mut lists = ListBuilder::new(StringBuilder::new());
    for results in &ranked {
        results.iter().for_each(|id| lists.values().append_value(&**id));
        lists.append(true);
    }
    let fields = Fields::from(vec![
        Field::new("id", DataType::Utf8, true),
        Field::new("grade", DataType::Int64, true),
    ]);
    let mut grades = ListBuilder::new(StructBuilder::new(
        fields,
        vec![Box::new(StringBuilder::new()), Box::new(Int64Builder::new())],
    ));
    for judged in &relevant {
        for (id, grade) in judged {
            let entry = grades.values();
            if let Some(ids) = entry.field_builder::<StringBuilder>(0) {
                ids.append_value(&**id);
            }
            if let Some(grades) = entry.field_builder::<Int64Builder>(1) {
                grades.append_value(*grade);
            }
            entry.append(true);
        }
        grades.append(true);
    }
    batch(
        py,
        [
            ("id", ids(&id)),
            ("group", texts(&group)),
            ("ranked", Arc::new(lists.finish())),
            ("relevant", Arc::new(grades.finish())),
        ],
    )
}

/// Verdicts with their labels.
#[pyfunction]
pub(crate) fn verdict_rows(
    py: Python<'_>,
    id: Vec<PyBackedStr>,
    group: Vec<Option<PyBackedStr>>,
    label: Vec<PyBackedStr>,
    category: Vec<Option<PyBackedStr>>,
    verdict: Vec<Option<PyBackedStr>>,
    score: Vec<Option<f64>>,
) -> PyResult<Batch> {
    batch(
        py,
        [
            ("id", ids(&id)),
            ("group", texts(&group)),
            ("label", ids(&label)),
            ("category", texts(&category)),
            ("verdict", texts(&verdict)),
            ("score", Arc::new(score.into_iter().collect::<Float64Array>())),
        ],
    )
}

/// A report with the scored rows as its items, so that it can be compared item by item.
#[pyfunction]
pub(crate) fn with_items(
    py: Python<'_>,
    report: &str,
    scored: Vec<Bound<'_, PyAny>>,
) -> PyResult<String> {
    let mut report: Report =
        serde_json::from_str(report).map_err(|error| error::plain(py, error))?;
    for source in &scored {
        for batch in tables::read(source)? {
            let batch = batch.map_err(|error| error::plain(py, error))?;
            add_items(&batch, &mut report.items);
        }
    }
    report.items.sort_by(|a, b| a.id.cmp(&b.id));
    if let Some(rule) = report.conventions.get_mut("rows") {
        *rule = rule.replace("; items are not kept", "");
    }
    serde_json::to_string(&report).map_err(|error| error::plain(py, error))
}

fn add_items(batch: &RecordBatch, items: &mut Vec<Item>) {
    let text =
        |name: &str| batch.column_by_name(name).and_then(|column| column.as_string_opt::<i32>());
    let (ids, groups, errors) = (text("id"), text("group"), text("error"));
    let at = |column: Option<&StringArray>, row: usize| {
        column.filter(|column| !column.is_null(row)).map(|column| column.value(row).to_owned())
    };
    let schema = batch.schema();
    let metrics: Vec<(MetricId, &Float64Array)> = schema
        .fields()
        .iter()
        .zip(batch.columns())
        .filter(|(field, _)| !NOT_METRICS.contains(&field.name().as_str()))
        .filter_map(|(field, column)| {
            Some((MetricId::new(field.name()), column.as_primitive_opt::<Float64Type>()?))
        })
        .collect();
    for row in 0..batch.num_rows() {
        let error = at(errors, row).map(|message| ItemError { class: "row".to_owned(), message });
        let score = |column: &Float64Array| (!column.is_null(row)).then(|| column.value(row));
        let scores: Scores = match error {
            Some(_) => BTreeMap::new(),
            None => metrics.iter().map(|(id, column)| (id.clone(), score(column))).collect(),
        };
        items.push(Item {
            id: at(ids, row).unwrap_or_default(),
            group: at(groups, row),
            metrics: scores,
            error,
            ..Item::default()
        });
    }
}
