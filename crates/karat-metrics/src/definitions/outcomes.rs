//! Metrics of runs that a benchmark judged itself, under the benchmark's own names.
//!
//! They count as the benchmark counts: a run that failed for a reason outside the agent is a failure
//! of the agent. `task.success`, `pass@k` and `pass^k` leave such runs out.

use crate::metric::{Better, Metric, MetricKind, Rank, Unit};

/// A share of runs, tasks or items.
const SHARE: Metric = Metric {
    better: Better::Higher,
    unit: Unit::Share,
    undefined: "no outcome was recorded",
    ..Metric::DEFAULT
};

pub(crate) const METRICS: &[Metric] = &[
    Metric {
        id: "bfcl.accuracy",
        summary: "The share of items whose calls are right (BFCL)",
        formula: "right items ÷ items",
        kind: MetricKind::Rate,
        rank: Some(Rank::new(106)),
        notes: "Calls are right by `bfcl.match`; in the irrelevance categories, if nothing was called; in the relevance categories, if anything was. The slices by `leaderboard` are weighted as the columns of the leaderboard: \"simple\" is the unweighted mean of its three languages.",
        ..SHARE
    },
    Metric {
        id: "mcpmark.pass@k",
        summary: "The share of tasks with a success in k runs (MCPMark)",
        formula: "k = 1: mean over runs of (successes ÷ tasks); above: tasks with at least one success ÷ tasks",
        rank: Some(Rank::at_cutoff(102, 1)),
        undefined: "fewer than k runs",
        notes: "A run that ended with an error counts as a failure.",
        ..SHARE
    },
    Metric {
        id: "mcpmark.pass^k",
        summary: "The share of tasks in which all of k runs succeed (MCPMark)",
        formula: "tasks whose runs all succeeded ÷ tasks",
        undefined: "fewer than k runs",
        notes: "A run that ended with an error counts as a failure.",
        ..SHARE
    },
    Metric {
        id: "mcpmark.std",
        summary: "The spread of `mcpmark.pass@1` over runs",
        formula: "population standard deviation of the rates of the runs",
        better: Better::Lower,
        kind: MetricKind::Aggregate,
        ..SHARE
    },
    Metric {
        id: "tau.pass^k",
        summary: "The chance that k runs of a task all succeed (τ-bench)",
        formula: "C(c, k) ÷ C(n, k) for c runs with reward 1 among n, averaged over tasks",
        rank: Some(Rank::at_cutoff(103, 1)),
        undefined: "fewer than k runs",
        notes: "A run that ended with an error counts as a failure; `pass^k` leaves it out.",
        ..SHARE
    },
    Metric {
        id: "stabletoolbench.sopr",
        summary: "The solvable pass rate (StableToolBench)",
        formula: "mean over judgements of 1 if solved, 0.5 if the judge is unsure, 0 otherwise",
        rank: Some(Rank::new(105)),
        notes: "`task.success` leaves out the judgements that are unsure.",
        ..SHARE
    },
    Metric {
        id: "livemcpbench.success",
        summary: "The share of tasks that a judge calls done (LiveMCPBench)",
        formula: "tasks judged as done ÷ tasks",
        kind: MetricKind::Rate,
        rank: Some(Rank::new(104)),
        notes: "An opinion: ten judges of the same 95 trajectories ranged from 36 % to 81 %.",
        ..SHARE
    },
    Metric {
        id: "livemcpbench.agreement",
        summary: "The share of tasks on which a judge agrees with people (LiveMCPBench)",
        formula: "tasks with the same verdict ÷ tasks that people judged",
        kind: MetricKind::Rate,
        undefined: "no verdicts of people",
        notes: "Read it with `kappa`: a judge that approves everything agrees on as many tasks as were done.",
        ..SHARE
    },
    Metric {
        id: "run.failed",
        summary: "The share of runs that failed for a reason outside the agent",
        formula: "runs with a recorded error ÷ runs",
        better: Better::Lower,
        notes: "Such runs are not measured: they are in no other metric, except in those under a benchmark's own name.",
        ..SHARE
    },
];
