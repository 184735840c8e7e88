//! A trace as a report shows it.

use karat_core::observed;
use karat_metrics::MetricId;

use super::confusions::Confusions;
use super::{TraceScore, TraceScorer, expected_steps};

use crate::shown::{MAX_CALLS, clipped, shown_calls};
use crate::trace::Trace;

/// The observation of a trace.
pub(crate) fn observed(
    trace: &Trace,
    scorer: &TraceScorer<'_>,
    score: &TraceScore,
    confusions: &Confusions,
) -> observed::Traces {
    let reason = |(id, score): (&MetricId, &Option<super::Score>)| {
        let reason = (*score)?.err()?;
        Some((id.to_string(), reason.to_owned()))
    };
    let expect = trace.expect.as_deref().filter(|_| trace.setting.has_tools());
    let steps = expect
        .and_then(|expect| Some(expected_steps::align(expect, expect.calls.as_ref()?, trace)));
    let (expected, steps) = steps.unzip();
    observed::Traces {
        input: trace.input.as_deref().map(clipped),
        output: trace.output.as_deref().map(clipped),
        calls: shown_calls(trace),
        more_calls: trace.calls.len().checked_sub(MAX_CALLS).filter(|more| *more > 0),
        expected,
        steps,
        confusions: confusions.pairs.iter().map(ToString::to_string).collect(),
        stopped: trace.stopped.clone(),
        trajectory: None,
        undefined: scorer.ids().iter().zip(&score.scores).filter_map(reason).collect(),
    }
}
