//! Seeded random draws: a PCG generator and an unbiased way to draw from it.
//!
//! The generator is PCG XSL-RR 128/64 (`rand_pcg::Pcg64`) on a fixed stream, its 128-bit state filled
//! from the seed by two rounds of SplitMix64, so that neighbouring seeds give unrelated sequences.
//! Both are fixed by their definitions, not by a library's choice of a standard generator, so a seed
//! gives the same draws on every platform and in every later version. Not for secrets.
//!
//! ```
//! use karat_metrics::stats::random::Draws;
//!
//! let mut draws = Draws::from_seed(7);
//! let die = 1 + draws.below(6);
//! assert!((1..=6).contains(&die));
//! assert_eq!(Draws::from_seed(7).below(6) + 1, die);
//! ```

use rand::Rng;
use rand_pcg::Pcg64;

/// "karat" in ASCII. Any constant will do, but it must never change.
const STREAM: u128 = 0x6b_61_72_61_74;

/// A seeded sequence of draws.
#[derive(Clone, Debug)]
pub struct Draws(Pcg64);

impl Draws {
    /// Starts the sequence of a seed.
    #[must_use]
    pub fn from_seed(seed: u64) -> Draws {
        let high = split_mix(seed.wrapping_add(GOLDEN));
        let low = split_mix(seed.wrapping_add(GOLDEN.wrapping_mul(2)));
        Draws(Pcg64::new(u128::from(high) << 64 | u128::from(low), STREAM))
    }

    /// Draws 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Draws a whole number from 0 to `bound` − 1, all equally likely; 0 if the bound is 0.
    ///
    /// Lemire's method: the high half of bits × bound, drawing again in the rare case that the low
    /// half falls among the 2^64 mod bound values that would favour some results.
    pub fn below(&mut self, bound: u64) -> u64 {
        let mut product = u128::from(self.bits()) * u128::from(bound);
        if low_half(product) < bound {
            let unfair = bound.wrapping_neg() % bound;
            while low_half(product) < unfair {
                product = u128::from(self.bits()) * u128::from(bound);
            }
        }
        high_half(product)
    }

    /// Draws an index into a list of `length` items; 0 if there are none.
    #[expect(clippy::cast_possible_truncation, reason = "the draw is below a usize")]
    pub fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finaliser of SplitMix64.
fn split_mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[expect(clippy::cast_possible_truncation, reason = "the low half is what is wanted")]
fn low_half(product: u128) -> u64 {
    product as u64
}

fn high_half(product: u128) -> u64 {
    (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_these_draws_forever() {
        let mut draws = Draws::from_seed(0);
        let first: Vec<u64> = (0..4).map(|_| draws.bits()).collect();
        assert_eq!(first, FIRST_OF_SEED_ZERO);
    }

    /// Recorded once; a change here changes every published interval.
    const FIRST_OF_SEED_ZERO: [u64; 4] = [
        2_996_528_363_685_427_154,
        15_561_729_376_361_610_023,
        12_370_382_728_050_899_427,
        6_575_093_876_496_671_096,
    ];

    #[test]
    fn draws_stay_below_the_bound_and_reach_every_value() {
        let mut draws = Draws::from_seed(7);
        for bound in [1, 2, 3, 10, 1000] {
            let mut seen = vec![0u32; bound];
            for _ in 0..bound * 100 {
                seen[draws.index(bound)] += 1;
            }
            assert!(seen.iter().all(|count| *count > 50), "{bound}: {seen:?}");
        }
        assert_eq!(draws.below(0), 0);
        assert!(draws.below(u64::MAX) < u64::MAX);
    }

    #[test]
    fn bounds_that_do_not_divide_the_range_are_drawn_fairly() {
        // With 3/4 of 2^64 the plain product would give every third value twice as often.
        let bound = 3 << 62;
        let mut draws = Draws::from_seed(1);
        let mut thirds = [0u32; 3];
        for _ in 0..30_000 {
            thirds[usize::try_from(draws.below(bound) % 3).unwrap()] += 1;
        }
        assert!(thirds.iter().all(|count| count.abs_diff(10_000) < 400), "{thirds:?}");
    }
}
