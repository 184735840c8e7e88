//! The arguments of `karat check`, which every command that measures shares.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use karat_core::partition::Partition;

#[derive(Args)]
pub(crate) struct CheckAllArgs {
    #[command(flatten)]
    pub(crate) check: CheckArgs,
    /// Measure only the entries of this evaluation: server, agent, retrieval, detection,
    /// resilience
    #[arg(long, value_name = "NAME")]
    pub(crate) evaluation: Option<String>,
    /// Also add the report to a history: FILE, or by default the one that karat.toml names, or
    /// karat-history.sqlite
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    #[arg(conflicts_with = "partition")]
    pub(crate) history: Option<Option<PathBuf>>,
    /// Open the report in a browser
    #[arg(long, conflicts_with = "partition")]
    pub(crate) open: bool,
    /// Measure again whenever a file of the project changes, until Ctrl-C: the entries that use the
    /// file, or all of them
    #[arg(long, conflicts_with_all = ["json", "history", "open", "partition"])]
    pub(crate) watch: bool,
}

#[derive(Args, Clone, Default)]
pub(crate) struct CheckArgs {
    /// The project file or its folder [default: karat.toml in this folder or the nearest parent]
    pub(crate) project: Option<PathBuf>,
    /// Use the bundled project
    #[arg(long, conflicts_with = "project")]
    pub(crate) bundled: bool,
    /// The folder for reports and run journals
    #[arg(long, value_name = "DIR", default_value = "karat-report")]
    pub(crate) out: PathBuf,
    /// Also write FILE; the format follows from the extension (.json .html .md .xml .sarif .agent.md
    /// .badge.json .score-report.json)
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub(crate) outputs: Vec<PathBuf>,
    /// Continue an interrupted run, reusing the answers in its journal
    #[arg(long)]
    pub(crate) resume: bool,
    /// True if the command has `--resume` at all
    #[arg(skip = true)]
    pub(crate) can_resume: bool,
    /// Measure one part of the items, such as hash:1/8 for the first of eight, and leave the report to
    /// `karat merge`
    #[arg(long, value_name = "hash:PART/PARTS", conflicts_with_all = ["outputs", "strict", "format"])]
    pub(crate) partition: Option<Partition>,
    /// Exit with code 4 if a rule is inconclusive
    #[arg(long)]
    pub(crate) strict: bool,
    /// Only the entry NAME, or EVALUATION/NAME
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Option<String>,
    /// The folder for tables, of commands that write any
    #[arg(skip)]
    pub(crate) parquet: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) form: FormatArgs,
}

/// Rules for the metrics of a report.
#[derive(Args)]
pub(crate) struct RuleArgs {
    /// Fail if a metric is below this, such as success@5=0.9; `karat metrics` lists the ids; repeatable
    #[arg(long, value_name = "METRIC=VALUE")]
    pub(crate) min: Vec<String>,
    /// Fail if a metric is above this; repeatable
    #[arg(long, value_name = "METRIC=VALUE")]
    pub(crate) max: Vec<String>,
}

/// The judgement of recorded answers, and the files that are written.
#[derive(Args)]
pub(crate) struct ScoreArgs {
    /// The maximum fraction of items without an answer
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub(crate) max_errors: f64,
    #[command(flatten)]
    pub(crate) rules: RuleArgs,
    /// Write the report to this file; the format follows from the extension (.json .html .md .xml
    /// .badge.json)
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub(crate) outputs: Vec<PathBuf>,
    /// Write items, observations and metrics into this folder, as Parquet
    #[arg(long, value_name = "DIR")]
    pub(crate) parquet: Option<PathBuf>,
}

/// The form of the result on stdout.
#[derive(Args, Clone, Copy, Default)]
pub(crate) struct FormatArgs {
    /// The format of the output on stdout: text, or agent (a summary for coding agents, at most 2,000 tokens)
    #[arg(
        long = "output-format",
        value_name = "FORMAT",
        default_value = "text",
        conflicts_with = "json"
    )]
    pub(crate) format: Format,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    #[default]
    Text,
    Agent,
}

impl CheckArgs {
    /// The same, with the result in this form.
    pub(crate) fn in_form(self, form: FormatArgs) -> CheckArgs {
        CheckArgs { form, ..self }
    }

    /// The arguments of a command without a project: its output places only.
    pub(crate) fn writing(out: &Path, outputs: &[PathBuf]) -> CheckArgs {
        CheckArgs { out: out.to_owned(), outputs: outputs.to_vec(), ..CheckArgs::default() }
    }
}
