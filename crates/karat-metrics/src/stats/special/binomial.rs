//! Single terms of the binomial and hypergeometric distributions, by the saddle-point form.
//!
//! Factorials written as logarithms lose all digits once their difference is small against
//! themselves (n above a million or so). Here the large parts are cancelled on paper first: what is
//! left are the error of Stirling's formula and the deviance, both small where the probability is
//! not, so the terms stay accurate for any count.

use std::f64::consts::TAU;

/// Γ(a+b+1) / (Γ(a+1) Γ(b+1)) · x^a · y^b, where y = 1 − x is passed along so that neither loses
/// digits. For whole a and b: the probability of a successes in a + b trials.
pub(in crate::stats) fn binomial_term(a: f64, b: f64, x: f64, y: f64) -> f64 {
    if x <= 0.0 {
        return if a == 0.0 { 1.0 } else { 0.0 };
    }
    if y <= 0.0 {
        return if b == 0.0 { 1.0 } else { 0.0 };
    }
    if a == 0.0 {
        return power_of_complement(b, x, y);
    }
    if b == 0.0 {
        return power_of_complement(a, y, x);
    }
    let n = a + b;
    let exponent = stirling_error(n)
        - stirling_error(a)
        - stirling_error(b)
        - deviance(a, n * x)
        - deviance(b, n * y);
    libm::exp(exponent) * (n / (TAU * a * b)).sqrt()
}

/// The probability of `drawn_good` good ones when `drawn` are taken without replacement from `good`
/// good and `bad` bad ones.
pub(in crate::stats) fn hypergeometric_term(
    drawn_good: f64,
    good: f64,
    bad: f64,
    drawn: f64,
) -> f64 {
    let total = good + bad;
    let drawn_bad = drawn - drawn_good;
    if drawn_good < 0.0 || drawn_bad < 0.0 || drawn_good > good || drawn_bad > bad {
        return 0.0;
    }
    // Any common probability cancels out of the quotient; the sampling fraction keeps all three
    // terms near their largest.
    let (share, rest) = (drawn / total, (total - drawn) / total);
    binomial_term(drawn_good, good - drawn_good, share, rest)
        * binomial_term(drawn_bad, bad - drawn_bad, share, rest)
        / binomial_term(drawn, total - drawn, share, rest)
}

/// y^n for y = 1 − x, without losing digits when x is small.
fn power_of_complement(n: f64, x: f64, y: f64) -> f64 {
    let log = if x < 0.5 { libm::log1p(-x) } else { libm::log(y) };
    libm::exp(n * log)
}

/// ln Γ(z+1) minus Stirling's formula for it.
fn stirling_error(z: f64) -> f64 {
    if z <= 15.0 {
        return libm::lgamma(z + 1.0) - (z + 0.5) * libm::log(z) + z - 0.5 * libm::log(TAU);
    }
    let square = 1.0 / (z * z);
    let mut sum = 691.0 / 360_360.0;
    for coefficient in [1.0 / 1188.0, 1.0 / 1680.0, 1.0 / 1260.0, 1.0 / 360.0, 1.0 / 12.0] {
        sum = coefficient - square * sum;
    }
    sum / z
}

/// x ln(x/m) + m − x: the distance of x from its expectation m, never negative.
fn deviance(x: f64, m: f64) -> f64 {
    let difference = x - m;
    if difference.abs() >= 0.1 * (x + m) {
        return x * libm::log(x / m) - difference;
    }
    // ln(x/m) = 2 artanh(v), v = (x−m)/(x+m): the direct formula would cancel to nothing here.
    let v = difference / (x + m);
    let square = v * v;
    let mut sum = difference * v;
    let mut power = 2.0 * x * v;
    // |v| < 0.1, so each term is less than a hundredth of the one before: a dozen of them are enough.
    for odd in (3..100_u8).step_by(2).map(f64::from) {
        power *= square;
        let next = sum + power / odd;
        if next == sum {
            break;
        }
        sum = next;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(n: u32, k: u32) -> f64 {
        (0..k).fold(1.0, |c, i| c * f64::from(n - i) / f64::from(i + 1))
    }

    #[test]
    fn terms_equal_the_definition_for_small_counts() {
        for n in 0..40u32 {
            for k in 0..=n {
                for x in [0.01, 0.25, 0.5, 0.9] {
                    let y = 1.0 - x;
                    let direct = choose(n, k)
                        * (0..k).fold(1.0, |p, _| p * x)
                        * (0..n - k).fold(1.0, |p, _| p * y);
                    let term = binomial_term(f64::from(k), f64::from(n - k), x, y);
                    assert!((term / direct - 1.0).abs() < 1e-13, "{n} {k} {x}: {term} {direct}");
                }
            }
        }
    }

    #[test]
    fn hypergeometric_terms_equal_the_definition() {
        for (good, bad, drawn) in [(3, 4, 2), (10, 1, 5), (20, 30, 25), (5, 0, 3)] {
            for k in 0..=drawn.min(good) {
                if drawn - k > bad {
                    continue;
                }
                let direct = choose(good, k) * choose(bad, drawn - k) / choose(good + bad, drawn);
                let term = hypergeometric_term(k.into(), good.into(), bad.into(), drawn.into());
                assert!((term / direct - 1.0).abs() < 1e-13, "{good} {bad} {drawn} {k}");
            }
        }
    }

    #[test]
    fn the_middle_term_of_a_huge_binomial_is_that_of_the_normal_density() {
        let half = 5e17;
        let term = binomial_term(half, half, 0.5, 0.5);
        assert!((term * (TAU * half / 2.0).sqrt() - 1.0).abs() < 1e-12, "{term}");
    }
}
