//! `karat compare`: two reports, item by item.

use std::collections::{BTreeMap, BTreeSet};

use karat_core::baseline::Baseline;
use karat_core::compare::{SliceKey, compare};
use karat_core::kind::Evaluation;
use karat_core::leaderboard;
use karat_core::report::{Comparison, Report, load_reports};
use karat_io::text::printable;
use karat_report::terminal::{Style, wrapped};
use serde::Serialize;

use crate::cli::CompareArgs;
use crate::commands::measuring::entry_path;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;

/// The most items that are named in one line.
const NAMED: usize = 5;

/// The most slices that a message lists.
const LISTED: usize = 20;

/// The document of `karat compare --json`.
#[derive(Serialize)]
struct Document {
    schema: &'static str,
    #[serde(flatten)]
    pairs: Pairs,
}

/// The entries of two reports, by what can be said of them.
#[derive(Default, Serialize)]
pub(crate) struct Pairs {
    pub(crate) comparisons: Vec<Named>,
    /// Entries on other data, for example: they do not hide the others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) not_compared: Vec<Unlike>,
    pub(crate) only_before: Vec<String>,
    pub(crate) only_after: Vec<String>,
}

/// An entry of both reports, compared.
#[derive(Serialize)]
pub(crate) struct Named {
    pub(crate) evaluation: Evaluation,
    pub(crate) name: String,
    /// The name of the earlier entry, if it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) before: Option<String>,
    #[serde(flatten)]
    pub(crate) comparison: Comparison,
}

/// An entry of both reports that cannot be compared.
#[derive(Serialize)]
pub(crate) struct Unlike {
    pub(crate) entry: String,
    pub(crate) reason: String,
}

impl std::fmt::Display for Unlike {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", printable(&self.entry), self.reason)
    }
}

impl Pairs {
    /// Compares the entries that both reports have.
    ///
    /// # Errors
    /// If none can be compared.
    pub(crate) fn of(
        before: &[Report],
        after: &[Report],
        slices: &[SliceKey],
    ) -> Result<Pairs, String> {
        let label = |report: &Report| entry_path(&report.evaluation, &report.name);
        // Two files with one report each are meant to be compared whatever their names.
        let single = before.len() == 1 && after.len() == 1;
        let mut pairs = Pairs::default();
        for report in after {
            let partner = before.iter().find(|old| single || label(old) == label(report));
            let Some(partner) = partner else {
                pairs.only_after.push(label(report));
                continue;
            };
            match compared(partner, report, slices) {
                Ok(comparison) => pairs.comparisons.push(Named {
                    evaluation: report.evaluation.clone(),
                    name: report.name.clone(),
                    before: (partner.name != report.name).then(|| partner.name.clone()),
                    comparison,
                }),
                Err(reason) => pairs.not_compared.push(Unlike { entry: label(report), reason }),
            }
        }
        let old = before
            .iter()
            .filter(|old| !single && !after.iter().any(|one| label(one) == label(old)));
        pairs.only_before = old.map(label).collect();
        if !pairs.comparisons.is_empty() {
            return Ok(pairs);
        }
        if !pairs.not_compared.is_empty() {
            let all: Vec<String> = pairs.not_compared.iter().map(ToString::to_string).collect();
            return Err(all.join("\n"));
        }
        let named = |reports: &[Report]| {
            if reports.is_empty() {
                return "no measured entry".to_owned();
            }
            shown(&reports.iter().map(label).collect::<Vec<_>>().join(", "))
        };
        let (before, after) = (named(before), named(after));
        Err(format!("the files have no entry in common: {before} against {after}"))
    }
}

/// Compares an entry with its earlier measurement, unless nothing in it can be compared.
fn compared(before: &Report, after: &Report, slices: &[SliceKey]) -> Result<Comparison, String> {
    let comparison = compare(&Baseline::from_report(before), after, slices)
        .map_err(|error| error.to_string())?;
    if comparison.deltas.is_empty() {
        let reason = comparison.not_compared.as_ref().map(|left_out| left_out.reason.as_str());
        let reason = reason.unwrap_or("the two have none in common");
        return Err(format!("no metric can be compared: {reason}"));
    }
    Ok(comparison)
}

/// Compares the entries that both files have.
pub(crate) fn run(arguments: &CompareArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let slices = slices(&arguments.slice)?;
    let before = load_reports(&arguments.before)?;
    let primary = arguments.primary.as_deref();
    let Some(after) = &arguments.after else { return ranked(&before, primary, &slices, terminal) };
    let after = load_reports(after)?;
    show(&before, &after, &slices, primary, terminal)
}

/// Compares every pair of systems on the same data.
fn ranked(
    reports: &[Report],
    primary: Option<&str>,
    slices: &[SliceKey],
    terminal: &Terminal,
) -> Result<Exit, Stop> {
    if leaderboard::of_reports(reports, None, &[]).is_empty() {
        return Err(Stop::bad_input(
            "the report has no two entries on the same data; pass a second report to compare with",
        ));
    }
    let tables = leaderboard::of_reports(reports, primary, slices);
    if let (Some(id), true) = (primary, tables.is_empty()) {
        let metrics = reports.iter().flat_map(|report| &report.metrics);
        let known: BTreeSet<&str> = metrics.map(|metric| metric.id.as_str()).collect();
        let known = shown(&known.into_iter().collect::<Vec<_>>().join(", "));
        return Err(Stop::bad_input(format!(
            "--primary: no two entries on the same data have the metric {id:?}; expected one of {known}"
        )));
    }
    for key in slices {
        let wanted = Some(key.to_string());
        if tables.iter().any(|table| table.slice == wanted) {
            continue;
        }
        let of_all = reports.iter().flat_map(|report| &report.slices);
        let known: BTreeSet<String> =
            of_all.map(|slice| format!("{}={}", slice.by, slice.value)).collect();
        let known: Vec<String> = known.into_iter().take(LISTED).collect();
        return Err(Stop::bad_input(format!(
            "--slice: no two entries have the metric for {:?}; expected one of {}",
            key.to_string(),
            if known.is_empty() { "none".to_owned() } else { shown(&known.join(", ")) }
        )));
    }
    if terminal.json() {
        let schema = "karat.leaderboard/1";
        terminal.print_json(&serde_json::json!({"schema": schema, "leaderboards": tables}))?;
        return Ok(Exit::Pass);
    }
    let style = terminal.style();
    for table in &tables {
        terminal.print(&karat_report::terminal::leaderboard(table, style))?;
    }
    Ok(Exit::Pass)
}

/// The requested slices.
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
    primary: Option<&str>,
    terminal: &Terminal,
) -> Result<Exit, Stop> {
    let mut pairs = Pairs::of(before, after, slices).map_err(Stop::bad_input)?;
    if let Some(id) = primary {
        let mut is_compared = false;
        for named in &mut pairs.comparisons {
            is_compared |= named.comparison.set_primary(id);
        }
        if !is_compared {
            let deltas = pairs.comparisons.iter().flat_map(|named| &named.comparison.deltas);
            let known: BTreeSet<&str> = deltas.map(|delta| delta.metric.as_str()).collect();
            let known = shown(&known.into_iter().collect::<Vec<_>>().join(", "));
            return Err(Stop::bad_input(format!(
                "--primary: {id:?} was not compared; expected one of {known}"
            )));
        }
    }
    for key in slices {
        found(key, &pairs, before, after)?;
    }
    if terminal.json() {
        terminal.print_json(&Document { schema: "karat.compare/1", pairs })?;
    } else {
        let style = terminal.style();
        let mut text = String::new();
        for named in &pairs.comparisons {
            let before = named.before.as_ref().map(|name| format!("{name} → ")).unwrap_or_default();
            let name = shown(&format!("{before}{}", named.name));
            text.push_str(&format!("{} · {name}\n", named.evaluation));
            text.push_str(&karat_report::terminal::comparison(&named.comparison, style));
            unpaired(&mut text, &named.comparison, style);
        }
        for entry in &pairs.not_compared {
            wrapped(style, &mut text, "", &format!("not compared: {entry}"));
        }
        for (side, names) in [("before", pairs.only_before), ("after", pairs.only_after)] {
            if !names.is_empty() {
                wrapped(style, &mut text, "", &format!("only {side}: {}", names.join(", ")));
            }
        }
        terminal.print(&text)?;
    }
    Ok(Exit::Pass)
}

fn shown(text: &str) -> String {
    printable(text).into_owned()
}

/// Refuses a slice for which nothing was compared.
fn found(key: &SliceKey, pairs: &Pairs, before: &[Report], after: &[Report]) -> Result<(), Stop> {
    let wanted = key.to_string();
    let mut deltas = pairs.comparisons.iter().flat_map(|named| &named.comparison.deltas);
    if deltas.any(|delta| delta.slice.as_ref() == Some(&wanted)) {
        return Ok(());
    }
    let of = |reports: &[Report]| -> BTreeSet<String> {
        let slices = reports.iter().flat_map(|report| &report.slices);
        slices.map(|slice| format!("{}={}", slice.by, slice.value)).collect()
    };
    let (before, after) = (of(before), of(after));
    let what = match (before.contains(&wanted), after.contains(&wanted)) {
        (false, false) => "neither report has",
        (true, false) => "only the earlier report has",
        (false, true) => "only the later report has",
        (true, true) => "no metric can be compared over",
    };
    let both: Vec<String> = before.intersection(&after).take(LISTED).cloned().collect();
    // The other slices help only where one of them lacks it.
    let both = match (both.contains(&wanted), both.is_empty()) {
        (true, _) => String::new(),
        (false, true) => "; both have none".to_owned(),
        (false, false) => format!("; both have {}", shown(&both.join(", "))),
    };
    let not_compared: String =
        pairs.not_compared.iter().map(|entry| format!("\nnot compared: {entry}")).collect();
    Err(Stop::bad_input(format!("--slice: {what} {wanted:?}{both}{not_compared}")))
}

/// The items that have a score on one side only, for all metrics at once that lack the same ones.
fn unpaired(text: &mut String, comparison: &Comparison, style: Style) {
    let mut alike: BTreeMap<_, Vec<&str>> = BTreeMap::new();
    for delta in comparison.deltas.iter().filter(|delta| delta.slice.is_none()) {
        if !(delta.lost.is_empty() && delta.gained.is_empty()) {
            let key = (delta.lost.as_slice(), delta.gained.as_slice(), delta.pairs);
            alike.entry(key).or_default().push(&delta.metric);
        }
    }
    for ((lost, gained, pairs), metrics) in alike {
        for (items, what) in [(lost, "no score now"), (gained, "no score before")] {
            if items.is_empty() {
                continue;
            }
            let mut names = items.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
            if items.len() > NAMED {
                names.push_str(&format!(" and {} more", items.len() - NAMED));
            }
            let place = match metrics.as_slice() {
                [one] => (*one).to_owned(),
                several => format!("{} metrics", several.len()),
            };
            let line = format!("{place}, {what}: {names} (the change is over the other {pairs})");
            wrapped(style, text, "  ", &line);
        }
    }
}
