//! The arguments of `karat mcp`.

use std::path::PathBuf;

use clap::Args;

#[derive(Args)]
pub(crate) struct McpArgs {
    /// The project file or its folder [default: karat.toml in this folder or the nearest parent]
    pub(crate) project: Option<PathBuf>,
    /// Also offer the tools that start programs: the systems of the project, and the servers in its
    /// config files
    #[arg(long)]
    pub(crate) allow_run: bool,
    /// The time limit for one run, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) time_limit: u64,
}
