//! The normal distribution: tail and quantile, both accurate far into the tails.

use std::f64::consts::{FRAC_1_SQRT_2, TAU};

/// P(Z > z) of a standard normal variable.
pub(in crate::stats) fn upper_tail(z: f64) -> f64 {
    0.5 * libm::erfc(z * FRAC_1_SQRT_2)
}

/// The z with P(Z < z) = p; minus and plus infinity at 0 and 1, NaN outside of them.
pub(in crate::stats) fn quantile(p: f64) -> f64 {
    if p < 0.5 { -upper_quantile(p) } else { upper_quantile(1.0 - p) }
}

/// The z with P(Z > z) = tail.
pub(in crate::stats) fn upper_quantile(tail: f64) -> f64 {
    if tail > 0.5 {
        return -upper_quantile(1.0 - tail);
    }
    if tail <= 0.0 {
        return if tail == 0.0 { f64::INFINITY } else { f64::NAN };
    }
    // Abramowitz and Stegun 26.2.23 starts within 5e-4; Halley's method then triples the correct
    // digits each time, so three rounds leave only the rounding of erfc.
    let t = (-2.0 * libm::log(tail)).sqrt();
    let numerator = 2.515517 + t * (0.802853 + t * 0.010328);
    let denominator = 1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308));
    let mut z = t - numerator / denominator;
    for _ in 0..3 {
        let excess = (upper_tail(z) - tail) / density(z);
        if !excess.is_finite() {
            break;
        }
        z += 2.0 * excess / (2.0 - excess * z);
    }
    z
}

fn density(z: f64) -> f64 {
    libm::exp(-0.5 * z * z) / TAU.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_quantiles_agree_to_the_last_digits() {
        for (p, z) in [
            (0.5, 0.0),
            (0.975, 1.959963984540054),
            (0.995, 2.5758293035489004),
            (0.001, -3.090232306167813),
            (1e-10, -6.361340902404056),
        ] {
            assert!((quantile(p) - z).abs() < 2e-14, "{p}: {}", quantile(p));
        }
    }

    #[test]
    fn quantile_inverts_the_tail_down_to_the_smallest_probabilities() {
        for exponent in 1..300 {
            let tail = libm::exp(-2.3 * f64::from(exponent));
            let back = upper_tail(upper_quantile(tail));
            assert!((back / tail - 1.0).abs() < 1e-11, "{tail}: {back}");
        }
    }

    #[test]
    fn the_ends_are_infinite() {
        assert_eq!(quantile(0.0), f64::NEG_INFINITY);
        assert_eq!(quantile(1.0), f64::INFINITY);
    }
}
