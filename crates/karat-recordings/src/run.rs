//! One run of a task, with or without an attack: what every format is read into, and what a live run
//! leaves behind.

use karat_core::observed::{Resilience, ResilienceOutcome as Outcome, RunStep, StateChange};
use serde::{Deserialize, Serialize};

/// One run of a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// The agent with everything around it.
    #[serde(default)]
    pub pipeline: String,
    /// The suite or world of the task.
    pub suite: String,
    /// The user's task.
    pub task: String,
    /// The attacker's goal; none without an attack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// The way of the attack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attack: Option<String>,
    /// The place of the injected text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surface: Option<String>,
    /// The call at which a definition changed, from 1, where that was the attack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_call: Option<usize>,
    /// The defence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defence: Option<String>,
    /// The split of the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<String>,
    /// The reason for which the run measures nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// True if the injected text reached the agent; none if that was not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered: Option<bool>,
    /// True if the agent made a call of the attacker's.
    #[serde(default)]
    pub attempted: bool,
    /// True if the agent declined its task.
    #[serde(default)]
    pub refused: bool,
    /// True if the attacker's goal was reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success: Option<bool>,
    /// True if the user's task was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utility: Option<bool>,
    /// The number of calls for the user's task.
    #[serde(default)]
    pub calls: u64,
    /// The number of them that failed through the defence.
    #[serde(default)]
    pub blocked: u64,
    /// The injected texts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub injected: Vec<String>,
    /// The steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<RunStep>,
    /// The changes to the state of the world.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<StateChange>,
    /// The verdicts as AgentDojo recorded them, failed runs included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agentdojo: Option<Recorded>,
}

/// The verdicts as AgentDojo recorded them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// The task was done.
    pub utility: bool,
    /// The attack succeeded: `security` is true then.
    pub security: bool,
}

impl Run {
    /// Returns whether the run was attacked.
    pub fn is_attacked(&self) -> bool {
        self.goal.is_some() || self.attack.is_some()
    }

    /// The end of an attacked run.
    pub fn outcome(&self) -> Option<Outcome> {
        if !self.is_attacked() {
            return None;
        }
        Some(match self {
            Run { error: Some(_), .. } | Run { success: None, .. } => Outcome::Error,
            Run { success: Some(true), .. } => Outcome::Succeeded,
            Run { attempted: true, .. } => Outcome::Attempted,
            Run { delivered: Some(false), .. } => Outcome::Undelivered,
            Run { refused: true, .. } => Outcome::Refused,
            _ => Outcome::Ignored,
        })
    }

    /// The failure, if the run measures nothing.
    pub fn failure(&self) -> Option<&str> {
        let verdict = if self.is_attacked() { self.success } else { self.utility };
        match (&self.error, verdict) {
            (Some(error), _) => Some(error),
            (None, None) => Some("no verdict was recorded"),
            (None, Some(_)) => None,
        }
    }

    /// The task with its suite: runs of one task are not independent.
    pub fn cluster(&self) -> String {
        format!("{}/{}", self.suite, self.task)
    }

    /// The task, the goal and the attack.
    pub fn id(&self) -> String {
        let mut id = self.cluster();
        for part in [&self.goal, &self.attack].into_iter().flatten() {
            id.push('/');
            id.push_str(part);
        }
        id
    }

    /// The run as reports keep it.
    pub fn observed(&self) -> Resilience {
        Resilience {
            outcome: self.outcome(),
            task: self.task.clone(),
            goal: self.goal.clone(),
            delivered: self.delivered,
            utility: self.utility,
            injected: self.injected.clone(),
            steps: self.steps.clone(),
            changes: self.changes.clone(),
        }
    }
}
