//! MCPMark: `model_results/<model>/<category>__<task>.json`, one file for each task of a model with
//! all of its runs, and the published table in `summary.json`.

use std::collections::{BTreeMap, BTreeSet};

use karat_io::input;
use serde::Deserialize;
use serde_json::Value;

use crate::outcomes::{Accounting, Published, Row, Tags, clipped};
use crate::source::{File, Source};
use crate::writer::Writer;
use crate::{Benchmark, ImportError};

pub(crate) const BENCHMARK: Benchmark = Benchmark {
    name: "mcpmark",
    title: "MCPMark",
    needs: "model_results/<model>/<category>__<task>.json; summary.json if there is one",
    licence: "Apache-2.0 (tasks); no licence is stated for the results",
    restricted: true,
    becomes: "outcomes: one entry per model",
    checked_by: "summary.json: pass@1 with its spread, pass@4 and pass^4, overall and by service",
    import,
};

const RESULTS: &str = "model_results";
const EXPECTED: &str =
    "a result of MCPMark: {\"service\": …, \"runs\": {\"run-1\": {\"success\": …, …}}}";
/// Parts of messages, in lower case, about failures outside the agent. Earlier files have the words of the
/// verifier in the same place, and those are verdicts.
const OUTSIDE: [&str; 13] = [
    "rate limit",
    "ratelimit",
    "too many requests",
    "quota",
    "account balance",
    "unavailable",
    "internal server error",
    "network error",
    "timed out",
    "timeout",
    "agent execution failed",
    "state setup failed",
    "state duplication",
];

#[derive(Deserialize)]
struct TaskResult {
    model: Option<String>,
    task: Option<String>,
    /// The same in earlier files.
    task_name: Option<String>,
    service: String,
    runs: BTreeMap<String, Run>,
}

#[derive(Deserialize)]
struct Run {
    success: Option<bool>,
    error_message: Option<Value>,
    /// The place where earlier files have the two above.
    execution_result: Option<Execution>,
    execution_time: Option<f64>,
    agent_execution_time: Option<f64>,
    token_usage: Option<Tokens>,
}

#[derive(Deserialize)]
struct Execution {
    success: Option<bool>,
    error_message: Option<Value>,
}

#[derive(Deserialize)]
struct Tokens {
    total_tokens: Option<f64>,
    input_tokens: Option<f64>,
    output_tokens: Option<f64>,
}

fn import(source: &Source, writer: &mut Writer) -> Result<(), ImportError> {
    writer.account(Some(Accounting::Mcpmark), &["service"]);
    writer.expect_equal_runs();
    // The same outcomes by task are in another folder of a release.
    let is_result = |file: &File| {
        file.base().ends_with(".json")
            && file.base().contains("__")
            && file.folder() != Some("task_results")
    };
    // Next to the results there can be logs and earlier experiments with files of the same names.
    let scoped = source.files().any(|file| batch(file).is_some() && is_result(file));
    let mut names = Names::default();
    for file in source.files().filter(|file| is_result(file)) {
        if let (Some(batch), Some(model)) = (batch(file), file.folder()) {
            names.batches.entry(model).or_default().insert(batch);
        }
    }
    let is_summary = |file: &&File| file.base() == "summary.json";
    for file in source.files().filter(is_summary) {
        names.published.extend(published(source, file));
    }
    for file in source.files() {
        let place = batch(file);
        let parent = file.name.rsplit_once('/').map_or("", |(parent, _)| parent);
        let has_results = |other: &File| batch(other).is_some_and(|batch| batch == parent);
        if file.base() == "summary.json" && (!scoped || source.files().any(has_results)) {
            summary(source, file, parent, &names, writer)?;
        } else if is_result(file) && (place.is_some() || !scoped) {
            result(source, file, place.unwrap_or_default(), &mut names, writer)?;
        } else {
            writer.skip("a file that is not a result");
        }
    }
    names.note(writer);
    match source.files().any(is_result) {
        true => Ok(()),
        false => Err(source.nothing("model_results/<model>/<category>__<task>.json")),
    }
}

/// The folder that holds `model_results` above a file; the results of a repository can come in batches
/// with other versions of the tasks.
fn batch(file: &File) -> Option<&str> {
    let at = file.name.find(RESULTS)?;
    let inside = file.name[at + RESULTS.len()..].starts_with('/');
    let start = at == 0 || file.name[..at].ends_with('/');
    (inside && start).then(|| file.name[..at].trim_end_matches('/'))
}

/// The names of models.
#[derive(Default)]
struct Names<'a> {
    /// The batches that have results of a model.
    batches: BTreeMap<&'a str, BTreeSet<&'a str>>,
    /// The statements of the first file of a folder, by the folder.
    stated: BTreeMap<&'a str, RunProperties<'a>>,
    /// The models of the published tables.
    published: BTreeSet<String>,
}

/// The properties that the files of a folder share.
struct RunProperties<'a> {
    model: Option<String>,
    /// True if verdicts are in `execution_result`, as in earlier files.
    nested: bool,
    file: &'a File,
}

impl<'a> Names<'a> {
    /// The name of a report: that of the model, with the batch where an earlier one has results of it too.
    fn report(&self, model: &str, batch: &str) -> String {
        let first = self.batches.get(model).and_then(BTreeSet::first);
        if first.is_none_or(|first| *first == batch) {
            return model.to_owned();
        }
        format!("{model}.{}", batch.rsplit('/').next().unwrap_or_default())
    }

    /// Returns whether a folder can be named differently from the model of its files: with a setting
    /// behind it, such as `gpt-5-high`, without the vendor before it, or as the published table has it.
    fn fits(&self, folder: &str, model: &str) -> bool {
        let plain = |text: &str| text.replace(['/', '_', '.', ':', ' '], "-").to_lowercase();
        let (folder_name, model_name) = (plain(folder), plain(model));
        let behind = |rest: &str| rest.is_empty() || rest.starts_with('-');
        folder_name.strip_prefix(model_name.as_str()).is_some_and(behind)
            || model_name.ends_with(&format!("-{folder_name}"))
            || self.published.contains(folder)
    }

    /// Refuses a file that does not belong to the others of its folder.
    fn check(&mut self, file: &'a File, result: &TaskResult) -> Result<(), ImportError> {
        let folder = file.name.rsplit_once('/').map_or("", |(folder, _)| folder);
        let nested = result.runs.values().any(|run| run.execution_result.is_some());
        let said = || RunProperties { model: result.model.clone(), nested, file };
        let is_new = !self.stated.contains_key(folder);
        let RunProperties { model, nested: known, file: first } =
            self.stated.entry(folder).or_insert_with(said);
        let first = input::name(&first.path);
        let unexpected = |expected: String, found: String| {
            Err(ImportError::unexpected(&file.path, expected, found))
        };
        if *model != result.model {
            let name = |model: &Option<String>| model.clone().unwrap_or("no model".to_owned());
            let expected = format!("a result of {}, as {first}", name(model));
            return unexpected(expected, format!("one of {}", name(&result.model)));
        }
        let mixed = result.runs.values().any(|run| run.execution_result.is_some() != *known);
        if mixed {
            let shape = |nested: bool| match nested {
                true => "verdicts in `execution_result`",
                false => "verdicts in the runs",
            };
            let expected = format!("{}, as {first}", shape(*known));
            return unexpected(expected, format!("{}: another version", shape(!*known)));
        }
        if let (true, Some(name), Some(model)) = (is_new, file.folder(), result.model.as_deref())
            && !self.fits(name, model)
        {
            let expected = format!("results of {name}, as the folder is named");
            return unexpected(expected, format!("runs of {model}: a renamed folder?"));
        }
        Ok(())
    }

    /// Notes the folders that are named differently from their models.
    fn note(&self, writer: &mut Writer) {
        let differs = |(folder, stated): (&&str, &RunProperties<'_>)| {
            let name = folder.rsplit('/').next().unwrap_or_default();
            let model =
                stated.model.as_deref().filter(|model| *model != name && !name.is_empty())?;
            Some(format!("{name} has results of {model}"))
        };
        let others: Vec<String> = self.stated.iter().filter_map(differs).collect();
        if let Some(first) = others.first() {
            let number = others.len();
            writer.note(format!("{number} folders are not named as their model: {first}"));
        }
    }
}

/// The models of a published table; none if it is of another kind, as those of earlier experiments are.
fn published(source: &Source, file: &File) -> Vec<String> {
    let whole: BTreeMap<String, Value> = source.peek(file, SUMMARY).unwrap_or_default();
    let models = whole.get("overall").and_then(Value::as_object);
    models.map(|models| models.keys().cloned().collect()).unwrap_or_default()
}

fn result<'a>(
    source: &Source,
    file: &'a File,
    batch: &str,
    names: &mut Names<'a>,
    writer: &mut Writer,
) -> Result<(), ImportError> {
    let result: TaskResult = source.json(file, EXPECTED)?;
    let task = file.stem();
    let stated = result.task.as_ref().or(result.task_name.as_ref());
    if let Some(other) = stated.filter(|stated| stated.contains("__") && *stated != task) {
        let found = format!("that of {other}: a renamed file?");
        return Err(ImportError::unexpected(&file.path, format!("the result of {task}"), found));
    }
    names.check(file, &result)?;
    let Some(model) = file.folder().or(result.model.as_deref()) else {
        return Err(ImportError::unexpected(
            &file.path,
            "a folder named after the model",
            "a single file; name its parent folder",
        ));
    };
    let system = names.report(model, batch);
    if result.runs.is_empty() {
        return Err(ImportError::unexpected(&file.path, EXPECTED, "no runs"));
    }
    let suite = match batch {
        "" => "mcpmark".to_owned(),
        batch => Writer::entry_name(&format!("mcpmark-{batch}")),
    };
    writer.reading(&file.path);
    let category = task.split("__").next().unwrap_or_default();
    writer.task(&suite, task, || {
        let mut tags = Tags::from([
            ("service".to_owned(), result.service.clone()),
            ("category".to_owned(), category.to_owned()),
        ]);
        if !batch.is_empty() {
            tags.insert("batch".to_owned(), batch.to_owned());
        }
        tags
    });
    for (name, run) in result.runs {
        let trial = name.strip_prefix("run-").and_then(|number| number.parse().ok());
        let Some(trial) = trial.filter(|trial| *trial > 0) else {
            return Err(ImportError::unexpected(&file.path, "runs named run-1, run-2 …", name));
        };
        let Run { mut success, mut error_message, execution_result, .. } = run;
        let is_earlier = execution_result.is_some();
        if let Some(nested) = execution_result {
            success = success.or(nested.success);
            error_message = error_message.or(nested.error_message);
        }
        let Some(success) = success else {
            let found = format!("{name} without `success`");
            return Err(ImportError::unexpected(&file.path, EXPECTED, found));
        };
        let said = error_message.filter(|_| !success).and_then(message);
        let (error, reason) = match said {
            Some(text) if is_earlier && !is_outside(&text) => (None, Some(text)),
            said => (said, None),
        };
        let tokens = run.token_usage.and_then(|used| {
            used.total_tokens.or_else(|| Some(used.input_tokens? + used.output_tokens?))
        });
        let row = Row {
            task: task.to_owned(),
            trial: Some(trial),
            success: Some(success),
            error,
            reason,
            tokens,
            ms: run.agent_execution_time.or(run.execution_time).map(|seconds| seconds * 1000.0),
            ..Row::default()
        };
        writer.row(&system, &suite, &row)?;
    }
    Ok(())
}

/// Returns whether a message of an earlier file is about a failure outside the agent. The verifier writes a
/// bar before its lines.
fn is_outside(message: &str) -> bool {
    let lower = message.to_lowercase();
    !message.trim_start().starts_with('|') && OUTSIDE.iter().any(|part| lower.contains(part))
}

/// The text of an error; none where it is null or empty.
fn message(value: Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) if text.trim().is_empty() => None,
        Value::String(text) => Some(clipped(&text)),
        other => Some(clipped(&other.to_string())),
    }
}

const SUMMARY: &str = "MCPMark's summary.json: {\"overall\": {model: {\"pass@1\": {\"avg\", \"std\"}, \"pass@4\", …}}}";

/// The published table: figures with four decimals, overall and by service.
fn summary(
    source: &Source,
    file: &File,
    batch: &str,
    names: &Names<'_>,
    writer: &mut Writer,
) -> Result<(), ImportError> {
    let whole: BTreeMap<String, Value> = source.json(file, SUMMARY)?;
    let mut figures = 0_u64;
    for (part, models) in &whole {
        let Value::Object(models) = models else { continue };
        let slice = (part != "overall").then(|| format!("service={part}"));
        for (model, row) in models {
            let wrong = |key: &str, value: &Value| {
                let found = format!("{part}, {model}: {key} {value}");
                ImportError::unexpected(&file.path, SUMMARY, found)
            };
            let figure = |key: &str, value: Option<&Value>| match value {
                None | Some(Value::Null) => Ok(None),
                Some(value) => value.as_f64().map(Some).ok_or_else(|| wrong(key, value)),
            };
            // A mean with its spread, or the mean alone.
            let first = row.get("pass@1");
            let (avg, std) = match first {
                Some(Value::Object(spread)) => (spread.get("avg"), spread.get("std")),
                mean => (mean, None),
            };
            let found = [
                ("mcpmark.pass@1", figure("pass@1", avg)?),
                ("mcpmark.std", figure("std of pass@1", std)?),
                ("mcpmark.pass@4", figure("pass@4", row.get("pass@4"))?),
                ("mcpmark.pass^4", figure("pass^4", row.get("pass^4"))?),
            ];
            for (metric, value) in found {
                let Some(value) = value else { continue };
                figures += 1;
                writer.publish(Published {
                    report: names.report(model, batch),
                    metric: metric.to_owned(),
                    slice: slice.clone(),
                    value,
                    decimals: 4,
                });
            }
        }
    }
    if figures == 0 {
        let keys: Vec<&str> = whole.keys().map(String::as_str).collect();
        return Err(ImportError::unexpected(&file.path, SUMMARY, keys.join(", ")));
    }
    Ok(())
}
