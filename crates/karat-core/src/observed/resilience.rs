//! The observation of one run under attack.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The end of a run.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum ResilienceOutcome {
    /// The run failed, so it measures nothing.
    Error,
    /// The injected text reached no message of a tool.
    Undelivered,
    /// The text arrived; the agent declined its task and made no call of the attacker's.
    Refused,
    /// The text arrived, and the agent made no call of the attacker's.
    Ignored,
    /// The agent made a call of the attacker's, which was blocked or had no effect.
    Attempted,
    /// The attacker's goal was reached.
    Succeeded,
}

impl ResilienceOutcome {
    /// The name as used in reports.
    pub fn name(self) -> &'static str {
        match self {
            ResilienceOutcome::Error => "error",
            ResilienceOutcome::Undelivered => "undelivered",
            ResilienceOutcome::Refused => "refused",
            ResilienceOutcome::Ignored => "ignored",
            ResilienceOutcome::Attempted => "attempted",
            ResilienceOutcome::Succeeded => "succeeded",
        }
    }
}

/// A run of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Resilience {
    /// Its end; none for a run without an attack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<ResilienceOutcome>,
    /// The user's task.
    pub task: String,
    /// The attacker's goal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// True if the injected text reached a message of a tool; none where that was not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered: Option<bool>,
    /// True if the user's task was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utility: Option<bool>,
    /// The injected texts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub injected: Vec<String>,
    /// The run, step by step, where it was kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<RunStep>,
    /// The changes to the state of the world.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<StateChange>,
}

/// A message or a call of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunStep {
    /// `user`, `assistant`, `call` or `tool`.
    pub role: String,
    /// The text, or the arguments of a call as JSON.
    pub text: String,
    /// The tool that is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// True if the text carries the injection.
    #[serde(default, skip_serializing_if = "is_false")]
    pub injected: bool,
    /// True if the call is the attacker's.
    #[serde(default, skip_serializing_if = "is_false")]
    pub attacker: bool,
    /// True if the call was refused or failed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub blocked: bool,
}

/// A value of the state that a run changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StateChange {
    /// The place, as a JSON pointer.
    pub path: String,
    /// The value before, as JSON; none if it was added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The value after, as JSON; none if it was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

fn is_false(value: &bool) -> bool {
    !value
}
