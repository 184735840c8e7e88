//! Recall, precision and what is derived from the two: the number of relevant documents among the
//! first k results, or among all of them.
//!
//! All of them divide counts, and a query without relevant documents has the value 0 and stays in
//! the mean, as in trec_eval.

use super::definition::Definition;
use super::judged::Cut;
use super::judged::{JudgedRanking, limit, ratio};
use crate::metric::{Better, Metric, MetricKind, Rank, Unit};

/// The measures of this file.
pub(super) const MEASURES: &[Definition] = &[
    Definition {
        metric: Metric {
            id: "recall@k",
            summary: "Share of the relevant documents that are among the first k results",
            formula: "relevant among the first k / R, where R = all documents judged relevant",
            better: Better::Higher,
            unit: Unit::Share,
            rank: Some(Rank::at_cutoff(150, 5)),
            notes: "Divided by R and not by min(k, R): with more than k relevant documents 1 cannot be \
            reached. R = 0 gives 0 and the query stays in the mean. trec_eval `recall_k`, \
            ir_measures `R@k` and ranx `recall@k` agree.",
            ..Metric::DEFAULT
        },
        score: |ranking, k| Ok(ranking.recall_at(k)),
    },
    Definition {
        metric: Metric {
            id: "set_recall",
            summary: "Share of the relevant documents that were retrieved at all",
            formula: "relevant results / R, where R = all documents judged relevant",
            better: Better::Higher,
            unit: Unit::Share,
            notes: "Recall without a cut-off; blind to the order. R = 0 gives 0. trec_eval `set_recall`, \
            ranx `recall`; the short name `recall` is a detector's recall in Karat, and means this \
            one only where a ranking measure is asked for.",
            ..Metric::DEFAULT
        },
        score: |ranking, _| Ok(ranking.set_recall()),
    },
    Definition {
        metric: Metric {
            id: "success@k",
            summary: "Share of queries with a relevant document among the first k results",
            formula: "1 if at least one of the first k results is relevant, else 0",
            better: Better::Higher,
            unit: Unit::Share,
            kind: MetricKind::Rate,
            notes: "Its mean is a hit rate. R = 0 gives 0. trec_eval `success_k`, ranx `hit_rate@k`.",
            ..Metric::DEFAULT
        },
        score: |ranking, k| Ok(ranking.success_at(k)),
    },
    Definition {
        metric: Metric {
            id: "comprehensiveness@k",
            summary: "Share of queries whose relevant documents are all among the first k results",
            formula: "per query 1 if Recall@k = 1, else 0; averaged over queries",
            better: Better::Higher,
            unit: Unit::Share,
            kind: MetricKind::Rate,
            notes: "Counted in whole documents, so rounding cannot decide it. R = 0 gives 0, and so does \
            every query with more than k relevant documents.",
            ..Metric::DEFAULT
        },
        score: |ranking, k| Ok(ranking.comprehensiveness_at(k)),
    },
    Definition {
        metric: Metric {
            id: "p@k",
            summary: "Share of relevant documents among the first k results",
            formula: "relevant among the first k / k",
            better: Better::Higher,
            unit: Unit::Share,
            notes: "Divided by k even if fewer results were returned. trec_eval `P_k`, ranx `precision@k`.",
            ..Metric::DEFAULT
        },
        score: |ranking, k| Ok(ranking.precision_at(k)),
    },
    Definition {
        metric: Metric {
            id: "set_precision",
            summary: "Share of relevant documents among all results",
            formula: "relevant results / results",
            better: Better::Higher,
            unit: Unit::Share,
            notes: "Blind to the order. No results gives 0. trec_eval `set_P`, ranx `precision`.",
            ..Metric::DEFAULT
        },
        score: |ranking, _| Ok(ranking.set_precision()),
    },
    Definition {
        metric: Metric {
            id: "f1@k",
            summary: "Harmonic mean of P@k and Recall@k",
            formula: "2 · P@k · Recall@k / (P@k + Recall@k)",
            better: Better::Higher,
            unit: Unit::Share,
            notes: "0 if both are 0. ranx `f1@k`; trec_eval has no such cut-off measure.",
            ..Metric::DEFAULT
        },
        score: |ranking, k| Ok(ranking.f1_at(k)),
    },
    Definition {
        metric: Metric {
            id: "set_f1",
            summary: "Harmonic mean of precision and recall over all results",
            formula: "2 · set_precision · set_recall / (set_precision + set_recall)",
            better: Better::Higher,
            unit: Unit::Share,
            notes: "0 if both are 0. trec_eval `set_F`, ranx `f1`.",
            ..Metric::DEFAULT
        },
        score: |ranking, _| Ok(ranking.set_f1()),
    },
    Definition {
        metric: Metric {
            id: "hits@k",
            summary: "Number of relevant documents among the first k results",
            formula: "relevant among the first k",
            better: Better::Higher,
            unit: Unit::Count,
            notes: "A count, not a share: it goes up to k. ranx `hits@k`.",
            ..Metric::DEFAULT
        },
        score: |ranking, k| Ok(ranking.hits_at(k)),
    },
];

impl JudgedRanking {
    pub(super) fn recall_at(&self, k: Cut) -> f64 {
        ratio(self.relevant_within(k), self.relevant)
    }

    pub(super) fn set_recall(&self) -> f64 {
        ratio(self.relevant_retrieved, self.relevant)
    }

    pub(super) fn success_at(&self, k: Cut) -> f64 {
        f64::from(u8::from(self.relevant_within(k) > 0))
    }

    pub(super) fn comprehensiveness_at(&self, k: Cut) -> f64 {
        f64::from(u8::from(self.relevant > 0 && self.relevant_within(k) == self.relevant))
    }

    pub(super) fn precision_at(&self, k: Cut) -> f64 {
        ratio(self.relevant_within(k), limit(k))
    }

    pub(super) fn set_precision(&self) -> f64 {
        ratio(self.relevant_retrieved, self.retrieved)
    }

    pub(super) fn f1_at(&self, k: Cut) -> f64 {
        harmonic(self.precision_at(k), self.recall_at(k))
    }

    pub(super) fn set_f1(&self) -> f64 {
        harmonic(self.set_precision(), self.set_recall())
    }

    pub(super) fn hits_at(&self, k: Cut) -> f64 {
        self.relevant_within(k) as f64
    }
}

fn harmonic(precision: f64, recall: f64) -> f64 {
    if precision + recall == 0.0 { 0.0 } else { 2.0 * precision * recall / (precision + recall) }
}

#[cfg(test)]
mod tests {
    use crate::ranking::{JudgedRanking, Rules, cut};

    /// Three relevant documents, two of them retrieved at ranks 1 and 4 of five results.
    fn example() -> JudgedRanking {
        let ranked = [Some(1), None, Some(0), Some(2), None];
        JudgedRanking::from_grades([1, 2, 1, 0], ranked, &Rules::default())
    }

    #[test]
    fn recall_divides_by_all_relevant_documents() {
        let ranking = example();
        assert_eq!(ranking.recall_at(cut(1)), 1.0 / 3.0);
        assert_eq!(ranking.recall_at(cut(3)), 1.0 / 3.0);
        assert_eq!(ranking.recall_at(cut(4)), 2.0 / 3.0);
        assert_eq!(ranking.set_recall(), 2.0 / 3.0);
    }

    #[test]
    fn precision_divides_by_k_even_beyond_the_results() {
        let ranking = example();
        assert_eq!(ranking.precision_at(cut(4)), 0.5);
        assert_eq!(ranking.precision_at(cut(10)), 0.2);
        assert_eq!(ranking.set_precision(), 0.4);
    }

    #[test]
    fn f1_is_the_harmonic_mean_of_both() {
        let ranking = example();
        let expected = 2.0 * 0.5 * (2.0 / 3.0) / (0.5 + 2.0 / 3.0);
        assert_eq!(ranking.f1_at(cut(4)), expected);
        assert_eq!(ranking.set_f1(), 0.5);
        let nothing_found = JudgedRanking::from_grades([1], [None], &Rules::default());
        assert_eq!(nothing_found.set_f1(), 0.0);
    }

    #[test]
    fn comprehensiveness_needs_every_relevant_document_within_k() {
        let ranking =
            JudgedRanking::from_grades([1, 1], [Some(1), None, Some(1)], &Rules::default());
        assert_eq!(ranking.comprehensiveness_at(cut(2)), 0.0);
        assert_eq!(ranking.comprehensiveness_at(cut(3)), 1.0);
        let nothing_relevant = JudgedRanking::from_grades([0], [Some(0)], &Rules::default());
        assert_eq!(nothing_relevant.comprehensiveness_at(cut(3)), 0.0);
    }

    #[test]
    fn success_and_hits_look_at_the_first_k_only() {
        let ranking =
            JudgedRanking::from_grades([1, 1], [None, Some(1), Some(1)], &Rules::default());
        assert_eq!((ranking.success_at(cut(1)), ranking.hits_at(cut(1))), (0.0, 0.0));
        assert_eq!((ranking.success_at(cut(2)), ranking.hits_at(cut(2))), (1.0, 1.0));
        assert_eq!((ranking.success_at(cut(9)), ranking.hits_at(cut(9))), (1.0, 2.0));
    }
}
