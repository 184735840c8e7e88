//! Times as exporters write them.

/// A count of nanoseconds, as a number or a string, or a time of day, in UTC unless it says otherwise. A number
/// that can only be a time of this century in milliseconds or microseconds is one.
pub(in crate::formats) fn nanoseconds(raw: &str) -> u128 {
    const MILLIS: std::ops::Range<u128> = 100_000_000_000..100_000_000_000_000;
    const MICROS: std::ops::Range<u128> = 100_000_000_000_000..100_000_000_000_000_000;
    let text = raw.trim().trim_matches('"');
    match text.parse::<u128>() {
        Ok(number) if MILLIS.contains(&number) => number * 1_000_000,
        Ok(number) if MICROS.contains(&number) => number * 1_000,
        Ok(number) => number,
        Err(_) => civil(text).unwrap_or(0),
    }
}

/// `2026-11-15T10:00:00.123456Z`, in nanoseconds since 1970.
fn civil(text: &str) -> Option<u128> {
    let (date, time) = text.split_once(['T', ' '])?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let (time, offset) = match time.rfind(['+', '-']) {
        Some(at) => (&time[..at], offset(&time[at..])?),
        None => (time.trim_end_matches('Z'), 0),
    };
    let mut time = time.trim().splitn(3, ':');
    let hour: i64 = time.next()?.parse().ok()?;
    let minute: i64 = time.next()?.parse().ok()?;
    let second = time.next()?;
    let (second, fraction) = second.split_once('.').unwrap_or((second, ""));
    let second: i64 = second.parse().ok()?;
    let valid = (1..=12).contains(&month) && (0..=9999).contains(&year) && (1..=31).contains(&day);
    if !valid || !(0..24).contains(&hour) || !(0..60).contains(&minute) {
        return None;
    }
    // Days from the civil calendar, March being the first month.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719_468;
    let seconds = ((days * 24 + hour) * 60 + minute - offset) * 60 + second;
    let digits: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    let whole = u128::try_from(seconds).ok()?.checked_mul(1_000_000_000)?;
    Some(whole + digits.parse::<u128>().ok()?)
}

/// The minutes in `+02:00`, `-0500` or `+02`.
fn offset(text: &str) -> Option<i64> {
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let digits: String = text[1..].chars().filter(|character| *character != ':').collect();
    let is_known =
        matches!(digits.len(), 2 | 4) && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: i64 = digits.parse().ok().filter(|_| is_known)?;
    let (hours, minutes) =
        if digits.len() == 2 { (number, 0) } else { (number / 100, number % 100) };
    (hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes))
}
