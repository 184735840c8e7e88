//! Reciprocal rank of the first relevant document.
//!
//! The step from rank 1 to 2 costs half, a step far down hardly anything. Results after the first
//! relevant document do not matter.

use super::definition::Definition;
use super::judged::Cut;
use super::judged::{JudgedRanking, limit};
use crate::metric::{Better, Metric, Rank, Unit};

/// The measures of this file.
pub(super) const MEASURES: &[Definition] = &[
    Definition {
        metric: Metric {
            id: "mrr",
            summary: "Mean reciprocal rank of the first relevant document",
            formula: "per query 1 / rank of the first relevant result, 0 if there is none; averaged",
            better: Better::Higher,
            unit: Unit::Share,
            rank: Some(Rank::new(160)),
            notes: "No cut-off. R = 0 gives 0. trec_eval `recip_rank`, ir_measures `RR`, ranx `mrr`.",
            ..Metric::DEFAULT
        },
        score: |ranking, _| Ok(ranking.reciprocal_rank()),
    },
    Definition {
        metric: Metric {
            id: "mrr@k",
            summary: "Mean reciprocal rank of the first relevant document among the first k results",
            formula: "per query 1 / rank of the first relevant result if rank <= k, else 0; averaged",
            better: Better::Higher,
            unit: Unit::Share,
            notes: "ranx `mrr@k`. ir_measures `RR@k` breaks ties by ascending id (its own `RR` by \
            descending id), so on tied scores the two of them disagree; tie rule `IdAscending` \
            reproduces it.",
            ..Metric::DEFAULT
        },
        score: |ranking, k| Ok(ranking.reciprocal_rank_at(k)),
    },
];

impl JudgedRanking {
    pub(super) fn reciprocal_rank(&self) -> f64 {
        self.first_relevant().map_or(0.0, |rank| 1.0 / rank as f64)
    }

    pub(super) fn reciprocal_rank_at(&self, k: Cut) -> f64 {
        self.first_relevant().filter(|rank| *rank <= limit(k)).map_or(0.0, |rank| 1.0 / rank as f64)
    }

    /// The rank of the first relevant result.
    pub(super) fn first_relevant(&self) -> Option<usize> {
        self.relevant_hits().next().map(|hit| hit.rank)
    }
}

#[cfg(test)]
mod tests {
    use crate::ranking::{JudgedRanking, Rules, cut};

    #[test]
    fn only_the_first_relevant_document_counts() {
        let ranked = [None, Some(0), Some(1), Some(1)];
        let ranking = JudgedRanking::from_grades([0, 1, 1], ranked, &Rules::default());
        assert_eq!(ranking.reciprocal_rank(), 1.0 / 3.0);
        assert_eq!(ranking.reciprocal_rank_at(cut(3)), 1.0 / 3.0);
        assert_eq!(ranking.reciprocal_rank_at(cut(2)), 0.0);
    }

    #[test]
    fn a_grade_below_the_relevance_level_is_skipped() {
        let rules = Rules { relevance_level: 2, ..Rules::default() };
        let ranking = JudgedRanking::from_grades([1, 2], [Some(1), Some(2)], &rules);
        assert_eq!(ranking.reciprocal_rank(), 0.5);
    }

    #[test]
    fn nothing_relevant_retrieved_is_zero() {
        assert_eq!(
            JudgedRanking::from_grades([1], [None], &Rules::default()).reciprocal_rank(),
            0.0
        );
        assert_eq!(JudgedRanking::from_grades([1], [], &Rules::default()).reciprocal_rank(), 0.0);
    }
}
