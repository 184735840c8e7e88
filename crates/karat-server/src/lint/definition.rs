//! A tool definition as it was served, with accessors for the rules.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// The depth to which parameters are searched.
const DEPTH: usize = 16;

/// Keywords whose schemas apply to the same value as the schema around them.
const ALTERNATIVES: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// One definition as it was served.
pub(super) struct Definition<'a> {
    raw: &'a Value,
}

/// One parameter of a tool, nested ones included.
pub(super) struct Parameter<'a> {
    /// The names that lead to it, joined with dots; `[]` for the items of an array.
    pub(super) name: String,
    /// The place of its schema in the definition, as a JSON pointer.
    pub(super) at: String,
    /// Its schema.
    pub(super) schema: &'a Value,
    /// The schema that its references point into.
    root: &'a Value,
}

/// A schema inside the input schema that describes whole objects.
pub(super) struct Object<'a> {
    /// Its place in the definition, as a JSON pointer.
    pub(super) at: String,
    pub(super) schema: &'a Value,
}

impl Parameter<'_> {
    /// Returns whether its own schema, one that it refers to or an alternative has a description. A reference to
    /// another document counts as one.
    pub(super) fn is_described(&self) -> bool {
        described(self.schema, self.root, DEPTH)
    }

    /// A text of its schema that is not blank.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.schema.get(key).and_then(Value::as_str).filter(|text| !text.trim().is_empty())
    }

    /// Returns whether its schema has the keyword.
    pub(super) fn has(&self, keyword: &str) -> bool {
        self.schema.get(keyword).is_some()
    }
}

impl<'a> Definition<'a> {
    pub(super) fn read(raw: &'a Value) -> Self {
        Definition { raw }
    }

    /// The whole definition.
    pub(super) fn raw(&self) -> &'a Value {
        self.raw
    }

    /// The name; empty if there is none.
    pub(super) fn name(&self) -> &'a str {
        self.text("name").unwrap_or_default()
    }

    /// The description, unless it is missing or blank.
    pub(super) fn description(&self) -> Option<&'a str> {
        self.text("description").map(str::trim).filter(|text| !text.is_empty())
    }

    pub(super) fn input_schema(&self) -> Option<&'a Value> {
        self.raw.get("inputSchema")
    }

    pub(super) fn output_schema(&self) -> Option<&'a Value> {
        self.raw.get("outputSchema")
    }

    pub(super) fn annotations(&self) -> Option<&'a Map<String, Value>> {
        self.raw.get("annotations").and_then(Value::as_object)
    }

    /// A boolean annotation.
    pub(super) fn hint(&self, key: &str) -> Option<bool> {
        self.annotations()?.get(key)?.as_bool()
    }

    /// Every parameter, outer before inner, in the order of the schema. One that several references
    /// point to is listed once.
    pub(super) fn parameters(&self) -> Vec<Parameter<'a>> {
        self.walk().parameters
    }

    /// The schemas of objects, the input schema first.
    pub(super) fn objects(&self) -> Vec<Object<'a>> {
        self.walk().objects
    }

    fn walk(&self) -> Walk<'a> {
        let root = self.input_schema().unwrap_or(&Value::Null);
        let mut walk =
            Walk { root, seen: BTreeSet::new(), parameters: Vec::new(), objects: Vec::new() };
        walk.visit(root, "", INPUT, true, DEPTH);
        walk
    }

    fn text(&self, key: &str) -> Option<&'a str> {
        self.raw.get(key).and_then(Value::as_str)
    }
}

/// The place of the input schema in a definition.
const INPUT: &str = "/inputSchema";

/// A walk through an input schema.
struct Walk<'a> {
    root: &'a Value,
    /// The places that were visited: references may be circular.
    seen: BTreeSet<String>,
    parameters: Vec<Parameter<'a>>,
    objects: Vec<Object<'a>>,
}

impl<'a> Walk<'a> {
    /// `whole` means that this schema alone decides which properties its object has.
    fn visit(&mut self, schema: &'a Value, name: &str, at: &str, whole: bool, depth: usize) {
        if depth == 0 || !self.seen.insert(at.to_owned()) {
            return;
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        if whole && schema.is_object() {
            self.objects.push(Object { at: at.to_owned(), schema });
        }
        for (key, schema) in properties.into_iter().flatten() {
            let name = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
            let at = format!("{at}/properties/{}", escape(key));
            let root = self.root;
            self.parameters.push(Parameter { name: name.clone(), at: at.clone(), schema, root });
            self.visit(schema, &name, &at, true, depth - 1);
        }
        if let Some((target, at)) = target(schema, self.root) {
            self.visit(target, name, &at, whole && properties.is_none(), depth - 1);
        }
        if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
            self.visit(items, &format!("{name}[]"), &format!("{at}/items"), true, depth - 1);
        }
        if let Some(others) = schema.get("additionalProperties").filter(|other| other.is_object()) {
            let at = format!("{at}/additionalProperties");
            self.visit(others, &format!("{name}.*"), &at, true, depth - 1);
        }
        for keyword in ALTERNATIVES {
            let schemas = schema.get(keyword).and_then(Value::as_array);
            // Alternatives of an object share its properties, and together they describe one object.
            let whole = whole && properties.is_none() && keyword != "allOf";
            for (place, schema) in schemas.into_iter().flatten().enumerate() {
                self.visit(schema, name, &format!("{at}/{keyword}/{place}"), whole, depth - 1);
            }
        }
    }
}

/// The target of a reference within the same schema, with its place in the definition.
fn target<'a>(schema: &Value, root: &'a Value) -> Option<(&'a Value, String)> {
    let pointer = schema.get("$ref")?.as_str()?.strip_prefix('#')?;
    Some((root.pointer(pointer)?, format!("{INPUT}{pointer}")))
}

fn described(schema: &Value, root: &Value, depth: usize) -> bool {
    let text = |key| schema.get(key).and_then(Value::as_str).unwrap_or_default();
    if !text("description").trim().is_empty() || text("title").split_whitespace().count() > 2 {
        return true;
    }
    if depth == 0 {
        return false;
    }
    let referred = schema.get("$ref").is_some()
        && target(schema, root).is_none_or(|(target, _)| described(target, root, depth - 1));
    let alternatives = ALTERNATIVES.iter().filter_map(|keyword| schema.get(keyword)?.as_array());
    referred || alternatives.flatten().any(|schema| described(schema, root, depth - 1))
}

/// A key as a step of a JSON pointer.
fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nested_parameters_are_found_with_their_place() {
        let raw = json!({"inputSchema": {"properties": {
            "a/b": {"type": "object", "properties": {"c": {"type": "string"}}},
            "list": {"type": "array", "items": {"type": "object", "properties": {"d": {}}}},
        }}});
        let definition = Definition::read(&raw);
        let found: Vec<(String, String)> =
            definition.parameters().into_iter().map(|p| (p.name, p.at)).collect();
        let expected = [
            ("a/b", "/inputSchema/properties/a~1b"),
            ("a/b.c", "/inputSchema/properties/a~1b/properties/c"),
            ("list", "/inputSchema/properties/list"),
            ("list[].d", "/inputSchema/properties/list/items/properties/d"),
        ];
        assert_eq!(found, expected.map(|(name, at)| (name.to_owned(), at.to_owned())));
        for (_, at) in &found {
            assert!(raw.pointer(at).is_some(), "{at}");
        }
    }

    #[test]
    fn references_and_alternatives_are_followed_once() {
        let raw = json!({"inputSchema": {
            "properties": {
                "order": {"$ref": "#/$defs/order"},
                "line": {"anyOf": [{"$ref": "#/$defs/line"}, {"type": "null"}]},
                "prices": {"additionalProperties": {"properties": {"currency": {}}}},
            },
            "$defs": {
                "order": {"properties": {
                    "lines": {"items": {"$ref": "#/$defs/line"}},
                    "replaces": {"$ref": "#/$defs/order"},
                }},
                "line": {"oneOf": [{"properties": {"sku": {}}}, {"properties": {"code": {}}}]},
            },
        }});
        let definition = Definition::read(&raw);
        let found: Vec<Parameter<'_>> = definition.parameters();
        let names: Vec<&str> = found.iter().map(|parameter| parameter.name.as_str()).collect();
        let expected = [
            "order",
            "order.lines",
            "order.lines[].sku",
            "order.lines[].code",
            "order.replaces",
            "line",
            "prices",
            "prices.*.currency",
        ];
        assert_eq!(names, expected);
        for parameter in &found {
            assert_eq!(raw.pointer(&parameter.at), Some(parameter.schema), "{}", parameter.at);
        }
    }

    #[test]
    fn a_description_may_be_in_a_referenced_schema_or_an_alternative() {
        let raw = json!({"inputSchema": {
            "properties": {
                "a": {"$ref": "#/$defs/described"},
                "b": {"$ref": "#/$defs/bare"},
                "c": {"anyOf": [{"$ref": "#/$defs/described"}, {"type": "null"}]},
                "d": {"anyOf": [{"$ref": "#/$defs/bare"}, {"type": "null"}]},
                "e": {"$ref": "elsewhere.json"},
                "f": {"$ref": "#/properties/f"},
            },
            "$defs": {"described": {"description": "A place"}, "bare": {"type": "string"}},
        }});
        let bare: Vec<String> = Definition::read(&raw)
            .parameters()
            .into_iter()
            .filter(|parameter| !parameter.is_described())
            .map(|parameter| parameter.name)
            .collect();
        assert_eq!(bare, ["b", "d", "f"]);
    }
}
