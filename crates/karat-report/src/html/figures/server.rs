//! Servers: the reliability of a suite, what fuzzing found, and the attacks that were held or not.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use karat_core::finding::Severity;
use karat_core::observed::{Attack, AttackStatus, Observed};
use karat_core::report::Property;
use karat_io::text::first_few;
use karat_metrics::metric;

use super::figure::{
    Body, Cell, Column, Context, Figure, Group, Row, Shares, bars, counted, divided, spoken,
};

/// The reliability as a whole and by tool, and the results of attempts.
pub(super) fn suite(context: &Context<'_>) -> Vec<Figure> {
    let whole: Vec<_> = [metric!("reliability"), metric!("pass_rate")]
        .iter()
        .filter_map(|id| Some((spoken(id), None, context.report.metric(id)?)))
        .collect();
    let by_tool = context.bars_by(Property::Tool, &metric!("reliability"));
    let groups = [("all", bars(&whole)), ("reliability by tool", by_tool)]
        .map(|(name, rows)| Group::of(Some(name.to_owned()), rows));
    let groups = groups.into_iter().filter(|group| !group.rows.is_empty()).collect();
    vec![
        Figure::bars("Reliability", "share", groups)
            .lead("The share of attempts, and of cases, that passed."),
        attempts(context),
    ]
}

/// The attempts: passed, or failed by class.
fn attempts(context: &Context<'_>) -> Figure {
    let (mut attempts, mut passed) = (0, 0);
    let mut failures = BTreeMap::new();
    for item in &context.report.items {
        let Some(Observed::Suite(case)) = &item.observed else { continue };
        attempts += case.attempts;
        passed += case.passed;
        add(&mut failures, &case.failures);
    }
    let mut rows = vec![counted("passed", None, passed, attempts)];
    rows.extend(counts(&failures, attempts));
    let figure = Figure::bars("Results of attempts", "attempts", vec![Group::of(None, rows)]);
    match failures.is_empty() && passed == attempts {
        true if attempts == 1 => figure.lead("The only attempt passed."),
        true => figure.lead(format!("All {attempts} attempts passed.")),
        false => figure,
    }
}

fn add<'a>(sums: &mut BTreeMap<&'a str, u64>, counts: &'a BTreeMap<String, u64>) {
    for (name, count) in counts {
        *sums.entry(name).or_default() += count;
    }
}

fn counts(sums: &BTreeMap<&str, u64>, of: u64) -> Vec<Row> {
    sums.iter().map(|(name, count)| counted(&spoken(name), None, *count, of)).collect()
}

/// Findings by rule, and the outcomes of calls.
pub(super) fn fuzz(context: &Context<'_>) -> Vec<Figure> {
    let mut found: BTreeMap<_, (u64, Vec<&str>)> = BTreeMap::new();
    let mut endings = BTreeMap::new();
    for item in &context.report.items {
        let Some(Observed::Fuzz(fuzz)) = &item.observed else { continue };
        add(&mut endings, &fuzz.endings);
        for finding in &fuzz.findings {
            let entry =
                found.entry((Reverse(finding.severity), finding.rule.as_str())).or_default();
            entry.0 += 1;
            entry.1.push(&item.id);
        }
    }
    let rows: Vec<Vec<Cell>> = found
        .into_iter()
        .map(|((Reverse(severity), rule), (count, mut tools))| {
            tools.dedup();
            let look = match severity {
                Severity::Error => "wrong",
                Severity::Warning => "doubtful",
                Severity::Note => "open",
            };
            vec![
                Cell { look: Some(look), ..Cell::text(severity.name()) },
                Cell::text(rule),
                Cell::number(count),
                Cell::text(first_few(&tools, 6)).to(context.items(&[("search", rule)])),
            ]
        })
        .collect();
    let empty = rows.is_empty();
    let findings = Figure::table("Findings", &["Severity", "Rule", "Findings", "Tools"], rows);
    let calls: u64 = endings.values().sum();
    let rows = counts(&endings, calls);
    vec![
        if empty { findings.lead("No findings.") } else { findings },
        Figure::bars("Outcomes of calls", "calls", vec![Group::of(None, rows)]).lead(format!(
            "{} with valid, odd and invalid inputs.",
            crate::format::count(calls, "call")
        )),
    ]
}

const STATUSES: [AttackStatus; 5] = [
    AttackStatus::Held,
    AttackStatus::Broken,
    AttackStatus::NotJudged,
    AttackStatus::NotApplicable,
    AttackStatus::NotExecuted,
];

fn column(status: AttackStatus) -> Column {
    let (name, look) = match status {
        AttackStatus::Held => ("held", "right"),
        AttackStatus::Broken => ("broken", "wrong"),
        AttackStatus::NotJudged => ("not judged", "doubtful"),
        AttackStatus::NotApplicable => ("not applicable", "open"),
        AttackStatus::NotExecuted => ("not executed", "doubtful"),
    };
    Column { name, look }
}

/// The attacks of each class by their result, and the share held of each attack.
pub(super) fn attack(context: &Context<'_>) -> Vec<Figure> {
    let mut classes: BTreeMap<&str, BTreeMap<AttackStatus, u64>> = BTreeMap::new();
    for item in &context.report.items {
        let Some(Observed::Attack(attack)) = &item.observed else { continue };
        if item.error.is_none() {
            let class = item.tag(Property::Class).unwrap_or_default();
            *classes.entry(class).or_default().entry(attack.status).or_default() += tools(attack);
        }
    }
    // A column that is always empty but for broken runs is shown only where it is not.
    let executed = !classes.values().any(|class| class.contains_key(&AttackStatus::NotExecuted));
    let shown = &STATUSES[..STATUSES.len() - usize::from(executed)];
    let columns: Vec<Column> = shown.iter().copied().map(column).collect();
    let rows = classes.iter().map(|(class, found)| {
        let counts: Vec<u64> =
            shown.iter().map(|status| found.get(status).copied().unwrap_or_default()).collect();
        let cells = counts.iter().zip(shown).map(|(count, status)| match count {
            0 => Cell::number(0),
            _ => Cell::number(*count)
                .to(context
                    .items(&[(Property::Class.name(), class), (context.facet(), status.name())])),
        });
        let (cells, parts) = (cells.collect(), divided(&counts, &columns));
        Shares { name: spoken(class), parts, counts: cells }
    });
    let rows = rows.collect();
    let mut figures = vec![
        Figure::new("Attacks by class", Body::Shares { columns, rows })
            .lead("Attack, tool and parameter; not applicable where no parameter could carry it.")
            .wide(),
    ];
    let mut by_attack = context.bars_by(Property::Attack, &metric!("attacks_held"));
    by_attack.retain(|row| row.bar.is_some());
    if by_attack.len() > 1 {
        figures.push(
            Figure::bars("Held, by attack", "held", vec![Group::of(None, by_attack)])
                .lead("The share of attempts of each attack that did not get through."),
        );
    }
    figures
}

/// The number of tools that an item represents: one, or all to which an attack does not apply.
fn tools(attack: &Attack) -> u64 {
    match attack.tools.is_empty() {
        true => 1,
        false => attack.tools.values().map(|tools| tools.len() as u64).sum(),
    }
}
