//! Measures of rankings: recall, reciprocal rank, nDCG, average precision and others.
//!
//! [`JudgedRanking`] joins one query's judgements with its results once; every [`Measure`] is then
//! computed from it without sorting again. [`Averages`] gives the mean over the queries that were
//! evaluated and the mean over all judged queries, where a missing one counts as an empty result.
//! The formulas are those of trec_eval, whose ranking order is the default of [`Rules`]; the orders
//! of ir_measures and ranx can be chosen by name. Nothing here reads files or groups queries.
//!
//! ```
//! use karat_metrics::ranking::{Averages, JudgedRanking, Measure, Rules};
//!
//! let measures: Vec<Measure> = ["recall@2", "mrr", "ndcg@10"].map(|id| id.parse().unwrap()).into();
//! let mut averages = Averages::new(&measures);
//!
//! // Grades of the judged documents, and the results from best to worst.
//! let judgements = [("a", 2), ("b", 1), ("c", 0)];
//! let ranking = JudgedRanking::from_ordered(judgements, ["c", "a", "x"], &Rules::default())?;
//! averages.add_evaluated(&ranking);
//!
//! let [recall, mrr, ndcg] = averages.over_evaluated() else { unreachable!() };
//! assert_eq!((recall.value(), mrr.value()), (Ok(0.5), Ok(0.5)));
//! assert!(ndcg.value()? > 0.47 && ndcg.value()? < 0.48);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod average_precision;
mod definition;
mod gain;
mod hard_negative;
mod judged;
mod mean;
mod measure;
mod order;
mod overlap;
mod reciprocal;
mod table;

#[cfg(test)]
use judged::cut;
pub use judged::{JudgedRanking, RankingError};
pub use mean::{Averages, Mean};
pub use measure::{Measure, UnknownMeasure};
pub use order::{Rules, ScorePrecision, TieRule};

use crate::metric::Metric;

/// The metrics of this family, in the order in which they are shown.
pub const METRICS: &[Metric] = table::METRICS;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_is_computed_under_its_id() {
        for metric in METRICS {
            let id = metric.id.replace("@k", "@7");
            let measure: Measure = id.parse().unwrap();
            assert_eq!(measure.to_string(), id);
            assert_eq!(measure.definition().id, metric.id);
        }
    }

    #[test]
    fn a_metric_has_no_value_only_where_its_definition_says_so() {
        let without_labels = JudgedRanking::from_grades([], [None, None], &Rules::default());
        for metric in METRICS {
            let measure: Measure = metric.id.replace("@k", "@3").parse().unwrap();
            let score = without_labels.score(measure);
            assert_eq!(score.is_err(), !metric.undefined.is_empty(), "{}: {score:?}", metric.id);
        }
    }
}
