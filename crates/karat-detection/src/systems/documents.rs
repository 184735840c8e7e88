//! The JSON documents in the output of a scanner: one, or several such as JSON Lines, perhaps after lines of log.

use std::path::Path;

use karat_io::input;
use serde_json::Value;

/// The documents of an output, all of which are results: only the text before the first one is a log.
///
/// # Errors
/// If there is none, one of them is refused, or something else follows the first one.
pub(super) fn documents(text: &str) -> Result<Vec<Value>, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let read = |name: &str, text: &str| {
        input::parse_json_text::<Value>(Path::new(name), text)
            .map_err(|error| format!("the scanner's output is not JSON: {error}"))
    };
    let error = match read("output", text) {
        Ok(value) => return Ok(vec![value]),
        Err(error) => error,
    };
    let (mut found, mut rest) = (Vec::new(), text);
    while !rest.trim_start().is_empty() {
        if let Some((document, behind)) = first_document(rest) {
            found.push(read(&format!("document {}", found.len() + 1), document)?);
            rest = behind.trim_start();
        } else if found.is_empty() {
            // A progress bar ends its lines with a carriage return.
            rest = rest.split_once(['\n', '\r']).map_or("", |(_, next)| next);
        } else {
            let line = super::text(rest.lines().next().unwrap_or_default());
            return Err(format!(
                "the scanner's output has other text after its first JSON document: {line}"
            ));
        }
    }
    if found.is_empty() { Err(error) } else { Ok(found) }
}

/// The document at the beginning and the text behind it. A line of log may begin with a number in brackets.
fn first_document(text: &str) -> Option<(&str, &str)> {
    if !text.starts_with(['{', '[']) {
        return None;
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    if let Err(error) = values.next()? {
        // Cut off or nested too deep, and no log: reading it gives the reason.
        let broken = error.is_eof() || error.to_string().starts_with("recursion limit exceeded");
        return broken.then_some((text, ""));
    }
    let (document, behind) = text.split_at_checked(values.byte_offset())?;
    let line = behind.trim_start_matches([' ', '\t', '\r']);
    let is_prefix = document.starts_with('[') && behind.starts_with(' ');
    (!is_prefix || line.is_empty() || line.starts_with('\n')).then_some((document, behind))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_document_is_read_and_a_log_before_them_is_not() {
        let one = |number: u8| json!({"found": number});
        for (text, expected) in [
            ("{\"found\": 1}", vec![one(1)]),
            ("\u{feff}{\"found\": 1}\n{\"found\": 2}", vec![one(1), one(2)]),
            (
                "{\"found\": 1}\n\n{\"found\": 2}\r\n {\"found\":\n3}\n",
                vec![one(1), one(2), one(3)],
            ),
            ("10 %\r100 %\r{\"found\": 1}\n{\"found\": 2}", vec![one(1), one(2)]),
            ("{\"found\": 1} {\"found\": 2}{\"found\": 3}", vec![one(1), one(2), one(3)]),
            (
                "[INFO] begins\n[1] of 2\n[1] [INFO]\n{ no\n\n{\"found\": 1}\n{\"found\": 2}",
                vec![one(1), one(2)],
            ),
            // Not a log: the scanner said something else before or after.
            ("{\"error\": 1}\n{\"found\": 1}", vec![json!({"error": 1}), one(1)]),
            ("{\"found\": 1}\n{\"error\": 1}", vec![one(1), json!({"error": 1})]),
        ] {
            assert_eq!(documents(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn other_text_after_the_first_document_is_refused_and_so_is_a_document_that_cannot_be_read() {
        let deep = format!("{}1{}", "[".repeat(9_000), "]".repeat(9_000));
        let deep_first = format!("{deep}\n{{\"found\": 1}}");
        let deep_last = format!("{{\"found\": 1}}\n{deep}");
        for (text, expected) in [
            ("", "is not JSON"),
            ("begins\n", "is not JSON"),
            ("{\"found\": 1}\nended\n", "other text after its first JSON document: ended"),
            ("{\"found\": 1}\nnext\n{\"found\": 2}", "other text after"),
            ("{\"found\": 1},\n{\"found\": 2}", "other text after its first JSON document: ,"),
            ("[1],\n[2]", "other text after its first JSON document: ,"),
            ("{\"found\": 1}\n{\"found\": 2", "is it cut off?"),
            ("begins\n{\n\"found\": [\n{\"a\": 1}\n", "is it cut off?"),
            ("{\n  \"found\": [\n    {\"a\": 1}\n  ]\n", "is it cut off?"),
            ("{\"found\": 1, \"found\": 2}", "is given twice"),
            (
                "begins\n{\"found\": 1}\n{\"found\": 1, \"found\": 2}",
                "document 2:1: the key `found` is given twice",
            ),
            (&deep_first, "document 1:1: nested"),
            (&deep_last, "document 2:1: nested"),
        ] {
            let why = documents(text).unwrap_err();
            assert!(why.contains(expected), "{text}: {why}");
        }
    }
}
