//! Server evaluation: does an MCP server answer correctly, validly, reliably, fast and safely?
//!
//! [`suites`] evaluates a server by a [`suite`]: `system` is a live server that is restarted when
//! it fails, `live_suite` asks it case by case, `observation` holds the observations, and `judge`, `score`
//! and `controls` turn these into a report. [`recorded`] does so again with the observations of an earlier run.
//! `compliance` checks arguments and results against declared schemas and the protocol. [`lint`] checks tool
//! definitions without calling a tool, [`load`] makes many calls at once, [`fuzz`] and [`attack`]
//! call tools with generated and with hostile arguments; [`probe`] is what they share. [`suggest`] writes
//! a suite from the answers of a live server, [`distil`] one from a recording, and [`drift`] compares its definitions with earlier ones.

mod accept;
mod asked;
pub mod attack;
mod cleanup;
mod compliance;
pub mod config_scan;
mod controls;
mod coverage;
pub mod demo;
mod denial;
pub mod detect;
pub mod distil;
pub mod drift;
pub mod fuzz;
mod judge;
pub mod lint;
mod live_suite;
pub mod load;
pub mod migration;
mod observation;
mod plan;
pub mod probe;
pub mod recorded;
mod score;
mod secrets;
pub mod suggest;
pub mod suite;
pub mod suites;
mod system;
mod tasks;
mod warnings;

pub use crate::suites::{AcceptSnapshots, Suites};
