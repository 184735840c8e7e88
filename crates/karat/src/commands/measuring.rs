//! Selects the entries of a project, and measures them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use karat_core::evaluation::RunContext;
use karat_core::kind::Evaluation;
use karat_core::project::{Planned, Project};
use karat_core::report::{NotMeasured, Report};

use crate::cli::CheckArgs;
use crate::commands::places;
use crate::exit::{Exit, Stop};
use crate::project::Choice;
use crate::terminal::Terminal;
use crate::work::until_stopped;

/// The project, and the arguments with its path.
pub(crate) fn located(arguments: &CheckArgs) -> Result<(Choice, CheckArgs), Stop> {
    let choice = Choice::new(arguments.project.as_deref(), arguments.bundled)?;
    let project = match &choice {
        Choice::File(path) => Some(path.clone()),
        Choice::Bundled => None,
    };
    let arguments = CheckArgs { project, ..arguments.clone() };
    Ok((choice, arguments))
}

/// The reports, and the entries that could not be measured.
pub(crate) struct Measured<'a> {
    pub(crate) reports: Vec<(Report, &'a Planned)>,
    pub(crate) not_measured: Vec<NotMeasured>,
}

/// Returns whether an entry is meant by its name, or by EVALUATION/NAME: entries of two evaluations may
/// have one name.
fn is_named(planned: &Planned, name: &str) -> bool {
    let entry = &planned.entry;
    entry.common().name == name || path_of(planned) == name
}

/// An entry as EVALUATION/NAME, which only one entry of a project has: the form in which commands take it too.
pub(crate) fn entry_path(evaluation: &Evaluation, name: &str) -> String {
    format!("{evaluation}/{name}")
}

/// The entry as EVALUATION/NAME.
pub(crate) fn path_of(planned: &Planned) -> String {
    entry_path(&planned.entry.evaluation(), &planned.entry.common().name)
}

/// Refuses a name that several of the selected entries have, for commands whose effect lasts.
pub(crate) fn refuse_ambiguous(plan: &Project<'_>, only: Option<&str>) -> Result<(), Stop> {
    match only {
        Some(name) if plan.entries.len() > 1 => {
            let paths: Vec<String> = plan.entries.iter().map(path_of).collect();
            Err(Stop::bad_input(format!(
                "several entries are named {name:?}; use one of {}",
                paths.join(", ")
            )))
        }
        _ => Ok(()),
    }
}

/// Keeps only the requested entries.
pub(crate) fn select(
    mut plan: Project<'static>,
    arguments: &CheckArgs,
    evaluation: Option<&Evaluation>,
) -> Result<Project<'static>, Stop> {
    if let Some(Evaluation::Other(name)) = evaluation {
        let known: Vec<&str> = Evaluation::KNOWN.iter().map(Evaluation::name).collect();
        return Err(Stop::bad_input(format!(
            "--evaluation {name:?}: expected one of {}",
            known.join(", ")
        )));
    }
    let known: Vec<String> = plan.entries.iter().map(path_of).collect();
    plan.entries.retain(|planned| {
        evaluation.is_none_or(|evaluation| planned.entry.evaluation() == *evaluation)
            && arguments.only.as_ref().is_none_or(|name| is_named(planned, name))
    });
    if plan.entries.is_empty() {
        let evaluation = evaluation.map(|evaluation| format!(" {evaluation}")).unwrap_or_default();
        let named = arguments.only.as_ref().map(|name| format!(" named {name:?}"));
        let (named, known) = (named.unwrap_or_default(), known.join(", "));
        return Err(Stop::bad_input(format!(
            "the project has no{evaluation} entry{named}; it has {known}"
        )));
    }
    Ok(plan)
}

/// The advice for a run that ended early, if the command can resume.
pub(crate) const RESUME_HINT: &str = "use --resume to continue";

/// Runs every entry of the plan. Ctrl-C stops it cleanly: programs are stopped, and the journal has the
/// answers so far.
pub(crate) fn measure<'a>(
    plan: &'a Project<'_>,
    arguments: &CheckArgs,
    terminal: &Terminal,
) -> Result<Measured<'a>, Stop> {
    let journals = out_folder(plan, arguments).join("journal");
    places::prepare(&out_folder(plan, arguments))?;
    let interrupted =
        if arguments.can_resume { &format!("interrupted; {RESUME_HINT}") } else { "interrupted" };
    until_stopped(entries(plan, arguments, &journals, terminal), interrupted)
}

/// The entry that could not be measured.
///
/// # Errors
/// If the error is not about the system: then the whole check stops.
pub(crate) fn not_measured(
    planned: &Planned,
    stop: Stop,
    arguments: &CheckArgs,
) -> Result<NotMeasured, Stop> {
    let (evaluation, name) = (planned.entry.evaluation(), planned.entry.common().name.clone());
    if stop.exit != Exit::NotMeasured {
        let message = format!("{}: {}", entry_path(&evaluation, &name), stop.message);
        return Err(Stop { message, ..stop });
    }
    let reason = match stop.resumable && arguments.can_resume {
        true => format!("{} ({RESUME_HINT})", stop.message),
        false => stop.message,
    };
    Ok(NotMeasured { evaluation, name, reason })
}

/// The folder for reports and journals: a relative one is inside the project.
pub(crate) fn out_folder(plan: &Project<'_>, arguments: &CheckArgs) -> PathBuf {
    plan.root.folder().join(&arguments.out)
}

async fn entries<'a>(
    plan: &'a Project<'_>,
    arguments: &CheckArgs,
    journals: &Path,
    terminal: &Terminal,
) -> Result<Measured<'a>, Stop> {
    let mut measured = Measured { reports: Vec::new(), not_measured: Vec::new() };
    for planned in &plan.entries {
        let entry = &planned.entry;
        let (evaluation, name) = (entry.evaluation(), &entry.common().name);
        let journal = journals.join(format!("{evaluation}-{name}.jsonl"));
        let context = RunContext {
            folder: plan.root.folder(),
            journal: Some(&journal),
            resume: arguments.resume,
            progress: Arc::new(terminal.progress(&entry.label())),
        };
        let ran = entry.run(&context).await.map_err(Stop::from);
        match ran {
            Ok(report) => measured.reports.push((report, planned)),
            Err(stop) => measured.not_measured.push(not_measured(planned, stop, arguments)?),
        }
    }
    Ok(measured)
}
