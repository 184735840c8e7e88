//! Agents of known quality on the same tasks: they prove that the scores can rise and fall.
//!
//! An oracle makes the expected calls, a silent agent makes none, a shuffled one makes those of
//! another task.

use karat_core::aggregate::{self, Kind, Spec};
use karat_core::report::{Control, Item};
use karat_metrics::stats::random::Draws;

use crate::marks::{self, Hit, Marks};
use crate::tools::Tools;
use crate::trace::expectation::{Expectation, ExpectedCall, Forbidden};
use crate::trace::{Arguments, CallMade, Trace};

/// What the controls are looked at by.
const SPECS: &[Spec] = &[
    Spec { id: "calls.exact", kind: Kind::Rate },
    Spec { id: "calls.alignment", kind: Kind::Mean },
    Spec { id: "calls.f1", kind: Kind::Mean },
    Spec { id: "gauge.proactivity", kind: Kind::Rate },
    Spec { id: "gauge.compliance", kind: Kind::Rate },
    Spec { id: "gauge.unneeded_call", kind: Kind::Rate },
    Spec { id: "calls.forbidden", kind: Kind::Rate },
];
/// Those that an oracle must have at 1; the others it must have at 0.
const ONES: usize = 5;
/// How many tasks are played; a control needs no more.
const PLAYED: usize = 2000;
/// A server that nobody names.
const ANOTHER: &str = "\u{0}another";

/// A task, and calls that do it.
struct Played<'t> {
    task: &'t Trace,
    expect: &'t Expectation,
    calls: Vec<CallMade>,
}

/// Plays every control; none where no calls are expected.
pub fn run(traces: &[Trace], tools: &Tools, seed: u64) -> Vec<Control> {
    let tasks: Vec<Played<'_>> = tasks(traces);
    if tasks.is_empty() {
        return Vec::new();
    }
    let oracle: Vec<Marks> = tasks.iter().map(|one| one.marks(&one.calls, tools)).collect();
    let silent: Vec<Marks> = tasks.iter().map(|one| one.marks(&[], tools)).collect();
    let mut controls = vec![
        control(
            "oracle",
            "every metric of calls is 1, and nothing unneeded or forbidden is called",
            &oracle,
            seed,
            |values| {
                values[..ONES].iter().all(|value| value.is_none_or(|value| value == 1.0))
                    && values[ONES..].iter().all(|value| value.is_none_or(|value| value == 0.0))
            },
        ),
        control(
            "silent",
            "no task that needs a tool is done, and nothing unneeded is called",
            &silent,
            seed,
            |values| values[3..].iter().all(|value| value.is_none_or(|value| value == 0.0)),
        ),
    ];
    let order = shuffled(&tasks, seed);
    let pairs = || tasks.iter().zip(&order);
    // Tasks that accept each other's calls are done by them: then there is nothing to prove.
    if pairs().any(|(one, other)| !one.may_accept(&other.calls)) {
        let others: Vec<Marks> =
            pairs().map(|(one, other)| one.marks(&other.calls, tools)).collect();
        controls.push(control(
            "shuffled",
            "the calls of other tasks are not exact",
            &others,
            seed,
            |values| values[0].is_none_or(|value| value < 1.0),
        ));
    }
    controls
}

/// One trace for each task that expects calls.
fn tasks(traces: &[Trace]) -> Vec<Played<'_>> {
    let mut tasks: Vec<Played<'_>> = Vec::new();
    for task in traces.iter().filter(|trace| trace.setting.has_tools()) {
        let Some(expect) = task.expect.as_ref().filter(|expect| expect.calls.is_some()) else {
            continue;
        };
        if tasks.last().is_some_and(|last| last.task.id == task.id) {
            continue;
        }
        // Where no calls were found that keep every rule, an oracle would break one.
        let calls: Option<Vec<CallMade>> =
            expect.required().map(|call| harmless(call, expect)).collect();
        tasks.extend(calls.map(|calls| Played { task, expect, calls }));
        if tasks.len() == PLAYED {
            break;
        }
    }
    tasks
}

/// A call that is as expected and not forbidden.
fn harmless(call: &ExpectedCall, expect: &Expectation) -> Option<CallMade> {
    let of_a_server =
        |rule: &Forbidden| rule.tool.name == call.tool.name && rule.tool.server.is_some();
    let server = match &call.tool.server {
        Some(server) => Some(server.clone()),
        // Any server will do, so it is one that no rule names.
        None => expect.forbidden.iter().any(of_a_server).then(|| ANOTHER.to_owned()),
    };
    let made = |arguments: String| CallMade {
        name: call.tool.name.clone(),
        server: server.clone(),
        arguments: Arguments::Object(arguments),
        result: Some(serde_json::json!({"content": []})),
        ..CallMade::default()
    };
    let keeps = |call: &CallMade| expect.forbidden.iter().all(|rule| rule.hits(call) == Hit::No);
    call.examples().into_iter().map(made).find(keeps)
}

impl Played<'_> {
    fn marks(&self, calls: &[CallMade], tools: &Tools) -> Marks {
        let (expect, calls) = (Some(self.expect.clone()), calls.to_vec());
        let trace = Trace { expect, calls, ..Trace::of(self.task.id.clone()) };
        marks::mark(&trace, tools, &[])
    }

    /// Whether calls may be those that the task expects: as many as it allows, and none that nothing
    /// expects. They are looked at one by one, by other means than the scores that this is to prove.
    fn may_accept(&self, calls: &[CallMade]) -> bool {
        let expect = self.expect;
        let wanted: Vec<_> = expect.all_calls().map(|call| expect.expected_call(call)).collect();
        let expected = |call: &CallMade| {
            let call = marks::as_call(Some(expect), call);
            wanted.iter().any(|wanted| wanted.accepts(&call))
        };
        (expect.required().count()..=wanted.len()).contains(&calls.len())
            && calls.iter().all(expected)
    }
}

/// The tasks in another order, from the seed, each at another place (Sattolo's cycle).
fn shuffled<'p, 't>(tasks: &'p [Played<'t>], seed: u64) -> Vec<&'p Played<'t>> {
    let mut order: Vec<&Played<'t>> = tasks.iter().collect();
    let mut draws = Draws::from_seed(seed);
    for last in (1..order.len()).rev() {
        order.swap(last, draws.index(last));
    }
    order
}

fn control(
    name: &str,
    expected: &str,
    marks: &[Marks],
    seed: u64,
    holds: impl Fn(&[Option<f64>]) -> bool,
) -> Control {
    let items: Vec<Item> = marks
        .iter()
        .enumerate()
        .map(|(number, marks)| Item {
            id: number.to_string(),
            group: None,
            tags: Default::default(),
            metrics: SPECS.iter().map(|spec| (spec.id.to_owned(), marks.score(spec.id))).collect(),
            per_run: Vec::new(),
            observed: serde_json::Value::Null,
            error: None,
        })
        .collect();
    let refs: Vec<&Item> = items.iter().collect();
    let metrics: Vec<_> =
        SPECS.iter().map(|spec| aggregate::measure(*spec, &refs, 1, seed)).collect();
    let values: Vec<Option<f64>> = metrics.iter().map(|measured| measured.value).collect();
    let ok = holds(&values);
    let metrics = metrics.into_iter().filter(|measured| measured.value.is_some()).collect();
    Control { name: name.to_owned(), expected: expected.to_owned(), metrics, ok }
}
