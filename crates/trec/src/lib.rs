//! Standard TREC files: judgements (`qid 0 docid relevance`) and runs (`qid Q0 docid rank score tag`),
//! plain or gzip-compressed, scored as trec_eval does.
//!
//! Results are right whatever the order of the lines. Where both files are sorted by query, memory
//! holds one query at a time, however large the files; otherwise the judgements, and for a run whose
//! queries are scattered the run too, are held in memory. Every mistake in a file is an error that
//! names the file and the line. The rank column is not looked at: the score decides.

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
pub use evaluate::{Found, MeasureMeans, QueryScores, Summary};
pub use input::LONGEST_LINE;
pub use read::{RunOfQuery, read_run};
pub use score::score;
pub use write::{write_qrels, write_run};

use karat_metrics::ranking::{Measure, Rules};

/// The measures that are computed if none are asked for: those that trec_eval prints by default and
/// we have, and ours.
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

/// How to score.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The order of results, and what counts as relevant.
    pub rules: Rules,
    /// What to compute, in the order in which it is reported.
    pub measures: Vec<Measure>,
}

impl Default for Options {
    fn default() -> Self {
        Self { rules: Rules::default(), measures: DEFAULT_MEASURES.to_vec() }
    }
}
