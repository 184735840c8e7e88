//! A number with the tolerance that was stated, and the numbers that stand in a text.
//!
//! Numbers stay as they were written until they are compared, so that no digit is lost.

use karat_metrics::calls::expected::Accepted;
use karat_metrics::calls::{Value, json};

use super::fields::{Fields, Invalid, typed};

/// The minus of a keyboard, and that of typography.
const MINUS: [char; 2] = ['-', '\u{2212}'];
/// What may stand between a minus and its number.
const CURRENCY: [char; 5] = ['$', '€', '£', '¥', '₹'];

/// A number with the tolerance that was stated.
#[derive(Clone, Debug)]
pub struct Near {
    /// The number as it was written.
    pub(super) value: String,
    /// How far off will do.
    pub(super) within: f64,
}

impl Near {
    /// Reads the number under a key, and the tolerance beside it.
    pub(super) fn parse(fields: &mut Fields<'_>, key: &str) -> Result<Option<Self>, Invalid> {
        let Some(value) = fields.raw(key) else { return Ok(None) };
        typed::<f64>(value).map_err(|error| error.within(key))?;
        let within = fields.get::<f64>("within")?.unwrap_or(0.0);
        if within.is_nan() || within < 0.0 {
            return Err(Invalid::at("within", "must not be negative"));
        }
        Ok(Some(Near { value: value.trim().to_owned(), within }))
    }

    /// As the metrics of calls take it.
    pub(super) fn accepted(&self) -> Accepted<'_> {
        // Parsing has taken it for a number; null is near nothing.
        let value = json::parse(&self.value).unwrap_or(Value::Null);
        Accepted::Near { value, within: self.within }
    }

    /// Whether a number will do, as JSON writes it.
    pub(super) fn accepts(&self, found: &str) -> bool {
        json::parse(found).is_ok_and(|found| self.accepted().accepts(&found))
    }
}

/// The numbers in a text, as JSON writes them: `-3`, `1,200`, `2.5e3`, `.5`, `-$5`.
pub(super) fn numbers(text: &str) -> impl Iterator<Item = String> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let bytes = text.as_bytes();
        while at < bytes.len() {
            if bytes[at].is_ascii_digit() || is_leading_point(bytes, at) {
                let (number, end) = number_at(text, at);
                at = end;
                return Some(number);
            }
            at += 1;
        }
        None
    })
}

/// Whether a number such as `.5` begins here: not a version, a file name or the end of a sentence.
fn is_leading_point(bytes: &[u8], at: usize) -> bool {
    let joined = |before: usize| bytes[before].is_ascii_alphanumeric() || bytes[before] == b'.';
    bytes[at] == b'.'
        && bytes.get(at + 1).is_some_and(u8::is_ascii_digit)
        && !at.checked_sub(1).is_some_and(joined)
}

/// Whether what stands before a number makes it negative. A minus belongs to the number unless it
/// joins it to a word or another number, as in 2024-05.
fn is_negative(before: &str) -> bool {
    let before = before.strip_suffix(CURRENCY).unwrap_or(before);
    let Some(rest) = before.strip_suffix(MINUS) else { return false };
    !rest.chars().next_back().is_some_and(char::is_alphanumeric)
}

/// The number that begins here, and where it ends.
fn number_at(text: &str, start: usize) -> (String, usize) {
    let bytes = text.as_bytes();
    let digits_from = |from: usize| {
        bytes[from..].iter().position(|b| !b.is_ascii_digit()).map_or(bytes.len(), |n| from + n)
    };
    let mut end = digits_from(start);
    let mut whole = text[start..end].to_owned();
    if end - start <= 3 {
        while end > start && bytes.get(end) == Some(&b',') && digits_from(end + 1) == end + 4 {
            whole.push_str(&text[end + 1..end + 4]);
            end += 4;
        }
    }
    let whole = whole.trim_start_matches('0');
    let sign = if is_negative(&text[..start]) { "-" } else { "" };
    let mut written = format!("{sign}{}", if whole.is_empty() { "0" } else { whole });
    if bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
        let fraction = digits_from(end + 1);
        written.push_str(&text[end..fraction]);
        end = fraction;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = end + 1 + sign;
        if bytes.get(exponent).is_some_and(u8::is_ascii_digit) {
            let after = digits_from(exponent);
            written.push_str(&text[end..after]);
            end = after;
        }
    }
    (written, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_in_prose() {
        let found = |text: &str| numbers(text).collect::<Vec<_>>();
        assert_eq!(found("It is -3.5 or 1,200, not 12,34."), ["-3.5", "1200", "12", "34"]);
        assert_eq!(found("2.5e3 m, a1b, v2.0, 007, 1E-2"), ["2.5e3", "1", "2.0", "7", "1E-2"]);
        assert_eq!(found("on 2024-05-17, 00:00"), ["2024", "5", "17", "0", "0"]);
        assert_eq!(found("1.2.3 file.5 wait...5 4."), ["1.2", "3", "5", "5", "4"]);
        assert_eq!(found("none, not ½ nor ٣"), [""; 0]);
    }

    #[test]
    fn a_sign_is_read_however_it_is_written() {
        let found = |text: &str| numbers(text).collect::<Vec<_>>();
        assert_eq!(found("\u{2212}5 and (\u{2212}6), 7\u{2212}8"), ["-5", "-6", "7", "8"]);
        assert_eq!(found("-$5, $-5, \u{2212}€1,200.50, US-$3"), ["-5", "-5", "-1200.50", "3"]);
        assert_eq!(found(".5 -.5 $.5 -$.25 0.5"), ["0.5", "-0.5", "0.5", "-0.25", "0.5"]);
    }
}
