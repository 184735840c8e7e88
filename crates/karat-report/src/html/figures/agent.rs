//! Agents: the four dimensions of MCPGauge by number of turns, calls against what was expected,
//! confused tools, and the differences between two runs.

use std::collections::BTreeMap;

use karat_core::observed::{Observed, Step};
use karat_core::report::{Property, Report};
use karat_metrics::{MetricId, metric};

use super::super::facet::CALLS;
use super::figure::{Cell, Context, Figure, Group, bars, counted, spoken};
use crate::select;

/// The dimensions: metric and description.
static DIMENSIONS: [(MetricId, &str); 4] = [
    (metric!("gauge.proactivity"), "Proactivity: right calls without instruction"),
    (metric!("gauge.compliance"), "Compliance: instructed calls that were made"),
    (metric!("gauge.effectiveness"), "Effectiveness: success with tools minus without"),
    (metric!("gauge.overhead_tokens"), "Overhead: tokens with tools minus without"),
];

pub(super) fn figures(context: &Context<'_>) -> Vec<Figure> {
    let groups = DIMENSIONS.iter().map(|(id, name)| dimension(context, id, name));
    let groups: Vec<Group> = groups.filter(|group| !group.rows.is_empty()).collect();
    let mut figures = Vec::new();
    if !groups.is_empty() {
        figures.push(
            Figure::bars("Four dimensions, by turns", "value", groups)
                .lead("MCPGauge, over all tasks, single-turn tasks and multi-turn tasks."),
        );
    }
    let names = ["as expected", "missing", "not expected", "optional, left out"];
    figures.extend(changes(context.report, "Calls against what was expected", names));
    figures.extend(confusions(context));
    figures
}

fn dimension(context: &Context<'_>, id: &str, name: &str) -> Group {
    let all = context.report.metric(id).map(|metric| ("all tasks".to_owned(), None, metric));
    let by_turns = context.slices(Property::Turns).into_iter().filter_map(|slice| {
        let name = match slice.value.as_str() {
            "single" => "one turn".to_owned(),
            "multi" => "several turns".to_owned(),
            other => spoken(other),
        };
        let target = context.items(&[(Property::Turns.name(), &slice.value)]);
        Some((name, Some(target), select::metric(&slice.metrics, id)?))
    });
    let rows: Vec<_> = all.into_iter().chain(by_turns).collect();
    Group::of(Some(name.to_owned()), bars(&rows))
}

/// The calls of all tasks by their place in the alignment.
fn changes(report: &Report, title: &str, names: [&str; 4]) -> Option<Figure> {
    let [same, missing, inserted, left_out] = names;
    let names = [same, "with other arguments", "at another place", missing, inserted, left_out];
    let mut counts = [0_u64; 6];
    for item in &report.items {
        let steps = match &item.observed {
            Some(Observed::Traces(run)) => run.steps.as_deref().unwrap_or_default(),
            Some(Observed::Trajectories(pair)) => &pair.steps,
            _ => continue,
        };
        for step in steps {
            counts[match step {
                Step::Same { .. } => 0,
                Step::Changed { .. } => 1,
                Step::Moved { .. } => 2,
                Step::Missing { .. } => 3,
                Step::Inserted { .. } => 4,
                Step::LeftOut { .. } => 5,
            }] += 1;
        }
    }
    let all: u64 = counts.iter().sum();
    // Optional calls are rare: no row where there is none.
    let shown = names.iter().zip(counts).filter(|(name, count)| *count > 0 || **name != left_out);
    let rows = shown.map(|(name, count)| counted(name, None, count, all)).collect();
    (all > 0).then(|| Figure::bars(title, "calls", vec![Group::of(None, rows)]))
}

/// The tools that were called in place of others.
fn confusions(context: &Context<'_>) -> Option<Figure> {
    let mut pairs: BTreeMap<(&str, &str), (u64, &str)> = BTreeMap::new();
    for item in &context.report.items {
        let Some(Observed::Traces(run)) = &item.observed else { continue };
        for confusion in &run.confusions {
            if let Some((called, expected)) = confusion.split_once(" instead of ") {
                pairs.entry((expected, called)).or_insert((0, confusion)).0 += 1;
            }
        }
    }
    let mut pairs: Vec<_> = pairs.into_iter().collect();
    pairs.sort_by(|a, b| b.1.0.cmp(&a.1.0).then_with(|| a.0.cmp(&b.0)));
    let rows: Vec<Vec<Cell>> = pairs
        .iter()
        .map(|((expected, called), (count, confusion))| {
            vec![
                Cell::text(*expected),
                Cell::text(*called),
                Cell::number(*count).to(context.items(&[("search", confusion)])),
            ]
        })
        .collect();
    (!rows.is_empty())
        .then(|| Figure::table("Confused tools", &["Expected", "Called instead", "Times"], rows))
}

/// The differences between the calls of two runs.
pub(super) fn trajectories(context: &Context<'_>) -> Vec<Figure> {
    let mut rows = context.facet_rows(&CALLS);
    // Where all tasks were compared, there is nothing to say about those that were not.
    rows.retain(|row| row.name != CALLS[2] || row.target.is_some());
    let tasks = Figure::bars("Tasks by their calls", "tasks", vec![Group::of(None, rows)]);
    let names = ["the same", "missing", "inserted", "optional, left out"];
    let calls = changes(context.report, "Calls of both runs", names);
    [Some(tasks), calls].into_iter().flatten().collect()
}
