//! pass@k and pass^k over tasks that were run more than once.

use std::collections::BTreeMap;

use karat_core::aggregate;
use karat_core::report::Measured;
use karat_metrics::{MetricId, Score, stats};

use super::items::{TaskKey, task_key};
use crate::scored::ScoredTrace;
use crate::scores::Own;
use crate::trace::Setting;

/// The largest k for which pass@k and pass^k are computed.
const MAX_K: u64 = 100;

/// The metrics; none if a task was run only once. Intervals are drawn by tasks.
pub(super) fn measures(traces: &[ScoredTrace], seed: u64) -> Vec<Measured> {
    let mut runs: BTreeMap<(TaskKey<'_>, Setting), (u64, u64)> = BTreeMap::new();
    for ScoredTrace { trace, score, .. } in traces {
        let counts = trace.setting.has_tools() && trace.failed.is_none();
        if let Some(success) = score.value(Own::Success).filter(|_| counts) {
            let (all, done) = runs.entry((task_key(trace), trace.setting)).or_default();
            *all += 1;
            *done += u64::from(success == 1.0);
        }
    }
    let fewest = runs.values().map(|(all, _)| *all).min().unwrap_or(0);
    if fewest < 2 {
        return Vec::new();
    }
    let over = |id: MetricId, score: &dyn Fn(u64, u64) -> Score| {
        // The same task with another model or setting is drawn together with it.
        let tasks = runs.iter().map(|(((task, ..), _), (n, done))| (*task, score(*n, *done).ok()));
        // It is a value over runs, and has none for each of them.
        Measured { per_run: Vec::new(), ..aggregate::over_tasks(&id, tasks, seed) }
    };
    (1..=fewest.min(MAX_K))
        .flat_map(|k| {
            [
                over(MetricId::new(&format!("pass@{k}")), &|n, done| stats::pass_at_k(n, done, k)),
                over(MetricId::new(&format!("pass^{k}")), &|n, done| stats::pass_hat_k(n, done, k)),
            ]
        })
        .collect()
}
