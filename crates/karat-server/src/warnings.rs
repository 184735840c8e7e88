//! Warnings of a suite's report.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use karat_core::finding::Severity;
use karat_core::journal::{Entry, Outcome};
use karat_io::text::{count, first_few};
use karat_mcp::Redactor;

use crate::compliance::Contract;
use crate::detect::{self, Subject};
use crate::observation::{self, Called, CaseRun, Feature};
use crate::probe::reaction;
use crate::score::ScoredCase;
use crate::suite::{Case, Ending, Step};

/// The number of names that are listed.
pub(crate) const NAMED: usize = 5;

/// Failed attempts, counted by class.
pub(crate) fn failures(scored: &[ScoredCase]) -> Option<String> {
    let mut failures: BTreeMap<&str, u64> = BTreeMap::new();
    for (class, count) in scored.iter().flat_map(|case| &case.failures) {
        *failures.entry(class).or_default() += count;
    }
    let list: Vec<String> = failures.iter().map(|(class, n)| format!("{class} {n}")).collect();
    (!list.is_empty()).then(|| format!("failed attempts by class: {}", list.join(", ")))
}

/// Restarts of the server.
pub(crate) fn restarts(count: u64) -> Option<String> {
    match count {
        0 => None,
        1 => Some("the server had to be started again once".to_owned()),
        n => Some(format!("the server had to be started again {n} times")),
    }
}

/// Tools that no case calls.
pub(crate) fn untested_tools(cases: &[Arc<Case>], contract: &Contract) -> Option<String> {
    let called: BTreeSet<&str> =
        cases.iter().flat_map(|case| case.steps()).filter_map(Step::called_tool).collect();
    let untested: Vec<&str> = contract.names().filter(|name| !called.contains(name)).collect();
    let (count, all) = (untested.len(), contract.names().count());
    (count > 0)
        .then(|| format!("no case calls {count} of {all} tools: {}", first_few(&untested, NAMED)))
}

/// Cases that expect an error and call a tool that the server does not have.
pub(crate) fn missing_tools(cases: &[Arc<Case>], contract: &Contract) -> Option<String> {
    let missing: Vec<&str> = cases
        .iter()
        .filter(|case| case.step.ending != Ending::Success && !case.needs_tool)
        .filter(|case| case.step.called_tool().is_some_and(|tool| !contract.knows(tool)))
        .map(|case| case.id.as_str())
        .collect();
    let call = match missing.len() {
        0 => return None,
        1 => "1 case calls".to_owned(),
        n => format!("{n} cases call"),
    };
    Some(format!("{call} a tool that the server lacks: {}", first_few(&missing, NAMED)))
}

/// Values that do not have the format that a schema declares.
pub(crate) fn formats(scored: &[ScoredCase]) -> Option<String> {
    let mut found = scored.iter().flat_map(|case| &case.schemas.format_warnings);
    let first = found.next()?;
    let count = 1 + found.count();
    Some(format!("{count} values do not have their format, which is not an error: {first}"))
}

/// Results with text that a detector takes for an attack on the model. Instructions and prompts are meant to
/// direct it; lint judges them.
pub(crate) fn suspicious_results(outcomes: &[Entry<CaseRun>]) -> Vec<String> {
    let Some(detector) = detect::installed() else { return Vec::new() };
    let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for entry in outcomes {
        let Outcome::Answer(run) = &entry.outcome else { continue };
        let calls = run.attempts.iter().take(1).flat_map(|attempt| &attempt.calls);
        let is_data =
            |called: &&Called| matches!(called.feature, Feature::Tool | Feature::Resource);
        for called in calls.filter(is_data) {
            let text = reaction::text(&called.outcome);
            for suspicion in detector(Subject::Result(&text)) {
                if suspicion.severity == Severity::Error {
                    found.entry(suspicion.rule).or_default().push(&entry.id);
                }
            }
        }
    }
    let warning = |(rule, mut ids): (&str, Vec<&str>)| {
        ids.dedup();
        format!(
            "results have text that detectors take for an attack [{rule}]: {}",
            first_few(&ids, NAMED)
        )
    };
    found.into_iter().map(warning).collect()
}

/// Cases with secrets in their answers. They are judged without them, but no server should send any.
pub(crate) fn leaked_secrets(outcomes: &[Entry<CaseRun>], redactor: &Redactor) -> Option<String> {
    let leaked = |entry: &&Entry<CaseRun>| match &entry.outcome {
        Outcome::Answer(run) => {
            let mut calls = run.attempts.iter().flat_map(|attempt| &attempt.calls);
            calls.any(|called| match &called.outcome {
                observation::Outcome::Result { result } => redactor.has_hidden_in(result),
                _ => false,
            })
        }
        Outcome::Failure { .. } => false,
    };
    let ids: Vec<&str> = outcomes.iter().filter(leaked).map(|entry| entry.id.as_str()).collect();
    let (first, cases) = (ids.first()?, count(ids.len(), "case"));
    Some(format!(
        "secrets of the server were in the answers of {cases} and were removed before \
         judging: {first}"
    ))
}
