//! The arguments of `karat resilience`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::agent::ModelApi;
use super::{CheckArgs, Given};

#[derive(Subcommand)]
pub(crate) enum ResilienceCommand {
    /// Score recorded runs: one report for each pipeline and attack
    Score(Box<ResilienceScoreArgs>),
    /// Measure the project's resilience entries, or let an agent work in worlds, through a proxy, a guard or
    /// nothing
    Run(Box<ResilienceRunArgs>),
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
    /// Fail if a metric is below this, such as utility.benign=0.8; repeatable
    #[arg(long, value_name = "METRIC=VALUE")]
    pub(crate) min: Vec<String>,
    /// Fail if a metric is above this, such as attack.success=0.05; repeatable
    #[arg(long, value_name = "METRIC=VALUE")]
    pub(crate) max: Vec<String>,
    /// The maximum fraction of failed runs; without it, any
    #[arg(long, value_name = "SHARE")]
    pub(crate) max_errors: Option<f64>,
    /// Write the report to this file; the format follows from the extension (.json .html .md .xml
    /// .badge.json)
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub(crate) outputs: Vec<PathBuf>,
}

#[derive(Args)]
#[command(after_help = "Without options on what to run, the entries of the project are measured; \
                        without a project, the hijacked agent in the bundled worlds.")]
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
    /// A model as the agent, by the endpoint's name for it, through `karat agent run`
    #[arg(long, value_name = "NAME", requires = "endpoint", conflicts_with = "agent")]
    pub(crate) model: Option<String>,
    /// The endpoint of the model, such as http://127.0.0.1:8080/v1
    #[arg(long, value_name = "URL", requires = "model")]
    pub(crate) endpoint: Option<String>,
    /// The API of the endpoint
    #[arg(long, value_name = "API", default_value = "openai", requires = "model")]
    pub(crate) api: ModelApi,
    /// The environment variable that holds the endpoint's key
    #[arg(long, value_name = "VARIABLE", requires = "model")]
    pub(crate) key_env: Option<String>,
    /// A program as the agent, as a shell reads it. {prompt} becomes the task, {url} the address of the
    /// MCP server, {config} a file with mcpServers, {folder} a folder for files
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["agent", "model"])]
    pub(crate) agent_command: Option<String>,
    /// The time limit for a task of a model or program, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=86400))]
    pub(crate) agent_seconds: u64,
    /// Replay the calls of this recording (written by --record) instead of running an agent
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
    /// The attacks on each task and goal; each has another style and surface
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) attacks: usize,
    /// The name of the defence in the report
    #[arg(long, value_name = "NAME")]
    pub(crate) defence: Option<String>,
    /// The command is a guard, not a proxy: it reads lines {"id", "kind", "text"} and answers
    /// {"id", "block"}
    #[arg(long, requires = "command")]
    pub(crate) guard: bool,
    /// The address at which the proxy listens, such as http://127.0.0.1:{port}/mcp; stdio without it
    #[arg(long, value_name = "URL", requires = "command")]
    pub(crate) url: Option<String>,
    /// A variable for the command
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
    pub(crate) parallel: u16,
    /// The time for one call, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u16).range(1..=3600))]
    pub(crate) timeout: u16,
    /// Fail if a metric is below this, such as utility.benign=0.8; repeatable
    #[arg(long, value_name = "METRIC=VALUE")]
    pub(crate) min: Vec<String>,
    /// Fail if a metric is above this, such as attack.success=0.05; repeatable
    #[arg(long, value_name = "METRIC=VALUE")]
    pub(crate) max: Vec<String>,
    /// The maximum fraction of failed runs
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub(crate) max_errors: f64,
    /// The command of the defence. For a proxy, {server} becomes the command of the world's server,
    /// {url} its address, {config} and {config-url} a file with mcpServers, {port} a free port
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScriptedAgent {
    /// Makes the calls of the task, and no other
    Diligent,
    /// Makes the calls of the task, then those of the attacker
    Hijacked,
    /// Makes the calls of the task, and each call that a delivered text orders
    Gullible,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunFormat {
    /// AgentDojo: PIPELINE/SUITE/TASK/ATTACK/GOAL.json
    Agentdojo,
    /// ASB: ATTACK/MODEL/MEMORY/TEMPLATE….csv
    Asb,
    /// Karat: JSON Lines, a line for each run
    Native,
}
