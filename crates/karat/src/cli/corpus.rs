//! The arguments of `karat corpus`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Subcommand)]
pub(crate) enum CorpusCommand {
    /// Compute the digests of a dataset folder and write its manifest, or make the next version of
    /// a dataset from a snapshot
    Freeze(FreezeArgs),
    /// Check a frozen dataset: its digests, its labels, and whether it is worth measuring on; or a
    /// corpus against a lock
    Verify(VerifyArgs),
    /// Write the digest of every tool definition of a corpus
    Lock(LockArgs),
    /// Show what changed between two corpora: tools added, removed and reworded, field by field
    Diff(DiffArgs),
}

#[derive(Args)]
pub(crate) struct FreezeArgs {
    /// The folder of the version, such as datasets/tools/v1; with --into, the snapshot
    pub(crate) folder: PathBuf,
    /// Make the next version in this dataset folder, such as datasets/tools, from the snapshot
    #[arg(long, value_name = "DATASET")]
    pub(crate) into: Option<PathBuf>,
    /// Take golden/ and groups/ from this folder; without it, from the version before
    #[arg(long, value_name = "FOLDER", requires = "into")]
    pub(crate) golden: Option<PathBuf>,
    /// Leave the queries of the version before out
    #[arg(long, requires = "into", conflicts_with = "golden")]
    pub(crate) without_golden: bool,
    /// The licence of the data, as an SPDX expression
    #[arg(long)]
    pub(crate) licence: String,
    /// How the data was made
    #[arg(long)]
    pub(crate) made: String,
}

#[derive(Args)]
pub(crate) struct VerifyArgs {
    /// The folder of the version, such as datasets/tools/v1; with --lock, any corpus
    pub(crate) folder: PathBuf,
    /// Check that every tool definition is the one whose digest stands in this lock
    #[arg(long, value_name = "FILE")]
    pub(crate) lock: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct LockArgs {
    /// A dataset folder, a captured folder, a corpus file, or bundled:tools/v1
    pub(crate) corpus: PathBuf,
    /// The lock file; without it, stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct DiffArgs {
    /// The earlier corpus: a dataset folder, a captured folder, a corpus file, or bundled:tools/v1
    pub(crate) before: PathBuf,
    /// The later corpus
    pub(crate) after: PathBuf,
    /// End with exit code 1 if anything differs
    #[arg(long)]
    pub(crate) exit_code: bool,
}
