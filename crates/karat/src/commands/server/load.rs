//! `karat server load`: many calls at once, or at a rate, timed and reported as a check of one entry.

use std::path::PathBuf;

use karat_core::evaluation::{Common, Entry, Evaluation as _, RunContext, collect, report};
use karat_core::gate::{Policy, Rule};
use karat_core::project::Root;
use karat_io::input::{self, Limits, blocks, write_atomic};
use karat_io::time::Time;
use karat_metrics::metric;
use karat_server::load::parts::{self, Part};
use karat_server::load::{Condition, Config, Load};
use karat_server::suite::Suite;

use super::target;
use crate::bundled::Embedded;
use crate::cli::{CheckArgs, LoadArgs};
use crate::commands::check;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;
use crate::work::until_stopped_on_one_thread;

/// The bytes at the start of a file that identify it, and the largest part.
const HEAD: usize = 200;
const MAX_PART_BYTES: u64 = 1 << 30;
const MAX_PART_LINE: usize = 1 << 30;

/// Loads a server.
pub(crate) fn load(arguments: &LoadArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let run = CheckArgs::writing(&arguments.out, &arguments.outputs).in_form(arguments.form);
    check::ready(&run)?;
    let mut common = Common {
        seed: arguments.seed,
        gate: policy(arguments)?,
        ..arguments.times.limits().common("load")
    };
    let config = config(arguments, terminal)?;
    Load::check(&config, &mut common)?;
    let data = Load::load(&config, &common, &Root::in_folder(".", &Embedded))?;
    let entry = Entry::<Load> { common, config, data };
    let context = RunContext {
        folder: std::path::Path::new("."),
        journal: None,
        resume: false,
        progress: std::sync::Arc::new(terminal.progress("load")),
    };
    let work = async { collect(&entry, &context).await.map_err(Stop::from) };
    let collected = until_stopped_on_one_thread(work, "interrupted; no report was written")?;
    let report = report(&entry, &collected, Some(context.folder))?;
    if let Some(path) = &arguments.part {
        let part = Part::of(&entry, &collected, report.clone())?;
        write_atomic(path, karat_report::json::text(&part).as_bytes())?;
    }
    check::conclude(report, &entry.common.gate, &run, terminal)
}

/// Merges the load of several generators, if the files are parts of one.
pub(crate) fn merge(
    files: &[PathBuf],
    run: &CheckArgs,
    terminal: &Terminal,
) -> Result<Option<Exit>, Stop> {
    let limits = Limits { bytes: MAX_PART_BYTES, line_bytes: MAX_PART_LINE, ..Limits::default() };
    let is_part = |path: &&PathBuf| {
        // Opening a pipe would wait for its other end.
        if !path.is_file() {
            return false;
        }
        let mut start = Vec::new();
        let read =
            blocks(path, &limits).is_ok_and(|mut blocks| blocks.next_block(&mut start).is_ok());
        start.truncate(HEAD);
        read && String::from_utf8_lossy(&start).contains(parts::SCHEMA)
    };
    let count = files.iter().filter(is_part).count();
    if count == 0 {
        return Ok(None);
    }
    if count < files.len() {
        let other = files.iter().find(|path| !is_part(path)).map(|path| path.display().to_string());
        let other = other.unwrap_or_default();
        return Err(Stop::bad_input(format!(
            "{other}: not the part of a load, unlike the other files"
        )));
    }
    check::ready(run)?;
    let read = |path: &PathBuf| -> Result<Part, Stop> { Ok(input::load(path, &limits)?) };
    let parts = files.iter().map(read).collect::<Result<Vec<Part>, Stop>>()?;
    let policy = parts.first().map(|part| part.policy.clone()).unwrap_or_default();
    check::conclude(parts::merge(parts)?, &policy, run, terminal).map(Some)
}

fn policy(arguments: &LoadArgs) -> Result<Policy, Stop> {
    let mut policy = Policy::default();
    let millis = |time: Time| time.0.as_nanos() as f64 / 1e6;
    for (flag, id, max) in [
        ("--max-p50", metric!("latency.p50"), arguments.max_p50.map(millis)),
        ("--max-error-rate", metric!("error_rate"), arguments.max_error_rate),
    ] {
        let Some(max) = max else { continue };
        if !max.is_finite() || max < 0.0 {
            return Err(Stop::bad_input(format!("{flag} must not be negative")));
        }
        policy.metrics.insert(id.to_string(), Rule { max: Some(max), ..Rule::default() });
    }
    Ok(policy)
}

fn config(arguments: &LoadArgs, terminal: &Terminal) -> Result<Config, Stop> {
    let suite = arguments.suite.as_deref().map(Suite::load).transpose()?;
    let named = suite.as_ref().and_then(|suite| suite.server.as_ref());
    let server = target::spec_or(&arguments.target, named, terminal)?.ok_or_else(|| {
        Stop::bad_input(
            "missing server: pass a command after `--`, --url, --server NAME, or name it as mcp_server in the suite",
        )
    })?;
    let wrong = |flag: &str| {
        let flag = flag.to_owned();
        move |error: String| Stop::bad_input(format!("{flag} {error}"))
    };
    let find_max = arguments.find_max.as_deref().map(Condition::parse).transpose();
    Ok(Config {
        server: Some(server),
        suite: arguments.suite.clone(),
        tags: arguments.tag.clone(),
        tool: arguments.tool.clone(),
        input: serde_json::from_str(&arguments.input)
            .map_err(|error| Stop::bad_input(format!("--input is not a JSON object: {error}")))?,
        concurrency: arguments.concurrency,
        rate: arguments.rate,
        connections: arguments.connections,
        ramp: arguments.ramp,
        duration: arguments.duration,
        count: arguments.count,
        warm_up: arguments.warm_up.parse().map_err(wrong("--warm-up"))?,
        find_max: find_max.map_err(wrong("--find-max"))?,
        ..Config::default()
    })
}
