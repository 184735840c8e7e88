//! The judgement of an attempt: did each call end as expected, with a valid and expected answer, in
//! time? Nothing here talks to a server.

use std::borrow::Cow;
use std::time::Duration;

use karat_core::expect::{Answer, Matcher};
use karat_io::text::{clip, printable};
use serde_json::{Value, json};

use crate::compliance::Contract;
use crate::denial::granted;
use crate::observation::{Attempt, Called, Outcome};
use crate::probe::reaction;
use crate::probe::refusal::is_refusal;
use crate::suite::{Case, Ending, Role, Step};

/// The columns of a text in a report.
pub(crate) const MAX_COLUMNS: usize = 600;
/// The reason for which the error of a missing tool is not the expected one.
const NO_SUCH_TOOL: &str = "the server has no such tool, so the error does not come from the tool";

/// The judgement of one attempt.
#[derive(Debug, Default)]
pub(crate) struct Judgement {
    /// The reasons for which it failed; empty if it passed.
    pub(crate) reasons: Vec<String>,
    /// The class of the first failure.
    pub(crate) class: Option<&'static str>,
}

impl Judgement {
    pub(crate) fn passed(&self) -> bool {
        self.reasons.is_empty()
    }

    fn fail(&mut self, class: &'static str, reason: impl Into<String>) {
        self.class.get_or_insert(class);
        self.reasons.push(reason.into());
    }
}

/// Judges one attempt.
pub(crate) fn judge(case: &Case, attempt: &Attempt, contract: &Contract) -> Judgement {
    judge_by(case, attempt, contract, |_| true)
}

/// Judges one attempt by everything except its snapshots.
pub(crate) fn judge_without_snapshots(
    case: &Case,
    attempt: &Attempt,
    contract: &Contract,
) -> Judgement {
    judge_by(case, attempt, contract, |matcher| !matcher.is_snapshot())
}

fn judge_by(
    case: &Case,
    attempt: &Attempt,
    contract: &Contract,
    counts: fn(&Matcher) -> bool,
) -> Judgement {
    let mut judgement = Judgement::default();
    if case.needs_tool && case.step.feature.is_tool() && !contract.knows(&case.step.tool) {
        judgement.fail("no_such_tool", NO_SUCH_TOOL);
    }
    if case.any_of {
        judge_any(case, attempt, contract, counts, &mut judgement);
    }
    for called in attempt.calls.iter().filter(|_| !case.any_of) {
        let Some(step) = case.step(called.role, called.number) else { continue };
        // The calls of other sessions are judged by their relation.
        let is_apart = step.relation.as_ref().is_some_and(|one| one.isolated().is_some());
        if called.role != Role::Teardown && !is_apart {
            judge_call(step, called, contract, counts, &mut judgement);
            let unmet =
                step.notices.iter().filter_map(|notice| notice.unmet(&called.notifications));
            for why in unmet {
                judgement.fail("wrong_notifications", format!("{}{why}", place(called)));
            }
            judge_surroundings(step, called, &mut judgement);
        } else if called.role == Role::Teardown && is_missing(called, contract) {
            judgement.fail("no_such_tool", format!("{}{NO_SUCH_TOOL}", place(called)));
        }
    }
    for (number, step) in case.then.iter().enumerate() {
        let Some(relation) = &step.relation else { continue };
        // A relation whose calls were not made is named by the reason for that.
        if attempt.find(Role::Then, number).is_some()
            && let Some(why) = relation.broken(attempt, number)
        {
            judgement.fail("broken_relation", why);
        }
    }
    if let Some(why) = &attempt.stopped {
        judgement.fail("not_made", why.clone());
    }
    if attempt.call().is_none() && judgement.passed() {
        judgement.fail("not_made", "the call was not made");
    }
    if let Some((most, latency)) = case.max_latency_ms.zip(attempt.latency())
        && latency > Duration::from_millis(most)
    {
        let (whole, rest) = (latency.as_millis(), latency.as_nanos() % 1_000_000);
        judgement.fail("late", format!("took {whole}.{rest:06} ms, more than {most} ms"));
    }
    judgement
}

/// Judges the headers of an answer, and the task that led to it.
fn judge_surroundings(step: &Step, called: &Called, judgement: &mut Judgement) {
    if let (Some(plan), Some(seen)) = (&step.task, &called.task) {
        for why in plan.unmet(seen) {
            judgement.fail("wrong_task", format!("{}{why}", place(called)));
        }
    }
    // Without an answer, that is the reason.
    if called.outcome.is_answer() {
        for why in step.headers.iter().filter_map(|one| one.unmet(called.headers.as_ref())) {
            judgement.fail("wrong_headers", format!("{}{why}", place(called)));
        }
    }
}

/// One call that is as expected is enough.
fn judge_any(
    case: &Case,
    attempt: &Attempt,
    contract: &Contract,
    counts: fn(&Matcher) -> bool,
    judgement: &mut Judgement,
) {
    let mut failed = Judgement::default();
    for called in &attempt.calls {
        let Some(step) = case.step(called.role, called.number) else { continue };
        let mut own = Judgement::default();
        judge_call(step, called, contract, counts, &mut own);
        match own.reasons.into_iter().next() {
            None => return,
            Some(reason) => {
                let class = own.class.unwrap_or("wrong_ending");
                failed.fail(class, format!("{}: {reason}", called.tool));
            }
        }
    }
    judgement.class = judgement.class.or(failed.class);
    judgement.reasons.extend(failed.reasons);
}

fn judge_call(
    step: &Step,
    called: &Called,
    contract: &Contract,
    counts: fn(&Matcher) -> bool,
    judgement: &mut Judgement,
) {
    let place = place(called);
    let outcome = &called.outcome;
    if let Some(why) = called.task.as_ref().and_then(|task| task.unsupported.as_ref()) {
        judgement.fail("unsupported", format!("{place}{why}"));
        return;
    }
    if let Some(wrong) = wrong_ending(step, outcome) {
        let known = !step.feature.is_tool() || contract.knows(&step.tool);
        let missing = if known { "" } else { "; the server has no such tool" };
        let class = match outcome.class() {
            "result" => "wrong_ending",
            class => class,
        };
        judgement.fail(class, format!("{place}{wrong}{missing}"));
        return;
    }
    if is_missing(called, contract) {
        judgement.fail("no_such_tool", format!("{place}{NO_SUCH_TOOL}"));
        return;
    }
    // The answer of a task that was cancelled is the task.
    let is_cancelled = step.task.as_ref().is_some_and(|task| task.cancel)
        || called.task.as_ref().is_some_and(|task| task.state() == Some("cancelled"));
    if let Outcome::Result { result } = outcome
        && !is_cancelled
        && let Some(why) = contract.malformed_answer(step.feature, result)
    {
        judgement.fail("invalid_output", format!("{place}the result breaks the protocol: {why}"));
    }
    if let Some(result) = answer_of(outcome) {
        let answer = Answer::new(&result);
        for matcher in step.matchers.iter().filter(|matcher| counts(matcher)) {
            if let Err(why) = matcher.check(&answer) {
                judgement.fail("wrong_output", format!("{place}{why}"));
            }
        }
    }
    if !step.feature.is_tool() || is_cancelled {
        return;
    }
    let output = contract.output_of(called);
    if let Some(reason) = output.reasons().first() {
        judgement
            .fail("invalid_output", format!("{place}the result breaks its schema at {reason}"));
    }
}

/// The prefix that names a call around the case; empty for the call of the case itself.
pub(crate) fn place(called: &Called) -> String {
    match called.role {
        Role::Call => String::new(),
        role => format!("{}: ", call_name(role, called.number, &called.tool)),
    }
}

/// A call around a case, such as `setup 1 (create)`.
pub(crate) fn call_name(role: Role, number: usize, tool: &str) -> String {
    format!("{} {} ({tool})", role.name(), number + 1)
}

/// Returns whether a call around the case failed because its tool is missing: it is not listed, and
/// the call did not end with a result.
fn is_missing(called: &Called, contract: &Contract) -> bool {
    called.role != Role::Call
        && called.feature.is_tool()
        && !contract.knows(&called.tool)
        && called.outcome.class() != "result"
}

/// The value that matchers check: the result, or the message of a protocol error as its text.
pub(crate) fn answer_of(outcome: &Outcome) -> Option<Cow<'_, Value>> {
    match outcome {
        Outcome::Result { result } => Some(Cow::Borrowed(result)),
        Outcome::ProtocolError { message, .. } => {
            Some(Cow::Owned(json!({"content": [{"type": "text", "text": message}]})))
        }
        _ => None,
    }
}

/// The reason for which an outcome is not the expected one. A failed connection never is.
fn wrong_ending(step: &Step, outcome: &Outcome) -> Option<String> {
    let wanted = step.ending;
    let fine = match (wanted, outcome) {
        (Ending::Success, Outcome::Result { .. }) => !outcome.is_tool_error(),
        (Ending::Answered, Outcome::Result { result }) => {
            !outcome.is_tool_error() && !is_refusal(result, Answer::new(result).text())
        }
        (Ending::Denied, Outcome::ProtocolError { .. }) => true,
        (Ending::Denied, Outcome::Result { result }) => {
            let answer = Answer::new(result);
            let asked = step.asked.as_deref().unwrap_or_default();
            let evidence = granted(asked, &reaction::text(outcome));
            if let Some(evidence) = evidence {
                return Some(format!(
                    "{}, expected a denial; the answer: {}",
                    clip(&printable(&evidence.to_string()), MAX_COLUMNS),
                    clip(&printable(answer.text()), MAX_COLUMNS)
                ));
            }
            // An error, a refusal as text, or nothing of what was asked for.
            true
        }
        (Ending::AnyError, Outcome::ProtocolError { .. })
        | (Ending::ProtocolError(None), Outcome::ProtocolError { .. })
        | (Ending::Whatever, Outcome::Result { .. } | Outcome::ProtocolError { .. }) => true,
        (Ending::AnyError | Ending::ToolError, Outcome::Result { .. }) => outcome.is_tool_error(),
        (Ending::ProtocolError(Some(wanted)), Outcome::ProtocolError { code, .. }) => {
            wanted == *code
        }
        _ => false,
    };
    if fine {
        return None;
    }
    let wanted = match wanted {
        Ending::Success => "a result".to_owned(),
        Ending::Answered => "a result that is not a refusal".to_owned(),
        Ending::Denied => "a denial".to_owned(),
        Ending::AnyError => "an error".to_owned(),
        Ending::ToolError => "a tool error".to_owned(),
        Ending::ProtocolError(None) => "a protocol error".to_owned(),
        Ending::ProtocolError(Some(code)) => format!("protocol error {code}"),
        Ending::Whatever => "an answer".to_owned(),
    };
    let mut found = outcome.to_string();
    if let Outcome::Result { result } = outcome {
        found = format!("{found}: {}", Answer::new(result).text());
    }
    Some(format!("ended with {}, expected {wanted}", clip(&printable(&found), MAX_COLUMNS)))
}

/// The reason for which a call outside of a case did not do what it should: another outcome, or
/// another answer.
pub(crate) fn unmet(step: &Step, called: &Called) -> Option<String> {
    let outcome = &called.outcome;
    if let Some(wrong) = wrong_ending(step, outcome) {
        return Some(wrong);
    }
    let mut around = Judgement::default();
    judge_surroundings(step, called, &mut around);
    if let Some(why) = around.reasons.into_iter().next() {
        return Some(why);
    }
    let result = answer_of(outcome)?;
    let answer = Answer::new(&result);
    step.matchers.iter().find_map(|matcher| matcher.check(&answer).err())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::tests::{called, prepared, refused, result};

    fn judged(case: &str, calls: Vec<Called>) -> Vec<String> {
        let (case, contract) = prepared(case);
        judge(&case, &Attempt { calls, stopped: None }, &contract).reasons
    }

    #[test]
    fn a_fraction_of_a_millisecond_too_late_is_late() {
        let call = || vec![called(Role::Call, "plain", &json!({}), result(&json!({})))];
        assert_eq!(
            judged("{tool: plain, max_latency_ms: 100}", call()),
            ["took 100.000001 ms, more than 100 ms"]
        );
        assert_eq!(judged("{tool: plain, max_latency_ms: 101}", call()), [""; 0]);
    }

    #[test]
    fn the_error_of_a_missing_tool_is_never_the_one_that_a_step_expects() {
        for role in [Role::Setup, Role::Then, Role::Teardown] {
            for error in ["any", "protocol", "-32602", "allowed"] {
                let name = role.name();
                let case = format!("{{tool: plain, {name}: [{{tool: gone, error: {error}}}]}}");
                let call = called(Role::Call, "plain", &json!({}), result(&json!({})));
                let step = called(role, "gone", &json!({}), refused());
                let reasons = judged(&case, vec![call, step]);
                let expected = format!("{name} 1 (gone): the server has no such tool");
                assert!(reasons[0].starts_with(&expected), "{case}: {reasons:?}");
            }
        }
        // A tool that answers exists, listed or not.
        let call = called(Role::Call, "plain", &json!({}), result(&json!({})));
        let more = called(Role::Then, "hidden", &json!({}), result(&json!({})));
        assert_eq!(judged("{tool: plain, then: [{tool: hidden}]}", vec![call, more]), [""; 0]);
    }

    #[test]
    fn a_result_that_breaks_the_protocol_fails_every_case() {
        for (case, result) in [
            ("{tool: plain}", json!({})),
            ("{tool: plain, expect: {contains: x}}", json!({"content": [{"text": "x"}]})),
            ("{tool: plain, error: tool}", json!({"content": "x", "isError": true})),
            ("{tool: plain, error: allowed}", json!({"content": [], "isError": 1})),
        ] {
            let call = called(Role::Call, "plain", &json!({}), Outcome::Result { result });
            let reasons = judged(case, vec![call]);
            assert!(
                reasons[0].starts_with("the result breaks the protocol: "),
                "{case}: {reasons:?}"
            );
        }
    }
}
