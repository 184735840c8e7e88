//! The base arguments around which inputs are made: the fewest that a schema demands, and all that it
//! has.
//!
//! If these violated the schema, every input made from them would too, and a flaw in one place would
//! hide behind another. So they are validated and repaired: another value here, a property less or more
//! there. If that fails, the caller knows.

use karat_core::schema::{Compiled, Compliance};
use serde_json::{Map, Value};

use super::place::{self, Step};
use super::shape::Shapes;
use super::values::{self, Extent, Reach};

/// The number of validations for repairing one base.
const MAX_CHECKS: usize = 400;
/// The number of violations that are considered in each step, and of values that are tried in one place.
const MAX_VIOLATIONS: usize = 8;
const MAX_VALUES: usize = 48;
/// The number of schemas of one place that are considered.
const MAX_SCHEMAS: usize = 8;

/// The arguments around which inputs are made.
pub(super) struct Bases {
    /// The required arguments only.
    pub(super) least: Map<String, Value>,
    /// All arguments, or as many as are possible together.
    pub(super) full: Map<String, Value>,
    /// True if both match the schema, as far as the validator can tell.
    pub(super) is_valid: bool,
    /// The names of known values that the schema forbids; they are not used.
    pub(super) unused: Vec<String>,
}

/// Makes and repairs arguments for one schema.
pub(super) struct Repair<'a> {
    pub(super) shapes: &'a Shapes<'a>,
    pub(super) schema: &'a Value,
    pub(super) validator: Option<&'a Compiled>,
    pub(super) known: &'a Map<String, Value>,
}

impl Repair<'_> {
    /// Makes both bases.
    pub(super) fn bases(&self) -> Bases {
        let raw = |extent| self.filled(values::base(self.shapes, self.schema, extent));
        let (raw_least, raw_full) = (raw(Extent::Required), raw(Extent::All));
        let (least, full, is_valid) =
            match (self.repaired(raw_least.clone()), self.repaired(raw_full.clone())) {
                (Some(least), Some(full)) => (least, full, true),
                (Some(least), None) => {
                    let full = self.grown(&least, &raw_full);
                    (least, full, true)
                }
                (None, Some(full)) => (self.pruned(&full), full, true),
                (None, None) => (raw_least, raw_full, false),
            };
        let lost = |name: &&String| self.has(name) && full.get(*name) != self.known.get(*name);
        let unused = self.known.keys().filter(lost).cloned().collect();
        Bases { least, full, is_valid, unused }
    }

    /// The required arguments only.
    pub(super) fn least(&self) -> Map<String, Value> {
        let raw = self.filled(values::base(self.shapes, self.schema, Extent::Required));
        self.repaired(raw).unwrap_or_else(|| self.bases().least)
    }

    /// The value with those known values for which the schema has a parameter.
    pub(super) fn filled(&self, value: Option<Value>) -> Map<String, Value> {
        let mut arguments = place::object(value);
        for (name, value) in self.known.iter().filter(|(name, _)| self.has(name)) {
            arguments.insert(name.clone(), value.clone());
        }
        arguments
    }

    fn has(&self, name: &str) -> bool {
        let ways = self.shapes.alternatives(self.schema);
        ways.iter().any(|way| way.get("properties").is_some_and(|all| all.get(name).is_some()))
    }

    /// The violations of the arguments, if there are any.
    fn broken(&self, arguments: &Map<String, Value>) -> Option<Compliance> {
        let found = self.validator?.check(&Value::Object(arguments.clone()));
        (!found.valid && found.not_checked().is_none()).then_some(found)
    }

    /// The arguments, changed as little as necessary to match the schema.
    pub(super) fn repaired(&self, start: Map<String, Value>) -> Option<Map<String, Value>> {
        let mut best = start;
        let Some(mut broken) = self.broken(&best) else { return Some(best) };
        let mut checks = 0;
        'again: loop {
            let before = count(&broken);
            let violations = broken.errors.iter().take(MAX_VIOLATIONS);
            for path in violations.map(|violation| violation.instance_path.as_str()) {
                for candidate in self.candidates(&best, path) {
                    checks += 1;
                    if checks > MAX_CHECKS {
                        return None;
                    }
                    let Some(found) = self.broken(&candidate) else { return Some(candidate) };
                    if count(&found) < before {
                        (best, broken) = (candidate, found);
                        continue 'again;
                    }
                }
            }
            return None;
        }
    }

    /// Arguments that may no longer violate the schema in this place, the smallest change first.
    fn candidates(&self, arguments: &Map<String, Value>, path: &str) -> Vec<Map<String, Value>> {
        let whole = Value::Object(arguments.clone());
        let Some(steps) = place::steps(path, &whole) else { return Vec::new() };
        let schemas = self.schemas(&steps);
        let mut found = Vec::new();
        let value = if steps.is_empty() { Some(&whole) } else { place::at(arguments, &steps) };
        for (step, new) in self.members(value, &schemas) {
            let mut inner = steps.clone();
            inner.push(step);
            found.extend(place::with(arguments, &inner, new));
        }
        let others = self.others(&schemas).into_iter();
        found.extend(others.filter_map(|other| match steps.as_slice() {
            [] => Some(self.filled(Some(other))),
            steps => place::with(arguments, steps, Some(other)),
        }));
        // Without it, and without the values around it.
        found.extend(
            (1..=steps.len()).rev().filter_map(|end| place::with(arguments, &steps[..end], None)),
        );
        found
    }

    /// Other values for a place.
    fn others(&self, schemas: &[Value]) -> Vec<Value> {
        let mut found = Vec::new();
        for schema in schemas {
            for way in self.shapes.alternatives(schema) {
                for extent in [Extent::Required, Extent::All] {
                    found.extend(values::of_way(self.shapes, &way, extent));
                }
            }
            let edges = values::edges(self.shapes, schema, Reach::Small);
            found.extend(edges.into_iter().map(|one| one.value));
        }
        found.truncate(MAX_VALUES);
        found
    }

    /// Members to add to a value or to remove from it.
    fn members(&self, value: Option<&Value>, schemas: &[Value]) -> Vec<(Step, Option<Value>)> {
        let mut found = Vec::new();
        match value {
            Some(Value::Object(fields)) => {
                for way in schemas.iter().flat_map(|schema| self.shapes.alternatives(schema)) {
                    let properties = way.get("properties").and_then(Value::as_object);
                    for (name, schema) in properties.into_iter().flatten() {
                        if !fields.contains_key(name)
                            && let Some(new) = values::base(self.shapes, schema, Extent::Required)
                        {
                            found.push((Step::Key(name.clone()), Some(new)));
                        }
                    }
                }
                found.extend(fields.keys().map(|name| (Step::Key(name.clone()), None)));
            }
            Some(Value::Array(list)) => {
                let end = Step::Entry(list.len());
                for way in schemas.iter().flat_map(|schema| self.shapes.alternatives(schema)) {
                    let longer = values::list_of(self.shapes, &way, list.len() + 1);
                    found.extend(longer.into_iter().map(|new| (end.clone(), Some(new))));
                }
                found.extend((0..list.len()).rev().map(|at| (Step::Entry(at), None)));
            }
            _ => {}
        }
        found
    }

    /// The schemas of a place.
    fn schemas(&self, steps: &[Step]) -> Vec<Value> {
        let mut here = vec![self.schema.clone()];
        for step in steps {
            let ways = here.iter().flat_map(|schema| self.shapes.alternatives(schema));
            here = ways
                .filter_map(|way| match step {
                    Step::Key(name) => values::property(&way, name).cloned(),
                    Step::Entry(at) => values::entry(&way, *at).cloned(),
                })
                .take(MAX_SCHEMAS)
                .collect();
        }
        here
    }

    /// The required arguments with as many of these properties as are possible together.
    fn grown(&self, least: &Map<String, Value>, all: &Map<String, Value>) -> Map<String, Value> {
        let mut grown = least.clone();
        for (name, value) in all.iter().take(MAX_CHECKS) {
            let mut more = grown.clone();
            more.entry(name).or_insert_with(|| value.clone());
            if self.broken(&more).is_none() {
                grown = more;
            }
        }
        grown
    }

    /// As few of these properties as the schema allows, apart from the known values.
    fn pruned(&self, full: &Map<String, Value>) -> Map<String, Value> {
        let mut pruned = full.clone();
        for name in full.keys().filter(|name| !self.known.contains_key(*name)).take(MAX_CHECKS) {
            let mut less = pruned.clone();
            less.shift_remove(name);
            if self.broken(&less).is_none() {
                pruned = less;
            }
        }
        pruned
    }
}

fn count(found: &Compliance) -> usize {
    found.errors.len() + found.more_errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn bases_with(schema: &Value, known: &Value) -> Bases {
        let judge = Compiled::new(schema).unwrap();
        let shapes = Shapes::new(schema);
        let known = known.as_object().unwrap();
        let bases = Repair { shapes: &shapes, schema, validator: Some(&judge), known }.bases();
        for one in [&bases.least, &bases.full] {
            let valid = judge.check(&Value::Object(one.clone())).valid;
            assert_eq!(valid, bases.is_valid, "{schema}: {one:?}");
        }
        bases
    }

    fn bases(schema: &Value) -> Bases {
        bases_with(schema, &json!({}))
    }

    /// An object with this as its one required property.
    fn one(property: &Value) -> Value {
        json!({"type": "object", "properties": {"p": property}, "required": ["p"]})
    }

    #[test]
    fn a_value_that_matches_is_made_for_every_keyword() {
        for property in [
            json!({"type": "array", "items": {"enum": ["a", "b", "c"]}, "minItems": 2, "uniqueItems": true}),
            json!({"type": "array", "items": {"type": "boolean"}, "minItems": 2, "uniqueItems": true}),
            json!({"type": "array", "items": {"type": "integer", "multipleOf": 5}, "minItems": 3, "uniqueItems": true}),
            json!({"type": "array", "items": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, "minItems": 3, "uniqueItems": true}),
            json!({"type": "array", "items": {"type": "string", "maxLength": 2}, "minItems": 3, "uniqueItems": true}),
            json!({"type": "array", "items": {"type": "string", "pattern": "^[A-Z]{2}$"}, "minItems": 4, "uniqueItems": true}),
            json!({"type": "array", "items": {"type": "string", "format": "email"}, "minItems": 2, "uniqueItems": true}),
            json!({"type": "array", "items": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}, "minItems": 3, "uniqueItems": true}),
            json!({"type": "array", "items": {"type": "integer"}, "contains": {"const": 7}}),
            json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": false, "minItems": 2}),
            json!({"type": "array", "maxItems": 0}),
            json!({"type": "object", "minProperties": 1}),
            json!({"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 2}),
            json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}, "additionalProperties": false, "minProperties": 1}),
            json!({"type": "object", "additionalProperties": {"type": "integer"}, "propertyNames": {"pattern": "^[a-z]+$"}, "minProperties": 1, "maxProperties": 2}),
            json!({"type": "object", "patternProperties": {"^x-": {"type": "integer"}}, "additionalProperties": false, "minProperties": 2}),
            json!({"type": "string", "pattern": "^[a-z]+$", "minLength": 12}),
            json!({"type": "string", "not": {"pattern": "text"}}),
            json!({"type": "integer", "maximum": -3, "multipleOf": 5}),
            json!({"type": "integer", "not": {"const": 1}}),
        ] {
            assert!(bases(&one(&property)).is_valid, "{property}");
        }
    }

    #[test]
    fn properties_that_exclude_each_other_are_separated() {
        let apart = bases(
            &json!({"type": "object", "properties": {"k": {"type": "string"}, "j": {"type": "string"}},
            "not": {"required": ["k", "j"]}}),
        );
        assert!(
            apart.is_valid && apart.least.is_empty() && apart.full.len() == 1,
            "{:?}",
            apart.full
        );
        let either = bases(
            &json!({"type": "object", "properties": {"id": {"type": "integer"}, "name": {"type": "string"}},
            "oneOf": [{"required": ["id"]}, {"required": ["name"]}]}),
        );
        assert!(either.is_valid && either.full.len() == 1, "{:?}", either.full);
    }

    #[test]
    fn properties_that_depend_on_others_are_added() {
        let then = bases(&json!({"type": "object", "required": ["en"],
            "properties": {"en": {"enum": ["red", "green"]}, "co": {"const": "fixed"}},
            "if": {"properties": {"en": {"const": "red"}}}, "then": {"required": ["co"]}}));
        assert!(then.is_valid, "{:?}", then.least);
        let depends = bases(
            &json!({"type": "object", "required": ["a"], "dependentRequired": {"a": ["b"]},
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "c": {"type": "integer"}}}),
        );
        assert!(depends.is_valid && depends.least.len() == 2 && depends.full.len() == 3);
    }

    #[test]
    fn a_schema_that_no_value_matches_is_recognized() {
        for nothing in [json!(false), json!({"type": "integer", "minimum": 5, "maximum": 3})] {
            assert!(!bases(&one(&nothing)).is_valid, "{nothing}");
        }
    }

    #[test]
    fn a_known_value_is_kept_unless_the_schema_forbids_it() {
        let schema = one(&json!({"type": "string", "pattern": "^(?=.*\\d)(?=.*#)\\w+#\\w+$"}));
        assert!(!bases(&schema).is_valid);
        let known = bases_with(&schema, &json!({"p": "a1#b"}));
        assert!(known.is_valid && known.unused.is_empty() && known.least["p"] == "a1#b");
        let wrong = bases_with(&one(&json!({"type": "integer"})), &json!({"p": "x", "q": 1}));
        assert!(wrong.is_valid && wrong.unused == ["p"], "{:?}", wrong.unused);
    }
}
