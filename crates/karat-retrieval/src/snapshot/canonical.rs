//! One text for one JSON value, so that its digest says whether a definition is the same.
//!
//! Keys are sorted by code point at every level, there are no spaces, arrays keep their order,
//! strings are UTF-8 with nothing escaped but quotes, backslashes and control characters, integers
//! are written in full and other numbers with the fewest digits that read back as the same value.

use karat_core::dataset::Digest;
use serde_json::{Map, Value};

/// The canonical text of a value.
pub fn text(value: &Value) -> String {
    sorted(value).to_string()
}

/// The digest of the canonical text.
pub fn digest(value: &Value) -> Digest {
    Digest::of(text(value).as_bytes())
}

/// The same value with its keys in order. What is read is bounded in depth, so this ends.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        Value::Object(fields) => {
            let mut keys: Vec<&String> = fields.keys().collect();
            keys.sort_unstable();
            let in_order = |key: &String| (key.clone(), sorted(&fields[key]));
            Value::Object(keys.into_iter().map(in_order).collect::<Map<_, _>>())
        }
        other => other.clone(),
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
