//! Definitions without formulas in code: metrics that an evaluation counts or times itself.
//!
//! This crate cannot compute them, because a value needs a running server, a clock or a tokenizer.
//! They are defined here so that one table describes every metric of a report.

pub(crate) mod agent;
pub(crate) mod cost;
pub(crate) mod load;
pub(crate) mod outcomes;
pub(crate) mod probes;
pub(crate) mod resilience;
pub(crate) mod suites;
pub(crate) mod triggers;
