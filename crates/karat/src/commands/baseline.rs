//! `karat baseline`: show the reference scores, or accept the present ones, with the difference
//! shown. Nothing else in Karat writes a baseline.

use std::path::PathBuf;

use karat_core::baseline::Baseline;
use karat_core::compare::{CompareError, compare};
use karat_core::project::Baselines;
use karat_core::report::{Comparison, Evaluation, Report};
use karat_io::text::printable;
use serde::Serialize;
use serde_json::json;

use crate::cli::{BaselineArgs, BaselineShowArgs, CheckArgs};
use crate::commands::check::{measure, select};
use crate::exit::{Exit, Stop};
use crate::face::Terminal;
use crate::project;

/// Measures and accepts.
pub(crate) fn update(arguments: &BaselineArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let check = CheckArgs {
        project: arguments.project.clone(),
        out: arguments.out.clone(),
        outputs: Vec::new(),
        resume: arguments.resume,
        can_resume: true,
        strict: false,
        only: arguments.only.clone(),
    };
    let plan = project::load(check.project.as_deref(), Baselines::Optional)?;
    let plan = select(plan, &check, None)?;
    if plan.root.is_bundled() {
        return Err(Stop::bad_input(
            "the bundled project's baselines are part of the binary; make a project of your own \
             with `karat init`",
        ));
    }
    for planned in &plan.entries {
        if planned.entry.common().baseline.is_none() {
            let (evaluation, name) = (planned.entry.evaluation(), &planned.entry.common().name);
            return Err(Stop::bad_input(format!(
                "{name}: the entry names no baseline file; add `baseline = \
                 \"baselines/{evaluation}-{name}.json\"`"
            )));
        }
    }
    let measured = measure(&plan, &check, terminal)?;
    if let Some(failed) = measured.not_measured.first() {
        return Err(Stop::not_measured(format!("{}: {}", failed.name, failed.reason)));
    }
    for (report, _) in &measured.reports {
        // A reference that a control contradicts would carry the fault into every later run.
        if let Some(control) = report.controls.iter().find(|control| !control.ok) {
            return Err(Stop::not_measured(format!(
                "{}: the control {} did not land where it must ({}), so nothing is recorded",
                report.name, control.name, control.expected
            )));
        }
    }
    let mut updates = Vec::new();
    for (report, planned) in &measured.reports {
        let file = planned.entry.common().baseline.clone().unwrap_or_default();
        let path = plan.root.path(&file);
        let fresh = Baseline::from_report(report);
        let change = Change::of(planned.baseline.as_ref(), &fresh, report);
        let write = !arguments.dry_run && !matches!(change, Change::Nothing);
        if write {
            fresh.save(&path)?;
        }
        let update = Update {
            evaluation: report.evaluation.clone(),
            name: report.name.clone(),
            file: path,
            wrote: write,
            change,
        };
        if !terminal.json() {
            terminal.print(&update.text(terminal))?;
        }
        updates.push(update);
    }
    if terminal.json() {
        terminal.print_json(&json!({"schema": "karat.baseline.update/1", "updates": updates}))?;
    }
    Ok(Exit::Pass)
}

/// The update of one baseline, done or planned.
#[derive(Serialize)]
struct Update {
    evaluation: Evaluation,
    name: String,
    file: PathBuf,
    wrote: bool,
    #[serde(flatten)]
    change: Change,
}

/// The way fresh scores differ from the recorded ones.
#[derive(Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
enum Change {
    /// There was no baseline.
    New,
    /// It is the same.
    Nothing,
    /// The old one cannot be compared with.
    NotComparable { reason: String },
    /// Metric by metric.
    Compared { comparison: Box<Comparison> },
}

impl Change {
    fn of(old: Option<&Baseline>, fresh: &Baseline, report: &Report) -> Change {
        let Some(old) = old else { return Change::New };
        if old == fresh {
            return Change::Nothing;
        }
        match compare(old, report, &[]) {
            Ok(comparison) => Change::Compared { comparison: Box::new(comparison) },
            Err(CompareError::Dataset { .. }) => Change::NotComparable {
                reason: format!(
                    "the old one is of {} {}, this is of {} {}: not comparable",
                    old.dataset.id, old.dataset.version, fresh.dataset.id, fresh.dataset.version
                ),
            },
            Err(error) => Change::NotComparable { reason: error.to_string() },
        }
    }
}

impl Update {
    fn text(&self, terminal: &Terminal) -> String {
        let mut text = format!("{} · {}\n", self.evaluation, printable(&self.name));
        let style = karat_report::terminal::Style { colors: terminal.colors() };
        match &self.change {
            Change::New => text.push_str("  there was no baseline\n"),
            Change::Nothing => {
                text.push_str("  nothing changed\n");
                return text;
            }
            Change::NotComparable { reason } => {
                text.push_str(&format!("  {}\n", printable(reason)));
            }
            Change::Compared { comparison } => {
                text.push_str(&karat_report::terminal::comparison(comparison, style));
            }
        }
        let verb = if self.wrote { "wrote" } else { "would write" };
        text.push_str(&format!("  {verb} {}\n", self.file.display()));
        text
    }
}

/// Shows what is committed.
pub(crate) fn show(arguments: &BaselineShowArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let plan = project::load(arguments.project.as_deref(), Baselines::Optional)?;
    let baselines: Vec<&Baseline> =
        plan.entries.iter().filter_map(|planned| planned.baseline.as_ref()).collect();
    if terminal.json() {
        terminal.print_json(&baselines)?;
        return Ok(Exit::Pass);
    }
    let mut text = String::new();
    for planned in &plan.entries {
        match &planned.baseline {
            Some(baseline) => text.push_str(&karat_report::terminal::baseline(baseline)),
            None => text.push_str(&format!(
                "{} · {}: no baseline recorded; `karat baseline update` records one\n",
                planned.entry.evaluation(),
                planned.entry.common().name
            )),
        }
    }
    terminal.print(&text)?;
    Ok(Exit::Pass)
}
