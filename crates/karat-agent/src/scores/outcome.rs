//! The outcome of a task: answer, state, success.

use super::calls::forbidden;
use super::score::{Own, Score, TraceScore, yes};
use crate::trace::expectation::Expectation;
use crate::trace::{Outcome, Trace};

pub(super) const NO_STATE: &str = "the state was not recorded";
const NO_ANSWER: &str = "the answer was not recorded";

pub(super) fn score(trace: &Trace, expect: Option<&Expectation>, score: &mut TraceScore) {
    let answer = match (expect.filter(|expect| !expect.answer.is_empty()), &trace.output) {
        (None, _) => Err("no answer is expected"),
        // An agent that was stopped gave no answer; otherwise it is only not known.
        (Some(_), None) if trace.stopped.is_none() => Err(NO_ANSWER),
        (Some(expect), output) => Ok(yes(expect.answer_holds(output.as_deref()))),
    };
    let state = match (expect.filter(|expect| !expect.state.is_empty()), &trace.state) {
        (None, _) => Err("no state is expected"),
        // A state that was not recorded neither has something nor lacks it.
        (Some(_), None) => Err(NO_STATE),
        (Some(expect), Some(state)) => Ok(yes(expect.state_holds(state))),
    };
    score.set(Own::Answer, answer);
    score.set(Own::State, state);
    let judged = trace.outcome;
    let judged_score = judged.and_then(|outcome| outcome.score.or(outcome.passed.map(yes)));
    score.scores[Own::Outcome as usize] = judged_score.map(Ok);
    let exact = score.get(Own::Exact);
    score.set(Own::Success, success(trace, expect, [answer, state], exact));
}

/// Returns whether the task was done: everything that it states must hold. A part that is known to be wrong
/// decides; otherwise a part that is not known leaves it open.
fn success(
    trace: &Trace,
    expect: Option<&Expectation>,
    [answer, state]: [Score; 2],
    exact: Option<Score>,
) -> Score {
    // Where nothing is expected, an outcome that was judged elsewhere decides.
    let judged = trace.outcome.and_then(Outcome::succeeded).map(yes).ok_or("nothing is expected");
    let Some(expect) = expect else { return judged };
    let mut parts = Vec::new();
    if !expect.answer.is_empty() {
        parts.push(answer);
    }
    if !expect.state.is_empty() {
        parts.push(state);
    }
    if parts.is_empty() && expect.calls.is_some() {
        parts.push(exact.unwrap_or(Err("only calls are expected, and there were no tools")));
    }
    if !expect.forbidden.is_empty() {
        parts.push(forbidden(trace, Some(expect)).map(|made| 1.0 - made));
    }
    if parts.is_empty() {
        return judged;
    }
    if parts.contains(&Ok(0.0)) {
        return Ok(0.0);
    }
    parts.into_iter().find(Score::is_err).unwrap_or(Ok(1.0))
}
