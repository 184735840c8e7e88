//! The integration tests of karat, in one binary.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::cast_possible_truncation,
    clippy::needless_pass_by_value,
    reason = "a panic is a failed test, and live tests print what they measured"
)]

// The fuzz targets call `libfuzzer_sys::fuzz_target!`; here that macro is in `fuzzed`.
extern crate self as libfuzzer_sys;

mod adapters;
mod agent;
mod agent_gates;
mod agent_run;
mod bad_input;
mod check;
mod ci;
mod ci_gitlab;
mod commands;
mod common;
mod corpus;
mod corpus_servers;
mod detection;
mod detection_hostile;
mod detection_mcpproxy;
mod formats;
mod fuzzed;
mod grammar;
mod guide;
mod hardening;
mod history;
mod import;
mod import_formats;
mod init;
#[cfg(not(karat_portable))]
mod isolation;
mod live_agent_model;
mod live_conformance;
mod live_dense;
#[cfg(not(karat_portable))]
mod live_docker;
mod live_gepa;
mod live_mcptest;
mod live_proxies;
mod live_real_servers;
mod live_scanners;
mod live_servers;
mod load;
mod manners;
mod mcp;
mod outputs;
mod parquet;
mod parts;
mod public_shapes;
mod resilience;
mod resume;
mod retrieval;
mod retrieval_failures;
mod retrieval_gate;
mod retrieval_hostile;
mod server;
mod server_attack;
mod server_attack_twins;
mod server_attack_unreached;
mod server_config;
mod server_distil;
mod server_findings;
mod server_fuzz;
mod server_fuzz_depth;
mod server_judging;
mod server_login;
mod server_manners;
mod server_migration;
mod server_notices;
mod server_policies;
mod server_relations;
mod server_score;
mod server_secrets;
mod server_snapshots;
mod server_state;
mod server_suggest;
mod server_surroundings;
mod server_traps;
mod server_wire;
