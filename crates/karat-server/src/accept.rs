//! Acceptance of snapshots: `--update` writes them from what was observed.
//!
//! A case is accepted only if nothing but its snapshots fails. A call with the wrong outcome, another
//! failed expectation, an answer without the expected place, or attempts that differ leave the stored
//! snapshots as they are, with the reason.

use std::sync::Arc;

use karat_core::error::EvalError;
use karat_core::expect::Answer;
use karat_core::journal::{Entry, Outcome};
use karat_io::text::count;

use crate::compliance::Contract;
use crate::judge::{answer_of, judge_without_snapshots};
use crate::observation::{Attempt, CaseRun};
use crate::suite::snapshot::{Snapshots, Store};
use crate::suite::{Case, snapshot_name};

/// Writes the snapshots that the cases expect, and describes what was written and what was not.
///
/// # Errors
/// If a file cannot be read or written.
pub(crate) fn accept(
    store: &Store,
    cases: &[Arc<Case>],
    entries: &[Entry<CaseRun>],
    contract: &Contract,
) -> Result<Vec<String>, EvalError> {
    let (mut written, mut refused, mut unchanged) = (Vec::new(), Vec::new(), 0);
    for (case, entry) in cases.iter().zip(entries).filter(|(case, _)| case.expects_snapshot()) {
        let Outcome::Answer(run) = &entry.outcome else { continue };
        match capture(case, run, contract) {
            Err(why) => refused.push(format!("no snapshot written for {}: {why}", case.id)),
            Ok(snapshots) if store.read(&case.own_id)? == snapshots => unchanged += 1,
            Ok(snapshots) => {
                store.write(&case.own_id, &snapshots)?;
                written.push(case.id.as_str());
            }
        }
    }
    let names = match written.is_empty() {
        true => String::new(),
        false => format!(" ({})", written.join(", ")),
    };
    let cases = count(written.len(), "case");
    let summary = format!("snapshots of {cases} written{names}, of {unchanged} unchanged");
    Ok(std::iter::once(summary).chain(refused).collect())
}

/// The snapshots on which all attempts of a case agree.
fn capture(case: &Case, run: &CaseRun, contract: &Contract) -> Result<Snapshots, String> {
    let mut all = run.attempts.iter().map(|attempt| capture_attempt(case, attempt, contract));
    let first = all.next().unwrap_or_else(|| Err("the call was not made".to_owned()))?;
    for other in all {
        let other = other?;
        let differing = other.iter().find(|(name, value)| first.get(*name) != Some(value));
        if let Some((name, _)) = differing {
            return Err(format!(
                "{name} differs between attempts; leave out what changes with redact or \
                 redact_matches"
            ));
        }
    }
    Ok(first)
}

fn capture_attempt(
    case: &Case,
    attempt: &Attempt,
    contract: &Contract,
) -> Result<Snapshots, String> {
    if let Some(why) = judge_without_snapshots(case, attempt, contract).reasons.into_iter().next() {
        return Err(why);
    }
    let mut found = Snapshots::new();
    for (role, number, step) in case.judged_steps().filter(|(_, _, step)| step.expects_snapshot()) {
        let called = attempt.find(role, number).ok_or("the call was not made")?;
        let result = answer_of(&called.outcome).ok_or("there was no answer")?;
        let answer = Answer::new(&result);
        let captured = step.matchers.iter().filter_map(|matcher| matcher.captured(&answer));
        for (at, value) in captured.enumerate() {
            found.insert(snapshot_name(role, number, at), value?);
        }
    }
    Ok(found)
}
