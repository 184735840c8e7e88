//! The scores of one trace: everything that needs no other trace, with a reason for each score that is
//! undefined.
//!
//! Pure: the same trace, tools and metrics give the same scores. A score that does not apply has no
//! value; it is never 0.

mod calls;
mod confusions;
mod expected_steps;
mod gauge;
mod observed;
mod offered;
mod outcome;
mod problems;
mod score;

pub use self::calls::by_metric;

use karat_metrics::MetricId;
use karat_metrics::calls::ragas::Warning;
use karat_metrics::calls::samples::Sample;

pub(crate) use self::calls::as_call;
pub(crate) use self::confusions::{Confusion, Confusions, confusions};
pub(crate) use self::observed::observed;
pub(crate) use self::problems::CallProblems;
pub use self::score::{Own, TraceScore};
pub(crate) use self::score::{Score, Section};
use crate::metric::{CallMetric, CallScore};
use crate::tools::Tools;
use crate::trace::Trace;

/// Scores traces, one at a time.
#[derive(Debug)]
pub struct TraceScorer<'s> {
    tools: &'s Tools,
    metrics: Vec<&'s CallMetric>,
    /// The place of the first of `metrics`.
    first_metric: usize,
    ids: Vec<MetricId>,
}

impl<'s> TraceScorer<'s> {
    /// Computes every score: ours, and the metrics of peers that are not among them.
    pub fn new(tools: &'s Tools, metrics: &'s [CallMetric]) -> Self {
        let own = |id: &MetricId| Own::IDS.contains(id);
        let metrics: Vec<_> = metrics.iter().filter(|metric| !own(&metric.id())).collect();
        let ids = Own::IDS.iter().cloned();
        let ids = ids.chain(metrics.iter().map(|metric| metric.id())).collect();
        TraceScorer { tools, metrics, first_metric: Own::IDS.len(), ids }
    }

    /// Computes metrics of calls alone, from samples that hold the expected calls.
    pub(crate) fn of_samples(tools: &'s Tools, metrics: &'s [CallMetric]) -> Self {
        let ids = metrics.iter().map(CallMetric::id).collect();
        TraceScorer { tools, metrics: metrics.iter().collect(), first_metric: 0, ids }
    }

    /// The ids of the scores.
    pub fn ids(&self) -> &[MetricId] {
        &self.ids
    }

    /// Scores a trace.
    pub fn score(&self, trace: &Trace) -> TraceScore {
        let mut score = TraceScore { scores: vec![None; self.ids.len()], ..TraceScore::default() };
        let expect = trace.expect.as_deref();
        if trace.setting.has_tools() {
            let calls = calls::Calls::of(trace, expect);
            calls.score(&mut score);
            for (place, metric) in (self.first_metric..).zip(&self.metrics) {
                score.scores[place] = Some(calls.peer_score(metric, &self.ids[place]));
            }
            offered::score(trace, self.tools, &mut score);
            gauge::score(&calls, &mut score);
            let recorded = |value: Option<f64>| value.ok_or("not recorded");
            score.set(Own::Tokens, recorded(trace.usage.tokens().map(|tokens| tokens as f64)));
            score.set(Own::Ms, recorded(trace.usage.duration_ms));
            // Few sources have these; where none does, the report does not mention them.
            let tokens = |tokens: Option<u64>| tokens.map(|tokens| tokens as f64);
            for (own, value) in [
                (Own::CachedTokens, tokens(trace.usage.cached_tokens)),
                (Own::ReasoningTokens, tokens(trace.usage.reasoning_tokens)),
                (Own::Cost, trace.usage.cost),
            ] {
                score.scores[own as usize] = value.map(Ok);
            }
        }
        outcome::score(trace, expect, &mut score);
        score
    }

    /// Scores a sample, in the order of the ids; returns the warning of RAGAS.
    pub(crate) fn score_sample(
        &self,
        sample: &Sample<'_>,
        mut each: impl FnMut(CallScore),
    ) -> Option<Warning> {
        let mut warning = None;
        for metric in &self.metrics {
            let found = metric.measure(&sample.called, &sample.expected);
            warning = warning.or(found.warning);
            each(found);
        }
        warning
    }
}

#[cfg(test)]
pub(crate) mod tests;
