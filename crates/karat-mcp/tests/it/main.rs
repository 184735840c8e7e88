//! The integration tests of karat-mcp, in one binary.

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

mod auth;
mod conversation;
mod faults;
mod http_faults;
#[cfg(not(karat_portable))]
mod isolation;
mod official_sdk;
mod old_and_new_ways;
mod recording;
mod stopped;
mod support;
