//! `karat agent run`: an agent at work over live servers, recorded and scored; or the same again from
//! the recording.

use std::path::PathBuf;
use std::sync::Arc;

use karat_agent::AgentRun;
use karat_agent::run::{Budget, Config, Model, Starter};
use karat_agent::trace::Setting;
use karat_core::evaluation::{Common, Entry, Evaluation as _};
use karat_core::kind::Evaluation;
use karat_mcp::{Options, Session};
use karat_server::demo;

use super::score::policy;
use super::{check_endpoint, here};
use crate::cli::{AgentRunArgs, CheckArgs, RunSetting};
use crate::commands::{check, places};
use crate::exit::{Exit, Stop};
use crate::face::Terminal;
use crate::project;

/// The size of the pipe between the demo server and the agent.
const PIPE_BYTES: usize = 1 << 16;
/// The server that needs no configuration.
const DEMO: &str = "demo";

/// Makes the runs, or makes them again; scores them.
pub(crate) fn run(arguments: &AgentRunArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    check_numbers(arguments)?;
    if let Some(endpoint) = &arguments.endpoint {
        check_endpoint(endpoint)?;
    }
    let mut common = Common {
        runs: arguments.runs,
        concurrency: arguments.concurrency,
        timeout_ms: arguments.timeout.saturating_mul(1000),
        retries: 4,
        backoff_ms: arguments.retry_pause_ms,
        gate: policy(&arguments.min, &arguments.max, &[], arguments.max_errors)?,
        ..Common::named(&arguments.name)
    };
    common.validate()?;
    let config = config(arguments)?;
    AgentRun::check(&config, &mut common)?;
    let data = AgentRun::load(&config, &common, &here())?.with_server(DEMO, demo_server());
    let run = CheckArgs {
        resume: arguments.resume,
        can_resume: true,
        ..CheckArgs::writing(&arguments.out, &arguments.outputs)
    };
    check::ready(&run)?;
    // Before anything else is in it.
    places::prepare(&arguments.out)?;
    let project = project::of_any(Entry::<AgentRun> { common, config, data });
    check::carry_out(&project, &run, Some(&Evaluation::Agent), terminal)
}

fn check_numbers(arguments: &AgentRunArgs) -> Result<(), Stop> {
    if !(1..=1000).contains(&arguments.runs) || !(1..=256).contains(&arguments.concurrency) {
        return Err(Stop::bad_input(
            "--runs must be between 1 and 1000, --concurrency between 1 and 256",
        ));
    }
    if !(0.0..=1.0).contains(&arguments.max_errors) {
        return Err(Stop::bad_input("--max-errors must be between 0 and 1"));
    }
    if arguments.max_turns == 0 || arguments.max_seconds == 0 || arguments.timeout == 0 {
        return Err(Stop::bad_input("--max-turns, --max-seconds and --timeout must be at least 1"));
    }
    let amount = |number: f64| number.is_finite() && number >= 0.0;
    if !arguments.max_cost.is_none_or(amount) || !amount(arguments.temperature) {
        return Err(Stop::bad_input("--max-cost and --temperature must not be negative"));
    }
    Ok(())
}

fn config(arguments: &AgentRunArgs) -> Result<Config, Stop> {
    let price = arguments.price.as_deref().map(price).transpose()?;
    let model = |name: &String| Model {
        name: name.clone(),
        api: arguments.api.into(),
        endpoint: arguments.endpoint.clone().unwrap_or_default(),
        max_tokens: arguments.answer_tokens,
        temperature: arguments.temperature,
        seed: arguments.seed,
        price,
    };
    let setting = |setting: &RunSetting| match setting {
        RunSetting::WithTools => Setting::WithTools,
        RunSetting::WithoutTools => Setting::WithoutTools,
        RunSetting::Distractors => Setting::Distractors,
    };
    let mut settings: Vec<Setting> = arguments.settings.iter().map(setting).collect();
    settings.sort();
    settings.dedup();
    let in_out = |name: &str| arguments.out.join(name);
    let or_in_out = |path: &Option<PathBuf>, name| path.clone().unwrap_or_else(|| in_out(name));
    Ok(Config {
        tasks: arguments.tasks.clone(),
        models: arguments.models.iter().map(model).collect(),
        key_env: arguments.key_env.clone(),
        settings,
        distractors: arguments.distractors.clone(),
        budget: Budget {
            turns: arguments.max_turns,
            tokens: arguments.max_tokens,
            seconds: arguments.max_seconds,
            cost: arguments.max_cost,
        },
        system: arguments.system.clone(),
        servers: arguments.config.clone(),
        record: or_in_out(&arguments.record, "agent-recording.jsonl"),
        replay: arguments.replay.clone(),
        traces: or_in_out(&arguments.traces, "traces.jsonl"),
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
