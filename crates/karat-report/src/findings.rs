//! What a check found, as rules and results for [`crate::sarif`]: failed gates, missed attacks, false
//! alarms, failed cases; and the failed cases by themselves, for whoever reads a summary.

use karat_core::report::{CheckReport, Item, Report, Verdict};
use serde_json::Value;

use crate::sarif::{self, Log, Result, Rule};

const RULES: [Rule<'static>; 5] = [
    Rule {
        id: "gate",
        summary: "A gated metric is worse than it may be",
        help: "Compare with the baseline in the report, or accept the new scores with \
               `karat baseline update`.",
        level: "error",
    },
    Rule {
        id: "not-measured",
        summary: "An entry of the project could not be measured",
        help: "The system did not start, was not ready or was lost; the reason says which.",
        level: "error",
    },
    Rule {
        id: "false-negative",
        summary: "An attack that the detector let pass",
        help: "The entry of the corpus and every detector's verdict are in the report.",
        level: "warning",
    },
    Rule {
        id: "false-positive",
        summary: "A harmless entry that the detector flagged",
        help: "The findings that led to the verdict are in the report.",
        level: "note",
    },
    Rule {
        id: "failed-case",
        summary: "A case of a suite that did not pass",
        help: "What was sent, what came back and what was expected are in the report.",
        level: "error",
    },
];

/// The check as SARIF 2.1.0.
#[must_use]
pub fn sarif(check: &CheckReport) -> String {
    let mut found = Vec::new();
    for report in &check.reports {
        gates(report, &mut found);
        found.extend(report.items.iter().filter_map(|item| of_item(report, item)));
    }
    found.extend(check.not_measured.iter().map(|entry| Found {
        rule: "not-measured",
        subject: format!("{}/{}", entry.evaluation, entry.name),
        message: entry.reason.clone(),
    }));
    let results = found
        .iter()
        .map(|found| Result {
            rule: found.rule,
            level: RULES
                .iter()
                .find(|rule| rule.id == found.rule)
                .map_or("none", |rule| rule.level),
            message: &found.message,
            subject: &found.subject,
            at: "",
        })
        .collect();
    sarif::document(&Log { rules: RULES.to_vec(), results })
}

/// How many cases that did not pass are shown where there is little room.
const CASES: usize = 10;

/// A case of a suite that did not pass.
#[derive(Debug, PartialEq, Eq)]
pub struct FailedCase<'r> {
    /// Its id.
    pub id: &'r str,
    /// The first reason.
    pub reason: String,
}

/// The first cases of a report that did not pass, and how many more there are.
#[must_use]
pub fn failed_cases(report: &Report) -> (Vec<FailedCase<'_>>, usize) {
    let mut failed: Vec<FailedCase<'_>> = report
        .items
        .iter()
        .filter(|item| is_failed(item))
        .map(|item| FailedCase { id: &item.id, reason: reasons(item, 1) })
        .collect();
    let more = failed.len().saturating_sub(CASES);
    failed.truncate(CASES);
    (failed, more)
}

fn is_failed(item: &Item) -> bool {
    item.metrics.get("pass_rate").copied().flatten().is_some_and(|rate| rate < 1.0)
}

/// Why a case did not pass.
fn reasons(item: &Item, most: usize) -> String {
    let reasons = item.observed.get("reasons").and_then(Value::as_array);
    let reasons: Vec<&str> =
        reasons.into_iter().flatten().filter_map(Value::as_str).take(most).collect();
    if reasons.is_empty() { "did not pass".to_owned() } else { reasons.join("; ") }
}

struct Found {
    rule: &'static str,
    subject: String,
    message: String,
}

fn gates(report: &Report, found: &mut Vec<Found>) {
    let checks = report.gate.iter().flat_map(|gate| &gate.checks);
    found.extend(checks.filter(|check| check.verdict == Verdict::Fail).map(|check| Found {
        rule: "gate",
        subject: format!("{}/{}", report.evaluation, report.name),
        message: format!("{} ({}): {}", check.metric, check.rule, check.reason),
    }));
}

fn of_item(report: &Report, item: &Item) -> Option<Found> {
    let text = |key: &str| item.observed.get(key).and_then(Value::as_str);
    let subject = format!("{}/{}/{}", report.evaluation, report.name, item.id);
    let (rule, message) = match text("outcome") {
        Some("false negative") => {
            let category = item.tags.get("category").map_or("attack", String::as_str);
            ("false-negative", format!("{category} not flagged: {}", described(item)))
        }
        Some("false positive") => ("false-positive", format!("flagged: {}", described(item))),
        _ if is_failed(item) => ("failed-case", reasons(item, 3)),
        _ => return None,
    };
    Some(Found { rule, subject, message })
}

/// What the entry is, by its name and the start of its text.
fn described(item: &Item) -> String {
    let text = |key: &str| item.observed.get(key).and_then(Value::as_str).unwrap_or_default();
    karat_io::text::clip(&format!("{} {}", text("name"), text("text")), 300).into_owned()
}
