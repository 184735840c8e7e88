//! The evaluation: an entry of recorded runs, or of worlds in which an agent works through a defence.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use karat_core::adapter::program;
use karat_core::dataset::{Contents, Digest, FilePath, Fingerprint};
use karat_core::error::EvalError;
use karat_core::evaluation::{
    Common, Computes, Entry, Evaluation, OPTIONAL_KEYS, Observations, Questions, RenamedKey,
    RunContext, Scored, Start, allowance, latencies,
};
use karat_core::expect::paths;
use karat_core::journal::{Entry as Outcome, Outcome as Kept};
use karat_core::kind::Kind;
use karat_core::project::{Root, own_datasets};
use karat_core::report::{Check, Control, DatasetRef, SystemRef, Verdict};
use karat_io::input::{Limits, Member, destination, write_atomic};
use karat_io::redact::Redactor;
use karat_io::text::first_few;
use karat_io::time::Time;
use karat_recordings::{self as recordings, Filter, Format, Reader, Recordings, Run};
use serde::{Deserialize, Serialize};

use crate::agents::{AgentKind, Planned};
use crate::controls;
use crate::defence::{DefenceConfig, Guard};
use crate::live::{Agent, Harness};
use crate::outside::{CommandAgent, ModelConfig};
use crate::replay;
use crate::route::{Route, Servers};
use crate::score;
use crate::set::{Case, Selection, WorldSet};

/// The evaluation of agents and defences under attack.
pub struct Resilience;

/// A `[[resilience]]` entry, apart from the settings that all entries share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Folders or archives of recorded runs, or files of the frozen dataset that `dataset` names.
    #[serde(deserialize_with = "paths")]
    pub recordings: Vec<PathBuf>,
    /// Their format.
    pub format: Option<Format>,
    /// The pipeline, if there are several.
    pub pipeline: Option<String>,
    /// Only these attacks.
    pub attacks: Vec<String>,
    /// Only these suites.
    pub suites: Vec<String>,
    /// Only the goals of this version of AgentDojo's benchmark.
    pub benchmark: Option<String>,
    /// A set of worlds, or `bundled:worlds/v1`; with recordings, the dataset that holds them.
    pub dataset: Option<String>,
    /// The agent that works in the worlds.
    pub agent: AgentKind,
    /// The command of an agent instead. In its words, `{prompt}` becomes the task, `{url}` the address
    /// of the MCP server, `{config}` a file that names it as most clients do, `{tasks}` a file with the
    /// task for `karat agent run`, and `{folder}` a folder for files of the run.
    pub agent_command: Vec<String>,
    /// A model as the agent, through `karat agent run`.
    pub model: Option<ModelConfig>,
    /// A recording whose calls are made again, instead of an agent.
    pub replay: Option<PathBuf>,
    /// The time that a program or a model has for a task; 300 s if not given.
    pub agent_timeout: Option<Time>,
    /// The defence between the agent and the worlds.
    pub defence: DefenceConfig,
    /// The cases that are of interest.
    pub select: Selection,
    /// The file for the runs, in the native format.
    pub record: Option<PathBuf>,
    /// The command that serves a case over stdio, for worlds without tools of their own; `--case ID`,
    /// `--state FILE` and, for an attack, `--text TEXT` are appended to it.
    pub server: Vec<String>,
}

/// The data of an entry: recorded runs of one pipeline, or cases to run.
#[derive(Default)]
pub struct Data {
    /// The name of the benchmark.
    pub id: String,
    /// Its version.
    pub version: String,
    /// The pipeline.
    pub pipeline: String,
    /// The runs.
    pub runs: Vec<Run>,
    /// Remarks for a careful reader.
    pub warnings: Vec<String>,
    /// The cases to run, by id.
    pub cases: BTreeMap<String, Arc<Case>>,
    /// Recorded calls to be made again, by case.
    pub(crate) replayed: BTreeMap<String, Vec<Planned>>,
    /// The digest of the set of worlds.
    pub digest: Option<String>,
}

impl Data {
    /// The cases, whatever their results: two pipelines on the same cases can be compared.
    fn digest(&self) -> Digest {
        let ids: BTreeSet<String> = self.runs.iter().map(Run::id).collect();
        Digest::of(ids.into_iter().collect::<Vec<_>>().join("\n").as_bytes())
    }
}

/// Divides runs by pipeline, and by attack unless `pooled`; the runs of a pipeline without an attack
/// belong to each of its attacks. One part at a time is in memory.
pub fn split_runs(
    recordings: Recordings,
    format: Format,
    pooled: bool,
) -> impl Iterator<Item = Data> {
    let Recordings { runs, benchmarks, warnings } = recordings;
    let stated = benchmarks.into_iter().collect::<Vec<_>>().join("+");
    let version = if stated.is_empty() { "unstated".to_owned() } else { stated };
    runs.parts(pooled).into_iter().map(move |part| {
        let runs: Vec<Run> = part.into_iter().filter_map(|at| runs.get(at)).collect();
        Data {
            id: format.name().to_owned(),
            version: version.clone(),
            pipeline: runs.first().map(|run| run.pipeline.clone()).unwrap_or_default(),
            runs,
            warnings: warnings.clone(),
            ..Data::default()
        }
    })
}

impl Evaluation for Resilience {
    const KIND: Kind = Kind::Resilience;
    const TABLE: &'static str = "resilience";
    const TAKES: &'static [&'static str] = OPTIONAL_KEYS;
    const RENAMED: &'static [RenamedKey] =
        &[RenamedKey::seconds(&["agent_seconds"], &["agent_timeout"])];
    const ITEMS: &'static str = "runs";

    type Config = Config;
    type Dataset = Data;
    type System = Harness;
    type Facts = Facts;

    fn check(config: &Config, common: &mut Common) -> Result<(), EvalError> {
        let others =
            [!config.agent_command.is_empty(), config.model.is_some(), config.replay.is_some()];
        if others.into_iter().filter(|given| *given).count() > 1 {
            return Err(EvalError::config("give one of `agent_command`, `model` and `replay`"));
        }
        if !config.recordings.is_empty() && common.runs > 1 {
            return Err(EvalError::config(
                "`runs` is for agents that work; recordings have as many as were made",
            ));
        }
        if config.agent_timeout == Some(Time::default()) {
            return Err(EvalError::config("`agent_timeout` must be longer than 0s"));
        }
        config.defence.validate().map_err(EvalError::config)
    }

    fn load(config: &Config, _: &Common, root: &Root<'_>) -> Result<Data, EvalError> {
        match (config.recordings.is_empty(), &config.dataset) {
            (false, dataset) => recorded(config, dataset.as_deref(), root),
            (true, Some(name)) => worlds(config, WorldSet::open(root.dataset(name)?)?, root),
            (true, None) => Err(EvalError::config(
                "give `dataset`, a set of worlds, or `recordings`, a folder or archive of runs",
            )),
        }
    }

    fn reference(data: &Data) -> DatasetRef {
        let digest = data.digest.clone().unwrap_or_else(|| data.digest().to_string());
        DatasetRef { id: data.id.clone(), version: data.version.clone(), digest }
    }

    /// The cases by id: where one side lacks some, the others are compared.
    fn contents(data: &Data) -> Option<Contents> {
        let items = match &data.digest {
            None => {
                let runs: Vec<&Run> = data.runs.iter().collect();
                let ids = score::item_ids(&runs, data.repeats());
                ids.into_iter().map(|id| (id.clone(), Fingerprint::of(id.as_bytes()))).collect()
            }
            Some(set) => data
                .cases
                .iter()
                .map(|(id, case)| {
                    let content = format!("{set} {id}");
                    (case.item_id(), Fingerprint::of(content.as_bytes()))
                })
                .collect(),
        };
        Some(Contents { corpus: BTreeMap::new(), items })
    }

    fn reads(config: &Config) -> Vec<PathBuf> {
        let mut reads = own_datasets(&config.dataset);
        let own = config.recordings.iter().filter(|_| config.dataset.is_none());
        reads.extend(own.chain(&config.replay).map(|file| destination(file)));
        reads
    }

    fn writes(config: &Config) -> Vec<PathBuf> {
        config.record.iter().cloned().collect()
    }

    fn computes(_: &Config, data: &Data) -> Option<Computes> {
        Some(Computes { metrics: score::ids(data.most()), slices: BTreeSet::new(), open: true })
    }

    async fn start(
        entry: &Entry<Resilience>,
        context: &RunContext<'_>,
    ) -> Result<Start<Resilience>, EvalError> {
        let Entry { common, config, data } = entry;
        let mut reference = SystemRef {
            kind: "file".to_owned(),
            name: data.pipeline.clone(),
            version: None,
            settings: BTreeMap::new(),
        };
        if data.cases.is_empty() {
            return Ok(Start::Recorded { outcomes: Vec::new(), reference, runs: data.repeats() });
        }
        let defence = &config.defence;
        reference.kind = if defence.guard.is_empty() { "mcp" } else { "command" }.to_owned();
        reference.name = defence.label();
        let guard = match defence.guard.is_empty() {
            true => None,
            false => {
                let (guard, redactor) = program(&defence.guard, &defence.env, context.folder)
                    .map_err(|error| EvalError::Config(format!("guard: {error}")))?;
                Some(
                    Guard::start(&guard, redactor, common.timeout(), common.start_timeout())
                        .map_err(EvalError::NotStarted)?,
                )
            }
        };
        if !defence.proxy.is_empty() {
            // It is started for each run; a variable that is not set is found before the first one.
            program(&defence.proxy, &defence.env, context.folder)
                .map_err(|error| EvalError::Config(format!("proxy: {error}")))?;
        }
        let route = match defence.proxy.is_empty() {
            true => Route::Direct,
            false => Route::Proxy(Arc::new(defence.clone())),
        };
        let servers = server(config, context).and_then(Servers::new);
        let harness = Harness {
            agent: agent(config, data, context)?,
            defence: defence.label(),
            route,
            servers: Arc::new(servers.map_err(EvalError::NotStarted)?),
            guard: guard.map(Arc::new),
            start_timeout: common.start_timeout(),
            call_timeout: common.timeout(),
            folder: Some(context.folder.to_owned()),
            failed_starts: AtomicU32::new(0),
        };
        reference.settings.insert("agent".to_owned(), harness.agent.name().to_owned());
        // Readiness is proven through the path that is measured.
        if let Some(case) = data.cases.values().find(|case| case.attack.is_none())
            && let Some(error) = harness.run(case).await.error
        {
            return Err(EvalError::NotStarted(error));
        }
        Ok(Start::Live { system: Arc::new(harness), reference })
    }

    fn questions(
        entry: &Entry<Resilience>,
        _: &Harness,
        _: &mut Vec<Outcome<Run>>,
    ) -> Result<Questions<Resilience>, EvalError> {
        let cases = entry.data.cases.iter();
        Ok(cases.map(|(id, case)| (id.clone(), Arc::clone(case))).collect())
    }

    /// A run as a whole may take as long as its start and its calls.
    fn options(entry: &Entry<Resilience>) -> karat_core::run::Options {
        let common = &entry.common;
        let limit = entry.config.agent_timeout();
        let timeout = common.start_timeout() + 20 * common.timeout() + limit.0;
        karat_core::run::Options { timeout, ..common.options() }
    }

    async fn finish(
        entry: &Entry<Resilience>,
        harness: &Harness,
        questions: &Questions<Resilience>,
        outcomes: &mut Vec<Outcome<Run>>,
    ) -> Result<Facts, EvalError> {
        if let Some(file) = &entry.config.record {
            let runs = all_runs(&entry.data, outcomes);
            let lines: String = runs
                .iter()
                .filter_map(|run| serde_json::to_string(run).ok())
                .map(|line| line + "\n")
                .collect();
            let folder = harness.folder.as_deref().unwrap_or(Path::new(""));
            write_atomic(&folder.join(file), lines.as_bytes())?;
        }
        let controls = controls::run(harness, questions, &Self::options(entry)).await?;
        Ok(Facts { controls })
    }

    /// Failures of recorded runs are part of the record: they are counted and shown, and the gate
    /// judges their share.
    fn allow(observed: &Observations<'_, Resilience>) -> Result<(), EvalError> {
        if observed.recorded { Ok(()) } else { allowance(observed) }
    }

    fn score(observed: &Observations<'_, Resilience>) -> Result<Scored, EvalError> {
        let data = &observed.entry.data;
        let live = all_runs(data, observed.outcomes);
        let runs: Vec<&Run> = data.runs.iter().chain(&live).collect();
        if runs.iter().all(|run| run.failure().is_some()) {
            return Err(EvalError::NothingMeasured(format!("all {} runs failed", runs.len())));
        }
        let mut scored = score::score(&runs, observed.runs);
        scored.warnings.extend(data.warnings.iter().cloned());
        if observed.recorded {
            let allowed = observed.entry.common.gate.max_errors;
            scored.checks.extend(allowed.map(|allowed| failures(&runs, allowed)));
        }
        scored.controls.clone_from(&observed.facts.controls);
        scored.latencies = latencies(observed.outcomes);
        Ok(scored)
    }
}

/// The runs of one pipeline, from files of the project or of a frozen dataset.
fn recorded(config: &Config, dataset: Option<&str>, root: &Root<'_>) -> Result<Data, EvalError> {
    let Some(format) = config.format else {
        return Err(EvalError::config("give `format`: agentdojo, asb or native"));
    };
    let filter = Filter {
        attacks: config.attacks.clone(),
        suites: config.suites.clone(),
        pipelines: config.pipeline.iter().cloned().collect(),
        benchmark: config.benchmark.clone(),
    };
    let frozen = match dataset {
        Some(name) => Some(root.frozen(name)?),
        None => None,
    };
    let read = match &frozen {
        None => {
            let places: Vec<PathBuf> =
                config.recordings.iter().map(|file| root.path(file)).collect();
            recordings::read_all(&places, format, &filter)?
        }
        Some(frozen) => {
            let first = config.recordings.first().map_or(Path::new(""), PathBuf::as_path);
            let mut reader = Reader::new(first, format, &filter)?;
            for file in &config.recordings {
                let name = file.to_string_lossy();
                let path: FilePath =
                    name.parse().map_err(|error| EvalError::config(format!("{name}: {error}")))?;
                let bytes = frozen.bytes(&path, &Limits::default())?;
                reader.member(&Member { name: &name, bytes: &bytes })?;
            }
            reader.finish()?
        }
    };
    let mut parts = split_runs(read, format, true);
    let mut data = parts.next().unwrap_or_default();
    if let Some(second) = parts.next() {
        let others = std::iter::once(second).chain(parts).map(|data| data.pipeline);
        let names: Vec<String> = std::iter::once(data.pipeline).chain(others).collect();
        let names = first_few(&names, 20);
        return Err(EvalError::config(format!(
            "there are several pipelines; give `pipeline`: {names}"
        )));
    }
    if let Some(frozen) = frozen {
        (data.id, data.version) = (frozen.id().to_owned(), frozen.version().to_string());
    }
    Ok(data)
}

/// Facts apart from the runs.
#[derive(Default)]
pub struct Facts {
    controls: Vec<Control>,
}

/// The runs that were made; one that failed keeps its case and its reason.
fn all_runs(data: &Data, outcomes: &[Outcome<Run>]) -> Vec<Run> {
    let mut runs = Vec::new();
    // In the order of the repetitions.
    let mut outcomes: Vec<&Outcome<Run>> = outcomes.iter().collect();
    outcomes.sort_by_key(|outcome| outcome.run);
    for outcome in outcomes {
        match (&outcome.outcome, data.cases.get(&outcome.id)) {
            (Kept::Answer(run), _) => runs.push(run.clone()),
            (Kept::Failure { message, .. }, Some(case)) => {
                runs.push(Run { error: Some(message.clone()), ..case.run(&data.pipeline) });
            }
            (Kept::Failure { .. }, None) => {}
        }
    }
    runs
}

/// The cases of a set; with a recording, those that it has.
fn worlds(config: &Config, set: WorldSet, root: &Root<'_>) -> Result<Data, EvalError> {
    let cases = set.cases(&config.select)?;
    let lacks = |case: &&Case| case.world.is_served_elsewhere() && config.server.is_empty();
    if let Some(case) = cases.iter().find(lacks) {
        return Err(EvalError::config(format!(
            "world {} has no tools: give `server`, the command that serves it",
            case.world.name
        )));
    }
    let mut cases: BTreeMap<String, Arc<Case>> =
        cases.into_iter().map(|case| (case.id(), Arc::new(case))).collect();
    let (mut warnings, mut replayed) = (Vec::new(), BTreeMap::new());
    if let Some(file) = &config.replay {
        let read = recordings::read_whole(&root.path(file), Format::Native)?;
        let (mut failed, mut repeated) = (0, 0);
        for run in read.runs.iter() {
            // A run that failed did nothing that could be done again.
            if run.failure().is_some() {
                failed += 1;
                continue;
            }
            let planned = replay::planned(&run).map_err(EvalError::config)?;
            repeated += u64::from(replayed.contains_key(&replay::case_id(&run)));
            replayed.entry(replay::case_id(&run)).or_insert(planned);
        }
        if failed > 0 {
            warnings.push(format!("{failed} recorded runs failed and are not played again"));
        }
        if repeated > 0 {
            warnings.push(format!(
                "{repeated} recorded runs are repetitions; the first of each case is played again"
            ));
        }
        let all = cases.len();
        cases.retain(|id, _| replayed.contains_key(id));
        if cases.is_empty() {
            return Err(EvalError::config(format!(
                "{}: none of {} recorded runs matches a case of this set",
                file.display(),
                read.runs.len()
            )));
        }
        if cases.len() < all {
            let missing = all - cases.len();
            warnings.push(format!("{missing} of {all} cases were not recorded and are left out"));
        }
    }
    Ok(Data {
        id: set.reference.id.clone(),
        version: set.reference.version.clone(),
        pipeline: config.agent_name(),
        runs: Vec::new(),
        warnings,
        cases,
        replayed,
        digest: Some(set.reference.digest),
    })
}

impl Config {
    /// The name of the agent in reports.
    pub fn agent_name(&self) -> String {
        match (&self.model, self.agent_command.first(), &self.replay) {
            (Some(model), ..) => model.name.clone(),
            (_, Some(program), _) => program.rsplit('/').next().unwrap_or(program).to_owned(),
            (.., Some(_)) => "replay".to_owned(),
            _ => self.agent.name().to_owned(),
        }
    }

    fn agent_timeout(&self) -> Time {
        match self.agent_command.is_empty() && self.model.is_none() {
            true => Time::default(),
            false => self.agent_timeout.unwrap_or(Time::from_secs(300)),
        }
    }
}

/// The path of this program.
fn this_program() -> Result<String, String> {
    let program =
        std::env::current_exe().map_err(|error| format!("this program has no path: {error}"))?;
    Ok(program.to_string_lossy().into_owned())
}

fn agent(config: &Config, data: &Data, context: &RunContext<'_>) -> Result<Agent, EvalError> {
    let limit = config.agent_timeout();
    let (command, redactor) = match &config.model {
        Some(model) => {
            let program = this_program().map_err(EvalError::NotStarted)?;
            (model.command(program, limit), Redactor::default())
        }
        None => {
            let made = program(&config.agent_command, &BTreeMap::new(), context.folder);
            let (program, redactor) =
                made.map_err(|error| EvalError::Config(format!("agent_command: {error}")))?;
            (program.command, redactor)
        }
    };
    Ok(match (&config.replay, command.is_empty()) {
        (Some(_), _) => Agent::Replay(data.replayed.clone()),
        (None, true) => Agent::Scripted(config.agent),
        (None, false) => Agent::Command(CommandAgent {
            name: config.agent_name(),
            command,
            redactor,
            limit: limit.0,
            folder: Some(context.folder.to_owned()),
        }),
    })
}

/// The command that serves a case over stdio: that of the entry, or this program.
fn server(config: &Config, context: &RunContext<'_>) -> Result<Vec<String>, String> {
    let Some(name) = config.dataset.as_ref().filter(|_| config.server.is_empty()) else {
        return Ok(config.server.clone());
    };
    let set = match name.starts_with(karat_core::project::BUNDLED) {
        true => name.clone(),
        false => context.folder.join(name).to_string_lossy().into_owned(),
    };
    let words = ["corpus", "serve", &set, "--world", "--stdio"].map(str::to_owned);
    Ok([this_program()?].into_iter().chain(words).collect())
}

impl Data {
    /// The number of times that each case was recorded, where it is the same for all; 1 otherwise.
    pub fn repeats(&self) -> u32 {
        let mut times: BTreeMap<String, u32> = BTreeMap::new();
        for run in &self.runs {
            *times.entry(run.id()).or_default() += 1;
        }
        let most = times.values().copied().max().unwrap_or(1);
        if times.values().all(|times| *times == most) { most } else { 1 }
    }

    /// The most runs of one task and goal.
    fn most(&self) -> u64 {
        let mut counts: BTreeMap<(String, Option<&String>), u64> = BTreeMap::new();
        for run in self.runs.iter().filter(|run| run.is_attacked()) {
            *counts.entry((run.cluster(), run.goal.as_ref())).or_default() += 1;
        }
        for case in self.cases.values() {
            if let Some(attack) = &case.attack {
                let cluster = format!("{}/{}", case.world.name, case.task.id);
                *counts.entry((cluster, Some(&attack.goal.id))).or_default() += 1;
            }
        }
        score::attempts(counts.into_values())
    }
}

/// Holds the share of failed runs to the allowance.
fn failures(runs: &[&Run], allowed: f64) -> Check {
    let failed: Vec<String> =
        runs.iter().filter(|run| run.failure().is_some()).map(|run| run.id()).collect();
    let share = failed.len() as f64 / runs.len() as f64;
    Check {
        metric: "failed runs".to_owned(),
        slice: None,
        rule: "max_errors".to_owned(),
        threshold: Some(allowed),
        value: Some(share),
        baseline: None,
        verdict: if share > allowed { Verdict::Fail } else { Verdict::Pass },
        reason: format!("{} of {} runs failed", failed.len(), runs.len()),
        items: failed,
    }
}
