//! Normalised discounted cumulative gain: graded relevance, discounted by rank, divided by the value
//! of the best possible ranking of the judged documents.
//!
//! Gains come from the grades, whatever the relevance level. With grades 0 and 1 the linear and the
//! exponential form are the same.

use std::sync::LazyLock;

use super::definition::Definition;
use super::judged::Cut;
use super::judged::{JudgedRanking, limit, total};
use crate::metric::{Better, Metric, Rank, Unit};

/// The measures of this file.
pub(super) const MEASURES: &[Definition] = &[
    Definition {
        metric: Metric {
            id: "ndcg@k",
            summary: "Graded quality of the first k results against the best possible order (linear gain)",
            formula: "DCG@k / ideal DCG@k, DCG@k = sum over ranks i <= k of grade_i / log2(i + 1)",
            better: Better::Higher,
            unit: Unit::Share,
            rank: Some(Rank::at_cutoff(170, 10)),
            notes: "Linear gain. The ideal is made of all judged documents, cut at k. Negative grades and \
            unjudged results gain 0; no positive grade gives 0. The relevance level does not \
            matter here, as in trec_eval `ndcg_cut_k`; ranx `ndcg@k-l2` treats grades below the \
            level as 0.",
            ..Metric::DEFAULT
        },
        score: |ranking, k| Ok(ranking.ndcg_at(k)),
    },
    Definition {
        metric: Metric {
            id: "ndcg",
            summary: "Graded quality of all results against the best possible order (linear gain)",
            formula: "DCG / ideal DCG, DCG = sum over all ranks i of grade_i / log2(i + 1)",
            better: Better::Higher,
            unit: Unit::Share,
            notes: "As `ndcg@k` without a cut-off. trec_eval `ndcg`, ranx `ndcg`.",
            ..Metric::DEFAULT
        },
        score: |ranking, _| Ok(ranking.ndcg()),
    },
    Definition {
        metric: Metric {
            id: "ndcg_exp@k",
            summary: "As ndcg@k, with exponential gain: the highest grades weigh much more",
            formula: "DCG@k / ideal DCG@k, DCG@k = sum over ranks i <= k of (2^grade_i - 1) / log2(i + 1)",
            better: Better::Higher,
            unit: Unit::Share,
            notes: "ranx `ndcg_burges@k`, ir_measures `nDCG(dcg='exp-log2')@k`. trec_eval has no such \
            measure. Equal to `ndcg@k` on grades 0 and 1; never compare the two on others.",
            ..Metric::DEFAULT
        },
        score: |ranking, k| Ok(ranking.ndcg_exp_at(k)),
    },
    Definition {
        metric: Metric {
            id: "ndcg_exp",
            summary: "As ndcg, with exponential gain: the highest grades weigh much more",
            formula: "DCG / ideal DCG, DCG = sum over all ranks i of (2^grade_i - 1) / log2(i + 1)",
            better: Better::Higher,
            unit: Unit::Share,
            notes: "As `ndcg_exp@k` without a cut-off. ranx `ndcg_burges`.",
            ..Metric::DEFAULT
        },
        score: |ranking, _| Ok(ranking.ndcg_exp()),
    },
];

/// Above this grade `2^grade` is scaled down: a ratio does not change, and no sum overflows.
const GREATEST_EXPONENT: i64 = 900;

impl JudgedRanking {
    pub(super) fn ndcg(&self) -> f64 {
        self.normalised(usize::MAX, linear)
    }

    pub(super) fn ndcg_at(&self, k: Cut) -> f64 {
        self.normalised(limit(k), linear)
    }

    pub(super) fn ndcg_exp(&self) -> f64 {
        self.normalised(usize::MAX, self.exponential())
    }

    pub(super) fn ndcg_exp_at(&self, k: Cut) -> f64 {
        self.normalised(limit(k), self.exponential())
    }

    fn normalised(&self, depth: usize, gain: impl Fn(i64) -> f64) -> f64 {
        let ideal: f64 =
            (1..=depth).zip(&self.ideal).map(|(rank, grade)| gain(*grade) / discount(rank)).sum();
        if ideal == 0.0 {
            return 0.0;
        }
        let gains = self
            .hits
            .iter()
            .take_while(|hit| hit.rank <= depth)
            .map(|hit| gain(hit.grade) / discount(hit.rank));
        // Rounding alone may lift a near-ideal order above the ideal one.
        (total(gains) / ideal).min(1.0)
    }

    /// `2^grade - 1`, scaled by a power of two where the greatest grade needs it.
    fn exponential(&self) -> impl Fn(i64) -> f64 + use<> {
        let greatest = self.ideal.first().copied().unwrap_or(0);
        let shift = (greatest - GREATEST_EXPONENT).max(0);
        move |grade| libm::exp2((grade - shift) as f64) - libm::exp2(-shift as f64)
    }
}

fn linear(grade: i64) -> f64 {
    grade as f64
}

/// `log2(rank + 1)`; the ranks that nearly every list stays within are computed once.
fn discount(rank: usize) -> f64 {
    static TABLE: LazyLock<Vec<f64>> =
        LazyLock::new(|| (0..1024_u32).map(|rank| libm::log2(f64::from(rank) + 1.0)).collect());
    TABLE.get(rank).copied().unwrap_or_else(|| libm::log2(rank as f64 + 1.0))
}

#[cfg(test)]
mod tests {
    use crate::ranking::{JudgedRanking, Rules, cut};

    /// The worst order of grades 3, 2 and 1.
    fn reversed() -> JudgedRanking {
        JudgedRanking::from_grades([3, 2, 1], [Some(1), Some(2), Some(3)], &Rules::default())
    }

    #[test]
    fn linear_and_exponential_gain_differ_on_grades() {
        assert_eq!(format!("{:.4}", reversed().ndcg_at(cut(3))), "0.7900");
        assert_eq!(format!("{:.4}", reversed().ndcg_exp_at(cut(3))), "0.6806");
    }

    #[test]
    fn both_gains_agree_on_zero_and_one() {
        let ranked = [None, Some(1), Some(0), Some(1)];
        let ranking = JudgedRanking::from_grades([1, 1, 0, 1], ranked, &Rules::default());
        assert_eq!(ranking.ndcg(), ranking.ndcg_exp());
        assert_eq!(ranking.ndcg_at(cut(2)), ranking.ndcg_exp_at(cut(2)));
    }

    #[test]
    fn the_ideal_is_cut_at_k_too() {
        let ranking = JudgedRanking::from_grades([1, 1, 1], [Some(1)], &Rules::default());
        assert_eq!(ranking.ndcg_at(cut(1)), 1.0);
        assert!(ranking.ndcg_at(cut(3)) < 1.0);
    }

    #[test]
    fn the_relevance_level_does_not_change_gains() {
        let rules = Rules { relevance_level: 2, ..Rules::default() };
        let ranked = [Some(1), Some(2), Some(3)];
        let strict = JudgedRanking::from_grades([3, 2, 1], ranked, &rules);
        assert_eq!(strict.ndcg(), reversed().ndcg());
    }

    #[test]
    fn no_positive_grade_is_zero() {
        let ranking = JudgedRanking::from_grades([0, -1], [Some(0), Some(-1)], &Rules::default());
        assert_eq!((ranking.ndcg(), ranking.ndcg_exp()), (0.0, 0.0));
    }

    #[test]
    fn huge_grades_stay_within_zero_and_one() {
        let grades = [i64::MAX, 5000, 1];
        let best = JudgedRanking::from_grades(grades, grades.map(Some), &Rules::default());
        assert_eq!((best.ndcg(), best.ndcg_exp()), (1.0, 1.0));
        let worst = [Some(1), Some(5000), Some(i64::MAX)];
        let worst = JudgedRanking::from_grades(grades, worst, &Rules::default());
        // Next to the greatest grade the others weigh nothing; at rank 3 it is halved.
        for value in [worst.ndcg(), worst.ndcg_exp()] {
            assert!((value - 0.5).abs() < 1e-15, "{value}");
        }
    }

    #[test]
    fn ranks_beyond_the_table_are_discounted_the_same_way() {
        let deep = (0..2000).map(|_| None).chain([Some(1)]);
        let ranking = JudgedRanking::from_grades([1], deep, &Rules::default());
        assert_eq!(ranking.ndcg(), 1.0 / libm::log2(2002.0));
    }
}
