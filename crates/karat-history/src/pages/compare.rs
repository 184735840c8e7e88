//! A comparison of two runs: the change of each metric, and the items that changed.

use std::collections::BTreeMap;

use karat_core::baseline::Baseline;
use karat_core::compare::compare;
use karat_core::report::{CheckReport, Comparison, Delta, Evaluation, Report};
use karat_report::format::{NONE, moment, not_compared, optional, p_value, signed};
use karat_report::html::{self, Change, Flip};
use serde::Serialize;

use super::error::PageError;
use crate::store::Store;

#[derive(Serialize)]
pub(super) struct ComparePage {
    before: Option<i64>,
    after: Option<i64>,
    runs: Vec<Choice>,
    cards: Vec<Card>,
    only: Vec<Side>,
}

#[derive(Serialize)]
struct Choice {
    id: i64,
    label: String,
}

/// The entries that only one run has.
#[derive(Serialize)]
struct Side {
    run: i64,
    names: String,
}

/// The ids of a changed dataset that are named.
const NAMED: usize = 5;

#[derive(Serialize)]
struct Card {
    evaluation: String,
    name: String,
    data: String,
    /// The reason for which the two cannot be compared.
    refused: Option<String>,
    /// The way the data differs, and the metrics that could not be compared.
    remarks: Vec<String>,
    rows: Vec<Row>,
    flips: Vec<Flip>,
}

#[derive(Serialize)]
struct Row {
    metric: String,
    before: String,
    after: String,
    change: Option<Change>,
    interval: String,
    p: String,
    pairs: u64,
}

pub(super) fn page(store: &Store, runs: Option<(i64, i64)>) -> Result<ComparePage, PageError> {
    let all = store.runs()?;
    let choices = all.iter().rev().map(|run| Choice {
        id: run.id,
        label: format!("{} · {} · {}", run.id, moment(&run.started), run.state.name()),
    });
    let choices = choices.collect();
    let Some((before, after)) = runs else {
        // The form starts with the two latest.
        let latest = all.last().map(|run| run.id);
        let previous = all.iter().rev().nth(1).map(|run| run.id);
        return match (previous, latest) {
            (Some(before), Some(after)) => page(store, Some((before, after))),
            _ => Ok(ComparePage {
                before: None,
                after: None,
                runs: choices,
                cards: Vec::new(),
                only: Vec::new(),
            }),
        };
    };
    let (old, new) = (store.check(before)?, store.check(after)?);
    Ok(ComparePage {
        before: Some(before),
        after: Some(after),
        runs: choices,
        cards: cards(&old, &new),
        only: [(before, alone(&old, &new)), (after, alone(&new, &old))]
            .into_iter()
            .filter(|(_, names)| !names.is_empty())
            .map(|(run, names)| Side { run, names: names.join(", ") })
            .collect(),
    })
}

fn key(report: &Report) -> (&Evaluation, &str) {
    (&report.evaluation, &report.name)
}

fn cards(old: &CheckReport, new: &CheckReport) -> Vec<Card> {
    let earlier: BTreeMap<_, &Report> = old.reports.iter().map(|one| (key(one), one)).collect();
    let pairs = new.reports.iter().zip(html::anchors(new));
    pairs
        .filter_map(|(report, anchor)| Some(card(earlier.get(&key(report))?, report, &anchor)))
        .collect()
}

/// The entries that only the first has.
fn alone(this: &CheckReport, other: &CheckReport) -> Vec<String> {
    let names = this.reports.iter().filter(|one| other.reports.iter().all(|o| key(o) != key(one)));
    names.map(|one| format!("{} {}", one.evaluation, one.name)).collect()
}

fn card(old: &Report, new: &Report, anchor: &str) -> Card {
    let compared = compare(&Baseline::from_report(old), new, &[]);
    let (comparison, refused) = match compared {
        // Without a metric, no item would seem to have changed.
        Ok(comparison) if comparison.deltas.is_empty() => {
            let reason = comparison.not_compared.as_ref().map(|left_out| left_out.reason.as_str());
            let reason = reason.unwrap_or("the two have no metric in common");
            (Comparison::default(), Some(format!("Not compared: {reason}.")))
        }
        Ok(comparison) => (comparison, None),
        Err(error) => (Comparison::default(), Some(format!("Not compared: {error}."))),
    };
    let data = comparison.data.iter().flat_map(|data| data.lines(NAMED));
    Card {
        evaluation: new.evaluation.to_string(),
        name: new.name.clone(),
        data: format!("{} {}", new.dataset.id, new.dataset.version),
        refused,
        remarks: data.chain(not_compared(&comparison)).collect(),
        rows: comparison.deltas.iter().map(row).collect(),
        flips: comparison.deltas.iter().filter_map(|delta| Flip::of(delta, anchor)).collect(),
    }
}

fn row(delta: &Delta) -> Row {
    // An interval or a p-value says nothing where nothing moved.
    let items = delta.worsened.len() + delta.improved.len();
    let moved = delta.delta != Some(0.0) || items > 0;
    let interval = delta.interval.as_ref().filter(|_| moved).map_or_else(
        || NONE.to_owned(),
        |interval| format!("{} to {}", signed(interval.low), signed(interval.high)),
    );
    Row {
        metric: delta.metric.to_string(),
        before: optional(delta.before),
        after: optional(delta.after),
        change: Change::of_delta(delta),
        interval,
        p: delta.p_holm.filter(|_| moved).map_or_else(|| NONE.to_owned(), p_value),
        pairs: delta.pairs,
    }
}
