//! Metrics that are not means over entries: precision, F1, MCC, what the rates mean where attacks are
//! rare, and how well scores rank.
//!
//! Values come from the counts of each run and are averaged over the runs; intervals from a bootstrap
//! over the entries, in which those of one group are drawn together.

use std::collections::BTreeMap;

use karat_core::aggregate::{LEVEL, better};
use karat_core::report::{Count, Interval, Item, Measured};
use karat_metrics::classification::{Agreement, Confusion, Scores, precision_at_prevalence};
use karat_metrics::stats::{self, Bootstrap};
use karat_metrics::{Score, Undefined};

/// The metrics of the counts, in the order of the report.
pub const FROM_COUNTS: &[&str] = &[
    "precision",
    "f1",
    "mcc",
    "balanced_accuracy",
    "precision_at_prevalence_1pct",
    "precision_at_prevalence_0.1pct",
];

/// Whether intervals are wanted; they cost a bootstrap for each metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Values alone.
    Values,
    /// With intervals.
    Intervals,
}

/// The metrics of the counts over some items.
pub fn measure(items: &[&Item], runs: u32, seed: u64, detail: Detail) -> Vec<Measured> {
    let clusters = clusters(items, runs);
    let all: Vec<usize> = (0..clusters.len()).collect();
    FROM_COUNTS
        .iter()
        .map(|id| {
            let per_run: Vec<Score> =
                sums(&clusters, &all, runs).iter().map(|counts| metric(id, counts)).collect();
            let mut measured = averaged(id, &per_run);
            let counts = sums(&clusters, &all, runs);
            measured.n = match (*id, counts.first()) {
                ("precision", Some(counts)) => counts.flagged(),
                (_, Some(counts)) => counts.total(),
                (_, None) => 0,
            };
            let share = counts.first().and_then(|counts| counts.proportion(id));
            if let (1, Some(share)) = (runs, share) {
                measured.count = Some(Count { hits: share.hits, of: share.of });
            }
            if detail == Detail::Intervals && measured.value.is_some() {
                let method =
                    if clusters.len() < items.len() { "bootstrap_clustered" } else { "bootstrap" };
                measured.interval = interval(id, &clusters, runs, seed, method);
            }
            measured
        })
        .collect()
}

fn interval(
    id: &str,
    clusters: &[Vec<Confusion>],
    runs: u32,
    seed: u64,
    method: &str,
) -> Option<Interval> {
    let bootstrap = Bootstrap { seed, confidence: LEVEL, ..Bootstrap::default() };
    let found = bootstrap
        .statistic(clusters.len(), |drawn| {
            let per_run: Vec<Score> =
                sums(clusters, drawn, runs).iter().map(|counts| metric(id, counts)).collect();
            mean(&per_run)
        })
        .ok()?;
    if found.low < found.high {
        return Some(Interval {
            low: found.low,
            high: found.high,
            level: LEVEL,
            method: method.to_owned(),
        });
    }
    // Draws that are all alike have no width, which would claim certainty.
    let all: Vec<usize> = (0..clusters.len()).collect();
    let counts = sums(clusters, &all, runs);
    let share = counts.first()?.proportion(id).filter(|_| runs == 1)?;
    let found = stats::wilson(share.hits, share.of, LEVEL).ok()?;
    Some(Interval { low: found.low, high: found.high, level: LEVEL, method: "wilson".to_owned() })
}

/// The counts of each server, run by run.
fn clusters(items: &[&Item], runs: u32) -> Vec<Vec<Confusion>> {
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    let mut clusters: Vec<Vec<Confusion>> = Vec::new();
    for item in items {
        let fresh = clusters.len();
        let number = match item.group.as_deref() {
            Some(group) => *numbers.entry(group).or_insert(fresh),
            None => fresh,
        };
        if number == clusters.len() {
            clusters.push(vec![Confusion::default(); runs as usize]);
        }
        for (run, counts) in clusters[number].iter_mut().enumerate() {
            let values = if runs == 1 { Some(&item.metrics) } else { item.per_run.get(run) };
            let Some(values) = values else { continue };
            for (id, positive) in [("recall", true), ("fpr", false)] {
                if let Some(Some(value)) = values.get(id) {
                    counts.add(positive, *value == 1.0);
                }
            }
        }
    }
    clusters
}

fn sums(clusters: &[Vec<Confusion>], drawn: &[usize], runs: u32) -> Vec<Confusion> {
    let mut sums = vec![Confusion::default(); runs as usize];
    for number in drawn {
        for (sum, counts) in sums.iter_mut().zip(&clusters[*number]) {
            *sum = sum.plus(counts);
        }
    }
    sums
}

fn metric(id: &str, counts: &Confusion) -> Score {
    let rare = |prevalence| precision_at_prevalence(counts.recall()?, counts.fpr()?, prevalence);
    match id {
        "precision_at_prevalence_1pct" => rare(0.01),
        "precision_at_prevalence_0.1pct" => rare(0.001),
        other => counts.metric(other).unwrap_or(Err(Undefined("no such metric"))),
    }
}

/// The mean over the runs in which the metric is defined.
fn mean(per_run: &[Score]) -> Score {
    let defined: Vec<f64> = per_run.iter().filter_map(|score| score.ok()).collect();
    match (stats::mean(&defined), per_run.first()) {
        (Ok(mean), _) => Ok(mean),
        (Err(_), Some(Err(reason))) => Err(*reason),
        (Err(reason), _) => Err(reason),
    }
}

fn averaged(id: &str, per_run: &[Score]) -> Measured {
    let value = mean(per_run);
    Measured {
        id: id.to_owned(),
        value: value.ok(),
        n: 0,
        better: better(id),
        per_run: per_run.iter().map(|score| score.ok()).collect(),
        interval: None,
        count: None,
        undefined: value.err().map(|reason| reason.to_string()),
        left_out: 0,
    }
}

/// A metric of scores, by its id.
type RankingMetric = (&'static str, fn(&Scores) -> Score);

/// The metrics of scores, in the order of the report.
const FROM_SCORES: &[RankingMetric] = &[
    ("roc_auc", Scores::roc_auc),
    ("average_precision", Scores::average_precision),
    ("recall_at_fpr_0", |scores| scores.recall_at_fpr(0.0)),
    ("recall_at_fpr_1pct", |scores| scores.recall_at_fpr(0.01)),
    ("recall_at_fpr_5pct", |scores| scores.recall_at_fpr(0.05)),
];

/// The metrics of scores, run by run; none where a run has no scores.
pub fn ranking(per_run: &[Vec<(bool, f64)>], runs: u32) -> Vec<Measured> {
    let scored: Vec<Scores> = per_run
        .iter()
        .filter(|run| !run.is_empty())
        .filter_map(|run| {
            let (truth, scores): (Vec<bool>, Vec<f64>) = run.iter().copied().unzip();
            Scores::new(&truth, &scores).ok()
        })
        .collect();
    if scored.len() != runs as usize {
        return Vec::new();
    }
    let entries = per_run.first().map_or(0, Vec::len) as u64;
    FROM_SCORES
        .iter()
        .map(|(id, metric)| {
            let per_run: Vec<Score> = scored.iter().map(metric).collect();
            Measured { n: entries, ..averaged(id, &per_run) }
        })
        .collect()
}

/// How alike two detectors are: kappa and Jaccard of their flags.
pub fn agreement(one: &[bool], other: &[bool]) -> Vec<Measured> {
    let Ok(agreement) = Agreement::from_verdicts(one, other) else { return Vec::new() };
    [("kappa", agreement.kappa()), ("jaccard", agreement.jaccard())]
        .into_iter()
        .map(|(id, score)| Measured { n: one.len() as u64, ..averaged(id, &[score]) })
        .collect()
}
