//! Averages over items, and over tasks where each task weighs the same.

use std::collections::BTreeMap;

use karat_core::aggregate;
use karat_core::report::{Interval, Item, Measured, Property, Slice};
use karat_metrics::registry::Metric;
use karat_metrics::stats::{self, Bootstrap};
use karat_metrics::{MetricId, Undefined};

use super::items::{Names, TaskKey, task_key};
use super::numbers::bare_item;
use crate::pipeline;
use crate::scored::{MAX_SHOWN, ScoredSet, ScoredTrace};
use crate::trace::Setting;

/// Metrics that compare tools with none: means over tasks, which weigh the same however often each was
/// run.
pub(super) static OVER_TASKS: [MetricId; 9] = [
    MetricId::known("gauge.effectiveness"),
    MetricId::known("gauge.success_with_tools"),
    MetricId::known("gauge.success_without_tools"),
    MetricId::known("gauge.overhead_tokens"),
    MetricId::known("gauge.tokens_with_tools"),
    MetricId::known("gauge.tokens_without_tools"),
    MetricId::known("gauge.overhead_ms"),
    MetricId::known("gauge.ms_with_tools"),
    MetricId::known("gauge.ms_without_tools"),
];

/// The price of tools, in tokens or in time.
struct Price {
    /// The cost of a task with tools.
    with: MetricId,
    /// The overhead compared with no tools.
    more: MetricId,
    /// The sum with tools over the sum without.
    ratio: MetricId,
}

static PRICES: [Price; 2] = [
    Price {
        with: MetricId::known("gauge.tokens_with_tools"),
        more: MetricId::known("gauge.overhead_tokens"),
        ratio: MetricId::known("gauge.overhead_tokens_ratio"),
    },
    Price {
        with: MetricId::known("gauge.ms_with_tools"),
        more: MetricId::known("gauge.overhead_ms"),
        ratio: MetricId::known("gauge.overhead_ms_ratio"),
    },
];

/// The number of runs of every task: the fewest traces of a task with the same model, setting and
/// turns. An agent of which every task was run again may vary, and is gated as one that does; a few
/// tasks with more runs do not make the gate lenient to all the others.
pub(crate) fn runs_of_every_task(traces: &[ScoredTrace]) -> u32 {
    count_runs(traces).into_values().min().unwrap_or(1)
}

fn count_runs(traces: &[ScoredTrace]) -> BTreeMap<(TaskKey<'_>, Setting), u32> {
    let mut counts = BTreeMap::new();
    for ScoredTrace { trace, .. } in traces {
        *counts.entry((task_key(trace), trace.setting)).or_default() += 1;
    }
    counts
}

/// Computes the metrics of a report.
pub(super) struct Averages<'t> {
    /// The task of each item and the number of its run, from 0, by the item's id.
    tasks: BTreeMap<String, (TaskKey<'t>, u32)>,
    runs: u32,
    /// False if some tasks were run more often than others, so that the runs are of different tasks.
    even: bool,
    seed: u64,
}

impl<'t> Averages<'t> {
    /// The traces must be sorted, so that the runs of a task are in order.
    pub(super) fn new(traces: &'t [ScoredTrace], names: &Names, seed: u64) -> Self {
        let counts = count_runs(traces);
        let runs = runs_of_every_task(traces);
        let even = counts.values().all(|count| *count == runs);
        let mut next: BTreeMap<(TaskKey<'_>, Setting), u32> = BTreeMap::new();
        let mut tasks = BTreeMap::new();
        for ScoredTrace { trace, .. } in traces {
            let number = next.entry((task_key(trace), trace.setting)).or_default();
            tasks.insert(names.id(trace), (task_key(trace), *number));
            *number += 1;
        }
        Averages { tasks, runs, even, seed }
    }

    pub(super) fn headline(
        &self,
        ids: &[MetricId],
        items: &[Item],
        set: &ScoredSet,
    ) -> Vec<Measured> {
        let items: Vec<&Item> = items.iter().collect();
        let mut metrics = Vec::new();
        let measured = mapped(ids, items.len(), |id| self.measure(id, &items));
        for (id, mut measured) in ids.iter().zip(measured) {
            if measured.value.is_none() {
                measured.undefined = Some(reason(id, set));
            }
            metrics.push(measured);
            let price = PRICES.iter().find(|price| price.more == *id);
            metrics.extend(price.map(|price| self.ratio(&items, price)));
        }
        metrics
    }

    fn measure(&self, id: &MetricId, items: &[&Item]) -> Measured {
        let mut measured = self.over_all_runs(id, items);
        if self.runs > 1 {
            measured.per_run = self.per_run(id, items);
        }
        measured
    }

    /// The mean of each run.
    fn per_run(&self, id: &str, items: &[&Item]) -> Vec<Option<f64>> {
        if !self.even {
            return Vec::new();
        }
        let of_run = |run: u32| {
            let inside = items
                .iter()
                .filter(|item| self.tasks.get(&item.id).is_some_and(|(_, number)| *number == run));
            let values: Vec<f64> =
                inside.filter_map(|item| item.metrics.get(id).copied().flatten()).collect();
            stats::mean(&values).ok()
        };
        (0..self.runs).map(of_run).collect()
    }

    fn over_all_runs(&self, id: &MetricId, items: &[&Item]) -> Measured {
        if !OVER_TASKS.contains(id) {
            return not_a_rate(aggregate::measure(id, items, 1, self.seed));
        }
        let tasks = self.over_tasks(id, items);
        not_a_rate(aggregate::measure(id, &tasks.iter().collect::<Vec<_>>(), 1, self.seed))
    }

    /// One item for each task that has the metric, with the mean over its runs.
    fn over_tasks(&self, id: &MetricId, items: &[&Item]) -> Vec<Item> {
        let mut tasks: BTreeMap<TaskKey<'_>, (&Item, Vec<f64>)> = BTreeMap::new();
        for item in items {
            let (Some(value), Some((task, _))) = (item.metrics.get(id), self.tasks.get(&item.id))
            else {
                continue;
            };
            tasks.entry(*task).or_insert((*item, Vec::new())).1.extend(*value);
        }
        let mean = |(first, values): (&Item, Vec<f64>)| {
            bare_item(&first.id, first.group.clone(), [(id.clone(), stats::mean(&values).ok())])
        };
        tasks.into_values().map(mean).collect()
    }

    /// The sum with tools over the sum without, over the tasks that have both.
    fn ratio(&self, items: &[&Item], price: &Price) -> Measured {
        let of = |id: &MetricId| -> Vec<f64> {
            let tasks = self.over_tasks(id, items);
            tasks.iter().filter_map(|task| task.metrics.get(id).copied().flatten()).collect()
        };
        let (with, more) = (of(&price.with), of(&price.more));
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
        let found = bootstrap.statistic(both.len(), over).ok();
        let undefined = match both.len() {
            0 => Some(NOT_BOTH),
            _ if value.is_none() => Some("nothing was used without tools"),
            _ => None,
        };
        Measured {
            value,
            n: both.len() as u64,
            better: aggregate::better(&price.ratio),
            per_run: Vec::new(),
            interval: found.filter(|i| i.low < i.high).map(|i| Interval::new(i, "bootstrap")),
            count: None,
            undefined: undefined.map(str::to_owned),
            left_out: 0,
            id: price.ratio.clone(),
        }
    }

    /// The metrics over parts of the items; `headline` are those over all of them.
    pub(super) fn slices(
        &self,
        ids: &[MetricId],
        items: &[Item],
        headline: &[Measured],
    ) -> Vec<Slice> {
        let mut parts: BTreeMap<(&str, &str), Vec<&Item>> = BTreeMap::new();
        for item in items {
            // Confusions have slices of their own: a trace can have several.
            for (by, value) in item.tags.iter().filter(|(by, _)| *by != Property::Confusion.name())
            {
                parts.entry((by, value)).or_default().push(item);
            }
        }
        let slice = |((by, value), inside): &((&str, &str), Vec<&Item>)| {
            // A part that is the whole has its metrics, which take long to find for many items.
            let known = |id: &str| {
                let whole = headline.iter().filter(|_| inside.len() == items.len());
                whole.into_iter().find(|one| one.id == id).cloned()
            };
            // Metrics without a value are left out: the headline gives the reason.
            let measured =
                ids.iter().map(|id| known(id).unwrap_or_else(|| self.measure(id, inside)));
            let mut metrics: Vec<Measured> = measured.filter(|one| one.n > 0).collect();
            if [Property::Turns, Property::Model].iter().any(|one| one.name() == *by) {
                let ratios = PRICES
                    .iter()
                    .map(|price| known(&price.ratio).unwrap_or_else(|| self.ratio(inside, price)));
                metrics.extend(ratios.filter(|ratio| ratio.value.is_some()));
            }
            Slice { by: (*by).to_owned(), value: (*value).to_owned(), metrics }
        };
        mapped(&parts.into_iter().collect::<Vec<_>>(), items.len(), slice)
    }
}

/// Maps on all processors where there are many items. The draws of a bootstrap over few are kept for the
/// next one, by each thread.
fn mapped<T: Sync, R: Send>(all: &[T], items: usize, work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    match items > MAX_SHOWN {
        true => pipeline::map(all, work),
        false => all.iter().map(work).collect(),
    }
}

const NOT_BOTH: &str = "no task was tried with tools and without, or nothing was recorded";

/// Positions, costs and differences are not a rate even if all of them are 0 or 1.
fn not_a_rate(mut measured: Measured) -> Measured {
    if !measured.id.definition().is_some_and(Metric::is_share)
        && measured.interval.as_ref().is_some_and(|i| i.method.starts_with("wilson"))
    {
        measured.interval = None;
    }
    measured
}

/// The most common reason for which a metric has no value.
fn reason(id: &str, set: &ScoredSet) -> String {
    let place = set.ids.iter().position(|known| known == id);
    let most = place.and_then(|place| set.tally.reason(place));
    match most {
        Some(reason) => reason.to_owned(),
        None if id.ends_with("without_tools") => "no task was tried without tools".to_owned(),
        None if id.starts_with("gauge.") => NOT_BOTH.to_owned(),
        None if id.starts_with("judge.") => "the judge gave no vote".to_owned(),
        None => "no trace was made with tools".to_owned(),
    }
}
