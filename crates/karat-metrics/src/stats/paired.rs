//! Two systems on the same items: t-test and sign test.
//!
//! `a[i]` and `b[i]` belong to the same item; the difference is a − b. The t-test assumes that the
//! mean difference is roughly normal, which takes many items if their scores are 0 and 1; the exact
//! tests ([`sign_flip`](super::sign_flip) and [`sign_test`]) assume only that a difference is as
//! likely to be positive as negative.

use super::mean::{magnified, students};
use super::special::student;
use super::{Interval, all_finite, allowed_miss, length, mcnemar_exact, mean, sem};
use crate::{Score, Undefined};

/// The result of a paired t-test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TTest {
    /// The mean of a − b.
    pub mean_difference: f64,
    /// The mean difference in standard errors.
    pub t: f64,
    /// Degrees of freedom: pairs − 1.
    pub degrees: f64,
    /// The chance of a |t| at least as large if there is no difference.
    pub p_two_sided: f64,
    /// The chance of a t at least as large: small if a is greater.
    pub p_greater: f64,
    /// The chance of a t at most as large: small if a is less.
    pub p_less: f64,
    /// The 95 % interval of the mean difference; other levels: [`paired_t_interval`].
    pub interval: Interval,
}

/// Runs Student's t-test on the differences a − b.
///
/// ```
/// use karat_metrics::stats::paired_t_test;
///
/// let test = paired_t_test(&[0.9, 0.8, 0.7, 0.9], &[0.5, 0.6, 0.6, 0.8])?;
/// assert!((test.mean_difference - 0.2).abs() < 1e-15);
/// assert!(test.t > 2.8 && test.p_greater < 0.04);
///
/// assert!(paired_t_test(&[2.0, 3.0, 4.0], &[1.0, 2.0, 3.0]).is_err());
/// # Ok::<(), karat_metrics::Undefined>(())
/// ```
///
/// # Errors
/// If the lists differ in length, there are fewer than two pairs, a difference is not finite, or all
/// differences are equal up to rounding: there is no spread to measure the mean by. (For equal
/// differences scipy's `ttest_rel` returns t = ±∞ and p = 0, which claims certainty from two pairs,
/// or NaN if they are zero.) Differences of any size have a t, the smallest numbers too; an end of the
/// interval that is too large for a number is infinite.
pub fn paired_t_test(a: &[f64], b: &[f64]) -> Result<TTest, Undefined> {
    let differences = differences(a, b)?;
    let (scaled, by) = magnified(&differences);
    let (centre, error) = (mean(&scaled)?, sem(&scaled)?);
    check_spread(&differences, a, b)?;
    let (mean_difference, t) = (centre / by, centre / error);
    let degrees = length(differences.len()) - 1.0;
    Ok(TTest {
        mean_difference,
        t,
        degrees,
        p_two_sided: (2.0 * student::upper_tail(t.abs(), degrees)).min(1.0),
        p_greater: student::upper_tail(t, degrees),
        p_less: student::upper_tail(-t, degrees),
        interval: paired_t_interval(a, b, 0.95)?,
    })
}

/// Returns Student's interval for the mean of a − b. Equal differences have an interval of no width, as
/// in scipy: read it as "no spread was seen", not as certainty.
///
/// ```
/// use karat_metrics::stats::paired_t_interval;
///
/// let interval = paired_t_interval(&[0.9, 0.8, 0.7, 0.9], &[0.5, 0.6, 0.6, 0.8], 0.9)?;
/// assert!(interval.low > 0.0 && interval.contains(0.2));
/// # Ok::<(), karat_metrics::Undefined>(())
/// ```
///
/// # Errors
/// If the lists differ in length, there are fewer than two pairs, a difference is not finite, or the
/// confidence is not between 0 and 1.
pub fn paired_t_interval(a: &[f64], b: &[f64], confidence: f64) -> Result<Interval, Undefined> {
    let differences = differences(a, b)?;
    students(&differences, allowed_miss(confidence)?)
}

/// Returns the exact two-sided p-value of the sign test, which only looks at which of a and b is
/// larger.
///
/// ```
/// use karat_metrics::stats::sign_test;
///
/// // Better on five items, worse on none, equal on one: 2 · (1/2)^5.
/// let p = sign_test(&[2.0, 2.0, 3.0, 5.0, 9.0, 1.0], &[1.0, 1.0, 2.0, 4.0, 0.0, 1.0])?;
/// assert!((p - 0.0625).abs() < 1e-15);
/// # Ok::<(), karat_metrics::Undefined>(())
/// ```
///
/// # Errors
/// If the lists differ in length, a difference is not finite, or a and b never differ: without a
/// single trial scipy's `binomtest` raises an error too.
pub fn sign_test(a: &[f64], b: &[f64]) -> Score {
    let differences = differences(a, b)?;
    let count = |wanted: fn(&f64) -> bool| differences.iter().filter(|d| wanted(d)).count() as u64;
    let (larger, smaller) = (count(|d| *d > 0.0), count(|d| *d < 0.0));
    if larger + smaller == 0 {
        return Err(Undefined("the two never differ"));
    }
    Ok(mcnemar_exact(larger, smaller))
}

/// a − b, item by item.
pub(super) fn differences(a: &[f64], b: &[f64]) -> Result<Vec<f64>, Undefined> {
    if a.len() != b.len() {
        return Err(Undefined("the two lists differ in length"));
    }
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    all_finite(&differences)?;
    Ok(differences)
}

/// Rejects differences that vary by no more than the rounding of the values they come from: 0.3 − 0.2
/// and 0.2 − 0.1 are not the same float, and scipy finds p = 3.5e-32 in three such pairs.
fn check_spread(differences: &[f64], a: &[f64], b: &[f64]) -> Result<(), Undefined> {
    let scale = a.iter().chain(b).map(|x| x.abs()).fold(0.0, f64::max);
    let low = differences.iter().copied().fold(f64::INFINITY, f64::min);
    let high = differences.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if high - low <= 1e-15 * scale {
        return Err(Undefined("all differences are equal"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_without_spread_have_no_t() {
        let reason = Undefined("all differences are equal");
        let pairs: [(&[f64], &[f64]); 4] = [
            (&[1.0, 0.0], &[1.0, 0.0]),
            (&[2.0, 3.0, 4.0], &[1.0, 2.0, 3.0]),
            (&[1.0, 2.0, 3.0], &[2.0, 3.0, 4.0]),
            (&[0.3, 0.2, 0.4], &[0.2, 0.1, 0.3]),
        ];
        for (a, b) in pairs {
            assert_eq!(paired_t_test(a, b), Err(reason), "{a:?}");
            let interval = paired_t_interval(a, b, 0.95).unwrap();
            assert!(interval.width() < 1e-15 && interval.contains(a[0] - b[0]), "{interval:?}");
        }
        let single = Undefined("a single value has no spread");
        assert_eq!(paired_t_test(&[1.0], &[0.0]), Err(single));
        assert_eq!(paired_t_interval(&[1.0], &[0.0], 0.95), Err(single));
        assert_eq!(paired_t_test(&[], &[]), Err(Undefined("no values")));
    }

    #[test]
    fn the_smallest_differences_have_the_t_of_others_like_them() {
        // Mean and standard error are a quarter of the only difference, whatever its size.
        for size in [1.0, 1e-200, 1e-300, 5e-324] {
            let test = paired_t_test(&[0.0, 0.0, 0.0, size], &[0.0; 4]).unwrap();
            assert!((test.t - 1.0).abs() < 1e-15, "{size}: {test:?}");
            assert!((test.p_two_sided - 0.391_002_218_955_770_6).abs() < 1e-12, "{size}: {test:?}");
            assert!(test.interval.low < 0.0 && test.interval.high >= size, "{size}: {test:?}");
        }
    }

    #[test]
    fn lists_that_do_not_pair_up_are_rejected() {
        assert!(paired_t_test(&[1.0, 2.0], &[1.0]).is_err());
        assert!(paired_t_test(&[f64::MAX, 1.0], &[f64::MIN, 1.0]).is_err());
        assert!(sign_test(&[f64::NAN], &[1.0]).is_err());
        assert_eq!(sign_test(&[1.0], &[1.0]), Err(Undefined("the two never differ")));
        assert!(sign_test(&[], &[]).is_err());
    }
}
