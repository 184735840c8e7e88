//! Arguments that are repeated in headers.
//!
//! From revision 2026-07-28 on, a tool may mark properties of its input with `x-mcp-header`. Their values
//! are also sent as `Mcp-Param-…` headers, so that gateways can route by them.

use std::collections::{HashMap, HashSet};

use reqwest::header::{HeaderName, HeaderValue};
use serde_json::{Map, Value};

use crate::headers::header_text;
use crate::reply::Definition;

/// Maximum depth of properties.
const MAX_DEPTH: usize = 16;

/// The headers of each tool, with the paths of their values in the arguments.
#[derive(Debug, Default)]
pub(crate) struct ParameterHeaders {
    by_tool: HashMap<String, Vec<(HeaderName, Vec<String>)>>,
}

impl ParameterHeaders {
    /// The headers that the definitions ask for.
    pub(crate) fn of(tools: &[Definition]) -> ParameterHeaders {
        let mut by_tool = HashMap::new();
        for tool in tools {
            let mut found = Vec::new();
            if let Some(schema) = tool.input_schema() {
                collect(schema, &mut Vec::new(), &mut found);
            }
            if !found.is_empty() {
                by_tool.insert(tool.name().to_owned(), found);
            }
        }
        ParameterHeaders { by_tool }
    }

    /// The headers of one call.
    pub(crate) fn headers(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
    ) -> Vec<(HeaderName, HeaderValue)> {
        let wanted = self.by_tool.get(tool).map(Vec::as_slice).unwrap_or_default();
        let header = |(name, path): &(HeaderName, Vec<String>)| {
            let (first, rest) = path.split_first()?;
            let value = rest.iter().try_fold(arguments.get(first)?, |value, key| value.get(key))?;
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Bool(_) | Value::Number(_) => value.to_string(),
                _ => return None,
            };
            Some((name.clone(), header_text(&text)))
        };
        wanted.iter().filter_map(header).collect()
    }
}

fn collect(schema: &Value, path: &mut Vec<String>, found: &mut Vec<(HeaderName, Vec<String>)>) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    if path.len() == MAX_DEPTH {
        return;
    }
    for (name, property) in properties {
        path.push(name.clone());
        let marked = property.get("x-mcp-header").and_then(Value::as_str).and_then(|header| {
            HeaderName::from_bytes(format!("Mcp-Param-{header}").as_bytes()).ok()
        });
        if let Some(header) = marked {
            found.push((header, path.clone()));
        }
        collect(property, path, found);
        path.pop();
    }
}

/// The first mistake in the marks of a definition. A client must not offer such a tool to its user.
pub(crate) fn fault(schema: &Value) -> Option<String> {
    let mut seen = HashSet::new();
    faults(schema, 0, &mut seen)
}

fn faults(schema: &Value, depth: usize, seen: &mut HashSet<String>) -> Option<String> {
    let properties = schema.get("properties").and_then(Value::as_object)?;
    for (name, property) in properties.iter().filter(|_| depth < MAX_DEPTH) {
        if let Some(mark) = property.get("x-mcp-header") {
            let header = mark.as_str().unwrap_or_default();
            if header.is_empty() || HeaderName::from_bytes(header.as_bytes()).is_err() {
                return Some(format!("{name}: {mark} is not a valid header name"));
            }
            if !seen.insert(header.to_ascii_lowercase()) {
                return Some(format!("{name}: duplicate header {mark}"));
            }
            let kind = property.get("type").and_then(Value::as_str).unwrap_or("string");
            if !matches!(kind, "string" | "integer" | "boolean") {
                return Some(format!("{name}: a header cannot hold the type {kind}"));
            }
        }
        if let Some(found) = faults(property, depth + 1, seen) {
            return Some(found);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn marked_arguments_become_headers() {
        let tool = Definition::new(json!({"name": "t", "inputSchema": {"properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "deep": {"properties": {"n": {"x-mcp-header": "N"}, "o": {"x-mcp-header": "O"}}},
            "bad": {"x-mcp-header": "not a header"},
            "plain": {},
        }}}))
        .unwrap();
        let headers = ParameterHeaders::of(&[tool]);
        let arguments =
            json!({"region": "süd", "deep": {"n": 3, "o": {}}, "bad": "x", "plain": "y"});
        let found = headers.headers("t", arguments.as_object().unwrap());
        let found: Vec<(&str, &str)> =
            found.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        assert_eq!(found, [("mcp-param-region", "=?base64?c8O8ZA==?="), ("mcp-param-n", "3")]);
        assert_eq!(headers.headers("other", &Map::new()), []);
    }

    #[test]
    fn invalid_marks_are_faults() {
        let fault = |properties: Value| fault(&json!({"properties": properties}));
        assert_eq!(fault(json!({"a": {"type": "integer", "x-mcp-header": "A"}, "b": {}})), None);
        for properties in [
            json!({"a": {"type": "string", "x-mcp-header": ""}}),
            json!({"a": {"type": "string", "x-mcp-header": "My Region"}}),
            json!({"a": {"type": "string", "x-mcp-header": "Région"}}),
            json!({"a": {"type": "number", "x-mcp-header": "A"}}),
            json!({"a": {"type": "object", "x-mcp-header": "A"}}),
            json!({"a": {"x-mcp-header": "Field"}, "b": {"x-mcp-header": "field"}}),
            json!({"a": {"properties": {"b": {"x-mcp-header": "x:y"}}}}),
        ] {
            assert!(fault(properties.clone()).is_some(), "{properties}");
        }
    }
}
