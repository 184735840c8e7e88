//! `karat agent score --means`: any number of traces in one pass, in flat memory.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::ControlFlow;

use karat_agent::marks::Marks;
use karat_agent::{CallMetric, Format, ItemScores, MetricSummary, Options, Source, Summary, Trace};
use karat_core::gate::{self, Policy};
use karat_core::provenance::Stopwatch;
use karat_core::report::{
    self, DatasetRef, Evaluation, Gate, Measured, Report, SystemRef, Verdict,
};
use karat_io::text::{clip, printable};
use serde_json::{Value, json};

use super::score::{gate as gate_of, metrics, named};
use super::{shape, tasks, tools};
use crate::cli::{AgentScoreArgs, TraceArgs, TraceFormat};
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
    let gate = gate_of(arguments)?;
    let TraceArgs { format, tasks, max_bad } = &arguments.read;
    // The fast way knows samples alone: no tasks, no tools, and the first bad record ends it.
    let plain = tasks.is_empty() && arguments.tools.is_empty() && *max_bad == 0.0;
    match (format, &arguments.traces[..]) {
        (TraceFormat::Ragas, [_]) if plain => {
            samples(arguments, &gate, Format::Ragas, RAGAS, terminal)
        }
        (TraceFormat::Deepeval, [_]) if plain => {
            samples(arguments, &gate, Format::DeepEval, DEEPEVAL, terminal)
        }
        _ => traces(arguments, &gate, terminal),
    }
}

/// Samples of the peers, by the fast way: read, scored and forgotten on every core.
fn samples(
    arguments: &AgentScoreArgs,
    gate: &Policy,
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
        undefined: BTreeMap::new(),
        warnings: warnings(&summary),
    };
    print(&found, gate, Details { arguments, lines, items }, terminal)
}

/// Traces of any shape.
fn traces(arguments: &AgentScoreArgs, gate: &Policy, terminal: &Terminal) -> Result<Exit, Stop> {
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
    let means = karat_agent::means::score(&source, &tools, gate.max_errors, &mut each)?;
    let mut warnings: Vec<String> = means
        .bad
        .iter()
        .map(|(class, count)| format!("{count} records could not be read: {class}"))
        .collect();
    for (count, words) in [
        (means.unknown_fields, "fields are not known"),
        (means.unreadable_arguments, "calls have arguments that are not a JSON object"),
        (means.without_task, "traces have no task"),
        (means.made.failed, "runs could not be made"),
    ] {
        if count > 0 {
            warnings.push(format!("{count} {words}"));
        }
    }
    warnings.extend(means.without_trace);
    warnings.extend(means.notes.iter().map(|(note, count)| format!("{count} {note}")));
    let found = Found {
        traces: means.traces,
        metrics: means.metrics,
        undefined: means.undefined,
        warnings,
    };
    print(&found, gate, Details { arguments, lines, items }, terminal)
}

struct Found {
    traces: u64,
    metrics: Vec<MetricSummary>,
    undefined: BTreeMap<String, &'static str>,
    warnings: Vec<String>,
}

/// Every trace's scores, where they were asked for.
struct Details<'a> {
    arguments: &'a AgentScoreArgs,
    lines: String,
    items: Vec<Value>,
}

impl Found {
    /// Holds the means to floors and ceilings.
    fn judge(&self, policy: &Policy) -> Result<Gate, Stop> {
        let short = |id: &str| id.parse::<CallMetric>().ok().map(|metric| metric.short_id());
        let mut metrics = Vec::new();
        for summary in &self.metrics {
            metrics.push(measured(&summary.id, Ok(summary)));
            // A metric may be written with its usual settings or without them.
            if let Some(short) = short(&summary.id).filter(|short| *short != summary.id) {
                metrics.push(measured(&short, Ok(summary)));
            }
        }
        metrics.extend(self.undefined.iter().map(|(id, why)| measured(id, Err(*why))));
        let report = Report {
            schema: report::SCHEMA.to_owned(),
            evaluation: Evaluation::Agent,
            name: String::new(),
            dataset: DatasetRef {
                id: String::new(),
                version: String::new(),
                digest: String::new(),
            },
            system: SystemRef {
                kind: "file".to_owned(),
                name: String::new(),
                version: None,
                settings: BTreeMap::new(),
            },
            runs: 1,
            seed: 0,
            conventions: BTreeMap::new(),
            metrics,
            slices: Vec::new(),
            items: Vec::new(),
            controls: Vec::new(),
            comparison: None,
            gate: None,
            warnings: Vec::new(),
            environment: Stopwatch::start().environment(&[], None),
        };
        gate::evaluate(policy, &report, None).map_err(Stop::bad_input)
    }
}

/// A mean as a gate takes it.
fn measured(id: &str, mean: Result<&MetricSummary, &str>) -> Measured {
    Measured {
        id: id.to_owned(),
        value: mean.ok().map(|summary| summary.mean),
        n: mean.map_or(0, |summary| summary.n),
        better: karat_core::aggregate::better(id),
        per_run: Vec::new(),
        interval: None,
        count: None,
        undefined: mean.err().map(str::to_owned),
        left_out: 0,
    }
}

fn print(
    found: &Found,
    policy: &Policy,
    details: Details<'_>,
    terminal: &Terminal,
) -> Result<Exit, Stop> {
    let Details { arguments, mut lines, items } = details;
    let gate = found.judge(policy)?;
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
        if let Some(object) = document.as_object_mut().filter(|_| !gate.checks.is_empty()) {
            object.insert("gate".to_owned(), json!(gate));
        }
        terminal.print_json(&document)?;
    } else {
        lines.push_str(&table(found));
        for check in &gate.checks {
            let _ = writeln!(lines, "{}: {} ({})", check.verdict.name(), check.reason, check.rule);
        }
        terminal.print(&lines)?;
    }
    Ok(match gate.verdict {
        Verdict::Fail => Exit::GateFailed,
        Verdict::Pass | Verdict::Inconclusive => Exit::Pass,
    })
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
