//! Errors that reading and scoring traces share.

use std::collections::BTreeMap;
use std::path::Path;

use karat_core::error::EvalError;
use karat_core::report::Measured;
use karat_io::text::printable;
use karat_metrics::metric;

use crate::read_stats::ReadStats;
use crate::trace::Invalid;

/// A mistake in a line of a file.
pub(crate) fn in_line(path: &Path, line: u64, message: impl std::fmt::Display) -> EvalError {
    let message = message.to_string();
    EvalError::config(format!("{}:{line}: {}", path.display(), printable(&message)))
}

/// A mistake in a record on a line of a file.
pub(crate) fn in_record(path: &Path, line: u64, error: &Invalid) -> EvalError {
    in_line(path, line, error)
}

/// A file without a trace, with the remarks of its importer.
pub(crate) fn nothing_to_score(path: &Path, notes: &BTreeMap<String, u64>) -> EvalError {
    let path = path.display();
    if notes.is_empty() {
        return EvalError::NothingMeasured(format!(
            "{path}: nothing to score: no trace in this file"
        ));
    }
    let notes: Vec<String> = notes.iter().map(|(note, count)| format!("{count} {note}")).collect();
    EvalError::NothingMeasured(format!("{path}: nothing to score: {}", notes.join("; ")))
}

/// Refuses a result without a score. Tokens and times do not score a task: with tasks given, they
/// would make a pass of traces that say nothing.
pub(crate) fn check_scored(
    metrics: &[Measured],
    stats: &ReadStats,
    traces: u64,
) -> Result<(), EvalError> {
    let counts = |metric: &&Measured| {
        metric.value.is_some() && !(stats.has_tasks && metric.id.starts_with("run."))
    };
    if metrics.iter().any(|metric| counts(&metric)) {
        return Ok(());
    }
    let success = metrics.iter().find(|metric| metric.id == metric!("task.success"));
    let reason = success.and_then(|metric| metric.undefined.as_deref());
    match stats.has_tasks && stats.without_task == stats.runs {
        true => Err(EvalError::NothingMeasured(format!(
            "none of {traces} traces matches a task by id or input (name the task in the attribute \
             karat.task or the field task)"
        ))),
        false => Err(no_score(traces, reason)),
    }
}

/// Traces without a single score, with the reason for which not even success is known.
fn no_score(traces: u64, reason: Option<&str>) -> EvalError {
    let reason = reason.unwrap_or("nothing is expected");
    EvalError::NothingMeasured(format!(
        "no score is defined: {traces} traces do not show whether a task was done ({reason})"
    ))
}
