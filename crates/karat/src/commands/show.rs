//! `karat show`: the items of an entry, from the last report.

use std::collections::BTreeSet;
use std::path::PathBuf;

use karat_core::report::{Report, load_reports, parse_check};
use karat_io::input::{Limits, nearest, read_text};
use karat_io::text::printable;
use karat_report::terminal::items;

use crate::cli::{Format, ShowArgs};
use crate::commands::measuring::entry_path;
use crate::exit::{Exit, Stop};
use crate::project::Choice;
use crate::terminal::Terminal;

/// Prints the items that were asked for.
pub(crate) fn run(arguments: &ShowArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let path = match &arguments.report {
        Some(path) => path.clone(),
        None => last()?,
    };
    if arguments.format == Format::Agent {
        let check = parse_check(&path, &read_text(&path, &Limits::default())?)?;
        let files = [path.display().to_string()];
        terminal.print(&karat_report::agent::text(&check, &files))?;
        return Ok(Exit::Pass);
    }
    let reports = load_reports(&path)?;
    let report = entry(&reports, arguments.entry.as_deref())?;
    let style = terminal.style();
    if let Some(id) = &arguments.item {
        let item = report.items.iter().find(|item| item.id == *id).ok_or_else(|| {
            let near = nearest(id, report.items.iter().map(|item| item.id.as_str()));
            let hint = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
            let entry = entry_path(&report.evaluation, &report.name);
            Stop::bad_input(format!("{} has no item {id:?}{hint}", printable(&entry)))
        })?;
        match terminal.json() {
            true => terminal.print_json(item)?,
            false => terminal.print(&items::one(report, item, style))?,
        }
        return Ok(Exit::Pass);
    }
    if terminal.json() {
        let deltas = report.comparison.iter().flat_map(|comparison| &comparison.deltas);
        let worse: BTreeSet<&str> =
            deltas.flat_map(|delta| items::got_worse(report, delta)).collect();
        let wanted = |id: &str| !arguments.worse || worse.contains(id);
        let chosen: Vec<_> = report.items.iter().filter(|item| wanted(&item.id)).collect();
        terminal.print_json(&chosen)?;
        return Ok(Exit::Pass);
    }
    terminal.print(&match arguments.worse {
        true => items::worse(report, style),
        false => items::list(report, style),
    })?;
    Ok(Exit::Pass)
}

/// The last report of the project.
fn last() -> Result<PathBuf, Stop> {
    let here = PathBuf::from("karat-report/report.json");
    let path = match Choice::new(None, false) {
        Ok(choice) => choice.folder().join(&here),
        Err(_) => here,
    };
    match path.is_file() {
        true => Ok(path),
        false => Err(Stop::bad_input(format!(
            "{}: no report yet; run `karat check`, or name a report with --report",
            path.display()
        ))),
    }
}

/// The entry of this name, or the only one.
pub(crate) fn entry<'r>(reports: &'r [Report], name: Option<&str>) -> Result<&'r Report, Stop> {
    let labels: Vec<String> =
        reports.iter().map(|one| entry_path(&one.evaluation, &one.name)).collect();
    let known = || printable(&labels.join(", ")).into_owned();
    if reports.is_empty() {
        return Err(Stop::bad_input("the report has no items: none of its entries was measured"));
    }
    let Some(name) = name else {
        return match reports {
            [only] => Ok(only),
            _ => Err(Stop::bad_input(format!(
                "the report has several entries; name one: {}",
                known()
            ))),
        };
    };
    let named =
        |(report, label): &(&Report, &String)| report.name == name || label.as_str() == name;
    let mut found = reports.iter().zip(&labels).filter(named).map(|(report, _)| report);
    match (found.next(), found.next()) {
        (Some(report), None) => Ok(report),
        (Some(_), Some(_)) => {
            Err(Stop::bad_input(format!("several entries are named {name:?}: {}", known())))
        }
        (None, _) => Err(Stop::bad_input(format!("no entry {name:?}; the report has {}", known()))),
    }
}
