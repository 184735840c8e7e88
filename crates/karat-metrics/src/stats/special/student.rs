//! Student's t distribution, through the incomplete beta function.

use super::beta;

/// P(T > t) with the given degrees of freedom (> 0).
pub fn upper_tail(t: f64, degrees: f64) -> f64 {
    let square = t * t;
    let (x, y) = if square.is_finite() {
        (degrees / (degrees + square), square / (degrees + square))
    } else {
        (degrees / t / t, 1.0)
    };
    let (outside, inside) = beta::tails(0.5 * degrees, 0.5, x, y);
    if t >= 0.0 { 0.5 * outside } else { 0.5 + 0.5 * inside }
}

/// The t with P(|T| > t) = outside, for 0 < outside < 1.
pub fn two_sided_quantile(outside: f64, degrees: f64) -> f64 {
    let (x, y) = beta::inverse(0.5 * degrees, 0.5, outside, 1.0 - outside);
    (degrees * (y / x)).sqrt()
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
