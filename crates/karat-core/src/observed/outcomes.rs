//! The runs of a task that were judged elsewhere.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A task and its runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outcomes {
    /// The runs, in order.
    #[serde(default)]
    pub trials: Vec<Trial>,
}

/// One run of a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// True if the task was done, by the benchmark's own judgement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success: Option<bool>,
    /// The verdict of people, where it was recorded in addition to that of a judge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub human: Option<bool>,
    /// The failure outside the agent that ended the run; Karat does not measure such runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The reason for the judgement, clipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
