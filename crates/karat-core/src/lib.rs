//! What the four evaluations share.
//!
//! The stations of the pipeline that are the same for all of them live here: reading bounded input
//! ([`input`]), frozen datasets ([`dataset`]), asking a system and keeping its answers
//! ([`run`], [`journal`]), the report ([`report`]), baselines ([`baseline`]), paired comparison
//! ([`compare`]) and the gate ([`gate`]). Nothing here knows what a query, a detector or a tool
//! call is.

pub mod aggregate;
pub mod baseline;
pub mod compare;
pub mod dataset;
pub mod descendants;
pub mod exchange;
pub mod gate;
pub mod http;
pub mod input;
pub mod journal;
pub mod json_path;
mod paired;
pub mod process;
pub mod provenance;
pub mod report;
pub mod run;
pub mod schema;
pub mod template;
pub mod text;
pub mod tokens;
