//! From observations to snapshots: what a run writes that was told to update them.
//!
//! Only what would pass but for its snapshots is accepted: a call that ended wrong, another expectation
//! that fails, an answer without the place that is looked at, or repetitions that differ keep what is
//! stored and say why.

use std::sync::Arc;

use karat_core::journal::{Entry, Outcome};
use karat_io::input::{InputError, WriteError};

use crate::compliance::Contract;
use crate::observation::{Attempt, Observed, Role};
use crate::score::{answered, judge_but_snapshots};
use crate::suite::matcher::{Answer, Prepared};
use crate::suite::snapshot::{Snapshots, Store};
use crate::suite::{Case, Step, snapshot_name};

/// Why snapshots could not be updated.
#[derive(Debug, thiserror::Error)]
pub enum AcceptError {
    /// What is stored cannot be read.
    #[error(transparent)]
    Read(#[from] InputError),
    /// What is new cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// What was done.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    /// Cases whose snapshots were written.
    pub written: Vec<String>,
    /// How many cases had the same already.
    pub unchanged: usize,
    /// Cases whose snapshots were left as they were, with the reason.
    pub refused: Vec<String>,
}

impl Accepted {
    /// In words, for the report.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let names = match self.written.is_empty() {
            true => String::new(),
            false => format!(" ({})", self.written.join(", ")),
        };
        words.push(format!(
            "snapshots of {} cases written{names}, of {} unchanged",
            self.written.len(),
            self.unchanged
        ));
        words.extend(self.refused.iter().map(|why| format!("no snapshot written for {why}")));
        words
    }
}

/// Writes the snapshots that the cases want, from what was observed.
///
/// # Errors
/// A file cannot be read or written.
pub fn snapshots(
    store: &Store,
    cases: &[Arc<Case>],
    entries: &[Entry<Observed>],
    contract: &Contract,
) -> Result<Accepted, AcceptError> {
    let mut accepted = Accepted::default();
    for (case, entry) in cases.iter().zip(entries) {
        if !case.steps().any(Step::wants_snapshot) {
            continue;
        }
        let Outcome::Answer(observed) = &entry.outcome else { continue };
        match captured(case, observed, contract) {
            Err(why) => accepted.refused.push(format!("{}: {why}", case.id)),
            Ok(snapshots) if store.read(&case.id)? == snapshots => accepted.unchanged += 1,
            Ok(snapshots) => {
                store.write(&case.id, &snapshots)?;
                accepted.written.push(case.id.clone());
            }
        }
    }
    Ok(accepted)
}

/// What all attempts of a case agree on.
fn captured(case: &Case, observed: &Observed, contract: &Contract) -> Result<Snapshots, String> {
    let mut all = observed.attempts.iter().map(|attempt| attempted(case, attempt, contract));
    let first = all.next().unwrap_or_else(|| Err("the call was not made".to_owned()))?;
    for other in all {
        let other = other?;
        if let Some((name, _)) = other.iter().find(|(name, value)| first.get(*name) != Some(value))
        {
            return Err(format!(
                "{name} is another one at each repetition; redact what changes (redact, redact_matches)"
            ));
        }
    }
    Ok(first)
}

fn attempted(case: &Case, attempt: &Attempt, contract: &Contract) -> Result<Snapshots, String> {
    if let Some(why) = judge_but_snapshots(case, attempt, contract).reasons.into_iter().next() {
        return Err(why);
    }
    let parts: [(Role, &[Step]); 3] = [
        (Role::Setup, &case.setup),
        (Role::Call, std::slice::from_ref(&case.step)),
        (Role::Then, &case.then),
    ];
    let mut found = Snapshots::new();
    for (role, steps) in parts {
        for (number, step) in steps.iter().enumerate().filter(|(_, step)| step.wants_snapshot()) {
            let called = attempt
                .calls
                .iter()
                .find(|called| called.role == role && called.number == number)
                .ok_or("the call was not made")?;
            let result = answered(&called.outcome).ok_or("there was no answer")?;
            let answer = Answer::new(&result);
            let wanted = step.matchers.iter().filter(|matcher| Prepared::is_snapshot(matcher));
            for (at, value) in wanted.filter_map(|matcher| matcher.captured(&answer)).enumerate() {
                found.insert(snapshot_name(role, number, at), value?);
            }
        }
    }
    Ok(found)
}
