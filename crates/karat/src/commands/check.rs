//! `karat check`: run what the project lists, gate, report.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use karat_core::evaluation::RunContext;
use karat_core::gate;
use karat_core::kind::Evaluation;
use karat_core::leaderboard;
use karat_core::project::{Baselines, Planned, Project};
use karat_core::report::{self, CheckReport, NotMeasured, NotRun, Report, Verdict};
use karat_history::{Added, Document, Store};
use karat_io::input::write_atomic;
use karat_io::text::printable;
use karat_report::{Output, findings};

use crate::cli::{CheckAllArgs, CheckArgs};
use crate::commands::{history, places};
use crate::exit::{Exit, Stop};
use crate::face::Terminal;
use crate::project;
use crate::work::until_stopped;

/// Every evaluation of the project.
pub(crate) fn all(arguments: &CheckAllArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let history = history_of(arguments)?;
    let evaluation = arguments.evaluation.clone().map(Evaluation::from);
    let mut published = check(&arguments.check, evaluation.as_ref(), terminal)?;
    if let Some(file) = history
        && let Err(stop) = remember(&published.document, &file, terminal)
    {
        published.unwritten.push(stop.message);
    }
    published.exit(arguments.check.strict)
}

/// The history that the report goes to, if any: the one that was asked for, or that of the project.
/// A file that is not a history is reported before anything runs.
fn history_of(arguments: &CheckAllArgs) -> Result<Option<PathBuf>, Stop> {
    let named = arguments.check.project.as_deref();
    let file = match &arguments.history {
        Some(file) => Some(history::file(file.as_deref(), named)?),
        None => project::history(named)?.file,
    };
    places::untracked(file.as_deref())?;
    if let Some(file) = file.as_deref().filter(|file| file.exists()) {
        Store::open(file)?;
    }
    Ok(file)
}

fn remember(document: &CheckReport, file: &Path, terminal: &Terminal) -> Result<(), Stop> {
    let shown = file.display();
    if document.reports.is_empty() {
        terminal.say(&format!("history: nothing was measured, so {shown} is as it was"));
        return Ok(());
    }
    let text = Output::Json.render(document).map_err(Stop::bad_input)?;
    let kept = Document::read(Path::new("the report"), text.as_bytes())?;
    let (Added::New(run) | Added::Known(run)) = Store::open_or_create(file)?.add(&kept)?;
    terminal.say(&format!("history: {shown}, run {run}"));
    Ok(())
}

/// The entries of one evaluation alone.
pub(crate) fn one(
    evaluation: &Evaluation,
    arguments: &CheckArgs,
    terminal: &Terminal,
) -> Result<Exit, Stop> {
    check(arguments, Some(evaluation), terminal)?.exit(arguments.strict)
}

fn check(
    arguments: &CheckArgs,
    evaluation: Option<&Evaluation>,
    terminal: &Terminal,
) -> Result<Published, Stop> {
    // A wrong place for an output is reported before anything is read or run.
    ready(arguments)?;
    let plan = project::load(arguments.project.as_deref(), Baselines::Needed)?;
    let plan = select(plan, arguments, evaluation)?;
    if plan.root.is_bundled() {
        terminal.say("karat: no karat.toml here; running the bundled project");
    }
    publish_all(&plan, arguments, evaluation, terminal)
}

/// Measures what is planned, gates, and writes the report.
pub(crate) fn carry_out(
    plan: &Project<'_>,
    arguments: &CheckArgs,
    evaluation: Option<&Evaluation>,
    terminal: &Terminal,
) -> Result<Exit, Stop> {
    ready(arguments)?;
    publish_all(plan, arguments, evaluation, terminal)?.exit(arguments.strict)
}

fn publish_all(
    plan: &Project<'_>,
    arguments: &CheckArgs,
    evaluation: Option<&Evaluation>,
    terminal: &Terminal,
) -> Result<Published, Stop> {
    let outputs = outputs(arguments)?;
    let mut reads = plan.reads();
    reads.extend(arguments.project.iter().filter(|named| named.is_file()).cloned());
    places::unread(outputs.iter().map(|(_, path)| path.as_path()), &reads)?;
    let mut measured = measure(plan, arguments, terminal)?;
    for (report, planned) in &mut measured.reports {
        let common = planned.entry.common();
        gate::judge(report, &common.gate, planned.baseline.as_ref())
            .map_err(|error| Stop::bad_input(format!("{}: {error}", common.name)))?;
    }
    // Where only a part was asked for, the rest is not news.
    let whole = evaluation.is_none() && arguments.only.is_none();
    let reports: Vec<Report> = measured.reports.into_iter().map(|(report, _)| report).collect();
    let document = CheckReport {
        schema: report::CHECK_SCHEMA.to_owned(),
        verdict: verdict(&reports, &measured.not_measured),
        reports,
        not_measured: measured.not_measured,
        not_run: if whole { not_run(plan) } else { Vec::new() },
        leaderboards: Vec::new(),
    };
    let leaderboards = leaderboard::of_recorded(&document.reports);
    let document = CheckReport { leaderboards, ..document };
    Ok(publish(document, &outputs, terminal))
}

/// Judges one report that came from no project, and publishes it as a check of one entry.
pub(crate) fn conclude(
    mut report: Report,
    policy: &gate::Policy,
    arguments: &CheckArgs,
    terminal: &Terminal,
) -> Result<Exit, Stop> {
    gate::judge(&mut report, policy, None).map_err(Stop::bad_input)?;
    let reports = vec![report];
    let document = CheckReport {
        schema: report::CHECK_SCHEMA.to_owned(),
        verdict: verdict(&reports, &[]),
        reports,
        not_measured: Vec::new(),
        not_run: Vec::new(),
        leaderboards: Vec::new(),
    };
    let outputs = outputs(arguments)?;
    let prepared = places::prepare(&arguments.out);
    let mut published = publish(document, &outputs, terminal);
    published.unwritten.extend(prepared.err().map(|stop| stop.message));
    published.exit(arguments.strict)
}

/// Judges reports that came from no project, shows them, and writes the outputs that were named.
pub(crate) fn conclude_all(
    mut reports: Vec<Report>,
    policy: &gate::Policy,
    outputs: &[PathBuf],
    terminal: &Terminal,
) -> Result<Exit, Stop> {
    let mut files = Vec::new();
    for path in outputs {
        files.push((Output::of(path).map_err(Stop::bad_input)?, path.clone()));
    }
    places::untracked(files.iter().map(|(_, path)| path.as_path()))?;
    for report in &mut reports {
        gate::judge(report, policy, None).map_err(Stop::bad_input)?;
    }
    let verdict = verdict(&reports, &[]);
    publish(CheckReport { verdict, ..CheckReport::of(reports) }, &files, terminal).exit(false)
}

/// The result of a run, and the reasons why some of it could not be written.
struct Published {
    document: CheckReport,
    unwritten: Vec<String>,
}

impl Published {
    /// An output that is missing is bad input; what was found has been shown by then.
    fn exit(&self, strict: bool) -> Result<Exit, Stop> {
        let exit = exit(&self.document, strict);
        if self.unwritten.is_empty() {
            return Ok(exit);
        }
        let (why, code) = (self.unwritten.join("\n"), exit.code());
        Err(Stop::bad_input(format!("{why}\nthe check itself ended with exit code {code}")))
    }
}

/// Shows the verdict, then writes it down: an output that cannot be written does not hide what was
/// found, and does not keep the others from being written.
fn publish(document: CheckReport, outputs: &[(Output, PathBuf)], terminal: &Terminal) -> Published {
    let mut unwritten = Vec::new();
    let mut noted = |done: Result<(), Stop>| match done {
        Ok(()) => true,
        Err(stop) => {
            unwritten.push(stop.message);
            false
        }
    };
    noted(show(&document, terminal));
    let mut written = String::new();
    for (output, path) in outputs {
        if noted(write(&document, *output, path)) {
            written.push_str(&format!("report: {}\n", path.display()));
        }
    }
    noted(step_summary(&document));
    if !terminal.json() && !terminal.quiet() {
        noted(terminal.print(&written));
    }
    Published { document, unwritten }
}

fn show(document: &CheckReport, terminal: &Terminal) -> Result<(), Stop> {
    if terminal.json() {
        return terminal.print_json(document);
    }
    if terminal.quiet() {
        return terminal.print(&trouble(document));
    }
    let style = karat_report::terminal::Style { colors: terminal.colors() };
    terminal.print(&karat_report::terminal::check(document, style))
}

fn write(document: &CheckReport, output: Output, path: &Path) -> Result<(), Stop> {
    let text = output.render(document).map_err(Stop::bad_input)?;
    Ok(write_atomic(path, text.as_bytes())?)
}

/// The failures, one per line; empty if everything passed.
pub(crate) fn trouble(document: &CheckReport) -> String {
    let mut lines = String::new();
    for report in &document.reports {
        let checks = report.gate.iter().flat_map(|gate| &gate.checks);
        for check in checks.filter(|check| check.verdict != Verdict::Pass) {
            let verdict = check.verdict.name();
            let (evaluation, name) = (&report.evaluation, printable(&report.name));
            let reason = printable(&check.reason);
            lines.push_str(&format!("{verdict}: {evaluation} · {name}: {reason}\n"));
        }
        if report.gate.as_ref().is_some_and(|gate| gate.verdict != Verdict::Pass) {
            lines.push_str(&failed_cases(report));
        }
    }
    for NotMeasured { evaluation, name, reason } in &document.not_measured {
        let (name, reason) = (printable(name), printable(reason));
        lines.push_str(&format!("not measured: {evaluation} · {name}: {reason}\n"));
    }
    lines
}

/// The cases that did not pass, in a line each.
fn failed_cases(report: &Report) -> String {
    let (evaluation, name) = (&report.evaluation, printable(&report.name));
    let (cases, more) = findings::failed_cases(report);
    let mut lines = String::new();
    for case in cases {
        let (id, reason) = (printable(case.id), printable(&case.reason));
        lines.push_str(&format!("failed: {evaluation} · {name}: {id}: {reason}\n"));
    }
    if more > 0 {
        lines.push_str(&format!("failed: {evaluation} · {name}: {more} more in the report\n"));
    }
    lines
}

fn not_run(plan: &Project<'_>) -> Vec<NotRun> {
    Evaluation::KNOWN
        .iter()
        .filter(|known| plan.entries.iter().all(|one| one.entry.evaluation() != **known))
        .map(|evaluation| NotRun {
            evaluation: evaluation.clone(),
            reason: "the project has no entry".to_owned(),
        })
        .collect()
}

/// The reports, and the entries that could not be measured.
pub(crate) struct Measured<'a> {
    pub(crate) reports: Vec<(Report, &'a Planned)>,
    pub(crate) not_measured: Vec<NotMeasured>,
}

/// Keeps only the entries that were asked for.
pub(crate) fn select(
    mut plan: Project<'static>,
    arguments: &CheckArgs,
    evaluation: Option<&Evaluation>,
) -> Result<Project<'static>, Stop> {
    let known: Vec<String> = plan.entries.iter().map(|planned| planned.entry.label()).collect();
    plan.entries.retain(|planned| {
        evaluation.is_none_or(|evaluation| planned.entry.evaluation() == *evaluation)
            && arguments.only.as_ref().is_none_or(|name| planned.entry.common().name == *name)
    });
    if plan.entries.is_empty() {
        let known = known.join(", ");
        return Err(Stop::bad_input(format!("no entry matches; the project has: {known}")));
    }
    Ok(plan)
}

/// The advice for a run that ended early, if the command can resume.
const GOES_ON: &str = "--resume goes on from here";

/// Runs every entry of the plan. Ctrl-C ends it in good order: programs are stopped, and the journal
/// holds what was answered.
pub(crate) fn measure<'a>(
    plan: &'a Project<'_>,
    arguments: &CheckArgs,
    terminal: &Terminal,
) -> Result<Measured<'a>, Stop> {
    let journals = out_folder(plan, arguments).join("journal");
    places::prepare(&out_folder(plan, arguments))?;
    let interrupted =
        if arguments.can_resume { &format!("interrupted; {GOES_ON}") } else { "interrupted" };
    until_stopped(entries(plan, arguments, &journals, terminal), interrupted)
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
            Err(stop) if stop.exit == Exit::NotMeasured => {
                let reason = match stop.can_go_on && arguments.can_resume {
                    true => format!("{} ({GOES_ON})", stop.message),
                    false => stop.message,
                };
                measured.not_measured.push(NotMeasured {
                    evaluation,
                    name: name.to_owned(),
                    reason,
                });
            }
            Err(stop) => {
                return Err(Stop { message: format!("{name}: {}", stop.message), ..stop });
            }
        }
    }
    Ok(measured)
}

/// The folder for reports and journals: a relative one is inside the project.
fn out_folder(plan: &Project<'_>, arguments: &CheckArgs) -> PathBuf {
    plan.root.folder().join(&arguments.out)
}

/// Returns whether the outputs have a shape and a place, before anything is measured.
pub(crate) fn ready(arguments: &CheckArgs) -> Result<(), Stop> {
    places::untracked(outputs(arguments)?.iter().map(|(_, path)| path.as_path()))
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

/// On GitHub the summary also goes to the page of the job.
fn step_summary(document: &CheckReport) -> Result<(), Stop> {
    let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()) else {
        return Ok(());
    };
    let summary = Output::Markdown.render(document).map_err(Stop::bad_input)?;
    // The file belongs to the job: other steps write to it too.
    let appended = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .and_then(|mut file| file.write_all(summary.as_bytes()));
    appended.map_err(|error| {
        let path = Path::new(&path).display();
        Stop::bad_input(format!(
            "GITHUB_STEP_SUMMARY names {path}, which cannot be written: {error}"
        ))
    })
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
