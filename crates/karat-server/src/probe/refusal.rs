//! Recognizes a refusal that is written as a plain result, without `isError`.
//!
//! The wording never proves an attack and never excuses a fault. It only tells "accepted" apart from
//! "refused, but not marked as an error". To keep ordinary answers out, the refusal must come first.

use serde_json::Value;

/// Openings of a refusal, in lower case and without punctuation before them.
const OPENINGS: &[&str] = &[
    "access denied",
    "an error occurred",
    "authentication required",
    "bad request",
    "can not ",
    "can't ",
    "cannot ",
    "command not allowed",
    "could not ",
    "couldn't ",
    "denied",
    "error",
    "exception",
    "failed",
    "failure",
    "forbidden",
    "i can't ",
    "i cannot ",
    "i'm not able",
    "i'm sorry",
    "illegal ",
    "input validation",
    "invalid",
    "it is not allowed",
    "mcp error",
    "missing ",
    "must be ",
    "must not ",
    "no permission",
    "no such ",
    "not allowed",
    "not found",
    "not permitted",
    "operation not permitted",
    "permission denied",
    "please provide",
    "refused",
    "rejected",
    "request denied",
    "request rejected",
    "security ",
    "sorry",
    "unable to",
    "unauthorized",
    "unexpected ",
    "unknown ",
    "unrecognized ",
    "unsupported",
    "validation error",
    "validation failed",
    "violation",
];
/// The words at the start of a text in which a clear refusal may follow, such as "Path /x is not allowed".
const HEAD_CHARS: usize = 200;
/// The characters of a word that are read, and of a text.
const WORD_CHARS: usize = 60;
const MAX_READ_CHARS: usize = 1 << 20;
const IN_HEAD: &[&str] = &[
    " access denied",
    " cannot be ",
    " does not exist",
    " is denied",
    " is forbidden",
    " is invalid",
    " is not a valid",
    " is not allowed",
    " is not permitted",
    " is not valid",
    " is outside of ",
    " is required",
    " must be ",
    " not allowed",
    " not found",
    " not permitted",
    " permission denied",
    "invalid arguments",
    "validation error",
];

/// Returns whether the answer to a call reads as a refusal.
pub(crate) fn is_refusal(result: &Value, text: &str) -> bool {
    if result.get("structuredContent").is_some_and(says_error) {
        return true;
    }
    // The names of fields do not count as wording: `{"errors": []}` opens with "errors" and refuses nothing.
    match serde_json::from_str::<Value>(text.trim()) {
        Ok(value @ Value::Object(_)) => says_error(&value),
        _ => reads_as_refusal(text),
    }
}

/// Returns whether an object says at its top that something failed.
fn says_error(value: &Value) -> bool {
    let is_false = |key: &str| value.get(key) == Some(&Value::Bool(false));
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
    let has_error =
        ["error", "errors"].iter().filter_map(|key| value.get(key)).any(|error| match error {
            Value::Null | Value::Bool(false) => false,
            Value::String(text) => !text.is_empty(),
            Value::Array(list) => !list.is_empty(),
            _ => true,
        });
    has_error
        || is_false("success")
        || is_false("ok")
        || ["error", "failed", "failure", "denied"].contains(&text("status"))
        || value.get("result").and_then(Value::as_str).is_some_and(reads_as_refusal)
}

fn reads_as_refusal(text: &str) -> bool {
    let head = head(text).to_lowercase();
    let head = head.replace('\u{2019}', "'");
    let start = head.trim_start_matches(|c: char| !c.is_alphanumeric());
    OPENINGS.iter().any(|opening| start.starts_with(opening))
        || names_an_error(start)
        || IN_HEAD.iter().any(|phrase| start.contains(phrase))
}

/// The start of a text, with at most so much of each word: a refusal often repeats a long argument before it says
/// what is wrong with it.
fn head(text: &str) -> String {
    let mut in_word = 0;
    let is_kept = |c: &char| {
        in_word = if c.is_whitespace() { 0 } else { in_word + 1 };
        in_word <= WORD_CHARS
    };
    text.chars().take(MAX_READ_CHARS).filter(is_kept).take(HEAD_CHARS).collect()
}

/// Returns whether a text begins as "Database error: …" does.
fn names_an_error(text: &str) -> bool {
    let Some((title, _)) = text.split_once(':') else { return false };
    let words: Vec<&str> = title.split_whitespace().collect();
    let is_title =
        words.len() <= 3 && words.iter().all(|word| word.chars().all(char::is_alphabetic));
    let last = words.last().is_some_and(|word| ["error", "failed", "exception"].contains(word));
    is_title && last
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn refusals_are_recognized_in_every_form() {
        for text in [
            "Error occurred: Invalid arguments for tool split_tasks",
            "❌ Failed to read the file",
            "**Error:** the path is missing",
            "Security violation: Path '/etc/passwd' is outside of allowed directory",
            "I can\u{2019}t help with that",
            "Path /x is not allowed",
            "Database error: IO Error: Cannot open file",
            r#"{"success": false, "message": "no"}"#,
            r#"{"error": "no such user"}"#,
        ] {
            assert!(is_refusal(&json!({}), text), "{text}");
        }
        let structured = json!({"structuredContent": {"result": "Error: no such file"}});
        assert!(is_refusal(&structured, ""));
    }

    #[test]
    fn ordinary_answers_are_not_refusals() {
        for text in [
            "",
            "7",
            "42 results for error handling",
            "Notes on an error: it is fixed",
            "Status: error rate 0",
            r#"{"errors": [], "error": null, "items": []}"#,
            r#"{"success": true}"#,
            "The weather in Bern is fine",
        ] {
            assert!(!is_refusal(&json!({}), text), "{text}");
        }
    }

    #[test]
    fn a_long_argument_does_not_hide_the_refusal_behind_it() {
        let long = "a".repeat(65_000);
        let said = format!("Document {long}.docx does not exist");
        assert!(is_refusal(&json!({}), &said));
        let said = format!("Read {long} and found nothing that is wrong");
        assert!(!is_refusal(&json!({}), &said));
    }
}
