//! A tool and what generated inputs did to it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::finding::Finding;

/// One tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fuzz {
    /// The calls, counted.
    #[serde(default)]
    pub counts: FuzzCounts,
    /// Inputs by what they are for: `edge`, `boundary`, `type`, …
    #[serde(default)]
    pub inputs: BTreeMap<String, u64>,
    /// Calls by the class of their outcome.
    #[serde(default)]
    pub endings: BTreeMap<String, u64>,
    /// The findings, the most severe first.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// The reason for stopping early.
    #[serde(default)]
    pub stopped: Option<String>,
}

/// Calls to one tool, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FuzzCounts {
    /// Calls.
    pub calls: u64,
    /// Calls that were answered.
    pub answers: u64,
    /// Calls after which the server was gone.
    pub crashes: u64,
    /// Calls without an answer in time.
    pub hangs: u64,
    /// Answers that are results.
    pub results: u64,
    /// Results that break the protocol or the declared schema.
    pub invalid_results: u64,
    /// Answers that give away what they should not.
    pub leaks: u64,
    /// Answered inputs that match the schema.
    pub valid: u64,
    /// Of these, inputs that were not refused.
    pub valid_not_refused: u64,
    /// Of these, inputs that led to a success.
    pub valid_succeeded: u64,
    /// Answered inputs that do not match the schema.
    pub invalid: u64,
    /// Of these, inputs that were refused.
    pub invalid_refused: u64,
}
