//! The arguments of `karat server fuzz`, `attack` and `call`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use karat_io::time::Time;

use super::check::FormatArgs;
use super::target::{CallTimes, FindingArgs, ProbeTimes, RecordArgs, TargetArgs};
use super::times::{DAY, MILLISECOND, time};

/// The way a server is called with arguments that it may not expect.
#[derive(Args)]
pub(crate) struct ProbeArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    #[command(flatten)]
    pub(crate) record: RecordArgs,
    /// Only this tool; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Vec<String>,
    /// A valid value for parameters with this name, as JSON or text; repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    /// Use the successful inputs of this recording (from karat server record); repeatable
    #[arg(long, value_name = "FILE")]
    pub(crate) from_recording: Vec<PathBuf>,
    /// Also call tools that may change or destroy something
    #[arg(long)]
    pub(crate) allow_destructive: bool,
    /// The random seed
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) times: ProbeTimes,
    /// Stop after this time and report the results so far [default: 300s for fuzz, 600s for attack]
    #[arg(long, value_name = "TIME", value_parser = time(MILLISECOND, DAY))]
    pub(crate) time_limit: Option<Time>,
    #[command(flatten)]
    pub(crate) findings: FindingArgs,
    /// Write the report to this file; the format follows from the extension (.json .html .md .xml .sarif
    /// .badge.json); repeatable
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub(crate) outputs: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) form: FormatArgs,
}

#[derive(Args)]
pub(crate) struct FuzzArgs {
    #[command(flatten)]
    pub(crate) probe: ProbeArgs,
    /// The number of inputs for each tool
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) inputs: usize,
    /// The time limit for the inputs of each tool, and again for shrinking
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time(MILLISECOND, DAY))]
    pub(crate) tool_time_limit: Time,
    /// The maximum number of calls to shrink a failing input; 0 disables shrinking
    #[arg(long, value_name = "N", default_value_t = 60)]
    pub(crate) shrink_calls: usize,
}

#[derive(Args)]
pub(crate) struct AttackArgs {
    #[command(flatten)]
    pub(crate) probe: ProbeArgs,
    /// Only attacks of this class; repeatable
    #[arg(long, value_name = "CLASS")]
    pub(crate) class: Vec<AttackClass>,
    /// Only this attack, such as path-traversal; repeatable
    #[arg(long, value_name = "ID")]
    pub(crate) case: Vec<String>,
    /// A folder that the server may read. Files are planted outside of it, and links in and next to it
    /// lead there [default: the arguments of the command that are folders]
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Vec<PathBuf>,
    /// The number of concurrent calls in a flood
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) flood: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AttackClass {
    Injection,
    Exfiltration,
    PrivilegeEscalation,
    DenialOfService,
}

#[derive(Args)]
pub(crate) struct CallArgs {
    /// The tool to call
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: String,
    /// The arguments: a JSON object, or @FILE
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub(crate) input: String,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    #[command(flatten)]
    pub(crate) record: RecordArgs,
    #[command(flatten)]
    pub(crate) times: CallTimes,
}
