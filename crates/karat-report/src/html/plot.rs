//! Columns and curves over an axis, as positions for the template.
//!
//! Places are per cent of the drawing, so that it stretches to any width while its letters keep their
//! size. What is drawn can be read as a table as well, which every plot carries.

use serde::Serialize;

use super::words::number;

/// A drawing with its axes and its table.
#[derive(Default, Serialize)]
pub(super) struct Plot {
    /// What it shows, in words, for those who do not see it.
    pub(super) label: String,
    pub(super) across: &'static str,
    pub(super) up: &'static str,
    pub(super) columns: Vec<Column>,
    pub(super) lines: Vec<Line>,
    pub(super) x_ticks: Vec<Tick>,
    pub(super) y_ticks: Vec<Tick>,
    /// The same as numbers.
    pub(super) head: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

/// One column; its title tells what it counts.
#[derive(Serialize)]
pub(super) struct Column {
    x: String,
    width: String,
    y: String,
    height: String,
    title: String,
}

/// One curve.
#[derive(Serialize)]
pub(super) struct Line {
    pub(super) name: String,
    /// In a box of 1000 by 1000.
    pieces: Vec<String>,
    /// Where it is drawn with dots: few points, or one alone.
    dots: Vec<Dot>,
}

#[derive(Serialize)]
struct Dot {
    x: String,
    y: String,
    title: String,
}

/// A place on an axis and what it says.
#[derive(Serialize)]
pub(super) struct Tick {
    pub(super) at: String,
    pub(super) text: String,
    /// Where the text stands against the place.
    pub(super) anchor: &'static str,
}

/// More points than this are a line without dots.
const DOTTED: usize = 80;

impl Column {
    /// The column of this number out of so many, as high as this share.
    pub(super) fn new(place: usize, of: usize, share: f64, title: String) -> Column {
        let step = 100.0 / of.max(1) as f64;
        let gap = (step * 0.12).min(0.6);
        let height = 100.0 * share.clamp(0.0, 1.0);
        Column {
            x: percent(place as f64 * step + gap / 2.0),
            width: percent(step - gap),
            y: percent(100.0 - height),
            height: percent(height),
            title,
        }
    }
}

impl Line {
    /// A curve through points of the unit square, broken where there is none.
    pub(super) fn new(name: &str, points: &[(f64, Option<f64>)], titles: &[String]) -> Line {
        let mut pieces: Vec<String> = Vec::new();
        let mut open = false;
        for (x, y) in points {
            let Some(y) = y else {
                open = false;
                continue;
            };
            let point = format!("{:.1},{:.1}", 1000.0 * x, 1000.0 * (1.0 - y.clamp(0.0, 1.0)));
            match pieces.last_mut() {
                Some(piece) if open => {
                    piece.push(' ');
                    piece.push_str(&point);
                }
                _ => pieces.push(point),
            }
            open = true;
        }
        let dots = points.iter().zip(titles).filter_map(|((x, y), title)| {
            let y = 1.0 - (*y)?.clamp(0.0, 1.0);
            Some(Dot { x: percent(100.0 * x), y: percent(100.0 * y), title: title.clone() })
        });
        let dots = if points.len() <= DOTTED { dots.collect() } else { Vec::new() };
        Line { name: name.to_owned(), pieces, dots }
    }
}

/// Four steps up an axis that starts at zero.
pub(super) fn heights(top: f64) -> Vec<Tick> {
    [1.0, 0.75, 0.5, 0.25, 0.0]
        .map(|share| Tick {
            at: percent(100.0 * (1.0 - share)),
            text: short(top * share),
            anchor: "start",
        })
        .into_iter()
        .collect()
}

/// A tick along the axis at this share of its width.
pub(super) fn along(share: f64, text: String) -> Tick {
    let anchor = match share {
        share if share < 0.04 => "start",
        share if share > 0.96 => "end",
        _ => "middle",
    };
    Tick { at: percent(100.0 * share), text, anchor }
}

/// The end of an axis that holds this value: four steps to it are short numbers.
pub(super) fn top(value: f64) -> f64 {
    if !(value > 0.0 && value.is_finite()) {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    let ends = [1.0, 2.0, 4.0, 6.0, 8.0, 10.0].map(|step| step * power);
    ends.into_iter().find(|end| *end >= value * 0.999_999).unwrap_or(value)
}

/// A number as short as it can be said.
pub(super) fn short(value: f64) -> String {
    let text = match value {
        0.0 => "0".to_owned(),
        value if value.abs() >= 1e6 => format!("{}M", trimmed(value / 1e6)),
        value if value.abs() >= 1e4 => format!("{}k", trimmed(value / 1e3)),
        value => trimmed(value),
    };
    text.replace('-', "\u{2212}")
}

fn trimmed(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 0.1 => 2,
        _ => 4,
    };
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// A value of a table, or that there is none.
pub(super) fn cell(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), number)
}

fn percent(place: f64) -> String {
    format!("{:.2}%", place.clamp(0.0, 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_ends_at_a_number_whose_quarters_are_short() {
        for (value, end) in [(0.7, 0.8), (3.0, 4.0), (301.0, 400.0), (1000.0, 1000.0), (0.0, 1.0)] {
            assert!((top(value) - end).abs() < 1e-9, "{value}: {}", top(value));
        }
        let texts: Vec<String> = heights(400.0).into_iter().map(|tick| tick.text).collect();
        assert_eq!(texts, ["400", "300", "200", "100", "0"]);
    }

    #[test]
    fn numbers_on_an_axis_are_short() {
        let said = [0.0, 0.025, 0.5, 12.5, 250.0, 25_000.0, 2_500_000.0, -3.0].map(short);
        assert_eq!(said, ["0", "0.025", "0.5", "12.5", "250", "25k", "2.5M", "\u{2212}3"]);
    }

    #[test]
    fn a_curve_breaks_where_there_is_no_value() {
        let points = [(0.0, Some(0.0)), (0.5, None), (1.0, Some(1.0))];
        let line = Line::new("p50", &points, &[]);
        assert_eq!(line.pieces, ["0.0,1000.0", "1000.0,0.0"]);
    }
}
