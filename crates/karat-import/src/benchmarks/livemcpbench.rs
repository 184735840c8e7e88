//! LiveMCPBench: verdicts of judges in `evaluator/output/<judge>/<trajectories>.json`, and those of
//! people on the same trajectories in `baseline/annotation/<trajectories>.json`; tools of servers in
//! `tools/LiveMCPTool/tools.json`, and tasks with the names of the tools that do them in
//! `annotated_data/all_annotations.json`.

use std::collections::{BTreeMap, BTreeSet};

use karat_io::{input, table};
use serde::Deserialize;
use serde_json::Value;

use crate::outcomes::{Accounting, Published, Row, Tags, clipped};
use crate::retrieval::Corpus;
use crate::source::{File, Source};
use crate::writer::Writer;
use crate::{Benchmark, ImportError};

pub(crate) const BENCHMARK: Benchmark = Benchmark {
    name: "livemcpbench",
    title: "LiveMCPBench",
    needs: "evaluator/output/<judge>/*.json, baseline/annotation/*.json for the agreement with people; \
            tools/LiveMCPTool/tools.json with annotated_data/all_annotations.json",
    licence: "Apache-2.0",
    restricted: false,
    becomes: "outcomes: one entry per judge, and one for people; retrieval: tasks find their tools",
    checked_by: "success_rate.csv of each judge, human_agreement_*.csv; 527 tools",
    import,
};

const EXPECTED: &str = "verdicts of a judge: [{\"task_id\", \"reward\", \"category\", …}]";
const ANNOTATION: &str =
    "an annotation: [{\"task_id\", \"task_success\": \"success\"|\"failure\"}]";
/// The number of tools of the release.
const KNOWN_TOOLS: u64 = 527;
const TOOLS: &str = "tools.json";
const TASKS: &str = "all_annotations.json";
const SUCCESS: &str = "livemcpbench.success";
const UNKNOWN: &str = "a row of a published table without verdicts";
/// The verdict of an answer in which later versions of the benchmark find none. They count a failure.
const UNCLEAR: &str = "unknown";
const NO_VERDICT: &str = "the judge gave no verdict";
/// The report of the verdicts of people.
const PEOPLE: &str = "human";

#[derive(Deserialize)]
struct Judged {
    task_id: String,
    reward: Option<f64>,
    judge: Option<Value>,
    judge_reason: Option<Value>,
    category: Option<String>,
    response: Option<String>,
}

#[derive(Deserialize)]
struct Annotated {
    task_id: String,
    task_success: Value,
    category: Option<String>,
    response: Option<String>,
}

/// The verdict of people on one task.
struct Opinion {
    done: bool,
    /// The answer of the agent that it is about.
    response: Option<String>,
}

/// The verdicts of people, by trajectories, then task.
type People = BTreeMap<String, BTreeMap<String, Opinion>>;
/// The fewest answers that are compared to recognize trajectories.
const MIN_ANSWERS: usize = 3;

fn import(source: &Source, writer: &mut Writer) -> Result<(), ImportError> {
    writer.account(Some(Accounting::Livemcpbench), &["category"]);
    let is_json = |file: &&File| file.base().ends_with(".json");
    let annotation = |file: &&File| file.folder() == Some("annotation");
    let mut people = People::new();
    let annotations: Vec<&File> = source.files().filter(is_json).filter(annotation).collect();
    for file in &annotations {
        let name = match annotations.len() {
            1 => PEOPLE.to_owned(),
            _ => format!("{PEOPLE}.{}", file.stem()),
        };
        let verdicts = annotated(source, file, &name, writer)?;
        people.insert(file.stem().to_owned(), verdicts);
    }
    let scoped = source.files().any(|file| is_json(&file) && in_output(file));
    let is_verdicts = |file: &&File| in_output(file) || (!scoped && is_named_alone(file));
    let files: Vec<&File> = source.files().filter(is_json).filter(is_verdicts).collect();
    let judges = Judges { source, files, people };
    for file in &judges.files {
        judges.verdicts(file, writer)?;
    }
    for file in source.files().filter(|file| file.base() == "success_rate.csv") {
        judges.success_rates(file, writer)?;
    }
    for file in source.files().filter(|file| file.base().starts_with("human_agreement")) {
        judges.agreement(file, writer)?;
    }
    // The table of a judge without the verdicts that it is about is half a copy.
    let tables = source.files().any(|file| file.base() == "success_rate.csv");
    let has_people = !judges.people.is_empty() && !tables;
    match tools(source, writer)? || !judges.files.is_empty() || has_people {
        true => Ok(()),
        false => Err(source.nothing("evaluator/output/<judge>/<trajectories>.json")),
    }
}

/// Returns whether a file lies in the folder of a judge.
fn in_output(file: &File) -> bool {
    let parts = file.parts();
    parts.iter().position(|part| *part == "output").is_some_and(|at| at + 3 == parts.len())
}

/// Returns whether a file can be verdicts where `output` or the folder of a judge itself was named.
fn is_named_alone(file: &File) -> bool {
    let others = [TOOLS, TASKS, "expected.json"];
    file.parts().len() <= 2
        && !["annotation", "annotated_data"].contains(&file.folder().unwrap_or_default())
        && !others.contains(&file.base())
}

/// The verdicts of judges, next to those of people.
struct Judges<'a> {
    source: &'a Source,
    files: Vec<&'a File>,
    people: People,
}

impl Judges<'_> {
    /// The name of the report: the judge, and the trajectories too where it judged several.
    fn report(&self, file: &File) -> String {
        let judge = file.folder().unwrap_or("judge");
        let several = self.files.iter().filter(|other| other.folder() == file.folder()).count() > 1;
        match several && !self.people.contains_key(file.stem()) {
            true => format!("{judge}.{}", file.stem()),
            false => judge.to_owned(),
        }
    }

    fn verdicts(&self, file: &File, writer: &mut Writer) -> Result<(), ImportError> {
        let rows: Vec<Judged> = self.source.json(file, EXPECTED)?;
        if rows.iter().all(|row| row.reward.is_none()) {
            let found = format!("{} rows, none with a `reward`", rows.len());
            return Err(ImportError::unexpected(&file.path, EXPECTED, found));
        }
        self.check_name(file, &rows)?;
        let verdicts = self.people.get(file.stem());
        let name = self.report(file);
        writer.reading(&file.path);
        let mut ids = BTreeSet::new();
        for row in rows {
            if !ids.insert(row.task_id.clone()) {
                let found = format!("task {} twice", row.task_id);
                return Err(ImportError::unexpected(&file.path, EXPECTED, found));
            }
            let success = row.reward.map(|reward| reward > 0.0);
            let judge = row.judge.map(text);
            let stated = judge.as_deref().and_then(stated);
            let is_unknown = judge.as_deref().is_some_and(|judge| judge.trim() == UNCLEAR);
            let reason = row.judge_reason.map(text).filter(|_| stated.is_none()).or(judge);
            let outcome = Row {
                human: verdicts
                    .and_then(|verdicts| verdicts.get(&row.task_id))
                    .map(|opinion| opinion.done),
                error: (success.is_none() || is_unknown).then(|| NO_VERDICT.to_owned()),
                stated: stated.filter(|stated| success == Some(!stated)),
                success,
                reason: reason.map(|reason| clipped(&reason)),
                task: row.task_id,
                ..Row::default()
            };
            add(writer, &name, file.stem(), row.category, &outcome)?;
        }
        Ok(())
    }

    /// Refuses verdicts on trajectories that are named otherwise than their annotation, and verdicts on
    /// others under the name of an annotation: the answers of the agent are in both files.
    fn check_name(&self, file: &File, rows: &[Judged]) -> Result<(), ImportError> {
        for (name, opinions) in &self.people {
            let answers = rows.iter().filter_map(|row| {
                let theirs = opinions.get(&row.task_id)?.response.as_ref()?;
                Some(row.response.as_ref()? == theirs)
            });
            let answers: Vec<bool> = answers.collect();
            let same = answers.iter().filter(|same| **same).count();
            if answers.len() < MIN_ANSWERS || (same * 2 > answers.len()) == (name == file.stem()) {
                continue;
            }
            let found =
                format!("the same answers of the agent to {same} of {} tasks", answers.len());
            let expected = match name == file.stem() {
                true => format!("verdicts on the trajectories that people annotated as {name}"),
                false => format!("trajectories other than those that people annotated as {name}"),
            };
            let found = format!("{found}: a renamed file?");
            return Err(ImportError::unexpected(&file.path, expected, found));
        }
        Ok(())
    }

    /// The published rates of a judge: a tab-separated table in per cent.
    fn success_rates(&self, file: &File, writer: &mut Writer) -> Result<(), ImportError> {
        let (heads, rows) = Table { file, needed: &["overall"] }.read(self.source)?;
        for row in rows {
            let same =
                |other: &&&File| other.folder() == file.folder() && row.cells[0] == other.stem();
            let Some(judge) = self.files.iter().find(same) else {
                writer.skip(UNKNOWN);
                continue;
            };
            for (head, cell) in heads.iter().zip(&row.cells).skip(1) {
                let slice = (head != "overall").then(|| format!("category={head}"));
                let figure = per_cent(file, row.line, head, cell)?;
                publish(writer, self.report(judge), SUCCESS, slice, figure);
            }
        }
        Ok(())
    }

    /// The published rates and agreement of all judges of some trajectories, in per cent.
    fn agreement(&self, file: &File, writer: &mut Writer) -> Result<(), ImportError> {
        let trajectories = file.stem().trim_start_matches("human_agreement_").to_owned();
        let needed = &["human_agreement", "success_rate"];
        let (heads, rows) = Table { file, needed }.read(self.source)?;
        let mut without: BTreeSet<&str> = self
            .files
            .iter()
            .filter(|judge| judge.stem() == trajectories)
            .filter_map(|judge| judge.folder())
            .collect();
        for row in rows {
            let name = row.cells[0].as_str();
            without.remove(name);
            let same =
                |judge: &&&File| judge.folder() == Some(name) && judge.stem() == trajectories;
            let name = match self.files.iter().find(same) {
                Some(judge) => self.report(judge),
                None if name == PEOPLE && self.people.len() == 1 => name.to_owned(),
                None => {
                    writer.skip(UNKNOWN);
                    continue;
                }
            };
            for (head, cell) in heads.iter().zip(&row.cells) {
                let metric = match head.as_str() {
                    "success_rate" => SUCCESS,
                    // People agree with themselves.
                    "human_agreement" if name != PEOPLE => "livemcpbench.agreement",
                    _ => continue,
                };
                let figure = per_cent(file, row.line, head, cell)?;
                publish(writer, name.clone(), metric, None, figure);
            }
        }
        if !without.is_empty() {
            let names: Vec<&str> = without.into_iter().collect();
            writer.note(format!(
                "{} has no row for {}, whose verdicts are here: half a download?",
                file.name,
                input::shown(&names.join(", "))
            ));
        }
        Ok(())
    }
}

fn text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

/// The verdict that a judge states at the end of its answer, `Status: "failure"`. The first version of the
/// benchmark keeps the whole answer where its pattern does not match (because of the quotes), and counts a
/// success if the word is anywhere in it: "the agent successfully …".
fn stated(judge: &str) -> Option<bool> {
    let lower = judge.to_lowercase();
    let (_, after) = lower.rsplit_once("status")?;
    let word = after.trim_start_matches(|c: char| !c.is_alphabetic());
    if !after[..after.len() - word.len()].contains(':') {
        return None;
    }
    match (word.starts_with("success"), word.starts_with("fail")) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}

/// A published table.
struct Table<'a> {
    file: &'a File,
    /// The columns that it must have, besides the first.
    needed: &'a [&'a str],
}

impl Table<'_> {
    /// The head and the rows, with tabs or commas between the cells.
    fn read(&self, source: &Source) -> Result<(Vec<String>, Vec<table::Row>), ImportError> {
        let Table { file, needed } = self;
        let expected = format!("a table whose head has {}", needed.join(" and "));
        let wrong = |found: String| ImportError::unexpected(&file.path, expected.clone(), found);
        let text = source.text(file)?;
        let tabs = text.lines().next().is_some_and(|head| head.contains('\t'));
        let (heads, rows) = table::read(&text, if tabs { '\t' } else { ',' })
            .map_err(|line| wrong(format!("a quoted cell without an end on line {line}")))?;
        if !needed.iter().all(|name| heads.iter().skip(1).any(|head| head == name)) {
            return Err(wrong(heads.join(", ")));
        }
        if let Some(cut) = table::uneven(&heads, &rows) {
            let (cells, heads, line) = (cut.cells.len(), heads.len(), cut.line);
            let found =
                format!("{cells} cells under {heads} heads on line {line}: half a download?");
            return Err(wrong(found));
        }
        if rows.is_empty() {
            return Err(wrong("no rows: half a download?".to_owned()));
        }
        Ok((heads, rows))
    }
}

/// A figure in per cent; none where the cell is empty.
fn per_cent(file: &File, line: usize, head: &str, cell: &str) -> Result<Option<f64>, ImportError> {
    if cell.is_empty() || cell.eq_ignore_ascii_case("nan") {
        return Ok(None);
    }
    let found = || format!("{head} {cell:?} on line {line}");
    let figure = cell.parse::<f64>().ok().filter(|figure| (0.0..=100.0).contains(figure));
    let figure =
        figure.ok_or_else(|| ImportError::unexpected(&file.path, "a rate in per cent", found()));
    figure.map(Some)
}

fn annotated(
    source: &Source,
    file: &File,
    name: &str,
    writer: &mut Writer,
) -> Result<BTreeMap<String, Opinion>, ImportError> {
    let rows: Vec<Annotated> = source.json(file, ANNOTATION)?;
    writer.reading(&file.path);
    let mut verdicts = BTreeMap::new();
    for row in rows {
        let done = match &row.task_success {
            Value::Bool(done) => *done,
            Value::String(text) if text == "success" => true,
            Value::String(text) if text == "failure" => false,
            other => {
                let found = format!("`task_success` {other} of task {}", row.task_id);
                return Err(ImportError::unexpected(&file.path, ANNOTATION, found));
            }
        };
        let human = Row { task: row.task_id.clone(), success: Some(done), ..Row::default() };
        add(writer, name, file.stem(), row.category, &human)?;
        let opinion = Opinion { done, response: row.response };
        if verdicts.insert(row.task_id.clone(), opinion).is_some() {
            let found = format!("task {} twice", row.task_id);
            return Err(ImportError::unexpected(&file.path, ANNOTATION, found));
        }
    }
    Ok(verdicts)
}

fn add(
    writer: &mut Writer,
    system: &str,
    suite: &str,
    category: Option<String>,
    row: &Row,
) -> Result<(), ImportError> {
    let suite = Writer::entry_name(suite);
    let category = category.unwrap_or_else(|| "none".to_owned());
    writer.task(&suite, &row.task, || Tags::from([("category".to_owned(), category)]));
    writer.row(system, &suite, row)
}

fn publish(
    writer: &mut Writer,
    report: String,
    metric: &str,
    slice: Option<String>,
    per_cent: Option<f64>,
) {
    if let Some(value) = per_cent {
        let metric = metric.to_owned();
        writer.publish(Published { report, metric, slice, value: value / 100.0, decimals: 4 });
    }
}

#[derive(Deserialize)]
struct Listed {
    tools: BTreeMap<String, ServerTools>,
}

#[derive(Deserialize)]
struct ServerTools {
    #[serde(default)]
    tools: Vec<Tool>,
}

#[derive(Deserialize)]
struct Tool {
    name: String,
    description: Option<String>,
    #[serde(rename = "inputSchema")]
    schema: Option<Value>,
}

#[derive(Deserialize)]
struct Annotation {
    task_id: String,
    #[serde(rename = "Question")]
    question: String,
    category: Option<String>,
    #[serde(rename = "Annotator Metadata")]
    metadata: BTreeMap<String, Value>,
}

/// Takes over the tools and the tasks that name them; false if there are none.
fn tools(source: &Source, writer: &mut Writer) -> Result<bool, ImportError> {
    let named = |name: &str| source.files().find(|file| file.base() == name);
    let (Some(tools), Some(tasks)) = (named(TOOLS), named(TASKS)) else { return Ok(false) };
    let mut corpus = Corpus::default();
    let mut by_name: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let expected = "servers: [{\"tools\": {server: {\"tools\": [{\"name\", \"description\"}]}}}]";
    let listed: Vec<Listed> = source.json(tools, expected)?;
    for (server, found) in listed.into_iter().flat_map(|listed| listed.tools) {
        for tool in found.tools {
            let text = tool.description.unwrap_or_default();
            let id = corpus.tool(writer, &server, &tool.name, &text, tool.schema)?;
            by_name.entry(tool.name).or_default().push(id);
        }
    }
    writer.found_of(corpus.tools() as u64, KNOWN_TOOLS, "tools");
    let expected = "tasks: [{\"task_id\", \"Question\", \"Annotator Metadata\": {\"Tools\"}}]";
    for task in source.json::<Vec<Annotation>>(tasks, expected)? {
        let text = task.metadata.get("Tools").and_then(Value::as_str).unwrap_or_default();
        let mut labels = BTreeMap::new();
        for name in text.lines().map(step) {
            match by_name.get(name) {
                Some(ids) => labels.extend(ids.iter().map(|id| (id.clone(), 2))),
                None if name.is_empty() => {}
                None => writer.skip("a name of a tool that no server has"),
            }
        }
        let kind = task.category.as_deref();
        corpus.query(writer, &task.task_id, &task.question, &labels, kind)?;
    }
    corpus.finish(writer)?;
    Ok(true)
}

/// The name on a line of a numbered list.
fn step(line: &str) -> &str {
    let line = line.trim();
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    match rest.strip_prefix('.') {
        Some(name) if rest.len() < line.len() => name.trim(),
        _ => line,
    }
}
