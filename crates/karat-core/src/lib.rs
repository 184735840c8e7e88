//! What all evaluations share: reading files within limits, frozen datasets, the JSON Schema
//! engine, and text that is safe to print.

pub mod dataset;
pub mod input;
pub mod schema;
pub mod text;
