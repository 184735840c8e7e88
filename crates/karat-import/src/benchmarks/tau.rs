//! τ-bench: a file of trajectories for each model and domain, `[{task_id, reward, trial, info}]`; and
//! τ²-bench: `{"simulations": [{task_id, trial, reward_info: {reward}, termination_reason}]}`.

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
    needs: "files of trajectories, such as historical_trajectories/gpt-4o-airline.json or \
            data/tau2/results/final/*.json",
    licence: "MIT",
    restricted: false,
    becomes: "outcomes: one entry per file",
    checked_by: "pass^1 to pass^4 of the published trajectories",
    import,
};

const EXPECTED: &str =
    "trajectories of τ-bench, [{\"task_id\", \"reward\", \"trial\", …}], or a result of τ²-bench";
/// A reward at least this large is a success.
const DONE: f64 = 1.0 - 1e-6;
const DOMAINS: [&str; 5] = ["airline", "retail", "telecom-workflow", "telecom", "banking"];
/// The ways in which a simulation of τ² ends because something outside the agent failed. Too many errors
/// of tools are the agent's own.
const FAILURES: [&str; 3] = ["infrastructure_error", "user_error", "error"];
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
    simulations: Vec<Simulation>,
}

#[derive(Deserialize)]
struct ResultInfo {
    environment_info: Option<Environment>,
}

#[derive(Deserialize)]
struct Environment {
    domain_name: Option<String>,
}

#[derive(Deserialize)]
struct Simulation {
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
    let mut found = false;
    for file in source.files() {
        if !file.base().ends_with(".json") {
            writer.skip("a file that is not JSON");
            continue;
        }
        found |= trajectories(source, file, writer)?;
    }
    if found { Ok(()) } else { Err(source.nothing(EXPECTED)) }
}

/// Takes over the runs of a file; false if it has none, as the files of tasks and settings.
fn trajectories(source: &Source, file: &File, writer: &mut Writer) -> Result<bool, ImportError> {
    let text = source.text(file)?;
    let is_list = text.trim_start().starts_with('[');
    let has_runs = if is_list { "\"reward\"" } else { "\"simulations\"" };
    if !text.contains(has_runs) {
        writer.skip("a JSON file without trajectories");
        return Ok(false);
    }
    let system = file.stem();
    let named = |domain: &&&str| system.contains(**domain);
    let mut domain = DOMAINS.iter().find(named).map_or("tasks", |domain| *domain).to_owned();
    // The tasks of the second version differ from those of the first with the same numbers.
    let suite = |domain: &str| if is_list { domain.to_owned() } else { format!("tau2-{domain}") };
    let mut rows: Vec<(Value, Row)> = Vec::new();
    // The number of a trial counts from 0.
    let trial = |trial: Option<u32>| trial.and_then(|trial| trial.checked_add(1));
    if is_list {
        for run in file.parse::<Vec<Trajectory>>(&text, EXPECTED)? {
            if run.judge.is_some() {
                let found = "verdicts of a judge; for LiveMCPBench use `karat import livemcpbench`";
                return Err(ImportError::unexpected(&file.path, EXPECTED, found));
            }
            let error = run.info.and_then(|info| info.error).map(|error| match error {
                Value::String(text) => clipped(&text),
                other => clipped(&other.to_string()),
            });
            let row = Row {
                trial: trial(run.trial),
                success: Some(run.reward.is_some_and(|reward| reward >= DONE)),
                error: error.or_else(|| run.reward.is_none().then(|| NO_REWARD.to_owned())),
                ..Row::default()
            };
            rows.push((run.task_id, row));
        }
    } else {
        let results = file.parse::<Results>(&text, EXPECTED)?;
        let stated = results.info.and_then(|info| info.environment_info?.domain_name);
        domain = Writer::entry_name(&stated.unwrap_or(domain));
        for run in results.simulations {
            let failed = run.termination_reason.filter(|reason| FAILURES.contains(&&**reason));
            let reward = run.reward_info.map(|info| info.reward);
            let row = Row {
                trial: trial(run.trial),
                success: Some(reward.is_some_and(|reward| reward >= DONE)),
                error: failed.or_else(|| reward.is_none().then(|| NO_REWARD.to_owned())),
                ms: run.duration.map(|seconds| seconds * 1000.0),
                ..Row::default()
            };
            rows.push((run.task_id, row));
        }
    }
    if rows.is_empty() {
        return Err(ImportError::unexpected(&file.path, EXPECTED, "no run"));
    }
    for (task, mut row) in rows {
        row.task = match task {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let suite = suite(&domain);
        writer.task(&suite, &row.task, || {
            let mut tags = Tags::from([("domain".to_owned(), domain.clone())]);
            if !is_list {
                tags.insert("version".to_owned(), "tau2".to_owned());
            }
            tags
        });
        writer.row(system, &suite, &row)?;
    }
    Ok(true)
}
