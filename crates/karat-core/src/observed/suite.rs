//! A case of a suite and how its calls ended.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One case. Of several attempts, the call shown is that of the first that failed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Suite {
    /// The description of the case.
    #[serde(default)]
    pub about: Option<String>,
    /// The tool that is called.
    #[serde(default)]
    pub tool: String,
    /// The arguments, as JSON, clipped.
    #[serde(default)]
    pub arguments: Option<String>,
    /// The class of the outcome: `result`, `tool_error`, `protocol_error`, `timeout`, …
    #[serde(default)]
    pub ended: Option<String>,
    /// The answer, clipped.
    #[serde(default)]
    pub answer: Option<String>,
    /// The number of attempts.
    #[serde(default)]
    pub attempts: u64,
    /// The number of attempts that passed.
    #[serde(default)]
    pub passed: u64,
    /// Failed attempts by the class of their first failure.
    #[serde(default)]
    pub failures: BTreeMap<String, u64>,
    /// The reasons for which attempts failed; the first of them.
    #[serde(default)]
    pub reasons: Vec<String>,
    /// The number of reasons that are not listed.
    #[serde(default)]
    pub more_reasons: u64,
    /// Arguments that do not match the declared schema.
    #[serde(default)]
    pub input_problems: Vec<String>,
}
