//! Batches against the evaluations whose numbers they must have, and partial results against one pass.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::needless_pass_by_value,
    clippy::cast_possible_truncation,
    reason = "a panic is a failed test"
)]

mod agreement;
mod errors;
mod merging;
#[cfg(feature = "parquet")]
mod parquet_files;
mod tables;
