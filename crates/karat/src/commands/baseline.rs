//! `karat baseline`: show the reference scores, or accept the present ones, with the difference
//! shown. Nothing else in Karat writes a baseline.

use karat_core::baseline::Baseline;
use karat_core::compare::{compare, same_data};

use crate::cli::{BaselineArgs, BaselineShowArgs};
use crate::commands::check::{measure, select};
use crate::exit::{Exit, Stop};
use crate::face::Terminal;
use crate::project::{Baselines, Plan, Root};

/// Measures and accepts.
pub(crate) fn update(arguments: &BaselineArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let plan = Plan::load(arguments.check.project.as_deref(), Baselines::Optional)?;
    let plan = select(plan, &arguments.check, None)?;
    if plan.root == Root::Bundled {
        return Err(Stop::bad_input(
            "the bundled project's baselines are part of the binary; make a project of your own \
             with `karat init`",
        ));
    }
    for planned in &plan.entries {
        if planned.task.baseline_path().is_none() {
            let (evaluation, name) = (planned.task.evaluation(), planned.task.name());
            return Err(Stop::bad_input(format!(
                "{name}: the entry names no baseline file; add `baseline = \
                 \"baselines/{evaluation}-{name}.json\"`"
            )));
        }
    }
    let measured = measure(&plan, &arguments.check, terminal)?;
    if let Some(failed) = measured.not_measured.first() {
        return Err(Stop::not_measured(format!("{}: {}", failed.name, failed.reason)));
    }
    let style = karat_report::terminal::Style { colors: terminal.colors() };
    for (report, planned) in &measured.reports {
        // A reference that a control contradicts would carry the fault into every later run.
        if let Some(control) = report.controls.iter().find(|control| !control.ok) {
            return Err(Stop::not_measured(format!(
                "{}: the control {} did not land where it must ({}), so nothing is recorded",
                report.name, control.name, control.expected
            )));
        }
        let fresh = Baseline::from_report(report);
        let file = planned.task.baseline_path().unwrap_or("".as_ref());
        let path = plan.root.folder().join(file);
        let shown = path.display();
        let mut text = format!("{} · {}\n", report.evaluation, report.name);
        match &planned.baseline {
            None => text.push_str("  there was no baseline\n"),
            Some(old) if *old == fresh => text.push_str("  nothing changed\n"),
            Some(old) if same_data(&old.dataset, &fresh.dataset).is_err() => {
                text.push_str(&format!(
                    "  the old one is of {} {}, this is of {} {}: not comparable\n",
                    old.dataset.id, old.dataset.version, fresh.dataset.id, fresh.dataset.version
                ));
            }
            Some(old) => match compare(old, report, &[]) {
                Ok(found) => text.push_str(&karat_report::terminal::comparison(&found, style)),
                Err(error) => text.push_str(&format!("  {error}\n")),
            },
        }
        if arguments.dry_run {
            text.push_str(&format!("  would write {shown}\n"));
        } else if planned.baseline.as_ref() != Some(&fresh) {
            fresh.save(&path)?;
            text.push_str(&format!("  wrote {shown}\n"));
        }
        terminal.print(&text)?;
    }
    Ok(Exit::Pass)
}

/// Shows what is committed.
pub(crate) fn show(arguments: &BaselineShowArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let plan = Plan::load(arguments.project.as_deref(), Baselines::Optional)?;
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
                planned.task.evaluation(),
                planned.task.name()
            )),
        }
    }
    terminal.print(&text)?;
    Ok(Exit::Pass)
}
