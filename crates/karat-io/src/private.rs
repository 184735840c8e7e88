//! Secrets and personal data in any text: what must be neither recorded nor written into a suite.
//!
//! Unlike [`crate::redact`], which removes secrets that are known, this looks for what reads like one:
//! tokens, passwords after their names, e-mail addresses, telephone and card numbers. It is used where too
//! much hidden does less harm than too little.
//!
//! ```
//! use karat_io::private;
//!
//! assert_eq!(private::hide("", "mail ada@example.org today"), "mail [redacted] today");
//! assert!(!private::is_private("", "12 results"));
//! ```

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::redact::HIDDEN;
use crate::secrets;

/// E-mail addresses, telephone and card numbers, and tokens with a well-known prefix.
static PERSONAL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?x)
        [A-Za-z0-9._%+-]+@[A-Za-z0-9-]+\.[A-Za-z0-9.-]*[A-Za-z]
        | \+\d[\d\x20().-]{7,}\d
        | \b\d{4}[\x20-]\d{4}[\x20-]\d{4}[\x20-]\d{1,7}\b
        | \b\d{15,19}\b
        | \b\d{3}-\d{2}-\d{4}\b
        | \b[A-Z]{2}\d{2}(?:\x20?[A-Z0-9]{4}){3,7}(?:\x20?[A-Z0-9]{1,3})?\b
        | \b(?:sk|pk|rk|ghp|gho|ghs|ghu|github_pat|glpat|hf|npm|xox[a-z])[-_][A-Za-z0-9_-]{8,}
        | \b(?:AKIA|ASIA|AIza|eyJ)[A-Za-z0-9_.-]{12,}
        | -----BEGIN\x20[A-Z\x20]*PRIVATE\x20KEY-----[\s\S]*?(?:-----END[A-Z\x20]*-----|\z)
        ",
    )
    .ok()
});

/// A sign between a name and its value.
static SEPARATOR: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"[:=]|\bis\b").ok());
/// The value after it.
static VALUE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"^[\s"'`\\]*((?i:bearer |basic |token )?[^\s"'`,;\\]{4,})"#).ok()
});

/// The depth to which values are searched.
const MAX_DEPTH: usize = 128;

/// Returns whether a text holds something private, or what was left of it. `name` is the field that it is in.
#[must_use]
pub fn is_private(name: &str, text: &str) -> bool {
    text.contains(HIDDEN)
        || (secrets::is_secret_name(name) && !text.is_empty())
        || !found(name, text).is_empty()
}

/// The text without what is private in it.
#[must_use]
pub fn hide<'t>(name: &str, text: &'t str) -> Cow<'t, str> {
    let found = found(name, text);
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    let (mut hidden, mut done) = (String::new(), 0);
    for part in found {
        if part.start >= done {
            hidden.push_str(&text[done..part.start]);
            hidden.push_str(HIDDEN);
        }
        done = done.max(part.end);
    }
    hidden.push_str(&text[done..]);
    Cow::Owned(hidden)
}

/// Removes what is private from every text and key of a value.
pub fn hide_in(value: &mut Value) {
    hide_at("", value, MAX_DEPTH);
}

fn hide_at(name: &str, value: &mut Value, depth: usize) {
    let Some(depth) = depth.checked_sub(1) else {
        *value = Value::String(HIDDEN.to_owned());
        return;
    };
    match value {
        Value::String(text) => {
            // JSON in a text has its own names.
            if let Some(mut inner) = json_in(text) {
                let before = inner.clone();
                hide_at(name, &mut inner, depth);
                if inner != before {
                    *text = inner.to_string();
                }
                return;
            }
            if let Cow::Owned(hidden) = hide(name, text) {
                *text = hidden;
            }
        }
        Value::Number(number) => {
            let text = number.to_string();
            if !found(name, &text).is_empty() {
                *value = Value::String(HIDDEN.to_owned());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| hide_at(name, item, depth)),
        Value::Object(fields) => {
            fields.iter_mut().for_each(|(key, field)| hide_at(key, field, depth));
            if fields.keys().any(|key| !found("", key).is_empty()) {
                let named = std::mem::take(fields).into_iter();
                *fields = named.map(|(key, field)| (hide("", &key).into_owned(), field)).collect();
            }
        }
        Value::Bool(_) | Value::Null => {}
    }
}

/// The object or list that a text is.
fn json_in(text: &str) -> Option<Value> {
    let is_json = text.trim_start().starts_with(['{', '[']);
    is_json.then(|| serde_json::from_str(text).ok())?
}

/// The private parts of a text, in order.
fn found(name: &str, text: &str) -> Vec<Range<usize>> {
    let whole = 0..text.len();
    if text.is_empty() || text == HIDDEN {
        return Vec::new();
    }
    if secrets::is_secret_name(name) && secrets::is_hideable(text) {
        return vec![whole];
    }
    // A regular expression that does not compile must not let everything through.
    let Some(personal) = PERSONAL.as_ref() else { return vec![whole] };
    let mut found: Vec<Range<usize>> = personal.find_iter(text).map(|part| part.range()).collect();
    found.extend(secrets::in_urls(text));
    found.extend(tokens(text));
    found.extend(named_values(text));
    found.retain(|part| !part.is_empty() && text[part.clone()] != *HIDDEN);
    found.sort_by_key(|part| (part.start, std::cmp::Reverse(part.end)));
    found
}

/// Words that look like tokens, without what people put around them.
fn tokens(text: &str) -> Vec<Range<usize>> {
    let is_between = |c: char| c.is_whitespace() || "\"'`<>()[]{},;|=:/\\".contains(c);
    let mut found = Vec::new();
    let mut start = 0;
    for word in text.split(is_between) {
        let plain = word.trim_end_matches(['.', '!', '?']);
        if looks_random(plain) {
            found.push(start..start + plain.len());
        }
        start += word.len();
        start += text[start..].chars().next().map_or(0, char::len_utf8);
    }
    found
}

/// Returns whether a word is a token, and not one that is put together from words and numbers.
fn looks_random(word: &str) -> bool {
    let is_random = |part: &str| {
        let count = |is: fn(&char) -> bool| part.chars().filter(is).count();
        let (digits, letters) = (count(char::is_ascii_digit), count(char::is_ascii_alphabetic));
        part.len() >= 12 && digits >= 2 && letters >= 2
    };
    let parts = || word.split(['-', '_', '.']);
    let is_uuid = parts().map(str::len).eq([8, 4, 4, 4, 12]);
    secrets::looks_like_token(word) && !is_uuid && parts().any(is_random)
}

/// Values that follow the name of a secret, as in `password: hunter2`.
fn named_values(text: &str) -> Vec<Range<usize>> {
    let (Some(separator), Some(value)) = (SEPARATOR.as_ref(), VALUE.as_ref()) else {
        return std::iter::once(0..text.len()).collect();
    };
    let mut found = Vec::new();
    for sign in separator.find_iter(text) {
        let before = text[..sign.start()].trim_end_matches(['"', '\'', '`', '\\', ' ']);
        let is_name = |c: char| c.is_alphanumeric() || "_-".contains(c);
        let name = before.rsplit(|c| !is_name(c)).next().unwrap_or_default();
        if name.is_empty() || !secrets::is_secret_name(name) {
            continue;
        }
        let after = &text[sign.end()..];
        let Some(part) = value.captures(after).and_then(|found| found.get(1)) else { continue };
        // "the token is invalid" gives none away.
        let says = sign.as_str() == "is" && !part.as_str().contains(|c: char| c.is_ascii_digit());
        if !says && secrets::is_hideable(part.as_str()) {
            found.push(sign.end() + part.start()..sign.end() + part.end());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_and_people_are_found_anywhere_in_a_text() {
        for (text, hidden) in [
            ("mail ada.lovelace@example.org about it", "mail [redacted] about it"),
            ("call +49 30 1234 5678 today", "call [redacted] today"),
            ("card 4111 1111 1111 1111.", "card [redacted]."),
            ("use sk-proj-a8f3k2l9d0s7g6h5 for this", "use [redacted] for this"),
            ("see https://ada:hunter2@db.example/x", "see https://ada:[redacted]/x"),
            ("the password: correcthorse", "the password: [redacted]"),
            ("note: password=correcthorse, more", "note: password=[redacted], more"),
            ("Authorization: Bearer abcdefgh", "Authorization: [redacted]"),
            ("digest 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b!", "digest [redacted]!"),
            ("x/ghp_abcdefgh12345678/y", "x/[redacted]/y"),
            (r#"{"api_key":"abcd1234"}"#, r#"{"api_key":"[redacted]"}"#),
        ] {
            assert_eq!(hide("text", text), hidden);
            assert!(is_private("text", text) && is_private("text", hidden), "{text}");
        }
        assert!(is_private("api_key", "abcdef"));
    }

    #[test]
    fn plain_text_stays() {
        for text in [
            "12 results for error handling",
            "Europe/Berlin",
            "2026-01-15T10:00:00.000Z",
            "a: b",
            "the token is invalid",
            "/srv/data/monthly-report-2026-01.json",
            "123e4567-e89b-12d3-a456-426614174000",
            "list_directory_with_sizes",
            "task-management and disk_usage_report",
        ] {
            assert_eq!(hide("text", text), text);
        }
    }

    #[test]
    fn values_are_searched_whole() {
        let mut value = json!({
            "a": ["x sk-live-a8f3k2l9d0s7 y", 4_111_111_111_111_111_u64, 7],
            "password": "open sesame",
            "text": r#"{"token": "abcdef", "n": 1}"#,
            "ada@example.org": true,
        });
        hide_in(&mut value);
        assert_eq!(
            value,
            json!({
                "a": ["x [redacted] y", "[redacted]", 7],
                "password": "[redacted]",
                "text": r#"{"token":"[redacted]","n":1}"#,
                "[redacted]": true,
            })
        );
    }
}
