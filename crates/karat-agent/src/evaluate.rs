//! From traces to a report: items, headline metrics, slices, what tools are good for and what they
//! cost.
//!
//! Every trace is one item. Traces without tools count only where they are compared with those that
//! had them. Nothing here reads a file or a clock.

use std::collections::{BTreeMap, BTreeSet};

use karat_core::aggregate::{self, Kind, Spec};
use karat_core::provenance::Stopwatch;
use karat_core::report::{self, Evaluation, Item, Measured, Report, Slice, SystemRef};
use karat_metrics::Undefined;
use karat_metrics::stats::{self, Bootstrap};

use crate::controls;
use crate::diff;
use crate::judge::Verdicts;
use crate::marks::{self, Confusion, Marks};
use crate::metric::CallMetric;
use crate::recorded::Recorded;
use crate::tools::Tools;
use crate::trace::{Key, Setting, Trace, Turns};

/// The metrics of every report, in the order in which they are shown.
pub const SPECS: &[Spec] = &[
    rate("task.success"),
    rate("calls.exact"),
    mean("calls.alignment"),
    mean("calls.f1"),
    rate("answer.correct"),
    rate("state.reached"),
    rate("gauge.proactivity"),
    rate("gauge.compliance"),
    rate("gauge.unneeded_call"),
    mean("gauge.effectiveness"),
    rate("gauge.success_with_tools"),
    rate("gauge.success_without_tools"),
    mean("gauge.overhead_tokens"),
    mean("gauge.tokens_with_tools"),
    mean("gauge.tokens_without_tools"),
    mean("gauge.overhead_ms"),
    mean("gauge.ms_with_tools"),
    mean("gauge.ms_without_tools"),
    mean("mcpbench.tool_name_validity"),
    mean("mcpbench.schema_compliance"),
    mean("mcpbench.execution_success"),
    mean("calls.first_error"),
    rate("calls.forbidden"),
    rate("calls.loop"),
    mean("ragas.tool_call_accuracy"),
    mean("ragas.tool_call_accuracy_unordered"),
    mean("ragas.tool_call_f1"),
    mean("deepeval.tool_correctness"),
    mean("deepeval.tool_correctness|ordered|name+input"),
    mean("run.tokens"),
    mean("run.ms"),
];

/// How many runs pass@k and pass^k are given for, and what they are called then.
const RUNS: [(u64, &str, &str); 5] = [
    (1, "pass@1", "pass^1"),
    (2, "pass@2", "pass^2"),
    (3, "pass@3", "pass^3"),
    (5, "pass@5", "pass^5"),
    (10, "pass@10", "pass^10"),
];
/// Metrics that set tools against none: means over tasks, of which each weighs the same however often it
/// was run.
const OVER_TASKS: [&str; 9] = [
    "gauge.effectiveness",
    "gauge.success_with_tools",
    "gauge.success_without_tools",
    "gauge.overhead_tokens",
    "gauge.tokens_with_tools",
    "gauge.tokens_without_tools",
    "gauge.overhead_ms",
    "gauge.ms_with_tools",
    "gauge.ms_without_tools",
];
/// How many kinds of trouble are listed in words.
const LISTED: usize = 10;

const fn rate(id: &'static str) -> Spec {
    Spec { id, kind: Kind::Rate }
}

const fn mean(id: &'static str) -> Spec {
    Spec { id, kind: Kind::Mean }
}

/// How traces are scored.
#[derive(Debug)]
pub struct Scoring<'a> {
    /// The name of the report.
    pub name: &'a str,
    /// What was on offer.
    pub tools: &'a Tools,
    /// The metrics of calls, beside ours: [`marks::peer_metrics`] or those that were asked for.
    pub metrics: &'a [CallMetric],
    /// What a judge said, where it was asked.
    pub verdicts: Option<&'a Verdicts>,
    /// An earlier run of the same tasks, to be compared call by call.
    pub before: Option<&'a [Trace]>,
    /// The seed of the bootstrap.
    pub seed: u64,
    /// Where the traces came from, for the report.
    pub system: SystemRef,
}

impl Scoring<'_> {
    /// Scores the traces.
    pub fn report(&self, recorded: &Recorded, stopwatch: &Stopwatch) -> Report {
        let traces = &recorded.traces;
        let marks: Vec<Marks> =
            traces.iter().map(|trace| marks::mark(trace, self.tools, self.metrics)).collect();
        let specs = self.specs();
        let mut items = items(traces, &marks, self.verdicts);
        let compared = self.before.and_then(|before| trajectories(before, traces, &mut items));
        let runs = Runs::of(traces);
        let every = runs.every;
        let averaging = Averaging { tasks: tasks(traces), runs, seed: self.seed };
        let metrics = averaging.headline(&specs, &items, traces, &marks);
        let mut controls = controls::run(traces, self.tools, self.seed);
        controls.extend(expected_scores(traces, &marks));
        let dataset = recorded.reference.clone().unwrap_or_else(|| report::DatasetRef {
            id: "traces".to_owned(),
            version: "tasks".to_owned(),
            digest: String::new(),
        });
        Report {
            schema: report::SCHEMA.to_owned(),
            evaluation: Evaluation::Agent,
            name: self.name.to_owned(),
            dataset,
            system: self.system.clone(),
            runs: every,
            seed: self.seed,
            conventions: self.conventions(),
            metrics,
            slices: averaging
                .slices(&specs, &items)
                .into_iter()
                .chain(confusions(traces, &marks))
                .collect(),
            items,
            controls,
            comparison: None,
            gate: None,
            warnings: warnings(recorded, &marks).into_iter().chain(compared).collect(),
            environment: stopwatch.environment(&[], None),
        }
    }

    fn specs(&self) -> Vec<Spec> {
        let mut specs = SPECS.to_vec();
        for metric in self.metrics {
            let id = metric.short_id();
            if specs.iter().all(|spec| spec.id != id) {
                // Once for each metric that a user names: a spec lives as long as the program.
                specs.push(mean(Box::leak(id.into_boxed_str())));
            }
        }
        if self.verdicts.is_some() {
            specs.extend([mean("judge.task_completion"), mean("judge.agreement")]);
        }
        specs
    }

    fn conventions(&self) -> BTreeMap<String, String> {
        let mut conventions = conventions();
        if let Some(verdicts) = self.verdicts {
            let by: Vec<&str> = verdicts.by.iter().map(String::as_str).collect();
            conventions.insert(
                "judge.task_completion".to_owned(),
                format!(
                    "recorded votes of {}, {} not given; an opinion, gated only where it is named",
                    by.join(", "),
                    verdicts.missing
                ),
            );
        }
        conventions
    }
}

/// Puts into each item how its calls differ from those of the earlier run, and says so in a sentence.
fn trajectories(before: &[Trace], after: &[Trace], items: &mut [Item]) -> Option<String> {
    let names = Names::of(after);
    let mut earlier: BTreeMap<Key<'_>, &Trace> = before.iter().map(|t| (t.key(), t)).collect();
    let (mut all, mut same, mut not_compared) = (Vec::new(), 0_usize, 0_usize);
    for trace in after {
        let Some(other) = earlier.remove(&trace.key()) else { continue };
        let found = diff::compare(other, trace, &diff::Tolerances::new());
        not_compared += usize::from(found.not_compared.is_some());
        all.extend(found.similarity);
        same += usize::from(found.is_same());
        let id = names.id(trace);
        let item = items.binary_search_by(|item| item.id.cmp(&id)).ok();
        if let (Some(item), Ok(value)) = (item, serde_json::to_value(&found))
            && let Some(observed) = items[item].observed.as_object_mut()
        {
            observed.insert("trajectory".to_owned(), value);
        }
    }
    let count = all.len();
    let too_many = match not_compared {
        0 => String::new(),
        more => format!("; {more} have too many calls to be compared"),
    };
    let similarity = match stats::mean(&all) {
        Ok(mean) => format!(", mean similarity {mean:.4}"),
        Err(_) if not_compared == 0 => return None,
        Err(_) => String::new(),
    };
    Some(format!(
        "against the earlier run: {same} of {count} traces make the same calls{similarity}{too_many}"
    ))
}

/// What a judge said about a trace with tools.
fn judged(trace: &Trace, verdicts: Option<&Verdicts>) -> BTreeMap<String, Option<f64>> {
    let verdicts = verdicts.filter(|_| trace.setting.has_tools());
    let Some(opinion) = verdicts.map(|verdicts| verdicts.of(trace).unwrap_or_default()) else {
        return BTreeMap::new();
    };
    BTreeMap::from([
        ("judge.task_completion".to_owned(), opinion.score),
        ("judge.agreement".to_owned(), opinion.agreement),
    ])
}

/// What tells traces of different tasks and models apart, whatever the setting and run.
type Pair<'a> = (&'a str, Option<&'a str>, Turns);

fn pair(trace: &Trace) -> Pair<'_> {
    (&trace.id, trace.model.as_deref(), trace.turns)
}

/// The means without tools: success, tokens, milliseconds.
#[derive(Default)]
struct Bare {
    success: Vec<f64>,
    tokens: Vec<f64>,
    ms: Vec<f64>,
}

fn items(traces: &[Trace], marks: &[Marks], verdicts: Option<&Verdicts>) -> Vec<Item> {
    let mut bare: BTreeMap<Pair<'_>, Bare> = BTreeMap::new();
    for (trace, marks) in traces.iter().zip(marks) {
        if trace.setting == Setting::WithoutTools && trace.failed.is_none() {
            let entry = bare.entry(pair(trace)).or_default();
            entry.success.extend(marks.score("task.success"));
            entry.tokens.extend(trace.usage.tokens().map(|tokens| tokens as f64));
            entry.ms.extend(trace.usage.duration_ms);
        }
    }
    let names = Names::of(traces);
    let mut items: Vec<Item> = traces
        .iter()
        .zip(marks)
        .map(|(trace, marks)| Item {
            id: names.id(trace),
            group: names.group(trace),
            tags: tags(trace, marks),
            metrics: match &trace.failed {
                Some(_) => BTreeMap::new(),
                None => {
                    let mut metrics = metrics(trace, marks, bare.get(&pair(trace)));
                    metrics.extend(judged(trace, verdicts));
                    metrics
                }
            },
            per_run: Vec::new(),
            observed: marks.observed.clone(),
            error: trace.failed.as_ref().map(|failed| report::ItemError {
                class: failed.class.clone(),
                message: failed.message.clone(),
            }),
        })
        .collect();
    items.sort_by(|a, b| a.id.cmp(&b.id));
    items
}

/// How items are called: by the task alone, as far as that tells them apart.
struct Names {
    models: bool,
    repeated: bool,
}

impl Names {
    fn of(traces: &[Trace]) -> Names {
        let models: BTreeSet<Option<&str>> = traces.iter().map(|t| t.model.as_deref()).collect();
        let ids: BTreeSet<&str> = traces.iter().map(|trace| trace.id.as_str()).collect();
        Names { models: models.len() > 1, repeated: ids.len() < traces.len() }
    }

    fn id(&self, trace: &Trace) -> String {
        let mut id = trace.id.clone();
        if self.models
            && let Some(model) = &trace.model
        {
            id.push_str(&format!("@{model}"));
        }
        if trace.setting != Setting::WithTools {
            id.push_str(&format!("/{}", trace.setting.name()));
        }
        if self.repeated {
            if trace.turns == Turns::Multi {
                id.push_str("/multi");
            }
            id.push_str(&format!("#{}", trace.run));
        }
        id
    }

    fn group(&self, trace: &Trace) -> Option<String> {
        if self.repeated { Some(trace.id.clone()) } else { server(trace) }
    }
}

/// The servers that a task is about.
fn server(trace: &Trace) -> Option<String> {
    let mut servers: BTreeSet<&str> = trace.servers.iter().map(String::as_str).collect();
    if servers.is_empty() {
        let expected = trace.expect.iter().flat_map(|expect| expect.all_calls());
        servers.extend(expected.filter_map(|call| call.tool.server.as_deref()));
    }
    if servers.is_empty() {
        servers.extend(trace.calls.iter().filter_map(|call| call.server.as_deref()));
    }
    let joined: Vec<&str> = servers.into_iter().collect();
    Some(joined.join("+")).filter(|joined| !joined.is_empty())
}

fn tags(trace: &Trace, marks: &Marks) -> BTreeMap<String, String> {
    let mut tags = trace.tags.clone();
    let mut set = |name: &str, word: Option<String>| {
        if let Some(word) = word {
            tags.insert(name.to_owned(), word);
        }
    };
    set("setting", Some(trace.setting.name().to_owned()));
    set("turns", Some(trace.turns.name().to_owned()));
    set("case", trace.case.clone());
    set("model", trace.model.clone());
    set("server", server(trace));
    set("confusion", marks.confusions.first().map(ToString::to_string));
    set("stopped", trace.stopped.clone());
    tags
}

fn metrics(trace: &Trace, marks: &Marks, bare: Option<&Bare>) -> BTreeMap<String, Option<f64>> {
    let average = |values: &[f64]| stats::mean(values).ok();
    let success = marks.score("task.success");
    let tokens = trace.usage.tokens().map(|tokens| tokens as f64);
    if trace.setting == Setting::WithoutTools {
        return BTreeMap::from([
            ("gauge.success_without_tools".to_owned(), success),
            ("gauge.tokens_without_tools".to_owned(), tokens),
            ("gauge.ms_without_tools".to_owned(), trace.usage.duration_ms),
        ]);
    }
    let mut metrics: BTreeMap<String, Option<f64>> =
        marks.scores.iter().map(|(id, mark)| (id.clone(), mark.as_ref().ok().copied())).collect();
    // Distractors are a setting of their own: what tools cost is told from the tools alone.
    let Some(bare) = bare.filter(|_| trace.setting == Setting::WithTools) else { return metrics };
    let mut both = |with: &str, delta: &str, own: Option<f64>, other: &[f64]| {
        if let (Some(own), Some(other)) = (own, average(other)) {
            metrics.insert(with.to_owned(), Some(own));
            metrics.insert(delta.to_owned(), Some(own - other));
        }
    };
    both("gauge.success_with_tools", "gauge.effectiveness", success, &bare.success);
    both("gauge.tokens_with_tools", "gauge.overhead_tokens", tokens, &bare.tokens);
    both("gauge.ms_with_tools", "gauge.overhead_ms", trace.usage.duration_ms, &bare.ms);
    metrics
}

/// Which task each item belongs to, by the item's id.
fn tasks(traces: &[Trace]) -> BTreeMap<String, Pair<'_>> {
    let names = Names::of(traces);
    traces.iter().map(|trace| (names.id(trace), pair(trace))).collect()
}

/// How often tasks were run.
struct Runs {
    /// The fewest traces of a task with the same model, setting and turns. An agent of which every
    /// task was run again may do otherwise, and is gated as one that varies; a few tasks with more
    /// runs do not make the gate lenient to all the others.
    every: u32,
    /// Which run of its task each item is, from 0; none where some tasks were run more often, so
    /// that the runs are of different tasks.
    numbers: Option<BTreeMap<String, u32>>,
}

impl Runs {
    /// The traces are sorted: runs of one task stand together, in their order.
    fn of(traces: &[Trace]) -> Runs {
        let names = Names::of(traces);
        let mut counts: BTreeMap<(Pair<'_>, Setting), u32> = BTreeMap::new();
        let mut numbers = BTreeMap::new();
        for trace in traces {
            let count = counts.entry((pair(trace), trace.setting)).or_default();
            numbers.insert(names.id(trace), *count);
            *count += 1;
        }
        let every = counts.values().copied().min().unwrap_or(1);
        let even = counts.values().all(|count| *count == every);
        Runs { every, numbers: even.then_some(numbers) }
    }

    /// The mean of each run.
    fn means(&self, id: &str, items: &[&Item]) -> Vec<Option<f64>> {
        let Some(numbers) = &self.numbers else { return Vec::new() };
        let of_run = |run: u32| {
            let inside = items.iter().filter(|item| numbers.get(&item.id) == Some(&run));
            let values: Vec<f64> =
                inside.filter_map(|item| item.metrics.get(id).copied().flatten()).collect();
            stats::mean(&values).ok()
        };
        (0..self.every).map(of_run).collect()
    }
}

/// Averages metrics over items, and over tasks where each task weighs the same.
struct Averaging<'t> {
    tasks: BTreeMap<String, Pair<'t>>,
    runs: Runs,
    seed: u64,
}

impl Averaging<'_> {
    fn headline(
        &self,
        specs: &[Spec],
        items: &[Item],
        traces: &[Trace],
        marks: &[Marks],
    ) -> Vec<Measured> {
        let refs: Vec<&Item> = items.iter().collect();
        let mut metrics = Vec::new();
        for spec in specs {
            let mut measured = self.measure(*spec, &refs);
            if measured.value.is_none() {
                measured.undefined = Some(reason(spec.id, marks));
            }
            metrics.push(measured);
            let ratio = match spec.id {
                "gauge.overhead_tokens" => Some(self.ratio(&refs, "tokens")),
                "gauge.overhead_ms" => Some(self.ratio(&refs, "ms")),
                _ => None,
            };
            metrics.extend(ratio);
        }
        metrics.extend(repeated(traces, marks, self.seed));
        metrics
    }

    fn measure(&self, spec: Spec, items: &[&Item]) -> Measured {
        let mut measured = self.over_all_runs(spec, items);
        if self.runs.every > 1 {
            measured.per_run = self.runs.means(spec.id, items);
        }
        measured
    }

    fn over_all_runs(&self, spec: Spec, items: &[&Item]) -> Measured {
        if !OVER_TASKS.contains(&spec.id) {
            return share_or_not(aggregate::measure(spec, items, 1, self.seed));
        }
        let tasks = self.over_tasks(spec.id, items);
        let refs: Vec<&Item> = tasks.iter().collect();
        // A task that succeeds in some of its runs is no hit and no miss.
        let whole = |item: &&Item| item.metrics.values().flatten().all(|v| *v == 0.0 || *v == 1.0);
        let kind = if refs.iter().all(whole) { spec.kind } else { Kind::Mean };
        share_or_not(aggregate::measure(Spec { kind, ..spec }, &refs, 1, self.seed))
    }

    /// One item for each task that carries the metric, with the mean over its runs.
    fn over_tasks(&self, id: &str, items: &[&Item]) -> Vec<Item> {
        let mut tasks: BTreeMap<Pair<'_>, (&Item, Vec<f64>)> = BTreeMap::new();
        for item in items {
            let (Some(value), Some(task)) = (item.metrics.get(id), self.tasks.get(&item.id)) else {
                continue;
            };
            tasks.entry(*task).or_insert((*item, Vec::new())).1.extend(*value);
        }
        tasks
            .into_values()
            .map(|(first, values)| {
                bare(&first.id, first.group.clone(), id, stats::mean(&values).ok())
            })
            .collect()
    }

    /// The sum with tools over the sum without, over the tasks that have both.
    fn ratio(&self, items: &[&Item], unit: &str) -> Measured {
        let id = format!("gauge.overhead_{unit}_ratio");
        let of = |id: &str| -> Vec<f64> {
            let tasks = self.over_tasks(id, items);
            tasks.iter().filter_map(|task| task.metrics.get(id).copied().flatten()).collect()
        };
        let with = of(&format!("gauge.{unit}_with_tools"));
        let more = of(&format!("gauge.overhead_{unit}"));
        let both: Vec<(f64, f64)> =
            with.into_iter().zip(more).map(|(with, more)| (with, with - more)).collect();
        let over = |tasks: &[usize]| {
            let sums = tasks.iter().map(|task| both[*task]);
            let (with, without) =
                sums.fold((0.0, 0.0), |sum, task| (sum.0 + task.0, sum.1 + task.1));
            if without > 0.0 { Ok(with / without) } else { Err(Undefined("nothing was used")) }
        };
        let all: Vec<usize> = (0..both.len()).collect();
        let value = over(&all).ok();
        let bootstrap =
            Bootstrap { seed: self.seed, confidence: aggregate::LEVEL, ..Bootstrap::default() };
        let interval = bootstrap.statistic(both.len(), over).ok();
        let undefined = match both.len() {
            0 => Some("no task was tried with tools and without, or nothing was recorded"),
            _ if value.is_none() => Some("nothing was used without tools"),
            _ => None,
        };
        Measured {
            value,
            n: both.len() as u64,
            better: aggregate::better(&id),
            per_run: Vec::new(),
            interval: interval.filter(|found| found.low < found.high).map(|found| {
                report::Interval {
                    low: found.low,
                    high: found.high,
                    level: aggregate::LEVEL,
                    method: "bootstrap".to_owned(),
                }
            }),
            count: None,
            undefined: undefined.map(str::to_owned),
            left_out: 0,
            id,
        }
    }

    fn slices(&self, specs: &[Spec], items: &[Item]) -> Vec<Slice> {
        let mut parts: BTreeMap<(&str, &str), Vec<&Item>> = BTreeMap::new();
        for item in items {
            // Confusions have a table of their own: a trace can have several.
            for (by, value) in item.tags.iter().filter(|(by, _)| *by != "confusion") {
                parts.entry((by, value)).or_default().push(item);
            }
        }
        parts
            .into_iter()
            .map(|((by, value), inside)| {
                // A slice says what it has; what is undefined in it is undefined for the reason that
                // the headline gives.
                let measured = specs.iter().map(|spec| self.measure(*spec, &inside));
                let mut metrics: Vec<Measured> = measured.filter(|one| one.n > 0).collect();
                if by == "turns" || by == "model" {
                    let ratios = ["tokens", "ms"].map(|unit| self.ratio(&inside, unit));
                    metrics.extend(ratios.into_iter().filter(|ratio| ratio.value.is_some()));
                }
                Slice { by: by.to_owned(), value: value.to_owned(), metrics }
            })
            .collect()
    }
}

/// An item that carries one metric and nothing to show: what the averaging needs.
fn bare(id: &str, group: Option<String>, metric: &str, value: Option<f64>) -> Item {
    Item {
        id: id.to_owned(),
        group,
        tags: BTreeMap::new(),
        metrics: BTreeMap::from([(metric.to_owned(), value)]),
        per_run: Vec::new(),
        observed: serde_json::Value::Null,
        error: None,
    }
}

/// Which tool was called instead of which: how often, of how often the other one was required.
fn confusions(traces: &[Trace], marks: &[Marks]) -> Vec<Slice> {
    let mut required: BTreeMap<&str, u64> = BTreeMap::new();
    let mut confused: BTreeMap<&Confusion, u64> = BTreeMap::new();
    let scored = traces.iter().zip(marks).filter(|(trace, _)| trace.failed.is_none());
    for (_, marks) in scored {
        for tool in &marks.required {
            *required.entry(tool).or_default() += 1;
        }
        for confusion in &marks.confusions {
            *confused.entry(confusion).or_default() += 1;
        }
    }
    let mut all: Vec<(&Confusion, u64)> = confused.into_iter().collect();
    all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    let of = |confusion: &Confusion| required.get(confusion.expected.as_str()).copied();
    all.into_iter()
        .map(|(confusion, hits)| Slice {
            by: "confusion".to_owned(),
            value: confusion.to_string(),
            metrics: vec![share("calls.confusion", hits, of(confusion).unwrap_or(hits))],
        })
        .collect()
}

/// A share of a count, with Wilson's interval.
fn share(id: &str, hits: u64, of: u64) -> Measured {
    let found = stats::wilson(hits, of, aggregate::LEVEL).ok();
    Measured {
        id: id.to_owned(),
        value: (of > 0).then(|| hits as f64 / of as f64),
        n: of,
        better: aggregate::better(id),
        per_run: Vec::new(),
        interval: found.map(|found| report::Interval {
            low: found.low,
            high: found.high,
            level: aggregate::LEVEL,
            method: "wilson".to_owned(),
        }),
        count: Some(report::Count { hits, of }),
        undefined: None,
        left_out: 0,
    }
}

/// Whether a metric goes from 0 to 1.
pub(crate) fn is_share(id: &str) -> bool {
    let counts = ["run.", "gauge.overhead_", "gauge.tokens_", "gauge.ms_"];
    !counts.iter().any(|start| id.starts_with(start))
        && !matches!(id, "calls.first_error" | "gauge.effectiveness")
}

/// Positions, costs and differences that all happen to be 0 or 1 are no rate.
fn share_or_not(mut measured: Measured) -> Measured {
    let of_rate = |interval: &report::Interval| interval.method == "wilson";
    if !is_share(&measured.id) && measured.interval.as_ref().is_some_and(of_rate) {
        measured.interval = None;
    }
    measured
}

/// The most common reason for which a metric has no value.
fn reason(id: &str, marks: &[Marks]) -> String {
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    for marks in marks {
        if let Some(Err(why)) = marks.scores.get(id) {
            *reasons.entry(*why).or_default() += 1;
        }
    }
    let most = reasons.into_iter().max_by_key(|(why, count)| (*count, std::cmp::Reverse(*why)));
    match most {
        Some((why, _)) => why.to_owned(),
        None if id.ends_with("without_tools") => "no task was tried without tools".to_owned(),
        None if id.starts_with("gauge.") => {
            "no task was tried with tools and without, or nothing was recorded".to_owned()
        }
        None if id.starts_with("judge.") => "the judge gave no vote".to_owned(),
        None => "no trace was made with tools".to_owned(),
    }
}

/// pass@k and pass^k over tasks that were run more than once, drawn again by tasks for the interval.
fn repeated(traces: &[Trace], marks: &[Marks], seed: u64) -> Vec<Measured> {
    let mut runs: BTreeMap<(Pair<'_>, Setting), (u64, u64)> = BTreeMap::new();
    for (trace, marks) in traces.iter().zip(marks) {
        let success = marks.score("task.success");
        if let Some(success) =
            success.filter(|_| trace.setting.has_tools() && trace.failed.is_none())
        {
            let entry = runs.entry((pair(trace), trace.setting)).or_default();
            entry.0 += 1;
            entry.1 += u64::from(success == 1.0);
        }
    }
    let least = runs.values().map(|(runs, _)| *runs).min().unwrap_or(0);
    if least < 2 {
        return Vec::new();
    }
    let over = |id: &'static str, score: &dyn Fn(u64, u64) -> karat_metrics::Score| {
        // The same task with another model or setting is drawn together with it.
        let tasks = runs.iter().map(|(((task, ..), _), (n, done))| (*task, score(*n, *done).ok()));
        // It is a figure over runs, and has none for each of them.
        Measured { per_run: Vec::new(), ..aggregate::over_tasks(id, tasks, seed) }
    };
    let possible = RUNS.iter().filter(|(k, ..)| *k <= least);
    possible
        .flat_map(|(k, at, hat)| {
            [
                over(at, &|n, done| stats::pass_at_k(n, done, *k)),
                over(hat, &|n, done| stats::pass_hat_k(n, done, *k)),
            ]
        })
        .collect()
}

/// A set of traces can state the scores that they must get: that is a control of the scorer.
fn expected_scores(traces: &[Trace], marks: &[Marks]) -> Option<report::Control> {
    let (mut stated, mut wrong) = (0_u64, Vec::new());
    for (trace, marks) in traces.iter().zip(marks) {
        for (id, expected) in &trace.expected_scores {
            stated += 1;
            let found = marks.score(id);
            let same = match (expected, found) {
                (Some(expected), Some(found)) => (expected - found).abs() < 1e-6,
                (None, None) => true,
                _ => false,
            };
            if !same {
                wrong.push(format!(
                    "{} {id}: {} instead of {}",
                    trace.id,
                    word(found),
                    word(*expected)
                ));
            }
        }
    }
    if stated == 0 {
        return None;
    }
    let mut expected = format!("the {stated} scores that the traces state");
    if !wrong.is_empty() {
        let first: Vec<&str> = wrong.iter().take(LISTED).map(String::as_str).collect();
        expected.push_str(&format!("; {} differ: {}", wrong.len(), first.join("; ")));
    }
    Some(report::Control {
        name: "expected-scores".to_owned(),
        expected,
        metrics: Vec::new(),
        ok: wrong.is_empty(),
    })
}

fn word(score: Option<f64>) -> String {
    score.map_or_else(|| "undefined".to_owned(), |score| score.to_string())
}

fn conventions() -> BTreeMap<String, String> {
    [
        ("items", "one for each trace; of the same task they are one group"),
        ("runs", "how often every task was run: the fewest traces of one, setting by setting"),
        ("headline", "traces with tools and with distractors; those without count in gauge.*_without_tools alone"),
        ("equality", "arguments are equal as JSON: 1 is 1.0, true is not 1; a tolerance is one that the expectation states"),
        ("schema", "JSON Schema 2020-12 unless declared otherwise; formats do not decide; network $ref is never followed"),
        ("gauge.proactivity", "every required call made as expected, over tasks that need a tool and instruct none"),
        ("gauge.compliance", "the instructed tool called without an error and as expected, over tasks that instruct one"),
        ("gauge.effectiveness", "task.success with tools minus without, in pairs of task, model and turns, each pair weighing the same"),
        ("pass@k, pass^k", "of task.success, over tasks with repeated runs"),
        ("interval", "Wilson for rates, bootstrap by groups for means, by tasks for pass@k and pass^k, 95 %"),
    ]
    .into_iter()
    .map(|(name, rule)| (name.to_owned(), rule.to_owned()))
    .collect()
}

fn warnings(recorded: &Recorded, marks: &[Marks]) -> Vec<String> {
    let mut warnings = Vec::new();
    let bad: u64 = recorded.bad.values().sum();
    if bad > 0 {
        let classes: Vec<String> =
            recorded.bad.iter().map(|(class, count)| format!("{class} {count}")).collect();
        warnings.push(format!("{bad} records could not be read: {}", classes.join(", ")));
    }
    let failed = crate::drive::failures(&recorded.traces);
    warnings.extend(listed(
        "runs that could not be made",
        failed.into_iter().map(|(class, (count, first))| (format!("{class}: {first}"), count)),
    ));
    let sum = |count: fn(&Marks) -> u64| marks.iter().map(count).sum::<u64>();
    let unreadable = sum(|marks| marks.unreadable_arguments);
    if unreadable > 0 {
        warnings.push(format!("{unreadable} calls have arguments that are not a JSON object"));
    }
    let unrecorded = sum(|marks| marks.unrecorded_arguments);
    if unrecorded > 0 {
        warnings.push(format!(
            "the arguments of {unrecorded} calls were not recorded; scores that need them are \
             undefined"
        ));
    }
    if recorded.without_task > 0 {
        warnings.push(format!("there is no task for {} traces", recorded.without_task));
    }
    warnings.extend(recorded.without_trace.clone());
    for (note, count) in &recorded.notes {
        warnings.push(format!("{count} {note}"));
    }
    warnings
        .extend(listed("unknown fields", recorded.unknown.iter().map(|(n, c)| (n.clone(), *c))));
    let mut not_checked: BTreeMap<&str, u64> = BTreeMap::new();
    for why in marks.iter().flat_map(|marks| &marks.not_checked) {
        *not_checked.entry(why).or_default() += 1;
    }
    let not_checked = not_checked.into_iter().map(|(why, count)| (why.to_owned(), count));
    warnings.extend(listed("arguments not checked", not_checked));
    warnings
}

/// The most frequent ones, with their counts.
fn listed(what: &str, counts: impl Iterator<Item = (String, u64)>) -> Option<String> {
    let mut all: Vec<(String, u64)> = counts.collect();
    all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let more = all.len().saturating_sub(LISTED);
    let first: Vec<String> = all
        .iter()
        .take(LISTED)
        .map(|(name, count)| format!("{} ({count})", karat_io::text::printable(name)))
        .collect();
    if first.is_empty() {
        return None;
    }
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(format!("{what}: {}{more}", first.join(", ")))
}
