//! Arguments that are repeated in headers.
//!
//! From revision 2026-07-28 on, a tool may mark properties of its input with `x-mcp-header`; their
//! values then also travel as `Mcp-Param-…` headers, so that what stands between can route by them.

use std::collections::HashMap;

use reqwest::header::{HeaderName, HeaderValue};
use serde_json::{Map, Value};

use crate::http::header_text;
use crate::session::Definition;

/// How deep properties are looked into.
const DEEPEST: usize = 16;

/// For each tool, the headers and where in the arguments their values stand.
#[derive(Debug, Default)]
pub(crate) struct ParameterHeaders {
    by_tool: HashMap<String, Vec<(HeaderName, Vec<String>)>>,
}

impl ParameterHeaders {
    /// What the definitions ask for.
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
    if path.len() == DEEPEST {
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
}
