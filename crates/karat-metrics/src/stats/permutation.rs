//! The sign-flip test: if two systems are equally good, each paired difference could equally well
//! have had the other sign.
//!
//! Exact wherever that is affordable: by counting when all differences are whole multiples of a
//! common unit (0/1 outcomes, recalls with small denominators), whatever their number, and else by
//! listing all signs of up to a given number of differences. Beyond that, seeded random signs.
//! Sums that differ by rounding only are ties and count as "as extreme", which cannot make a
//! difference look more significant than it is.

use super::random::Draws;
use super::special::beta;
use super::{MAX_RESAMPLES, all_finite, length, real};
use crate::Undefined;

/// The outcomes that count as extreme.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Alternative {
    /// A difference in either direction.
    #[default]
    TwoSided,
    /// A mean difference above zero.
    Greater,
    /// A mean difference below zero.
    Less,
}

/// The result of a permutation test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PermutationTest {
    /// The p-value, never 0.
    pub p: f64,
    /// `true` if all signs were considered.
    pub exact: bool,
    /// The number of random sign patterns that were drawn; 0 if exact.
    pub resamples: u64,
}

/// The largest number of differences whose signs are all listed, whatever the caller allows: 2^40
/// sums, in two halves of 2^20.
pub const MAX_ENUMERATED: u32 = 40;

/// Cells times weights that counting may touch: about a tenth of a second.
const MAX_COUNTING_WORK: usize = 100_000_000;

/// Cells that counting may fill, twice: 64 MiB. With more of them, the work allows few differences only.
const MAX_CELLS: usize = 1 << 22;

/// Differences this much smaller than the largest are taken for rounding, and count as zero.
const ROUNDING: f64 = 1e-12;

/// 2^-66: as many differences as fit in memory, of any size, do not overflow when they are summed.
const SMALLER: f64 = f64::from_bits((1023 - 66) << 52);

/// Runs the sign-flip test on paired differences. Zero differences are ignored; if there are no
/// others, p is 1. Their scale does not matter: the largest numbers are scaled down before they are summed.
///
/// `max_exact` is the largest number of non-zero differences whose signs are all listed (at most
/// [`MAX_ENUMERATED`]; 30 takes milliseconds, 40 a fraction of a second) when counting does not
/// apply. `resamples` (1 to a million) and `seed` serve when neither does; p is then
/// (extreme + 1) / (resamples + 1), the observed signs being one of the possible patterns.
///
/// ```
/// use karat_metrics::stats::{Alternative, sign_flip};
///
/// // Better on four items, worse on none: 1 of 16 sign patterns is as extreme.
/// let test = sign_flip(&[0.5, 0.25, 0.5, 1.0], Alternative::Greater, 30, 10_000, 0)?;
/// assert_eq!((test.p, test.exact), (1.0 / 16.0, true));
/// # Ok::<(), karat_metrics::Undefined>(())
/// ```
///
/// # Errors
/// If the list is empty, a difference is not finite, or random signs are needed and `resamples` is 0
/// or above a million.
pub fn sign_flip(
    differences: &[f64],
    alternative: Alternative,
    max_exact: u32,
    resamples: u64,
    seed: u64,
) -> Result<PermutationTest, Undefined> {
    all_finite(differences)?;
    if differences.is_empty() {
        return Err(Undefined("no differences"));
    }
    let largest = differences.iter().map(|d| d.abs()).fold(0.0, f64::max);
    let mut present: Vec<f64> =
        differences.iter().copied().filter(|d| d.abs() > ROUNDING * largest).collect();
    if largest * length(present.len()) > f64::MAX / 4.0 {
        present.iter_mut().for_each(|difference| *difference *= SMALLER);
    }
    let exact = |at_least: f64, at_most: f64| PermutationTest {
        p: alternative.p(at_least, at_most).clamp(f64::MIN_POSITIVE, 1.0),
        exact: true,
        resamples: 0,
    };
    if present.is_empty() {
        return Ok(exact(1.0, 1.0));
    }
    if let Some((at_least, at_most)) = tails_by_counting(&present) {
        return Ok(exact(at_least, at_most));
    }
    if present.len() <= max_exact.min(MAX_ENUMERATED) as usize {
        let (at_least, at_most) = tails_by_listing(&present);
        return Ok(exact(at_least, at_most));
    }
    match resamples {
        0 => Err(Undefined("no resamples")),
        count if count > u64::from(MAX_RESAMPLES) => {
            Err(Undefined("more than a million resamples"))
        }
        _ => Ok(PermutationTest {
            p: by_random_signs(&present, alternative, resamples, seed),
            exact: false,
            resamples,
        }),
    }
}

impl Alternative {
    /// The p-value, from the chances of a sum at least and at most as large as the observed one.
    fn p(self, at_least: f64, at_most: f64) -> f64 {
        match self {
            Alternative::Greater => at_least,
            Alternative::Less => at_most,
            Alternative::TwoSided => 2.0 * at_least.min(at_most),
        }
    }
}

/// Exact tails, if the sizes are whole multiples of a unit and few enough to count.
fn tails_by_counting(differences: &[f64]) -> Option<(f64, f64)> {
    let positive = |weights: &[usize]| -> usize {
        differences.iter().zip(weights).filter(|(d, _)| **d > 0.0).map(|(_, weight)| weight).sum()
    };
    let weights = whole_multiples(differences)?;
    if weights.iter().all(|weight| *weight == weights[0]) {
        let ups = differences.iter().filter(|d| **d > 0.0).count();
        return Some(fair_coin_tails(ups as u64, differences.len() as u64));
    }
    let total = weights.iter().try_fold(0usize, |sum, weight| sum.checked_add(*weight))?;
    if total.checked_mul(weights.len())? > MAX_COUNTING_WORK {
        return None;
    }
    if total > MAX_CELLS {
        // At most 23 of them, whose signs are listed faster. The tails are the same: both are exact.
        let whole =
            differences.iter().zip(&weights).map(|(d, weight)| length(*weight).copysign(*d));
        return Some(tails_by_listing(&whole.collect::<Vec<f64>>()));
    }
    Some(tails_of_whole_weights(&weights, positive(&weights)))
}

/// P(X >= ups) and P(X <= ups) for X heads in n tosses.
fn fair_coin_tails(ups: u64, n: u64) -> (f64, f64) {
    let tail = |k: u64| match k {
        0 => 1.0,
        // More heads than tails, whose chance is that of the opposite.
        _ if k == n - k + 1 => 0.5,
        _ => beta::tails(real(k), real(n - k + 1), 0.5, 0.5).0,
    };
    (tail(ups), tail(n - ups))
}

/// The sizes as whole multiples of a common unit, if there is one that is not too small.
///
/// The unit is sought as a fraction of the smallest size: 1/3, 1/2 and 2/3 are 2, 3 and 4 halves of
/// 1/3. The tolerance leaves room for the rounding in scores like 0.3 − 0.2.
fn whole_multiples(differences: &[f64]) -> Option<Vec<usize>> {
    const MAX_PARTS: u32 = 2520;
    const MAX_RATIO: f64 = 1e8;
    let smallest = differences.iter().map(|d| d.abs()).fold(f64::INFINITY, f64::min);
    let ratios: Vec<f64> = differences.iter().map(|d| d.abs() / smallest).collect();
    if ratios.iter().any(|ratio| *ratio > MAX_RATIO) {
        return None;
    }
    (1..=MAX_PARTS).map(f64::from).find_map(|parts| {
        ratios
            .iter()
            .map(|ratio| {
                let multiple = (ratio * parts).round();
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "below 1e12"
                )]
                let whole = multiple as usize;
                ((ratio * parts - multiple).abs() <= 1e-9 * multiple.max(1.0)).then_some(whole)
            })
            .collect()
    })
}

/// P(S >= observed) and P(S <= observed), where S is the sum of the weights whose coin shows heads.
pub(super) fn tails_of_whole_weights(weights: &[usize], observed: usize) -> (f64, f64) {
    let total: usize = weights.iter().sum();
    let mut chance = vec![0.0; total + 1];
    // A second table, so that several cells are computed at once.
    let mut next = chance.clone();
    chance[0] = 1.0;
    let mut reached = 0;
    for weight in weights {
        reached += weight;
        let (low, high) = next[..=reached].split_at_mut(*weight);
        let (tails, heads) = (&chance[..=reached], &chance[..=reached - weight]);
        for (cell, tails) in low.iter_mut().zip(tails) {
            *cell = 0.5 * tails;
        }
        for ((cell, tails), heads) in high.iter_mut().zip(&tails[*weight..]).zip(heads) {
            *cell = 0.5 * (tails + heads);
        }
        std::mem::swap(&mut chance, &mut next);
    }
    let at_least: f64 = chance[observed.min(total)..].iter().rev().sum();
    let at_most: f64 = chance[..=observed.min(total)].iter().sum();
    (at_least.min(1.0), at_most.min(1.0))
}

/// Exact tails over all signs of at most [`MAX_ENUMERATED`] differences: every sum is one of the first
/// half plus one of the second, so sorting the second half's sums saves listing the pairs.
fn tails_by_listing(differences: &[f64]) -> (f64, f64) {
    let (observed, tolerance) = observed_sum(differences);
    let (first, second) = differences.split_at(differences.len() / 2);
    let (mut first, mut second) = (signed_sums(first), signed_sums(second));
    first.sort_unstable_by(f64::total_cmp);
    second.sort_unstable_by(f64::total_cmp);
    let (mut at_least, mut at_most) = (0u64, 0u64);
    // As the sums of the first half rise, the matching bounds in the second fall.
    let (mut from, mut up_to) = (second.len(), second.len());
    for sum in &first {
        while from > 0 && sum + second[from - 1] >= observed - tolerance {
            from -= 1;
        }
        while up_to > 0 && sum + second[up_to - 1] > observed + tolerance {
            up_to -= 1;
        }
        at_least += (second.len() - from) as u64;
        at_most += up_to as u64;
    }
    let patterns = length(first.len()) * length(second.len());
    (real(at_least) / patterns, real(at_most) / patterns)
}

fn signed_sums(differences: &[f64]) -> Vec<f64> {
    differences.iter().fold(vec![0.0], |sums, difference| {
        sums.iter().flat_map(|sum| [sum - difference, sum + difference]).collect()
    })
}

fn by_random_signs(
    differences: &[f64],
    alternative: Alternative,
    resamples: u64,
    seed: u64,
) -> f64 {
    let (observed, tolerance) = observed_sum(differences);
    let mut draws = Draws::from_seed(seed);
    let mut extreme = 0u64;
    for _ in 0..resamples {
        let mut sum = 0.0;
        for block in differences.chunks(64) {
            let mut signs = draws.bits();
            for difference in block {
                // The sign bit is flipped rather than tested: a random branch costs more.
                sum += f64::from_bits(difference.to_bits() ^ (signs << 63));
                signs >>= 1;
            }
        }
        let counts = match alternative {
            Alternative::TwoSided => sum.abs() >= observed.abs() - tolerance,
            Alternative::Greater => sum >= observed - tolerance,
            Alternative::Less => sum <= observed + tolerance,
        };
        extreme += u64::from(counts);
    }
    (real(extreme) + 1.0) / (real(resamples) + 1.0)
}

/// The sum, and the largest deviation of another sum of the same sizes by rounding alone. The
/// tolerance is relative to the sizes and not to the sum, which may be 0 up to noise.
fn observed_sum(differences: &[f64]) -> (f64, f64) {
    let sizes: f64 = differences.iter().map(|d| d.abs()).sum();
    (differences.iter().sum(), 1e-11 * sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hundreds_of_outcomes_of_zero_and_one_are_exact() {
        let differences: Vec<f64> = (0..400).map(|i| f64::from(i % 3 - 1)).collect();
        let test = sign_flip(&differences, Alternative::TwoSided, 0, 0, 0).unwrap();
        assert!(test.exact);
        assert!((test.p - super::super::mcnemar_exact(133, 133)).abs() < 1e-12, "{test:?}");
    }

    #[test]
    fn one_difference_more_in_one_direction_is_chance_to_the_last_digit() {
        for n in [1usize, 3, 5, 21, 999] {
            let differences: Vec<f64> =
                (0..n).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
            let p = |alternative| sign_flip(&differences, alternative, 0, 0, 0).unwrap().p;
            assert_eq!((p(Alternative::TwoSided), p(Alternative::Greater)), (1.0, 0.5), "{n}");
        }
    }

    #[test]
    fn units_are_found_through_rounding() {
        let third = 1.0 / 3.0;
        assert_eq!(whole_multiples(&[third, -0.5, 2.0 * third, 1.0]), Some(vec![2, 3, 4, 6]));
        assert_eq!(whole_multiples(&[0.3 - 0.2, 0.4 - 0.1]), Some(vec![1, 3]));
        assert_eq!(whole_multiples(&[1.0, std::f64::consts::SQRT_2]), None);
        assert_eq!(whole_multiples(&[1e-300, 1e300]), None);
    }

    #[test]
    fn noise_where_there_is_no_difference_does_not_matter() {
        let clean = [1.0, 0.0, -0.5, 0.0, 1.0, 0.5];
        let noisy = [1.0, (0.1 + 0.2) - 0.3, -0.5, 0.3 - (0.1 + 0.2), 1.0, 0.5];
        for alternative in [Alternative::TwoSided, Alternative::Greater, Alternative::Less] {
            let test = |differences: &[f64]| sign_flip(differences, alternative, 0, 0, 0);
            assert_eq!(test(&clean), test(&noisy));
        }
    }

    #[test]
    fn listing_and_counting_agree() {
        let differences = [0.1, -0.25, 0.5, 0.05, -0.3, 0.15, 0.2, -0.05, 0.35];
        let (at_least, at_most) = tails_by_listing(&differences);
        let counted = tails_by_counting(&differences).unwrap();
        assert!((at_least - counted.0).abs() < 1e-12 && (at_most - counted.1).abs() < 1e-12);
    }

    #[test]
    fn random_signs_come_near_the_exact_answer() {
        let differences: Vec<f64> =
            (1..=30).map(|i| f64::from(i).sqrt() * if i % 3 == 0 { -1.0 } else { 1.0 }).collect();
        for alternative in [Alternative::TwoSided, Alternative::Greater, Alternative::Less] {
            let exact = sign_flip(&differences, alternative, 30, 0, 0).unwrap();
            let random = sign_flip(&differences, alternative, 0, 100_000, 5).unwrap();
            assert!(exact.exact && !random.exact);
            assert!((exact.p - random.p).abs() < 0.005, "{alternative:?}: {exact:?} {random:?}");
        }
    }

    #[test]
    fn the_scale_of_the_differences_does_not_matter() {
        let sizes = [1.5, 1.123_456_7, 1.7];
        for scale in [5e-324, 1e-320, 1e-200, 1.0, 1e308] {
            let differences = sizes.map(|size| size * scale);
            // Better on all three items: 1 of 8 patterns.
            let listed = sign_flip(&differences, Alternative::Greater, 30, 0, 0).unwrap();
            assert_eq!((listed.p, listed.exact), (0.125, true), "{scale}");
            let drawn = sign_flip(&differences, Alternative::Greater, 0, 9_999, 0).unwrap();
            assert!(drawn.exact || (drawn.p - 0.125).abs() < 0.02, "{scale}: {drawn:?}");
        }
        let mixed = [f64::MAX, -f64::MAX, f64::MAX, 1.0];
        let test = sign_flip(&mixed, Alternative::Greater, 30, 0, 0).unwrap();
        assert!((test.p - 0.5).abs() < 1e-15, "{test:?}");
    }

    #[test]
    fn a_few_whole_differences_of_very_different_sizes_are_listed() {
        // Counting would fill a table of 49,999,999 cells.
        let test = sign_flip(&[1.0, 49_999_998.0], Alternative::Greater, 0, 0, 0).unwrap();
        assert_eq!((test.p, test.exact), (0.25, true));
        let sizes = [1_009].into_iter().chain((0..11).map(|i| 600_000 + i * 7_919));
        let signed = sizes.zip(0..).map(|(size, i)| if i % 4 == 1 { -size } else { size });
        let differences: Vec<f64> = signed.map(f64::from).collect();
        let weights = whole_multiples(&differences).unwrap();
        let ups = differences.iter().zip(&weights).filter(|(d, _)| **d > 0.0);
        let observed = ups.map(|(_, weight)| *weight).sum();
        assert!(weights.iter().sum::<usize>() > MAX_CELLS);
        let counted = tails_of_whole_weights(&weights, observed);
        assert_eq!(tails_by_counting(&differences), Some(counted));
    }

    #[test]
    fn requests_that_cannot_be_met_are_rejected() {
        let irregular = [1.0, std::f64::consts::PI];
        for resamples in [0, u64::MAX] {
            assert!(sign_flip(&irregular, Alternative::Less, 0, resamples, 0).is_err());
        }
        assert!(sign_flip(&[], Alternative::Less, 0, 1, 0).is_err());
        assert!(sign_flip(&[f64::NAN], Alternative::Less, 0, 1, 0).is_err());
    }

    #[test]
    fn an_extreme_result_is_never_impossible() {
        let wins = vec![1.0; 5_000];
        assert!(sign_flip(&wins, Alternative::Greater, 0, 0, 0).unwrap().p > 0.0);
        // 100 wins of irregular size: no random pattern will ever reach that sum.
        let irregular: Vec<f64> = (1..=100).map(|i| f64::from(i).sqrt()).collect();
        let test = sign_flip(&irregular, Alternative::Greater, 0, 999, 0).unwrap();
        assert_eq!(test, PermutationTest { p: 0.001, exact: false, resamples: 999 });
    }
}
