//! The means of any number of traces in one pass: nothing is kept of a trace but its scores, and of
//! these only sums.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::AgentError;
use crate::evaluate;
use crate::made::Made;
use crate::marks::{self, Marks};
use crate::recorded::Source;
use crate::score::{ItemScore, MetricSummary, Total};
use crate::shapes::{Read, Traces};
use crate::tools::Tools;
use crate::trace::{Setting, Trace};

/// What one pass found.
#[derive(Clone, Debug, Default)]
pub struct Means {
    /// How many traces were scored.
    pub traces: u64,
    /// Runs that were made, and runs that could not be: these are not scored.
    pub made: Made,
    /// One summary for each metric that had a value.
    pub metrics: Vec<MetricSummary>,
    /// Why the others have none.
    pub undefined: BTreeMap<String, &'static str>,
    /// Bad records, by class.
    pub bad: BTreeMap<&'static str, u64>,
    /// Unknown fields, all told.
    pub unknown_fields: u64,
    /// Calls whose arguments are not JSON.
    pub unreadable_arguments: u64,
    /// Traces for which there is no task.
    pub without_task: u64,
    /// Tasks for which there is no trace, in words.
    pub without_trace: Option<String>,
    /// What importers want to be known.
    pub notes: BTreeMap<String, u64>,
}

/// The sum of a metric, over how many traces, and why the first one without it has none.
#[derive(Default)]
struct Sum {
    total: Total,
    n: u64,
    undefined: Option<&'static str>,
}

/// Scores every trace of the source. `on_item` gets each one that is scored, with its marks.
///
/// # Errors
/// When a file cannot be read, when too many records are bad or too many runs failed, or when there
/// is no trace or no score.
pub fn score(
    source: &Source<'_>,
    tools: &Tools,
    max_errors: f64,
    on_item: &mut dyn FnMut(&Trace, &Marks),
) -> Result<Means, AgentError> {
    let mut means = Means::default();
    let mut totals: BTreeMap<String, Sum> = BTreeMap::new();
    // The tasks that have a trace: no more than there are tasks.
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for path in source.files {
        let mut traces = Traces::open(path, source.shape, source.metrics)?;
        while let Some(read) = traces.next_trace()? {
            let mut trace = match read {
                Read::Trace(_, trace) => *trace,
                Read::Bad(bad) if source.max_bad <= 0.0 => {
                    return Err(AgentError::Invalid {
                        path: path.clone(),
                        line: bad.line,
                        place: String::new(),
                        message: format!("{} ({})", bad.message, bad.class),
                    });
                }
                Read::Bad(bad) => {
                    *means.bad.entry(bad.class).or_default() += 1;
                    continue;
                }
            };
            if let Some(tasks) = source.tasks {
                match tasks.complete(&mut trace) {
                    true if seen.contains(&trace.id) => {}
                    true => _ = seen.insert(trace.id.clone()),
                    false => means.without_task += 1,
                }
            }
            means.unknown_fields += trace.unknown.values().sum::<u64>();
            means.made.count(&trace);
            if trace.failed.is_some() {
                continue;
            }
            let marks = marks::mark(&trace, tools, source.metrics);
            means.traces += 1;
            means.unreadable_arguments += marks.unreadable_arguments;
            for (id, mark) in &marks.scores {
                let id = match (trace.setting, id.as_str()) {
                    (Setting::WithoutTools, "task.success") => "gauge.success_without_tools",
                    (Setting::WithoutTools, _) => continue,
                    (_, id) => id,
                };
                if !totals.contains_key(id) {
                    totals.insert(id.to_owned(), Sum::default());
                }
                let Some(sum) = totals.get_mut(id) else { continue };
                match mark {
                    Ok(score) => {
                        sum.total.add(ItemScore { score: *score, success: None });
                        sum.n += 1;
                    }
                    Err(why) => sum.undefined = sum.undefined.or(Some(*why)),
                }
            }
            on_item(&trace, &marks);
        }
        for (note, count) in traces.notes() {
            *means.notes.entry(note).or_default() += count;
        }
    }
    let seen: BTreeSet<&str> = seen.iter().map(String::as_str).collect();
    means.without_trace = source.tasks.and_then(|tasks| tasks.without_trace(&seen));
    means.made.within(max_errors)?;
    finish(means, totals, source)
}

fn finish(
    mut means: Means,
    totals: BTreeMap<String, Sum>,
    source: &Source<'_>,
) -> Result<Means, AgentError> {
    let path = source.files.first().cloned().unwrap_or_default();
    let bad: u64 = means.bad.values().sum();
    let all = means.made.runs + bad;
    if all > 0 && bad as f64 / all as f64 > source.max_bad {
        return Err(AgentError::Invalid {
            path,
            line: 1,
            place: String::new(),
            message: format!("{bad} of {all} records are bad, more than --max-bad allows"),
        });
    }
    if means.traces == 0 {
        return Err(AgentError::nothing(&path, &means.notes));
    }
    for (id, Sum { total, n, undefined }) in totals {
        if n == 0 {
            means.undefined.insert(id, undefined.unwrap_or("not recorded"));
            continue;
        }
        means.metrics.push(MetricSummary {
            // Positions and costs are no shares, and are not held to their range.
            interval: total.interval(n, evaluate::is_share(&id)),
            mean: total.sum() / n as f64,
            id,
            n,
            succeeded: None,
        });
    }
    match means.metrics.is_empty() {
        true => {
            let why = means.undefined.get("task.success").copied();
            Err(AgentError::no_score(means.traces, why))
        }
        false => Ok(means),
    }
}
