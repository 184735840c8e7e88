//! The arguments of `karat resilience`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use karat_io::time::Time;

use super::agent::ModelApi;
use super::check::{CheckArgs, RuleArgs};
use super::given::Given;
use super::times::{DAY, HOUR, MILLISECOND, SECOND, time};

#[derive(Subcommand)]
pub(crate) enum ResilienceCommand {
    /// Measure the resilience entries of the project; or run an agent in worlds, with or without a proxy
    /// or guard
    Run(Box<ResilienceRunArgs>),
    /// Score recorded runs: one report for each pipeline and attack
    Score(Box<ResilienceScoreArgs>),
}

#[derive(Args)]
pub(crate) struct ResilienceScoreArgs {
    /// The runs: a folder, or an archive (tar, tar.gz, tar.xz, tar.zst, zip)
    pub(crate) path: PathBuf,
    /// The format of the runs
    #[arg(long, value_name = "FORMAT", default_value = "agentdojo")]
    pub(crate) format: RunFormat,
    /// Only this attack, or none; repeatable
    #[arg(long = "attack", value_name = "NAME")]
    pub(crate) attacks: Vec<String>,
    /// Only this suite; repeatable
    #[arg(long = "suite", value_name = "NAME")]
    pub(crate) suites: Vec<String>,
    /// Only this pipeline; repeatable
    #[arg(long = "pipeline", value_name = "NAME")]
    pub(crate) pipelines: Vec<String>,
    /// Only the goals of this version of AgentDojo's benchmark, such as v1.1.2
    #[arg(long, value_name = "VERSION")]
    pub(crate) benchmark: Option<String>,
    /// One report for each pipeline, over all its attacks
    #[arg(long)]
    pub(crate) pool: bool,
    #[command(flatten)]
    pub(crate) rules: RuleArgs,
    /// The maximum fraction of failed runs [default: no limit]
    #[arg(long, value_name = "SHARE")]
    pub(crate) max_errors: Option<f64>,
    /// Write the report to this file; the format follows from the extension (.json .html .md .xml
    /// .badge.json)
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub(crate) outputs: Vec<PathBuf>,
}

#[derive(Args)]
#[command(
    after_help = "Without options that describe a run, measures the entries of the project; without a project, \
                        the hijacked agent in the bundled worlds."
)]
pub(crate) struct ResilienceRunArgs {
    #[command(flatten)]
    pub(crate) check: CheckArgs,
    #[command(flatten)]
    pub(crate) given: Given<WorldArgs>,
    #[command(flatten)]
    pub(crate) worlds: WorldArgs,
}

/// A run that no project describes: the agent, the defence, and the worlds.
#[derive(Args)]
pub(crate) struct WorldArgs {
    /// A set of worlds
    #[arg(long, value_name = "DATASET", default_value = "bundled:worlds/v1")]
    pub(crate) dataset: String,
    /// The agent
    #[arg(long, value_name = "NAME", default_value = "hijacked")]
    pub(crate) agent: ScriptedAgent,
    /// Run a model as the agent: its name at the endpoint
    #[arg(long, value_name = "NAME", requires = "endpoint", conflicts_with = "agent")]
    pub(crate) model: Option<String>,
    /// The endpoint of the model, such as http://127.0.0.1:8080/v1
    #[arg(long, value_name = "URL", requires = "model")]
    pub(crate) endpoint: Option<String>,
    /// The API of the endpoint
    #[arg(long, value_name = "API", default_value = "openai", requires = "model")]
    pub(crate) api: ModelApi,
    /// The environment variable with the endpoint's key
    #[arg(long, value_name = "VARIABLE", requires = "model")]
    pub(crate) key_env: Option<String>,
    /// Run a program as the agent, quoted as for a shell. {prompt} becomes the task, {url} the URL of the
    /// MCP server, {config} a file with mcpServers, {folder} a folder for files
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["agent", "model"])]
    pub(crate) agent_command: Option<String>,
    /// The time limit for a task of a model or program
    #[arg(long, value_name = "TIME", default_value = "300s", value_parser = time(MILLISECOND, DAY))]
    pub(crate) agent_timeout: Time,
    /// Replay the calls of this recording (from --record) instead of running an agent
    #[arg(long, value_name = "FILE", conflicts_with_all = ["agent", "model", "agent_command"])]
    pub(crate) replay: Option<PathBuf>,
    /// Only this world; repeatable
    #[arg(long = "world", value_name = "NAME")]
    pub(crate) worlds: Vec<String>,
    /// Only this surface, such as result, description or rugpull; repeatable
    #[arg(long = "surface", value_name = "NAME")]
    pub(crate) surfaces: Vec<String>,
    /// Only this style; repeatable
    #[arg(long = "style", value_name = "NAME")]
    pub(crate) styles: Vec<String>,
    /// The number of attacks for each task and goal, each with a different style and surface
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) attacks: u32,
    /// The name of the defence in the report
    #[arg(long, value_name = "NAME")]
    pub(crate) defence: Option<String>,
    /// The command is a guard, not a proxy: it reads lines {"id", "kind", "text"} and answers with
    /// {"id", "block"}
    #[arg(long, requires = "command")]
    pub(crate) guard: bool,
    /// The URL at which the proxy listens, such as http://127.0.0.1:{port}/mcp [default: stdio]
    #[arg(long, value_name = "URL", requires = "command")]
    pub(crate) url: Option<String>,
    /// An environment variable for the command; repeatable
    #[arg(short = 'e', long = "env", value_name = "KEY=VALUE", requires = "command")]
    pub(crate) env: Vec<String>,
    /// Write the runs to this file, in the native format
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// The number of runs per case; with several, a gate tests for non-inferiority
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) runs: u16,
    /// The number of concurrent runs
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) concurrency: u16,
    /// The time limit for a call
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time(SECOND, HOUR))]
    pub(crate) timeout: Time,
    #[command(flatten)]
    pub(crate) rules: RuleArgs,
    /// The maximum fraction of failed runs
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub(crate) max_errors: f64,
    /// The command that starts the defence. For a proxy, {server} becomes the command of the world's
    /// server, {url} its URL, {config} and {config-url} a file with mcpServers, {port} a free port
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScriptedAgent {
    /// Makes only the calls of the task
    Diligent,
    /// Makes the calls of the task, then the calls that the attacker wants
    Hijacked,
    /// Makes the calls of the task, and the calls in any injected text that reaches it
    Gullible,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunFormat {
    /// AgentDojo: PIPELINE/SUITE/TASK/ATTACK/GOAL.json
    Agentdojo,
    /// ASB: ATTACK/MODEL/MEMORY/TEMPLATE….csv
    Asb,
    /// Karat: JSON Lines, one line per run
    Native,
}
