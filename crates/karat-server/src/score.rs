//! From observations to scored cases and metrics. Pure: the same observations give the same scores.

use std::collections::{BTreeMap, BTreeSet};

use karat_core::aggregate;
use karat_core::expect::Answer;
use karat_core::observed::{self, Observed};
use karat_core::report::{Count, Item, Measured, Property, Slice};
use karat_io::text::clip;
use karat_metrics::{MetricId, metric, stats};

use crate::compliance::{Contract, Fit};
use crate::judge::{Judgement, MAX_COLUMNS, judge, place};
use crate::observation::{Attempt, CaseRun, Outcome};
use crate::probe::rate;
use crate::suite::{Case, Ending, Role};

/// The number of reasons of one case that are listed.
const MAX_REASONS: usize = 20;

/// The share of cases that pass.
pub(crate) const PASS_RATE: MetricId = MetricId::known("pass_rate");

/// A scored case, with the counts that metrics over all cases need.
pub(crate) struct ScoredCase {
    /// The item of the report.
    pub(crate) item: Item,
    /// The attempts that passed, of all.
    pub(crate) attempts: Count,
    /// Failed attempts by class.
    pub(crate) failures: BTreeMap<&'static str, u64>,
    /// Compliance with the declared schemas.
    pub(crate) schemas: SchemaCounts,
    /// The slices that it belongs to, as property and value.
    slices: BTreeSet<(&'static str, String)>,
}

/// Compliance of the calls of a case with the schemas that the server declares, over all attempts and
/// all calls except those that clean up.
#[derive(Debug)]
pub(crate) struct SchemaCounts {
    /// Calls with valid arguments. A call that expects an error has bad ones on purpose and does not
    /// count.
    input: Count,
    /// Results that are valid.
    output: Count,
    /// Problems of arguments.
    input_problems: Vec<String>,
    /// Violations of `format`.
    pub(crate) format_warnings: Vec<String>,
}

impl SchemaCounts {
    fn of(case: &Case, run: &CaseRun, contract: &Contract) -> SchemaCounts {
        let none = Count::independent(0, 0);
        let mut counts = SchemaCounts {
            input: none,
            output: none,
            input_problems: Vec::new(),
            format_warnings: Vec::new(),
        };
        for called in run.attempts.iter().flat_map(|attempt| &attempt.calls) {
            let step = case.step(called.role, called.number);
            // Of a tool without its definition only violations were noted, which make no share.
            let is_defined = !contract.is_only_recorded(&called.tool);
            let judged = called.role != Role::Teardown && called.feature.is_tool() && is_defined;
            let Some(step) = step.filter(|_| judged) else { continue };
            let input = contract.input(&called.tool, &called.arguments);
            let output = contract.output_of(called);
            if matches!(step.ending, Ending::Success | Ending::Answered | Ending::Whatever) {
                add(&mut counts.input, &input);
            }
            add(&mut counts.output, &output);
            let place = place(called);
            counts.input_problems.extend(input.reasons().iter().map(|why| format!("{place}{why}")));
            for (what, fit) in [("argument", &input), ("result", &output)] {
                let found = fit.format_warnings().iter();
                counts
                    .format_warnings
                    .extend(found.map(|why| format!("{}: {place}{what} {why}", case.id)));
            }
        }
        remove_duplicates(&mut counts.input_problems);
        remove_duplicates(&mut counts.format_warnings);
        counts
    }
}

fn add(count: &mut Count, fit: &Fit) {
    if *fit != Fit::NotPromised {
        count.of += 1;
        count.hits += u64::from(matches!(fit, Fit::Fits { .. }));
    }
}

/// Keeps the first of each: attempts repeat each other.
fn remove_duplicates(list: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    list.retain(|entry| seen.insert(entry.clone()));
}

/// Scores a case over all its attempts. It passes if its success rate reaches the target. Secrets are `hidden` in the
/// names of its slices.
pub(crate) fn score(
    case: &Case,
    run: &CaseRun,
    contract: &Contract,
    target: f64,
    hidden: &dyn Fn(String) -> String,
) -> ScoredCase {
    let judged: Vec<Judgement> =
        run.attempts.iter().map(|attempt| judge(case, attempt, contract)).collect();
    let passed = judged.iter().filter(|judgement| judgement.passed()).count() as u64;
    let attempts = Count::independent(passed, judged.len() as u64);
    let mut failures = BTreeMap::new();
    for class in judged.iter().filter_map(|judgement| judgement.class) {
        *failures.entry(class).or_default() += 1;
    }
    let schemas = SchemaCounts::of(case, run, contract);
    let name = name(case, run);
    let share = |count: Count| stats::reliability(count.hits, count.of).ok();
    let reached = share(attempts).map(|rate| if rate >= target { 1.0 } else { 0.0 });
    let item = Item {
        id: case.id.clone(),
        tags: tags(case, name),
        metrics: BTreeMap::from([
            (PASS_RATE, reached),
            (metric!("reliability"), share(attempts)),
            (metric!("schema.input"), share(schemas.input)),
            (metric!("schema.output"), share(schemas.output)),
        ]),
        observed: Some(Observed::Suite(observed::Suite {
            attempts: attempts.of,
            passed,
            failures: failures.iter().map(|(class, n)| ((*class).to_owned(), *n)).collect(),
            input_problems: schemas.input_problems.iter().take(MAX_REASONS).cloned().collect(),
            ..observe(case, name, run, &judged)
        })),
        ..Item::default()
    };
    let slices = slices_of(case, name).map(|(by, value)| (by, hidden(value.to_owned())));
    ScoredCase { item, attempts, failures, schemas, slices: slices.collect() }
}

/// The name of the tool, resource, prompt or method, as the run kept it: without the secrets that an address may have.
fn name<'a>(case: &'a Case, run: &'a CaseRun) -> &'a str {
    let called = run.attempts.iter().find_map(Attempt::call);
    called.map_or(&case.name, |called| &called.tool)
}

/// The call of the first attempt that failed, or else of the first, and the reasons of all.
fn observe(case: &Case, name: &str, run: &CaseRun, judged: &[Judgement]) -> observed::Suite {
    let shown = judged.iter().position(|judgement| !judgement.passed()).unwrap_or(0);
    let call = run.attempts.get(shown).and_then(Attempt::call);
    let mut reasons: Vec<String> =
        judged.iter().flat_map(|judgement| judgement.reasons.iter().cloned()).collect();
    reasons.dedup();
    let more_reasons = reasons.len().saturating_sub(MAX_REASONS) as u64;
    reasons.truncate(MAX_REASONS);
    let clipped = |text: &str| clip(text, MAX_COLUMNS).into_owned();
    observed::Suite {
        about: case.about.clone(),
        tool: case.step.feature.label(name),
        arguments: call
            .map(|call| clipped(&serde_json::to_string(&call.arguments).unwrap_or_default())),
        ended: call.map(|call| call.outcome.class().to_owned()),
        answer: call.map(|call| match &call.outcome {
            Outcome::Result { result } => clipped(Answer::new(result).text()),
            other => other.to_string(),
        }),
        reasons,
        more_reasons,
        ..observed::Suite::default()
    }
}

/// The slices of a case: it belongs to that of each of its tags.
fn slices_of<'a>(case: &'a Case, name: &'a str) -> impl Iterator<Item = (&'static str, &'a str)> {
    let tags = case.tags.iter().map(|tag| (Property::Tag.name(), tag.as_str()));
    let class = case.class.iter().map(|class| (Property::Class.name(), class.as_str()));
    [(case.step.feature.name(), name)].into_iter().chain(tags).chain(class)
}

pub(crate) fn tags(case: &Case, name: &str) -> BTreeMap<String, String> {
    let feature = case.step.feature.name();
    let mut tags = BTreeMap::from([(feature.to_owned(), name.to_owned())]);
    tags.extend(case.class.iter().map(|class| (Property::Class.into(), class.clone())));
    if !case.tags.is_empty() {
        let list: Vec<&str> = case.tags.iter().map(String::as_str).collect();
        tags.insert(Property::Tags.into(), list.join(", "));
    }
    tags
}

/// The metrics over all cases, or over those of a slice.
fn over(scored: &[&ScoredCase], seed: u64, undefined: Undefined) -> Vec<Measured> {
    let items: Vec<&Item> = scored.iter().map(|case| &case.item).collect();
    let rate = |id: MetricId, count: fn(&ScoredCase) -> Count, nothing: &str| {
        let counts = || scored.iter().map(|case| count(case));
        let hits = counts().map(|count| count.hits).sum();
        rate(id, hits, counts().map(|count| count.of).sum(), nothing)
    };
    vec![
        aggregate::measure(&PASS_RATE, &items, 1, seed),
        rate(
            metric!("schema.input"),
            |case| case.schemas.input,
            undefined.unwrap_or("no call that expects a result of a tool that the server has"),
        ),
        rate(
            metric!("schema.output"),
            |case| case.schemas.output,
            undefined.unwrap_or("no result of a tool that declares an outputSchema"),
        ),
        rate(metric!("reliability"), |case| case.attempts, "no case was run"),
    ]
}

/// The reason for which metrics of the definitions are undefined, if they are.
pub(crate) type Undefined = Option<&'static str>;

/// The reason where recorded answers are scored without definitions.
pub(crate) const NO_DEFINITIONS: &str =
    "the definitions of the tools were not recorded; pass them with --tools FILE";

/// The headline metrics.
pub(crate) fn metrics(scored: &[ScoredCase], seed: u64, undefined: Undefined) -> Vec<Measured> {
    let mut metrics = over(&scored.iter().collect::<Vec<_>>(), seed, undefined);
    metrics.extend(pass_hat(scored, seed));
    metrics
}

/// pass^k for every k up to the number of attempts that every repeated case has; beyond [`EVERY_K`] only for
/// that number itself.
fn pass_hat(scored: &[ScoredCase], seed: u64) -> Vec<Measured> {
    let repeated = scored.iter().filter(|case| case.attempts.of > 1);
    let Some(most) = repeated.map(|case| case.attempts.of).min() else { return Vec::new() };
    let over = |k: u64| {
        let scores = scored.iter().map(|case| {
            let found = stats::pass_hat_k(case.attempts.of, case.attempts.hits, k);
            (case.item.id.as_str(), found.ok().filter(|_| case.attempts.of > 1))
        });
        aggregate::over_tasks(&MetricId::new(&format!("pass^{k}")), scores, seed)
    };
    let last = (most > EVERY_K).then_some(most);
    (1..=most.min(EVERY_K)).chain(last).map(over).collect()
}

/// The largest k up to which every pass^k is reported.
const EVERY_K: u64 = 100;

/// The metrics by tool, resource, prompt and method, by tag and by class.
pub(crate) fn slices(scored: &[ScoredCase], seed: u64, undefined: Undefined) -> Vec<Slice> {
    let mut slices = Vec::new();
    let [tool, tag, class] = [Property::Tool, Property::Tag, Property::Class].map(Property::name);
    for by in [tool, "resource", "prompt", "method", tag, class] {
        let mut parts: BTreeMap<&str, Vec<&ScoredCase>> = BTreeMap::new();
        for case in scored {
            for (_, value) in case.slices.iter().filter(|(property, _)| *property == by) {
                parts.entry(value).or_default().push(case);
            }
        }
        slices.extend(parts.into_iter().map(|(value, part)| Slice {
            by: by.to_owned(),
            value: value.to_owned(),
            metrics: over(&part, seed, undefined),
        }));
    }
    slices
}

/// The rules behind the numbers.
pub(crate) fn conventions(target: f64) -> BTreeMap<String, String> {
    let pass = format!("a case passes if the success rate of its attempts is at least {target}");
    karat_core::evaluation::conventions([
        ("pass", pass.as_str()),
        (
            "expected error",
            "a tool error or a protocol error; a timeout, a crash or a failed connection never is",
        ),
        ("schema.input", "over all calls that expect a result, setup and then included"),
        (
            "schema.output",
            "over all results of tools that declare an output schema, setup and then included",
        ),
        (
            "slices",
            "a case belongs to the slice of each of its tags; reliability is over attempts in \
             slices too",
        ),
        ("interval", "Wilson for rates, bootstrap over cases for means, 95 %"),
    ])
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use karat_mcp::{Definition, Revision};
    use serde_json::{Value, json};

    use super::*;
    use crate::observation::Called;
    use crate::suite::{Feature, Suite};

    /// One case, and a contract of the tools `t` (input `a`, output `n`) and `plain`.
    pub(crate) fn prepared(case: &str) -> (Arc<Case>, Contract) {
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

    fn scored(case: &str, attempts: Vec<Attempt>) -> ScoredCase {
        let (case, contract) = prepared(case);
        let run = CaseRun { attempts, asked: None };
        score(&case, &run, &contract, 0.95, &std::convert::identity)
    }

    pub(crate) fn called(role: Role, tool: &str, arguments: &Value, outcome: Outcome) -> Called {
        let arguments = arguments.as_object().unwrap().clone();
        Called {
            role,
            number: 0,
            feature: Feature::Tool,
            tool: tool.to_owned(),
            arguments,
            outcome,
            nanos: 100_000_001,
            notifications: Vec::new(),
            headers: None,
            task: None,
            violation: None,
        }
    }

    pub(crate) fn result(structured: &Value) -> Outcome {
        Outcome::Result { result: json!({"content": [], "structuredContent": structured}) }
    }

    pub(crate) fn refused() -> Outcome {
        Outcome::ProtocolError { code: -32602, message: "unknown tool".to_owned(), data: None }
    }

    #[test]
    fn schemas_are_checked_for_every_call_of_every_attempt() {
        let case = "{tool: plain, setup: [{tool: t, error: any}], then: [{tool: t}], teardown: [{tool: t}], tags: [x, y], class: z}";
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
        let scored = scored(case, attempts);
        assert_eq!(scored.schemas.input, Count::independent(5, 6));
        assert_eq!(scored.schemas.output, Count::independent(3, 3));
        assert_eq!(scored.item.metrics["schema.input"], Some(5.0 / 6.0));
        let Some(Observed::Suite(observed)) = &scored.item.observed else { panic!("not a suite") };
        let problems = &observed.input_problems;
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[1].starts_with("then 1 (t): /a: "), "{problems:?}");
        assert_eq!((observed.attempts, observed.passed), (3, 3));
        assert_eq!(observed.ended.as_deref(), Some("result"));
        let slices: Vec<String> =
            scored.slices.iter().map(|(by, value)| format!("{by}={value}")).collect();
        assert_eq!(slices, ["class=z", "tag=x", "tag=y", "tool=plain"]);
    }

    #[test]
    fn the_call_of_the_first_failed_attempt_is_shown() {
        let attempt = |text: &str| {
            let result = json!({"content": [{"type": "text", "text": text}]});
            let call = called(Role::Call, "plain", &json!({}), Outcome::Result { result });
            Attempt { calls: vec![call], stopped: None }
        };
        let attempts = vec![attempt("x"), attempt("bad"), attempt("worse")];
        let scored = scored("{tool: plain, expect: {contains: x}, about: first}", attempts);
        let Some(Observed::Suite(observed)) = &scored.item.observed else { panic!("not a suite") };
        assert_eq!(observed.answer.as_deref(), Some("bad"));
        assert_eq!((observed.attempts, observed.passed, observed.reasons.len()), (3, 1, 2));
        assert_eq!(observed.failures, BTreeMap::from([("wrong_output".to_owned(), 2)]));
        assert_eq!(scored.item.metrics["pass_rate"], Some(0.0));
        assert_eq!(scored.item.metrics["reliability"], Some(1.0 / 3.0));
    }
}
