//! `karat server fuzz`: every tool with inputs that are generated from its schema.

use karat_io::time::Time;
use karat_server::fuzz::{self, Config, Fuzz};
use karat_server::probe::stop::StopRequest;

use super::probing;
use super::recording::Recording;
use crate::cli::FuzzArgs;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;

/// Fuzzes a server.
pub(crate) fn fuzz(arguments: &FuzzArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let probe = &arguments.probe;
    let rules = fuzz::rules();
    if probe.findings.rules {
        terminal.print(&probing::rules(&rules))?;
        return Ok(Exit::Pass);
    }
    probing::check(probe)?;
    let server = Some(probing::spec(probe, terminal)?);
    let set = probing::known(&probe.set)?;
    let recording = Recording::begin(&probe.record)?;
    let stop = StopRequest::default();
    let config = Config {
        server,
        set,
        recordings: probe.from_recording.clone(),
        inputs: arguments.inputs,
        tools: probe.tool.clone(),
        allow_destructive: probe.allow_destructive,
        time_limit: probe.time_limit.or(Some(Time(fuzz::TIME_LIMIT))),
        tool_time_limit: Some(arguments.tool_time_limit),
        shrink_calls: arguments.shrink_calls,
        allow: probe.findings.allow.clone(),
        fail_on: probe.findings.fail_on.into(),
        recorder: recording.recorder(),
        stop: stop.clone(),
        ..Config::default()
    };
    let common = probing::common("fuzz", probe);
    let report = recording.finish(probing::measure::<Fuzz>(common, config, &stop, terminal))?;
    let findings = fuzz::findings(&report);
    let shown = probing::show(probe, &rules, report, &findings, "", terminal);
    shown.map(|exit| probing::exit(&stop, exit))
}
