//! Output for a terminal: [`summary()`] is what a check prints, [`check`] has every number of every entry in
//! tables, and [`items`] shows single items.

pub mod items;
mod summary;

use std::fmt::Write as _;

use karat_core::baseline::Baseline;
use karat_core::leaderboard::Leaderboard;
use karat_core::report::{CheckReport, Comparison, Delta, Gate, Property, Report, Slice, Verdict};
use karat_io::text::{clip, columns, first_few, printable};
use karat_metrics::{MetricId, metric};
use owo_colors::{OwoColorize as _, Style as Paint};

use crate::format::{self, Direction, count, moved, range, rank, verdict_name};
use crate::{findings, select};

pub use summary::summary;

/// The most items that a list names.
const NAMED: usize = 6;
/// The most pairs of detectors.
const PAIRS: usize = 6;
/// The most pairs of confused tools.
const CONFUSIONS: usize = 10;
/// The most kinds or servers of a ranking.
const SLICES: usize = 6;
/// The most columns of the reason of a failed case.
const REASON: usize = 300;

/// The appearance of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Set to use colours.
    pub colors: bool,
    /// The columns of a line, from `NARROWEST` to `WIDEST`.
    pub width: usize,
}

/// The fewest columns that output is made for.
pub(crate) const NARROWEST: usize = 60;
/// The most columns that output uses.
pub(crate) const WIDEST: usize = 200;

impl Default for Style {
    fn default() -> Style {
        Style { colors: false, width: 80 }
    }
}

impl Style {
    /// Plain or coloured output for a terminal with this many columns.
    pub fn new(colors: bool, columns: usize) -> Style {
        Style { colors, width: columns.clamp(NARROWEST, WIDEST) }
    }

    fn paint(self, text: &str, paint: Paint) -> String {
        if self.colors { text.style(paint).to_string() } else { text.to_owned() }
    }

    /// Paints text in the colour of a verdict.
    fn verdict(self, verdict: Verdict, text: &str) -> String {
        let paint = match verdict {
            Verdict::Pass => Paint::new().green(),
            Verdict::Inconclusive => Paint::new().yellow(),
            Verdict::Fail => Paint::new().red().bold(),
        };
        self.paint(text, paint)
    }

    fn strong(self, text: &str) -> String {
        self.paint(text, Paint::new().bold())
    }

    fn faint(self, text: &str) -> String {
        self.paint(text, Paint::new().dimmed())
    }
}

/// A check: its reports, what could not be measured, and the verdict.
pub fn check(check: &CheckReport, style: Style) -> String {
    let mut text = String::new();
    for report in &check.reports {
        one(&mut text, report, style);
    }
    text.push_str(&conclusion(check, style));
    text
}

/// Everything of a check that comes after its reports.
pub fn conclusion(check: &CheckReport, style: Style) -> String {
    let mut text = String::new();
    for table in &check.leaderboards {
        text.push_str(&leaderboard(table, style));
        text.push('\n');
    }
    for entry in &check.not_measured {
        let head = format!("{} · {}: not measured", entry.evaluation, entry.name);
        let _ = writeln!(text, "{}", style.strong(&clip(&printable(&head), style.width)));
        wrapped(style, &mut text, "  ", &entry.reason);
        text.push('\n');
    }
    let verdict = match check.verdict {
        None if check.not_measured.is_empty() => verdict_name(check).to_owned(),
        verdict => style.verdict(verdict.unwrap_or(Verdict::Fail), verdict_name(check)),
    };
    let _ = writeln!(text, "{verdict}: {}", format::summary(check));
    text
}

/// Several systems on the same data.
pub fn leaderboard(table: &Leaderboard, style: Style) -> String {
    let Leaderboard { rows, pairs, .. } = table;
    let mut text = String::new();
    let head = format!("leaderboard · {}", format::leaderboard_title(table));
    let size = format!("({})", count(rows.len(), "system"));
    let _ = writeln!(text, "{} {}", style.strong(&name(&head, 60)), style.faint(&size));
    let head = format!("  {:<42} {:>7}  {:<13} {:>5}  rank", "system", "value", "95 % range", "n");
    let _ = writeln!(text, "{}", style.faint(&head));
    let names: Vec<&str> = rows.iter().map(|row| row.shown()).collect();
    for row in rows {
        let range = range(row.interval.as_ref(), "–");
        let system = distinct(row.shown(), &names, 42);
        let (value, ranks) = (number(Some(row.value)), rank(row.ranks));
        let _ = writeln!(text, "  {system:<42} {value:>7}  {range:<13} {:>5}  {ranks}", row.n);
    }
    wrapped(style, &mut text, "  ", &format::real_differences(pairs));
    let (shown, more) = format::shown_pairs(pairs);
    if !shown.is_empty() {
        let head =
            format!("  {:<44} {:>7}  {:<15} {:>8}", "pair", "change", "95 % range", "p (Holm)");
        let _ = writeln!(text, "{}", style.faint(&head));
    }
    for pair in shown {
        let sign = if pair.real { ">" } else { "≈" };
        let pair_names = [&pair.better, &pair.worse].map(|name| table.label(name));
        let [better, worse] = pair_names.map(|system| distinct(system, &names, 20));
        let names = format!("{better} {sign} {worse}");
        let (delta, range) = (number(pair.delta), range(pair.interval.as_ref(), "–"));
        let _ = writeln!(
            text,
            "  {names:<44} {delta:>7}  {range:<15} {:>8}",
            format::optional_p(pair.p_holm)
        );
    }
    if more > 0 {
        wrapped(style, &mut text, "  ", &format!("and {} in the report", count(more, "more pair")));
    }
    text
}

/// A name in a column, cut so that it differs from the others: at its end, else in the middle, else at its
/// start.
fn distinct(own: &str, others: &[&str], columns: usize) -> String {
    let own = printable(own);
    let short = clip(&own, columns).into_owned();
    let others: Vec<_> =
        others.iter().map(|other| printable(other)).filter(|other| *other != own).collect();
    let same: Vec<&str> =
        others.iter().map(|other| &**other).filter(|other| clip(other, columns) == short).collect();
    if same.is_empty() {
        return short;
    }
    let middle = |text: &str, tail: usize| {
        let from = text.chars().count().saturating_sub(tail);
        let end: String = text.chars().skip(from).collect();
        format!("{}{end}", clip(text, columns - tail))
    };
    let cuts = columns / 3..columns.saturating_sub(2);
    for tail in cuts {
        let cut = middle(&own, tail);
        if same.iter().all(|other| middle(other, tail) != cut) {
            return cut;
        }
    }
    let common = |other: &&str| own.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    let shared = same.iter().map(common).min().unwrap_or_default();
    let rest: String = own.chars().skip(shared).collect();
    format!("…{}", clip(&rest, columns - 1))
}

/// One report.
pub fn scores(report: &Report, style: Style) -> String {
    let mut text = String::new();
    one(&mut text, report, style);
    text
}

fn one(text: &mut String, report: &Report, style: Style) {
    // The name of the entry is what commands take.
    let entry = match report.label() == report.name {
        true => String::new(),
        false => format!(" (entry {})", report.name),
    };
    let head = format!(
        "{} · {}{entry} on {} {}",
        report.evaluation,
        report.label(),
        report.dataset.id,
        report.dataset.version
    );
    let size =
        format!("({}, {})", count(report.items.len(), "item"), count(report.runs as usize, "run"));
    let _ = writeln!(
        text,
        "{} {}",
        style.strong(&clip(&printable(&head), style.width - size.len() - 1)),
        style.faint(&size)
    );
    metrics(text, report, style);
    rankings(text, report, style);
    detectors(text, report, style);
    confusions(text, report, style);
    if let Some(latency) = &report.environment.latency_ms {
        let line = format!(
            "  latency in ms: p50 {:.2}, p90 {:.2}, p99 {:.2}, max {:.2}",
            latency.p50, latency.p90, latency.p99, latency.max
        );
        let _ = writeln!(text, "{}", style.faint(&line));
    }
    failed_cases(text, report, style);
    if !report.controls.is_empty() {
        let state = |ok| if ok { "ok" } else { "NOT OK" };
        let states: Vec<String> = report
            .controls
            .iter()
            .map(|control| format!("{} {}", control.name, state(control.ok)))
            .collect();
        wrapped(style, text, "  ", &format!("controls: {}", states.join(", ")));
    }
    for warning in &report.warnings {
        wrapped(style, text, "  ", &format!("note: {warning}"));
    }
    if let Some(gate) = &report.gate {
        gated(text, gate, style);
    }
    text.push('\n');
}

/// The cases that did not pass, with the reason.
fn failed_cases(text: &mut String, report: &Report, style: Style) {
    let (cases, more) = findings::failed_cases(report);
    for case in cases {
        let reason = clip(&case.reason, REASON);
        wrapped(style, text, "  ", &format!("failed: {}: {reason}", case.id));
    }
    if more > 0 {
        let line = format!("  and {} in the report", count(more, "more failed case"));
        let _ = writeln!(text, "{}", style.faint(&line));
    }
}

fn metrics(text: &mut String, report: &Report, style: Style) {
    let ranges: Vec<String> =
        report.metrics.iter().map(|metric| range(metric.interval.as_ref(), "–")).collect();
    // Ranges with a minus are wider than the column usually is.
    let wide = ranges.iter().map(|range| range.chars().count()).max().unwrap_or(0).max(11);
    let head = format!(
        "  {:<29} {:>7}  {:<wide$} {:>6} {:>8} {:>8}",
        "metric", "value", "95 % range", "n", "baseline", "change"
    );
    let _ = writeln!(text, "{}", style.faint(head.trim_end()));
    let rows = report.metrics.iter().zip(ranges);
    for (metric, range) in rows.filter(|(metric, _)| metric.value.is_some()) {
        let delta = select::delta(report, &metric.id);
        let line = format!(
            "  {:<29} {:>7}  {:<wide$} {:>6} {:>8} ",
            name(&metric.id, 29),
            number(metric.value),
            range,
            metric.n,
            delta.map_or_else(String::new, |delta| number(delta.before)),
        );
        let change = delta.map_or_else(String::new, |delta| change(delta, style));
        let _ = writeln!(text, "{}", format!("{line}{change}").trim_end());
    }
    let undefined: Vec<&str> = report
        .metrics
        .iter()
        .filter(|metric| metric.value.is_none())
        .map(|metric| metric.id.as_str())
        .collect();
    // Each with a line of its own would bury the numbers that there are.
    match undefined.as_slice() {
        [] => {}
        [only] => {
            let reason = report.metric(only).and_then(|metric| metric.undefined.as_deref());
            let reason = reason.unwrap_or("no reason given");
            wrapped(style, text, "  ", &format!("undefined here: {only} ({reason})"));
        }
        several => {
            let line =
                format!("undefined here: {}; `karat metrics ID` says when", several.join(", "));
            wrapped(style, text, "  ", &line);
        }
    }
}

/// A ranking by the kinds of its queries, and its worst servers.
fn rankings(text: &mut String, report: &Report, style: Style) {
    let columns = under_their_ids(&select::RANKING_COLUMNS);
    for (title, slices) in select::rankings(report) {
        let named = slices.iter().take(SLICES).map(|slice| (slice.value.as_str(), *slice));
        let named: Vec<(&str, &Slice)> = named.collect();
        table(text, (title, 24), &columns, &named, style);
        if slices.len() > SLICES {
            let line = format!("  and {} more in the report", slices.len() - SLICES);
            let _ = writeln!(text, "{}", style.faint(&line));
        }
    }
}

/// The tools that were called in place of others, most frequent first.
fn confusions(text: &mut String, report: &Report, style: Style) {
    let pairs = select::slices(report, Property::Confusion);
    if pairs.is_empty() {
        return;
    }
    let head = format!("  {:<30} {:<30} {:>5} {:>7}", "called", "instead of", "times", "of");
    let _ = writeln!(text, "{}", style.faint(&head));
    for slice in pairs.iter().take(CONFUSIONS) {
        let pair = slice.value.split_once(" instead of ").unwrap_or((&slice.value, ""));
        let (called, expected) = (name(pair.0, 30), name(pair.1, 30));
        let count = slice.metrics.first().and_then(|metric| metric.count);
        let (times, of) = count.map_or((0, 0), |count| (count.hits, count.of));
        let _ = writeln!(text, "  {called:<30} {expected:<30} {times:>5} {of:>7}");
    }
    if pairs.len() > CONFUSIONS {
        let line = format!("  and {}", count(pairs.len() - CONFUSIONS, "more pair"));
        let _ = writeln!(text, "{}", style.faint(&line));
    }
}

/// Detectors side by side, then all together by tier and by category: attacks caught, and false
/// alarms.
fn detectors(text: &mut String, report: &Report, style: Style) {
    let rates = under_their_ids(&select::DETECTOR_COLUMNS);
    let named = |by| -> Vec<(&str, &Slice)> {
        let slices = select::slices(report, by).into_iter();
        slices.map(|slice| (slice.value.as_str(), slice)).collect()
    };
    let detectors = named(Property::Detector);
    let Some((all, _)) = detectors.first() else { return };
    if detectors.len() > 1 {
        table(text, ("detector", 24), &rates, &detectors, style);
    }
    let added = select::ADDED_COLUMNS.iter().zip(["attacks", "hard", "benign"]);
    let alone: Vec<(&MetricId, &str)> = added.collect();
    table(text, ("unique catches", 32), &alone, &named(Property::Adds), style);
    agreement(text, report, style);
    table(text, ("by severity", 24), &rates, &named(Property::Tier), style);
    let categories: Vec<(&str, &Slice)> = named(Property::DetectorCategory)
        .into_iter()
        .filter_map(|(name, slice)| Some((name.strip_prefix(all)?.strip_prefix('/')?, slice)))
        .collect();
    table(text, ("by category", 24), &rates, &categories, style);
}

/// Columns whose heading is the id of their metric.
fn under_their_ids(ids: &[MetricId]) -> Vec<(&MetricId, &str)> {
    ids.iter().map(|id| (id, id.as_str())).collect()
}

/// Slices with some of their metrics; a metric is given by its id and its heading.
fn table(
    text: &mut String,
    (title, width): (&str, usize),
    columns: &[(&MetricId, &str)],
    rows: &[(&str, &Slice)],
    style: Style,
) {
    if rows.is_empty() {
        return;
    }
    let head: Vec<String> = columns.iter().map(|(_, heading)| format!("{heading:>9}")).collect();
    let _ = writeln!(text, "{}", style.faint(&format!("  {title:<width$} {}", head.join(" "))));
    for (value, slice) in rows {
        let cells: Vec<String> = columns.iter().map(|(id, _)| cell(slice, id)).collect();
        let _ = writeln!(text, "  {:<width$} {}", name(value, width), cells.join(" "));
    }
}

/// The pairs of detectors that flag the same, most alike first.
fn agreement(text: &mut String, report: &Report, style: Style) {
    let mut pairs = select::slices(report, Property::Agreement);
    if pairs.is_empty() {
        return;
    }
    let jaccard = |slice: &Slice| {
        let found = select::metric(&slice.metrics, &metric!("jaccard"));
        found.and_then(|metric| metric.value).unwrap_or(-1.0)
    };
    pairs.sort_by(|one, other| jaccard(other).total_cmp(&jaccard(one)));
    let [kappa, jaccard] = &select::AGREEMENT_COLUMNS;
    let head =
        format!("  {:<46} {kappa:>9} {jaccard:>9} {:>6}", "agreement, most alike first", "n");
    let _ = writeln!(text, "{}", style.faint(&head));
    for slice in pairs.iter().take(PAIRS) {
        let n = slice.metrics.first().map_or(0, |metric| metric.n);
        let cells = [kappa, jaccard].map(|id| cell(slice, id)).join(" ");
        let _ = writeln!(text, "  {:<46} {cells} {n:>6}", name(&slice.value, 46));
    }
    if pairs.len() > PAIRS {
        let line = format!("  and {} with less agreement", count(pairs.len() - PAIRS, "pair"));
        let _ = writeln!(text, "{}", style.faint(&line));
    }
}

/// A name from outside for a column.
fn name(text: &str, width: usize) -> String {
    clip(&printable(text), width).into_owned()
}

/// A metric of a slice.
fn cell(slice: &Slice, id: &MetricId) -> String {
    let found = select::metric(&slice.metrics, id);
    format!("{:>9}", found.map_or_else(|| format::NONE.to_owned(), |metric| number(metric.value)))
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "null".to_owned(), format::number)
}

fn change(delta: &Delta, style: Style) -> String {
    let Some(amount) = delta.delta else { return "null".to_owned() };
    let paint = match Direction::of(amount, delta.better) {
        Direction::Same => return format!("{:>8}", "0"),
        Direction::Better => Paint::new().green(),
        Direction::Worse => Paint::new().red(),
    };
    style.paint(&format!("{amount:>+8.4}"), paint)
}

fn gated(text: &mut String, gate: &Gate, style: Style) {
    for check in &gate.checks {
        if check.rule == "control" && check.verdict == Verdict::Pass {
            continue; // Controls have a line of their own.
        }
        let limit = check.threshold.map(|limit| format!(" {limit}")).unwrap_or_default();
        let place = check.slice.as_ref().map(|slice| format!(", {slice}")).unwrap_or_default();
        let line = format!("{} ({}{limit}{place})", check.reason, check.rule);
        let verdict = style.verdict(check.verdict, &format!("{:<12}", check.verdict.name()));
        let _ = writeln!(
            text,
            "  {verdict}  {}",
            wrap(&line, style.width - 16).join("\n                ")
        );
    }
}

/// A comparison.
pub fn comparison(comparison: &Comparison, style: Style) -> String {
    let mut text = String::new();
    let head = format!(
        "  {:<30} {:>6} {:>6} {:>8}  {:<14} {:>8}",
        "metric", "before", "after", "change", "95 % range", "p (Holm)"
    );
    let _ = writeln!(text, "{}", style.faint(&head));
    let title = |delta: &Delta| match &delta.slice {
        Some(slice) => format!("{} {slice}", delta.metric),
        None => delta.metric.to_string(),
    };
    for delta in &comparison.deltas {
        let interval = delta.interval.as_ref().map_or_else(
            || format::NONE.to_owned(),
            |interval| format!("{:+.3}..{:+.3}", interval.low, interval.high),
        );
        let p = format::optional_p(delta.p_holm);
        let _ = writeln!(
            text,
            "  {:<30} {:>6} {:>6} {}  {interval:<14} {p:>8}",
            name(&title(delta), 30),
            number(delta.before),
            number(delta.after),
            change(delta, style),
        );
    }
    for side in [0, 1] {
        for delta in &comparison.deltas {
            let (direction, items) = moved(delta)[side];
            if !items.is_empty() {
                let (id, total) = (title(delta), items.len());
                let names = first_few(items, NAMED);
                wrapped(
                    style,
                    &mut text,
                    "  ",
                    &format!("{id} {} on {total}: {names}", direction.name()),
                );
            }
        }
    }
    for line in format::without_interval(&comparison.deltas) {
        wrapped(style, &mut text, "  ", &line);
    }
    for line in comparison.data.iter().flat_map(|data| data.lines(NAMED)) {
        wrapped(style, &mut text, "  ", &line);
    }
    if let Some(line) = format::not_compared(comparison) {
        wrapped(style, &mut text, "  ", &line);
    }
    wrapped(
        style,
        &mut text,
        "  ",
        "p (Holm): paired test over the items, corrected over these metrics; intervals are not corrected",
    );
    text
}

/// Reference scores.
pub fn baseline(baseline: &Baseline) -> String {
    let head = format!(
        "{} · {} on {} {} ({})",
        baseline.evaluation,
        baseline.name,
        baseline.dataset.id,
        baseline.dataset.version,
        count(baseline.items.len(), "item")
    );
    let mut text = format!("{}\n", name(&head, WIDEST));
    for metric in &baseline.metrics {
        let id = name(&metric.id, 24);
        let _ = writeln!(text, "  {id:<24} {:>7}  n = {}", number(metric.value), metric.n);
    }
    text
}

/// Adds a line, escaped, and broken at spaces where it is too long.
pub fn wrapped(style: Style, text: &mut String, indent: &str, line: &str) {
    for (count, part) in wrap(line, style.width - indent.len() - 2).into_iter().enumerate() {
        let more = if count == 0 { "" } else { "  " };
        let _ = writeln!(text, "{indent}{more}{part}");
    }
}

/// Breaks a line at spaces; a word longer than the width is alone on its line, clipped.
fn wrap(line: &str, width: usize) -> Vec<String> {
    let line = printable(line);
    let mut lines: Vec<String> = Vec::new();
    for word in line.split(' ').filter(|word| !word.is_empty()) {
        let word = clip(word, width);
        match lines.last_mut() {
            Some(last) if columns(last) + 1 + columns(&word) <= width => {
                last.push(' ');
                last.push_str(&word);
            }
            _ => lines.push(word.into_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_look_the_same_are_cut_where_they_differ() {
        let names =
            ["gpt-4o-2024-05-13-tool_filter", "gpt-4o-2024-05-13-transformers_pi_detector", "o3"];
        let shown = names.map(|name| distinct(name, &names, 20));
        assert_eq!(shown, ["gpt-4o-2024-0…filter", "gpt-4o-2024-0…tector", "o3"]);
        // Others that are cut do not matter, and a difference in the middle is shown too.
        assert_eq!(distinct(names[0], &[names[0], "o3"], 20), "gpt-4o-2024-05-13-t…");
        let long = ["a", "b"].map(|letter| format!("{0}{letter}{0}", "x".repeat(40)));
        let long = [long[0].as_str(), long[1].as_str()];
        let shown = long.map(|name| distinct(name, &long, 20));
        assert_eq!(shown, ["…axxxxxxxxxxxxxxxxx…", "…bxxxxxxxxxxxxxxxxx…"]);
    }
}
