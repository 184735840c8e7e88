//! Makes, gates and shows reports one after another, with only one of them in memory. Prints nothing before
//! the last one is done, so an error leaves no partial output.

use std::borrow::Cow;
use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::path::PathBuf;

use karat_core::gate;
use karat_core::report::{CheckReport, Report};
use karat_report::json;
use karat_report::terminal;

use crate::commands::check;
use crate::exit::{Exit, Stop};
use crate::terminal::{Terminal, for_log, json_for_log};

/// Applies gates to reports without a project, and shows them.
pub(crate) fn conclude(
    reports: impl Iterator<Item = Result<Report, Stop>>,
    policy: &gate::Policy,
    outputs: &[PathBuf],
    terminal: &Terminal,
) -> Result<Exit, Stop> {
    // Files show all reports together, with pictures that compare them.
    if !outputs.is_empty() || check::step_summary_file().is_some() {
        let all = reports.collect::<Result<_, _>>()?;
        return check::conclude_all(all, policy, outputs, terminal);
    }
    let mut spool = Spool::new()?;
    let mut kept = Vec::new();
    for report in reports {
        let mut report = report?;
        gate::judge(&mut report, policy, None).map_err(Stop::bad_input)?;
        spool.add(&report, kept.is_empty(), terminal)?;
        // The verdict of all of them needs no items.
        (report.items, report.slices) = (Vec::new(), Vec::new());
        kept.push(report);
    }
    let document = CheckReport::of(kept);
    spool.print(&document, terminal)?;
    Ok(check::exit(&document, false))
}

/// The text to print, in an unnamed file.
struct Spool(File);

impl Spool {
    fn new() -> Result<Spool, Stop> {
        tempfile::tempfile()
            .map(Spool)
            .map_err(|error| Stop::bad_input(format!("cannot create a temporary file: {error}")))
    }

    fn add(&mut self, report: &Report, first: bool, terminal: &Terminal) -> Result<(), Stop> {
        let text = if terminal.json() {
            json::element(report, first)
        } else if terminal.quiet() {
            check::trouble_of(report)
        } else {
            terminal::scores(report, terminal.style())
        };
        let written = self.0.write_all(shown(&text, terminal).as_bytes());
        written.map_err(|error| Stop::bad_input(format!("cannot use the temporary file: {error}")))
    }

    fn print(mut self, document: &CheckReport, terminal: &Terminal) -> Result<(), Stop> {
        let (before, after) = if terminal.json() {
            json::around(document)
        } else if terminal.quiet() {
            (String::new(), String::new())
        } else {
            let style = terminal.style();
            (String::new(), terminal::conclusion(document, style))
        };
        self.0
            .rewind()
            .map_err(|error| Stop::bad_input(format!("cannot use the temporary file: {error}")))?;
        let (before, after) = (shown(&before, terminal), shown(&after, terminal));
        terminal.print_from(before.as_bytes().chain(self.0).chain(after.as_bytes()))
    }
}

fn shown<'t>(text: &'t str, terminal: &Terminal) -> Cow<'t, str> {
    if terminal.json() { json_for_log(text) } else { for_log(text) }
}
