//! `karat agent upgrade`: one verdict on replacing a model.

use std::fmt::Write as _;
use std::path::PathBuf;

use karat_agent::run::{self, Api, Model};
use karat_agent::traces::Config;
use karat_agent::upgrade::{self, Allowed, Change, Upgrade, Verdict};
use karat_agent::{Tools, Trace};
use karat_core::evaluation::Common;
use karat_core::gate::Policy;
use karat_io::text::{count, printable};
use karat_metrics::metric;
use serde_json::json;

use super::run::{check_numbers, common, live_config, model, planned};
use super::{check_endpoint, config, here};
use crate::cli::{AgentUpgradeArgs, CheckArgs};
use crate::commands::measuring::measure;
use crate::commands::places;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;

/// Compares two models; FAIL is exit code 1, and so is DRIFT with `--no-drift`.
pub(crate) fn upgrade(arguments: &AgentUpgradeArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    for growth in [arguments.max_cost_growth, arguments.max_time_growth].into_iter().flatten() {
        if !(growth.is_finite() && growth >= 0.0) {
            return Err(Stop::bad_input(
                "--max-cost-growth and --max-time-growth must not be negative",
            ));
        }
    }
    check_numbers(&arguments.live)?;
    let allowed = Allowed {
        lost: arguments.max_lost,
        cost_growth: arguments.max_cost_growth,
        time_growth: arguments.max_time_growth,
    };
    // Both are understood before either is run.
    let before = Side::parse(&arguments.before, arguments)?;
    let after = Side::parse(&arguments.after, arguments)?;
    let before = before.traces("before", arguments, terminal)?;
    let after = after.traces("after", arguments, terminal)?;
    let seed = Common::named("upgrade").seed;
    let found = upgrade::judge(&before, &after, &Tools::default(), allowed, seed)?;
    match terminal.json() {
        true => terminal.print_json(&json!({"schema": "karat.upgrade/1", "upgrade": found}))?,
        false => terminal.print(&text(&found))?,
    }
    Ok(match found.verdict {
        Verdict::Fail => Exit::GateFailed,
        Verdict::Drift if arguments.no_drift => Exit::GateFailed,
        Verdict::Drift | Verdict::Pass => Exit::Pass,
    })
}

/// One of the two models.
enum Side {
    /// It was recorded.
    Recorded(PathBuf),
    /// It is run now.
    Live(Box<Model>),
}

impl Side {
    /// Reads a file name, or `MODEL@URL` with the API before it if it is another one.
    fn parse(written: &str, arguments: &AgentUpgradeArgs) -> Result<Self, Stop> {
        let at_url =
            |(_, url): &(&str, &str)| url.starts_with("http://") || url.starts_with("https://");
        let Some((name, url)) = written.rsplit_once('@').filter(at_url) else {
            return Ok(Side::Recorded(PathBuf::from(written)));
        };
        let (name, api) = match (name.strip_prefix("openai:"), name.strip_prefix("anthropic:")) {
            (Some(name), _) => (name, Api::Openai),
            (_, Some(name)) => (name, Api::Anthropic),
            (None, None) => (name, arguments.live.api.into()),
        };
        if name.is_empty() {
            return Err(Stop::bad_input(format!("expected MODEL@URL, found {written:?}")));
        }
        check_endpoint(url)?;
        if arguments.read.tasks.is_empty() {
            return Err(Stop::bad_input("MODEL@URL requires --tasks"));
        }
        Ok(Side::Live(Box::new(model(&arguments.live, name, api, url)?)))
    }

    /// The traces, made now if there are none.
    fn traces(
        self,
        name: &str,
        arguments: &AgentUpgradeArgs,
        terminal: &Terminal,
    ) -> Result<Vec<Trace>, Stop> {
        let file = match self {
            Side::Recorded(file) => file,
            Side::Live(model) => run(name, *model, arguments, terminal)?,
        };
        let config = Config {
            traces: vec![file],
            prices: arguments.prices.clone(),
            ..config(&arguments.read)?
        };
        Ok(config.whole_traces(&here())?.traces)
    }
}

/// Runs a model on the tasks, and returns the file with its traces.
fn run(
    name: &str,
    model: Model,
    arguments: &AgentUpgradeArgs,
    terminal: &Terminal,
) -> Result<PathBuf, Stop> {
    let out = arguments.out.join(name);
    let traces = out.join("traces.jsonl");
    let live = &arguments.live;
    let key_env = arguments.after_key_env.as_ref().filter(|_| name == "after");
    let config = run::Config {
        tasks: arguments.read.tasks.clone(),
        models: vec![model],
        key_env: key_env.or(live.key_env.as_ref()).cloned(),
        record: out.join("agent-recording.jsonl"),
        traces: traces.clone(),
        ..live_config(live)
    };
    let gate = Policy { max_errors: Some(live.max_errors), ..Policy::default() };
    let plan = planned(Common { gate, ..common(live, name) }, config)?;
    let run =
        CheckArgs { resume: arguments.resume, can_resume: true, ..CheckArgs::writing(&out, &[]) };
    places::prepare(&out)?;
    match measure(&plan, &run, terminal)?.not_measured.into_iter().next() {
        Some(missing) => Err(Stop::not_measured(format!("{name}: {}", missing.reason))),
        None => Ok(traces),
    }
}

fn text(found: &Upgrade) -> String {
    let mut text = format!("{}: {} compared\n", found.verdict.name(), count(found.tasks, "task"));
    for reason in &found.reasons {
        let _ = writeln!(text, "  {}", printable(reason));
    }
    text.push('\n');
    for (name, change) in [
        (metric!("task.success"), found.success),
        (metric!("run.cost"), found.cost),
        (metric!("run.ms"), found.ms),
        (metric!("run.tokens"), found.tokens),
    ] {
        let shown =
            |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.4}"));
        let Change { before, after } = change;
        let growth =
            change.growth().map_or(String::new(), |by| format!("  ({:+.1} %)", by * 100.0));
        let _ = writeln!(text, "{name:<14} {:>12} → {:>12}{growth}", shown(before), shown(after));
    }
    if let Some(p) = found.p {
        let _ =
            writeln!(text, "a loss like this by chance: p = {p:.4} (sign-flip test over tasks)");
    }
    text
}
