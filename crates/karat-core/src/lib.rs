//! The stations that all evaluations share.
//!
//! An evaluation is a type ([`evaluation::Evaluation`]) and what it observed is a type
//! ([`observed::Observed`]). [`evaluation::evaluate`] runs any of them: it loads the frozen
//! [`dataset`], asks the system ([`run`], [`journal`]), scores, and makes the [`report`]; [`project`]
//! reads karat.toml, [`compare`] pairs two sets of scores, and [`gate`] decides.

pub mod adapter;
pub mod aggregate;
mod align;
pub mod baseline;
pub mod compare;
pub mod dataset;
pub mod error;
pub mod evaluation;
pub mod expect;
pub mod finding;
pub mod gate;
pub mod journal;
pub mod kind;
pub mod label;
pub mod leaderboard;
pub mod means;
pub mod observed;
mod paired;
pub mod partition;
pub mod parts;
pub mod project;
mod property;
pub mod provenance;
pub mod report;
mod root;
pub mod run;
pub mod schema;
mod slice_key;
mod standings;
pub mod tokens;
pub mod tool;
