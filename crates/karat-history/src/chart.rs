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
    /// One line for each series.
    pub(crate) lines: Vec<Line>,
}

/// The chart of series over `places` runs; none if there is no value.
pub(crate) fn chart(all: &[Series<'_>], places: usize, height: u32) -> Option<Chart> {
    let mut lines: Vec<Vec<Point>> = Vec::new();
    for series in all {
        lines.push(series.points.iter().map(|point| drawn(series, point, places)).collect());
    }
    let points = || lines.iter().flatten().filter(|point| point.y.is_some());
    points().next()?;
    let scale = Scale::around(points().flat_map(|point| {
        let ends = point.ends.into_iter().flatten();
        ends.chain(point.y)
    }));
    let names = all.iter().map(|series| series.dataset.digest.as_str());
    let (top, bottom) = ((height / 6).min(10), height / 9);
    Some(Chart {
        height,
        top,
        inner: height - top - bottom,
        ticks: scale.ticks(),
        lines: names.zip(&lines).map(|(name, points)| Line::new(name, points, &scale)).collect(),
    })
}

fn drawn(series: &Series<'_>, point: &series::Point<'_>, places: usize) -> Point {
    Point {
        x: match places {
            0 | 1 => 0.5,
            _ => 0.015 + 0.97 * point.place as f64 / (places - 1) as f64,
        },
        y: point.value,
        ends: point.interval.map(|interval| [interval.low, interval.high]),
        title: point.value.map(|value| title(series, point, value)).unwrap_or_default(),
        ..Point::default()
    }
}

fn title(series: &Series<'_>, point: &series::Point<'_>, value: f64) -> String {
    let interval = point.interval.map(|interval| format!(" ({})", range(Some(interval), " to ")));
    format!(
        "Run {}, {}: {}{}, {} {}, {}",
        point.run,
        moment(point.started),
        number(value),
        interval.unwrap_or_default(),
        series.dataset.id,
        series.dataset.version,
        point.state.name()
    )
}
