//! The means of any number of traces in one pass: nothing is kept of a trace but its scores, and of
//! these only sums.

use std::collections::BTreeMap;

use crate::error::AgentError;
use crate::evaluate;
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
    /// One summary for each metric that had a value.
    pub metrics: Vec<MetricSummary>,
    /// Bad records, by class.
    pub bad: BTreeMap<&'static str, u64>,
    /// Unknown fields, all told.
    pub unknown_fields: u64,
    /// Calls whose arguments are not JSON.
    pub unreadable_arguments: u64,
    /// Traces for which there is no task.
    pub without_task: u64,
    /// What importers want to be known.
    pub notes: BTreeMap<String, u64>,
}

/// Scores every trace of the source. `on_item` gets each one with its marks.
///
/// # Errors
/// When a file cannot be read, when too many records are bad, or when there is no trace.
pub fn score(
    source: &Source<'_>,
    tools: &Tools,
    on_item: &mut dyn FnMut(&Trace, &Marks),
) -> Result<Means, AgentError> {
    let mut means = Means::default();
    let mut totals: BTreeMap<String, (Total, u64)> = BTreeMap::new();
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
            if let Some(tasks) = source.tasks
                && !tasks.complete(&mut trace)
            {
                means.without_task += 1;
            }
            let marks = marks::mark(&trace, tools, source.metrics);
            means.traces += 1;
            means.unknown_fields += trace.unknown.values().sum::<u64>();
            means.unreadable_arguments += marks.unreadable_arguments;
            for (id, mark) in &marks.scores {
                let id = match (trace.setting, id.as_str()) {
                    (Setting::WithoutTools, "task.success") => "gauge.success_without_tools",
                    (Setting::WithoutTools, _) => continue,
                    (_, id) => id,
                };
                if !totals.contains_key(id) {
                    totals.insert(id.to_owned(), (Total::default(), 0));
                }
                if let (Ok(score), Some((total, n))) = (mark, totals.get_mut(id)) {
                    total.add(ItemScore { score: *score, success: None });
                    *n += 1;
                }
            }
            on_item(&trace, &marks);
        }
        for (note, count) in traces.notes() {
            *means.notes.entry(note).or_default() += count;
        }
    }
    finish(means, totals, source)
}

fn finish(
    mut means: Means,
    totals: BTreeMap<String, (Total, u64)>,
    source: &Source<'_>,
) -> Result<Means, AgentError> {
    let path = source.files.first().cloned().unwrap_or_default();
    let bad: u64 = means.bad.values().sum();
    let all = means.traces + bad;
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
    means.metrics = totals
        .into_iter()
        .filter(|(_, (_, n))| *n > 0)
        .map(|(id, (total, n))| MetricSummary {
            // Positions and costs are no shares, and are not held to their range.
            interval: total.interval(n, evaluate::is_share(&id)),
            mean: total.sum() / n as f64,
            id,
            n,
            succeeded: None,
        })
        .collect();
    Ok(means)
}
