//! A metric over time, drawn as SVG that stretches without a script.
//!
//! Lines and bands are in an inner drawing that is stretched to the width; points and words are placed
//! by per cent beside them, so that they keep their shape. Runs stand at equal distances in the order
//! of time. Values on different data are never joined, and neither are two values between which one is
//! undefined.

use std::fmt::Write as _;

use serde::Serialize;

use crate::series::{Point, Series};

/// The width of the inner drawing, in its own units.
const WIDE: f64 = 1000.0;
/// How many colours of lines there are; more series begin again.
const LOOKS: usize = 4;

/// A drawing; lengths are text as SVG wants them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Chart {
    /// The height in pixels.
    pub height: u32,
    /// Lines across, with what they stand for.
    pub ticks: Vec<Tick>,
    /// The stretched part.
    pub shapes: Vec<Shape>,
    /// The points.
    pub dots: Vec<Dot>,
}

/// A line across.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tick {
    /// How far down.
    pub y: String,
    /// Its value.
    pub label: String,
}

/// Points that belong together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shape {
    /// Which look it has, from 0.
    pub look: usize,
    /// The corners of the band of intervals; empty where there is none.
    pub band: String,
    /// The corners of the line.
    pub line: String,
}

/// One value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Dot {
    /// How far right, in per cent.
    pub x: String,
    /// How far down, in pixels.
    pub y: String,
    /// The ends of the interval, in pixels, where no band shows it.
    pub whisker: Option<[String; 2]>,
    /// Which look it has.
    pub look: usize,
    /// The place of its series, and its place in it.
    #[serde(skip)]
    pub at: (usize, usize),
}

/// Draws series that were made from `places` entries; nothing where there is no value.
pub fn chart(all: &[Series<'_>], places: usize, height: u32) -> Option<Chart> {
    let ends = |point: &Point<'_>| {
        let interval = point.interval.map(|interval| [interval.low, interval.high]);
        point.value.into_iter().chain(interval.into_iter().flatten())
    };
    let points = || all.iter().flat_map(|series| &series.points).filter(|p| p.value.is_some());
    points().next()?;
    let axis = Axis::around(points().flat_map(ends), f64::from(height));
    let right = |place: usize| match places {
        0 | 1 => 0.5,
        _ => 0.015 + 0.97 * place as f64 / (places - 1) as f64,
    };
    let mut shapes = Vec::new();
    let mut dots = Vec::new();
    for (series_at, series) in all.iter().enumerate() {
        let look = series_at % LOOKS;
        let mut point_at = 0;
        for part in series.points.split(|point| point.value.is_none()) {
            let shape = shape(part, look, &axis, right);
            let banded = shape.as_ref().is_some_and(|shape| !shape.band.is_empty());
            shapes.extend(shape);
            for point in part {
                // Inside a band the interval is already to be seen.
                let interval = point.interval.filter(|_| !banded);
                dots.push(Dot {
                    x: format!("{:.2}%", 100.0 * right(point.place)),
                    y: pixels(axis.down(point.value.unwrap_or_default())),
                    whisker: interval.map(|i| [i.low, i.high].map(|end| pixels(axis.down(end)))),
                    look,
                    at: (series_at, point_at),
                });
                point_at += 1;
            }
            // The undefined value that ended the part.
            point_at += 1;
        }
    }
    Some(Chart { height, ticks: axis.ticks(), shapes, dots })
}

fn shape(
    part: &[Point<'_>],
    look: usize,
    axis: &Axis,
    right: impl Fn(usize) -> f64,
) -> Option<Shape> {
    if part.len() < 2 {
        return None;
    }
    let corner = |place: usize, value: f64| (WIDE * right(place), axis.down(value));
    let line = part.iter().filter_map(|point| Some(corner(point.place, point.value?)));
    let low = part.iter().map(|point| Some(corner(point.place, point.interval?.low)));
    let high = part.iter().rev().map(|point| Some(corner(point.place, point.interval?.high)));
    // A band with a hole would say too much: all of the part has intervals, or it has no band.
    let band: Option<Vec<(f64, f64)>> = low.chain(high).collect();
    Some(Shape {
        look,
        band: band.map(|band| corners(band.into_iter())).unwrap_or_default(),
        line: corners(line),
    })
}

fn corners(places: impl Iterator<Item = (f64, f64)>) -> String {
    let mut text = String::new();
    for (x, y) in places {
        let _ = write!(text, "{}{x:.1},{y:.1}", if text.is_empty() { "" } else { " " });
    }
    text
}

fn pixels(length: f64) -> String {
    format!("{length:.1}")
}

/// From where to where the drawing reaches, upwards.
struct Axis {
    low: f64,
    high: f64,
    height: f64,
}

impl Axis {
    /// A little more than the values; shares never reach below 0 or above 1.
    fn around(values: impl Iterator<Item = f64>, height: f64) -> Axis {
        let (low, high) = values
            .filter(|value| value.is_finite())
            // So that differences of the ends stay finite.
            .map(|value| value.clamp(-1e300, 1e300))
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        let share = low >= 0.0 && high <= 1.0;
        let spread = (high - low).max(high.abs() * 0.02).max(if share { 0.02 } else { 1e-9 });
        let middle = (high + low) / 2.0;
        let half = ((high - low) / 2.0 + spread * 0.1).max(spread / 2.0);
        let (mut from, mut to) = (middle - half, middle + half);
        if share {
            (from, to) = (from.max(0.0), to.min(1.0));
        }
        Axis { low: from, high: to, height }
    }

    /// How far down a value is, with room for the words at the lower edge.
    fn down(&self, value: f64) -> f64 {
        let (top, bottom) = (10.0_f64.min(self.height / 6.0), self.height / 9.0);
        let share = ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        top + (1.0 - share) * (self.height - top - bottom)
    }

    /// Round values between the ends, about four.
    fn ticks(&self) -> Vec<Tick> {
        let rough = (self.high - self.low) / 4.0;
        let power = 10_f64.powf(rough.log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
        let Some(step) = steps.into_iter().find(|step| *step >= rough) else { return Vec::new() };
        let decimals = (-step.log10().floor()).clamp(0.0, 9.0);
        let first = (self.low / step).ceil();
        (0..8)
            .map(|n| (first + f64::from(n)) * step)
            .take_while(|value| *value <= self.high + step * 1e-9)
            .map(|value| Tick { y: pixels(self.down(value)), label: label(value, decimals) })
            .collect()
    }
}

fn label(value: f64, decimals: f64) -> String {
    if value.abs() >= 1e7 {
        return format!("{value:e}").replace('-', "\u{2212}");
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to 0..=9 where it is made"
    )]
    let decimals = decimals as usize;
    format!("{:.decimals$}", value + 0.0).replace('-', "\u{2212}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(values: &[f64]) -> Axis {
        Axis::around(values.iter().copied(), 260.0)
    }

    #[test]
    fn every_value_is_on_the_drawing() {
        let cases: [&[f64]; 6] =
            [&[0.0], &[1.0, 1.0], &[0.31, 0.32], &[-5.0, 3000.0], &[1e300, -1e300], &[1e-12]];
        for values in cases {
            let axis = axis(values);
            for value in values {
                let down = axis.down(*value);
                assert!((0.0..=260.0).contains(&down), "{value} of {values:?}: {down}");
            }
            assert!(axis.ticks().len() <= 8, "{values:?}");
        }
    }

    #[test]
    fn a_share_is_not_drawn_beyond_its_ends() {
        let axis = axis(&[0.9, 1.0]);
        assert!(axis.high <= 1.0 && axis.low < 0.9);
    }

    #[test]
    fn the_lines_across_are_round() {
        let labels: Vec<String> = axis(&[0.5, 0.9]).ticks().into_iter().map(|t| t.label).collect();
        assert_eq!(labels, ["0.6", "0.8"]);
        let labels: Vec<String> = axis(&[0.0, 40.0]).ticks().into_iter().map(|t| t.label).collect();
        assert_eq!(labels, ["0", "20", "40"]);
    }

    #[test]
    fn a_higher_value_is_higher() {
        let axis = axis(&[0.1, 0.9]);
        assert!(axis.down(0.9) < axis.down(0.1));
    }
}
