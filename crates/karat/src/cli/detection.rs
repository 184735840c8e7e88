//! The arguments of `karat detection`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::check::{CheckArgs, ScoreArgs};

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
// Hides the arguments of the earlier spelling, `karat detection` for `karat detection run`.
#[command(mut_args = |argument| argument.hide(true))]
#[command(override_usage = "karat detection [OPTIONS] <COMMAND>")]
pub(crate) struct DetectionArgs {
    #[command(subcommand)]
    pub(crate) command: Option<DetectionCommand>,
    #[command(flatten)]
    pub(crate) check: CheckArgs,
}

#[derive(Subcommand)]
pub(crate) enum DetectionCommand {
    /// Measure the detection entries of the project, by default of the bundled one; or measure the scanner
    /// after `--` on the bundled corpus
    Run(DetectionRunArgs),
    /// Score existing verdicts
    Score(VerdictsArgs),
}

#[derive(Args)]
pub(crate) struct DetectionRunArgs {
    #[command(flatten)]
    pub(crate) check: CheckArgs,
    // For the scanner after `--`; by default, bundled:threats/v2.
    #[command(flatten)]
    pub(crate) threats: ThreatArgs,
    /// The command of a scanner that reads a JSON line for each entry and answers with one
    #[arg(last = true, value_name = "COMMAND", conflicts_with_all = ["project", "bundled", "only"])]
    pub(crate) scanner: Vec<String>,
}

/// The labelled entries.
#[derive(Args)]
pub(crate) struct ThreatArgs {
    /// A dataset folder, or bundled:threats/v2
    #[arg(long, value_name = "DATASET", conflicts_with = "corpus")]
    pub(crate) dataset: Option<String>,
    /// A labelled corpus: Karat's JSON Lines, or the public security and detect corpora
    #[arg(long, value_name = "FILE")]
    pub(crate) corpus: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct VerdictsArgs {
    #[command(flatten)]
    pub(crate) threats: ThreatArgs,
    /// The verdicts: lines of `{id, verdict}`, a public scan-verdict file, SARIF 2.1.0, or Parquet with
    /// a column of labels (without --dataset or --corpus)
    #[arg(long, value_name = "FILE")]
    pub(crate) verdicts: PathBuf,
    #[command(flatten)]
    pub(crate) score: ScoreArgs,
}
