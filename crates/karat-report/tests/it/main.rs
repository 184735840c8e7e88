//! The integration tests of karat-report, in one binary.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is a failed test"
)]

mod html;
mod junit;
mod markdown;
mod outputs;
mod sample;
mod script;
mod style;
mod terminal;
