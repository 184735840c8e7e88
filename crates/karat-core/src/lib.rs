//! What the four evaluations share.
//!
//! The stations of the pipeline that are the same for all of them live here: frozen datasets ([`dataset`]), asking a system and keeping its answers
//! ([`run`], [`journal`]), the report ([`report`]), baselines ([`baseline`]), paired comparison
//! ([`compare`]) and the gate ([`gate`]). Nothing here knows what a query, a detector or a tool
//! call is.

pub mod aggregate;
pub mod baseline;
pub mod compare;
pub mod dataset;
pub mod gate;
pub mod journal;
mod paired;
pub mod provenance;
pub mod report;
pub mod run;
pub mod schema;
pub mod tokens;
