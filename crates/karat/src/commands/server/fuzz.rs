//! `karat server fuzz`: every tool with inputs that are generated from its schema.

use karat_server::fuzz::{self, Config, Fuzz};

use super::probing;
use super::recording::Recording;
use crate::cli::FuzzArgs;
use crate::exit::{Exit, Stop};
use crate::face::Terminal;

/// Fuzzes a server.
pub(crate) fn fuzz(arguments: &FuzzArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let probe = &arguments.probe;
    let rules = fuzz::rules();
    if probe.rules {
        terminal.print(&probing::rules(&rules))?;
        return Ok(Exit::Pass);
    }
    probing::check(probe)?;
    let server = Some(probing::spec(probe, terminal)?);
    let set = probing::known(probe)?;
    let recording = Recording::begin(&probe.record)?;
    let config = Config {
        server,
        set,
        cases: arguments.cases,
        tools: probe.tool.clone(),
        allow_destructive: probe.allow_destructive,
        time_limit: probing::time_limit(probe),
        shrink_calls: arguments.shrink_calls,
        allow: probe.allow.clone(),
        fail_on: probe.fail_on.into(),
        recorder: recording.recorder(),
        ..Config::default()
    };
    let common = probing::common("fuzz", probe);
    let report = recording.finish(probing::measure::<Fuzz>(common, config, terminal))?;
    let findings = fuzz::findings(&report);
    probing::show(probe, &rules, report, &findings, "", terminal)
}
