//! The integration tests of karat-agent, in one binary.

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

mod agent_run;
mod choices;
mod conformance;
mod dialects;
mod digits;
mod files;
mod formats;
mod hostile;
mod listen;
mod losses;
mod metrics;
mod recorded;
