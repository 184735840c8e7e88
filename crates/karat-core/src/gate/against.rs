//! One metric against the baseline: is the loss within the tolerance?
//!
//! Where both sides were run once the answer is exact. Where either varies it is a test: over the
//! items, by groups where they share one, for a metric that is the mean of its items' scores, and
//! over the values of the runs for any other. What neither can show is inconclusive; Holm's
//! correction over all metrics of the gate comes last.

use std::collections::BTreeMap;

use karat_metrics::stats::{self, Alternative};

use super::{ALPHA, GateError, POWER, list, place};
use crate::baseline::{Baseline, Reference};
use crate::compare::{EXACT, PERMUTATIONS, SliceKey};
use crate::paired::{Headlines, Pair, Paired, ROUNDING, scores};
use crate::report::{Better, Check, Measured, Report, Verdict};

/// With fewer independent differences than this even one-sided signs that all agree are chance.
const MIN_DIFFERENCES: u64 = 5;

/// The other side of a `max_drop` or `max_rise`.
pub(super) struct Against<'a> {
    id: &'a str,
    rule: &'static str,
    slice: Option<&'a SliceKey>,
    baseline: &'a Baseline,
    reference: &'a Reference,
}

impl<'a> Against<'a> {
    pub(super) fn new(
        id: &'a str,
        rule: &'static str,
        slice: Option<&'a SliceKey>,
        baseline: Option<&'a Baseline>,
    ) -> Result<Against<'a>, GateError> {
        let Some(baseline) = baseline else {
            return Err(GateError::NoBaseline { id: id.to_owned(), rule });
        };
        let reference = match slice {
            None => baseline.metric(id),
            Some(key) => baseline.slice_metric(&key.by, &key.value, id),
        };
        match reference {
            Some(reference) => Ok(Against { id, rule, slice, baseline, reference }),
            None => Err(GateError::MissingInBaseline { id: id.to_owned(), place: place(slice) }),
        }
    }
}

/// A comparison before Holm's correction has been applied over all of them.
pub(super) struct Undecided {
    check: Check,
    /// The p-value of "worse than the tolerance"; `None` where the check is already decided.
    worse: Option<f64>,
    /// The sentence to use if the loss turns out to be significant after the correction.
    failing: String,
}

impl From<Check> for Undecided {
    fn from(check: Check) -> Undecided {
        Undecided { check, worse: None, failing: String::new() }
    }
}

/// Holm over the losses that are tested together: only those that survive it fail the gate.
pub(super) fn decide_together(undecided: Vec<Undecided>) -> Vec<Check> {
    let p: Vec<f64> = undecided.iter().filter_map(|one| one.worse).collect();
    let mut adjusted = stats::holm(&p).into_iter();
    undecided
        .into_iter()
        .map(|mut one| {
            if one.worse.is_some()
                && let Some(p) = adjusted.next()
                && p <= ALPHA
            {
                one.check.verdict = Verdict::Fail;
                one.check.reason = format!("{} (p = {p:.3} after Holm)", one.failing);
            }
            one.check
        })
        .collect()
}

/// Holds a metric to its tolerance.
pub(super) fn with_baseline(
    against: &Against<'_>,
    measured: &Measured,
    limit: f64,
    report: &Report,
) -> Undecided {
    let id = against.id;
    let headlines = Headlines { before: against.reference.value, after: measured.value };
    let paired = Paired::new(id, against.slice, &scores(against.baseline), report, headlines);
    let case = Case { against, measured, limit, report, paired };
    let (before, after) = match (headlines.before, headlines.after) {
        (Some(before), Some(after)) => (before, after),
        (_, None) => {
            let why = measured.undefined.as_deref().unwrap_or("no reason given");
            return case.check(Verdict::Fail, format!("{id} is undefined ({why})")).into();
        }
        (None, _) => {
            let reason = format!("{id} is undefined in the baseline, so a loss cannot be seen");
            return case.check(Verdict::Fail, reason).into();
        }
    };
    let words = case.describe_values(before, after);
    let Some(delta) = case.paired.delta() else {
        let reason = format!("{words}: no item was scored both times, so a loss cannot be seen");
        return case.check(Verdict::Fail, reason).into();
    };
    let loss = -case.sign() * delta;
    if report.runs == 1 && against.baseline.runs == 1 {
        return case.exactly(&words, loss).into();
    }
    if case.paired.is_mean() { case.over_items(&words) } else { case.over_runs(&words, loss) }
}

/// The data of one decision.
struct Case<'a> {
    against: &'a Against<'a>,
    measured: &'a Measured,
    limit: f64,
    report: &'a Report,
    paired: Paired<'a>,
}

impl Case<'_> {
    /// Turns a change into a gain, whichever direction is better.
    fn sign(&self) -> f64 {
        if self.measured.better == Better::Higher { 1.0 } else { -1.0 }
    }

    fn worsened(&self) -> Vec<String> {
        let worse = |pair: &&Pair<'_>| self.sign() * pair.change() < -ROUNDING;
        self.paired.pairs.iter().filter(worse).map(|pair| pair.item.id.clone()).collect()
    }

    /// The groups, or the items without one, that got worse, the worst first.
    fn worsened_groups(&self) -> Vec<String> {
        let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
        for pair in &self.paired.pairs {
            let name = pair.item.group.as_deref().unwrap_or(&pair.item.id);
            *sums.entry(name).or_default() += self.sign() * pair.change();
        }
        let mut worse: Vec<(&str, f64)> =
            sums.into_iter().filter(|(_, sum)| *sum < -ROUNDING).collect();
        worse.sort_by(|a, b| a.1.total_cmp(&b.1));
        worse.into_iter().map(|(name, _)| name.to_owned()).collect()
    }

    /// A check with this outcome, and with what lost or gained its score named at the end.
    fn check(&self, verdict: Verdict, mut reason: String) -> Check {
        reason.push_str(&self.unscored());
        Check {
            metric: self.against.id.to_owned(),
            slice: self.against.slice.map(ToString::to_string),
            rule: self.against.rule.to_owned(),
            threshold: Some(self.limit),
            value: self.measured.value,
            baseline: self.against.reference.value,
            verdict,
            reason,
            items: self.worsened(),
        }
    }

    fn unscored(&self) -> String {
        let notes = |items: &[String], one: &str, several: &str| match items.len() {
            0 => String::new(),
            1 => format!("; 1 item {one}{}", list(items)),
            n => format!("; {n} items {several}{}", list(items)),
        };
        notes(&self.paired.lost, "no longer has a score", "no longer have a score")
            + &notes(&self.paired.gained, "had no score before", "had no score before")
    }

    /// The values, and those of the pairs where they tell something else.
    fn describe_values(&self, before: f64, after: f64) -> String {
        let words = format!("{} {before:.4} → {after:.4}", self.against.id);
        match self.paired.means().filter(|_| self.paired.differs()) {
            None => words,
            Some((before, after)) => format!(
                "{words}; over the {} scored both times {before:.4} → {after:.4}",
                counted(self.paired.pairs.len(), "item")
            ),
        }
    }

    /// For a system that answers the same every time.
    fn exactly(&self, words: &str, loss: f64) -> Check {
        let (limit, worsened) = (self.limit, self.worsened());
        if loss > limit + ROUNDING {
            let reason = format!(
                "{words}: worse by {loss:.4}, more than the allowed {limit}{}",
                list(&worsened)
            );
            return self.check(Verdict::Fail, reason);
        }
        let reason = match worsened.len() {
            0 if loss > ROUNDING || self.paired.pairs.is_empty() => {
                format!("{words}: within the allowed {limit}")
            }
            0 => format!("{words}: no item got worse"),
            n => format!("{words}: within the allowed {limit}, but worse on {n}"),
        };
        self.check(Verdict::Pass, reason)
    }

    /// Non-inferiority of the paired difference.
    fn over_items(&self, words: &str) -> Undecided {
        let (limit, pairs) = (self.limit, &self.paired.pairs);
        if pairs.iter().all(|pair| pair.change().abs() <= ROUNDING) {
            return self.check(Verdict::Pass, format!("{words}: no item moved")).into();
        }
        // Gains above the tolerance: their mean is positive if the loss is within it.
        let shifted = self.paired.blocks(|pair| self.sign() * pair.change() + limit);
        let grouped = shifted.len() < pairs.len();
        let over = match grouped {
            true => format!(" over {}", counted(shifted.len(), "group")),
            false => String::new(),
        };
        let p = |alternative| {
            let seed = self.report.seed;
            stats::sign_flip(&shifted, alternative, EXACT, PERMUTATIONS, seed).map(|test| test.p)
        };
        match (p(Alternative::Greater), p(Alternative::Less)) {
            (Ok(holds), _) if holds <= ALPHA => {
                let reason = format!("{words}: the loss is within {limit} (p = {holds:.3}{over})");
                self.check(Verdict::Pass, reason).into()
            }
            (Ok(holds), Ok(worse)) => Undecided {
                check: self.check(
                    Verdict::Inconclusive,
                    format!(
                        "{words}: the data cannot decide whether the loss is within {limit} \
                         (p = {holds:.3}{over}){}",
                        enough(&shifted, if grouped { "groups" } else { "items" })
                    ),
                ),
                worse: Some(worse),
                failing: format!(
                    "{words}: worse by more than the allowed {limit}{over}{}{}",
                    list(&self.worsened_groups()),
                    self.unscored()
                ),
            },
            (Err(reason), _) | (_, Err(reason)) => {
                self.check(Verdict::Inconclusive, format!("{words}: {reason}")).into()
            }
        }
    }

    /// For a value that is not a mean over items: how the runs now are to the runs before.
    fn over_runs(&self, words: &str, loss: f64) -> Undecided {
        let limit = self.limit;
        let before = &self.against.reference;
        let before = values(before.value, &before.per_run, self.against.baseline.runs);
        let after = values(self.measured.value, &self.measured.per_run, self.report.runs);
        let (Some(before), Some(after)) = (before, after) else {
            if loss.abs() <= ROUNDING {
                return self.check(Verdict::Pass, format!("{words}: unchanged")).into();
            }
            let reason = format!(
                "{words}: the data cannot decide whether the loss is within {limit}; the value is \
                 not a mean over items, and not every run has its own"
            );
            return self.check(Verdict::Inconclusive, reason).into();
        };
        if steady(&before) && steady(&after) {
            return self.exactly(words, loss).into();
        }
        let (worst_before, best_before) = ends(&before, self.sign());
        let (worst_after, best_after) = ends(&after, self.sign());
        if best_before - worst_after <= limit + ROUNDING {
            let reason = format!("{words}: the loss is within {limit} between any two runs");
            return self.check(Verdict::Pass, reason).into();
        }
        if worst_before - best_after <= limit + ROUNDING {
            let reason = format!(
                "{words}: the loss is within {limit} between some runs and not between others, so \
                 the data cannot tell"
            );
            return self.check(Verdict::Inconclusive, reason).into();
        }
        let worse = chance_of_separation(before.len(), after.len());
        let failing =
            format!("{words}: worse by more than the allowed {limit} between any two runs");
        let reason = format!(
            "{failing}, but {} before and {} now may differ so by chance (p = {worse:.3}); more \
             runs would tell",
            before.len(),
            after.len(),
        );
        Undecided {
            check: self.check(Verdict::Inconclusive, reason),
            worse: Some(worse),
            failing: format!("{failing}{}", self.unscored()),
        }
    }
}

/// The value of each run, if each has one.
fn values(value: Option<f64>, per_run: &[Option<f64>], runs: u32) -> Option<Vec<f64>> {
    if runs == 1 {
        return value.map(|value| vec![value]);
    }
    let values: Vec<f64> = per_run.iter().copied().collect::<Option<_>>()?;
    (values.len() == runs as usize).then_some(values)
}

/// Returns whether several runs gave one value.
fn steady(values: &[f64]) -> bool {
    values.len() > 1 && values.iter().all(|value| (value - values[0]).abs() <= ROUNDING)
}

/// The worst and the best value, turned so that more is better.
fn ends(values: &[f64], sign: f64) -> (f64, f64) {
    values
        .iter()
        .map(|value| sign * value)
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(worst, best), value| {
            (worst.min(value), best.max(value))
        })
}

/// The number of times all of `after` would lie below all of `before` if the order were chance: once in all the
/// ways to choose them.
fn chance_of_separation(before: usize, after: usize) -> f64 {
    let ways = (1..=after).fold(1.0, |ways, n| ways * (before + n) as f64 / n as f64);
    1.0 / ways
}

/// The number of items or groups that would decide, given how much the differences vary.
fn enough(shifted: &[f64], units: &str) -> String {
    let (Ok(mean), Ok(spread)) = (stats::mean(shifted), stats::sample_std(shifted)) else {
        return String::new();
    };
    match stats::sample_size_for_effect(spread, mean.abs(), ALPHA, POWER).max(MIN_DIFFERENCES) {
        u64::MAX => String::new(),
        needed if needed > shifted.len() as u64 => {
            format!("; about {needed} {units} would, there are {}", shifted.len())
        }
        _ => "; more runs would".to_owned(),
    }
}

fn counted(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}
