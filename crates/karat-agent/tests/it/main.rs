//! The integration tests of karat-agent, in one binary.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is a failed test"
)]

mod agent_run;
mod conformance;
mod files;
