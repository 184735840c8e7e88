//! The settings of a load: the calls, the pace, and how long it lasts.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use karat_core::error::EvalError;
use karat_mcp::{Recorder, ServerSpec};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::condition::Condition;
use karat_io::time::Time;

/// The calls at once if nothing is given.
const CONCURRENCY: usize = 8;
/// The rate at which the search for the highest one begins.
const FIRST_RATE: f64 = 10.0;
/// The duration of a measurement if none is given, and of each step of a search.
const DURATION: Duration = Duration::from_secs(10);
const STEP_DURATION: Duration = Duration::from_secs(5);

/// A `[[load]]` entry, apart from the settings that all entries share.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The server; without one, the one that the suite names.
    pub server: Option<ServerSpec>,
    /// A built-in server instead: `demo`.
    pub builtin: Option<String>,
    /// A suite whose cases are the mix of calls.
    pub suite: Option<PathBuf>,
    /// The tags of the cases; all cases if empty.
    pub tags: Vec<String>,
    /// The one tool to call, instead of a suite.
    pub tool: Option<String>,
    /// Its arguments.
    pub input: Map<String, Value>,
    /// The calls under way at any time (closed loop).
    pub concurrency: Option<usize>,
    /// The calls that begin in a second, whether or not earlier ones were answered (open loop).
    pub rate: Option<f64>,
    /// The sessions: processes of a server over stdio, connections over HTTP.
    pub connections: usize,
    /// The time over which the load grows to its full size.
    pub ramp: Time,
    /// The time that is measured; of each step where a maximum is searched for.
    pub duration: Option<Time>,
    /// The number of calls that are measured, instead of a time.
    pub count: Option<u64>,
    /// The time or number of calls at the start that is not measured.
    pub warm_up: Length,
    /// The condition whose highest load is searched for, such as `p99<200ms`.
    pub find_max: Option<Condition>,
    /// Records every message; only a command sets it, never a project.
    #[serde(skip)]
    pub recorder: Option<Recorder>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            server: None,
            builtin: None,
            suite: None,
            tags: Vec::new(),
            tool: None,
            input: Map::new(),
            concurrency: None,
            rate: None,
            connections: 1,
            ramp: Time::default(),
            duration: None,
            count: None,
            warm_up: Length::Time(Duration::from_secs(1)),
            find_max: None,
            recorder: None,
        }
    }
}

/// The pace of calls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Shape {
    /// This many calls are under way at any time.
    Closed { concurrency: usize },
    /// This many calls begin in a second, whether or not earlier ones were answered.
    Open { rate: f64 },
}

/// A time, or a number of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub enum Length {
    /// A time.
    Time(Duration),
    /// A number of calls.
    Calls(u64),
}

impl FromStr for Length {
    type Err = String;

    fn from_str(text: &str) -> Result<Length, String> {
        match text.trim().parse() {
            Ok(calls) => Ok(Length::Calls(calls)),
            Err(_) => text.parse().map(|Time(time)| Length::Time(time)),
        }
    }
}

impl TryFrom<Value> for Length {
    type Error = String;

    fn try_from(value: Value) -> Result<Length, String> {
        match (value.as_u64(), value.as_str()) {
            (Some(calls), _) => Ok(Length::Calls(calls)),
            (None, Some(text)) => text.parse(),
            (None, None) => Err("write a time such as \"2s\", or a number of calls".to_owned()),
        }
    }
}

impl std::fmt::Display for Length {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Length::Time(time) => write!(f, "{} s", time.as_secs_f64()),
            Length::Calls(count) => write!(f, "{count} calls"),
        }
    }
}

/// The pace and length of a load.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// The pace; the one to begin with where a maximum is searched for.
    pub(super) shape: Shape,
    pub(super) connections: usize,
    pub(super) ramp: Duration,
    pub(super) length: Length,
    pub(super) warm_up: Length,
    pub(super) find_max: Option<Condition>,
}

impl Config {
    /// The pace and length, checked.
    ///
    /// # Errors
    /// If the settings contradict each other or are out of range.
    pub(super) fn plan(&self) -> Result<Plan, EvalError> {
        let wrong = |message: &str| Err(EvalError::config(message));
        if self.suite.is_some() == self.tool.is_some() {
            return wrong("give either `suite` or `tool`");
        }
        if self.tool.is_none() && !self.input.is_empty() {
            return wrong("`input` needs `tool`");
        }
        let shape = match (self.concurrency, self.rate) {
            (Some(_), Some(_)) => return wrong("give `concurrency` or `rate`, not both"),
            (_, Some(rate)) if !(rate > 0.0 && rate <= 1e6) => {
                return wrong("`rate` must be above 0 and at most 1000000");
            }
            (_, Some(rate)) => Shape::Open { rate },
            (Some(0), _) => return wrong("`concurrency` must be at least 1"),
            (Some(concurrency), _) => Shape::Closed { concurrency },
            (None, None) if self.find_max.is_some() => Shape::Open { rate: FIRST_RATE },
            (None, None) => Shape::Closed { concurrency: CONCURRENCY },
        };
        let length = match (self.duration, self.count) {
            (Some(_), Some(_)) => return wrong("give `duration` or `count`, not both"),
            (Some(Time(time)), None) => Length::Time(time),
            (None, Some(count)) => Length::Calls(count),
            (None, None) if self.find_max.is_some() => Length::Time(STEP_DURATION),
            (None, None) => Length::Time(DURATION),
        };
        if [Length::Calls(0), Length::Time(Duration::ZERO)].contains(&length) {
            return wrong("`duration` or `count` must be more than 0");
        }
        if self.connections == 0 {
            return wrong("`connections` must be at least 1");
        }
        Ok(Plan {
            shape,
            connections: self.connections,
            ramp: self.ramp.0,
            length,
            warm_up: self.warm_up,
            find_max: self.find_max.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn plan(settings: Value) -> Result<Plan, String> {
        let config: Config = serde_json::from_value(settings).map_err(|error| error.to_string())?;
        config.plan().map_err(|error| error.to_string())
    }

    #[test]
    fn the_pace_and_the_length_have_defaults() {
        let usual = plan(json!({"tool": "t"})).unwrap();
        assert_eq!(usual.shape, Shape::Closed { concurrency: 8 });
        assert_eq!(usual.length.to_string(), "10 s");
        let search = plan(json!({"tool": "t", "find_max": "p99<1s", "warm_up": 20})).unwrap();
        assert_eq!(search.shape, Shape::Open { rate: 10.0 });
        assert_eq!(
            (search.length, search.warm_up),
            (Length::Time(STEP_DURATION), Length::Calls(20))
        );
    }

    #[test]
    fn contradictions_and_values_out_of_range_are_refused() {
        for wrong in [
            json!({}),
            json!({"tool": "t", "suite": "s.yaml"}),
            json!({"suite": "s.yaml", "input": {"a": 1}}),
            json!({"tool": "t", "rate": 5.0, "concurrency": 5}),
            json!({"tool": "t", "rate": 0.0}),
            json!({"tool": "t", "concurrency": 0}),
            json!({"tool": "t", "connections": 0}),
            json!({"tool": "t", "count": 0}),
            json!({"tool": "t", "duration": "0s"}),
            json!({"tool": "t", "duration": "ten"}),
            json!({"tool": "t", "duration": "1s", "count": 5}),
            json!({"tool": "t", "find_max": "fast"}),
            json!({"tool": "t", "speed": 5}),
        ] {
            assert!(plan(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
