//! The arguments of `karat corpus`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::ReachArgs;

#[derive(Subcommand)]
pub(crate) enum CorpusCommand {
    /// Capture the complete tool definitions of live servers in a snapshot. Installs nothing
    Capture(Box<CaptureArgs>),
    /// Serve a frozen corpus as MCP servers, so that a real proxy or scanner reads exactly that
    Serve(ServeArgs),
    /// Import a corpus and golden queries from other formats: JSON Lines, tools/list, BEIR, TREC
    Import(ImportCorpusArgs),
    /// Compute the digests of a dataset folder and write its manifest, or make the next version of
    /// a dataset from a snapshot
    Freeze(FreezeArgs),
    /// Check a frozen dataset: its digests, labels and quality; or check a corpus against a lock
    Verify(VerifyArgs),
    /// Write the digest of every tool definition of a corpus
    Lock(LockArgs),
    /// Show what changed between two corpora: tools added, removed and reworded, field by field
    Diff(DiffArgs),
}

#[derive(Args)]
pub(crate) struct ImportCorpusArgs {
    /// Tools or documents: JSON, JSON Lines, a tools/list result, or the folder of a BEIR dataset
    pub(crate) corpus: PathBuf,
    /// The folder for tools/ and golden/
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: PathBuf,
    /// Queries: JSON Lines with labels, or lines of id, tab and text
    #[arg(long, value_name = "FILE")]
    pub(crate) queries: Option<PathBuf>,
    /// Labels: TREC qrels, or the tab-separated ones of BEIR
    #[arg(long, value_name = "FILE", requires = "queries")]
    pub(crate) qrels: Option<PathBuf>,
    /// The server of tools that name none; by default the name of the file
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,
}

/// The licence and the origin of data without them.
pub(crate) const UNSTATED: &str = "unstated";

#[derive(Args)]
pub(crate) struct FreezeArgs {
    /// The folder of the version, such as datasets/tools/v1; with --into, the snapshot
    pub(crate) folder: PathBuf,
    /// Make the next version in this dataset folder, such as datasets/tools, from the snapshot
    #[arg(long, value_name = "DATASET")]
    pub(crate) into: Option<PathBuf>,
    /// Take golden/ and groups/ from this folder, or else the queries in it; by default, from the
    /// previous version
    #[arg(long, value_name = "FOLDER", requires = "into")]
    pub(crate) golden: Option<PathBuf>,
    /// Do not carry over the previous version's queries
    #[arg(long, requires = "into", conflicts_with = "golden")]
    pub(crate) without_golden: bool,
    /// The licence of the data, as an SPDX expression
    #[arg(long, default_value = UNSTATED)]
    pub(crate) licence: String,
    /// The origin of the data
    #[arg(long, default_value = UNSTATED)]
    pub(crate) made: String,
    /// Refuse data that must not be published: without a licence, or an import whose licence is
    /// restricted
    #[arg(long)]
    pub(crate) publish: bool,
}

#[derive(Args)]
pub(crate) struct VerifyArgs {
    /// The folder of the version, such as datasets/tools/v1, or a file of labelled entries; with
    /// --lock, any corpus
    pub(crate) folder: PathBuf,
    /// Check that every tool definition has the digest that is in this lock
    #[arg(long, value_name = "FILE", conflicts_with = "strict")]
    pub(crate) lock: Option<PathBuf>,
    /// Fail if the data breaks a rule of good data, not only if it was changed
    #[arg(long)]
    pub(crate) strict: bool,
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
    /// Exit with code 1 if anything differs
    #[arg(long)]
    pub(crate) exit_code: bool,
}

/// The arguments that a list of servers leaves no room for: it says how each is started.
const NOT_OF_A_LIST: [&str; 12] = [
    "config",
    "url",
    "command",
    "transport",
    "protocol",
    "env",
    "headers",
    "ca_file",
    "cwd",
    "AuthArgs",
    "PolicyArgs",
    "IsolationArgs",
];

#[derive(Args)]
#[command(group = clap::ArgGroup::new("source").required(true).multiple(true))]
pub(crate) struct CaptureArgs {
    /// The folder of the snapshot; it must be empty or not exist
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: PathBuf,
    /// A list of servers to start, each in a sandbox without the network (bubblewrap), such as
    /// datasets/real-servers/v2/servers.toml
    #[arg(long = "servers", value_name = "FILE", group = "source", requires = "installed")]
    #[arg(conflicts_with_all = NOT_OF_A_LIST)]
    pub(crate) list: Option<PathBuf>,
    /// The folder in which the servers of the list are installed, each in a folder with its name
    #[arg(long, value_name = "FOLDER", requires = "list")]
    pub(crate) installed: Option<PathBuf>,
    /// A file that names servers: mcp.json, .vscode/mcp.json, claude_desktop_config.json …
    #[arg(long, value_name = "FILE", group = "source", conflicts_with_all = ["url", "command"])]
    pub(crate) config: Option<PathBuf>,
    /// A server of the list or file; without both, in the one file of the usual places that has it;
    /// repeatable
    #[arg(long = "server", value_name = "NAME", group = "source")]
    #[arg(conflicts_with_all = ["url", "command"])]
    pub(crate) servers: Vec<String>,
    /// Every server of the file
    #[arg(long, requires = "config", conflicts_with = "servers")]
    pub(crate) all: bool,
    /// A server at an address
    #[arg(long, value_name = "URL", group = "source", conflicts_with = "command")]
    pub(crate) url: Option<String>,
    /// The name of the server in the corpus; by default its own
    #[arg(long, conflicts_with_all = ["list", "config", "servers"])]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) reach: ReachArgs,
    /// The time one server may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) timeout: u64,
    /// The number of servers to capture concurrently
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) parallel: u16,
    /// Write what was captured even if some servers failed
    #[arg(long)]
    pub(crate) keep_going: bool,
    /// Also write a lock of what was captured
    #[arg(long, value_name = "FILE")]
    pub(crate) write_lock: Option<PathBuf>,
    /// The command of a server
    #[arg(last = true, value_name = "COMMAND", group = "source")]
    pub(crate) command: Vec<String>,
}

#[derive(Args)]
#[command(group = clap::ArgGroup::new("transport").required(true))]
pub(crate) struct ServeArgs {
    /// A dataset folder, a captured folder, a corpus file, or bundled:tools/v1. Of a threat corpus,
    /// each entry is a server
    pub(crate) dataset: PathBuf,
    /// Only this server; repeatable
    #[arg(long = "server", value_name = "NAME")]
    pub(crate) servers: Vec<String>,
    /// The dataset is a set of worlds: each is a server with a state that calls change
    #[arg(long)]
    pub(crate) world: bool,
    /// The case that is served, as WORLD/TASK[/GOAL/STYLE/SURFACE]; without it, each world as it is
    #[arg(long, value_name = "ID", requires = "world")]
    pub(crate) case: Option<String>,
    /// Write the state of the world to this file after each call
    #[arg(long, value_name = "FILE", requires = "case")]
    pub(crate) state: Option<PathBuf>,
    /// Serve one server on stdin and stdout
    #[arg(long, group = "transport")]
    pub(crate) stdio: bool,
    /// Serve all on this address, each at /NAME/mcp; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", group = "transport")]
    pub(crate) http: Option<SocketAddr>,
    /// Write the configuration with which a proxy finds the servers. With --stdio nothing is served
    /// then: the proxy starts them
    #[arg(long, value_name = "KIND", requires = "out")]
    pub(crate) proxy_config: Option<ProxyConfig>,
    /// The file for the configuration
    #[arg(long, value_name = "FILE", requires = "proxy_config")]
    pub(crate) out: Option<PathBuf>,
    /// The address on which the proxy listens
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub(crate) proxy_listen: SocketAddr,
    /// The proxy's data folder; by default next to the configuration
    #[arg(long, value_name = "FOLDER")]
    pub(crate) proxy_data: Option<PathBuf>,
    /// The key of the proxy's HTTP search
    #[arg(
        long,
        value_name = "KEY",
        env = "MCPPROXY_API_KEY",
        default_value = "karat-local",
        hide_env_values = true
    )]
    pub(crate) proxy_key: String,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProxyConfig {
    /// mcpproxy (mcpproxy-go): its mcp_config.json
    Mcpproxy,
    /// `{"mcpServers": {…}}`, which most clients and proxies read
    McpJson,
}
