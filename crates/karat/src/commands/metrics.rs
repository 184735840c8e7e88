//! `karat metrics`: the table of metrics, from which docs/metrics.md is made too.

use karat_metrics::registry::{self, Better, FAMILIES, Metric};
use serde::Serialize;

use crate::cli::MetricsArgs;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;

/// Lists all metrics, or defines one.
pub(crate) fn run(arguments: &MetricsArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let text = match &arguments.id {
        Some(id) => {
            let metric = registry::find(id).or_else(|| registry::all().find(|m| m.id == id));
            let metric = metric.ok_or_else(|| {
                let hint = registry::nearest(id)
                    .map(|near| format!(" (did you mean {near:?}?)"))
                    .unwrap_or_default();
                Stop::bad_input(format!("unknown metric {id:?}{hint}; `karat metrics` lists all"))
            })?;
            if terminal.json() {
                terminal.print_json(&Described::from(metric))?;
                return Ok(Exit::Pass);
            }
            definition(metric)
        }
        None if terminal.json() => {
            let all: Vec<Described> = registry::all().map(Described::from).collect();
            terminal.print_json(&all)?;
            return Ok(Exit::Pass);
        }
        None if arguments.markdown => karat_report::reference::metrics(),
        None => list(),
    };
    terminal.print(&text)?;
    Ok(Exit::Pass)
}

#[derive(Serialize)]
struct Described {
    id: &'static str,
    summary: &'static str,
    formula: &'static str,
    better: &'static str,
    undefined: &'static str,
    notes: &'static str,
}

impl From<&Metric> for Described {
    fn from(metric: &Metric) -> Described {
        Described {
            id: metric.id,
            summary: metric.summary,
            formula: metric.formula,
            better: direction(metric),
            undefined: metric.undefined,
            notes: metric.notes,
        }
    }
}

fn direction(metric: &Metric) -> &'static str {
    match metric.better {
        Better::Higher => "higher",
        Better::Lower => "lower",
    }
}

fn list() -> String {
    let mut text = String::new();
    for family in FAMILIES {
        text.push_str(&format!("{}\n", family.title));
        for metric in family.metrics {
            text.push_str(&format!("  {:<34} {}\n", metric.id, metric.summary));
        }
        text.push('\n');
    }
    text.push_str("`karat metrics ID` shows the definition of one.\n");
    text
}

fn definition(metric: &Metric) -> String {
    let mut text = format!("{}\n  {}\n\n  {}\n\n", metric.id, metric.summary, metric.formula);
    text.push_str(&format!("  better: {}\n", direction(metric)));
    if !metric.undefined.is_empty() {
        text.push_str(&format!("  undefined: {}\n", metric.undefined));
    }
    if !metric.notes.is_empty() {
        text.push_str(&format!("\n{}\n", metric.notes));
    }
    text
}
