//! Metrics of repeated runs of one task: success rate, at least one success, successes only.
//!
//! From `successes` among `n` runs, [`pass_at_k`] and [`pass_hat_k`] are unbiased for drawing k runs
//! without replacement; average them over tasks. Neither is defined for k above n.

use super::real;
use super::special::binomial::hypergeometric_term;
use crate::metric::{Better, Metric, MetricKind, Rank, Unit};
use crate::{Score, Undefined};

/// The metrics of this family.
pub const METRICS: &[Metric] = &[
    Metric {
        id: "reliability",
        summary: "The share of successful runs",
        formula: "successful runs ÷ runs",
        better: Better::Higher,
        unit: Unit::Share,
        kind: MetricKind::Rate,
        rank: Some(Rank::new(20)),
        undefined: "no runs",
        ..Metric::DEFAULT
    },
    Metric {
        id: "pass^k",
        summary: "The chance that k runs of a task all succeed",
        formula: "C(c, k) ÷ C(n, k) for c successes in n runs, averaged over tasks",
        better: Better::Higher,
        unit: Unit::Share,
        undefined: "fewer than k runs",
        notes: "`pass^1` is the plain success rate. Unlike (c ÷ n)^k it is unbiased.",
        ..Metric::DEFAULT
    },
    Metric {
        id: "pass@k",
        summary: "The chance that at least one of k runs of a task succeeds",
        formula: "1 − C(n − c, k) ÷ C(n, k) for c successes in n runs, averaged over tasks",
        better: Better::Higher,
        unit: Unit::Share,
        undefined: "fewer than k runs",
        notes: "The estimator of the HumanEval paper. It rises with k, so it flatters an unreliable \
                system: read it together with `pass^k`.",
        ..Metric::DEFAULT
    },
];

/// Returns successes over runs.
///
/// ```
/// assert_eq!(karat_metrics::stats::reliability(3, 4), Ok(0.75));
/// ```
///
/// # Errors
/// If `n` is 0, or there are more successes than runs.
pub fn reliability(successes: u64, n: u64) -> Score {
    checked(n, successes, 1)?;
    Ok(real(successes) / real(n))
}

/// Returns the chance that at least one of k runs succeeds: 1 − C(n−c, k) / C(n, k).
///
/// ```
/// use karat_metrics::stats::pass_at_k;
///
/// // 2 of 4 runs succeeded; of the six pairs of runs, one has no success.
/// assert!((pass_at_k(4, 2, 2)? - 5.0 / 6.0).abs() < 1e-15);
/// # Ok::<(), karat_metrics::Undefined>(())
/// ```
///
/// # Errors
/// If k is 0 or above n, or there are more successes than runs.
pub fn pass_at_k(n: u64, successes: u64, k: u64) -> Score {
    let failures = checked(n, successes, k)?;
    Ok(1.0 - all_from(failures, n, k))
}

/// Returns the chance that k runs all succeed: C(c, k) / C(n, k).
///
/// ```
/// use karat_metrics::stats::pass_hat_k;
///
/// assert!((pass_hat_k(4, 2, 2)? - 1.0 / 6.0).abs() < 1e-15);
/// # Ok::<(), karat_metrics::Undefined>(())
/// ```
///
/// # Errors
/// If k is 0 or above n, or there are more successes than runs.
pub fn pass_hat_k(n: u64, successes: u64, k: u64) -> Score {
    checked(n, successes, k)?;
    Ok(all_from(successes, n, k))
}

/// The number of failures, if the arguments are consistent.
fn checked(n: u64, successes: u64, k: u64) -> Result<u64, Undefined> {
    if n == 0 {
        return Err(Undefined("no runs"));
    }
    if k == 0 {
        return Err(Undefined("k must be at least 1"));
    }
    if k > n {
        return Err(Undefined("fewer than k runs"));
    }
    n.checked_sub(successes).ok_or(Undefined("more successes than runs"))
}

/// The chance that k draws from n, of which `chosen` are of one kind, are all of that kind.
fn all_from(chosen: u64, n: u64, k: u64) -> f64 {
    if k > chosen {
        return 0.0;
    }
    // C(chosen, k)/C(n, k) is a product of k factors, or with the roles exchanged of n − chosen.
    let others = n - chosen;
    let (factors, top) = if k <= others { (k, chosen) } else { (others, n - k) };
    if factors > 10_000 {
        return hypergeometric_term(real(k), real(chosen), real(others), real(k)).min(1.0);
    }
    (0..factors).fold(1.0, |product, i| product * (real(top - i) / real(n - i)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimators_equal_counting_all_choices_of_runs() {
        for n in 1..=10u64 {
            for successes in 0..=n {
                for k in 1..=n {
                    let (mut all, mut any, mut total) = (0.0, 0.0, 0.0);
                    for choice in 0u64..1 << n {
                        if u64::from(choice.count_ones()) != k {
                            continue;
                        }
                        let hits = u64::from((choice & ((1 << successes) - 1)).count_ones());
                        total += 1.0;
                        all += f64::from(u8::from(hits == k));
                        any += f64::from(u8::from(hits > 0));
                    }
                    let near = |a: f64, b: f64| (a - b).abs() < 1e-14;
                    assert!(near(pass_hat_k(n, successes, k).unwrap(), all / total));
                    assert!(near(pass_at_k(n, successes, k).unwrap(), any / total));
                }
            }
        }
    }

    #[test]
    fn a_question_about_more_runs_than_there_were_is_undefined() {
        assert_eq!(pass_hat_k(3, 3, 4), Err(Undefined("fewer than k runs")));
        assert_eq!(pass_at_k(3, 1, 0), Err(Undefined("k must be at least 1")));
        assert_eq!(pass_at_k(0, 0, 1), Err(Undefined("no runs")));
        assert_eq!(pass_at_k(3, 4, 1), Err(Undefined("more successes than runs")));
        assert_eq!(reliability(0, 0), Err(Undefined("no runs")));
    }

    #[test]
    fn huge_counts_are_answered_at_once() {
        let n = u64::MAX;
        assert_eq!(pass_hat_k(n, n, n), Ok(1.0));
        assert_eq!(pass_hat_k(n, n / 2, n / 2 + 1), Ok(0.0));
        // A million runs out of 2^64 are as good as independent.
        let share = pass_hat_k(n, n - n / 1_000_000, 1_000_000).unwrap();
        assert!((share - libm::exp(-1.0)).abs() < 1e-5, "{share}");
        assert!((pass_at_k(n, n / 1_000_000, 1_000_000).unwrap() - (1.0 - share)).abs() < 1e-12);
    }
}
