//! `karat agent diff`: two runs of the same tasks, call by call.

use std::fmt::Write as _;
use std::path::PathBuf;

use karat_agent::diff::{Diff, SIMILARITY, Step, TaskDiff, Tolerances, compare_all};
use karat_agent::{Recorded, Source, Tasks};
use karat_core::gate::{self, Policy, Rule};
use karat_core::provenance::Stopwatch;
use karat_core::report::{CHECK_SCHEMA, CheckReport};
use karat_io::input::write_atomic;
use karat_io::text::{clip, printable};
use karat_report::Output;

use super::score::assignment;
use super::{shape, tasks};
use crate::cli::{AgentDiffArgs, TraceArgs};
use crate::exit::{Exit, Stop};
use crate::face::Terminal;

/// How many tasks are shown on a terminal; JSON has them all.
const SHOWN: usize = 20;

/// Compares the runs; fails below the similarity that is demanded.
pub(crate) fn diff(arguments: &AgentDiffArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let stopwatch = Stopwatch::start();
    for path in &arguments.outputs {
        Output::of(path).map_err(Stop::bad_input)?;
    }
    let tolerances = arguments
        .within
        .iter()
        .map(|written| assignment("--within", written))
        .collect::<Result<Tolerances, Stop>>()?;
    if tolerances.values().any(|within| *within < 0.0) {
        return Err(Stop::bad_input("--within: a tolerance is not negative"));
    }
    if arguments.min_similarity.is_some_and(|least| !(0.0..=1.0).contains(&least)) {
        return Err(Stop::bad_input("--min-similarity: a similarity goes from 0 to 1"));
    }
    let tasks = tasks(&arguments.read)?;
    let before = read(&arguments.before, &arguments.read, tasks.as_ref())?;
    let after = read(&arguments.after, &arguments.read, tasks.as_ref())?;
    let found = compare_all(&before.traces, &after.traces, &tolerances);
    let passes = passes(arguments, &found)?;
    write(arguments, &found, &stopwatch)?;
    if terminal.json() {
        terminal.print_json(&found)?;
    } else {
        terminal.print(&text(&found))?;
    }
    Ok(if passes { Exit::Pass } else { Exit::GateFailed })
}

/// Whether the similarity is the one that is demanded; an unknown one is not, and fails nothing.
fn passes(arguments: &AgentDiffArgs, found: &Diff) -> Result<bool, Stop> {
    let unknown = found.not_compared().next().and_then(|task| {
        let why = task.not_compared.as_deref()?;
        Some(format!("{} was not compared: {why}", printable(&task.id)))
    });
    let Some(similarity) = found.similarity else {
        let none = "the two files have no task in common".to_owned();
        return Err(Stop::not_measured(unknown.unwrap_or(none)));
    };
    match (arguments.min_similarity, unknown) {
        (Some(least), _) if similarity < least => Ok(false),
        (Some(_), Some(unknown)) => Err(Stop::not_measured(unknown)),
        _ => Ok(true),
    }
}

/// Writes the comparison as a check of one entry, for whoever reads such a file.
fn write(arguments: &AgentDiffArgs, found: &Diff, stopwatch: &Stopwatch) -> Result<(), Stop> {
    if arguments.outputs.is_empty() {
        return Ok(());
    }
    let mut report = found.report(&arguments.before, &arguments.after, stopwatch);
    let mut policy = Policy::default();
    if let Some(min) = arguments.min_similarity {
        policy.metrics.insert(SIMILARITY.to_owned(), Rule { min: Some(min), ..Rule::default() });
    }
    let verdict = gate::judge(&mut report, &policy, None).map_err(Stop::bad_input)?;
    let document = CheckReport {
        schema: CHECK_SCHEMA.to_owned(),
        verdict: Some(verdict),
        reports: vec![report],
        not_measured: Vec::new(),
        not_run: Vec::new(),
    };
    for path in &arguments.outputs {
        let output = Output::of(path).map_err(Stop::bad_input)?;
        write_atomic(path, output.render(&document).map_err(Stop::bad_input)?.as_bytes())?;
    }
    Ok(())
}

fn read(path: &PathBuf, arguments: &TraceArgs, tasks: Option<&Tasks>) -> Result<Recorded, Stop> {
    let source = Source {
        files: std::slice::from_ref(path),
        shape: shape(arguments.format),
        tasks,
        max_bad: arguments.max_bad,
        metrics: &[],
    };
    Ok(Recorded::read(&source)?)
}

fn text(found: &Diff) -> String {
    let mut text = format!(
        "{} tasks in both, {} with the same calls; mean similarity {:.4}\n",
        found.tasks,
        found.same,
        found.similarity.unwrap_or_default()
    );
    for (words, ids) in [("only before", &found.only_before), ("only after", &found.only_after)] {
        if !ids.is_empty() {
            let first: Vec<_> = ids.iter().take(5).map(|id| printable(id)).collect();
            let more = if ids.len() > 5 { ", …" } else { "" };
            let _ = writeln!(text, "{words}: {} ({}{more})", ids.len(), first.join(", "));
        }
    }
    let changed: Vec<&TaskDiff> = found.items.iter().filter(|item| !item.is_same()).collect();
    for item in changed.iter().take(SHOWN) {
        let similarity = match item.similarity {
            Some(_) if item.lost => "not in the later run".to_owned(),
            Some(similarity) => format!("{similarity:.4}"),
            None => format!("not compared: {}", item.not_compared.as_deref().unwrap_or_default()),
        };
        let _ = writeln!(text, "\n{}  {similarity}", printable(&item.id));
        for step in &item.steps {
            let _ = writeln!(text, "  {}", line(step));
        }
    }
    if changed.len() > SHOWN {
        let _ = writeln!(text, "\nand {} more; --json has them all", changed.len() - SHOWN);
    }
    text
}

fn line(step: &Step) -> String {
    match step {
        Step::Same { tool, .. } => format!("  {}", printable(tool)),
        Step::Inserted { tool, at } => format!("+ {} (call {at})", printable(tool)),
        Step::Missing { tool, at } => format!("- {} (was call {at})", printable(tool)),
        Step::LeftOut { tool, at } => format!("  {} (call {at}, left out)", printable(tool)),
        Step::Moved { tool, from, to } => {
            format!("> {} (was call {from}, is call {to})", printable(tool))
        }
        Step::Changed { tool, arguments, .. } => {
            let value = |value: &Option<String>| match value {
                Some(value) => clip(&printable(value), 60).into_owned(),
                None => "not given".to_owned(),
            };
            let parts: Vec<String> = arguments
                .iter()
                .map(|one| {
                    format!(
                        "{} {} → {}",
                        printable(&one.name),
                        value(&one.before),
                        value(&one.after)
                    )
                })
                .collect();
            format!("~ {}: {}", printable(tool), parts.join("; "))
        }
    }
}
