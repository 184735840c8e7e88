//! `karat server test`: one suite against one server, gated and reported as `karat check` does.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::Path;

use karat_core::evaluation::{Common, Entry, Evaluation as _};
use karat_io::input::{self, Limits};
use karat_server::Suites;
use karat_server::suite::Suite;
use karat_server::suites::{AcceptSnapshots, Config, Dataset};
use serde_json::{Value, json};

use super::recording::Recording;
use super::target;
use crate::cli::{CheckArgs, ServerTestArgs};
use crate::commands::check;
use crate::exit::{Exit, Stop};
use crate::face::Terminal;
use crate::project;

/// Runs the suite. Every case must pass.
pub(crate) fn test(arguments: &ServerTestArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let suite = match is_stdin(arguments) {
        true if arguments.update => {
            return Err(Stop::bad_input("--update: a suite from stdin has no snapshots"));
        }
        true => Suite::parse(Path::new("stdin.yaml"), &standard_input()?)?,
        false => Suite::load(&arguments.suite)?,
    };
    let only = match arguments.last_failed {
        true => last_failed(arguments, &suite, terminal)?,
        false => BTreeSet::new(),
    };
    let recording = Recording::begin(&arguments.record)?;
    let config = Config {
        suite: arguments.suite.clone(),
        server: target::spec_or(&arguments.target, suite.server.as_ref(), terminal)?,
        tags: arguments.tag.clone(),
        case: arguments.case.clone(),
        only,
        recorder: recording.recorder(),
        ..Config::default()
    };
    let mut common = Common {
        timeout_ms: arguments.times.timeout_ms,
        start_timeout_ms: arguments.times.start_timeout_ms,
        ..Common::named(name(arguments))
    };
    Suites::check(&config, &mut common)?;
    let data = Dataset::new(suite, &config, Path::new(""))?;
    let entry = Entry::<Suites> { common, config, data };
    let project = match arguments.update {
        true => project::of_any(AcceptSnapshots(entry)),
        false => project::of_any(entry),
    };
    let run = CheckArgs::writing(&arguments.out, &arguments.outputs).in_form(arguments.form);
    recording.finish(check::carry_out(&project, &run, terminal))
}

fn is_stdin(arguments: &ServerTestArgs) -> bool {
    arguments.suite == Path::new("-")
}

/// All of standard input, up to the size that a file may have.
fn standard_input() -> Result<Vec<u8>, Stop> {
    let mut bytes = Vec::new();
    let limit = Limits::default().bytes;
    let read = std::io::stdin().lock().take(limit + 1).read_to_end(&mut bytes);
    read.map_err(|error| Stop::bad_input(format!("stdin: {error}")))?;
    if bytes.len() as u64 > limit {
        return Err(Stop::bad_input(format!("stdin: more than {limit} bytes")));
    }
    Ok(bytes)
}

/// The cases that did not pass in the last run of this suite.
fn last_failed(
    arguments: &ServerTestArgs,
    suite: &Suite,
    terminal: &Terminal,
) -> Result<BTreeSet<String>, Stop> {
    let path = arguments.out.join("report.json");
    if !path.exists() {
        return Err(Stop::bad_input(format!(
            "--last-failed: no report of an earlier run at {}",
            path.display()
        )));
    }
    let document: Value = input::load(&path, &Limits::default())?;
    let reports = document.get("reports").and_then(Value::as_array);
    let of_suite = |report: &&Value| report.pointer("/dataset/id") == Some(&json!(suite.name));
    let items = reports.into_iter().flatten().filter(of_suite).map(|report| report.get("items"));
    let mut items = items.flatten().filter_map(Value::as_array).flatten().peekable();
    if items.peek().is_none() {
        let (path, name) = (path.display(), &suite.name);
        return Err(Stop::bad_input(format!("--last-failed: {path} has no report of {name:?}")));
    }
    let failed = |item: &&Value| item.pointer("/metrics/pass_rate") != Some(&json!(1.0));
    let id = |item: &Value| item.get("id").and_then(Value::as_str).map(str::to_owned);
    let found: BTreeSet<String> = items.filter(failed).filter_map(id).collect();
    let known = |id: &String| suite.cases.iter().any(|case| case.id == *id) || id.contains('/');
    let found: BTreeSet<String> = found.into_iter().filter(known).collect();
    if found.is_empty() {
        terminal.say("no case failed in the last run; running all");
    }
    Ok(found)
}

/// The name of the suite's file, as far as it can name an entry.
fn name(arguments: &ServerTestArgs) -> String {
    if is_stdin(arguments) {
        return "stdin".to_owned();
    }
    let stem = arguments.suite.file_stem().unwrap_or_default().to_string_lossy();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    stem.chars().map(plain).collect()
}
