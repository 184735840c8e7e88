//! `karat compare`: two reports, item by item.

use karat_core::baseline::Baseline;
use karat_core::compare::{SliceKey, compare};
use karat_core::report::{Comparison, Report, load_reports};
use serde::Serialize;

use crate::cli::CompareArgs;
use crate::exit::{Exit, Stop};
use crate::face::Terminal;

/// What `karat compare --json` prints.
#[derive(Serialize)]
struct Document {
    schema: &'static str,
    comparisons: Vec<Named>,
    only_before: Vec<String>,
    only_after: Vec<String>,
}

#[derive(Serialize)]
struct Named {
    evaluation: String,
    name: String,
    #[serde(flatten)]
    comparison: Comparison,
}

/// Compares the entries that both files have.
pub(crate) fn run(arguments: &CompareArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let slices = slices(&arguments.slice)?;
    let before = load_reports(&arguments.before)?;
    let after = load_reports(&arguments.after)?;
    show(&before, &after, &slices, terminal)
}

/// The slices that were asked for.
pub(crate) fn slices(texts: &[String]) -> Result<Vec<SliceKey>, Stop> {
    texts
        .iter()
        .map(|text| text.parse())
        .collect::<Result<_, String>>()
        .map_err(|message| Stop::bad_input(format!("--slice: {message}")))
}

/// Compares what both sides have, and shows it.
pub(crate) fn show(
    before: &[Report],
    after: &[Report],
    slices: &[SliceKey],
    terminal: &Terminal,
) -> Result<Exit, Stop> {
    let label = |report: &Report| format!("{} {}", report.evaluation, report.name);
    // Two files with one report each are meant to be compared whatever their names.
    let single = before.len() == 1 && after.len() == 1;

    let mut comparisons = Vec::new();
    let mut only_after = Vec::new();
    for report in after {
        let partner = before.iter().find(|old| single || label(old) == label(report));
        let Some(partner) = partner else {
            only_after.push(label(report));
            continue;
        };
        let comparison = compare(&Baseline::from_report(partner), report, slices)
            .map_err(|error| Stop::bad_input(format!("{}: {error}", label(report))))?;
        comparisons.push(Named {
            evaluation: report.evaluation.to_string(),
            name: report.name.clone(),
            comparison,
        });
    }
    let only_before: Vec<String> = before
        .iter()
        .filter(|old| !single && !after.iter().any(|report| label(report) == label(old)))
        .map(label)
        .collect();
    if comparisons.is_empty() {
        return Err(Stop::bad_input(format!(
            "the files have no entry in common: {} against {}",
            before.iter().map(label).collect::<Vec<_>>().join(", "),
            after.iter().map(label).collect::<Vec<_>>().join(", "),
        )));
    }
    if terminal.json() {
        let document = Document { schema: "karat.compare/1", comparisons, only_before, only_after };
        terminal.print_json(&document)?;
    } else {
        let style = karat_report::terminal::Style { colors: terminal.colors() };
        let mut text = String::new();
        for named in &comparisons {
            text.push_str(&format!("{} · {}\n", named.evaluation, named.name));
            text.push_str(&karat_report::terminal::comparison(&named.comparison, style));
        }
        for (side, names) in [("before", only_before), ("after", only_after)] {
            if !names.is_empty() {
                text.push_str(&format!("only {side}: {}\n", names.join(", ")));
            }
        }
        terminal.print(&text)?;
    }
    Ok(Exit::Pass)
}
