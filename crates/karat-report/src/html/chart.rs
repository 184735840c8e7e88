//! The drawing beside a value: where it stands, how certain it is, where the baseline stood.
//!
//! Positions are per cent of the width, so that the drawing stretches without a script and without a
//! style attribute, which the page's own policy forbids.

use karat_core::report::Measured;
use serde::Serialize;

use super::words::{bound, number};

/// One drawing; every position is text such as `71.25%`.
#[derive(Serialize)]
pub(super) struct Chart {
    fill_from: String,
    fill_width: String,
    /// The dot; none where the bar is a plain count.
    value: Option<String>,
    whisker: Option<[String; 2]>,
    baseline: Option<String>,
    runs: Vec<String>,
    /// The ends of the axis where it is not 0 to 1.
    pub(super) axis: Option<[String; 2]>,
    /// The same in words.
    label: String,
}

impl Chart {
    /// A bar from 0 to a share of the whole, with no more to it.
    pub(super) fn share(share: f64) -> Chart {
        Chart {
            fill_from: percent(0.0),
            fill_width: percent(100.0 * share),
            value: None,
            whisker: None,
            baseline: None,
            runs: Vec::new(),
            axis: None,
            label: format!("{:.1} %", 100.0 * share),
        }
    }
}

/// The drawing of a value; `None` where there is no value, or nothing beside it: alone on an axis of its
/// own, its length would say nothing.
pub(super) fn chart(metric: &Measured, baseline: Option<f64>) -> Option<Chart> {
    let parts = Parts::of(metric, baseline)?;
    let drawn = parts.drawn();
    (drawn.len() > 1).then(|| parts.chart(&Axis::around(drawn)))
}

/// Drawings on one axis, so that their lengths can be compared.
pub(super) fn charts(metrics: &[&Measured]) -> Vec<Option<Chart>> {
    let parts: Vec<Option<Parts>> = metrics.iter().map(|metric| Parts::of(metric, None)).collect();
    let axis = Axis::around(parts.iter().flatten().flat_map(Parts::drawn));
    parts.into_iter().map(|parts| parts.map(|parts| parts.chart(&axis))).collect()
}

/// What is drawn of a metric: only numbers that have a place.
struct Parts {
    value: f64,
    baseline: Option<f64>,
    ends: Option<[f64; 2]>,
    runs: Vec<f64>,
}

impl Parts {
    fn of(metric: &Measured, baseline: Option<f64>) -> Option<Parts> {
        let ends = metric.interval.as_ref().map(|interval| [interval.low, interval.high]);
        let runs = match metric.per_run.len() {
            0 | 1 => Vec::new(),
            _ => metric.per_run.iter().flatten().copied().filter(|run| run.is_finite()).collect(),
        };
        Some(Parts {
            value: metric.value.filter(|value| value.is_finite())?,
            baseline: baseline.filter(|value| value.is_finite()),
            ends: ends.filter(|ends| ends.iter().all(|end| end.is_finite())),
            runs,
        })
    }

    fn drawn(&self) -> Vec<f64> {
        let single = [self.value].into_iter().chain(self.baseline);
        single.chain(self.ends.into_iter().flatten()).chain(self.runs.iter().copied()).collect()
    }

    fn chart(self, axis: &Axis) -> Chart {
        let Parts { value, baseline, ends, runs } = self;
        let mut label = number(value);
        if let Some([low, high]) = ends {
            label.push_str(&format!(", between {} and {}", bound(low), bound(high)));
        }
        if let Some(baseline) = baseline {
            label.push_str(&format!(", baseline {}", number(baseline)));
        }
        let (zero, place) = (axis.place(0.0), axis.place(value));
        Chart {
            fill_from: percent(zero.min(place)),
            fill_width: percent((zero - place).abs()),
            value: Some(percent(place)),
            whisker: ends.map(|ends| ends.map(|end| percent(axis.place(end)))),
            baseline: baseline.map(|value| percent(axis.place(value))),
            runs: runs.iter().map(|run| percent(axis.place(*run))).collect(),
            axis: axis.shown(),
            label,
        }
    }
}

/// From where to where a drawing reaches.
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    /// 0 to 1 for shares, −1 to 1 for correlations, else from zero to the next round number.
    fn around(values: impl IntoIterator<Item = f64>) -> Axis {
        let (low, high) = values
            .into_iter()
            .fold((0.0_f64, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        Axis {
            low: if low < 0.0 { -round_up(-low) } else { 0.0 },
            high: if high > 0.0 || low == 0.0 { round_up(high) } else { 0.0 },
        }
    }

    fn place(&self, value: f64) -> f64 {
        100.0 * (value - self.low) / (self.high - self.low)
    }

    fn shown(&self) -> Option<[String; 2]> {
        let unit = self.low == 0.0 && self.high == 1.0;
        (!unit).then(|| [self.low, self.high].map(round_number))
    }
}

/// 1, 2 or 5 times a power of ten, but at least 1.
fn round_up(size: f64) -> f64 {
    if size <= 1.0 {
        return 1.0;
    }
    let power = 10_f64.powf(size.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .map(|step| step * power)
        .into_iter()
        .find(|end| *end >= size)
        .unwrap_or(size)
}

/// 1, 2 or 5 and zeros, so it needs no decimals.
fn round_number(value: f64) -> String {
    let text = if value.abs() < 1e7 { value.to_string() } else { format!("{value:e}") };
    text.replace('-', "\u{2212}")
}

fn percent(place: f64) -> String {
    format!("{:.2}%", place.clamp(0.0, 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(value: f64) -> Measured {
        Measured {
            id: "run.tokens".to_owned(),
            value: Some(value),
            n: 1,
            better: karat_core::report::Better::Lower,
            per_run: Vec::new(),
            interval: None,
            count: None,
            undefined: None,
            left_out: 0,
        }
    }

    #[test]
    fn a_value_is_drawn_beside_another_but_not_alone() {
        assert!(chart(&metric(500.0), None).is_none());
        assert!(chart(&metric(500.0), Some(400.0)).is_some());
    }

    #[test]
    fn drawings_beside_each_other_share_an_axis() {
        let drawn = charts(&[&metric(500.0), &metric(2000.0)]);
        let widths: Vec<&str> =
            drawn.iter().flatten().map(|chart| chart.fill_width.as_str()).collect();
        assert_eq!(widths, ["25.00%", "100.00%"]);
    }

    fn axis(values: &[f64]) -> (f64, f64) {
        let axis = Axis::around(values.iter().copied());
        (axis.low, axis.high)
    }

    #[test]
    fn a_share_is_drawn_between_zero_and_one() {
        assert_eq!(axis(&[0.2, 0.9]), (0.0, 1.0));
        assert_eq!(axis(&[0.0]), (0.0, 1.0));
        assert_eq!(axis(&[-0.3, 0.1]), (-1.0, 1.0));
    }

    #[test]
    fn other_numbers_reach_to_a_round_one() {
        assert_eq!(axis(&[1234.0]), (0.0, 2000.0));
        assert_eq!(axis(&[1.5, 4.0]), (0.0, 5.0));
        assert_eq!(axis(&[-30.0]), (-50.0, 0.0));
    }

    #[test]
    fn every_place_is_on_the_drawing() {
        for values in [[0.0, 0.0], [1.0, 1.0], [-7.0, 3.0], [1e300, 2.0], [1e-300, 0.5]] {
            let axis = Axis::around(values);
            for value in values {
                assert!((0.0..=100.0).contains(&axis.place(value)), "{value} of {values:?}");
            }
        }
    }
}
