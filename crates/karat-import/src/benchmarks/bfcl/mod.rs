//! Berkeley Function Calling Leaderboard, first generation and v2 to v4: answers of models in
//! `result/<model>/…_result.json`, judged here by `bfcl.match` against the functions and possible
//! answers of the user's copy, and compared with the verdicts in `score/<model>/…_score.json`.
//!
//! Categories that need a simulated world (several turns, memory, web search) are not judged here:
//! their verdicts are taken over from the score files.

mod category;
mod columns;
mod folders;
mod questions;
mod verdict;
mod written;

use std::collections::{BTreeMap, BTreeSet};

use karat_io::table;
use karat_metrics::calls::Call;
use karat_metrics::calls::bfcl::Language;
use serde::Deserialize;

use self::category::{Category, Content};
pub(crate) use self::columns::leaderboard;
use self::folders::{is_below, run_of};
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

/// The most names in a note.
const NAMED: usize = 8;
/// The published columns of all models.
const OVERALL: &str = "data_overall.csv";

/// A model in a run.
struct System<'a> {
    cells: Vec<Cell<'a>>,
    run: String,
    model: String,
}

/// The answers of one model in one category.
struct Cell<'a> {
    result: &'a File,
    score: Option<&'a File>,
    category: Category,
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
    /// Answers that seem to be calls in a notation that is not read, and were not judged elsewhere.
    unread: u64,
}

impl Compared {
    fn note(self, writer: &mut Writer) {
        let Compared { same, different, taken_over, unread } = self;
        if same > 0 || !different.is_empty() {
            let all = same + different.len() as u64;
            let mut note = format!("{same} of {all} verdicts agree with the score files");
            if let Some(first) = different.first() {
                note.push_str(&format!("; the first that differs: {first}"));
            }
            writer.note(note);
        }
        if taken_over > 0 {
            let note =
                format!("{taken_over} verdicts were taken over from score files, not judged");
            writer.note(note);
        }
        if unread > 0 {
            writer.note(format!(
                "{unread} answers seem to be calls in a model's own notation, which is not read: they \
                 count as no call; add the score files to take over their verdicts"
            ));
        }
    }
}

fn import(source: &Source, writer: &mut Writer) -> Result<(), ImportError> {
    writer.account(Some(Accounting::Bfcl), &["category", "section"]);
    writer.allow_missing_tasks();
    let questions = Questions::find(source);
    let systems = systems(source);
    if systems.is_empty() {
        return Err(source.nothing("result/<model>/BFCL_v4_<category>_result.json"));
    }
    passed_over(source, &systems, writer);
    let mut known = Known::new();
    let mut compared = Compared::default();
    for (name, system) in &systems {
        for cell in &system.cells {
            read_items(source, &questions, cell, &mut known)?;
        }
        take_all(source, (name, system), &known, &mut compared, writer)?;
    }
    for file in source.files().filter(|file| file.base() == OVERALL) {
        columns(source, file, &systems, writer)?;
    }
    note_missing(&systems, &questions, writer);
    compared.note(writer);
    Ok(())
}

/// Notes the models that lack a category which others have, and categories that none has.
fn note_missing(
    systems: &BTreeMap<String, System<'_>>,
    questions: &Questions<'_>,
    writer: &mut Writer,
) {
    type Categories<'a> = BTreeSet<(&'a str, &'a str)>;
    fn key(category: &Category) -> (&str, &str) {
        (&category.version, &category.name)
    }
    // What is asked before the items of a category is not one.
    let counts = |cell: &&Cell<'_>| !cell.category.name.ends_with("_prereq");
    let cells = systems.values().flat_map(|system| &system.cells).filter(counts);
    let all: Categories<'_> = cells.map(|cell| key(&cell.category)).collect();
    let mut lacking = Vec::new();
    for (name, system) in systems {
        let own: Categories<'_> = system.cells.iter().map(|cell| key(&cell.category)).collect();
        let versions: BTreeSet<&str> = own.iter().map(|(version, _)| *version).collect();
        let lost = all.difference(&own).filter(|(version, _)| versions.contains(version));
        let lost: Vec<&str> = lost.map(|(_, name)| *name).collect();
        if !lost.is_empty() {
            lacking.push(format!("{name} ({})", lost.join(", ")));
        }
    }
    if !lacking.is_empty() {
        writer.note(format!(
            "{} of {} models have no answers to categories that others have, and are measured without \
             them: {}",
            lacking.len(),
            systems.len(),
            first(&lacking, "; ")
        ));
    }
    let versions: BTreeSet<&str> = all.iter().map(|(version, _)| *version).collect();
    let asked = questions.categories().filter(|(version, _)| versions.contains(version));
    // One file of the data can have the items of several categories: `memory` those of `memory_kv`.
    let answered = |(version, name): &(&str, &str)| {
        all.iter().any(|(other, known)| other == version && known.starts_with(name))
    };
    let unanswered: Vec<String> =
        asked.filter(|known| !answered(known)).map(|(_, name)| name.to_owned()).collect();
    if !unanswered.is_empty() {
        let names = first(&unanswered, ", ");
        writer.note(format!(
            "no model has answers to {} categories of the data: {names}",
            unanswered.len()
        ));
    }
}

/// The first of many names.
fn first(names: &[String], divider: &str) -> String {
    let more = names.len().saturating_sub(NAMED);
    let mut text = names[..names.len() - more].join(divider);
    if more > 0 {
        text.push_str(&format!("{divider}and {more} more"));
    }
    text
}

/// Counts the files that are neither answers nor verdicts nor items, and notes those that lie where
/// answers or verdicts belong.
fn passed_over(source: &Source, systems: &BTreeMap<String, System<'_>>, writer: &mut Writer) {
    let cells = systems.values().flat_map(|system| &system.cells);
    let used: BTreeSet<&File> = cells.filter_map(|cell| cell.score).collect();
    let mut alone: Vec<&File> = Vec::new();
    let mut misplaced: Vec<&File> = Vec::new();
    for file in source.files() {
        let kind = Category::of(file.base()).map(|(_, kind)| kind);
        let of_answers = is_below(file, "result") || is_below(file, "score");
        match kind {
            Some("data") if !of_answers => {}
            Some("score") if !used.contains(file) => alone.push(file),
            Some("result" | "score") => {}
            _ if file.base() == OVERALL => {}
            _ if of_answers && file.base().ends_with(".json") => misplaced.push(file),
            _ => writer.skip("a file that is neither answers nor scores nor data"),
        }
    }
    if let Some(first) = alone.first() {
        let number = alone.len() as u64;
        writer.skip_many("a score file without answers", number);
        writer.note(format!(
            "{number} score files are not read, as they list failed items only and the answers to their \
             categories are not here; the first: {}",
            first.name
        ));
    }
    if let Some(first) = misplaced.first() {
        let number = misplaced.len() as u64;
        writer.skip_many("a file below result or score with another name", number);
        writer.note(format!(
            "{number} files below result or score are not read, as they are not named …_result.json or \
             …_score.json; the first: {}",
            first.name
        ));
    }
}

/// The items of the categories that were read; none where the source does not have them.
type Known = BTreeMap<(String, String), Option<Vec<Question>>>;

/// Reads the items of a category, once for all systems.
fn read_items(
    source: &Source,
    questions: &Questions<'_>,
    cell: &Cell<'_>,
    known: &mut Known,
) -> Result<(), ImportError> {
    let Cell { category, .. } = cell;
    let world = category.content() == Content::World;
    let key = (category.version.clone(), category.name.clone());
    if !known.contains_key(&key) {
        let items = if world { None } else { questions.read(source, category)? };
        known.insert(key.clone(), items);
    }
    let has_items = known.get(&key).is_some_and(Option::is_some);
    if !has_items && !world && cell.score.is_none() {
        return Err(questions.missing(cell.result, category));
    }
    Ok(())
}

/// Takes over the cells of one system.
fn take_all(
    source: &Source,
    (name, system): (&str, &System<'_>),
    known: &Known,
    compared: &mut Compared,
    writer: &mut Writer,
) -> Result<(), ImportError> {
    let mut opened = Vec::new();
    let mut files: BTreeMap<&str, &File> = BTreeMap::new();
    for cell in &system.cells {
        if let Some(other) = files.insert(&cell.category.name, cell.result) {
            let expected = format!("one file of answers to {}", cell.category.name);
            let found = format!("another one: {}", other.path.display());
            return Err(ImportError::unexpected(&cell.result.path, expected, found));
        }
        let key = (cell.category.version.clone(), cell.category.name.clone());
        let items = known.get(&key).and_then(Option::as_deref);
        if items.is_none() && cell.score.is_none() {
            writer.skip("a category that needs a simulated world, without a score file");
            continue;
        }
        let scored = cell.score.map(|file| scored(source, file)).transpose()?;
        opened.push((cell, items, scored, source.text(cell.result)?));
    }
    let mut read = Vec::new();
    for (cell, _, _, text) in &opened {
        read.push(verdict::answers(cell.result, text)?);
    }
    // A model calls through an interface, or writes its calls, in all categories alike.
    let is_native = read.iter().flatten().any(Answered::is_native);
    let prompted = !is_native && !system.model.ends_with("-FC");
    let mut takes = Vec::new();
    for ((cell, items, scored, _), answers) in opened.iter().zip(read) {
        let (category, mut items) = (&cell.category, *items);
        if prompted && category.content() == Content::Calls(Language::Java) {
            if scored.is_none() {
                let name = &cell.result.name;
                writer.incomplete(format!(
                    "{name}: missing its score file, the only source of verdicts for calls in Java"
                ))?;
                writer.skip("answers in Java source without a score file");
                continue;
            }
            items = None;
        }
        let calls = answers.iter().map(|one| one.calls(category, prompted)).collect();
        takes.push(Take { cell, items, scored: scored.as_ref(), answers, calls });
    }
    // So it does with the dots of names.
    let dotted = writes_dots(takes.iter().flat_map(Take::questions));
    for take in &takes {
        take.run(name, dotted, compared, writer)?;
    }
    Ok(())
}

/// The systems of the source, with names that tell runs of one model apart.
fn systems(source: &Source) -> BTreeMap<String, System<'_>> {
    let mut scores: BTreeMap<(String, String, String), &File> = BTreeMap::new();
    let mut results: BTreeMap<(String, String), Vec<(Category, &File)>> = BTreeMap::new();
    for file in source.files() {
        let Some((category, kind)) = Category::of(file.base()) else { continue };
        let Some((run, model)) = place(file, kind) else { continue };
        if kind == "data" {
            continue;
        }
        match kind {
            "score" => {
                scores.insert((run, model, category.name.clone()), file);
            }
            _ => results.entry((run, model)).or_default().push((category, file)),
        }
    }
    let mut runs: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, model) in results.keys() {
        *runs.entry(model).or_default() += 1;
    }
    let several: BTreeSet<String> =
        runs.into_iter().filter(|(_, runs)| *runs > 1).map(|(model, _)| model.to_owned()).collect();
    let mut systems = BTreeMap::new();
    for ((run, model), files) in results {
        let named = several.contains(&model) && !run.is_empty();
        let name = if named { format!("{run}_{model}") } else { model.clone() };
        let cell = |(category, result): (Category, _)| {
            let key = (run.clone(), model.clone(), category.name.clone());
            Cell { result, score: scores.get(&key).copied(), category }
        };
        let cells = files.into_iter().map(cell).collect();
        systems.insert(name, System { cells, run, model });
    }
    systems
}

/// The run and the model of a file: the folders around `result` or `score`.
fn place(file: &File, kind: &str) -> Option<(String, String)> {
    let parts = file.parts();
    let folders = &parts[..parts.len() - 1];
    if let Some((run, at)) = run_of(folders, kind) {
        return Some((run, (*folders.get(at + 1)?).to_owned()));
    }
    let sections = [
        "live",
        "non_live",
        "multi_turn",
        "agentic",
        "memory",
        "kv",
        "vector",
        "rec_sum",
        "format_sensitivity",
    ];
    let model = folders.iter().rfind(|part| !sections.contains(part))?;
    Some((String::new(), (*model).to_owned()))
}

/// The published columns of `data_overall.csv`, as far as their categories are here.
fn columns(
    source: &Source,
    file: &File,
    systems: &BTreeMap<String, System<'_>>,
    writer: &mut Writer,
) -> Result<(), ImportError> {
    let parts = file.parts();
    let run = run_of(&parts[..parts.len() - 1], "score").map(|(run, _)| run).unwrap_or_default();
    let of_run: Vec<_> = systems.iter().filter(|(_, system)| system.run == run).collect();
    let text = source.text(file)?;
    let expected = "the leaderboard of BFCL, with the columns `Model` and `Overall Acc`";
    let wrong = |found: String| ImportError::unexpected(&file.path, expected, found);
    let (heads, rows) = table::read(&text, ',')
        .map_err(|line| wrong(format!("a quoted cell without an end on line {line}")))?;
    let Some(model_at) = heads.iter().position(|head| head == "Model") else {
        return Err(wrong(heads.join(",")));
    };
    // Its writer does not quote a comma in a cell, so there can be more.
    if let Some(cut) = rows.iter().find(|row| row.cells.len() < heads.len()) {
        let (cells, heads, line) = (cut.cells.len(), heads.len(), cut.line);
        return Err(wrong(format!("{cells} cells under {heads} heads on line {line}")));
    }
    for row in rows.iter().map(|row| &row.cells) {
        let alone = rows.len() == 1 && of_run.len() == 1;
        let is_named = |system: &&System<'_>| alone || same_model(&system.model, &row[model_at]);
        let mut named = of_run.iter().filter(|(_, system)| is_named(system));
        let (Some((name, system)), None) = (named.next(), named.next()) else {
            writer.skip("a row of data_overall.csv without answers of exactly one model");
            continue;
        };
        let has = |name: &str| system.cells.iter().any(|cell| cell.category.name == name);
        for column in columns::complete(has) {
            let at = heads.iter().position(|head| head == column);
            let cell = at.and_then(|at| row[at].strip_suffix('%')?.parse::<f64>().ok());
            let Some(per_cent) = cell else { continue };
            writer.publish(Published {
                report: (*name).clone(),
                metric: "bfcl.accuracy".to_owned(),
                slice: Some(format!("leaderboard={column}")),
                value: per_cent / 100.0,
                decimals: 4,
            });
        }
    }
    Ok(())
}

/// Returns whether a folder is that of a model of the leaderboard, such as `openai_gpt-oss-120b` of
/// `openai/gpt-oss-120b (FC) (vLLM)`.
fn same_model(folder: &str, shown: &str) -> bool {
    let plain = |text: &str| -> String {
        text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase()
    };
    let name = plain(shown.split('(').next().unwrap_or_default());
    let folder = plain(folder);
    let stem = if shown.contains("(FC)") { folder.trim_end_matches("fc") } else { &folder };
    !name.is_empty() && stem.ends_with(&name)
}

/// One line of a score file: the first has the sums, the others an item that failed.
#[derive(Deserialize)]
struct ScoreLine {
    accuracy: Option<f64>,
    correct_count: Option<u64>,
    total_count: Option<u64>,
    id: Option<serde_json::Value>,
}

fn scored(source: &Source, file: &File) -> Result<Scored, ImportError> {
    let expected = "a score file of BFCL: a line with `accuracy`, then the items that failed";
    let lines: Vec<ScoreLine> = source.list(file, expected)?;
    let mut scored = Scored::default();
    let sums = lines.first().filter(|line| line.id.is_none());
    if let Some((total, correct)) = sums.and_then(|line| line.total_count.zip(line.correct_count)) {
        // An item that is not listed counts as right: a file that is cut off would flatter the model.
        let found = lines.len() as u64 - 1;
        if total.checked_sub(correct) != Some(found) {
            let expected =
                format!("total_count {total} − correct_count {correct} lines of items that failed");
            let found = format!("{found} of them: half a download?");
            return Err(ImportError::unexpected(&file.path, expected, found));
        }
    }
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

/// A cell that was read.
struct Take<'a> {
    cell: &'a Cell<'a>,
    items: Option<&'a [Question]>,
    scored: Option<&'a Scored>,
    answers: Vec<Answered<'a>>,
    /// The calls of the answers, in their order.
    calls: Vec<Calls>,
}

/// The calls of an answer, or the reason for which it has none.
type Calls = Result<Vec<Call<'static>>, String>;

impl<'a> Take<'a> {
    /// The calls of each answer with its item; none for an answer to something else.
    fn questions(&self) -> Vec<(&Calls, Option<&'a Question>)> {
        let items = self.items.unwrap_or_default();
        let by_id: BTreeMap<&str, &Question> =
            items.iter().map(|item| (item.id.as_str(), item)).collect();
        let question = |(at, answer): (usize, &'_ Answered<'a>)| {
            let known = by_id.get(answer.id(&self.cell.category, at).as_str()).copied();
            // The first generation numbers the lines.
            known.or_else(|| items.get(at).filter(|_| !answer.has_id()))
        };
        let answers = self.answers.iter().enumerate();
        self.calls.iter().zip(answers.map(question)).collect()
    }

    /// Refuses answers that are not those to the items.
    fn check(&self, writer: &mut Writer) -> Result<(), ImportError> {
        let Cell { result, category, .. } = self.cell;
        let found = self.answers.len() as u64;
        let in_data = self.items.map(|items| items.len() as u64);
        // The source itself can have run and scored a part of the items.
        let in_score = self.scored.and_then(|scored| scored.total);
        if let Some(expected) = in_score.or(in_data).filter(|expected| *expected != found)
            && !writer.partial
        {
            let expected = format!("{expected} answers");
            let found = format!("{found}: half a download? `--partial` imports what is there");
            return Err(ImportError::unexpected(&result.path, expected, found));
        }
        if let Some(all) = in_data.filter(|all| *all > found) {
            let name = &category.name;
            writer.note(format!("{}: {found} of {all} items of {name}", result.name));
        }
        let mut ids = BTreeSet::new();
        let answers = self.answers.iter().zip(self.questions()).enumerate();
        for (at, (answer, (_, question))) in answers {
            let id = answer.id(category, at);
            let expected = format!("one answer to each item of {}", category.name);
            if self.items.is_some() && question.is_none() {
                let found = format!("an answer to {id:?}");
                return Err(ImportError::unexpected(&result.path, expected, found));
            }
            if !ids.insert(id.clone()) {
                let found = format!("two answers to {id:?}");
                return Err(ImportError::unexpected(&result.path, expected, found));
            }
        }
        Ok(())
    }

    /// Takes over the answers.
    fn run(
        &self,
        system: &str,
        dotted: bool,
        compared: &mut Compared,
        writer: &mut Writer,
    ) -> Result<(), ImportError> {
        self.check(writer)?;
        let category = &self.cell.category;
        let suite = category.version.clone();
        let answers = self.answers.iter().zip(self.questions()).enumerate();
        for (at, (answer, (calls, question))) in answers {
            let id = answer.id(category, at);
            let recorded = self.scored.map(|scored| {
                !scored.failed.contains(&id) && !scored.failed.contains(&(at + 1).to_string())
            });
            let judged = question.map(|question| answered(calls, question, category, dotted));
            let is_unread = answer.is_text() && calls.is_err();
            let (success, reason) = match (judged, recorded) {
                // A text may be calls in another notation, which only the source can read.
                (Some(judged), Some(recorded)) if is_unread && judged.is_ok() != recorded => {
                    compared.taken_over += 1;
                    (recorded, None)
                }
                (Some(judged), recorded) => {
                    let is_lost = is_unread && recorded.is_none() && answer.seems_calls();
                    compared.unread += u64::from(is_lost);
                    let success = noted(compared, &id, judged.is_ok(), recorded);
                    (success, judged.err().map(|reason| clipped(&reason)))
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
            writer.row(system, &suite, &row)?;
        }
        if let Some(accuracy) = self.scored.and_then(|scored| scored.accuracy) {
            writer.publish(Published {
                report: system.to_owned(),
                metric: "bfcl.accuracy".to_owned(),
                slice: Some(format!("category={}", category.name)),
                value: accuracy,
                decimals: 6,
            });
        }
        Ok(())
    }
}

/// Returns whether a model writes the dots of names, rather than the underscores that interfaces of
/// vendors ask for: whichever is the more frequent among the names of its calls.
fn writes_dots<'a>(answers: impl Iterator<Item = (&'a Calls, Option<&'a Question>)>) -> bool {
    let (mut dots, mut underscores) = (0_u64, 0_u64);
    for (calls, question) in answers {
        let functions = question.map_or(&[][..], |question| &question.underscored);
        for call in calls.iter().flatten() {
            for function in functions.iter().filter(|function| function.name.contains('.')) {
                dots += u64::from(call.name == function.name);
                underscores += u64::from(call.name == function.called);
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
