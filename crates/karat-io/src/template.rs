//! Texts with placeholders: URLs, JSON bodies, tool arguments.
//!
//! `{name}` is a placeholder; `{{` and `}}` are plain braces. An unknown placeholder is an error in the
//! configuration, found before the first request. Variables of the environment are another matter
//! ([`crate::interpolate`]).

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// A parsed template.
///
/// ```
/// use karat_io::template::Template;
///
/// let url = Template::parse("/search?q={query}&limit={limit}")?;
/// assert_eq!(url.placeholders().collect::<Vec<_>>(), ["query", "limit"]);
/// let filled = url.fill(|name| match name {
///     "limit" => Ok("5".to_owned()),
///     other => Err(format!("unknown placeholder {other}")),
/// });
/// assert_eq!(filled, Err("unknown placeholder query".to_owned()));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Placeholder(String),
}

impl Template {
    /// Parses a template.
    ///
    /// # Errors
    /// If braces do not match or a placeholder has no name.
    pub fn parse(text: &str) -> Result<Template, String> {
        let wrong = |what: &str| format!("{text:?} is not a template: {what}");
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            plain.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix(brace) {
                plain.push_str(brace);
                rest = after;
                continue;
            }
            if brace == "}" {
                return Err(wrong("`}` without `{`; write `}}` for a plain brace"));
            }
            let end = rest
                .find('}')
                .ok_or_else(|| wrong("`{` without `}`; write `{{` for a plain brace"))?;
            if rest[..end].trim().is_empty() {
                return Err(wrong("a placeholder has no name"));
            }
            if !plain.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut plain)));
            }
            parts.push(Part::Placeholder(rest[..end].trim().to_owned()));
            rest = &rest[end + 1..];
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        Ok(Template { parts })
    }

    /// The names of the placeholders, in order.
    pub fn placeholders(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Placeholder(name) => Some(name.as_str()),
            Part::Text(_) => None,
        })
    }

    /// Replaces each placeholder with what `value` returns for its name.
    ///
    /// # Errors
    /// The first error of `value`.
    pub fn fill<E>(&self, mut value: impl FnMut(&str) -> Result<String, E>) -> Result<String, E> {
        let mut filled = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => filled.push_str(text),
                Part::Placeholder(name) => filled.push_str(&value(name)?),
            }
        }
        Ok(filled)
    }
}

/// Replaces places such as `{port}` in a word of a command. Braces around anything else stay, since
/// the words of a command may have their own, and inserted values are not searched for places.
///
/// ```
/// use karat_io::template::fill_word;
///
/// let places = [("port", "80"), ("folder", "/tmp/{port}")];
/// assert_eq!(fill_word("{folder}:{port} {\"a\": {}}", &places), "/tmp/{port}:80 {\"a\": {}}");
/// ```
pub fn fill_word(word: &str, places: &[(&str, impl AsRef<str>)]) -> String {
    let mut filled = String::with_capacity(word.len());
    let mut rest = word;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let place = after.split_once('}').and_then(|(name, behind)| {
            let (_, value) = places.iter().find(|(place, _)| *place == name)?;
            Some((value.as_ref(), behind))
        });
        rest = match place {
            Some((value, behind)) => {
                filled.push_str(value);
                behind
            }
            None => {
                filled.push('{');
                after
            }
        };
    }
    filled.push_str(rest);
    filled
}

/// Fills the strings of a JSON template. A string that is a single placeholder becomes the value itself,
/// so `"{limit}"` becomes a number; elsewhere a placeholder becomes text. Keys are not changed.
///
/// # Errors
/// If a string is not a valid template, or names a placeholder that `values` does not have.
///
/// # Examples
///
/// ```
/// use karat_io::template::fill_json;
/// use serde_json::{Map, json};
///
/// let values = Map::from_iter([("query".to_owned(), json!("mail")), ("limit".to_owned(), json!(5))]);
/// let filled = fill_json(&json!({"text": "find {query}", "limit": "{limit}"}), &values)?;
/// assert_eq!(filled, json!({"text": "find mail", "limit": 5}));
/// # Ok::<(), String>(())
/// ```
pub fn fill_json(template: &Value, values: &Map<String, Value>) -> Result<Value, String> {
    match template {
        Value::String(text) => fill_string(text, values),
        Value::Array(items) => {
            items.iter().map(|item| fill_json(item, values)).collect::<Result<_, _>>()
        }
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| Ok((key.clone(), fill_json(value, values)?)))
            .collect::<Result<Map<_, _>, String>>()
            .map(Value::Object),
        other => Ok(other.clone()),
    }
}

fn fill_string(text: &str, values: &Map<String, Value>) -> Result<Value, String> {
    let template = Template::parse(text)?;
    let value = |name: &str| values.get(name).ok_or_else(|| unknown(name, values));
    if let [Part::Placeholder(name)] = template.parts.as_slice() {
        return value(name).cloned();
    }
    template.fill(|name| value(name).map(plain)).map(Value::String)
}

/// The message for an unknown placeholder.
pub fn unknown(name: &str, values: &Map<String, Value>) -> String {
    let known: Vec<String> = values.keys().map(|key| format!("{{{key}}}")).collect();
    format!("unknown placeholder {{{name}}}; expected one of {}", known.join(", "))
}

/// A value as text: a string without its quotes, anything else as JSON.
pub fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Text as part of a URL, with everything but unreserved characters as `%XX`.
pub fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// Text with `%XX` replaced by the byte, or unchanged if the bytes are not UTF-8.
///
/// ```
/// use karat_io::template::percent_decoded;
///
/// assert_eq!(percent_decoded("a%20b%C3%A9"), "a b\u{e9}");
/// assert_eq!(percent_decoded("100 % of %ff"), "100 % of %ff");
/// ```
#[must_use]
pub fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| byte == b'%');
        let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(code) => {
                bytes.push(code);
                rest = &after[2..];
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn placeholders_are_filled_and_doubled_braces_are_plain() {
        let template = Template::parse("a{{b}}/{ q }?n={limit}").unwrap();
        assert_eq!(template.placeholders().collect::<Vec<_>>(), ["q", "limit"]);
        let filled = template.fill(|name| Ok::<_, ()>(format!("<{name}>")));
        assert_eq!(filled.unwrap(), "a{b}/<q>?n=<limit>");
        for wrong in ["{", "}", "{}", "a{b", "{ }"] {
            assert!(Template::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_single_placeholder_keeps_its_type() {
        let Value::Object(values) = json!({"query": "a \"b\"", "limit": 5}) else { panic!() };
        let template =
            json!({"q": "{query}", "n": "{limit}", "s": "top {limit}", "list": [1, "{limit}"]});
        assert_eq!(
            fill_json(&template, &values).unwrap(),
            json!({"q": "a \"b\"", "n": 5, "s": "top 5", "list": [1, 5]})
        );
        let error = fill_json(&json!("{nothing}"), &values).unwrap_err();
        assert!(error.contains("{nothing}") && error.contains("{query}, {limit}"), "{error}");
    }

    #[test]
    fn reserved_characters_are_percent_encoded() {
        assert_eq!(percent_encoded("a b&c=d/é#"), "a%20b%26c%3Dd%2F%C3%A9%23");
    }
}
