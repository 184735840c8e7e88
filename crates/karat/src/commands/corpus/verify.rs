//! `karat corpus verify`: a frozen dataset against its digests and labels, with the lint of its quality
//! next to it, or any corpus against a lock.

use std::collections::BTreeMap;
use std::path::Path;

use karat_core::dataset::DatasetFiles;
use karat_core::finding::DataFinding;
use karat_core::report::DatasetRef;
use karat_detection::dataset::{Dataset as Threats, Sample};
use karat_detection::shortcuts::{self, Shortcuts};
use karat_io::text::{count, printable};
use karat_retrieval::snapshot::lock::{Lock, Mismatch};
use serde_json::{Value, json};

use super::snapshot;
use crate::cli::VerifyArgs;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;

/// The findings in a dataset of any kind.
struct Checked {
    dataset: DatasetRef,
    /// The size of its content.
    holds: Vec<(&'static str, usize)>,
    findings: Vec<DataFinding>,
    /// True if the findings are a matter of taste, which fail only with --strict.
    is_lint: bool,
    /// The search for shortcuts, of a labelled corpus, or the reason why there was none.
    shortcuts: Option<Result<Shortcuts, String>>,
}

/// The number of findings of one rule that are shown.
const EXAMPLES: usize = 5;

/// Verifies digests and labels, then the rules of the audit; with a lock, the definitions.
pub(super) fn run(arguments: &VerifyArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    if let Some(lock) = &arguments.lock {
        return against_lock(lock, &arguments.folder, terminal);
    }
    let folder = || DatasetFiles::Folder(arguments.folder.clone());
    let has = |name: &str| arguments.folder.join(name).is_dir();
    let checked = if arguments.folder.is_file() {
        threats(Threats::from_file_for_audit(&arguments.folder)?)
    } else if has("entries") {
        threats(Threats::open_for_audit(folder())?)
    } else if has("traces") || has("tasks") {
        behaviour(folder())?
    } else {
        tools(folder())?
    };
    let Checked { dataset, holds, findings, is_lint, shortcuts } = checked;
    let mut warnings = karat_detection::tuning_guard::warnings_of_project(
        &arguments.folder,
        Path::new("karat.toml"),
    );
    if let Some(Ok(found)) = &shortcuts {
        warnings.extend(found.warning());
    }
    if terminal.json() {
        let holds: serde_json::Map<String, Value> =
            holds.iter().map(|(what, count)| ((*what).to_owned(), json!(count))).collect();
        let findings: Vec<Value> = findings
            .iter()
            .map(
                |DataFinding { rule, id, message }| json!({"rule": rule, "lint": is_lint, "id": id, "message": message}),
            )
            .collect();
        terminal.print_json(&json!({
            "schema": "karat.verify/1",
            "dataset": dataset,
            "holds": holds,
            "findings": findings,
            "shortcuts": shortcuts.as_ref().map(|found| match found {
                Ok(found) => json!(found),
                Err(reason) => json!({"undefined": reason}),
            }),
            "warnings": warnings,
        }))?;
    } else {
        let holds: Vec<String> = holds
            .iter()
            // Plurals are the keys of the JSON form.
            .map(|(what, number)| match what.strip_suffix("ies") {
                Some(stem) => count(number, &format!("{stem}y")),
                None => count(number, what.trim_end_matches('s')),
            })
            .collect();
        // A broken rule may be about a label.
        let valid = match (arguments.folder.is_file(), is_lint || findings.is_empty()) {
            (true, true) => "; labels are valid",
            (true, false) => "",
            (false, true) => "; digests and labels are valid",
            (false, false) => "; digests are valid",
        };
        let (id, version, holds) = (&dataset.id, &dataset.version, holds.join(", "));
        let mut text = format!("{id} {version}: {holds}{valid}\n");
        text.push_str(&by_rule(&findings, is_lint));
        match &shortcuts {
            Some(Ok(found)) => text.push_str(&found.lines()),
            Some(Err(reason)) => text.push_str(&format!("{reason}\n")),
            None => {}
        }
        for warning in &warnings {
            text.push_str(&format!("warning: {}\n", printable(warning)));
        }
        terminal.print(&text)?;
    }
    match if is_lint && !arguments.strict { 0 } else { findings.len() } {
        0 => Ok(Exit::Pass),
        1 => Err(Stop::bad_input("1 rule is broken")),
        n => Err(Stop::bad_input(format!("{n} rules are broken"))),
    }
}

/// The findings by rule: how many there are, and the first of them.
fn by_rule(findings: &[DataFinding], is_lint: bool) -> String {
    let (kind, most) = if is_lint { ("lint", EXAMPLES) } else { ("broken", usize::MAX) };
    let mut rules: BTreeMap<&str, Vec<&DataFinding>> = BTreeMap::new();
    for finding in findings {
        rules.entry(finding.rule).or_default().push(finding);
    }
    let mut text = String::new();
    for (rule, found) in rules {
        text.push_str(&format!("{kind}: {rule}: {}\n", found.len()));
        for DataFinding { id, message, .. } in found.iter().take(most) {
            let id = if id.is_empty() { "(no id)" } else { id };
            text.push_str(&format!("  {}: {}\n", printable(id), printable(message)));
        }
        if found.len() > most {
            text.push_str(&format!("  and {} more\n", found.len() - most));
        }
    }
    text
}

fn tools(files: DatasetFiles) -> Result<Checked, Stop> {
    let dataset = karat_retrieval::dataset::Dataset::open(files)?;
    let findings = karat_retrieval::audit::audit(&dataset);
    Ok(Checked {
        holds: vec![
            ("tools", dataset.tools.len()),
            ("queries", dataset.queries.len()),
            ("groups", dataset.groups.len()),
        ],
        findings,
        is_lint: true,
        shortcuts: None,
        dataset: dataset.reference,
    })
}

fn threats(dataset: Threats) -> Checked {
    let findings = karat_detection::audit::audit(&dataset);
    let count = |wanted: fn(&Sample) -> bool| dataset.samples.iter().filter(|s| wanted(s)).count();
    Checked {
        holds: vec![
            ("attacks", count(Sample::is_malicious)),
            ("hard negatives", count(Sample::is_hard_negative)),
        ],
        findings: findings
            .into_iter()
            .map(|found| DataFinding::new(&found.id, "threats", found.message))
            .collect(),
        is_lint: false,
        shortcuts: Some(shortcuts::audit(&dataset)),
        dataset: dataset.reference,
    }
}

/// Traces and tasks of agents, with the tools that were on offer where the dataset has them.
fn behaviour(files: DatasetFiles) -> Result<Checked, Stop> {
    let audited = karat_agent::audit::audit(files)?;
    let mut holds =
        vec![("tools", audited.tools), ("tasks", audited.tasks), ("traces", audited.traces)];
    holds.retain(|(_, count)| *count > 0);
    let (dataset, findings) = (audited.reference, audited.findings);
    Ok(Checked { dataset, holds, findings, is_lint: false, shortcuts: None })
}

fn against_lock(path: &Path, folder: &Path, terminal: &Terminal) -> Result<Exit, Stop> {
    let lock = Lock::read(path)?;
    let found = snapshot(folder)?;
    let mismatch = lock.compare(&found);
    if terminal.json() {
        terminal.print_json(&json!({
            "schema": "karat.verify-lock/1",
            "lock": {"servers": lock.servers.len(), "tools": lock.tools()},
            "corpus": {"servers": found.servers.len(), "tools": found.len()},
            "missing": mismatch.missing,
            "additional": mismatch.additional,
            "changed": mismatch.changed,
            "versions": mismatch.versions.iter().map(|(server, locked, found)| {
                json!({"server": server, "lock": locked, "corpus": found})
            }).collect::<Vec<_>>(),
        }))?;
    } else {
        terminal.print(&lines(&lock, &mismatch))?;
    }
    if mismatch.is_none() {
        return Ok(Exit::Pass);
    }
    Err(Stop::bad_input(not_as_locked(&mismatch, folder, path)))
}

/// The difference between a corpus and its lock, in one line.
pub(crate) fn not_as_locked(mismatch: &Mismatch, corpus: &Path, lock: &Path) -> String {
    let Mismatch { missing, additional, changed, versions } = mismatch;
    format!(
        "{} does not match {}: {} missing, {} additional, {} changed, {} with another version",
        corpus.display(),
        lock.display(),
        missing.len(),
        additional.len(),
        changed.len(),
        versions.len()
    )
}

/// The differences, a line each.
pub(crate) fn lines(lock: &Lock, mismatch: &Mismatch) -> String {
    if mismatch.is_none() {
        let (servers, tools) = (count(lock.servers.len(), "server"), count(lock.tools(), "tool"));
        return format!("{servers}, {tools}: all match the lock\n");
    }
    let mut text = String::new();
    for (what, ids) in [
        ("missing", &mismatch.missing),
        ("additional", &mismatch.additional),
        ("changed", &mismatch.changed),
    ] {
        ids.iter().for_each(|id| text.push_str(&format!("{what}: {}\n", printable(id))));
    }
    for (server, locked, found) in &mismatch.versions {
        let line = format!("version: {server} is {found}, the lock has {locked}");
        text.push_str(&format!("{}\n", printable(&line)));
    }
    text
}
