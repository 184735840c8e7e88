//! Columns and curves over an axis. Every plot carries its numbers as a table as well.

use std::fmt::Write as _;

use serde::Serialize;

use super::scale::{Scale, Tick, percent};

/// A drawing with its axes and its table.
#[derive(Default, Serialize)]
pub(crate) struct Plot {
    /// A description for readers who do not see it.
    pub(crate) label: String,
    /// The name of the horizontal axis.
    pub(crate) across: &'static str,
    /// The name of the vertical axis.
    pub(crate) up: &'static str,
    pub(crate) columns: Vec<Column>,
    pub(crate) lines: Vec<Line>,
    pub(crate) x_ticks: Vec<Tick>,
    pub(crate) y_ticks: Vec<Tick>,
    /// The columns of the table.
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

/// One column of a histogram.
#[derive(Serialize)]
pub(crate) struct Column {
    x: String,
    width: String,
    y: String,
    height: String,
    title: String,
}

impl Column {
    /// The column at a position among `of`, as high as a share of the drawing.
    pub(crate) fn new(position: usize, of: usize, share: f64, title: String) -> Column {
        let step = 1.0 / of.max(1) as f64;
        let gap = (step * 0.12).min(0.006);
        Column {
            x: percent(position as f64 * step + gap / 2.0),
            width: percent(step - gap),
            y: percent(1.0 - share.min(1.0)),
            height: percent(share),
            title,
        }
    }
}

/// A value of a curve.
#[derive(Clone, Debug, Default)]
pub struct Point {
    /// The horizontal position, from 0 to 1.
    pub x: f64,
    /// The value; none interrupts the curve.
    pub y: Option<f64>,
    /// The ends of its interval.
    pub ends: Option<[f64; 2]>,
    /// The ends of an interval of its horizontal position.
    pub span: Option<[f64; 2]>,
    /// A description of the point.
    pub title: String,
}

/// One curve.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// The stretches without an interruption.
    pub pieces: Vec<Piece>,
    /// The values as dots.
    pub dots: Vec<Dot>,
    /// The number by which a dot without a curve is found in the drawing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<usize>,
    /// True if this is the one among numbered dots that the figure is about.
    pub is_own: bool,
}

/// A stretch of a curve of at least two points, in a box of 1000 by 1000.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Piece {
    /// The corners of the curve.
    pub line: String,
    /// The corners of the band of intervals; none if a point has no interval, because a band with
    /// a hole would claim too much.
    pub band: Option<String>,
}

/// A value as a dot.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Dot {
    /// The position from the left.
    pub x: String,
    /// The position from the top.
    pub y: String,
    /// The ends of the interval where no band shows it.
    pub whisker: Option<[String; 2]>,
    /// The ends of the interval of the horizontal position.
    pub span: Option<[String; 2]>,
    /// A description of the point.
    pub title: String,
    /// The text next to the dot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<Label>,
    /// The index of the point.
    #[serde(skip)]
    pub point: usize,
    /// The shares of the drawing to the left of the dot and above it.
    #[serde(skip)]
    place: [f64; 2],
}

/// The text next to a dot: to its lower left, unless the drawing ends there.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Label {
    /// The text.
    pub text: String,
    /// The end of the text that is next to the dot.
    pub anchor: &'static str,
    /// Pixels from the dot to the right.
    pub right: i8,
    /// Pixels from the dot down.
    pub down: i8,
}

impl Label {
    fn near(place: [f64; 2], text: String) -> Label {
        let (anchor, right) = if place[0] < 0.25 { ("start", 6) } else { ("end", -6) };
        let down = if place[1] > 0.85 { -6 } else { 14 };
        Label { text, anchor, right, down }
    }
}

impl Line {
    /// The curve through points.
    pub fn new(name: &str, points: &[Point], scale: &Scale) -> Line {
        let (mut pieces, mut dots) = (Vec::new(), Vec::new());
        let all: Vec<(usize, &Point)> = points.iter().enumerate().collect();
        for part in all.split(|(_, point)| point.y.is_none()) {
            let piece = Piece::new(part, scale);
            let banded = piece.as_ref().is_some_and(|piece| piece.band.is_some());
            pieces.extend(piece);
            let from_top = |value| percent(scale.depth(value));
            dots.extend(part.iter().filter_map(|(index, point)| {
                Some(Dot {
                    x: percent(point.x),
                    y: from_top(point.y?),
                    whisker: point.ends.filter(|_| !banded).map(|ends| ends.map(from_top)),
                    span: point.span.map(|ends| ends.map(percent)),
                    title: point.title.clone(),
                    label: None,
                    point: *index,
                    place: [point.x, scale.depth(point.y?)],
                })
            }));
        }
        Line { name: name.to_owned(), pieces, dots, number: None, is_own: false }
    }

    /// Numbers single dots, and labels each place with the numbers of all dots there.
    pub(crate) fn number(lines: &mut [Line]) {
        let places: Vec<Option<(String, String)>> = lines
            .iter()
            .map(|line| line.dots.first().map(|dot| (dot.x.clone(), dot.y.clone())))
            .collect();
        for (at, line) in lines.iter_mut().enumerate() {
            line.number = Some(at + 1);
            let here: Vec<usize> =
                (0..places.len()).filter(|other| places[*other] == places[at]).collect();
            if let (Some(dot), Some(first)) = (line.dots.first_mut(), here.first())
                && *first == at
            {
                let numbers: Vec<String> = here.iter().map(|at| (at + 1).to_string()).collect();
                dot.label = Some(Label::near(dot.place, numbers.join(", ")));
            }
        }
    }

    /// The same curve without its dots.
    pub(crate) fn without_dots(self) -> Line {
        Line { dots: Vec::new(), ..self }
    }
}

impl Piece {
    fn new(part: &[(usize, &Point)], scale: &Scale) -> Option<Piece> {
        let corner = |point: &Point, value: f64| (point.x, scale.depth(value));
        let line = part.iter().filter_map(|(_, point)| Some(corner(point, point.y?)));
        let low = part.iter().map(|(_, point)| Some(corner(point, point.ends?[0])));
        let high = part.iter().rev().map(|(_, point)| Some(corner(point, point.ends?[1])));
        let band: Option<Vec<_>> = low.chain(high).collect();
        (part.len() > 1).then(|| Piece { line: corners(line), band: band.map(corners) })
    }
}

fn corners(places: impl IntoIterator<Item = (f64, f64)>) -> String {
    let mut text = String::new();
    for (x, y) in places {
        let space = if text.is_empty() { "" } else { " " };
        let _ = write!(text, "{space}{:.1},{:.1}", 1000.0 * x, 1000.0 * y);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(values: &[(Option<f64>, Option<[f64; 2]>)]) -> Line {
        let points: Vec<Point> = values
            .iter()
            .enumerate()
            .map(|(at, (y, ends))| Point {
                x: at as f64 / 4.0,
                y: *y,
                ends: *ends,
                ..Point::default()
            })
            .collect();
        Line::new("p50", &points, &Scale::from_zero([]))
    }

    #[test]
    fn a_curve_is_interrupted_where_there_is_no_value() {
        let drawn = line(&[(Some(0.0), None), (Some(1.0), None), (None, None), (Some(0.5), None)]);
        let pieces: Vec<&str> = drawn.pieces.iter().map(|piece| piece.line.as_str()).collect();
        assert_eq!(pieces, ["0.0,1000.0 250.0,0.0"]);
        let points: Vec<usize> = drawn.dots.iter().map(|dot| dot.point).collect();
        assert_eq!(points, [0, 1, 3], "a value without neighbours is a dot");
    }

    #[test]
    fn dots_at_one_place_share_a_label() {
        let dot = |value| line(&[(Some(value), None)]);
        let mut lines = [dot(1.0), dot(0.5), dot(1.0)];
        Line::number(&mut lines);
        let text = |line: &Line| line.dots[0].label.as_ref().map(|label| label.text.clone());
        let labels: Vec<Option<String>> = lines.iter().map(text).collect();
        assert_eq!(labels, [Some("1, 3".to_owned()), Some("2".to_owned()), None]);
    }

    #[test]
    fn labels_stay_inside_the_drawing() {
        let side = |place| {
            let label = Label::near(place, "1".to_owned());
            (label.anchor, label.right > 0, label.down > 0)
        };
        assert_eq!(side([0.5, 0.5]), ("end", false, true));
        assert_eq!(side([0.0, 0.0]), ("start", true, true));
        assert_eq!(side([1.0, 1.0]), ("end", false, false));
    }

    #[test]
    fn a_band_has_no_holes() {
        let ends = Some([0.4, 0.6]);
        let whole = line(&[(Some(0.5), ends), (Some(0.5), ends)]);
        assert!(whole.pieces[0].band.is_some() && whole.dots[0].whisker.is_none());
        let holed = line(&[(Some(0.5), ends), (Some(0.5), None)]);
        assert!(holed.pieces[0].band.is_none() && holed.dots[0].whisker.is_some());
    }
}
