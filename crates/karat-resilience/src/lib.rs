//! Resilience evaluation: does an agent, or the defence in front of it, withstand attacks and still do
//! its work?
//!
//! [`Resilience`] is the evaluation. [`recordings`] reads runs that others recorded; a [`world`] with an
//! [`attack`] in it is served as an MCP server ([`serve`]), and [`agents`] that need no model work in it
//! through a [`defence`]. [`Run`] is the one shape of a run, and proofs come from the state that it left.

pub mod agents;
pub mod attack;
mod controls;
pub mod defence;
mod evaluation;
mod live;
mod outside;
mod relay;
mod replay;
mod route;
mod score;
pub mod serve;
pub mod set;
pub mod world;

pub use evaluation::{Config, Data, Facts, Resilience, split_runs};
pub use karat_recordings::{self as recordings, Filter, Format, Recordings, Run};
pub use live::Harness;
pub use outside::ModelConfig;
