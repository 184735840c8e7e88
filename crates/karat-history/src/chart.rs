//! A metric over time as a chart.
//!
//! Runs are at equal distances in the order of time. Values on different data are never joined, and
//! neither are two values with an undefined one between them.

use karat_report::charts::{Line, Point, Scale, Tick};
use karat_report::format::{moment, number, range};
use serde::Serialize;

use crate::series::{self, Series};

/// A chart of several series.
#[derive(Serialize)]
pub(crate) struct Chart {
    /// The height in pixels.
    height: u32,
    /// The position and the height of the part between the margins.
    top: u32,
    inner: u32,
    ticks: Vec<Tick>,
    /// Limits of the gate, and the baseline.
    limits: Vec<Limit>,
    /// Times along the horizontal axis.
    times: Vec<Tick>,
    /// One line for each series.
    pub(crate) lines: Vec<Line>,
}

/// A horizontal line: a limit of the gate, or the baseline.
#[derive(Serialize)]
struct Limit {
    at: String,
    text: String,
    look: &'static str,
}

/// A value that a line is drawn at, with its name and its style class.
pub(crate) struct Reference {
    pub(crate) value: f64,
    pub(crate) name: String,
    pub(crate) look: &'static str,
}

/// The most times along the axis.
const TIMES: usize = 5;

/// The chart of series over `places` runs; none if there is no value.
pub(crate) fn chart(all: &[Series<'_>], places: usize, height: u32) -> Option<Chart> {
    chart_with(all, places, height, &[])
}

/// The same with lines at reference values.
pub(crate) fn chart_with(
    all: &[Series<'_>],
    places: usize,
    height: u32,
    references: &[Reference],
) -> Option<Chart> {
    let mut lines: Vec<Vec<Point>> = Vec::new();
    for series in all {
        lines.push(series.points.iter().map(|point| drawn(series, point, places)).collect());
    }
    let points = || lines.iter().flatten().filter(|point| point.y.is_some());
    points().next()?;
    let values = points().flat_map(|point| {
        let ends = point.ends.into_iter().flatten();
        ends.chain(point.y)
    });
    let scale = Scale::around(values.chain(references.iter().map(|one| one.value)));
    let names = all.iter().map(|series| series.dataset.digest.as_str());
    let (top, bottom) = ((height / 6).min(10), height / 9);
    Some(Chart {
        height,
        top,
        inner: height - top - bottom,
        ticks: scale.ticks(),
        limits: references
            .iter()
            .map(|one| Limit {
                at: scale.from_top(one.value),
                text: format!("{} {}", one.name, number(one.value)),
                look: one.look,
            })
            .collect(),
        times: times(all, places),
        lines: names.zip(&lines).map(|(name, points)| Line::new(name, points, &scale)).collect(),
    })
}

/// The days of some runs along the axis, the first and the last among them.
fn times(all: &[Series<'_>], places: usize) -> Vec<Tick> {
    let mut days: Vec<(usize, &str)> = all
        .iter()
        .flat_map(|series| &series.points)
        .map(|point| (point.place, point.started.split('T').next().unwrap_or_default()))
        .collect();
    days.sort_unstable();
    let step = days.len().saturating_sub(1).div_ceil(TIMES - 1).max(1);
    let last = days.len().saturating_sub(1);
    let chosen = days
        .iter()
        .enumerate()
        .filter(|(at, _)| *at == last || at % step == 0 && last - at >= step.div_ceil(2));
    let mut ticks: Vec<Tick> = chosen
        .map(|(_, (place, day))| Tick::along(across(*place, places), (*day).to_owned()))
        .collect();
    // Several runs of one day need its name once.
    ticks.dedup_by(|later, earlier| later.text == earlier.text);
    ticks
}

/// The place of a run from the left.
fn across(place: usize, places: usize) -> f64 {
    match places {
        0 | 1 => 0.5,
        _ => 0.015 + 0.97 * place as f64 / (places - 1) as f64,
    }
}

fn drawn(series: &Series<'_>, point: &series::Point<'_>, places: usize) -> Point {
    Point {
        x: across(point.place, places),
        y: point.value,
        ends: point.interval.map(|interval| [interval.low, interval.high]),
        title: point.value.map(|value| title(series, point, value)).unwrap_or_default(),
        ..Point::default()
    }
}

fn title(series: &Series<'_>, point: &series::Point<'_>, value: f64) -> String {
    let interval = point.interval.map(|interval| format!(" ({})", range(Some(interval), " to ")));
    let place: Vec<&str> = [point.branch, point.commit_subject].into_iter().flatten().collect();
    let place = if place.is_empty() { String::new() } else { format!(", {}", place.join(": ")) };
    format!(
        "Run {}, {}: {}{}, {} {}, {}{place}",
        point.run,
        moment(point.started),
        number(value),
        interval.unwrap_or_default(),
        series.dataset.id,
        series.dataset.version,
        point.state.name()
    )
}
