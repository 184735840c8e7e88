//! JSON as real servers write it.
//!
//! JavaScript writes half of an emoji as a lone surrogate, Python writes `NaN`, some programs start with a
//! byte order mark. Other clients read such answers, so a session does too, with a note. The rest stays
//! invalid: nothing is guessed.

use karat_io::text::json_string_end;

/// The number that replaces one beyond the range of a double.
const LARGEST: &str = "1.7976931348623157e308";
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The bytes as strict JSON, with a description of what was replaced; none if nothing was.
pub(crate) fn repaired(bytes: &[u8]) -> Option<(Vec<u8>, String)> {
    let mut notes: Vec<&'static str> = Vec::new();
    let mut rest = bytes;
    while let Some(after) = rest.strip_prefix(BYTE_ORDER_MARK) {
        rest = after;
        notes.push("a byte order mark");
    }
    let mut out = Vec::with_capacity(rest.len());
    let mut at = 0;
    while let Some(byte) = rest.get(at) {
        match byte {
            b'"' => {
                let end = json_string_end(rest, at)?;
                if copy_string(&rest[at..end], &mut out) {
                    notes.push("a lone surrogate, read as U+FFFD");
                }
                at = end;
            }
            b'-' | b'+' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                let is_word = |b: &u8| b.is_ascii_alphanumeric() || b"+-._".contains(b);
                let length = rest[at..].iter().take_while(|b| is_word(b)).count();
                let word = &rest[at..at + length];
                match replacement(word) {
                    Some((text, note)) => {
                        out.extend_from_slice(text.as_bytes());
                        notes.push(note);
                    }
                    None => out.extend_from_slice(word),
                }
                at += length;
            }
            other => {
                out.push(*other);
                at += 1;
            }
        }
    }
    notes.dedup();
    (!notes.is_empty()).then(|| (out, notes.join(", ")))
}

/// The JSON for a word outside of strings that strict readers refuse, and a note.
fn replacement(word: &[u8]) -> Option<(String, &'static str)> {
    match word {
        b"NaN" => return Some(("null".to_owned(), "NaN, read as null")),
        b"Infinity" | b"-Infinity" => {
            return Some(("null".to_owned(), "Infinity, read as null"));
        }
        _ => {}
    }
    let text = std::str::from_utf8(word).ok()?;
    let starts = text.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit());
    let number = starts.then(|| text.parse::<f64>().ok())??;
    let sign = if text.starts_with('-') { "-" } else { "" };
    number
        .is_infinite()
        .then(|| (format!("{sign}{LARGEST}"), "a number beyond the range of a double"))
}

/// Copies a string with its quotes, and replaces surrogate escapes without a partner. Returns whether there
/// was one.
fn copy_string(text: &[u8], out: &mut Vec<u8>) -> bool {
    let unit = |at: usize| -> Option<u16> {
        let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let mut found = false;
    let mut at = 0;
    while at < text.len() {
        if text[at] != b'\\' {
            out.push(text[at]);
            at += 1;
            continue;
        }
        let (kept, length): (&[u8], usize) = match (unit(at), unit(at + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (&text[at..at + 12], 12),
            (Some(0xd800..=0xdfff), _) => {
                found = true;
                (b"\\ufffd", 6)
            }
            // The escaped character belongs to the escape, so that `\\ud800` stays text.
            _ => (&text[at..text.len().min(at + 2)], 2),
        };
        out.extend_from_slice(kept);
        at += length;
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn read(text: &str) -> (Value, String) {
        let (bytes, note) = repaired(text.as_bytes()).expect(text);
        (serde_json::from_slice(&bytes).expect(text), note)
    }

    #[test]
    fn each_replacement_has_its_note() {
        for (text, value, note) in [
            (r#"{"a":"x\ud83c"}"#, json!({"a": "x\u{fffd}"}), "a lone surrogate, read as U+FFFD"),
            (
                r#"["\udc00\ud83d\ude00"]"#,
                json!(["\u{fffd}😀"]),
                "a lone surrogate, read as U+FFFD",
            ),
            (r#"["\ud800A"]"#, json!(["\u{fffd}A"]), "a lone surrogate, read as U+FFFD"),
            ("[NaN, -Infinity]", json!([null, null]), "NaN, read as null, Infinity, read as null"),
            ("[1e999]", json!([f64::MAX]), "a number beyond the range of a double"),
            ("[-1E+400]", json!([-f64::MAX]), "a number beyond the range of a double"),
            ("\u{feff}{}", json!({}), "a byte order mark"),
        ] {
            assert_eq!(read(text), (value, note.to_owned()), "{text}");
        }
    }

    #[test]
    fn text_that_only_looks_like_it_is_not_touched() {
        for text in [r#"["\\ud800", "NaN 1e999"]"#, r#"{"NaN": 1, "a": [1.5e3, -0, true]}"#] {
            assert_eq!(repaired(text.as_bytes()), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn valid_json_is_never_replaced(text in any::<String>(), number in any::<f64>()) {
            let value = json!({text.clone(): [text, number, true, null]});
            prop_assert_eq!(repaired(value.to_string().as_bytes()), None);
        }

        #[test]
        fn what_was_repaired_needs_no_repair(
            pieces in prop::collection::vec(
                prop_oneof![
                    prop::sample::select(vec![
                        "\u{feff}", "NaN", "-Infinity", "1e999", "\"", "\\", "\\ud83c", "\\udf00", "[", ",", "é",
                    ]).prop_map(|piece| piece.as_bytes().to_vec()),
                    prop::collection::vec(any::<u8>(), 1..3),
                ],
                0..30,
            ),
        ) {
            if let Some((bytes, note)) = repaired(&pieces.concat()) {
                prop_assert!(!note.is_empty());
                prop_assert_eq!(repaired(&bytes), None, "{:?}", String::from_utf8_lossy(&bytes));
            }
        }
    }
}
