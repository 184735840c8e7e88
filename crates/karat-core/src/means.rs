//! The document of `karat agent score --means --json`: means of any number of traces. Without items it is not
//! a report that can be compared.
//!
//! Its JSON Schema is generated from these types (docs/traces.schema.json).

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::report::{Gate, Interval, Measured, Report, Scores};
use karat_metrics::MetricId;

/// The name of this format.
const SCHEMA: &str = "karat.traces/1";

/// The means of traces that were scored in one pass.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Means<'a> {
    /// Always `karat.traces/1` here.
    schema: &'static str,
    /// The number of traces.
    traces: u64,
    /// The metrics that have a value.
    metrics: Vec<Mean<'a>>,
    /// Remarks for a careful reader.
    warnings: &'a [String],
    /// The scores of every trace, with `--per-item`.
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<Vec<TraceScores>>,
    /// The decision of the gate, if a rule was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    gate: Option<&'a Gate>,
}

/// The mean of a metric over the traces that have it.
#[derive(Debug, Serialize, JsonSchema)]
struct Mean<'a> {
    /// The metric's id, as listed by `karat metrics`.
    id: &'a MetricId,
    /// The mean.
    value: Option<f64>,
    /// The number of traces that have the metric.
    n: u64,
    /// The interval of the mean, if it has one.
    interval: Option<&'a Interval>,
    /// The number of traces that succeeded, if the metric is a rate.
    succeeded: Option<u64>,
}

/// The scores of one trace.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TraceScores {
    /// The task.
    pub id: String,
    /// The number of the run, from 1.
    pub run: u32,
    /// The scores by metric; null where a metric is undefined on the trace.
    #[schemars(with = "Scores")]
    pub scores: Map<String, Value>,
}

impl<'a> Means<'a> {
    /// The means in a report, with the scores of the traces where each of them is shown.
    #[must_use]
    pub fn of(report: &'a Report, traces: u64, items: Option<Vec<TraceScores>>) -> Means<'a> {
        let mean = |metric: &'a Measured| Mean {
            id: &metric.id,
            value: metric.value,
            n: metric.n,
            interval: metric.interval.as_ref(),
            succeeded: metric.count.map(|count| count.hits),
        };
        Means {
            schema: SCHEMA,
            traces,
            metrics: report.metrics.iter().filter(|one| one.value.is_some()).map(mean).collect(),
            warnings: &report.warnings,
            items,
            gate: report.gate.as_ref().filter(|gate| !gate.checks.is_empty()),
        }
    }
}

/// The JSON Schema of [`Means`].
#[must_use]
pub fn schema() -> Value {
    schemars::schema_for!(Means<'static>).to_value()
}
