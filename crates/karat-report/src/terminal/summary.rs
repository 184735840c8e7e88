//! The default output of a check: one line for each entry, then what failed, complete, then one line that
//! names it. What passed takes no more room than it needs, and what failed is next to the prompt.

use std::fmt::Write as _;

use karat_core::report::{
    Check, CheckReport, Delta, Kind, Measured, NotMeasured, Report, Source, Verdict,
};
use karat_io::text::{clip, columns, padded, printable};
use karat_metrics::metric;
use owo_colors::Style as Paint;

use super::items;
use super::{Style, wrap};
use crate::format::{self, Direction, count};
use crate::{findings, select};

/// The most lines of a check in which something failed: a screen.
const LINES: usize = 40;
/// The most lines of a reason.
const REASON_LINES: usize = 5;
/// The longest name of an entry.
const NAME: usize = 24;

/// The room for what went wrong. The first of [`ROOMS`] that fits a screen is taken.
#[derive(Clone, Copy)]
struct Room {
    /// The most rules of an entry; with 0 an entry is explained in one line.
    rules: usize,
    /// The most items of an entry.
    items: usize,
    /// The most entries that are explained; the others are named.
    explained: usize,
    /// True if entries that passed are counted and not listed.
    folded: bool,
    /// The most entries with a line of their own, measured or not.
    listed: usize,
}

const ROOMS: [Room; 7] = [
    Room { rules: 8, items: 5, explained: 4, folded: false, listed: usize::MAX },
    Room { rules: 4, items: 3, explained: 4, folded: false, listed: usize::MAX },
    Room { rules: 2, items: 1, explained: 4, folded: false, listed: usize::MAX },
    Room { rules: 0, items: 0, explained: 8, folded: false, listed: usize::MAX },
    Room { rules: 0, items: 0, explained: 8, folded: true, listed: usize::MAX },
    Room { rules: 0, items: 0, explained: 3, folded: true, listed: usize::MAX },
    Room { rules: 0, items: 0, explained: 2, folded: true, listed: 8 },
];

/// The state of an entry, in the order in which entries are shown: what needs attention comes last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Pass,
    NoGate,
    Inconclusive,
    Fail,
    NotMeasured,
}

impl State {
    fn of(report: &Report) -> State {
        match report.gate.as_ref().map(|gate| gate.verdict) {
            None => State::NoGate,
            Some(Verdict::Pass) => State::Pass,
            Some(Verdict::Inconclusive) => State::Inconclusive,
            Some(Verdict::Fail) => State::Fail,
        }
    }

    fn mark(self, style: Style) -> String {
        let (mark, paint) = match self {
            State::Pass => ("✓", Paint::new().green()),
            State::NoGate => ("·", Paint::new()),
            State::Inconclusive => ("?", Paint::new().yellow()),
            State::Fail => ("✗", Paint::new().red().bold()),
            State::NotMeasured => ("!", Paint::new().yellow().bold()),
        };
        style.paint(mark, paint)
    }
}

/// A check as people read it at a prompt. `written` are the files that hold the rest, the page first.
pub fn summary(check: &CheckReport, written: &[String], style: Style) -> String {
    let mut reports: Vec<&Report> = check.reports.iter().collect();
    reports.sort_by_key(|report| State::of(report));
    let worst = reports.last().map(|report| State::of(report));
    let is_troubled = worst >= Some(State::Inconclusive) || !check.not_measured.is_empty();
    let mut text = String::new();
    for room in ROOMS {
        text = in_room(check, &reports, written, room, style);
        if !is_troubled || text.lines().count() <= LINES {
            break;
        }
    }
    text
}

fn in_room(
    check: &CheckReport,
    reports: &[&Report],
    written: &[String],
    room: Room,
    style: Style,
) -> String {
    let mut text = String::new();
    head(&mut text, check, style);
    let fine = reports.iter().take_while(|report| State::of(report) < State::Inconclusive).count();
    let folded = if room.folded && fine > 2 { fine } else { 0 };
    if folded > 0 {
        let line = format!("{} without a failure", count(folded, "entry"));
        let _ = writeln!(text, "  {} {line}", State::Pass.mark(style));
    }
    let (listed, lost) = (&reports[folded..], &check.not_measured[..]);
    let shown = (listed.len().min(room.listed), lost.len().min(room.listed));
    lines(&mut text, &listed[..shown.0], &lost[..shown.1], style);
    let left_out = listed.len() - shown.0 + lost.len() - shown.1;
    if left_out > 0 {
        let line = format!("and {} in the report", count(left_out, "more entry"));
        let _ = writeln!(text, "    {}", style.faint(&line));
    }
    for report in reports.iter().filter(|report| State::of(report) < State::Inconclusive) {
        changed_data(&mut text, report, style);
    }
    for table in &check.leaderboards {
        text.push('\n');
        text.push_str(&super::leaderboard(table, style));
    }
    let troubled = &reports[fine..];
    for report in troubled.iter().take(room.explained) {
        text.push('\n');
        match State::of(report) {
            State::Fail if room.rules == 0 => failed_in_a_line(&mut text, report, style),
            State::Fail => failed(&mut text, report, room, style),
            _ => undecided(&mut text, report, room.rules.max(1), style),
        }
    }
    if troubled.len() > room.explained {
        let more = count(troubled.len() - room.explained, "more entry");
        let _ = writeln!(text, "\n  and {more} in the report");
    }
    for entry in check.not_measured.iter().take(room.explained) {
        let head = format!("{} {}: not measured", entry.evaluation, entry.name);
        let head = clip(&printable(&head), style.width - 2).into_owned();
        let _ = writeln!(text, "\n{} {}", State::NotMeasured.mark(style), style.strong(&head));
        match room.rules {
            0 => _ = writeln!(text, "  {}", clip(&printable(&entry.reason), style.width - 2)),
            _ => paragraph(&mut text, &entry.reason, style),
        }
    }
    text.push('\n');
    for file in written.iter().skip(1) {
        let _ = writeln!(text, "{}", style.faint(&printable(&format!("report: {file}"))));
    }
    last(&mut text, check, reports, written.first().map(String::as_str), style);
    text
}

/// The project, where it was measured, and how long the entries took that were measured.
fn head(text: &mut String, check: &CheckReport, style: Style) {
    let mut parts = Vec::new();
    if let Some(Source { project, branch, commit, .. }) = &check.source {
        parts.extend(project.clone());
        let short = |commit: &String| {
            let (hash, changes) = commit.split_once('+').unwrap_or((commit, ""));
            let hash: String = hash.chars().take(7).collect();
            if changes.is_empty() { hash } else { format!("{hash}+{changes}") }
        };
        let place: Vec<String> =
            branch.clone().into_iter().chain(commit.as_ref().map(short)).collect();
        if !place.is_empty() {
            parts.push(place.join(" "));
        }
    }
    parts.push(count(check.reports.len() + check.not_measured.len(), "entry"));
    let ms: u64 = check.reports.iter().map(|report| report.environment.duration_ms).sum();
    if ms > 0 {
        let time = format!("{:.1} s", ms as f64 / 1000.0);
        // An entry that was not measured has no environment, and so no time.
        parts.push(match check.not_measured.is_empty() {
            true => time,
            false => format!("{} measured in {time}", check.reports.len()),
        });
    }
    let line = parts.join(" · ");
    let _ = writeln!(text, "{}\n", style.faint(&clip(&printable(&line), style.width)));
}

/// One line for each entry.
fn lines(text: &mut String, reports: &[&Report], lost: &[NotMeasured], style: Style) {
    let all: Vec<String> = reports.iter().map(|report| report.label().into_owned()).collect();
    let all: Vec<&str> =
        all.iter().map(String::as_str).chain(lost.iter().map(|one| one.name.as_str())).collect();
    let name = |name: &str| super::distinct(name, &all, NAME);
    let width = |of: &dyn Fn(&str, &str) -> usize| {
        let evaluations = reports.iter().map(|one| one.evaluation.name());
        let evaluations = evaluations.chain(lost.iter().map(|one| one.evaluation.name()));
        evaluations.zip(&all).map(|(evaluation, name)| of(evaluation, name)).max().unwrap_or(0)
    };
    let kinds = width(&|evaluation, _| evaluation.chars().count());
    let names = width(&|_, given| columns(&name(given)));
    let sizes: Vec<String> = reports.iter().map(|report| size(report)).collect();
    let wide = sizes.iter().map(|size| size.chars().count()).max().unwrap_or(0);
    for (report, size) in reports.iter().zip(&sizes) {
        let own = padded(&name(&report.label()), names);
        let start = format!("{:<kinds$}  {own}  {size:<wide$}", report.evaluation);
        let used = 4 + columns(&start) + 2;
        let rest = cells(report, style.width.saturating_sub(used), style);
        let line = format!("  {} {start}  {rest}", State::of(report).mark(style));
        let _ = writeln!(text, "{}", line.trim_end());
    }
    for entry in lost {
        let own = padded(&name(&entry.name), names);
        let start = format!("{:<kinds$}  {own}  ", entry.evaluation);
        let mark = State::NotMeasured.mark(style);
        let _ = writeln!(text, "  {mark} {start}{}", style.strong("not measured"));
    }
}

/// The number of items, in the words of the evaluation.
fn size(report: &Report) -> String {
    let noun = noun(&report.kind);
    count_grouped(report.items.len(), noun)
}

/// The word for one item.
pub(super) fn noun(kind: &Kind) -> &'static str {
    match kind {
        Kind::Ranking => "query",
        Kind::Verdicts => "text",
        Kind::Suite => "case",
        Kind::Attack => "attack",
        Kind::Fuzz => "tool",
        Kind::Traces => "trace",
        Kind::Resilience => "run",
        _ => "item",
    }
}

fn count_grouped(n: usize, noun: &str) -> String {
    let words = count(n, noun);
    let (number, rest) = words.split_once(' ').unwrap_or((&words, ""));
    format!("{} {rest}", grouped(number))
}

/// `2181` as `2,181`.
fn grouped(number: &str) -> String {
    let mut text = String::new();
    for (n, digit) in number.chars().enumerate() {
        if n > 0 && (number.len() - n).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A metric of an entry's line.
#[derive(Default)]
struct Cell {
    label: String,
    value: String,
    interval: String,
    change: Option<(String, Paint)>,
    /// The part of the items that it is about, such as `split=test`.
    slice: Option<String>,
}

/// As much about an entry as fits: intervals go first, then all but one metric.
fn cells(report: &Report, room: usize, style: Style) -> String {
    let mut cells = gated_cells(report);
    let notes = match report.warnings.len() {
        0 => String::new(),
        n => format!("({})", count(n, "note")),
    };
    let plain = Style { colors: false, ..style };
    // A slice that all cells share is named once, behind them.
    let shared = match cells.split_first() {
        Some((first, others)) if others.iter().all(|cell| cell.slice == first.slice) => {
            first.slice.clone()
        }
        _ => None,
    };
    if shared.is_some() {
        cells.iter_mut().for_each(|cell| cell.slice = None);
    }
    loop {
        for (intervals, with_notes) in [(true, true), (true, false), (false, true), (false, false)]
        {
            let shown = |style: Style| {
                let mut parts: Vec<String> =
                    cells.iter().map(|cell| cell.text(intervals, style)).collect();
                if let Some(slice) = &shared {
                    parts.push(style.faint(&format!("on {}", printable(slice))));
                }
                if with_notes && !notes.is_empty() {
                    parts.push(style.faint(&notes));
                }
                parts.join("  ")
            };
            if columns(&shown(plain)) <= room {
                return shown(style);
            }
        }
        if cells.pop().is_none() {
            return String::new();
        }
    }
}

impl Cell {
    fn text(&self, with_interval: bool, style: Style) -> String {
        let mut text = match self.label.as_str() {
            "" => self.value.clone(),
            label => format!("{label} {}", self.value),
        };
        if let Some(slice) = &self.slice {
            text.push_str(&style.faint(&format!(" ({})", printable(slice))));
        }
        if with_interval && !self.interval.is_empty() {
            text.push_str(&style.faint(&format!(" {}", self.interval)));
        }
        if let Some((change, paint)) = &self.change {
            text.push(' ');
            text.push_str(&style.paint(change, *paint));
        }
        text
    }
}

/// The metrics that the gate is about, what failed first; without a gate, the headline.
fn gated_cells(report: &Report) -> Vec<Cell> {
    let mut cells = Vec::new();
    if report.kind == Kind::Suite
        && let Some(passed) = report.metric(&metric!("pass_rate")).and_then(format::ratio)
    {
        let value = format!("{passed} pass");
        cells.push(Cell { value, ..Cell::default() });
        if let Some(latency) = &report.environment.latency_ms {
            let value = format!("{:.1} ms, p99 {:.1} ms", latency.p50, latency.p99);
            cells.push(Cell { label: "p50".to_owned(), value, ..Cell::default() });
        }
        return cells;
    }
    let mut checks: Vec<&Check> = report.gate.iter().flat_map(|gate| &gate.checks).collect();
    checks.sort_by_key(|check| (std::cmp::Reverse(check.verdict), select::place(&check.metric)));
    let mut seen: Vec<(&str, Option<&str>)> = Vec::new();
    for check in checks {
        let key = (check.metric.as_str(), check.slice.as_deref());
        let Some(measured) = select::measured(report, key.0, key.1) else { continue };
        // One value for one metric: a rule over a slice of its own is shown where it fails.
        if seen.iter().any(|(metric, _)| *metric == key.0) {
            continue;
        }
        seen.push(key);
        cells.push(cell(report, measured, key.1));
    }
    if cells.is_empty() {
        let defined = report.metrics.iter().filter(|metric| metric.value.is_some());
        cells.extend(defined.take(2).map(|metric| cell(report, metric, None)));
    }
    cells.truncate(3);
    cells
}

fn cell(report: &Report, measured: &Measured, slice: Option<&str>) -> Cell {
    let delta = select::delta_over(report, &measured.id, slice);
    let interval = measured
        .interval
        .as_ref()
        .map(|interval| format!("[{}–{}]", short(interval.low, 2), short(interval.high, 2)));
    Cell {
        label: measured.id.to_string(),
        value: measured.value.map_or_else(|| "undefined".to_owned(), |value| short(value, 3)),
        interval: interval.unwrap_or_default(),
        change: delta.and_then(change),
        slice: slice.map(str::to_owned),
    }
}

/// The direction and size of a change. It has a colour only where chance is ruled out.
fn change(delta: &Delta) -> Option<(String, Paint)> {
    let amount = delta.delta?;
    let size = short(amount.abs(), 3);
    let direction = Direction::of(amount, delta.better);
    if direction == Direction::Same || size.bytes().all(|byte| matches!(byte, b'0' | b'.')) {
        return Some(("=".to_owned(), Paint::new().dimmed()));
    }
    let mark = if amount > 0.0 { "▲" } else { "▼" };
    let paint = match direction {
        _ if !format::is_significant(delta) => Paint::new().dimmed(),
        Direction::Worse => Paint::new().red(),
        _ => Paint::new().green(),
    };
    Some((format!("{mark} {size}"), paint))
}

/// A number with few decimals, fewer for large ones.
pub(super) fn short(value: f64, decimals: usize) -> String {
    match value.abs() {
        size if size < 10.0 => format::minus(format!("{value:.decimals$}")),
        _ => format::number(value),
    }
}

/// A failed entry: its rules, its worst items, what changed, and what to do.
fn failed(text: &mut String, report: &Report, room: Room, style: Style) {
    let broken: Vec<&Check> = select::checks(report, Verdict::Fail).collect();
    let slice = common_slice(&broken);
    failed_head(text, report, &broken, slice, style);
    let (rows, others): (Vec<&Check>, Vec<&Check>) =
        broken.iter().partition(|check| check.threshold.is_some());
    let others = &others[..others.len().min(room.rules.saturating_sub(rows.len()).max(1))];
    let rows = &rows[..rows.len().min(room.rules)];
    rules(text, report, rows, slice, style);
    for check in others {
        paragraph(text, &format!("{} ({}): {}", check.metric, check.rule, check.reason), style);
    }
    let hidden = broken.len() - rows.len() - others.len();
    if hidden > 0 {
        let line = format!("and {}: -v lists all", count(hidden, "more rule"));
        let _ = writeln!(text, "  {}", style.faint(&line));
    }
    worst(text, report, &broken, room.items, style);
    what_changed(text, report, style);
    next(text, report, style);
}

/// A failed entry where there is no room for more than its first cause.
fn failed_in_a_line(text: &mut String, report: &Report, style: Style) {
    let broken: Vec<&Check> = select::checks(report, Verdict::Fail).collect();
    failed_head(text, report, &broken, common_slice(&broken), style);
    let line = format!("{} · {}", cause(report, Verdict::Fail), show(report));
    let _ = writeln!(text, "  {}", clip(&printable(&line), style.width - 2));
}

fn failed_head(
    text: &mut String,
    report: &Report,
    broken: &[&Check],
    slice: Option<&str>,
    style: Style,
) {
    let all: Vec<&Check> = report.gate.iter().flat_map(|gate| &gate.checks).collect();
    let ruled = all.iter().filter(|check| check.rule != "control").count();
    let place = slice.map(|slice| format!(", on {slice}")).unwrap_or_default();
    let head = format!(
        "{} {}: {} of {} failed{place}",
        report.evaluation,
        report.name,
        broken.len(),
        count(ruled.max(broken.len()), "rule"),
    );
    let head = clip(&printable(&head), style.width - 2).into_owned();
    let _ = writeln!(text, "{} {}", State::Fail.mark(style), style.strong(&head));
}

/// The slice that all failed rules are over.
fn common_slice<'a>(broken: &[&'a Check]) -> Option<&'a str> {
    let mut slices = broken.iter().filter(|check| check.threshold.is_some());
    let first = slices.next()?.slice.as_deref()?;
    slices.all(|check| check.slice.as_deref() == Some(first)).then_some(first)
}

/// Failed rules as rows: what was, what is, what was allowed.
fn rules(text: &mut String, report: &Report, rows: &[&Check], slice: Option<&str>, style: Style) {
    if rows.is_empty() {
        return;
    }
    let title = |check: &Check| match check.slice.as_deref() {
        own if own == slice => check.metric.clone(),
        Some(own) => format!("{} on {own}", check.metric),
        None => check.metric.clone(),
    };
    let limits: Vec<String> = rows.iter().map(|check| allowed(check)).collect();
    let limit = limits.iter().map(|limit| columns(limit)).max().unwrap_or(0).max(7);
    // Rule, value and change, with the space before each of them and before the limit.
    let most = style.width.saturating_sub(2 + 11 + 10 + 10 + 2 + limit).clamp(12, 36);
    let names: Vec<String> =
        rows.iter().map(|check| clip(&printable(&title(check)), most).into_owned()).collect();
    let wide = names.iter().map(|name| columns(name)).max().unwrap_or(0).max(6);
    let changes: Vec<(String, String)> =
        rows.iter().map(|check| difference(report, check)).collect();
    let ends = changes.iter().map(|(_, ends)| ends.chars().count()).max().unwrap_or(0);
    // Under 70 columns the interval goes first, then the baseline.
    let full = 2 + wide + 2 + 9 + 2 + 8 + 2 + 8 + 2 + 8 + 1 + ends + 2 + limit.max(8);
    let with_interval = ends > 0 && full <= style.width;
    let with_baseline = full - ends <= style.width;
    let ends = if with_interval { ends } else { 0 };
    let row = |cells: [&str; 7]| {
        let [name, rule, baseline, now, change, interval, allowed] = cells;
        let mut line = format!("  {}  {rule:<9}", padded(name, wide));
        if with_baseline {
            let _ = write!(line, "  {baseline:>8}");
        }
        let _ = write!(line, "  {now:>8}  {change:>8}");
        if with_interval {
            let _ = write!(line, " {interval:<ends$}");
        }
        let _ = write!(line, "  {allowed}");
        line.trim_end().to_owned()
    };
    let head = row(["rule", "", "baseline", "now", "change", "[95 %]", "allowed"]);
    let _ = writeln!(text, "{}", style.faint(&head));
    let named = rows.iter().zip(&names).zip(limits);
    for (((check, name), allowed), (amount, interval)) in named.zip(&changes) {
        let value =
            |value: Option<f64>| value.map_or_else(|| format::NONE.to_owned(), |v| short(v, 3));
        let (baseline, now) = (value(check.baseline), value(check.value));
        let rule = clip(&printable(&check.rule), 9).into_owned();
        let line = row([name, &rule, &baseline, &now, amount, interval, &allowed]);
        let _ = writeln!(text, "{line}");
    }
}

/// The limit of a rule.
fn allowed(check: &Check) -> String {
    let limit = check.threshold.unwrap_or_default();
    let text = match check.rule.as_str() {
        "min" => format!("≥ {limit}"),
        "max" => format!("≤ {limit}"),
        _ => format!("{limit}"),
    };
    clip(&text, 14).into_owned()
}

/// The change that a rule is about, and its interval.
fn difference(report: &Report, check: &Check) -> (String, String) {
    let Some(delta) = select::delta_over(report, &check.metric, check.slice.as_deref()) else {
        return (format::NONE.to_owned(), String::new());
    };
    let amount = delta.delta.map_or_else(|| format::NONE.to_owned(), signed);
    let ends = delta.interval.as_ref().filter(|interval| interval.method != "no_change");
    let ends = ends.map(|ends| format!("[{}, {}]", plus(ends.low, 2), plus(ends.high, 2)));
    (amount, ends.unwrap_or_default())
}

/// A number with its sign.
pub(super) fn plus(value: f64, decimals: usize) -> String {
    match short(value, decimals) {
        text if value > 0.0 && text.bytes().any(|byte| (b'1'..=b'9').contains(&byte)) => {
            format!("+{text}")
        }
        text => text,
    }
}

/// A change with its sign. One that three decimals would show as none keeps its first digit.
fn signed(amount: f64) -> String {
    let (mut decimals, mut least) = (3, 0.000_5);
    while amount != 0.0 && amount.abs() < least && decimals < 9 {
        (decimals, least) = (decimals + 1, least / 10.0);
    }
    plus(amount, decimals)
}

/// The items behind the failure, the worst first.
fn worst(text: &mut String, report: &Report, broken: &[&Check], most: usize, style: Style) {
    let (cases, more) = findings::failed_cases(report);
    if !cases.is_empty() {
        text.push('\n');
        for case in cases.iter().take(most) {
            paragraph(text, &format!("failed: {}: {}", case.id, case.reason), style);
        }
        let more = more + cases.len().saturating_sub(most);
        more_items(text, report, more, style);
        return;
    }
    let Some(check) = select::explaining(broken) else { return };
    let moved = items::worsened(report, &check.metric, &check.items);
    if moved.is_empty() {
        return;
    }
    let (items, metric) =
        (count_grouped(moved.len(), noun(&report.kind)), printable(&check.metric));
    let _ = match select::names_worsened(check) {
        true => {
            let delta = select::delta_over(report, &check.metric, check.slice.as_deref());
            let better = delta.map_or(0, |delta| delta.improved.len()).to_string();
            let better = grouped(&better);
            writeln!(text, "\n  {items} worse by {metric}, {better} better. Worst:")
        }
        false => writeln!(text, "\n  {items} behind {metric}:"),
    };
    for line in items::rows(&moved[..moved.len().min(most)], style.width - 4) {
        let _ = writeln!(text, "    {line}");
    }
    more_items(text, report, moved.len().saturating_sub(most), style);
}

fn more_items(text: &mut String, report: &Report, more: usize, style: Style) {
    if more > 0 {
        let line = format!("and {} more: {}", grouped(&more.to_string()), show(report));
        let _ = writeln!(text, "    {}", style.faint(&clip(&printable(&line), style.width - 4)));
    }
}

/// The difference between the measurement before and the one now, apart from the scores.
fn what_changed(text: &mut String, report: &Report, style: Style) {
    let Some(comparison) = &report.comparison else { return };
    let mut parts = comparison.changed.clone();
    parts.extend(comparison.data.iter().flat_map(|data| data.lines(2)));
    let line = match parts.is_empty() {
        false => parts.join("; "),
        true if comparison.deltas.iter().any(has_moved) => {
            "the same system by name, the same data and seed: it answers differently".to_owned()
        }
        // A limit that the baseline breaks as well.
        true => return,
    };
    text.push('\n');
    paragraph(text, &format!("what changed: {line}"), style);
}

fn has_moved(delta: &Delta) -> bool {
    let Delta { improved, worsened, lost, gained, .. } = delta;
    delta.before != delta.after
        || [improved, worsened, lost, gained].iter().any(|ids| !ids.is_empty())
}

/// The command that shows the items behind a failure.
fn show(report: &Report) -> String {
    let worse = if report.comparison.is_some() { " --worse" } else { "" };
    format!("karat show {}{worse}", select::entry_path(report))
}

/// The data of an entry that passed, if it is not that of the baseline: what was left out of the comparison
/// is not seen in its scores.
fn changed_data(text: &mut String, report: &Report, style: Style) {
    let data = report.comparison.as_ref().and_then(|comparison| comparison.data.as_ref());
    for line in data.into_iter().flat_map(|data| data.lines(2)) {
        paragraph(text, &format!("note: {}: {line}", report.name), style);
    }
}

/// The commands that come next.
fn next(text: &mut String, report: &Report, style: Style) {
    let mut steps = vec![show(report)];
    if select::can_accept(report) {
        let entry = select::entry_path(report);
        steps.push(format!("accept on purpose: karat baseline update --only {entry}"));
    }
    paragraph(text, &format!("next: {}", steps.join(" · ")), style);
}

/// An entry that the data cannot decide.
fn undecided(text: &mut String, report: &Report, most: usize, style: Style) {
    let open: Vec<&Check> = select::checks(report, Verdict::Inconclusive).collect();
    let head =
        format!("{} {}: {} undecided", report.evaluation, report.name, count(open.len(), "rule"));
    let head = clip(&printable(&head), style.width - 2).into_owned();
    let _ = writeln!(text, "{} {}", State::Inconclusive.mark(style), style.strong(&head));
    for check in open.iter().take(most) {
        let limit = check.threshold.map(|limit| format!(" {limit}")).unwrap_or_default();
        let place = check.slice.as_ref().map(|slice| format!(", {slice}")).unwrap_or_default();
        paragraph(text, &format!("{} ({}{limit}{place})", check.reason, check.rule), style);
    }
}

/// Text in lines of the terminal, indented; what is too long is cut.
fn paragraph(text: &mut String, line: &str, style: Style) {
    let lines = wrap(line, style.width.saturating_sub(4));
    let cut = lines.len() > REASON_LINES;
    for (n, part) in lines.iter().take(REASON_LINES).enumerate() {
        let indent = if n == 0 { "  " } else { "    " };
        let end = if cut && n + 1 == REASON_LINES { " …" } else { "" };
        let _ = writeln!(text, "{indent}{part}{end}");
    }
}

/// The verdict with what it is about, and the page that has the rest.
fn last(
    text: &mut String,
    check: &CheckReport,
    reports: &[&Report],
    page: Option<&str>,
    style: Style,
) {
    let all = check.reports.len() + check.not_measured.len();
    let with = |state: State| -> Vec<&&Report> {
        reports.iter().filter(|report| State::of(report) == state).collect()
    };
    let named = |reports: &[&&Report], verdict: Verdict| -> Vec<(String, String)> {
        let name = |report: &Report| format!("{} {}", report.evaluation, report.name);
        reports.iter().map(|report| (name(report), cause(report, verdict))).collect()
    };
    let lost = check.not_measured.iter();
    let lost = lost.map(|entry| (format!("{} {}", entry.evaluation, entry.name), String::new()));
    let (fail, open) = (with(State::Fail), with(State::Inconclusive));
    let groups: Vec<(&str, Vec<(String, String)>)> = [
        ("failed", named(&fail, Verdict::Fail)),
        ("not measured", lost.collect()),
        ("undecided", named(&open, Verdict::Inconclusive)),
    ]
    .into_iter()
    .filter(|(_, entries)| !entries.is_empty())
    .collect();
    let said = |causes: usize, names: usize| -> Vec<String> {
        let group = |(word, entries): &(&str, Vec<(String, String)>)| {
            format!("{} of {all} {word}: {}", entries.len(), list(entries, causes, names))
        };
        groups.iter().map(group).collect()
    };
    // What does not fit is left out from the end: causes, then names.
    let most = groups.iter().map(|(_, entries)| entries.len()).max().unwrap_or(0);
    let fewer = (1..most).rev().map(|names| (1, names));
    let shorter = [(most, most), (1, most)].into_iter().chain(fewer).chain([(0, 1)]);
    let fits = |parts: &Vec<String>| columns(&printable(&parts.join("; "))) <= style.width - 2;
    let mut parts =
        shorter.map(|(causes, names)| said(causes, names)).find(fits).unwrap_or_else(|| said(0, 1));
    let state = match (parts.is_empty(), check.verdict) {
        (true, _) if with(State::NoGate).len() == all => State::NoGate,
        (true, _) => State::Pass,
        _ if !fail.is_empty() => State::Fail,
        _ if !check.not_measured.is_empty() => State::NotMeasured,
        _ => State::Inconclusive,
    };
    if parts.is_empty() {
        let entries = count(all, "entry");
        parts.push(match state {
            State::NoGate => format!("{entries} measured, none has a gate"),
            _ => format!("{entries} passed"),
        });
    }
    let room = style.width - 2;
    let mut line = parts.join("; ");
    if let Some(page) = page {
        let whole = format!("{line} · {page}");
        if columns(&whole) <= room {
            line = whole;
        } else {
            let _ = writeln!(text, "{}", style.faint(&printable(&format!("report: {page}"))));
        }
    }
    let line = clip(&printable(&line), room).into_owned();
    let line = match state {
        State::Fail => style.paint(&line, Paint::new().red().bold()),
        State::Pass => style.paint(&line, Paint::new().green()),
        _ => style.strong(&line),
    };
    let _ = writeln!(text, "{} {line}", state.mark(style));
}

/// Entries by name, the first of them with their causes.
fn list(entries: &[(String, String)], causes: usize, names: usize) -> String {
    let shown = entries.iter().take(names).enumerate().map(|(at, (name, cause))| match cause {
        cause if at < causes && !cause.is_empty() => format!("{name} ({cause})"),
        _ => name.clone(),
    });
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if entries.len() > names {
        let _ = write!(text, " and {} more", entries.len() - names);
    }
    text
}

/// The first cause of a verdict, and the number of the others: `recall@5 −0.228 and 6 more`,
/// `success@5 1.000, min 0.9`.
fn cause(report: &Report, verdict: Verdict) -> String {
    let checks: Vec<&Check> = select::checks(report, verdict).collect();
    let Some(first) = checks.first() else { return String::new() };
    let mut text = first.metric.clone();
    if let Some(limit) = first.threshold {
        let value = first.value.map(|value| format!(" {}", short(value, 3))).unwrap_or_default();
        let change = select::delta_over(report, &first.metric, first.slice.as_deref())
            .and_then(|delta| delta.delta)
            .map(|amount| format!(" {}", signed(amount)));
        // A change says nothing about a limit of the value itself.
        text.push_str(&match first.rule.as_str() {
            rule @ ("min" | "max") => format!("{value}, {rule} {limit}"),
            _ => change.unwrap_or(value),
        });
    }
    if checks.len() > 1 {
        text.push_str(&format!(" and {} more", checks.len() - 1));
    }
    text
}
