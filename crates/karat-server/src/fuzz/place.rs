//! Places in arguments: naming, looking up and changing them.

use serde_json::{Map, Value};

/// A step into a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Key(String),
    Entry(usize),
}

/// The steps as people write them, such as `filter.tags[0]`.
pub(super) fn name(steps: &[Step]) -> String {
    let mut name = String::new();
    for step in steps {
        match step {
            Step::Key(key) if name.is_empty() => name.push_str(key),
            Step::Key(key) => {
                name.push('.');
                name.push_str(key);
            }
            Step::Entry(at) => name.push_str(&format!("[{at}]")),
        }
    }
    name
}

/// The steps of a JSON pointer into a value; none if it points to nothing.
pub(super) fn steps(pointer: &str, value: &Value) -> Option<Vec<Step>> {
    let mut here = value;
    let mut found = Vec::new();
    for token in pointer.split('/').skip(1) {
        let key = token.replace("~1", "/").replace("~0", "~");
        let step = match here {
            Value::Array(_) => Step::Entry(key.parse().ok()?),
            _ => Step::Key(key),
        };
        here = next(here, &step)?;
        found.push(step);
    }
    Some(found)
}

/// The value one step further.
fn next<'a>(value: &'a Value, step: &Step) -> Option<&'a Value> {
    match step {
        Step::Key(key) => value.get(key),
        Step::Entry(at) => value.get(at),
    }
}

/// The value in a place.
pub(super) fn at<'a>(arguments: &'a Map<String, Value>, steps: &[Step]) -> Option<&'a Value> {
    let (first, rest) = steps.split_first()?;
    let Step::Key(key) = first else { return None };
    rest.iter().try_fold(arguments.get(key)?, next)
}

/// The arguments with a value put into a place; `None` removes the one that is there.
pub(super) fn with(
    arguments: &Map<String, Value>,
    steps: &[Step],
    new: Option<Value>,
) -> Option<Map<String, Value>> {
    let mut whole = Value::Object(arguments.clone());
    let (last, way) = steps.split_last()?;
    let mut here = &mut whole;
    for step in way {
        here = match step {
            Step::Key(key) => here.get_mut(key)?,
            Step::Entry(at) => here.get_mut(at)?,
        };
    }
    match (here, last, new) {
        (Value::Object(fields), Step::Key(key), Some(new)) => {
            fields.insert(key.clone(), new);
        }
        (Value::Object(fields), Step::Key(key), None) => {
            fields.shift_remove(key)?;
        }
        (Value::Array(list), Step::Entry(at), Some(new)) if *at == list.len() => list.push(new),
        (Value::Array(list), Step::Entry(at), Some(new)) => *list.get_mut(*at)? = new,
        (Value::Array(list), Step::Entry(at), None) if *at < list.len() => {
            list.remove(*at);
        }
        _ => return None,
    }
    Some(object(Some(whole)))
}

/// The fields of an object; none if it is something else.
pub(super) fn object(value: Option<Value>) -> Map<String, Value> {
    match value {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_place_is_found_by_its_pointer_and_can_be_changed() {
        let whole = json!({"a/b": {"l": [{"k": 1}, 2]}});
        let found = steps("/a~1b/l/0/k", &whole).unwrap();
        assert_eq!(name(&found), "a/b.l[0].k");
        let fields = object(Some(whole.clone()));
        assert_eq!(at(&fields, &found), Some(&json!(1)));
        let changed = with(&fields, &found, Some(json!(7))).unwrap();
        assert_eq!(Value::Object(changed), json!({"a/b": {"l": [{"k": 7}, 2]}}));
        let removed = with(&fields, &found[..3], None).unwrap();
        assert_eq!(Value::Object(removed), json!({"a/b": {"l": [2]}}));
        let longer = [found[0].clone(), found[1].clone(), Step::Entry(2)];
        let longer = with(&fields, &longer, Some(json!(3))).unwrap();
        assert_eq!(longer["a/b"]["l"], json!([{"k": 1}, 2, 3]));
        assert_eq!(steps("/a~1b/x", &whole), None);
        assert_eq!(with(&fields, &[], Some(json!(1))), None);
    }
}
