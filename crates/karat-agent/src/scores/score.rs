//! The scores of one trace, each under its id.

use karat_metrics::MetricId;

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
    /// By place, in the order of [`TraceScorer::ids`](super::TraceScorer::ids); none where the setting has no such score.
    pub scores: Vec<Option<Score>>,
    /// Calls whose arguments are not JSON.
    pub unreadable_arguments: u64,
    /// Calls whose arguments were not recorded.
    pub unrecorded_arguments: u64,
    /// The reasons for which arguments could not be checked against a schema.
    pub not_checked: Vec<String>,
}

impl TraceScore {
    pub(super) fn set(&mut self, own: Own, score: Score) {
        self.scores[own as usize] = Some(score);
    }

    pub(super) fn get(&self, own: Own) -> Option<Score> {
        self.scores[own as usize]
    }

    /// One of our own scores, if it is defined.
    pub(crate) fn value(&self, own: Own) -> Option<f64> {
        self.get(own)?.ok()
    }
}

/// 1 if it holds, otherwise 0.
pub(super) fn yes(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}
