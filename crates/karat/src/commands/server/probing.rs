//! Shared by `karat server fuzz` and `attack`: reads their arguments, and shows what was
//! found.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use karat_core::evaluation::{Common, Entry, Evaluation, RunContext, evaluate};
use karat_core::finding::{Finding, Severity};
use karat_core::gate;
use karat_core::project::Root;
use karat_core::report::{CheckReport, Report, Verdict};
use karat_io::input::write_atomic;
use karat_io::text::{clip, count, printable};
use karat_mcp::ServerSpec;
use karat_report::{Output, sarif};
use karat_server::probe::stop::StopRequest;
use karat_server::probe::{self, Rule};
use serde_json::{Map, Value};

use super::target;
use crate::bundled::Embedded;
use crate::cli::{FailOn, Format, ProbeArgs};
use crate::commands::check;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;
use crate::work::until_stopped_twice;

/// The exit code after an interrupt.
const INTERRUPTED: u8 = 130;
/// The width of the findings.
const WIDTH: usize = 100;

/// The server that is meant; one must be.
pub(super) fn spec(arguments: &ProbeArgs, terminal: &Terminal) -> Result<ServerSpec, Stop> {
    target::needed(&arguments.target, terminal)
}

/// Checks the arguments before anything is started.
pub(super) fn check(arguments: &ProbeArgs) -> Result<(), Stop> {
    for path in &arguments.outputs {
        Output::of(path).map_err(Stop::bad_input)?;
    }
    Ok(())
}

/// Values that are known to work, by the name of the parameter.
pub(super) fn known(set: &[String]) -> Result<Map<String, Value>, Stop> {
    let read = |written: &String| match written.split_once('=') {
        Some((name, text)) if !name.is_empty() => {
            let value = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
            Ok((name.to_owned(), value))
        }
        _ => Err(Stop::bad_input(format!("--set: expected NAME=VALUE, found {written:?}"))),
    };
    set.iter().map(read).collect()
}

/// The settings that all entries share.
pub(super) fn common(name: &str, arguments: &ProbeArgs) -> Common {
    Common { seed: arguments.seed, ..arguments.times.limits().common(name) }
}

impl From<FailOn> for probe::FailOn {
    fn from(fail_on: FailOn) -> probe::FailOn {
        match fail_on {
            FailOn::Note => probe::FailOn::Note,
            FailOn::Warning => probe::FailOn::Warning,
            FailOn::Error => probe::FailOn::Error,
            FailOn::Never => probe::FailOn::Never,
        }
    }
}

/// The exit code of a run: an interrupted one says so, whatever it found.
pub(super) fn exit(stop: &StopRequest, exit: Exit) -> Exit {
    if stop.is_made() { Exit::Stopped(INTERRUPTED) } else { exit }
}

/// Measures an entry that the command line describes; its own checks are its gate. The first interrupt ends
/// it with the results so far, the second at once.
pub(super) fn measure<E: Evaluation>(
    mut common: Common,
    config: E::Config,
    stop: &StopRequest,
    terminal: &Terminal,
) -> Result<Report, Stop> {
    E::check(&config, &mut common)?;
    let data = E::load(&config, &common, &Root::in_folder(".", &Embedded))?;
    let entry = Entry::<E> { common, config, data };
    let context = RunContext {
        folder: Path::new("."),
        journal: None,
        resume: false,
        progress: Arc::new(terminal.progress(&entry.common.name)),
    };
    let work = async { evaluate(&entry, &context).await.map_err(Stop::from) };
    let mut report = until_stopped_twice(work, &|| stop.stop())?;
    gate::judge(&mut report, &entry.common.gate, None).map_err(Stop::bad_input)?;
    Ok(report)
}

/// The numbers of findings by severity, such as `1 error, 3 warnings, 0 notes`.
pub(super) fn tally(of: impl Fn(Severity) -> usize) -> String {
    let part = |severity: Severity| count(of(severity), severity.name());
    [Severity::Error, Severity::Warning, Severity::Note].map(part).join(", ")
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
    let document = CheckReport::of(vec![report]);
    for path in &arguments.outputs {
        let output = Output::of(path).map_err(Stop::bad_input)?;
        let text = output.render(&document).map_err(Stop::bad_input)?;
        write_atomic(path, text.as_bytes())?;
    }
    if let Some(path) = &arguments.findings.sarif {
        write_sarif(path, rules, findings)?;
    }
    if terminal.json() {
        terminal.print_json(&document)?;
    } else if arguments.form.format == Format::Agent {
        let written: Vec<String> =
            arguments.outputs.iter().map(|path| path.display().to_string()).collect();
        terminal.print(&karat_report::agent::text(&document, &written))?;
    } else if terminal.quiet() {
        terminal.print(&format!("{}{}", listed(findings), check::trouble(&document)))?;
    } else {
        let style = terminal.style();
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
pub(super) fn listed(findings: &[Finding]) -> String {
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

/// Findings as SARIF.
pub(super) fn log<'a>(
    rules: &[&'a Rule],
    findings: impl IntoIterator<Item = &'a Finding>,
) -> sarif::Log<'a> {
    sarif::Log {
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
            .into_iter()
            .map(|finding| sarif::Result {
                rule: &finding.rule,
                level: finding.severity.name(),
                message: &finding.message,
                subject: &finding.tool,
                at: &finding.at,
            })
            .collect(),
    }
}

fn write_sarif(path: &Path, rules: &[&Rule], findings: &[Finding]) -> Result<(), Stop> {
    let shown = |finding: &Finding| match finding.replay.as_str() {
        "" => finding.clone(),
        replay => {
            let message = format!("{} (again: {replay})", finding.message);
            Finding { message, ..finding.clone() }
        }
    };
    let findings: Vec<Finding> = findings.iter().map(shown).collect();
    write_atomic(path, sarif::document(&log(rules, &findings)).as_bytes())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_counted_with_their_noun() {
        let shown = tally(|severity| match severity {
            Severity::Error => 1,
            Severity::Warning => 3,
            Severity::Note => 0,
        });
        assert_eq!(shown, "1 error, 3 warnings, 0 notes");
    }
}
