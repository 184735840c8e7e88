//! The dimensions of MCPGauge that one trace shows: proactivity, compliance, unneeded calls.

use super::calls::{Calls, MAX_PAIRS, TOO_MANY};
use super::score::{Own, Score, TraceScore, yes};
use crate::trace::expectation::Expectation;
use crate::trace::expected_calls::{NO_ARGUMENTS, Tool};
use crate::trace::{Arguments, CallMade, CallOutcome};

pub(super) fn score(calls: &Calls<'_>, score: &mut TraceScore) {
    let needs = calls.expect.and_then(Expectation::requires_tool);
    score.set(Own::Proactivity, proactivity(calls, needs));
    score.set(Own::Compliance, compliance(calls));
    score.set(
        Own::UnneededCall,
        match needs {
            Some(false) => Ok(yes(!calls.made.is_empty())),
            Some(true) => Err("the task needs a tool"),
            None => Err("the task does not say whether it needs a tool"),
        },
    );
}

fn proactivity(calls: &Calls<'_>, needs: Option<bool>) -> Score {
    let Some(expect) = calls.expect.filter(|_| needs == Some(true)) else {
        return Err("the task does not need a tool");
    };
    if expect.instructed_tool.is_some() {
        return Err("the task instructs a tool");
    }
    if expect.required().next().is_none() {
        return Err("the task names no call that it requires");
    }
    if !calls.has_arguments {
        return Err(NO_ARGUMENTS);
    }
    if expect.required().count().saturating_mul(calls.made.len()) > MAX_PAIRS {
        return Err(TOO_MANY);
    }
    Ok(yes(all_required_made(calls, expect)))
}

/// Returns whether each required call is met by a call of its own, in any order.
fn all_required_made(calls: &Calls<'_>, expect: &Expectation) -> bool {
    let mut made = calls.made.iter();
    if expect.required().all(|(_, wanted)| made.next().is_some_and(|call| wanted.accepts(call))) {
        return true;
    }
    let accepts: Vec<Vec<bool>> = expect
        .required()
        .map(|(_, wanted)| calls.made.iter().map(|call| wanted.accepts(call)).collect())
        .collect();
    let mut taken_by = vec![None; calls.made.len()];
    (0..accepts.len()).all(|wanted| {
        let mut seen = vec![false; calls.made.len()];
        assign(wanted, &accepts, &mut seen, &mut taken_by)
    })
}

/// An augmenting path of a bipartite matching.
fn assign(
    wanted: usize,
    accepts: &[Vec<bool>],
    seen: &mut [bool],
    taken_by: &mut [Option<usize>],
) -> bool {
    for call in 0..seen.len() {
        if !accepts[wanted][call] || std::mem::replace(&mut seen[call], true) {
            continue;
        }
        let free = match taken_by[call] {
            None => true,
            Some(other) => assign(other, accepts, seen, taken_by),
        };
        if free {
            taken_by[call] = Some(wanted);
            return true;
        }
    }
    false
}

fn compliance(calls: &Calls<'_>) -> Score {
    let Some((expect, tool)) =
        calls.expect.and_then(|expect| Some((expect, expect.instructed_tool.as_ref()?)))
    else {
        return Err("no tool was instructed");
    };
    let same_server = |other: &Tool| {
        tool.server.is_none() || other.server.is_none() || other.server == tool.server
    };
    let wanted: Vec<_> = expect
        .all_calls()
        .filter(|(other, _)| other.name == tool.name && same_server(other))
        .map(|(_, wanted)| wanted)
        .collect();
    let of_tool = |call: &CallMade| tool.is(&call.name, call.server.as_deref());
    let called = || calls.trace.calls.iter().zip(&calls.made).filter(|(call, _)| of_tool(call));
    let unrecorded = |call: &CallMade| call.arguments == Arguments::NotRecorded;
    if !wanted.is_empty() && called().any(|(call, _)| unrecorded(call)) {
        return Err(NO_ARGUMENTS);
    }
    Ok(yes(called().any(|(call, made)| {
        call.outcome() != CallOutcome::Failed
            && !matches!(call.arguments, Arguments::Text(_))
            && (wanted.is_empty() || wanted.iter().any(|wanted| wanted.accepts(made)))
    })))
}
