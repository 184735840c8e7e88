//! A value as a bar: its interval, the single runs, and the value in the baseline.

use karat_core::report::Measured;
use serde::Serialize;

use super::scale::{Scale, percent};
use crate::format::{bound, number};

/// One bar.
#[derive(Default, Serialize)]
pub(crate) struct Bar {
    from: String,
    width: String,
    /// The dot; none where the bar is a plain count.
    value: Option<String>,
    whisker: Option<[String; 2]>,
    baseline: Option<String>,
    runs: Vec<String>,
    /// The ends of the axis where it is not 0 to 1.
    pub(crate) axis: Option<[String; 2]>,
    /// The bar as text.
    label: String,
}

impl Bar {
    /// A bar from 0 to a share, without an interval.
    pub(crate) fn share(share: f64) -> Bar {
        Bar {
            from: percent(0.0),
            width: percent(share),
            label: format!("{:.1} %", 100.0 * share),
            ..Bar::default()
        }
    }

    /// The bar of a value; none where there is nothing to compare it with, because its length on
    /// an axis of its own would mean nothing.
    pub(crate) fn new(metric: &Measured, baseline: Option<f64>) -> Option<Bar> {
        let numbers = Numbers::of(metric, baseline)?;
        let all = numbers.all();
        (all.len() > 1).then(|| numbers.bar(&Scale::from_zero(all)))
    }

    /// Bars on one axis, so that their lengths can be compared.
    pub(crate) fn on_one_axis(metrics: &[&Measured]) -> Vec<Option<Bar>> {
        let numbers: Vec<_> = metrics.iter().map(|metric| Numbers::of(metric, None)).collect();
        let scale = Scale::from_zero(numbers.iter().flatten().flat_map(Numbers::all));
        numbers.into_iter().map(|numbers| Some(numbers?.bar(&scale))).collect()
    }
}

/// The finite numbers of a metric.
struct Numbers {
    value: f64,
    baseline: Option<f64>,
    ends: Option<[f64; 2]>,
    runs: Vec<f64>,
}

impl Numbers {
    fn of(metric: &Measured, baseline: Option<f64>) -> Option<Numbers> {
        let ends = metric.interval.as_ref().map(|interval| [interval.low, interval.high]);
        let runs = match metric.per_run.len() {
            0 | 1 => Vec::new(),
            _ => metric.per_run.iter().flatten().copied().filter(|run| run.is_finite()).collect(),
        };
        Some(Numbers {
            value: metric.value.filter(|value| value.is_finite())?,
            baseline: baseline.filter(|value| value.is_finite()),
            ends: ends.filter(|ends| ends.iter().all(|end| end.is_finite())),
            runs,
        })
    }

    fn all(&self) -> Vec<f64> {
        let single = [self.value].into_iter().chain(self.baseline);
        single.chain(self.ends.into_iter().flatten()).chain(self.runs.iter().copied()).collect()
    }

    fn bar(self, scale: &Scale) -> Bar {
        let Numbers { value, baseline, ends, runs } = self;
        let mut label = number(value);
        if let Some([low, high]) = ends {
            label.push_str(&format!(", between {} and {}", bound(low), bound(high)));
        }
        if let Some(baseline) = baseline {
            label.push_str(&format!(", baseline {}", number(baseline)));
        }
        let (zero, place) = (scale.place(0.0), scale.place(value));
        let shown = |value: f64| percent(scale.place(value));
        Bar {
            from: percent(zero.min(place)),
            width: percent((zero - place).abs()),
            value: Some(percent(place)),
            whisker: ends.map(|ends| ends.map(shown)),
            baseline: baseline.map(shown),
            runs: runs.into_iter().map(shown).collect(),
            axis: scale.ends(),
            label,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(value: f64) -> Measured {
        Measured {
            id: "run.tokens".into(),
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
    fn a_value_is_drawn_next_to_another_but_not_alone() {
        assert!(Bar::new(&metric(500.0), None).is_none());
        assert!(Bar::new(&metric(500.0), Some(400.0)).is_some());
    }

    #[test]
    fn adjacent_bars_share_an_axis() {
        let bars = Bar::on_one_axis(&[&metric(500.0), &metric(2000.0)]);
        let widths: Vec<&str> = bars.iter().flatten().map(|bar| bar.width.as_str()).collect();
        assert_eq!(widths, ["25.00%", "100.00%"]);
    }
}
