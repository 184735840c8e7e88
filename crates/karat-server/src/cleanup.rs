//! Whether the calls that clean up did: of each that did not, in words. They are nobody's score, but
//! what they leave behind may decide the next case or the next run.

use std::sync::Arc;

use karat_core::journal::{Entry, Outcome as Kept};

use crate::observation::{Attempt, Observed, Outcome, Role};
use crate::suite::{Case, Step};
use crate::system::{numbered, unmet};

/// One line on the teardown of cases, and on that of the suite as the server found it.
pub(crate) fn warning(
    cases: &[Arc<Case>],
    entries: &[Entry<Observed>],
    of_the_suite: &[String],
) -> Option<String> {
    let mut problems: Vec<String> = Vec::new();
    for (case, entry) in cases.iter().zip(entries) {
        let Kept::Answer(observed) = &entry.outcome else { continue };
        let found = observed.attempts.iter().flat_map(|attempt| left_by(case, attempt));
        problems.extend(found.map(|problem| format!("{}: {problem}", case.id)));
    }
    problems.extend(of_the_suite.iter().map(|problem| format!("the suite: {problem}")));
    let first = problems.first()?;
    let count = match problems.len() {
        1 => "a teardown call did not clean up".to_owned(),
        n => format!("{n} teardown calls did not clean up"),
    };
    Some(format!("{count}: {first}"))
}

/// What the teardown of one attempt did not do.
fn left_by(case: &Case, attempt: &Attempt) -> Vec<String> {
    let mut problems = Vec::new();
    for (number, step) in case.teardown.iter().enumerate() {
        let place = format!("teardown {} ({})", number + 1, step.tool);
        let made = attempt
            .calls
            .iter()
            .find(|called| called.role == Role::Teardown && called.number == number);
        let problem = match made {
            Some(called) => unmet(step, &called.outcome).map(|why| format!("{place}: {why}")),
            None => not_made(case, attempt, step).map(|why| format!("{place} was not made: {why}")),
        };
        problems.extend(problem);
    }
    problems
}

/// Why a call was not made, unless there was nothing to clean up: without the call that was to give
/// the value, nothing came to be.
fn not_made(case: &Case, attempt: &Attempt, step: &Step) -> Option<String> {
    let last = attempt.calls.last().map(|called| &called.outcome);
    if matches!(last, Some(Outcome::Crash { .. } | Outcome::Timeout)) {
        return Some("the server was gone".to_owned());
    }
    let gave = |name: &String| {
        numbered(case).filter(|(_, _, giver)| giver.save.contains_key(name)).any(
            |(role, number, _)| {
                attempt.calls.iter().any(|called| {
                    (called.role, called.number) == (role, number)
                        && called.outcome.class() == "result"
                })
            },
        )
    };
    let name = step.names().into_iter().find(gave)?;
    Some(format!("${{{name}}} was not in the answer that it is saved from"))
}
