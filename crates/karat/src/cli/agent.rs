//! The arguments of `karat agent`.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use karat_agent::TraceFormat;
use karat_core::partition::Partition;
use karat_io::time::Time;

use super::check::{CheckArgs, FormatArgs, RuleArgs};
use super::given::Given;
use super::times::{DAY, MILLISECOND, NONE, SECOND, time};

#[derive(Subcommand)]
pub(crate) enum AgentCommand {
    /// Measure the agent entries of the project, by default of the bundled one; or run an agent on tasks
    /// over live MCP servers, record the runs and score them
    Run(Box<AgentRunArgs>),
    /// Score recorded traces
    Score(Box<AgentScoreArgs>),
    /// Ask a model whether tasks were completed, and record its verdicts
    Judge(AgentJudgeArgs),
    /// Compare two runs of the same tasks call by call
    Diff(AgentDiffArgs),
    /// Receive OpenTelemetry spans from agents and save them for scoring
    Listen(AgentListenArgs),
    /// Compare two models on the same tasks, recorded or live, to decide on an upgrade
    Upgrade(Box<AgentUpgradeArgs>),
    /// Propose tasks from recorded traces, for review
    Suggest(AgentSuggestArgs),
    /// The earlier spelling: `karat agent check` for `karat agent run`
    #[command(hide = true)]
    Check(CheckArgs),
}

/// The formats by their names.
fn trace_format() -> impl TypedValueParser<Value = TraceFormat> {
    let value = |format: &TraceFormat| PossibleValue::new(format.name()).help(format.about());
    PossibleValuesParser::new(TraceFormat::ALL.iter().map(value)).map(|name| {
        let named = TraceFormat::ALL.iter().find(|format| format.name() == name);
        named.copied().unwrap_or_default()
    })
}

/// The reading of traces.
#[derive(Args, Clone)]
pub(crate) struct TraceArgs {
    /// The format of the traces
    #[arg(long, value_name = "FORMAT", default_value = "auto", value_parser = trace_format())]
    pub(crate) format: TraceFormat,
    /// Tasks with their expectations, for traces without any; repeatable. JSON Lines, JSON, YAML, or
    /// an mcp-eval scenario
    #[arg(long, value_name = "FILE")]
    pub(crate) tasks: Vec<PathBuf>,
    /// The maximum fraction of records that cannot be read
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub(crate) max_malformed: f64,
}

/// The options that need a report: a single pass over the traces writes none and keeps no items.
const OF_A_REPORT: [&str; 8] =
    ["verdicts", "before", "name", "max_drop", "baseline", "out", "outputs", "parquet"];

#[derive(Args)]
pub(crate) struct AgentScoreArgs {
    /// The traces: files of any format, plain, gz or zstd, or Parquet
    #[arg(required = true)]
    pub(crate) traces: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) read: TraceArgs,
    /// The tools that the agent could call: a file, a dataset, or bundled:tools/v1; repeatable
    #[arg(long, value_name = "TOOLS")]
    pub(crate) tools: Vec<String>,
    /// An additional metric of calls, such as ragas.tool_call_f1; repeatable. By default, the common
    /// ones of RAGAS and DeepEval
    #[arg(short, long = "metric", value_name = "ID")]
    pub(crate) metrics: Vec<String>,
    /// Recorded verdicts of a judge, as `karat agent judge` writes them
    #[arg(long, value_name = "FILE")]
    pub(crate) verdicts: Option<PathBuf>,
    /// Human labels to compare the judge with: lines with id, run and passed
    #[arg(long, value_name = "FILE", requires = "verdicts")]
    pub(crate) labels: Option<PathBuf>,
    /// Model prices per million tokens, in TOML or JSON, for runs without a recorded cost
    #[arg(long, value_name = "FILE")]
    pub(crate) prices: Option<PathBuf>,
    /// The traces of an earlier run, to compare call by call in the report
    #[arg(long, value_name = "FILE")]
    pub(crate) before: Option<PathBuf>,
    /// Print only means, in one pass with constant memory
    #[arg(long, conflicts_with_all = OF_A_REPORT)]
    pub(crate) means: bool,
    /// Print every trace's scores, then the means
    #[arg(long, conflicts_with_all = OF_A_REPORT)]
    pub(crate) per_item: bool,
    /// The name of the report
    #[arg(long, value_name = "NAME", default_value = "traces")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) rules: RuleArgs,
    /// Fail if a metric drops by more than this against --baseline; repeatable
    #[arg(long, value_name = "METRIC=VALUE", requires = "baseline")]
    pub(crate) max_drop: Vec<String>,
    /// The reference scores
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    /// The maximum fraction of traces, of those that can be read, whose run failed
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub(crate) max_errors: f64,
    /// The folder for reports
    #[arg(long, value_name = "DIR", default_value = "karat-report")]
    pub(crate) out: PathBuf,
    /// Also write FILE; the format follows from the extension (.json .html .md .xml)
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub(crate) outputs: Vec<PathBuf>,
    /// Write items, observations and metrics into this folder, as Parquet
    #[arg(long, value_name = "DIR")]
    pub(crate) parquet: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct AgentListenArgs {
    /// The port on 127.0.0.1; 0 for a free one
    #[arg(long, value_name = "PORT", default_value_t = 4318)]
    pub(crate) port: u16,
    /// The file for the received spans; appended to if it exists
    #[arg(short, long, value_name = "FILE", default_value = "spans.jsonl")]
    pub(crate) output: PathBuf,
}

#[derive(Args)]
pub(crate) struct AgentUpgradeArgs {
    /// The current model: a file of traces, or MODEL@URL to run it now (anthropic:MODEL@URL for that API)
    pub(crate) before: String,
    /// The candidate model on the same tasks, in the same form
    pub(crate) after: String,
    #[command(flatten)]
    pub(crate) read: TraceArgs,
    /// Model prices per million tokens, in TOML or JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) prices: Option<PathBuf>,
    /// The number of tasks that may newly fail
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) max_lost: usize,
    /// Fail if the mean cost grows by more than this fraction, such as 0.2
    #[arg(long, value_name = "SHARE")]
    pub(crate) max_cost_growth: Option<f64>,
    /// Fail if the mean time grows by more than this fraction
    #[arg(long, value_name = "SHARE")]
    pub(crate) max_time_growth: Option<f64>,
    /// Also fail on DRIFT
    #[arg(long)]
    pub(crate) no_drift: bool,
    #[command(flatten)]
    pub(crate) live: LiveArgs,
    /// The environment variable with the key of the second endpoint, if it differs
    #[arg(long, value_name = "VARIABLE")]
    pub(crate) after_key_env: Option<String>,
    /// The folder for recordings and traces of models that are run
    #[arg(long, value_name = "DIR", default_value = "karat-report/upgrade")]
    pub(crate) out: PathBuf,
    /// Continue interrupted runs, reusing the answers in their journals
    #[arg(long)]
    pub(crate) resume: bool,
}

#[derive(Args)]
pub(crate) struct AgentSuggestArgs {
    /// The traces: files of any format
    #[arg(required = true)]
    pub(crate) traces: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) read: TraceArgs,
    /// The file for the proposed tasks
    #[arg(short, long, value_name = "FILE", default_value = "suggested-tasks.jsonl")]
    pub(crate) output: PathBuf,
}

/// The settings of live runs.
#[derive(Args)]
pub(crate) struct LiveArgs {
    /// The API of the endpoint
    #[arg(long, value_name = "API", default_value = "openai")]
    pub(crate) api: ModelApi,
    /// The environment variable with the endpoint's key
    #[arg(long, value_name = "VARIABLE")]
    pub(crate) key_env: Option<String>,
    /// A config file of MCP servers, such as .mcp.json; the ones that tasks name are started. `demo`
    /// is built in
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The number of runs of each task
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) runs: u32,
    /// The maximum number of requests to the model in one run
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) max_turns: u32,
    /// The maximum number of tokens of one run
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens: Option<u64>,
    /// The time limit for one run
    #[arg(long, value_name = "TIME", default_value = "300s", value_parser = time(MILLISECOND, DAY))]
    pub(crate) agent_timeout: Time,
    /// The maximum cost of one run, by --price
    #[arg(long, value_name = "AMOUNT", requires = "price")]
    pub(crate) max_cost: Option<f64>,
    /// The price of a million input and output tokens
    #[arg(long, value_name = "IN,OUT")]
    pub(crate) price: Option<String>,
    /// The maximum number of tokens of one answer
    #[arg(long, value_name = "N", default_value_t = 1024)]
    pub(crate) answer_tokens: u64,
    /// The temperature
    #[arg(long, value_name = "T", default_value_t = 0.0)]
    pub(crate) temperature: f64,
    /// The seed of the first run, for endpoints that take one
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// The system prompt
    #[arg(long, value_name = "TEXT")]
    pub(crate) system: Option<String>,
    /// The number of concurrent runs
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) concurrency: usize,
    /// The maximum fraction of runs that fail because of the endpoint or a server
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub(crate) max_errors: f64,
    /// The time limit for one answer of the endpoint
    #[arg(long, value_name = "TIME", default_value = "120s", value_parser = time(SECOND, DAY))]
    pub(crate) timeout: Time,
    /// The delay before the first retry of a busy endpoint; doubled each time
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = time(NONE, DAY))]
    pub(crate) backoff: Time,
}

#[derive(Args)]
pub(crate) struct AgentRunArgs {
    /// The tasks: JSON Lines, JSON, YAML, or mcp-eval scenarios. Or a project file or its folder, to
    /// measure its entries [default: karat.toml in this folder or the nearest parent]
    pub(crate) tasks: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) given: Given<AgentTaskArgs>,
    #[command(flatten)]
    pub(crate) task: AgentTaskArgs,
    #[command(flatten)]
    pub(crate) given_live: Given<LiveArgs>,
    #[command(flatten)]
    pub(crate) live: LiveArgs,
    /// Use the bundled project
    #[arg(long, conflicts_with = "tasks")]
    pub(crate) bundled: bool,
    /// Only the entry NAME, or EVALUATION/NAME
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Option<String>,
    /// Measure one part of the items, such as hash:1/8 for the first of eight, and leave the report to
    /// `karat merge`
    #[arg(long, value_name = "hash:PART/PARTS", conflicts_with_all = ["outputs", "strict"])]
    pub(crate) partition: Option<Partition>,
    /// Exit with code 4 if a rule is inconclusive
    #[arg(long)]
    pub(crate) strict: bool,
    /// Continue an interrupted run, reusing the answers in its journal
    #[arg(long, conflicts_with = "replay")]
    pub(crate) resume: bool,
    /// The folder for reports
    #[arg(long, value_name = "DIR", default_value = "karat-report")]
    pub(crate) out: PathBuf,
    /// Also write FILE; the format follows from the extension (.json .html .md .xml)
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub(crate) outputs: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) form: FormatArgs,
}

impl AgentRunArgs {
    /// The project that is measured; `None` if an agent does tasks instead.
    pub(crate) fn project(&self) -> Option<CheckArgs> {
        if self.given.any() || self.given_live.any() {
            return None;
        }
        let project = match self.tasks.as_slice() {
            [] => None,
            [named] if named.is_dir() || named.extension().is_some_and(|end| end == "toml") => {
                Some(named.clone())
            }
            _ => return None,
        };
        Some(CheckArgs {
            project,
            bundled: self.bundled,
            partition: self.partition,
            only: self.only.clone(),
            ..self.check()
        })
    }

    /// The way a run is carried out and written.
    pub(crate) fn check(&self) -> CheckArgs {
        CheckArgs {
            resume: self.resume,
            can_resume: true,
            strict: self.strict,
            form: self.form,
            ..CheckArgs::writing(&self.out, &self.outputs)
        }
    }
}

/// The runs of tasks.
#[derive(Args)]
pub(crate) struct AgentTaskArgs {
    /// The name of a model at the endpoint; repeatable. By default, the scripted agent follows the
    /// plans in the tasks
    #[arg(long = "model", value_name = "NAME", requires = "endpoint")]
    pub(crate) models: Vec<String>,
    /// The endpoint of the model, such as http://127.0.0.1:8080/v1
    #[arg(long, value_name = "URL", requires = "models")]
    pub(crate) endpoint: Option<String>,
    /// The setting of the runs; repeatable
    #[arg(long = "setting", value_name = "SETTING", default_value = "with-tools")]
    pub(crate) settings: Vec<RunSetting>,
    /// An irrelevant server, for the setting distractors; repeatable
    #[arg(long = "distractor", value_name = "NAME")]
    pub(crate) distractors: Vec<String>,
    /// The file for the recording [default: agent-recording.jsonl in the folder for reports]
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub(crate) record: Option<PathBuf>,
    /// Replay a recording instead of using a model and servers; tasks default to the recorded ones
    #[arg(long, value_name = "FILE")]
    pub(crate) replay: Option<PathBuf>,
    /// The file for the traces [default: traces.jsonl in the folder for reports]
    #[arg(long, value_name = "FILE")]
    pub(crate) traces: Option<PathBuf>,
    /// The name of the report
    #[arg(long, value_name = "NAME", default_value = "run")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) rules: RuleArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModelApi {
    /// OpenAI-compatible chat completions
    Openai,
    /// Anthropic messages
    Anthropic,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunSetting {
    /// The tools of the servers that a task names
    WithTools,
    /// No tools
    WithoutTools,
    /// The tools of these servers and of the distractors
    Distractors,
}

#[derive(Args)]
pub(crate) struct AgentJudgeArgs {
    /// The traces
    #[arg(required = true)]
    pub(crate) traces: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) read: TraceArgs,
    /// The name of the judge model at the endpoint
    #[arg(long, value_name = "NAME")]
    pub(crate) model: String,
    /// The endpoint of the judge, such as http://127.0.0.1:8080/v1
    #[arg(long, value_name = "URL")]
    pub(crate) endpoint: String,
    /// The API of the endpoint
    #[arg(long, value_name = "API", default_value = "openai")]
    pub(crate) api: ModelApi,
    /// The environment variable with the endpoint's key
    #[arg(long, value_name = "VARIABLE")]
    pub(crate) key_env: Option<String>,
    /// The number of votes on each unit
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) votes: u32,
    /// The temperature
    #[arg(long, value_name = "T", default_value_t = 0.0)]
    pub(crate) temperature: f64,
    /// The seed of the first vote, for endpoints that take one
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// The maximum number of tokens of one answer
    #[arg(long, value_name = "N", default_value_t = 512)]
    pub(crate) answer_tokens: u64,
    /// The time limit for one answer of the endpoint
    #[arg(long, value_name = "TIME", default_value = "120s", value_parser = time(SECOND, DAY))]
    pub(crate) timeout: Time,
    /// The file for the verdicts
    #[arg(long, value_name = "FILE")]
    pub(crate) verdicts: PathBuf,
}

#[derive(Args)]
pub(crate) struct AgentDiffArgs {
    /// The traces of the earlier run
    pub(crate) before: PathBuf,
    /// The traces of the later run
    pub(crate) after: PathBuf,
    #[command(flatten)]
    pub(crate) read: TraceArgs,
    /// The tolerance for a numeric argument, such as temperature=0.5; repeatable
    #[arg(long, value_name = "ARGUMENT=NUMBER")]
    pub(crate) within: Vec<String>,
    /// Fail if the mean similarity is below this
    #[arg(long, value_name = "VALUE")]
    pub(crate) min_similarity: Option<f64>,
    /// Write the comparison to this file; the format follows from the extension (.html .json .md .xml);
    /// repeatable
    #[arg(short, long = "output", value_name = "FILE")]
    pub(crate) outputs: Vec<PathBuf>,
}
