//! `karat server test`: one suite against one server, gated and reported as `karat check` does.

use std::collections::BTreeSet;
use std::path::Path;

use karat_core::evaluation::{Entry, Evaluation as _};
use karat_core::kind::Kind;
use karat_core::report::{Item, Report, load_reports};
use karat_io::input::{self, Limits};
use karat_io::redact::HIDDEN;
use karat_metrics::metric;
use karat_server::Suites;
use karat_server::suite::Suite;
use karat_server::suites::{AcceptSnapshots, Config, Dataset};

use super::recording::Recording;
use super::target;
use crate::cli::{CheckArgs, ServerTestArgs};
use crate::commands::check;
use crate::exit::{Exit, Stop};
use crate::project;
use crate::terminal::Terminal;

/// Runs the suite. Every case must pass.
pub(crate) fn test(arguments: &ServerTestArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    if arguments.update && is_stdin(&arguments.suite) {
        return Err(Stop::bad_input("--update: a suite from stdin has no snapshots"));
    }
    let suite = suite_of(&arguments.suite)?;
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
    let mut common = arguments.times.limits().common(&name(arguments));
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

/// The suite of a path; `-` is standard input.
pub(super) fn suite_of(path: &Path) -> Result<Suite, Stop> {
    Ok(match is_stdin(path) {
        true => {
            let bytes = input::read_stream("stdin", std::io::stdin(), &Limits::default())?;
            Suite::parse(Path::new("stdin.yaml"), &bytes)?
        }
        false => Suite::load(path)?,
    })
}

fn is_stdin(suite: &Path) -> bool {
    suite == Path::new("-")
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
    let reports = load_reports(&path)?;
    let of_suite = |report: &&Report| report.kind == Kind::Suite && report.dataset.id == suite.name;
    let mut items = reports.iter().filter(of_suite).flat_map(|report| &report.items).peekable();
    if items.peek().is_none() {
        let (path, name) = (path.display(), &suite.name);
        return Err(Stop::bad_input(format!("--last-failed: {path} has no report of {name:?}")));
    }
    let failed =
        |item: &&Item| item.metrics.get(&metric!("pass_rate")).copied().flatten() != Some(1.0);
    let found: BTreeSet<String> = items.filter(failed).map(|item| item.id.clone()).collect();
    // One text is several cases of a run, and secrets are hidden in ids.
    let is_derived = |id: &str| id.contains('/') || id.contains(HIDDEN);
    let known = |id: &String| suite.cases.iter().any(|case| case.id == *id) || is_derived(id);
    let found: BTreeSet<String> = found.into_iter().filter(known).collect();
    if found.is_empty() {
        terminal.say("no case failed in the last run; running all");
    }
    Ok(found)
}

/// The name of the suite's file, as far as it can name an entry.
fn name(arguments: &ServerTestArgs) -> String {
    if is_stdin(&arguments.suite) {
        return "stdin".to_owned();
    }
    let stem = arguments.suite.file_stem().unwrap_or_default().to_string_lossy();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    stem.chars().map(plain).collect()
}
