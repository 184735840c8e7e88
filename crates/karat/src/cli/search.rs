//! The arguments of a search that no project describes.

use clap::Args;

use super::{TargetArgs, ToolsArgs};

/// A search to measure without a project: an endpoint, a program, a tool of a server, an engine.
#[derive(Args)]
pub(crate) struct SearchArgs {
    #[command(flatten)]
    pub(crate) tools: ToolsArgs,
    /// A built-in engine; bm25 if nothing else is named
    #[arg(long, value_name = "NAME", conflicts_with_all = ["command", "url", "server"])]
    pub(crate) builtin: Option<String>,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// The tool of an MCP server that searches. Without it, --url is an endpoint with {query} in it,
    /// and COMMAND a program that answers JSON lines
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// An argument of the tool, such as limit={limit}; repeatable. By default query={query}
    #[arg(long = "argument", value_name = "NAME=VALUE", requires = "tool")]
    pub(crate) arguments: Vec<String>,
    /// The place of the results in an answer, such as results[*]
    #[arg(long, value_name = "PATH")]
    pub(crate) ids: Option<String>,
    /// The rule for the id of a result, such as {server}:{name}; repeatable
    #[arg(long = "id", value_name = "RULE")]
    pub(crate) id: Vec<String>,
    /// The separator of server and tool in ids, if it is not a colon
    #[arg(long, value_name = "TEXT")]
    pub(crate) separator: Option<String>,
    /// The number of results that are asked for
    #[arg(long = "results", value_name = "N", default_value_t = 20)]
    pub(crate) results: usize,
    /// Do not wait until every tool of the corpus is found by name
    #[arg(long)]
    pub(crate) no_probe: bool,
}

impl SearchArgs {
    /// Returns whether they describe anything.
    pub(crate) fn are_given(&self) -> bool {
        let Self { tools, builtin, target, tool, .. } = self;
        let data = tools.dataset.is_some() || tools.corpus.is_some();
        let server = target.url.is_some() || target.server.is_some() || !target.command.is_empty();
        data || server || builtin.is_some() || tool.is_some()
    }
}
