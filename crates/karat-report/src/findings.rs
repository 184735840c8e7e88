//! The findings of a check as SARIF: failed gates, and the items that a reader should look at.

use karat_core::observed::{AttackStatus, Observed, Verdicts};
use karat_core::report::{CheckReport, Item, Property, Report, Verdict};
use karat_io::text::clip;
use karat_metrics::{MetricId, metric};

use crate::sarif::{self, Log, Result, Rule};
use crate::select;

const GATE: Rule<'static> = Rule {
    id: "gate",
    summary: "A gated metric is worse than it may be",
    help: "Compare with the baseline in the report, or accept the new scores with \
           `karat baseline update`.",
    level: "error",
};
const NOT_MEASURED: Rule<'static> = Rule {
    id: "not-measured",
    summary: "An entry of the project could not be measured",
    help: "The system did not start, was not ready or was lost; see the reason.",
    level: "error",
};
const FALSE_NEGATIVE: Rule<'static> = Rule {
    id: "false-negative",
    summary: "An attack that was not flagged",
    help: "The entry of the corpus and the verdict of every detector are in the report.",
    level: "warning",
};
const FALSE_POSITIVE: Rule<'static> = Rule {
    id: "false-positive",
    summary: "A harmless entry that was flagged",
    help: "The findings that led to the verdict are in the report.",
    level: "note",
};
const FAILED_CASE: Rule<'static> = Rule {
    id: "failed-case",
    summary: "A case of a suite that did not pass",
    help: "The call, the answer and the expectation are in the report.",
    level: "error",
};
const FUZZ: Rule<'static> = Rule {
    id: "fuzz-finding",
    summary: "A tool that mishandles a generated input",
    help: "The input, the answer and a command that sends it again are in the report.",
    level: "warning",
};
const BROKEN: Rule<'static> = Rule {
    id: "broken-attack",
    summary: "An attack that got through",
    help: "The evidence and a command that tries it again are in the report.",
    level: "error",
};
const RULES: [Rule<'static>; 7] =
    [GATE, NOT_MEASURED, FALSE_NEGATIVE, FALSE_POSITIVE, FAILED_CASE, FUZZ, BROKEN];

/// The most failed cases that a summary shows.
const CASES: usize = 10;

/// One finding.
struct Found {
    rule: Rule<'static>,
    level: &'static str,
    subject: String,
    message: String,
}

impl Found {
    fn new(rule: Rule<'static>, subject: String, message: String) -> Found {
        Found { rule, level: rule.level, subject, message }
    }
}

/// The check as SARIF 2.1.0.
pub(crate) fn sarif(check: &CheckReport) -> String {
    let mut found = Vec::new();
    for report in &check.reports {
        let subject = format!("{}/{}", report.evaluation, report.name);
        found.extend(select::checks(report, Verdict::Fail).map(|check| {
            let message = format!("{} ({}): {}", check.metric, check.rule, check.reason);
            Found::new(GATE, subject.clone(), message)
        }));
        found.extend(report.items.iter().flat_map(|item| of_item(item, &subject)));
    }
    found.extend(check.not_measured.iter().map(|entry| {
        let subject = format!("{}/{}", entry.evaluation, entry.name);
        Found::new(NOT_MEASURED, subject, entry.reason.clone())
    }));
    let results = found.iter().map(|found| Result {
        rule: found.rule.id,
        level: found.level,
        message: &found.message,
        subject: &found.subject,
        at: "",
    });
    sarif::document(&Log { rules: RULES.to_vec(), results: results.collect() })
}

fn of_item(item: &Item, report: &str) -> Vec<Found> {
    let one = |rule, message| vec![Found::new(rule, format!("{report}/{}", item.id), message)];
    match &item.observed {
        // Only one run is observed; the scores are means over all runs.
        Some(Observed::Verdicts(entry)) => {
            let rate = |id: &MetricId| item.metrics.get(id).copied().flatten();
            if let Some(caught) = rate(&metric!("recall")).filter(|caught| *caught < 1.0) {
                let category = item.tag(Property::Category).unwrap_or("attack");
                let runs = if caught > 0.0 { " in some runs" } else { "" };
                let text = described(entry);
                return one(FALSE_NEGATIVE, format!("{category} not flagged{runs}: {text}"));
            }
            if let Some(raised) = rate(&metric!("fpr")).filter(|raised| *raised > 0.0) {
                let runs = if raised < 1.0 { " in some runs" } else { "" };
                return one(FALSE_POSITIVE, format!("flagged{runs}: {}", described(entry)));
            }
            Vec::new()
        }
        Some(Observed::Fuzz(fuzz)) => {
            let found = fuzz.findings.iter().map(|finding| Found {
                rule: FUZZ,
                level: finding.severity.name(),
                subject: format!("{report}/{}", item.id),
                message: format!("{}: {}", finding.rule, finding.message),
            });
            found.collect()
        }
        Some(Observed::Attack(attack)) if attack.status == AttackStatus::Broken => {
            one(BROKEN, attack.about.clone())
        }
        _ if is_failed(item) => one(FAILED_CASE, reasons(item, 3)),
        _ => Vec::new(),
    }
}

/// The name of an entry and the start of its text.
fn described(entry: &Verdicts) -> String {
    clip(&format!("{} {}", entry.name, entry.text), 300).into_owned()
}

/// A case of a suite that did not pass.
#[derive(Debug, PartialEq, Eq)]
pub struct FailedCase<'r> {
    /// Its id.
    pub id: &'r str,
    /// The first reason.
    pub reason: String,
}

/// The first failed cases of a report, and the number of others.
#[must_use]
pub fn failed_cases(report: &Report) -> (Vec<FailedCase<'_>>, usize) {
    let failed: Vec<&Item> = report.items.iter().filter(|item| is_failed(item)).collect();
    let first = failed.iter().take(CASES);
    let first = first.map(|item| FailedCase { id: &item.id, reason: reasons(item, 1) });
    (first.collect(), failed.len().saturating_sub(CASES))
}

fn is_failed(item: &Item) -> bool {
    let is_case = matches!(item.observed, Some(Observed::Suite(_)));
    let rate = item.metrics.get(&metric!("pass_rate")).copied().flatten();
    is_case && rate.is_some_and(|rate| rate < 1.0)
}

/// The first reasons for which a case did not pass.
fn reasons(item: &Item, most: usize) -> String {
    match &item.observed {
        Some(Observed::Suite(case)) if !case.reasons.is_empty() => {
            case.reasons[..case.reasons.len().min(most)].join("; ")
        }
        _ => "did not pass".to_owned(),
    }
}
