//! Numbers in source text, as Python reads them.

use super::super::Value;
use super::super::value::BigInt;

/// The text without the line feed that Python's `$` allows at the end.
pub(super) fn before_end(text: &str) -> &str {
    text.strip_suffix('\n').unwrap_or(text)
}

/// Returns whether the text is digits with an optional minus.
pub(super) fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns whether the text is an integer, a fraction or none, and an exponent or none.
pub(super) fn is_decimal(text: &str, exponent: bool) -> bool {
    let (mantissa, power) = match text.find(['e', 'E']).filter(|_| exponent) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let whole = match mantissa.split_once('.') {
        Some((whole, fraction)) => is_integer(whole) && digits(fraction),
        None => is_integer(mantissa),
    };
    whole && power.is_none_or(|power| digits(power.strip_prefix(['+', '-']).unwrap_or(power)))
}

/// An integer of any size from digits with an optional sign.
pub(super) fn integer(text: &str) -> Value<'static> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = digits.trim_start_matches('0');
    let digits = if digits.is_empty() { "0" } else { digits };
    let text = if negative && digits != "0" { format!("-{digits}") } else { digits.to_owned() };
    match text.parse() {
        Ok(small) => Value::Int(small),
        Err(_) => Value::BigInt(BigInt::owned(text)),
    }
}

/// A float from text that Rust reads as Python does.
pub(super) fn float(text: &str) -> Option<Value<'static>> {
    text.parse().ok().map(Value::Float)
}

/// The number that Python's `int`, else `float`, makes of a text; the text itself if it is not a number.
pub(super) fn number_or_text(text: &str) -> Value<'static> {
    let trimmed = text.trim();
    let plain = without_underscores(trimmed);
    let digits = plain.as_deref().map(|plain| plain.strip_prefix(['+', '-']).unwrap_or(plain));
    match (&plain, digits) {
        (Some(plain), Some(digits))
            if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            integer(plain)
        }
        (Some(plain), _) if !plain.is_empty() => {
            float(plain).unwrap_or_else(|| Value::from(text.to_owned()))
        }
        _ => Value::from(text.to_owned()),
    }
}

/// The text without underscores, which are allowed only between digits.
fn without_underscores(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let digit = |at: Option<usize>| {
        at.and_then(|at| bytes.get(at)).is_some_and(|byte| byte.is_ascii_digit())
    };
    let allowed =
        |at: usize| bytes[at] != b'_' || (digit(at.checked_sub(1)) && digit(Some(at + 1)));
    (0..bytes.len()).all(allowed).then(|| text.replace('_', ""))
}

/// The characters between the first and the last.
pub(super) fn inside(text: &str) -> &str {
    let mut chars = text.chars();
    chars.next();
    chars.next_back();
    chars.as_str()
}

/// The text after whitespace; none if there is less than `least` of it.
pub(super) fn after_space(text: &str, least: usize) -> Option<&str> {
    let rest = text.trim_start();
    (text[..text.len() - rest.len()].chars().count() >= least).then_some(rest)
}

/// The text after letters, digits and underscores.
pub(super) fn after_word(text: &str) -> &str {
    text.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_')
}
