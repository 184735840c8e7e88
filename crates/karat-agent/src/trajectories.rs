//! Two runs of the same tasks, call by call: which calls were inserted, left out, moved or changed.
//!
//! Calls are the same or they are not: a changed amount is a changed call, however close the text. A
//! number may differ only where a tolerance is stated for its argument. The similarity of two runs of a
//! task is the sum of the weights of `alignment` over the longer list.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use karat_core::aggregate;
use karat_core::dataset::Digest;
use karat_core::error::EvalError;
use karat_core::evaluation::{
    Common, Entry, Evaluation, NeverAsked, Observations, Questions, RunContext, Scored, Start,
    conventions,
};
use karat_core::journal::Entry as Outcome;
use karat_core::kind::Kind;
use karat_core::observed::{Difference, Observed, Trajectory};
use karat_core::project::Root;
use karat_core::report::{DatasetRef, Item, ItemError, SystemRef};
use karat_io::text::{count, first_few, printable};
use karat_metrics::MetricId;
use karat_metrics::calls::{Call, Equality, Value};
use serde::{Deserialize, Serialize};

use crate::alignment::{CHANGED, Common as CommonCalls, FULL, MOVED, PART, SAME, Sides};
use crate::formats::TraceFormat;
use crate::intake::TraceSource;
use crate::pairs::Pairs;
use crate::read::{TraceFiles, recognize};
use crate::shown::{clipped, shown_calls};
use crate::tasks::Tasks;
use crate::trace::expected_calls::object;
use crate::trace::{Arguments, CallMade, Trace};
use crate::trace_set::TraceSet;

/// The similarity of the calls.
pub const SIMILARITY: MetricId = MetricId::known("calls.similarity");

/// The number of tasks in a message.
const NAMED: usize = 5;

/// The largest difference of numbers, by the name of the argument.
pub type Tolerances = BTreeMap<String, f64>;

/// The comparison of two runs of the same tasks.
pub struct Trajectories;

/// The settings of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The traces of the earlier run.
    pub before: PathBuf,
    /// The traces of the later run.
    pub after: PathBuf,
    /// The format of both files.
    #[serde(default)]
    pub format: TraceFormat,
    /// Files of tasks, which name the traces.
    #[serde(default)]
    pub tasks: Vec<PathBuf>,
    /// The largest difference of numbers, by argument.
    #[serde(default)]
    pub within: Tolerances,
    /// The share of records that may be bad.
    #[serde(default)]
    pub max_malformed: f64,
}

/// Two runs of the same tasks.
pub struct RunPair {
    before: Vec<Trace>,
    after: Vec<Trace>,
}

impl Evaluation for Trajectories {
    const KIND: Kind = Kind::Trajectories;
    const TABLE: &'static str = "trajectories";
    const TAKES: &'static [&'static str] = &[];
    const ITEMS: &'static str = "tasks";

    type Config = Config;
    type Dataset = RunPair;
    type System = NeverAsked<()>;
    type Facts = ();

    fn check(config: &Config, _: &mut Common) -> Result<(), EvalError> {
        if config.within.values().any(|within| *within < 0.0 || within.is_nan()) {
            return Err(EvalError::config("`within`: a tolerance must not be negative"));
        }
        Ok(())
    }

    fn load(config: &Config, _: &Common, root: &Root<'_>) -> Result<RunPair, EvalError> {
        let tasks = Tasks::load_any(&config.tasks, root)?;
        let read = |file: &PathBuf| {
            let file = root.path(file);
            let files = std::slice::from_ref(&file);
            let formats = recognize(files, config.format)?;
            let files = TraceFiles { files, formats: &formats, metrics: &[] };
            let source = TraceSource {
                files,
                tasks: tasks.as_ref(),
                max_malformed: config.max_malformed,
                prices: None,
            };
            Ok::<_, EvalError>(TraceSet::read(&source)?.traces)
        };
        Ok(RunPair { before: read(&config.before)?, after: read(&config.after)? })
    }

    fn reference(data: &RunPair) -> DatasetRef {
        let pairs = data.pairs();
        let named = pairs.tasks.iter().map(|(name, ..)| name).chain(&pairs.surplus[0]);
        let ids: BTreeSet<&str> = named.map(String::as_str).collect();
        let ids: Vec<&str> = ids.into_iter().collect();
        DatasetRef {
            id: "tasks of the earlier run".to_owned(),
            version: "traces".to_owned(),
            digest: Digest::of(ids.join("\n").as_bytes()).to_string(),
        }
    }

    fn reads(config: &Config) -> Vec<PathBuf> {
        [&config.before, &config.after].into_iter().chain(&config.tasks).cloned().collect()
    }

    async fn start(
        entry: &Entry<Trajectories>,
        _: &RunContext<'_>,
    ) -> Result<Start<Trajectories>, EvalError> {
        Ok(Start::Recorded { outcomes: Vec::new(), reference: system(&entry.config), runs: 1 })
    }

    fn questions(
        _: &Entry<Trajectories>,
        _: &NeverAsked<()>,
        _: &mut Vec<Outcome<()>>,
    ) -> Result<Questions<Trajectories>, EvalError> {
        Ok(Vec::new())
    }

    fn allow(_: &Observations<'_, Trajectories>) -> Result<(), EvalError> {
        Ok(())
    }

    fn score(observed: &Observations<'_, Trajectories>) -> Result<Scored, EvalError> {
        let entry = observed.entry;
        let Compared { tasks, pairs } = entry.data.compare(&entry.config.within);
        if !tasks.iter().any(|task| task.similarity.is_some() && !task.lost) {
            return Err(EvalError::NothingMeasured(match not_compared(&tasks) {
                Some(message) => message,
                None => entry.data.nothing_in_common(),
            }));
        }
        let mut warnings: Vec<String> =
            [only_in("earlier", &pairs.only_before), only_in("later", &pairs.only_after)]
                .into_iter()
                .flatten()
                .collect();
        warnings.extend(["later", "earlier"].iter().zip(&pairs.surplus).filter_map(fewer_runs));
        // The runs of a task are drawn together.
        let group = |at: usize| pairs.are_repeated.then(|| entry.data.before[at].id.clone());
        let items = tasks.into_iter().zip(&pairs.tasks);
        let items: Vec<Item> =
            items.map(|(task, (_, at, _))| Item { group: group(*at), ..item(task) }).collect();
        let refs: Vec<&Item> = items.iter().collect();
        let weights =
            format!("changed {CHANGED}, inserted 0, missing 0, moved {MOVED}, same {SAME}");
        Ok(Scored {
            metrics: vec![aggregate::measure(&SIMILARITY, &refs, 1, entry.common.seed)],
            conventions: conventions([
                ("weights", weights.as_str()),
                ("gone", "a task that the later run does not have counts 0"),
                (
                    "pairs",
                    "by task, and by model, setting and turns where a file has several; runs of a task in their order",
                ),
            ]),
            warnings,
            items,
            ..Scored::default()
        })
    }
}

/// The system of a comparison: the later run, and the earlier one as a setting.
pub fn system(config: &Config) -> SystemRef {
    SystemRef {
        kind: "file".to_owned(),
        name: config.after.display().to_string(),
        version: None,
        settings: [("before".to_owned(), config.before.display().to_string())].into(),
    }
}

/// The first task that could not be compared, and the reason.
pub fn not_compared<'t>(tasks: impl IntoIterator<Item = &'t Trajectory>) -> Option<String> {
    tasks.into_iter().find_map(|task| {
        let reason = task.not_compared.as_deref()?;
        Some(format!("{} was not compared: {reason}", printable(&task.id)))
    })
}

fn only_in(run: &str, ids: &[String]) -> Option<String> {
    let first = first_few(ids, NAMED);
    let text = format!("{} only in the {run} run: {first}", count(ids.len(), "task"));
    (!ids.is_empty()).then_some(text)
}

/// The runs that are left out because the other file, which is named, has fewer of their tasks.
fn fewer_runs((other, ids): (&&str, &Vec<String>)) -> Option<String> {
    let first = first_few(ids, NAMED);
    let text = format!(
        "{} without a counterpart, since the {other} file has fewer runs of the task: {first}",
        count(ids.len(), "run")
    );
    (!ids.is_empty()).then_some(text)
}

fn item(task: Trajectory) -> Item {
    let error = |class: &str, message: &str| ItemError {
        class: class.to_owned(),
        message: message.to_owned(),
    };
    Item {
        id: task.id.clone(),
        metrics: BTreeMap::from([(SIMILARITY, task.similarity)]),
        error: match &task.not_compared {
            Some(reason) => Some(error("not_compared", reason)),
            None => task.lost.then(|| error("lost", "the later run does not have this task")),
        },
        observed: Some(Observed::Trajectories(task)),
        ..Item::default()
    }
}

/// The comparison of two runs of the same tasks.
struct Compared {
    tasks: Vec<Trajectory>,
    pairs: Pairs,
}

impl RunPair {
    fn pairs(&self) -> Pairs {
        let [before, after] =
            [&self.before, &self.after].map(|run| run.iter().collect::<Vec<&Trace>>());
        Pairs::of(&before, &after)
    }

    /// The comparison of each trace of the earlier run with its counterpart.
    fn compare(&self, tolerances: &Tolerances) -> Compared {
        let pairs = self.pairs();
        let task = |(name, at, other): &(String, usize, Option<usize>)| {
            let before = &self.before[*at];
            let found = match other {
                Some(other) => compare(before, &self.after[*other], tolerances),
                None => lost(before),
            };
            Trajectory { id: name.clone(), ..found }
        };
        Compared { tasks: pairs.tasks.iter().map(task).collect(), pairs }
    }

    /// The reason for which no trace has a counterpart.
    fn nothing_in_common(&self) -> String {
        let ids: BTreeSet<&str> = self.before.iter().map(|trace| trace.id.as_str()).collect();
        match self.after.iter().any(|trace| ids.contains(trace.id.as_str())) {
            true => "the two files have tasks in common, but no task with the same model, setting and turns; \
                compare files with the runs of one model in one setting"
                .to_owned(),
            false => "the two files have no task in common".to_owned(),
        }
    }
}

/// Compares two runs of a task.
pub(crate) fn compare(before: &Trace, after: &Trace, tolerances: &Tolerances) -> Trajectory {
    let longer = before.calls.len().max(after.calls.len());
    let aligned = align(&before.calls, &after.calls, tolerances);
    let answer_changed = before.output != after.output;
    let answers = [before, after].map(|trace| trace.output.as_deref().map(clipped));
    Trajectory {
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
        input: before.input.as_deref().or(after.input.as_deref()).map(clipped),
        before: shown_calls(before),
        after: shown_calls(after),
        answers: answer_changed.then_some(answers),
    }
}

/// The comparison of a task that the later run does not have.
fn lost(before: &Trace) -> Trajectory {
    let found = compare(before, &Trace::of(before.id.clone()), &Tolerances::new());
    Trajectory { similarity: Some(0.0), lost: true, ..found }
}

/// The alignment and the sum of its weights; none if there are too many calls.
fn align<'a>(
    before: &'a [CallMade],
    after: &'a [CallMade],
    tolerances: &Tolerances,
) -> Option<(Vec<karat_core::observed::Step>, f64)> {
    let read = |calls: &'a [CallMade]| calls.iter().map(ReadCall::of).collect::<Vec<_>>();
    let (before, after) = (read(before), read(after));
    let worth = |i: usize, j: usize| worth(&before[i], &after[j], tolerances);
    let sides = Sides {
        before: before.iter().map(|call| call.made.shown()).collect(),
        after: after.iter().map(|call| call.made.shown()).collect(),
        worth: &worth,
        differences: &|i, j| differences(&before[i], &after[j], tolerances),
    };
    let common = CommonCalls::of(before.len(), after.len(), &worth)?;
    Some(sides.align(common))
}

/// A call with its arguments, parsed once.
struct ReadCall<'a> {
    made: &'a CallMade,
    /// None if they were not recorded or cannot be read as a JSON object.
    arguments: Option<Call<'a>>,
}

impl<'a> ReadCall<'a> {
    fn of(made: &'a CallMade) -> Self {
        let arguments = match &made.arguments {
            Arguments::Object(text) => object(text).ok().map(|object| Call::new("", object)),
            Arguments::NotRecorded | Arguments::Text(_) => None,
        };
        ReadCall { made, arguments }
    }
}

fn worth(a: &ReadCall<'_>, b: &ReadCall<'_>, tolerances: &Tolerances) -> u32 {
    let same_server = match (&a.made.server, &b.made.server) {
        (Some(a), Some(b)) => a == b,
        _ => true,
    };
    if a.made.name != b.made.name || !same_server {
        return 0;
    }
    if are_same(a, b, tolerances) { FULL } else { PART }
}

/// Returns whether the arguments are the same. Those that cannot be read are the same if their texts are.
fn are_same(a: &ReadCall<'_>, b: &ReadCall<'_>, tolerances: &Tolerances) -> bool {
    if a.made.arguments == b.made.arguments {
        return true;
    }
    match (&a.arguments, &b.arguments) {
        (Some(before), Some(after)) if tolerances.is_empty() => Equality::Json.calls(before, after),
        (Some(_), Some(_)) => differences(a, b, tolerances).is_empty(),
        _ => false,
    }
}

fn differences(a: &ReadCall<'_>, b: &ReadCall<'_>, tolerances: &Tolerances) -> Vec<Difference> {
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

#[cfg(test)]
mod tests {
    use karat_core::observed::Step;

    use super::*;

    fn trace(calls: &[(&str, &str)]) -> Trace {
        let call = |(name, arguments): &(&str, &str)| CallMade {
            name: (*name).to_owned(),
            arguments: Arguments::written(arguments),
            ..CallMade::default()
        };
        Trace { calls: calls.iter().map(call).collect(), ..Trace::of("t") }
    }

    fn diff(before: &[(&str, &str)], after: &[(&str, &str)]) -> Trajectory {
        compare(&trace(before), &trace(after), &Tolerances::new())
    }

    fn similarity(before: &[(&str, &str)], after: &[(&str, &str)]) -> f64 {
        diff(before, after).similarity.unwrap()
    }

    #[test]
    fn equal_calls_are_the_same_however_they_are_written() {
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
    fn a_number_may_differ_only_within_a_stated_tolerance() {
        let (before, after) =
            (trace(&[("pay", r#"{"n":1.00}"#)]), trace(&[("pay", r#"{"n":1.01}"#)]));
        assert_eq!(compare(&before, &after, &Tolerances::new()).similarity, Some(CHANGED));
        let stated = Tolerances::from([("n".to_owned(), 0.02)]);
        assert_eq!(compare(&before, &after, &stated).similarity, Some(SAME));
    }

    #[test]
    fn inserted_missing_and_moved_calls_are_distinguished() {
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
    fn unreadable_arguments_are_the_same_only_if_their_texts_are() {
        // Deeper than Karat reads, and half of a surrogate pair.
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
    fn many_calls_are_compared_to_the_last_one() {
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
    fn several_runs_of_two_models_are_compared_in_their_order() {
        let run = |model: &str, run: u32, tool: &str| Trace {
            run,
            model: Some(model.to_owned()),
            ..trace(&[(tool, "{}")])
        };
        let before = vec![run("old", 1, "f"), run("old", 2, "g"), run("old", 3, "g")];
        let after = vec![run("new", 1, "f"), run("new", 2, "f")];
        let Compared { tasks, pairs } = RunPair { before, after }.compare(&Tolerances::new());
        let found: Vec<_> = tasks.iter().map(|task| (task.id.as_str(), task.similarity)).collect();
        assert_eq!(found, [("t#1", Some(1.0)), ("t#2", Some(0.0))]);
        assert!(tasks.iter().all(|task| !task.lost), "{tasks:?}");
        let warning = fewer_runs((&"later", &pairs.surplus[0])).unwrap();
        assert!(
            warning.starts_with("1 run without a counterpart") && warning.ends_with("t#3"),
            "{warning}"
        );
    }

    #[test]
    fn files_of_several_models_say_why_nothing_is_compared() {
        let run = |model: &str| Trace { model: Some(model.to_owned()), ..trace(&[("f", "{}")]) };
        let pair = RunPair { before: vec![run("a"), run("b")], after: vec![run("c"), run("d")] };
        assert!(pair.compare(&Tolerances::new()).tasks.iter().all(|task| task.lost));
        assert!(
            pair.nothing_in_common().contains("tasks in common, but no task with the same model")
        );
        let other = Trace::of("u");
        let pair = RunPair { before: pair.before, after: vec![other] };
        assert_eq!(pair.nothing_in_common(), "the two files have no task in common");
    }

    #[test]
    fn a_task_that_is_gone_has_nothing_in_common() {
        let named = |id: &str| Trace { id: id.to_owned(), ..trace(&[("f", "{}")]) };
        let pair = RunPair { before: vec![named("a"), named("b")], after: vec![named("a")] };
        let Compared { tasks, pairs } = pair.compare(&Tolerances::new());
        let found: Vec<_> = tasks.iter().map(|task| (task.similarity, task.lost)).collect();
        assert_eq!(found, [(Some(1.0), false), (Some(0.0), true)]);
        assert!(tasks[0].is_same() && !tasks[1].is_same() && pairs.only_after.is_empty());
        let pair = RunPair { before: vec![named("b")], after: vec![named("a")] };
        let Compared { tasks, pairs } = pair.compare(&Tolerances::new());
        assert!(tasks[0].lost && pairs.only_after == ["a"] && pairs.only_before == ["b"]);
        let run = |id: &str, run: u32| Trace { run, ..named(id) };
        let pair = RunPair {
            before: vec![run("a", 1), run("b", 1), run("b", 2)],
            after: vec![named("a")],
        };
        assert_eq!(pair.pairs().only_before, ["b"]);
    }
}
