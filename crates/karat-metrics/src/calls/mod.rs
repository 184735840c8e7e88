//! Did an agent call the right tools with the right arguments?
//!
//! Every metric here compares the calls that were made with those that were expected; none looks at
//! prose, runs a tool or asks a model. [`ragas`], [`deepeval`] and [`bfcl`] reproduce the metrics of
//! those projects with all their conventions, under their names; [`alignment`] and [`f1`] are ours,
//! [`expected`] extends ours to expectations that leave the agent a choice, and
//! [`traces`] has what else a trace is scored by. [`json`] reads the
//! values, which keep everything that any of the metrics looks at.

use crate::registry::Metric;

pub mod alignment;
mod assignment;
pub mod bfcl;
mod call;
mod classes;
pub mod deepeval;
mod equality;
pub mod expected;
pub mod f1;
pub mod json;
mod near;
mod printable;
pub mod python;
pub mod ragas;
pub mod traces;
mod value;

pub use call::{Arguments, Call, CallKind};
pub use equality::Equality;
pub use expected::Expected;
pub use near::near;
pub use value::{BigInt, Kind, Object, Value};

/// The metrics of this family.
pub const METRICS: &[Metric] = &[
    alignment::EXACT,
    alignment::ALIGNMENT,
    f1::F1,
    ragas::ACCURACY,
    ragas::ACCURACY_UNORDERED,
    ragas::ACCURACY_LEVENSHTEIN,
    ragas::F1,
    deepeval::TOOL_CORRECTNESS,
    deepeval::TOOL_PERMISSION,
    bfcl::MATCH,
    traces::FIRST_ERROR,
    traces::FORBIDDEN,
    traces::LOOP,
    traces::SIMILARITY,
    traces::CONFUSION,
    traces::TOOL_NAME_VALIDITY,
    traces::SCHEMA_COMPLIANCE,
    traces::EXECUTION_SUCCESS,
    traces::ANSWER_CORRECT,
    traces::STATE_REACHED,
    traces::TASK_SUCCESS,
    traces::PROACTIVITY,
    traces::COMPLIANCE,
    traces::UNNEEDED_CALL,
    traces::EFFECTIVENESS,
    traces::SUCCESS_WITH_TOOLS,
    traces::SUCCESS_WITHOUT_TOOLS,
    traces::OVERHEAD_TOKENS,
    traces::OVERHEAD_TOKENS_RATIO,
    traces::OVERHEAD_MS,
    traces::OVERHEAD_MS_RATIO,
    traces::TOKENS_WITH_TOOLS,
    traces::TOKENS_WITHOUT_TOOLS,
    traces::MS_WITH_TOOLS,
    traces::MS_WITHOUT_TOOLS,
    traces::RUN_TOKENS,
    traces::RUN_MS,
    traces::TASK_COMPLETION,
    traces::AGREEMENT,
];

/// The id under which the registry knows a metric: a variant such as
/// `deepeval.tool_correctness|ordered|name` is registered under the part in front of the first `|`.
pub fn registered_id(id: &str) -> &str {
    id.split_once('|').map_or(id, |(registered, _)| registered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_is_registered_under_its_plain_id() {
        let variant = "deepeval.tool_correctness|ordered|name+input";
        assert_eq!(registered_id(variant), deepeval::TOOL_CORRECTNESS.id);
        assert_eq!(registered_id("calls.f1"), "calls.f1");
        assert!(METRICS.iter().all(|metric| registered_id(metric.id) == metric.id));
    }
}
