//! The arguments of `karat detection`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::CheckArgs;

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
// The arguments of the earlier spelling, `karat detection` for `karat detection run`, are not shown.
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
    /// Measure the project's detection entries (the bundled project's if there is none), or a scanner after
    /// `--` on the bundled corpus
    Run(DetectionRunArgs),
    /// Score existing verdicts
    Score(VerdictsArgs),
}

#[derive(Args)]
pub(crate) struct DetectionRunArgs {
    #[command(flatten)]
    pub(crate) check: CheckArgs,
    /// A corpus of labelled entries for the scanner after `--`, instead of the bundled one
    #[arg(long, value_name = "FILE", requires = "scanner")]
    pub(crate) corpus: Option<PathBuf>,
    /// A scanner that reads one JSON line for each entry and answers with one: no project is needed
    #[arg(last = true, value_name = "COMMAND", conflicts_with_all = ["project", "only"])]
    pub(crate) scanner: Vec<String>,
}

#[derive(Args)]
pub(crate) struct VerdictsArgs {
    /// The labelled corpus: Karat's own lines, or the public security and detect corpora
    #[arg(long, value_name = "FILE")]
    pub(crate) corpus: Option<PathBuf>,
    /// The verdicts: lines of `{id, verdict}`, a public scan-verdict file, SARIF 2.1.0, or Parquet with
    /// the labels in it, which needs no corpus
    #[arg(long, value_name = "FILE")]
    pub(crate) verdicts: PathBuf,
    /// Write items, observations and metrics into this folder, as Parquet
    #[arg(long, value_name = "DIR")]
    pub(crate) parquet: Option<PathBuf>,
}
