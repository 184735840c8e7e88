//! `karat agent score --means`: any number of traces in one pass, in flat memory.

use std::fmt::Write as _;
use std::ops::ControlFlow;

use karat_agent::marks::Marks;
use karat_agent::{CallMetric, Format, ItemScores, MetricSummary, Options, Source, Summary, Trace};
use karat_core::text::{clip, printable};
use serde_json::{Value, json};

use super::score::{metrics, named};
use super::{shape, tasks, tools};
use crate::cli::{AgentScoreArgs, TraceFormat};
use crate::exit::{Exit, Stop};
use crate::face::Terminal;

/// What is computed if nothing is asked for: the peer's own metrics, and ours.
const RAGAS: &[&str] = &[
    "ragas.tool_call_accuracy",
    "ragas.tool_call_accuracy_unordered",
    "ragas.tool_call_f1",
    "calls.exact",
    "calls.alignment",
    "calls.f1",
];
const DEEPEVAL: &[&str] = &[
    "deepeval.tool_correctness",
    "deepeval.tool_correctness|default|name+input",
    "deepeval.tool_correctness|ordered|name+input",
    "deepeval.tool_correctness|exact|name+input",
    "calls.exact",
    "calls.alignment",
    "calls.f1",
];

/// Scores the files and prints the means, and with `--per-item` every trace before them.
pub(super) fn score(arguments: &AgentScoreArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    match (arguments.read.format, &arguments.traces[..]) {
        (TraceFormat::Ragas, [_]) => samples(arguments, Format::Ragas, RAGAS, terminal),
        (TraceFormat::Deepeval, [_]) => samples(arguments, Format::DeepEval, DEEPEVAL, terminal),
        _ => traces(arguments, terminal),
    }
}

/// Samples of the peers, by the fast way: read, scored and forgotten on every core.
fn samples(
    arguments: &AgentScoreArgs,
    format: Format,
    usual: &[&str],
    terminal: &Terminal,
) -> Result<Exit, Stop> {
    let metrics = match arguments.metrics.as_slice() {
        [] => named(usual)?,
        asked => named(asked)?,
    };
    let ids: Vec<String> = metrics.iter().map(CallMetric::id).collect();
    let mut lines = String::new();
    let mut items = Vec::new();
    let mut each = |item: &ItemScores<'_>| {
        if !arguments.per_item {
        } else if terminal.json() {
            items.push(item_json(item, &ids));
        } else {
            item_lines(&mut lines, item, &ids);
        }
        ControlFlow::Continue(())
    };
    let options = Options::new(metrics);
    let summary = karat_agent::score_file(&arguments.traces[0], format, &options, &mut each)?;
    let found = Found {
        traces: summary.items,
        metrics: summary.metrics.clone(),
        warnings: warnings(&summary),
    };
    print(&found, arguments, lines, items, terminal)
}

/// Traces of any shape.
fn traces(arguments: &AgentScoreArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let metrics = metrics(arguments)?;
    let tasks = tasks(&arguments.read)?;
    let tools = tools(&arguments.tools, std::path::Path::new("."))?;
    let source = Source {
        files: &arguments.traces,
        shape: shape(arguments.read.format),
        tasks: tasks.as_ref(),
        max_bad: arguments.read.max_bad,
        metrics: &metrics,
    };
    let mut lines = String::new();
    let mut items = Vec::new();
    let mut each = |trace: &Trace, marks: &Marks| {
        if !arguments.per_item {
        } else if terminal.json() {
            let scores: serde_json::Map<String, Value> =
                marks.scores.keys().map(|id| (id.clone(), json!(marks.score(id)))).collect();
            items.push(json!({"id": trace.id, "run": trace.run, "scores": scores}));
        } else {
            for id in marks.scores.keys() {
                let score = marks.score(id).map_or("–".to_owned(), |score| format!("{score:.4}"));
                let _ = writeln!(lines, "{id:<46}\t{}\t{score}", printable(&trace.id));
            }
        }
    };
    let means = karat_agent::means::score(&source, &tools, &mut each)?;
    let mut warnings: Vec<String> = means
        .bad
        .iter()
        .map(|(class, count)| format!("{count} records could not be read: {class}"))
        .collect();
    for (count, words) in [
        (means.unknown_fields, "fields are not known"),
        (means.unreadable_arguments, "calls have arguments that are not a JSON object"),
        (means.without_task, "traces have no task"),
    ] {
        if count > 0 {
            warnings.push(format!("{count} {words}"));
        }
    }
    warnings.extend(means.notes.iter().map(|(note, count)| format!("{count} {note}")));
    let found = Found { traces: means.traces, metrics: means.metrics, warnings };
    print(&found, arguments, lines, items, terminal)
}

struct Found {
    traces: u64,
    metrics: Vec<MetricSummary>,
    warnings: Vec<String>,
}

fn print(
    found: &Found,
    arguments: &AgentScoreArgs,
    mut lines: String,
    items: Vec<Value>,
    terminal: &Terminal,
) -> Result<Exit, Stop> {
    if terminal.json() {
        let mut document = json!({
            "schema": "karat.traces/1",
            "traces": found.traces,
            "metrics": found.metrics.iter().map(metric_json).collect::<Vec<_>>(),
            "warnings": found.warnings,
        });
        if arguments.per_item
            && let Some(object) = document.as_object_mut()
        {
            object.insert("items".to_owned(), Value::Array(items));
        }
        terminal.print_json(&document)?;
    } else {
        lines.push_str(&table(found));
        terminal.print(&lines)?;
    }
    Ok(Exit::Pass)
}

fn item_json(item: &ItemScores<'_>, ids: &[String]) -> Value {
    let scores: serde_json::Map<String, Value> =
        ids.iter().zip(item.scores).map(|(id, score)| (id.clone(), json!(score.score))).collect();
    json!({"line": item.line, "id": item.id, "scores": scores})
}

fn item_lines(lines: &mut String, item: &ItemScores<'_>, ids: &[String]) {
    let name =
        item.id.map_or_else(|| format!("line {}", item.line), |id| printable(id).into_owned());
    for (id, score) in ids.iter().zip(item.scores) {
        let _ = writeln!(lines, "{id:<46}\t{name}\t{:.4}", score.score);
    }
}

fn metric_json(metric: &MetricSummary) -> Value {
    json!({
        "id": metric.id,
        "value": metric.mean,
        "n": metric.n,
        "interval": metric.interval.map(|interval| json!({
            "low": interval.low,
            "high": interval.high,
            "level": karat_core::aggregate::LEVEL,
            "method": "t",
        })),
        "succeeded": metric.succeeded,
    })
}

fn warnings(summary: &Summary) -> Vec<String> {
    let mut found = Vec::new();
    for (count, words) in [
        (summary.warnings.no_predicted_calls, "expected calls and made none"),
        (summary.warnings.empty_reference, "made calls and expected none"),
        (summary.warnings.length_mismatch, "made more or fewer calls than expected"),
    ] {
        if count > 0 {
            found.push(format!("{count} traces {words}"));
        }
    }
    if summary.unremembered_ids > 0 {
        let count = summary.unremembered_ids;
        found.push(format!("{count} ids were too many to be checked for duplicates"));
    }
    found
}

fn table(found: &Found) -> String {
    let mut text = format!("{} traces\n\n", found.traces);
    let _ = writeln!(text, "{:<46} {:>7}  {:<15} {:>8}", "metric", "mean", "95 % interval", "n");
    for metric in &found.metrics {
        let interval = metric.interval.map_or_else(
            || "–".to_owned(),
            |interval| format!("{:.3}–{:.3}", interval.low, interval.high),
        );
        let id = clip(&metric.id, 46).into_owned();
        let _ = writeln!(text, "{id:<46} {:>7.4}  {interval:<15} {:>8}", metric.mean, metric.n);
    }
    for warning in &found.warnings {
        let _ = writeln!(text, "note: {warning}");
    }
    text
}
