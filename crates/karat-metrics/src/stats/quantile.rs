//! Quantiles, by the definitions that numpy has under these names.
//!
//! They differ where the data do not decide. [`QuantileMethod::Linear`] is what most tools print;
//! [`QuantileMethod::InvertedCdf`] always returns a measured value, which suits latencies.

use super::special::beta;
use super::{all_finite, allowed_miss, length, real};
use crate::{Score, Undefined};

/// The value of a quantile that falls between two measured values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum QuantileMethod {
    /// Interpolates at position (n − 1)·q. numpy's and R's default.
    #[default]
    Linear,
    /// The measured value below that position.
    Lower,
    /// The measured value above that position.
    Higher,
    /// The measured value nearest to that position; from half-way, the even one.
    Nearest,
    /// The smallest measured value with at least a share q of the data at or below it.
    InvertedCdf,
    /// Interpolates at n·q − 1/2: the middle of each value's share.
    Hazen,
    /// Interpolates at (n + 1)·q − 1: the expected rank.
    Weibull,
    /// Interpolates at (n + 1/3)·q − 2/3: about the median, whatever the distribution.
    MedianUnbiased,
}

impl QuantileMethod {
    /// Every method, with its name in numpy.
    pub const ALL: &[(&'static str, QuantileMethod)] = &[
        ("linear", QuantileMethod::Linear),
        ("lower", QuantileMethod::Lower),
        ("higher", QuantileMethod::Higher),
        ("nearest", QuantileMethod::Nearest),
        ("inverted_cdf", QuantileMethod::InvertedCdf),
        ("hazen", QuantileMethod::Hazen),
        ("weibull", QuantileMethod::Weibull),
        ("median_unbiased", QuantileMethod::MedianUnbiased),
    ];

    /// The position of the quantile among the values, counted from 0.
    fn position(self, n: f64, q: f64) -> f64 {
        let between = |start: f64| n * q + (start + q * (1.0 - 2.0 * start)) - 1.0;
        match self {
            QuantileMethod::Linear => (n - 1.0) * q,
            QuantileMethod::Lower => ((n - 1.0) * q).floor(),
            QuantileMethod::Higher => ((n - 1.0) * q).ceil(),
            QuantileMethod::Nearest => ((n - 1.0) * q).round_ties_even(),
            QuantileMethod::InvertedCdf => (n * q - 1.0).ceil(),
            QuantileMethod::Hazen => between(0.5),
            QuantileMethod::Weibull => between(0.0),
            QuantileMethod::MedianUnbiased => between(1.0 / 3.0),
        }
    }
}

/// Returns the q-quantile (0 ≤ q ≤ 1) of values in any order.
///
/// ```
/// use karat_metrics::stats::{QuantileMethod, quantile};
///
/// let latencies = [9.0, 1.0, 2.0, 4.0];
/// assert_eq!(quantile(&latencies, 0.5, QuantileMethod::Linear), Ok(3.0));
/// assert_eq!(quantile(&latencies, 0.5, QuantileMethod::InvertedCdf), Ok(2.0));
/// ```
///
/// # Errors
/// If the list is empty, a value is not finite, or q is not between 0 and 1. (numpy returns NaN for an empty
/// list, counts an infinity as the largest value, and raises an error for such a q.)
pub fn quantile(xs: &[f64], q: f64, method: QuantileMethod) -> Score {
    all_finite(xs)?;
    let mut sorted = xs.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    quantile_of_sorted(&sorted, q, method)
}

/// Returns the q-quantile of finite values in ascending order, which saves sorting them again when
/// several quantiles are wanted.
///
/// ```
/// use karat_metrics::stats::{QuantileMethod, quantile_of_sorted};
///
/// let sorted = [1.0, 2.0, 4.0, 9.0];
/// assert_eq!(quantile_of_sorted(&sorted, 1.0, QuantileMethod::Linear), Ok(9.0));
/// ```
///
/// The list is not searched: values in another order give a meaningless quantile.
///
/// # Errors
/// If the list is empty, q is not between 0 and 1, or a value next to the quantile is not finite.
pub fn quantile_of_sorted(sorted: &[f64], q: f64, method: QuantileMethod) -> Score {
    let (Some(first), Some(last)) = (sorted.first(), sorted.last()) else {
        return Err(Undefined("no values"));
    };
    if !(0.0..=1.0).contains(&q) {
        return Err(Undefined("a quantile must lie between 0 and 1"));
    }
    let position = method.position(length(sorted.len()), q);
    let below = position.max(0.0).floor();
    let share = position - below;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 <= below < n")]
    let index = below as usize;
    let value = match (sorted.get(index), sorted.get(index + 1)) {
        _ if position <= 0.0 => *first,
        (Some(low), Some(high)) if share > 0.0 => interpolate(*low, *high, share),
        (Some(value), _) => *value,
        (None, _) => *last,
    };
    if value.is_finite() { Ok(value) } else { Err(Undefined("a value is not a finite number")) }
}

/// From the nearer end, so that a share of 0 or 1 gives that end exactly.
fn interpolate(low: f64, high: f64, share: f64) -> f64 {
    let step = high - low;
    if step.is_infinite() {
        return low * (1.0 - share) + high * share;
    }
    if share < 0.5 { low + step * share } else { high - step * (1.0 - share) }
}

/// Returns the ranks, counted from 1, of the measured values between which the q-quantile lies with this
/// confidence, whatever the distribution: among n independent values the number at or below the quantile
/// is binomial.
///
/// ```
/// use karat_metrics::stats::quantile_ranks;
///
/// // The median of 100 values lies between the 40th and the 61st.
/// assert_eq!(quantile_ranks(100, 0.5, 0.95), Ok((40, 61)));
/// // 100 values say nothing about how high their 99th percentile may be.
/// assert!(quantile_ranks(100, 0.99, 0.95).is_err());
/// ```
///
/// # Errors
/// If q or the confidence is not between 0 and 1, or n is too small for an end.
pub fn quantile_ranks(n: u64, q: f64, confidence: f64) -> Result<(u64, u64), Undefined> {
    let tail = allowed_miss(confidence)? / 2.0;
    if !(q > 0.0 && q < 1.0) {
        return Err(Undefined("the quantile must lie between 0 and 1"));
    }
    // The probability that at least `rank` values are at or below the quantile, and its complement.
    let tails = |rank: u64| beta::tails(real(rank), real(n - rank + 1), q, 1.0 - q);
    // The largest rank whose value is above the quantile too rarely to matter, and the smallest whose
    // value is below it too rarely.
    let below = partition(n, |rank| tails(rank).1 <= tail);
    let above = partition(n, |rank| tails(rank).0 > tail) + 1;
    if below == 0 || above > n {
        return Err(Undefined("there are too few values for an interval of this quantile"));
    }
    Ok((below, above))
}

/// The number of ranks from 1 on for which a condition holds that holds up to some rank.
fn partition(n: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, n);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if holds(middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_are_the_extremes_whatever_the_method() {
        for (name, method) in QuantileMethod::ALL {
            assert_eq!(quantile(&[3.0, 1.0, 2.0], 0.0, *method), Ok(1.0), "{name}");
            assert_eq!(quantile(&[3.0, 1.0, 2.0], 1.0, *method), Ok(3.0), "{name}");
        }
    }

    #[test]
    fn questions_without_an_answer_are_rejected() {
        assert!(quantile(&[], 0.5, QuantileMethod::Linear).is_err());
        assert!(quantile(&[1.0], 1.1, QuantileMethod::Linear).is_err());
        assert!(quantile(&[1.0], f64::NAN, QuantileMethod::Linear).is_err());
        assert!(quantile(&[f64::NAN], 0.5, QuantileMethod::Linear).is_err());
        for bad in [&[f64::NAN][..], &[f64::NEG_INFINITY, f64::INFINITY], &[1.0, f64::NAN]] {
            assert!(quantile_of_sorted(bad, 0.5, QuantileMethod::Linear).is_err(), "{bad:?}");
        }
    }
}
