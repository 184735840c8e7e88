//! The importers, one file each.

mod beir;
pub(crate) mod bfcl;
mod draft;
mod livemcpbench;
mod mcpmark;
mod mcpsecbench;
mod skills;
mod tau;
mod toolbench;
mod toolret;

use crate::Benchmark;

/// Every benchmark that can be imported, by name.
pub const BENCHMARKS: &[Benchmark] = &[
    beir::BENCHMARK,
    bfcl::BENCHMARK,
    draft::BENCHMARK,
    livemcpbench::BENCHMARK,
    mcpmark::BENCHMARK,
    mcpsecbench::BENCHMARK,
    skills::BENCHMARK,
    tau::BENCHMARK,
    toolbench::BENCHMARK,
    toolret::BENCHMARK,
];
