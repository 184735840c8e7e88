//! Student's t distribution, through the incomplete beta function.

use super::{beta, normal};

/// Beyond this the distribution is the normal one to the last digit; no count comes near it.
const AS_GOOD_AS_NORMAL: f64 = 1e20;
/// Below this, numbers lose digits or vanish.
const SMALLEST: f64 = 1e-290;

/// P(T > t) with the given degrees of freedom (> 0).
pub(in crate::stats) fn upper_tail(t: f64, degrees: f64) -> f64 {
    let square = t * t;
    let (x, y) = if square.is_finite() {
        (degrees / (degrees + square), square / (degrees + square))
    } else {
        (degrees / t / t, 1.0)
    };
    let (outside, inside) = beta::tails(0.5 * degrees, 0.5, x, y);
    if t >= 0.0 { 0.5 * outside } else { 0.5 + 0.5 * inside }
}

/// Returns the t with P(|T| > t) = `outside` under Student's distribution with the given degrees of
/// freedom: infinity for 0, 0 for 1, and NaN if `outside` is not a probability or the degrees are not
/// positive. Infinite degrees of freedom give the quantile of the normal distribution. It is infinite, too,
/// where few degrees make it larger than any number.
///
/// ```
/// use karat_metrics::stats::student_two_sided_quantile;
///
/// let t = student_two_sided_quantile(0.05, 10.0);
/// assert!((t - 2.228_138_851_986_274).abs() < 1e-12);
/// let z = student_two_sided_quantile(0.05, f64::INFINITY);
/// assert!((z - 1.959_963_984_540_054).abs() < 1e-12);
/// ```
#[must_use]
pub fn two_sided_quantile(outside: f64, degrees: f64) -> f64 {
    if !(0.0..=1.0).contains(&outside) || degrees.is_nan() || degrees <= 0.0 {
        return f64::NAN;
    }
    if outside == 1.0 {
        return 0.0;
    }
    if degrees > AS_GOOD_AS_NORMAL {
        return normal::upper_quantile(0.5 * outside);
    }
    if degrees < f64::MIN_POSITIVE {
        return f64::INFINITY;
    }
    let (x, y) = beta::inverse(0.5 * degrees, 0.5, outside, 1.0 - outside);
    if x < SMALLEST {
        return far_quantile(outside, degrees);
    }
    (degrees * (y / x)).sqrt()
}

/// The same where degrees / t² is too small for a number: there P(|T| > t) is its first term,
/// (degrees / t²)^a ÷ (a · B(a, 1/2)) with a = degrees / 2.
fn far_quantile(outside: f64, degrees: f64) -> f64 {
    let a = 0.5 * degrees;
    // ln(a · B(a, 1/2)) = ln Γ(a + 1) + ln Γ(1/2) − ln Γ(a + 1/2)
    let scale =
        libm::lgamma(a + 1.0) + 0.5 * libm::log(std::f64::consts::PI) - libm::lgamma(a + 0.5);
    let log_x = (libm::log(outside) + scale) / a;
    libm::exp(0.5 * (libm::log(degrees) - log_x))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_degree_of_freedom_is_the_cauchy_distribution() {
        for t in [0.0, 0.3, 1.0, 12.0, 1e5, 1e100] {
            let cauchy = libm::atan(1.0 / t) / std::f64::consts::PI;
            let tail = upper_tail(t, 1.0);
            assert!((tail - cauchy).abs() <= 1e-13 * cauchy, "{t}: {tail} {cauchy}");
        }
        assert_eq!(upper_tail(1e200, 1.0), 0.0);
        assert!((upper_tail(-1.0, 1.0) - 0.75).abs() < 1e-15);
    }

    #[test]
    fn a_quantile_outside_its_domain_is_not_a_number() {
        for (outside, degrees) in
            [(-0.1, 5.0), (1.1, 5.0), (f64::NAN, 5.0), (0.05, 0.0), (0.05, -1.0), (0.05, f64::NAN)]
        {
            assert!(two_sided_quantile(outside, degrees).is_nan(), "{outside} {degrees}");
        }
        assert_eq!(two_sided_quantile(0.0, 5.0), f64::INFINITY);
        assert_eq!(two_sided_quantile(1.0, 5.0), 0.0);
    }

    #[test]
    fn a_quantile_is_infinite_only_where_it_is_too_large_for_a_number() {
        // With one degree of freedom t = 1 / tan(π/2 · outside), with two about √(1 / outside).
        for outside in [1e-100, 1e-140, 1e-146, 1e-154, 1e-200, 1e-300] {
            let one = two_sided_quantile(outside, 1.0);
            let cauchy = 2.0 / std::f64::consts::PI / outside;
            assert!((one - cauchy).abs() <= 1e-12 * cauchy, "{outside}: {one} {cauchy}");
            let two = two_sided_quantile(outside, 2.0);
            let expected = (1.0 / outside).sqrt();
            assert!((two - expected).abs() <= 1e-12 * expected, "{outside}: {two} {expected}");
        }
        assert_eq!(two_sided_quantile(1e-300, 0.5), f64::INFINITY);
        assert_eq!(two_sided_quantile(1e-309, 1.0), f64::INFINITY);
    }

    #[test]
    fn no_degrees_of_freedom_are_too_many_or_too_few() {
        let z = normal::upper_quantile(0.025);
        for degrees in [1e19, 1e20, 1.1e20, 1e155, 1e300, f64::MAX, f64::INFINITY] {
            assert!((two_sided_quantile(0.05, degrees) - z).abs() < 1e-12, "{degrees}");
            assert_eq!(two_sided_quantile(0.0, degrees), f64::INFINITY, "{degrees}");
            assert_eq!(two_sided_quantile(1.0, degrees), 0.0, "{degrees}");
        }
        for degrees in [5e-324, 1e-308, 1e-300, 1e-20, 1e-3] {
            assert_eq!(two_sided_quantile(0.05, degrees), f64::INFINITY, "{degrees}");
            assert_eq!(two_sided_quantile(1.0, degrees), 0.0, "{degrees}");
        }
    }

    #[test]
    fn quantiles_invert_tails_and_approach_the_normal_ones() {
        for degrees in [1.0, 2.0, 3.5, 30.0, 1e4, 1e9, 1.8e19] {
            for outside in [1e-9, 0.01, 0.05, 0.5, 0.99] {
                let t = two_sided_quantile(outside, degrees);
                let back = 2.0 * upper_tail(t, degrees);
                assert!((back / outside - 1.0).abs() < 1e-11, "{degrees} {outside}: {t} {back}");
            }
        }
        let z = super::super::normal::upper_quantile(0.025);
        assert!((two_sided_quantile(0.05, 1.8e19) - z).abs() < 1e-12);
    }
}
