//! Systems by one metric, as a report holds them.

use karat_metrics::MetricId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::report::{DatasetRef, Interval};

/// Systems by one metric on the same data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Leaderboard {
    /// The data.
    pub dataset: DatasetRef,
    /// The metric.
    pub metric: MetricId,
    /// The slice that the table is about, as `by=value`; none for the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice: Option<String>,
    /// The systems, best first.
    pub rows: Vec<Standing>,
    /// Every pair of systems, the better one on their common items first.
    pub pairs: Vec<Pairing>,
}

impl Leaderboard {
    /// The name of a system as people know it, by that of its report.
    pub fn label<'a>(&'a self, name: &'a str) -> &'a str {
        self.rows.iter().find(|row| row.name == name).map_or(name, Standing::shown)
    }
}

impl Standing {
    /// The name of the system as people know it.
    pub fn shown(&self) -> &str {
        self.label.as_deref().unwrap_or(&self.name)
    }
}

/// The place of one system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Standing {
    /// The name of the report.
    pub name: String,
    /// The name of the system in the source of its outcomes, where the report cannot have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The value.
    pub value: f64,
    /// The number of items.
    pub n: u64,
    /// The interval of the value.
    pub interval: Option<Interval>,
    /// The best and the worst rank that the real differences allow.
    pub ranks: [usize; 2],
}

/// The comparison of two systems.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pairing {
    /// The system that is better on the items that both have a score for.
    pub better: String,
    /// The other one.
    pub worse: String,
    /// The size of the difference over the items that both have a score for.
    pub delta: Option<f64>,
    /// Its interval.
    pub interval: Option<Interval>,
    /// The two-sided p-value of the paired test.
    pub p_value: Option<f64>,
    /// The same after Holm's correction over all pairs.
    pub p_holm: Option<f64>,
    /// The test.
    pub test: Option<String>,
    /// The number of items.
    pub pairs: u64,
    /// The number of items on which the better system is better.
    pub wins: u64,
    /// The number of items on which it is worse.
    pub losses: u64,
    /// True if the corrected p-value is below 0.05.
    pub real: bool,
}
