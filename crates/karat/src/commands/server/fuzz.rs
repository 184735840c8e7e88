//! `karat server fuzz`: every tool with inputs that are made from its schema.

use std::path::Path;
use std::time::Duration;

use karat_server::fuzz::{self, Settings, judge::RULES};

use super::probing;
use super::recording::Recording;
use crate::cli::FuzzArgs;
use crate::exit::{Exit, Stop};
use crate::face::Terminal;
use crate::work::until_stopped;

/// Fuzzes a server.
pub(crate) fn fuzz(arguments: &FuzzArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let probe = &arguments.probe;
    if probe.rules {
        terminal.print(&probing::rules(RULES))?;
        return Ok(Exit::Pass);
    }
    probing::check(probe, RULES)?;
    if arguments.cases == 0 {
        return Err(Stop::bad_input("--cases: 0 inputs find nothing; give at least 1"));
    }
    let spec = probing::spec(probe, terminal)?;
    let known = probing::known(probe)?;
    let recording = Recording::begin(&probe.record)?;
    let settings = Settings {
        cases: arguments.cases,
        seed: probe.seed,
        tools: probe.tool.clone(),
        known,
        allow_destructive: probe.allow_destructive,
        time_limit: probe.time_limit.map(Duration::from_secs),
        shrink_calls: arguments.shrink_calls,
        allow: probe.allow.clone(),
        fail_on: probing::fail_on(probe),
        options: probing::options(probe, &recording),
    };
    let progress = terminal.progress("fuzz");
    let fuzzed = recording.finish(until_stopped(
        async {
            let ran = fuzz::run(&spec, &settings, Path::new("."), &progress).await;
            ran.map_err(Stop::from)
        },
        "interrupted",
    ))?;
    probing::show(probe, RULES, fuzzed.report, &fuzzed.findings, "", terminal)
}
