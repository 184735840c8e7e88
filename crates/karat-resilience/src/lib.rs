//! Resilience evaluation: does an agent, or the defence in front of it, withstand attacks and still do
//! its work?
//!
//! [`Resilience`] is the evaluation. [`recordings`] reads runs that others recorded; a [`world`] with an
//! [`attack`] in it is served as an MCP server ([`serve`]), and [`agents`] that need no model work in it
//! through a [`defence`]. [`delivery`] decides whether an injected text arrived; [`mod@run`] is the one
//! shape of a run, and proofs come from the state that it left.

pub mod agents;
pub mod attack;
mod controls;
pub mod defence;
pub mod delivery;
mod evaluation;
mod live;
mod outside;
pub mod recordings;
mod refusal;
mod relay;
mod route;
pub mod run;
mod score;
pub mod serve;
pub mod set;
pub mod world;

pub use evaluation::{Config, Data, Facts, Resilience, split_runs};
pub use live::Harness;
pub use outside::ModelConfig;
pub use recordings::{Filter, Format, Recordings};
pub use run::Run;
