//! Server evaluation: does an MCP server answer right, validly, reliably, fast and safely?
//!
//! [`lint`] judges tool definitions without calling a tool. [`suite`] reads what to call and what must
//! come back.

pub mod lint;
pub mod suite;
