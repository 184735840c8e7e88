//! Precision along the ranking: average precision, R-precision, bpref and rank-biased precision.
//!
//! Relevance is a yes or no here, drawn at the relevance level; grades above it weigh the same,
//! except in rank-biased precision, which follows ranx.

use super::definition::Definition;
use super::judged::Cut;
use super::judged::{JudgedRanking, limit, ratio, total};
use crate::metric::{Better, Metric, Unit};

/// The measures of this file.
pub(super) const MEASURES: &[Definition] = &[
    Definition {
        metric: Metric {
            id: "map",
            summary: "Mean average precision: precision at each relevant document, averaged",
            formula: "per query (sum over relevant results of precision at their rank) / R; averaged",
            better: Better::Higher,
            unit: Unit::Share,
            notes: "R = all documents judged relevant, so one that was not retrieved counts 0. R = 0 gives \
            0. trec_eval `map`, ir_measures `AP`, ranx `map`.",
            ..Metric::DEFAULT
        },
        score: |ranking, _| Ok(ranking.average_precision()),
    },
    Definition {
        metric: Metric {
            id: "map@k",
            summary: "Mean average precision over the first k results",
            formula: "per query (sum over relevant results with rank <= k of precision at their rank) / R; \
              averaged",
            better: Better::Higher,
            unit: Unit::Share,
            notes: "Divided by R and not by min(k, R). trec_eval `map_cut_k`, ir_measures `AP@k`, ranx \
            `map@k`.",
            ..Metric::DEFAULT
        },
        score: |ranking, k| Ok(ranking.average_precision_at(k)),
    },
    Definition {
        metric: Metric {
            id: "r_precision",
            summary: "Precision among the first R results, where R documents are relevant",
            formula: "relevant among the first R / R, where R = all documents judged relevant",
            better: Better::Higher,
            unit: Unit::Share,
            notes: "R = 0 gives 0. trec_eval `Rprec`, ranx `r-precision`.",
            ..Metric::DEFAULT
        },
        score: |ranking, _| Ok(ranking.r_precision()),
    },
    Definition {
        metric: Metric {
            id: "bpref",
            summary: "The degree to which relevant documents rank above judged non-relevant ones",
            formula: "1/R · sum over relevant results of (1 - min(n, R) / min(N, R)), n = judged \
              non-relevant results above it, N = all documents judged non-relevant",
            better: Better::Higher,
            unit: Unit::Share,
            notes: "Unjudged results and those with a negative grade are skipped, which makes it the \
            measure for incomplete judgements. R = 0 gives 0. As trec_eval 9 and 10.",
            ..Metric::DEFAULT
        },
        score: |ranking, _| Ok(ranking.bpref()),
    },
    Definition {
        metric: Metric {
            id: "ranx.rbp.80",
            summary: "Rank-biased precision of a reader who continues to the next result 8 times out of 10",
            formula: "(1 - p) · sum over relevant results of grade · p^(rank - 1), p = 0.8",
            better: Better::Higher,
            notes: "As ranx `rbp.80`, which weighs by the grade: with grades 0 and 1 it is the published \
            measure and stays below 1, with higher grades it can exceed 1. Does not depend on R.",
            ..Metric::DEFAULT
        },
        score: |ranking, _| Ok(ranking.rank_biased_precision()),
    },
];

/// The chance that the reader of rank-biased precision continues to the next result.
const PERSISTENCE: f64 = 0.8;

impl JudgedRanking {
    pub(super) fn average_precision(&self) -> f64 {
        self.average_precision_within(usize::MAX)
    }

    pub(super) fn average_precision_at(&self, k: Cut) -> f64 {
        self.average_precision_within(limit(k))
    }

    fn average_precision_within(&self, depth: usize) -> f64 {
        if self.relevant == 0 {
            return 0.0;
        }
        let precisions = self
            .relevant_hits()
            .take_while(|hit| hit.rank <= depth)
            .zip(1_usize..)
            .map(|(hit, found)| found as f64 / hit.rank as f64);
        total(precisions) / self.relevant as f64
    }

    pub(super) fn r_precision(&self) -> f64 {
        let found = self.relevant_hits().take_while(|hit| hit.rank <= self.relevant).count();
        ratio(found, self.relevant)
    }

    pub(super) fn bpref(&self) -> f64 {
        if self.relevant == 0 {
            return 0.0;
        }
        let most = self.nonrelevant.min(self.relevant);
        let preferred = self
            .relevant_hits()
            .map(|hit| 1.0 - ratio(hit.nonrelevant_above.min(self.relevant), most));
        total(preferred) / self.relevant as f64
    }

    pub(super) fn rank_biased_precision(&self) -> f64 {
        let gains = self
            .relevant_hits()
            .map(|hit| hit.grade as f64 * libm::pow(PERSISTENCE, (hit.rank - 1) as f64));
        (1.0 - PERSISTENCE) * total(gains)
    }
}

#[cfg(test)]
mod tests {
    use crate::ranking::{JudgedRanking, Rules, cut};

    /// Relevant at ranks 1, 3 and 6 of six; a fourth relevant document was not retrieved.
    fn example() -> JudgedRanking {
        let ranked = [Some(1), None, Some(2), Some(0), None, Some(1)];
        JudgedRanking::from_grades([1, 2, 1, 1, 0, 0], ranked, &Rules::default())
    }

    #[test]
    fn average_precision_divides_by_all_relevant_documents() {
        let sum = 1.0 + 2.0 / 3.0 + 3.0 / 6.0;
        assert_eq!(example().average_precision(), sum / 4.0);
        assert_eq!(example().average_precision_at(cut(5)), (1.0 + 2.0 / 3.0) / 4.0);
        assert_eq!(example().average_precision_at(cut(6)), sum / 4.0);
    }

    #[test]
    fn r_precision_cuts_at_the_number_of_relevant_documents() {
        assert_eq!(example().r_precision(), 2.0 / 4.0);
    }

    #[test]
    fn bpref_counts_judged_negatives_above_and_no_others() {
        // One judged negative is above the relevant document at rank 6; min(N, R) is 2.
        assert_eq!(example().bpref(), (1.0 + 1.0 + 0.5) / 4.0);
        let only_unjudged =
            JudgedRanking::from_grades([1, 0], [None, None, Some(1)], &Rules::default());
        assert_eq!(only_unjudged.bpref(), 1.0);
    }

    #[test]
    fn rank_biased_precision_fades_with_rank() {
        let first = JudgedRanking::from_grades([1], [Some(1)], &Rules::default());
        assert!((first.rank_biased_precision() - 0.2).abs() < 1e-15);
        let third = JudgedRanking::from_grades([1], [None, None, Some(1)], &Rules::default());
        assert!((third.rank_biased_precision() - 0.2 * 0.64).abs() < 1e-15);
    }

    #[test]
    fn rank_biased_precision_weighs_by_the_grade() {
        let graded = JudgedRanking::from_grades([3], [None, Some(3)], &Rules::default());
        assert!((graded.rank_biased_precision() - 3.0 * 0.2 * 0.8).abs() < 1e-15);
    }

    #[test]
    fn no_relevant_document_is_zero() {
        let ranking = JudgedRanking::from_grades([0], [Some(0), None], &Rules::default());
        assert_eq!(ranking.average_precision(), 0.0);
        assert_eq!(ranking.r_precision(), 0.0);
        assert_eq!(ranking.bpref(), 0.0);
        assert_eq!(ranking.rank_biased_precision(), 0.0);
    }
}
