//! Values that one call saves for later ones.
//!
//! `${name}` inside a string is replaced by the text of the value; a string that is nothing but
//! `${name}` becomes the value itself, so that a number stays a number. `$${` is an escaped `${`, as in
//! [`karat_io::interpolate`].

use std::collections::BTreeMap;

use karat_core::expect::Answer;
use karat_io::interpolate::{InterpolateError, Part, parts};
use karat_io::json_path::JsonPath;
use serde_json::{Map, Value};

/// The values that have been saved, by name.
pub(crate) type Variables = BTreeMap<String, Value>;

/// The values that one attempt has saved, by name; none where it failed to.
pub(crate) type Changes = BTreeMap<String, Option<Value>>;

/// The values of one attempt: those that were saved before it, and its own. Attempts that are under
/// way at once do not see each other's.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    known: Variables,
    changes: Changes,
}

impl Scope {
    /// The values at the start of an attempt.
    pub(crate) fn new(known: Variables) -> Scope {
        Scope { known, changes: Changes::new() }
    }

    /// The values that can be put in now.
    pub(crate) fn known(&self) -> &Variables {
        &self.known
    }

    /// Saves the values at these paths of an answer. Without an answer, or with nothing at the
    /// path, the name is unknown from now on: the value of an earlier call must not be used
    /// instead.
    pub(crate) fn save(&mut self, paths: &BTreeMap<String, JsonPath>, result: Option<&Value>) {
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

    /// The changes that the attempt made.
    pub(crate) fn changes(self) -> Changes {
        self.changes
    }
}

/// Applies the changes of an attempt.
pub(crate) fn merge(known: &mut Variables, changes: Changes) {
    for (name, value) in changes {
        match value {
            Some(value) => known.insert(name, value),
            None => known.remove(&name),
        };
    }
}

/// Puts the values into arguments.
///
/// # Errors
/// If a name is unknown: a call with a literal `${id}` would be another call.
pub(crate) fn fill(
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
    let parts = parts(text).map_err(|error| error.to_string())?;
    if let [Part::Variable(name)] = parts.as_slice() {
        return look_up(name).cloned();
    }
    let mut out = String::with_capacity(text.len());
    for part in parts {
        match part {
            Part::Text(text) => out.push_str(text),
            Part::Variable(name) => match look_up(name)? {
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
        format!("${{{name}}} is unknown: no earlier call saved a value")
    } else {
        format!("${{{name}}} is unknown; saved so far: {}", names.join(", "))
    }
}

/// Adds the names that a template needs.
///
/// # Errors
/// If it has a `${` without a `}`.
pub(crate) fn names(value: &Value, found: &mut Vec<String>) -> Result<(), InterpolateError> {
    match value {
        Value::String(text) => {
            found.extend(parts(text)?.into_iter().filter_map(|part| match part {
                Part::Variable(name) => Some(name.to_owned()),
                Part::Text(_) => None,
            }));
            Ok(())
        }
        Value::Array(items) => items.iter().try_for_each(|item| names(item, found)),
        Value::Object(fields) => fields.values().try_for_each(|field| names(field, found)),
        _ => Ok(()),
    }
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
    fn a_whole_string_becomes_the_value_and_a_part_its_text() {
        let template =
            json!({"id": "${id}", "text": "no. ${id} of ${name}", "deep": [{"x": "${name}"}]});
        let expected = json!({"id": 7, "text": "no. 7 of Ada", "deep": [{"x": "Ada"}]});
        assert_eq!(put_in(&template), Ok(expected));
    }

    #[test]
    fn an_escaped_name_is_text_and_an_unclosed_one_an_error() {
        for (text, expected) in [("$${id}", "${id}"), ("a $${id", "a ${id"), ("$5", "$5"), ("", "")]
        {
            assert_eq!(put_in(&json!(text)), Ok(json!(expected)), "{text}");
        }
        let error = put_in(&json!("a ${id")).unwrap_err();
        assert_eq!(error, "`a ${id` has a `${` without a `}`; write `$${` for a plain `${`");
    }

    #[test]
    fn a_value_that_was_not_saved_is_unknown_and_only_changes_are_passed_on() {
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
    fn the_error_for_an_unknown_name_lists_the_known_ones() {
        assert_eq!(
            put_in(&json!("${ID}")),
            Err("${ID} is unknown; saved so far: id, name".to_owned())
        );
    }
}
