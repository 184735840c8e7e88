//! Detection: the confusion table, and which kinds of attack are missed or raise false alarms.

use karat_core::observed::{Observed, VerdictOutcome};
use karat_core::report::{Item, Property};
use karat_metrics::{MetricId, metric};

use super::figure::{Cell, Context, Figure, Group, spoken};
use crate::format::percentage;

/// Title, introduction, property and metric of the bar figures.
static BARS: [(&str, &str, Property, MetricId); 4] = [
    (
        "Attacks caught, by category",
        "The share of the attacks of each category that was flagged.",
        Property::Category,
        metric!("recall"),
    ),
    (
        "False alarms, by the attack that the harmless text resembles",
        "The share of hard negatives that was flagged.",
        Property::Resembles,
        metric!("fpr_hard"),
    ),
    (
        "Attacks caught, by detector",
        "Each detector separately.",
        Property::Detector,
        metric!("recall"),
    ),
    ("False alarms, by detector", "On hard negatives.", Property::Detector, metric!("fpr_hard")),
];

pub(super) fn figures(context: &Context<'_>) -> Vec<Figure> {
    let mut figures = vec![confusion(context)];
    for (title, lead, by, metric) in &BARS {
        let mut rows = match by {
            Property::Detector => context.plain_bars_by(*by, metric),
            _ => context.bars_by(*by, metric),
        };
        if rows.len() > 1 {
            rows.iter_mut().for_each(|row| row.name = spoken(&row.name));
            figures.push(Figure::bars(title, metric, vec![Group::of(None, rows)]).lead(*lead));
        }
    }
    figures
}

/// The rows of the confusion table.
const LABELS: [&str; 3] = ["attack", "hard negative", "plain benign"];

fn label(item: &Item) -> &'static str {
    let label = match &item.observed {
        Some(Observed::Verdicts(entry)) => entry.label.as_str(),
        _ => "",
    };
    match (label, tag(item, Property::Category)) {
        ("malicious", _) => LABELS[0],
        (_, "hard_negative") => LABELS[1],
        _ => LABELS[2],
    }
}

/// The tags that all entries of a row share, by which they are listed.
fn shared<'a>(items: &[&'a Item]) -> Vec<(&'static str, &'a str)> {
    let value = |property: Property| {
        let first = tag(items.first()?, property);
        items.iter().all(|item| tag(item, property) == first).then_some((property.name(), first))
    };
    [Property::Label, Property::Category]
        .into_iter()
        .filter_map(value)
        .filter(|(_, tag)| !tag.is_empty())
        .collect()
}

fn tag(item: &Item, property: Property) -> &str {
    item.tag(property).unwrap_or_default()
}

fn outcome(item: &Item) -> Option<VerdictOutcome> {
    match &item.observed {
        Some(Observed::Verdicts(entry)) if item.error.is_none() => entry.outcome,
        _ => None,
    }
}

fn confusion(context: &Context<'_>) -> Figure {
    use VerdictOutcome::{
        Error, FalseNegative, FalsePositive, TrueNegative, TruePositive, Unsupported,
    };
    let items = &context.report.items;
    let mut columns: Vec<(&str, &[VerdictOutcome])> = vec![
        ("flagged", &[TruePositive, FalsePositive]),
        ("not flagged", &[FalseNegative, TrueNegative]),
        ("unsupported", &[Unsupported]),
        ("error", &[Error]),
    ];
    let occurs = |wanted: &[_]| items.iter().any(|item| outcome(item).as_slice() == wanted);
    columns.retain(|(_, outcomes)| outcomes.len() > 1 || occurs(outcomes));
    let rows = LABELS.iter().filter_map(|name| {
        let items: Vec<&Item> = items.iter().filter(|item| label(item) == *name).collect();
        let cells = columns.iter().map(|(_, outcomes)| cell(context, &items, outcomes));
        let row = [Cell::text(*name)].into_iter().chain(cells);
        (!items.is_empty()).then(|| row.chain([Cell::number(items.len() as u64)]).collect())
    });
    let rows = rows.collect();
    let mut head = vec!["Text"];
    head.extend(columns.iter().map(|(name, _)| *name));
    head.push("all");
    let title = context.of_observed("What was flagged");
    Figure::table(&title, &head, rows).lead("Each number links to its entries.")
}

/// The entries of a row with one of these outcomes.
fn cell(context: &Context<'_>, items: &[&Item], outcomes: &[VerdictOutcome]) -> Cell {
    let found = items.iter().filter_map(|item| outcome(item)).filter(|one| outcomes.contains(one));
    let Some(outcome) = found.clone().next() else { return Cell::number(0) };
    let count = found.count();
    let shared = shared(items).into_iter();
    let wanted: Vec<(&str, &str)> = shared.chain([(context.facet(), outcome.name())]).collect();
    let share = percentage(count as f64 / items.len() as f64);
    Cell {
        small: Some(format!("{} · {share}", outcome.name())),
        look: match outcome {
            VerdictOutcome::TruePositive | VerdictOutcome::TrueNegative => Some("right"),
            VerdictOutcome::FalsePositive | VerdictOutcome::FalseNegative => Some("wrong"),
            VerdictOutcome::Unsupported | VerdictOutcome::Error => None,
        },
        ..Cell::number(count as u64).to(context.items(&wanted))
    }
}
