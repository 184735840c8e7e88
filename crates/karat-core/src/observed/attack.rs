//! An attack on a tool.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One attack through one parameter of a tool, or an attack that applies to no tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Attack {
    /// A one-line description of the attack.
    #[serde(default)]
    pub about: String,
    /// The result.
    pub status: AttackStatus,
    /// The parameter in the tool's definition, as a JSON pointer.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub at: String,
    /// The number of attempts.
    #[serde(default)]
    pub attempts: u64,
    /// The attempt that broke the tool, or the last one.
    #[serde(default)]
    pub evidence: Option<AttackEvidence>,
    /// The reason where it was not tried or not judged.
    #[serde(default)]
    pub why: Option<String>,
    /// A command line that tries it again.
    #[serde(default)]
    pub again: String,
    /// Tools it does not apply to, by reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, Vec<String>>,
}

/// The result of an attack.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum AttackStatus {
    /// At least one attempt was answered, and no canary shows that it worked.
    Held,
    /// A canary proves that it worked.
    Broken,
    /// No parameter could carry it.
    NotApplicable,
    /// It worked, and preventing it is not the server's job alone.
    NotJudged,
    /// No attempt was answered.
    NotExecuted,
}

impl AttackStatus {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            AttackStatus::Held => "held",
            AttackStatus::Broken => "broken",
            AttackStatus::NotApplicable => "not_applicable",
            AttackStatus::NotJudged => "not_judged",
            AttackStatus::NotExecuted => "not_executed",
        }
    }
}

/// One attempt and what it proved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AttackEvidence {
    /// A description of the attempt.
    pub about: String,
    /// The arguments that were sent, clipped.
    pub sent: String,
    /// The answer, clipped.
    pub answer: String,
    /// The proof, or its absence.
    pub canary: String,
}
