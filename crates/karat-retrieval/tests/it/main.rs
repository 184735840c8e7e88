//! The integration tests of karat-retrieval, in one binary.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is a failed test")]

mod trec_files;
mod trec_vectors;
