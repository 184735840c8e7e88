//! `karat server scan`: lint, detectors, a short fuzz, latencies and the reach of a server, in one table.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use karat_core::evaluation::Common;
use karat_core::finding::{Finding, Severity};
use karat_core::provenance;
use karat_core::report::{Check, CheckReport, Latency, Report, Verdict};
use karat_io::input::write_atomic;
use karat_io::text::{clip, printable};
use karat_io::time::Time;
use karat_mcp::{Engine, Isolation, Options, ServerSpec, Session};
use karat_report::{Output, sarif};
use karat_server::attack::reach::{self, Reach};
use karat_server::attack::{self, Attack};
use karat_server::fuzz::{self, Config, Fuzz};
use karat_server::probe::live;
use karat_server::probe::stop::StopRequest;
use karat_server::probe::{self, Rule};

use super::recording::Recording;
use super::{config_scan, detectors, lint, probing, target};
use crate::cli::{ScanArgs, TargetArgs};
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;
use crate::work::until_stopped;

/// The number of findings of lint that are listed in full.
const LISTED: usize = 40;
const WIDTH: usize = 160;
/// The number of listings that are timed where no tool may be called.
const LISTINGS: usize = 10;
/// The minimum time for checking what the server can reach.
const LEAST_REACH: Duration = Duration::from_secs(2);

/// The reason for which the reach of a server without callable tools is unknown.
const NOT_CALLED: &str = "no tool was called";

/// Scans a server.
pub(crate) fn scan(arguments: &ScanArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    for path in &arguments.outputs {
        Output::of(path).map_err(Stop::bad_input)?;
    }
    let TargetArgs { config, server, url, command, .. } = &arguments.target;
    if let (Some(file), None, None, []) = (config, server, url, command.as_slice()) {
        return config_scan::of_file(file, arguments, terminal);
    }
    let spec = target::needed(&arguments.target, terminal)?;
    let started = Instant::now();
    let recording = Recording::begin(&arguments.record)?;
    let options = Options {
        recorder: recording.recorder(),
        start_timeout: arguments.times.start_timeout.0,
        ..Options::default()
    };
    lint::check_allowed(&arguments.allow)?;
    let served = lint::from_server(&spec, &options)?;
    target::say_remarks(terminal, &options);
    let linted = lint::judged(&served, &arguments.allow);
    if let Some(why) = uncallable(&spec, &served, arguments) {
        let latency = listing_latency(&spec, &options);
        let latency = recording.finish(latency)?;
        return without_calls(&spec, &linted, &why, latency, arguments, terminal);
    }
    let stop = StopRequest::default();
    let config = Config {
        server: Some(spec.clone()),
        inputs: arguments.inputs,
        time_limit: Some(arguments.time_limit),
        tool_time_limit: Some(Time(arguments.time_limit.0 / 4)),
        allow_destructive: arguments.allow_destructive,
        recorder: recording.recorder(),
        stop: stop.clone(),
        ..Config::default()
    };
    let common = arguments.times.limits().common("scan");
    let measured = probing::measure::<Fuzz>(common.clone(), config, &stop, terminal);
    let report = recording.finish(measured)?;
    let limit = reach_limit(arguments.time_limit.0, started.elapsed());
    let reached = reached(arguments, &spec, common, limit, &stop, terminal)?;
    let fuzzed = fuzz::findings(&report);
    let rules: Vec<&Rule> = detectors::rules().into_iter().chain(fuzz::rules()).collect();
    let findings: Vec<&Finding> = linted.findings.iter().chain(&fuzzed).collect();
    let fails =
        |finding: &&&Finding| probe::FailOn::from(arguments.fail_on).fails(finding.severity);
    let failing = findings.iter().filter(fails).count();
    let mut text = table(&spec.describe(), &linted, &fuzzed, &report);
    text.push_str(&reach_rows(&spec, &reached));
    let verdict = report.gate.as_ref().map(|gate| gate.verdict);
    let document = CheckReport::of(vec![report]);
    write_files(arguments, &rules, &findings, &document)?;
    if terminal.json() {
        let mut found = serde_json::json!({
            "schema": "karat.scan/1",
            "lint": linted,
            "fuzz": document,
            "reach": reached.as_ref().ok(),
        });
        if let Err(why) = reached {
            found["reach_undefined"] = why.into();
        }
        terminal.print_json(&found)?;
    } else {
        terminal.print(&text)?;
    }
    let failed = failing > 0 || verdict == Some(Verdict::Fail);
    Ok(probing::exit(&stop, if failed { Exit::GateFailed } else { Exit::Pass }))
}

/// Writes the files that were asked for.
fn write_files(
    arguments: &ScanArgs,
    rules: &[&Rule],
    findings: &[&Finding],
    document: &CheckReport,
) -> Result<(), Stop> {
    if let Some(path) = &arguments.sarif {
        write_atomic(
            path,
            sarif::document(&probing::log(rules, findings.iter().copied())).as_bytes(),
        )?;
    }
    for path in &arguments.outputs {
        let rendered = Output::of(path).and_then(|output| output.render(document));
        write_atomic(path, rendered.map_err(Stop::bad_input)?.as_bytes())?;
    }
    Ok(())
}

/// The reason for which no tool can be called, if there is one.
fn uncallable(spec: &ServerSpec, served: &lint::Served, arguments: &ScanArgs) -> Option<String> {
    if served.tools.is_empty() {
        return Some("the server offers no tools".to_owned());
    }
    let skipped = live::uncalled(&served.tools);
    if arguments.allow_destructive || skipped.len() < served.tools.len() {
        return None;
    }
    let is_throwaway = spec.isolate.as_ref().is_some_and(Isolation::is_throwaway);
    let why = live::describe_skipped(&skipped, is_throwaway)?;
    let hint = if is_throwaway { "" } else { "; --allow-destructive calls them" };
    Some(served.redactor.hidden(format!("{why}{hint}")))
}

/// The time that listing the tools takes, for a server none of whose tools may be called.
fn listing_latency(spec: &ServerSpec, options: &Options) -> Result<Option<Latency>, Stop> {
    let listing = async {
        let session = Session::start(spec, options).await.map_err(target::not_started)?;
        let mut times = Vec::with_capacity(LISTINGS);
        for _ in 0..LISTINGS {
            let started = Instant::now();
            session.tools().await.map_err(Stop::not_measured)?;
            times.push(started.elapsed());
        }
        session.close().await;
        Ok(provenance::quantiles(&times))
    };
    until_stopped(listing, "interrupted")
}

/// The scan of a server without callable tools: its exit code follows from the definitions.
fn without_calls(
    spec: &ServerSpec,
    linted: &karat_server::lint::Outcome,
    why: &str,
    latency: Option<Latency>,
    arguments: &ScanArgs,
    terminal: &Terminal,
) -> Result<Exit, Stop> {
    let findings: Vec<&Finding> = linted.findings.iter().collect();
    let document = CheckReport::of(Vec::new());
    write_files(arguments, &detectors::rules(), &findings, &document)?;
    if terminal.json() {
        terminal.print_json(&serde_json::json!({
            "schema": "karat.scan/1",
            "lint": linted,
            "fuzz": document,
            "reach": null,
            "reach_undefined": NOT_CALLED,
            "not_called": why,
            "latency_ms": latency,
        }))?;
    } else {
        let mut out = listed(linted);
        out.push_str(&counts(&spec.describe(), linted, None));
        let _ = writeln!(out, "no tool was called; its answers were not checked");
        if let Some(Latency { n, p50, max, .. }) = latency {
            let _ = writeln!(out, "latency of {n} listings: p50 {p50:.1} ms, longest {max:.1} ms");
        }
        let _ = writeln!(out, "note: {}", printable(why));
        out.push_str(&reach_rows(spec, &Err(NOT_CALLED.to_owned())));
        terminal.print(&out)?;
    }
    let fail_on = probe::FailOn::from(arguments.fail_on);
    let failed = findings.iter().any(|finding| fail_on.fails(finding.severity));
    Ok(if failed { Exit::GateFailed } else { Exit::Pass })
}

/// The time for looking at what the server can reach: a third of that for the fuzz, or what is left of half as much
/// again, so that a scan with the defaults takes less than a minute.
fn reach_limit(fuzz: Duration, elapsed: Duration) -> Duration {
    (fuzz * 3 / 2).saturating_sub(elapsed).min(fuzz / 3).max(LEAST_REACH)
}

/// The things outside of the server that its tools lead to; an error is the reason for which that is not known.
fn reached(
    arguments: &ScanArgs,
    server: &ServerSpec,
    mut common: Common,
    limit: Duration,
    stop: &StopRequest,
    terminal: &Terminal,
) -> Result<Result<Vec<Reach>, String>, Stop> {
    if stop.is_made() {
        return Ok(Err("not tried: the scan was interrupted".to_owned()));
    }
    "reach".clone_into(&mut common.name);
    let config = attack::Config {
        server: Some(server.clone()),
        cases: reach::REACHING.map(str::to_owned).to_vec(),
        allow_destructive: arguments.allow_destructive,
        time_limit: Some(Time(limit)),
        fail_on: probe::FailOn::Never,
        stop: stop.clone(),
        ..attack::Config::default()
    };
    match probing::measure::<Attack>(common, config, stop, terminal) {
        Ok(report) => Ok(Ok(reach::of(&report))),
        // The scan of a server without such parameters is still complete.
        Err(ended) if ended.exit == Exit::NotMeasured => Ok(Err(ended.message)),
        Err(ended) => Err(ended),
    }
}

/// The rows about what the tools, and the process, can reach.
fn reach_rows(server: &ServerSpec, reached: &Result<Vec<Reach>, String>) -> String {
    let mut out = String::new();
    let mut row = |name: &str, text: String| {
        let _ = writeln!(out, "{name:<13}{}", clip(&printable(&text), WIDTH));
    };
    match reached {
        Err(why) => row("can reach", format!("unknown: {why}")),
        Ok(things) => {
            for (number, thing) in things.iter().enumerate() {
                let name = if number == 0 { "can reach" } else { "" };
                let what = thing.what;
                row(
                    name,
                    match (thing.through.as_slice(), thing.is_tried) {
                        ([], true) if thing.is_cut_short => {
                            format!("{what}: not found in the calls that were tried")
                        }
                        ([], true) => format!("{what}: no"),
                        ([], false) if thing.is_cut_short => {
                            format!("{what}: unknown; timed out")
                        }
                        ([], false) => {
                            format!(
                                "{what}: unknown; {}",
                                thing.undefined.as_deref().unwrap_or("not tried")
                            )
                        }
                        (through, _) => format!("{what}: yes, through {}", through.join(", ")),
                    },
                );
            }
        }
    }
    let is_apart = server.isolate.as_ref().is_some_and(|one| one.engine != Engine::None);
    row(
        "process",
        match (&server.url, is_apart) {
            (Some(_), _) => "not started by Karat; its rights are unknown".to_owned(),
            (None, true) => "in a sandbox (--isolate)".to_owned(),
            (None, false) => {
                "runs with your rights, files and network; --isolate bwrap runs it in a sandbox"
                    .to_owned()
            }
        },
    );
    out
}

/// The findings worth acting on, then everything in one table.
fn table(
    server: &str,
    linted: &karat_server::lint::Outcome,
    fuzzed: &[Finding],
    report: &Report,
) -> String {
    let mut out = listed(linted);
    out.push_str(&probing::listed(fuzzed));
    out.push_str(&counts(server, linted, Some(fuzzed)));
    // Controls that landed where they must are of no interest at a glance.
    let is_shown = |check: &&Check| check.rule != "control" || check.verdict != Verdict::Pass;
    for check in report.gate.iter().flat_map(|gate| &gate.checks).filter(is_shown) {
        let _ = writeln!(out, "{}", printable(&check.reason));
    }
    if let Some(latency) = &report.environment.latency_ms {
        let Latency { n, p50, p99, .. } = latency;
        let _ = writeln!(out, "latency of {n} answers: p50 {p50:.1} ms, p99 {p99:.1} ms");
    }
    for warning in &report.warnings {
        let _ = writeln!(out, "note: {}", printable(warning));
    }
    out
}

/// The findings of lint that are worth acting on.
fn listed(linted: &karat_server::lint::Outcome) -> String {
    let mut out = String::new();
    let serious = |finding: &&Finding| finding.severity > Severity::Note;
    let listed: Vec<&Finding> = linted.findings.iter().filter(serious).collect();
    for finding in listed.iter().take(LISTED) {
        let Finding { rule, severity, tool, message, .. } = finding;
        let name = if tool.is_empty() { "(the server)" } else { tool };
        let text = format!("{name}: {message}");
        let text = printable(&text);
        let _ = writeln!(out, "{:<8}{}  [{rule}]", severity.name(), clip(&text, WIDTH));
    }
    if listed.len() > LISTED {
        let more = listed.len() - LISTED;
        let _ = writeln!(out, "and {more} more: `karat server lint` lists them all");
    }
    out
}

/// The number of findings of each severity; of calls, if there were any.
fn counts(
    server: &str,
    linted: &karat_server::lint::Outcome,
    fuzzed: Option<&[Finding]>,
) -> String {
    let mut out = String::new();
    let count = |findings: &[Finding], severity| {
        findings.iter().filter(|finding| finding.severity == severity).count()
    };
    let _ = writeln!(out, "\n{}", printable(server));
    let _ = writeln!(out, "{:<12}{:>8}{:>10}{:>8}", "", "errors", "warnings", "notes");
    let definitions = ("definitions", linted.findings.as_slice());
    for (what, findings) in std::iter::once(definitions).chain(fuzzed.map(|found| ("fuzz", found)))
    {
        let [errors, warnings, notes] = [Severity::Error, Severity::Warning, Severity::Note]
            .map(|severity| count(findings, severity));
        let _ = writeln!(out, "{what:<12}{errors:>8}{warnings:>10}{notes:>8}");
    }
    let tools = match linted.tools {
        1 => "1 tool".to_owned(),
        n => format!("{n} tools"),
    };
    let _ = writeln!(out, "{tools}, {} tokens of definitions", linted.tokens);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_start_leaves_less_time_for_what_the_server_can_reach() {
        let seconds =
            |elapsed| reach_limit(Duration::from_secs(30), Duration::from_secs(elapsed)).as_secs();
        assert_eq!([30, 40, 44, 90].map(seconds), [10, 5, 2, 2]);
    }
}
