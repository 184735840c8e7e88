//! The integration tests of karat-mcp, in one binary.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is a failed test"
)]

mod conversation;
mod faults;
mod http_faults;
mod isolation;
mod official_sdk;
mod old_and_new_ways;
mod recording;
mod stopped;
mod support;
