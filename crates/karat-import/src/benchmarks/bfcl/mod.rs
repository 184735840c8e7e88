//! Berkeley Function Calling Leaderboard, first generation and v2 to v4: answers of models in
//! `result/<model>/…_result.json`, judged here by `bfcl.match` against the functions and possible
//! answers of the user's copy, and compared with the verdicts in `score/<model>/…_score.json`.
//!
//! Categories that need a simulated world (several turns, memory, web search) are not judged here:
//! their verdicts are taken over from the score files.

mod category;
mod columns;
mod questions;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};

use karat_metrics::calls::bfcl::Function;
use karat_metrics::calls::{Value, json};
use serde::Deserialize;

use self::category::{Category, Content};
pub(crate) use self::columns::leaderboard;
use self::questions::{Question, Questions};
use self::verdict::{Answered, answered};
use crate::outcomes::{Accounting, Published, Row, Tags, clipped};
use crate::source::{File, Source};
use crate::writer::Writer;
use crate::{Benchmark, ImportError};

pub(crate) const BENCHMARK: Benchmark = Benchmark {
    name: "bfcl",
    title: "Berkeley Function Calling Leaderboard",
    needs: "result/<model>/…_result.json, and data/…<category>.json with data/possible_answer/ or \
            score/<model>/…_score.json; name several folders if they are apart",
    licence: "Apache-2.0 (data); the results of others state no licence",
    restricted: true,
    becomes: "outcomes: one entry per model and run",
    checked_by: "every verdict and accuracy of the score files",
    import,
};

/// The answers of one model in one category.
struct Cell<'a> {
    result: &'a File,
    score: Option<&'a File>,
    category: Category,
    /// The name of the report.
    system: String,
}

/// The recorded verdicts of a cell.
#[derive(Default)]
struct Scored {
    accuracy: Option<f64>,
    total: Option<u64>,
    /// The items that failed: ids, or line numbers from 1 in the first generation.
    failed: BTreeSet<String>,
}

/// Verdicts that were compared with those of the score files.
#[derive(Default)]
struct Compared {
    same: u64,
    different: Vec<String>,
    taken_over: u64,
}

fn import(source: &Source, writer: &mut Writer) -> Result<(), ImportError> {
    writer.account(Some(Accounting::Bfcl), &["category", "section"]);
    writer.allow_missing_tasks();
    let questions = Questions::find(source);
    let cells = cells(source);
    if cells.is_empty() {
        return Err(source.nothing("result/<model>/BFCL_v4_<category>_result.json"));
    }
    let mut compared = Compared::default();
    for cell in &cells {
        let items = match cell.category.content() {
            Content::Calls(_) | Content::NoCall | Content::AnyCall => {
                questions.read(source, &cell.category)?
            }
            Content::World => None,
        };
        match (&items, cell.score) {
            (None, None) if cell.category.content() == Content::World => {
                writer.skip("a category that needs a simulated world, without a score file");
                continue;
            }
            (None, None) => return Err(questions.missing(cell.result, &cell.category)),
            _ => {}
        }
        take(source, cell, items.as_deref(), &mut compared, writer)?;
    }
    let Compared { same, different, taken_over } = compared;
    if same > 0 || !different.is_empty() {
        let all = same + different.len() as u64;
        let mut note = format!("{same} of {all} verdicts are those of the score files");
        if let Some(first) = different.first() {
            note.push_str(&format!("; the first that differs: {first}"));
        }
        writer.note(note);
    }
    if taken_over > 0 {
        writer.note(format!("{taken_over} verdicts were taken over from score files, not judged"));
    }
    Ok(())
}

/// The cells of the source, with names that tell runs of one model apart.
fn cells(source: &Source) -> Vec<Cell<'_>> {
    let mut scores: BTreeMap<(String, String, String), &File> = BTreeMap::new();
    let mut results = Vec::new();
    for file in source.files() {
        let Some((category, kind)) = Category::of(file.base()) else { continue };
        let Some((run, model)) = place(file, kind) else { continue };
        match kind {
            "score" => {
                scores.insert((run, model, category.name.clone()), file);
            }
            "result" => results.push((run, model, category, file)),
            _ => {}
        }
    }
    let mut runs: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (run, model, ..) in &results {
        runs.entry(model.clone()).or_default().insert(run.clone());
    }
    results
        .into_iter()
        .map(|(run, model, category, result)| {
            let several = runs.get(&model).is_some_and(|runs| runs.len() > 1);
            let system = if several { format!("{run}_{model}") } else { model.clone() };
            let score = scores.get(&(run, model, category.name.clone())).copied();
            Cell { result, score, category, system }
        })
        .collect()
}

/// The run and the model of a file: the folders around `result` or `score`.
fn place(file: &File, kind: &str) -> Option<(String, String)> {
    let parts = file.parts();
    let folders = &parts[..parts.len() - 1];
    let is_kind = |part: &&str| {
        let rest = part.strip_prefix(kind);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '_']))
    };
    if let Some(at) = folders.iter().rposition(is_kind) {
        let model = folders.get(at + 1)?;
        let mut run: Vec<&str> =
            folders[..at].iter().copied().filter(|p| *p != "results").collect();
        run.extend(folders[at].strip_prefix(kind).filter(|rest| !rest.is_empty()));
        return Some((run.join("_"), (*model).to_owned()));
    }
    let sections = ["live", "non_live", "multi_turn", "agentic", "format_sensitivity"];
    let model = folders.iter().rfind(|part| !sections.contains(part))?;
    Some((String::new(), (*model).to_owned()))
}

/// One line of a score file: the first has the sums, the others an item that failed.
#[derive(Deserialize)]
struct ScoreLine {
    accuracy: Option<f64>,
    total_count: Option<u64>,
    id: Option<serde_json::Value>,
}

fn scored(source: &Source, file: &File) -> Result<Scored, ImportError> {
    let expected = "a score file of BFCL: a line with `accuracy`, then the items that failed";
    let lines: Vec<ScoreLine> = source.list(file, expected)?;
    let mut scored = Scored::default();
    for (at, line) in lines.into_iter().enumerate() {
        match (at, line.id) {
            (0, None) => {
                scored.accuracy = line.accuracy;
                scored.total = line.total_count;
            }
            (_, Some(serde_json::Value::String(id))) => {
                scored.failed.insert(id);
            }
            (_, Some(id)) => {
                scored.failed.insert(id.to_string());
            }
            (_, None) => {
                let found = format!("line {} without `id`", at + 1);
                return Err(ImportError::unexpected(&file.path, expected, found));
            }
        }
    }
    if scored.accuracy.is_none() {
        return Err(ImportError::unexpected(&file.path, expected, "no `accuracy`"));
    }
    Ok(scored)
}

/// Takes over one cell.
fn take(
    source: &Source,
    cell: &Cell<'_>,
    items: Option<&[Question]>,
    compared: &mut Compared,
    writer: &mut Writer,
) -> Result<(), ImportError> {
    let scored = cell.score.map(|file| scored(source, file)).transpose()?;
    let text = source.text(cell.result)?;
    let answers = verdict::answers(cell.result, &text)?;
    let category = &cell.category;
    let expected = items.map(|items| items.len() as u64);
    let expected = expected.or_else(|| scored.as_ref().and_then(|scored| scored.total));
    let found = answers.len() as u64;
    if expected.is_some_and(|expected| expected != found) && !writer.partial {
        let expected = format!("{} answers", expected.unwrap_or_default());
        let found = format!("{found}: half a download? `--partial` imports what is there");
        return Err(ImportError::unexpected(&cell.result.path, expected, found));
    }
    let by_id: BTreeMap<&str, &Question> =
        items.unwrap_or_default().iter().map(|item| (item.id.as_str(), item)).collect();
    let question = |at: usize, answer: &Answered<'_>, id: &str| {
        let known = by_id.get(id).copied();
        // The first generation numbers the lines.
        known.or_else(|| items?.get(at).filter(|_| !answer.has_id()))
    };
    let dotted = writes_dots(answers.iter().enumerate().filter_map(|(at, answer)| {
        Some((answer, question(at, answer, &answer.id(category, at))?))
    }));
    let suite = category.version.clone();
    for (at, answer) in answers.iter().enumerate() {
        let id = answer.id(category, at);
        let question = question(at, answer, &id);
        if items.is_some() && question.is_none() {
            let expected = format!("items of {}", category.name);
            let found = format!("item {id:?}");
            return Err(ImportError::unexpected(&cell.result.path, expected, found));
        }
        let recorded = scored.as_ref().map(|scored| {
            !scored.failed.contains(&id) && !scored.failed.contains(&(at + 1).to_string())
        });
        let judged = question.map(|question| answered(answer, question, category, dotted));
        let (success, reason) = match (judged, recorded) {
            (Some(Ok(())), recorded) => (noted(compared, &id, true, recorded), None),
            // An answer as text may be calls in another notation, which only the source can read.
            (Some(Err(_)), Some(true)) if answer.is_text() => {
                compared.taken_over += 1;
                (true, None)
            }
            (Some(Err(reason)), recorded) => {
                (noted(compared, &id, false, recorded), Some(clipped(&reason)))
            }
            (None, Some(recorded)) => {
                compared.taken_over += 1;
                (recorded, None)
            }
            (None, None) => continue,
        };
        let row = Row {
            task: id.clone(),
            success: Some(success),
            error: answer.failure().map(clipped),
            reason,
            tokens: answer.tokens(),
            ms: answer.seconds().map(|seconds| seconds * 1000.0),
            ..Row::default()
        };
        writer.task(&suite, &id, || {
            Tags::from([
                ("category".to_owned(), category.name.clone()),
                ("section".to_owned(), category.section().to_owned()),
            ])
        });
        writer.row(&cell.system, &suite, &row)?;
    }
    if let Some(accuracy) = scored.and_then(|scored| scored.accuracy) {
        writer.publish(Published {
            report: cell.system.clone(),
            metric: "bfcl.accuracy".to_owned(),
            slice: Some(format!("category={}", category.name)),
            value: accuracy,
            decimals: 6,
        });
    }
    Ok(())
}

/// Returns whether a model writes the dots of names, rather than the underscores that interfaces of
/// vendors ask for: whichever is the more frequent among the names of its calls.
fn writes_dots<'a>(answers: impl Iterator<Item = (&'a Answered<'a>, &'a Question)>) -> bool {
    let (mut dots, mut underscores) = (0_u64, 0_u64);
    for (answer, question) in answers {
        for name in answer.names() {
            let known = |function: &&Function| function.name.contains('.');
            for function in question.underscored.iter().filter(known) {
                dots += u64::from(name == function.name);
                underscores += u64::from(name == function.called);
            }
        }
    }
    dots > underscores
}

/// Notes whether a verdict is the recorded one.
fn noted(compared: &mut Compared, id: &str, verdict: bool, recorded: Option<bool>) -> bool {
    match recorded {
        Some(recorded) if recorded != verdict => compared.different.push(id.to_owned()),
        Some(_) => compared.same += 1,
        None => {}
    }
    verdict
}

/// A line of a file as a value, with the line in messages.
fn line<'t>(file: &File, at: usize, text: &'t str) -> Result<Value<'t>, ImportError> {
    json::parse(text).map_err(|error| {
        ImportError::unexpected(
            &file.path,
            "a JSON object on each line",
            format!("line {}: {error}", at + 1),
        )
    })
}
