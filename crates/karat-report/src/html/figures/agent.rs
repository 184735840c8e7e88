//! Agents: the four dimensions of MCPGauge by number of turns, which tool was taken for which, and how
//! two runs differ.

use std::collections::BTreeMap;

use karat_core::report::Measured;
use serde_json::Value;

use super::{Body, Cell, Context, Figure, Group, bars, counted, spoken};

/// The dimensions, each with its metric and what it asks.
const DIMENSIONS: [(&str, &str); 4] = [
    ("gauge.proactivity", "Proactivity: right calls without being told"),
    ("gauge.compliance", "Compliance: told calls carried out"),
    ("gauge.effectiveness", "Effectiveness: success with tools minus without"),
    ("gauge.overhead_tokens", "Overhead: tokens with tools minus without"),
];

pub(super) fn figures(context: &Context<'_>) -> Vec<Figure> {
    let mut figures = vec![Figure {
        title: "Four dimensions, by turns".to_owned(),
        lead: Some(
            "MCPGauge, over all tasks and over those of one turn and of several.".to_owned(),
        ),
        body: Body::Bars {
            head: "value",
            groups: DIMENSIONS.iter().map(|(id, name)| dimension(context, id, name)).collect(),
        },
        wide: false,
    }];
    figures.extend(deviations(context));
    figures.extend(confusions(context));
    figures
}

fn dimension(context: &Context<'_>, id: &str, name: &str) -> Group {
    let all = context.report.metric(id).map(|metric| ("all tasks".to_owned(), None, metric));
    let by_turns = context.slices("turns").filter_map(|slice| {
        let metric: &Measured = slice.metrics.iter().find(|metric| metric.id == id)?;
        let name = match slice.value.as_str() {
            "single" => "one turn".to_owned(),
            "multi" => "several turns".to_owned(),
            other => spoken(other),
        };
        Some((name, Some(context.items(&[("turns", slice.value.as_str())])), metric))
    });
    let rows: Vec<_> = all.into_iter().chain(by_turns).collect();
    Group::of(Some(name.to_owned()), bars(&rows))
}

/// The calls of all tasks by what became of them.
const CHANGES: [(&str, &str); 6] = [
    ("same", "as expected"),
    ("changed", "with other arguments"),
    ("moved", "at another place"),
    ("missing", "missing"),
    ("inserted", "not expected"),
    ("left_out", "may be left out, and was"),
];

fn steps<'a>(context: &Context<'a>) -> impl Iterator<Item = &'a str> {
    let items = context.report.items.iter();
    items
        .filter_map(|item| item.observed.get("steps")?.as_array())
        .flatten()
        .filter_map(|step| step.get("change")?.as_str())
}

fn deviations(context: &Context<'_>) -> Option<Figure> {
    changes(context, "Calls against what was expected", CHANGES)
}

fn changes(context: &Context<'_>, title: &str, words: [(&str, &str); 6]) -> Option<Figure> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for change in steps(context) {
        *counts.entry(change).or_default() += 1;
    }
    let all: u64 = counts.values().sum();
    let rows = words
        .iter()
        .filter_map(|(change, word)| {
            let count = counts.get(change).copied().unwrap_or_default();
            (count > 0 || *change != "left_out").then(|| counted(word, None, count, all))
        })
        .collect();
    (all > 0).then(|| Figure {
        title: title.to_owned(),
        lead: None,
        body: Body::Bars { head: "calls", groups: vec![Group::of(None, rows)] },
        wide: false,
    })
}

/// Which tool was called in place of which.
fn confusions(context: &Context<'_>) -> Option<Figure> {
    let mut pairs: BTreeMap<(&str, &str), (u64, &str)> = BTreeMap::new();
    for item in &context.report.items {
        let found = item.observed.get("confusions").and_then(Value::as_array);
        for confusion in found.into_iter().flatten().filter_map(Value::as_str) {
            if let Some((called, expected)) = confusion.split_once(" instead of ") {
                pairs.entry((expected, called)).or_insert((0, confusion)).0 += 1;
            }
        }
    }
    let mut pairs: Vec<_> = pairs.into_iter().collect();
    pairs.sort_by(|a, b| b.1.0.cmp(&a.1.0).then_with(|| a.0.cmp(&b.0)));
    let rows: Vec<Vec<Cell>> = pairs
        .iter()
        .map(|((expected, called), (count, words))| {
            vec![
                Cell::text(*expected),
                Cell::text(*called),
                Cell::number(*count).to(context.items(&[("search", words)])),
            ]
        })
        .collect();
    (!rows.is_empty()).then(|| Figure {
        title: "Tools taken for others".to_owned(),
        lead: Some("What should have been called, and what was.".to_owned()),
        body: Body::Table { head: vec!["Expected", "Called instead", "Times"], rows },
        wide: true,
    })
}

/// How the calls of two runs differ.
pub(super) fn trajectories(context: &Context<'_>) -> Vec<Figure> {
    let same = context.with("the same");
    let changed = context.with("changed");
    let row = |word: &str, count| {
        counted(word, Some(context.items(&[("calls", word)])), count, same + changed)
    };
    let tasks = Figure {
        title: "Tasks by their calls".to_owned(),
        lead: None,
        body: Body::Bars {
            head: "tasks",
            groups: vec![Group::of(None, vec![row("the same", same), row("changed", changed)])],
        },
        wide: false,
    };
    let mut words = CHANGES;
    words[0].1 = "the same";
    words[4].1 = "inserted";
    let calls = changes(context, "Calls of both runs", words);
    [Some(tasks), calls].into_iter().flatten().collect()
}
