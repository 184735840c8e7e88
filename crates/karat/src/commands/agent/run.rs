//! `karat agent run`: an agent at work over live servers, recorded and scored; or the same again from
//! the recording.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use karat_agent::drive::{self, Api, Budget, Exchange, Job, Model, Recording, Settings, World};
use karat_agent::trace::Setting;
use karat_agent::{Entry, Loaded, Made, Recorded, Tasks, Tools, Trace};
use karat_core::report::Evaluation;
use karat_io::input::write_atomic;
use karat_mcp::{Options, ServerSpec, Session, StartError};
use karat_server::demo;
use serde_json::{Value, json};

use super::client;
use super::score::policy;
use crate::cli::{AgentRunArgs, CheckArgs, ModelApi, RunSetting};
use crate::commands::{check, places};
use crate::exit::{Exit, Stop};
use crate::face::Terminal;
use crate::project::{Plan, Planned, Root, Task};
use crate::work::until_stopped;

/// How much fits between the demo server and us.
const PIPE: usize = 1 << 16;
/// The server that needs no configuration.
const DEMO: &str = "demo";

/// Makes the runs, or makes them again; scores them.
pub(crate) fn run(arguments: &AgentRunArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    check_numbers(arguments)?;
    let gate = policy(&arguments.min, &arguments.max, &[], arguments.max_errors)?;
    gate.validate().map_err(Stop::bad_input)?;
    let paths: Vec<&Path> = arguments.tasks.iter().map(PathBuf::as_path).collect();
    let tasks = Tasks::load(&paths)?;
    let settings = settings(arguments)?;
    let jobs = drive::jobs(&tasks, &settings)?;
    if jobs.is_empty() {
        return Err(Stop::not_measured("there is no task to run"));
    }
    let rest = CheckArgs::writing(&arguments.out, &arguments.outputs);
    check::ready(&rest)?;
    // Before anything else is in it.
    places::prepare(&arguments.out)?;
    let traces = match &arguments.replay {
        Some(path) => replay(path, jobs, &settings)?,
        None => live(arguments, &tasks, jobs, &settings)?,
    };
    let file = arguments.traces.clone().unwrap_or_else(|| arguments.out.join("traces.jsonl"));
    let lines: String = traces.iter().map(|trace| trace.to_line() + "\n").collect();
    write_atomic(&file, lines.as_bytes())?;
    enough(&traces, arguments.max_errors)?;
    let name = arguments.tasks[0].file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let recorded = Recorded::made(traces, &tasks, &name)?;
    let entry = Entry { name: arguments.name.clone(), gate, ..Entry::default() };
    let metrics = karat_agent::usual_metrics();
    let loaded =
        Loaded { recorded, tools: Tools::default(), metrics, verdicts: None, before: None };
    let plan = Plan {
        root: Root::Folder(PathBuf::from(".")),
        entries: vec![Planned { task: Task::agent(entry, loaded), baseline: None }],
    };
    check::carry_out(&plan, &rest, Some(Evaluation::Agent), terminal)
}

fn check_numbers(arguments: &AgentRunArgs) -> Result<(), Stop> {
    if !(1..=1000).contains(&arguments.runs) || !(1..=256).contains(&arguments.concurrency) {
        return Err(Stop::bad_input("--runs goes from 1 to 1000, --concurrency from 1 to 256"));
    }
    if !(0.0..=1.0).contains(&arguments.max_errors) {
        return Err(Stop::bad_input("--max-errors: a share goes from 0 to 1"));
    }
    if arguments.max_turns == 0 || arguments.max_seconds == 0 || arguments.timeout == 0 {
        return Err(Stop::bad_input("--max-turns, --max-seconds and --timeout begin at 1"));
    }
    let amount = |number: f64| number.is_finite() && number >= 0.0;
    if !arguments.max_cost.is_none_or(amount) || !amount(arguments.temperature) {
        return Err(Stop::bad_input("--max-cost and --temperature are numbers from 0"));
    }
    Ok(())
}

fn settings(arguments: &AgentRunArgs) -> Result<Settings, Stop> {
    let price = arguments.price.as_deref().map(price).transpose()?;
    let model = |name: &String| Model {
        name: name.clone(),
        api: match arguments.api {
            ModelApi::Openai => Api::Openai,
            ModelApi::Anthropic => Api::Anthropic,
        },
        endpoint: arguments.endpoint.clone().unwrap_or_default(),
        max_tokens: arguments.answer_tokens,
        temperature: arguments.temperature,
        seed: arguments.seed,
        price,
    };
    let mut named = BTreeSet::new();
    if let Some(name) = arguments.models.iter().find(|name| !named.insert(*name)) {
        return Err(Stop::bad_input(format!("--model: {name:?} is named twice")));
    }
    let mut models: Vec<Model> = arguments.models.iter().map(model).collect();
    if models.is_empty() {
        models.push(Model::scripted());
    }
    let setting = |setting: &RunSetting| match setting {
        RunSetting::WithTools => Setting::WithTools,
        RunSetting::WithoutTools => Setting::WithoutTools,
        RunSetting::Distractors => Setting::Distractors,
    };
    let mut settings: Vec<Setting> = arguments.settings.iter().map(setting).collect();
    settings.sort();
    settings.dedup();
    if settings.contains(&Setting::Distractors) && arguments.distractors.is_empty() {
        return Err(Stop::bad_input("the setting distractors needs a --distractor"));
    }
    Ok(Settings {
        models,
        runs: arguments.runs,
        settings,
        distractors: arguments.distractors.clone(),
        budget: Budget {
            turns: arguments.max_turns,
            tokens: arguments.max_tokens,
            time: Duration::from_secs(arguments.max_seconds),
            cost: arguments.max_cost,
        },
        concurrency: arguments.concurrency,
        system: arguments.system.clone(),
    })
}

fn price(text: &str) -> Result<(f64, f64), Stop> {
    let parts: Option<Vec<f64>> = text.split(',').map(|part| part.trim().parse().ok()).collect();
    match parts.as_deref() {
        Some([input, output]) if [input, output].iter().all(|n| n.is_finite() && **n >= 0.0) => {
            Ok((*input, *output))
        }
        _ => Err(Stop::bad_input(format!("--price: {text:?} should be two numbers, IN,OUT"))),
    }
}

fn replay(path: &Path, jobs: Vec<Job>, settings: &Settings) -> Result<Vec<Trace>, Stop> {
    let world = World::Replay(Arc::new(Recording::load(path)?));
    until_stopped(
        async { Ok(drive::run(jobs, settings, &world, &mut |_, _, _| {}).await?) },
        "interrupted",
    )
}

fn live(
    arguments: &AgentRunArgs,
    tasks: &Tasks,
    jobs: Vec<Job>,
    settings: &Settings,
) -> Result<Vec<Trace>, Stop> {
    let servers = servers(arguments, tasks)?;
    let endpoint = arguments.endpoint.as_deref();
    let client = client(arguments.api, arguments.key_env.as_deref(), endpoint, arguments.timeout)?;
    let path = arguments.record.clone();
    let path = path.unwrap_or_else(|| arguments.out.join("agent-recording.jsonl"));
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)
            .map_err(|error| Stop::bad_input(format!("{}: {error}", folder.display())))?;
    }
    let cannot = |error: std::io::Error| Stop::bad_input(format!("{}: {error}", path.display()));
    let mut file = File::create(&path).map_err(cannot)?;
    writeln!(file, "{}", Recording::head(&described(settings))).map_err(cannot)?;
    let mut failed = None;
    let mut done = |job: &Job, _: &Trace, exchanges: &[Exchange]| {
        // Each run is on disk as soon as it is done.
        if let Err(error) = file.write_all(Recording::lines(job, exchanges).as_bytes()) {
            failed = failed.take().or(Some(error));
        }
    };
    let world = World::Live {
        start: Arc::new(move |name| Box::pin(start(servers.get(&name).cloned(), name))),
        client,
        pause: Some(Duration::from_millis(arguments.retry_pause_ms)),
    };
    let traces = until_stopped(
        async { Ok(drive::run(jobs, settings, &world, &mut done).await?) },
        "interrupted; the runs that were done are in the recording",
    )?;
    match failed {
        Some(error) => Err(cannot(error)),
        None => Ok(traces),
    }
}

/// What was run, for the recording.
fn described(settings: &Settings) -> Value {
    let models: Vec<&str> = settings.models.iter().map(|model| model.name.as_str()).collect();
    json!({"models": models, "runs": settings.runs, "settings": settings.settings})
}

/// The servers that tasks and flags name; each must be known.
fn servers(arguments: &AgentRunArgs, tasks: &Tasks) -> Result<BTreeMap<String, ServerSpec>, Stop> {
    let file = match &arguments.config {
        Some(path) => Some(karat_mcp::config::read(path)?),
        None => None,
    };
    let mut known = BTreeMap::new();
    let named = tasks.iter().flat_map(|task| &task.servers).chain(&arguments.distractors);
    for name in named {
        let file = file.as_ref().filter(|file| file.names().any(|known| known == name));
        match file {
            Some(file) => known.insert(name.clone(), file.server(name)?),
            None if name == DEMO => None,
            None => {
                return Err(Stop::bad_input(format!(
                    "there is no server {name:?}; name a file that has it with --config (demo is \
                     built in)"
                )));
            }
        };
    }
    Ok(known)
}

async fn start(spec: Option<ServerSpec>, name: String) -> Result<Session, StartError> {
    let options = Options { folder: Some(PathBuf::from(".")), ..Options::default() };
    match spec {
        Some(spec) => Session::start(&spec, &options).await,
        None if name == DEMO => {
            let (ours, theirs) = tokio::io::duplex(PIPE);
            let (input, output) = tokio::io::split(theirs);
            tokio::spawn(karat_mcp::serve::over(
                demo::offer(),
                demo::Demo::default(),
                input,
                output,
            ));
            let (input, output) = tokio::io::split(ours);
            Session::over(input, output, None, &options).await
        }
        None => Err(StartError::Spec { why: format!("there is no server {name:?}") }),
    }
}

/// Runs that could not be made have no scores; beyond the allowance nothing is reported.
fn enough(traces: &[Trace], max_errors: f64) -> Result<(), Stop> {
    let made: Made = traces.iter().collect();
    if made.within(max_errors).is_ok() {
        return Ok(());
    }
    let classes: Vec<String> = drive::failures(traces)
        .iter()
        .map(|(class, (count, first))| format!("{class} {count} (first: {first})"))
        .collect();
    Err(Stop::not_measured(format!(
        "{} of {} runs could not be made: {}",
        made.failed,
        made.runs,
        classes.join("; ")
    )))
}
