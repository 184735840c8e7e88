//! The arguments of `karat history` and `karat serve`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Args)]
pub(crate) struct HistoryArgs {
    /// The history [default: the one that karat.toml names, or karat-history.sqlite]
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) db: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: HistoryCommand,
}

#[derive(Subcommand)]
pub(crate) enum HistoryCommand {
    /// Add reports; those that are already stored are skipped
    Add(HistoryAddArgs),
    /// List the runs, the latest last
    List(HistoryListArgs),
    /// Show a metric from run to run, or the latest values of an evaluation
    Show(HistoryShowArgs),
    /// Compare two runs item by item
    Compare(HistoryCompareArgs),
    /// Delete old runs
    Prune(HistoryPruneArgs),
    /// Write the dashboard as a folder of pages that any web server can show
    Site(HistorySiteArgs),
    /// Export the report of a run, or the metrics of all runs as a table
    Export(HistoryExportArgs),
}

#[derive(Args)]
pub(crate) struct HistoryAddArgs {
    /// Reports (karat.report or karat.check JSON); - reads one from stdin
    #[arg(required = true, value_name = "REPORT")]
    pub(crate) reports: Vec<PathBuf>,
}

#[derive(Args)]
pub(crate) struct HistoryListArgs {
    /// Only runs with this evaluation or entry, such as retrieval, search or retrieval/search
    #[arg(long, value_name = "EVALUATION")]
    pub(crate) evaluation: Option<String>,
}

#[derive(Args)]
pub(crate) struct HistoryShowArgs {
    /// A metric such as mrr, or an evaluation or entry such as retrieval, search or retrieval/search
    #[arg(value_name = "METRIC|EVALUATION")]
    pub(crate) what: String,
    /// Only this evaluation or entry
    #[arg(long, value_name = "EVALUATION")]
    pub(crate) evaluation: Option<String>,
    /// Show only the last N runs
    #[arg(long, value_name = "N", default_value_t = 50)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) last: u32,
}

#[derive(Args)]
pub(crate) struct HistoryCompareArgs {
    /// The earlier run, by its number
    pub(crate) before: i64,
    /// The later run
    pub(crate) after: i64,
    /// Also compare over this slice, such as split=test; repeatable
    #[arg(long, value_name = "BY=VALUE")]
    pub(crate) slice: Vec<String>,
}

#[derive(Args)]
pub(crate) struct HistoryPruneArgs {
    /// Keep the last N runs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    #[arg(required_unless_present = "older_than", conflicts_with = "older_than")]
    pub(crate) keep: Option<u32>,
    /// Delete runs that started before a day (2026-08-01) or more than N days ago (90d)
    #[arg(long, value_name = "DAY|DAYS")]
    pub(crate) older_than: Option<String>,
    /// List the runs without deleting them
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Args)]
pub(crate) struct HistoryExportArgs {
    /// The run, by its number
    #[arg(required_unless_present = "parquet")]
    pub(crate) run: Option<i64>,
    /// Write the report to this file instead of stdout
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Write the metrics of the run, or of all runs, to this file as Parquet
    #[arg(long, value_name = "FILE", conflicts_with = "output")]
    pub(crate) parquet: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct HistorySiteArgs {
    /// The folder: a new one, or one that this command wrote before
    pub(crate) folder: PathBuf,
    /// Include the full reports of the last N runs
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) reports: usize,
}

#[derive(Args)]
pub(crate) struct DashboardArgs {
    /// Show only these reports, without a history
    #[arg(value_name = "REPORT", conflicts_with = "db")]
    pub(crate) reports: Vec<PathBuf>,
    /// The history [default: the one that karat.toml names, or karat-history.sqlite]
    #[arg(long, value_name = "FILE")]
    pub(crate) db: Option<PathBuf>,
    /// The port on 127.0.0.1; 0 for a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) port: u16,
    /// Open the dashboard in a browser
    #[arg(long)]
    pub(crate) open: bool,
    /// Require a new token, which is part of the printed URL: for machines with other users. Conflicts
    /// with --open, because other users can see command lines
    #[arg(long, conflicts_with = "open")]
    pub(crate) token: bool,
}
