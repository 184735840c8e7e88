//! The arguments of `karat mcp`.

use std::path::PathBuf;

use clap::Args;
use karat_io::time::Time;

use super::times::{DAY, SECOND, time};

#[derive(Args)]
pub(crate) struct McpArgs {
    /// The project file or its folder [default: karat.toml in this folder or the nearest parent]
    pub(crate) project: Option<PathBuf>,
    /// Also offer the tools that start programs: the systems of the project, and the servers in its
    /// config files
    #[arg(long)]
    pub(crate) allow_run: bool,
    /// The time limit for one run
    #[arg(long, value_name = "TIME", default_value = "600s", value_parser = time(SECOND, DAY))]
    pub(crate) time_limit: Time,
}
