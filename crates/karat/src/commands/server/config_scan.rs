//! `karat server scan --config FILE`: every server of an editor's configuration, without starting one.

use std::fmt::Write as _;
use std::path::Path;

use karat_core::finding::{Finding, Severity};
use karat_io::input::write_atomic;
use karat_io::text::{count, printable};
use karat_mcp::config;
use karat_report::sarif;
use karat_server::{config_scan, probe};
use serde_json::json;

use super::probing;
use crate::cli::ScanArgs;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;

/// Judges the entries of a file.
pub(super) fn of_file(
    path: &Path,
    arguments: &ScanArgs,
    terminal: &Terminal,
) -> Result<Exit, Stop> {
    let servers = config::read(path)?;
    let is_shown = |finding: &Finding| !arguments.allow.contains(&finding.rule);
    let judged: Vec<(String, Result<String, String>, Vec<Finding>)> = servers
        .names()
        .map(|name| {
            let described = servers.server(name).map(|spec| spec.describe());
            let described = described.map_err(|error| error.to_string());
            let entry = servers.entry(name);
            let findings = entry.map(|entry| config_scan::judge(name, entry)).unwrap_or_default();
            (name.to_owned(), described, findings.into_iter().filter(is_shown).collect())
        })
        .collect();
    if judged.is_empty() {
        let path = path.display();
        return Err(Stop::not_measured(format!("{path}: no servers in the file")));
    }
    let findings: Vec<&Finding> = judged.iter().flat_map(|(_, _, findings)| findings).collect();
    if let Some(file) = &arguments.sarif {
        let rules = config_scan::rules();
        write_atomic(
            file,
            sarif::document(&probing::log(&rules, findings.iter().copied())).as_bytes(),
        )?;
    }
    if terminal.json() {
        let servers: Vec<serde_json::Value> = judged
            .iter()
            .map(|(name, server, findings)| {
                json!({"name": name, "server": server.as_ref().ok(),
                       "problem": server.as_ref().err(), "findings": findings})
            })
            .collect();
        let file = path.display().to_string();
        terminal.print_json(&json!({
            "schema": "karat.config-scan/1", "file": file, "servers": servers,
        }))?;
    } else {
        let mut out = String::new();
        for (name, server, findings) in &judged {
            let server = match server {
                Ok(server) => server.clone(),
                Err(why) => format!("invalid: {why}"),
            };
            let _ = writeln!(out, "{}: {}", printable(name), printable(&server));
            for Finding { rule, severity, message, .. } in findings {
                let _ = writeln!(out, "  {:<8}{}  [{rule}]", severity.name(), printable(message));
            }
        }
        let of =
            |severity: Severity| findings.iter().filter(|one| one.severity == severity).count();
        let _ = writeln!(
            out,
            "\n{}: {}; {}; no server was started; scan one with --server NAME",
            path.display(),
            count(judged.len(), "server"),
            probing::tally(of)
        );
        terminal.print(&out)?;
    }
    let fails =
        |finding: &&&Finding| probe::FailOn::from(arguments.fail_on).fails(finding.severity);
    let failed = findings.iter().any(|finding| fails(&finding));
    Ok(if failed { Exit::GateFailed } else { Exit::Pass })
}
