//! Intervals for a rate: a number of successes among a number of independent trials.
//!
//! Wilson is the one to show, one-sided Clopper-Pearson the one to certify with; the others are here
//! because other tools use them. For clustered or repeated trials all of them are too narrow: use
//! [`Bootstrap::clustered_mean`](super::Bootstrap::clustered_mean) there.
//!
//! In every function, no trials, more successes than trials, and a confidence that is not between 0
//! and 1 are [`Undefined`].

use super::special::{beta, normal};
use super::{Interval, allowed_miss, real};
use crate::Undefined;

/// Returns the Wilson score interval: the rates that a z-test at this level would not reject.
///
/// ```
/// use karat_metrics::stats::wilson;
///
/// let interval = wilson(0, 5, 0.95)?;
/// assert_eq!(interval.low, 0.0);
/// assert!((interval.high - 0.434_482_464_783_174_8).abs() < 1e-15);
/// # Ok::<(), karat_metrics::Undefined>(())
/// ```
///
/// # Errors
/// If `n` is 0, or the arguments are inconsistent.
pub fn wilson(successes: u64, n: u64, confidence: f64) -> Result<Interval, Undefined> {
    let rate = Rate::new(successes, n)?;
    let z = normal::upper_quantile(allowed_miss(confidence)? / 2.0);
    let denominator = 2.0 * (rate.n + z * z);
    let centre = (2.0 * rate.successes + z * z) / denominator;
    let margin = z / denominator * (4.0 * rate.successes * rate.q + z * z).sqrt();
    Ok(rate.within(centre - margin, centre + margin))
}

/// Returns the Wilson interval of a rate over trials that share groups, at their effective number
/// (see [`effective_size`]).
///
/// ```
/// use karat_metrics::stats::{wilson, wilson_effective};
///
/// let (plain, same) = (wilson(3, 12, 0.95)?, wilson_effective(0.25, 12.0, 0.95)?);
/// assert!((plain.high - same.high).abs() < 1e-12);
/// assert!(wilson_effective(0.25, 4.0, 0.95)?.width() > plain.width());
/// # Ok::<(), karat_metrics::Undefined>(())
/// ```
///
/// # Errors
/// If `n` is not positive, or the arguments are inconsistent.
pub fn wilson_effective(rate: f64, n: f64, confidence: f64) -> Result<Interval, Undefined> {
    if !(n > 0.0 && n.is_finite() && (0.0..=1.0).contains(&rate)) {
        return Err(Undefined("a rate needs trials and lies between 0 and 1"));
    }
    let z = normal::upper_quantile(allowed_miss(confidence)? / 2.0);
    let denominator = n + z * z;
    let centre = (n * rate + z * z / 2.0) / denominator;
    let margin = z / denominator * (n * rate * (1.0 - rate) + z * z / 4.0).sqrt();
    let low = if rate == 0.0 { 0.0 } else { (centre - margin).max(0.0) };
    let high = if rate == 1.0 { 1.0 } else { (centre + margin).min(1.0) };
    Ok(Interval { low, high })
}

/// Returns the number of independent trials that carry as much information about a rate as these,
/// which share groups: their number divided by the design effect, and at least 1.
///
/// Where all trials agree the design effect cannot be estimated, and the number of groups is returned.
///
/// ```
/// use karat_metrics::stats::effective_size;
///
/// assert_eq!(effective_size(&[1.0, 1.0, 0.0, 0.0], &[0, 0, 1, 1]), 1.0);
/// assert_eq!(effective_size(&[1.0, 0.0, 1.0, 0.0], &[0, 0, 1, 1]), 4.0);
/// assert_eq!(effective_size(&[0.0, 0.0, 0.0, 0.0], &[0, 0, 1, 1]), 2.0);
/// ```
pub fn effective_size(values: &[f64], groups: &[usize]) -> f64 {
    let n = super::length(values.len());
    let rate = values.iter().sum::<f64>() / n;
    let mut sums = std::collections::BTreeMap::<usize, f64>::new();
    for (value, group) in values.iter().zip(groups) {
        *sums.entry(*group).or_default() += value - rate;
    }
    let count = super::length(sums.len());
    let variance = values.iter().map(|value| (value - rate) * (value - rate)).sum::<f64>();
    if variance <= 0.0 || count < 2.0 {
        return count.max(1.0);
    }
    let between = sums.values().map(|sum| sum * sum).sum::<f64>() * count / (count - 1.0);
    let effect = (between / variance).max(1.0);
    (n / effect).max(1.0)
}

/// Returns the Wilson interval with Yates' continuity correction: wider, close to Clopper-Pearson.
/// scipy's `wilsoncc`.
///
/// ```
/// use karat_metrics::stats::wilson_corrected;
///
/// let interval = wilson_corrected(0, 5, 0.95)?;
/// assert_eq!(interval.low, 0.0);
/// assert!((interval.high - 0.537_056_017_467_523_2).abs() < 1e-15);
/// # Ok::<(), karat_metrics::Undefined>(())
/// ```
///
/// # Errors
/// If `n` is 0, or the arguments are inconsistent.
pub fn wilson_corrected(successes: u64, n: u64, confidence: f64) -> Result<Interval, Undefined> {
    let rate = Rate::new(successes, n)?;
    let z = normal::upper_quantile(allowed_miss(confidence)? / 2.0);
    let denominator = 2.0 * (rate.n + z * z);
    let centre = (2.0 * rate.successes + z * z) / denominator;
    let margin = |sign: f64| {
        let inner = z * z - sign * 2.0 - 1.0 / rate.n + 4.0 * rate.p * (rate.n * rate.q + sign);
        (1.0 + z * inner.max(0.0).sqrt()) / denominator
    };
    Ok(rate.within(centre - margin(1.0), centre + margin(-1.0)))
}

/// Returns the two-sided Clopper-Pearson interval: it covers the true rate at least this often,
/// whatever the rate is.
///
/// ```
/// use karat_metrics::stats::clopper_pearson;
///
/// let interval = clopper_pearson(5, 5, 0.95)?;
/// assert!((interval.low - 0.478_176_249_895_018_56).abs() < 1e-12 && interval.high == 1.0);
/// # Ok::<(), karat_metrics::Undefined>(())
/// ```
///
/// # Errors
/// If `n` is 0, or the arguments are inconsistent.
pub fn clopper_pearson(successes: u64, n: u64, confidence: f64) -> Result<Interval, Undefined> {
    let rate = Rate::new(successes, n)?;
    let tail = allowed_miss(confidence)? / 2.0;
    Ok(Interval { low: rate.exact_low(tail), high: rate.exact_high(tail) })
}

/// Returns the one-sided upper Clopper-Pearson bound: with this confidence the rate is not higher.
///
/// ```
/// use karat_metrics::stats::clopper_pearson_upper;
///
/// // No failure in 299 trials: a failure rate of at most 1 %.
/// assert!(clopper_pearson_upper(0, 299, 0.95)? <= 0.01);
/// assert!(clopper_pearson_upper(0, 298, 0.95)? > 0.01);
/// # Ok::<(), karat_metrics::Undefined>(())
/// ```
///
/// # Errors
/// If `n` is 0, or the arguments are inconsistent.
pub fn clopper_pearson_upper(successes: u64, n: u64, confidence: f64) -> Result<f64, Undefined> {
    Ok(Rate::new(successes, n)?.exact_high(allowed_miss(confidence)?))
}

/// Returns the one-sided lower Clopper-Pearson bound: with this confidence the rate is not lower.
///
/// ```
/// use karat_metrics::stats::clopper_pearson_lower;
///
/// assert!(clopper_pearson_lower(59, 59, 0.95)? >= 0.95);
/// assert_eq!(clopper_pearson_lower(0, 59, 0.95), Ok(0.0));
/// # Ok::<(), karat_metrics::Undefined>(())
/// ```
///
/// # Errors
/// If `n` is 0, or the arguments are inconsistent.
pub fn clopper_pearson_lower(successes: u64, n: u64, confidence: f64) -> Result<f64, Undefined> {
    Ok(Rate::new(successes, n)?.exact_low(allowed_miss(confidence)?))
}

/// Returns the Jeffreys interval: the equal-tailed posterior under a Beta(1/2, 1/2) prior. At 0 of n
/// and at n of n it does not contain the observed rate (nor does it in statsmodels).
///
/// ```
/// use karat_metrics::stats::jeffreys;
///
/// let interval = jeffreys(0, 5, 0.95)?;
/// assert!(interval.low > 0.0 && (interval.high - 0.379_377_142_299_039_4).abs() < 1e-12);
/// # Ok::<(), karat_metrics::Undefined>(())
/// ```
///
/// # Errors
/// If `n` is 0, or the arguments are inconsistent.
pub fn jeffreys(successes: u64, n: u64, confidence: f64) -> Result<Interval, Undefined> {
    let rate = Rate::new(successes, n)?;
    let tail = allowed_miss(confidence)? / 2.0;
    let (a, b) = (rate.successes + 0.5, rate.failures + 0.5);
    Ok(Interval {
        low: beta::inverse(a, b, tail, 1.0 - tail).0,
        high: beta::inverse(a, b, 1.0 - tail, tail).0,
    })
}

/// Returns the Agresti-Coull interval, clamped to 0..1.
///
/// ```
/// use karat_metrics::stats::agresti_coull;
///
/// let interval = agresti_coull(0, 5, 0.95)?;
/// assert_eq!(interval.low, 0.0);
/// assert!((interval.high - 0.489_054_859_632_860_3).abs() < 1e-12);
/// # Ok::<(), karat_metrics::Undefined>(())
/// ```
///
/// # Errors
/// If `n` is 0, or the arguments are inconsistent.
pub fn agresti_coull(successes: u64, n: u64, confidence: f64) -> Result<Interval, Undefined> {
    let rate = Rate::new(successes, n)?;
    let z = normal::upper_quantile(allowed_miss(confidence)? / 2.0);
    let n_tilde = rate.n + z * z;
    let p_tilde = (rate.successes + z * z / 2.0) / n_tilde;
    let margin = z * (p_tilde * (1.0 - p_tilde) / n_tilde).sqrt();
    Ok(cut(p_tilde - margin, p_tilde + margin))
}

/// Returns the textbook interval p ± z·√(p(1−p)/n), clamped to 0..1. It is misleading for rates near
/// 0 or 1, and has no width at 0 of n and n of n; it is here for comparison with tools that use it.
///
/// ```
/// use karat_metrics::stats::{Interval, normal_approximation};
///
/// assert_eq!(normal_approximation(0, 5, 0.95), Ok(Interval { low: 0.0, high: 0.0 }));
/// ```
///
/// # Errors
/// If `n` is 0, or the arguments are inconsistent.
pub fn normal_approximation(
    successes: u64,
    n: u64,
    confidence: f64,
) -> Result<Interval, Undefined> {
    let rate = Rate::new(successes, n)?;
    let z = normal::upper_quantile(allowed_miss(confidence)? / 2.0);
    let margin = z * (rate.p * rate.q / rate.n).sqrt();
    Ok(cut(rate.p - margin, rate.p + margin))
}

/// Returns Newcombe's interval for the difference p1 − p2 of two independent rates, combined from
/// their Wilson intervals. For rates on the same items compare item by item instead.
///
/// ```
/// use karat_metrics::stats::newcombe;
///
/// let interval = newcombe(0, 5, 5, 5, 0.95)?;
/// assert_eq!(interval.low, -1.0);
/// assert!((interval.high + 0.385_549_005_690_343_56).abs() < 1e-12);
/// # Ok::<(), karat_metrics::Undefined>(())
/// ```
///
/// # Errors
/// If either rate has no trials, or the arguments are inconsistent.
pub fn newcombe(
    x1: u64,
    n1: u64,
    x2: u64,
    n2: u64,
    confidence: f64,
) -> Result<Interval, Undefined> {
    let (first, second) = (Rate::new(x1, n1)?, Rate::new(x2, n2)?);
    let (range1, range2) = (wilson(x1, n1, confidence)?, wilson(x2, n2, confidence)?);
    let difference = first.p - second.p;
    let below = libm::hypot(first.p - range1.low, range2.high - second.p);
    let above = libm::hypot(range1.high - first.p, second.p - range2.low);
    Ok(Interval { low: (difference - below).max(-1.0), high: (difference + above).min(1.0) })
}

/// Checked counts as floats. The complements are subtracted as whole numbers, so 1 − p keeps its
/// digits when p is near 1.
struct Rate {
    successes: f64,
    failures: f64,
    n: f64,
    p: f64,
    q: f64,
}

impl Rate {
    fn new(successes: u64, n: u64) -> Result<Rate, Undefined> {
        if n == 0 {
            return Err(Undefined("no trials"));
        }
        let Some(failures) = n.checked_sub(successes) else {
            return Err(Undefined("more successes than trials"));
        };
        let (successes, failures, n) = (real(successes), real(failures), real(n));
        Ok(Rate { successes, failures, n, p: successes / n, q: failures / n })
    }

    /// Clamps an interval to 0..1 and makes it contain the observed rate: rounding must not exclude
    /// the estimate, and at 0 of n and n of n one end is known exactly.
    fn within(&self, low: f64, high: f64) -> Interval {
        Interval {
            low: if self.successes == 0.0 { 0.0 } else { low.clamp(0.0, self.p) },
            high: if self.failures == 0.0 { 1.0 } else { high.clamp(self.p, 1.0) },
        }
    }

    fn exact_low(&self, tail: f64) -> f64 {
        if self.successes == 0.0 {
            0.0
        } else if self.failures == 0.0 {
            libm::exp(libm::log(tail) / self.n)
        } else {
            beta::inverse(self.successes, self.failures + 1.0, tail, 1.0 - tail).0
        }
    }

    fn exact_high(&self, tail: f64) -> f64 {
        if self.failures == 0.0 {
            1.0
        } else if self.successes == 0.0 {
            -libm::expm1(libm::log(tail) / self.n)
        } else {
            beta::inverse(self.successes + 1.0, self.failures, 1.0 - tail, tail).0
        }
    }
}

fn cut(low: f64, high: f64) -> Interval {
    Interval { low: low.clamp(0.0, 1.0), high: high.clamp(0.0, 1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_counts_and_levels_are_rejected_with_a_reason() {
        assert_eq!(wilson(0, 0, 0.95), Err(Undefined("no trials")));
        assert_eq!(wilson(2, 1, 0.95), Err(Undefined("more successes than trials")));
        for level in [0.0, 1.0, -0.1, 1.5, f64::NAN] {
            assert!(clopper_pearson(1, 2, level).is_err(), "{level}");
        }
    }

    #[test]
    fn the_largest_counts_give_ordered_intervals_around_the_rate() {
        let n = u64::MAX;
        for x in [0, 1, 3, 1 << 20, 1 << 40, n / 3, n / 2, n - 5, n - 1, n] {
            let p = real(x) / real(n);
            for interval in [wilson(x, n, 0.95), clopper_pearson(x, n, 0.95)] {
                let interval = interval.unwrap();
                assert!(interval.low <= p && p <= interval.high, "{x}: {interval:?}");
                assert!(interval.width() < 1e-8, "{x}: {interval:?}");
            }
        }
    }

    #[test]
    fn exact_and_score_intervals_meet_for_large_counts() {
        let exact = clopper_pearson(300_000_000, 1_000_000_000, 0.95).unwrap();
        let score = wilson(300_000_000, 1_000_000_000, 0.95).unwrap();
        assert!((exact.low - score.low).abs() < 2e-9 && (exact.high - score.high).abs() < 2e-9);
    }
}
