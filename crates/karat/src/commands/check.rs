//! `karat check`: measure the entries of the project, apply the gates, and write the report.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use karat_core::gate::{self, Policy};
use karat_core::kind::Evaluation;
use karat_core::leaderboard;
use karat_core::project::{Baselines, Project};
use karat_core::provenance;
use karat_core::report::{self, CheckReport, NotMeasured, Report, Source, Verdict};
use karat_history::{Added, Document, Store};
use karat_io::input::{write_atomic, write_atomic_with};
use karat_io::text::printable;
use karat_report::{Output, findings, json};

use crate::browser;
use crate::cli::{CheckAllArgs, CheckArgs, Format, ScoreArgs};
use crate::commands::agent::score::policy;
use crate::commands::measuring::{Measured, located, measure, path_of, select};
use crate::commands::{merging, parquet, part, places};
use crate::exit::{Exit, Stop};
use crate::project::{self, Choice};
use crate::terminal::Terminal;

/// The origin of the answers.
#[derive(Clone, Copy)]
pub(crate) enum Origin<'a> {
    /// The systems of the project.
    Systems,
    /// The journals of the parts of a run.
    Parts(&'a [PathBuf]),
}

/// Every evaluation of the project.
pub(crate) fn all(arguments: &CheckAllArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let evaluation = arguments.evaluation.clone().map(Evaluation::from);
    if let Some(partition) = arguments.check.partition {
        return part::run(partition, &arguments.check, evaluation.as_ref(), terminal);
    }
    all_from(Origin::Systems, arguments, terminal)
}

/// Every evaluation of the project, from this origin.
pub(crate) fn all_from(
    origin: Origin<'_>,
    arguments: &CheckAllArgs,
    terminal: &Terminal,
) -> Result<Exit, Stop> {
    let evaluation = arguments.evaluation.clone().map(Evaluation::from);
    ready(&arguments.check)?;
    let choice = Choice::new(arguments.check.project.as_deref(), arguments.check.bundled)?;
    let history = history_of(arguments, &choice)?;
    let mut published =
        check(origin, &arguments.check, evaluation.as_ref(), Detail::Summary, terminal)?;
    if arguments.open {
        let page = choice.folder().join(&arguments.check.out).join("report.html");
        browser::open(page.as_os_str(), terminal);
    }
    if let Some(file) = history
        && let Err(stop) = remember(&published.document, &file, terminal)
    {
        published.problems.push(stop.message);
    }
    published.exit(arguments.check.strict)
}

/// The history to add the report to, if any: the given one, or the one that the project names.
/// A file that is not a history is reported before anything runs.
fn history_of(arguments: &CheckAllArgs, choice: &Choice) -> Result<Option<PathBuf>, Stop> {
    let file = match &arguments.history {
        Some(Some(file)) => Some(file.clone()),
        Some(None) => Some(project::of_choice(choice)?.place()),
        None => project::of_choice(choice)?.file,
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
        terminal.say(&format!("history: nothing was measured; {shown} is unchanged"));
        return Ok(());
    }
    let text = Output::Json.render(document).map_err(Stop::bad_input)?;
    let kept = Document::read(Path::new("the report"), text.as_bytes())?;
    let (Added::New(run) | Added::Known(run)) = Store::open_or_create(file)?.add(&kept)?;
    terminal.say(&format!("history: {shown}, run {run}"));
    Ok(())
}

/// The entries of one evaluation: of the project, or else of the bundled one.
pub(crate) fn one(
    evaluation: &Evaluation,
    arguments: &CheckArgs,
    terminal: &Terminal,
) -> Result<Exit, Stop> {
    let arguments = &or_bundled(evaluation, arguments, terminal);
    if let Some(partition) = arguments.partition {
        return part::run(partition, arguments, Some(evaluation), terminal);
    }
    check(Origin::Systems, arguments, Some(evaluation), Detail::Tables, terminal)?
        .exit(arguments.strict)
}

/// The arguments, with `--bundled` where no project is named or near.
fn or_bundled(evaluation: &Evaluation, arguments: &CheckArgs, terminal: &Terminal) -> CheckArgs {
    let asked = arguments.bundled || arguments.project.is_some();
    if asked || project::is_near() {
        return arguments.clone();
    }
    terminal.say(&format!(
        "note: no {} in this folder or its parents; measuring the {evaluation} entries of the bundled project",
        project::FILE
    ));
    CheckArgs { bundled: true, ..arguments.clone() }
}

fn check(
    origin: Origin<'_>,
    arguments: &CheckArgs,
    evaluation: Option<&Evaluation>,
    detail: Detail,
    terminal: &Terminal,
) -> Result<Published, Stop> {
    // A wrong place for an output is reported before anything is read or run.
    ready(arguments)?;
    let (choice, arguments) = located(arguments)?;
    ready(&arguments)?;
    let plan = choice.load(Baselines::Needed, terminal)?;
    let labels: Vec<String> = plan.entries.iter().map(|planned| planned.entry.label()).collect();
    let plan = select(plan, &arguments, evaluation)?;
    let measure = || match origin {
        Origin::Systems => measure(&plan, &arguments, terminal),
        Origin::Parts(parts) => merging::measure(&plan, &labels, parts, &arguments, terminal),
    };
    measured_and_published(&plan, &arguments, Kept::default(), detail, terminal, measure)
}

/// Results of entries that are not measured again.
#[derive(Default)]
pub(crate) struct Kept {
    pub(crate) reports: Vec<Report>,
    pub(crate) not_measured: Vec<NotMeasured>,
}

/// Measures the plan, applies the gates, and writes the report.
pub(crate) fn carry_out(
    plan: &Project<'_>,
    arguments: &CheckArgs,
    terminal: &Terminal,
) -> Result<Exit, Stop> {
    if arguments.partition.is_some() {
        return Err(Stop::bad_input(
            "--partition requires a project: `karat merge` reads the settings of the run from karat.toml",
        ));
    }
    ready(arguments)?;
    // Without a project there are no gates to summarize: the numbers are the result.
    let detail = Detail::Tables;
    let measure = || measure(plan, arguments, terminal);
    measured_and_published(plan, arguments, Kept::default(), detail, terminal, measure)?
        .exit(arguments.strict)
}

/// The amount that is printed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    /// One line for each entry, and what failed.
    Summary,
    /// Every number.
    Tables,
    /// A summary for a coding agent: failures and places to look.
    Agent,
}

impl Detail {
    /// The requested amount, or else this one.
    fn asked(arguments: &CheckArgs, otherwise: Detail) -> Detail {
        match arguments.form.format {
            Format::Agent => Detail::Agent,
            Format::Text => otherwise,
        }
    }
}

/// Measures the plan and publishes it together with the kept results.
pub(crate) fn publish_all(
    plan: &Project<'_>,
    arguments: &CheckArgs,
    kept: Kept,
    terminal: &Terminal,
) -> Result<Published, Stop> {
    let measure = || measure(plan, arguments, terminal);
    measured_and_published(plan, arguments, kept, Detail::Summary, terminal, measure)
}

fn measured_and_published<'a>(
    plan: &Project<'_>,
    arguments: &CheckArgs,
    kept: Kept,
    detail: Detail,
    terminal: &Terminal,
    measure: impl FnOnce() -> Result<Measured<'a>, Stop>,
) -> Result<Published, Stop> {
    let outputs = outputs(arguments)?;
    let mut reads = plan.reads();
    reads.extend(arguments.project.iter().filter(|named| named.is_file()).cloned());
    places::unread(outputs.iter().map(|(_, path)| path.as_path()), &reads)?;
    let mut measured = measure()?;
    let mut not_judged = Vec::new();
    for (report, planned) in &mut measured.reports {
        let common = planned.entry.common();
        if let Err(error) = gate::judge(report, &common.gate, planned.baseline.as_ref()) {
            not_judged.push(format!("{}: {error}", path_of(planned)));
            gate::fail_unjudged(report, &error);
        }
    }
    let fresh = measured.reports.into_iter().map(|(report, _)| report);
    let reports: Vec<Report> = kept.reports.into_iter().chain(fresh).collect();
    let mut not_measured = kept.not_measured;
    not_measured.extend(measured.not_measured);
    let document = CheckReport {
        schema: report::CHECK_SCHEMA.to_owned(),
        source: Some(source(plan)),
        verdict: verdict(&reports, &not_measured),
        reports,
        not_measured,
        leaderboards: Vec::new(),
    };
    let leaderboards = leaderboard::of_recorded(&document.reports);
    let document = CheckReport { leaderboards, ..document };
    let detail = Detail::asked(arguments, detail);
    let mut published = publish(document, &outputs, detail, terminal);
    let tables = parquet::write_all(arguments.parquet.as_deref(), &published.document.reports);
    published.problems.extend(tables.err().map(|stop| stop.message));
    published.problems.extend(not_judged);
    Ok(published)
}

/// The project as reports name it. The bundled one has no repository.
fn source(plan: &Project<'_>) -> Source {
    match plan.root.is_bundled() {
        true => Source { project: plan.name.clone(), ..Source::default() },
        false => provenance::source(plan.root.folder(), plan.name.clone()),
    }
}

/// Applies gates to a report without a project, and publishes it as a check of one entry.
pub(crate) fn conclude(
    mut report: Report,
    policy: &Policy,
    arguments: &CheckArgs,
    terminal: &Terminal,
) -> Result<Exit, Stop> {
    gate::judge(&mut report, policy, None).map_err(Stop::bad_input)?;
    let document = CheckReport::of(vec![report]);
    let outputs = outputs(arguments)?;
    let prepared = places::prepare(&arguments.out);
    let detail = Detail::asked(arguments, Detail::Tables);
    let mut published = publish(document, &outputs, detail, terminal);
    published.problems.extend(prepared.err().map(|stop| stop.message));
    published.exit(arguments.strict)
}

/// Applies gates to reports without a project, shows them, and writes the given outputs.
pub(crate) fn conclude_all(
    mut reports: Vec<Report>,
    policy: &Policy,
    outputs: &[PathBuf],
    terminal: &Terminal,
) -> Result<Exit, Stop> {
    let files = named(outputs)?;
    for report in &mut reports {
        gate::judge(report, policy, None).map_err(Stop::bad_input)?;
    }
    let verdict = verdict(&reports, &[]);
    let document = CheckReport { verdict, ..CheckReport::of(reports) };
    publish(document, &files, Detail::Tables, terminal).exit(false)
}

/// The gate that the options of a score ask for, and the folder for its tables.
pub(crate) fn scoring(arguments: &ScoreArgs) -> Result<(Policy, Option<&Path>), Stop> {
    if !(0.0..=1.0).contains(&arguments.max_errors) {
        return Err(Stop::bad_input("--max-errors must be between 0 and 1"));
    }
    let folder = arguments.parquet.as_deref();
    parquet::ready(folder)?;
    let gate = policy(&arguments.rules, &[], arguments.max_errors)?;
    gate.validate().map_err(Stop::bad_input)?;
    Ok((gate, folder))
}

/// Applies a gate to the report of recorded answers, writes the given outputs, and shows the scores.
pub(crate) fn conclude_scores(
    mut report: Report,
    policy: &Policy,
    outputs: &[PathBuf],
    terminal: &Terminal,
) -> Result<Exit, Stop> {
    let files = named(outputs)?;
    gate::judge(&mut report, policy, None).map_err(Stop::bad_input)?;
    let document = CheckReport::of(vec![report]);
    files.iter().try_for_each(|(output, path)| write(&document, *output, path))?;
    for report in &document.reports {
        match (terminal.json(), terminal.quiet()) {
            (true, _) => terminal.print_json(report)?,
            (false, true) => terminal.print(&trouble_of(report))?,
            (false, false) => {
                terminal.print(&karat_report::terminal::scores(report, terminal.style()))?;
                terminal.print(&lines_of(files.iter().map(|(_, path)| path.display())))?;
            }
        }
    }
    Ok(exit(&document, false))
}

/// The named outputs with their formats.
fn named(outputs: &[PathBuf]) -> Result<Vec<(Output, PathBuf)>, Stop> {
    let mut files = Vec::new();
    for path in outputs {
        files.push((Output::of(path).map_err(Stop::bad_input)?, path.clone()));
    }
    places::untracked(files.iter().map(|(_, path)| path.as_path()))?;
    Ok(files)
}

/// The result of a run, and the reasons why some of it could not be judged or written.
pub(crate) struct Published {
    pub(crate) document: CheckReport,
    problems: Vec<String>,
}

impl Published {
    /// A missing output and a gate without a meaning are bad input; the findings have been shown by then.
    pub(crate) fn exit(&self, strict: bool) -> Result<Exit, Stop> {
        let exit = exit(&self.document, strict);
        if self.problems.is_empty() {
            return Ok(exit);
        }
        let (why, code) = (self.problems.join("\n"), exit.code());
        Err(Stop::bad_input(format!("{why}\nthe check itself ended with exit code {code}")))
    }
}

/// Writes the outputs and shows the verdict. An output that cannot be written hides neither the findings
/// nor the other outputs.
fn publish(
    document: CheckReport,
    outputs: &[(Output, PathBuf)],
    detail: Detail,
    terminal: &Terminal,
) -> Published {
    let mut problems = Vec::new();
    let mut noted = |done: Result<(), Stop>| match done {
        Ok(()) => true,
        Err(stop) => {
            problems.push(stop.message);
            false
        }
    };
    let mut written = Vec::new();
    for (output, path) in outputs {
        if noted(write(&document, *output, path)) {
            written.push(path.display().to_string());
        }
    }
    noted(step_summary(&document));
    noted(show(&document, &written, detail, terminal));
    Published { document, problems }
}

fn show(
    document: &CheckReport,
    written: &[String],
    detail: Detail,
    terminal: &Terminal,
) -> Result<(), Stop> {
    if terminal.json() {
        return terminal.print_json(document);
    }
    if detail == Detail::Agent {
        return terminal.print(&karat_report::agent::text(document, written));
    }
    if terminal.quiet() {
        return terminal.print(&trouble(document));
    }
    let style = terminal.style();
    if detail == Detail::Tables {
        return terminal
            .print(&(karat_report::terminal::check(document, style) + &lines_of(written)));
    }
    if terminal.verbose() {
        terminal.print(&karat_report::terminal::check(document, style))?;
        terminal.print("\n")?;
    }
    terminal.print(&karat_report::terminal::summary(document, written, style))
}

/// The lines about files that were written.
fn lines_of(files: impl IntoIterator<Item = impl ToString>) -> String {
    let line = |file: String| format!("report: {}\n", printable(&file));
    files.into_iter().map(|file| line(file.to_string())).collect()
}

fn write(document: &CheckReport, output: Output, path: &Path) -> Result<(), Stop> {
    if output == Output::Json {
        return Ok(write_atomic_with(path, |file| json::write_check(document, file))?);
    }
    let text = output.render(document).map_err(Stop::bad_input)?;
    Ok(write_atomic(path, text.as_bytes())?)
}

/// The failures, one per line; empty if everything passed.
pub(crate) fn trouble(document: &CheckReport) -> String {
    let mut lines: String = document.reports.iter().map(trouble_of).collect();
    for NotMeasured { evaluation, name, reason } in &document.not_measured {
        let (name, reason) = (printable(name), printable(reason));
        lines.push_str(&format!("not measured: {evaluation} · {name}: {reason}\n"));
    }
    lines
}

/// The failures of one report, one per line.
pub(crate) fn trouble_of(report: &Report) -> String {
    let mut lines = String::new();
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

/// Checks the formats and places of the outputs, before anything is measured.
pub(crate) fn ready(arguments: &CheckArgs) -> Result<(), Stop> {
    places::untracked(outputs(arguments)?.iter().map(|(_, path)| path.as_path()))
}

/// The files to write: report.html and report.json in the folder, and those that were named.
pub(crate) fn outputs(arguments: &CheckArgs) -> Result<Vec<(Output, PathBuf)>, Stop> {
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
    let Some(path) = step_summary_file() else { return Ok(()) };
    let summary = Output::Markdown.render(document).map_err(Stop::bad_input)?;
    // The file belongs to the job: other steps write to it too.
    let appended = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .and_then(|mut file| file.write_all(summary.as_bytes()));
    appended.map_err(|error| {
        let path = Path::new(&path).display();
        Stop::bad_input(format!("cannot write the file in GITHUB_STEP_SUMMARY, {path}: {error}"))
    })
}

/// The file for the summary of a step on GitHub.
pub(crate) fn step_summary_file() -> Option<std::ffi::OsString> {
    std::env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty())
}

fn verdict(reports: &[Report], not_measured: &[NotMeasured]) -> Option<Verdict> {
    if !not_measured.is_empty() {
        return None;
    }
    reports.iter().filter_map(|report| report.gate.as_ref()).map(|gate| gate.verdict).max()
}

/// Not measured takes precedence over a failed gate: exit code 1 means only that a gate failed.
pub(crate) fn exit(document: &CheckReport, strict: bool) -> Exit {
    match document.verdict {
        None => Exit::NotMeasured,
        Some(Verdict::Fail) => Exit::GateFailed,
        Some(Verdict::Inconclusive) if strict => Exit::Inconclusive,
        Some(Verdict::Inconclusive | Verdict::Pass) => Exit::Pass,
    }
}
