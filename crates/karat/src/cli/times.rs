//! Times on the command line: `500ms`, `30s`, `2m`; a number without a unit means seconds.

use karat_io::time::Time;

/// The ends of ranges.
pub(super) const NONE: Time = Time::from_secs(0);
pub(super) const MILLISECOND: Time = Time::from_millis(1);
pub(super) const SECOND: Time = Time::from_secs(1);
pub(super) const HOUR: Time = Time::from_secs(3_600);
pub(super) const DAY: Time = Time::MAX;

/// The parser of a time in a range.
pub(super) fn time(min: Time, max: Time) -> impl Fn(&str) -> Result<Time, String> + Clone {
    move |text| match Time::parse_or_seconds(text) {
        Ok(time) if (min..=max).contains(&time) => Ok(time),
        _ => Err(format!("write a time from {min} to {max}, such as 30s or 2m")),
    }
}

/// The parser of a latency. It needs its unit: seconds are not what a number here would mean.
pub(super) fn latency(text: &str) -> Result<Time, String> {
    text.parse()
        .map_err(|_| format!("write a time from {NONE} to {DAY} with its unit, such as 20ms"))
}
