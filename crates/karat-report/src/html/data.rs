//! The data of the page's script: lines of JSON, as gzip in base64.
//!
//! The first line has what the tables need of every report ([`Head`]); each further line is one item
//! exactly as it is in the report, which the script parses when a reader opens it. Base64 cannot end
//! the element it is in, whatever a report says. With 10,000 items a page has 2.7 MB (queries with 20
//! results), 1.1 MB (definitions) or 2.5 MB (traces).

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufWriter, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use karat_core::observed::{Load, Observed};
use karat_core::report::{Better, CheckReport, Item, ItemError, Report, Scores, Slice, Verdict};
use karat_io::text::{clip, count};
use karat_metrics::{MetricId, registry};
use serde::Serialize;

use super::facet;
use crate::charts::short;
use crate::select;
use crate::terminal::items;

/// The columns of a title in the table of items.
const TITLE: usize = 300;

/// The parts of a report that the tables show.
#[derive(Serialize)]
struct Head<'a> {
    slug: &'a str,
    evaluation: &'a str,
    name: &'a str,
    /// The property by which a reader divides the items first, and the style classes of its values.
    facet: Option<&'static str>,
    tones: BTreeMap<&'static str, &'static str>,
    /// The metrics in the order of the columns.
    metrics: Vec<Column<'a>>,
    /// The metrics that items are scored by: the order of [`Row::scores`].
    scored: Vec<&'a str>,
    slices: &'a [Slice],
    /// The items that changed, by metric.
    flips: Vec<Flip<'a>>,
    /// The earlier scores of the items that moved, where they differ.
    before: Option<&'a BTreeMap<String, Scores>>,
    /// True if the gate failed: then the table begins with what got worse.
    failed: bool,
    /// True if only the first of several runs is observed.
    first_run: bool,
    /// The items behind checks that did not pass.
    blamed: BTreeSet<&'a str>,
    rows: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Column<'a> {
    id: &'a str,
    better: Better,
    /// The id of its definition in the legend.
    legend: Option<&'static str>,
}

#[derive(Serialize)]
struct Flip<'a> {
    metric: &'a str,
    improved: &'a [String],
    worsened: &'a [String],
}

/// The parts of an item that the table shows.
#[derive(Serialize)]
struct Row<'a> {
    id: &'a str,
    title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    facet: Option<&'static str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    tags: &'a BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a ItemError>,
    scores: Vec<Option<f64>>,
    /// The rank of the first right result, of a ranking: before, and now.
    #[serde(skip_serializing_if = "Option::is_none")]
    ranks: Option<[Option<usize>; 2]>,
}

/// The text of the block.
pub(super) fn block(check: &CheckReport, slugs: &[String]) -> Result<String, String> {
    let failed = |error: std::io::Error| error.to_string();
    let heads: Vec<Head<'_>> =
        check.reports.iter().zip(slugs).map(|(report, slug)| head(report, slug)).collect();
    // Every write clears the encoder's buffer, so there should be few of them.
    let mut lines =
        BufWriter::with_capacity(1 << 16, GzEncoder::new(Vec::new(), Compression::default()));
    write_line(&mut lines, &heads).map_err(failed)?;
    for item in check.reports.iter().flat_map(|report| &report.items) {
        write_line(&mut lines, item).map_err(failed)?;
    }
    let lines = lines.into_inner().map_err(|error| error.to_string())?;
    Ok(STANDARD.encode(lines.finish().map_err(failed)?))
}

fn write_line(lines: &mut impl Write, value: &impl Serialize) -> std::io::Result<()> {
    serde_json::to_writer(&mut *lines, value)?;
    lines.write_all(b"\n")
}

fn head<'a>(report: &'a Report, slug: &'a str) -> Head<'a> {
    let scored: BTreeSet<&str> =
        report.items.iter().flat_map(|item| item.metrics.keys()).map(MetricId::as_str).collect();
    let scored: Vec<&str> = scored.into_iter().collect();
    let facet = facet::of(&report.kind);
    let deltas = report.comparison.iter().flat_map(|comparison| &comparison.deltas);
    let checks = report.gate.iter().flat_map(|gate| &gate.checks);
    Head {
        slug,
        evaluation: report.evaluation.name(),
        name: &report.name,
        facet: facet.as_ref().map(|facet| facet.name),
        tones: facet.map(|facet| facet.tones.iter().copied().collect()).unwrap_or_default(),
        metrics: metrics(report, &scored),
        slices: &report.slices,
        flips: deltas
            .filter(|delta| delta.slice.is_none())
            .map(|delta| Flip {
                metric: &delta.metric,
                improved: &delta.improved,
                worsened: &delta.worsened,
            })
            .collect(),
        before: report.comparison.as_ref().map(|comparison| &comparison.before),
        failed: report.gate.as_ref().is_some_and(|gate| gate.verdict == Verdict::Fail),
        first_run: select::shows_first_run(report),
        blamed: checks
            .filter(|check| check.verdict != Verdict::Pass)
            .flat_map(|check| check.items.iter().map(String::as_str))
            .collect(),
        rows: report.items.iter().map(|item| row(report, item, &scored)).collect(),
        scored,
    }
}

fn row<'a>(report: &Report, item: &'a Item, scored: &[&str]) -> Row<'a> {
    Row {
        id: &item.id,
        title: clip(&title(item), TITLE).into_owned(),
        facet: facet::value(item),
        tags: &item.tags,
        error: item.error.as_ref(),
        scores: scored.iter().map(|id| item.metrics.get(*id).copied().flatten()).collect(),
        ranks: items::ranks(report, item).filter(|[before, now]| before != now),
    }
}

/// The headline metrics first, then those that only items have.
fn metrics<'a>(report: &'a Report, scored: &[&'a str]) -> Vec<Column<'a>> {
    let headline = report.metrics.iter().map(|metric| (metric.id.as_str(), Some(metric.better)));
    let others = scored.iter().filter(|id| report.metric(id).is_none()).map(|id| (*id, None));
    headline
        .chain(others)
        .map(|(id, better)| {
            let definition = registry::find(id);
            let known = definition.map(|metric| metric.better.into());
            Column {
                id,
                better: better.or(known).unwrap_or(Better::Higher),
                legend: definition.map(|metric| metric.id),
            }
        })
        .collect()
}

/// One line that identifies the item.
fn title(item: &Item) -> String {
    let joined = |one: &str, other: &str| match (one, other) {
        ("", text) | (text, "") => text.to_owned(),
        _ => format!("{one} · {other}"),
    };
    let title = match &item.observed {
        None => String::new(),
        Some(Observed::Ranking(ranking)) => ranking.query.clone(),
        Some(Observed::Verdicts(entry)) => joined(&entry.name, &entry.text),
        Some(Observed::Suite(case)) => {
            joined(&case.tool, case.arguments.as_deref().unwrap_or_default())
        }
        Some(Observed::Load(Load::Step { load, holds, .. })) => {
            let found = if *holds { "sustained" } else { "not sustained" };
            format!("load {}: {found}", short(*load))
        }
        Some(Observed::Load(Load::Second { ok, errors })) => format!("{ok} ok, {errors} failed"),
        Some(Observed::Fuzz(fuzz)) if fuzz.findings.is_empty() => "no finding".to_owned(),
        Some(Observed::Fuzz(fuzz)) => {
            let messages: Vec<&str> = fuzz.findings.iter().map(|one| &*one.message).collect();
            messages.join("; ")
        }
        Some(Observed::Attack(attack)) => attack.about.clone(),
        Some(Observed::Traces(run)) => run.input.clone().unwrap_or_default(),
        Some(Observed::Trajectories(pair)) => pair.input.clone().unwrap_or_default(),
        Some(Observed::Outcomes(task)) => {
            let done = task.trials.iter().filter(|trial| trial.success == Some(true)).count();
            format!("{done} of {} succeeded", count(task.trials.len(), "run"))
        }
        Some(Observed::Resilience(run)) => {
            let outcome = run.outcome.map_or("no attack", |outcome| outcome.name());
            joined(run.goal.as_deref().unwrap_or(&run.task), outcome)
        }
        Some(Observed::Other(other)) => serde_json::to_string(&other.fields).unwrap_or_default(),
    };
    match &item.error {
        Some(error) if title.is_empty() => error.message.clone(),
        _ => title,
    }
}

#[cfg(test)]
mod tests {
    use karat_core::observed::{Fuzz, Other, Verdicts};
    use karat_core::report::Kind;
    use serde_json::json;

    use super::*;

    fn titled(observed: Option<Observed>, error: Option<&str>) -> String {
        let error = error
            .map(|message| ItemError { class: "timeout".to_owned(), message: message.to_owned() });
        title(&Item { id: "i".to_owned(), observed, error, ..Item::default() })
    }

    #[test]
    fn an_item_has_a_title_whatever_its_kind() {
        let entry =
            Verdicts { name: "send".to_owned(), text: "a".to_owned(), ..Default::default() };
        assert_eq!(titled(Some(Observed::Verdicts(Box::new(entry))), None), "send · a");
        assert_eq!(titled(Some(Observed::Fuzz(Fuzz::default())), None), "no finding");
        let step = Load::Step { load: 2500.0, holds: false, why_not: None };
        assert_eq!(titled(Some(Observed::Load(step)), None), "load 2500: not sustained");
        let fields = json!({"seen": [1, 2]}).as_object().cloned().unwrap();
        let toy = Other { kind: Kind::Other("toy".into()), fields };
        assert_eq!(titled(Some(Observed::Other(toy)), None), r#"{"seen":[1,2]}"#);
        assert_eq!(titled(None, Some("no answer in time")), "no answer in time");
    }
}
