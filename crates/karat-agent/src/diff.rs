//! Two runs of the same tasks, call by call: what was inserted, left out, moved or called with other
//! arguments.
//!
//! Calls are the same or they are not: a changed amount is a changed call, however close the text. A
//! number may differ only where a tolerance is stated for its argument. The similarity of two runs of
//! a task is the sum of the weights below over the longer list.

use std::collections::BTreeMap;

use karat_metrics::calls::{Call, Equality, Value};
use serde::Serialize;

pub(crate) mod expected;
mod report;

pub use self::report::SIMILARITY;

use crate::marks;
use crate::trace::expectation::object;
use crate::trace::{Arguments, CallMade, Trace};

/// What a call is worth that is the same, at its place.
pub const SAME: f64 = 1.0;
/// What a call is worth that is the same, at another place.
pub const MOVED: f64 = 0.5;
/// What a call of the same tool with other arguments is worth.
pub const CHANGED: f64 = 0.25;

/// How many calls are aligned with how many others; beyond, a run is not a trajectory but a loop.
const MOST: usize = 2000;

/// How far numbers may differ, by the name of the argument.
pub type Tolerances = BTreeMap<String, f64>;

/// What became of one call.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Step {
    /// The same call, in the same order.
    Same {
        /// Which tool.
        tool: String,
        /// Its place in the earlier run, from 1.
        from: usize,
        /// Its place in the later run.
        to: usize,
    },
    /// The same tool with other arguments.
    Changed {
        /// Which tool.
        tool: String,
        /// Its place in the earlier run, from 1.
        from: usize,
        /// Its place in the later run.
        to: usize,
        /// The arguments that differ.
        arguments: Vec<Difference>,
    },
    /// A call that was not made before.
    Inserted {
        /// Which tool.
        tool: String,
        /// Its place in the later run, from 1.
        at: usize,
    },
    /// A call that is not made any more.
    Missing {
        /// Which tool.
        tool: String,
        /// Its place in the earlier run, from 1.
        at: usize,
    },
    /// A call that was expected, but may be left out, and was.
    LeftOut {
        /// Which tool.
        tool: String,
        /// Its place among the expected calls, from 1.
        at: usize,
    },
    /// The same call at another place.
    Moved {
        /// Which tool.
        tool: String,
        /// Its place in the earlier run, from 1.
        from: usize,
        /// Its place in the later run.
        to: usize,
    },
}

/// An argument that differs; none where it is not given.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The argument.
    pub name: String,
    /// Its earlier value, as JSON.
    pub before: Option<String>,
    /// Its later value, as JSON.
    pub after: Option<String>,
}

/// How two runs of a task differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TaskDiff {
    /// The task.
    pub id: String,
    /// From 0, nothing in common, to 1, the same calls; none if they were not compared.
    pub similarity: Option<f64>,
    /// Why they were not compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_compared: Option<String>,
    /// Whether only the earlier set has the task; its similarity is then 0.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub lost: bool,
    /// What became of each call.
    pub steps: Vec<Step>,
    /// Whether the answers differ.
    pub answer_changed: bool,
    /// What the user asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// The calls of the earlier run, to which the places of the steps refer; the first of them.
    pub before: Vec<serde_json::Value>,
    /// The calls of the later run.
    pub after: Vec<serde_json::Value>,
    /// The earlier and the later answer, where they differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answers: Option<[Option<String>; 2]>,
}

impl TaskDiff {
    /// Whether the calls are known to be the same.
    pub fn is_same(&self) -> bool {
        let same = self.steps.iter().all(|step| matches!(step, Step::Same { .. }));
        same && self.not_compared.is_none() && !self.lost
    }
}

/// Compares two runs of a task.
pub fn compare(before: &Trace, after: &Trace, tolerances: &Tolerances) -> TaskDiff {
    let longer = before.calls.len().max(after.calls.len());
    let aligned = align(&before.calls, &after.calls, tolerances);
    let answer_changed = before.output != after.output;
    let answers = [before, after].map(|trace| trace.output.as_deref().map(marks::clipped));
    TaskDiff {
        id: before.id.clone(),
        similarity: aligned.as_ref().map(|(_, worth)| match longer {
            0 => 1.0,
            longer => worth / longer as f64,
        }),
        not_compared: aligned.is_none().then(|| {
            let (before, after) = (before.calls.len(), after.calls.len());
            format!("{before} calls and {after} calls differ in too many places to be aligned")
        }),
        lost: false,
        steps: aligned.map(|(steps, _)| steps).unwrap_or_default(),
        answer_changed,
        input: before.input.as_deref().or(after.input.as_deref()).map(marks::clipped),
        before: marks::shown_calls(before),
        after: marks::shown_calls(after),
        answers: answer_changed.then_some(answers),
    }
}

/// A task that the later run does not have: none of its calls is made any more.
fn lost(before: &Trace) -> TaskDiff {
    let mut found = compare(before, &Trace::of(before.id.clone()), &Tolerances::new());
    found.similarity = Some(0.0);
    found.lost = true;
    found
}

/// What became of each call, and the sum of the weights; none if there are too many calls.
fn align<'a>(
    before: &'a [CallMade],
    after: &'a [CallMade],
    tolerances: &Tolerances,
) -> Option<(Vec<Step>, f64)> {
    let read = |calls: &'a [CallMade]| calls.iter().map(Read::of).collect::<Vec<Read<'a>>>();
    let (before, after) = (read(before), read(after));
    let worth = |i: usize, j: usize| worth(&before[i], &after[j], tolerances);
    let sides = Sides {
        before: before.iter().map(|call| call.made.shown()).collect(),
        after: after.iter().map(|call| call.made.shown()).collect(),
        worth: &worth,
        differences: &|i, j| differences(&before[i], &after[j], tolerances),
    };
    let common = Common::of(before.len(), after.len(), &worth)?;
    Some(sides.align(common))
}

/// How many calls at the start and at the end are the same in both runs: they need no search.
#[derive(Clone, Copy, Default)]
struct Common {
    start: usize,
    end: usize,
}

impl Common {
    /// None if what is between them is too much to be aligned.
    fn of(n: usize, m: usize, worth: &dyn Fn(usize, usize) -> u32) -> Option<Self> {
        let shorter = n.min(m);
        let start = (0..shorter).take_while(|&at| worth(at, at) == FULL).count();
        let fits = |n: usize, m: usize| n.saturating_mul(m) <= MOST * MOST;
        if fits(n - start, m - start) {
            return Some(Common { start, end: 0 });
        }
        // Only where it must be: the end may take away what an earlier call would be paired with.
        let left = shorter - start;
        let end = (1..=left).take_while(|&back| worth(n - back, m - back) == FULL).count();
        fits(n - start - end, m - start - end).then_some(Common { start, end })
    }
}

/// Two lists of calls, by the names of their tools, and how any two of them compare.
struct Sides<'a> {
    before: Vec<String>,
    after: Vec<String>,
    worth: &'a dyn Fn(usize, usize) -> u32,
    differences: &'a dyn Fn(usize, usize) -> Vec<Difference>,
}

impl Sides<'_> {
    /// What became of each call, and the sum of the weights.
    fn align(&self, common: Common) -> (Vec<Step>, f64) {
        let (before, after) = (&self.before, &self.after);
        let pairs = self.pairs(common);
        let mut partner = vec![None; after.len()];
        let mut left: Vec<usize> = Vec::new();
        for (i, pair) in pairs.iter().enumerate() {
            match pair {
                Some(j) => partner[*j] = Some(i),
                None => left.push(i),
            }
        }
        let moved = self.moved(&partner, &mut left);
        let mut steps = Vec::new();
        let mut sum = 0.0;
        let mut missing = left.into_iter().peekable();
        let gone = |i: usize| Step::Missing { tool: before[i].clone(), at: i + 1 };
        for (j, tool) in after.iter().enumerate() {
            // What is missing is told before the call that it stood in front of.
            if let Some(i) = partner[j] {
                while let Some(earlier) = missing.next_if(|earlier| *earlier < i) {
                    steps.push(gone(earlier));
                }
            }
            let (step, weight) = self.step(j, tool.clone(), partner[j], moved.get(&j).copied());
            steps.push(step);
            sum += weight;
        }
        steps.extend(missing.map(gone));
        (steps, sum)
    }

    /// For each earlier call its later partner.
    fn pairs(&self, Common { start, end }: Common) -> Vec<Option<usize>> {
        let (n, m) = (self.before.len(), self.after.len());
        let within = |i, j| (self.worth)(i + start, j + start);
        let between = best_pairs(n - start - end, m - start - end, &within);
        let mut pairs: Vec<Option<usize>> = (0..start).map(Some).collect();
        pairs.extend(between.into_iter().map(|pair| pair.map(|j| j + start)));
        pairs.extend((m - end..m).map(Some));
        pairs
    }

    /// What is the same elsewhere was moved: by its later place, the earlier one.
    fn moved(&self, partner: &[Option<usize>], left: &mut Vec<usize>) -> BTreeMap<usize, usize> {
        let mut moved: BTreeMap<usize, usize> = BTreeMap::new();
        left.retain(|&i| {
            let free = |j: &usize| {
                partner[*j].is_none() && !moved.contains_key(j) && (self.worth)(i, *j) == FULL
            };
            match (0..partner.len()).find(free) {
                Some(j) => {
                    moved.insert(j, i);
                    false
                }
                None => true,
            }
        });
        moved
    }

    fn step(
        &self,
        j: usize,
        tool: String,
        partner: Option<usize>,
        moved: Option<usize>,
    ) -> (Step, f64) {
        let to = j + 1;
        match (partner, moved) {
            (Some(i), _) if (self.worth)(i, j) == FULL => {
                (Step::Same { tool, from: i + 1, to }, SAME)
            }
            (Some(i), _) => {
                let arguments = (self.differences)(i, j);
                (Step::Changed { tool, from: i + 1, to, arguments }, CHANGED)
            }
            (None, Some(i)) => (Step::Moved { tool, from: i + 1, to }, MOVED),
            (None, None) => (Step::Inserted { tool, at: to }, 0.0),
        }
    }
}

/// The worth of a pair of calls that are the same, and of calls that differ in arguments.
const FULL: u32 = 4;
const PART: u32 = 1;

/// A call with its arguments, parsed once.
struct Read<'a> {
    made: &'a CallMade,
    /// None where they were not recorded, are no JSON object, or are one that cannot be read.
    arguments: Option<Call<'a>>,
}

impl<'a> Read<'a> {
    fn of(made: &'a CallMade) -> Self {
        let arguments = match &made.arguments {
            Arguments::Object(text) => object(text).ok().map(|object| Call::new("", object)),
            Arguments::NotRecorded | Arguments::Text(_) => None,
        };
        Read { made, arguments }
    }
}

fn worth(a: &Read<'_>, b: &Read<'_>, tolerances: &Tolerances) -> u32 {
    let same_server = match (&a.made.server, &b.made.server) {
        (Some(a), Some(b)) => a == b,
        _ => true,
    };
    if a.made.name != b.made.name || !same_server {
        return 0;
    }
    if are_same(a, b, tolerances) { FULL } else { PART }
}

/// Whether the arguments are the same. Those that cannot be read are the same if their texts are.
fn are_same(a: &Read<'_>, b: &Read<'_>, tolerances: &Tolerances) -> bool {
    if a.made.arguments == b.made.arguments {
        return true;
    }
    match (&a.arguments, &b.arguments) {
        (Some(before), Some(after)) if tolerances.is_empty() => Equality::Json.calls(before, after),
        (Some(_), Some(_)) => differences(a, b, tolerances).is_empty(),
        _ => false,
    }
}

/// For each earlier call its later partner, orders kept, at the greatest worth. Of equal choices the
/// one that pairs earlier calls with earlier ones.
fn best_pairs(n: usize, m: usize, worth: &dyn Fn(usize, usize) -> u32) -> Vec<Option<usize>> {
    let width = m + 1;
    let mut best = vec![0_u32; (n + 1) * width];
    for i in (0..n).rev() {
        for j in (0..m).rev() {
            let skip = best[(i + 1) * width + j].max(best[i * width + j + 1]);
            let pair = match worth(i, j) {
                0 => 0,
                worth => worth + best[(i + 1) * width + j + 1],
            };
            best[i * width + j] = skip.max(pair);
        }
    }
    let mut pairs = vec![None; n];
    let (mut i, mut j) = (0, 0);
    while i < n && j < m {
        let here = best[i * width + j];
        let worth = worth(i, j);
        if worth > 0 && here == worth + best[(i + 1) * width + j + 1] {
            pairs[i] = Some(j);
            i += 1;
            j += 1;
        } else if here == best[(i + 1) * width + j] {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs
}

fn differences(a: &Read<'_>, b: &Read<'_>, tolerances: &Tolerances) -> Vec<Difference> {
    if a.made.arguments == b.made.arguments {
        return Vec::new();
    }
    let (Some(before), Some(after)) = (&a.arguments, &b.arguments) else {
        let text = |arguments: &Arguments| match arguments {
            Arguments::NotRecorded => None,
            Arguments::Object(text) | Arguments::Text(text) => Some(text.clone()),
        };
        return vec![Difference {
            name: "(all)".to_owned(),
            before: text(&a.made.arguments),
            after: text(&b.made.arguments),
        }];
    };
    if Equality::Json.calls(before, after) {
        return Vec::new();
    }
    let (before, after) = (before.arguments(), after.arguments());
    let mut found = Vec::new();
    for (name, value) in before.iter() {
        let other = after.get(name);
        if !other.is_some_and(|other| same(name, value, other, tolerances)) {
            found.push(Difference {
                name: name.to_owned(),
                before: Some(value.to_string()),
                after: other.map(ToString::to_string),
            });
        }
    }
    for (name, value) in after.iter().filter(|(name, _)| before.get(name).is_none()) {
        let after = Some(value.to_string());
        found.push(Difference { name: name.to_owned(), before: None, after });
    }
    found
}

fn same(name: &str, a: &Value<'_>, b: &Value<'_>, tolerances: &Tolerances) -> bool {
    if Equality::Json.values(a, b) {
        return true;
    }
    match (tolerances.get(name), a.as_number(), b.as_number()) {
        (Some(within), Some(a), Some(b)) => (a - b).abs() <= *within,
        _ => false,
    }
}

/// Two sets of runs, task by task.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diff {
    /// Always `karat.trajectories/1` here.
    pub schema: String,
    /// The mean similarity over the tasks of the earlier set that were compared; one that the later set
    /// does not have counts 0. None if both have none in common.
    pub similarity: Option<f64>,
    /// How many tasks both have.
    pub tasks: usize,
    /// How many of these have the same calls.
    pub same: usize,
    /// Tasks that only the earlier set has.
    pub only_before: Vec<String>,
    /// Tasks that only the later set has.
    pub only_after: Vec<String>,
    /// What each kind of call is worth.
    pub weights: BTreeMap<String, f64>,
    /// The tasks of the earlier set.
    pub items: Vec<TaskDiff>,
}

/// Compares two sets of runs; records are paired by task, model, setting, turns and run, or by task
/// alone where each set has one record of each.
pub fn compare_all(before: &[Trace], after: &[Trace], tolerances: &Tolerances) -> Diff {
    let unique = |traces: &[Trace]| {
        let ids: std::collections::BTreeSet<&str> = traces.iter().map(|t| t.id.as_str()).collect();
        ids.len() == traces.len()
    };
    let by_task = unique(before) && unique(after);
    let key = |trace: &Trace| match by_task {
        true => trace.id.clone(),
        false => format!(
            "{}@{}/{}/{}#{}",
            trace.id,
            trace.model.as_deref().unwrap_or("-"),
            trace.setting.name(),
            trace.turns.name(),
            trace.run
        ),
    };
    let mut later: BTreeMap<String, &Trace> =
        after.iter().map(|trace| (key(trace), trace)).collect();
    let mut items = Vec::new();
    let mut only_before = Vec::new();
    let earlier: BTreeMap<String, &Trace> =
        before.iter().map(|trace| (key(trace), trace)).collect();
    for (name, trace) in earlier {
        match later.remove(&name) {
            Some(other) => {
                let compared = compare(trace, other, tolerances);
                items.push(TaskDiff { id: name, ..compared });
            }
            None => {
                items.push(TaskDiff { id: name.clone(), ..lost(trace) });
                only_before.push(name);
            }
        }
    }
    let tasks = items.len() - only_before.len();
    let compared = |item: &&TaskDiff| !item.lost && item.similarity.is_some();
    let all: Vec<f64> = items.iter().filter_map(|item| item.similarity).collect();
    Diff {
        schema: "karat.trajectories/1".to_owned(),
        similarity: items.iter().find(compared).and(karat_metrics::stats::mean(&all).ok()),
        tasks,
        same: items.iter().filter(|item| item.is_same()).count(),
        only_before,
        only_after: later.into_keys().collect(),
        weights: [
            ("same", SAME),
            ("moved", MOVED),
            ("changed", CHANGED),
            ("inserted", 0.0),
            ("missing", 0.0),
        ]
        .into_iter()
        .map(|(name, weight)| (name.to_owned(), weight))
        .collect(),
        items,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(calls: &[(&str, &str)]) -> Trace {
        let call = |(name, arguments): &(&str, &str)| CallMade {
            name: (*name).to_owned(),
            arguments: Arguments::written(arguments),
            ..CallMade::default()
        };
        Trace { calls: calls.iter().map(call).collect(), ..Trace::of("t") }
    }

    fn diff(before: &[(&str, &str)], after: &[(&str, &str)]) -> TaskDiff {
        compare(&trace(before), &trace(after), &Tolerances::new())
    }

    fn similarity(before: &[(&str, &str)], after: &[(&str, &str)]) -> f64 {
        diff(before, after).similarity.unwrap()
    }

    #[test]
    fn the_same_calls_are_the_same_whatever_their_spelling() {
        let found = diff(&[("f", r#"{"a":1,"b":2}"#)], &[("f", r#"{"b":2.0,"a":1}"#)]);
        assert!(found.is_same() && found.similarity == Some(1.0));
        assert_eq!(similarity(&[], &[]), 1.0);
    }

    #[test]
    fn a_changed_recipient_is_a_changed_call_however_long_the_rest() {
        let text = "x".repeat(500);
        let with = |to: &str| format!(r#"{{"text":"{text}","to":"{to}"}}"#);
        let found = diff(&[("send", &with("alice"))], &[("send", &with("alicf"))]);
        assert_eq!(found.similarity, Some(CHANGED));
        let [Step::Changed { arguments, .. }] = &found.steps[..] else { panic!("{found:?}") };
        assert_eq!(arguments.len(), 1);
        assert_eq!(
            (arguments[0].name.as_str(), arguments[0].after.as_deref()),
            ("to", Some("\"alicf\""))
        );
    }

    #[test]
    fn a_number_may_differ_only_where_it_is_stated() {
        let (before, after) =
            (trace(&[("pay", r#"{"n":1.00}"#)]), trace(&[("pay", r#"{"n":1.01}"#)]));
        assert_eq!(compare(&before, &after, &Tolerances::new()).similarity, Some(CHANGED));
        let stated = Tolerances::from([("n".to_owned(), 0.02)]);
        assert_eq!(compare(&before, &after, &stated).similarity, Some(SAME));
    }

    #[test]
    fn inserted_missing_and_moved_calls_are_told_apart() {
        let one = |name| (name, "{}");
        let inserted = diff(&[one("a"), one("b")], &[one("a"), one("x"), one("b")]);
        assert_eq!(inserted.steps[1], Step::Inserted { tool: "x".into(), at: 2 });
        assert!((inserted.similarity.unwrap() - 2.0 / 3.0).abs() < 1e-12);
        let missing = diff(&[one("a"), one("x"), one("b")], &[one("a"), one("b")]);
        assert_eq!(missing.steps[1], Step::Missing { tool: "x".into(), at: 2 });
        let moved = diff(&[one("a"), one("b"), one("c")], &[one("b"), one("c"), one("a")]);
        assert_eq!(moved.steps[2], Step::Moved { tool: "a".into(), from: 1, to: 3 });
        assert!((moved.similarity.unwrap() - 2.5 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn arguments_that_cannot_be_read_are_the_same_only_as_texts() {
        // Deeper than Karat reads, and a half of a character that has none beside it.
        let deep = |end: &str| format!(r#"{{"a":{}"{end}"{}}}"#, "[".repeat(200), "]".repeat(200));
        let half = |end: &str| format!(r#"{{"a":"\ud800{end}"}}"#);
        for (before, after) in [(deep("x"), deep("y")), (half("x"), half("y"))] {
            let call = |arguments: &String| CallMade {
                name: "f".to_owned(),
                arguments: Arguments::Object(arguments.clone()),
                ..CallMade::default()
            };
            let trace = |arguments| Trace { calls: vec![call(arguments)], ..Trace::of("t") };
            let (one, other) = (trace(&before), trace(&after));
            assert!(compare(&one, &one, &Tolerances::new()).is_same());
            let found = compare(&one, &other, &Tolerances::new());
            let [Step::Changed { arguments, .. }] = &found.steps[..] else { panic!("{found:?}") };
            let all =
                Difference { name: "(all)".to_owned(), before: Some(before), after: Some(after) };
            assert_eq!(arguments, &[all]);
        }
    }

    #[test]
    fn many_calls_are_compared_to_the_last() {
        let texts: Vec<String> = (0..3000).map(|number| format!(r#"{{"n":{number}}}"#)).collect();
        let calls: Vec<(&str, &str)> = texts.iter().map(|text| ("f", text.as_str())).collect();
        assert_eq!(similarity(&calls, &calls), 1.0);
        let mut changed = calls.clone();
        changed[2500].1 = "{}";
        let found = diff(&calls, &changed);
        assert!(!found.is_same());
        assert_eq!(found.similarity, Some((2999.0 + CHANGED) / 3000.0));
        // One that is new near the start.
        let mut longer = calls.clone();
        longer.insert(1, ("g", "{}"));
        assert_eq!(diff(&calls, &longer).steps[1], Step::Inserted { tool: "g".into(), at: 2 });
    }

    #[test]
    fn too_many_calls_without_a_common_end_are_not_compared() {
        let texts: Vec<String> = (0..2100).map(|number| format!(r#"{{"n":{number}}}"#)).collect();
        let calls: Vec<(&str, &str)> = texts.iter().map(|text| ("f", text.as_str())).collect();
        let mut other = calls.clone();
        other.reverse();
        let found = diff(&calls, &other);
        assert_eq!((found.similarity, found.steps.len(), found.is_same()), (None, 0, false));
        assert!(found.not_compared.is_some_and(|why| why.contains("2100 calls")));
    }

    #[test]
    fn a_task_that_is_gone_counts_as_nothing_in_common() {
        let named = |id: &str| Trace { id: id.to_owned(), ..trace(&[("f", "{}")]) };
        let found = compare_all(&[named("a"), named("b")], &[named("a")], &Tolerances::new());
        assert_eq!((found.similarity, found.tasks, found.same), (Some(0.5), 1, 1));
        assert_eq!(found.only_before, ["b"]);
        assert!(found.items[1].lost && !found.items[1].is_same());
        let none = compare_all(&[named("b")], &[named("a")], &Tolerances::new());
        assert_eq!((none.similarity, none.tasks), (None, 0));
    }
}
