//! The parts of figures: bars, tables and plots, and the rows that several kinds of report need.

use karat_core::report::{Measured, Property, Report, Slice};
use serde::Serialize;

use super::super::facet;
use crate::charts::{Bar, Plot, percent};
use crate::format::{encoded, optional, percentage, range, ratio};
use crate::select;

/// One figure with its heading.
#[derive(Serialize)]
pub(in crate::html) struct Figure {
    pub(super) title: String,
    /// An introduction in one sentence.
    pub(super) lead: Option<String>,
    pub(super) body: Body,
    /// True if it needs the whole width.
    pub(super) wide: bool,
}

impl Figure {
    pub(super) fn new(title: &str, body: Body) -> Figure {
        Figure { title: title.to_owned(), lead: None, body, wide: false }
    }

    pub(super) fn bars(title: &str, head: &str, groups: Vec<Group>) -> Figure {
        Figure::new(title, Body::Bars { head: head.to_owned(), groups })
    }

    pub(super) fn table(title: &str, head: &[&'static str], rows: Vec<Vec<Cell>>) -> Figure {
        Figure::new(title, Body::Table { head: head.to_vec(), rows }).wide()
    }

    pub(super) fn plot(title: &str, plot: Plot) -> Figure {
        Figure::new(title, Body::Plot(Box::new(plot)))
    }

    pub(super) fn lead(self, lead: impl Into<String>) -> Figure {
        Figure { lead: Some(lead.into()), ..self }
    }

    pub(super) fn wide(self) -> Figure {
        Figure { wide: true, ..self }
    }
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(super) enum Body {
    /// A value in each row, drawn as a bar.
    Bars { head: String, groups: Vec<Group> },
    /// A number in each row and its division.
    Shares { columns: Vec<Column>, rows: Vec<Shares> },
    /// Text and numbers.
    Table { head: Vec<&'static str>, rows: Vec<Vec<Cell>> },
    /// Columns or curves over an axis.
    Plot(Box<Plot>),
}

/// Rows on one axis.
#[derive(Serialize)]
pub(super) struct Group {
    pub(super) name: Option<String>,
    /// The ends of the axis where it is not 0 to 1.
    pub(super) axis: Option<[String; 2]>,
    pub(super) rows: Vec<Row>,
}

impl Group {
    pub(super) fn of(name: Option<String>, rows: Vec<Row>) -> Group {
        let axis = rows.iter().find_map(|row| row.bar.as_ref()?.axis.clone());
        Group { name, axis, rows }
    }
}

#[derive(Serialize)]
pub(super) struct Row {
    pub(super) name: String,
    /// The address of the items behind it.
    pub(super) target: Option<String>,
    pub(super) value: String,
    pub(super) bar: Option<Bar>,
    pub(super) note: String,
}

#[derive(Clone, Copy, Serialize)]
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) look: &'static str,
}

#[derive(Serialize)]
pub(super) struct Shares {
    pub(super) name: String,
    pub(super) counts: Vec<Cell>,
    pub(super) parts: Vec<Part>,
}

/// A part of a divided bar.
#[derive(Serialize)]
pub(super) struct Part {
    pub(super) from: String,
    pub(super) width: String,
    pub(super) look: &'static str,
}

#[derive(Default, Serialize)]
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) small: Option<String>,
    pub(super) target: Option<String>,
    pub(super) look: Option<&'static str>,
    pub(super) number: bool,
}

impl Cell {
    pub(super) fn text(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), ..Cell::default() }
    }

    pub(super) fn number(number: u64) -> Cell {
        Cell { text: number.to_string(), number: true, ..Cell::default() }
    }

    pub(super) fn to(self, target: String) -> Cell {
        Cell { target: Some(target), ..self }
    }
}

/// The report that figures are made of, and the part of addresses that names it.
pub(super) struct Context<'a> {
    pub(super) report: &'a Report,
    pub(super) slug: &'a str,
}

impl<'a> Context<'a> {
    /// The title of a figure of observations.
    pub(super) fn of_observed(&self, title: &str) -> String {
        match select::shows_first_run(self.report) {
            true => format!("{title} in the first run"),
            false => title.to_owned(),
        }
    }

    /// The address of the items with these properties.
    pub(super) fn items(&self, wanted: &[(&str, &str)]) -> String {
        let parts: Vec<String> = wanted
            .iter()
            .map(|(key, value)| format!("{}={}", encoded(key), encoded(value)))
            .collect();
        format!("items-{}?{}", self.slug, parts.join("&"))
    }

    /// The name of the facet.
    pub(super) fn facet(&self) -> &'static str {
        facet::of(&self.report.kind).map_or("", |facet| facet.name)
    }

    /// The number of items for each value of the facet, as rows.
    pub(super) fn facet_rows(&self, values: &[&'static str]) -> Vec<Row> {
        let count = |value: &&str| {
            let items = self.report.items.iter();
            items.filter(|item| facet::value(item) == Some(*value)).count() as u64
        };
        let counts: Vec<u64> = values.iter().map(count).collect();
        let name = self.facet();
        let rows = values.iter().zip(&counts).map(|(value, count)| {
            counted(value, Some(self.items(&[(name, value)])), *count, counts.iter().sum())
        });
        rows.collect()
    }

    pub(super) fn slices(&self, by: Property) -> Vec<&'a Slice> {
        select::slices(self.report, by)
    }

    /// A row for each slice that has the metric, with a link to its items.
    pub(super) fn bars_by(&self, by: Property, metric: &str) -> Vec<Row> {
        let slices = self.slices(by).into_iter();
        let found = slices.filter_map(|slice| {
            let target = self.items(&[(by.name(), &slice.value)]);
            Some((slice.value.clone(), Some(target), select::metric(&slice.metrics, metric)?))
        });
        bars(&found.collect::<Vec<_>>())
    }

    /// The same without links, for properties that items do not have.
    pub(super) fn plain_bars_by(&self, by: Property, metric: &str) -> Vec<Row> {
        let mut rows = self.bars_by(by, metric);
        rows.iter_mut().for_each(|row| row.target = None);
        rows
    }
}

/// Rows on one axis.
pub(super) fn bars(rows: &[(String, Option<String>, &Measured)]) -> Vec<Row> {
    let measured: Vec<&Measured> = rows.iter().map(|(_, _, measured)| *measured).collect();
    rows.iter()
        .zip(Bar::on_one_axis(&measured))
        .map(|((name, target, measured), bar)| Row {
            name: name.clone(),
            target: target.clone(),
            value: optional(measured.value),
            bar,
            note: note(measured),
        })
        .collect()
}

/// The interval, and the number of items behind it.
fn note(measured: &Measured) -> String {
    let of = ratio(measured).unwrap_or_else(|| format!("n = {}", measured.n));
    match &measured.interval {
        Some(interval) => format!("{} · {of}", range(Some(interval), " – ")),
        None => of,
    }
}

/// A count out of all. It has no interval: nothing was sampled.
pub(super) fn counted(name: &str, target: Option<String>, count: u64, of: u64) -> Row {
    let share = if of == 0 { 0.0 } else { count as f64 / of as f64 };
    Row {
        name: name.to_owned(),
        target: target.filter(|_| count > 0),
        value: count.to_string(),
        bar: Some(Bar::share(share)),
        note: percentage(share),
    }
}

/// The division of a row of counts.
pub(super) fn divided(counts: &[u64], columns: &[Column]) -> Vec<Part> {
    let all = counts.iter().sum::<u64>() as f64;
    let mut from = 0;
    let parts = counts.iter().zip(columns).filter(|(count, _)| **count > 0);
    parts
        .map(|(count, column)| {
            let start = percent(from as f64 / all);
            from += count;
            Part { from: start, width: percent(*count as f64 / all), look: column.look }
        })
        .collect()
}

/// A name without underscores.
pub(super) fn spoken(name: &str) -> String {
    name.replace('_', " ")
}
