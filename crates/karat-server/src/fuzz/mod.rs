//! Fuzzing: inputs generated from every input schema, and how the server handles them.
//!
//! [`Fuzz`] is the evaluation. `generate` makes inputs that are known to match or to violate their
//! schema, `fuzzer` sends them to a live server that is restarted when it fails, `judge` finds the flaws
//! of each answer, `shrink` finds a small input that fails in the same way, and `score` makes the
//! report. The same server, seed and number of inputs give the same calls in the same order.
//! Destructive tools are skipped unless the user allows them
//! (see `probe::destructive_tools`).

mod case;
mod causes;
mod coercion;
mod controls;
mod fuzzer;
pub mod generate;
mod heard;
mod judge;
mod leak;
mod place;
mod repair;
mod result;
mod rules;
mod score;
pub(crate) mod shape;
mod shrink;
mod texts;
pub(crate) mod values;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use karat_core::dataset::Digest;
use karat_core::error::EvalError;
use karat_core::evaluation::{
    Common, Computes, Entry, Evaluation, Observations, Questions, RenamedKey, RunContext, Scored,
    Start,
};
use karat_core::expect::paths;
use karat_core::journal::{Entry as Outcome, Outcome as Kept};
use karat_core::kind::Kind;
use karat_core::project::Root;
use karat_core::report::DatasetRef;
use karat_core::run::Options;
use karat_mcp::{Recorder, ServerSpec};
use serde::Deserialize;
use serde_json::{Map, Value};

pub use self::case::{Case, InputKind, Validity};
pub use self::fuzzer::Fuzzer;
pub use self::result::ToolResult;
pub use self::score::findings;
use crate::probe::known_inputs::Successes;
use crate::probe::live::{self, Facts};
use crate::probe::stop::StopRequest;
use crate::probe::waivers::Waiver;
use crate::probe::{self, FailOn, Rule};
use karat_io::time::Time;

/// The default time limit of a run.
pub const TIME_LIMIT: Duration = Duration::from_secs(300);
/// The default time limit for the inputs of one tool.
pub(crate) const TOOL_TIME_LIMIT: Duration = Duration::from_secs(30);

/// The fuzz evaluation.
pub struct Fuzz;

/// A `[[fuzz]]` entry, apart from the settings that all entries share.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The server.
    pub server: Option<ServerSpec>,
    /// A built-in server instead: `demo`.
    pub builtin: Option<String>,
    /// The number of inputs for each tool.
    pub inputs: usize,
    /// The tools to call; all if empty.
    pub tools: Vec<String>,
    /// Values that are known to work, by parameter name.
    pub set: Map<String, Value>,
    /// Recordings: the inputs of calls that succeeded there are used too.
    #[serde(deserialize_with = "paths")]
    pub recordings: Vec<PathBuf>,
    /// True if destructive tools are called too.
    pub allow_destructive: bool,
    /// The time after which the run ends with the results so far.
    pub time_limit: Option<Time>,
    /// The time for the inputs of one tool, and again for repeating and shrinking what was found.
    pub tool_time_limit: Option<Time>,
    /// The number of calls for shrinking one failing input.
    pub shrink_calls: usize,
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
}

impl Default for Config {
    fn default() -> Config {
        Config {
            server: None,
            builtin: None,
            inputs: 200,
            tools: Vec::new(),
            set: Map::new(),
            recordings: Vec::new(),
            allow_destructive: false,
            time_limit: Some(Time(TIME_LIMIT)),
            tool_time_limit: Some(Time(TOOL_TIME_LIMIT)),
            shrink_calls: 60,
            allow: Vec::new(),
            waive: Vec::new(),
            fail_on: FailOn::default(),
            recorder: None,
            stop: StopRequest::default(),
        }
    }
}

/// The recipe for the inputs.
pub struct Data {
    reference: DatasetRef,
    successes: Successes,
}

/// Every rule of fuzzing, the most important first.
pub fn rules() -> Vec<&'static Rule> {
    rules::RULES.to_vec()
}

impl Evaluation for Fuzz {
    const KIND: Kind = Kind::Fuzz;
    const TABLE: &'static str = "fuzz";
    const TAKES: &'static [&'static str] = &["timeout_ms", "start_timeout_ms"];
    const RENAMED: &'static [RenamedKey] = &[RenamedKey::new(&["cases"], &["inputs"])];
    const ITEMS: &'static str = "tools";

    type Config = Config;
    type Dataset = Data;
    type System = Fuzzer;
    type Facts = Facts;

    fn check(config: &Config, _: &mut Common) -> Result<(), EvalError> {
        if config.inputs == 0 {
            return Err(EvalError::config("`inputs` must be at least 1"));
        }
        live::target(config.server.as_ref(), config.builtin.as_deref(), None)?;
        let ids = rules::RULES.iter().map(|rule| rule.id);
        let waived: Vec<String> = config.waive.iter().map(|waiver| waiver.rule.clone()).collect();
        probe::check_known("waive", "rule", &waived, ids.clone())?;
        probe::check_known("allow", "rule", &config.allow, ids)
    }

    /// The data is the recipe for the inputs: what it makes of a changed server is comparable.
    fn load(config: &Config, common: &Common, root: &Root<'_>) -> Result<Data, EvalError> {
        let paths: Vec<PathBuf> = config.recordings.iter().map(|path| root.path(path)).collect();
        let successes = Successes::read(&paths)?;
        let mut recipe = format!("fuzz/1 seed {} cases {}\n", common.seed, config.inputs);
        if !config.set.is_empty() {
            recipe.push_str(&Value::Object(config.set.clone()).to_string());
        }
        recipe.push_str(&successes.as_text());
        let reference = DatasetRef {
            id: "schemas".to_owned(),
            version: format!("seed-{}", common.seed),
            digest: Digest::of(recipe.as_bytes()).to_string(),
        };
        Ok(Data { reference, successes })
    }

    fn reference(data: &Data) -> DatasetRef {
        data.reference.clone()
    }

    fn reads(config: &Config) -> Vec<PathBuf> {
        config.recordings.clone()
    }

    fn computes(_: &Config, _: &Data) -> Option<Computes> {
        let metrics = score::METRICS.to_vec();
        Some(Computes { metrics, slices: BTreeSet::new(), open: false })
    }

    fn whole(_: &Entry<Fuzz>) -> Option<&'static str> {
        Some("its tools share one server and one time limit")
    }

    async fn start(
        entry: &Entry<Fuzz>,
        context: &RunContext<'_>,
    ) -> Result<Start<Fuzz>, EvalError> {
        let (fuzzer, reference) = Fuzzer::start(entry, context).await?;
        Ok(Start::Live { system: Arc::new(fuzzer), reference })
    }

    fn questions(
        _: &Entry<Fuzz>,
        fuzzer: &Fuzzer,
        known: &mut Vec<Outcome<Option<ToolResult>>>,
    ) -> Result<Questions<Fuzz>, EvalError> {
        // A tool that was not reached, or not to its end, gets another turn.
        let is_complete = |outcome: &Outcome<Option<ToolResult>>| matches!(&outcome.outcome, Kept::Answer(Some(result)) if result.is_complete);
        known.retain(is_complete);
        let tools = fuzzer.tools.iter();
        Ok(tools.map(|tool| (tool.name().to_owned(), Arc::clone(tool))).collect())
    }

    fn options(_: &Entry<Fuzz>) -> Options {
        // Each call has its own time limit; a tool may take long.
        Options { timeout: Duration::MAX, ..Options::default() }
    }

    async fn finish(
        _: &Entry<Fuzz>,
        fuzzer: &Fuzzer,
        _: &Questions<Fuzz>,
        _: &mut Vec<Outcome<Option<ToolResult>>>,
    ) -> Result<Facts, EvalError> {
        Ok(fuzzer.finish().await)
    }

    fn score(observed: &Observations<'_, Fuzz>) -> Result<Scored, EvalError> {
        score::score(observed)
    }
}
