//! `karat agent diff`: two runs of the same tasks, call by call.

use std::fmt::Write as _;

use karat_agent::trajectories::{self, Config, SIMILARITY, Tolerances, Trajectories, not_compared};
use karat_core::evaluation::{Common, Entry, Evaluation as _, report_recorded};
use karat_core::gate::{self, Rule};
use karat_core::observed::{Observed, Step, Trajectory};
use karat_core::report::{CheckReport, Report, Verdict};
use karat_io::input::write_atomic;
use karat_io::text::{clip, count, printable};
use karat_report::Output;
use serde_json::json;

use super::score::assignment;
use super::{config, here};
use crate::cli::AgentDiffArgs;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;

/// The number of tasks that are shown on a terminal; JSON has them all.
const SHOWN: usize = 20;

/// Compares the runs; fails below the similarity that is demanded.
pub(crate) fn diff(arguments: &AgentDiffArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    for path in &arguments.outputs {
        Output::of(path).map_err(Stop::bad_input)?;
    }
    if arguments.min_similarity.is_some_and(|least| !(0.0..=1.0).contains(&least)) {
        return Err(Stop::bad_input("--min-similarity must be between 0 and 1"));
    }
    let within = arguments.within.iter().map(|written| assignment("--within", written));
    let within = within.collect::<Result<Tolerances, Stop>>()?;
    if within.values().any(|within| *within < 0.0) {
        return Err(Stop::bad_input("--within: a tolerance must not be negative"));
    }
    let read = config(&arguments.read)?;
    let config = Config {
        before: arguments.before.clone(),
        after: arguments.after.clone(),
        format: read.format,
        tasks: read.tasks,
        within,
        max_malformed: read.max_malformed,
    };
    let mut common = Common::named("diff");
    if let Some(min) = arguments.min_similarity {
        let rule = Rule { min: Some(min), ..Rule::default() };
        common.gate.metrics.insert(SIMILARITY.into(), rule);
    }
    let data = Trajectories::load(&config, &common, &here())?;
    let system = trajectories::system(&config);
    let entry = Entry::<Trajectories> { common, config, data };
    let mut report = report_recorded(&entry, Vec::new(), system, 1)?;
    let verdict = gate::judge(&mut report, &entry.common.gate, None).map_err(Stop::bad_input)?;
    let exit = exit(arguments, &report, verdict)?;
    let document = CheckReport::of(vec![report]);
    for path in &arguments.outputs {
        let output = Output::of(path).map_err(Stop::bad_input)?;
        write_atomic(path, output.render(&document).map_err(Stop::bad_input)?.as_bytes())?;
    }
    let found = Found::of(&document.reports[0]);
    match terminal.json() {
        true => terminal.print_json(&found.json())?,
        false => terminal.print(&found.text())?,
    }
    Ok(exit)
}

/// A demanded similarity that is unknown is not measured; without a demand it fails nothing.
fn exit(arguments: &AgentDiffArgs, report: &Report, verdict: Verdict) -> Result<Exit, Stop> {
    let unknown = not_compared(tasks(report));
    match (verdict, arguments.min_similarity, unknown) {
        (Verdict::Fail, _, _) => Ok(Exit::GateFailed),
        (_, Some(_), Some(unknown)) => Err(Stop::not_measured(unknown)),
        _ => Ok(Exit::Pass),
    }
}

fn tasks(report: &Report) -> impl Iterator<Item = &Trajectory> {
    report.items.iter().filter_map(|item| match &item.observed {
        Some(Observed::Trajectories(task)) => Some(task),
        _ => None,
    })
}

/// The comparison, counted.
struct Found<'a> {
    report: &'a Report,
    tasks: Vec<&'a Trajectory>,
    /// The number of tasks that both runs have.
    common: usize,
    /// The number of these that make the same calls.
    same: usize,
}

impl Found<'_> {
    fn of(report: &Report) -> Found<'_> {
        let tasks: Vec<&Trajectory> = tasks(report).collect();
        let common = tasks.iter().filter(|task| !task.lost).count();
        let same = tasks.iter().filter(|task| task.is_same()).count();
        Found { report, tasks, common, same }
    }

    fn similarity(&self) -> Option<f64> {
        self.report.metric(&SIMILARITY).and_then(|metric| metric.value)
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "schema": "karat.trajectories/1",
            "similarity": self.similarity(),
            "tasks": self.common,
            "same": self.same,
            "conventions": self.report.conventions,
            "warnings": self.report.warnings,
            "items": self.tasks,
        })
    }

    fn text(&self) -> String {
        // Runs of tasks that were run several times are grouped by their task.
        let is_repeated = self.report.items.iter().any(|item| item.group.is_some());
        let noun = if is_repeated { "run" } else { "task" };
        let mut text = format!(
            "{} in both, {} with the same calls; mean similarity {:.4}\n",
            count(self.common, noun),
            self.same,
            self.similarity().unwrap_or_default()
        );
        for warning in &self.report.warnings {
            let _ = writeln!(text, "note: {}", printable(warning));
        }
        let changed: Vec<_> = self.tasks.iter().filter(|task| !task.is_same()).collect();
        for task in changed.iter().take(SHOWN) {
            let similarity = match (task.similarity, &task.not_compared) {
                (Some(_), _) if task.lost => "missing in the later run".to_owned(),
                (Some(similarity), _) => format!("{similarity:.4}"),
                (None, why) => format!("not compared: {}", why.as_deref().unwrap_or_default()),
            };
            let _ = writeln!(text, "\n{}  {similarity}", printable(&task.id));
            for step in &task.steps {
                let _ = writeln!(text, "  {}", line(step));
            }
        }
        if changed.len() > SHOWN {
            let _ = writeln!(text, "\nand {} more; --json lists all", changed.len() - SHOWN);
        }
        text
    }
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
