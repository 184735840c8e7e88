//! A program that reads a file of tools, all at once, and writes what it found.
//!
//! The file has the form of an MCP `tools/list` answer. What comes back is JSON, with paths that say
//! where the results are and which entry each is about, or SARIF. Exit codes are not verdicts: many
//! scanners end with 0 whatever they find, others with 1 if they find anything. Whether an entry that
//! the output does not mention passed or is missing has to be said (`absent`).
//!
//! Scanners find tools by name, so no name may be listed twice in a file: entries with equal names go into
//! different files and the program runs once for each. What such a file cannot show (the result of a
//! call, server instructions) cannot be judged, so an entry that has either is `unsupported`. Scanners
//! of client configurations get a file of servers instead, one for each entry, and scanners of
//! folders one file for each entry.
//!
//! Every batch contains a canary pair, one harmless and one blatant definition. A scanner that judges
//! both alike may never have seen the tools, and the report says so.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use karat_core::observed::DetectorFinding;
use karat_io::input::{self, Limits};
use karat_io::process::{Exit, Line, Process, Program};
use karat_io::redact::Redactor;
use karat_io::template::fill_word;
use karat_io::text::count;
use karat_io::{Failure, FailureClass};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::answer::{Rated, definition};
use super::batch_config::Paths;
pub(crate) use super::batch_config::{
    Absent, BatchConfig, Names, OutputFormat, Repeats, ToolsShape, Unplaced,
};
use super::canary::{canaries, odd};
use super::documents::documents;
use super::sarif;
use super::starts::{Finished, Starts};
use crate::answer::{Answer, DetectorReport, Lacks, Verdict};
use crate::dataset::{Dataset, Sample};
use crate::decision::most_severe;
use karat_core::dataset::Digest;
use karat_core::error::EvalError;
use karat_core::run::Progress;
use karat_io::json_path::JsonPath;

/// The most that a program may print.
const MAX_OUTPUT_BYTES: usize = 256 << 20;
/// The name of the detector if the output names none.
pub(crate) const DETECTOR: &str = "batch";

/// The program's answers on every entry, for each run.
#[derive(Debug, Default)]
pub struct Batch {
    runs: Vec<Answers>,
    /// For each entry that was shown, in each run, its share of the time that the program took.
    times: Vec<Duration>,
    unplaced: usize,
    /// Detectors that the decision names and the output never does.
    unheard: BTreeSet<String>,
    /// The number of times that the program was started in one run.
    starts: usize,
    /// True if it was shown servers rather than tools.
    of_servers: bool,
    /// The remark on its verdicts on the canary pair, if they are odd.
    canary: Option<String>,
}

/// The surroundings of a batch: where its answers are kept while it works, and where its progress is shown.
pub(crate) struct BatchContext<'c> {
    /// The journal; the finished starts are in a file next to it.
    pub journal: Option<&'c Path>,
    /// Set to continue an interrupted run.
    pub resume: bool,
    /// Shows the progress.
    pub progress: &'c dyn Progress,
}

/// The answer on each entry.
pub(super) type Answers = BTreeMap<String, Result<Answer, String>>;

/// The number of results there that were.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Tally {
    results: usize,
    /// Those that name no tool of the file.
    unplaced: usize,
}

impl Batch {
    /// Runs the program over the whole dataset, as often as there are runs. `decide` names the detectors
    /// that the decision is about; neither an answer nor an error shows the secrets of the program.
    ///
    /// # Errors
    /// If it does not start, takes too long, or answers with something else.
    pub(crate) async fn run(
        config: &BatchConfig,
        (program, redactor): &(Program, Redactor),
        dataset: &Dataset,
        decide: &[String],
        runs: u32,
        context: &BatchContext<'_>,
    ) -> Result<Batch, EvalError> {
        config.check()?;
        let mut done = Batch::default();
        let canaries = canaries();
        let files = files(dataset, config, &canaries);
        done.starts = files.len();
        done.of_servers = config.tools == ToolsShape::Servers;
        let mut starts = Starts::next_to(context.journal, context.resume);
        let all = files.len() * runs as usize;
        let mut number = 0;
        for run in 0..runs {
            let mut answers = BTreeMap::new();
            let mut tally = Tally::default();
            for file in &files {
                number += 1;
                let tools = Tools::of(config, file);
                let key = key(config, program, run, &tools);
                let finished = if let Some(known) = starts.take(&key) {
                    known
                } else {
                    let entries = file.values().filter(|sample| !is_canary(sample, &canaries));
                    let entries = entries.count();
                    let entries = count(entries, "entry");
                    context
                        .progress
                        .stage(&format!("scanner start {number} of {all} on {entries}"));
                    let began = Instant::now();
                    let mut of_file = Answers::new();
                    let tally = run_once(config, program, file, &tools, &mut of_file).await;
                    let tally =
                        tally.map_err(|error| super::not_started(redactor.hidden(error)))?;
                    for answer in of_file.values_mut() {
                        match answer {
                            Ok(answer) => answer.hide(redactor),
                            Err(message) => *message = redactor.hidden(std::mem::take(message)),
                        }
                    }
                    let finished = Finished::new(&key, began.elapsed(), of_file, tally);
                    starts.note(&finished).map_err(super::not_started)?;
                    finished
                };
                let share = finished.took() / u32::try_from(file.len()).unwrap_or(u32::MAX);
                done.times.extend(file.iter().map(|_| share));
                tally.results += finished.tally.results;
                tally.unplaced += finished.tally.unplaced;
                answers.extend(finished.answers);
            }
            if tally.results > 0 && tally.unplaced == tally.results {
                return Err(super::not_started(format!(
                    "the scanner gave {}, of which none names a tool of the file; look at entry and \
                     entry_prefix",
                    count(tally.results, "result")
                )));
            }
            done.unplaced += tally.unplaced;
            let detectors = detectors(config, decide, &answers);
            done.unheard.extend(detectors.unheard);
            let seen = canaries.each_ref().map(|canary| answers.remove(&canary.id));
            let silent_passes = config.absent() == Absent::Pass;
            done.canary = done.canary.take().or_else(|| odd(seen, silent_passes));
            complete(config, dataset, &detectors.all, &mut answers);
            done.runs.push(answers);
        }
        Ok(done)
    }

    /// The time the entries took, each its share of a run of the program, start-up included.
    pub(crate) fn times(&self) -> &[Duration] {
        &self.times
    }

    /// Remarks for the reader of the report.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = vec![
            "answer times are shares of whole runs of the program, its start-up included"
                .to_owned(),
        ];
        notes.extend(self.canary.clone());
        if self.starts > 3 {
            let other = if self.of_servers { " or repeats = \"together\"" } else { "" };
            notes.push(format!(
                "names repeat, so the scanner was started {} times; with names = \"id\"{other} it \
                 starts once, if names do not matter to it",
                self.starts
            ));
        }
        if self.unplaced > 0 {
            notes.push(format!(
                "the scanner gave {} about the file as a whole, counted for no entry",
                count(self.unplaced, "result")
            ));
        }
        if !self.unheard.is_empty() {
            let names: Vec<String> = self.unheard.iter().map(|name| super::text(name)).collect();
            notes.push(format!(
                "the decision names {}, which no result of the scanner does: every entry counts as \
                 passed by it",
                names.join(", ")
            ));
        }
        notes
    }

    /// The answer on an entry in a run.
    ///
    /// # Errors
    /// If the scanner did not report on it.
    pub(crate) fn answer(&self, run: u32, id: &str) -> Result<Answer, Failure> {
        let answers = usize::try_from(run).ok().and_then(|run| self.runs.get(run));
        match answers.and_then(|answers| answers.get(id)) {
            Some(Ok(answer)) => Ok(answer.clone()),
            Some(Err(message)) => Err(Failure::new(FailureClass::InvalidAnswer, message.clone())),
            None => Err(Failure::new(
                FailureClass::InvalidAnswer,
                "the scanner's output does not mention this entry",
            )),
        }
    }
}

/// Returns whether the file shows everything that the entry consists of.
fn is_shown(sample: &Sample, shape: ToolsShape) -> bool {
    sample.result.is_none() && (sample.instructions.is_none() || shape == ToolsShape::Servers)
}

/// Who judges.
struct Detectors {
    all: BTreeSet<String>,
    /// Those of them that only the decision names.
    unheard: Vec<String>,
}

/// The detectors that the output mentions. One that lists its findings and has none is known from the
/// decision alone.
fn detectors(config: &BatchConfig, decide: &[String], answers: &Answers) -> Detectors {
    let reports = answers.values().flatten().flat_map(|answer| &answer.reports);
    let mut all: BTreeSet<String> = reports.map(|report| report.detector.clone()).collect();
    let mut unheard = Vec::new();
    if config.detector.is_some() && config.absent() == Absent::Pass {
        unheard.extend(decide.iter().filter(|name| !all.contains(*name)).cloned());
        all.extend(decide.iter().cloned());
    }
    if all.is_empty() {
        all.insert(DETECTOR.to_owned());
    }
    Detectors { all, unheard }
}

/// Adds what the output leaves out: entries that could not be shown, and of the others the verdicts of
/// detectors that do not mention them.
fn complete(
    config: &BatchConfig,
    dataset: &Dataset,
    detectors: &BTreeSet<String>,
    answers: &mut Answers,
) {
    for sample in &dataset.samples {
        let shown = is_shown(sample, config.tools);
        let passes = config.absent() == Absent::Pass && config.format == OutputFormat::Json;
        let (verdict, message) = match (shown, passes) {
            (false, _) => (
                Verdict::Unsupported,
                "the file of tools cannot show all that this entry consists of",
            ),
            (true, true) => (Verdict::Pass, ""),
            // The entry is missing as a whole, or this detector's verdict on it.
            (true, false) if !answers.contains_key(&sample.id) => continue,
            (true, false) => (Verdict::Error, "the output has no verdict of it on this entry"),
        };
        let answer = answers.entry(sample.id.clone()).or_insert_with(|| Ok(Answer::default()));
        if let Ok(answer) = answer {
            answer.complete(detectors.iter().map(String::as_str), verdict, message);
        }
    }
}

/// The entries of one file, by the names that they have in it.
type ToolsFile<'d> = BTreeMap<String, &'d Sample>;

/// Spreads the entries over files in which no tool name is listed twice: scanners find tools by name, or
/// take equal names of two servers for an attack.
fn files<'d>(
    dataset: &'d Dataset,
    config: &BatchConfig,
    canaries: &'d [Sample; 2],
) -> Vec<ToolsFile<'d>> {
    if config.tools == ToolsShape::Files {
        let shown = dataset.samples.iter().filter(|sample| is_shown(sample, config.tools));
        let numbered = shown.chain(canaries).enumerate();
        return vec![numbered.map(|(n, sample)| (format!("{:04}", n + 1), sample)).collect()];
    }
    let mut files: Vec<(BTreeSet<&str>, ToolsFile<'d>)> = Vec::new();
    for sample in dataset.samples.iter().filter(|sample| is_shown(sample, config.tools)) {
        let id = sample.id.as_str();
        let own = Some(sample.tool.name.as_str()).filter(|name| !name.is_empty());
        let shown = if config.names == Names::Id { id } else { own.unwrap_or(id) };
        let key = if config.tools == ToolsShape::Servers { id } else { shown };
        let together = config.repeats == Repeats::Together;
        let free = files.iter().position(|(taken, _)| together || !taken.contains(shown));
        let number = free.unwrap_or_else(|| {
            files.push(Default::default());
            files.len() - 1
        });
        let (taken, file) = &mut files[number];
        taken.insert(shown);
        file.insert(key.to_owned(), sample);
    }
    let mut files: Vec<ToolsFile<'d>> = files.into_iter().map(|(_, file)| file).collect();
    // One pair is enough: the program is the same in every run.
    if let Some(file) = files.first_mut() {
        for canary in canaries {
            let servers = config.tools == ToolsShape::Servers;
            let key = if servers { &canary.id } else { &canary.tool.name };
            file.insert(key.clone(), canary);
        }
    }
    files
}

/// The tools as the program finds them on disk.
enum Tools {
    File(String),
    /// Each file with its name.
    Folder(Vec<(String, String)>),
}

impl Tools {
    fn of(config: &BatchConfig, file: &ToolsFile<'_>) -> Tools {
        let tools = || file.iter().map(|(name, sample)| tool_json(name, sample)).collect();
        let whole = match config.tools {
            ToolsShape::Object => json!({ "tools": Value::Array(tools()) }),
            ToolsShape::List => Value::Array(tools()),
            ToolsShape::Servers => {
                let server = |(id, sample): (&String, &&Sample)| {
                    (id.clone(), server_json(id, sample, &config.tools_at))
                };
                let servers: serde_json::Map<String, Value> = file.iter().map(server).collect();
                json!({ "mcpServers": servers })
            }
            ToolsShape::Files => {
                let tool = |(name, sample): (&String, &&Sample)| {
                    let own = &sample.tool.name;
                    let tool = tool_json(if own.is_empty() { name } else { own }, sample);
                    (format!("{name}.json"), tool.to_string())
                };
                return Tools::Folder(file.iter().map(tool).collect());
            }
        };
        Tools::File(whole.to_string())
    }

    fn write(&self, at: &Path) -> std::io::Result<()> {
        match self {
            Tools::File(text) => std::fs::write(at, text),
            Tools::Folder(files) => {
                std::fs::create_dir(at)?;
                files.iter().try_for_each(|(name, text)| std::fs::write(at.join(name), text))
            }
        }
    }
}

/// The digest of a start: equal ones would show the same program the same tools in the same run.
fn key(config: &BatchConfig, program: &Program, run: u32, tools: &Tools) -> String {
    let tools = match tools {
        Tools::File(text) => json!(text),
        Tools::Folder(files) => json!(files),
    };
    let folder = program.folder.as_deref().map(Path::to_string_lossy);
    let whole = json!([config, program.command, program.env, folder, run, tools]);
    Digest::of(whole.to_string().as_bytes()).to_string()
}

fn is_canary(sample: &Sample, canaries: &[Sample; 2]) -> bool {
    canaries.iter().any(|canary| canary.id == sample.id)
}

fn server_json(id: &str, sample: &Sample, tools_at: &str) -> Value {
    let own = &sample.tool.name;
    let tool = tool_json(if own.is_empty() { id } else { own }, sample);
    let keys = tools_at.split('.').rev().filter(|key| !key.is_empty());
    let mut server = keys.fold(json!([tool]), |inner, key| json!({ key: inner }));
    server["command"] = json!(id);
    server["args"] = json!([]);
    if let Some(instructions) = &sample.instructions {
        server["description"] = json!(instructions);
    }
    server
}

fn tool_json(name: &str, sample: &Sample) -> Value {
    let mut tool = definition(&sample.tool);
    tool["name"] = json!(name);
    tool
}

/// Runs the program over one file and counts its results.
async fn run_once(
    config: &BatchConfig,
    program: &Program,
    file: &ToolsFile<'_>,
    tools: &Tools,
    answers: &mut Answers,
) -> Result<Tally, String> {
    let folder = tempfile::tempdir().map_err(|error| format!("no temporary folder: {error}"))?;
    let is_folder = config.tools == ToolsShape::Files;
    let shown = folder.path().join(if is_folder { "tools" } else { "tools.json" });
    let output = folder.path().join("output.json");
    tools.write(&shown).map_err(|error| format!("the tools file cannot be written: {error}"))?;
    let places = [("tools", shown.to_string_lossy()), ("output", output.to_string_lossy())];
    let fill = |word: &String| fill_word(word, &places);
    let program =
        Program { command: program.command.iter().map(fill).collect(), ..program.clone() };
    let timeout = Duration::from_millis(config.timeout_ms);
    let printed = tokio::time::timeout(timeout, print(&program))
        .await
        .map_err(|_| format!("the scanner did not end within {timeout:?}"))??;
    // Its output may look like a scan that found nothing.
    if printed.exit.by_signal {
        return Err(format!("the scanner crashed or was killed: {}", printed.exit.description));
    }
    let writes = config.command.iter().any(|word| word.contains("{output}"));
    let text = if writes {
        input::read_text(&output, &Limits::default()).map_err(|error| {
            format!("the scanner wrote no output: {error} ({})", printed.exit.description)
        })?
    } else {
        printed.text
    };
    let read = documents(&text).and_then(|documents| match config.format {
        OutputFormat::Json => read_json(config, &documents, file, answers),
        OutputFormat::Sarif => read_sarif(config, &sarif::joined(documents), file, answers),
    });
    read.map_err(|error| format!("{error} ({})", printed.exit.description))
}

struct Printed {
    text: String,
    exit: Exit,
}

async fn print(program: &Program) -> Result<Printed, String> {
    let (mut process, stdin, mut lines) = Process::start(program)?;
    drop(stdin);
    let mut text = String::new();
    loop {
        match lines.next().await {
            Line::Text(line) => {
                text.push_str(&line);
                text.push('\n');
            }
            Line::NotUtf8 => {
                return Err("the scanner printed something that is not UTF-8".to_owned());
            }
            Line::TooLong => return Err("the scanner printed a line beyond 16 MiB".to_owned()),
            Line::End => break,
        }
        if text.len() > MAX_OUTPUT_BYTES {
            return Err("the scanner printed more than 256 MiB".to_owned());
        }
    }
    Ok(Printed { text, exit: process.exit().await })
}

fn read_json(
    config: &BatchConfig,
    documents: &[Value],
    file: &ToolsFile<'_>,
    answers: &mut Answers,
) -> Result<Tally, String> {
    let paths = config.paths().map_err(|error| error.to_string())?;
    let mut results = Vec::new();
    for document in documents {
        results.extend(listed(config, &paths.results, document)?);
    }
    if results.is_empty() && config.absent() == Absent::Missing {
        return Err(format!("the scanner's output has no results at {}", config.results_path()));
    }
    let mut tally = Tally { results: results.len(), unplaced: 0 };
    for result in results {
        // A finding about several tools, such as a flow between them, is one about each of them.
        let mut placed: BTreeSet<&str> = BTreeSet::new();
        let mut unknown = 0;
        for name in paths.entry.find(result).into_iter().filter_map(Value::as_str) {
            let Some(sample) = place(config, file, name) else {
                unknown += 1;
                continue;
            };
            placed.insert(&sample.id);
        }
        if config.unplaced == Unplaced::Refuse && (placed.is_empty() || unknown > 0) {
            let fault = match placed.is_empty() {
                true => "names no tool of the file",
                false => "names a tool that is not in the file",
            };
            let result = super::text(&result.to_string());
            return Err(format!("a result of the scanner {fault}: {result}"));
        }
        if placed.is_empty() {
            tally.unplaced += 1;
            continue;
        }
        let report = reported(config, &paths, result);
        for id in placed {
            let entry = answers.entry(id.to_owned()).or_insert_with(|| Ok(Answer::default()));
            match (entry, &report) {
                (Ok(answer), Ok(report)) => merge(answer, report.clone()),
                (entry, Err(message)) => *entry = Err(message.clone()),
                (Err(_), Ok(_)) => {}
            }
        }
    }
    Ok(tally)
}

/// The results. A scanner that failed prints something else, perhaps an object with an error in it:
/// where an entry without a result passes, that must not be taken for a clean scan.
fn listed<'v>(
    config: &BatchConfig,
    path: &JsonPath,
    value: &'v Value,
) -> Result<Vec<&'v Value>, String> {
    let found = match config.absent() {
        Absent::Pass => path.find_listed(value),
        // Another document of the output may have the results.
        Absent::Missing => match path.find(value) {
            found if found.is_empty() => path.find_listed(value),
            found => Ok(found),
        },
    };
    found.map_err(|lacks| {
        format!(
            "the scanner's output has {lacks} at {}: {}",
            config.results_path(),
            super::text(&value.to_string())
        )
    })
}

/// The entry that a result names.
fn place<'d>(config: &BatchConfig, file: &ToolsFile<'d>, named: &str) -> Option<&'d Sample> {
    if let Some(prefix) = &config.entry_prefix {
        let rest = named.strip_prefix(prefix.as_str())?;
        let known = file.iter().filter(|(name, _)| rest.starts_with(name.as_str()));
        return known.max_by_key(|(name, _)| name.len()).map(|(_, sample)| *sample);
    }
    if config.tools == ToolsShape::Files {
        let stem = Path::new(named).file_stem()?.to_str()?;
        return file.get(stem).copied();
    }
    let by_id = || file.values().find(|sample| sample.id == named);
    file.get(named).or_else(by_id).copied()
}

/// One result of the scanner.
fn reported(config: &BatchConfig, paths: &Paths, result: &Value) -> Result<DetectorReport, String> {
    let named = paths.detector.iter().flat_map(|path| path.find(result)).find_map(Value::as_str);
    let detector = named.unwrap_or(DETECTOR).to_owned();
    let is_ignored = |finding: &Value| config.ignore_rules.contains(&evidence(paths, finding).rule);
    let all = paths.findings.as_ref().map_or_else(|| vec![result], |path| path.find(result));
    let ignored = all.iter().filter(|finding| is_ignored(finding)).count();
    if ignored > 0 && ignored == all.len() {
        let verdict = Some(Verdict::Pass);
        return Ok(DetectorReport { detector, verdict, ..DetectorReport::default() });
    }
    // A rule that does not count has no severity and no score that do.
    let mut rest = Cow::Borrowed(result);
    if let (Some(path), true) = (&paths.findings, ignored > 0) {
        path.retain(rest.to_mut(), |finding| !is_ignored(finding));
    }
    let mut findings: Vec<DetectorFinding> = match &paths.findings {
        Some(path) => path.find(&rest).into_iter().map(|one| evidence(paths, one)).collect(),
        None => vec![super::evidence(&rest)],
    };
    let verdict = match &paths.flagged {
        None => Verdict::Flag,
        Some(flagged) => flagged.read(&rest)?,
    };
    let mut rated = Rated::read(paths.severity.as_ref(), paths.score.as_ref(), &rest);
    let is_inside = |path: &JsonPath| paths.findings.as_ref().is_some_and(|at| at.is_above(path));
    if ignored > 0 && !paths.severity.as_ref().is_some_and(is_inside) {
        // The severity of the result as a whole may come from the rule that does not count.
        let left = most_severe(findings.iter().map(|finding| finding.severity.as_str()));
        if let Some(left) = left.filter(|left| !left.is_empty()) {
            rated.severity = Some(left.to_owned());
            rated.severities.clear();
        }
    }
    if verdict == Verdict::Pass {
        findings.clear();
        rated.lacks = Lacks::default();
    }
    Ok(DetectorReport {
        detector,
        verdict: Some(verdict),
        severity: rated.severity,
        severities: rated.severities,
        score: rated.score,
        lacks: rated.lacks,
        findings,
    })
}

/// A finding, with its parts from where the paths lead.
fn evidence(paths: &Paths, finding: &Value) -> DetectorFinding {
    let mut found = super::evidence(finding);
    let [rule, message, excerpt] = &paths.parts;
    let parts =
        [(rule, &mut found.rule), (message, &mut found.message), (excerpt, &mut found.excerpt)];
    for (path, part) in parts {
        let Some(path) = path else { continue };
        let shown = |one: &Value| match one {
            Value::String(text) => super::text(text),
            other => super::text(&other.to_string()),
        };
        *part = path.find(finding).into_iter().map(shown).collect::<Vec<_>>().join(", ");
    }
    found
}

/// Several results of one detector on one entry are one report, with the highest severity and score.
fn merge(answer: &mut Answer, report: DetectorReport) {
    let Some(known) = answer.reports.iter_mut().find(|known| known.detector == report.detector)
    else {
        return answer.reports.push(report);
    };
    if report.verdict == Some(Verdict::Flag) {
        known.verdict = Some(Verdict::Flag);
    }
    let all = known.severity.iter().chain(&known.severities);
    let all: BTreeSet<&String> = all.chain(&report.severity).chain(&report.severities).collect();
    let severity = most_severe(all.iter().map(|one| one.as_str())).map(str::to_owned);
    known.severities = match all.len() {
        0 | 1 => Vec::new(),
        _ => all.into_iter().cloned().collect(),
    };
    known.severity = severity;
    known.lacks.severity |= report.lacks.severity;
    known.lacks.score |= report.lacks.score;
    known.score = match (known.score, report.score) {
        (Some(one), Some(other)) => Some(one.max(other)),
        (one, other) => one.or(other),
    };
    known.findings.extend(report.findings);
}

fn read_sarif(
    config: &BatchConfig,
    value: &Value,
    file: &ToolsFile<'_>,
    answers: &mut Answers,
) -> Result<Tally, String> {
    let ignored = &config.ignore_rules;
    let sarif =
        sarif::read(value, ignored, |name| place(config, file, name).map(|one| one.id.clone()))?;
    if sarif.unmatched > 0 && config.unplaced == Unplaced::Refuse {
        let results = count(sarif.unmatched, "result");
        return Err(format!("{results} without the name of a tool of the file"));
    }
    for sample in file.values() {
        answers.insert(sample.id.clone(), Ok(Answer { reports: sarif.reports(&sample.id) }));
    }
    Ok(Tally { results: sarif.seen, unplaced: sarif.unmatched })
}
