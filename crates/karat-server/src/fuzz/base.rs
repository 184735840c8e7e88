//! The arguments around which inputs are made: the least that a schema asks for, and all that it has.
//!
//! Where these broke the schema themselves, every input around them would break it too, and what is
//! tried in one place would hide behind what is wrong in another. So they are made, held to the schema
//! engine and mended: another value here, a property less or more there. What cannot be mended is said.

use karat_core::schema::{Compiled, Compliance};
use serde_json::{Map, Value};

use super::place::{self, Step};
use super::shape::Shapes;
use super::values::{self, Extent, Reach};

/// How often the engine is asked while one base is mended.
const CHECKS: usize = 400;
/// How many violations are looked at before the next step, and how many values are tried in one place.
const VIOLATIONS: usize = 8;
const VALUES: usize = 48;
/// How many schemas of one place are looked at.
const SCHEMAS: usize = 8;

/// What inputs are made around.
pub(super) struct Bases {
    /// What is required and no more.
    pub(super) least: Map<String, Value>,
    /// All that there is, or as much of it as can stand together.
    pub(super) full: Map<String, Value>,
    /// Whether they keep the schema, as far as the engine can say.
    pub(super) keep: bool,
    /// Known values that the schema forbids, by name; they are not used.
    pub(super) unused: Vec<String>,
}

/// Makes and mends, for one schema.
pub(super) struct Mender<'a> {
    pub(super) shapes: &'a Shapes<'a>,
    pub(super) schema: &'a Value,
    pub(super) judge: Option<&'a Compiled>,
    pub(super) known: &'a Map<String, Value>,
}

impl Mender<'_> {
    /// Both bases.
    pub(super) fn bases(&self) -> Bases {
        let raw = |extent| self.filled(values::base(self.shapes, self.schema, extent));
        let (raw_least, raw_full) = (raw(Extent::Required), raw(Extent::All));
        let (least, full, keep) =
            match (self.mended(raw_least.clone()), self.mended(raw_full.clone())) {
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
        Bases { least, full, keep, unused }
    }

    /// The least alone.
    pub(super) fn least(&self) -> Map<String, Value> {
        let raw = self.filled(values::base(self.shapes, self.schema, Extent::Required));
        self.mended(raw).unwrap_or_else(|| self.bases().least)
    }

    /// The value with what is known to work, where the schema has a parameter of that name.
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

    /// How the arguments break the schema, if they do.
    fn broken(&self, arguments: &Map<String, Value>) -> Option<Compliance> {
        let found = self.judge?.check(&Value::Object(arguments.clone()));
        (!found.valid && found.not_checked().is_none()).then_some(found)
    }

    /// The arguments, changed as little as it takes to keep the schema.
    pub(super) fn mended(&self, start: Map<String, Value>) -> Option<Map<String, Value>> {
        let mut best = start;
        let Some(mut broken) = self.broken(&best) else { return Some(best) };
        let mut checks = 0;
        'again: loop {
            let before = count(&broken);
            let violations = broken.errors.iter().take(VIOLATIONS);
            for path in violations.map(|violation| violation.instance_path.as_str()) {
                for candidate in self.candidates(&best, path) {
                    checks += 1;
                    if checks > CHECKS {
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

    /// Arguments that may not break the schema there any more, the smallest change first.
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
        // Without it, and without what it is in.
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
        found.truncate(VALUES);
        found
    }

    /// Members that can be put into a value or taken out of it.
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
                .take(SCHEMAS)
                .collect();
        }
        here
    }

    /// As many of these properties beside the least as can stand together.
    fn grown(&self, least: &Map<String, Value>, all: &Map<String, Value>) -> Map<String, Value> {
        let mut grown = least.clone();
        for (name, value) in all.iter().take(CHECKS) {
            let mut more = grown.clone();
            more.entry(name).or_insert_with(|| value.clone());
            if self.broken(&more).is_none() {
                grown = more;
            }
        }
        grown
    }

    /// As few of these properties as the schema allows, without those that are known to work.
    fn pruned(&self, full: &Map<String, Value>) -> Map<String, Value> {
        let mut pruned = full.clone();
        for name in full.keys().filter(|name| !self.known.contains_key(*name)).take(CHECKS) {
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
        let bases = Mender { shapes: &shapes, schema, judge: Some(&judge), known }.bases();
        for one in [&bases.least, &bases.full] {
            let valid = judge.check(&Value::Object(one.clone())).valid;
            assert_eq!(valid, bases.keep, "{schema}: {one:?}");
        }
        bases
    }

    fn bases(schema: &Value) -> Bases {
        bases_with(schema, &json!({}))
    }

    /// An object whose one property, which it demands, is this.
    fn one(property: &Value) -> Value {
        json!({"type": "object", "properties": {"p": property}, "required": ["p"]})
    }

    #[test]
    fn what_a_property_asks_for_is_made() {
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
            assert!(bases(&one(&property)).keep, "{property}");
        }
    }

    #[test]
    fn what_cannot_stand_together_is_taken_apart() {
        let apart = bases(
            &json!({"type": "object", "properties": {"k": {"type": "string"}, "j": {"type": "string"}},
            "not": {"required": ["k", "j"]}}),
        );
        assert!(apart.keep && apart.least.is_empty() && apart.full.len() == 1, "{:?}", apart.full);
        let either = bases(
            &json!({"type": "object", "properties": {"id": {"type": "integer"}, "name": {"type": "string"}},
            "oneOf": [{"required": ["id"]}, {"required": ["name"]}]}),
        );
        assert!(either.keep && either.full.len() == 1, "{:?}", either.full);
    }

    #[test]
    fn what_comes_with_something_else_is_added() {
        let then = bases(&json!({"type": "object", "required": ["en"],
            "properties": {"en": {"enum": ["red", "green"]}, "co": {"const": "fixed"}},
            "if": {"properties": {"en": {"const": "red"}}}, "then": {"required": ["co"]}}));
        assert!(then.keep, "{:?}", then.least);
        let depends = bases(
            &json!({"type": "object", "required": ["a"], "dependentRequired": {"a": ["b"]},
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "c": {"type": "integer"}}}),
        );
        assert!(depends.keep && depends.least.len() == 2 && depends.full.len() == 3);
    }

    #[test]
    fn a_schema_that_nothing_keeps_is_known_as_such() {
        for nothing in [json!(false), json!({"type": "integer", "minimum": 5, "maximum": 3})] {
            assert!(!bases(&one(&nothing)).keep, "{nothing}");
        }
    }

    #[test]
    fn a_known_value_stays_unless_the_schema_forbids_it() {
        let schema = one(&json!({"type": "string", "pattern": "^(?=.*\\d)(?=.*#)\\w+#\\w+$"}));
        assert!(!bases(&schema).keep);
        let known = bases_with(&schema, &json!({"p": "a1#b"}));
        assert!(known.keep && known.unused.is_empty() && known.least["p"] == "a1#b");
        let wrong = bases_with(&one(&json!({"type": "integer"})), &json!({"p": "x", "q": 1}));
        assert!(wrong.keep && wrong.unused == ["p"], "{:?}", wrong.unused);
    }
}
