//! Simplified schemas: references resolved, alternatives listed, one type each.
//!
//! They are for making values, not for judging them: keywords that are not understood (`if`, `not`,
//! `dependentSchemas`) are ignored, and the schema validator decides whether a value matches.

use std::cell::Cell;

use serde_json::{Map, Value, json};

/// The depth to which schemas are followed, and the number of alternatives.
const MAX_DEPTH: usize = 10;
const MAX_ALTERNATIVES: usize = 8;
/// The number of parts of a schema that are visited for one answer: unions of unions grow fast.
const MAX_STEPS: usize = 2_000;

/// A schema without references, unions and lists of types.
pub(crate) type Plain = Map<String, Value>;

/// Simplifies schemas within one document.
pub(crate) struct Shapes<'a> {
    root: &'a Value,
    steps: Cell<usize>,
    /// The approximate number of bytes that are left for one value.
    budget: Cell<usize>,
}

impl<'a> Shapes<'a> {
    pub(crate) fn new(root: &'a Value) -> Shapes<'a> {
        Shapes { root, steps: Cell::new(0), budget: Cell::new(0) }
    }

    /// The alternatives of a schema, in its own order.
    pub(crate) fn alternatives(&self, schema: &Value) -> Vec<Plain> {
        let mut found = Vec::new();
        self.steps.set(MAX_STEPS);
        self.spread(schema, MAX_DEPTH, &mut found);
        found.truncate(MAX_ALTERNATIVES);
        found
    }

    /// Begins a value of at most this size.
    pub(super) fn allow(&self, bytes: usize) {
        self.budget.set(bytes);
    }

    /// Takes bytes from the budget, if there are enough: a short schema can demand more than fits into
    /// memory.
    pub(super) fn spend(&self, bytes: usize) -> Option<()> {
        self.budget.set(self.budget.get().checked_sub(bytes)?);
        Some(())
    }

    /// The bytes that are left.
    pub(super) fn left(&self) -> usize {
        self.budget.get()
    }

    /// The first alternative.
    pub(crate) fn plain(&self, schema: &Value) -> Option<Plain> {
        self.alternatives(schema).into_iter().next()
    }

    fn spread(&self, schema: &Value, depth: usize, found: &mut Vec<Plain>) {
        let steps = self.steps.get();
        if depth == 0 || steps == 0 || found.len() >= MAX_ALTERNATIVES {
            return;
        }
        self.steps.set(steps - 1);
        let Value::Object(fields) = schema else {
            if schema == &Value::Bool(true) {
                found.push(Plain::new());
            }
            return;
        };
        let mut fields = fields.clone();
        if let Some(Value::String(reference)) = fields.shift_remove("$ref") {
            if let Some(target) = self.lookup(&reference) {
                let merged = merge(target.as_object().cloned().unwrap_or_default(), &fields);
                self.spread(&Value::Object(merged), depth - 1, found);
            }
            return;
        }
        if let Some(Value::Array(parts)) = fields.shift_remove("allOf") {
            let mut merged = fields;
            for part in &parts {
                let mut ways = Vec::new();
                self.spread(part, depth - 1, &mut ways);
                if let Some(way) = ways.into_iter().next() {
                    merged = merge(merged, &way);
                }
            }
            return self.spread(&Value::Object(merged), depth - 1, found);
        }
        for union in ["anyOf", "oneOf"] {
            if let Some(Value::Array(ways)) = fields.shift_remove(union) {
                for way in &ways {
                    let mut inner = Vec::new();
                    self.spread(way, depth - 1, &mut inner);
                    for way in inner {
                        let merged = merge(fields.clone(), &way);
                        self.spread(&Value::Object(merged), depth - 1, found);
                    }
                }
                return;
            }
        }
        if let Some(Value::Array(types)) = fields.get("type").cloned() {
            for one in types {
                fields.insert("type".to_owned(), one);
                found.push(fields.clone());
            }
            return;
        }
        if !fields.contains_key("type")
            && let Some(implied) = implied(&fields)
        {
            fields.insert("type".to_owned(), json!(implied));
        }
        found.push(fields);
    }

    fn lookup(&self, reference: &str) -> Option<&'a Value> {
        let pointer = reference.strip_prefix('#')?;
        let pointer = pointer.replace("%24", "$").replace("%25", "%");
        self.root.pointer(&pointer)
    }
}

/// The type that the keywords imply if none is given.
fn implied(fields: &Plain) -> Option<&'static str> {
    let has = |keys: &[&str]| keys.iter().any(|key| fields.contains_key(*key));
    if has(&["const", "enum"]) {
        None
    } else if has(&["properties", "required", "additionalProperties", "minProperties"]) {
        Some("object")
    } else if has(&["items", "prefixItems", "minItems", "maxItems", "uniqueItems"]) {
        Some("array")
    } else if has(&["pattern", "minLength", "maxLength", "format"]) {
        Some("string")
    } else if has(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]) {
        Some("number")
    } else {
        None
    }
}

/// Both schemas combined, as far as that is possible without solving anything.
fn merge(mut one: Plain, other: &Plain) -> Plain {
    for (key, value) in other {
        match (key.as_str(), one.get_mut(key), value) {
            ("properties", Some(Value::Object(mine)), Value::Object(theirs)) => {
                mine.extend(theirs.clone());
            }
            ("required", Some(Value::Array(mine)), Value::Array(theirs)) => {
                let new = theirs.iter().filter(|name| !mine.contains(name)).cloned();
                let new: Vec<Value> = new.collect();
                mine.extend(new);
            }
            _ => {
                one.insert(key.clone(), value.clone());
            }
        }
    }
    one
}

#[cfg(test)]
mod tests {
    use super::*;

    fn types(schema: &Value) -> Vec<String> {
        let shapes = Shapes::new(schema);
        shapes.alternatives(schema).iter().map(|way| way["type"].to_string()).collect()
    }

    #[test]
    fn references_unions_and_lists_of_types_become_alternatives() {
        let schema = json!({
            "$defs": {"n": {"type": ["integer", "null"]}},
            "anyOf": [{"$ref": "#/$defs/n"}, {"minLength": 1}, {"properties": {}}],
        });
        assert_eq!(types(&schema), [r#""integer""#, r#""null""#, r#""string""#, r#""object""#]);
    }

    #[test]
    fn a_schema_that_refers_to_itself_has_few_alternatives() {
        let schema = json!({"$ref": "#"});
        assert!(Shapes::new(&schema).alternatives(&schema).is_empty());
        let schema = json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}, {"type": "null"}]});
        assert!(Shapes::new(&schema).alternatives(&schema).len() <= MAX_ALTERNATIVES);
    }

    #[test]
    fn the_parts_of_all_of_are_combined() {
        let schema = json!({"allOf": [
            {"type": "object", "properties": {"a": {}}, "required": ["a"]},
            {"properties": {"b": {}}, "required": ["b"]},
        ]});
        let ways = Shapes::new(&schema).alternatives(&schema);
        let plain = ways.first().unwrap();
        assert_eq!(plain["required"], json!(["a", "b"]));
        assert_eq!(plain["properties"].as_object().unwrap().len(), 2);
    }
}
