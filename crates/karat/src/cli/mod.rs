//! The command line, as clap sees it. Nothing below sees a raw flag: each command takes its own
//! arguments and the [`GlobalArgs`] that all of them share.

mod agent;
mod check;
mod corpus;
mod detection;
mod earlier;
mod given;
mod history;
mod import;
mod init;
mod mcp;
mod merge;
mod probing;
mod resilience;
mod retrieval;
mod search;
mod server;
mod target;
mod times;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use agent::*;
pub(crate) use check::*;
pub(crate) use corpus::*;
pub(crate) use detection::*;
pub(crate) use earlier::parse;
pub(crate) use history::*;
pub(crate) use import::*;
pub(crate) use init::*;
pub(crate) use mcp::*;
pub(crate) use merge::*;
pub(crate) use probing::*;
pub(crate) use resilience::*;
pub(crate) use retrieval::*;
pub(crate) use search::*;
pub(crate) use server::*;
pub(crate) use target::*;

/// Measure MCP servers, tool search, scanners and agents against golden sets, and fail the build
/// when a measurement gets worse.
#[derive(Parser)]
#[command(name = "karat", version, max_term_width = 100)]
#[command(after_help = "Exit codes: 0 pass, 1 a gate failed, 2 bad usage, project or dataset, \
                        3 not measured, 4 inconclusive (only with --strict).")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The heading of the options that all commands share.
const GLOBAL: &str = "Global options";

/// The options that all commands share.
#[derive(Args, Clone, Copy)]
pub(crate) struct GlobalArgs {
    /// Print only errors and failures
    #[arg(help_heading = GLOBAL, long, short, global = true)]
    pub(crate) quiet: bool,
    /// Print every number of every entry, in tables
    #[arg(help_heading = GLOBAL, long, short, global = true, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// Print the result on stdout as one JSON document
    #[arg(help_heading = GLOBAL, long, global = true)]
    pub(crate) json: bool,
    /// When to use colour; auto respects NO_COLOR
    #[arg(help_heading = GLOBAL, long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: Color,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Measure every entry of the project, apply its gates and write the report: the command for CI
    Check(CheckAllArgs),
    /// Measure tool search: does it find the right tools?
    Retrieval(RetrievalArgs),
    /// Measure scanners: do they catch attacks and stay quiet otherwise?
    Detection(DetectionArgs),
    /// Measure an MCP server: does it answer correctly, validly, reliably, fast and safely?
    #[command(subcommand)]
    Server(Box<ServerCommand>),
    /// Measure agents: did they call the right tools with the right arguments, and at what cost?
    #[command(subcommand)]
    Agent(AgentCommand),
    /// Measure agents and defences under attack: do they withstand it and still do their work?
    #[command(subcommand)]
    Resilience(ResilienceCommand),
    /// The earlier spelling: `karat score trec` for `karat retrieval trec`
    #[command(subcommand, hide = true)]
    Score(ScoreCommand),
    /// Capture, freeze, verify, compare and serve corpora of tool definitions
    #[command(subcommand)]
    Corpus(CorpusCommand),
    /// Turn a published benchmark, from your own copy, into a project
    Import(ImportArgs),
    /// Merge the parts of a partitioned run (`--partition`) into one report
    Merge(MergeArgs),
    /// Compare two reports item by item, or every pair of systems in one
    Compare(CompareArgs),
    /// Print a report as a comment for a pull or merge request, in at most 24 lines
    Comment(CommentArgs),
    /// Show or accept reference scores
    #[command(subcommand)]
    Baseline(BaselineCommand),
    /// Show the items of an entry in the last report: all, the worse ones, or a single one
    Show(ShowArgs),
    /// Keep reports in one file and follow metrics from run to run
    History(HistoryArgs),
    /// Serve a read-only history dashboard on 127.0.0.1
    Serve(DashboardArgs),
    /// Serve Karat over MCP (stdio) to coding agents: reads the project's reports, and runs it only with
    /// --allow-run
    Mcp(McpArgs),
    /// Create a starter project
    Init(InitArgs),
    /// Run the bundled demo project, which has one entry of each kind
    Demo(TourArgs),
    /// Serve a demo MCP server with good, slow, flaky and wrong tools
    DemoServer(DemoArgs),
    /// List every metric with its definition
    Metrics(MetricsArgs),
    /// Print the JSON Schema of a document that Karat reads or writes
    Schema(SchemaArgs),
    /// Print completions for a shell
    Completions(CompletionsArgs),
    /// Print the manual page, in roff
    Man,
}

#[derive(Args)]
pub(crate) struct CommentArgs {
    /// The report.json of `karat check`
    pub(crate) report: PathBuf,
    /// The report of the merge base, to list the changes since then
    #[arg(long, value_name = "REPORT")]
    pub(crate) base: Option<PathBuf>,
    /// The URL of the full report
    #[arg(long, value_name = "URL")]
    pub(crate) link: Option<String>,
}

#[derive(Subcommand)]
pub(crate) enum ScoreCommand {
    /// Score a TREC run against TREC judgements, as trec_eval does
    #[command(after_help = "This is an earlier spelling of `karat retrieval trec`.")]
    Trec(TrecArgs),
}

#[derive(Args)]
pub(crate) struct CompareArgs {
    /// The earlier report (karat.report or karat.check JSON)
    pub(crate) before: PathBuf,
    /// The later report; if omitted, the systems of one report are compared
    pub(crate) after: Option<PathBuf>,
    /// Also compare over this slice, such as split=test; repeatable
    #[arg(long, value_name = "BY=VALUE")]
    pub(crate) slice: Vec<String>,
    /// The primary metric: its p-value is not corrected for the others, and the systems of one report
    /// are ranked by it
    #[arg(long, value_name = "ID")]
    pub(crate) primary: Option<String>,
}

#[derive(Subcommand)]
pub(crate) enum BaselineCommand {
    /// Measure, show the changes, and accept the present scores as the reference
    Update(BaselineArgs),
    /// Show the reference scores of the project
    Show(BaselineShowArgs),
}

#[derive(Args)]
pub(crate) struct BaselineArgs {
    /// The project file or its folder [default: karat.toml in this folder or the nearest parent]
    pub(crate) project: Option<PathBuf>,
    /// The folder for run journals
    #[arg(long, value_name = "DIR", default_value = "karat-report")]
    pub(crate) out: PathBuf,
    /// Continue an interrupted run, reusing the answers in its journal
    #[arg(long)]
    pub(crate) resume: bool,
    /// Only the entry NAME, or EVALUATION/NAME
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Option<String>,
    /// Show the changes without writing them
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Args)]
pub(crate) struct BaselineShowArgs {
    /// The project file or its folder [default: karat.toml in this folder or the nearest parent]
    pub(crate) project: Option<PathBuf>,
    /// Show the bundled project's baselines
    #[arg(long, conflicts_with = "project")]
    pub(crate) bundled: bool,
}

#[derive(Args)]
pub(crate) struct ShowArgs {
    /// The entry, such as bm25 or retrieval/bm25; optional if the report has only one
    pub(crate) entry: Option<String>,
    /// Only the items that got worse, with their earlier and present scores
    #[arg(long, conflicts_with = "item")]
    pub(crate) worse: bool,
    /// One item in full
    #[arg(long, value_name = "ID")]
    pub(crate) item: Option<String>,
    /// The report [default: the last one of the project]
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// The format of the output on stdout: text, or agent (all entries of the report, for coding agents)
    #[arg(long = "output-format", value_name = "FORMAT", default_value = "text")]
    #[arg(conflicts_with_all = ["json", "worse", "item", "entry"])]
    pub(crate) format: Format,
}

#[derive(Args)]
pub(crate) struct TourArgs {
    /// The folder for the report
    #[arg(long, value_name = "DIR", default_value = "karat-report")]
    pub(crate) out: PathBuf,
    /// Open the report in a browser
    #[arg(long)]
    pub(crate) open: bool,
}

#[derive(Args)]
pub(crate) struct MetricsArgs {
    /// Show only this metric
    pub(crate) id: Option<String>,
    /// Print the reference page, in Markdown
    #[arg(long, conflicts_with = "id")]
    pub(crate) markdown: bool,
}

#[derive(Args)]
pub(crate) struct SchemaArgs {
    /// The document
    pub(crate) document: Document,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Document {
    /// A report: karat.report/2
    Report,
    /// The result of a check: karat.check/1
    Check,
    /// A project file: karat.toml
    Project,
    /// A test suite of a server
    Suite,
}

#[derive(Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

#[cfg(test)]
mod tests {
    use std::any::TypeId;
    use std::collections::BTreeMap;

    use clap::{Arg, CommandFactory as _};
    use karat_io::time::Time;

    use super::*;

    /// The options whose name has a word of time in it but whose value is not a time, with the reason.
    const NOT_A_TIME: [(&str, &str); 2] = [
        ("limit", "a bound of a sandbox, WHAT=AMOUNT"),
        ("max-time-growth", "a share, like the cost"),
    ];

    /// Every option of every command, with the words of the command.
    fn options() -> Vec<(String, Arg)> {
        fn collect(path: &str, command: &clap::Command, into: &mut Vec<(String, Arg)>) {
            let options = command.get_arguments().filter(|option| option.get_long().is_some());
            into.extend(options.map(|option| (path.to_owned(), option.clone())));
            for inner in command.get_subcommands() {
                collect(&format!("{path} {}", inner.get_name()), inner, into);
            }
        }
        let mut all = Vec::new();
        collect("karat", &Cli::command(), &mut all);
        assert!(all.len() > 200, "{} options", all.len());
        all
    }

    fn value_names(option: &Arg) -> Vec<&str> {
        option.get_value_names().unwrap_or_default().iter().map(|name| name.as_str()).collect()
    }

    #[test]
    fn an_option_that_is_about_a_time_takes_one() {
        let mut found = BTreeMap::new();
        for (command, option) in options() {
            let name = option.get_long().unwrap_or_default();
            let words = ["time", "timeout", "limit", "backoff", "duration", "seconds", "ms"];
            let about_time = name.split('-').any(|word| words.contains(&word));
            let is_time = option.get_value_parser().type_id() == TypeId::of::<Time>();
            let shown = value_names(&option);
            assert_eq!(is_time, shown == ["TIME"], "{command} --{name} {shown:?}");
            let exempt = NOT_A_TIME.iter().find(|(exempt, _)| *exempt == name);
            assert!(!about_time || is_time != exempt.is_some(), "{command} --{name} {shown:?}");
            for value in option.get_default_values().iter().filter(|_| is_time) {
                let value = value.to_string_lossy();
                assert!(value.parse::<Time>().is_ok(), "{command} --{name}: {value} has no unit");
            }
            if about_time {
                *found.entry(name.to_owned()).or_insert(0) += 1;
            }
        }
        for (exempt, _) in NOT_A_TIME {
            assert!(found.contains_key(exempt), "there is no --{exempt}");
        }
        assert!(found["timeout"] > 10 && found["start-timeout"] > 10, "{found:?}");
    }

    #[test]
    fn one_thing_has_one_name() {
        for (command, option) in options() {
            let name = option.get_long().unwrap_or_default();
            for (earlier, present) in [
                ("parallel", "--concurrency"),
                ("retry-pause", "--backoff"),
                ("max-time", "--agent-timeout"),
                ("cases", "--inputs, or --case with an id"),
                ("max-bad", "--max-malformed"),
            ] {
                assert_ne!(name, earlier, "{command}: it is {present}");
            }
            // Files to read have a --format, the output has an --output-format.
            let is_read = ["agent", "resilience"].iter().any(|of| command.contains(of));
            assert!(name != "format" || is_read, "{command}: it is --output-format");
            let shown = value_names(&option);
            assert!(
                !shown.iter().any(|name| ["FOLDER", "SECONDS", "MS"].contains(name)),
                "{command} --{name}"
            );
            match name {
                "out" => assert_eq!(shown, ["DIR"], "{command}: a file is --output"),
                "output" => {
                    assert_eq!(shown, ["FILE"], "{command}: a folder is --out");
                    assert_eq!(option.get_short(), Some('o'), "{command} --output");
                }
                "port" => assert_eq!(shown, ["PORT"], "{command}"),
                "env" => assert_eq!(option.get_short(), Some('e'), "{command}"),
                _ => {}
            }
        }
    }
}
