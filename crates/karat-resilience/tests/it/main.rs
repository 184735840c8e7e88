//! The integration tests of the resilience evaluation, in one binary.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a panic is a failed test"
)]

mod outside;
mod recordings;
mod worlds;
