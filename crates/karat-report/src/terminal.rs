//! Tables for a terminal of 80 columns. The verdict stands last, where the eye is.

use std::fmt::Write as _;

use karat_core::baseline::Baseline;
use karat_core::report::{
    Better, CheckReport, Comparison, Delta, Gate, Measured, Report, Slice, Verdict,
};
use karat_io::text::{clip, printable};
use owo_colors::{OwoColorize as _, Style as Paint};

use crate::findings;
use crate::html::words;

/// The width that everything fits into.
const WIDTH: usize = 80;
/// How many items of a list are named.
const NAMED: usize = 6;
/// How many pairs of detectors are shown.
const PAIRS: usize = 6;
/// How many confusions of tools are shown.
const CONFUSIONS: usize = 10;

/// How much of the reason of a failed case is shown.
const REASON: usize = 300;

/// How to show it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Whether to use colours.
    pub colors: bool,
}

impl Style {
    fn paint(self, text: &str, paint: Paint) -> String {
        if self.colors { text.style(paint).to_string() } else { text.to_owned() }
    }

    fn verdict(self, verdict: Verdict) -> String {
        let paint = match verdict {
            Verdict::Pass => Paint::new().green(),
            Verdict::Inconclusive => Paint::new().yellow(),
            Verdict::Fail => Paint::new().red().bold(),
        };
        self.paint(&format!("{:<12}", verdict.name()), paint)
    }

    fn strong(self, text: &str) -> String {
        self.paint(text, Paint::new().bold())
    }

    fn faint(self, text: &str) -> String {
        self.paint(text, Paint::new().dimmed())
    }
}

/// The whole check.
pub fn check(check: &CheckReport, style: Style) -> String {
    let mut text = String::new();
    for report in &check.reports {
        one(&mut text, report, style);
    }
    for failed in &check.not_measured {
        let head = format!("{} · {}: not measured", failed.evaluation, failed.name);
        let _ = writeln!(text, "{}", style.strong(&printable(&head)));
        wrapped(&mut text, "  ", &failed.reason);
        text.push('\n');
    }
    for absent in &check.not_run {
        let line = format!("{}: {}", absent.evaluation, absent.reason);
        let _ = writeln!(text, "{}", style.faint(&clip(&line, WIDTH)));
    }
    if !check.not_run.is_empty() {
        text.push('\n');
    }
    let _ = writeln!(text, "{}", closing(check, style));
    text
}

/// The last line: the verdict and what decided it.
fn closing(check: &CheckReport, style: Style) -> String {
    let count = |verdict| {
        let gates = check.reports.iter().filter_map(|report| report.gate.as_ref());
        gates.filter(|gate| gate.verdict == verdict).count()
    };
    let (failed, undecided) = (count(Verdict::Fail), count(Verdict::Inconclusive));
    let total = check.reports.len() + check.not_measured.len();
    let entries = if total == 1 { "1 entry" } else { &format!("{total} entries") };
    match check.verdict {
        None => {
            let paint = Paint::new().red().bold();
            let lost = check.not_measured.len();
            format!(
                "{} {lost} of {entries} could not be measured",
                style.paint("not measured:", paint)
            )
        }
        Some(Verdict::Fail) => {
            format!(
                "{} {failed} of {entries} got worse or broke a limit",
                style.verdict(Verdict::Fail).trim_end()
            )
        }
        Some(Verdict::Inconclusive) => format!(
            "{} the data cannot decide {undecided} of {entries}",
            style.verdict(Verdict::Inconclusive).trim_end()
        ),
        Some(Verdict::Pass) => format!("{} {entries}", style.verdict(Verdict::Pass).trim_end()),
    }
}

/// One report by itself.
pub fn scores(report: &Report, style: Style) -> String {
    let mut text = String::new();
    one(&mut text, report, style);
    text
}

fn one(text: &mut String, report: &Report, style: Style) {
    let runs = if report.runs == 1 { "1 run".to_owned() } else { format!("{} runs", report.runs) };
    let head = format!(
        "{} · {} on {} {}",
        report.evaluation, report.name, report.dataset.id, report.dataset.version
    );
    let _ = writeln!(
        text,
        "{} {}",
        style.strong(&clip(&printable(&head), 56)),
        style.faint(&format!("({} items, {runs})", report.items.len()))
    );
    metrics(text, &report.metrics, report.comparison.as_ref(), style);
    detectors(text, report, style);
    confusions(text, report, style);
    if let Some(latency) = &report.environment.latency_ms {
        let line = format!(
            "  answer time in ms: p50 {:.2}, p90 {:.2}, p99 {:.2}, max {:.2}",
            latency.p50, latency.p90, latency.p99, latency.max
        );
        let _ = writeln!(text, "{}", style.faint(&line));
    }
    failed_cases(text, report, style);
    if !report.controls.is_empty() {
        let states: Vec<String> = report
            .controls
            .iter()
            .map(|control| format!("{} {}", control.name, if control.ok { "ok" } else { "NOT OK" }))
            .collect();
        wrapped(text, "  ", &format!("controls: {}", states.join(", ")));
    }
    for warning in &report.warnings {
        wrapped(text, "  ", &format!("note: {warning}"));
    }
    if let Some(gate) = &report.gate {
        gated(text, gate, style);
    }
    text.push('\n');
}

/// Which cases did not pass, and why.
fn failed_cases(text: &mut String, report: &Report, style: Style) {
    let (cases, more) = findings::failed_cases(report);
    for case in cases {
        let reason = clip(&case.reason, REASON);
        wrapped(text, "  ", &format!("failed: {}: {reason}", case.id));
    }
    if more > 0 {
        let line = format!("  and {more} more failed cases in the report");
        let _ = writeln!(text, "{}", style.faint(&line));
    }
}

fn metrics(text: &mut String, metrics: &[Measured], comparison: Option<&Comparison>, style: Style) {
    let ranges: Vec<String> = metrics.iter().map(range).collect();
    // Ranges with a minus are longer than the column usually is.
    let wide = ranges.iter().map(|range| range.chars().count()).max().unwrap_or(0).max(11);
    let head = format!(
        "  {:<30} {:>6}  {:<wide$} {:>6} {:>8} {:>8}",
        "metric", "value", "95 % range", "n", "baseline", "change"
    );
    let _ = writeln!(text, "{}", style.faint(head.trim_end()));
    for (metric, range) in metrics.iter().zip(ranges) {
        let delta = comparison.and_then(|comparison| {
            comparison.deltas.iter().find(|d| d.metric == metric.id && d.slice.is_none())
        });
        let line = format!(
            "  {:<30} {:>6}  {:<wide$} {:>6} {:>8} ",
            clip(&printable(&metric.id), 30),
            number(metric.value),
            range,
            metric.n,
            delta.map_or_else(String::new, |delta| number(delta.before)),
        );
        let change = delta.map_or_else(String::new, |delta| change(delta, style));
        let _ = writeln!(text, "{}", format!("{line}{change}").trim_end());
        if let Some(reason) = &metric.undefined {
            wrapped(text, "      ", &format!("undefined: {reason}"));
        }
    }
}

/// The ends of a metric's interval.
fn range(metric: &Measured) -> String {
    metric.interval.as_ref().map_or_else(
        || "–".to_owned(),
        |interval| format!("{}–{}", words::bound(interval.low), words::bound(interval.high)),
    )
}

/// Which tool was called instead of which, most often first.
fn confusions(text: &mut String, report: &Report, style: Style) {
    let pairs = by(report, "confusion");
    if pairs.is_empty() {
        return;
    }
    let head = format!("  {:<30} {:<30} {:>5} {:>7}", "called", "instead of", "times", "of");
    let _ = writeln!(text, "{}", style.faint(&head));
    for (pair, slice) in pairs.iter().take(CONFUSIONS) {
        let (called, expected) = pair.split_once(" instead of ").unwrap_or((pair, ""));
        let cell = |tool: &str| clip(&printable(tool), 30).into_owned();
        let count = slice.metrics.first().and_then(|metric| metric.count);
        let (times, of) = count.map_or((0, 0), |count| (count.hits, count.of));
        let _ = writeln!(text, "  {:<30} {:<30} {times:>5} {of:>7}", cell(called), cell(expected));
    }
    if pairs.len() > CONFUSIONS {
        let line = format!("  and {} more pairs", pairs.len() - CONFUSIONS);
        let _ = writeln!(text, "{}", style.faint(&line));
    }
}

/// Detectors side by side, then the whole by tier and by category: what is caught and how often it cries
/// wolf.
fn detectors(text: &mut String, report: &Report, style: Style) {
    let rows = by(report, "detector");
    let Some((whole, _)) = rows.first() else { return };
    if rows.len() > 1 {
        detector_table(text, "detector", &rows, style);
    }
    adds(text, report, style);
    agreement(text, report, style);
    detector_table(text, "at least of tier", &by(report, "tier"), style);
    let of_whole =
        |(name, slice)| Some((str::strip_prefix(name, whole)?.strip_prefix('/')?, slice));
    let categories: Vec<(&str, &Slice)> =
        by(report, "detector/category").into_iter().filter_map(of_whole).collect();
    detector_table(text, "category and its likes", &categories, style);
}

/// The slices of one kind, by their values.
fn by<'r>(report: &'r Report, kind: &str) -> Vec<(&'r str, &'r Slice)> {
    let slices = report.slices.iter().filter(|slice| slice.by == kind);
    slices.map(|slice| (slice.value.as_str(), slice)).collect()
}

/// What each detector adds: the share that no other one flags.
fn adds(text: &mut String, report: &Report, style: Style) {
    let rows = by(report, "adds");
    if rows.is_empty() {
        return;
    }
    let head =
        format!("  {:<32} {:>9} {:>9} {:>9}", "flagged by no other", "attacks", "hard", "benign");
    let _ = writeln!(text, "{}", style.faint(&head));
    for (name, slice) in rows {
        let cells = ["recall", "fpr_hard", "fpr"].map(|id| cell(slice, id));
        let name = clip(&printable(name), 32).into_owned();
        let _ = writeln!(text, "  {name:<32} {}", cells.join(" "));
    }
}

/// The pairs of detectors that flag the same, most alike first.
fn agreement(text: &mut String, report: &Report, style: Style) {
    let mut pairs = by(report, "agreement");
    if pairs.is_empty() {
        return;
    }
    let jaccard = |slice: &Slice| {
        let found = slice.metrics.iter().find(|metric| metric.id == "jaccard");
        found.and_then(|metric| metric.value).unwrap_or(-1.0)
    };
    pairs.sort_by(|(_, one), (_, other)| jaccard(other).total_cmp(&jaccard(one)));
    let head = format!(
        "  {:<46} {:>9} {:>9} {:>6}",
        "agreement, most alike first", "kappa", "jaccard", "n"
    );
    let _ = writeln!(text, "{}", style.faint(&head));
    for (name, slice) in pairs.iter().take(PAIRS) {
        let n = slice.metrics.first().map_or(0, |metric| metric.n);
        let name = clip(&printable(name), 46).into_owned();
        let cells = ["kappa", "jaccard"].map(|id| cell(slice, id)).join(" ");
        let _ = writeln!(text, "  {name:<46} {cells} {n:>6}");
    }
    if pairs.len() > PAIRS {
        let line = format!("  and {} pairs that have less in common", pairs.len() - PAIRS);
        let _ = writeln!(text, "{}", style.faint(&line));
    }
}

/// A metric of a slice in a column of nine.
fn cell(slice: &Slice, id: &str) -> String {
    let found = slice.metrics.iter().find(|metric| metric.id == id);
    format!("{:>9}", found.map_or_else(|| "–".to_owned(), |metric| number(metric.value)))
}

fn detector_table(text: &mut String, title: &str, rows: &[(&str, &Slice)], style: Style) {
    const COLUMNS: [&str; 5] = ["recall", "precision", "f1", "fpr_hard", "fpr"];
    if rows.is_empty() {
        return;
    }
    let head: Vec<String> = COLUMNS.iter().map(|column| format!("{column:>9}")).collect();
    let head = format!("  {title:<24} {}", head.join(" "));
    let _ = writeln!(text, "{}", style.faint(&head));
    for (name, row) in rows {
        let cells = COLUMNS.map(|column| cell(row, column));
        let name = clip(&printable(name), 24).into_owned();
        let _ = writeln!(text, "  {name:<24} {}", cells.join(" "));
    }
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "null".to_owned(), words::number)
}

fn change(delta: &Delta, style: Style) -> String {
    let Some(amount) = delta.delta else { return "null".to_owned() };
    if amount == 0.0 {
        return format!("{:>8}", "0");
    }
    let good = (amount > 0.0) == (delta.better == Better::Higher);
    let paint = if good { Paint::new().green() } else { Paint::new().red() };
    style.paint(&format!("{amount:>+8.4}"), paint)
}

fn gated(text: &mut String, gate: &Gate, style: Style) {
    // Controls have their own line; here only what failed of them.
    for check in &gate.checks {
        if check.rule == "control" && check.verdict == Verdict::Pass {
            continue;
        }
        let limit = check.threshold.map(|limit| format!(" {limit}")).unwrap_or_default();
        let place = check.slice.as_ref().map(|slice| format!(", {slice}")).unwrap_or_default();
        let line = format!("{} ({}{limit}{place})", check.reason, check.rule);
        let mut lines = wrap(&line, WIDTH - 16);
        let first = if lines.is_empty() { String::new() } else { lines.remove(0) };
        let _ = writeln!(text, "  {}  {first}", style.verdict(check.verdict));
        for line in lines {
            let _ = writeln!(text, "                {line}");
        }
    }
}

/// A comparison by itself.
pub fn comparison(comparison: &Comparison, style: Style) -> String {
    let mut text = String::new();
    let head = format!(
        "  {:<30} {:>6} {:>6} {:>8}  {:<14} {:>5}",
        "metric", "before", "after", "change", "95 % range", "p"
    );
    let _ = writeln!(text, "{}", style.faint(&head));
    for delta in &comparison.deltas {
        let name = match &delta.slice {
            Some(slice) => format!("{} {slice}", delta.metric),
            None => delta.metric.clone(),
        };
        let interval = delta.interval.as_ref().map_or_else(
            || "–".to_owned(),
            |interval| format!("{:+.3}..{:+.3}", interval.low, interval.high),
        );
        let p = delta.p_holm.map_or_else(|| "–".to_owned(), |p| format!("{p:.3}"));
        let _ = writeln!(
            text,
            "  {:<30} {:>6} {:>6} {}  {interval:<14} {p:>5}",
            clip(&printable(&name), 30),
            number(delta.before),
            number(delta.after),
            change(delta, style),
        );
    }
    for (word, pick) in [
        ("worse", worsened as fn(&Delta) -> &[String]),
        ("better", improved as fn(&Delta) -> &[String]),
    ] {
        for delta in comparison.deltas.iter().filter(|delta| !pick(delta).is_empty()) {
            let items = pick(delta);
            let mut names = items.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
            if items.len() > NAMED {
                let _ = write!(names, " and {} more", items.len() - NAMED);
            }
            wrapped(
                &mut text,
                "  ",
                &format!("{} {word} on {}: {names}", delta.metric, items.len()),
            );
        }
    }
    text.push_str("  p: paired test over the items, Holm-corrected over these metrics\n");
    text
}

fn worsened(delta: &Delta) -> &[String] {
    &delta.worsened
}

fn improved(delta: &Delta) -> &[String] {
    &delta.improved
}

/// Reference scores.
pub fn baseline(baseline: &Baseline) -> String {
    let head = format!(
        "{} · {} on {} {} ({} items)",
        baseline.evaluation,
        baseline.name,
        baseline.dataset.id,
        baseline.dataset.version,
        baseline.items.len()
    );
    let mut text = format!("{}\n", clip(&printable(&head), WIDTH));
    for metric in &baseline.metrics {
        let id = clip(&printable(&metric.id), 24).into_owned();
        let _ = writeln!(text, "  {id:<24} {:>7}  n = {}", number(metric.value), metric.n);
    }
    text
}

fn wrapped(text: &mut String, indent: &str, line: &str) {
    for (count, part) in wrap(line, WIDTH - indent.len() - 2).into_iter().enumerate() {
        let more = if count == 0 { "" } else { "  " };
        let _ = writeln!(text, "{indent}{more}{part}");
    }
}

/// Breaks a line at spaces; a word longer than the width stands alone, clipped.
fn wrap(line: &str, width: usize) -> Vec<String> {
    let line = printable(line);
    let mut lines: Vec<String> = Vec::new();
    for word in line.split(' ').filter(|word| !word.is_empty()) {
        let word = clip(word, width);
        match lines.last_mut() {
            Some(last) if last.chars().count() + 1 + word.chars().count() <= width => {
                last.push(' ');
                last.push_str(&word);
            }
            _ => lines.push(word.into_owned()),
        }
    }
    lines
}
