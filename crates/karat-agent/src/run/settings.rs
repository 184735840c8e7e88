//! The settings of a live agent.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::model::Model;
use crate::trace::Setting;

/// The settings of a live agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Files of tasks.
    pub tasks: Vec<PathBuf>,
    /// The models, all at one endpoint; without one, the scripted agent follows the plans of the tasks.
    #[serde(default)]
    pub models: Vec<Model>,
    /// The environment variable with the key of the endpoint.
    pub key_env: Option<String>,
    /// The settings in which each task is run.
    #[serde(default)]
    pub settings: Vec<Setting>,
    /// Servers that do not help, for [`Setting::Distractors`].
    #[serde(default)]
    pub distractors: Vec<String>,
    /// The limits of one run.
    #[serde(default)]
    pub budget: Budget,
    /// The system prompt.
    pub system: Option<String>,
    /// A file of MCP servers.
    pub servers: Option<PathBuf>,
    /// The file for the recording.
    pub record: PathBuf,
    /// A recording to replay instead of running anything.
    pub replay: Option<PathBuf>,
    /// The file for the traces.
    pub traces: PathBuf,
}

/// The limits of one run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Budget {
    /// The number of times that the model is asked.
    pub turns: u32,
    /// The number of tokens.
    pub tokens: Option<u64>,
    /// The time in seconds.
    pub seconds: u64,
    /// The cost, by the prices of the model.
    pub cost: Option<f64>,
}

impl Default for Budget {
    /// 20 turns, 5 minutes.
    fn default() -> Self {
        Budget { turns: 20, tokens: None, seconds: 300, cost: None }
    }
}

impl Config {
    /// The settings without what is of this machine alone: a recording makes the same runs elsewhere.
    pub(super) fn without_surroundings(&self) -> Config {
        let no_address = |model: &Model| Model { endpoint: String::new(), ..model.clone() };
        Config {
            tasks: Vec::new(),
            models: self.models.iter().map(no_address).collect(),
            key_env: None,
            servers: None,
            record: PathBuf::new(),
            replay: None,
            traces: PathBuf::new(),
            ..self.clone()
        }
    }
}
