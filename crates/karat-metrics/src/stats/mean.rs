//! The mean of a list and how well it is known.

use super::special::student;
use super::{Interval, QuantileMethod, all_finite, allowed_miss, length, quantile};
use crate::{Score, Undefined};

const EMPTY: Undefined = Undefined("no values");
const SINGLE: Undefined = Undefined("a single value has no spread");

/// The arithmetic mean.
pub fn mean(xs: &[f64]) -> Score {
    all_finite(xs)?;
    match xs {
        [] => Err(EMPTY),
        // Equal values have exactly that mean; their rounded sum might not.
        [first, rest @ ..] if rest.iter().all(|x| x == first) => Ok(*first),
        _ => {
            let sum: f64 = xs.iter().sum();
            if sum.is_finite() {
                Ok(sum / length(xs.len()))
            } else {
                Ok(xs.iter().map(|x| x / length(xs.len())).sum())
            }
        }
    }
}

/// The sample standard deviation, with n − 1 in the denominator.
pub fn sample_std(xs: &[f64]) -> Score {
    if xs.len() == 1 {
        return Err(SINGLE);
    }
    spread(xs, length(xs.len()) - 1.0)
}

/// The standard deviation with n in the denominator: of these values, not of where they came from.
pub fn population_std(xs: &[f64]) -> Score {
    spread(xs, length(xs.len()))
}

/// The standard error of the mean: sample standard deviation over √n.
pub fn sem(xs: &[f64]) -> Score {
    Ok(sample_std(xs)? / length(xs.len()).sqrt())
}

/// Student's interval for the mean: mean ± t·s/√n, for values that are roughly normal or many.
///
/// Equal values have no interval: their zero spread is more likely an accident of few values than a
/// mean known without error.
pub fn t_interval(xs: &[f64], confidence: f64) -> Result<Interval, Undefined> {
    let outside = allowed_miss(confidence)?;
    let (centre, error) = (mean(xs)?, sem(xs)?);
    if error == 0.0 {
        return Err(Undefined("all values are equal, so their spread is not known"));
    }
    let margin = student::two_sided_quantile(outside, length(xs.len()) - 1.0) * error;
    Ok(Interval { low: centre - margin, high: centre + margin })
}

/// The median; between the two middle values if their number is even.
pub fn median(xs: &[f64]) -> Score {
    quantile(xs, 0.5, QuantileMethod::Linear)
}

/// The geometric mean, for ratios and times.
pub fn geometric_mean(xs: &[f64]) -> Score {
    if xs.iter().any(|x| *x < 0.0) {
        return Err(Undefined("a geometric mean needs values that are not negative"));
    }
    if xs.contains(&0.0) {
        all_finite(xs)?;
        return Ok(0.0);
    }
    let logs: Vec<f64> = xs.iter().map(|x| libm::log(*x)).collect();
    Ok(libm::exp(mean(&logs)?))
}

fn spread(xs: &[f64], denominator: f64) -> Score {
    let centre = mean(xs)?;
    let largest = xs.iter().map(|x| (x - centre).abs()).fold(0.0, f64::max);
    if largest == 0.0 {
        return Ok(0.0);
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
    }

    #[test]
    fn equal_values_have_exactly_no_spread() {
        assert_eq!(sample_std(&[0.1; 10]), Ok(0.0));
        assert_eq!(mean(&[0.1; 10]), Ok(0.1));
        assert!(t_interval(&[0.1; 10], 0.95).is_err());
    }

    #[test]
    fn what_is_not_a_number_is_refused() {
        assert!(mean(&[1.0, f64::NAN]).is_err());
        assert!(mean(&[f64::INFINITY]).is_err());
        assert!(geometric_mean(&[0.0, f64::NAN]).is_err());
        assert_eq!(mean(&[]), Err(EMPTY));
        assert_eq!(sem(&[1.0]), Err(SINGLE));
    }
}
