//! `karat agent score --means`: any number of traces in one pass, in flat memory.

use std::fmt::Write as _;

use karat_agent::streaming::{self, ItemScores, scores_samples, usual_metrics_of_samples};
use karat_agent::traces::{Config, Data, Kept};
use karat_agent::{CallMetric, Tasks, TraceFiles, TraceSource, Traces, recognize};
use karat_core::evaluation::{Common, Entry, report_recorded};
use karat_core::gate::{self, Policy};
use karat_core::means::{Means, TraceScores};
use karat_core::report::{Report, Verdict};
use karat_io::text::{clip, count, printable};

use super::score::{gate as gate_of, named};
use super::{config, here};
use crate::cli::AgentScoreArgs;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;

/// Scores the files and prints the means, and with `--per-item` every trace before them.
pub(super) fn score(arguments: &AgentScoreArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let common = Common { gate: gate_of(arguments)?, ..Common::named(&arguments.name) };
    let config = Config {
        traces: arguments.traces.clone(),
        tools: arguments.tools.clone(),
        prices: arguments.prices.clone(),
        ..config(&arguments.read)?
    };
    let root = here();
    let tools = config.load_tools(&root)?;
    let tasks = Tasks::load_any(&config.tasks, &root)?;
    let formats = recognize(&config.traces, config.format)?;
    let samples = scores_samples(&formats, tasks.is_some(), tools.count() > 0);
    let metrics = match (arguments.metrics.as_slice(), samples) {
        ([], Some(format)) => usual_metrics_of_samples(format),
        ([], None) => CallMetric::usual(),
        (asked, _) => named(asked)?,
    };
    let (mut lines, mut items) = (String::new(), Vec::new());
    let mut on_item = |item: &ItemScores<'_>| match (arguments.per_item, terminal.json()) {
        (false, _) => {}
        (true, true) => items.push(trace_scores(item)),
        (true, false) => item_lines(&mut lines, item),
    };
    let files = TraceFiles { files: &config.traces, formats: &formats, metrics: &metrics };
    let prices = config.load_prices(&root)?;
    let (tasks, prices) = (tasks.as_ref(), prices.as_ref());
    let source = TraceSource { files, tasks, max_malformed: config.max_malformed, prices };
    let mut aggregates = streaming::score(&source, &tools, None, &mut on_item)?;
    let stated = aggregates.stats.notes.clone();
    aggregates.stats.note_recognized(config.format, &formats);
    let recognized = aggregates.stats.notes.iter().filter(|(note, _)| !stated.contains_key(*note));
    aggregates.warnings.extend(recognized.map(|(note, count)| format!("{count} {note}")));
    let traces = aggregates.traces;
    let data =
        Data { traces: Kept::Aggregates(aggregates), tools, metrics, verdicts: None, before: None };
    let system = config.system(&data);
    let entry = Entry::<Traces> { common, config, data };
    let report = report_recorded(&entry, Vec::new(), system, 1)?;
    let items = arguments.per_item.then_some(items);
    show(report, traces, (lines, items), &entry.common.gate, terminal)
}

/// Judges and prints the means of traces that were scored elsewhere.
pub(super) fn conclude(report: Report, gate: &Policy, terminal: &Terminal) -> Result<Exit, Stop> {
    let traces = report.metrics.iter().map(|metric| metric.n + metric.left_out).max();
    show(report, traces.unwrap_or(0), (String::new(), None), gate, terminal)
}

/// Judges and prints means, after the lines or with the documents of items.
fn show(
    mut report: Report,
    traces: u64,
    (mut lines, items): (String, Option<Vec<TraceScores>>),
    gate: &Policy,
    terminal: &Terminal,
) -> Result<Exit, Stop> {
    let verdict = gate::judge(&mut report, gate, None).map_err(Stop::bad_input)?;
    if terminal.json() {
        terminal.print_json(&Means::of(&report, traces, items))?;
    } else {
        lines.push_str(&table(&report, traces));
        terminal.print(&lines)?;
    }
    Ok(match verdict {
        Verdict::Fail => Exit::GateFailed,
        Verdict::Pass | Verdict::Inconclusive => Exit::Pass,
    })
}

fn trace_scores(item: &ItemScores<'_>) -> TraceScores {
    let scores = item.values().map(|(id, score)| (id.to_owned(), score.into()));
    TraceScores { id: item.id.to_owned(), run: item.run, scores: scores.collect() }
}

fn item_lines(lines: &mut String, item: &ItemScores<'_>) {
    for (id, score) in item.values() {
        let score = score.map_or("–".to_owned(), |score| format!("{score:.4}"));
        let _ = writeln!(lines, "{id:<46}\t{}\t{score}", printable(item.id));
    }
}

fn table(report: &Report, traces: u64) -> String {
    let mut text = format!("{}\n\n", count(traces, "trace"));
    let _ = writeln!(text, "{:<46} {:>7}  {:<15} {:>8}", "metric", "mean", "95 % interval", "n");
    for metric in &report.metrics {
        let Some(mean) = metric.value else { continue };
        let interval = metric.interval.as_ref().map_or_else(
            || "–".to_owned(),
            |interval| format!("{:.3}–{:.3}", interval.low, interval.high),
        );
        let id = clip(&metric.id, 46).into_owned();
        let _ = writeln!(text, "{id:<46} {mean:>7.4}  {interval:<15} {:>8}", metric.n);
    }
    for warning in &report.warnings {
        let _ = writeln!(text, "note: {warning}");
    }
    for check in report.gate.iter().flat_map(|gate| &gate.checks) {
        let _ = writeln!(text, "{}: {} ({})", check.verdict.name(), check.reason, check.rule);
    }
    text
}
