//! Adapters to systems outside this process, one file each.

pub mod command;
