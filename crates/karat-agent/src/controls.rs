//! Agents of known quality on the same tasks, which prove that the scores can rise and fall: an oracle
//! makes the expected calls, a silent agent makes none, a shuffled one makes those of another task.

use std::collections::BTreeMap;
use std::sync::Arc;

use karat_core::aggregate;
use karat_core::report::{Control, Item};
use karat_metrics::stats::random::Draws;

use crate::report::bare_item;
use crate::scores::{Own, TraceScore, TraceScorer, as_call};
use crate::tools::Tools;
use crate::trace::expectation::{Expectation, Forbidden, Hit};
use crate::trace::expected_calls::{Wanted, examples};
use crate::trace::{Arguments, CallMade, Setting, Trace, Turns};

/// The metrics of the controls.
const SCORES: [Own; 7] = [
    Own::Exact,
    Own::Alignment,
    Own::F1,
    Own::Proactivity,
    Own::Compliance,
    Own::UnneededCall,
    Own::Forbidden,
];
/// Those that an oracle must have at 1; the others it must have at 0.
const ONES: usize = 5;
/// The number of tasks that are played; a control needs no more.
const MAX_PLAYED: usize = 2000;
/// A server that no rule names.
const ANOTHER: &str = "\u{0}another";

/// The tasks that controls play: the first by their id that expect calls, each once.
#[derive(Debug, Default)]
pub(crate) struct ControlTasks(BTreeMap<String, ControlRun>);

/// A task, and calls that do it.
#[derive(Debug)]
struct ControlRun {
    id: String,
    /// The rest of the trace's key: of the traces of a task, the first one counts.
    order: (Option<String>, Setting, Turns, u32),
    expect: Arc<Expectation>,
    calls: Vec<CallMade>,
}

impl ControlTasks {
    /// Adds the task of a trace, if it can be played and is among the first.
    pub(crate) fn add(&mut self, trace: &Trace, expect: &Arc<Expectation>) {
        if !trace.setting.has_tools() || expect.calls.is_none() {
            return;
        }
        let is_full = self.0.len() == MAX_PLAYED;
        if is_full && self.0.last_key_value().is_some_and(|(last, _)| *last < trace.id) {
            return;
        }
        let order = (trace.model.clone(), trace.setting, trace.turns, trace.run);
        if self.0.get(&trace.id).is_some_and(|known| known.order <= order) {
            return;
        }
        // Without calls that keep every rule, an oracle would break one.
        let calls: Option<Vec<CallMade>> =
            expect.required().map(|call| harmless(call, expect)).collect();
        let Some(calls) = calls else { return };
        let (id, expect) = (trace.id.clone(), Arc::clone(expect));
        self.0.insert(id.clone(), ControlRun { id, order, expect, calls });
        if self.0.len() > MAX_PLAYED {
            self.0.pop_last();
        }
    }
}

/// Plays every control; none if no calls are expected.
pub(crate) fn run(tasks: &ControlTasks, tools: &Tools, seed: u64) -> Vec<Control> {
    let tasks: Vec<&ControlRun> = tasks.0.values().collect();
    if tasks.is_empty() {
        return Vec::new();
    }
    let scorer = TraceScorer::new(tools, &[]);
    let oracle: Vec<TraceScore> = tasks.iter().map(|one| one.score(&one.calls, &scorer)).collect();
    let silent: Vec<TraceScore> = tasks.iter().map(|one| one.score(&[], &scorer)).collect();
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
    // Nothing can be proved with tasks that accept each other's calls.
    if pairs().any(|(one, other)| !one.may_accept(&other.calls)) {
        let others: Vec<TraceScore> =
            pairs().map(|(one, other)| one.score(&other.calls, &scorer)).collect();
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

/// A call that is as expected and not forbidden.
fn harmless((tool, call): Wanted<'_>, expect: &Expectation) -> Option<CallMade> {
    let of_a_server = |rule: &Forbidden| rule.tool.name == tool.name && rule.tool.server.is_some();
    let server = match &tool.server {
        Some(server) => Some(server.clone()),
        // Any server is accepted, so it is one that no rule names.
        None => expect.forbidden.iter().any(of_a_server).then(|| ANOTHER.to_owned()),
    };
    let made = |arguments: String| CallMade {
        name: tool.name.clone(),
        server: server.clone(),
        arguments: Arguments::Object(arguments),
        result: Some(serde_json::json!({"content": []})),
        ..CallMade::default()
    };
    let keeps = |call: &CallMade| expect.forbidden.iter().all(|rule| rule.hits(call) == Hit::No);
    examples(call).into_iter().map(made).find(keeps)
}

impl ControlRun {
    fn score(&self, calls: &[CallMade], scorer: &TraceScorer<'_>) -> TraceScore {
        let (expect, calls) = (Some(Arc::clone(&self.expect)), calls.to_vec());
        scorer.score(&Trace { expect, calls, ..Trace::of(self.id.clone()) })
    }

    /// Returns whether calls may be those that the task expects: as many as it allows, and each of them
    /// expected. Checks one call at a time, not by the scores that the control is to prove.
    fn may_accept(&self, calls: &[CallMade]) -> bool {
        let expect = &*self.expect;
        let wanted: Vec<_> = expect.all_calls().map(|(_, call)| call).collect();
        let expected = |call: &CallMade| {
            let call = as_call(Some(expect), call);
            wanted.iter().any(|wanted| wanted.accepts(&call))
        };
        (expect.required().count()..=wanted.len()).contains(&calls.len())
            && calls.iter().all(expected)
    }
}

/// The tasks in another order, from the seed, none at its own place (Sattolo's cycle).
fn shuffled<'p>(tasks: &[&'p ControlRun], seed: u64) -> Vec<&'p ControlRun> {
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
    scores: &[TraceScore],
    seed: u64,
    holds: impl Fn(&[Option<f64>]) -> bool,
) -> Control {
    let items: Vec<Item> = scores
        .iter()
        .enumerate()
        .map(|(number, score)| {
            let values = SCORES.iter().map(|own| (own.id(), score.value(*own)));
            bare_item(&number.to_string(), None, values)
        })
        .collect();
    let refs: Vec<&Item> = items.iter().collect();
    let metrics: Vec<_> =
        SCORES.iter().map(|own| aggregate::measure(&own.id(), &refs, 1, seed)).collect();
    let values: Vec<Option<f64>> = metrics.iter().map(|measured| measured.value).collect();
    let ok = holds(&values);
    let metrics = metrics.into_iter().filter(|measured| measured.value.is_some()).collect();
    Control { name: name.to_owned(), expected: expected.to_owned(), metrics, ok }
}
