//! The integration tests of karat-core, in one binary.

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

mod dataset;
mod gate;
mod journal;
mod json_schema_engines;
mod means;
mod partition;
mod toy;
