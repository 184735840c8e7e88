//! The files of outcomes: one JSON line for each run of a task, and one for each task.

use std::collections::BTreeMap;
use std::path::Path;

use karat_io::input::{self, Format, InputError, Limits};
use serde::{Deserialize, Serialize};

/// The properties of a task by which slices are made.
pub(crate) type Tags = BTreeMap<String, String>;

/// One run of a task, as it was judged elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The task.
    pub task: String,
    /// The run, from 1; rows of a task without one are numbered in the order of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<u32>,
    /// True if the task was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success: Option<bool>,
    /// The verdict that the judge stated, where the benchmark counts another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stated: Option<bool>,
    /// The verdict of people, in addition to that of a judge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub human: Option<bool>,
    /// The failure outside the agent that ended the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The reason for the judgement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The tokens that were used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<f64>,
    /// The time that the run took, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ms: Option<f64>,
    /// The properties of the task, where no file of tasks gives them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: Tags,
}

impl Row {
    /// The outcome as far as it was measured: none if the run failed for a reason outside the agent.
    pub(crate) fn measured(&self) -> Option<bool> {
        self.stated.or(self.success).filter(|_| self.error.is_none())
    }

    /// The outcome as benchmarks count it: whatever is not a success is a failure.
    pub(crate) fn counted(&self) -> bool {
        self.success == Some(true)
    }
}

/// A task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// Its id.
    pub id: String,
    /// Its properties.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: Tags,
}

/// A figure that the source published, to be compared with the recomputed one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The system, as its report is named.
    pub report: String,
    /// The metric.
    pub metric: String,
    /// The slice, as `by=value`; none for the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice: Option<String>,
    /// The value.
    pub value: f64,
    /// The number of decimals that were published.
    pub decimals: u32,
}

/// The longest text of an error or a reason that is kept, in columns.
const KEPT: usize = 300;

/// A text from outside, short enough to be kept for each run.
pub(crate) fn clipped(text: &str) -> String {
    karat_io::text::clip(text, KEPT).into_owned()
}

/// The runs of every task, by its id, each task's in order.
///
/// # Errors
/// If a row is not valid, or a run is listed twice.
pub(crate) fn read(path: &Path, bytes: &[u8]) -> Result<BTreeMap<String, Vec<Row>>, InputError> {
    let name = path.to_string_lossy();
    let limits = Limits::default();
    let rows: Vec<Row> = input::parse_bytes(&name, bytes, Format::JsonLines, &limits)?;
    let mut tasks: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for (at, row) in rows.into_iter().enumerate() {
        let wrong = |message: String| InputError::invalid(path, format!("row {}", at + 1), message);
        if row.task.is_empty() {
            return Err(wrong("`task` is empty".to_owned()));
        }
        if row.success.is_none() && row.error.is_none() {
            let message = format!("task {:?} has neither `success` nor `error`", row.task);
            return Err(wrong(message));
        }
        let known = tasks.entry(row.task.clone()).or_default();
        if row.trial.is_some() && known.iter().any(|other| other.trial == row.trial) {
            let (task, trial) = (&row.task, row.trial.unwrap_or_default());
            return Err(wrong(format!("trial {trial} of task {task:?} is listed twice")));
        }
        known.push(row);
    }
    for rows in tasks.values_mut() {
        rows.sort_by_key(|row| row.trial);
    }
    Ok(tasks)
}
