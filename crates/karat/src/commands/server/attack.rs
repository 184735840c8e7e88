//! `karat server attack`: known attacks, judged by canaries.

use std::fmt::Write as _;

use karat_core::observed::AttackStatus;
use karat_core::report::Report;
use karat_io::time::Time;
use karat_server::attack::{self, Attack, Class, Config};
use karat_server::probe::stop::StopRequest;

use super::probing;
use super::recording::Recording;
use crate::cli::{AttackArgs, AttackClass};
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;

/// Attacks a server.
pub(crate) fn attack(arguments: &AttackArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let probe = &arguments.probe;
    let rules = attack::rules();
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
        tools: probe.tool.clone(),
        classes: arguments.class.iter().map(|class| Class::from(*class)).collect(),
        cases: arguments.case.clone(),
        roots: arguments.root.clone(),
        flood: arguments.flood,
        allow_destructive: probe.allow_destructive,
        time_limit: probe.time_limit.or(Some(Time(attack::TIME_LIMIT))),
        allow: probe.findings.allow.clone(),
        fail_on: probe.findings.fail_on.into(),
        recorder: recording.recorder(),
        stop: stop.clone(),
        ..Config::default()
    };
    let common = probing::common("attack", probe);
    let report = recording.finish(probing::measure::<Attack>(common, config, &stop, terminal))?;
    let (findings, table) = (attack::findings(&report), table(&report));
    let shown = probing::show(probe, &rules, report, &findings, &table, terminal);
    shown.map(|exit| probing::exit(&stop, exit))
}

impl From<AttackClass> for Class {
    fn from(class: AttackClass) -> Class {
        match class {
            AttackClass::Injection => Class::Injection,
            AttackClass::Exfiltration => Class::Exfiltration,
            AttackClass::PrivilegeEscalation => Class::PrivilegeEscalation,
            AttackClass::DenialOfService => Class::DenialOfService,
        }
    }
}

/// The number of attacks by class and result.
fn table(report: &Report) -> String {
    let columns = [
        AttackStatus::Held,
        AttackStatus::Broken,
        AttackStatus::NotJudged,
        AttackStatus::NotApplicable,
    ];
    let mut text = format!("{:<22}", "class");
    for status in columns {
        let _ = write!(text, "{:>16}", status.name().replace('_', " "));
    }
    text.push('\n');
    for (class, counts) in attack::tally(report) {
        let _ = write!(text, "{:<22}", class.name().replace('_', " "));
        for status in columns {
            let _ = write!(text, "{:>16}", counts.get(&status).copied().unwrap_or(0));
        }
        text.push('\n');
    }
    text.push('\n');
    text
}
