//! Marks on pages: strips of verdicts, lines of limits and baselines, and the branches to choose from.

use std::collections::BTreeSet;

use karat_core::report::Report;
use karat_report::format::moment;
use karat_report::html::Tone;
use serde::Serialize;

use crate::chart::Reference;
use crate::model::Entry;
use crate::store::Store;

/// The runs of a strip: the latest.
const STRIP: usize = 30;

/// One run of a strip.
#[derive(Serialize)]
pub(super) struct Mark {
    run: i64,
    tone: Tone,
    title: String,
}

/// The results of the latest of these entries.
pub(super) fn strip(past: &[&Entry]) -> Vec<Mark> {
    let mark = |entry: &&Entry| {
        let place = [entry.branch.as_deref(), entry.commit_subject.as_deref()];
        let place: Vec<&str> = place.into_iter().flatten().collect();
        let place =
            if place.is_empty() { String::new() } else { format!(", {}", place.join(": ")) };
        let (run, state) = (entry.run, entry.state.name());
        Mark {
            run,
            tone: entry.state.into(),
            title: format!("Run {run}, {}: {state}{place}", moment(&entry.started)),
        }
    };
    past[past.len().saturating_sub(STRIP)..].iter().map(mark).collect()
}

/// The limits of the gate on a metric, and its baseline, as the latest of the runs had them. A document that
/// cannot be read has no lines: the page of its run says why.
pub(super) fn references(store: &Store, latest: &Entry, metric: &str) -> Vec<Reference> {
    let Ok(check) = store.check(latest.run) else { return Vec::new() };
    let subject = &latest.subject;
    let own = |report: &&Report| {
        report.evaluation.name() == subject.evaluation && report.name == subject.name
    };
    let Some(report) = check.reports.iter().find(own) else { return Vec::new() };
    let checks = report.gate.iter().flat_map(|gate| &gate.checks);
    // A rule over a slice is about another value than the one that is drawn.
    let whole = checks.filter(|check| check.metric == metric && check.slice.is_none());
    let mut found: Vec<Reference> = whole
        .filter_map(|check| {
            let (limit, before) = (check.threshold?, check.baseline);
            let value = match check.rule.as_str() {
                "min" | "max" => limit,
                "max_drop" => before? - limit,
                "max_rise" => before? + limit,
                _ => return None,
            };
            Some(Reference { value, name: check.rule.clone(), look: "limit-line" })
        })
        .collect();
    let deltas = report.comparison.iter().flat_map(|comparison| &comparison.deltas);
    let mut baseline = deltas
        .filter(|delta| delta.metric == metric && delta.slice.is_none())
        .filter_map(|delta| delta.before);
    if let Some(value) = baseline.next() {
        found.push(Reference { value, name: "baseline".to_owned(), look: "baseline-line" });
    }
    found.retain(|one| one.value.is_finite());
    found
}

/// The branches to choose from; none if there is no choice.
pub(super) fn branches<'a>(all: impl Iterator<Item = Option<&'a str>>) -> Vec<String> {
    let all: BTreeSet<Option<&str>> = all.collect();
    match all.len() {
        0 | 1 => Vec::new(),
        _ => all.into_iter().flatten().map(str::to_owned).collect(),
    }
}
