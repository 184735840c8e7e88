//! A tool definition as a rule sees it: the served JSON, with the parts that rules ask for.

use serde_json::{Map, Value};

/// How deep parameters are looked for inside each other.
const DEPTH: usize = 16;

/// One definition as it was served.
pub(super) struct Definition<'a> {
    raw: &'a Value,
}

/// One parameter of a tool, nested ones included.
pub(super) struct Parameter<'a> {
    /// The names that lead to it, joined with dots; `[]` for the items of an array.
    pub(super) name: String,
    /// Where its schema stands in the definition, as a JSON pointer.
    pub(super) at: String,
    /// Its schema.
    pub(super) schema: &'a Value,
}

impl Parameter<'_> {
    /// A text field of its schema that is not blank.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.schema.get(key).and_then(Value::as_str).filter(|text| !text.trim().is_empty())
    }

    /// Whether its schema has the keyword.
    pub(super) fn has(&self, keyword: &str) -> bool {
        self.schema.get(keyword).is_some()
    }
}

impl<'a> Definition<'a> {
    pub(super) fn read(raw: &'a Value) -> Self {
        Definition { raw }
    }

    /// The name, empty where there is none.
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

    /// Every parameter, outer before inner, in the order of the schema.
    pub(super) fn parameters(&self) -> Vec<Parameter<'a>> {
        let mut found = Vec::new();
        if let Some(schema) = self.input_schema() {
            collect(schema, "", "/inputSchema", DEPTH, &mut found);
        }
        found
    }

    fn text(&self, key: &str) -> Option<&'a str> {
        self.raw.get(key).and_then(Value::as_str)
    }
}

fn collect<'a>(
    schema: &'a Value,
    name: &str,
    at: &str,
    depth: usize,
    found: &mut Vec<Parameter<'a>>,
) {
    if depth == 0 {
        return;
    }
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        for (key, schema) in properties {
            let name = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
            let at = format!("{at}/properties/{}", escape(key));
            found.push(Parameter { name: name.clone(), at: at.clone(), schema });
            collect(schema, &name, &at, depth - 1, found);
        }
    }
    if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
        collect(items, &format!("{name}[]"), &format!("{at}/items"), depth - 1, found);
    }
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
}
