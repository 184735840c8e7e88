//! Hard negatives above every relevant document.
//!
//! A hard negative is a document judged 0 on purpose, because it resembles the right one. An agent
//! that takes the first plausible tool would take it.

use super::definition::Definition;
use super::judged::JudgedRanking;
use crate::metric::{Better, Metric, MetricKind, Unit};
use crate::{Score, Undefined};

/// The measures of this file.
pub(super) const MEASURES: &[Definition] = &[Definition {
    metric: Metric {
        id: "hard_negative_rate",
        summary: "Share of queries where a tool judged 0 ranks above every relevant one",
        formula: "per query 1 if a result judged 0 ranks above every relevant document, a document \
              that was not retrieved ranking below all results, else 0; averaged",
        better: Better::Lower,
        unit: Unit::Share,
        kind: MetricKind::Rate,
        undefined: "for a query without a document judged 0, or without a relevant one",
        notes: "Ours; it needs judgements of 0 that were made on purpose. An empty result list is 0: \
            read it together with recall. Grades between 0 and the relevance level count neither way.",
        ..Metric::DEFAULT
    },
    score: |ranking, _| ranking.hard_negative_first(),
}];

impl JudgedRanking {
    pub(super) fn hard_negative_first(&self) -> Score {
        if self.relevant == 0 {
            return Err(Undefined("no document is judged relevant"));
        }
        if self.hard_negatives == 0 {
            return Err(Undefined("no document is judged 0"));
        }
        let outranked = match (self.first_hard_negative, self.first_relevant()) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(wrong), Some(right)) => wrong < right,
        };
        Ok(f64::from(u8::from(outranked)))
    }
}

#[cfg(test)]
mod tests {
    use crate::ranking::{JudgedRanking, Rules};

    fn rate(judged: &[i64], ranked: &[Option<i64>]) -> Result<f64, String> {
        JudgedRanking::from_grades(
            judged.iter().copied(),
            ranked.iter().copied(),
            &Rules::default(),
        )
        .hard_negative_first()
        .map_err(|reason| reason.to_string())
    }

    #[test]
    fn a_negative_above_every_relevant_document_counts() {
        assert_eq!(rate(&[0, 1, 1], &[None, Some(0), Some(1), Some(1)]), Ok(1.0));
        assert_eq!(rate(&[0, 1, 1], &[Some(1), Some(0), Some(1)]), Ok(0.0));
    }

    #[test]
    fn a_negative_alone_counts_and_an_empty_list_does_not() {
        assert_eq!(rate(&[0, 1], &[None, Some(0)]), Ok(1.0));
        assert_eq!(rate(&[0, 1], &[None]), Ok(0.0));
        assert_eq!(rate(&[0, 1], &[]), Ok(0.0));
    }

    #[test]
    fn without_labels_of_both_kinds_it_is_undefined() {
        assert_eq!(rate(&[1, 2], &[Some(1)]), Err("no document is judged 0".to_owned()));
        assert_eq!(rate(&[0, 0], &[Some(0)]), Err("no document is judged relevant".to_owned()));
        assert_eq!(rate(&[1, -1], &[Some(-1)]), Err("no document is judged 0".to_owned()));
    }
}
