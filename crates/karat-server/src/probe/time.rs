//! Times as people write them, such as `500ms`, `30s` or `2m`.

use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;

/// The longest time that is accepted.
const LONGEST: Duration = Duration::from_secs(86_400);

/// A time that is written with its unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Time(pub Duration);

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Time, String> {
        let units =
            [("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3.6e3)];
        let time = units.iter().find_map(|(unit, seconds)| {
            let number: f64 = text.trim().strip_suffix(unit)?.trim().parse().ok()?;
            Duration::try_from_secs_f64(number * seconds).ok()
        });
        let time = time.filter(|time| *time <= LONGEST).map(Time);
        time.ok_or_else(|| {
            format!("{text:?}: write a time of at most 24h such as 500ms, 30s or 2m")
        })
    }
}

impl TryFrom<String> for Time {
    type Error = String;

    fn try_from(text: String) -> Result<Time, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_needs_a_unit_and_has_a_limit() {
        let millis = |text: &str| text.parse().map(|Time(time)| time.as_millis()).ok();
        assert_eq!(
            ["500ms", " 1.5 s", "2m", "24h"].map(millis),
            [500, 1_500, 120_000, 86_400_000].map(Some)
        );
        assert_eq!("20us".parse(), Ok(Time(Duration::from_micros(20))));
        assert_eq!(["5", "s", "-1s", "25h", "ten", "", "1e999s"].map(millis), [None; 7]);
    }
}
