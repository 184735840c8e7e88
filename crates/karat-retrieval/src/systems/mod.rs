//! Adapters to systems outside this process, one file each.

pub mod answer;
pub mod command;
pub mod http;
mod ids;
pub mod mcp;
mod pages;
