//! The reports of entries from the parts of a run, identical to those of the undivided run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use karat_core::evaluation::RunContext;
use karat_core::parts::{PartFile, Whole, check_division, whole_report};
use karat_core::project::{Planned, Project};
use karat_core::report::Report;
use karat_io::input::Format;

use crate::cli::CheckArgs;
use crate::commands::measuring::{self, Measured};
use crate::commands::places;
use crate::exit::Stop;
use crate::terminal::Terminal;
use crate::work::until_stopped;

/// Makes the reports of the planned entries from their parts. `labels` are all entries of the project:
/// parts of one that was not asked for are left alone, and those of any other are refused.
pub(crate) fn measure<'a>(
    plan: &'a Project<'_>,
    labels: &[String],
    paths: &[PathBuf],
    arguments: &CheckArgs,
    terminal: &Terminal,
) -> Result<Measured<'a>, Stop> {
    let mut files = Vec::new();
    for path in paths {
        files.extend(parts_in(path)?);
    }
    check_division(&files)?;
    if let Some(foreign) = files.iter().find(|file| !labels.contains(&file.label())) {
        return Err(Stop::bad_input(format!(
            "{}: part of the entry {}, which is not in the project; it has {}",
            foreign.path.display(),
            foreign.label(),
            labels.join(", ")
        )));
    }
    let of = files.first().map(|file| file.partition().parts());
    let mut by_label: BTreeMap<String, Vec<PartFile>> = BTreeMap::new();
    for file in files {
        by_label.entry(file.label()).or_default().push(file);
    }
    places::prepare(&measuring::out_folder(plan, arguments))?;
    until_stopped(entries(plan, by_label, of, arguments, terminal), "interrupted")
}

async fn entries<'a>(
    plan: &'a Project<'_>,
    mut by_label: BTreeMap<String, Vec<PartFile>>,
    of: Option<u32>,
    arguments: &CheckArgs,
    terminal: &Terminal,
) -> Result<Measured<'a>, Stop> {
    let mut measured = Measured { reports: Vec::new(), not_measured: Vec::new() };
    for planned in &plan.entries {
        let label = planned.entry.label();
        let mut files = by_label.remove(&label).unwrap_or_default();
        // Whatever the order in which they were named.
        files.sort_by_key(PartFile::partition);
        let context = RunContext {
            folder: plan.root.folder(),
            journal: None,
            resume: false,
            progress: Arc::new(terminal.progress(&label)),
        };
        let merged = match planned.entry.whole() {
            Some(_) => whole(planned, files, of),
            None => planned.entry.merge(&context, &files).await.map_err(Stop::from),
        };
        match merged {
            Ok(report) => measured.reports.push((report, planned)),
            Err(stop) => {
                measured.not_measured.push(measuring::not_measured(planned, stop, arguments)?);
            }
        }
    }
    Ok(measured)
}

/// The report of an entry that one of the parts has measured.
fn whole(planned: &Planned, files: Vec<PartFile>, of: Option<u32>) -> Result<Report, Stop> {
    let entry = &planned.entry;
    let settings =
        planned.settings.ok_or_else(|| Stop::bad_input("the entry is not in the project"))?;
    let (label, dataset) = (entry.label(), entry.dataset());
    let expected = Whole { label: &label, dataset: &dataset, seed: entry.common().seed, settings };
    Ok(whole_report(files, &expected, of)?)
}

/// The parts that a path names: a file, or those in a folder of reports or of journals.
fn parts_in(path: &Path) -> Result<Vec<PartFile>, Stop> {
    let shown = path.display();
    if path.is_file() {
        return Ok(vec![PartFile::open(path)?]);
    }
    if !path.is_dir() {
        return Err(Stop::bad_input(format!("{shown}: no such file or folder")));
    }
    let mut found = Vec::new();
    for folder in [path.to_owned(), path.join("journal")] {
        if folder.is_dir() {
            let unread = |error| Stop::bad_input(format!("{}: {error}", folder.display()));
            for inside in std::fs::read_dir(&folder).map_err(unread)? {
                found.push(inside.map_err(unread)?.path());
            }
        }
    }
    found.retain(|file| is_part(file));
    found.sort();
    if found.is_empty() {
        return Err(Stop::bad_input(format!(
            "{shown}: no part of a run; make one with `karat check --partition hash:1/8 --out DIR`"
        )));
    }
    found.iter().map(|file| Ok(PartFile::open(file)?)).collect()
}

/// Returns whether a file is named like one that a part leaves behind, compressed or not.
fn is_part(file: &Path) -> bool {
    let name = file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let format = Format::of(file);
    name.contains(".part-") && matches!(format, Some(Format::JsonLines | Format::Json))
}
