//! The arguments of `karat agent`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::CheckArgs;

#[derive(Subcommand)]
pub(crate) enum AgentCommand {
    /// Score recorded traces
    Score(AgentScoreArgs),
    /// Compare two runs of the same tasks call by call
    Diff(AgentDiffArgs),
    /// Run the agent evaluations of the project alone
    Check(CheckArgs),
}

/// How traces are read.
#[derive(Args, Clone)]
pub(crate) struct TraceArgs {
    /// The shape of the traces
    #[arg(long, value_name = "FORMAT", default_value = "native")]
    pub(crate) format: TraceFormat,
    /// Tasks with what should have happened, for traces that do not say; repeatable. JSON lines, JSON,
    /// YAML, or an mcp-eval scenario
    #[arg(long, value_name = "FILE")]
    pub(crate) tasks: Vec<PathBuf>,
    /// Which share of records may be bad; they are counted
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub(crate) max_bad: f64,
}

#[derive(Args)]
pub(crate) struct AgentScoreArgs {
    /// The traces: JSON lines, plain, gz or zstd; several files of one shape
    #[arg(required = true)]
    pub(crate) traces: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) read: TraceArgs,
    /// The tools that were on offer: a file, a dataset, or bundled:tools/v1; repeatable
    #[arg(long, value_name = "TOOLS")]
    pub(crate) tools: Vec<String>,
    /// A metric of calls beside ours, such as ragas.tool_call_f1; repeatable. Without it, the usual
    /// ones of RAGAS and DeepEval
    #[arg(short, long = "metric", value_name = "ID")]
    pub(crate) metrics: Vec<String>,
    /// Only means, in one pass: for any number of traces, in flat memory
    #[arg(long)]
    pub(crate) means: bool,
    /// Means, and every trace's scores before them
    #[arg(long)]
    pub(crate) per_item: bool,
    /// The name of the report
    #[arg(long, value_name = "NAME", default_value = "traces")]
    pub(crate) name: String,
    /// Fail if a metric is below this, such as calls.exact=0.9; repeatable
    #[arg(long, value_name = "METRIC=VALUE")]
    pub(crate) min: Vec<String>,
    /// Fail if a metric is above this; repeatable
    #[arg(long, value_name = "METRIC=VALUE")]
    pub(crate) max: Vec<String>,
    /// Fail if a metric drops by more than this against --baseline; repeatable
    #[arg(long, value_name = "METRIC=VALUE", requires = "baseline")]
    pub(crate) max_drop: Vec<String>,
    /// The reference scores
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    /// The folder for reports
    #[arg(long, value_name = "DIR", default_value = "karat-report")]
    pub(crate) out: PathBuf,
    /// A further output; its type from the extension (.json .html .md .xml)
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub(crate) outputs: Vec<PathBuf>,
}

#[derive(Args)]
pub(crate) struct AgentDiffArgs {
    /// The traces of the earlier run
    pub(crate) before: PathBuf,
    /// The traces of the later run
    pub(crate) after: PathBuf,
    #[command(flatten)]
    pub(crate) read: TraceArgs,
    /// Numbers of this argument may differ by so much, such as temperature=0.5; repeatable
    #[arg(long, value_name = "ARGUMENT=NUMBER")]
    pub(crate) within: Vec<String>,
    /// Fail if the mean similarity is below this
    #[arg(long, value_name = "VALUE")]
    pub(crate) min_similarity: Option<f64>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceFormat {
    /// Karat's own, see docs/agent.md
    Native,
    /// RAGAS multi-turn samples
    Ragas,
    /// DeepEval test cases
    Deepeval,
    /// OpenAI chat logs
    Openai,
    /// Anthropic message logs
    Anthropic,
    /// OpenTelemetry spans, OTLP JSON
    Otlp,
    /// Recordings of MCP sessions
    McpRecording,
}
