//! Input and output for the rest of Karat: one bounded file reader, one way to start programs, one
//! HTTP client and one HTTP server, one rule for variables, one redactor, and one way to make hostile text printable.
//!
//! Everything here is bounded in size, depth and time, and nothing here knows about evaluations,
//! scores or MCP.

pub mod exchange;
mod failure;
pub mod http;
pub mod http_server;
pub mod input;
pub mod interpolate;
pub mod json_path;
pub mod platform;
pub mod private;
pub mod private_file;
pub mod process;
pub mod redact;
pub mod secrets;
pub mod table;
pub mod template;
pub mod text;
pub mod watcher;

pub use failure::{Failure, FailureClass};
