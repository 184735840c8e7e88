//! Server evaluation: does an MCP server answer right, validly, reliably, fast and safely?
//!
//! [`lint`] judges tool definitions without calling a tool. The evaluations that call tools need a
//! live session and come beside it.

pub mod lint;
