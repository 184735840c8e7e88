//! Detection: what was flagged of what there is, and which kinds of attack pass or cry wolf.

use karat_core::report::Item;

use super::{Body, Cell, Context, Figure, Group, spoken};

pub(super) fn figures(context: &Context<'_>) -> Vec<Figure> {
    let mut figures = vec![confusion(context)];
    for (title, lead, by, metric) in [
        (
            "Attacks caught, by category",
            "The share of the attacks of each category that was flagged.",
            "category",
            "recall",
        ),
        (
            "False alarms, by what the harmless text resembles",
            "The share of hard negatives that was flagged.",
            "resembles",
            "fpr_hard",
        ),
        ("Attacks caught, by detector", "Each detector by itself.", "detector", "recall"),
        ("False alarms, by detector", "On hard negatives.", "detector", "fpr_hard"),
    ] {
        let mut rows = context.bars_by(by, metric);
        if by == "detector" {
            // Detectors are no property of an item.
            rows.iter_mut().for_each(|row| row.target = None);
        }
        if rows.len() > 1 {
            rows.iter_mut().for_each(|row| row.name = spoken(&row.name));
            figures.push(Figure {
                title: title.to_owned(),
                lead: Some(lead.to_owned()),
                body: Body::Bars { head: metric, groups: vec![Group::of(None, rows)] },
                wide: false,
            });
        }
    }
    figures
}

/// The texts of one row of the confusion table.
struct Label {
    name: &'static str,
    holds: fn(&Item) -> bool,
}

const LABELS: [Label; 3] = [
    Label { name: "attack", holds: |item| tag(item, "label") == "malicious" },
    Label {
        name: "hard negative",
        holds: |item| tag(item, "label") != "malicious" && tag(item, "category") == "hard_negative",
    },
    Label {
        name: "plain benign",
        holds: |item| tag(item, "label") != "malicious" && tag(item, "category") != "hard_negative",
    },
];

/// The tags that all the texts of a row share, by which they are listed.
fn shared<'a>(items: &[&'a Item]) -> Vec<(&'static str, &'a str)> {
    let value = |name: &'static str| {
        let first = tag(items.first()?, name);
        items.iter().all(|item| tag(item, name) == first).then_some((name, first))
    };
    ["label", "category"].into_iter().filter_map(value).filter(|(_, tag)| !tag.is_empty()).collect()
}

fn tag<'a>(item: &'a Item, name: &str) -> &'a str {
    item.tags.get(name).map_or("", String::as_str)
}

/// What each column counts, and how it is read for attacks and for harmless texts.
const FLAGGED: [&str; 2] = ["true positive", "false positive"];
const PASSED: [&str; 2] = ["false negative", "true negative"];
const OPEN: [&str; 2] = ["unsupported", "error"];
/// The place of the column without a verdict, which is left out where there is none.
const NO_VERDICT: usize = 3;

fn confusion(context: &Context<'_>) -> Figure {
    let open = |item: &Item| context.kind.value(item).is_some_and(|value| OPEN.contains(&value));
    let mut head = vec!["Text", "flagged", "not flagged", "no verdict", "all"];
    let all_decided = !context.report.items.iter().any(open);
    if all_decided {
        head.remove(NO_VERDICT);
    }
    let rows = LABELS.iter().filter_map(|label| {
        let items: Vec<&Item> =
            context.report.items.iter().filter(|item| (label.holds)(item)).collect();
        let mut cells = (!items.is_empty()).then(|| row(context, label, &items))?;
        if all_decided {
            cells.remove(NO_VERDICT);
        }
        Some(cells)
    });
    Figure {
        title: "What was flagged".to_owned(),
        lead: Some("Each number leads to the texts behind it.".to_owned()),
        body: Body::Table { rows: rows.collect(), head },
        wide: true,
    }
}

fn row(context: &Context<'_>, label: &Label, items: &[&Item]) -> Vec<Cell> {
    let all = items.len() as u64;
    let shared = shared(items);
    let cell = |outcomes: [&'static str; 2]| {
        let value =
            |item: &&&Item| context.kind.value(item).is_some_and(|value| outcomes.contains(&value));
        let count = items.iter().filter(value).count() as u64;
        let word = items.iter().filter(value).find_map(|item| context.kind.value(item));
        let (Some(word), true) = (word, count > 0) else { return Cell::number(0) };
        let wanted: Vec<(&str, &str)> = shared.iter().copied().chain([("outcome", word)]).collect();
        Cell {
            small: Some(format!("{word} · {:.1} %", 100.0 * count as f64 / all as f64)),
            look: Some(if word.starts_with("true") { "right" } else { "wrong" }),
            ..Cell::number(count).to(context.items(&wanted))
        }
    };
    let mut open = cell(OPEN);
    open.look = None;
    vec![Cell::text(label.name), cell(FLAGGED), cell(PASSED), open, Cell::number(all)]
}
