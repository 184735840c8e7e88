//! Corrections of p-values that are judged together.
//!
//! All three return the corrected values in the order given. A p-value outside 0..1 is clamped to
//! it, and NaN counts as 1, the value that claims nothing; scipy raises an error for both.

use super::length;

/// Applies the Bonferroni correction: each p-value times their number.
///
/// ```
/// use karat_metrics::stats::bonferroni;
///
/// assert_eq!(bonferroni(&[0.01, 0.4, 0.03]), [0.03, 1.0, 0.09]);
/// ```
#[must_use]
pub fn bonferroni(p: &[f64]) -> Vec<f64> {
    let count = length(p.len());
    p.iter().map(|p| (valid(*p) * count).min(1.0)).collect()
}

/// Applies Holm's correction: the smallest times m, the next times m − 1 and so on, never below an
/// earlier one. It keeps the chance of any false alarm below the level, as Bonferroni does, and never
/// rejects less.
///
/// ```
/// use karat_metrics::stats::holm;
///
/// assert_eq!(holm(&[0.01, 0.4, 0.03]), [0.03, 0.4, 0.06]);
/// ```
#[must_use]
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut corrected = vec![1.0; p.len()];
    let mut highest = 0.0;
    for (rank, index) in ascending(p).into_iter().enumerate() {
        highest = f64::max(highest, valid(p[index]) * length(p.len() - rank)).min(1.0);
        corrected[index] = highest;
    }
    corrected
}

/// Applies the Benjamini-Hochberg correction, which bounds the expected share of false alarms among
/// the alarms, for tests that are independent or positively related.
///
/// ```
/// use karat_metrics::stats::benjamini_hochberg;
///
/// assert_eq!(benjamini_hochberg(&[0.01, 0.04, 0.03]), [0.03, 0.04, 0.04]);
/// ```
#[must_use]
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let mut corrected = vec![1.0; p.len()];
    let mut lowest = 1.0;
    for (rank, index) in ascending(p).into_iter().enumerate().rev() {
        lowest = f64::min(lowest, valid(p[index]) * length(p.len()) / length(rank + 1));
        corrected[index] = lowest;
    }
    corrected
}

fn ascending(p: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|i, j| valid(p[*i]).total_cmp(&valid(p[*j])));
    order
}

fn valid(p: f64) -> f64 {
    if p.is_nan() { 1.0 } else { p.clamp(0.0, 1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_not_a_probability_claims_nothing() {
        for correct in [bonferroni, holm, benjamini_hochberg] {
            assert_eq!(correct(&[f64::NAN, -1.0, 7.0]), [1.0, 0.0, 1.0]);
            assert!(correct(&[]).is_empty());
        }
    }
}
