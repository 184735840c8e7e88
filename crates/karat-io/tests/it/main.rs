//! The integration tests of karat-io, in one binary.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is a failed test"
)]

mod input_files;
mod input_formats;
mod input_properties;
