//! trec_eval's files and measures: judgements (`qid 0 docid relevance`) and runs
//! (`qid Q0 docid rank score tag`), scored as trec_eval does.
//!
//! ```
//! let qrels = "q1 0 a 1\nq1 0 b 0\nq2 0 a 2\n";
//! let run = "q1 Q0 b 1 0.9 bm25\nq1 Q0 a 2 0.7 bm25\nq2 Q0 a 1 0.3 bm25\n";
//! // `Input::file("qrels.txt")` for a file.
//! let qrels = trec::Input::new("qrels", || Ok(qrels.as_bytes()));
//! let run = trec::Input::new("run", || Ok(run.as_bytes()));
//!
//! let measures = vec!["mrr".parse()?, "recall@1".parse()?];
//! let options = trec::Options { measures, ..trec::Options::default() };
//! let summary = trec::score(&qrels, &run, &options, None)?;
//! assert_eq!(summary.evaluated, 2);
//! assert_eq!(summary.means[0].over_evaluated.value(), Ok(0.75));
//! assert_eq!(summary.means[1].over_evaluated.value(), Ok(0.5));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The order of the lines does not change the results. If both files are sorted by query, memory holds
//! one query at a time, however large the files; otherwise the judgements are held in memory, and the
//! run too if the lines of its queries are scattered. Every mistake in a file is an error with the
//! file and the line. The rank column is ignored: the score decides.

mod error;
mod evaluate;
mod fields;
mod group;
mod input;
mod join;
mod read;
mod score;
mod survey;
mod table;
mod write;

pub use error::{LineProblem, TrecError};
pub use evaluate::{MeasureMeans, QueryList, QueryScores, Summary};
pub use input::{Input, MAX_LINE_BYTES};
pub use read::{QueryResults, read_run};
pub use score::score;
pub use write::{write_qrels, write_run};

/// Measures, ranking rules and scores of karat-metrics, which appear in this interface.
pub use karat_metrics::{Score, ranking};

use ranking::{Measure, Rules};

/// The default measures: those that trec_eval prints and karat-metrics has, and some more cut-offs.
pub const DEFAULT_MEASURES: &[Measure] = &[
    Measure::known("map"),
    Measure::known("r_precision"),
    Measure::known("bpref"),
    Measure::known("mrr"),
    Measure::known("p@5"),
    Measure::known("p@10"),
    Measure::known("p@15"),
    Measure::known("p@20"),
    Measure::known("p@30"),
    Measure::known("p@100"),
    Measure::known("p@200"),
    Measure::known("p@500"),
    Measure::known("p@1000"),
    Measure::known("recall@1"),
    Measure::known("recall@3"),
    Measure::known("recall@5"),
    Measure::known("recall@10"),
    Measure::known("recall@100"),
    Measure::known("ndcg"),
    Measure::known("ndcg@5"),
    Measure::known("ndcg@10"),
    Measure::known("ndcg_exp@10"),
    Measure::known("success@1"),
    Measure::known("success@5"),
    Measure::known("success@10"),
];

/// The settings of a scoring.
///
/// ```
/// use trec::ranking::{Rules, ScorePrecision};
///
/// // As pytrec_eval: scores in single precision.
/// let rules = Rules { precision: ScorePrecision::F32, ..Rules::default() };
/// let options = trec::Options { rules, ..trec::Options::default() };
/// assert_eq!(options.measures, trec::DEFAULT_MEASURES);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The order of results, and the grades that count as relevant.
    pub rules: Rules,
    /// The measures to compute, in the order in which they are reported.
    pub measures: Vec<Measure>,
}

impl Default for Options {
    fn default() -> Self {
        Self { rules: Rules::default(), measures: DEFAULT_MEASURES.to_vec() }
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
