//! Values that one call leaves for a later one.
//!
//! `${name}` inside a string is replaced by the text of the value; a string that is nothing but
//! `${name}` becomes the value itself, so that a number stays a number. `$${` stands for `${`.

use std::collections::BTreeMap;

use karat_io::json_path::JsonPath;
use serde_json::{Map, Value};

use super::matcher::Answer;

/// What has been kept so far, by name.
pub type Variables = BTreeMap<String, Value>;

/// What one attempt has saved, or failed to save, by name.
pub type Changes = BTreeMap<String, Option<Value>>;

/// The values of one attempt: those that were there before it, and those that it saves itself. Attempts
/// that are under way at once do not see each other's.
#[derive(Debug, Default)]
pub struct Scope {
    known: Variables,
    changes: Changes,
}

impl Scope {
    /// Begins with what was saved before.
    #[must_use]
    pub fn new(known: Variables) -> Scope {
        Scope { known, changes: Changes::new() }
    }

    /// What can be put in now.
    #[must_use]
    pub fn known(&self) -> &Variables {
        &self.known
    }

    /// Saves what the paths lead to in an answer. Where there is no answer, or nothing at the place, the
    /// name is unknown from now on: what an earlier call left must not stand in for it.
    pub fn save(&mut self, paths: &BTreeMap<String, JsonPath>, result: Option<&Value>) {
        if paths.is_empty() {
            return;
        }
        let answer = result.map(Answer::new);
        for (name, path) in paths {
            let value = answer.as_ref().and_then(|answer| answer.data_at(path));
            match &value {
                Some(value) => self.known.insert(name.clone(), value.clone()),
                None => self.known.remove(name),
            };
            self.changes.insert(name.clone(), value);
        }
    }

    /// What is different at the end.
    #[must_use]
    pub fn changes(self) -> Changes {
        self.changes
    }
}

/// Puts in what an attempt has changed.
pub fn merge(known: &mut Variables, changes: Changes) {
    for (name, value) in changes {
        match value {
            Some(value) => known.insert(name, value),
            None => known.remove(&name),
        };
    }
}

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
pub(crate) fn names(value: &Value, found: &mut Vec<String>) {
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
    fn what_was_not_saved_is_unknown_and_only_changes_are_handed_on() {
        let paths = BTreeMap::from([("id".to_owned(), JsonPath::parse("$.id").unwrap())]);
        let before = Variables::from([("id".to_owned(), json!(1)), ("other".to_owned(), json!(2))]);
        let answer = |id: Value| json!({"structuredContent": {"id": id}});
        let mut scope = Scope::new(before.clone());
        scope.save(&paths, Some(&answer(json!(7))));
        assert_eq!(scope.known()["id"], 7);
        let mut after = before.clone();
        merge(&mut after, scope.changes());
        assert_eq!(after, Variables::from([("id".into(), json!(7)), ("other".into(), json!(2))]));

        for failed in [None, Some(&json!({"content": []}))] {
            let mut scope = Scope::new(before.clone());
            scope.save(&paths, failed);
            assert_eq!(scope.known().get("id"), None);
            let mut after = before.clone();
            merge(&mut after, scope.changes());
            assert_eq!(after.into_keys().collect::<Vec<_>>(), ["other"]);
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
