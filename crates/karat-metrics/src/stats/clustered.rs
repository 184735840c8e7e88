//! Intervals for a rate whose trials come in clusters, such as the tools of one server.
//!
//! Trials of one cluster succeed or fail together, so n of them say less than n independent ones.
//! [`ClusteredRate`] estimates how much less (the design effect: the variance between clusters over
//! that of independent trials) and computes the usual intervals from the effective sample size
//! n / design effect, as Korn and Graubard do. Their degrees of freedom count clusters; where hits are
//! rare, only the few clusters that have any carry information on the variance, so they are counted
//! here instead.

use std::collections::BTreeMap;

use super::proportion::Rate;
use super::special::{normal, student};
use super::{Interval, allowed_miss, real};
use crate::Undefined;

/// The weight of the assumption that whole clusters fail together, in hits. Without a single hit it
/// decides alone and each cluster counts once; a few hits outweigh it.
const PRIOR: f64 = 0.05;

/// A rate of trials in clusters, with what is needed for its intervals.
///
/// ```
/// use karat_metrics::stats::{ClusteredRate, wilson};
///
/// // Ten servers with twenty tools each; every tool of one server is flagged.
/// let trials = (0..200).map(|tool| (tool / 20, tool < 20));
/// let rate = ClusteredRate::of(trials)?;
/// assert!(rate.effective < 15.0);
/// assert!(rate.wilson(0.95)?.width() > 3.0 * wilson(20, 200, 0.95)?.width());
/// # Ok::<(), karat_metrics::Undefined>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClusteredRate {
    /// Successes.
    pub hits: u64,
    /// Trials.
    pub of: u64,
    /// Clusters.
    pub clusters: u64,
    /// The number of independent trials that would say as much.
    pub effective: f64,
    /// The degrees of freedom of that estimate.
    pub freedom: f64,
}

impl ClusteredRate {
    /// Counts trials, each with a number that identifies its cluster.
    ///
    /// # Errors
    /// If there are no trials, or all of them are in one cluster.
    pub fn of(trials: impl IntoIterator<Item = (usize, bool)>) -> Result<Self, Undefined> {
        let mut clusters: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
        for (cluster, hit) in trials {
            let (hits, size) = clusters.entry(cluster).or_default();
            *hits += u64::from(hit);
            *size += 1;
        }
        ClusteredRate::of_counts(clusters.into_values().map(|(hits, size)| (hits, size, 1)))
    }

    /// Takes counted clusters: hits, trials, and the number of clusters that have these counts.
    ///
    /// ```
    /// use karat_metrics::stats::ClusteredRate;
    ///
    /// let listed = ClusteredRate::of([(1, true), (1, false), (2, true), (3, true)])?;
    /// assert_eq!(ClusteredRate::of_counts([(1, 2, 1), (1, 1, 2)])?, listed);
    /// # Ok::<(), karat_metrics::Undefined>(())
    /// ```
    ///
    /// Clusters without a trial do not count.
    ///
    /// # Errors
    /// As [`of`](Self::of), and if a cluster has more hits than trials, or there are more than 2⁶⁴ − 1
    /// trials.
    pub fn of_counts(
        clusters: impl IntoIterator<Item = (u64, u64, u64)>,
    ) -> Result<Self, Undefined> {
        let clusters: Vec<(u64, u64, u64)> = clusters
            .into_iter()
            .filter(|(hit, size, times)| *times > 0 && (*hit > 0 || *size > 0))
            .collect();
        if clusters.iter().any(|(hit, size, _)| hit > size) {
            return Err(Undefined("more successes than trials"));
        }
        // No cluster has fewer trials than hits or than 1, so the number of trials is the largest sum.
        let trials = clusters
            .iter()
            .try_fold(0_u64, |sum, (_, size, times)| sum.checked_add(size.checked_mul(*times)?));
        let of = trials.ok_or(Undefined("more trials than can be counted"))?;
        let (mut hits, mut number) = (0, 0);
        for (hit, _, times) in &clusters {
            hits += hit * times;
            number += times;
        }
        if of == 0 {
            return Err(Undefined("no trials"));
        }
        if number == 1 {
            return Err(Undefined("a single cluster shows no spread between clusters"));
        }
        let (n, k) = (real(of), real(number));
        let p = real(hits) / n;
        let squares = |value: fn((u64, u64), f64) -> f64| -> f64 {
            let each = clusters.iter();
            each.map(|(hits, size, times)| value((*hits, *size), p).powi(2) * real(*times)).sum()
        };
        let between = squares(|(hits, size), p| real(hits) - p * real(size));
        let fourth = squares(|(hits, size), p| (real(hits) - p * real(size)).powi(2));
        // The size of the cluster that a trial is in, on average: the largest design effect there is
        // if whole clusters fail together.
        let size = squares(|(_, size), _| real(size)) / n;
        let observed = between * k / (k - 1.0) + PRIOR * size;
        let independent = p * (1.0 - p) * n * n / (n - 1.0) + PRIOR;
        let effect = (observed / independent).max(1.0);
        let freedom = if fourth > 0.0 { 2.0 * between * between / fourth } else { k - 1.0 };
        Ok(ClusteredRate {
            hits,
            of,
            clusters: number,
            effective: n / effect,
            freedom: freedom.clamp(1.0, k - 1.0),
        })
    }

    /// Returns Wilson's interval for the effective sample size.
    ///
    /// # Errors
    /// If the confidence is not between 0 and 1, or the fields were changed to values that no trials have.
    pub fn wilson(&self, confidence: f64) -> Result<Interval, Undefined> {
        let miss = allowed_miss(confidence)?;
        Ok(self.scaled(miss)?.score(normal::upper_quantile(miss / 2.0)))
    }

    /// Returns the one-sided upper Clopper-Pearson bound for the effective sample size.
    ///
    /// # Errors
    /// As [`wilson`](Self::wilson).
    pub fn clopper_pearson_upper(&self, confidence: f64) -> Result<f64, Undefined> {
        let miss = allowed_miss(confidence)?;
        Ok(self.scaled(2.0 * miss)?.exact_high(miss))
    }

    /// Returns the one-sided lower Clopper-Pearson bound for the effective sample size.
    ///
    /// # Errors
    /// As [`wilson`](Self::wilson).
    pub fn clopper_pearson_lower(&self, confidence: f64) -> Result<f64, Undefined> {
        let miss = allowed_miss(confidence)?;
        Ok(self.scaled(2.0 * miss)?.exact_low(miss))
    }

    /// The rate among as many independent trials as these are worth, where `outside` is the share
    /// that lies outside a two-sided interval. The variance is an estimate, so they are worth less
    /// by (z/t)².
    fn scaled(&self, outside: f64) -> Result<Rate, Undefined> {
        let outside = outside.min(0.999);
        let z = normal::upper_quantile(outside / 2.0);
        let t = student::two_sided_quantile(outside, self.freedom);
        let rate = Rate::new(self.hits, self.of)?;
        let worth = self.effective * (z / t).powi(2);
        if worth.is_nan() {
            return Err(Undefined("the effective number of trials is not known"));
        }
        Ok(rate.scaled(worth.clamp(1.0, real(self.of))))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{clopper_pearson_upper, length, random::Draws, wilson};
    use super::*;

    /// Clusters whose rates are 0 or 1 with the share `together`, and independent trials otherwise:
    /// the correlation within a cluster is `together`.
    fn drawn(
        draws: &mut Draws,
        clusters: usize,
        size: usize,
        p: f64,
        together: f64,
    ) -> ClusteredRate {
        let mut chance = |below: f64| length(draws.index(1 << 24)) < below * f64::from(1 << 24);
        let mut trials = Vec::new();
        for cluster in 0..clusters {
            // A common draw that each trial copies with probability √together.
            let common = chance(p);
            for _ in 0..size {
                let hit = if chance(together.sqrt()) { common } else { chance(p) };
                trials.push((cluster, hit));
            }
        }
        ClusteredRate::of(trials).unwrap()
    }

    #[test]
    fn intervals_cover_the_true_rate_whatever_the_design_effect() {
        let mut draws = Draws::from_seed(18);
        for (clusters, size, p) in [(150, 25, 0.1), (60, 25, 0.4)] {
            for effect in [1.0, 4.0, 12.0] {
                let together = (effect - 1.0) / (length(size) - 1.0);
                // The standard error of a share near 0.95 is then 0.003.
                let runs = 5000;
                let (mut covered, mut certified, mut effects) = (0, 0, 0.0);
                for _ in 0..runs {
                    let rate = drawn(&mut draws, clusters, size, p, together);
                    covered += u32::from(rate.wilson(0.95).unwrap().contains(p));
                    certified += u32::from(rate.clopper_pearson_upper(0.95).unwrap() >= p);
                    effects += real(rate.of) / rate.effective / f64::from(runs);
                }
                let share = |count: u32| f64::from(count) / f64::from(runs);
                let context = format!(
                    "{clusters} × {size}, p {p}, design effect {effect} (estimated {effects:.2}): \
                     {} {}",
                    share(covered),
                    share(certified)
                );
                println!("{context}");
                assert!((0.935..=0.97).contains(&share(covered)), "{context}");
                assert!(share(certified) >= 0.935, "{context}");
                assert!((effects / effect - 1.0).abs() < 0.25, "{context}");
            }
        }
    }

    #[test]
    fn a_false_certificate_is_refused() {
        // 6,330 tools of 258 servers, 112 false alarms on 28 of them: independent trials would
        // certify 2.1 %.
        let sizes = (0..258).map(|server| if server < 138 { 25 } else { 24 });
        let alarms = |server: usize| if server < 4 { 10 } else { 3 * usize::from(server < 28) };
        let trials = sizes
            .enumerate()
            .flat_map(|(server, size)| (0..size).map(move |tool| (server, tool < alarms(server))));
        let rate = ClusteredRate::of(trials).unwrap();
        assert_eq!((rate.hits, rate.of, rate.clusters), (112, 6_330, 258));
        assert!(clopper_pearson_upper(112, 6_330, 0.95).unwrap() < 0.021);
        assert!(rate.clopper_pearson_upper(0.95).unwrap() > 0.021, "{rate:?}");
    }

    #[test]
    fn single_trials_in_clusters_of_their_own_are_independent() {
        let rate = ClusteredRate::of((0..400).map(|n| (n, n % 10 == 0))).unwrap();
        assert!((rate.effective - 400.0).abs() < 2.0, "{rate:?}");
        let (clustered, plain) = (rate.wilson(0.95).unwrap(), wilson(40, 400, 0.95).unwrap());
        assert!((clustered.high - plain.high).abs() < 0.003, "{clustered:?} {plain:?}");
    }

    #[test]
    fn without_a_hit_each_cluster_counts_once() {
        let rate = ClusteredRate::of((0..200).map(|n| (n / 20, false))).unwrap();
        assert!((rate.effective - 10.0).abs() < 1e-9, "{rate:?}");
        let interval = rate.wilson(0.95).unwrap();
        assert!(interval.low == 0.0 && interval.high > 0.25, "{interval:?}");
        assert!(ClusteredRate::of((0..20).map(|_| (1, true))).is_err());
        assert!(ClusteredRate::of([]).is_err());
    }

    #[test]
    fn clusters_with_more_hits_than_trials_are_refused() {
        let refused = Err(Undefined("more successes than trials"));
        assert_eq!(ClusteredRate::of_counts([(5, 2, 1), (0, 2, 1)]), refused);
        assert_eq!(ClusteredRate::of_counts([(1, 0, 1), (1, 2, 1), (0, 2, 1)]), refused);
        // What does not exist, or has no trial, does not count.
        let counted = ClusteredRate::of_counts([(1, 2, 1), (0, 3, 2)]);
        assert!(counted.is_ok());
        assert_eq!(ClusteredRate::of_counts([(9, 2, 0), (1, 2, 1), (0, 0, 7), (0, 3, 2)]), counted);
    }

    #[test]
    fn counts_are_summed_or_refused_however_large() {
        let most = u64::MAX;
        let refused = Err(Undefined("more trials than can be counted"));
        assert_eq!(ClusteredRate::of_counts([(0, most, 2)]), refused);
        assert_eq!(ClusteredRate::of_counts([(0, most, 1), (0, 1, 1)]), refused);
        assert_eq!(ClusteredRate::of_counts([(0, 1 << 32, 1 << 32)]), refused);
        for clusters in [[(1, 1, most / 2), (0, 1, most / 2)], [(3, most / 2, 1), (0, most / 2, 1)]]
        {
            let rate = ClusteredRate::of_counts(clusters).unwrap();
            let interval = rate.wilson(0.95).unwrap();
            assert!(interval.contains(real(rate.hits) / real(rate.of)), "{rate:?} {interval:?}");
            assert!(rate.clopper_pearson_upper(0.95).unwrap() >= interval.low, "{rate:?}");
        }
    }

    #[test]
    fn fields_that_no_trials_have_give_no_interval() {
        let rate = ClusteredRate::of([(1, true), (1, false), (2, true)]).unwrap();
        for broken in [
            ClusteredRate { effective: f64::NAN, ..rate },
            ClusteredRate { freedom: f64::NAN, ..rate },
            ClusteredRate { freedom: 0.0, ..rate },
            ClusteredRate { hits: 4, ..rate },
        ] {
            assert!(broken.wilson(0.95).is_err(), "{broken:?}");
            assert!(broken.clopper_pearson_upper(0.95).is_err(), "{broken:?}");
        }
        for rate in [
            ClusteredRate { freedom: f64::INFINITY, ..rate },
            ClusteredRate { effective: f64::INFINITY, ..rate },
            ClusteredRate { effective: -1.0, ..rate },
        ] {
            let interval = rate.wilson(0.95).unwrap();
            assert!(interval.low <= interval.high, "{rate:?} {interval:?}");
        }
    }
}
