//! The integration tests of karat-detection, in one binary.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is a failed test"
)]

mod common;
mod dataset;
mod hostile;
mod remote;
mod rules;
mod scores;
mod systems;
mod tuning;
