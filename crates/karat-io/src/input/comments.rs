//! JSON with comments and trailing commas, as editors write it.
//!
//! Both become blanks, so that the JSON reader still reports the right line and column. A crate such as
//! `json-strip-comments` would also remove the comma of `{,}`, which is a mistake and stays one here.

use crate::text::json_string_end;

/// The text with comments and trailing commas replaced by blanks.
pub(super) fn without_comments(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut at = 0;
    // A comma is trailing only after a value.
    let mut comma: Option<usize> = None;
    let mut after_value = false;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                comma = None;
                after_value = true;
                at = json_string_end(&bytes, at).unwrap_or(bytes.len());
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                let end = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |end| at + end);
                bytes[at..end].fill(b' ');
                at = end;
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                let end = memchr::memmem::find(&bytes[at + 2..], b"*/");
                let end = end.map_or(bytes.len(), |end| at + 2 + end + 2);
                bytes[at..end]
                    .iter_mut()
                    .filter(|byte| **byte != b'\n')
                    .for_each(|byte| *byte = b' ');
                at = end;
                continue;
            }
            b',' => comma = std::mem::take(&mut after_value).then_some(at),
            b'}' | b']' => {
                if let Some(trailing) = comma.take() {
                    bytes[trailing] = b' ';
                }
                after_value = true;
            }
            byte if byte.is_ascii_whitespace() => {}
            byte => {
                comma = None;
                after_value = !matches!(byte, b'{' | b'[' | b':');
            }
        }
        at += 1;
    }
    // Only whole characters became blanks; should that be wrong, the reader gets the text unchanged.
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn comments_and_trailing_commas_become_blanks() {
        let text =
            "{\n // a \"comment\"\n \"a\": [\"//no\", \"/* no */\", ], /* ä\n */ \"b\": 1,\n}";
        let plain = without_comments(text);
        let value: serde_json::Value = serde_json::from_str(&plain).unwrap();
        assert_eq!(value, serde_json::json!({"a": ["//no", "/* no */"], "b": 1}));
        assert_eq!(plain.len(), text.len());
        assert_eq!(plain.matches('\n').count(), text.matches('\n').count());
    }

    #[test]
    fn a_comma_without_a_value_stays() {
        assert_eq!(without_comments("{,}"), "{,}");
        assert_eq!(without_comments("[1,,]"), "[1,,]");
    }

    proptest! {
        #[test]
        fn any_text_keeps_its_length_and_its_lines(text in "[{}\\[\\],:/*\"\\\\ \nä1]{0,40}") {
            let plain = without_comments(&text);
            prop_assert_eq!(plain.len(), text.len());
            prop_assert_eq!(plain.matches('\n').count(), text.matches('\n').count());
        }
    }
}
