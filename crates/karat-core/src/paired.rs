//! The items of two measurements, side by side.
//!
//! A value that is the mean of its items' scores changes when an item loses its score, although no
//! score changed. So such a value is compared over the items that were scored both times, and what
//! has a score on one side only is counted apart. A value that is made otherwise (F1, a share of
//! calls) has no such pairs: its items are listed, and nothing is inferred from them.

use std::collections::BTreeMap;

use karat_metrics::stats;

use crate::aggregate::{LEVEL, groups, is_near, paired_interval};
use crate::baseline::Baseline;
use crate::report::{Interval, Item, Report, Scores};
use crate::slice_key::SliceKey;

/// Differences smaller than this are rounding, not change.
pub(crate) const ROUNDING: f64 = 1e-12;

/// Every item's scores, by its id.
pub(crate) type ItemScores<'a> = BTreeMap<&'a str, &'a Scores>;

/// The scores of a baseline.
pub(crate) fn scores(baseline: &Baseline) -> ItemScores<'_> {
    baseline.items.iter().map(|item| (item.id.as_str(), &item.metrics)).collect()
}

/// The value of a metric before and now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Headlines {
    pub(crate) before: Option<f64>,
    pub(crate) after: Option<f64>,
}

impl Headlines {
    fn both(self) -> Option<(f64, f64)> {
        self.before.zip(self.after)
    }
}

/// One item's score before and after.
pub(crate) struct Pair<'a> {
    pub(crate) item: &'a Item,
    pub(crate) before: f64,
    pub(crate) after: f64,
}

impl Pair<'_> {
    pub(crate) fn change(&self) -> f64 {
        self.after - self.before
    }
}

/// The way a value is made of scores.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Average {
    /// The mean over all items.
    Items,
    /// The mean over groups of the mean within each: tasks that were run more or less often.
    Groups,
}

/// A metric's items of which either side has a score.
pub(crate) struct Paired<'a> {
    /// Those with a score on both sides.
    pub(crate) pairs: Vec<Pair<'a>>,
    /// Those that no longer have a score.
    pub(crate) lost: Vec<String>,
    /// Those that had none.
    pub(crate) gained: Vec<String>,
    headlines: Headlines,
    average: Option<Average>,
}

impl<'a> Paired<'a> {
    /// Pairs the items of a report, or of a slice of it, with earlier scores.
    pub(crate) fn new(
        metric: &str,
        slice: Option<&SliceKey>,
        earlier: &ItemScores<'_>,
        report: &'a Report,
        headlines: Headlines,
    ) -> Paired<'a> {
        let (mut pairs, mut lost, mut gained) = (Vec::new(), Vec::new(), Vec::new());
        let (mut old, mut new) = (Vec::new(), Vec::new());
        // Items are usually in the order of their ids, so the next one is the one that is looked for.
        let mut in_order = earlier.iter();
        for item in report.items.iter().filter(|item| slice.is_none_or(|slice| slice.holds(item))) {
            let before = match in_order.clone().next() {
                Some((id, scores)) if *id == item.id => {
                    in_order.next();
                    Some(*scores)
                }
                _ => earlier.get(item.id.as_str()).copied(),
            };
            let before = score(before, metric);
            let after = score(Some(&item.metrics), metric);
            old.extend(before.map(|score| (item, score)));
            new.extend(after.map(|score| (item, score)));
            match (before, after) {
                (Some(before), Some(after)) => pairs.push(Pair { item, before, after }),
                (Some(_), None) => lost.push(item.id.clone()),
                (None, Some(_)) => gained.push(item.id.clone()),
                (None, None) => {}
            }
        }
        let average = headlines.both().and_then(|(before, after)| {
            let gives =
                |average: &Average| average.gives(before, &old) && average.gives(after, &new);
            [Average::Items, Average::Groups].into_iter().find(gives)
        });
        Paired { pairs, lost, gained, headlines, average }
    }

    /// Returns whether the value is the mean of its items' scores, before and now.
    pub(crate) fn is_mean(&self) -> bool {
        self.average.is_some()
    }

    /// The change of the value: over the items scored both times where it is their mean, and of the
    /// value itself where it is not.
    pub(crate) fn delta(&self) -> Option<f64> {
        let (before, after) = self.headlines.both()?;
        // The same items on both sides: the same difference, without another rounding.
        if !self.is_mean() || (self.lost.is_empty() && self.gained.is_empty()) {
            return Some(after - before);
        }
        let (before, after) = self.means()?;
        Some(after - before).map(|delta| if delta.abs() <= ROUNDING { 0.0 } else { delta })
    }

    /// The means before and after over the items scored both times; `None` where the value is not a mean
    /// or no item was scored twice.
    pub(crate) fn means(&self) -> Option<(f64, f64)> {
        let average = self.average?;
        let side = |of: fn(&Pair<'_>) -> f64| -> Option<f64> {
            let scored: Vec<_> = self.pairs.iter().map(|pair| (pair.item, of(pair))).collect();
            average.of(&scored)
        };
        Some((side(|pair| pair.before)?, side(|pair| pair.after)?))
    }

    /// Returns whether the change over the pairs is another one than that of the value.
    pub(crate) fn differs(&self) -> bool {
        match (self.headlines.both(), self.delta()) {
            (Some((before, after)), Some(delta)) => (after - before - delta).abs() > ROUNDING,
            _ => false,
        }
    }

    /// The independent units: a number for each item or, where items share groups, for
    /// each group, in which they succeed or fail together. Where all share one group there is nothing
    /// else to draw from, and the items are taken by themselves.
    pub(crate) fn blocks(&self, of: impl Fn(&Pair<'a>) -> f64) -> Vec<f64> {
        let scored: Vec<(&Item, f64)> =
            self.pairs.iter().map(|pair| (pair.item, of(pair))).collect();
        if scored.iter().all(|(item, _)| item.group.is_none()) {
            return scored.into_iter().map(|(_, value)| value).collect();
        }
        let parts = by_group(&scored);
        match self.average {
            Some(Average::Groups) => {
                parts.iter().filter_map(|part| stats::mean(part).ok()).collect()
            }
            _ if parts.len() == 1 => scored.iter().map(|(_, value)| *value).collect(),
            _ => parts.iter().map(|part| part.iter().sum()).collect(),
        }
    }

    /// The bootstrap interval of [`Paired::delta`].
    pub(crate) fn interval(&self, seed: u64) -> Option<Interval> {
        if self.average == Some(Average::Groups) {
            let means = self.blocks(Pair::change);
            let alone: Vec<usize> = (0..means.len()).collect();
            let found = paired_interval(&means, &alone, seed)?;
            return Some(Interval { method: "bootstrap_clustered".to_owned(), ..found });
        }
        let changes: Vec<f64> = self.pairs.iter().map(Pair::change).collect();
        paired_interval(&changes, &groups(self.pairs.iter().map(|pair| pair.item)), seed)
    }

    /// Student's interval of [`Paired::delta`] over the groups, for so few of them that a bootstrap, which draws
    /// from them alone, is too narrow. `None` where they changed alike: nothing is known of their spread.
    pub(crate) fn interval_of_few_groups(&self) -> Option<Interval> {
        let scored: Vec<(&Item, f64)> =
            self.pairs.iter().map(|pair| (pair.item, pair.change())).collect();
        let parts = by_group(&scored);
        let count = parts.len() as f64;
        let of_part = |part: &Vec<f64>| {
            let share = match self.average {
                Some(Average::Groups) => 1.0 / count,
                _ => part.len() as f64 / scored.len() as f64,
            };
            Some((share, stats::mean(part).ok()?))
        };
        let parts = parts.iter().map(of_part).collect::<Option<Vec<_>>>()?;
        let delta: f64 = parts.iter().map(|(share, mean)| share * mean).sum();
        let shares: Vec<f64> = parts.iter().map(|(share, _)| *share).collect();
        let (weights, freedom) = few_groups(&shares);
        let changes = parts.iter().map(|(_, mean)| (mean - delta).powi(2));
        let variance: f64 =
            weights.iter().zip(changes).map(|(weight, square)| weight * square).sum();
        if variance.sqrt() <= ROUNDING {
            return None;
        }
        let half = stats::student_two_sided_quantile(1.0 - LEVEL, freedom) * variance.sqrt();
        let (mut low, mut high) = (delta - half, delta + half);
        let is_share = |value: f64| (0.0..=1.0).contains(&value);
        if self.pairs.iter().all(|pair| is_share(pair.before) && is_share(pair.after)) {
            (low, high) = (low.max(-1.0), high.min(1.0));
        }
        Some(Interval { low, high, level: LEVEL, method: "student_clustered".to_owned() })
    }
}

/// For a mean of groups with these shares: what the square of each group's distance from the mean adds to the
/// variance, and the degrees of freedom. Both are exact for groups that vary alike, whatever their sizes (Bell
/// and McCaffrey 2002); the usual `n - 1` would leave a mean that hangs on one large group far too sure.
fn few_groups(shares: &[f64]) -> (Vec<f64>, f64) {
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    let weights: Vec<f64> =
        shares.iter().map(|share| share * share / (1.0 - 2.0 * share + squares)).collect();
    // The variance is a quadratic form of the groups' means, and this is its matrix.
    let residual = |row: usize, column: usize| f64::from(u8::from(row == column)) - shares[column];
    let element = |row: usize, column: usize| -> f64 {
        let terms = weights.iter().enumerate();
        terms.map(|(of, weight)| residual(of, row) * weight * residual(of, column)).sum()
    };
    let all = 0..shares.len();
    let trace: f64 = all.clone().map(|at| element(at, at)).sum();
    let of_square: f64 = all
        .clone()
        .flat_map(|row| all.clone().map(move |column| (row, column)))
        .map(|(row, column)| element(row, column).powi(2))
        .sum();
    (weights, trace * trace / of_square)
}

impl Average {
    fn of(self, scored: &[(&Item, f64)]) -> Option<f64> {
        let values: Vec<f64> = match self {
            Average::Items => scored.iter().map(|(_, value)| *value).collect(),
            Average::Groups => {
                by_group(scored).iter().filter_map(|part| stats::mean(part).ok()).collect()
            }
        };
        stats::mean(&values).ok()
    }

    fn gives(self, value: f64, scored: &[(&Item, f64)]) -> bool {
        self.of(scored).is_some_and(|mean| is_near(value, mean))
    }
}

fn score(metrics: Option<&Scores>, id: &str) -> Option<f64> {
    metrics?.get(id).copied().flatten()
}

/// The values, those of one group together.
fn by_group(scored: &[(&Item, f64)]) -> Vec<Vec<f64>> {
    let mut parts: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for (group, (_, value)) in groups(scored.iter().map(|(item, _)| *item)).into_iter().zip(scored)
    {
        parts.entry(group).or_default().push(*value);
    }
    parts.into_values().collect()
}

#[cfg(test)]
mod tests {
    use karat_metrics::stats::student_two_sided_quantile;

    use super::{LEVEL, few_groups};

    /// Normal numbers, by the sum of twelve even ones (xorshift64*).
    struct Normal(u64);

    impl Normal {
        fn next(&mut self) -> f64 {
            let mut even = || {
                self.0 ^= self.0 >> 12;
                self.0 ^= self.0 << 25;
                self.0 ^= self.0 >> 27;
                (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1_u64 << 53) as f64
            };
            (0..12).map(|_| even()).sum::<f64>() - 6.0
        }
    }

    /// The share of simulated comparisons without a change whose interval holds 0.
    fn coverage(sizes: &[f64], between: f64, within: f64) -> f64 {
        const RUNS: usize = 10_000;
        let all: f64 = sizes.iter().sum();
        let shares: Vec<f64> = sizes.iter().map(|size| size / all).collect();
        let (weights, freedom) = few_groups(&shares);
        let quantile = student_two_sided_quantile(1.0 - LEVEL, freedom);
        let mut normal = Normal(9);
        let mut held = 0;
        for _ in 0..RUNS {
            let mut mean =
                |size: &f64| between * normal.next() + within * normal.next() / size.sqrt();
            let means: Vec<f64> = sizes.iter().map(&mut mean).collect();
            let delta: f64 = shares.iter().zip(&means).map(|(share, mean)| share * mean).sum();
            let squares = means.iter().map(|mean| (mean - delta).powi(2));
            let variance: f64 =
                weights.iter().zip(squares).map(|(weight, square)| weight * square).sum();
            held += usize::from(delta.abs() <= quantile * variance.sqrt());
        }
        held as f64 / RUNS as f64
    }

    #[test]
    fn intervals_over_few_groups_hold_as_often_as_they_say() {
        for (between, within) in [(1.0, 0.1), (1.0, 1.0), (0.01, 1.0)] {
            for equal in [vec![10.0; 2], vec![10.0; 3], vec![10.0; 5]] {
                let found = coverage(&equal, between, within);
                assert!(
                    (0.94..=0.96).contains(&found),
                    "{found} for {equal:?}, {between}, {within}"
                );
            }
            // A mean that hangs on one group is not sure of itself: the interval may be too wide, never too narrow.
            for uneven in [
                vec![10.0, 30.0],
                vec![1.0, 50.0],
                vec![5.0, 10.0, 30.0],
                vec![5.0, 5.0, 10.0, 20.0, 40.0],
                vec![2.0, 2.0, 2.0, 2.0, 80.0],
            ] {
                let found = coverage(&uneven, between, within);
                assert!(found >= 0.94, "{found} for {uneven:?}, {between}, {within}");
            }
        }
    }

    #[test]
    fn equal_groups_have_one_degree_of_freedom_less_than_there_are() {
        let (weights, freedom) = few_groups(&[0.25; 4]);
        assert!((freedom - 3.0).abs() < 1e-12, "{freedom}");
        // 1 / (n (n - 1)), as for the mean of four values.
        assert!(weights.iter().all(|weight| (weight - 1.0 / 12.0).abs() < 1e-12), "{weights:?}");
    }
}
