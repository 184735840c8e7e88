//! The integration tests of karat-metrics, in one binary.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is a failed test"
)]
#![allow(clippy::cast_possible_truncation, reason = "numbers in tests are small")]

mod calls_properties;
mod classification_properties;
mod deepeval_tool_correctness;
mod ragas_tool_calls;
mod ranking_properties;
mod ranx;
mod sklearn_classification;
mod stats_ci;
mod stats_properties;
mod trec_eval;
