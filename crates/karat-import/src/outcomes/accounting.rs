//! The ways in which benchmarks count their own outcomes.

use karat_metrics::{MetricId, metric, stats};
use serde::{Deserialize, Serialize};

use super::Row;

/// A benchmark whose own accounting is shown with Karat's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Accounting {
    /// Berkeley Function Calling Leaderboard.
    Bfcl,
    /// LiveMCPBench.
    Livemcpbench,
    /// MCPMark.
    Mcpmark,
    /// StableToolBench.
    Stabletoolbench,
    /// τ-bench.
    Tau,
    /// τ²-bench.
    Tau2,
}

/// The number of runs that MCPMark's pass@4 and pass^4 are about.
const MCPMARK_RUNS: usize = 4;

impl Accounting {
    /// The name in karat.toml.
    pub fn name(self) -> &'static str {
        match self {
            Accounting::Bfcl => "bfcl",
            Accounting::Livemcpbench => "livemcpbench",
            Accounting::Mcpmark => "mcpmark",
            Accounting::Stabletoolbench => "stabletoolbench",
            Accounting::Tau => "tau",
            Accounting::Tau2 => "tau2",
        }
    }

    /// The metric that counts single runs: the one that the benchmark reports first.
    pub(super) fn headline(self) -> MetricId {
        match self {
            Accounting::Bfcl => metric!("bfcl.accuracy"),
            Accounting::Livemcpbench => metric!("livemcpbench.success"),
            Accounting::Mcpmark => metric!("mcpmark.pass@1"),
            Accounting::Stabletoolbench => metric!("stabletoolbench.sopr"),
            Accounting::Tau | Accounting::Tau2 => metric!("tau.pass^1"),
        }
    }

    /// The ids of its metrics of a task, where the task that was run most often has `runs` runs.
    pub(super) fn metrics(self, runs: usize) -> Vec<MetricId> {
        match self {
            Accounting::Bfcl => vec![metric!("bfcl.accuracy")],
            Accounting::Livemcpbench => {
                vec![metric!("livemcpbench.success"), metric!("livemcpbench.agreement")]
            }
            Accounting::Mcpmark => vec![
                metric!("mcpmark.pass@1"),
                metric!("mcpmark.pass@4"),
                metric!("mcpmark.pass^4"),
            ],
            Accounting::Stabletoolbench => vec![metric!("stabletoolbench.sopr")],
            Accounting::Tau | Accounting::Tau2 => {
                (1..=runs).map(|k| MetricId::new(&format!("tau.pass^{k}"))).collect()
            }
        }
    }

    /// Returns whether the benchmark counts a run, whatever became of it.
    pub(super) fn counts(self, row: &Row) -> bool {
        self != Accounting::Tau2 || row.success.is_some()
    }

    /// The largest k that the benchmark computes pass^k for, where there are `runs` runs.
    pub(super) fn largest_k<'a>(
        self,
        runs: usize,
        tasks: impl Iterator<Item = &'a [Row]>,
    ) -> usize {
        if self != Accounting::Tau2 {
            return runs;
        }
        // A task without any run that counts is left out, and does not lower it.
        let counted = tasks.map(|rows| rows.iter().filter(|row| self.counts(row)).count());
        counted.filter(|counted| *counted > 0).min().unwrap_or(0)
    }

    /// The credit for one run, between 0 and 1; none if the benchmark leaves the run out.
    pub(super) fn credit(self, row: &Row) -> Option<f64> {
        match (self, &row.error) {
            (Accounting::Stabletoolbench, Some(_)) => Some(0.5),
            _ => self.counts(row).then(|| f64::from(u8::from(row.counted()))),
        }
    }

    /// The scores of a task by its metrics, in the order of [`Accounting::metrics`]; `largest` is that of
    /// [`Accounting::largest_k`].
    pub(super) fn scores(self, rows: &[Row], runs: usize, largest: usize) -> Vec<Option<f64>> {
        let successes = rows.iter().filter(|row| row.counted()).count();
        let share = (!rows.is_empty()).then(|| successes as f64 / rows.len() as f64);
        let holds = |whether: bool| Some(f64::from(u8::from(whether)));
        match self {
            Accounting::Bfcl => vec![share],
            Accounting::Livemcpbench => {
                let same = rows.first().and_then(|row| Some(row.counted() == row.human?));
                vec![share, same.and_then(holds)]
            }
            Accounting::Mcpmark => {
                // A task that was run less often has no pass@4, whatever the others have.
                let repeated = rows.len() >= MCPMARK_RUNS;
                let all = successes == rows.len();
                let any = successes > 0;
                vec![share, holds(any).filter(|_| repeated), holds(all).filter(|_| repeated)]
            }
            Accounting::Stabletoolbench => {
                let credits: Vec<f64> = rows.iter().filter_map(|row| self.credit(row)).collect();
                vec![stats::mean(&credits).ok()]
            }
            Accounting::Tau | Accounting::Tau2 => {
                let counted = rows.iter().filter(|row| self.counts(row)).count();
                let (n, done) = (counted as u64, successes as u64);
                let score = |k: u64| stats::pass_hat_k(n, done, k).ok();
                (1..=runs).map(|k| score(k as u64).filter(|_| k <= largest)).collect()
            }
        }
    }

    /// The rule, for a reader of the report.
    pub(super) fn rule(self) -> &'static str {
        match self {
            Accounting::Bfcl => {
                "an answer that could not be obtained is a wrong one, and a right one where nothing \
                 may be called"
            }
            Accounting::Livemcpbench => "the judge's verdict on each task, errors as failures",
            Accounting::Mcpmark => {
                "a run that ended with an error is a failure; pass@1 is the mean over runs, pass@4 \
                 asks for one success of a task, pass^4 for successes only"
            }
            Accounting::Stabletoolbench => {
                "solvable pass rate: the mean over judgements, where one that is unsure counts half"
            }
            Accounting::Tau => {
                "success is a reward of 1; a run that ended with an error is a failure"
            }
            Accounting::Tau2 => {
                "success is a reward of 1; a run that ended with an infrastructure error is left out, \
                 and k is at most the fewest runs that are left of a task"
            }
        }
    }
}
