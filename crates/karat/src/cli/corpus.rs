//! The arguments of `karat corpus`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use karat_io::time::Time;

use super::target::{ReachArgs, SERVER};
use super::times::{HOUR, SECOND, time};

#[derive(Subcommand)]
pub(crate) enum CorpusCommand {
    /// Capture the tool definitions of live servers in a snapshot; installs nothing
    Capture(Box<CaptureArgs>),
    /// Serve a frozen corpus as MCP servers, for a real proxy or scanner
    Serve(ServeArgs),
    /// Import a corpus and golden queries from other formats: JSON Lines, tools/list, BEIR, TREC
    Import(ImportCorpusArgs),
    /// Write the manifest of a dataset folder with its digests, or make the next version of a dataset
    /// from a snapshot
    Freeze(FreezeArgs),
    /// Check a frozen dataset: its digests, labels and quality; or check a corpus against a lock
    Verify(VerifyArgs),
    /// Write the digest of every tool definition of a corpus
    Lock(LockArgs),
    /// Show the changes between two corpora: tools added, removed and reworded, field by field
    Diff(DiffArgs),
}

#[derive(Args)]
pub(crate) struct ImportCorpusArgs {
    /// Tools or documents: JSON, JSON Lines, a tools/list result, or the folder of a BEIR dataset
    pub(crate) corpus: PathBuf,
    /// The folder for tools/ and golden/
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Queries: JSON Lines with labels, or lines of id, tab and text
    #[arg(long, value_name = "FILE")]
    pub(crate) queries: Option<PathBuf>,
    /// Labels: TREC qrels, or the tab-separated ones of BEIR
    #[arg(long, value_name = "FILE", requires = "queries")]
    pub(crate) qrels: Option<PathBuf>,
    /// The server of tools that name none [default: the name of the file]
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
    /// Take golden/ and groups/ from this folder, or its query files [default: the previous version]
    #[arg(long, value_name = "DIR", requires = "into")]
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
    /// Refuse data that must not be published: data without a licence, or imported under a restricted one
    #[arg(long)]
    pub(crate) publish: bool,
}

#[derive(Args)]
pub(crate) struct VerifyArgs {
    /// The folder of the version, such as datasets/tools/v1, or a file of labelled entries; with
    /// --lock, any corpus
    pub(crate) folder: PathBuf,
    /// Check the digest of every tool definition against this lock
    #[arg(long, value_name = "FILE", conflicts_with = "strict")]
    pub(crate) lock: Option<PathBuf>,
    /// Also fail if the data breaks a quality rule
    #[arg(long)]
    pub(crate) strict: bool,
}

#[derive(Args)]
pub(crate) struct LockArgs {
    /// A dataset folder, a captured folder, a corpus file, or bundled:tools/v1
    pub(crate) corpus: PathBuf,
    /// The lock file [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
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

/// The arguments that conflict with a list of servers, which says how to start each.
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
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// A list of servers to start, each in a bubblewrap sandbox without network, such as
    /// datasets/real-servers/v2/servers.toml
    #[arg(long = "servers", value_name = "FILE", group = "source", requires = "installed")]
    #[arg(conflicts_with_all = NOT_OF_A_LIST)]
    pub(crate) list: Option<PathBuf>,
    /// The folder with the installed servers of the list, each in a subfolder with its name
    #[arg(long, value_name = "DIR", requires = "list")]
    pub(crate) installed: Option<PathBuf>,
    /// A config file of MCP servers: mcp.json, .vscode/mcp.json, claude_desktop_config.json …
    #[arg(help_heading = SERVER, long, value_name = "FILE", group = "source", conflicts_with_all = ["url", "command"])]
    pub(crate) config: Option<PathBuf>,
    /// A server in the list or config file; without either, looked up in the usual config files;
    /// repeatable
    #[arg(help_heading = SERVER, long = "server", value_name = "NAME", group = "source")]
    #[arg(conflicts_with_all = ["url", "command"])]
    pub(crate) servers: Vec<String>,
    /// Capture every server in the config file
    #[arg(long, requires = "config", conflicts_with = "servers")]
    pub(crate) all: bool,
    /// The URL of a running server
    #[arg(help_heading = SERVER, long, value_name = "URL", group = "source", conflicts_with = "command")]
    pub(crate) url: Option<String>,
    /// The name of the server in the corpus [default: the name that it reports]
    #[arg(long, conflicts_with_all = ["list", "config", "servers"])]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) reach: ReachArgs,
    /// The time limit for each server
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time(SECOND, HOUR))]
    pub(crate) timeout: Time,
    /// The number of servers to capture concurrently
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) concurrency: u16,
    /// Write the snapshot even if some servers failed
    #[arg(long)]
    pub(crate) keep_going: bool,
    /// Also write a lock of the captured tools
    #[arg(long, value_name = "FILE")]
    pub(crate) write_lock: Option<PathBuf>,
    /// The command that starts the server
    #[arg(last = true, value_name = "COMMAND", group = "source")]
    pub(crate) command: Vec<String>,
}

#[derive(Args)]
#[command(group = clap::ArgGroup::new("transport").required(true))]
pub(crate) struct ServeArgs {
    /// A dataset folder, a captured folder, a corpus file, or bundled:tools/v1. Each entry of a threat
    /// corpus becomes a server
    pub(crate) dataset: PathBuf,
    /// Only this server; repeatable
    #[arg(long = "server", value_name = "NAME")]
    pub(crate) servers: Vec<String>,
    /// Serve a set of worlds: each is a server with state that calls change
    #[arg(long)]
    pub(crate) world: bool,
    /// Serve one case, WORLD/TASK[/GOAL/STYLE/SURFACE], instead of the unmodified worlds
    #[arg(long, value_name = "ID", requires = "world")]
    pub(crate) case: Option<String>,
    /// Write the state of the world to this file after each call
    #[arg(long, value_name = "FILE", requires = "case")]
    pub(crate) state: Option<PathBuf>,
    /// Serve one server on stdin and stdout
    #[arg(long, group = "transport")]
    pub(crate) stdio: bool,
    /// Serve all servers at this address, each under /NAME/mcp; port 0 for a free port
    #[arg(long, value_name = "ADDRESS", group = "transport")]
    pub(crate) http: Option<SocketAddr>,
    /// Write a config file for a proxy that uses the servers. With --stdio, only write it: the proxy
    /// starts the servers
    #[arg(long, value_name = "KIND", requires = "output")]
    pub(crate) proxy_config: Option<ProxyConfig>,
    /// The path of the config file
    #[arg(short, long, value_name = "FILE", requires = "proxy_config")]
    pub(crate) output: Option<PathBuf>,
    /// The address on which the proxy listens
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub(crate) proxy_listen: SocketAddr,
    /// The proxy's data folder [default: next to the config file]
    #[arg(long, value_name = "DIR")]
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
