//! The arguments of `karat import`.

use std::path::PathBuf;

use clap::Args;

#[derive(Args)]
#[command(after_help = "Downloads nothing. `karat check DIR/karat.toml` then prints the table.")]
pub(crate) struct ImportArgs {
    /// The benchmark; --list shows them
    #[arg(required_unless_present = "list")]
    pub(crate) name: Option<String>,
    /// Your copy of the benchmark: folders or files
    #[arg(value_name = "PATH", required_unless_present = "list")]
    pub(crate) paths: Vec<PathBuf>,
    /// The folder to write; it must be empty or not exist
    #[arg(short = 'o', long, value_name = "DIR", required_unless_present = "list")]
    pub(crate) out: Option<PathBuf>,
    /// Import even if some files are missing
    #[arg(long)]
    pub(crate) partial: bool,
    /// List the benchmarks with their files, licences and reproduced figures
    #[arg(long, conflicts_with_all = ["name", "paths", "out", "partial"])]
    pub(crate) list: bool,
}
