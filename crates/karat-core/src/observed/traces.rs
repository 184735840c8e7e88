//! A task as an agent worked on it, and two runs of a task side by side.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One run of a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Traces {
    /// The user's request, clipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// The agent's answer, clipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// The calls that were made; the first of them.
    #[serde(default)]
    pub calls: Vec<ShownCall>,
    /// The number of calls that are not shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_calls: Option<usize>,
    /// The calls that were expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Vec<ShownExpectation>>,
    /// The alignment of `expected` and `calls`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<Step>>,
    /// Wrong tools and those that were expected in their place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub confusions: Vec<String>,
    /// The limit that ended the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// The difference from an earlier run of the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trajectory: Option<Trajectory>,
    /// Metrics without a value, and why.
    #[serde(default)]
    pub undefined: BTreeMap<String, String>,
}

/// A call as it is shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShownCall {
    /// The tool, with its server where that is known.
    pub name: String,
    /// The arguments: an object, or clipped text if they are long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// Arguments that are not a JSON object, clipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_json: Option<String>,
    /// The error that the call ended with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// An expected call as it is shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShownExpectation {
    /// The tool, with its server where that is known.
    pub name: String,
    /// The accepted values of each argument, as text.
    #[serde(default)]
    pub accepts: BTreeMap<String, String>,
    /// True if the call may be left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

/// The place of one call in an alignment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Step {
    /// The same call, in the same order.
    Same {
        /// The tool.
        tool: String,
        /// Its place on the first side, from 1.
        from: usize,
        /// Its place on the second side.
        to: usize,
    },
    /// The same tool with other arguments.
    Changed {
        /// The tool.
        tool: String,
        /// Its place on the first side, from 1.
        from: usize,
        /// Its place on the second side.
        to: usize,
        /// The arguments that differ.
        arguments: Vec<Difference>,
    },
    /// A call on the second side only.
    Inserted {
        /// The tool.
        tool: String,
        /// Its place on the second side, from 1.
        at: usize,
    },
    /// A call on the first side only.
    Missing {
        /// The tool.
        tool: String,
        /// Its place on the first side, from 1.
        at: usize,
    },
    /// An optional expected call that was not made.
    LeftOut {
        /// The tool.
        tool: String,
        /// Its place among the expected calls, from 1.
        at: usize,
    },
    /// The same call at another place.
    Moved {
        /// The tool.
        tool: String,
        /// Its place on the first side, from 1.
        from: usize,
        /// Its place on the second side.
        to: usize,
    },
}

/// An argument that differs; none on a side that does not give it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// The argument.
    pub name: String,
    /// Its value on the first side, as JSON.
    #[serde(default)]
    pub before: Option<String>,
    /// Its value on the second side, as JSON.
    #[serde(default)]
    pub after: Option<String>,
}

/// Two runs of one task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trajectory {
    /// The task.
    #[serde(default)]
    pub id: String,
    /// 0 for nothing in common, 1 for the same calls; none if they were not compared.
    #[serde(default)]
    pub similarity: Option<f64>,
    /// The reason for which they were not compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_compared: Option<String>,
    /// True if only the earlier set has the task; its similarity is then 0.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost: bool,
    /// The alignment of `before` and `after`.
    #[serde(default)]
    pub steps: Vec<Step>,
    /// True if the answers differ.
    #[serde(default)]
    pub answer_changed: bool,
    /// The user's request, clipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// The calls of the earlier run; the first of them.
    #[serde(default)]
    pub before: Vec<ShownCall>,
    /// The calls of the later run; the first of them.
    #[serde(default)]
    pub after: Vec<ShownCall>,
    /// The earlier and the later answer, where they differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<[Option<String>; 2]>,
}

impl Trajectory {
    /// Returns whether the calls are known to be the same.
    pub fn is_same(&self) -> bool {
        let same = self.steps.iter().all(|step| matches!(step, Step::Same { .. }));
        same && self.not_compared.is_none() && !self.lost
    }
}
