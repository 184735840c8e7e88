//! Shared by `karat server fuzz` and `attack`: reading their arguments, and showing what was
//! found.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use karat_core::report::{self, CheckReport, Report, Verdict};
use karat_io::input::{self, write_atomic};
use karat_io::text::{clip, printable};
use karat_mcp::{Options, ServerSpec};
use karat_report::{Output, sarif};
use karat_server::probe::{Finding, Rule, Severity};
use serde_json::{Map, Value};

use super::recording::Recording;
use super::target;
use crate::cli::{FailOn, ProbeArgs};
use crate::commands::check;
use crate::exit::{Exit, Stop};
use crate::face::Terminal;

/// The width of what is found.
const WIDTH: usize = 100;

/// The server that is meant; one must be.
pub(super) fn spec(arguments: &ProbeArgs, terminal: &Terminal) -> Result<ServerSpec, Stop> {
    target::spec(&arguments.target, terminal)?.ok_or_else(|| {
        Stop::bad_input("name a server: a command after `--`, --url, or --server NAME")
    })
}

/// Returns whether the arguments make sense, before anything is started.
pub(super) fn check(arguments: &ProbeArgs, rules: &[&Rule]) -> Result<(), Stop> {
    for id in &arguments.allow {
        if !rules.iter().any(|rule| rule.id == id) {
            let hint = input::nearest(id, rules.iter().map(|rule| rule.id))
                .map(|near| format!(" (did you mean {near:?}?)"))
                .unwrap_or_default();
            return Err(Stop::bad_input(format!("--allow: there is no rule {id:?}{hint}")));
        }
    }
    for path in &arguments.outputs {
        Output::of(path).map_err(Stop::bad_input)?;
    }
    Ok(())
}

/// Values that are known to work, by the name of the parameter.
pub(super) fn known(arguments: &ProbeArgs) -> Result<Map<String, Value>, Stop> {
    let read = |written: &String| match written.split_once('=') {
        Some((name, text)) if !name.is_empty() => {
            let value = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
            Ok((name.to_owned(), value))
        }
        _ => Err(Stop::bad_input(format!("--set: write {written:?} as NAME=VALUE"))),
    };
    arguments.set.iter().map(read).collect()
}

/// The way the session is held.
pub(super) fn options(arguments: &ProbeArgs, recording: &Recording<'_>) -> Options {
    Options {
        call_timeout: Duration::from_millis(arguments.timeout_ms),
        start_timeout: Duration::from_millis(arguments.start_timeout_ms),
        // A server that was left with a call under way gets the time to clean up.
        grace: Duration::from_secs(3),
        recorder: recording.recorder(),
        ..Options::default()
    }
}

/// The mildest finding that fails the run.
pub(super) fn fail_on(arguments: &ProbeArgs) -> Option<Severity> {
    match arguments.fail_on {
        FailOn::Never => None,
        FailOn::Note => Some(Severity::Note),
        FailOn::Warning => Some(Severity::Warning),
        FailOn::Error => Some(Severity::Error),
    }
}

/// The rules with their reasons.
pub(super) fn rules(rules: &[&Rule]) -> String {
    let mut out = String::new();
    for rule in rules {
        let _ = writeln!(out, "{} ({}): {}", rule.id, rule.severity.name(), rule.summary);
        let _ = writeln!(out, "    {}", rule.help);
    }
    out
}

/// Writes and prints everything, and says how it ends.
pub(super) fn show(
    arguments: &ProbeArgs,
    rules: &[&Rule],
    report: Report,
    findings: &[Finding],
    more: &str,
    terminal: &Terminal,
) -> Result<Exit, Stop> {
    let verdict = report.gate.as_ref().map(|gate| gate.verdict);
    let document = CheckReport {
        schema: report::CHECK_SCHEMA.to_owned(),
        verdict,
        reports: vec![report],
        not_measured: Vec::new(),
        not_run: Vec::new(),
    };
    for path in &arguments.outputs {
        let output = Output::of(path).map_err(Stop::bad_input)?;
        let text = output.render(&document).map_err(Stop::bad_input)?;
        write_atomic(path, text.as_bytes())?;
    }
    if let Some(path) = &arguments.sarif {
        write_sarif(path, rules, findings)?;
    }
    if terminal.json() {
        terminal.print_json(&document)?;
    } else if terminal.quiet() {
        terminal.print(&format!("{}{}", listed(findings), check::trouble(&document)))?;
    } else {
        let style = karat_report::terminal::Style { colors: terminal.colors() };
        let mut text = listed(findings);
        text.push_str(more);
        text.push_str(&karat_report::terminal::check(&document, style));
        terminal.print(&text)?;
    }
    Ok(match verdict {
        Some(Verdict::Fail) => Exit::GateFailed,
        _ => Exit::Pass,
    })
}

/// The findings, tool by tool, each with the line that shows it again.
fn listed(findings: &[Finding]) -> String {
    let mut out = String::new();
    let mut tool: Option<&str> = None;
    for finding in findings {
        if tool != Some(finding.tool.as_str()) {
            let name = if finding.tool.is_empty() { "(the server)" } else { &finding.tool };
            let _ = writeln!(out, "{}", printable(name));
            tool = Some(&finding.tool);
        }
        let Finding { rule, severity, message, input, answer, replay, .. } = finding;
        let message = printable(message);
        let _ = writeln!(out, "  {:<8}{}  [{rule}]", severity.name(), clip(&message, 4 * WIDTH));
        for (what, text) in [("sent", input), ("answer", answer)] {
            if !text.is_empty() {
                let _ = writeln!(out, "          {what}: {}", clip(&printable(text), WIDTH));
            }
        }
        if !replay.is_empty() {
            let _ = writeln!(out, "          again: {}", printable(replay));
        }
    }
    if !findings.is_empty() {
        out.push('\n');
    }
    out
}

fn write_sarif(path: &Path, rules: &[&Rule], findings: &[Finding]) -> Result<(), Stop> {
    let messages: Vec<String> = findings
        .iter()
        .map(|finding| match finding.replay.as_str() {
            "" => finding.message.clone(),
            replay => format!("{} (again: {replay})", finding.message),
        })
        .collect();
    let log = sarif::Log {
        rules: rules
            .iter()
            .map(|rule| sarif::Rule {
                id: rule.id,
                summary: rule.summary,
                help: rule.help,
                level: rule.severity.name(),
            })
            .collect(),
        results: findings
            .iter()
            .zip(&messages)
            .map(|(finding, message)| sarif::Result {
                rule: finding.rule,
                level: finding.severity.name(),
                message,
                subject: &finding.tool,
                at: &finding.at,
            })
            .collect(),
    };
    write_atomic(path, sarif::document(&log).as_bytes())?;
    Ok(())
}
