//! Items for a terminal: which got worse and by how much, with their text, and one item in full.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt::Write as _;

use karat_core::observed::{Observed, VerdictOutcome};
use karat_core::report::{Better, Check, Delta, Item, Report, Verdict};
use karat_io::text::{clip, columns, padded, printable};
use karat_metrics::metric;
use serde_json::Value;

use super::summary::short;
use super::{Style, wrap};
use crate::select;

/// The widest column of ids.
const ID: usize = 28;
/// The most items of a list.
const LISTED: usize = 200;

/// An item with its scores by one metric, before and now.
pub(crate) struct Moved<'r> {
    pub(crate) item: &'r Item,
    pub(crate) before: Option<f64>,
    pub(crate) now: Option<f64>,
    /// The ranks of the first right result, before and now, of a ranking.
    ranks: Option<[Option<usize>; 2]>,
    /// The outcome now, of an entry that was judged once.
    outcome: Option<VerdictOutcome>,
    /// False if there is nothing to compare with.
    compared: bool,
}

/// The items among `ids` with their scores by a metric, the worst first.
pub(crate) fn worsened<'r>(report: &'r Report, metric: &str, ids: &[String]) -> Vec<Moved<'r>> {
    let higher = report.metric(metric).is_none_or(|one| one.better == Better::Higher);
    let sign = if higher { 1.0 } else { -1.0 };
    let ids: BTreeSet<&String> = ids.iter().collect();
    let mut moved: Vec<Moved<'r>> = report
        .items
        .iter()
        .filter(|item| ids.contains(&item.id))
        .map(|item| Moved::new(report, item, metric))
        .collect();
    let loss = |one: &Moved<'_>| match (one.before, one.now) {
        (Some(before), Some(now)) => sign * (now - before),
        (Some(_), None) => f64::NEG_INFINITY,
        _ => 0.0,
    };
    moved.sort_by(|a, b| loss(a).total_cmp(&loss(b)).then_with(|| a.by_rank(b)));
    moved
}

/// The rank of the first right result of a query, before and now; none for what is not a ranking, for a query
/// without an answer, and for several runs, which have a rank each.
pub(crate) fn ranks(report: &Report, item: &Item) -> Option<[Option<usize>; 2]> {
    let Some(Observed::Ranking(ranking)) = &item.observed else { return None };
    let comparison = report.comparison.as_ref();
    let had_other_runs = comparison.is_some_and(|all| all.runs_before.is_some());
    if item.error.is_some() || report.runs > 1 || had_other_runs {
        return None;
    }
    let earlier = comparison.and_then(|all| all.before.get(&item.id));
    // The reciprocal rank of one query in one run is one over its rank; a mean over runs is not.
    let before = match earlier.and_then(|scores| scores.get(&metric!("mrr"))).copied() {
        None => ranking.first_right,
        Some(reciprocal) => reciprocal.filter(|score| *score > 0.0).map(rank),
    };
    Some([before, ranking.first_right])
}

impl<'r> Moved<'r> {
    pub(crate) fn new(report: &'r Report, item: &'r Item, metric: &str) -> Moved<'r> {
        let earlier = report.comparison.as_ref().and_then(|all| all.before.get(&item.id));
        let before = |id: &str| earlier.and_then(|scores| scores.get(id)).copied();
        let now = item.metrics.get(metric).copied().flatten();
        let outcome = match &item.observed {
            Some(Observed::Verdicts(entry)) if !select::shows_first_run(report) => entry.outcome,
            _ => None,
        };
        let unchanged = if earlier.is_some() { now } else { None };
        Moved {
            item,
            before: before(metric).unwrap_or(unchanged),
            now,
            ranks: ranks(report, item),
            outcome,
            compared: report.comparison.is_some(),
        }
    }

    /// Of items that lost the same, the one that fell deeper comes first.
    fn by_rank(&self, other: &Moved<'_>) -> Ordering {
        let place = |rank: Option<usize>| rank.unwrap_or(usize::MAX);
        let ranks = |one: &Moved<'_>| one.ranks.map_or([0, 0], |ranks| ranks.map(place));
        let ([before, now], [other_before, other_now]) = (ranks(self), ranks(other));
        other_now.cmp(&now).then_with(|| before.cmp(&other_before))
    }

    /// The change in the words of the evaluation.
    pub(crate) fn change(&self) -> String {
        if let Some([before, now]) = self.ranks {
            let shown =
                |rank: Option<usize>| rank.map_or_else(|| "none".to_owned(), |n| n.to_string());
            return match self.compared {
                true => format!("rank {} → {}", shown(before), shown(now)),
                false => format!("rank {}", shown(now)),
            };
        }
        if let Some(outcome) = self.outcome {
            return format!("now {}", outcome.name().replace('_', " "));
        }
        let shown = |score: Option<f64>| score.map_or_else(|| "none".to_owned(), |v| short(v, 3));
        match (self.compared, self.now) {
            (_, None) if self.item.error.is_some() => "no answer".to_owned(),
            // Not scored by this metric.
            (_, None) if self.before.is_none() => String::new(),
            (true, now) => format!("{} → {}", shown(self.before), shown(now)),
            (false, Some(now)) => short(now, 3),
            (false, None) => String::new(),
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rank is a small positive whole number"
)]
fn rank(reciprocal: f64) -> usize {
    (1.0 / reciprocal).round().min(1e9) as usize
}

/// Rows of id, text and change that fit a width.
pub(super) fn rows(moved: &[Moved<'_>], width: usize) -> Vec<String> {
    let ids = moved.iter().map(|one| clip(&printable(&one.item.id), ID).into_owned());
    let ids: Vec<String> = ids.collect();
    let changes: Vec<String> = moved.iter().map(Moved::change).collect();
    let longest = |texts: &[String]| texts.iter().map(|text| columns(text)).max().unwrap_or(0);
    let (wide, right) = (longest(&ids), longest(&changes));
    let room = width.saturating_sub(wide + right + 4);
    let row = |(one, (id, change)): (&Moved<'_>, (&String, &String))| {
        let text = described(one.item);
        let text = clip(&printable(&text), room).into_owned();
        let (id, text) = (padded(id, wide), padded(&text, room));
        format!("{id}  {text}  {change}").trim_end().to_owned()
    };
    moved.iter().zip(ids.iter().zip(&changes)).map(row).collect()
}

/// The text of an item, as people know it.
pub(crate) fn described(item: &Item) -> String {
    let text = match &item.observed {
        Some(Observed::Ranking(ranking)) => ranking.query.clone(),
        Some(Observed::Verdicts(entry)) => match entry.name.is_empty() {
            true => entry.text.clone(),
            false => format!("{}: {}", entry.name, entry.text),
        },
        Some(Observed::Suite(case)) => match (case.reasons.first(), &case.about) {
            (Some(reason), _) => reason.clone(),
            (None, about) => about.clone().unwrap_or_else(|| case.tool.clone()),
        },
        Some(Observed::Traces(trace)) => trace.input.clone().unwrap_or_default(),
        Some(Observed::Trajectories(pair)) => pair.input.clone().unwrap_or_default(),
        Some(Observed::Attack(attack)) => attack.about.clone(),
        Some(Observed::Resilience(run)) => run.task.clone(),
        Some(Observed::Fuzz(fuzz)) => {
            fuzz.findings.first().map(|finding| finding.message.clone()).unwrap_or_default()
        }
        // Their scores are all there is to say.
        Some(Observed::Outcomes(_) | Observed::Load(_) | Observed::Other(_)) | None => {
            String::new()
        }
    };
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The items that got worse by a metric: those that failed, which have no score now, and those with a
/// worse score.
pub fn got_worse<'r>(report: &'r Report, delta: &'r Delta) -> Vec<&'r str> {
    let failed: BTreeSet<&str> = report
        .items
        .iter()
        .filter(|item| item.error.is_some())
        .map(|item| item.id.as_str())
        .collect();
    let lost = delta.lost.iter().map(String::as_str).filter(|id| failed.contains(id));
    lost.chain(delta.worsened.iter().map(String::as_str)).collect()
}

/// The items of an entry that got worse: first those that the check names, then those that got worse by
/// other metrics alone. Each item is there once.
pub fn worse(report: &Report, style: Style) -> String {
    let mut text = String::new();
    let deltas = || report.comparison.iter().flat_map(|comparison| &comparison.deltas);
    let broken: Vec<&Check> = select::checks(report, Verdict::Fail).collect();
    let explaining = select::explaining(&broken).and_then(|check| {
        deltas().find(|one| one.metric == check.metric && one.slice == check.slice)
    });
    let mut all: Vec<&Delta> = deltas().filter(|delta| delta.slice.is_none()).collect();
    all.sort_by_key(|delta| select::place(&delta.metric));
    let mut listed: BTreeSet<&str> = BTreeSet::new();
    for delta in explaining.into_iter().chain(all) {
        let down = got_worse(report, delta);
        let fresh = down.iter().filter(|id| !listed.contains(**id)).map(|id| (*id).to_owned());
        let fresh: Vec<String> = fresh.collect();
        if fresh.is_empty() {
            continue;
        }
        let slice = delta.slice.iter().map(|slice| format!(" on {slice}")).collect::<String>();
        let (worse, better) = (delta.worsened.len(), delta.improved.len());
        let mut head = format!("{}{slice}: {worse} worse, {better} better", delta.metric);
        if down.len() > worse {
            let _ = write!(head, ", {} failed", down.len() - worse);
        }
        if fresh.len() < down.len() {
            let _ = write!(head, "; not listed above: {}", fresh.len());
        }
        let _ = writeln!(text, "{}", style.strong(&printable(&head)));
        let moved = worsened(report, &delta.metric, &fresh);
        for line in rows(&moved[..moved.len().min(LISTED)], style.width - 2) {
            let _ = writeln!(text, "  {line}");
        }
        if moved.len() > LISTED {
            let _ = writeln!(text, "  and {} more in the report", moved.len() - LISTED);
        }
        listed.extend(down);
    }
    if listed.is_empty() {
        let why = match report.comparison {
            Some(_) => "no item got worse",
            None => "no baseline to compare with",
        };
        let _ = writeln!(text, "{} {}: {why}", report.evaluation, printable(&report.name));
    }
    text
}

/// All items of an entry, one on a line: id, scores that matter, text.
pub fn list(report: &Report, style: Style) -> String {
    let mut text = String::new();
    let metrics: Vec<&str> = report
        .metrics
        .iter()
        .filter(|one| one.value.is_some())
        .map(|one| one.id.as_str())
        .collect();
    let scored = |id: &&&str| report.items.iter().any(|item| item.metrics.contains_key(**id));
    let metrics: Vec<&str> = metrics.iter().filter(scored).take(2).copied().collect();
    let shown = report.items.iter().take(LISTED);
    let ids: Vec<String> =
        shown.clone().map(|item| clip(&printable(&item.id), ID).into_owned()).collect();
    let wide = ids.iter().map(|id| columns(id)).max().unwrap_or(0).max(4);
    let head: Vec<String> = metrics.iter().map(|id| format!("{id:>10}")).collect();
    let _ = writeln!(text, "{}", style.faint(&format!("{:<wide$}  {}", "item", head.join("  "))));
    for (item, id) in shown.zip(&ids) {
        let scores: Vec<String> = metrics
            .iter()
            .map(|id| {
                let score = item.metrics.get(*id).copied().flatten();
                format!("{:>10}", score.map_or_else(|| "–".to_owned(), |value| short(value, 3)))
            })
            .collect();
        let start = format!("{}  {}  ", padded(id, wide), scores.join("  "));
        let room = style.width.saturating_sub(columns(&start));
        let said =
            item.error.as_ref().map_or_else(|| described(item), |error| error.message.clone());
        let _ =
            writeln!(text, "{}", format!("{start}{}", clip(&printable(&said), room)).trim_end());
    }
    if report.items.len() > LISTED {
        let _ = writeln!(text, "and {} more in the report", report.items.len() - LISTED);
    }
    text
}

/// One item in full: its scores before and now, and what was observed.
pub fn one(report: &Report, item: &Item, style: Style) -> String {
    let mut text = String::new();
    let head = format!("{} {} · {}", report.evaluation, report.name, item.id);
    let _ = writeln!(text, "{}", style.strong(&printable(&head)));
    for (name, value) in &item.tags {
        let _ = writeln!(text, "  {}: {}", printable(name), printable(value));
    }
    if let Some(error) = &item.error {
        for line in
            wrap(&format!("not answered: {}: {}", error.class, error.message), style.width - 4)
        {
            let _ = writeln!(text, "  {line}");
        }
    }
    let earlier = report.comparison.as_ref().and_then(|all| all.before.get(&item.id));
    for (id, now) in &item.metrics {
        let shown =
            |value: Option<f64>| value.map_or_else(|| "undefined".to_owned(), |v| short(v, 4));
        let line = match earlier.and_then(|scores| scores.get(id)) {
            Some(before) => format!("{} → {}", shown(*before), shown(*now)),
            None => shown(*now),
        };
        let _ = writeln!(text, "  {:<28} {line}", printable(id));
    }
    if let Some(observed) = &item.observed {
        let value = serde_json::to_value(observed).unwrap_or(Value::Null);
        let head = match select::shows_first_run(report) {
            true => "observed in the first run",
            false => "observed",
        };
        let _ = writeln!(text, "{}", style.faint(head));
        tree(&mut text, &value, 2, style.width);
    }
    text
}

/// A JSON value as indented lines.
fn tree(text: &mut String, value: &Value, indent: usize, width: usize) {
    let put = |text: &mut String, name: &str, said: &str| {
        let room = width.saturating_sub(indent + 2).max(20);
        for (n, line) in wrap(&format!("{name}{said}"), room).iter().enumerate() {
            let more = if n == 0 { 0 } else { 2 };
            let _ = writeln!(text, "{:1$}{line}", "", indent + more);
        }
    };
    let plain = |value: &Value| match value {
        Value::String(said) => Some(said.clone()),
        Value::Object(fields) if fields.is_empty() => Some("{}".to_owned()),
        Value::Array(list) if list.is_empty() => Some("[]".to_owned()),
        Value::Object(_) | Value::Array(_) => None,
        other => Some(other.to_string()),
    };
    match value {
        Value::Object(fields) => {
            for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
                match plain(value) {
                    Some(said) => put(text, &format!("{name}: "), &said),
                    None => {
                        put(text, &format!("{name}:"), "");
                        tree(text, value, indent + 2, width);
                    }
                }
            }
        }
        Value::Array(list) => {
            for (n, value) in list.iter().take(LISTED).enumerate() {
                match value {
                    Value::Object(fields) if fields.values().all(|one| plain(one).is_some()) => {
                        let parts: Vec<String> = fields
                            .iter()
                            .filter(|(_, one)| !one.is_null())
                            .filter_map(|(name, one)| Some(format!("{name} {}", plain(one)?)))
                            .collect();
                        put(text, &format!("{}. ", n + 1), &parts.join(", "));
                    }
                    _ => match plain(value) {
                        Some(said) => put(text, &format!("{}. ", n + 1), &said),
                        None => tree(text, value, indent + 2, width),
                    },
                }
            }
        }
        other => put(text, "", &plain(other).unwrap_or_default()),
    }
}
