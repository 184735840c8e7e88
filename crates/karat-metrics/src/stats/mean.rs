//! Location and spread of a list of values.
//!
//! An empty list, a NaN or an infinity is [`Undefined`] in every function, where numpy and scipy
//! return NaN or an infinity. Sums that are too large for a number are taken exactly, and means of them are
//! finite.

use std::borrow::Cow;

use super::special::student;
use super::{ExactSum, Interval, QuantileMethod, all_finite, allowed_miss, length, quantile};
use crate::{Score, Undefined};

const EMPTY: Undefined = Undefined("no values");
const SINGLE: Undefined = Undefined("a single value has no spread");

/// Returns the arithmetic mean.
///
/// The mean of equal values is exactly that value.
///
/// ```
/// use karat_metrics::stats::mean;
///
/// assert_eq!(mean(&[0.0, 0.5, 1.0]), Ok(0.5));
/// assert_eq!(mean(&[0.1; 10]), Ok(0.1));
/// assert!(mean(&[]).is_err());
/// ```
///
/// # Errors
/// If the list is empty or a value is not finite.
pub fn mean(xs: &[f64]) -> Score {
    all_finite(xs)?;
    match xs {
        [] => Err(EMPTY),
        // Equal values have exactly that mean; their rounded sum might not.
        [first, ..] if all_equal(xs) => Ok(*first),
        _ => {
            let sum: f64 = xs.iter().sum();
            Ok(if sum.is_finite() { sum / length(xs.len()) } else { mean_of_huge(xs.iter()) })
        }
    }
}

pub(super) fn all_equal(xs: &[f64]) -> bool {
    xs.iter().all(|x| *x == xs[0])
}

/// The mean of finite values whose sum is too large for a number.
pub(super) fn mean_of_huge<'a>(xs: impl ExactSizeIterator<Item = &'a f64>) -> f64 {
    let count = xs.len() as u64;
    let mut sum = ExactSum::default();
    xs.for_each(|x| sum.add(*x));
    sum.mean(count)
}

/// Returns the sample standard deviation, with n − 1 in the denominator. It is exactly 0 for equal
/// values.
///
/// ```
/// use karat_metrics::stats::sample_std;
///
/// assert_eq!(sample_std(&[1.0, 3.0]), Ok(2f64.sqrt()));
/// assert!(sample_std(&[1.0]).is_err());
/// ```
///
/// # Errors
/// If there are fewer than two values or one is not finite.
pub fn sample_std(xs: &[f64]) -> Score {
    if xs.len() == 1 {
        return Err(SINGLE);
    }
    spread(xs, length(xs.len()) - 1.0)
}

/// Returns the standard deviation with n in the denominator: the spread of these values, not an
/// estimate for the population that they were drawn from. It is 0 for a single value.
///
/// ```
/// use karat_metrics::stats::population_std;
///
/// assert_eq!(population_std(&[1.0, 3.0]), Ok(1.0));
/// assert_eq!(population_std(&[7.0]), Ok(0.0));
/// ```
///
/// # Errors
/// If the list is empty or a value is not finite.
pub fn population_std(xs: &[f64]) -> Score {
    spread(xs, length(xs.len()))
}

/// Returns the standard error of the mean: the sample standard deviation over √n.
///
/// ```
/// use karat_metrics::stats::sem;
///
/// assert_eq!(sem(&[1.0, 3.0]), Ok(1.0));
/// ```
///
/// # Errors
/// If there are fewer than two values or one is not finite.
pub fn sem(xs: &[f64]) -> Score {
    Ok(sample_std(xs)? / length(xs.len()).sqrt())
}

/// Returns Student's interval for the mean: mean ± t·s/√n, for values that are roughly normal or
/// many. An end that is too large for a number is infinite.
///
/// ```
/// use karat_metrics::stats::t_interval;
///
/// let interval = t_interval(&[0.2, 0.4, 0.6], 0.95)?;
/// assert!(interval.low < 0.0 && interval.high > 0.89);
/// assert!(t_interval(&[0.5, 0.5, 0.5], 0.95).is_err());
/// # Ok::<(), karat_metrics::Undefined>(())
/// ```
///
/// # Errors
/// If there are fewer than two values, one is not finite, the confidence is not between 0 and 1, or
/// all values are equal: a spread of zero is more likely an accident of few values than a mean known
/// without error. (scipy returns an interval of no width, or NaN, depending on the function.)
pub fn t_interval(xs: &[f64], confidence: f64) -> Result<Interval, Undefined> {
    let outside = allowed_miss(confidence)?;
    let interval = students(xs, outside)?;
    if all_equal(xs) {
        return Err(Undefined("all values are equal, so their spread is not known"));
    }
    Ok(interval)
}

/// Student's interval that leaves out the share `outside`; of no width for equal values.
pub(super) fn students(xs: &[f64], outside: f64) -> Result<Interval, Undefined> {
    let (xs, by) = magnified(xs);
    let (centre, error) = (mean(&xs)?, sem(&xs)?);
    let margin = student::two_sided_quantile(outside, length(xs.len()) - 1.0) * error;
    Ok(Interval { low: (centre - margin) / by, high: (centre + margin) / by })
}

/// The values and 1, or if all are so small that their standard error may round to 0, the values times a
/// power of two and that power: it costs no digits.
pub(super) fn magnified(xs: &[f64]) -> (Cow<'_, [f64]>, f64) {
    const SMALL: f64 = 1e-290;
    // 2^600
    const BY: f64 = f64::from_bits((1023 + 600) << 52);
    if xs.iter().any(|x| x.abs() >= SMALL || x.is_nan()) {
        return (Cow::Borrowed(xs), 1.0);
    }
    (xs.iter().map(|x| x * BY).collect(), BY)
}

/// Returns the median: the middle value, or the mean of the two middle values.
///
/// ```
/// use karat_metrics::stats::median;
///
/// assert_eq!(median(&[9.0, 1.0, 2.0]), Ok(2.0));
/// assert_eq!(median(&[9.0, 1.0, 2.0, 3.0]), Ok(2.5));
/// ```
///
/// # Errors
/// If the list is empty or a value is not finite.
pub fn median(xs: &[f64]) -> Score {
    quantile(xs, 0.5, QuantileMethod::Linear)
}

/// Returns the geometric mean, for ratios and times.
///
/// The mean of equal values is exactly that value (scipy's `gmean` rounds on the way through the
/// logarithm), and 0 among the values makes it 0.
///
/// ```
/// use karat_metrics::stats::geometric_mean;
///
/// let doubled_and_halved = geometric_mean(&[2.0, 0.5])?;
/// assert!((doubled_and_halved - 1.0).abs() < 1e-15);
/// assert_eq!(geometric_mean(&[0.0, 3.0]), Ok(0.0));
/// assert!(geometric_mean(&[1.0, -2.0]).is_err());
/// # Ok::<(), karat_metrics::Undefined>(())
/// ```
///
/// # Errors
/// If the list is empty, or a value is negative or not finite. (scipy returns NaN, and infinity for
/// positive values of which one is infinite.)
pub fn geometric_mean(xs: &[f64]) -> Score {
    all_finite(xs)?;
    if xs.iter().any(|x| *x < 0.0) {
        return Err(Undefined("a geometric mean needs values that are not negative"));
    }
    match xs {
        [] => Err(EMPTY),
        [first, ..] if all_equal(xs) => Ok(first.abs()),
        _ if xs.contains(&0.0) => Ok(0.0),
        _ => {
            let logs: Vec<f64> = xs.iter().map(|x| libm::log(*x)).collect();
            Ok(libm::exp(mean(&logs)?))
        }
    }
}

fn spread(xs: &[f64], denominator: f64) -> Score {
    let centre = mean(xs)?;
    let largest = xs.iter().map(|x| (x - centre).abs()).fold(0.0, f64::max);
    if largest == 0.0 {
        return Ok(0.0);
    }
    if largest.is_infinite() {
        return Err(Undefined("the values are too far apart for floating-point arithmetic"));
    }
    // Scaled by the largest deviation, squares neither overflow nor vanish.
    let squares: f64 = xs.iter().map(|x| (x - centre) / largest).map(|d| d * d).sum();
    Ok(largest * (squares / denominator).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extreme_values_neither_overflow_nor_vanish() {
        assert_eq!(mean(&[1e308, 1e308, 1e308]), Ok(1e308));
        assert_eq!(mean(&[f64::MAX, f64::MAX / 2.0]).map(f64::is_finite), Ok(true));
        let std = sample_std(&[1e200, -1e200]).unwrap();
        assert!((std / 1e200 - std::f64::consts::SQRT_2).abs() < 1e-15);
        assert!(sample_std(&[1e-200, -1e-200]).unwrap() > 1e-200);
        assert!(sample_std(&[f64::MAX, f64::MAX, f64::MIN]).is_err());
        assert!(median(&[f64::MIN, f64::MAX]).is_ok_and(|median| median == 0.0));
    }

    #[test]
    fn means_of_the_largest_values_stay_between_them() {
        let below = f64::MAX.next_down();
        for n in 2..200 {
            let mut xs = vec![f64::MAX; n];
            xs[0] = below;
            let centre = mean(&xs).unwrap();
            assert!((below.next_down()..=f64::MAX).contains(&centre), "{n}: {centre}");
            xs[1] = f64::MIN;
            assert!(mean(&xs).unwrap().is_finite(), "{n}");
        }
    }

    #[test]
    fn the_smallest_values_have_an_interval() {
        // The mean is 1.2e-324 and its standard error, too; the ends are 3.2 of them away.
        let interval = t_interval(&[0.0, 0.0, 0.0, 5e-324], 0.95).unwrap();
        assert_eq!(interval, Interval { low: -5e-324, high: 5e-324 });
        let (small, plain) = ([1e-300, 2e-300, 4e-300], [1.0, 2.0, 4.0]);
        let (small, plain) = (t_interval(&small, 0.9).unwrap(), t_interval(&plain, 0.9).unwrap());
        assert!((small.low / 1e-300 - plain.low).abs() < 1e-12, "{small:?} {plain:?}");
        assert!((small.high / 1e-300 - plain.high).abs() < 1e-12, "{small:?} {plain:?}");
    }

    #[test]
    fn equal_values_have_exactly_no_spread() {
        assert_eq!(sample_std(&[0.1; 10]), Ok(0.0));
        assert_eq!(mean(&[0.1; 10]), Ok(0.1));
        assert!(t_interval(&[0.1; 10], 0.95).is_err());
    }

    #[test]
    fn a_value_that_is_not_a_number_is_rejected() {
        assert!(mean(&[1.0, f64::NAN]).is_err());
        assert!(mean(&[f64::INFINITY]).is_err());
        assert!(geometric_mean(&[0.0, f64::NAN]).is_err());
        assert_eq!(mean(&[]), Err(EMPTY));
        assert_eq!(sem(&[1.0]), Err(SINGLE));
    }

    #[test]
    fn a_geometric_mean_of_degenerate_values_is_exact_or_undefined() {
        for x in [3.0, 7.0, 0.1, 1e-300, f64::MAX] {
            assert_eq!(geometric_mean(&[x; 5]), Ok(x));
            assert_eq!(geometric_mean(&[x]), Ok(x));
        }
        assert_eq!(geometric_mean(&[0.0, 3.0]), Ok(0.0));
        assert!(geometric_mean(&[-0.0]).is_ok_and(|mean| mean == 0.0 && mean.is_sign_positive()));
        assert_eq!(geometric_mean(&[]), Err(EMPTY));
        let negative = Err(Undefined("a geometric mean needs values that are not negative"));
        assert_eq!(geometric_mean(&[1.0, -2.0]), negative);
        assert_eq!(geometric_mean(&[0.0, -1.0]), negative);
        assert_eq!(geometric_mean(&[-2.0]), negative);
        assert!(geometric_mean(&[1.0, f64::INFINITY]).is_err());
    }
}
