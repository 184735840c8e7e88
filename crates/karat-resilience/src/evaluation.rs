//! The evaluation: an entry of recorded runs, or of worlds in which an agent works through a defence.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use karat_core::dataset::Digest;
use karat_core::error::EvalError;
use karat_core::evaluation::{
    Common, Computes, Entry, Evaluation, Observations, Questions, RunContext, Scored, Start,
    allowance, latencies,
};
use karat_core::journal::{Entry as Outcome, Outcome as Kept};
use karat_core::kind::Kind;
use karat_core::project::{Root, own_datasets};
use karat_core::report::{Check, Control, DatasetRef, SystemRef, Verdict};
use karat_io::input::{destination, write_atomic};
use serde::{Deserialize, Serialize};

use crate::agents::AgentKind;
use crate::controls;
use crate::defence::{DefenceConfig, Guard, ProxyRoute, Route};
use crate::live::Harness;
use crate::recordings::{self, Filter, Format, Recordings};
use crate::run::Run;
use crate::score;
use crate::set::{Case, Selection, WorldSet};

/// The evaluation of agents and defences under attack.
pub struct Resilience;

/// A `[[resilience]]` entry, apart from the settings that all entries share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// A folder or archive of recorded runs.
    #[serde(default)]
    pub recordings: Option<PathBuf>,
    /// Their format.
    #[serde(default)]
    pub format: Option<Format>,
    /// The pipeline, if there are several.
    #[serde(default)]
    pub pipeline: Option<String>,
    /// Only these attacks.
    #[serde(default)]
    pub attacks: Vec<String>,
    /// Only these suites.
    #[serde(default)]
    pub suites: Vec<String>,
    /// Only the goals of this version of AgentDojo's benchmark.
    #[serde(default)]
    pub benchmark: Option<String>,
    /// A set of worlds, or `bundled:worlds/v1`, instead of recordings.
    #[serde(default)]
    pub dataset: Option<String>,
    /// The agent that works in the worlds.
    #[serde(default)]
    pub agent: AgentKind,
    /// The defence between the agent and the worlds.
    #[serde(default)]
    pub defence: DefenceConfig,
    /// The cases that are of interest.
    #[serde(default)]
    pub select: Selection,
    /// The file for the runs, in the native format.
    #[serde(default)]
    pub record: Option<PathBuf>,
    /// The command that serves a case of the set over stdio; this program itself without it.
    #[serde(skip)]
    pub server: Vec<String>,
}

/// The data of an entry: recorded runs of one pipeline, or cases to run.
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
/// belong to each of its attacks.
pub fn split_runs(recordings: Recordings, format: Format, pooled: bool) -> Vec<Data> {
    let Recordings { runs, benchmarks, warnings } = recordings;
    let mut parts: BTreeMap<(String, Option<String>), Vec<Run>> = BTreeMap::new();
    let mut benign: BTreeMap<String, Vec<Run>> = BTreeMap::new();
    for run in runs {
        if run.is_attacked() {
            let attack = run.attack.clone().filter(|_| !pooled);
            parts.entry((run.pipeline.clone(), attack)).or_default().push(run);
        } else {
            benign.entry(run.pipeline.clone()).or_default().push(run);
        }
    }
    for pipeline in benign.keys() {
        if !parts.keys().any(|(known, _)| known == pipeline) {
            parts.insert((pipeline.clone(), None), Vec::new());
        }
    }
    let stated = benchmarks.into_iter().collect::<Vec<_>>().join("+");
    parts
        .into_iter()
        .map(|((pipeline, _), mut runs)| {
            if let Some(benign) = benign.get(&pipeline) {
                runs.extend(benign.iter().cloned());
            }
            let version = if stated.is_empty() { "unstated".to_owned() } else { stated.clone() };
            let id = format.name().to_owned();
            let (cases, digest) = (BTreeMap::new(), None);
            Data { id, version, pipeline, runs, warnings: warnings.clone(), cases, digest }
        })
        .collect()
}

impl Evaluation for Resilience {
    const KIND: Kind = Kind::Resilience;
    const TABLE: &'static str = "resilience";
    const TAKES: &'static [&'static str] = &["concurrency", "timeout_ms", "start_timeout_ms"];
    const ITEMS: &'static str = "runs";

    type Config = Config;
    type Dataset = Data;
    type System = Harness;
    type Facts = Facts;

    fn check(config: &Config, _: &mut Common) -> Result<(), EvalError> {
        config.defence.validate().map_err(EvalError::config)
    }

    fn load(config: &Config, _: &Common, root: &Root<'_>) -> Result<Data, EvalError> {
        let file = match (&config.recordings, &config.dataset) {
            (Some(file), None) => file,
            (None, Some(name)) => {
                let set = WorldSet::open(root.dataset(name)?)?;
                let cases = set.cases(&config.select)?;
                let cases = cases.into_iter().map(|case| (case.id(), Arc::new(case))).collect();
                return Ok(Data {
                    id: set.reference.id.clone(),
                    version: set.reference.version.clone(),
                    pipeline: config.agent.name().to_owned(),
                    runs: Vec::new(),
                    warnings: Vec::new(),
                    cases,
                    digest: Some(set.reference.digest),
                });
            }
            _ => {
                return Err(EvalError::config(
                    "give `dataset`, a set of worlds, or `recordings`, a folder or archive of runs",
                ));
            }
        };
        let Some(format) = config.format else {
            return Err(EvalError::config("give `format`: agentdojo, asb or native"));
        };
        let filter = Filter {
            attacks: config.attacks.clone(),
            suites: config.suites.clone(),
            pipelines: config.pipeline.iter().cloned().collect(),
            benchmark: config.benchmark.clone(),
        };
        let read = recordings::read(&root.path(file), format, &filter)?;
        let mut parts = split_runs(read, format, true);
        match (parts.pop(), parts.len()) {
            (Some(data), 0) => Ok(data),
            (last, _) => {
                let names = parts.iter().chain(&last).map(|data| data.pipeline.as_str());
                let names = names.take(20).collect::<Vec<_>>().join(", ");
                Err(EvalError::config(format!(
                    "there are several pipelines; give `pipeline`: {names}"
                )))
            }
        }
    }

    fn reference(data: &Data) -> DatasetRef {
        let digest = data.digest.clone().unwrap_or_else(|| data.digest().to_string());
        DatasetRef { id: data.id.clone(), version: data.version.clone(), digest }
    }

    fn reads(config: &Config) -> Vec<PathBuf> {
        let mut reads = own_datasets(&config.dataset);
        reads.extend(config.recordings.iter().map(|file| destination(file)));
        reads
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
            return Ok(Start::Recorded { outcomes: Vec::new(), reference, runs: 1 });
        }
        let defence = &config.defence;
        reference.kind = if defence.guard.is_empty() { "mcp" } else { "command" }.to_owned();
        reference.name = defence.label();
        reference.settings.insert("agent".to_owned(), config.agent.name().to_owned());
        let guard = match defence.guard.is_empty() {
            true => None,
            false => Some(Guard::start(defence, context.folder).map_err(EvalError::NotStarted)?),
        };
        let route = match defence.proxy.is_empty() {
            true => Route::Direct,
            false => Route::Proxy(Arc::new(proxy_route(config, context)?)),
        };
        let harness = Harness {
            agent: config.agent,
            defence: defence.label(),
            route,
            guard,
            start_timeout: common.start_timeout(),
            call_timeout: common.timeout(),
            folder: Some(context.folder.to_owned()),
            failed_starts: AtomicU32::new(0),
        };
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
        let timeout = common.start_timeout() + 20 * common.timeout();
        karat_core::run::Options { timeout, ..common.options() }
    }

    async fn finish(
        entry: &Entry<Resilience>,
        _: &Harness,
        _: &Questions<Resilience>,
        outcomes: &mut Vec<Outcome<Run>>,
    ) -> Result<Facts, EvalError> {
        if let Some(file) = &entry.config.record {
            let runs = all_runs(&entry.data, outcomes);
            let lines: String = runs
                .iter()
                .filter_map(|run| serde_json::to_string(run).ok())
                .map(|line| line + "\n")
                .collect();
            write_atomic(file, lines.as_bytes())?;
        }
        Ok(Facts { controls: controls::run(entry.data.cases.values()).await })
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
        let mut scored = score::score(&runs);
        scored.warnings.extend(data.warnings.iter().cloned());
        if observed.recorded {
            scored.checks.extend(failures(&runs, observed.entry.common.gate.max_errors));
        }
        scored.controls.clone_from(&observed.facts.controls);
        scored.latencies = latencies(observed.outcomes);
        Ok(scored)
    }
}

/// Facts apart from the runs.
#[derive(Default)]
pub struct Facts {
    controls: Vec<Control>,
}

/// The runs that were made; one that failed keeps its case and its reason.
fn all_runs(data: &Data, outcomes: &[Outcome<Run>]) -> Vec<Run> {
    let mut runs = Vec::new();
    for outcome in outcomes {
        match (&outcome.outcome, data.cases.get(&outcome.id)) {
            (Kept::Answer(run), _) => runs.push(run.clone()),
            (Kept::Failure { message, .. }, Some(case)) => runs.push(Run {
                pipeline: data.pipeline.clone(),
                suite: case.world.name.clone(),
                task: case.task.id.clone(),
                goal: case.attack.as_ref().map(|attack| attack.goal.id.clone()),
                attack: case.attack.as_ref().map(|attack| attack.style.clone()),
                surface: case.attack.as_ref().map(|attack| attack.surface.name().to_owned()),
                split: Some(case.task.split.clone()),
                error: Some(message.clone()),
                ..Run::default()
            }),
            (Kept::Failure { .. }, None) => {}
        }
    }
    runs
}

/// The proxy, with the command that serves a case and a folder for files.
fn proxy_route(config: &Config, context: &RunContext<'_>) -> Result<ProxyRoute, EvalError> {
    let scratch = std::env::temp_dir().join(format!("karat-worlds-{}", std::process::id()));
    std::fs::create_dir_all(&scratch)
        .map_err(|error| EvalError::NotStarted(format!("{}: {error}", scratch.display())))?;
    let server = match (config.server.is_empty(), &config.dataset) {
        (false, _) => config.server.clone(),
        (true, Some(name)) => {
            let program = std::env::current_exe().map_err(|error| {
                EvalError::NotStarted(format!("this program has no path: {error}"))
            })?;
            let set = match name.starts_with(karat_core::project::BUNDLED) {
                true => name.clone(),
                false => context.folder.join(name).to_string_lossy().into_owned(),
            };
            let program = program.to_string_lossy().into_owned();
            [program, "corpus".into(), "serve".into(), set, "--world".into(), "--stdio".into()]
                .to_vec()
        }
        (true, None) => Vec::new(),
    };
    Ok(ProxyRoute {
        config: config.defence.clone(),
        server,
        folder: context.folder.to_owned(),
        scratch,
    })
}

impl Data {
    /// The most runs of one task and goal.
    fn most(&self) -> u64 {
        let mut counts: BTreeMap<(String, Option<&String>), u64> = BTreeMap::new();
        for run in self.runs.iter().filter(|run| run.is_attacked() && run.failure().is_none()) {
            *counts.entry((run.cluster(), run.goal.as_ref())).or_default() += 1;
        }
        for case in self.cases.values() {
            if let Some(attack) = &case.attack {
                let cluster = format!("{}/{}", case.world.name, case.task.id);
                *counts.entry((cluster, Some(&attack.goal.id))).or_default() += 1;
            }
        }
        counts.into_values().max().unwrap_or(1)
    }
}

/// Holds the share of failed runs to the allowance, where there is one.
fn failures(runs: &[&Run], allowed: f64) -> Option<Check> {
    let failed: Vec<String> =
        runs.iter().filter(|run| run.failure().is_some()).map(|run| run.id()).collect();
    let share = failed.len() as f64 / runs.len() as f64;
    (allowed > 0.0).then(|| Check {
        metric: "failed runs".to_owned(),
        slice: None,
        rule: "max_errors".to_owned(),
        threshold: Some(allowed),
        value: Some(share),
        baseline: None,
        verdict: if share > allowed { Verdict::Fail } else { Verdict::Pass },
        reason: format!("{} of {} runs failed", failed.len(), runs.len()),
        items: failed,
    })
}
