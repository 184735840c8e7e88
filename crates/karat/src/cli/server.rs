//! The arguments of `karat server`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::FormatArgs;

#[derive(Subcommand)]
pub(crate) enum ServerCommand {
    /// Measure the project's server entries (the bundled project's if there is none): suites, load, fuzz
    /// and attack
    Run(super::CheckArgs),
    /// Run a suite against a live server
    Test(Box<ServerTestArgs>),
    /// Make many calls at once, or at a rate, and time them
    Load(Box<LoadArgs>),
    /// Judge the tool definitions of a server without calling a tool
    Lint(LintArgs),
    /// Check a server at a glance: definitions, hidden instructions, a short fuzz, latencies
    Scan(Box<ScanArgs>),
    /// Call tools with inputs made from their schemas: edges, errors, hostile text
    Fuzz(Box<super::FuzzArgs>),
    /// Try known attacks, judged by planted canaries and side effects
    Attack(Box<super::AttackArgs>),
    /// Make one call and print the result as it was on the wire
    Call(super::CallArgs),
    /// Write a suite from what a live server answers: its tools that only read, resources and prompts
    Suggest(Box<SuggestArgs>),
    /// Print a test case for one call, based on its answers
    Propose(Box<ProposeArgs>),
    /// Proxy a client and a server, and record the traffic
    Record(Box<ServerRecordArgs>),
    /// Make a suite from a recording; the cases are tried on the server, if one is given
    Distil(Box<DistilArgs>),
    /// Compare a live server with what was accepted: definitions, instructions, canary calls
    Drift(Box<DriftArgs>),
    /// Check a server against MCP revision 2026-07-28: caching hints, order, state, both generations
    Migration(Box<MigrationArgs>),
    /// Log in to a server and store the token for later runs
    Login(Box<LoginArgs>),
    /// Delete a stored login
    Logout(LogoutArgs),
}

#[derive(Args)]
pub(crate) struct LoginArgs {
    /// Open the address in the browser instead of only printing it
    #[arg(long)]
    pub(crate) open: bool,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

#[derive(Args)]
pub(crate) struct LogoutArgs {
    /// The address of the server
    #[arg(long, value_name = "URL", required_unless_present_any = ["all", "list"])]
    pub(crate) url: Option<String>,
    /// Delete every login
    #[arg(long, conflicts_with_all = ["url", "list"])]
    pub(crate) all: bool,
    /// List the stored logins, and delete none
    #[arg(long, conflicts_with = "url")]
    pub(crate) list: bool,
}

#[derive(Args)]
pub(crate) struct SuggestArgs {
    /// Write the suite to this file instead of stdout
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
    /// Only this tool; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Vec<String>,
    /// A value that is known to work, for parameters of this name: JSON, or else text; repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    #[command(flatten)]
    pub(crate) times: DraftTimes,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    #[command(flatten)]
    pub(crate) record: RecordArgs,
}

#[derive(Args)]
pub(crate) struct ProposeArgs {
    /// The tool to call
    #[arg(long, value_name = "NAME", conflicts_with_all = ["resource", "prompt"])]
    pub(crate) tool: Option<String>,
    /// The resource to read instead
    #[arg(long, value_name = "URI", conflicts_with_all = ["prompt", "input"])]
    pub(crate) resource: Option<String>,
    /// The prompt to get instead
    #[arg(long, value_name = "NAME")]
    pub(crate) prompt: Option<String>,
    /// The arguments: a JSON object, or @FILE
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub(crate) input: String,
    /// Call the tool even if it may change something
    #[arg(long)]
    pub(crate) allow_destructive: bool,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    #[command(flatten)]
    pub(crate) times: CallTimes,
}

#[derive(Args)]
pub(crate) struct ServerRecordArgs {
    /// The recording to write
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

#[derive(Args)]
pub(crate) struct DistilArgs {
    /// The recording: of `karat server record`, or of --record
    pub(crate) recording: PathBuf,
    /// Write the suite to this file instead of stdout
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
    /// Also keep calls of tools that may destroy something
    #[arg(long)]
    pub(crate) allow_destructive: bool,
    // A server on which the cases are tried.
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

#[derive(Args)]
pub(crate) struct DriftArgs {
    /// The accepted state: written by --update, or any answer to tools/list
    pub(crate) definitions: PathBuf,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    #[command(flatten)]
    pub(crate) record: RecordArgs,
    /// Accept what the server serves now: write it to the file
    #[arg(long)]
    pub(crate) update: bool,
    /// A suite whose cases are also run as canary calls
    #[arg(long, value_name = "SUITE")]
    pub(crate) canaries: Option<PathBuf>,
    /// The minimum severity of a change that fails (exit code 1)
    #[arg(long, value_name = "SEVERITY", default_value = "warning")]
    pub(crate) fail_on: FailOn,
}

/// The server: after `--`, at an address, or in a file of servers.
#[derive(Args, Clone, Default)]
pub(crate) struct TargetArgs {
    /// The address of a running server
    #[arg(long, value_name = "URL", conflicts_with_all = ["command", "config"])]
    pub(crate) url: Option<String>,
    /// A file of servers, such as .mcp.json; names the server with --server
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    pub(crate) config: Option<PathBuf>,
    /// The server in that file; without --config, looked up in the usual config files
    #[arg(long, value_name = "NAME", conflicts_with_all = ["command", "url"])]
    pub(crate) server: Option<String>,
    #[command(flatten)]
    pub(crate) reach: ReachArgs,
    /// The command that starts the server
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// The way a server is started or reached, wherever it is named.
#[derive(Args, Clone, Default)]
pub(crate) struct ReachArgs {
    /// The transport; by default stdio for a command and streamable HTTP for an address
    #[arg(long, value_name = "KIND")]
    pub(crate) transport: Option<Transport>,
    /// The one protocol revision to speak, such as 2025-06-18; otherwise negotiated
    #[arg(long, value_name = "REVISION")]
    pub(crate) protocol: Option<String>,
    /// A variable for the server; repeatable
    #[arg(short = 'e', long = "env", value_name = "KEY=VALUE")]
    pub(crate) env: Vec<String>,
    /// A header of each request; repeatable. ${VAR} is taken from the environment
    #[arg(long = "header", value_name = "NAME: VALUE")]
    pub(crate) headers: Vec<String>,
    /// A file of certificates, in PEM, to trust besides those of the system
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
    /// The folder in which the server runs
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) login: AuthArgs,
    #[command(flatten)]
    pub(crate) policies: PolicyArgs,
    #[command(flatten)]
    pub(crate) isolation: IsolationArgs,
}

/// The login at a server that asks for one.
#[derive(Args, Clone, Default)]
pub(crate) struct AuthArgs {
    /// Get a token in this way if the server asks for one
    #[arg(long, value_name = "KIND", conflicts_with = "command")]
    pub(crate) auth: Option<Auth>,
    /// The client that the authorisation server knows; otherwise one is registered
    #[arg(long, value_name = "ID", requires = "auth")]
    pub(crate) client_id: Option<String>,
    /// Its secret, as a variable: '${NAME}'
    #[arg(long, value_name = "${NAME}", requires = "client_id")]
    pub(crate) client_secret: Option<String>,
    /// A file with its private key (PKCS#8 in PEM) instead of a secret
    #[arg(long, value_name = "FILE", requires = "client_id", conflicts_with = "client_secret")]
    pub(crate) private_key: Option<PathBuf>,
    /// The https address of a client ID metadata document, where the authorisation server supports them
    #[arg(long, value_name = "URL", requires = "auth")]
    pub(crate) client_metadata: Option<String>,
    /// A scope to ask for; repeatable. Otherwise those that the server names
    #[arg(long = "scope", value_name = "SCOPE", requires = "auth")]
    pub(crate) scopes: Vec<String>,
    /// The only authorisation server to accept
    #[arg(long, value_name = "URL", requires = "auth")]
    pub(crate) issuer: Option<String>,
    /// The token for --auth token, as a variable: '${NAME}', or - for a line of stdin
    #[arg(long, value_name = "${NAME}", requires = "auth")]
    pub(crate) access_token: Option<String>,
    /// A refresh token for --auth token, as a variable: '${NAME}'
    #[arg(long, value_name = "${NAME}", requires = "access_token")]
    pub(crate) refresh_token: Option<String>,
    /// The port of the redirect for --auth browser; otherwise a free one
    #[arg(long, value_name = "PORT", requires = "auth")]
    pub(crate) redirect_port: Option<u16>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Auth {
    /// As a client with a secret or a private key
    ClientCredentials,
    /// As a person with a browser on this machine; the address is printed
    Browser,
    /// As a person with a browser anywhere; the address and a code are printed
    Device,
    /// With a token that you have
    Token,
}

/// Answers to requests of the server. Without these they are refused.
#[derive(Args, Clone, Default)]
pub(crate) struct PolicyArgs {
    /// Answer requests for sampling with this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) sampling: Option<String>,
    /// Answer forms (elicitation): decline, cancel, defaults, refuse, or a JSON object to fill in
    #[arg(long, value_name = "ANSWER")]
    pub(crate) elicitation: Option<String>,
    /// A folder to report when the server asks for roots; repeatable
    #[arg(long, value_name = "DIR")]
    pub(crate) roots: Vec<String>,
}

/// The isolation of the server.
#[derive(Args, Clone, Default)]
pub(crate) struct IsolationArgs {
    /// Sandbox the server: no network, no access to your home, limited resources
    #[arg(long, value_name = "ENGINE")]
    pub(crate) isolate: Option<Isolate>,
    /// Let the isolated server use the network
    #[arg(long)]
    pub(crate) allow_network: bool,
    /// A path that the isolated server may read, or change with :rw; repeatable
    #[arg(long = "mount", value_name = "PATH[:rw]")]
    pub(crate) mounts: Vec<String>,
    /// The image for --isolate docker; it must already exist locally
    #[arg(long, value_name = "NAME")]
    pub(crate) image: Option<String>,
    /// A limit of the isolated server: memory=512m, processes=64, cpu=60 (seconds), file=100m, cpus=2;
    /// repeatable
    #[arg(long = "limit", value_name = "WHAT=AMOUNT", value_delimiter = ',')]
    pub(crate) limits: Vec<String>,
}

/// The time limits of a session. The default for calls differs, and a generic struct cannot have one of its own:
/// clap keeps it in a static, which all instances share.
macro_rules! time_args {
    ($($name:ident: $default:literal,)*) => {$(
        #[derive(Args, Clone)]
        pub(crate) struct $name {
            /// The time a call may take, in milliseconds
            #[arg(long, value_name = "MS", default_value_t = $default)]
            pub(crate) timeout_ms: u64,
            /// The time the server may take to start, in milliseconds
            #[arg(long, value_name = "MS", default_value_t = 30_000)]
            pub(crate) start_timeout_ms: u64,
        }
    )*};
}

time_args! {
    ScanTimes: 5_000,
    DraftTimes: 10_000,
    ProbeTimes: 15_000,
    CallTimes: 30_000,
}

/// The findings that count, and where they are written.
#[derive(Args)]
pub(crate) struct FindingArgs {
    /// A rule whose findings are left out; repeatable
    #[arg(long, value_name = "RULE")]
    pub(crate) allow: Vec<String>,
    /// The minimum severity of a finding that fails (exit code 1)
    #[arg(long, value_name = "SEVERITY", default_value = "error")]
    pub(crate) fail_on: FailOn,
    /// List the rules and exit
    #[arg(long)]
    pub(crate) rules: bool,
    /// Write the findings as SARIF 2.1.0 to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) sarif: Option<PathBuf>,
}

/// The recording of the sessions.
#[derive(Args, Clone, Default)]
pub(crate) struct RecordArgs {
    /// Write every message to this file as JSON lines; replay it with karat demo-server --replay
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Isolate {
    /// No isolation
    None,
    /// bubblewrap, with the machine's own programs
    Bwrap,
    /// A container of a local image
    Docker,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Transport {
    /// A child process
    Stdio,
    /// Streamable HTTP
    Http,
    /// HTTP with server-sent events, revision 2024-11-05
    Sse,
}

#[derive(Args)]
pub(crate) struct ServerTestArgs {
    /// The suite, JSON or YAML; `-` is standard input
    pub(crate) suite: PathBuf,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Only cases with this tag; repeatable
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,
    /// Only the case with this id
    #[arg(long, value_name = "ID")]
    pub(crate) case: Option<String>,
    /// Only the cases that did not pass in the last run, by the report in the output folder; all if none failed
    #[arg(long, conflicts_with_all = ["tag", "case"])]
    pub(crate) last_failed: bool,
    /// Rewrite the snapshots of the cases that otherwise pass
    #[arg(long)]
    pub(crate) update: bool,
    #[command(flatten)]
    pub(crate) times: CallTimes,
    #[command(flatten)]
    pub(crate) record: RecordArgs,
    /// The folder for the report and the run journal
    #[arg(long, value_name = "DIR", default_value = "karat-report")]
    pub(crate) out: PathBuf,
    /// Also write FILE; the format follows from the extension (.json .html .md .xml .sarif .badge.json)
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub(crate) outputs: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) form: FormatArgs,
}

#[derive(Args)]
pub(crate) struct LoadArgs {
    /// A suite whose cases are the mix of calls; or give --tool
    #[arg(required_unless_present = "tool", conflicts_with = "tool")]
    pub(crate) suite: Option<PathBuf>,
    /// The one tool to call
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Its arguments, a JSON object
    #[arg(long, value_name = "JSON", default_value = "{}", requires = "tool")]
    pub(crate) input: String,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Only cases with this tag; repeatable
    #[arg(long, value_name = "TAG", conflicts_with = "tool")]
    pub(crate) tag: Vec<String>,
    /// Calls under way at any time (closed loop); 8 where no rate is given
    #[arg(long, value_name = "N", conflicts_with = "rate")]
    pub(crate) concurrency: Option<usize>,
    /// Calls that begin in a second, answered or not (open loop)
    #[arg(long, value_name = "PER_SECOND")]
    pub(crate) rate: Option<f64>,
    /// Sessions: processes of a server over stdio, connections over HTTP
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) connections: usize,
    /// The time to measure, such as 30s or 2m; 10s where no count is given
    #[arg(long, value_name = "TIME", conflicts_with = "count")]
    pub(crate) duration: Option<String>,
    /// The number of calls to measure
    #[arg(long, value_name = "CALLS")]
    pub(crate) count: Option<u64>,
    /// The time over which the load grows to its full size
    #[arg(long, value_name = "TIME", default_value = "0s")]
    pub(crate) ramp: String,
    /// The part at the start that is not measured: a time, or a number of calls
    #[arg(long, value_name = "TIME_OR_CALLS", default_value = "1s")]
    pub(crate) warm_up: String,
    /// Find the highest load that meets this condition, such as 'p99<200ms', by raising the rate, or the
    /// concurrency if that is given
    #[arg(long, value_name = "CONDITION")]
    pub(crate) find_max: Option<String>,
    /// Also write the counts and histograms to this file: `karat merge FILE FILE…` merges those of
    /// several generators
    #[arg(long, value_name = "FILE", conflicts_with = "find_max")]
    pub(crate) part: Option<PathBuf>,
    /// Exit with code 1 if the median latency exceeds this many milliseconds
    #[arg(long, value_name = "MS")]
    pub(crate) max_p50: Option<f64>,
    /// Exit with code 1 if more than this fraction of calls fails
    #[arg(long, value_name = "SHARE")]
    pub(crate) max_error_rate: Option<f64>,
    /// The seed of the order of calls
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) times: CallTimes,
    /// The folder for the report
    #[arg(long, value_name = "DIR", default_value = "karat-report")]
    pub(crate) out: PathBuf,
    /// Also write FILE; the format follows from the extension (.json .html .md .xml)
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub(crate) outputs: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) form: FormatArgs,
}

#[derive(Args)]
pub(crate) struct LintArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    #[command(flatten)]
    pub(crate) record: RecordArgs,
    /// Definitions from a file instead of a server: the answer to tools/list, or its list
    #[arg(long, value_name = "FILE", conflicts_with_all = ["url", "config", "server", "command", "record"])]
    pub(crate) tools: Option<PathBuf>,
    /// The time the server may take to start, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 30_000)]
    pub(crate) start_timeout_ms: u64,
    #[command(flatten)]
    pub(crate) findings: FindingArgs,
}

#[derive(Args)]
pub(crate) struct MigrationArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    #[command(flatten)]
    pub(crate) record: RecordArgs,
    /// A value that is known to work, for parameters of this name: JSON, or else text; repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    #[command(flatten)]
    pub(crate) times: DraftTimes,
    #[command(flatten)]
    pub(crate) findings: FindingArgs,
}

#[derive(Args)]
pub(crate) struct ScanArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    #[command(flatten)]
    pub(crate) record: RecordArgs,
    /// Inputs for each tool
    #[arg(long, value_name = "N", default_value_t = 30)]
    pub(crate) cases: usize,
    /// The time for all calls, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub(crate) time_limit: u64,
    #[command(flatten)]
    pub(crate) times: ScanTimes,
    /// Also call tools that may change or destroy something
    #[arg(long)]
    pub(crate) allow_destructive: bool,
    /// A rule of lint that is not run; repeatable
    #[arg(long, value_name = "RULE")]
    pub(crate) allow: Vec<String>,
    /// The minimum severity of a finding that fails (exit code 1)
    #[arg(long, value_name = "SEVERITY", default_value = "error")]
    pub(crate) fail_on: FailOn,
    /// Write the report of the calls to this file; the format follows from the extension (.json .html
    /// .md .xml .sarif); repeatable
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub(crate) outputs: Vec<PathBuf>,
    /// Write all findings as SARIF 2.1.0 to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) sarif: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    Note,
    Warning,
    Error,
    Never,
}

#[derive(Args)]
pub(crate) struct DemoArgs {
    /// Serve streamable HTTP on this address, such as 127.0.0.1:8080, instead of stdio; port 0 takes
    /// a free one. The address is printed
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<SocketAddr>,
    /// Also offer tools with real vulnerabilities, to try fuzz and attack on. They read files, run a
    /// shell and connect to 127.0.0.1, so HTTP is then served on loopback alone
    #[arg(long)]
    pub(crate) vulnerable: bool,
    /// Replay a recording (--record): recorded requests get their recorded answers, anything else is an
    /// error
    #[arg(long, value_name = "FILE", conflicts_with_all = ["http", "vulnerable", "conformance"])]
    pub(crate) replay: Option<PathBuf>,
    /// Keep the recorded response times
    #[arg(long, requires = "replay")]
    pub(crate) paced: bool,
    /// The earlier spelling of the server for the official conformance suite
    #[arg(long, hide = true)]
    pub(crate) conformance: bool,
}
