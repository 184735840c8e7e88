//! Batches for the tests, as an engine would make them.

use std::sync::Arc;

use karat_arrow::arrow_array::builder::{
    Float64Builder, Int64Builder, ListBuilder, StringBuilder, StructBuilder,
};
use karat_arrow::arrow_array::{ArrayRef, RecordBatch};
use karat_arrow::arrow_schema::{DataType, Field, Fields};
use karat_arrow::{Kind, Options, Partial, Scorer};
use karat_core::report::Report;

/// A call: name, arguments, server.
pub(crate) type Call = (String, Option<String>, Option<String>);

/// A row of traces.
#[derive(Clone, Debug, Default)]
pub(crate) struct TraceRow {
    pub(crate) id: String,
    pub(crate) group: Option<String>,
    pub(crate) setting: Option<String>,
    pub(crate) calls: Vec<Call>,
    pub(crate) expected: Option<Vec<Call>>,
    pub(crate) duration_ms: Option<f64>,
    pub(crate) failed: Option<String>,
}

/// A row of rankings.
#[derive(Clone, Debug, Default)]
pub(crate) struct RankingRow {
    pub(crate) id: String,
    pub(crate) group: Option<String>,
    pub(crate) ranked: Vec<String>,
    pub(crate) relevant: Vec<(String, i64)>,
}

/// A row of verdicts.
#[derive(Clone, Debug, Default)]
pub(crate) struct VerdictRow {
    pub(crate) id: String,
    pub(crate) group: Option<String>,
    pub(crate) label: String,
    pub(crate) category: Option<String>,
    pub(crate) verdict: Option<String>,
    pub(crate) score: Option<f64>,
}

pub(crate) fn texts<T: AsRef<str>>(values: impl IntoIterator<Item = Option<T>>) -> ArrayRef {
    let mut column = StringBuilder::new();
    values.into_iter().for_each(|value| column.append_option(value));
    Arc::new(column.finish())
}

pub(crate) fn numbers(values: impl IntoIterator<Item = Option<f64>>) -> ArrayRef {
    let mut column = Float64Builder::new();
    values.into_iter().for_each(|value| column.append_option(value));
    Arc::new(column.finish())
}

fn calls<'r>(rows: impl Iterator<Item = Option<&'r Vec<Call>>>) -> ArrayRef {
    let fields = Fields::from(vec![
        Field::new("name", DataType::Utf8, false),
        Field::new("arguments", DataType::Utf8, true),
        Field::new("server", DataType::Utf8, true),
    ]);
    let mut list = ListBuilder::new(StructBuilder::from_fields(fields, 0));
    for row in rows {
        for (name, arguments, server) in row.into_iter().flatten() {
            let call = list.values();
            let texts = [Some(name), arguments.as_ref(), server.as_ref()];
            for (place, text) in texts.into_iter().enumerate() {
                call.field_builder::<StringBuilder>(place).unwrap().append_option(text);
            }
            call.append(true);
        }
        list.append(row.is_some());
    }
    Arc::new(list.finish())
}

pub(crate) fn traces(rows: &[TraceRow]) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable([
        ("id", texts(rows.iter().map(|row| Some(&row.id))), false),
        ("group", texts(rows.iter().map(|row| row.group.as_ref())), true),
        ("setting", texts(rows.iter().map(|row| row.setting.as_ref())), true),
        ("calls", calls(rows.iter().map(|row| Some(&row.calls))), false),
        ("expected_calls", calls(rows.iter().map(|row| row.expected.as_ref())), true),
        ("duration_ms", numbers(rows.iter().map(|row| row.duration_ms)), true),
        ("failed", texts(rows.iter().map(|row| row.failed.as_ref())), true),
    ])
    .unwrap()
}

pub(crate) fn rankings(rows: &[RankingRow]) -> RecordBatch {
    let mut ranked = ListBuilder::new(StringBuilder::new());
    let fields = Fields::from(vec![
        Field::new("id", DataType::Utf8, false),
        Field::new("grade", DataType::Int64, false),
    ]);
    let mut relevant = ListBuilder::new(StructBuilder::from_fields(fields, 0));
    for row in rows {
        row.ranked.iter().for_each(|id| ranked.values().append_value(id));
        ranked.append(true);
        for (id, grade) in &row.relevant {
            let judged = relevant.values();
            judged.field_builder::<StringBuilder>(0).unwrap().append_value(id);
            judged.field_builder::<Int64Builder>(1).unwrap().append_value(*grade);
            judged.append(true);
        }
        relevant.append(true);
    }
    RecordBatch::try_from_iter([
        ("id", texts(rows.iter().map(|row| Some(&row.id)))),
        ("group", texts(rows.iter().map(|row| row.group.as_ref()))),
        ("ranked", Arc::new(ranked.finish()) as ArrayRef),
        ("relevant", Arc::new(relevant.finish())),
    ])
    .unwrap()
}

pub(crate) fn verdicts(rows: &[VerdictRow]) -> RecordBatch {
    RecordBatch::try_from_iter([
        ("id", texts(rows.iter().map(|row| Some(&row.id)))),
        ("group", texts(rows.iter().map(|row| row.group.as_ref()))),
        ("label", texts(rows.iter().map(|row| Some(&row.label)))),
        ("category", texts(rows.iter().map(|row| row.category.as_ref()))),
        ("verdict", texts(rows.iter().map(|row| row.verdict.as_ref()))),
        ("score", numbers(rows.iter().map(|row| row.score))),
    ])
    .unwrap()
}

/// The partial result of one batch.
pub(crate) fn partial(kind: Kind, options: &Options, batch: &RecordBatch) -> Partial {
    let scorer = Scorer::new(kind, options.clone()).unwrap();
    let mut partial = Partial::new(kind, options).unwrap();
    partial.add(&scorer.score(batch).unwrap()).unwrap();
    partial
}

/// A report without the block that may differ, as bytes.
pub(crate) fn text(report: &Report) -> String {
    let mut value = serde_json::to_value(report).unwrap();
    value.as_object_mut().unwrap().remove("environment");
    // The times are of the rows, and must be the same as well.
    let times = (report.environment.latency_ms, &report.environment.latency_bins);
    format!("{value}\n{times:?}")
}
