//! Numbers with a stated tolerance, and the numbers in a text.
//!
//! Numbers stay as they were written until they are compared, so that no digit is lost.

use std::fmt;

use karat_metrics::calls::{self, json};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::answer::Source;
use super::equality::beyond_64_bits;

/// A finite number as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number(String);

impl Number {
    /// Reads a number as JSON writes it; none if it is not one, or not finite.
    pub(crate) fn parse(text: &str) -> Option<Number> {
        let number = json::parse(text).ok()?.as_number()?;
        number.is_finite().then(|| Number(text.trim().to_owned()))
    }

    /// The nearest double.
    pub(super) fn as_f64(&self) -> f64 {
        self.0.parse().unwrap_or(f64::NAN)
    }

    /// Returns whether it was read as a double beyond 64 bits, so that its neighbours would be
    /// equal to it.
    pub(super) fn is_inexact(&self) -> bool {
        matches!(self.value(), calls::Value::Float(number) if beyond_64_bits(number))
    }

    fn value(&self) -> calls::Value<'_> {
        // It was read when it was made; null is near nothing.
        json::parse(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Number, D::Error> {
        let number = serde_json::Number::deserialize(from)?;
        Number::parse(&number.to_string())
            .ok_or_else(|| serde::de::Error::custom("expected a finite number"))
    }
}

/// A number and the largest distance from it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Near {
    /// The number.
    pub value: Number,
    /// The largest distance that is still near.
    pub within: f64,
}

impl Near {
    pub(super) fn accepts(&self, found: &Number) -> bool {
        calls::near(&self.value.value(), self.within, &found.value())
    }
}

impl fmt::Display for Near {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.within > 0.0 {
            true => write!(f, "a number within {} of {}", self.within, self.value),
            false => write!(f, "the number {}", self.value),
        }
    }
}

/// The numbers that a value is or has.
pub(super) fn numbers(value: &Value, source: Source) -> Vec<Number> {
    match (value, source) {
        (Value::Number(number), _) => Number::parse(&number.to_string()).into_iter().collect(),
        // Most tools answer with text alone.
        (Value::String(text), Source::Tool) => whole(text.trim()).into_iter().collect(),
        (Value::String(text), Source::Agent) => in_prose(text).collect(),
        _ => Vec::new(),
    }
}

/// The number that a text is and nothing else, also as JSON would not write it (`+5`, `.5`).
fn whole(text: &str) -> Option<Number> {
    Number::parse(text).or_else(|| {
        let number: f64 = text.parse().ok()?;
        Number::parse(&number.to_string())
    })
}

/// The two characters for minus: that of a keyboard, and that of typography.
const MINUS: [char; 2] = ['-', '\u{2212}'];
/// The characters that may be between a minus and its number.
const CURRENCY: [char; 5] = ['$', '€', '£', '¥', '₹'];

/// The numbers in a text: `-3`, `1,200`, `2.5e3`, `.5`, `-$5`.
fn in_prose(text: &str) -> impl Iterator<Item = Number> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
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
    .filter_map(|number| Number::parse(&number))
}

/// Returns whether a number such as `.5` begins here: not a version, a file name or the end of a
/// sentence.
fn is_leading_point(bytes: &[u8], at: usize) -> bool {
    let joined = |before: usize| bytes[before].is_ascii_alphanumeric() || bytes[before] == b'.';
    bytes[at] == b'.'
        && bytes.get(at + 1).is_some_and(u8::is_ascii_digit)
        && !at.checked_sub(1).is_some_and(joined)
}

/// Returns whether the text before a number makes it negative. A minus belongs to the number unless
/// it joins it to a word or another number, as in 2024-05.
fn is_negative(before: &str) -> bool {
    let before = before.strip_suffix(CURRENCY).unwrap_or(before);
    let Some(rest) = before.strip_suffix(MINUS) else { return false };
    !rest.chars().next_back().is_some_and(char::is_alphanumeric)
}

/// The number that begins here, as JSON writes it, and its end in the text.
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

    fn found(text: &str) -> Vec<String> {
        in_prose(text).map(|number| number.0).collect()
    }

    #[test]
    fn numbers_are_found_in_prose() {
        assert_eq!(found("It is -3.5 or 1,200, not 12,34."), ["-3.5", "1200", "12", "34"]);
        assert_eq!(found("2.5e3 m, a1b, v2.0, 007, 1E-2"), ["2.5e3", "1", "2.0", "7", "1E-2"]);
        assert_eq!(found("on 2024-05-17, 00:00"), ["2024", "5", "17", "0", "0"]);
        assert_eq!(found("1.2.3 file.5 wait...5 4."), ["1.2", "3", "5", "5", "4"]);
        assert_eq!(found("none, not ½ nor ٣, and 1e999 is not finite"), [""; 0]);
    }

    #[test]
    fn a_sign_is_read_in_every_notation() {
        assert_eq!(found("\u{2212}5 and (\u{2212}6), 7\u{2212}8"), ["-5", "-6", "7", "8"]);
        assert_eq!(found("-$5, $-5, \u{2212}€1,200.50, US-$3"), ["-5", "-5", "-1200.50", "3"]);
        assert_eq!(found(".5 -.5 $.5 -$.25 0.5"), ["0.5", "-0.5", "0.5", "-0.25", "0.5"]);
    }

    #[test]
    fn a_text_of_a_tool_is_a_number_only_if_it_is_nothing_else() {
        let of = |text: &str| numbers(&text.into(), Source::Tool);
        assert_eq!(of(" 9007199254740993 ")[0].to_string(), "9007199254740993");
        assert_eq!(of("+5")[0].to_string(), "5");
        assert_eq!(of(".5")[0].to_string(), "0.5");
        for text in ["infinity", "-inf", "nan", "1e999", "5 apples", ""] {
            assert_eq!(of(text), [], "{text}");
        }
    }
}
