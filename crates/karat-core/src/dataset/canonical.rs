//! One text for one JSON value, so that its digest says whether a definition is the same.
//!
//! Keys are sorted by code point at every level, there are no spaces, arrays keep their order,
//! strings are UTF-8 with nothing escaped but quotes, backslashes and control characters. Integers
//! are written in full, other numbers with the fewest digits that read back as the same value: `1.5`,
//! `100.0`, and with an exponent below 0.0001 and from 1e16, `1e-05`, `1.5e+300`. That is what
//! `json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)` gives in Python, so
//! that a lock can be made without Karat; only integers beyond 64 bits are taken for other numbers.

use serde_json::Value;

use super::Digest;

/// The canonical text of a value.
pub fn text(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

/// The digest of the canonical text.
pub fn digest(value: &Value) -> Digest {
    Digest::of(text(value).as_bytes())
}

/// Adds the canonical text of a value. Input is bounded in depth, so this ends.
pub fn write(value: &Value, text: &mut String) {
    match value {
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write(item, text);
            }
            text.push(']');
        }
        Value::Object(fields) => {
            let mut sorted: Vec<(&String, &Value)> = fields.iter().collect();
            sorted.sort_unstable_by_key(|(key, _)| *key);
            text.push('{');
            for (index, (key, value)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                text.push_str(&Value::from(key.as_str()).to_string());
                text.push(':');
                write(value, text);
            }
            text.push('}');
        }
        Value::Number(number) if number.is_f64() => {
            text.push_str(&real(number.as_f64().unwrap_or_default()));
        }
        other => text.push_str(&other.to_string()),
    }
}

/// A number that is not an integer, as described above.
fn real(number: f64) -> String {
    // Rust's exponent form has the fewest digits too; only the look differs.
    let shortest = format!("{number:e}");
    let exponent = shortest.split_once('e').and_then(|(_, exponent)| exponent.parse::<i32>().ok());
    match (shortest.split_once('e'), exponent) {
        (Some((digits, _)), Some(exponent)) if !(-4..16).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        _ => format!("{number:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_sorted_tight_and_unescaped() {
        let value: Value = serde_json::from_str(
            r#"{ "b": [2, 1, {"z": null, "a": "é\u00e9\n\u0001/"}], "a": 1.50, "B": 1e2 }"#,
        )
        .unwrap();
        assert_eq!(text(&value), r#"{"B":100.0,"a":1.5,"b":[2,1,{"a":"éé\n\u0001/","z":null}]}"#);
    }

    #[test]
    fn numbers_look_as_python_writes_them() {
        for (given, expected) in [
            ("1.0", "1.0"),
            ("-0.5", "-0.5"),
            ("1e2", "100.0"),
            ("0.0001", "0.0001"),
            ("0.00001", "1e-05"),
            ("1.25e-7", "1.25e-07"),
            ("1e15", "1000000000000000.0"),
            ("1e16", "1e+16"),
            ("1.7976931348623157e+308", "1.7976931348623157e+308"),
            ("-1.5e300", "-1.5e+300"),
            ("9007199254740991", "9007199254740991"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("123456789.125", "123456789.125"),
        ] {
            let value: Value = serde_json::from_str(given).unwrap();
            assert_eq!(text(&value), expected);
        }
    }

    #[test]
    fn the_order_of_keys_does_not_count_and_the_order_of_items_does() {
        let digest = |text: &str| super::digest(&serde_json::from_str(text).unwrap());
        assert_eq!(digest(r#"{"a":1,"b":{"c":2,"d":3}}"#), digest(r#"{"b":{"d":3,"c":2},"a":1}"#));
        assert_ne!(digest("[1,2]"), digest("[2,1]"));
        assert_ne!(digest("1"), digest("1.0"));
    }

    #[test]
    fn the_digest_is_that_of_the_bytes() {
        // printf '{"name":"a"}' | sha256sum
        assert_eq!(
            digest(&serde_json::json!({"name": "a"})).to_string(),
            "sha256:d9d719b27480b55cd4918020e7473e716ed3569c8adafe926cf9b10b4f8ef064"
        );
    }
}
