//! An entry of a threat corpus and what detectors reported about it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One entry as it was judged in the first run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdicts {
    /// Its label: `malicious` or `benign`.
    pub label: String,
    /// The name of the tool.
    #[serde(default)]
    pub name: String,
    /// The description, clipped.
    #[serde(default)]
    pub text: String,
    /// The tool result that the entry is about, clipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// The server instructions that the entry is about, clipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The earlier description, where the definition changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The input schema, where the attack is in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<String>,
    /// The author's reason for the label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// The verdict against the label; none if the entry was not judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<VerdictOutcome>,
    /// The verdict of each detector: `flag`, `pass`, `unsupported` or `error`.
    #[serde(default)]
    pub verdicts: BTreeMap<String, String>,
    /// The score of each detector that gives one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scores: BTreeMap<String, f64>,
    /// The findings of all detectors.
    #[serde(default)]
    pub findings: Vec<DetectorFinding>,
}

/// A verdict against the label.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum VerdictOutcome {
    /// An attack that was flagged.
    #[serde(rename = "true positive")]
    TruePositive,
    /// A benign entry that was flagged.
    #[serde(rename = "false positive")]
    FalsePositive,
    /// An attack that was not flagged.
    #[serde(rename = "false negative")]
    FalseNegative,
    /// A benign entry that was not flagged.
    #[serde(rename = "true negative")]
    TrueNegative,
    /// The system does not judge entries of this kind.
    #[serde(rename = "unsupported")]
    Unsupported,
    /// The system tried and failed.
    #[serde(rename = "error")]
    Error,
}

impl VerdictOutcome {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            VerdictOutcome::TruePositive => "true positive",
            VerdictOutcome::FalsePositive => "false positive",
            VerdictOutcome::FalseNegative => "false negative",
            VerdictOutcome::TrueNegative => "true negative",
            VerdictOutcome::Unsupported => "unsupported",
            VerdictOutcome::Error => "error",
        }
    }
}

/// One finding of a detector.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DetectorFinding {
    /// The detector.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detector: String,
    /// The rule.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rule: String,
    /// The severity, as the detector calls it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub severity: String,
    /// The detector's explanation.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The place in the definition.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub place: String,
    /// The text that caused it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub excerpt: String,
}
