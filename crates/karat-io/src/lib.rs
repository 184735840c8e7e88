//! Input and output for the rest of Karat: one bounded file reader, one way to start programs, one
//! HTTP client and one HTTP server, one rule for variables, one redactor, and one way to make hostile text printable.
//!
//! Everything here is bounded in size, depth and time, and nothing here knows about evaluations,
//! scores or MCP.
//!
//! ```
//! use karat_io::input::parse_json_lines;
//! use karat_io::redact::Redactor;
//! use karat_io::text::printable;
//!
//! #[derive(Debug, serde::Deserialize)]
//! struct Query {
//!     id: String,
//! }
//!
//! // A mistake is reported with its line.
//! let queries = b"{\"id\": \"a\"}\n{\"id\": 7}\n";
//! let error = parse_json_lines::<Vec<Query>>("queries.jsonl", queries).unwrap_err();
//! assert_eq!(error.line(), Some(2));
//!
//! // Hostile text is shown without its control characters, and secrets are hidden.
//! assert!(!printable("title\u{1b}[2J").contains('\u{1b}'));
//! let mut redactor = Redactor::default();
//! redactor.add("c0ffee-81f2-77aa");
//! assert_eq!(redactor.hide("key c0ffee-81f2-77aa"), "key [redacted]");
//! ```

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
pub mod symbols;
pub mod table;
pub mod task;
pub mod template;
pub mod text;
pub mod time;
pub mod watcher;

pub use failure::{Failure, FailureClass};
