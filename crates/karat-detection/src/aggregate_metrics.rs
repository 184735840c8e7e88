//! Metrics that are not means over entries: precision, F1, MCC, what the rates mean where attacks are
//! rare, and how well scores rank.
//!
//! Values come from the counts of each run and are averaged over the runs; intervals from a bootstrap
//! over the entries, in which those of one group are drawn together.

use std::collections::BTreeMap;

use karat_core::aggregate::{self, LEVEL};
use karat_core::report::{Count, Interval, Item, Measured};
use karat_metrics::classification::{Agreement, Confusion, Scores, precision_at_prevalence};
use karat_metrics::stats::{self, Bootstrap};
use karat_metrics::{MetricId, Score, Undefined, metric};

/// The metrics of the counts, in the order of the report.
pub static FROM_COUNTS: [MetricId; 6] = [
    PRECISION,
    MetricId::known("f1"),
    MetricId::known("mcc"),
    MetricId::known("balanced_accuracy"),
    PRECISION_1PCT,
    PRECISION_01PCT,
];

const PRECISION: MetricId = MetricId::known("precision");
const PRECISION_1PCT: MetricId = MetricId::known("precision_at_prevalence_1pct");
const PRECISION_01PCT: MetricId = MetricId::known("precision_at_prevalence_0.1pct");

/// True if intervals are wanted; they cost a bootstrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Values alone.
    Values,
    /// With their intervals.
    Intervals,
}

/// The metrics of the counts over some items.
pub(crate) fn measure(items: &[&Item], runs: u32, seed: u64, detail: Detail) -> Vec<Measured> {
    let clusters = clusters(items, runs);
    let all: Vec<usize> = (0..units(&clusters)).collect();
    let counts = sums(&clusters, &all);
    let method = method(all.len(), items.len());
    let mut intervals = match detail {
        Detail::Values => [None; FROM_COUNTS.len()],
        Detail::Intervals => intervals(&clusters, seed),
    }
    .into_iter();
    FROM_COUNTS
        .iter()
        .map(|id| {
            let per_run: Vec<Score> = counts.iter().map(|counts| metric(id, counts)).collect();
            let mut measured = averaged(id, &per_run);
            measured.n = match counts.first() {
                Some(counts) if *id == PRECISION => counts.flagged(),
                Some(counts) => counts.total(),
                None => 0,
            };
            let share = counts.first().and_then(|counts| counts.proportion(id));
            if let (1, Some(share)) = (runs, share) {
                let plain = Count::independent(share.hits, share.of);
                measured.count = Some(if *id == PRECISION { flagged(items) } else { plain });
            }
            let drawn = intervals.next().flatten().map(|found| Interval::new(found, method));
            if measured.value.is_some() && detail == Detail::Intervals {
                measured.interval = drawn.or_else(|| of_share(measured.count));
            }
            measured
        })
        .collect()
}

/// The attacks among the flagged entries.
fn flagged(items: &[&Item]) -> Count {
    let flags = |item: &Item, id| item.metrics.get(&id).copied().flatten() == Some(1.0);
    let flagged = items
        .iter()
        .copied()
        .filter(|item| flags(item, metric!("recall")) || flags(item, metric!("fpr")));
    let groups = aggregate::groups(flagged.clone());
    aggregate::count_trials(
        groups.into_iter().zip(flagged.map(|item| flags(item, metric!("recall")))),
    )
}

/// Draws that are all alike have no width, which would claim certainty; a share has Wilson's then.
fn of_share(count: Option<Count>) -> Option<Interval> {
    aggregate::wilson(count?)
}

fn method(units: usize, entries: usize) -> &'static str {
    if units < entries { "bootstrap_clustered" } else { "bootstrap" }
}

fn bootstrap(seed: u64) -> Bootstrap {
    Bootstrap { seed, confidence: LEVEL, ..Bootstrap::default() }
}

/// The intervals of all metrics of the counts, from the same draws; none where it has no width.
fn intervals(
    clusters: &[Vec<Confusion>],
    seed: u64,
) -> [Option<stats::Interval>; FROM_COUNTS.len()] {
    let found = bootstrap(seed).statistics(units(clusters), |drawn| {
        let counts = sums(clusters, drawn);
        FROM_COUNTS
            .each_ref()
            .map(|id| mean(&counts.iter().map(|counts| metric(id, counts)).collect::<Vec<_>>()))
    });
    found.map(|found| found.ok().filter(has_width))
}

/// Returns whether an interval is wider than what rounding leaves between equal draws.
fn has_width(found: &stats::Interval) -> bool {
    found.high - found.low > 1e-12
}

/// The counts of each server, for each run.
fn clusters(items: &[&Item], runs: u32) -> Vec<Vec<Confusion>> {
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    let mut clusters: Vec<Vec<Confusion>> = vec![Vec::new(); runs as usize];
    for item in items {
        let fresh = units(&clusters);
        let number = match item.group.as_deref() {
            Some(group) => *numbers.entry(group).or_insert(fresh),
            None => fresh,
        };
        for (run, clusters) in clusters.iter_mut().enumerate() {
            if number == clusters.len() {
                clusters.push(Confusion::default());
            }
            let values = if runs == 1 { Some(&item.metrics) } else { item.per_run.get(run) };
            let Some(values) = values else { continue };
            for (id, positive) in [(metric!("recall"), true), (metric!("fpr"), false)] {
                if let Some(Some(value)) = values.get(&id) {
                    clusters[number].add(positive, *value == 1.0);
                }
            }
        }
    }
    clusters
}

/// The number of units that are drawn, the same in every run.
fn units(clusters: &[Vec<Confusion>]) -> usize {
    clusters.first().map_or(0, Vec::len)
}

/// The counts of the units drawn, for each run.
fn sums(clusters: &[Vec<Confusion>], drawn: &[usize]) -> Vec<Confusion> {
    let of_run = |run: &Vec<Confusion>| {
        drawn.iter().fold(Confusion::default(), |sum, unit| sum.plus(&run[*unit]))
    };
    clusters.iter().map(of_run).collect()
}

/// A metric of the counts. They all weigh attacks against benign entries, so with one class alone
/// they would say nothing about the detector.
///
/// # Errors
/// If it is undefined for these counts.
pub fn metric(id: &str, counts: &Confusion) -> Score {
    if counts.positives() == 0 {
        return Err(Undefined("no attacks with a verdict"));
    }
    if counts.negatives() == 0 {
        return Err(Undefined("no benign entries with a verdict"));
    }
    let rare = |prevalence| precision_at_prevalence(counts.recall()?, counts.fpr()?, prevalence);
    match id {
        _ if PRECISION_1PCT == *id => rare(0.01),
        _ if PRECISION_01PCT == *id => rare(0.001),
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

fn averaged(id: &MetricId, per_run: &[Score]) -> Measured {
    let value = mean(per_run);
    let undefined = value.err().map_or("", |reason| reason.0);
    Measured {
        per_run: per_run.iter().map(|score| score.ok()).collect(),
        ..aggregate::value(id.clone(), value.ok(), 0, undefined)
    }
}

/// A metric of scores, by its id.
pub(crate) type RankingMetric = (MetricId, fn(&Scores) -> Score);

/// The metrics of scores, in the order of the report.
pub static FROM_SCORES: [RankingMetric; 5] = [
    (MetricId::known("roc_auc"), Scores::roc_auc),
    (MetricId::known("average_precision"), average_precision),
    (MetricId::known("recall_at_fpr_0"), |scores| scores.recall_at_fpr(0.0)),
    (MetricId::known("recall_at_fpr_1pct"), |scores| scores.recall_at_fpr(0.01)),
    (MetricId::known("recall_at_fpr_5pct"), |scores| scores.recall_at_fpr(0.05)),
];

/// An entry that has a score.
pub struct Ranked<'a> {
    /// The entry it is.
    pub entry: usize,
    /// The entries that are drawn together with it.
    pub group: Option<&'a str>,
    /// True if it is an attack.
    pub malicious: bool,
    /// The way suspicious it was found.
    pub score: f64,
}

/// The ids of the metrics of scores.
pub fn from_scores() -> impl Iterator<Item = &'static MetricId> {
    FROM_SCORES.iter().map(|(id, _)| id)
}

/// The metrics of scores, run by run; none where a run has no scores.
pub(crate) fn ranking(per_run: &[Vec<Ranked<'_>>], runs: u32, seed: u64) -> Vec<Measured> {
    let usable =
        |run: &Vec<Ranked<'_>>| !run.is_empty() && run.iter().all(|one| one.score.is_finite());
    if per_run.len() != runs as usize || !per_run.iter().all(usable) {
        return Vec::new();
    }
    let drawn = Drawn::of(per_run);
    let all: Vec<usize> = (0..drawn.units.len()).collect();
    let scored = drawn.scores(&all);
    let intervals = bootstrap(seed).statistics(drawn.units.len(), |units| {
        let scored = drawn.scores(units);
        FROM_SCORES
            .each_ref()
            .map(|(_, metric)| mean(&scored.iter().map(metric).collect::<Vec<_>>()))
    });
    let entries = per_run.first().map_or(0, Vec::len);
    let method = method(drawn.units.len(), entries);
    FROM_SCORES
        .iter()
        .zip(intervals)
        .map(|((id, metric), found)| {
            let per_run: Vec<Score> = scored.iter().map(metric).collect();
            let mut measured = Measured { n: entries as u64, ..averaged(id, &per_run) };
            // Draws that are all alike have no width, which would claim certainty.
            let wide = found.ok().filter(has_width);
            measured.interval = match wide {
                Some(found) => Some(Interval::new(found, method)),
                None => share_of_attacks(id, &measured, &scored),
            };
            measured
        })
        .collect()
}

/// Average precision weighs attacks against benign entries: without the latter every ranking is perfect.
fn average_precision(scores: &Scores) -> Score {
    scores.roc_auc().and_then(|_| scores.average_precision())
}

/// The metrics of scores where they are undefined.
pub(crate) fn unranked(reason: Undefined, runs: u32) -> Vec<Measured> {
    let per_run: Vec<Score> = (0..runs).map(|_| Err(reason)).collect();
    FROM_SCORES.iter().map(|(id, _)| averaged(id, &per_run)).collect()
}

/// Recall at a ceiling is a share of the attacks, and has an interval as such.
fn share_of_attacks(id: &str, measured: &Measured, scored: &[Scores]) -> Option<Interval> {
    let [scores] = scored else { return None };
    let share = measured.value.filter(|_| id.starts_with("recall_at_fpr"))?;
    let of = scores.positives();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a share of a count, back to the count"
    )]
    let hits = (share * of as f64).round() as u64;
    aggregate::wilson(Count::independent(hits, of))
}

/// Entries with scores, ready to be drawn again and again.
struct Drawn {
    /// Every score that occurs, from the highest down.
    levels: Vec<f64>,
    /// The units that are drawn together, for each run: the places of its scores, and which are of attacks.
    units: Vec<Vec<Vec<(usize, bool)>>>,
}

impl Drawn {
    fn of(per_run: &[Vec<Ranked<'_>>]) -> Drawn {
        let mut levels: Vec<f64> = per_run.iter().flatten().map(|one| one.score).collect();
        levels.sort_unstable_by(|a, b| b.total_cmp(a));
        // Not by their bits: 0 and -0 are one score.
        levels.dedup_by(|a, b| a == b);
        let mut numbers: BTreeMap<(Option<&str>, usize), usize> = BTreeMap::new();
        let mut units: Vec<Vec<Vec<(usize, bool)>>> = Vec::new();
        for (run, entries) in per_run.iter().enumerate() {
            for one in entries {
                let key = (one.group, if one.group.is_some() { 0 } else { one.entry });
                let unit = *numbers.entry(key).or_insert(units.len());
                if unit == units.len() {
                    units.push(vec![Vec::new(); per_run.len()]);
                }
                let level = levels.partition_point(|level| *level > one.score);
                units[unit][run].push((level, one.malicious));
            }
        }
        Drawn { levels, units }
    }

    /// The scores of the units drawn, run by run.
    fn scores(&self, drawn: &[usize]) -> Vec<Scores> {
        let runs = self.units.first().map_or(0, Vec::len);
        let of_run = |run: usize| {
            let mut counts = vec![[0_u64; 2]; self.levels.len()];
            for (level, malicious) in drawn.iter().flat_map(|unit| &self.units[*unit][run]) {
                counts[*level][usize::from(*malicious)] += 1;
            }
            let counted = self.levels.iter().zip(counts);
            Scores::from_ties(counted.map(|(score, [benign, attacks])| (*score, attacks, benign)))
        };
        (0..runs).map(of_run).collect()
    }
}

/// The verdicts of two detectors on one entry.
pub struct Both<'a> {
    /// The entries that are drawn together with it.
    pub group: Option<&'a str>,
    /// True if the first one flags it.
    pub one: bool,
    /// True if the other one does.
    pub other: bool,
}

/// The way alike two detectors are: kappa and Jaccard of their flags.
pub(crate) fn agreement(verdicts: &[Both<'_>], seed: u64) -> Vec<Measured> {
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    let mut units: Vec<Agreement> = Vec::new();
    for verdict in verdicts {
        let fresh = units.len();
        let unit = match verdict.group {
            Some(group) => *numbers.entry(group).or_insert(fresh),
            None => fresh,
        };
        if unit == fresh {
            units.push(Agreement::default());
        }
        units[unit].add(verdict.one, verdict.other);
    }
    let together = |drawn: &[usize]| {
        drawn.iter().fold(Agreement::default(), |sum, unit| sum.plus(&units[*unit]))
    };
    let all: Vec<usize> = (0..units.len()).collect();
    let observed = together(&all);
    let [of_kappa, of_jaccard] = bootstrap(seed).statistics(units.len(), |drawn| {
        let drawn = together(drawn);
        [drawn.kappa(), drawn.jaccard()]
    });
    let n = verdicts.len() as u64;
    let wide = |found: Result<stats::Interval, Undefined>| {
        let found = found.ok().filter(has_width)?;
        Some(Interval::new(found, method(units.len(), verdicts.len())))
    };
    let kappa = Measured {
        n,
        interval: wide(of_kappa),
        ..averaged(&metric!("kappa"), &[observed.kappa()])
    };
    let mut jaccard = Measured { n, ..averaged(&metric!("jaccard"), &[observed.jaccard()]) };
    if jaccard.value.is_some() {
        let of = observed.both + observed.only_first + observed.only_second;
        jaccard.count = Some(Count::independent(observed.both, of));
        jaccard.interval = wide(of_jaccard).or_else(|| of_share(jaccard.count));
    }
    vec![kappa, jaccard]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(group: Option<&str>, one: bool, other: bool) -> Both<'_> {
        Both { group, one, other }
    }

    fn item_of(number: usize, id: &str, value: f64) -> Item {
        Item {
            id: number.to_string(),
            metrics: BTreeMap::from([(id.into(), Some(value))]),
            ..Item::default()
        }
    }

    #[test]
    fn agreement_has_intervals_and_those_of_whole_groups_are_wider() {
        let alone: Vec<Both<'_>> =
            (0..60).map(|n| both(None, n % 3 == 0, n % 3 == 0 || n % 10 == 0)).collect();
        let found = agreement(&alone, 1);
        for measured in &found {
            let interval = measured.interval.as_ref().unwrap();
            let value = measured.value.unwrap();
            assert_eq!(interval.method, "bootstrap");
            assert!(interval.low < value && value < interval.high, "{measured:?}");
        }
        assert_eq!(found, agreement(&alone, 1));
        // The same verdicts, twenty of a kind on each server.
        let servers = ["a", "b", "c"];
        let grouped: Vec<Both<'_>> = (0..60)
            .map(|n| both(Some(servers[n / 20]), n / 20 == 0, n / 20 == 0 || n % 10 == 0))
            .collect();
        let [kappa, _] = &agreement(&grouped, 1)[..] else { panic!() };
        assert_eq!(kappa.interval.as_ref().unwrap().method, "bootstrap_clustered");
    }

    #[test]
    fn every_metric_of_the_counts_has_an_interval_around_it() {
        let item = |number: usize| {
            let id = if number.is_multiple_of(2) { "recall" } else { "fpr" };
            // Half of the attacks are caught, and every fifth benign entry is.
            let flagged =
                if id == "recall" { number.is_multiple_of(4) } else { number.is_multiple_of(5) };
            item_of(number, id, f64::from(u8::from(flagged)))
        };
        let items: Vec<Item> = (0..60).map(item).collect();
        let refs: Vec<&Item> = items.iter().collect();
        let found = measure(&refs, 1, 7, Detail::Intervals);
        assert_eq!(found.len(), FROM_COUNTS.len());
        for measured in &found {
            let (value, interval) = (measured.value.unwrap(), measured.interval.as_ref().unwrap());
            assert!(interval.low < value && value < interval.high, "{measured:?}");
            assert_eq!(interval.method, "bootstrap");
        }
        let bare = measure(&refs, 1, 7, Detail::Values);
        assert!(bare.iter().all(|measured| measured.interval.is_none()));
        assert!(bare.iter().zip(&found).all(|(bare, found)| bare.value == found.value));
    }

    #[test]
    fn perfect_verdicts_claim_no_certainty() {
        let item = |number: usize| {
            let (id, value) = if number < 7 { ("recall", 1.0) } else { ("fpr", 0.0) };
            item_of(number, id, value)
        };
        let items: Vec<Item> = (0..20).map(item).collect();
        let refs: Vec<&Item> = items.iter().collect();
        let found = measure(&refs, 1, 7, Detail::Intervals);
        for measured in found.iter().filter(|measured| measured.id != "precision") {
            assert_eq!((measured.value, &measured.interval), (Some(1.0), &None), "{}", measured.id);
        }
        assert_eq!(found[0].interval.as_ref().unwrap().method, "wilson");
    }

    #[test]
    fn detectors_that_always_agree_still_leave_a_doubt() {
        let same: Vec<Both<'_>> = (0..10).map(|_| both(None, true, true)).collect();
        let [kappa, jaccard] = &agreement(&same, 0)[..] else { panic!() };
        assert_eq!((kappa.value, jaccard.value), (None, Some(1.0)));
        assert!(kappa.undefined.is_some() && kappa.interval.is_none());
        let interval = jaccard.interval.as_ref().unwrap();
        assert!(interval.method == "wilson" && interval.low < 0.8, "{interval:?}");
        assert!(agreement(&[], 0).iter().all(|measured| measured.value.is_none()));
    }
}
