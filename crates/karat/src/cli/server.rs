//! The arguments of `karat server`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use karat_io::time::Time;

use super::check::{CheckArgs, FormatArgs};
use super::probing::{AttackArgs, CallArgs, FuzzArgs};
use super::target::{
    CallTimes, DraftTimes, FailOn, FindingArgs, RecordArgs, ScanTimes, TargetArgs,
};
use super::times::{DAY, MILLISECOND, NONE, latency, time};

#[derive(Subcommand)]
pub(crate) enum ServerCommand {
    /// Measure the server entries of the project, by default of the bundled one: suites, load, fuzz and
    /// attack
    Run(CheckArgs),
    /// Run a suite against a live server
    Test(Box<ServerTestArgs>),
    /// Judge the recorded answers of an earlier run of a suite by the present suite, without the server
    Score(ServerScoreArgs),
    /// Measure latency and throughput under load, with concurrent calls or at a fixed rate
    Load(Box<LoadArgs>),
    /// Check the tool definitions of a server without calling a tool
    Lint(LintArgs),
    /// Check a server at a glance: definitions, hidden instructions, a short fuzz, latencies
    Scan(Box<ScanArgs>),
    /// Call tools with inputs generated from their schemas: edge cases, errors, hostile text
    Fuzz(Box<FuzzArgs>),
    /// Try known attacks, judged by planted canaries and side effects
    Attack(Box<AttackArgs>),
    /// Call a tool once and print the raw result
    Call(CallArgs),
    /// Write a suite from the answers of a live server: read-only tools, resources and prompts
    Suggest(Box<SuggestArgs>),
    /// Print a test case for one call, based on its answers
    Propose(Box<ProposeArgs>),
    /// Proxy a client and a server, and record the traffic
    Record(Box<ServerRecordArgs>),
    /// Make a suite from a recording, and try its cases on a server if one is given
    Distil(Box<DistilArgs>),
    /// Compare a live server with its accepted state: definitions, instructions, canary calls
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
    /// Open the URL in the browser instead of only printing it
    #[arg(long)]
    pub(crate) open: bool,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

#[derive(Args)]
pub(crate) struct LogoutArgs {
    /// The URL of the server
    #[arg(long, value_name = "URL", required_unless_present_any = ["all", "list"])]
    pub(crate) url: Option<String>,
    /// Delete every login
    #[arg(long, conflicts_with_all = ["url", "list"])]
    pub(crate) all: bool,
    /// List the stored logins without deleting any
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
    /// A valid value for parameters with this name, as JSON or text; repeatable
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
    /// The recording, written by `karat server record` or --record
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
    // The server to try the cases on.
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

#[derive(Args)]
pub(crate) struct DriftArgs {
    /// The accepted state, written by --update, or an answer to tools/list
    pub(crate) definitions: PathBuf,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    #[command(flatten)]
    pub(crate) record: RecordArgs,
    /// Accept the present state of the server: write it to the file
    #[arg(long)]
    pub(crate) update: bool,
    /// A suite whose cases are also run as canary calls
    #[arg(long, value_name = "SUITE")]
    pub(crate) canaries: Option<PathBuf>,
    /// The minimum severity of a change that fails (exit code 1)
    #[arg(long, value_name = "SEVERITY", default_value = "warning")]
    pub(crate) fail_on: FailOn,
}

#[derive(Args)]
pub(crate) struct ServerTestArgs {
    /// The suite, in JSON or YAML; `-` reads stdin
    pub(crate) suite: PathBuf,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Only cases with this tag; repeatable
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,
    /// Only the case with this id
    #[arg(long, value_name = "ID")]
    pub(crate) case: Option<String>,
    /// Only the cases that failed in the last report of the output folder; all if none did
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
pub(crate) struct ServerScoreArgs {
    /// The suite, in JSON or YAML; `-` reads stdin
    pub(crate) suite: PathBuf,
    /// The run journal of an earlier `karat server test` or `karat check`
    /// (karat-report/journal/server-NAME.jsonl)
    #[arg(long, value_name = "FILE")]
    pub(crate) journal: PathBuf,
    /// The definitions of the tools, for metrics of their schemas: an answer to tools/list, its list, or a file
    /// of `karat server drift --update`
    #[arg(long, value_name = "FILE")]
    pub(crate) tools: Option<PathBuf>,
    /// The maximum fraction of cases without recorded answers to their requests
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub(crate) max_errors: f64,
    /// Only cases with this tag; repeatable
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,
    /// Only the case with this id
    #[arg(long, value_name = "ID")]
    pub(crate) case: Option<String>,
    /// The folder for the report
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
    /// A suite whose cases are the calls to make; or use --tool
    #[arg(required_unless_present = "tool", conflicts_with = "tool")]
    pub(crate) suite: Option<PathBuf>,
    /// The tool to call
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// The arguments of the tool, a JSON object
    #[arg(long, value_name = "JSON", default_value = "{}", requires = "tool")]
    pub(crate) input: String,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Only cases with this tag; repeatable
    #[arg(long, value_name = "TAG", conflicts_with = "tool")]
    pub(crate) tag: Vec<String>,
    /// The number of concurrent calls (closed loop) [default: 8, without --rate]
    #[arg(long, value_name = "N", conflicts_with = "rate")]
    pub(crate) concurrency: Option<usize>,
    /// The number of calls to start per second, regardless of answers (open loop)
    #[arg(long, value_name = "PER_SECOND")]
    pub(crate) rate: Option<f64>,
    /// The number of sessions: server processes over stdio, connections over HTTP
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) connections: usize,
    /// The time to measure [default: 10s, without --count]
    #[arg(long, value_name = "TIME", conflicts_with = "count", value_parser = time(MILLISECOND, DAY))]
    pub(crate) duration: Option<Time>,
    /// The number of calls to measure
    #[arg(long, value_name = "CALLS")]
    pub(crate) count: Option<u64>,
    /// The time over which the load rises to its full size
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = time(NONE, DAY))]
    pub(crate) ramp: Time,
    /// The unmeasured start: a time, or a number of calls
    #[arg(long, value_name = "TIME_OR_CALLS", default_value = "1s")]
    pub(crate) warm_up: String,
    /// Find the highest rate that meets this condition, such as 'p99<200ms', or the highest concurrency if
    /// --concurrency is given
    #[arg(long, value_name = "CONDITION")]
    pub(crate) find_max: Option<String>,
    /// Also write the counts and histograms to this file, for `karat merge FILE FILE…` to merge the load of
    /// several generators
    #[arg(long, value_name = "FILE", conflicts_with = "find_max")]
    pub(crate) part: Option<PathBuf>,
    /// Exit with code 1 if the median latency exceeds this, such as 20ms
    #[arg(long, value_name = "TIME", value_parser = latency)]
    pub(crate) max_p50: Option<Time>,
    /// Exit with code 1 if more than this fraction of calls fails
    #[arg(long, value_name = "SHARE")]
    pub(crate) max_error_rate: Option<f64>,
    /// The random seed for the order of calls
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
    /// Read the definitions from a file, an answer to tools/list or its list, instead of a server
    #[arg(long, value_name = "FILE", conflicts_with_all = ["url", "config", "server", "command", "record"])]
    pub(crate) tools: Option<PathBuf>,
    /// The time limit for the server to start
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time(MILLISECOND, DAY))]
    pub(crate) start_timeout: Time,
    #[command(flatten)]
    pub(crate) findings: FindingArgs,
}

#[derive(Args)]
pub(crate) struct MigrationArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    #[command(flatten)]
    pub(crate) record: RecordArgs,
    /// A valid value for parameters with this name, as JSON or text; repeatable
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
    /// The number of inputs for each tool
    #[arg(long, value_name = "N", default_value_t = 30)]
    pub(crate) inputs: usize,
    /// The time limit for all calls
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time(MILLISECOND, DAY))]
    pub(crate) time_limit: Time,
    #[command(flatten)]
    pub(crate) times: ScanTimes,
    /// Also call tools that may change or destroy something
    #[arg(long)]
    pub(crate) allow_destructive: bool,
    /// Skip this rule of lint; repeatable
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

#[derive(Args)]
pub(crate) struct DemoArgs {
    /// Serve streamable HTTP on this address, such as 127.0.0.1:8080, instead of stdio, and print the URL;
    /// port 0 for a free port
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<SocketAddr>,
    /// Also offer tools with real vulnerabilities, to try fuzz and attack on. They read files, run a
    /// shell and connect to 127.0.0.1, and are served on loopback only
    #[arg(long)]
    pub(crate) vulnerable: bool,
    /// Replay a recording (--record): recorded requests get their recorded answers, other requests an error
    #[arg(long, value_name = "FILE", conflicts_with_all = ["http", "vulnerable", "conformance"])]
    pub(crate) replay: Option<PathBuf>,
    /// Keep the recorded response times
    #[arg(long, requires = "replay")]
    pub(crate) paced: bool,
    /// The earlier option for the server of the official conformance suite
    #[arg(long, hide = true)]
    pub(crate) conformance: bool,
}
