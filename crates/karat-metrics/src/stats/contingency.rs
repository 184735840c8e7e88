//! Tests on counts: McNemar for two systems on the same items, Fisher for two separate groups.

use super::real;
use super::special::binomial::hypergeometric_term;
use super::special::{beta, normal};
use crate::{Score, Undefined};

/// A chi-squared statistic with one degree of freedom and its p-value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChiSquared {
    /// The statistic.
    pub statistic: f64,
    /// The chance of one at least as large.
    pub p: f64,
}

/// Returns McNemar's exact two-sided p-value. Of the items on which two systems differ, `only_a` were
/// right under the first only and `only_b` under the second only. Without a difference it is 1.
///
/// ```
/// use karat_metrics::stats::mcnemar_exact;
///
/// assert!((mcnemar_exact(0, 10) - 2.0 / 1024.0).abs() < 1e-15);
/// assert_eq!(mcnemar_exact(0, 0), 1.0);
/// ```
#[must_use]
pub fn mcnemar_exact(only_a: u64, only_b: u64) -> f64 {
    // With one more on one side, each tail is a half.
    if only_a.abs_diff(only_b) <= 1 {
        return 1.0;
    }
    let (fewer, more) = (real(only_a.min(only_b)), real(only_a.max(only_b)));
    // P(X <= fewer) for X binomial with p = 1/2 and fewer + more trials.
    let (tail, _) = beta::tails(more, fewer + 1.0, 0.5, 0.5);
    (2.0 * tail).min(1.0)
}

/// Runs McNemar's chi-squared test with Edwards' continuity correction. An approximation for large
/// counts; prefer [`mcnemar_exact`].
///
/// ```
/// use karat_metrics::stats::mcnemar_chi_squared;
///
/// let test = mcnemar_chi_squared(0, 10)?;
/// assert_eq!(test.statistic, 8.1);
/// assert!((test.p - 0.004_426_525_857_919_834).abs() < 1e-14);
/// assert!(mcnemar_chi_squared(0, 0).is_err());
/// # Ok::<(), karat_metrics::Undefined>(())
/// ```
///
/// # Errors
/// If both counts are 0. (statsmodels returns a statistic of infinity and p = 0.)
pub fn mcnemar_chi_squared(only_a: u64, only_b: u64) -> Result<ChiSquared, Undefined> {
    if only_a == 0 && only_b == 0 {
        return Err(Undefined("the two never differ"));
    }
    let excess = (real(only_a.abs_diff(only_b)) - 1.0).abs();
    let statistic = excess * excess / (real(only_a) + real(only_b));
    Ok(ChiSquared { statistic, p: (2.0 * normal::upper_tail(statistic.sqrt())).min(1.0) })
}

/// Returns Fisher's exact two-sided p-value for x1 of n1 against x2 of n2: the chance, with all margins
/// fixed, of a table that is at most as likely as the observed one. It is 1 if one group is empty, or
/// if all trials had the same outcome.
///
/// ```
/// use karat_metrics::stats::fisher_exact;
///
/// assert!((fisher_exact(5, 5, 0, 5)? - 2.0 / 252.0).abs() < 1e-15);
/// assert_eq!(fisher_exact(3, 3, 2, 2), Ok(1.0));
/// # Ok::<(), karat_metrics::Undefined>(())
/// ```
///
/// # Errors
/// If a count exceeds its total, both groups are empty (scipy returns 1), or there are more than
/// 10^12 trials: summing takes too long there, and [`newcombe`](super::newcombe) serves as well.
pub fn fisher_exact(x1: u64, n1: u64, x2: u64, n2: u64) -> Score {
    if x1 > n1 || x2 > n2 {
        return Err(Undefined("more successes than trials"));
    }
    let total = n1.checked_add(n2).filter(|total| *total <= 1_000_000_000_000);
    match total {
        None => return Err(Undefined("too many trials for an exact sum")),
        Some(0) => return Err(Undefined("no trials")),
        Some(_) => {}
    }
    let drawn = x1 + x2;
    let tables = Tables { good: n1, bad: n2, drawn };
    let limit = tables.term(x1) * (1.0 + 1e-10);
    let mode = tables.mode();
    let (left_end, right_start) = if x1 <= mode {
        (Some(x1), tables.first_from(mode + 1, limit))
    } else {
        (tables.last_up_to(mode, limit), Some(x1))
    };
    if tables.term(mode) <= limit {
        return Ok(1.0);
    }
    let left = left_end.map_or(0.0, |from| tables.sum_downwards(from));
    let right = right_start.map_or(0.0, |from| tables.sum_upwards(from));
    Ok((left + right).min(1.0))
}

/// The tables with the margins of the observed one, identified by their first cell.
struct Tables {
    good: u64,
    bad: u64,
    drawn: u64,
}

impl Tables {
    fn lowest(&self) -> u64 {
        self.drawn.saturating_sub(self.bad)
    }

    fn highest(&self) -> u64 {
        self.drawn.min(self.good)
    }

    /// The likeliest first cell: probabilities rise up to it and fall after it.
    fn mode(&self) -> u64 {
        let product = u128::from(self.drawn + 1) * u128::from(self.good + 1);
        let mode = product / u128::from(self.good + self.bad + 2);
        u64::try_from(mode).unwrap_or(u64::MAX).clamp(self.lowest(), self.highest())
    }

    fn term(&self, cell: u64) -> f64 {
        hypergeometric_term(real(cell), real(self.good), real(self.bad), real(self.drawn))
    }

    /// The first cell at or above `from` (itself above the mode) whose probability is within the limit.
    fn first_from(&self, from: u64, limit: f64) -> Option<u64> {
        let (mut low, mut high) = (from, self.highest() + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.term(middle) <= limit { high = middle } else { low = middle + 1 }
        }
        (low <= self.highest()).then_some(low)
    }

    /// The last cell up to `to` (itself at most the mode) whose probability is within the limit.
    fn last_up_to(&self, to: u64, limit: f64) -> Option<u64> {
        let (mut low, mut high) = (self.lowest(), to + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.term(middle) <= limit { low = middle + 1 } else { high = middle }
        }
        low.checked_sub(1).filter(|cell| *cell >= self.lowest())
    }

    fn sum_upwards(&self, from: u64) -> f64 {
        let mut term = self.term(from);
        let mut sum = term;
        for cell in from..self.highest() {
            term *= real(self.good - cell) / real(cell + 1) * real(self.drawn - cell)
                / real((self.bad + cell + 1) - self.drawn);
            sum += term;
            // Also if both are 0: what is smaller than any number stays so.
            if term <= 1e-17 * sum {
                break;
            }
        }
        sum
    }

    fn sum_downwards(&self, from: u64) -> f64 {
        let mut term = self.term(from);
        let mut sum = term;
        for cell in (self.lowest()..from).rev() {
            term *= real(cell + 1) / real(self.good - cell)
                * (real((self.bad + cell + 1) - self.drawn) / real(self.drawn - cell));
            sum += term;
            if term <= 1e-17 * sum {
                break;
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All tables with these margins, summed one by one.
    fn fisher_by_listing(x1: u64, n1: u64, x2: u64, n2: u64) -> f64 {
        let tables = Tables { good: n1, bad: n2, drawn: x1 + x2 };
        let limit = tables.term(x1) * (1.0 + 1e-10);
        (tables.lowest()..=tables.highest())
            .map(|cell| tables.term(cell))
            .filter(|p| *p <= limit)
            .sum()
    }

    #[test]
    fn fisher_equals_listing_all_tables() {
        for n1 in 0..9 {
            for n2 in 0..9 {
                for x1 in 0..=n1 {
                    for x2 in 0..=n2 {
                        match fisher_exact(x1, n1, x2, n2) {
                            Ok(p) => {
                                let listed = fisher_by_listing(x1, n1, x2, n2);
                                assert!(
                                    (p - listed).abs() < 1e-12,
                                    "{x1}/{n1} {x2}/{n2}: {p} {listed}"
                                );
                            }
                            Err(_) => assert_eq!(n1 + n2, 0),
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn huge_tables_are_answered_or_rejected() {
        assert!(fisher_exact(u64::MAX, u64::MAX, u64::MAX, u64::MAX).is_err());
        assert!(fisher_exact(2, 1, 0, 1).is_err());
        let p = fisher_exact(250_000_000_000, 500_000_000_000, 249_999_000_000, 500_000_000_000)
            .unwrap();
        let z = 1e6 / 1e12f64.sqrt() * 2.0;
        let normal = 2.0 * normal::upper_tail(z);
        assert!((p - normal).abs() < 1e-4, "{p} {normal}");
    }

    #[test]
    fn tables_too_unlikely_for_a_number_are_answered_at_once() {
        let half = 500_000_000_000;
        // Each tail has 10^11 tables, and all of them round to 0.
        assert_eq!(fisher_exact(400_000_000_000, half, 100_000_000_000, half), Ok(0.0));
        assert_eq!(fisher_exact(100_000_000_000, half, 400_000_000_000, half), Ok(0.0));
    }

    #[test]
    fn tables_without_a_second_group_or_outcome_show_nothing() {
        for (x1, n1, x2, n2) in [(3, 3, 2, 2), (0, 0, 2, 7), (0, 5, 0, 0), (0, 4, 0, 9)] {
            assert_eq!(fisher_exact(x1, n1, x2, n2), Ok(1.0), "{x1}/{n1} {x2}/{n2}");
        }
        assert_eq!(fisher_exact(0, 0, 0, 0), Err(Undefined("no trials")));
    }

    #[test]
    fn mcnemar_copes_with_any_counts() {
        assert_eq!(mcnemar_exact(0, 0), 1.0);
        let test = mcnemar_chi_squared(5, 5).unwrap();
        assert!(
            (test.statistic - 0.1).abs() < 1e-15 && (test.p - 0.7518296340458492).abs() < 1e-14
        );
        let single = ChiSquared { statistic: 0.0, p: 1.0 };
        assert_eq!(mcnemar_chi_squared(1, 0), Ok(single));
        assert!((mcnemar_exact(0, 1) - 1.0).abs() < 1e-15);
        assert!((mcnemar_exact(0, 10) - 2.0 / 1024.0).abs() < 1e-15);
        assert_eq!(mcnemar_exact(0, u64::MAX), 0.0);
        assert!(mcnemar_exact(u64::MAX, u64::MAX - 1) > 0.999);
        assert!(mcnemar_chi_squared(0, 0).is_err());
        assert!(mcnemar_chi_squared(u64::MAX, u64::MAX).unwrap().p > 0.999);
    }
}
