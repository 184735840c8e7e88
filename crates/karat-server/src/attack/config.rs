//! The settings of attacks.

use std::path::PathBuf;
use std::time::Duration;

use karat_core::expect::paths;
use karat_mcp::{Recorder, ServerSpec};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::attacks::Class;
use crate::probe::FailOn;
use crate::probe::stop::StopRequest;
use crate::probe::waivers::Waiver;
use karat_io::time::Time;

/// The default time limit of a run.
pub const TIME_LIMIT: Duration = Duration::from_secs(600);

/// An `[[attack]]` entry, apart from the settings that all entries share.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The server.
    pub server: Option<ServerSpec>,
    /// A built-in server instead: `demo`.
    pub builtin: Option<String>,
    /// The tools to attack; all if empty.
    pub tools: Vec<String>,
    /// Values that are known to work, by parameter name.
    pub set: Map<String, Value>,
    /// Recordings: attacks are put into inputs of calls that succeeded there.
    #[serde(deserialize_with = "paths")]
    pub recordings: Vec<PathBuf>,
    /// The classes of attacks; all if empty.
    pub classes: Vec<Class>,
    /// The attacks, by id; all if empty.
    pub cases: Vec<String>,
    /// The folders that the server may read; without any, those among the arguments of its command.
    pub roots: Vec<PathBuf>,
    /// The number of calls at once in a flood.
    pub flood: usize,
    /// True if destructive tools are called too.
    pub allow_destructive: bool,
    /// The time after which the run ends with the results so far.
    pub time_limit: Option<Time>,
    /// Rules that are not reported.
    pub allow: Vec<String>,
    /// Findings that are accepted until a day.
    pub waive: Vec<Waiver>,
    /// The mildest finding that fails the run.
    pub fail_on: FailOn,
    /// Records every message; only a command sets it, never a project.
    #[serde(skip)]
    pub recorder: Option<Recorder>,
    /// Ends the run with the results so far; only a command makes the request.
    #[serde(skip)]
    pub stop: StopRequest,
    /// The time limits of calls and of starts, in milliseconds, for command lines.
    #[serde(skip)]
    pub timeouts: Option<(u64, u64)>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            server: None,
            builtin: None,
            tools: Vec::new(),
            set: Map::new(),
            recordings: Vec::new(),
            classes: Vec::new(),
            cases: Vec::new(),
            roots: Vec::new(),
            flood: 200,
            allow_destructive: false,
            time_limit: Some(Time(TIME_LIMIT)),
            allow: Vec::new(),
            waive: Vec::new(),
            fail_on: FailOn::default(),
            recorder: None,
            stop: StopRequest::default(),
            timeouts: None,
        }
    }
}
