//! The integration tests of karat-core, in one binary.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is a failed test"
)]

mod dataset;
mod gate;
mod journal;
mod json_schema_engines;
mod toy;
