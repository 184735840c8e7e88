//! The integration tests of karat-metrics, in one binary.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::cast_possible_truncation,
    clippy::needless_pass_by_value,
    reason = "a panic is a failed test, and live tests print what they measured"
)]

mod calls_properties;
mod classification_properties;
mod deepeval_tool_correctness;
mod peers;
mod ragas_tool_calls;
mod ranking_properties;
mod ranx;
mod sklearn_classification;
mod stats_ci;
mod stats_edges;
mod stats_properties;
mod trec_eval;
