//! The figures of a card: what the numbers look like for each kind of report.
//!
//! A figure is laid out here and drawn by the template. Every value that is drawn stands beside the
//! drawing as text, so nothing is told by a shape or a colour alone. What is counted here is counted
//! over the items of the report and nothing else.

mod agent;
mod detection;
mod load;
mod retrieval;
mod server;

use karat_core::report::{Interval, Measured, Report, Slice};
use serde::Serialize;

use super::chart::{Chart, charts};
use super::kind::Kind;
use super::plot::Plot;
use super::words::{bound, encoded, number};

/// One figure with its heading.
#[derive(Serialize)]
pub(super) struct Figure {
    title: String,
    /// What it says, in a sentence.
    lead: Option<String>,
    body: Body,
    /// Whether it needs the whole width.
    wide: bool,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Body {
    /// A value in each row, drawn as a bar.
    Bars { head: &'static str, groups: Vec<Group> },
    /// How a number divides, in each row.
    Shares { columns: Vec<Column>, rows: Vec<Shares> },
    /// Words and numbers.
    Table { head: Vec<&'static str>, rows: Vec<Vec<Cell>> },
    /// Columns or curves over an axis.
    Plot(Box<Plot>),
}

/// Rows that belong together.
#[derive(Serialize)]
struct Group {
    name: Option<String>,
    /// The ends of the axis where it is not 0 to 1.
    axis: Option<[String; 2]>,
    rows: Vec<Bar>,
}

impl Group {
    /// Rows on one axis, named if there are several such groups.
    fn of(name: Option<String>, rows: Vec<Bar>) -> Group {
        let axis = rows.iter().find_map(|row| row.chart.as_ref()?.axis.clone());
        Group { name, axis, rows }
    }
}

#[derive(Serialize)]
struct Bar {
    name: String,
    /// The items behind it.
    target: Option<String>,
    value: String,
    chart: Option<Chart>,
    note: String,
}

#[derive(Serialize)]
struct Column {
    word: &'static str,
    look: &'static str,
}

#[derive(Serialize)]
struct Shares {
    name: String,
    counts: Vec<Cell>,
    parts: Vec<Part>,
}

/// A stretch of a divided bar, in per cent of its width.
#[derive(Serialize)]
struct Part {
    from: String,
    width: String,
    look: &'static str,
}

#[derive(Default, Serialize)]
struct Cell {
    text: String,
    small: Option<String>,
    target: Option<String>,
    look: Option<&'static str>,
    number: bool,
}

impl Cell {
    fn text(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), ..Cell::default() }
    }

    fn number(number: u64) -> Cell {
        Cell { text: number.to_string(), number: true, ..Cell::default() }
    }

    fn to(self, target: String) -> Cell {
        Cell { target: Some(target), ..self }
    }
}

/// The figures of a report.
pub(super) fn figures(report: &Report, slug: &str) -> Vec<Figure> {
    let kind = Kind::of(report);
    let context = Context { report, slug, kind };
    let mut figures = match kind {
        Kind::Ranking => retrieval::figures(&context),
        Kind::Verdicts => detection::figures(&context),
        Kind::Suite => server::suite(&context),
        Kind::Fuzz => server::fuzz(&context),
        Kind::Attack => server::attack(&context),
        Kind::Load => load::figures(&context),
        Kind::Traces => agent::figures(&context),
        Kind::Trajectories => agent::trajectories(&context),
        Kind::Other => Vec::new(),
    };
    if kind != Kind::Load {
        figures.extend(load::histogram(&report.environment.latency_bins));
    }
    figures
}

/// The report that figures are made of, and how its items are linked.
struct Context<'a> {
    report: &'a Report,
    slug: &'a str,
    kind: Kind,
}

impl<'a> Context<'a> {
    /// Where the items with these properties are listed.
    fn items(&self, wanted: &[(&str, &str)]) -> String {
        let parts: Vec<String> = wanted
            .iter()
            .map(|(key, value)| format!("{}={}", encoded(key), encoded(value)))
            .collect();
        format!("items-{}?{}", self.slug, parts.join("&"))
    }

    /// How many items have this value of the facet.
    fn with(&self, value: &str) -> u64 {
        let items = self.report.items.iter();
        items.filter(|item| self.kind.value(item) == Some(value)).count() as u64
    }

    fn slices(&self, by: &str) -> impl Iterator<Item = &'a Slice> {
        let by = by.to_owned();
        self.report.slices.iter().filter(move |slice| slice.by == by)
    }

    /// A row for each slice that has the metric.
    fn bars_by(&self, by: &str, metric: &str) -> Vec<Bar> {
        let found: Vec<(&Slice, &Measured)> = self
            .slices(by)
            .filter_map(|slice| Some((slice, slice.metrics.iter().find(|m| m.id == metric)?)))
            .collect();
        let rows: Vec<(String, Option<String>, &Measured)> = found
            .into_iter()
            .map(|(slice, measured)| {
                let target = self.items(&[(by, slice.value.as_str())]);
                (slice.value.clone(), Some(target), measured)
            })
            .collect();
        bars(&rows)
    }
}

/// Rows on one axis.
fn bars(rows: &[(String, Option<String>, &Measured)]) -> Vec<Bar> {
    let measured: Vec<&Measured> = rows.iter().map(|(_, _, measured)| *measured).collect();
    rows.iter()
        .zip(charts(&measured))
        .map(|((name, target, measured), chart)| Bar {
            name: name.clone(),
            target: target.clone(),
            value: measured.value.map_or_else(|| "undefined".to_owned(), number),
            chart,
            note: note(measured),
        })
        .collect()
}

/// The interval and what it rests on.
fn note(measured: &Measured) -> String {
    let interval = measured
        .interval
        .as_ref()
        .map(|i: &Interval| format!("{} – {}", bound(i.low), bound(i.high)));
    let of = match &measured.count {
        Some(count) => format!("{} of {}", count.hits, count.of),
        None => format!("n = {}", measured.n),
    };
    interval.into_iter().chain([of]).collect::<Vec<_>>().join(" · ")
}

/// A count out of all as a row; the drawing has no interval, for it is all there is.
fn counted(name: &str, target: Option<String>, count: u64, of: u64) -> Bar {
    let share = if of == 0 { 0.0 } else { count as f64 / of as f64 };
    Bar {
        name: name.to_owned(),
        target: target.filter(|_| count > 0),
        value: count.to_string(),
        chart: Some(Chart::share(share)),
        note: format!("{:.1} %", 100.0 * share),
    }
}

/// How a row of counts divides.
fn divided(counts: &[u64], looks: &[Column]) -> Vec<Part> {
    let all: u64 = counts.iter().sum();
    let mut from = 0.0;
    counts
        .iter()
        .zip(looks)
        .filter(|(count, _)| **count > 0)
        .map(|(count, column)| {
            let width = 100.0 * *count as f64 / all as f64;
            let part = Part {
                from: format!("{from:.2}%"),
                width: format!("{width:.2}%"),
                look: column.look,
            };
            from += width;
            part
        })
        .collect()
}

/// A name as a reader says it.
fn spoken(name: &str) -> String {
    name.replace('_', " ")
}
