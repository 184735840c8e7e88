//! Values that one call leaves for a later one.
//!
//! `${name}` inside a string is replaced by the text of the value; a string that is nothing but
//! `${name}` becomes the value itself, so that a number stays a number. `$${` stands for `${`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// What has been kept so far, by name.
pub type Variables = BTreeMap<String, Value>;

/// Puts the values in. A name that nobody has kept is an error: a call with `${id}` in it would be a
/// different call.
///
/// # Errors
/// The first name that is not known.
pub fn fill(
    template: &Map<String, Value>,
    known: &Variables,
) -> Result<Map<String, Value>, String> {
    template.iter().map(|(key, value)| Ok((key.clone(), filled(value, known)?))).collect()
}

fn filled(value: &Value, known: &Variables) -> Result<Value, String> {
    match value {
        Value::String(text) => text_filled(text, known),
        Value::Array(items) => {
            items.iter().map(|item| filled(item, known)).collect::<Result<_, _>>().map(Value::Array)
        }
        Value::Object(fields) => fill(fields, known).map(Value::Object),
        other => Ok(other.clone()),
    }
}

fn text_filled(text: &str, known: &Variables) -> Result<Value, String> {
    let look_up = |name: &str| known.get(name).ok_or_else(|| unknown(name, known));
    let parts = parts(text);
    if let [Part::Name(name)] = parts.as_slice() {
        return look_up(name).cloned();
    }
    let mut out = String::with_capacity(text.len());
    for part in parts {
        match part {
            Part::Text(text) => out.push_str(text),
            Part::Name(name) => match look_up(name)? {
                Value::String(text) => out.push_str(text),
                other => out.push_str(&other.to_string()),
            },
        }
    }
    Ok(Value::String(out))
}

fn unknown(name: &str, known: &Variables) -> String {
    let names: Vec<&str> = known.keys().map(String::as_str).collect();
    if names.is_empty() {
        format!("${{{name}}} is not known: nothing has been saved before this call")
    } else {
        format!("${{{name}}} is not known; saved so far: {}", names.join(", "))
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Part<'a> {
    Text(&'a str),
    Name(&'a str),
}

/// The names that a template asks for.
pub(super) fn names(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            found.extend(parts(text).into_iter().filter_map(|part| match part {
                Part::Name(name) => Some(name.to_owned()),
                Part::Text(_) => None,
            }));
        }
        Value::Array(items) => items.iter().for_each(|item| names(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| names(field, found)),
        _ => {}
    }
}

fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        if rest[..at].ends_with('$') {
            parts.push(Part::Text(&rest[..at - 1]));
            parts.push(Part::Text("${"));
            rest = &rest[at + 2..];
            continue;
        }
        // What is never closed is text.
        let Some(length) = rest[at + 2..].find('}') else { break };
        if at > 0 {
            parts.push(Part::Text(&rest[..at]));
        }
        parts.push(Part::Name(&rest[at + 2..at + 2 + length]));
        rest = &rest[at + 3 + length..];
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest));
    }
    parts
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn put_in(template: &Value) -> Result<Value, String> {
        let known =
            Variables::from([("id".to_owned(), json!(7)), ("name".to_owned(), json!("Ada"))]);
        filled(template, &known)
    }

    #[test]
    fn a_whole_string_takes_the_value_and_a_part_takes_its_text() {
        let template =
            json!({"id": "${id}", "text": "no. ${id} of ${name}", "deep": [{"x": "${name}"}]});
        let expected = json!({"id": 7, "text": "no. 7 of Ada", "deep": [{"x": "Ada"}]});
        assert_eq!(put_in(&template), Ok(expected));
    }

    #[test]
    fn what_only_looks_like_a_name_stays() {
        for (text, expected) in [("$${id}", "${id}"), ("a ${id", "a ${id"), ("$5", "$5"), ("", "")]
        {
            assert_eq!(put_in(&json!(text)), Ok(json!(expected)), "{text}");
        }
    }

    #[test]
    fn an_unknown_name_is_an_error_that_lists_the_known_ones() {
        assert_eq!(
            put_in(&json!("${ID}")),
            Err("${ID} is not known; saved so far: id, name".to_owned())
        );
    }
}
