//! The arguments of `karat corpus`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Subcommand)]
pub(crate) enum CorpusCommand {
    /// Compute the digests of a dataset folder and write its manifest
    Freeze(FreezeArgs),
    /// Check a frozen dataset: its digests, its labels, and whether it is worth measuring on
    Verify(VerifyArgs),
}

#[derive(Args)]
pub(crate) struct FreezeArgs {
    /// The folder of the version, such as datasets/tools/v1
    pub(crate) folder: PathBuf,
    /// The licence of the data, as an SPDX expression
    #[arg(long)]
    pub(crate) licence: String,
    /// How the data was made
    #[arg(long)]
    pub(crate) made: String,
}

#[derive(Args)]
pub(crate) struct VerifyArgs {
    /// The folder of the version, such as datasets/tools/v1
    pub(crate) folder: PathBuf,
}
