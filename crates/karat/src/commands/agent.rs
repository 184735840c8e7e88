//! `karat agent score`: recorded traces, scored in one pass.

use std::fmt::Write as _;
use std::ops::ControlFlow;

use karat_agent::{AgentError, CallMetric, Format, ItemScores, MetricSummary, Options, Summary};
use karat_core::text::{clip, printable};
use serde_json::{Value, json};

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

/// Scores the file and prints the means, and with `--per-item` every trace before them.
pub(crate) fn score(arguments: &AgentScoreArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let (format, usual) = match arguments.format {
        TraceFormat::Ragas => (Format::Ragas, RAGAS),
        TraceFormat::Deepeval => (Format::DeepEval, DEEPEVAL),
    };
    let asked: Vec<&str> = match arguments.metrics.as_slice() {
        [] => usual.to_vec(),
        asked => asked.iter().map(String::as_str).collect(),
    };
    let metrics = asked
        .iter()
        .map(|id| id.parse::<CallMetric>())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| Stop::bad_input(format!("--metric: {error}")))?;
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
    let summary =
        karat_agent::score_file(&arguments.traces, format, &Options::new(metrics), &mut each)
            .map_err(stop)?;
    if terminal.json() {
        let mut document = json!({
            "schema": "karat.traces/1",
            "traces": summary.items,
            "metrics": summary.metrics.iter().map(metric_json).collect::<Vec<_>>(),
            "warnings": warnings(&summary),
        });
        if arguments.per_item
            && let Some(object) = document.as_object_mut()
        {
            object.insert("items".to_owned(), Value::Array(items));
        }
        terminal.print_json(&document)?;
    } else {
        lines.push_str(&table(&summary));
        terminal.print(&lines)?;
    }
    Ok(Exit::Pass)
}

/// An empty file is not a bad one: there was nothing to measure.
fn stop(error: AgentError) -> Stop {
    match error {
        AgentError::NothingToScore { .. } => Stop::not_measured(error),
        _ => Stop::bad_input(error),
    }
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

fn table(summary: &Summary) -> String {
    let mut text = format!("{} traces\n\n", summary.items);
    let _ = writeln!(text, "{:<46} {:>7}  {:<15} {:>8}", "metric", "mean", "95 % interval", "n");
    for metric in &summary.metrics {
        let interval = metric.interval.map_or_else(
            || "–".to_owned(),
            |interval| format!("{:.3}–{:.3}", interval.low, interval.high),
        );
        let id = clip(&metric.id, 46).into_owned();
        let _ = writeln!(text, "{id:<46} {:>7.4}  {interval:<15} {:>8}", metric.mean, metric.n);
    }
    for warning in warnings(summary) {
        let _ = writeln!(text, "note: {warning}");
    }
    text
}
