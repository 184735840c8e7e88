//! Python's text of a value, `str()` and `repr()`, by which RAGAS compares arguments.
//!
//! The text is that of CPython 3.11 for what `json.loads` returns. Comparing two values by their text
//! ([`same_text`]) does not build it where the values themselves decide.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::{self, Write};

use super::printable::is_printable;
use super::{Object, Value};

/// Returns the text of `str(value)` in Python.
///
/// ```
/// use karat_metrics::calls::{Value, python};
///
/// assert_eq!(python::str(&Value::Null), "None");
/// assert_eq!(python::str(&Value::from("a'b")), "a'b");
/// assert_eq!(python::str(&Value::from(1e16)), "1e+16");
/// ```
#[must_use]
pub fn str<'v>(value: &'v Value<'_>) -> Cow<'v, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::BigInt(int) => Cow::Borrowed(int.digits()),
        _ => Cow::Owned(repr(value)),
    }
}

/// Returns the text of `repr(value)` in Python.
///
/// ```
/// use karat_metrics::calls::{json, python};
///
/// let value = json::parse(r#"{"a": [true, null, "it's"]}"#)?;
/// assert_eq!(python::repr(&value), r#"{'a': [True, None, "it's"]}"#);
/// # Ok::<(), karat_metrics::calls::json::JsonError>(())
/// ```
#[must_use]
pub fn repr(value: &Value<'_>) -> String {
    let mut text = String::new();
    // Writing into a String does not fail.
    let _ = write_repr(&mut text, value);
    text
}

/// Returns `true` if `str(a) == str(b)` in Python.
///
/// ```
/// use karat_metrics::calls::{Value, python};
///
/// assert!(python::same_text(&Value::from(1), &Value::from("1")));
/// assert!(!python::same_text(&Value::from(1), &Value::from(1.0)));
/// ```
#[must_use]
pub fn same_text(a: &Value<'_>, b: &Value<'_>) -> bool {
    match (a, b) {
        (Value::String(a), Value::String(b)) => a == b,
        (Value::String(text), other) | (other, Value::String(text)) => is_written_as(other, text),
        // The text of anything but a string is a Python literal: it shows kind, order and every
        // digit, so equal texts mean identical values.
        _ => a.identical(b),
    }
}

/// Returns the order of `str(a)` and `str(b)` in Python: by code point, which is also the order of
/// UTF-8 bytes.
///
/// ```
/// use std::cmp::Ordering;
/// use karat_metrics::calls::{Value, python};
///
/// assert_eq!(python::compare_text(&Value::from(10), &Value::from(9)), Ordering::Less);
/// ```
#[must_use]
pub fn compare_text(a: &Value<'_>, b: &Value<'_>) -> Ordering {
    match (a, b) {
        // "False" comes before "True".
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        _ if same_text(a, b) => Ordering::Equal,
        _ => str(a).cmp(&str(b)),
    }
}

/// Returns `true` if `repr(value) == text`, without building the former.
fn is_written_as(value: &Value<'_>, text: &str) -> bool {
    struct Rest<'t>(&'t str);
    impl Write for Rest<'_> {
        fn write_str(&mut self, written: &str) -> fmt::Result {
            self.0 = self.0.strip_prefix(written).ok_or(fmt::Error)?;
            Ok(())
        }
    }
    let mut rest = Rest(text);
    write_repr(&mut rest, value).is_ok() && rest.0.is_empty()
}

fn write_repr(out: &mut impl Write, value: &Value<'_>) -> fmt::Result {
    match value {
        Value::Null => out.write_str("None"),
        Value::Bool(true) => out.write_str("True"),
        Value::Bool(false) => out.write_str("False"),
        Value::Int(int) => write!(out, "{int}"),
        Value::BigInt(int) => out.write_str(int.digits()),
        Value::Float(float) => write_float(out, *float),
        Value::String(text) => write_string(out, text),
        Value::List(items) => {
            out.write_str("[")?;
            for (position, item) in items.iter().enumerate() {
                out.write_str(if position == 0 { "" } else { ", " })?;
                write_repr(out, item)?;
            }
            out.write_str("]")
        }
        Value::Object(object) => write_object(out, object),
    }
}

fn write_object(out: &mut impl Write, object: &Object<'_>) -> fmt::Result {
    out.write_str("{")?;
    for (position, (key, value)) in object.iter().enumerate() {
        out.write_str(if position == 0 { "" } else { ", " })?;
        write_string(out, key)?;
        out.write_str(": ")?;
        write_repr(out, value)?;
    }
    out.write_str("}")
}

/// The shortest digits that give the float back, in fixed notation for exponents from -4 to 15.
fn write_float(out: &mut impl Write, float: f64) -> fmt::Result {
    if float.is_nan() {
        return out.write_str("nan");
    }
    out.write_str(if float.is_sign_negative() { "-" } else { "" })?;
    if float.is_infinite() {
        return out.write_str("inf");
    }
    let (digits, exponent) = shortest_digits(float.abs());
    match usize::try_from(exponent) {
        Ok(exponent @ ..16) if digits.len() <= exponent + 1 => {
            write!(out, "{digits:0<width$}.0", width = exponent + 1)
        }
        Ok(exponent @ ..16) => {
            let (whole, fraction) = digits.split_at(exponent + 1);
            write!(out, "{whole}.{fraction}")
        }
        Err(_) if exponent >= -4 => {
            let zeros = exponent.unsigned_abs() as usize - 1;
            write!(out, "0.{:0<zeros$}{digits}", "")
        }
        _ => {
            let (first, others) = digits.split_at(1);
            let point = if others.is_empty() { "" } else { "." };
            let sign = if exponent < 0 { '-' } else { '+' };
            write!(out, "{first}{point}{others}e{sign}{:02}", exponent.unsigned_abs())
        }
    }
}

/// The fewest digits that give back a float that is not negative, those nearest to its exact value,
/// and the exponent of the first.
fn shortest_digits(float: f64) -> (String, i32) {
    let shortest = format!("{float:e}");
    let count =
        shortest.bytes().take_while(|&byte| byte != b'e').filter(u8::is_ascii_digit).count();
    // Of two shortest ones equally near (1033713465595588.25), Rust takes the upper, Python the even
    // one; and so does Rust if the number of digits is given. (At a power of two the nearest digits
    // may give back its neighbour; then only the shortest ones are right.)
    let nearest = format!("{float:.precision$e}", precision = count - 1);
    let chosen = if nearest.parse() == Ok(float) { nearest } else { shortest };
    let (digits, exponent) = chosen.split_once('e').unwrap_or((&chosen, "0"));
    (digits.replace('.', ""), exponent.parse().unwrap_or(0))
}

/// In single quotes, unless only the other kind avoids an escape.
fn write_string(out: &mut impl Write, text: &str) -> fmt::Result {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.write_char(quote)?;
    for character in text.chars() {
        match character {
            '\\' => out.write_str("\\\\")?,
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            _ if character == quote => write!(out, "\\{quote}")?,
            _ if is_printable(character) => out.write_char(character)?,
            _ => match u32::from(character) {
                code @ 0..=0xff => write!(out, "\\x{code:02x}")?,
                code @ 0x100..=0xffff => write!(out, "\\u{code:04x}")?,
                code => write!(out, "\\U{code:08x}")?,
            },
        }
    }
    out.write_char(quote)
}

#[cfg(test)]
mod tests {
    use super::super::json;
    use super::*;

    #[track_caller]
    fn check(source: &str, expected: &str) {
        let value = json::parse(source).unwrap();
        assert_eq!(repr(&value), expected, "{source}");
        assert!(is_written_as(&value, expected), "{source}");
        assert!(!is_written_as(&value, &format!("{expected} ")), "{source}");
        assert!(!is_written_as(&value, &expected[1..]), "{source}");
    }

    #[test]
    fn floats_are_written_as_python_writes_them() {
        for (source, expected) in [
            ("1.0", "1.0"),
            ("-0.0", "-0.0"),
            ("0.0001", "0.0001"),
            ("0.00001", "1e-05"),
            ("1.5e-7", "1.5e-07"),
            ("100000.0", "100000.0"),
            ("1e15", "1000000000000000.0"),
            ("9999999999999998.0", "9999999999999998.0"),
            ("1e16", "1e+16"),
            ("1.2345678901234567e22", "1.2345678901234568e+22"),
            ("1e100", "1e+100"),
            ("5e-324", "5e-324"),
            ("0.1", "0.1"),
            // Both neighbours of 17 digits are equally near.
            ("1033713465595588.25", "1033713465595588.2"),
            ("1033713465595588.75", "1033713465595588.8"),
            ("9007199254740993.0", "9007199254740992.0"),
            ("2.2250738585072014e-308", "2.2250738585072014e-308"),
            ("1e999", "inf"),
            ("-1e999", "-inf"),
        ] {
            check(source, expected);
        }
    }

    #[test]
    fn strings_inside_containers_are_quoted_and_escaped() {
        check(r#"["it's"]"#, r#"["it's"]"#);
        check(r#"["say \"hi\""]"#, r#"['say "hi"']"#);
        check(r#"["it's \"x\""]"#, r#"['it\'s "x"']"#);
        check(r#"["a\\b\n\r\t"]"#, r"['a\\b\n\r\t']");
        check(r#"["\u0000\u007f\u00a0\u200b\ud834\udd73"]"#, r"['\x00\x7f\xa0\u200b\U0001d173']");
        check("[\"\u{e9}\u{1f600}\"]", "['\u{e9}\u{1f600}']");
    }

    #[test]
    fn containers_and_words_are_written_as_python_literals() {
        check(r#"{"k":[1,true,null,false],"l":{}}"#, "{'k': [1, True, None, False], 'l': {}}");
        check("18446744073709551616", "18446744073709551616");
        check("[]", "[]");
    }

    #[test]
    fn a_string_has_the_same_text_as_a_value_written_like_it() {
        let same = |a: &str, b: &str| same_text(&json::parse(a).unwrap(), &json::parse(b).unwrap());
        assert!(same("1", "\"1\""));
        assert!(same("\"None\"", "null"));
        assert!(same(r#""{'p': 1}""#, r#"{"p":1}"#));
        assert!(same(r#""it's""#, r#""it's""#));
        assert!(!same("1", "1.0"));
        assert!(!same("true", "1"));
        assert!(!same("0.0", "-0.0"));
        assert!(!same(r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#));
    }
}
