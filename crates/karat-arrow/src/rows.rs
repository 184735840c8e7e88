//! Scored rows on their way into a batch.

use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Float64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use karat_io::text::{clip, printable};

use crate::options::Plan;
use crate::{Error, Kind};

/// The number of characters of an id or a message of a row.
const MAX_SHOWN: usize = 200;

/// Scored rows, column by column.
pub(crate) struct Rows<'p> {
    plan: &'p Plan,
    id: StringBuilder,
    group: StringBuilder,
    error: StringBuilder,
    latency: Float64Builder,
    pub(crate) setting: StringBuilder,
    pub(crate) malicious: BooleanBuilder,
    pub(crate) hard_negative: BooleanBuilder,
    pub(crate) score: Float64Builder,
    metrics: Vec<Float64Builder>,
}

/// The columns of a row that all kinds have.
#[derive(Clone, Copy)]
pub(crate) struct Row<'r> {
    /// The place in the batch.
    pub(crate) number: usize,
    pub(crate) id: &'r str,
    pub(crate) group: Option<&'r str>,
    pub(crate) latency_ms: Option<f64>,
}

impl<'p> Rows<'p> {
    pub(crate) fn new(plan: &'p Plan, rows: usize) -> Rows<'p> {
        let text = || StringBuilder::with_capacity(rows, rows * 16);
        Rows {
            plan,
            id: text(),
            group: text(),
            error: StringBuilder::new(),
            latency: Float64Builder::with_capacity(rows),
            setting: StringBuilder::new(),
            malicious: BooleanBuilder::new(),
            hard_negative: BooleanBuilder::new(),
            score: Float64Builder::new(),
            metrics: plan.metrics.iter().map(|_| Float64Builder::with_capacity(rows)).collect(),
        }
    }

    fn begin(&mut self, row: Row<'_>) {
        self.id.append_value(row.id);
        self.group.append_option(row.group);
        self.latency.append_option(row.latency_ms.filter(|ms| ms.is_finite()));
    }

    /// Adds a row with its scores, in the order of the plan's metrics.
    pub(crate) fn push(&mut self, row: Row<'_>, scores: impl IntoIterator<Item = Option<f64>>) {
        self.begin(row);
        self.error.append_null();
        for (column, score) in self.metrics.iter_mut().zip(scores) {
            column.append_option(score);
        }
    }

    /// Adds a row that cannot be scored, with what is still known.
    ///
    /// # Errors
    /// If no row may fail.
    pub(crate) fn push_failed(
        &mut self,
        row: Row<'_>,
        message: &str,
        scores: impl IntoIterator<Item = Option<f64>>,
    ) -> Result<(), Error> {
        let shown = |text: &str| printable(&clip(text, MAX_SHOWN)).into_owned();
        let message = shown(message);
        if self.plan.options.max_errors <= 0.0 {
            return Err(Error::Row { row: row.number, id: shown(row.id), message });
        }
        self.begin(row);
        self.error.append_value(message);
        let mut scores = scores.into_iter();
        for column in &mut self.metrics {
            column.append_option(scores.next().flatten());
        }
        Ok(())
    }

    pub(crate) fn finish(mut self, schema: SchemaRef) -> Result<RecordBatch, Error> {
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(self.id.finish()),
            Arc::new(self.group.finish()),
            Arc::new(self.error.finish()),
            Arc::new(self.latency.finish()),
        ];
        match self.plan.kind {
            Kind::Traces => columns.push(Arc::new(self.setting.finish())),
            Kind::Rankings => {}
            Kind::Verdicts => {
                columns.push(Arc::new(self.malicious.finish()));
                columns.push(Arc::new(self.hard_negative.finish()));
                columns.push(Arc::new(self.score.finish()));
            }
        }
        columns.extend(self.metrics.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef));
        Ok(RecordBatch::try_new(schema, columns)?)
    }
}
