//! The evaluation of a live agent: tasks × models × settings × runs over live MCP servers.
//!
//! An agent is a model behind an endpoint, or a plan in the task. Each run of a task is one question,
//! and its trace is the answer, so that an interrupted evaluation resumes from the journal. Every
//! exchange is recorded; a recording makes the same runs again without a model or a server.

mod conversation;
mod model;
mod offer;
mod recording;
mod settings;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use karat_core::dataset::Digest;
use karat_core::error::EvalError;
use karat_core::evaluation::{
    Common, Entry, Evaluation, Observations, Questions, RunContext, Scored, Start,
};
use karat_core::journal::{Entry as Outcome, Outcome as Kept};
use karat_core::kind::Kind;
use karat_core::project::Root;
use karat_core::report::{DatasetRef, SystemRef};
use karat_core::run::{Options, System};
use karat_io::Failure;
use karat_io::input::write_atomic;
use karat_mcp::config;
use serde_json::{Value, json};

use self::conversation::Conversation;
pub use self::model::{Api, Model};
use self::recording::{Head, Recorder, Recording};
pub use self::settings::{Budget, Config};
pub use self::world::Starter;
pub(crate) use self::world::ask;
use self::world::{Mismatch, Server, World};
use crate::metric::CallMetric;
use crate::report::Scoring;
use crate::scored::{Keep, ScoredSet};
use crate::scores::TraceScorer;
use crate::task_digest::canonical;
use crate::tasks::{Task, Tasks};
use crate::tools::Tools;
use crate::trace::{Setting, Trace};
use crate::trace_set::TraceSet;
use crate::traces::score_set;

/// The evaluation of a live agent.
pub struct AgentRun;

/// The tasks, and the servers that they may name.
pub struct RunData {
    tasks: Tasks,
    reference: DatasetRef,
    servers: Option<config::Servers>,
    builtin: BTreeMap<String, Starter>,
}

impl RunData {
    /// Adds a server that needs no configuration; one of the same name in the file of servers goes
    /// first.
    #[must_use]
    pub fn with_server(mut self, name: &str, start: Starter) -> Self {
        self.builtin.insert(name.to_owned(), start);
        self
    }
}

/// A task to be run with a model in a setting.
#[derive(Clone, Debug)]
pub struct Job {
    task: Arc<Task>,
    model: Arc<Model>,
    setting: Setting,
}

impl Job {
    /// The key of a run in a recording; `run` counts from 1.
    fn key(&self, run: u32) -> Value {
        json!({"id": self.task.id, "model": self.model.name, "setting": self.setting, "run": run})
    }
}

/// An agent that is asked to do tasks.
pub struct Agent {
    config: Config,
    world: World,
    recorder: Option<Recorder>,
    resume: bool,
}

impl Agent {
    async fn run(&self, run: u32, job: &Job) -> Result<Trace, String> {
        let key = job.key(run);
        let connection = self.world.connect(&key);
        let mut conversation = Conversation::new(job, run, &self.config, connection);
        // Boxed: the future of a whole conversation is too large to be part of others.
        let trace = Box::pin(conversation.hold()).await;
        let exchanges = conversation.connection.close().await;
        let trace = trace.map_err(|Mismatch(message)| message)?;
        if let Some(recorder) = &self.recorder {
            recorder.write(&key, &exchanges)?;
        }
        Ok(trace)
    }
}

impl System for Agent {
    type Question = Job;
    type Answer = Trace;

    async fn ask(&self, run: u32, job: &Job) -> Result<Trace, Failure> {
        self.run(run + 1, job).await.map_err(Failure::lost)
    }
}

/// The settings and the number of runs that a recording was made with.
///
/// # Errors
/// If the file is not a recording, or one that does not hold them.
pub fn recorded(path: &Path) -> Result<(Config, u32), EvalError> {
    let Head { config, runs, .. } = Head::load(path)?;
    Ok((config.unwrap_or_default(), runs.max(1)))
}

impl Config {
    /// The models; the scripted agent if none is named.
    fn agents(&self) -> Vec<Arc<Model>> {
        match self.models.is_empty() {
            true => vec![Arc::new(Model::scripted())],
            false => self.models.iter().cloned().map(Arc::new).collect(),
        }
    }

    /// Every task with every model in every setting, by id.
    fn jobs(&self, tasks: &Tasks) -> Result<Questions<AgentRun>, EvalError> {
        let agents = self.agents();
        let mut jobs = Vec::new();
        for task in tasks.iter() {
            let task = Arc::new(task.clone());
            if task.inputs.is_empty() {
                return Err(EvalError::config(format!("task {:?} has no input", task.id)));
            }
            for model in &agents {
                if model.api == Api::Scripted && task.plan.is_none() {
                    return Err(EvalError::config(format!(
                        "task {:?} has no plan for the scripted agent; name a model with --endpoint, \
                         or add a plan",
                        task.id
                    )));
                }
                for setting in &self.settings {
                    let mut id = task.id.clone();
                    if agents.len() > 1 {
                        id.push_str(&format!("@{}", model.name));
                    }
                    if *setting != Setting::WithTools {
                        id.push_str(&format!("/{}", setting.name()));
                    }
                    let (task, model) = (Arc::clone(&task), Arc::clone(model));
                    jobs.push((id, Arc::new(Job { task, model, setting: *setting })));
                }
            }
        }
        Ok(jobs)
    }

    /// The servers that tasks and distractors name.
    fn servers(&self, data: &RunData) -> Result<BTreeMap<String, Server>, EvalError> {
        let mut known = BTreeMap::new();
        let named = data.tasks.iter().flat_map(|task| &task.servers).chain(&self.distractors);
        for name in named {
            let file = data.servers.as_ref();
            let file = file.filter(|file| file.names().any(|known| known == name));
            let server = match (file, data.builtin.get(name)) {
                (Some(file), _) => Server::Spec(Box::new(file.server(name)?)),
                (None, Some(start)) => Server::Builtin(Arc::clone(start)),
                (None, None) => {
                    return Err(EvalError::config(format!(
                        "no server {name:?}; name a config file that has it with --config (demo is built in)"
                    )));
                }
            };
            known.insert(name.clone(), server);
        }
        Ok(known)
    }

    /// The agent as reports name it: everything that the measurement depends on, and not the address.
    fn reference(&self) -> SystemRef {
        let agents = self.agents();
        let names: Vec<&str> = agents.iter().map(|model| model.name.as_str()).collect();
        let settings: Vec<&str> = self.settings.iter().map(|setting| setting.name()).collect();
        let Budget { turns, tokens, agent_timeout, cost } = self.budget;
        let mut all = BTreeMap::from([
            ("settings".to_owned(), settings.join(", ")),
            ("max_turns".to_owned(), turns.to_string()),
            ("max_seconds".to_owned(), agent_timeout.0.as_secs_f64().to_string()),
        ]);
        let mut set = |name: &str, value: Option<String>| {
            all.extend(value.map(|value| (name.to_owned(), value)));
        };
        set("max_tokens", tokens.map(|tokens| tokens.to_string()));
        set("max_cost", cost.map(|cost| cost.to_string()));
        set("distractors", (!self.distractors.is_empty()).then(|| self.distractors.join(", ")));
        set("prompt", self.system.as_ref().map(|text| Digest::of(text.as_bytes()).to_string()));
        if let Some(model) = self.models.first() {
            set("answer_tokens", Some(model.max_tokens.to_string()));
            set("temperature", Some(model.temperature.to_string()));
            set("seed", model.seed.map(|seed| seed.to_string()));
        }
        SystemRef { kind: "agent".to_owned(), name: names.join(", "), version: None, settings: all }
    }
}

impl Evaluation for AgentRun {
    const KIND: Kind = Kind::Traces;
    const TABLE: &'static str = "agent_run";
    const TAKES: &'static [&'static str] =
        &["runs", "concurrency", "timeout_ms", "retries", "backoff_ms"];
    const ITEMS: &'static str = "runs";

    type Config = Config;
    type Dataset = RunData;
    type System = Agent;
    type Facts = ();

    fn check(config: &Config, _: &mut Common) -> Result<(), EvalError> {
        let mut named = BTreeSet::new();
        if let Some(twice) = config.models.iter().find(|model| !named.insert(&model.name)) {
            return Err(EvalError::config(format!("the model {:?} is named twice", twice.name)));
        }
        if config.settings.is_empty() {
            return Err(EvalError::config("name at least one setting"));
        }
        if config.settings.contains(&Setting::Distractors) && config.distractors.is_empty() {
            return Err(EvalError::config("the setting distractors needs a --distractor"));
        }
        Ok(())
    }

    fn load(config: &Config, _: &Common, root: &Root<'_>) -> Result<RunData, EvalError> {
        if let (Some(replay), true) = (&config.replay, config.tasks.is_empty()) {
            let path = root.path(replay);
            let head = Head::load(&path)?;
            return Ok(RunData {
                tasks: head.tasks(&path)?,
                reference: head.dataset,
                servers: None,
                builtin: BTreeMap::new(),
            });
        }
        let files: Vec<PathBuf> = config.tasks.iter().map(|file| root.path(file)).collect();
        let tasks = Tasks::load(&files)?;
        let name = files.first().and_then(|file| file.file_stem()).unwrap_or_default();
        let servers = config.servers.as_ref().map(|file| config::read(&root.path(file)));
        Ok(RunData {
            reference: DatasetRef {
                id: name.to_string_lossy().into_owned(),
                version: "tasks".to_owned(),
                digest: tasks.digest.map(|digest| digest.to_string()).unwrap_or_default(),
            },
            tasks,
            servers: servers.transpose()?,
            builtin: BTreeMap::new(),
        })
    }

    fn reference(data: &RunData) -> DatasetRef {
        data.reference.clone()
    }

    fn reads(config: &Config) -> Vec<PathBuf> {
        config.tasks.iter().chain(&config.servers).chain(&config.replay).cloned().collect()
    }

    async fn start(
        entry: &Entry<AgentRun>,
        context: &RunContext<'_>,
    ) -> Result<Start<AgentRun>, EvalError> {
        let Entry { common, config, data } = entry;
        let jobs = config.jobs(&data.tasks)?;
        let reference = config.reference();
        if let Some(path) = &config.replay {
            let world = World::Replay(Recording::load(path)?);
            let agent = Agent { config: config.clone(), world, recorder: None, resume: false };
            let outcomes = replay(&agent, &jobs, common.runs).await?;
            write_traces(config, &outcomes)?;
            return Ok(Start::Recorded { outcomes, reference, runs: common.runs });
        }
        let api = config.models.first().map_or(Api::Scripted, |model| model.api);
        let world = World::Live {
            servers: config.servers(data)?,
            client: Box::new(api.client(config.key_env.as_deref(), common.timeout())?),
            options: common.options(),
            folder: context.folder.to_owned(),
        };
        let head = Head::new(config, common.runs, &data.tasks, &data.reference);
        let recorder = Some(Recorder::new(config.record.clone(), head));
        let agent = Agent { config: config.clone(), world, recorder, resume: context.resume };
        Ok(Start::Live { system: Arc::new(agent), reference })
    }

    /// Runs that failed are made again when an evaluation is resumed.
    fn questions(
        entry: &Entry<AgentRun>,
        agent: &Agent,
        known: &mut Vec<Outcome<Trace>>,
    ) -> Result<Questions<AgentRun>, EvalError> {
        let jobs = entry.config.jobs(&entry.data.tasks)?;
        let by_id: BTreeMap<&str, &Job> =
            jobs.iter().map(|(id, job)| (id.as_str(), &**job)).collect();
        let made = |outcome: &Outcome<Trace>| matches!(&outcome.outcome, Kept::Answer(trace) if trace.failed.is_none());
        known.retain(made);
        let keys: BTreeSet<String> = known
            .iter()
            .filter_map(|outcome| {
                Some(canonical(&by_id.get(outcome.id.as_str())?.key(outcome.run + 1)))
            })
            .collect();
        if let Some(recorder) = &agent.recorder {
            recorder.open(agent.resume.then_some(&keys))?;
        }
        Ok(jobs)
    }

    /// A run has no time limit and no retries but its own: requests to a model are retried, servers and
    /// calls have limits, and the budget ends the rest.
    fn options(entry: &Entry<AgentRun>) -> Options {
        Options { timeout: Duration::MAX, retries: 0, ..entry.common.options() }
    }

    async fn finish(
        entry: &Entry<AgentRun>,
        _: &Agent,
        _: &Questions<AgentRun>,
        outcomes: &mut Vec<Outcome<Trace>>,
    ) -> Result<(), EvalError> {
        write_traces(&entry.config, outcomes)
    }

    fn unusable(_: &Entry<AgentRun>, _: &str, trace: &Trace) -> Option<String> {
        trace.failed.as_ref().map(|failed| format!("{}: {}", failed.class, failed.message))
    }

    fn score(observed: &Observations<'_, AgentRun>) -> Result<Scored, EvalError> {
        let Entry { common, data, .. } = observed.entry;
        let traces = traces(observed.outcomes).cloned().collect();
        let set = TraceSet::made(traces, &data.tasks, &data.reference.id);
        let (tools, metrics) = (Tools::default(), CallMetric::usual());
        let set = ScoredSet::of(set, &TraceScorer::new(&tools, &metrics), Keep::Scores);
        score_set(&Scoring {
            set: &set,
            tools: &tools,
            metrics: &metrics,
            verdicts: None,
            before: None,
            seed: common.seed,
        })
    }
}

/// Makes every run from a recording.
async fn replay(
    agent: &Agent,
    jobs: &Questions<AgentRun>,
    runs: u32,
) -> Result<Vec<Outcome<Trace>>, EvalError> {
    let mut outcomes = Vec::new();
    for run in 0..runs {
        for (id, job) in jobs {
            let trace = agent.run(run + 1, job).await.map_err(EvalError::config)?;
            outcomes.push(Outcome { run, id: id.clone(), nanos: 0, outcome: Kept::Answer(trace) });
        }
    }
    Ok(outcomes)
}

fn traces(outcomes: &[Outcome<Trace>]) -> impl Iterator<Item = &Trace> {
    outcomes.iter().filter_map(|outcome| match &outcome.outcome {
        Kept::Answer(trace) => Some(trace),
        Kept::Failure { .. } => None,
    })
}

/// Writes the traces, sorted.
fn write_traces(config: &Config, outcomes: &[Outcome<Trace>]) -> Result<(), EvalError> {
    let mut all: Vec<&Trace> = traces(outcomes).collect();
    all.sort_by(|a, b| a.key().cmp(&b.key()));
    let lines: String = all.iter().map(|trace| trace.to_line() + "\n").collect();
    Ok(write_atomic(&config.traces, lines.as_bytes())?)
}
