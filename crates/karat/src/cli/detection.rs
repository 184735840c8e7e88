//! The arguments of `karat detection`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::check::CheckArgs;

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
    /// A labelled corpus for the scanner after `--` [default: bundled:threats/v2]
    #[arg(long, value_name = "FILE", requires = "scanner")]
    pub(crate) corpus: Option<PathBuf>,
    /// The command of a scanner that reads a JSON line for each entry and answers with one
    #[arg(last = true, value_name = "COMMAND", conflicts_with_all = ["project", "bundled", "only"])]
    pub(crate) scanner: Vec<String>,
}

#[derive(Args)]
pub(crate) struct VerdictsArgs {
    /// The labelled corpus: Karat's JSON Lines, or the public security and detect corpora
    #[arg(long, value_name = "FILE")]
    pub(crate) corpus: Option<PathBuf>,
    /// The verdicts: lines of `{id, verdict}`, a public scan-verdict file, SARIF 2.1.0, or Parquet with
    /// a column of labels (no --corpus then)
    #[arg(long, value_name = "FILE")]
    pub(crate) verdicts: PathBuf,
    /// Write items, observations and metrics into this folder, as Parquet
    #[arg(long, value_name = "DIR")]
    pub(crate) parquet: Option<PathBuf>,
}
