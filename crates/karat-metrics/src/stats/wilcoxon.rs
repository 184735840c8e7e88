//! Wilcoxon's signed-rank test for paired scores.
//!
//! Zero differences are dropped, and tied ones share their mean rank. The exact null distribution is
//! counted for the given ranks, ties included, rather than taken from a table for untied ones.

use super::length;
use super::paired::differences;
use super::permutation::tails_of_whole_weights;
use super::special::normal;
use crate::Undefined;

/// The method that gave a p-value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WilcoxonMethod {
    /// From the exact distribution over all signs.
    Exact,
    /// From the normal approximation, corrected for ties.
    Normal,
}

/// The result of a signed-rank test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wilcoxon {
    /// The smaller of the two sums of ranks.
    pub statistic: f64,
    /// The two-sided p-value.
    pub p: f64,
    /// The method that gave the p-value.
    pub method: WilcoxonMethod,
}

/// The largest number of non-zero differences for which [`wilcoxon_exact`] counts all signs.
const MAX_EXACT: usize = 400;

/// Runs the two-sided signed-rank test of a against b, choosing the method as scipy 1.17 does: exact
/// up to 13 pairs, and up to 50 if there are neither ties nor zeros; normal otherwise.
///
/// If a and b never differ, the statistic is 0 and p is 1 (scipy agrees from 2 to 13 pairs, raises an
/// error for one and returns p = NaN beyond).
///
/// ```
/// use karat_metrics::stats::{WilcoxonMethod, wilcoxon};
///
/// let test = wilcoxon(&[3.0, 5.0, 6.0, 8.0, 9.0], &[1.0, 2.0, 2.0, 3.0, 3.0])?;
/// assert_eq!((test.statistic, test.p, test.method), (0.0, 0.0625, WilcoxonMethod::Exact));
/// # Ok::<(), karat_metrics::Undefined>(())
/// ```
///
/// # Errors
/// If the lists differ in length, are empty, or a difference is not finite.
pub fn wilcoxon(a: &[f64], b: &[f64]) -> Result<Wilcoxon, Undefined> {
    let ranks = Ranks::new(&differences(a, b)?)?;
    let plain = !ranks.tied && ranks.doubled.len() == a.len();
    if a.len() <= 13 || (plain && a.len() <= 50) { ranks.exact() } else { Ok(ranks.normal()) }
}

/// Runs the two-sided signed-rank test of a against b by the exact distribution, also with ties.
/// (scipy's `method="exact"` uses the distribution without ties, and finds p = 0.375 below.)
///
/// ```
/// use karat_metrics::stats::wilcoxon_exact;
///
/// let test = wilcoxon_exact(&[1.0, 1.0, 2.0, -1.0], &[0.0; 4])?;
/// assert_eq!((test.statistic, test.p), (2.0, 0.5));
/// # Ok::<(), karat_metrics::Undefined>(())
/// ```
///
/// # Errors
/// As [`wilcoxon`], and if more than 400 pairs differ.
pub fn wilcoxon_exact(a: &[f64], b: &[f64]) -> Result<Wilcoxon, Undefined> {
    Ranks::new(&differences(a, b)?)?.exact()
}

struct Ranks {
    /// Twice the rank of each non-zero difference by size: whole even where a tie gives a half.
    doubled: Vec<usize>,
    /// Sums of doubled ranks of the positive and of the negative differences.
    positive: usize,
    negative: usize,
    /// Σ (t³ − t) over the groups of t tied differences.
    tie_term: f64,
    tied: bool,
}

impl Ranks {
    fn new(differences: &[f64]) -> Result<Ranks, Undefined> {
        if differences.is_empty() {
            return Err(Undefined("no pairs"));
        }
        let mut sorted: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
        sorted.sort_unstable_by(|x, y| x.abs().total_cmp(&y.abs()));
        let mut ranks = Ranks {
            doubled: Vec::with_capacity(sorted.len()),
            positive: 0,
            negative: 0,
            tie_term: 0.0,
            tied: false,
        };
        for group in sorted.chunk_by(|x, y| x.abs() == y.abs()) {
            let before = ranks.doubled.len();
            let doubled = 2 * before + group.len() + 1;
            let size = length(group.len());
            ranks.tie_term += size * size * size - size;
            ranks.tied |= group.len() > 1;
            for difference in group {
                ranks.doubled.push(doubled);
                *(if *difference > 0.0 { &mut ranks.positive } else { &mut ranks.negative }) +=
                    doubled;
            }
        }
        Ok(ranks)
    }

    fn statistic(&self) -> f64 {
        0.5 * length(self.positive.min(self.negative))
    }

    fn exact(&self) -> Result<Wilcoxon, Undefined> {
        if self.doubled.len() > MAX_EXACT {
            return Err(Undefined("more than 400 differences to count out"));
        }
        let (at_least, at_most) = tails_of_whole_weights(&self.doubled, self.positive);
        let p = (2.0 * at_least.min(at_most)).min(1.0);
        Ok(Wilcoxon { statistic: self.statistic(), p, method: WilcoxonMethod::Exact })
    }

    fn normal(&self) -> Wilcoxon {
        let n = length(self.doubled.len());
        let variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0 - self.tie_term / 48.0;
        let distance = (0.5 * length(self.positive) - n * (n + 1.0) / 4.0).abs();
        let p = if variance > 0.0 {
            (2.0 * normal::upper_tail(distance / variance.sqrt())).min(1.0)
        } else {
            1.0
        };
        Wilcoxon { statistic: self.statistic(), p, method: WilcoxonMethod::Normal }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exact_distribution_and_its_approximation_agree_for_many_pairs() {
        let a: Vec<f64> = (0..200).map(|i| f64::from((i * 37) % 101) / 10.0).collect();
        let b: Vec<f64> = (0..200).map(|i| f64::from((i * 53 + 7) % 103) / 10.0).collect();
        let (normal, exact) = (wilcoxon(&a, &b).unwrap(), wilcoxon_exact(&a, &b).unwrap());
        assert_eq!((normal.method, exact.method), (WilcoxonMethod::Normal, WilcoxonMethod::Exact));
        assert_eq!(normal.statistic, exact.statistic);
        assert!((normal.p - exact.p).abs() < 0.005, "{normal:?} {exact:?}");
    }

    #[test]
    fn plain_ranks_are_counted_up_to_fifty_pairs_and_others_up_to_thirteen() {
        let method = |differences: &[f64]| {
            wilcoxon(differences, &vec![0.0; differences.len()]).unwrap().method
        };
        let plain: Vec<f64> = (1..=51).map(f64::from).collect();
        assert_eq!(method(&plain[..50]), WilcoxonMethod::Exact);
        assert_eq!(method(&plain), WilcoxonMethod::Normal);
        let tied = [1.0; 14];
        assert_eq!(method(&tied[..13]), WilcoxonMethod::Exact);
        assert_eq!(method(&tied), WilcoxonMethod::Normal);
    }

    #[test]
    fn identical_pairs_give_no_evidence() {
        for n in [1, 13, 14, 60] {
            let same = vec![0.5; n];
            let test = wilcoxon(&same, &same).unwrap();
            assert_eq!((test.statistic, test.p), (0.0, 1.0), "{n}");
            assert_eq!(wilcoxon_exact(&same, &same).unwrap().p, 1.0, "{n}");
        }
        assert_eq!(wilcoxon(&[], &[]), Err(Undefined("no pairs")));
        assert!(wilcoxon(&[f64::NAN], &[0.0]).is_err());
    }

    #[test]
    fn a_single_difference_among_zeros_is_as_in_scipy() {
        let one_of = |n: usize| {
            let mut differences = vec![0.0; n];
            differences[0] = 1.0;
            wilcoxon(&differences, &vec![0.0; n]).unwrap()
        };
        assert_eq!(one_of(1).p, 1.0);
        assert_eq!(one_of(13).p, 1.0);
        assert!((one_of(14).p - 0.31731050786291415).abs() < 1e-14);
        let ties = wilcoxon(&[1.0; 14], &[0.0; 14]).unwrap();
        assert!((ties.p - 0.0001828106329818348).abs() < 1e-16, "{ties:?}");
    }
}
