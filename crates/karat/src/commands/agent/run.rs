//! `karat agent run`: the agent entries of a project; or an agent on tasks over live servers, recorded and
//! scored; or a replay of the recording.

use std::path::PathBuf;
use std::sync::Arc;

use karat_agent::AgentRun;
use karat_agent::run::{Api, Budget, Config, Model, Starter};
use karat_agent::trace::Setting;
use karat_core::evaluation::{Common, Entry, Evaluation as _};
use karat_core::kind::Evaluation;
use karat_core::project::Project;
use karat_mcp::{Options, Session};
use karat_server::demo;

use super::score::policy;
use super::{check_endpoint, here};
use crate::cli::{AgentRunArgs, LiveArgs, RunSetting};
use crate::commands::{check, places};
use crate::exit::{Exit, Stop};
use crate::project;
use crate::terminal::Terminal;

/// The size of the pipe between the demo server and the agent.
const PIPE_BYTES: usize = 1 << 16;
/// The server that needs no configuration.
const DEMO: &str = "demo";

/// Measures the entries of the project, or makes the runs of tasks, or makes them again; scores them.
pub(crate) fn run(arguments: &AgentRunArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    if let Some(project) = arguments.project() {
        return check::one(&Evaluation::Agent, &project, terminal);
    }
    let AgentRunArgs { task, live, .. } = arguments;
    if arguments.bundled || arguments.only.is_some() || arguments.partition.is_some() {
        return Err(Stop::bad_input(
            "--bundled, --only and --partition select entries of a project and cannot be combined with TASKS \
             or options that describe a run",
        ));
    }
    check_numbers(live)?;
    if let Some(endpoint) = &task.endpoint {
        check_endpoint(endpoint)?;
    }
    let (config, runs) = match (&task.replay, arguments.tasks.is_empty()) {
        (Some(recording), true) => {
            let (config, runs) = karat_agent::run::recorded(recording)?;
            let replay = Some(recording.clone());
            let traces = in_out(arguments, task.traces.as_ref(), "traces.jsonl");
            (Config { replay, traces, ..config }, runs)
        }
        (None, true) => {
            return Err(Stop::bad_input(
                "missing TASKS, as in `karat agent run tasks.jsonl`; or replay a recording with --replay",
            ));
        }
        (_, false) => (config(arguments)?, live.runs),
    };
    let gate = policy(&task.rules, &[], live.max_errors)?;
    let common = Common { runs, gate, ..common(live, &task.name) };
    let run = arguments.check();
    let project = planned(common, config)?;
    check::ready(&run)?;
    // Before anything else is in it.
    places::prepare(&arguments.out)?;
    check::carry_out(&project, &run, terminal)
}

/// The plan of live runs: one entry.
pub(super) fn planned(mut common: Common, config: Config) -> Result<Project<'static>, Stop> {
    common.validate()?;
    AgentRun::check(&config, &mut common)?;
    let data = AgentRun::load(&config, &common, &here())?.with_server(DEMO, demo_server());
    Ok(project::of_any(Entry::<AgentRun> { common, config, data }))
}

/// The settings that entries of every evaluation share.
pub(super) fn common(live: &LiveArgs, name: &str) -> Common {
    Common {
        runs: live.runs,
        concurrency: live.concurrency,
        timeout_ms: live.timeout.as_millis(),
        retries: 4,
        backoff_ms: live.backoff.as_millis(),
        ..Common::named(name)
    }
}

pub(super) fn check_numbers(live: &LiveArgs) -> Result<(), Stop> {
    if !(1..=1000).contains(&live.runs) || !(1..=256).contains(&live.concurrency) {
        return Err(Stop::bad_input(
            "--runs must be between 1 and 1000, --concurrency between 1 and 256",
        ));
    }
    if !(0.0..=1.0).contains(&live.max_errors) {
        return Err(Stop::bad_input("--max-errors must be between 0 and 1"));
    }
    if live.max_turns == 0 {
        return Err(Stop::bad_input("--max-turns must be at least 1"));
    }
    let amount = |number: f64| number.is_finite() && number >= 0.0;
    if !live.max_cost.is_none_or(amount) || !amount(live.temperature) {
        return Err(Stop::bad_input("--max-cost and --temperature must not be negative"));
    }
    Ok(())
}

/// A model at an endpoint.
pub(super) fn model(live: &LiveArgs, name: &str, api: Api, endpoint: &str) -> Result<Model, Stop> {
    Ok(Model {
        name: name.to_owned(),
        api,
        endpoint: endpoint.to_owned(),
        max_tokens: live.answer_tokens,
        temperature: live.temperature,
        seed: live.seed,
        price: live.price.as_deref().map(price).transpose()?,
    })
}

/// The settings of live runs, without tasks, models and places.
pub(super) fn live_config(live: &LiveArgs) -> Config {
    Config {
        key_env: live.key_env.clone(),
        settings: vec![Setting::WithTools],
        budget: Budget {
            turns: live.max_turns,
            tokens: live.max_tokens,
            agent_timeout: live.agent_timeout,
            cost: live.max_cost,
        },
        system: live.system.clone(),
        servers: live.config.clone(),
        ..Config::default()
    }
}

fn in_out(arguments: &AgentRunArgs, path: Option<&PathBuf>, name: &str) -> PathBuf {
    path.cloned().unwrap_or_else(|| arguments.out.join(name))
}

fn config(arguments: &AgentRunArgs) -> Result<Config, Stop> {
    let AgentRunArgs { task, live, .. } = arguments;
    let endpoint = task.endpoint.as_deref().unwrap_or_default();
    let models = task.models.iter();
    let models = models.map(|name| model(live, name, live.api.into(), endpoint));
    let setting = |setting: &RunSetting| match setting {
        RunSetting::WithTools => Setting::WithTools,
        RunSetting::WithoutTools => Setting::WithoutTools,
        RunSetting::Distractors => Setting::Distractors,
    };
    let mut settings: Vec<Setting> = task.settings.iter().map(setting).collect();
    settings.sort();
    settings.dedup();
    Ok(Config {
        tasks: arguments.tasks.clone(),
        models: models.collect::<Result<_, Stop>>()?,
        settings,
        distractors: task.distractors.clone(),
        record: in_out(arguments, task.record.as_ref(), "agent-recording.jsonl"),
        replay: task.replay.clone(),
        traces: in_out(arguments, task.traces.as_ref(), "traces.jsonl"),
        ..live_config(live)
    })
}

fn price(text: &str) -> Result<(f64, f64), Stop> {
    let parts: Option<Vec<f64>> = text.split(',').map(|part| part.trim().parse().ok()).collect();
    match parts.as_deref() {
        Some([input, output]) if [input, output].iter().all(|n| n.is_finite() && **n >= 0.0) => {
            Ok((*input, *output))
        }
        _ => Err(Stop::bad_input(format!("--price: expected two numbers, IN,OUT, found {text:?}"))),
    }
}

/// Starts the demo server inside this process.
fn demo_server() -> Starter {
    Arc::new(|| {
        Box::pin(async {
            let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
            let (input, output) = tokio::io::split(theirs);
            let (offer, tools) = (demo::offer(), demo::Demo::default());
            tokio::spawn(karat_mcp::serve::over(offer, tools, input, output));
            let (input, output) = tokio::io::split(ours);
            let options = Options { folder: Some(PathBuf::from(".")), ..Options::default() };
            Session::over(input, output, None, &options).await
        })
    })
}
