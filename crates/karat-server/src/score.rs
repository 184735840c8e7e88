//! From observations to scored cases. Talks to nobody; the same observations give the same scores.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use karat_core::aggregate::{Kind, Spec};
use karat_core::report::{Count, Item};
use karat_io::text::{clip, printable};
use karat_metrics::stats;
use serde_json::{Value, json};

use crate::compliance::{Contract, Fit};
use crate::observation::{Attempt, Called, Observed, Outcome, Role};
use crate::suite::matcher::{Answer, Prepared};
use crate::suite::{Case, Ending, Step};
use crate::system::shown;

/// How much of a text stands in an item.
const SHOWN: usize = 600;
/// How many reasons of one case are kept.
const REASONS: usize = 20;
/// Why an error of a tool that is not there is not the one that was expected.
const NO_SUCH_TOOL: &str = "the server has no such tool, so it is not the tool that refuses";

/// Whether a case passes.
pub const PASS_RATE: Spec = Spec { id: "pass_rate", kind: Kind::Rate };

/// How one attempt went.
#[derive(Debug)]
pub struct Judged {
    /// Why it failed; empty if it passed.
    pub reasons: Vec<String>,
    /// The class of the first failure, for counting.
    pub class: Option<&'static str>,
}

/// A scored case with what is counted over all cases.
pub struct Scored {
    /// The item of the report.
    pub item: Item,
    /// Attempts that passed, and all.
    pub passed: u64,
    /// All attempts.
    pub attempts: u64,
    /// Failed attempts by class.
    pub failures: BTreeMap<&'static str, u64>,
    /// What the declared schemas say of its calls.
    pub fits: Fits,
    /// The slices that it belongs to: the property and its value.
    pub slices: Vec<(&'static str, String)>,
}

/// What the schemas that the server declares say of the calls of a case: all of them but those that
/// clean up, in all attempts.
#[derive(Debug)]
pub struct Fits {
    /// Calls whose arguments fit. One that wants an error gives bad arguments on purpose, and does not
    /// count.
    pub input: Count,
    /// Results that fit.
    pub output: Count,
    /// What is wrong with arguments.
    pub input_problems: Vec<String>,
    /// What formats would not accept.
    pub format_warnings: Vec<String>,
}

impl Fits {
    fn of(case: &Case, observed: &Observed, contract: &Contract) -> Fits {
        let none = Count { hits: 0, of: 0 };
        let mut fits = Fits {
            input: none,
            output: none,
            input_problems: Vec::new(),
            format_warnings: Vec::new(),
        };
        for called in observed.attempts.iter().flat_map(|attempt| &attempt.calls) {
            let Some(step) = step(case, called).filter(|_| called.role != Role::Teardown) else {
                continue;
            };
            let input = contract.input(&called.tool, &called.arguments);
            let output = contract.output(&called.tool, &called.outcome);
            if matches!(step.ending, Ending::Success | Ending::Whatever) {
                add(&mut fits.input, &input);
            }
            add(&mut fits.output, &output);
            let place = place(called);
            fits.input_problems.extend(input.reasons().iter().map(|why| format!("{place}{why}")));
            for (what, fit) in [("argument", &input), ("result", &output)] {
                let found = fit.format_warnings().iter();
                fits.format_warnings
                    .extend(found.map(|why| format!("{}: {place}{what} {why}", case.id)));
            }
        }
        only_once(&mut fits.input_problems);
        only_once(&mut fits.format_warnings);
        fits
    }
}

fn add(count: &mut Count, fit: &Fit) {
    if *fit != Fit::NotPromised {
        count.of += 1;
        count.hits += u64::from(matches!(fit, Fit::Fits { .. }));
    }
}

/// Keeps the first of each: repetitions say the same again.
fn only_once(list: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    list.retain(|entry| seen.insert(entry.clone()));
}

/// Judges one attempt.
#[must_use]
pub fn judge(case: &Case, attempt: &Attempt, contract: &Contract) -> Judged {
    judge_by(case, attempt, contract, |_| true)
}

/// Judges one attempt by all that is expected of it but its snapshots.
#[must_use]
pub fn judge_but_snapshots(case: &Case, attempt: &Attempt, contract: &Contract) -> Judged {
    judge_by(case, attempt, contract, |matcher| !matcher.is_snapshot())
}

fn judge_by(
    case: &Case,
    attempt: &Attempt,
    contract: &Contract,
    counts: fn(&Prepared) -> bool,
) -> Judged {
    let mut judged = Judged { reasons: Vec::new(), class: None };
    let mut made = 0;
    if case.needs_tool && !contract.knows(&case.step.tool) {
        judged.add("no_such_tool", NO_SUCH_TOOL.to_owned());
    }
    for called in &attempt.calls {
        let Some(step) = step(case, called) else { continue };
        made += usize::from(called.role == Role::Call);
        if called.role != Role::Teardown {
            judge_call(step, called, contract, counts, &mut judged);
        } else if is_missing(called, contract) {
            judged.add("no_such_tool", format!("{}{NO_SUCH_TOOL}", place(called)));
        }
    }
    if let Some(why) = &attempt.stopped {
        judged.add("not_made", why.clone());
    }
    if made == 0 && judged.reasons.is_empty() {
        judged.add("not_made", "the call was not made".to_owned());
    }
    let late = case
        .max_latency_ms
        .zip(attempt.latency())
        .filter(|(most, latency)| *latency > Duration::from_millis(*most));
    if let Some((most, latency)) = late {
        let (whole, rest) = (latency.as_millis(), latency.as_nanos() % 1_000_000);
        let message = format!("took {whole}.{rest:06} ms, more than {most} ms");
        judged.add("late", message);
    }
    judged
}

impl Judged {
    fn add(&mut self, class: &'static str, reason: String) {
        self.class.get_or_insert(class);
        self.reasons.push(reason);
    }
}

fn step<'a>(case: &'a Case, called: &Called) -> Option<&'a Step> {
    match called.role {
        Role::Setup => case.setup.get(called.number),
        Role::Call => Some(&case.step),
        Role::Then => case.then.get(called.number),
        Role::Teardown => case.teardown.get(called.number),
    }
}

/// Which call of the case it is, before what is said of it.
fn place(called: &Called) -> String {
    let role = match called.role {
        Role::Call => return String::new(),
        Role::Setup => "setup",
        Role::Then => "then",
        Role::Teardown => "teardown",
    };
    format!("{role} {} ({}): ", called.number + 1, called.tool)
}

/// Whether a call around the case met no tool: it is not listed, and whatever answered was an error.
fn is_missing(called: &Called, contract: &Contract) -> bool {
    called.role != Role::Call && !contract.knows(&called.tool) && called.outcome.class() != "result"
}

fn judge_call(
    step: &Step,
    called: &Called,
    contract: &Contract,
    counts: fn(&Prepared) -> bool,
    judged: &mut Judged,
) {
    let name = place(called);
    let outcome = &called.outcome;
    if let Some(wrong) = wrong_ending(step.ending, outcome) {
        let mut reason = format!("{name}{wrong}");
        if !contract.knows(&step.tool) {
            reason.push_str("; the server has no such tool");
        }
        let class = match outcome.class() {
            "result" => "wrong_ending",
            class => class,
        };
        judged.add(class, reason);
        return;
    }
    if is_missing(called, contract) {
        judged.add("no_such_tool", format!("{name}{NO_SUCH_TOOL}"));
        return;
    }
    if let Outcome::Result { result } = outcome
        && let Some(why) = contract.malformed(result)
    {
        judged.add("invalid_output", format!("{name}the result breaks the protocol: {why}"));
    }
    if let Some(result) = answered(outcome) {
        let answer = Answer::new(&result);
        for matcher in step.matchers.iter().filter(|matcher| counts(matcher)) {
            if let Err(why) = matcher.check(&answer) {
                judged.add("wrong_output", format!("{name}{why}"));
            }
        }
    }
    let output = contract.output(&step.tool, outcome);
    if let Some(reason) = output.reasons().first() {
        judged.add("invalid_output", format!("{name}the result breaks its schema at {reason}"));
    }
}

/// What matchers look at: the result, or the message of a protocol error as its text.
pub(crate) fn answered(outcome: &Outcome) -> Option<Cow<'_, Value>> {
    match outcome {
        Outcome::Result { result } => Some(Cow::Borrowed(result)),
        Outcome::ProtocolError { message, .. } => {
            Some(Cow::Owned(json!({"content": [{"type": "text", "text": message}]})))
        }
        _ => None,
    }
}

/// Why the call did not end as it must. A connection that fails is never the error that was expected.
pub(crate) fn wrong_ending(wanted: Ending, outcome: &Outcome) -> Option<String> {
    let fine = match (wanted, outcome) {
        (Ending::Success, Outcome::Result { .. }) => !outcome.is_tool_error(),
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
        Ending::AnyError => "an error".to_owned(),
        Ending::ToolError => "a tool error".to_owned(),
        Ending::ProtocolError(None) => "a protocol error".to_owned(),
        Ending::ProtocolError(Some(code)) => format!("protocol error {code}"),
        Ending::Whatever => "an answer".to_owned(),
    };
    let mut words = outcome.words();
    if let (true, Outcome::Result { result }) = (outcome.is_tool_error(), outcome) {
        words = format!("{words}: {}", Answer::new(result).text());
    }
    Some(format!("ended with {}, expected {wanted}", clip(&printable(&words), SHOWN)))
}

/// Scores a case over all its attempts. It passes when its success rate reaches the target.
#[must_use]
pub fn score(case: &Case, observed: &Observed, contract: &Contract, target: f64) -> Scored {
    let judged: Vec<Judged> =
        observed.attempts.iter().map(|attempt| judge(case, attempt, contract)).collect();
    let attempts = judged.len() as u64;
    let passed = judged.iter().filter(|judged| judged.reasons.is_empty()).count() as u64;
    let failures = failures(&judged);
    let rate = stats::reliability(passed, attempts).ok();
    let reached = rate.map(|rate| if rate >= target { 1.0 } else { 0.0 });

    let fits = Fits::of(case, observed, contract);
    let share = |count: Count| stats::reliability(count.hits, count.of).ok();
    let metrics = BTreeMap::from([
        ("pass_rate".to_owned(), reached),
        ("reliability".to_owned(), rate),
        ("schema.input".to_owned(), share(fits.input)),
        ("schema.output".to_owned(), share(fits.output)),
    ]);

    let item = Item {
        id: case.id.clone(),
        group: None,
        tags: tags(case),
        metrics,
        per_run: Vec::new(),
        observed: observation(case, observed, &judged, &fits),
        error: None,
    };
    Scored { item, passed, attempts, failures, fits, slices: slices(case) }
}

/// Failed attempts by the class of their first failure.
fn failures(judged: &[Judged]) -> BTreeMap<&'static str, u64> {
    let mut failures = BTreeMap::new();
    for class in judged.iter().filter_map(|judged| judged.class) {
        *failures.entry(class).or_default() += 1;
    }
    failures
}

fn slices(case: &Case) -> Vec<(&'static str, String)> {
    let mut slices = vec![("tool", case.step.tool.clone())];
    slices.extend(case.tags.iter().map(|tag| ("tag", tag.clone())));
    slices.extend(case.class.iter().map(|class| ("class", class.clone())));
    slices
}

pub(crate) fn tags(case: &Case) -> BTreeMap<String, String> {
    let mut tags = BTreeMap::from([("tool".to_owned(), case.step.tool.clone())]);
    if let Some(class) = &case.class {
        tags.insert("class".to_owned(), class.clone());
    }
    if !case.tags.is_empty() {
        let list: Vec<&str> = case.tags.iter().map(String::as_str).collect();
        tags.insert("tags".to_owned(), list.join(", "));
    }
    tags
}

/// What a reader wants to see of a case: the call, what came back, and why it failed.
fn observation(case: &Case, observed: &Observed, judged: &[Judged], fits: &Fits) -> Value {
    let telling = judged.iter().position(|judged| !judged.reasons.is_empty()).unwrap_or(0);
    let call = observed.attempts.get(telling).and_then(Attempt::call);
    let mut reasons: Vec<&str> =
        judged.iter().flat_map(|judged| &judged.reasons).map(String::as_str).collect();
    reasons.dedup();
    let more = reasons.len().saturating_sub(REASONS);
    reasons.truncate(REASONS);
    let answered = call.map(|call| match &call.outcome {
        Outcome::Result { result } => clip(Answer::new(result).text(), SHOWN).into_owned(),
        other => other.words(),
    });
    json!({
        "about": case.about,
        "tool": case.step.tool,
        "arguments": call.map(|call| clip(&shown(&call.arguments), SHOWN).into_owned()),
        "ended": call.map(|call| call.outcome.class()),
        "answer": answered,
        "attempts": judged.len(),
        "passed": judged.iter().filter(|judged| judged.reasons.is_empty()).count(),
        "failures": failures(judged),
        "reasons": reasons,
        "more_reasons": more,
        "input_problems": &fits.input_problems[..fits.input_problems.len().min(REASONS)],
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use karat_mcp::{Definition, Revision};

    use super::*;
    use crate::suite::Suite;

    /// One case, and a contract of the tools `t` (input `a`, output `n`) and `plain`.
    fn prepared(case: &str) -> (std::sync::Arc<Case>, Contract) {
        let text = format!("cases:\n  - {case}\n");
        let suite = Suite::parse(Path::new("s.yaml"), text.as_bytes()).unwrap();
        let number = |key: &str| json!({"type": "object", "properties": {key: {"type": "integer"}}, "required": [key]});
        let tools = [
            json!({"name": "t", "inputSchema": number("a"), "outputSchema": number("n")}),
            json!({"name": "plain", "inputSchema": {"type": "object"}}),
        ];
        let tools = tools.map(|tool| Definition::new(tool).unwrap());
        (suite.cases[0].clone(), Contract::new(&tools, Revision::default()))
    }

    fn called(role: Role, tool: &str, arguments: &Value, outcome: Outcome) -> Called {
        let arguments = arguments.as_object().unwrap().clone();
        Called { role, number: 0, tool: tool.to_owned(), arguments, outcome, nanos: 100_000_001 }
    }

    fn result(structured: &Value) -> Outcome {
        Outcome::Result { result: json!({"content": [], "structuredContent": structured}) }
    }

    fn refused() -> Outcome {
        Outcome::ProtocolError { code: -32602, message: "unknown tool".to_owned(), data: None }
    }

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
    fn an_error_of_a_tool_that_is_not_there_is_none_that_a_step_may_expect() {
        for (role, name) in
            [(Role::Setup, "setup"), (Role::Then, "then"), (Role::Teardown, "teardown")]
        {
            for error in ["any", "protocol", "-32602", "allowed"] {
                let case = format!("{{tool: plain, {name}: [{{tool: gone, error: {error}}}]}}");
                let with = |outcome: Outcome| {
                    let call = called(Role::Call, "plain", &json!({}), result(&json!({})));
                    judged(&case, vec![call, called(role, "gone", &json!({}), outcome)])
                };
                let reasons = with(refused());
                assert!(
                    reasons[0]
                        .starts_with(&format!("{name} 1 (gone): the server has no such tool")),
                    "{case}: {reasons:?}"
                );
            }
        }
        // What answers is there, listed or not.
        let call = called(Role::Call, "plain", &json!({}), result(&json!({})));
        let more = called(Role::Then, "hidden", &json!({}), result(&json!({})));
        assert_eq!(judged("{tool: plain, then: [{tool: hidden}]}", vec![call, more]), [""; 0]);
    }

    #[test]
    fn schemas_are_kept_by_every_call_of_every_attempt() {
        let (case, contract) = prepared(
            "{tool: plain, setup: [{tool: t, error: any}], then: [{tool: t}], teardown: [{tool: t}], tags: [x, y], class: z}",
        );
        let attempt = |a: Value, n: Value| Attempt {
            calls: vec![
                called(Role::Setup, "t", &json!({"a": "on purpose"}), refused()),
                called(Role::Call, "plain", &json!({}), result(&json!({}))),
                called(Role::Then, "t", &json!({"a": a}), result(&json!({"n": n}))),
                called(Role::Teardown, "t", &json!({}), refused()),
            ],
            stopped: None,
        };
        let attempts = vec![
            attempt(json!(1), json!(1)),
            attempt(json!("1"), json!(1)),
            attempt(json!(1), json!(1)),
        ];
        let scored = score(&case, &Observed { attempts }, &contract, 0.95);
        assert_eq!(scored.fits.input, Count { hits: 5, of: 6 });
        assert_eq!(scored.fits.output, Count { hits: 3, of: 3 });
        assert_eq!(scored.item.metrics["schema.input"], Some(5.0 / 6.0));
        let problems = &scored.fits.input_problems;
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[1].starts_with("then 1 (t): /a: "), "{problems:?}");
        let slices: Vec<String> =
            scored.slices.iter().map(|(by, value)| format!("{by}={value}")).collect();
        assert_eq!(slices, ["tool=plain", "tag=x", "tag=y", "class=z"]);
    }

    #[test]
    fn a_result_that_breaks_the_protocol_fails_whatever_is_expected() {
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
