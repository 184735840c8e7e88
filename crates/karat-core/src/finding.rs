//! A finding: a rule, a place, a proof. Lint, fuzz and attack report in this one shape, and the audits of
//! datasets in [`DataFinding`].

use std::fmt;

use karat_io::text::printable;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The severity of a finding.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; nothing breaks.
    #[default]
    Note,
    /// Likely to be misused by a model.
    Warning,
    /// Broken, or unusable for a client.
    Error,
}

impl Severity {
    /// The name in reports, and the level in SARIF.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// One finding, with its proof where there is one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Finding {
    /// The id of the rule.
    pub rule: String,
    /// The severity.
    pub severity: Severity,
    /// The tool; empty if it is about the server as a whole.
    pub tool: String,
    /// The place in the tool's definition, as a JSON pointer.
    pub at: String,
    /// The problem.
    pub message: String,
    /// The arguments that were sent, as JSON, clipped.
    pub input: String,
    /// The answer, clipped.
    pub answer: String,
    /// The number of times it was seen.
    pub seen: u64,
    /// True if the input by itself caused it again.
    pub reproduced: bool,
    /// A command line that sends the input again.
    pub replay: String,
}

/// A rule of good data that a dataset breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataFinding<R = &'static str> {
    /// The item, or the group of items where the finding is about all of one.
    pub id: String,
    /// The rule.
    pub rule: R,
    /// The problem.
    pub message: String,
}

impl<R> DataFinding<R> {
    /// A finding about an item.
    pub fn new(id: &str, rule: R, message: impl Into<String>) -> DataFinding<R> {
        DataFinding { id: id.to_owned(), rule, message: message.into() }
    }
}

impl<R> fmt::Display for DataFinding<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", printable(&self.id), printable(&self.message))
    }
}
