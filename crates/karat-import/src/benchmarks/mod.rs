//! The importers, one file each.

mod agentdojo;
mod asb;
mod beir;
pub(crate) mod bfcl;
mod draft;
mod dvmcp;
mod livemcpbench;
mod mcpmark;
mod mcpsafetybench;
mod mcpsecbench;
mod mcptox;
mod msb;
mod servers;
mod skills;
mod tau;
mod toolbench;
mod toolret;

use crate::Benchmark;

/// Every benchmark that can be imported, by name.
pub const BENCHMARKS: &[Benchmark] = &[
    agentdojo::BENCHMARK,
    asb::BENCHMARK,
    beir::BENCHMARK,
    bfcl::BENCHMARK,
    draft::BENCHMARK,
    dvmcp::BENCHMARK,
    livemcpbench::BENCHMARK,
    servers::MCP_BENCH,
    mcpsafetybench::BENCHMARK,
    servers::MCP_UNIVERSE,
    mcpmark::BENCHMARK,
    mcpsecbench::BENCHMARK,
    mcptox::BENCHMARK,
    msb::BENCHMARK,
    skills::BENCHMARK,
    toolbench::STABLE,
    tau::BENCHMARK,
    toolbench::BENCHMARK,
    toolret::BENCHMARK,
];
