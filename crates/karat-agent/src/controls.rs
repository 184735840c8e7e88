//! Agents of known quality on the same tasks: they prove that the scores can rise and fall.
//!
//! An oracle makes the expected calls, a silent agent makes none, a shuffled one makes those of
//! another task.

use karat_core::aggregate::{self, Kind, Spec};
use karat_core::report::{Control, Item};
use karat_metrics::stats::random::Draws;

use crate::marks::{self, Marks};
use crate::tools::Tools;
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

/// Plays every control; none where no calls are expected.
pub fn run(traces: &[Trace], tools: &Tools, seed: u64) -> Vec<Control> {
    let tasks: Vec<&Trace> = tasks(traces);
    if tasks.is_empty() {
        return Vec::new();
    }
    let oracle: Vec<Marks> = tasks.iter().map(|task| played(task, task, tools)).collect();
    let silent: Vec<Marks> = tasks.iter().map(|task| silent(task, tools)).collect();
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
    let others: Vec<Marks> =
        tasks.iter().zip(&order).map(|(task, other)| played(task, other, tools)).collect();
    let apart = tasks.iter().zip(&order).any(|(task, other)| calls(task) != calls(other));
    if apart {
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
fn tasks(traces: &[Trace]) -> Vec<&Trace> {
    let mut tasks: Vec<&Trace> = Vec::new();
    for trace in traces.iter().filter(|trace| trace.setting.has_tools()) {
        let expects = trace.expect.as_ref().is_some_and(|expect| expect.calls.is_some());
        if expects && tasks.last().is_none_or(|last| last.id != trace.id) {
            tasks.push(trace);
        }
        if tasks.len() == PLAYED {
            break;
        }
    }
    tasks
}

/// The expected calls of a task.
fn calls(task: &Trace) -> Vec<CallMade> {
    let Some(expect) = &task.expect else { return Vec::new() };
    expect
        .required()
        .map(|call| CallMade {
            name: call.tool.name.clone(),
            server: call.tool.server.clone(),
            arguments: Arguments::Object(call.example()),
            result: Some(serde_json::json!({"content": []})),
            ..CallMade::default()
        })
        .collect()
}

fn with_calls(task: &Trace, calls: Vec<CallMade>, tools: &Tools) -> Marks {
    let trace = Trace { expect: task.expect.clone(), calls, ..Trace::of(task.id.clone()) };
    marks::mark(&trace, tools, &[])
}

fn played(task: &Trace, other: &Trace, tools: &Tools) -> Marks {
    with_calls(task, calls(other), tools)
}

fn silent(task: &Trace, tools: &Tools) -> Marks {
    with_calls(task, Vec::new(), tools)
}

/// The tasks in another order, from the seed, each at another place (Sattolo's cycle).
fn shuffled<'t>(tasks: &[&'t Trace], seed: u64) -> Vec<&'t Trace> {
    let mut order = tasks.to_vec();
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
