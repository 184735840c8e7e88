//! Two systems on the same items: t-test and sign test.
//!
//! `a[i]` and `b[i]` belong to the same item; the difference is a − b. The t-test assumes that the
//! mean difference is about normal, which per-item scores of 0 and 1 need many items for; the
//! exact tests in [`sign_flip`](super::sign_flip) and below assume only that a difference is as
//! likely to be positive as negative.

use super::special::student;
use super::{Interval, all_finite, allowed_miss, length, mcnemar_exact, mean, sem};
use crate::{Score, Undefined};

/// What a paired t-test says.
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

/// Student's t-test on the differences a − b. Undefined if they are all equal (up to rounding):
/// there is no spread to measure the mean by.
pub fn paired_t_test(a: &[f64], b: &[f64]) -> Result<TTest, Undefined> {
    let differences = differences(a, b)?;
    let mean_difference = mean(&differences)?;
    let error = sem(&differences)?;
    if equal_up_to_rounding(&differences, a, b) {
        return Err(Undefined("all differences are equal"));
    }
    let t = mean_difference / error;
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

/// Student's interval for the mean of a − b. If all differences are equal it has no width.
pub fn paired_t_interval(a: &[f64], b: &[f64], confidence: f64) -> Result<Interval, Undefined> {
    let differences = differences(a, b)?;
    let outside = allowed_miss(confidence)?;
    let (centre, error) = (mean(&differences)?, sem(&differences)?);
    let margin = student::two_sided_quantile(outside, length(differences.len()) - 1.0) * error;
    Ok(Interval { low: centre - margin, high: centre + margin })
}

/// The exact two-sided sign test: only which of a and b is larger counts. Undefined if they never
/// differ.
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

/// Whether the differences vary by no more than the rounding of the values they come from:
/// 0.3 − 0.2 and 0.2 − 0.1 are not the same float.
fn equal_up_to_rounding(differences: &[f64], a: &[f64], b: &[f64]) -> bool {
    let scale = a.iter().chain(b).map(|x| x.abs()).fold(0.0, f64::max);
    let low = differences.iter().copied().fold(f64::INFINITY, f64::min);
    let high = differences.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    high - low <= 1e-15 * scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_without_spread_have_no_t() {
        let reason = Err(Undefined("all differences are equal"));
        assert_eq!(paired_t_test(&[1.0, 0.0], &[1.0, 0.0]), reason);
        assert_eq!(paired_t_test(&[0.3, 0.2, 0.4], &[0.2, 0.1, 0.3]), reason);
        assert!(paired_t_test(&[1.0], &[0.0]).is_err());
    }

    #[test]
    fn lists_that_do_not_pair_up_are_refused() {
        assert!(paired_t_test(&[1.0, 2.0], &[1.0]).is_err());
        assert!(paired_t_test(&[f64::MAX, 1.0], &[f64::MIN, 1.0]).is_err());
        assert!(sign_test(&[f64::NAN], &[1.0]).is_err());
        assert!(sign_test(&[1.0], &[1.0]).is_err());
    }
}
