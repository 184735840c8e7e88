//! The arguments of `karat retrieval`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::check::{CheckArgs, ScoreArgs};
use super::given::Given;
use super::search::SearchArgs;

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
// Hides the arguments of the earlier spelling, `karat retrieval` for `karat retrieval run`.
#[command(mut_args = |argument| argument.hide(true))]
#[command(override_usage = "karat retrieval [OPTIONS] <COMMAND>")]
pub(crate) struct RetrievalArgs {
    #[command(subcommand)]
    pub(crate) command: Option<RetrievalCommand>,
    #[command(flatten)]
    pub(crate) check: CheckArgs,
}

#[derive(Subcommand)]
pub(crate) enum RetrievalCommand {
    /// Measure the retrieval entries of the project, by default of the bundled one; or measure one search,
    /// described by options
    Run(Box<RetrievalRunArgs>),
    /// Score existing rankings
    Score(RankingsArgs),
    /// Score a TREC run against TREC judgements, as trec_eval does
    Trec(TrecArgs),
    /// Write golden labels and rankings as TREC files, for trec_eval and similar tools
    ExportTrec(ExportTrecArgs),
    /// Score changed descriptions for an optimiser: JSON Lines on stdin, answers on stdout
    ServeFitness(FitnessArgs),
}

#[derive(Args)]
pub(crate) struct RetrievalRunArgs {
    #[command(flatten)]
    pub(crate) check: CheckArgs,
    #[command(flatten)]
    pub(crate) given: Given<SearchArgs>,
    #[command(flatten)]
    pub(crate) search: SearchArgs,
}

/// The tools and queries.
#[derive(Args)]
pub(crate) struct ToolsArgs {
    /// A dataset folder [default: bundled:tools/v1]
    #[arg(long, value_name = "DATASET", conflicts_with_all = ["corpus", "golden"])]
    pub(crate) dataset: Option<String>,
    /// The tool corpus, in Karat's format or the public one; requires --golden
    #[arg(long, value_name = "FILE", requires = "golden")]
    pub(crate) corpus: Option<PathBuf>,
    /// The golden queries; requires --corpus
    #[arg(long, value_name = "FILE", requires = "corpus")]
    pub(crate) golden: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct RankingsArgs {
    #[command(flatten)]
    pub(crate) tools: ToolsArgs,
    /// The rankings: lines of `{id, ranked: [{tool_id, score}]}`, a run journal, a report, or Parquet
    /// with a column of relevant ids
    #[arg(long, value_name = "FILE", conflicts_with = "run", required_unless_present = "run")]
    pub(crate) rankings: Option<PathBuf>,
    /// The rankings as a TREC run: lines of `query Q0 tool rank score tag`
    #[arg(long, value_name = "FILE")]
    pub(crate) run: Option<PathBuf>,
    /// Count a query without lines in the run as an empty result (trec_eval -c), not as missing
    #[arg(long, requires = "run")]
    pub(crate) absent_is_empty: bool,
    #[command(flatten)]
    pub(crate) score: ScoreArgs,
}

#[derive(Args)]
pub(crate) struct ExportTrecArgs {
    #[command(flatten)]
    pub(crate) tools: ToolsArgs,
    /// Write the labels here: lines of `query 0 tool relevance`
    #[arg(long, value_name = "FILE", required_unless_present = "run")]
    pub(crate) qrels: Option<PathBuf>,
    /// Write the rankings here: lines of `query Q0 tool rank score tag`
    #[arg(long, value_name = "FILE", requires = "rankings")]
    pub(crate) run: Option<PathBuf>,
    /// The rankings to write: lines of `{id, ranked: [{tool_id, score}]}`, a run journal, or a report
    #[arg(long, value_name = "FILE", requires = "run")]
    pub(crate) rankings: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct FitnessArgs {
    #[command(flatten)]
    pub(crate) tools: ToolsArgs,
    /// The built-in engine that searches
    #[arg(long, value_name = "NAME", default_value = "bm25")]
    pub(crate) engine: String,
    /// The folder with the embeddings of the engine, if it needs any
    #[arg(long, value_name = "DIR")]
    pub(crate) weights: Option<PathBuf>,
    /// The score of a query
    #[arg(long, value_name = "ID", default_value = "ndcg@10")]
    pub(crate) metric: String,
    /// The number of results to score
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) results: u16,
}

#[derive(Args)]
pub(crate) struct TrecArgs {
    /// The judgements: lines of `query 0 document relevance`, plain or gz
    #[arg(long, value_name = "FILE")]
    pub(crate) qrels: PathBuf,
    /// The run: lines of `query Q0 document rank score tag`, plain or gz
    #[arg(long, value_name = "FILE")]
    pub(crate) run: PathBuf,
    /// A measure, such as ndcg@10; repeatable. By default, the common ones
    #[arg(short, long = "measure", value_name = "ID")]
    pub(crate) measures: Vec<String>,
    /// Also print every query's scores
    #[arg(long)]
    pub(crate) per_query: bool,
    /// The minimum grade that counts as relevant (trec_eval -l)
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) level: u32,
    /// Drop results that were not judged (trec_eval -J)
    #[arg(long)]
    pub(crate) judged_only: bool,
    /// Compare scores as 32-bit floats, as pytrec_eval does
    #[arg(long)]
    pub(crate) float32: bool,
}
