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

pub use self::calls::by_metric;

use karat_metrics::MetricId;
use karat_metrics::calls::ragas::Warning;

pub(crate) use self::calls::as_call;
pub(crate) use self::confusions::{Confusion, Confusions, confusions};
pub(crate) use self::observed::observed;
pub(crate) use self::problems::CallProblems;
use crate::formats::samples::Sample;
use crate::metric::{CallMetric, CallScore};
use crate::tools::Tools;
use crate::trace::Trace;

/// A score, or the reason for which it is undefined.
pub(crate) type Score = Result<f64, &'static str>;

macro_rules! own_scores {
    ($($name:ident = $id:literal,)*) => {
        /// Karat's own scores of a trace; the number of each is its place in a [`TraceScore`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Own {
            $(#[doc = concat!("`", $id, "`")] $name,)*
        }

        impl Own {
            /// The ids, in the order of the variants.
            pub const IDS: &[MetricId] = &[$(MetricId::known($id)),*];

            /// The id of this score.
            pub fn id(self) -> MetricId {
                Own::IDS[self as usize].clone()
            }
        }
    };
}

own_scores! {
    Exact = "calls.exact",
    Alignment = "calls.alignment",
    F1 = "calls.f1",
    FirstError = "calls.first_error",
    Forbidden = "calls.forbidden",
    Loop = "calls.loop",
    ToolNameValidity = "mcpbench.tool_name_validity",
    SchemaCompliance = "mcpbench.schema_compliance",
    ExecutionSuccess = "mcpbench.execution_success",
    Proactivity = "gauge.proactivity",
    Compliance = "gauge.compliance",
    UnneededCall = "gauge.unneeded_call",
    Tokens = "run.tokens",
    Ms = "run.ms",
    Cost = "run.cost",
    CachedTokens = "run.cached_tokens",
    ReasoningTokens = "run.reasoning_tokens",
    Answer = "answer.correct",
    State = "state.reached",
    Outcome = "outcome.score",
    Success = "task.success",
}

/// The scores of one trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceScore {
    /// By place, in the order of [`TraceScorer::ids`]; none where the setting has no such score.
    pub scores: Vec<Option<Score>>,
    /// Calls whose arguments are not JSON.
    pub unreadable_arguments: u64,
    /// Calls whose arguments were not recorded.
    pub unrecorded_arguments: u64,
    /// The reasons for which arguments could not be checked against a schema.
    pub not_checked: Vec<String>,
}

impl TraceScore {
    fn set(&mut self, own: Own, score: Score) {
        self.scores[own as usize] = Some(score);
    }

    fn get(&self, own: Own) -> Option<Score> {
        self.scores[own as usize]
    }

    /// One of our own scores, if it is defined.
    pub(crate) fn value(&self, own: Own) -> Option<f64> {
        self.get(own)?.ok()
    }
}

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

/// 1 if it holds, otherwise 0.
fn yes(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

#[cfg(test)]
pub(crate) mod tests;
