//! `karat server drift`: a live server against its accepted state: definitions, instructions, and the
//! answers of canary calls.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use karat_core::evaluation::{self, Common, Entry, Evaluation as _, RunContext};
use karat_core::finding::{Finding, Severity};
use karat_core::observed::Observed;
use karat_core::report::{Item, Property};
use karat_core::run::Silent;
use karat_io::input::{self, Limits, write_atomic};
use karat_io::text::{clip, printable};
use karat_mcp::{Options, ServerSpec};
use karat_metrics::metric;
use karat_server::suite::Suite;
use karat_server::suites::{Config, Dataset};
use karat_server::{Suites, drift, probe};
use serde_json::{Value, json};

use super::recording::Recording;
use super::{detectors, lint, probing, target};
use crate::cli::DriftArgs;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;
use crate::work::until_stopped;

const SCHEMA: &str = "karat.definitions/1";
const WIDTH: usize = 200;

/// The accepted state of a server. Without instructions in the file they are not compared.
struct Accepted {
    tools: Vec<Value>,
    instructions: Option<Option<String>>,
}

/// Compares, or accepts the present state of the server.
pub(crate) fn drift(arguments: &DriftArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let file = &arguments.definitions;
    if arguments.update && arguments.canaries.is_some() {
        return Err(Stop::bad_input(
            "--update cannot be used with --canaries; accept canary calls in their suite",
        ));
    }
    let before = if arguments.update { None } else { Some(accepted(file)?) };
    let spec = target::needed(&arguments.target, terminal)?;
    let canaries = arguments.canaries.as_deref().map(|suite| entry(suite, &spec)).transpose()?;
    let recording = Recording::begin(&arguments.record)?;
    let options = Options { recorder: recording.recorder(), ..Options::default() };
    let mut served = recording.finish(lint::from_server(&spec, &options))?;
    target::say_remarks(terminal, &options);
    served.tools.iter_mut().for_each(|tool| served.redactor.hide_in(tool));
    let instructions = served.instructions.take().map(|text| served.redactor.hidden(text));
    let Some(before) = before else {
        if served.tools.is_empty() {
            return Err(Stop::not_measured("the server offers no tools; nothing was written"));
        }
        let document =
            json!({"schema": SCHEMA, "instructions": instructions, "tools": served.tools});
        write_atomic(file, karat_report::json::text(&document).as_bytes())?;
        let count = served.tools.len();
        terminal.say(&format!("{}: {} accepted", file.display(), counted(count)));
        return Ok(Exit::Pass);
    };
    let detector = Some(detectors::inspect as karat_server::detect::Detector);
    let mut found = drift::compare(&before.tools, &served.tools, detector);
    if let Some(then) = &before.instructions {
        let (then, now) = (then.as_deref(), instructions.as_deref());
        found.extend(drift::compare_instructions(then, now, detector));
    }
    let mut calls = None;
    if let Some(entry) = canaries {
        let (count, failed) = canary_calls(&entry)?;
        calls = Some(count);
        found.extend(failed);
    }
    found.sort_by(|a, b| b.severity.cmp(&a.severity).then_with(|| a.tool.cmp(&b.tool)));
    let counts = Counts { before: before.tools.len(), after: served.tools.len(), calls };
    if terminal.json() {
        terminal.print_json(&json!({
            "schema": "karat.drift/1",
            "server": spec.describe(),
            "tools": {"before": counts.before, "after": counts.after},
            "canaries": calls,
            "findings": found,
        }))?;
    } else {
        terminal.print(&text(&spec.describe(), &counts, &found))?;
    }
    let fails = |one: &Finding| probe::FailOn::from(arguments.fail_on).fails(one.severity);
    Ok(if found.iter().any(fails) { Exit::GateFailed } else { Exit::Pass })
}

fn accepted(file: &Path) -> Result<Accepted, Stop> {
    if !file.exists() {
        return Err(Stop::bad_input(format!(
            "{} does not exist; write the definitions of the server to it with --update",
            file.display()
        )));
    }
    let value: Value = input::load(file, &Limits::default())?;
    let tools = lint::listed(file, &value)?;
    if tools.is_empty() {
        return Err(Stop::bad_input(format!("{}: no tools in the file", file.display())));
    }
    let instructions = value.get("instructions").map(|text| text.as_str().map(str::to_owned));
    Ok(Accepted { tools, instructions })
}

/// The entry of a suite for the server.
fn entry(suite: &Path, spec: &ServerSpec) -> Result<Entry<Suites>, Stop> {
    let config =
        Config { suite: suite.to_owned(), server: Some(spec.clone()), ..Config::default() };
    let mut common = Common::named("canaries");
    Suites::check(&config, &mut common)?;
    let data = Dataset::new(Suite::load(suite)?, &config, Path::new(""))?;
    Ok(Entry { common, config, data })
}

/// Runs the cases. Returns their number, and a finding for each that fails.
fn canary_calls(entry: &Entry<Suites>) -> Result<(usize, Vec<Finding>), Stop> {
    let context = RunContext {
        folder: Path::new("."),
        journal: None,
        resume: false,
        progress: Arc::new(Silent),
    };
    let work = async { Ok(evaluation::evaluate(entry, &context).await?) };
    let report = until_stopped(work, "interrupted")?;
    let failed =
        |item: &&Item| item.metrics.get(&metric!("pass_rate")).copied().flatten() != Some(1.0);
    let finding = |item: &Item| {
        let reason = match &item.observed {
            Some(Observed::Suite(observed)) => observed.reasons.first().cloned(),
            _ => item.error.as_ref().map(|error| error.message.clone()),
        };
        Finding {
            rule: drift::CANARY.id.to_owned(),
            severity: drift::CANARY.severity,
            tool: item.tag(Property::Tool).unwrap_or_default().to_owned(),
            at: item.id.clone(),
            message: reason.unwrap_or_else(|| "it failed".to_owned()),
            ..Finding::default()
        }
    };
    Ok((report.items.len(), report.items.iter().filter(failed).map(finding).collect()))
}

struct Counts {
    before: usize,
    after: usize,
    calls: Option<usize>,
}

fn text(server: &str, counts: &Counts, found: &[Finding]) -> String {
    let mut out = String::new();
    for Finding { rule, severity, tool, at, message, .. } in found {
        let parts = [tool.as_str(), at, message];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let line = parts.join(": ");
        let line = printable(&line);
        let _ = writeln!(out, "{:<8}{}  [{rule}]", severity.name(), clip(&line, WIDTH));
    }
    let canaries = match counts.calls {
        None => String::new(),
        Some(1) => ", 1 canary call".to_owned(),
        Some(count) => format!(", {count} canary calls"),
    };
    let (server, after) = (printable(server), counted(counts.after));
    let of = |severity: Severity| found.iter().filter(|one| one.severity == severity).count();
    let _ = match found.is_empty() {
        true => writeln!(out, "{server}: {after}{canaries}, no change"),
        false => writeln!(
            out,
            "{server}: {} before, {after} now{canaries}; {}",
            counted(counts.before),
            probing::tally(of)
        ),
    };
    out
}

fn counted(tools: usize) -> String {
    if tools == 1 { "1 tool".to_owned() } else { format!("{tools} tools") }
}
