//! Texts with places to fill in: URLs, JSON bodies, tool arguments, header values.
//!
//! `{name}` is a place, `{{` and `}}` are plain braces. A place that nobody fills is an error of the
//! project, found before anything is asked. `${VAR}` comes from the environment, late, so that a
//! secret never stands in a project file. Nothing here goes through a shell.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// A text taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Place(String),
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// What is wrong with it, in words.
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
                return Err(wrong("a `}` has no `{`; write `}}` for a plain one"));
            }
            let end = rest.find('}').ok_or_else(|| wrong("a `{` has no `}`; write `{{`"))?;
            if rest[..end].trim().is_empty() {
                return Err(wrong("a place has no name"));
            }
            if !plain.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut plain)));
            }
            parts.push(Part::Place(rest[..end].trim().to_owned()));
            rest = &rest[end + 1..];
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        Ok(Template { parts })
    }

    /// The names of its places, in order.
    pub fn places(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Place(name) => Some(name.as_str()),
            Part::Text(_) => None,
        })
    }

    /// The text with each place filled by what `value` gives for its name.
    ///
    /// # Errors
    /// The first error that `value` gives.
    pub fn fill<E>(&self, mut value: impl FnMut(&str) -> Result<String, E>) -> Result<String, E> {
        let mut filled = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => filled.push_str(text),
                Part::Place(name) => filled.push_str(&value(name)?),
            }
        }
        Ok(filled)
    }
}

/// Fills the strings of a JSON template. A string that is one place alone becomes the value itself,
/// so that `"{limit}"` gives a number; elsewhere a place becomes text. Keys stay as they are.
///
/// # Errors
/// When a string is no template, or names a place that `values` does not have.
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
    if let [Part::Place(name)] = template.parts.as_slice() {
        return value(name).cloned();
    }
    template.fill(|name| value(name).map(plain)).map(Value::String)
}

/// The message for a place that nobody fills.
pub fn unknown(name: &str, values: &Map<String, Value>) -> String {
    let known: Vec<String> = values.keys().map(|key| format!("{{{key}}}")).collect();
    format!("there is nothing to fill {{{name}}} with; there are: {}", known.join(", "))
}

/// A value as text: a string without its quotes, anything else as JSON.
pub fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Text as a part of a URL: everything but unreserved characters as `%XX`.
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

/// Fills `${VAR}`, `${env:VAR}` and `${VAR:-default}` from the environment; `$$` is a plain dollar.
///
/// # Errors
/// When a variable is not set and has no default, or a `${` has no `}`.
pub fn from_environment(text: &str) -> Result<String, String> {
    from_variables(text, |name| std::env::var(name).ok())
}

/// The pure half of [`from_environment`].
///
/// # Errors
/// As there.
pub fn from_variables(
    text: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        filled.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            filled.push('$');
            rest = after;
            continue;
        }
        let Some(inside) = rest.strip_prefix('{') else {
            filled.push('$');
            continue;
        };
        let end = inside.find('}').ok_or("a `${` has no `}`")?;
        let content = inside[..end].trim();
        let content = content.strip_prefix("env:").unwrap_or(content);
        let (name, default) = match content.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (content, None),
        };
        match variable(name).filter(|value| !value.is_empty()).as_deref().or(default) {
            Some(value) => filled.push_str(value),
            None => return Err(format!("the environment variable {name} is not set")),
        }
        rest = &inside[end + 1..];
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn places_are_filled_and_doubled_braces_are_plain() {
        let template = Template::parse("a{{b}}/{ q }?n={limit}").unwrap();
        assert_eq!(template.places().collect::<Vec<_>>(), ["q", "limit"]);
        let filled = template.fill(|name| Ok::<_, ()>(format!("<{name}>")));
        assert_eq!(filled.unwrap(), "a{b}/<q>?n=<limit>");
        for wrong in ["{", "}", "{}", "a{b", "{ }"] {
            assert!(Template::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_place_alone_keeps_its_type() {
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
    fn what_would_change_a_url_is_encoded() {
        assert_eq!(percent_encoded("a b&c=d/é#"), "a%20b%26c%3Dd%2F%C3%A9%23");
    }

    #[test]
    fn variables_come_from_the_environment_or_a_default() {
        let variable = |name: &str| (name == "KEY").then(|| "s3cret".to_owned());
        let filled = from_variables("Bearer ${KEY} ${env:KEY} ${NO:-none} $$5 $x", variable);
        assert_eq!(filled.unwrap(), "Bearer s3cret s3cret none $5 $x");
        assert!(from_variables("${NO}", variable).unwrap_err().contains("NO is not set"));
        assert!(from_variables("${NO", variable).is_err());
    }
}
