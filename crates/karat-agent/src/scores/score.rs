//! The scores of one trace, each under its id.

use karat_metrics::MetricId;

/// A score, or the reason for which it is undefined.
pub(crate) type Score = Result<f64, &'static str>;

/// A section of the metrics of a report, in the order in which they are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Success,
    Calls,
    Result,
    Gauge,
    Validity,
    Mistakes,
    Usage,
    /// Judged elsewhere; shown only if a trace has it.
    RareResult,
    /// Shown only if a trace has it.
    RareUsage,
}

macro_rules! own_scores {
    ($($section:ident $name:ident = $id:literal,)*) => {
        /// Karat's own scores of a trace; the number of each is its place in a [`TraceScore`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Own {
            $(#[doc = concat!("`", $id, "`")] $name,)*
        }

        impl Own {
            /// The ids, in the order of the variants.
            pub const IDS: &[MetricId] = &[$(MetricId::known($id)),*];

            /// All of them.
            pub(crate) const ALL: &[Own] = &[$(Own::$name),*];

            /// The section of a report that shows it.
            pub(crate) fn section(self) -> Section {
                match self {
                    $(Own::$name => Section::$section,)*
                }
            }

            /// The id of this score.
            pub fn id(self) -> MetricId {
                Own::IDS[self as usize].clone()
            }
        }
    };
}

// The only list of the scores: the section of each says where reports show it.
own_scores! {
    Calls Exact = "calls.exact",
    Calls Alignment = "calls.alignment",
    Calls F1 = "calls.f1",
    Mistakes FirstError = "calls.first_error",
    Mistakes Forbidden = "calls.forbidden",
    Mistakes Loop = "calls.loop",
    Validity ToolNameValidity = "mcpbench.tool_name_validity",
    Validity SchemaCompliance = "mcpbench.schema_compliance",
    Validity ExecutionSuccess = "mcpbench.execution_success",
    Gauge Proactivity = "gauge.proactivity",
    Gauge Compliance = "gauge.compliance",
    Gauge UnneededCall = "gauge.unneeded_call",
    Usage Tokens = "run.tokens",
    Usage Ms = "run.ms",
    RareUsage Cost = "run.cost",
    RareUsage CachedTokens = "run.cached_tokens",
    RareUsage ReasoningTokens = "run.reasoning_tokens",
    Result Answer = "answer.correct",
    Result State = "state.reached",
    RareResult Outcome = "outcome.score",
    Success Success = "task.success",
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
