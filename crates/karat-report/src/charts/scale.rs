//! Axes: ends, round steps, ticks and positions.

use serde::Serialize;

/// The axis ends and round steps between them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    low: f64,
    high: f64,
    step: f64,
}

/// A position on an axis and its label.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Tick {
    /// The position, from the left or from the top.
    pub at: String,
    /// The label.
    pub text: String,
    /// The alignment of the label: `start`, `middle` or `end`.
    pub anchor: &'static str,
}

/// The limit of what is drawn, so that the difference of two ends stays finite.
const LARGEST: f64 = 1e300;
/// The most ticks on an axis.
const MAX_TICKS: u8 = 8;

impl Scale {
    /// From 0 to 1 for shares, from −1 to 1 for correlations, otherwise from 0 to a round number.
    pub(crate) fn from_zero(values: impl IntoIterator<Item = f64>) -> Scale {
        let (low, high) = values
            .into_iter()
            .map(|value| value.clamp(-LARGEST, LARGEST))
            .fold((0.0_f64, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        Scale {
            low: if low < 0.0 { -round_up(-low.min(-1.0)) } else { 0.0 },
            high: if high > 0.0 || low == 0.0 { round_up(high.max(1.0)) } else { 0.0 },
            step: 1.0,
        }
    }

    /// From 0 to the first tick that is not below the highest value.
    pub(crate) fn up_to(highest: f64) -> Scale {
        let highest = if highest > 0.0 { highest.min(LARGEST) } else { 1.0 };
        Scale::stepped(highest, round_up(highest / 4.0))
    }

    /// The same for counts, which have no fractions.
    pub(crate) fn of_counts(highest: u64) -> Scale {
        let highest = highest.max(1) as f64;
        Scale::stepped(highest, round_up((highest / 4.0).max(1.0)))
    }

    fn stepped(highest: f64, step: f64) -> Scale {
        Scale { low: 0.0, high: (highest / step * 0.999_999).ceil() * step, step }
    }

    /// A little beyond the values on both sides; shares stay between 0 and 1.
    pub fn around(values: impl IntoIterator<Item = f64>) -> Scale {
        let (low, high) = values
            .into_iter()
            .filter(|value| value.is_finite())
            .map(|value| value.clamp(-LARGEST, LARGEST))
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        if low > high {
            return Scale::from_zero([]);
        }
        let share = low >= 0.0 && high <= 1.0;
        let spread = (high - low).max(high.abs() * 0.02).max(if share { 0.02 } else { 1e-9 });
        let half = ((high - low) / 2.0 + spread * 0.1).max(spread / 2.0);
        let middle = low / 2.0 + high / 2.0;
        let (mut low, mut high) = (middle - half, middle + half);
        if share {
            (low, high) = (low.max(0.0), high.min(1.0));
        }
        Scale { low, high, step: round_up((high - low) / 4.0) }
    }

    /// The position of a value between the ends, from 0 to 1.
    pub(crate) fn place(&self, value: f64) -> f64 {
        ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    /// The position of a value from the top.
    pub(super) fn depth(&self, value: f64) -> f64 {
        1.0 - self.place(value)
    }

    /// The round values between the ends, lowest first, with their positions from the top.
    pub fn ticks(&self) -> Vec<Tick> {
        let first = (self.low / self.step).ceil();
        (0..MAX_TICKS)
            .map(|number| (first + f64::from(number)) * self.step)
            .take_while(|value| *value <= self.high + self.step * 1e-9)
            .map(|value| Tick {
                at: percent(self.depth(value)),
                text: label(value, self.step),
                anchor: "end",
            })
            .collect()
    }

    /// The position of a value from the top, as a percentage of a drawing.
    pub fn from_top(&self, value: f64) -> String {
        percent(self.depth(value))
    }

    /// The ends.
    pub(crate) fn range(&self) -> [f64; 2] {
        [self.low, self.high]
    }

    /// The ends as text; none where they are 0 and 1.
    pub(super) fn ends(&self) -> Option<[String; 2]> {
        let unit = self.low == 0.0 && self.high == 1.0;
        (!unit).then(|| [self.low, self.high].map(|end| label(end, 1.0)))
    }
}

impl Tick {
    /// A tick along the horizontal axis, at a share of its width.
    #[must_use]
    pub fn along(share: f64, text: String) -> Tick {
        along(share, text)
    }
}

/// A tick along the horizontal axis, at a share of its width.
pub(crate) fn along(share: f64, text: String) -> Tick {
    let anchor = match share {
        share if share < 0.04 => "start",
        share if share > 0.96 => "end",
        _ => "middle",
    };
    Tick { at: percent(share), text, anchor }
}

/// A share as a percentage of a drawing.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.2}%", 100.0 * share.clamp(0.0, 1.0))
}

/// 1, 2 or 5 times a power of ten: the smallest that is not below a positive number.
fn round_up(size: f64) -> f64 {
    let power = 10_f64.powf(size.log10().floor());
    let ends = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
    ends.into_iter().find(|end| *end >= size * 0.999_999).unwrap_or(size)
}

/// A number as short as possible, with three significant digits.
pub(crate) fn short(value: f64) -> String {
    let text = label(value, 10_f64.powf(value.abs().log10().floor() - 2.0));
    let digits = text.trim_end_matches(['k', 'M']);
    match digits.contains('.') && !digits.contains('e') {
        true => {
            let trimmed = digits.trim_end_matches('0').trim_end_matches('.');
            format!("{trimmed}{}", &text[digits.len()..])
        }
        false => text,
    }
}

/// A number with the decimals that tell it from its neighbours a step away.
fn label(value: f64, step: f64) -> String {
    let (unit, suffix) = match value.abs() {
        0.0 => return "0".to_owned(),
        size if size >= 1e9 => return format!("{value:.1e}").replace('-', "\u{2212}"),
        size if size >= 1e6 => (1e6, "M"),
        size if size >= 1e4 => (1e3, "k"),
        _ => (1.0, ""),
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to a small positive number"
    )]
    let decimals = (-(step / unit).log10().floor()).clamp(0.0, 9.0) as usize;
    format!("{:.decimals$}{suffix}", value / unit).replace('-', "\u{2212}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(scale: Scale) -> Vec<String> {
        scale.ticks().into_iter().map(|tick| tick.text).collect()
    }

    #[test]
    fn a_share_is_drawn_between_zero_and_one() {
        let ends = |values: &[f64]| {
            let scale = Scale::from_zero(values.iter().copied());
            (scale.low, scale.high)
        };
        assert_eq!(ends(&[0.2, 0.9]), (0.0, 1.0));
        assert_eq!(ends(&[0.0]), (0.0, 1.0));
        assert_eq!(ends(&[-0.3, 0.1]), (-1.0, 1.0));
        assert_eq!(ends(&[1234.0]), (0.0, 2000.0));
        assert_eq!(ends(&[1.5, 4.0]), (0.0, 5.0));
        assert_eq!(ends(&[-30.0]), (-50.0, 0.0));
        assert!(Scale::around([0.9, 1.0]).high <= 1.0);
    }

    #[test]
    fn an_axis_ends_at_a_tick() {
        assert_eq!(texts(Scale::up_to(0.7)), ["0", "0.2", "0.4", "0.6", "0.8"]);
        assert_eq!(texts(Scale::up_to(301.0)), ["0", "100", "200", "300", "400"]);
        assert_eq!(texts(Scale::up_to(1000.0)), ["0", "500", "1000"]);
        assert_eq!(texts(Scale::up_to(0.0)), ["0", "0.5", "1.0"]);
        assert_eq!(texts(Scale::of_counts(3)), ["0", "1", "2", "3"]);
        assert_eq!(texts(Scale::of_counts(45_000)), ["0", "20k", "40k", "60k"]);
    }

    #[test]
    fn ticks_are_told_apart_however_close_they_are() {
        assert_eq!(texts(Scale::around([0.5, 0.9])), ["0.6", "0.8"]);
        assert_eq!(texts(Scale::around([0.0, 40.0])), ["0", "20", "40"]);
        assert_eq!(texts(Scale::around([0.70, 0.705])), ["0.695", "0.700", "0.705", "0.710"]);
    }

    #[test]
    fn every_value_has_a_place_on_the_drawing() {
        let cases: [&[f64]; 8] = [
            &[0.0],
            &[1.0, 1.0],
            &[0.31, 0.32],
            &[-5.0, 3000.0],
            &[1e300, -1e300],
            &[f64::MAX, 2.0],
            &[1e-12],
            &[],
        ];
        for values in cases {
            let each = || values.iter().copied();
            let highest = each().fold(0.0, f64::max);
            for scale in [Scale::from_zero(each()), Scale::around(each()), Scale::up_to(highest)] {
                for value in values {
                    assert!((0.0..=1.0).contains(&scale.place(*value)), "{value} on {scale:?}");
                }
                assert!(scale.ticks().len() <= 8, "{scale:?}");
            }
        }
        let scale = Scale::around([0.1, 0.9]);
        assert!(scale.depth(0.9) < scale.depth(0.1), "a higher value is higher");
    }

    #[test]
    fn numbers_on_an_axis_are_short() {
        let shown = [0.0, 0.025, 0.5, 12.5, 250.0, 25_000.0, 2_500_000.0, -3.0].map(short);
        assert_eq!(shown, ["0", "0.025", "0.5", "12.5", "250", "25k", "2.5M", "\u{2212}3"]);
        assert_eq!(short(1e300), "1.0e300");
    }
}
