//! LiveMCPBench: verdicts of judges in `evaluator/output/<judge>/<trajectories>.json`, and those of
//! people on the same trajectories in `baseline/annotation/<trajectories>.json`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::outcomes::{Accounting, Published, Row, Tags, clipped};
use crate::source::{File, Source};
use crate::writer::Writer;
use crate::{Benchmark, ImportError};

pub(crate) const BENCHMARK: Benchmark = Benchmark {
    name: "livemcpbench",
    title: "LiveMCPBench",
    needs: "evaluator/output/<judge>/*.json; baseline/annotation/*.json for the agreement with people",
    licence: "Apache-2.0",
    restricted: false,
    becomes: "outcomes: one entry per judge, and one for people",
    checked_by: "success_rate.csv of each judge; agreement with people",
    import,
};

const EXPECTED: &str = "verdicts of a judge: [{\"task_id\", \"reward\", \"category\", …}]";
const ANNOTATION: &str =
    "an annotation: [{\"task_id\", \"task_success\": \"success\"|\"failure\"}]";
/// The report of the verdicts of people.
const PEOPLE: &str = "human";

#[derive(Deserialize)]
struct Judged {
    task_id: String,
    reward: Option<f64>,
    judge: Option<Value>,
    judge_reason: Option<Value>,
    category: Option<String>,
}

#[derive(Deserialize)]
struct Annotated {
    task_id: String,
    task_success: Value,
    category: Option<String>,
}

/// The verdicts of people, by trajectories, then task.
type People = BTreeMap<String, BTreeMap<String, bool>>;

fn import(source: &Source, writer: &mut Writer) -> Result<(), ImportError> {
    writer.account(Some(Accounting::Livemcpbench), &["category"]);
    let is_json = |file: &&File| file.base().ends_with(".json");
    let annotation = |file: &&File| file.folder() == Some("annotation");
    let mut people = People::new();
    for file in source.files().filter(is_json).filter(annotation) {
        let verdicts = annotated(source, file, writer)?;
        people.insert(file.stem().to_owned(), verdicts);
    }
    if people.len() > 1 {
        writer.note(format!("people judged {} sets of trajectories", people.len()));
    }
    let judges: Vec<&File> =
        source.files().filter(is_json).filter(|file| is_verdicts(file)).collect();
    for file in &judges {
        judged(source, file, &judges, &people, writer)?;
    }
    for file in source.files().filter(|file| file.base() == "success_rate.csv") {
        success_rates(source, file, &judges, &people, writer)?;
    }
    match judges.is_empty() && people.is_empty() {
        true => Err(source.nothing("evaluator/output/<judge>/<trajectories>.json")),
        false => Ok(()),
    }
}

/// Returns whether a file lies in the folder of a judge.
fn is_verdicts(file: &File) -> bool {
    let parts = file.parts();
    let output = parts.iter().position(|part| *part == "output");
    match output {
        Some(at) => at + 3 == parts.len(),
        // The folder `output` or the one of a judge itself was named.
        None => parts.len() <= 2 && !parts.contains(&"annotation"),
    }
}

/// The name of the report: the judge, and the trajectories too where it judged several.
fn report(file: &File, judges: &[&File], people: &People) -> String {
    let judge = file.folder().unwrap_or("judge");
    let several = judges.iter().filter(|other| other.folder() == file.folder()).count() > 1;
    match several && !people.contains_key(file.stem()) {
        true => format!("{judge}.{}", file.stem()),
        false => judge.to_owned(),
    }
}

fn annotated(
    source: &Source,
    file: &File,
    writer: &mut Writer,
) -> Result<BTreeMap<String, bool>, ImportError> {
    let rows: Vec<Annotated> = source.json(file, ANNOTATION)?;
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
        add(writer, PEOPLE, file.stem(), row.category, &human)?;
        if verdicts.insert(row.task_id.clone(), done).is_some() {
            let found = format!("task {} twice", row.task_id);
            return Err(ImportError::unexpected(&file.path, ANNOTATION, found));
        }
    }
    Ok(verdicts)
}

fn judged(
    source: &Source,
    file: &File,
    judges: &[&File],
    people: &People,
    writer: &mut Writer,
) -> Result<(), ImportError> {
    let rows: Vec<Judged> = source.json(file, EXPECTED)?;
    let verdicts = people.get(file.stem());
    let name = report(file, judges, people);
    for row in rows {
        let success = row.reward.map(|reward| reward >= 1.0);
        let reason = row.judge_reason.or(row.judge).map(|reason| match reason {
            Value::String(text) => text,
            other => other.to_string(),
        });
        let outcome = Row {
            human: verdicts.and_then(|verdicts| verdicts.get(&row.task_id)).copied(),
            error: success.is_none().then(|| "the judge gave no verdict".to_owned()),
            success,
            reason: reason.map(|reason| clipped(&reason)),
            task: row.task_id,
            ..Row::default()
        };
        add(writer, &name, file.stem(), row.category, &outcome)?;
    }
    Ok(())
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

/// The published rates of a judge: a tab-separated table in per cent.
fn success_rates(
    source: &Source,
    file: &File,
    judges: &[&File],
    people: &People,
    writer: &mut Writer,
) -> Result<(), ImportError> {
    let text = source.text(file)?;
    let cells = |line: &str| -> Vec<String> {
        line.split(['\t', ',']).map(|cell| cell.trim().to_owned()).collect()
    };
    let mut lines = text.lines().map(cells);
    let heads = lines.next().unwrap_or_default();
    for row in lines {
        let same = |other: &&&File| {
            other.folder() == file.folder() && row.first().is_some_and(|name| name == other.stem())
        };
        let Some(judge) = judges.iter().find(same) else { continue };
        for (head, cell) in heads.iter().zip(&row).skip(1) {
            let Ok(value) = cell.parse::<f64>() else { continue };
            writer.publish(Published {
                report: report(judge, judges, people),
                metric: "livemcpbench.success".to_owned(),
                slice: (head != "overall").then(|| format!("category={head}")),
                value: value / 100.0,
                decimals: 4,
            });
        }
    }
    Ok(())
}
