//! τ-bench: a file of trajectories for each model and domain, `[{task_id, reward, trial, info}]`; and
//! τ²-bench: `{"simulations": [{task_id, trial, reward_info: {reward}, termination_reason}]}`, in
//! `<name>.json` or `<run>/results.json`; or `<run>/results.json` with a `simulation_index` and a file
//! for each simulation in `<run>/simulations`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::outcomes::{Accounting, Row, Tags, clipped};
use crate::source::{File, Source};
use crate::writer::Writer;
use crate::{Benchmark, ImportError};

pub(crate) const BENCHMARK: Benchmark = Benchmark {
    name: "tau-bench",
    title: "τ-bench and τ²-bench",
    needs: "files of trajectories, such as historical_trajectories/gpt-4o-airline.json, \
            data/tau2/results/final/*.json or data/simulations/<run>/results.json",
    licence: "MIT",
    restricted: false,
    becomes: "outcomes: one entry per file or run",
    checked_by: "pass^1 to pass^4 of the published trajectories",
    import,
};

const EXPECTED: &str =
    "trajectories of τ-bench, [{\"task_id\", \"reward\", \"trial\", …}], or a result of τ²-bench";
/// A reward that differs from 1 by no more than this is a success.
const NEAR: f64 = 1e-6;
const DOMAINS: [&str; 5] = ["airline", "retail", "telecom-workflow", "telecom", "banking"];
/// The ways in which a simulation of τ² ends because something outside the agent failed. Too many errors
/// of tools are the agent's own.
const FAILURES: [&str; 3] = [INFRASTRUCTURE, "user_error", "error"];
/// The one of them that τ² leaves out of its own metrics.
const INFRASTRUCTURE: &str = "infrastructure_error";
const RESULTS: &str = "results.json";
/// The folder next to it with a file for each simulation.
const SIMULATIONS: &str = "simulations";
const SIMULATION: &str =
    "a simulation of τ²-bench: {\"id\", \"task_id\", \"trial\", \"reward_info\", …}";
/// The folder of runs that τ² itself threw away.
const DISCARDED: &str = "hallucination_discarded";
const NO_REWARD: &str = "no reward was recorded";

#[derive(Deserialize)]
struct Trajectory {
    task_id: Value,
    reward: Option<f64>,
    trial: Option<u32>,
    info: Option<Info>,
    /// Of verdicts of LiveMCPBench, whose other keys are the same.
    judge: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Info {
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Results {
    info: Option<ResultInfo>,
    #[serde(default)]
    simulations: Vec<Simulation>,
    /// The content of the files in the folder `simulations`, where they are apart.
    simulation_index: Option<Vec<Indexed>>,
    /// The tasks of the run.
    tasks: Option<Vec<IgnoredAny>>,
}

#[derive(Deserialize)]
struct Indexed {
    id: String,
    reward: Option<f64>,
}

#[derive(Deserialize)]
struct ResultInfo {
    num_trials: Option<u32>,
    environment_info: Option<Environment>,
}

#[derive(Deserialize)]
struct Environment {
    domain_name: Option<String>,
}

#[derive(Deserialize)]
struct Simulation {
    id: Option<String>,
    task_id: Value,
    trial: Option<u32>,
    reward_info: Option<Reward>,
    termination_reason: Option<String>,
    duration: Option<f64>,
}

#[derive(Deserialize)]
struct Reward {
    reward: f64,
}

fn import(source: &Source, writer: &mut Writer) -> Result<(), ImportError> {
    writer.account(Some(Accounting::Tau), &["domain"]);
    writer.expect_equal_runs();
    let mut copy = Copy { source, apart: BTreeMap::new(), suites: BTreeMap::new() };
    let is_json = |file: &&File| file.base().ends_with(".json");
    let runs: BTreeSet<&str> =
        source.files().filter(|file| file.base() == RESULTS).map(folder).collect();
    for file in source.files().filter(is_json) {
        let parent = folder(file);
        let (run, last) = parent.rsplit_once('/').unwrap_or(("", parent));
        if last == SIMULATIONS && runs.contains(run) {
            copy.apart.entry(run).or_default().push(file);
        }
    }
    let apart: BTreeSet<&File> = copy.apart.values().flatten().copied().collect();
    let mut found = false;
    for file in source.files().filter(|file| !apart.contains(file)) {
        if !is_json(&file) {
            writer.skip("a file that is not JSON");
            continue;
        }
        if folder(file).rsplit('/').next() == Some(DISCARDED) {
            writer.skip("runs that τ² discarded");
            continue;
        }
        found |= copy.trajectories(file, writer)?;
    }
    if found { Ok(()) } else { Err(source.nothing(EXPECTED)) }
}

/// The folder of a file.
fn folder(file: &File) -> &str {
    file.name.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// The user's copy.
struct Copy<'a> {
    source: &'a Source,
    /// The files of single simulations, by the folder of the run.
    apart: BTreeMap<&'a str, Vec<&'a File>>,
    /// The list of tasks of each system.
    suites: BTreeMap<String, String>,
}

impl Copy<'_> {
    /// Takes over the runs of a file; false if it has none, as the files of tasks and settings.
    fn trajectories(&mut self, file: &File, writer: &mut Writer) -> Result<bool, ImportError> {
        let text = self.source.text(file)?;
        let is_list = text.trim_start().starts_with('[');
        let has = |key: &str| text.contains(key);
        if !is_list && has("\"reward_info\"") && !has("\"simulations\"") && file.base() != RESULTS {
            let found = "a single simulation of τ²-bench; the results.json above it is not here";
            return Err(ImportError::unexpected(&file.path, EXPECTED, found));
        }
        let has_runs = match is_list {
            true => has("\"reward\""),
            // The index of files of their own may be missing.
            false => {
                has("\"simulations\"")
                    || has("\"simulation_index\"")
                    || (file.base() == RESULTS && self.apart.contains_key(folder(file)))
            }
        };
        if !has_runs {
            writer.skip("a JSON file without trajectories");
            return Ok(false);
        }
        // A run of τ² is a folder with a file that is always named the same.
        let above = file.path.parent().and_then(|folder| folder.file_name());
        let above = above.map(|name| name.to_string_lossy().into_owned());
        let system = match file.base() == RESULTS {
            true => above.unwrap_or_else(|| file.stem().to_owned()),
            false => file.stem().to_owned(),
        };
        let named = |domain: &&&str| system.contains(**domain);
        let mut domain = DOMAINS.iter().find(named).map_or("tasks", |domain| *domain).to_owned();
        let rows = if is_list {
            first_version(file, &text)?
        } else {
            let mut results = file.parse::<Results>(&text, EXPECTED)?;
            self.collect(file, &mut results, writer)?;
            let is_judged = |run: &Simulation| run.reward_info.is_some();
            let others = results.simulations.len();
            if others > 0 && !results.simulations.iter().any(is_judged) {
                let found = format!("{others} simulations, none with `reward_info`");
                return Err(ImportError::unexpected(&file.path, EXPECTED, found));
            }
            results.check_size(file, writer);
            let stated = results.info.and_then(|info| info.environment_info?.domain_name);
            domain = Writer::entry_name(&stated.unwrap_or(domain));
            results.simulations.into_iter().map(Simulation::row).collect()
        };
        if rows.is_empty() {
            return Err(ImportError::unexpected(&file.path, EXPECTED, "no run"));
        }
        // The tasks of the second version differ from those of the first with the same numbers.
        let suite = if is_list { domain.clone() } else { format!("tau2-{domain}") };
        if !is_list {
            writer.account_suite(&suite, Accounting::Tau2);
        }
        // Files of one name are about several domains: each is a system.
        let known = self.suites.entry(system.clone()).or_insert_with(|| suite.clone());
        let system = if *known == suite { system } else { format!("{system}.{suite}") };
        writer.reading(&file.path);
        for row in rows {
            writer.task(&suite, &row.task, || {
                let mut tags = Tags::from([("domain".to_owned(), domain.clone())]);
                if !is_list {
                    tags.insert("version".to_owned(), "tau2".to_owned());
                }
                tags
            });
            writer.row(&system, &suite, &row)?;
        }
        Ok(true)
    }

    /// Reads the simulations that have files of their own, as the index says.
    fn collect(
        &self,
        file: &File,
        results: &mut Results,
        writer: &mut Writer,
    ) -> Result<(), ImportError> {
        let Some(files) = self.apart.get(folder(file)).filter(|_| file.base() == RESULTS) else {
            let index =
                results.simulation_index.as_ref().filter(|_| results.simulations.is_empty());
            return match index.map_or(0, Vec::len) {
                0 => Ok(()),
                number => {
                    let expected = format!("{number} files in {SIMULATIONS}, as its index says");
                    Err(ImportError::unexpected(&file.path, expected, "no such folder next to it"))
                }
            };
        };
        let index = results.simulation_index.take();
        let rewards = index.iter().flatten().map(|one| (one.id.as_str(), one.reward));
        let mut expected: BTreeMap<&str, Option<f64>> = rewards.collect();
        let all = expected.len();
        for other in files {
            let run: Simulation = self.source.json(other, SIMULATION)?;
            let id = run.id.clone().unwrap_or_else(|| other.stem().to_owned());
            if index.is_some() {
                let Some(reward) = expected.remove(id.as_str()) else {
                    let expected = format!("a simulation of the index of {}", file.path.display());
                    let found = format!("{id:?}, which is missing or duplicate");
                    return Err(ImportError::unexpected(&other.path, expected, found));
                };
                let here = run.reward_info.as_ref().map(|info| info.reward);
                if let Some(reward) = reward.filter(|reward| Some(*reward) != here) {
                    let expected = format!("the reward {reward} of {}", file.path.display());
                    let found = here.map_or("none".to_owned(), |reward| reward.to_string());
                    return Err(ImportError::unexpected(&other.path, expected, found));
                }
            }
            results.simulations.push(run);
        }
        if let Some(id) = expected.keys().next() {
            let found = all - expected.len();
            writer.incomplete(format!(
                "{}: expected {all} files in {SIMULATIONS}, as its index says; found {found}, not {id}",
                file.path.display()
            ))?;
        }
        Ok(())
    }
}

impl Results {
    /// An interrupted run has fewer simulations than the file itself announces.
    fn check_size(&self, file: &File, writer: &mut Writer) {
        let tasks = self.tasks.as_ref().map_or(0, Vec::len);
        let trials = self.info.as_ref().and_then(|info| info.num_trials).unwrap_or(1) as usize;
        let (announced, found) = (tasks.saturating_mul(trials), self.simulations.len());
        if found < announced {
            writer.note(format!(
                "{}: found {found} of {announced} simulations, {tasks} tasks with {trials} trials each",
                file.path.display()
            ));
        }
    }
}

/// The number of a trial, which counts from 0 in files.
fn trial(trial: Option<u32>) -> Option<u32> {
    trial.and_then(|trial| trial.checked_add(1))
}

fn task(id: Value) -> String {
    match id {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

fn is_done(reward: f64) -> bool {
    (reward - 1.0).abs() <= NEAR
}

fn first_version(file: &File, text: &str) -> Result<Vec<Row>, ImportError> {
    let mut rows = Vec::new();
    for run in file.parse::<Vec<Trajectory>>(text, EXPECTED)? {
        if run.judge.is_some() {
            let found = "verdicts of a judge; for LiveMCPBench use `karat import livemcpbench`";
            return Err(ImportError::unexpected(&file.path, EXPECTED, found));
        }
        let error = match run.info.and_then(|info| info.error) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) if text.trim().is_empty() => None,
            Some(Value::String(text)) => Some(clipped(&text)),
            Some(other) => Some(clipped(&other.to_string())),
        };
        rows.push(Row {
            task: task(run.task_id),
            trial: trial(run.trial),
            success: Some(run.reward.is_some_and(is_done)),
            error: error.or_else(|| run.reward.is_none().then(|| NO_REWARD.to_owned())),
            ..Row::default()
        });
    }
    Ok(rows)
}

impl Simulation {
    fn row(self) -> Row {
        let failed = self.termination_reason.filter(|reason| FAILURES.contains(&&**reason));
        let left_out = failed.as_deref() == Some(INFRASTRUCTURE);
        let reward = self.reward_info.map(|info| info.reward);
        Row {
            task: task(self.task_id),
            trial: trial(self.trial),
            success: (!left_out).then(|| reward.is_some_and(is_done)),
            error: failed.or_else(|| reward.is_none().then(|| NO_REWARD.to_owned())),
            ms: self.duration.map(|seconds| seconds * 1000.0),
            ..Row::default()
        }
    }
}
