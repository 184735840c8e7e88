//! The arguments of `karat mcp`.

use std::path::PathBuf;

use clap::Args;

#[derive(Args)]
pub(crate) struct McpArgs {
    /// The project file or its folder; without it, karat.toml here or in the nearest folder above
    pub(crate) project: Option<PathBuf>,
    /// Offer the tools that start programs too: the systems of the project, and the servers that its
    /// configuration files name
    #[arg(long)]
    pub(crate) allow_run: bool,
    /// The time that one run may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) time_limit: u64,
}
