//! MCPMark: `model_results/<model>/<category>__<task>.json`, one file for each task of a model with
//! all of its runs, and the published table in `summary.json`.

use std::collections::BTreeMap;

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

#[derive(Deserialize)]
struct TaskResult {
    service: String,
    runs: BTreeMap<String, Run>,
}

#[derive(Deserialize)]
struct Run {
    success: Option<bool>,
    error_message: Option<Value>,
    /// Where earlier files have the two above.
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
    let is_result = |file: &File| file.base().ends_with(".json") && file.base().contains("__");
    // Next to the results there can be logs and earlier experiments with files of the same names.
    let scoped = source.files().any(|file| batch(file).is_some() && is_result(file));
    for file in source.files() {
        let place = batch(file);
        let parent = file.name.rsplit_once('/').map_or("", |(parent, _)| parent);
        let has_results = |other: &File| batch(other).is_some_and(|batch| batch == parent);
        if file.base() == "summary.json" && (!scoped || source.files().any(has_results)) {
            summary(source, file, writer)?;
        } else if is_result(file) && (place.is_some() || !scoped) {
            result(source, file, place.unwrap_or_default(), writer)?;
        } else {
            writer.skip("a file that is not a result");
        }
    }
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

fn result(
    source: &Source,
    file: &File,
    batch: &str,
    writer: &mut Writer,
) -> Result<(), ImportError> {
    let Some(model) = file.folder() else {
        return Err(ImportError::unexpected(
            &file.path,
            "a folder named after the model",
            "a file by itself; name the folder above it",
        ));
    };
    let result: TaskResult = source.json(file, EXPECTED)?;
    if result.runs.is_empty() {
        return Err(ImportError::unexpected(&file.path, EXPECTED, "no runs"));
    }
    let suite = match batch {
        "" => "mcpmark".to_owned(),
        batch => Writer::entry_name(&format!("mcpmark-{batch}")),
    };
    let task = file.stem();
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
        if let Some(nested) = execution_result {
            success = success.or(nested.success);
            error_message = error_message.or(nested.error_message);
        }
        let Some(success) = success else {
            let found = format!("{name} without `success`");
            return Err(ImportError::unexpected(&file.path, EXPECTED, found));
        };
        let error = error_message.filter(|_| !success).and_then(message);
        let tokens = run.token_usage.and_then(|used| {
            used.total_tokens.or_else(|| Some(used.input_tokens? + used.output_tokens?))
        });
        let row = Row {
            task: task.to_owned(),
            trial: Some(trial),
            success: Some(success),
            error,
            tokens,
            ms: run.agent_execution_time.or(run.execution_time).map(|seconds| seconds * 1000.0),
            ..Row::default()
        };
        writer.row(model, &suite, &row)?;
    }
    Ok(())
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

#[derive(Deserialize)]
struct Row4 {
    #[serde(rename = "pass@1")]
    pass_at_1: Option<PassAt1>,
    #[serde(rename = "pass@4")]
    pass_at_4: Option<f64>,
    #[serde(rename = "pass^4")]
    pass_hat_4: Option<f64>,
}

/// A mean with its spread, or the mean alone.
#[derive(Deserialize)]
#[serde(untagged)]
enum PassAt1 {
    Spread { avg: Option<f64>, std: Option<f64> },
    Mean(f64),
}

/// The published table: figures with four decimals, overall and by service.
fn summary(source: &Source, file: &File, writer: &mut Writer) -> Result<(), ImportError> {
    let whole: BTreeMap<String, Value> = source.json(file, "MCPMark's summary.json")?;
    for (part, models) in whole {
        let Ok(models) = serde_json::from_value::<BTreeMap<String, Value>>(models) else {
            continue;
        };
        let slice = (part != "overall").then(|| format!("service={part}"));
        for (model, row) in models {
            let row: Row4 = serde_json::from_value(row).map_err(|error| {
                let found = format!("{part}, {model}: {error}");
                ImportError::unexpected(&file.path, "figures of MCPMark", found)
            })?;
            let (avg, std) = match row.pass_at_1 {
                Some(PassAt1::Spread { avg, std }) => (avg, std),
                Some(PassAt1::Mean(mean)) => (Some(mean), None),
                None => (None, None),
            };
            let figures = [
                ("mcpmark.pass@1", avg),
                ("mcpmark.std", std),
                ("mcpmark.pass@4", row.pass_at_4),
                ("mcpmark.pass^4", row.pass_hat_4),
            ];
            for (metric, value) in figures {
                let Some(value) = value else { continue };
                writer.publish(Published {
                    report: model.clone(),
                    metric: metric.to_owned(),
                    slice: slice.clone(),
                    value,
                    decimals: 4,
                });
            }
        }
    }
    Ok(())
}
