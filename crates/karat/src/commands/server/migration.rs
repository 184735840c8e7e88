//! `karat server migration`: a server and revision 2026-07-28.

use std::fmt::Write as _;

use karat_core::finding::Finding;
use karat_io::input::write_atomic;
use karat_io::text::printable;
use karat_report::sarif;
use karat_server::migration::{self, Migration, Settings};
use karat_server::probe;
use serde_json::json;

use super::recording::Recording;
use super::{probing, target};
use crate::cli::MigrationArgs;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;
use crate::work::until_stopped;

/// Checks a server and prints the report.
pub(crate) fn migration(arguments: &MigrationArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let rules = migration::rules();
    if arguments.findings.rules {
        terminal.print(&probing::rules(&rules))?;
        return Ok(Exit::Pass);
    }
    if let Some(id) =
        arguments.findings.allow.iter().find(|id| rules.iter().all(|rule| rule.id != **id))
    {
        return Err(Stop::bad_input(format!("--allow: unknown rule {id:?}; --rules lists all")));
    }
    let spec = target::needed(&arguments.target, terminal)?;
    let settings = Settings { known: probing::known(&arguments.set)? };
    let recording = Recording::begin(&arguments.record)?;
    let options = recording.options(arguments.times.limits().options());
    let work = async { Ok(migration::check(&spec, &options, &settings).await?) };
    let mut found = recording.finish(until_stopped(work, "interrupted"))?;
    target::say_remarks(terminal, &options);
    for note in &found.notes {
        terminal.say(&printable(&format!("note: {note}")));
    }
    found.findings.retain(|finding| !arguments.findings.allow.contains(&finding.rule));
    let findings: Vec<&Finding> = found.findings.iter().collect();
    if let Some(path) = &arguments.findings.sarif {
        write_atomic(
            path,
            sarif::document(&probing::log(&rules, findings.iter().copied())).as_bytes(),
        )?;
    }
    if terminal.json() {
        terminal.print_json(&json!({
            "schema": "karat.migration/1", "server": spec.describe(), "report": found,
        }))?;
    } else {
        terminal.print(&text(&spec.describe(), &found))?;
    }
    let fails = |one: &Finding| probe::FailOn::from(arguments.findings.fail_on).fails(one.severity);
    Ok(if found.findings.iter().any(fails) { Exit::GateFailed } else { Exit::Pass })
}

fn text(server: &str, found: &Migration) -> String {
    let mut out = String::new();
    for Finding { rule, severity, tool, message, .. } in &found.findings {
        let name = if tool.is_empty() { String::new() } else { format!("{tool}: ") };
        let line = format!("{name}{message}");
        let _ = writeln!(out, "{:<8}{}  [{rule}]", severity.name(), printable(&line));
    }
    if !found.findings.is_empty() {
        out.push('\n');
    }
    for check in &found.checks {
        let verdict = match (check.applies, check.findings) {
            (false, _) => "-".to_owned(),
            (true, 0) => "ok".to_owned(),
            (true, 1) => "1 finding".to_owned(),
            (true, count) => format!("{count} findings"),
        };
        let _ = writeln!(out, "{:<22}{verdict:<13}{}", check.name, printable(&check.detail));
    }
    let old = match found.old_generation {
        Some(revision) => format!("sessions of {revision}"),
        None => "no sessions of earlier revisions".to_owned(),
    };
    let new = if found.new_generation { "2026-07-28" } else { "not 2026-07-28" };
    let _ = writeln!(
        out,
        "\n{}: {new}, {old}; {}",
        printable(server),
        probing::tally(|severity| found.count(severity))
    );
    out
}
