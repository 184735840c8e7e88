//! The order of results, and the grades that count as relevant.
//!
//! Scores are compared largest first. The order of equal scores, and the precision at which two
//! scores are equal, differ between tools and change real results, so both have names here, and the
//! default is that of trec_eval 10.

use std::cmp::Ordering;

/// The order of two results that have the same score.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TieRule {
    /// The greater id first, by bytes: trec_eval and pytrec_eval.
    #[default]
    IdDescending,
    /// The smaller id first, by bytes: `RR@k` of ir_measures.
    IdAscending,
    /// The order of the list: ranx `Run` (there only up to 15 results; beyond that ranx sorts
    /// unstably and its order is arbitrary).
    Insertion,
}

/// The precision at which scores are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ScorePrecision {
    /// Scores are rounded to 32 bits first, so 0.1 and 0.100000001 tie: pytrec_eval.
    F32,
    /// Scores are compared as they are: trec_eval 10, ranx.
    #[default]
    F64,
}

/// The conventions of a ranking: order, precision, and relevant grades.
///
/// ```
/// use karat_metrics::ranking::{JudgedRanking, Measure, Rules, TieRule};
///
/// let judgements = [("a", 1)];
/// let tied = [("b", 0.5), ("a", 0.5)];
/// let mrr = |ties| {
///     let rules = Rules { ties, ..Rules::default() };
///     JudgedRanking::from_scored(judgements, tied, &rules).unwrap().score(Measure::known("mrr"))
/// };
/// assert_eq!(mrr(TieRule::IdDescending), Ok(0.5));
/// assert_eq!(mrr(TieRule::IdAscending), Ok(1.0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rules {
    /// The order of equal scores. Not used for a list that is already ordered.
    pub ties: TieRule,
    /// The precision of the comparison. Not used for a list that is already ordered.
    pub precision: ScorePrecision,
    /// The lowest grade that counts as relevant (trec_eval `-l`). With 0, every judged document is.
    /// nDCG takes its gains from the grades and ignores it.
    pub relevance_level: u32,
    /// `true` to remove results without a judgement before ranks are counted (trec_eval `-J`).
    pub judged_only: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            ties: TieRule::default(),
            precision: ScorePrecision::default(),
            relevance_level: 1,
            judged_only: false,
        }
    }
}

impl Rules {
    /// Returns `true` if a grade counts as relevant.
    pub(super) fn is_relevant(&self, grade: i64) -> bool {
        grade >= i64::from(self.relevance_level)
    }
}

impl ScorePrecision {
    /// Returns a whole number that orders finite scores as this precision does: a greater score has a
    /// greater key, and scores that tie (0 and -0 among them) have the same one.
    ///
    /// ```
    /// use karat_metrics::ranking::ScorePrecision::{F32, F64};
    ///
    /// assert!(F64.key(0.1) < F64.key(0.100_000_001));
    /// assert_eq!(F32.key(0.1), F32.key(0.100_000_001));
    /// ```
    #[must_use]
    pub fn key(self, score: f64) -> u64 {
        let rounded = match self {
            // Narrowing is the purpose: beyond the range of f32 it gives an infinity, as in C.
            #[expect(clippy::cast_possible_truncation)]
            Self::F32 => f64::from(score as f32),
            Self::F64 => score,
        };
        // Adding zero turns -0 into 0, whose bits differ though they are equal.
        let bits = (rounded + 0.0).to_bits();
        // Negative floats order backwards by their bits; flip them, and lift the others above.
        if bits >> 63 == 1 { !bits } else { bits | (1 << 63) }
    }
}

impl TieRule {
    /// Compares the ids of two results with equal scores; `Less` means that the left one comes first.
    /// With [`TieRule::Insertion`] the ids do not decide: keep the order of the list (sort stably).
    ///
    /// ```
    /// use std::cmp::Ordering;
    /// use karat_metrics::ranking::TieRule;
    ///
    /// assert_eq!(TieRule::IdDescending.compare_ids(b"b", b"a"), Ordering::Less);
    /// ```
    #[must_use]
    pub fn compare_ids(self, left: &[u8], right: &[u8]) -> Ordering {
        match self {
            Self::IdDescending => right.cmp(left),
            Self::IdAscending => left.cmp(right),
            Self::Insertion => Ordering::Equal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_order_finite_scores_as_numbers_do() {
        let scores = [f64::MIN, -3.5, -1e-300, 0.0, 5e-324, 0.1, 0.100_000_001, 7.0, f64::MAX];
        for pair in scores.windows(2) {
            assert!(
                ScorePrecision::F64.key(pair[0]) < ScorePrecision::F64.key(pair[1]),
                "{pair:?}"
            );
            assert!(
                ScorePrecision::F32.key(pair[0]) <= ScorePrecision::F32.key(pair[1]),
                "{pair:?}"
            );
        }
    }

    #[test]
    fn zero_and_negative_zero_tie() {
        for precision in [ScorePrecision::F32, ScorePrecision::F64] {
            assert_eq!(precision.key(0.0), precision.key(-0.0));
            assert_eq!(
                precision.key(-1e-300) == precision.key(0.0),
                precision == ScorePrecision::F32
            );
        }
    }

    #[test]
    fn single_precision_ties_scores_that_differ_in_double_precision() {
        let (left, right) = (0.1, 0.100_000_001);
        assert_eq!(ScorePrecision::F32.key(left), ScorePrecision::F32.key(right));
        assert!(ScorePrecision::F64.key(left) < ScorePrecision::F64.key(right));
    }
}
