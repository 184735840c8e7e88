//! `karat server test`: one suite against one server, gated and reported as `karat check` does.

use std::path::Path;

use karat_core::evaluation::{Common, Entry, Evaluation as _};
use karat_core::kind::Evaluation;
use karat_server::Suites;
use karat_server::suite::Suite;
use karat_server::suites::{AcceptSnapshots, Config, Dataset};

use super::recording::Recording;
use super::target;
use crate::cli::{CheckArgs, ServerTestArgs};
use crate::commands::check;
use crate::exit::{Exit, Stop};
use crate::face::Terminal;
use crate::project;

/// Runs the suite. Every case must pass.
pub(crate) fn test(arguments: &ServerTestArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let suite = Suite::load(&arguments.suite)?;
    let recording = Recording::begin(&arguments.record)?;
    let config = Config {
        suite: arguments.suite.clone(),
        server: target::spec_or(&arguments.target, suite.server.as_ref(), terminal)?,
        tags: arguments.tag.clone(),
        case: arguments.case.clone(),
        recorder: recording.recorder(),
        ..Config::default()
    };
    let mut common = Common {
        timeout_ms: arguments.timeout_ms,
        start_timeout_ms: arguments.start_timeout_ms,
        ..Common::named(name(arguments))
    };
    Suites::check(&config, &mut common)?;
    let data = Dataset::new(suite, &config, Path::new(""))?;
    let entry = Entry::<Suites> { common, config, data };
    let project = match arguments.update {
        true => project::of_any(AcceptSnapshots(entry)),
        false => project::of_any(entry),
    };
    let run = CheckArgs::writing(&arguments.out, &arguments.outputs);
    recording.finish(check::carry_out(&project, &run, Some(&Evaluation::Server), terminal))
}

/// The name of the suite's file, as far as it can name an entry.
fn name(arguments: &ServerTestArgs) -> String {
    let stem = arguments.suite.file_stem().unwrap_or_default().to_string_lossy();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    stem.chars().map(plain).collect()
}
