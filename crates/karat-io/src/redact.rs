//! Keeping secrets out of every output.
//!
//! Secrets are recognized once, when a configuration is resolved ([`crate::secrets`]). From then on a
//! [`Redactor`] removes them from messages, recordings and descriptions: as they are, in other case, as JSON
//! and URLs escape them, in base64 (also within a longer text, as in `Basic`), and in hex. A short secret is
//! removed only where it is a word of its own.
//!
//! ```
//! use karat_io::redact::Redactor;
//!
//! let mut redactor = Redactor::default();
//! redactor.add("Bearer abc123def456");
//! assert_eq!(redactor.hide("sent abc123def456"), "sent [redacted]");
//! ```

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::sync::{Arc, PoisonError, RwLock};

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use serde_json::{Map, Value};

use crate::interpolate::Used;
use crate::secrets;
use crate::template::percent_encoded;
use crate::text::{hex, json_string_end, printable};

/// The text in place of a secret.
pub const HIDDEN: &str = "[redacted]";

/// Shorter secrets are hidden only where they are not part of a longer word.
const WHOLE_WORD_BELOW: usize = 8;

/// Longer secrets are hidden in pieces of this size: the time to prepare for one grows with its square.
const PIECE_BYTES: usize = 512;

/// The shortest secret whose encodings are looked for, and the shortest encoding.
const ENCODED_FROM: usize = 6;
const MIN_ENCODED: usize = 8;

/// Removes known secrets from text.
#[derive(Clone, Default)]
pub struct Redactor {
    /// The longest first, so that a secret within another does not leave the rest of it.
    secrets: Vec<Form>,
    /// Finds those that are hidden anywhere.
    finder: Option<Finder>,
    /// Those that become known later.
    late: Option<LateSecrets>,
}

/// Secrets that become known during a run, such as tokens. Clones share them, and so does every
/// [`Redactor`] that follows them.
///
/// ```
/// use karat_io::redact::{LateSecrets, Redactor};
///
/// let late = LateSecrets::default();
/// let mut redactor = Redactor::default();
/// redactor.follow(&late);
/// late.add("abc123def456");
/// assert_eq!(redactor.hide("got abc123def456"), "got [redacted]");
/// ```
#[derive(Clone, Debug, Default)]
pub struct LateSecrets(Arc<RwLock<Redactor>>);

impl LateSecrets {
    /// Adds a secret, as [`Redactor::add`].
    pub fn add(&self, secret: &str) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).add(secret);
    }

    fn is_empty(&self) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    fn hide<'t>(&self, text: Cow<'t, str>) -> Cow<'t, str> {
        let late = self.0.read().unwrap_or_else(PoisonError::into_inner);
        match text {
            Cow::Borrowed(text) => late.hide(text),
            Cow::Owned(text) => Cow::Owned(late.hidden(text)),
        }
    }
}

/// One way to write a secret.
#[derive(Clone, PartialEq, Eq)]
struct Form {
    secret: String,
    text: String,
    /// True if it is the middle of a longer encoded text, which is hidden whole.
    in_base64: bool,
}

/// All forms that are hidden anywhere, in any case.
#[derive(Clone)]
struct Finder {
    automaton: AhoCorasick,
    in_base64: Vec<bool>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({} secrets)", self.secrets.len())
    }
}

impl Redactor {
    /// Adds a secret and the secrets within it: the token of `Bearer TOKEN`, the password of a URL.
    /// Values that cannot be hidden without harm ([`secrets::is_hideable`]) are not added.
    pub fn add(&mut self, secret: &str) {
        self.add_one(secret);
        if let Some(token) = secrets::after_auth_scheme(secret) {
            self.add_one(token);
        }
        for part in secrets::in_urls(secret) {
            self.add_one(&secret[part]);
        }
    }

    /// Hides these secrets too, from the moment that they become known.
    pub fn follow(&mut self, late: &LateSecrets) {
        self.late = Some(late.clone());
    }

    fn is_empty(&self) -> bool {
        self.secrets.is_empty() && self.late.as_ref().is_none_or(LateSecrets::is_empty)
    }

    /// Adds a value that was inserted for a variable, if it is a secret.
    pub fn add_used(&mut self, used: &Used) {
        let Used { name, value, from_variable } = used;
        let is_variable = *from_variable && secrets::is_secret_variable(name, value);
        if is_variable || secrets::is_secret(name, value) {
            self.add(value);
        }
    }

    fn add_one(&mut self, secret: &str) {
        if !secrets::is_hideable(secret) {
            return;
        }
        for form in pieces(secret).into_iter().flat_map(forms) {
            if self.secrets.iter().all(|known| known.text != form.text) {
                self.secrets.push(form);
            }
        }
        self.secrets
            .sort_by(|a, b| b.text.len().cmp(&a.text.len()).then_with(|| a.text.cmp(&b.text)));
        self.find_forms();
    }

    fn find_forms(&mut self) {
        let anywhere: Vec<&Form> =
            self.secrets.iter().filter(|form| form.text.len() >= WHOLE_WORD_BELOW).collect();
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .ascii_case_insensitive(true)
            .build(anywhere.iter().map(|form| &form.text));
        let in_base64 = anywhere.iter().map(|form| form.in_base64).collect();
        self.finder = automaton.ok().map(|automaton| Finder { automaton, in_base64 });
    }

    /// Stops hiding these values.
    pub fn keep(&mut self, values: &[String]) {
        if values.is_empty() {
            return;
        }
        self.secrets.retain(|form| !values.contains(&form.secret) && !values.contains(&form.text));
        self.find_forms();
    }

    /// The text without the secrets.
    #[must_use]
    pub fn hide<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut hidden = Cow::Borrowed(text);
        if let Some(rest) = self.finder.as_ref().and_then(|finder| finder.without(text)) {
            hidden = Cow::Owned(rest);
        }
        for form in self.secrets.iter().filter(|form| form.text.len() < WHOLE_WORD_BELOW) {
            if let Some(rest) = without_word(&hidden, &form.text) {
                hidden = Cow::Owned(rest);
            }
        }
        match &self.late {
            Some(late) => late.hide(hidden),
            None => hidden,
        }
    }

    /// As [`Redactor::hide`], for an owned text.
    #[must_use]
    pub fn hidden(&self, text: String) -> String {
        match self.hide(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(hidden) => hidden,
        }
    }

    /// JSON text without the secrets, otherwise unchanged to the byte. Secrets are looked for in strings
    /// after unescaping, but not in keys and numbers, so that the result can be read like the original.
    pub fn hide_in_json<'t>(&self, json: &'t str) -> Cow<'t, str> {
        if self.is_empty() {
            return Cow::Borrowed(json);
        }
        let bytes = json.as_bytes();
        let mut replaced = Replaced::of(json);
        let mut at = 0;
        while let Some(step) = memchr::memchr(b'"', &bytes[at..]) {
            let start = at + step;
            let Some(end) = json_string_end(bytes, start) else { break };
            at = end;
            let is_key = bytes[end..].trim_ascii_start().starts_with(b":");
            if let Some(text) = json.get(start + 1..end - 1)
                && !is_key
                && let Some(rest) = self.hide_in_literal(text)
            {
                replaced.replace(start, end, &rest);
            }
        }
        replaced.finish().map_or(Cow::Borrowed(json), Cow::Owned)
    }

    /// The inside of a JSON string as a new literal, if it holds a secret.
    fn hide_in_literal(&self, inner: &str) -> Option<String> {
        let read = if inner.contains('\\') {
            serde_json::from_str::<String>(&format!("\"{inner}\""))
                .map_or(Cow::Borrowed(inner), Cow::Owned)
        } else {
            Cow::Borrowed(inner)
        };
        match self.hide(&read) {
            Cow::Borrowed(_) => None,
            Cow::Owned(hidden) => serde_json::to_string(&hidden).ok(),
        }
    }

    /// Removes the secrets from every string and key of a value, and numbers that are secrets.
    pub fn hide_in(&self, value: &mut Value) {
        if self.is_empty() {
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
                if self.secrets.iter().any(|form| form.text == text) {
                    *value = Value::String(HIDDEN.to_owned());
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.hide_in(item)),
            Value::Object(fields) => self.hide_in_fields(fields),
            Value::Bool(_) | Value::Null => {}
        }
    }

    /// True if a value shows the mark of a removed secret.
    #[must_use]
    pub fn has_hidden_in(&self, value: &Value) -> bool {
        !self.is_empty() && shows_hidden(value)
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

/// Replaces parts of a string, from front to back.
struct Replaced<'t> {
    text: &'t str,
    /// The new text as far as the old one is `done`.
    new: String,
    done: usize,
}

impl<'t> Replaced<'t> {
    fn of(text: &'t str) -> Replaced<'t> {
        Replaced { text, new: String::new(), done: 0 }
    }

    fn replace(&mut self, start: usize, end: usize, with: &str) {
        self.new.push_str(&self.text[self.done..start]);
        self.new.push_str(with);
        self.done = end;
    }

    /// The new text, if a part was replaced.
    fn finish(mut self) -> Option<String> {
        if self.done == 0 {
            return None;
        }
        self.new.push_str(&self.text[self.done..]);
        Some(self.new)
    }
}

impl Finder {
    /// The text with the secrets hidden, if there are any.
    fn without(&self, text: &str) -> Option<String> {
        let is_encoded = |c: &char| c.is_ascii_alphanumeric() || "+/-_=".contains(*c);
        let mut replaced = Replaced::of(text);
        for found in self.automaton.find_iter(text) {
            let (mut start, mut end, done) = (found.start(), found.end(), replaced.done);
            if end <= done {
                continue;
            }
            if self.in_base64[found.pattern().as_usize()] {
                start -= text[done.min(start)..start].chars().rev().take_while(is_encoded).count();
                end += text[end..].chars().take_while(is_encoded).count();
            }
            replaced.replace(start.max(done), end, HIDDEN);
        }
        replaced.finish()
    }
}

fn shows_hidden(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(HIDDEN),
        Value::Array(items) => items.iter().any(shows_hidden),
        Value::Object(fields) => {
            fields.iter().any(|(key, field)| key.contains(HIDDEN) || shows_hidden(field))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The text with the secret hidden, if it is there as a whole word.
fn without_word(text: &str, secret: &str) -> Option<String> {
    let mut replaced = Replaced::of(text);
    for (at, _) in text.match_indices(secret) {
        let end = at + secret.len();
        if is_whole_word(text, at, end) {
            replaced.replace(at, end, HIDDEN);
        }
    }
    replaced.finish()
}

fn is_whole_word(text: &str, start: usize, end: usize) -> bool {
    let before = text[..start].chars().next_back();
    let after = text[end..].chars().next();
    !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
}

/// A long secret in pieces of about the same length, so that none is too short to be hidden. Their length is
/// a multiple of three bytes where characters allow it: then their base64 forms meet without a gap.
fn pieces(secret: &str) -> Vec<&str> {
    let size = secret.len().div_ceil(secret.len().div_ceil(PIECE_BYTES).max(1)).next_multiple_of(3);
    let mut pieces = Vec::new();
    let mut rest = secret;
    while rest.len() > size {
        let end = (1..=size).rev().find(|end| rest.is_char_boundary(*end));
        let (piece, behind) = rest.split_at(end.unwrap_or(rest.len()));
        // A secret that repeats itself has few different ones.
        if !pieces.contains(&piece) {
            pieces.push(piece);
        }
        rest = behind;
    }
    pieces.push(rest);
    pieces
}

/// A secret as it is, and as JSON inside a text may have it: with the necessary escapes, and as the
/// encoders of Python (ASCII only), PHP (slashes escaped too) and Go (HTML characters escaped) write it.
fn forms(secret: &str) -> Vec<Form> {
    let quoted = serde_json::to_string(secret).unwrap_or_default();
    let inner = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let json = inner.unwrap_or(secret);
    let mut ascii = String::new();
    for c in json.chars() {
        if c.is_ascii() {
            ascii.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(ascii, "\\u{unit:04x}");
        }
    }
    let php = ascii.replace('/', "\\/");
    let mut go = json.to_owned();
    for c in ['&', '<', '>'] {
        go = go.replace(c, &format!("\\u{:04x}", u32::from(c)));
    }
    // As messages quote it, with invisible characters escaped.
    let debug = format!("{secret:?}");
    let debug = debug.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let debug = debug.unwrap_or(secret).to_owned();
    let shown = printable(secret).into_owned();
    let mut forms = vec![secret.to_owned(), json.to_owned(), ascii, php, go, debug, shown];
    let mut in_base64 = Vec::new();
    if secret.len() >= ENCODED_FROM {
        forms.push(percent_encoded(secret));
        // As forms of HTML pages write it.
        forms.push(percent_encoded(secret).replace("%20", "+"));
        forms.push(hex(secret.as_bytes()));
        in_base64 = encoded_middles(secret);
    }
    let plain = forms.into_iter().map(|text| (text, false));
    plain
        .chain(in_base64.into_iter().map(|text| (text, true)))
        .map(|(text, in_base64)| Form { secret: secret.to_owned(), text, in_base64 })
        .collect()
}

/// The parts of base64 that depend on the secret alone, wherever in a text it begins: three bytes become
/// four characters, so there are three ways to begin.
fn encoded_middles(secret: &str) -> Vec<String> {
    let mut found = Vec::new();
    for before in 0..3 {
        let mut bytes = vec![0; before];
        bytes.extend(secret.bytes());
        let (from, to) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
        for encoded in [STANDARD.encode(&bytes), URL_SAFE.encode(&bytes)] {
            found.extend(encoded.get(from..to).map(str::to_owned));
        }
    }
    found.retain(|form| form.len() >= MIN_ENCODED);
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_secrets_are_hidden_whole() {
        for secret in ["x".repeat(20_000), "aB3$".repeat(1_000) + "tail", "ä0".repeat(700)] {
            let mut redactor = Redactor::default();
            redactor.add(&secret);
            for text in [format!("a {secret} b"), format!("a {} b", STANDARD.encode(&secret))] {
                let hidden = redactor.hide(&text);
                let left = hidden.replace(HIDDEN, "");
                assert!(left.starts_with("a ") && left.ends_with(" b"), "{left}");
                assert!(left.len() < 16, "{left}");
            }
        }
    }

    #[test]
    fn secrets_with_invisible_characters_are_hidden_as_messages_show_them() {
        for secret in ["zero\u{200b}width-1", "delete\u{7f}-sign-2", "two\nlines-3"] {
            let mut redactor = Redactor::default();
            redactor.add(secret);
            for shown in [format!("{secret:?}"), format!("\"{}\"", printable(secret))] {
                assert_eq!(redactor.hide(&shown), "\"[redacted]\"", "{shown}");
            }
        }
    }

    #[test]
    fn secrets_that_become_known_later_are_hidden_from_then_on() {
        let late = LateSecrets::default();
        let mut redactor = Redactor::default();
        redactor.follow(&late);
        let copy = redactor.clone();
        assert_eq!(redactor.hide_in_json(r#"{"a": "token-abc-123"}"#), r#"{"a": "token-abc-123"}"#);
        late.add("token-abc-123");
        for redactor in [&redactor, &copy] {
            assert_eq!(redactor.hide("a token-abc-123"), "a [redacted]");
            assert_eq!(
                redactor.hide_in_json(r#"{"a": "token-abc-123"}"#),
                r#"{"a": "[redacted]"}"#
            );
            let mut value = serde_json::json!({"a": ["token-abc-123"]});
            redactor.hide_in(&mut value);
            assert!(redactor.has_hidden_in(&value));
        }
    }

    #[test]
    fn secrets_are_hidden_plain_and_as_json() {
        let mut redactor = Redactor::default();
        redactor.add("Bearer abc\"def123");
        assert_eq!(redactor.hide("x abc\"def123 y"), "x [redacted] y");
        assert_eq!(redactor.hide(r#"{"a":"Bearer abc\"def123"}"#), r#"{"a":"[redacted]"}"#);
        assert!(matches!(redactor.hide("harmless"), Cow::Borrowed(_)));
        assert!(!format!("{redactor:?}").contains("abc"));
    }

    #[test]
    fn secrets_are_hidden_in_strings_numbers_and_keys() {
        let mut redactor = Redactor::default();
        redactor.add("hush-hush");
        redactor.add("123456");
        redactor.add("true");
        let mut value = json!({"a": ["x hush-hush y", 123456, 1234567, true], "hush-hush": null});
        redactor.hide_in(&mut value);
        let expected =
            json!({"a": ["x [redacted] y", "[redacted]", 1234567, true], "[redacted]": null});
        assert_eq!(value, expected);
        assert!(redactor.has_hidden_in(&value) && !redactor.has_hidden_in(&json!(["plain", 1])));
    }

    #[test]
    fn a_secret_within_a_secret_leaves_nothing() {
        let mut redactor = Redactor::default();
        redactor.add("tok1");
        redactor.add("tok1-and-more");
        assert_eq!(redactor.hide("tok1-and-more"), HIDDEN);
    }

    #[test]
    fn secrets_are_found_in_json_however_it_escapes_them() {
        let mut redactor = Redactor::default();
        redactor.add("abc/def&ghi");
        redactor.add("pässwörd-1");
        for json in [
            r#"{"a":"x abc/def&ghi"}"#,
            r#"{"a":"x abc\/def&ghi"}"#,
            r#"{"a":"x abc/def\u0026ghi"}"#,
            r#"{"a":"x p\u00e4ssw\u00f6rd-1"}"#,
            r#"{"a":"x p\u00E4sswörd-1"}"#,
        ] {
            assert_eq!(redactor.hide_in_json(json), r#"{"a":"x [redacted]"}"#, "{json}");
        }
        // A text that holds JSON itself.
        let nested = r#"{"text":"{\"t\": \"abc\\/def&ghi p\\u00e4ssw\\u00f6rd-1\"}"}"#;
        let expected = r#"{"text":"{\"t\": \"[redacted] [redacted]\"}"}"#;
        assert_eq!(redactor.hide_in_json(nested), expected);
    }

    #[test]
    fn secrets_are_found_in_other_encodings() {
        let mut redactor = Redactor::default();
        redactor.add("S3cret/Tok en+9");
        for (text, expected) in [
            ("got s3CRET/tok EN+9", "got [redacted]"),
            ("?t=S3cret%2FTok%20en%2B9&x=1", "?t=[redacted]&x=1"),
            ("?t=S3cret%2fTok+en%2b9", "?t=[redacted]"),
            // base64 of the secret, and of user:secret with one to three letters of user.
            ("UzNjcmV0L1RvayBlbis5", "[redacted]"),
            ("Basic dTpTM2NyZXQvVG9rIGVuKzk=", "Basic [redacted]"),
            ("Basic dXM6UzNjcmV0L1RvayBlbis5", "Basic [redacted]"),
            ("Basic dXNlOlMzY3JldC9Ub2sgZW4rOQ==.", "Basic [redacted]."),
            ("hex 5333637265742F546F6B20656E2B39", "hex [redacted]"),
            ("secret token", "secret token"),
        ] {
            assert_eq!(redactor.hide(text), expected, "{text}");
        }
        // A value that is kept is kept in all its forms.
        redactor.keep(&["S3cret/Tok en+9".to_owned()]);
        assert_eq!(redactor.hide("UzNjcmV0L1RvayBlbis5"), "UzNjcmV0L1RvayBlbis5");
    }

    #[test]
    fn only_strings_of_json_are_changed() {
        let mut redactor = Redactor::default();
        for harmless in ["true", "text", "4096", "no"] {
            redactor.add(harmless);
        }
        redactor.add("123456");
        redactor.add("hush-hush");
        let json = r#"{ "listChanged": true, "n": [14096, 123456, 1.0], "type": "text", "hush-hush" : "a" }"#;
        assert!(matches!(redactor.hide_in_json(json), Cow::Borrowed(_)));
        assert_eq!(
            redactor.hide_in_json(r#"["9123456", "no 123456."]"#),
            r#"["9123456", "no [redacted]."]"#
        );
    }

    #[test]
    fn a_secret_that_ends_with_a_quote_is_hidden_whole() {
        let mut redactor = Redactor::default();
        redactor.add("hunter22\"");
        assert_eq!(redactor.hide(r#"x hunter22\" y"#), "x [redacted] y");
    }

    #[test]
    fn the_password_of_a_url_is_hidden_on_its_own_too() {
        let mut redactor = Redactor::default();
        redactor.add("pg://u:hunter22@h/db");
        assert_eq!(
            redactor.hide("no hunter22 at pg://u:hunter22@h/db"),
            "no [redacted] at [redacted]"
        );
    }
}
