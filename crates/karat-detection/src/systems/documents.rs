//! The JSON documents in the output of a scanner: one, or several such as JSON Lines, perhaps after lines of log.

use std::path::Path;

use karat_io::input::{self, Format};
use serde_json::Value;

/// A document, and whether other text is before it.
struct Found {
    value: Value,
    is_after_text: bool,
}

/// The documents of an output. Those before the first one with results may be a log; all that follow it are results, so
/// that none is lost.
///
/// # Errors
/// If there is none, or something else follows the first one with results.
pub(super) fn documents(
    text: &str,
    has_results: impl Fn(&Value) -> bool,
) -> Result<Vec<Value>, String> {
    let whole = input::parse::<Value>(Path::new("output"), text, Format::Json);
    let Err(error) = whole else { return Ok(whole.into_iter().collect()) };
    let error = format!("is not JSON: {error}");
    let (mut found, rest) = scan(text);
    let Some(first) = found.iter().position(|one| has_results(&one.value)) else {
        // The last one may say why there are no results.
        let last = found.pop().filter(|_| rest.is_empty());
        return last.map(|one| vec![one.value]).ok_or(error);
    };
    let results = found.split_off(first);
    let between = results.iter().skip(1).any(|one| one.is_after_text);
    if between || !rest.is_empty() {
        let place = if between { "between" } else { "after" };
        return Err(format!("has other text {place} its JSON documents"));
    }
    Ok(results.into_iter().map(|one| one.value).collect())
}

/// The documents that begin a line or follow another one, and the text after the last one.
fn scan(text: &str) -> (Vec<Found>, &str) {
    let mut found = Vec::new();
    let (mut rest, mut is_after_text) = (text.trim_start(), false);
    while !rest.is_empty() {
        if let Some((value, behind)) = document(rest) {
            found.push(Found { value, is_after_text });
            (rest, is_after_text) = (behind, false);
            continue;
        }
        is_after_text = true;
        let next = rest.split_once('\n').map(|(_, next)| next.trim_start());
        match next {
            Some(next) if !next.is_empty() => rest = next,
            _ => break,
        }
    }
    let rest = if is_after_text { rest } else { "" };
    (found, rest)
}

/// The document at the beginning, if the line ends behind it or another one follows.
fn document(text: &str) -> Option<(Value, &str)> {
    if !text.starts_with(['{', '[']) {
        return None;
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let value = values.next()?.ok()?;
    let behind = text.get(values.byte_offset()..)?;
    let line = behind.trim_start_matches([' ', '\t', '\r']);
    (line.is_empty() || line.starts_with(['\n', '{', '['])).then(|| (value, behind.trim_start()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Result<Vec<Value>, String> {
        documents(text, |value| value.get("found").is_some())
    }

    #[test]
    fn every_document_is_read_and_a_log_before_them_is_not() {
        let one = |number: u8| json!({"found": number});
        for (text, expected) in [
            ("{\"found\": 1}", vec![one(1)]),
            ("{\"found\": 1}\n\n{\"found\": 2}\r\n{\"found\":\n3}\n", vec![one(1), one(2), one(3)]),
            ("{\"found\": 1} {\"found\": 2}", vec![one(1), one(2)]),
            ("[INFO] begins\n[1] of 2\n{ no\n{\"found\": 1}\n{\"found\": 2}", vec![one(1), one(2)]),
            ("{\"level\": \"info\"}\nbegins\n  {\"found\": 1}\n", vec![one(1)]),
            // Not a log: the scanner said something else afterwards.
            ("{\"found\": 1}\n{\"error\": 1}", vec![one(1), json!({"error": 1})]),
            // The last word of a scanner without results.
            ("{\"level\": 1}\n{\"error\": 1}", vec![json!({"error": 1})]),
        ] {
            assert_eq!(read(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn other_text_after_the_first_results_is_refused() {
        for (text, expected) in [
            ("", "is not JSON"),
            ("begins\n", "is not JSON"),
            ("{\"level\": 1}\nended\n", "is not JSON"),
            ("{\"found\": 1}\nended\n", "other text after"),
            ("{\"found\": 1}\nnext\n{\"found\": 2}", "other text between"),
            ("{\"found\": 1}\n{\"found\": 2", "other text after"),
            ("{\"found\": 1} and", "is not JSON"),
        ] {
            let why = read(text).unwrap_err();
            assert!(why.contains(expected), "{text}: {why}");
        }
    }
}
