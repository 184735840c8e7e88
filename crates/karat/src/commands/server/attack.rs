//! `karat server attack`: known attacks, judged by canaries.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use karat_server::attack::cases::ATTACKS;
use karat_server::attack::{self, Attacked, Class, Settings, Status};
use karat_server::probe::Rule;

use super::probing;
use super::recording::Recording;
use crate::cli::{AttackArgs, AttackClass};
use crate::exit::{Exit, Stop};
use crate::face::Terminal;
use crate::work::until_stopped;

/// Attacks a server.
pub(crate) fn attack(arguments: &AttackArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let probe = &arguments.probe;
    let rules: Vec<&Rule> = ATTACKS.iter().map(|attack| &attack.rule).collect();
    if probe.rules {
        terminal.print(&probing::rules(&rules))?;
        return Ok(Exit::Pass);
    }
    probing::check(probe, &rules)?;
    let spec = probing::spec(probe, terminal)?;
    let known = probing::known(probe)?;
    let recording = Recording::begin(&probe.record)?;
    let settings = Settings {
        seed: probe.seed,
        tools: probe.tool.clone(),
        known,
        classes: arguments.class.iter().map(|class| meant(*class)).collect(),
        cases: arguments.case.clone(),
        allow_destructive: probe.allow_destructive,
        roots: arguments.root.clone(),
        flood: arguments.flood,
        time_limit: probe.time_limit.map(Duration::from_secs),
        allow: probe.allow.clone(),
        fail_on: probing::fail_on(probe),
        options: probing::options(probe, &recording),
    };
    let progress = terminal.progress("attack");
    let attacked = recording.finish(until_stopped(
        async {
            let ran = attack::run(&spec, &settings, Path::new("."), &progress).await;
            ran.map_err(Stop::from)
        },
        "interrupted",
    ))?;
    let table = table(&attacked);
    probing::show(probe, &rules, attacked.report, &attacked.findings, &table, terminal)
}

fn meant(class: AttackClass) -> Class {
    match class {
        AttackClass::Injection => Class::Injection,
        AttackClass::Exfiltration => Class::Exfiltration,
        AttackClass::PrivilegeEscalation => Class::PrivilegeEscalation,
        AttackClass::DenialOfService => Class::DenialOfService,
    }
}

/// The number of attacks of each class ended how.
fn table(attacked: &Attacked) -> String {
    let columns = [Status::Held, Status::Broken, Status::NotJudged, Status::NotApplicable];
    let mut text = format!("{:<22}", "class");
    for status in columns {
        let _ = write!(text, "{:>16}", status.name().replace('_', " "));
    }
    text.push('\n');
    for (class, counts) in &attacked.tally {
        let _ = write!(text, "{:<22}", class.name().replace('_', " "));
        for status in columns {
            let _ = write!(text, "{:>16}", counts.get(&status).copied().unwrap_or(0));
        }
        text.push('\n');
    }
    text.push('\n');
    text
}
