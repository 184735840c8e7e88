//! Keeping secrets out of every output.
//!
//! What counts as a secret is decided once, when a spec is resolved: values of headers, values under
//! names that speak of secrets, and values that look like tokens. From then on a [`Redactor`] takes
//! them out of messages, records and descriptions, as they are and as JSON escapes them.

use std::borrow::Cow;
use std::fmt;

use serde_json::{Map, Value};

/// What stands where a secret was.
pub(crate) const HIDDEN: &str = "[redacted]";

/// Shorter values are not hidden: they would tear holes into harmless text and hide nothing.
const SHORTEST: usize = 4;
/// Nor are the words of JSON itself: an answer without them could not be read.
const WORDS: [&str; 3] = ["true", "false", "null"];

/// Takes known secrets out of text.
#[derive(Clone, Default)]
pub struct Redactor {
    /// The longest first, so that a secret within another does not leave the rest of it.
    secrets: Vec<String>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({} secrets)", self.secrets.len())
    }
}

impl Redactor {
    /// Adds a secret, with the token alone of `Bearer TOKEN` and the like.
    pub(crate) fn add(&mut self, secret: &str) {
        self.add_one(secret);
        if let Some((_, token)) = secret.split_once(' ') {
            self.add_one(token.trim());
        }
    }

    fn add_one(&mut self, secret: &str) {
        if secret.len() < SHORTEST || WORDS.contains(&secret) {
            return;
        }
        let quoted = serde_json::to_string(secret).unwrap_or_default();
        let escaped = quoted.trim_matches('"');
        for form in [secret, escaped] {
            if !self.secrets.iter().any(|known| known == form) {
                self.secrets.push(form.to_owned());
            }
        }
        self.secrets.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    }

    /// Does not hide these values.
    pub(crate) fn keep(&mut self, values: &[String]) {
        self.secrets.retain(|secret| !values.contains(secret));
    }

    /// The text without the secrets.
    #[must_use]
    pub fn hide<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut hidden = Cow::Borrowed(text);
        for secret in &self.secrets {
            if hidden.contains(secret.as_str()) {
                hidden = Cow::Owned(hidden.replace(secret.as_str(), HIDDEN));
            }
        }
        hidden
    }

    /// As [`Redactor::hide`], for text that is owned already.
    #[must_use]
    pub fn hidden(&self, text: String) -> String {
        match self.hide(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(hidden) => hidden,
        }
    }

    /// Takes the secrets out of every text and key of a value, and a number that is one.
    pub fn hide_in(&self, value: &mut Value) {
        if self.secrets.is_empty() {
            return;
        }
        match value {
            Value::String(text) => {
                if let Cow::Owned(hidden) = self.hide(text) {
                    *text = hidden;
                }
            }
            Value::Number(number) => {
                let text = number.to_string();
                if self.secrets.contains(&text) {
                    *value = Value::String(HIDDEN.to_owned());
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.hide_in(item)),
            Value::Object(fields) => self.hide_in_fields(fields),
            Value::Bool(_) | Value::Null => {}
        }
    }

    /// As [`Redactor::hide_in`], for the fields of an object.
    pub fn hide_in_fields(&self, fields: &mut Map<String, Value>) {
        fields.values_mut().for_each(|field| self.hide_in(field));
        if fields.keys().any(|key| matches!(self.hide(key), Cow::Owned(_))) {
            let named = std::mem::take(fields).into_iter();
            *fields = named.map(|(key, field)| (self.hidden(key), field)).collect();
        }
    }
}

/// Whether a name (of a variable, a flag, a query parameter) speaks of a secret.
pub(crate) fn speaks_of_secrets(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let parts = ["token", "secret", "passw", "apikey", "auth", "credential", "bearer", "cookie"];
    let words = ["key", "pat", "pwd", "dsn", "sig", "signature"];
    let whole = ["database_url", "connection_string", "redis_url", "mongodb_uri"];
    parts.iter().any(|part| name.contains(part))
        || name.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| words.contains(&word))
        || whole.iter().any(|part| name.contains(part))
}

/// Whether a value looks like a token: long, without spaces and paths, letters and digits mixed.
pub(crate) fn looks_like_a_token(value: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '+' | '=');
    value.len() >= 20
        && value.chars().all(plain)
        && value.chars().any(|c| c.is_ascii_digit())
        && value.chars().any(|c| c.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_hidden_as_they_are_and_as_json() {
        let mut redactor = Redactor::default();
        redactor.add("Bearer abc\"def123");
        assert_eq!(redactor.hide("x abc\"def123 y"), "x [redacted] y");
        assert_eq!(redactor.hide(r#"{"a":"Bearer abc\"def123"}"#), r#"{"a":"[redacted]"}"#);
        assert!(matches!(redactor.hide("harmless"), Cow::Borrowed(_)));
        assert!(!format!("{redactor:?}").contains("abc"));
    }

    #[test]
    fn secrets_are_hidden_wherever_they_stand_in_a_value() {
        let mut redactor = Redactor::default();
        redactor.add("hush-hush");
        redactor.add("123456");
        redactor.add("true");
        let mut value = json!({"a": ["x hush-hush y", 123456, 1234567, true], "hush-hush": null});
        redactor.hide_in(&mut value);
        let expected =
            json!({"a": ["x [redacted] y", "[redacted]", 1234567, true], "[redacted]": null});
        assert_eq!(value, expected);
    }

    #[test]
    fn a_secret_within_a_secret_leaves_nothing() {
        let mut redactor = Redactor::default();
        redactor.add("tok1");
        redactor.add("tok1-and-more");
        assert_eq!(redactor.hide("tok1-and-more"), HIDDEN);
    }

    #[test]
    fn names_and_values_that_speak_of_secrets() {
        for name in ["GITHUB_TOKEN", "api-key", "OPENAI_API_KEY", "DB_PASSWORD", "Authorization"] {
            assert!(speaks_of_secrets(name), "{name}");
        }
        for name in ["HOME", "PORT", "KEYBOARD", "PATH", "monkey"] {
            assert!(!speaks_of_secrets(name), "{name}");
        }
        assert!(looks_like_a_token("ghp_16C7e42F292c6912E7710c838347Ae178B4a"));
        assert!(!looks_like_a_token("/home/someone/projects/number/42"));
        assert!(!looks_like_a_token("production"));
    }
}
