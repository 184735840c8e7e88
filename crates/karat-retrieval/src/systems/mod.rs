//! Adapters to systems outside this process, one file each.

pub mod answer;
pub mod command;
pub mod http;
pub mod mcp;
