//! Teardown calls that did not clean up. They do not affect scores, but what they leave behind may
//! affect the next case or the next run.

use std::sync::Arc;

use karat_core::journal::{Entry, Outcome as Kept};

use crate::judge::{call_name, unmet};
use crate::observation::{Attempt, CaseRun, Outcome};
use crate::suite::{Case, Role, Step};

/// A warning about the teardown of cases, and about the problems of the suite's own teardown.
pub(crate) fn warning(
    cases: &[Arc<Case>],
    entries: &[Entry<CaseRun>],
    of_the_suite: &[String],
) -> Option<String> {
    let mut problems: Vec<String> = Vec::new();
    for (case, entry) in cases.iter().zip(entries) {
        let Kept::Answer(run) = &entry.outcome else { continue };
        let found = run.attempts.iter().flat_map(|attempt| left_by(case, attempt));
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

/// The teardown calls of one attempt that did not clean up.
fn left_by(case: &Case, attempt: &Attempt) -> Vec<String> {
    let problem = |(number, step): (usize, &Step)| {
        let name = call_name(Role::Teardown, number, &step.tool);
        match attempt.find(Role::Teardown, number) {
            Some(called) => unmet(step, called).map(|why| format!("{name}: {why}")),
            None => not_made(case, attempt, step).map(|why| format!("{name} was not made: {why}")),
        }
    };
    case.teardown.iter().enumerate().filter_map(problem).collect()
}

/// The reason for which a call was not made; none if there was nothing to clean up, because the call
/// that should have given the value did not succeed.
fn not_made(case: &Case, attempt: &Attempt, step: &Step) -> Option<String> {
    let last = attempt.calls.last().map(|called| &called.outcome);
    if matches!(last, Some(Outcome::Crash { .. } | Outcome::Timeout)) {
        return Some("the server was gone".to_owned());
    }
    let succeeded = |role, number| {
        attempt.find(role, number).is_some_and(|called| called.outcome.class() == "result")
    };
    let given = |name: &String| {
        case.judged_steps()
            .any(|(role, number, giver)| giver.save.contains_key(name) && succeeded(role, number))
    };
    let name = step.names().into_iter().find(given)?;
    Some(format!("${{{name}}} was not in the answer that should have had it"))
}
