//! From outcomes to metrics: the benchmark's accounting and Karat's, side by side.

use std::collections::BTreeMap;

use karat_core::aggregate;
use karat_core::evaluation::{Entry, Scored, conventions};
use karat_core::observed::{Observed, Outcomes as Seen, Trial};
use karat_core::report::{Control, Interval, Item, ItemError, Measured, Scores, Slice};
use karat_metrics::classification::Agreement;
use karat_metrics::stats::{self, Bootstrap};
use karat_metrics::{MetricId, metric};

use super::{Accounting, Config, Data, Outcomes, Row, Task, clipped};
use crate::benchmarks::bfcl;

/// The numbers of runs that pass@k and pass^k are computed for.
const K: [u64; 6] = [2, 3, 4, 5, 8, 10];
/// The share of runs that succeed.
const SUCCESS: MetricId = MetricId::known("task.success");
const MCPMARK_PASS: MetricId = MetricId::known("mcpmark.pass@1");
const MCPMARK_STD: MetricId = MetricId::known("mcpmark.std");
/// The most figures that a note names.
const NAMED: usize = 5;

/// Scores an entry.
pub(super) fn scored(entry: &Entry<Outcomes>) -> Scored {
    let Entry { common, config, data } = entry;
    let runs = data.runs();
    let tasks = data.tasks.iter().map(|(_, rows)| rows.as_slice());
    let largest = config.accounting.map_or(runs, |own| own.largest_k(runs, tasks));
    let scoring = Scoring { config, data, runs, largest, seed: common.seed };
    let items: Vec<Item> = data.tasks.iter().map(|(task, rows)| scoring.item(task, rows)).collect();
    let all: Vec<&Item> = items.iter().collect();
    let mut metrics = scoring.measures(&all, &scoring.ids());
    metrics.extend(scoring.kappa());
    for id in [metric!("run.failed"), metric!("run.tokens"), metric!("run.ms")] {
        if items.iter().any(|item| item.metrics.contains_key(&id)) {
            metrics.push(scoring.measure(&id, &all));
        }
    }
    let mut slices = scoring.slices(&items);
    if config.accounting == Some(Accounting::Bfcl) {
        slices.extend(bfcl::leaderboard(&slices));
    }
    let mut warnings = scoring.differences(&metrics);
    warnings.extend(published(data, &metrics, &slices));
    Scored {
        controls: scoring.controls(),
        conventions: conventions(scoring.rules()),
        metrics,
        slices,
        items,
        warnings,
        ..Scored::default()
    }
}

struct Scoring<'a> {
    config: &'a Config,
    data: &'a Data,
    /// The number of runs of the task that was run most often.
    runs: usize,
    /// The largest k of the benchmark's own pass^k.
    largest: usize,
    seed: u64,
}

impl Scoring<'_> {
    /// The metrics that every slice has too, in the order in which they are shown.
    fn ids(&self) -> Vec<MetricId> {
        let mut ids = self.config.accounting.map(|own| own.metrics(self.runs)).unwrap_or_default();
        ids.push(SUCCESS);
        ids.extend(self.repeats().flat_map(|(at_least_one, all, _)| [at_least_one, all]));
        ids
    }

    /// The ids of pass@k and pass^k, with their k.
    fn repeats(&self) -> impl Iterator<Item = (MetricId, MetricId, u64)> {
        let most = self.runs as u64;
        let id = |name: &str, k: u64| MetricId::new(&format!("{name}{k}"));
        K.into_iter().filter(move |k| *k <= most).map(move |k| (id("pass@", k), id("pass^", k), k))
    }

    fn item(&self, task: &Task, rows: &[Row]) -> Item {
        let run_scores = |row: &Row| {
            let mut scores = BTreeMap::new();
            let success = row.measured().map(|done| f64::from(u8::from(done)));
            scores.insert(SUCCESS, success);
            if let Some(accounting) = self.config.accounting {
                let credit = accounting.credit(row);
                scores.insert(accounting.headline(), credit);
            }
            scores
        };
        let observed = Seen {
            trials: rows
                .iter()
                .map(|row| Trial {
                    success: row.success,
                    human: row.human,
                    error: row.error.as_deref().map(clipped),
                    reason: row.reason.as_deref().map(clipped),
                })
                .collect(),
        };
        let error = rows.iter().all(|row| row.measured().is_none()).then(|| ItemError {
            class: if rows.is_empty() { "not run" } else { "failed" }.to_owned(),
            message: match rows.first() {
                None => "no outcome was recorded".to_owned(),
                Some(row) => clipped(row.error.as_deref().unwrap_or("no outcome")),
            },
        });
        Item {
            id: task.id.clone(),
            group: None,
            tags: task.tags.clone(),
            metrics: self.task_scores(rows),
            per_run: if self.runs > 1 { rows.iter().map(run_scores).collect() } else { Vec::new() },
            observed: Some(Observed::Outcomes(observed)),
            error,
        }
    }

    /// The scores of one task.
    fn task_scores(&self, rows: &[Row]) -> Scores {
        let mut scores = BTreeMap::new();
        if let Some(accounting) = self.config.accounting {
            let values = accounting.scores(rows, self.runs, self.largest);
            scores.extend(accounting.metrics(self.runs).into_iter().zip(values));
        }
        let measured: Vec<bool> = rows.iter().filter_map(Row::measured).collect();
        let (n, done) =
            (measured.len() as u64, measured.iter().filter(|done| **done).count() as u64);
        scores.insert(SUCCESS, stats::reliability(done, n).ok());
        for (at_least_one, all, k) in self.repeats() {
            scores.insert(at_least_one, stats::pass_at_k(n, done, k).ok());
            scores.insert(all, stats::pass_hat_k(n, done, k).ok());
        }
        if !rows.is_empty() {
            let failed = rows.len() - measured.len();
            scores.insert(metric!("run.failed"), Some(failed as f64 / rows.len() as f64));
        }
        let mean = |of: fn(&Row) -> Option<f64>| {
            let values: Vec<f64> = rows.iter().filter_map(of).collect();
            stats::mean(&values).ok()
        };
        let costs = [
            (metric!("run.tokens"), mean(|row| row.tokens)),
            (metric!("run.ms"), mean(|row| row.ms)),
        ];
        for (id, value) in costs {
            scores.extend(value.map(|value| (id, Some(value))));
        }
        scores
    }

    fn measures(&self, items: &[&Item], ids: &[MetricId]) -> Vec<Measured> {
        let mut metrics: Vec<Measured> = Vec::new();
        for id in ids {
            let mut metric = self.measure(id, items);
            if *id == MCPMARK_PASS {
                // The mean over runs, which is that over tasks only if all have the same runs.
                let runs: Vec<f64> = metric.per_run.iter().copied().flatten().collect();
                metric.value = stats::mean(&runs).ok();
                let spread = stats::population_std(&runs).ok();
                metrics.push(metric);
                let n = runs.len() as u64;
                metrics.push(aggregate::value(MCPMARK_STD, spread, n, "no runs"));
                continue;
            }
            metrics.push(metric);
        }
        metrics
    }

    fn measure(&self, id: &MetricId, items: &[&Item]) -> Measured {
        let runs = u32::try_from(self.runs).unwrap_or(u32::MAX);
        let whole =
            *id == SUCCESS || self.config.accounting.is_some_and(|own| own.headline() == *id);
        let mut found = aggregate::measure(id, items, runs, self.seed);
        if !whole && self.runs > 1 {
            // It is a value over runs, and has none for each of them.
            found.per_run = Vec::new();
        }
        if let (None, Some((name, k))) = (found.value, id.split_once(['@', '^'])) {
            let capped = name == "tau.pass" && k.parse::<usize>().is_ok_and(|k| k > self.largest);
            found.undefined = Some(match capped {
                true => {
                    format!("τ² computes it up to k = {}: a task has no more runs", self.largest)
                }
                false => format!("{name} over {k} runs, and no task has as many"),
            });
        }
        found
    }

    /// Cohen's kappa of the judge and people, with an interval over tasks.
    fn kappa(&self) -> Option<Measured> {
        let pairs: Vec<(bool, bool)> =
            self.data.rows().filter_map(|row| Some((row.counted(), row.human?))).collect();
        if pairs.is_empty() {
            return None;
        }
        let of = |chosen: &mut dyn Iterator<Item = usize>| {
            let mut table = Agreement::default();
            for at in chosen {
                table.add(pairs[at].0, pairs[at].1);
            }
            table.kappa()
        };
        let value = of(&mut (0..pairs.len())).ok();
        let bootstrap = Bootstrap { seed: self.seed, ..Bootstrap::default() };
        let statistic = |sample: &[usize]| of(&mut sample.iter().copied());
        let interval = bootstrap.statistic(pairs.len(), statistic).ok();
        Some(Measured {
            interval: interval.map(|found| Interval::new(found, "bootstrap")),
            ..aggregate::value(
                metric!("kappa"),
                value,
                pairs.len() as u64,
                "all verdicts are the same",
            )
        })
    }

    fn slices(&self, items: &[Item]) -> Vec<Slice> {
        let mut parts: BTreeMap<(&str, &str), Vec<&Item>> = BTreeMap::new();
        for item in items {
            for (by, value) in &item.tags {
                if self.config.by.as_ref().is_none_or(|wanted| wanted.contains(by)) {
                    parts.entry((by, value)).or_default().push(item);
                }
            }
        }
        let ids = self.ids();
        let slice = |((by, value), part): ((&str, &str), Vec<&Item>)| Slice {
            by: by.to_owned(),
            value: value.to_owned(),
            metrics: self.measures(&part, &ids),
        };
        parts.into_iter().map(slice).collect()
    }

    /// The places where the two accountings differ, and why.
    fn differences(&self, metrics: &[Measured]) -> Vec<String> {
        let mut notes = Vec::new();
        let rows = self.data.rows().count();
        let failed = self.data.rows().filter(|row| row.measured().is_none()).count();
        let value = |id: &str| {
            metrics.iter().find(|metric| metric.id == id).and_then(|metric| metric.value)
        };
        if failed > 0 {
            let mut note = format!(
                "{failed} of {rows} runs failed for a reason outside the agent and are not measured"
            );
            let own = self.config.accounting.map(|own| (own, own.headline()));
            if let Some((accounting, own, ours, id)) =
                own.and_then(|(own, id)| Some((own, value(&id)?, value(&SUCCESS)?, id)))
            {
                let is_counted = |row: &&Row| row.measured().is_none() && accounting.counts(row);
                let counts = match self.data.rows().filter(is_counted).count() {
                    0 => "leaves them out too".to_owned(),
                    some if some < failed => format!("counts {some} of them"),
                    _ => "counts them".to_owned(),
                };
                note.push_str(&format!(
                    "; {id} {counts} and is {own:.4}, against {ours:.4} over the runs that were \
                     measured (task.success)"
                ));
            }
            notes.push(note);
        }
        let misread = self.data.rows().filter(|row| row.stated.is_some()).count();
        if let (1.., Some(own), Some(ours)) = (
            misread,
            self.config.accounting.and_then(|own| value(&own.headline())),
            value(&SUCCESS),
        ) {
            notes.push(format!(
                "{misread} of {rows} verdicts state the opposite of what the benchmark counts, which is \
                 {own:.4}; as they are stated it is {ours:.4} (task.success)"
            ));
        }
        let empty = self.data.tasks.iter().filter(|(_, rows)| rows.is_empty()).count();
        if empty > 0 {
            notes.push(format!("{empty} of {} tasks have no outcome", self.data.tasks.len()));
        }
        notes
    }

    /// All runs succeed, and none does: the metrics must be 1 and 0.
    fn controls(&self) -> Vec<Control> {
        [("all-succeed", true, 1.0), ("none-succeeds", false, 0.0)]
            .into_iter()
            .map(|(name, success, expected)| {
                let items: Vec<Item> = self
                    .data
                    .tasks
                    .iter()
                    .map(|(task, rows)| {
                        let turned = |row: &Row| Row {
                            success: Some(success),
                            stated: None,
                            error: None,
                            ..row.clone()
                        };
                        let rows: Vec<Row> = rows.iter().map(turned).collect();
                        Item { observed: None, error: None, ..self.item(task, &rows) }
                    })
                    .collect();
                let all: Vec<&Item> = items.iter().collect();
                let headline = self.config.accounting.map(Accounting::headline);
                let ids = headline.into_iter().chain([SUCCESS]);
                let metrics: Vec<Measured> = ids.map(|id| self.measure(&id, &all)).collect();
                let ok = metrics.iter().all(|metric| metric.value == Some(expected));
                let expected = format!("{expected} by both accountings");
                Control { name: name.to_owned(), expected, metrics, ok }
            })
            .collect()
    }

    fn rules(&self) -> Vec<(&'static str, &'static str)> {
        let mut rules = vec![
            ("items", "tasks; intervals are drawn by tasks"),
            (
                "failed runs",
                "a run with a recorded error is not measured: it is in no metric but `run.failed` \
                 and those under the benchmark's own name",
            ),
        ];
        rules.extend(self.config.accounting.map(|own| (own.name(), own.rule())));
        rules
    }
}

/// The value as MCPMark prints it: the rates of the runs are rounded to six decimals first.
fn as_printed(metrics: &[Measured], id: &str) -> Option<f64> {
    let rates = metrics.iter().find(|metric| metric.id == MCPMARK_PASS)?.per_run.iter();
    let rates: Vec<f64> = rates.flatten().map(|rate| (rate * 1e6).round() / 1e6).collect();
    match id {
        _ if MCPMARK_PASS == *id => stats::mean(&rates).ok(),
        _ if MCPMARK_STD == *id => stats::population_std(&rates).ok(),
        _ => None,
    }
}

/// The comparison with the figures that the source published.
fn published(data: &Data, metrics: &[Measured], slices: &[Slice]) -> Option<String> {
    let figures = &data.published;
    if figures.is_empty() {
        return None;
    }
    let part = |slice: Option<&str>| match slice {
        None => metrics,
        Some(slice) => {
            let is = |known: &&Slice| format!("{}={}", known.by, known.value) == slice;
            slices.iter().find(is).map_or(&[][..], |slice| &slice.metrics)
        }
    };
    let mut differ = Vec::new();
    for figure in figures {
        let metrics = part(figure.slice.as_deref());
        let found = metrics.iter().find(|metric| metric.id == figure.metric);
        let found = found.and_then(|metric| metric.value);
        let half = 0.5 * 0.1_f64.powi(i32::try_from(figure.decimals).unwrap_or(12));
        let same = |found: f64| (found - figure.value).abs() <= half * 1.000_001;
        if !found.is_some_and(same) && !as_printed(metrics, &figure.metric).is_some_and(same) {
            let place = figure.slice.as_ref().map(|slice| format!(" ({slice})"));
            let found = found.map_or("nothing".to_owned(), |found| format!("{found:.6}"));
            let (id, value) = (&figure.metric, figure.value);
            differ.push(format!("{id}{} {value}, here {found}", place.unwrap_or_default()));
        }
    }
    let (all, same) = (figures.len(), figures.len() - differ.len());
    let more = match differ.len() {
        0 => String::new(),
        count if count > NAMED => {
            format!("; differ: {} and {} more", differ[..NAMED].join("; "), count - NAMED)
        }
        _ => format!("; differ: {}", differ.join("; ")),
    };
    Some(format!("{same} of {all} published figures are reproduced{more}"))
}
