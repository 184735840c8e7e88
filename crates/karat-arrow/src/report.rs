//! From a partial result to a report without items. Pure, and in one order: metrics as they are listed,
//! groups by name.

use std::collections::BTreeMap;

use karat_core::aggregate::{self, LEVEL};
use karat_core::evaluation::{Scored, Subject, conventions};
use karat_core::kind;
use karat_core::provenance::{Stopwatch, bins};
use karat_core::report::{
    self, Count, DatasetRef, Groups, Interval, Latency, Measured, Report, SystemRef,
};
use karat_core::run::Failures;
use karat_detection::aggregate_metrics::{FROM_COUNTS, FROM_SCORES, metric as of_counts};
use karat_metrics::classification::{Confusion, Scores};
use karat_metrics::stats::{
    self, Bootstrap, ClusteredRate, ExactSum, student_two_sided_quantile as student,
};
use karat_metrics::{MetricId, Score, Undefined, metric};

use crate::partial::Partial;
use crate::totals::Sum;
use crate::{Error, Kind};

/// The most groups that are drawn again for an interval. A mean over more of them is as good as normal.
const MAX_DRAWN: usize = 1_000;

/// The report on all rows of a partial result.
pub(crate) fn report(partial: &Partial) -> Result<Report, Error> {
    let plan = &partial.plan;
    check_failures(partial)?;
    let order = partial.group_order();
    let metrics: Vec<Measured> = match plan.kind {
        Kind::Traces | Kind::Rankings => averages(partial, &order),
        Kind::Verdicts => {
            let mut metrics = averages(partial, &order);
            metrics.extend(from_counts(partial, &order));
            metrics.extend(from_scores(partial));
            metrics.retain(|metric| plan.shown.contains(&metric.id));
            metrics
        }
    };
    if !metrics.iter().any(|metric| metric.value.is_some()) {
        return Err(Error::NothingMeasured(format!(
            "no metric is defined on any of {} rows",
            partial.rows
        )));
    }
    let report_kind = match plan.kind {
        Kind::Traces => kind::Kind::Traces,
        Kind::Rankings => kind::Kind::Ranking,
        Kind::Verdicts => kind::Kind::Verdicts,
    };
    let name = plan.options.name.clone();
    let subject = Subject {
        kind: report_kind,
        dataset: DatasetRef { id: name.clone(), version: "rows".to_owned(), digest: String::new() },
        contents: None,
        system: SystemRef {
            kind: "file".to_owned(),
            name: format!("recorded {}", plan.kind),
            version: None,
            settings: BTreeMap::from([("format".to_owned(), "arrow".to_owned())]),
        },
        name,
        runs: 1,
        seed: plan.options.seed,
        items: plan.kind.name(),
        groups: "groups",
    };
    let scored = Scored {
        metrics,
        conventions: rules(plan.kind),
        warnings: warnings(partial),
        ..Scored::default()
    };
    Ok(subject.report(scored, environment(partial)))
}

fn check_failures(partial: &Partial) -> Result<(), Error> {
    let Partial { rows, failed, failure, .. } = partial;
    if *rows == 0 {
        return Err(Error::NothingMeasured("no rows".to_owned()));
    }
    let allowed = partial.plan.options.max_errors;
    let size = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    if *failed == 0 {
        return Ok(());
    }
    let (id, message) = failure.clone().unwrap_or_default();
    let failures = Failures { failed: size(*failed), asked: size(*rows), id, message };
    failures.allow(allowed, "rows").map_err(Error::TooManyFailures)
}

fn environment(partial: &Partial) -> report::Environment {
    let mut environment = Stopwatch::start().environment(&[], None);
    let quantiles = partial.times.quantiles([0.5, 0.9, 0.99]);
    environment.latency_ms = quantiles.map(|(n, [p50, p90, p99])| {
        // The three digits of a bin may reach beyond the longest time.
        let max = partial.times.max_ms;
        Latency { n, p50: p50.min(max), p90: p90.min(max), p99: p99.min(max), max }
    });
    let times = partial.times.recorded();
    environment.latency_bins = bins(times.map(|(micros, count)| (micros as f64 / 1e3, count)));
    environment
}

fn rules(kind: Kind) -> BTreeMap<String, String> {
    let command = match kind {
        Kind::Traces => "agent",
        Kind::Rankings => "retrieval",
        Kind::Verdicts => "detection",
    };
    let scored = format!("row by row as `karat {command} score` does; items are not kept");
    let mut rules = conventions([
        ("rows", scored.as_str()),
        (
            "sums",
            "exact, rounded once at the end: the order and division of the rows do not matter",
        ),
        (
            "interval",
            "Wilson for rates; for means a bootstrap by groups, Student's t where rows have no groups, \
             and Student's t over groups where there are more than 1,000 or only some rows have one; \
             95 %",
        ),
    ]);
    if kind == Kind::Traces {
        let left_out = "metrics that compare the runs of one task (gauge.effectiveness and its kin, \
                        pass@k, pass^k) need all traces at once and are not here";
        rules.insert("tasks".to_owned(), left_out.to_owned());
    }
    rules
}

fn warnings(partial: &Partial) -> Vec<String> {
    let Partial { rows, failed, without_tools, grouped, .. } = *partial;
    let kind = partial.plan.kind;
    let mut warnings = Vec::new();
    if let (1.., Some((id, message))) = (failed, &partial.failure) {
        warnings.push(format!("{failed} of {rows} rows have no score (such as {id}: {message})"));
    }
    if without_tools > 0 {
        warnings.push(format!("{without_tools} traces without tools are in no mean"));
    }
    let alone = match kind {
        Kind::Traces => rows.saturating_sub(failed + without_tools + grouped),
        Kind::Rankings | Kind::Verdicts => rows.saturating_sub(grouped),
    };
    if alone > 0 {
        warnings.push(format!("{alone} {kind} have no group and count as independent"));
    }
    warnings
}

/// The values of one metric.
struct Values<'p> {
    groups: Vec<&'p Sum>,
    alone: &'p Sum,
    squares: &'p ExactSum,
    n: u64,
    mean: Option<f64>,
    is_binary: bool,
    has_spread: bool,
}

fn averages(partial: &Partial, order: &[usize]) -> Vec<Measured> {
    let metrics = partial.plan.metrics.iter().enumerate();
    metrics
        .filter_map(|(place, metric)| {
            let values = Values::of(partial, order, place);
            if metric.is_optional && values.n == 0 {
                return None;
            }
            let left_out = partial.totals[place].left_out;
            let count = metric.is_rate.then(|| values.count());
            let is_share = metric.is_share();
            Some(Measured {
                id: metric.id.clone(),
                value: values.mean,
                n: values.n,
                better: aggregate::better(&metric.id),
                per_run: vec![values.mean],
                interval: values.interval(count, is_share, partial.plan.options.seed),
                count,
                undefined: values.mean.is_none().then(|| undefined(&metric.id, left_out)),
                left_out,
            })
        })
        .collect()
}

/// The reason for which a metric has no value.
fn undefined(id: &MetricId, left_out: u64) -> String {
    if left_out == 0 {
        return "no row carries this metric".to_owned();
    }
    let when = id.definition().map_or("", |metric| metric.undefined);
    match when.is_empty() {
        true => "undefined on every row".to_owned(),
        false => format!("undefined on every row, as it is where: {when}"),
    }
}

impl<'p> Values<'p> {
    fn of(partial: &'p Partial, order: &[usize], place: usize) -> Values<'p> {
        let total = &partial.totals[place];
        let groups = partial.group_sums(order, place);
        let mut all = total.alone.clone();
        groups.iter().for_each(|sum| all.merge(sum));
        let has_spread = total.min < total.max;
        // Equal values have exactly that mean; their rounded sum might not.
        let mean = (all.n > 0).then(|| if has_spread { all.sum.mean(all.n) } else { total.min });
        Values {
            groups,
            alone: &total.alone,
            squares: &total.squares,
            n: all.n,
            mean,
            is_binary: total.is_binary,
            has_spread,
        }
    }

    /// The number of groups, each row without one being its own.
    fn clusters(&self) -> u64 {
        self.groups.len() as u64 + self.alone.n
    }

    fn count(&self) -> Count {
        let groups = self.groups.iter().map(|sum| (sum.hits(), sum.n));
        counted(groups, (self.alone.hits(), self.alone.n))
    }

    fn interval(&self, count: Option<Count>, is_share: bool, seed: u64) -> Option<Interval> {
        if self.is_binary && (count.is_some() || !self.has_spread) {
            // Positions and costs are not a rate even if all of them are 0 or 1.
            return aggregate::wilson(count.unwrap_or_else(|| self.count())).filter(|_| is_share);
        }
        if !self.has_spread {
            return None;
        }
        let clusters = self.clusters();
        if clusters == self.n {
            return self.students(is_share, "t");
        }
        if clusters == 1 {
            return None;
        }
        if self.alone.n > 0 || self.groups.len() > MAX_DRAWN {
            return self.students(is_share, "t_clustered");
        }
        let sums: Vec<(f64, f64)> =
            self.groups.iter().map(|sum| (sum.sum.value(), sum.n as f64)).collect();
        let bootstrap = Bootstrap { seed, confidence: LEVEL, ..Bootstrap::default() };
        let found = Interval::new(bootstrap.pooled_mean(&sums).ok()?, "bootstrap_clustered");
        Some(found).filter(Interval::has_width)
    }

    /// Student's interval over groups: of the mean as a ratio of sums, whose error comes from how far
    /// the sum of each group lies from the one that the mean predicts. With one row in each group it is the
    /// usual interval.
    fn students(&self, is_share: bool, method: &str) -> Option<Interval> {
        let (mean, n, clusters) = (self.mean?, self.n as f64, self.clusters() as f64);
        let off = |sum: &&Sum| (sum.sum.value() - mean * sum.n as f64).powi(2);
        let between: f64 = self.groups.iter().map(off).sum();
        let alone = self.squares.value() - 2.0 * mean * self.alone.sum.value()
            + mean * mean * self.alone.n as f64;
        let variance = (between + alone.max(0.0)) * clusters / (clusters - 1.0) / (n * n);
        // What rounding leaves of no variance.
        if variance.is_nan() || variance * n <= 1e-12 * mean.abs().max(1e-12) {
            return None;
        }
        let reach = student(1.0 - LEVEL, clusters - 1.0) * variance.sqrt();
        let (low, high) = (mean - reach, mean + reach);
        let found = match is_share {
            true => stats::Interval { low: low.max(0.0), high: high.min(1.0) },
            false => stats::Interval { low, high },
        };
        Some(Interval::new(found, method))
    }
}

/// Counted hits of groups, and of rows that have none.
fn counted(groups: impl Iterator<Item = (u64, u64)>, alone: (u64, u64)) -> Count {
    let (hits, n) = alone;
    let mut clusters: Vec<(u64, u64, u64)> = groups.map(|(hits, n)| (hits, n, 1)).collect();
    clusters.extend([(1, 1, hits), (0, 1, n - hits)]);
    let plain = clusters.iter().fold(Count::independent(0, 0), |sum, (hits, n, times)| {
        Count::independent(sum.hits + hits * times, sum.of + n * times)
    });
    match ClusteredRate::of_counts(clusters) {
        Ok(ClusteredRate { of, clusters, effective, freedom, .. }) if clusters < of => {
            Count { groups: Some(Groups { number: clusters, effective, freedom }), ..plain }
        }
        _ => plain,
    }
}

/// The verdicts behind the sums of recall and fpr, the first two rates.
fn confusion(recall: &Sum, fpr: &Sum) -> Confusion {
    Confusion {
        true_positives: recall.hits(),
        false_negatives: recall.n - recall.hits(),
        false_positives: fpr.hits(),
        true_negatives: fpr.n - fpr.hits(),
    }
}

/// The metrics of all verdicts together.
fn from_counts(partial: &Partial, order: &[usize]) -> Vec<Measured> {
    let [recall, fpr, ..] = &partial.totals[..] else { return Vec::new() };
    let alone = confusion(&recall.alone, &fpr.alone);
    let groups: Vec<Confusion> = order
        .iter()
        .filter_map(|group| match partial.sums_of(*group) {
            [recall, fpr, ..] => Some(confusion(recall, fpr)),
            _ => None,
        })
        .filter(|counts| counts.total() > 0)
        .collect();
    let all = groups.iter().fold(alone, |sum, counts| sum.plus(counts));
    let mut intervals = drawn(&groups, &alone, partial.plan.options.seed).into_iter();
    FROM_COUNTS
        .iter()
        .map(|id| {
            let score = of_counts(id, &all);
            let drawn = intervals.next().flatten().map(|i| Interval::new(i, "bootstrap_clustered"));
            let n = if *id == metric!("precision") { all.flagged() } else { all.total() };
            let mut measured = aggregated(id, score, n);
            if *id == metric!("precision") {
                let flagged = |counts: &Confusion| (counts.true_positives, counts.flagged());
                let groups = groups.iter().map(flagged).filter(|(_, n)| *n > 0);
                measured.count = Some(counted(groups, flagged(&alone)));
            }
            if measured.value.is_some() {
                let of_share = || measured.count.and_then(aggregate::wilson);
                measured.interval = drawn.or_else(of_share);
            }
            measured
        })
        .collect()
}

/// Intervals from drawing groups again; none if some rows have no group, there are too many groups, or
/// the interval has no width.
fn drawn(
    groups: &[Confusion],
    alone: &Confusion,
    seed: u64,
) -> [Option<stats::Interval>; FROM_COUNTS.len()] {
    if alone.total() > 0 || groups.len() > MAX_DRAWN {
        return [const { None }; FROM_COUNTS.len()];
    }
    let bootstrap = Bootstrap { seed, confidence: LEVEL, ..Bootstrap::default() };
    let found = bootstrap.statistics(groups.len(), |drawn| {
        let sum = |sum: Confusion, group: &usize| sum.plus(&groups[*group]);
        let counts = drawn.iter().fold(Confusion::default(), sum);
        FROM_COUNTS.each_ref().map(|id| of_counts(id, &counts))
    });
    found.map(|found| found.ok().filter(|found| found.width() > 1e-12))
}

/// The metrics of scores; none if no verdict has a score.
fn from_scores(partial: &Partial) -> Vec<Measured> {
    let scores = &partial.scores;
    if scores.with == 0 {
        return Vec::new();
    }
    let unusable = if scores.without > 0 {
        Some("not every verdict has a score".to_owned())
    } else if scores.too_many {
        let limit = partial.plan.options.max_scores;
        Some(format!("more than {limit} distinct scores; round them, or raise `max_scores`"))
    } else {
        None
    };
    let counted = Scores::from_ties(scores.descending());
    FROM_SCORES
        .iter()
        .map(|(id, metric)| match &unusable {
            None => aggregated(id, metric(&counted), scores.with),
            Some(reason) => Measured {
                undefined: Some(reason.clone()),
                ..aggregated(id, Err(Undefined("")), 0)
            },
        })
        .collect()
}

fn aggregated(id: &MetricId, score: Score, n: u64) -> Measured {
    let undefined = score.err().map_or("", |reason| reason.0);
    Measured { per_run: vec![score.ok()], ..aggregate::value(id.clone(), score.ok(), n, undefined) }
}
