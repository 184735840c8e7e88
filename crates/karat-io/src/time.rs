//! Times as people write them, such as `500ms`, `30s` or `2m`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The units with their names, the largest first.
const UNITS: [(&str, f64); 6] =
    [("h", 3.6e3), ("m", 60.0), ("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("µs", 1e-6)];

/// A time that is written with its unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Time(pub Duration);

impl Time {
    /// The longest time that is accepted.
    pub const MAX: Time = Time::from_secs(86_400);

    /// Returns a time of whole seconds.
    #[must_use]
    pub const fn from_secs(seconds: u64) -> Time {
        Time(Duration::from_secs(seconds))
    }

    /// Returns a time of whole milliseconds.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Time {
        Time(Duration::from_millis(millis))
    }

    /// The time in milliseconds, rounded down.
    #[must_use]
    pub fn as_millis(self) -> u64 {
        u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX)
    }

    /// Parses a time, in which a number without a unit means seconds. For command lines alone: in a
    /// file, a number looks like one of the keys in milliseconds.
    ///
    /// # Errors
    /// If it is not a time, or is longer than [`Time::MAX`].
    pub fn parse_or_seconds(text: &str) -> Result<Time, String> {
        match text.trim().ends_with(|c: char| c.is_ascii_digit() || c == '.') {
            true => format!("{}s", text.trim()).parse(),
            false => text.parse(),
        }
    }
}

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Time, String> {
        let time = UNITS.iter().find_map(|(unit, seconds)| {
            let number: f64 = text.trim().strip_suffix(unit)?.trim().parse().ok()?;
            Duration::try_from_secs_f64(number * seconds).ok().map(Time)
        });
        time.filter(|time| *time <= Time::MAX).ok_or_else(|| {
            let longest = Time::MAX;
            format!("{text:?}: write a time of at most {longest} such as 500ms, 30s or 2m")
        })
    }
}

impl TryFrom<String> for Time {
    type Error = String;

    fn try_from(text: String) -> Result<Time, String> {
        text.parse()
    }
}

impl From<Time> for String {
    fn from(time: Time) -> String {
        time.to_string()
    }
}

/// With the largest unit that gives a whole number; the parser reads it back.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        let units = [
            ("h", 3_600_000_000_000),
            ("m", 60_000_000_000),
            ("s", 1_000_000_000),
            ("ms", 1_000_000),
            ("us", 1_000),
        ];
        match units.iter().find(|(_, size)| nanos.is_multiple_of(*size)) {
            Some(_) if nanos == 0 => write!(f, "0s"),
            Some((unit, size)) => write!(f, "{}{unit}", nanos / size),
            None => write!(f, "{}us", nanos as f64 / 1e3),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_time_needs_a_unit_and_has_a_limit() {
        let millis = |text: &str| text.parse().map(Time::as_millis).ok();
        assert_eq!(
            ["500ms", " 1.5 s", "2m", "24h"].map(millis),
            [500, 1_500, 120_000, 86_400_000].map(Some)
        );
        assert_eq!("20us".parse(), Ok(Time(Duration::from_micros(20))));
        assert_eq!(["5", "s", "-1s", "25h", "ten", "", "1e999s"].map(millis), [None; 7]);
    }

    #[test]
    fn a_number_on_a_command_line_means_seconds() {
        let millis = |text: &str| Time::parse_or_seconds(text).map(Time::as_millis).ok();
        assert_eq!(["5", "0.25", "1e2", "7ms"].map(millis), [5_000, 250, 100_000, 7].map(Some));
        assert_eq!(["", "-1", "5x", "inf", "1e999", "86401", "1s2"].map(millis), [None; 7]);
    }

    #[test]
    fn a_time_is_shown_with_the_largest_unit_that_fits() {
        let shown = |millis| Time::from_millis(millis).to_string();
        assert_eq!(
            [0, 1, 1_500, 30_000, 90_000, 120_000, 86_400_000].map(shown),
            ["0s", "1ms", "1500ms", "30s", "90s", "2m", "24h"]
        );
    }

    proptest! {
        #[test]
        fn a_time_that_is_shown_can_be_read(micros in 0_u64..=86_400_000_000) {
            let time = Time(Duration::from_micros(micros));
            prop_assert_eq!(time.to_string().parse(), Ok(time));
            let written = serde_json::to_string(&time).unwrap();
            prop_assert_eq!(serde_json::from_str::<Time>(&written).unwrap(), time);
        }
    }
}
