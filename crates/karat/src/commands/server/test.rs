//! `karat server test`: one suite against one server, gated and reported as `karat check` does.

use std::path::PathBuf;

use karat_core::report::Evaluation;
use karat_server::suite::Suite;

use super::recording::Recording;
use super::target;
use crate::cli::{CheckArgs, ServerTestArgs};
use crate::commands::check;
use crate::exit::{Exit, Stop};
use crate::face::Terminal;
use crate::project::{Plan, Planned, Root, Task};

/// Runs the suite. Every case must pass.
pub(crate) fn test(arguments: &ServerTestArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let stem = arguments.suite.file_stem().unwrap_or_default().to_string_lossy();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let mut entry = karat_server::Entry {
        name: stem.chars().map(plain).collect(),
        suite: arguments.suite.clone(),
        server: None,
        builtin: None,
        tags: arguments.tag.clone(),
        case: arguments.case.clone(),
        timeout_ms: arguments.timeout_ms,
        start_timeout_ms: arguments.start_timeout_ms,
        seed: 0,
        baseline: None,
        gate: karat_core::gate::Policy::default(),
        update_snapshots: arguments.update,
        recorder: None,
    };
    entry.gate = entry.policy();
    let suite = Suite::load(&entry.suite).map_err(karat_server::ServerError::from)?;
    entry.server = target::spec_or(&arguments.target, suite.server.as_ref(), terminal)?;
    let recording = Recording::begin(&arguments.record)?;
    entry.recorder = recording.recorder();
    let task = Task::server(entry, suite);
    let plan = Plan {
        root: Root::Folder(PathBuf::from(".")),
        entries: vec![Planned { task, baseline: None }],
    };
    let run = CheckArgs::writing(&arguments.out, &arguments.outputs);
    recording.finish(check::carry_out(&plan, &run, Some(Evaluation::Server), terminal))
}
