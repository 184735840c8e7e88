//! The arguments of `karat merge`.

use std::path::PathBuf;

use clap::Args;

use super::check::{CheckAllArgs, CheckArgs};

#[derive(Args)]
pub(crate) struct MergeArgs {
    /// The parts: the folders given to `--out`, or the files in their subfolder `journal`
    #[arg(required = true, value_name = "DIR")]
    pub(crate) parts: Vec<PathBuf>,
    /// The project file that the parts were measured with [default: karat.toml in this folder or the
    /// nearest parent]
    #[arg(long, value_name = "FILE", conflicts_with = "bundled")]
    project: Option<PathBuf>,
    /// The parts belong to the bundled project
    #[arg(long)]
    bundled: bool,
    /// The folder for reports
    #[arg(long, value_name = "DIR", default_value = "karat-report")]
    out: PathBuf,
    /// Also write FILE; the format follows from the extension (.json .html .md .xml .sarif .agent.md
    /// .badge.json .score-report.json)
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    outputs: Vec<PathBuf>,
    /// Exit with code 4 if a rule is inconclusive
    #[arg(long)]
    strict: bool,
    /// Only the entry NAME, or EVALUATION/NAME
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Only the entries of this evaluation: server, agent, retrieval, detection, resilience
    #[arg(long, value_name = "NAME")]
    evaluation: Option<String>,
    /// Also add the report to a history: FILE, or by default the one that karat.toml names, or
    /// karat-history.sqlite
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    history: Option<Option<PathBuf>>,
}

impl MergeArgs {
    /// The arguments of the check that would have measured everything at once.
    pub(crate) fn check(&self) -> CheckAllArgs {
        let check = CheckArgs {
            project: self.project.clone(),
            bundled: self.bundled,
            strict: self.strict,
            only: self.only.clone(),
            ..CheckArgs::writing(&self.out, &self.outputs)
        };
        let (evaluation, history) = (self.evaluation.clone(), self.history.clone());
        CheckAllArgs { check, evaluation, history, open: false, watch: false }
    }
}
