//! The regularised incomplete beta function and its inverse.
//!
//! Both tails are always given, the smaller one computed and the other derived, so that neither a
//! tiny probability nor one near 1 loses digits. A continued fraction serves while the smaller
//! parameter is moderate; beyond that its length grows with the square root of the counts, and
//! quadrature over the (then nearly normal) density takes over at a fixed price.

use super::binomial::binomial_term;

/// Above this value of the smaller parameter the continued fraction is slower than quadrature.
const LARGE: f64 = 10_000.0;

/// I_x(a, b) and 1 − I_x(a, b), for a, b > 0 and y = 1 − x.
pub(in crate::stats) fn tails(a: f64, b: f64, x: f64, y: f64) -> (f64, f64) {
    if x <= 0.0 {
        return (0.0, 1.0);
    }
    if y <= 0.0 {
        return (1.0, 0.0);
    }
    if a.min(b) > LARGE {
        return tails_by_quadrature(a, b, x, y);
    }
    // x^a y^b / B(a, b)
    let front = binomial_term(a, b, x, y) * a * (b / (a + b));
    if below_mean(a, b, x, y) + y - x >= 0.0 {
        let lower = (front / continued_fraction(a, b, x, y)).min(1.0);
        (lower, 1.0 - lower)
    } else {
        let upper = (front / continued_fraction(b, a, y, x)).min(1.0);
        (1.0 - upper, upper)
    }
}

/// The x (and y = 1 − x) at which I_x(a, b) = lower, where upper = 1 − lower.
pub(in crate::stats) fn inverse(a: f64, b: f64, lower: f64, upper: f64) -> (f64, f64) {
    if lower <= 0.0 {
        return (0.0, 1.0);
    }
    if upper <= 0.0 {
        return (1.0, 0.0);
    }
    // Solve for whichever of x and y is the smaller: the other then loses nothing.
    if lower <= tails(a, b, 0.5, 0.5).0 {
        let x = solve_below_half(a, b, lower, upper);
        (x, 1.0 - x)
    } else {
        let y = solve_below_half(b, a, upper, lower);
        (1.0 - y, y)
    }
}

/// Newton's method inside a bracket, on the logarithm of the smaller tail: against ln x for the
/// lower tail (there I_x grows like a power of x), against x for the upper one (there it falls like
/// an exponential).
fn solve_below_half(a: f64, b: f64, lower: f64, upper: f64) -> f64 {
    let (mut low, mut high) = (0.0, 0.5);
    let mut x = (a / (a + b)).clamp(f64::MIN_POSITIVE, 0.5);
    for _ in 0..200 {
        let (at_lower, at_upper) = tails(a, b, x, 1.0 - x);
        let too_high = if lower <= upper { at_lower > lower } else { at_upper < upper };
        if too_high {
            high = x;
        } else {
            low = x;
        }
        let slope = binomial_term(a, b, x, 1.0 - x) * a * (b / (a + b)) / (1.0 - x);
        let newton = if lower <= upper {
            x * libm::exp((libm::log(lower) - libm::log(at_lower)) * at_lower / slope)
        } else {
            x + (libm::log(at_upper) - libm::log(upper)) * at_upper * x / slope
        };
        let next = if newton > low && newton < high { newton } else { middle(low, high) };
        let step = (next - x).abs();
        x = next;
        if step <= 1e-15 * x {
            break;
        }
    }
    x
}

/// A point between the ends, halving the distance in powers of ten while they are far apart.
fn middle(low: f64, high: f64) -> f64 {
    if low == 0.0 {
        high / 1024.0
    } else if high / low > 4.0 {
        low.sqrt() * high.sqrt()
    } else {
        0.5 * (low + high)
    }
}

/// x^a y^b / B(a, b) divided by I_x(a, b), as a continued fraction evaluated by Lentz's method. This is
/// the even part of the classical fraction, written with x and y so that nothing cancels when one of
/// them is tiny.
fn continued_fraction(a: f64, b: f64, x: f64, y: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let guard = |value: f64| if value.abs() < TINY { TINY } else { value };
    let start = below_mean(a, b, x, y) + 1.0;
    let denominator = |m: f64| {
        m + m * (b - m) * (x / (a + 2.0 * m - 1.0))
            + (a + m) / (a + 2.0 * m + 1.0) * (start + m * (1.0 + y))
    };
    let mut value = guard(a / (a + 1.0) * start);
    let mut c = value;
    let mut d = 0.0;
    for m in (1..20_000).map(f64::from) {
        let odd = x / (a + 2.0 * m - 1.0);
        let numerator = (a + m - 1.0) * odd * ((a + b + m - 1.0) * odd) * m * (b - m);
        let denominator = denominator(m);
        d = 1.0 / guard(denominator + numerator * d);
        c = guard(denominator + numerator / c);
        value *= c * d;
        if (c * d - 1.0).abs() <= 1e-16 {
            break;
        }
    }
    value
}

/// a − (a + b)x, the distance of x below the mean, without subtracting nearly equal products.
fn below_mean(a: f64, b: f64, x: f64, y: f64) -> f64 {
    a * y - b * x
}

fn tails_by_quadrature(a: f64, b: f64, x: f64, y: f64) -> (f64, f64) {
    let n = a + b;
    let deviation = ((a / n) * (b / n) / (n + 1.0)).sqrt();
    let z = (x - a / n) / deviation;
    if z < 0.0 {
        let lower = outer_tail(a, b, x, y, z, deviation);
        (lower, 1.0 - lower)
    } else {
        let upper = outer_tail(b, a, y, x, z, deviation);
        (1.0 - upper, upper)
    }
}

/// The integral of the density from x downwards, for x below the mean by |z| standard deviations.
fn outer_tail(a: f64, b: f64, x: f64, y: f64, z: f64, deviation: f64) -> f64 {
    const PANELS: u32 = 6;
    // Where the density has fallen by a factor of e^40 against x, nothing that counts is left.
    let reach = ((z * z + 80.0).sqrt() - z.abs()) * deviation;
    let half = 0.5 * reach.min(x) / f64::from(PANELS);
    let nodes = legendre_nodes();
    let mut sum = 0.0;
    for panel in 0..PANELS {
        let centre = half * f64::from(2 * panel + 1);
        for (node, weight) in nodes {
            let offset = centre + half * node;
            let (left, right) = (x - offset, y + offset);
            sum += weight * binomial_term(a, b, left, right) / (left * right);
        }
    }
    (sum * half * a * (b / (a + b))).min(1.0)
}

/// Nodes and weights of the sixteen-point Gauss-Legendre rule on −1..1.
fn legendre_nodes() -> [(f64, f64); 16] {
    const N: u32 = 16;
    let mut nodes = [(0.0, 0.0); N as usize];
    for (i, slot) in (0u32..).zip(nodes.iter_mut()) {
        let mut x = libm::cos(std::f64::consts::PI * (f64::from(i) + 0.75) / (f64::from(N) + 0.5));
        let mut slope = 1.0;
        for _ in 0..8 {
            let (mut previous, mut value) = (1.0, x);
            for k in (2..=N).map(f64::from) {
                (previous, value) =
                    (value, ((2.0 * k - 1.0) * x * value - (k - 1.0) * previous) / k);
            }
            slope = f64::from(N) * (x * value - previous) / (x * x - 1.0);
            x -= value / slope;
        }
        *slot = (x, 2.0 / ((1.0 - x * x) * slope * slope));
    }
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P(X >= a) for X binomial with a + b − 1 trials: the incomplete beta function of whole numbers.
    fn by_summation(a: u32, b: u32, x: f64) -> f64 {
        let n = a + b - 1;
        (a..=n).map(|k| binomial_term(f64::from(k), f64::from(n - k), x, 1.0 - x)).sum()
    }

    #[test]
    fn whole_parameters_agree_with_the_binomial_sum() {
        for a in [1, 2, 5, 17, 60] {
            for b in [1, 3, 10, 200] {
                for x in [0.001, 0.05, 0.3, 0.5, 0.77, 0.99] {
                    let (lower, upper) = tails(a.into(), b.into(), x, 1.0 - x);
                    let sum = by_summation(a, b, x);
                    assert!(
                        (lower - sum).abs() <= 1e-13 * sum.max(1e-3),
                        "{a} {b} {x}: {lower} {sum}"
                    );
                    assert!((lower + upper - 1.0).abs() < 1e-15);
                }
            }
        }
    }

    #[test]
    fn quadrature_and_continued_fraction_agree_where_they_meet() {
        for (a, b) in [(LARGE, LARGE), (LARGE, 3e6), (LARGE, 1e12)] {
            let mean: f64 = a / (a + b);
            let deviation = (mean * (1.0 - mean) / (a + b)).sqrt();
            for z in [-8.0, -3.0, -0.5, 0.01, 1.0, 2.5, 7.0] {
                let x = mean + z * deviation;
                let (lower, upper) = tails(a, b, x, 1.0 - x);
                let (lower_q, upper_q) = tails_by_quadrature(a, b, x, 1.0 - x);
                assert!((lower_q / lower - 1.0).abs() < 1e-9, "{b} {z}: {lower_q} {lower}");
                assert!((upper_q / upper - 1.0).abs() < 1e-9, "{b} {z}: {upper_q} {upper}");
            }
        }
    }

    #[test]
    fn the_inverse_brings_back_the_probability() {
        for a in [0.5, 1.0, 3.0, 80.0, 4e4, 1e9] {
            for b in [0.5, 2.0, 900.0, 5e5, 1e12] {
                for lower in [1e-12, 0.001, 0.025, 0.4, 0.5, 0.9, 0.999] {
                    let (x, y) = inverse(a, b, lower, 1.0 - lower);
                    let (back, _) = tails(a, b, x, y);
                    assert!((back / lower - 1.0).abs() < 1e-7, "{a} {b} {lower}: {x} {back}");
                    assert!((x + y - 1.0).abs() < 1e-15);
                }
            }
        }
    }

    #[test]
    fn sixteen_nodes_integrate_polynomials_exactly() {
        let integral: f64 = legendre_nodes().iter().map(|(x, w)| w * x * x * x * x).sum();
        assert!((integral - 0.4).abs() < 1e-15);
        let length: f64 = legendre_nodes().iter().map(|(_, w)| w).sum();
        assert!((length - 2.0).abs() < 1e-14);
    }
}
