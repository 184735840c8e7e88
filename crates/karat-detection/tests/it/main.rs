//! The integration tests of karat-detection, in one binary.

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

mod batch;
mod common;
mod dataset;
mod hostile;
mod remote;
mod rules;
mod scores;
mod shortcuts;
mod systems;
mod threats_v3;
mod tuning;
