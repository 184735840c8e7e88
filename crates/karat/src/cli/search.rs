//! The arguments of a search that no project describes.

use std::path::PathBuf;

use clap::Args;
use karat_io::time::Time;

use super::retrieval::ToolsArgs;
use super::target::TargetArgs;
use super::times::{HOUR, SECOND, time};

/// A search to measure without a project: an endpoint, a program, a tool of a server, an engine.
#[derive(Args)]
pub(crate) struct SearchArgs {
    #[command(flatten)]
    pub(crate) tools: ToolsArgs,
    #[command(flatten)]
    pub(crate) real: RealServersArgs,
    /// A built-in engine; repeatable, to compare several [default: bm25]
    #[arg(long, value_name = "NAME", conflicts_with_all = ["command", "url", "config", "server", "tool"])]
    pub(crate) builtin: Vec<String>,
    /// The folder with the embeddings of dense and hybrid
    #[arg(long, value_name = "DIR", requires = "builtin")]
    pub(crate) weights: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// The search tool of an MCP server. Without it, --url is an HTTP endpoint with {query} in its URL,
    /// and COMMAND is a program that answers JSON Lines
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// An argument of the tool, such as limit={limit}; repeatable [default: query={query}]
    #[arg(long = "argument", value_name = "NAME=VALUE", requires = "tool")]
    pub(crate) arguments: Vec<String>,
    /// The JSON path of the results in an answer, such as `results[*]`
    #[arg(long, value_name = "PATH")]
    pub(crate) ids: Option<String>,
    /// The template for the id of a result, such as {server}:{name}; repeatable
    #[arg(long = "id", value_name = "RULE")]
    pub(crate) id: Vec<String>,
    /// The separator of server and tool in ids [default: a colon]
    #[arg(long, value_name = "TEXT")]
    pub(crate) separator: Option<String>,
    /// The number of results to request
    #[arg(long = "results", value_name = "N", default_value_t = 20)]
    pub(crate) results: usize,
    /// Skip the readiness check, which waits until every tool of the corpus is found by name
    #[arg(long)]
    pub(crate) no_probe: bool,
}

/// Servers from registries as the tools to search.
#[derive(Args)]
pub(crate) struct RealServersArgs {
    /// Search the tools of the real servers installed in this folder (default: target/real-servers),
    /// after verifying them against their lock
    #[arg(
        long,
        value_name = "DIR",
        num_args = 0..=1,
        default_missing_value = "target/real-servers",
        conflicts_with_all = ["dataset", "corpus"]
    )]
    pub(crate) real_servers: Option<PathBuf>,
    /// A folder NAME/vN with servers.toml, lock.json and queries/ [default: the bundled
    /// real-servers/v2]
    #[arg(long, value_name = "DIR", requires = "real_servers")]
    pub(crate) locked: Option<PathBuf>,
    /// Save the captured tools and their queries as a dataset in this folder
    #[arg(long, value_name = "DIR", requires = "real_servers")]
    pub(crate) keep: Option<PathBuf>,
    /// The time limit for each real server to list its tools
    #[arg(long, value_name = "TIME", default_value = "180s", requires = "real_servers",
        value_parser = time(SECOND, HOUR))]
    pub(crate) start_timeout: Time,
    /// The number of real servers to start concurrently
    #[arg(long, value_name = "N", default_value_t = 2, requires = "real_servers",
        value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) concurrency: u16,
}
