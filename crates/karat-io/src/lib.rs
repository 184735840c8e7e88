//! Input and output for the rest of Karat: one bounded file reader, one way to start programs, one
//! HTTP client, one rule for variables, one redactor, and one way to make hostile text printable.
//!
//! Everything here is bounded in size, depth and time, and nothing here knows about evaluations,
//! scores or MCP.

pub mod descendants;
pub mod exchange;
mod failure;
pub mod http;
pub mod input;
pub mod interpolate;
pub mod json_path;
pub mod process;
pub mod redact;
pub mod secrets;
pub mod template;
pub mod text;

pub use failure::{Failure, FailureClass};
