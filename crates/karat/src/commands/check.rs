//! `karat check`: run what the project lists, gate, report.

use std::path::{Path, PathBuf};

use karat_core::gate;
use karat_core::input::write_atomic;
use karat_core::report::{self, CheckReport, Evaluation, NotMeasured, NotRun, Report, Verdict};
use karat_report::Output;
use karat_retrieval::Surroundings;

use crate::cli::CheckArgs;
use crate::exit::{Exit, Stop};
use crate::face::Terminal;
use crate::project::{Baselines, Plan, RetrievalPlan, Root};

/// Evaluations that this version has no command for yet.
const ABSENT: [(Evaluation, &str); 3] = [
    (Evaluation::Server, "this version does not measure servers yet"),
    (Evaluation::Agent, "not part of a project yet; `karat agent score` scores recorded traces"),
    (Evaluation::Detection, "this version does not measure scanners yet"),
];

/// Every evaluation of the project.
pub(crate) fn all(arguments: &CheckArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let absent = ABSENT
        .iter()
        .map(|(evaluation, reason)| NotRun {
            evaluation: *evaluation,
            reason: (*reason).to_owned(),
        })
        .collect();
    check(arguments, absent, terminal)
}

/// The retrieval entries alone.
pub(crate) fn retrieval(arguments: &CheckArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    check(arguments, Vec::new(), terminal)
}

fn check(arguments: &CheckArgs, not_run: Vec<NotRun>, terminal: &Terminal) -> Result<Exit, Stop> {
    let outputs = outputs(arguments)?;
    let plan = select(Plan::load(arguments.project.as_deref(), Baselines::Needed)?, arguments)?;
    if plan.root == Root::Bundled {
        terminal.say("karat: no karat.toml here; running the bundled project");
    }
    let mut measured = measure(&plan, arguments, terminal)?;
    for (report, entry) in &mut measured.reports {
        gate::judge(report, &entry.entry.gate, entry.baseline.as_ref())
            .map_err(|error| Stop::bad_input(format!("{}: {error}", entry.entry.name)))?;
    }
    let reports: Vec<Report> = measured.reports.into_iter().map(|(report, _)| report).collect();
    let verdict = verdict(&reports, &measured.not_measured);
    let document = CheckReport {
        schema: report::CHECK_SCHEMA.to_owned(),
        verdict,
        reports,
        not_measured: measured.not_measured,
        not_run,
    };
    for (output, path) in &outputs {
        let text = output.render(&document).map_err(Stop::bad_input)?;
        write_atomic(path, text.as_bytes())?;
    }
    if terminal.json() {
        terminal.print_json(&document)?;
    } else {
        let style = karat_report::terminal::Style { colors: terminal.colors() };
        let mut text = karat_report::terminal::check(&document, style);
        for (_, path) in &outputs {
            text.push_str(&format!("report: {}\n", path.display()));
        }
        terminal.print(&text)?;
    }
    Ok(exit(&document, arguments.strict))
}

/// What was measured, and what could not be.
pub(crate) struct Measured<'a> {
    pub(crate) reports: Vec<(Report, &'a RetrievalPlan)>,
    pub(crate) not_measured: Vec<NotMeasured>,
}

/// Keeps only the entry that was asked for.
pub(crate) fn select(mut plan: Plan, arguments: &CheckArgs) -> Result<Plan, Stop> {
    let Some(name) = &arguments.only else { return Ok(plan) };
    let known: Vec<String> =
        plan.retrieval.iter().map(|planned| planned.entry.name.clone()).collect();
    plan.retrieval.retain(|planned| planned.entry.name == *name);
    if plan.retrieval.is_empty() {
        let known = known.join(", ");
        return Err(Stop::bad_input(format!(
            "--only: there is no entry {name:?}; there are: {known}"
        )));
    }
    Ok(plan)
}

/// Runs every entry of the plan. Ctrl-C ends it in good order: programs are stopped, and the journal
/// holds what was answered.
pub(crate) fn measure<'a>(
    plan: &'a Plan,
    arguments: &CheckArgs,
    terminal: &Terminal,
) -> Result<Measured<'a>, Stop> {
    let journals = out_folder(plan, arguments).join("journal");
    prepare_out(plan, arguments)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Stop::bad_input(format!("cannot start: {error}")))?;
    runtime.block_on(async {
        tokio::select! {
            measured = entries(plan, arguments, &journals, terminal) => measured,
            _ = tokio::signal::ctrl_c() => Err(Stop {
                exit: Exit::Interrupted,
                message: "interrupted; --resume goes on from here".to_owned(),
            }),
        }
    })
}

async fn entries<'a>(
    plan: &'a Plan,
    arguments: &CheckArgs,
    journals: &Path,
    terminal: &Terminal,
) -> Result<Measured<'a>, Stop> {
    let mut measured = Measured { reports: Vec::new(), not_measured: Vec::new() };
    for planned in &plan.retrieval {
        let name = &planned.entry.name;
        let surroundings = Surroundings {
            folder: plan.root.folder(),
            journal: &journals.join(format!("retrieval-{name}.jsonl")),
            resume: arguments.resume,
            listener: &terminal.progress(&format!("retrieval {name}")),
        };
        match karat_retrieval::run(&planned.entry, &planned.dataset, &surroundings).await {
            Ok(report) => measured.reports.push((report, planned)),
            Err(error) => {
                let stop = Stop::from(error);
                if stop.exit != Exit::NotMeasured {
                    return Err(Stop { message: format!("{name}: {}", stop.message), ..stop });
                }
                measured.not_measured.push(NotMeasured {
                    evaluation: Evaluation::Retrieval,
                    name: name.clone(),
                    reason: stop.message,
                });
            }
        }
    }
    Ok(measured)
}

/// Where reports and journals go: a relative folder is inside the project.
fn out_folder(plan: &Plan, arguments: &CheckArgs) -> PathBuf {
    plan.root.folder().join(&arguments.out)
}

/// Makes the folder, and keeps it out of version control: reports are made, never committed.
fn prepare_out(plan: &Plan, arguments: &CheckArgs) -> Result<(), Stop> {
    let ignore = out_folder(plan, arguments).join(".gitignore");
    if !ignore.exists() {
        write_atomic(&ignore, b"# Made by karat; nothing here belongs into version control.\n*\n")?;
    }
    Ok(())
}

/// The files to write: report.html and report.json in the folder, and those that were named.
fn outputs(arguments: &CheckArgs) -> Result<Vec<(Output, PathBuf)>, Stop> {
    let folder = match arguments.project.as_deref() {
        Some(project) if project.is_dir() => project.to_owned(),
        Some(project) => project.parent().unwrap_or(Path::new("")).to_owned(),
        None => PathBuf::new(),
    };
    let mut outputs = vec![
        (Output::Html, folder.join(&arguments.out).join("report.html")),
        (Output::Json, folder.join(&arguments.out).join("report.json")),
    ];
    for path in &arguments.outputs {
        let output = Output::of(path).map_err(Stop::bad_input)?;
        outputs.push((output, path.clone()));
    }
    Ok(outputs)
}

fn verdict(reports: &[Report], not_measured: &[NotMeasured]) -> Option<Verdict> {
    if !not_measured.is_empty() {
        return None;
    }
    reports.iter().filter_map(|report| report.gate.as_ref()).map(|gate| gate.verdict).max()
}

/// Not measured weighs more than a failed gate: exit code 1 means a gate failed and nothing else.
fn exit(document: &CheckReport, strict: bool) -> Exit {
    match document.verdict {
        None => Exit::NotMeasured,
        Some(Verdict::Fail) => Exit::GateFailed,
        Some(Verdict::Inconclusive) if strict => Exit::Inconclusive,
        Some(Verdict::Inconclusive | Verdict::Pass) => Exit::Pass,
    }
}
