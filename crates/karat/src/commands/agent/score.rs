//! `karat agent score`: recorded traces, scored, gated and reported as `karat check` does.

use std::path::{Path, PathBuf};

use karat_agent::judge::Verdicts;
use karat_agent::{CallMetric, Entry, Loaded, Recorded, Source};
use karat_core::baseline::Baseline;
use karat_core::gate::{Policy, Rule};
use karat_core::report::Evaluation;
use karat_io::input::{self, Limits};

use super::{means, shape, tasks, tools};
use crate::cli::{AgentScoreArgs, CheckArgs};
use crate::commands::check;
use crate::exit::{Exit, Stop};
use crate::face::Terminal;
use crate::project::{Plan, Planned, Root, Task};

/// Scores the traces: with a report, or in one pass.
pub(crate) fn score(arguments: &AgentScoreArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    if arguments.means || arguments.per_item {
        return means::score(arguments, terminal);
    }
    let metrics = metrics(arguments)?;
    let entry = Entry {
        name: arguments.name.clone(),
        traces: arguments.traces.clone(),
        format: shape(arguments.read.format),
        baseline: arguments.baseline.clone(),
        gate: gate(arguments)?,
        ..Entry::default()
    };
    let baseline = arguments.baseline.as_deref().map(baseline).transpose()?;
    let tasks = tasks(&arguments.read)?;
    let source = Source {
        files: &arguments.traces,
        shape: entry.format,
        tasks: tasks.as_ref(),
        max_bad: arguments.read.max_bad,
        metrics: &metrics,
    };
    let recorded = Recorded::read(&source)?;
    let tools = tools(&arguments.tools, Path::new("."))?;
    let verdicts = arguments.verdicts.as_deref().map(Verdicts::load).transpose()?;
    let before = match &arguments.before {
        None => None,
        Some(path) => {
            Some(Recorded::read(&Source { files: std::slice::from_ref(path), ..source })?)
        }
    };
    let before = before.map(|before| before.traces);
    let loaded = Loaded { recorded, tools, metrics: metrics.clone(), verdicts, before };
    let plan = Plan {
        root: Root::Folder(PathBuf::from(".")),
        entries: vec![Planned { task: Task::agent(entry, loaded), baseline }],
    };
    let run = CheckArgs::writing(&arguments.out, &arguments.outputs);
    check::carry_out(&plan, &run, Some(Evaluation::Agent), terminal)
}

/// The metrics that were named, or the usual ones.
pub(super) fn metrics(arguments: &AgentScoreArgs) -> Result<Vec<CallMetric>, Stop> {
    if arguments.metrics.is_empty() {
        return Ok(karat_agent::usual_metrics());
    }
    named(&arguments.metrics)
}

pub(super) fn named<T: AsRef<str>>(ids: &[T]) -> Result<Vec<CallMetric>, Stop> {
    ids.iter()
        .map(|id| id.as_ref().parse::<CallMetric>())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| Stop::bad_input(format!("--metric: {error}")))
}

fn baseline(path: &Path) -> Result<Baseline, Stop> {
    let text = input::read_text(path, &Limits::default())?;
    Ok(Baseline::parse(path, &text)?)
}

/// The gate that the arguments ask for; every rule is one that can be kept or broken.
pub(super) fn gate(arguments: &AgentScoreArgs) -> Result<Policy, Stop> {
    let AgentScoreArgs { min, max, max_drop, max_errors, .. } = arguments;
    let gate = policy(min, max, max_drop, *max_errors)?;
    gate.validate().map_err(Stop::bad_input)?;
    Ok(gate)
}

/// The gate that flags ask for.
pub(super) fn policy(
    min: &[String],
    max: &[String],
    max_drop: &[String],
    max_errors: f64,
) -> Result<Policy, Stop> {
    let mut policy = Policy { max_errors, ..Policy::default() };
    let mut add = |flag: &str, written: &str, set: fn(&mut Rule, f64)| -> Result<(), Stop> {
        let (metric, value) = assignment(flag, written)?;
        set(policy.metrics.entry(metric).or_default(), value);
        Ok(())
    };
    for written in min {
        add("--min", written, |rule, value| rule.min = Some(value))?;
    }
    for written in max {
        add("--max", written, |rule, value| rule.max = Some(value))?;
    }
    for written in max_drop {
        add("--max-drop", written, |rule, value| rule.max_drop = Some(value))?;
    }
    Ok(policy)
}

/// Reads `name=number`.
pub(super) fn assignment(flag: &str, written: &str) -> Result<(String, f64), Stop> {
    let wrong = || Stop::bad_input(format!("{flag}: {written:?} should be NAME=NUMBER"));
    let (name, value) = written.rsplit_once('=').ok_or_else(wrong)?;
    let value: f64 = value.parse().map_err(|_| wrong())?;
    if name.is_empty() || !value.is_finite() {
        return Err(wrong());
    }
    Ok((name.to_owned(), value))
}
