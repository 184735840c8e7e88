//! Servers: reliability and failures of a suite, findings of fuzzing, attacks that were held or not.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::kind::number;
use super::{Body, Cell, Column, Context, Figure, Group, Shares, bars, counted, divided, spoken};

/// The reliability as a whole and by tool, and how attempts failed.
pub(super) fn suite(context: &Context<'_>) -> Vec<Figure> {
    let report = context.report;
    let whole = ["reliability", "pass_rate"]
        .iter()
        .filter_map(|id| Some((spoken(id), None, report.metric(id)?)))
        .collect::<Vec<_>>();
    let groups = vec![
        Group::of(Some("all".to_owned()), bars(&whole)),
        Group::of(Some("reliability by tool".to_owned()), context.bars_by("tool", "reliability")),
    ];
    let mut figures = vec![Figure {
        title: "Reliability".to_owned(),
        lead: Some("The share of attempts, and of cases, that passed.".to_owned()),
        body: Body::Bars { head: "share", groups: filled(groups) },
        wide: false,
    }];
    figures.push(endings(context));
    figures
}

fn filled(groups: Vec<Group>) -> Vec<Group> {
    groups.into_iter().filter(|group| !group.rows.is_empty()).collect()
}

/// How the attempts ended: passed, or failed in which way.
fn endings(context: &Context<'_>) -> Figure {
    let (mut attempts, mut passed) = (0, 0);
    let mut classes: BTreeMap<&str, u64> = BTreeMap::new();
    for item in &context.report.items {
        attempts += number(&item.observed, "attempts").unwrap_or_default();
        passed += number(&item.observed, "passed").unwrap_or_default();
        for (class, count) in counts(&item.observed, "failures") {
            *classes.entry(class).or_default() += count;
        }
    }
    let mut rows = vec![counted("passed", None, passed, attempts)];
    let failures =
        classes.iter().map(|(class, count)| counted(&spoken(class), None, *count, attempts));
    rows.extend(failures);
    Figure {
        title: "How attempts ended".to_owned(),
        lead: (classes.is_empty() && passed == attempts)
            .then(|| format!("All {attempts} attempts passed.")),
        body: Body::Bars { head: "attempts", groups: vec![Group::of(None, rows)] },
        wide: false,
    }
}

/// Named counts within what was observed.
fn counts<'a>(observed: &'a Value, key: &str) -> impl Iterator<Item = (&'a str, u64)> {
    let object = observed.get(key).and_then(Value::as_object);
    let fields = object.into_iter().flatten();
    fields.filter_map(|(name, count)| Some((name.as_str(), count.as_u64()?)))
}

/// Findings by kind, and what tools did with inputs of each kind.
pub(super) fn fuzz(context: &Context<'_>) -> Vec<Figure> {
    let mut found: BTreeMap<(usize, &str), (u64, Vec<&str>)> = BTreeMap::new();
    let mut ended: BTreeMap<&str, u64> = BTreeMap::new();
    for item in &context.report.items {
        for (class, count) in counts(&item.observed, "endings") {
            *ended.entry(class).or_default() += count;
        }
        let findings = item.observed.get("findings").and_then(Value::as_array);
        for finding in findings.into_iter().flatten() {
            let text = |key: &str| finding.get(key).and_then(Value::as_str).unwrap_or_default();
            let severity = SEVERITIES.iter().position(|known| *known == text("severity"));
            let entry =
                found.entry((severity.unwrap_or(SEVERITIES.len()), text("rule"))).or_default();
            entry.0 += 1;
            entry.1.push(&item.id);
        }
    }
    let rows: Vec<Vec<Cell>> = found
        .iter()
        .map(|((severity, rule), (count, tools))| {
            let severity = SEVERITIES.get(*severity).copied().unwrap_or("other");
            let mut tools = tools.clone();
            tools.dedup();
            vec![
                Cell { look: Some(severity_look(severity)), ..Cell::text(severity) },
                Cell::text(*rule),
                Cell::number(*count),
                Cell::text(listed(&tools)).to(context.items(&[("search", rule)])),
            ]
        })
        .collect();
    let calls: u64 = ended.values().sum();
    let endings =
        ended.iter().map(|(class, count)| counted(&spoken(class), None, *count, calls)).collect();
    let findings = Figure {
        title: "Findings by kind".to_owned(),
        lead: rows.is_empty().then(|| "Nothing was found.".to_owned()),
        body: Body::Table { head: vec!["Severity", "Rule", "Findings", "Tools"], rows },
        wide: true,
    };
    let endings = Figure {
        title: "How calls ended".to_owned(),
        lead: Some(format!("{calls} calls with valid, odd and invalid inputs.")),
        body: Body::Bars { head: "calls", groups: vec![Group::of(None, endings)] },
        wide: false,
    };
    vec![findings, endings]
}

const SEVERITIES: [&str; 3] = ["error", "warning", "note"];

fn severity_look(severity: &str) -> &'static str {
    match severity {
        "error" => "wrong",
        "warning" => "doubtful",
        _ => "open",
    }
}

/// The first few names.
fn listed(names: &[&str]) -> String {
    const NAMED: usize = 6;
    let first = names[..names.len().min(NAMED)].join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

const STATUSES: [(&str, &str, &str); 4] = [
    ("held", "held", "right"),
    ("broken", "broken", "wrong"),
    ("not_judged", "not judged", "doubtful"),
    ("not_applicable", "not applicable", "open"),
];

/// What became of the attacks of each class, and each attack that got through.
pub(super) fn attack(context: &Context<'_>) -> Vec<Figure> {
    let mut classes: BTreeMap<&str, [u64; 4]> = BTreeMap::new();
    for item in &context.report.items {
        let status = context.kind.value(item);
        let place = STATUSES.iter().position(|(name, ..)| Some(*name) == status);
        let class = item.tags.get("class").map_or("", String::as_str);
        if let Some(place) = place {
            classes.entry(class).or_default()[place] += tools_of(&item.observed);
        }
    }
    let columns =
        || STATUSES.map(|(_, word, look)| Column { word, look }).into_iter().collect::<Vec<_>>();
    let rows = classes
        .iter()
        .map(|(class, counts)| Shares {
            name: spoken(class),
            parts: divided(counts, &columns()),
            counts: counts
                .iter()
                .zip(STATUSES)
                .map(|(count, (status, ..))| match count {
                    0 => Cell::number(0),
                    _ => Cell::number(*count)
                        .to(context.items(&[("class", class), ("status", status)])),
                })
                .collect(),
        })
        .collect();
    let by_attack: Vec<_> = context
        .bars_by("attack", "attacks_held")
        .into_iter()
        .filter(|bar| bar.chart.is_some())
        .collect();
    let mut figures = vec![Figure {
        title: "Attacks by class".to_owned(),
        lead: Some(
            "Attack, tool and parameter; not applicable where no parameter could carry it."
                .to_owned(),
        ),
        body: Body::Shares { columns: columns(), rows },
        wide: true,
    }];
    if by_attack.len() > 1 {
        figures.push(Figure {
            title: "Held, by attack".to_owned(),
            lead: Some("The share of attempts at each attack that the server held off.".to_owned()),
            body: Body::Bars { head: "held", groups: vec![Group::of(None, by_attack)] },
            wide: false,
        });
    }
    figures
}

/// How many tools an item stands for: one, or all to which an attack does not apply.
fn tools_of(observed: &Value) -> u64 {
    let Some(tools) = observed.get("tools").and_then(Value::as_object) else { return 1 };
    tools.values().filter_map(Value::as_array).map(|tools| tools.len() as u64).sum()
}
