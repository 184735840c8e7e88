//! The settings of a live agent.

use std::path::PathBuf;

use karat_io::time::Time;
use serde::{Deserialize, Deserializer, Serialize};

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
    /// The time. Earlier recordings have a number of seconds.
    #[serde(alias = "seconds", deserialize_with = "time_or_seconds")]
    pub agent_timeout: Time,
    /// The cost, by the prices of the model.
    pub cost: Option<f64>,
}

impl Default for Budget {
    /// 20 turns, 5 minutes.
    fn default() -> Self {
        Budget { turns: 20, tokens: None, agent_timeout: Time::from_secs(300), cost: None }
    }
}

/// Reads a time, or a number of seconds.
fn time_or_seconds<'de, D: Deserializer<'de>>(from: D) -> Result<Time, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Seconds(u64),
        Time(Time),
    }
    Ok(match Written::deserialize(from)? {
        Written::Seconds(seconds) => Time::from_secs(seconds),
        Written::Time(time) => time,
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_budget_is_written_with_its_unit_and_was_a_number_of_seconds() {
        let read = |text: &str| serde_json::from_str::<Budget>(text).unwrap().agent_timeout;
        assert_eq!(read(r#"{"seconds": 60}"#), Time::from_secs(60));
        assert_eq!(read(r#"{"agent_timeout": "1500ms"}"#), Time::from_millis(1500));
        assert!(serde_json::from_str::<Budget>(r#"{"agent_timeout": "60"}"#).is_err());
        let written = serde_json::to_value(Budget::default()).unwrap();
        assert_eq!(written["agent_timeout"], "5m");
    }
}
