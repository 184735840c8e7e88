//! The tools that read: a report, an entry or item of it, two reports, definitions in a file.

use std::cmp::Reverse;
use std::path::PathBuf;

use karat_core::finding::{Finding, Severity};
use karat_core::report::{CheckReport, Delta, Report, load_reports, parse_check};
use karat_io::input::{Limits, nearest, read_text};
use karat_io::text::{clip, printable};
use karat_report::agent;
use karat_report::format::{is_significant, not_compared as left_out, verdict_name};
use karat_report::terminal::{Style, items};
use serde_json::{Value, json};

use super::arguments::{file, text};
use super::confine::Folder;
use crate::commands::compare::{Named, Pairs};
use crate::commands::measuring::entry_path;
use crate::commands::{server, show};

/// The report of the last check.
pub(super) const LAST: &str = "karat-report/report.json";
/// The most items that got worse which a comparison names for each metric.
const WORSE: usize = 5;
/// The most columns of a message of a finding.
const MESSAGE: usize = 300;
/// The columns of an item in full.
const WIDTH: usize = 120;

fn report_file(arguments: &Value, folder: &Folder) -> Result<PathBuf, String> {
    match file(arguments, "report", folder)? {
        Some(path) => Ok(path),
        None => folder
            .file(LAST)
            .map_err(|_| format!("{LAST}: no report yet; run `karat check` in the project folder")),
    }
}

/// The verdict and what failed.
pub(super) fn report(arguments: &Value, folder: &Folder) -> Result<Value, String> {
    let path = report_file(arguments, folder)?;
    let read = || -> Result<CheckReport, karat_io::input::InputError> {
        parse_check(&path, &read_text(&path, &Limits::default())?)
    };
    let check = read().map_err(|error| shortened(&error, folder))?;
    Ok(summary(&check, text(arguments, "report").unwrap_or(LAST)))
}

/// The same of a report that is read already.
pub(super) fn summary(check: &CheckReport, named: &str) -> Value {
    json!({
        "verdict": verdict_name(check),
        "text": agent::text(check, &[named.to_owned()]),
    })
}

/// Explains an entry, or one item in full.
pub(super) fn explain(arguments: &Value, folder: &Folder) -> Result<Value, String> {
    let path = report_file(arguments, folder)?;
    let reports = load_reports(&path).map_err(|error| shortened(&error, folder))?;
    let report = show::entry(&reports, text(arguments, "entry")).map_err(|stop| stop.message)?;
    let label = entry_path(&report.evaluation, &report.name);
    let said = match text(arguments, "item") {
        None => agent::entry(report),
        Some(id) => {
            let Some(item) = report.items.iter().find(|item| item.id == id) else {
                let near = nearest(id, report.items.iter().map(|item| item.id.as_str()));
                let hint = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
                return Err(format!("{label} has no item {:?}{hint}", clip(&printable(id), 200)));
            };
            agent::bounded(&items::one(report, item, Style::new(false, WIDTH)))
        }
    };
    Ok(json!({"entry": printable(&label), "text": said}))
}

/// Two reports, metric by metric.
pub(super) fn compare(arguments: &Value, folder: &Folder) -> Result<Value, String> {
    let load = |name: &str| -> Result<Vec<Report>, String> {
        let path = file(arguments, name, folder)?.ok_or_else(|| format!("{name} is missing"))?;
        load_reports(&path).map_err(|error| shortened(&error, folder))
    };
    let (before, after) = (load("before")?, load("after")?);
    let most = count(arguments, 12);
    let Pairs { comparisons, not_compared, only_before, only_after } =
        Pairs::of(&before, &after, &[]).map_err(|error| shortened(&error, folder))?;
    let printed = |names: Vec<String>| -> Vec<String> {
        names.iter().map(|name| printable(name).into_owned()).collect()
    };
    let entry = |Named { evaluation, name, before, comparison }: &Named| {
        let mut deltas: Vec<&Delta> = comparison.deltas.iter().collect();
        deltas.sort_by_key(|delta| Reverse((is_significant(delta), delta.worsened.len())));
        let metrics: Vec<Value> = deltas.iter().take(most).map(|delta| metric(delta)).collect();
        json!({
            "entry": printable(&entry_path(evaluation, name)),
            "before": before.as_ref().map(|name| printable(&entry_path(evaluation, name)).into_owned()),
            "changed": comparison.changed.iter().map(|line| printable(line)).collect::<Vec<_>>(),
            "not_compared": left_out(comparison).map(|line| printable(&line).into_owned()),
            "metrics": metrics,
            "more_metrics": deltas.len().saturating_sub(most),
        })
    };
    let unlike = not_compared
        .iter()
        .map(|one| json!({"entry": printable(&one.entry), "reason": one.reason}));
    Ok(json!({
        "entries": comparisons.iter().map(entry).collect::<Vec<_>>(),
        "not_compared": unlike.collect::<Vec<_>>(),
        "only_before": printed(only_before),
        "only_after": printed(only_after),
    }))
}

fn metric(delta: &Delta) -> Value {
    let worse: Vec<_> = delta.worsened.iter().take(WORSE).map(|id| printable(id)).collect();
    json!({
        "metric": delta.metric,
        "before": delta.before,
        "after": delta.after,
        "change": delta.delta,
        "better": delta.better,
        "interval": delta.interval.as_ref().map(|interval| [interval.low, interval.high]),
        "p_holm": delta.p_holm,
        "chance_ruled_out": is_significant(delta),
        "items_worse": delta.worsened.len(),
        "items_better": delta.improved.len(),
        "worst": worse,
    })
}

/// Definitions in a file.
pub(super) fn lint(arguments: &Value, folder: &Folder) -> Result<Value, String> {
    let path = file(arguments, "tools_file", folder)?.ok_or("tools_file is missing")?;
    let found =
        server::lint::of_file(&path, &[]).map_err(|stop| shortened(&stop.message, folder))?;
    Ok(findings(&found.findings, count(arguments, 30)))
}

/// The findings, the most severe first, up to the requested number.
pub(super) fn findings(found: &[Finding], most: usize) -> Value {
    let count = |severity| found.iter().filter(|one| one.severity == severity).count();
    let mut sorted: Vec<&Finding> = found.iter().collect();
    sorted.sort_by_key(|one| Reverse(one.severity));
    let shown: Vec<Value> = sorted
        .iter()
        .take(most)
        .map(|one| {
            json!({
                "rule": one.rule,
                "severity": one.severity,
                "tool": clip(&printable(&one.tool), MESSAGE),
                "message": clip(&printable(&one.message), MESSAGE),
            })
        })
        .collect();
    json!({
        "errors": count(Severity::Error),
        "warnings": count(Severity::Warning),
        "notes": count(Severity::Note),
        "findings": shown,
    })
}

/// The parameter `limit`, within the bounds of its schema.
pub(super) fn count(arguments: &Value, otherwise: usize) -> usize {
    let given = arguments.get("limit").and_then(Value::as_u64);
    given.and_then(|given| usize::try_from(given).ok()).unwrap_or(otherwise)
}

/// An error that names files as the client does: without the place of the project on this machine.
pub(super) fn shortened(error: &impl ToString, folder: &Folder) -> String {
    folder.hide(&error.to_string())
}
