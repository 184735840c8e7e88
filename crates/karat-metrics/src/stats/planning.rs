//! Sample sizes: the number of items or runs that a question needs.
//!
//! The functions return plain numbers for use in messages. A goal that no number of trials reaches
//! (a ceiling of 0, a confidence of 1) is [`u64::MAX`], and an effect that cannot be detected at all
//! is infinite.

use super::special::student;
use super::{clopper_pearson_lower, clopper_pearson_upper, real};

/// Returns the smallest number of trials at which `failures` failures certify a failure rate of at
/// most `ceiling`, by the one-sided Clopper-Pearson bound.
///
/// ```
/// use karat_metrics::stats::sample_size_for_ceiling;
///
/// // Without a failure, 299 trials certify a rate of at most 1 %.
/// assert_eq!(sample_size_for_ceiling(0.01, 0, 0.95), 299);
/// assert_eq!(sample_size_for_ceiling(0.0, 0, 0.95), u64::MAX);
/// ```
#[must_use]
pub fn sample_size_for_ceiling(ceiling: f64, failures: u64, confidence: f64) -> u64 {
    smallest(failures.max(1), |n| {
        clopper_pearson_upper(failures, n, confidence).is_ok_and(|bound| bound <= ceiling)
    })
}

/// Returns the smallest number of trials, all but `failures` of them successful, that certify a
/// success rate of at least `floor`, by the one-sided Clopper-Pearson bound.
///
/// ```
/// use karat_metrics::stats::sample_size_for_floor;
///
/// assert_eq!(sample_size_for_floor(0.95, 0, 0.95), 59);
/// assert_eq!(sample_size_for_floor(0.95, 1, 0.95), 93);
/// ```
#[must_use]
pub fn sample_size_for_floor(floor: f64, failures: u64, confidence: f64) -> u64 {
    if floor >= 1.0 {
        // No bound reaches 1, but at some 10^16 trials it rounds to it.
        return u64::MAX;
    }
    smallest(failures.max(1), |n| {
        clopper_pearson_lower(n - failures, n, confidence).is_ok_and(|bound| bound >= floor)
    })
}

/// Returns the smallest mean difference that a two-sided paired t-test at level `alpha` on n items
/// finds with the given power: (t(1 − alpha/2) + t(power)) · s / √n. Slightly cautious for few items.
///
/// It is 0 for differences without spread, and infinite for fewer than two items, for an infinite
/// spread, and for arguments outside their range.
///
/// ```
/// use karat_metrics::stats::minimum_detectable_effect;
///
/// let effect = minimum_detectable_effect(1.0, 34, 0.05, 0.8);
/// assert!(effect > 0.48 && effect <= 0.5);
/// assert_eq!(minimum_detectable_effect(1.0, 1, 0.05, 0.8), f64::INFINITY);
/// ```
#[must_use]
pub fn minimum_detectable_effect(std_of_differences: f64, n: u64, alpha: f64, power: f64) -> f64 {
    let possible = |p: f64| p > 0.0 && p < 1.0;
    let spread = 0.0..=f64::MAX;
    if n < 2 || !possible(alpha) || !possible(power) || !spread.contains(&std_of_differences) {
        return f64::INFINITY;
    }
    if std_of_differences == 0.0 {
        return 0.0;
    }
    let degrees = real(n) - 1.0;
    let to_reject = student::two_sided_quantile(alpha, degrees);
    let to_reach = if power >= 0.5 {
        student::two_sided_quantile(2.0 * (1.0 - power), degrees)
    } else {
        -student::two_sided_quantile(2.0 * power, degrees)
    };
    let distance = to_reject + to_reach;
    if distance.is_nan() {
        // Both quantiles are beyond the numbers.
        return f64::INFINITY;
    }
    distance.max(0.0) * std_of_differences / real(n).sqrt()
}

/// Returns the smallest number of paired items at which [`minimum_detectable_effect`] is at most
/// `effect`.
///
/// ```
/// use karat_metrics::stats::sample_size_for_effect;
///
/// assert_eq!(sample_size_for_effect(1.0, 0.5, 0.05, 0.8), 34);
/// ```
#[must_use]
pub fn sample_size_for_effect(std_of_differences: f64, effect: f64, alpha: f64, power: f64) -> u64 {
    if effect.is_nan() || effect <= 0.0 {
        return u64::MAX;
    }
    smallest(2, |n| minimum_detectable_effect(std_of_differences, n, alpha, power) <= effect)
}

/// The smallest n from `start` on that is enough, given that more is never worse.
fn smallest(start: u64, enough: impl Fn(u64) -> bool) -> u64 {
    let mut high = start;
    let mut low = start;
    while !enough(high) {
        if high == u64::MAX {
            return u64::MAX;
        }
        low = high + 1;
        high = high.saturating_mul(2);
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if enough(middle) { high = middle } else { low = middle + 1 }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_failures_need_the_sizes_of_the_rule_of_three() {
        for (ceiling, n) in [(0.05, 59), (0.02, 149), (0.01, 299), (0.005, 598)] {
            assert_eq!(sample_size_for_ceiling(ceiling, 0, 0.95), n);
            assert_eq!(sample_size_for_floor(1.0 - ceiling, 0, 0.95), n);
        }
    }

    #[test]
    fn an_impossible_goal_needs_more_than_any_number() {
        assert_eq!(sample_size_for_ceiling(0.0, 0, 0.95), u64::MAX);
        assert_eq!(sample_size_for_ceiling(0.01, 0, 1.0), u64::MAX);
        assert_eq!(sample_size_for_ceiling(f64::NAN, 0, 0.95), u64::MAX);
        assert_eq!(sample_size_for_ceiling(0.5, u64::MAX, 0.95), u64::MAX);
        assert_eq!(sample_size_for_floor(1.0, 0, 0.95), u64::MAX);
        assert_eq!(sample_size_for_effect(1.0, 0.0, 0.05, 0.8), u64::MAX);
        assert_eq!(sample_size_for_effect(f64::NAN, 1.0, 0.05, 0.8), u64::MAX);
        for (std, n, alpha, power) in [
            (1.0, 1, 0.05, 0.8),
            (-1.0, 10, 0.05, 0.8),
            (f64::NAN, 10, 0.05, 0.8),
            (1.0, 10, 0.0, 0.8),
            (1.0, 10, 0.05, 1.0),
            (f64::INFINITY, 10, 0.05, 0.8),
            (f64::INFINITY, 10, 0.05, 0.01),
            (1.0, 2, 5e-324, 5e-324),
        ] {
            assert_eq!(minimum_detectable_effect(std, n, alpha, power), f64::INFINITY);
        }
    }

    #[test]
    fn trivial_goals_need_the_least() {
        assert_eq!(sample_size_for_ceiling(1.0, 0, 0.95), 1);
        assert_eq!(sample_size_for_ceiling(1.0, 7, 0.95), 7);
        assert_eq!(sample_size_for_effect(0.0, 0.1, 0.05, 0.8), 2);
        assert_eq!(minimum_detectable_effect(0.0, 2, 0.05, 0.8), 0.0);
        assert_eq!(minimum_detectable_effect(0.0, 2, 5e-324, 0.8), 0.0);
    }

    #[test]
    fn half_a_deviation_needs_the_usual_number_of_pairs() {
        // The normal formula gives 31.4; tables based on the noncentral t give 34.
        assert_eq!(sample_size_for_effect(1.0, 0.5, 0.05, 0.8), 34);
        let effect = minimum_detectable_effect(1.0, 34, 0.05, 0.8);
        assert!(effect <= 0.5 && effect > 0.48, "{effect}");
    }
}
