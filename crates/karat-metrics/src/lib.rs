//! Evaluation metrics with exact, documented formulas: ranking, classification, tool calls and the
//! statistics around them. Formulas only: no input or output, no clock, no threads.
//!
//! ```
//! use karat_metrics::classification::Confusion;
//! use karat_metrics::ranking::{JudgedRanking, Measure, Rules};
//! use karat_metrics::stats;
//!
//! // Ranking: one query, graded judgements, results from best to worst.
//! let judgements = [("weather", 2), ("forecast", 1)];
//! let results = ["news", "weather", "forecast"];
//! let ranking = JudgedRanking::from_ordered(judgements, results, &Rules::default())?;
//! let recall: Measure = "recall@2".parse()?;
//! assert_eq!(ranking.score(recall), Ok(0.5));
//!
//! // Classification: a rate without a denominator is undefined, not zero.
//! let counts = Confusion::from_verdicts(&[true, true], &[true, false])?;
//! assert_eq!(counts.recall(), Ok(0.5));
//! assert_eq!(counts.fpr().unwrap_err().to_string(), "no negative entries");
//!
//! // Statistics: the interval to show with 45 of 50.
//! let interval = stats::wilson(45, 50, 0.95)?;
//! assert!(interval.contains(0.9));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - [`ranking`]: recall, MRR, nDCG, MAP and others, bit for bit as trec_eval
//! - [`classification`]: precision, recall, F-scores, MCC, ROC and PR curves, calibration, agreement
//! - [`calls`]: tool calls of agents, including the metrics of RAGAS, DeepEval and BFCL
//! - [`stats`]: intervals, exact tests, bootstrap, corrections, sample sizes, pass@k and pass^k
//! - [`registry`]: every metric with its formula, direction, unit and conventions
//!
//! Metrics of other tools are reproduced under the names of those tools, with all their conventions;
//! variants with a better definition have other names. A metric without a value is an [`Undefined`]
//! with a reason, never 0 and never NaN. The same arguments give the same bits on every platform.
//!
//! # Features
//!
//! - `serde` (default): [`MetricId`] as a plain string
//! - `schemars`: a JSON Schema for [`MetricId`]

pub mod calls;
pub mod classification;
mod definitions;
mod id;
mod metric;
pub mod ranking;
pub mod registry;
pub mod stats;

pub use id::{MetricId, UnknownMetric};

/// The reason why a metric has no value, as text for users.
///
/// ```
/// use karat_metrics::stats::mean;
///
/// assert_eq!(mean(&[]).unwrap_err().to_string(), "no values");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Undefined(pub &'static str);

impl std::fmt::Display for Undefined {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Undefined {}

/// The value of a metric, or the reason why it has none.
pub type Score = Result<f64, Undefined>;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
