//! The answers of a server: about itself, its tools and a call.
//!
//! Raw JSON with accessors for common parts. The caller judges them.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use crate::revision::Revision;

/// Name, version and capabilities of a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ServerInfo {
    /// The name.
    pub name: String,
    /// The name to display.
    pub title: Option<String>,
    /// The version.
    pub version: String,
    /// Instructions for its use.
    pub instructions: Option<String>,
    /// The negotiated revision.
    pub revision: Revision,
    /// Its capabilities.
    pub capabilities: Value,
}

/// The definition of a tool: the raw JSON object of the server.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Definition(Value);

impl Definition {
    /// Checks that a value is an object with a name.
    ///
    /// # Errors
    /// If it is not.
    ///
    /// ```
    /// use karat_mcp::Definition;
    /// use serde_json::json;
    ///
    /// let tool = Definition::new(json!({"name": "add", "inputSchema": {"type": "object"}}))?;
    /// assert_eq!(tool.name(), "add");
    /// assert!(Definition::new(json!({"title": "Add"})).is_err());
    /// # Ok::<(), String>(())
    /// ```
    pub fn new(raw: Value) -> Result<Definition, String> {
        match raw.get("name") {
            Some(Value::String(_)) => Ok(Definition(raw)),
            Some(_) => Err("its name is not a string".to_owned()),
            None if raw.is_object() => Err("it has no name".to_owned()),
            None => Err("it is not an object".to_owned()),
        }
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.text("name").unwrap_or_default()
    }

    /// The description, if there is one.
    pub fn description(&self) -> Option<&str> {
        self.text("description")
    }

    /// The schema of the arguments, if there is one.
    pub fn input_schema(&self) -> Option<&Value> {
        self.0.get("inputSchema")
    }

    /// The schema of the structured result, if there is one.
    pub fn output_schema(&self) -> Option<&Value> {
        self.0.get("outputSchema")
    }

    /// The first mistake in the marks of properties that headers should repeat (`x-mcp-header`).
    pub fn parameter_headers_fault(&self) -> Option<String> {
        self.input_schema().and_then(crate::parameter_headers::fault)
    }

    /// The whole definition.
    pub fn raw(&self) -> &Value {
        &self.0
    }

    /// The whole definition, owned.
    pub fn into_raw(self) -> Value {
        self.0
    }

    fn text(&self, field: &str) -> Option<&str> {
        self.0.get(field).and_then(Value::as_str)
    }
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The whole result.
    pub raw: Value,
    /// True if the tool reports a failure.
    pub is_error: bool,
    /// The time from sending the request to the arrival of the answer.
    pub latency: Duration,
    /// Progress notifications, in order.
    pub progress: Vec<Value>,
}

impl Reply {
    /// The text blocks of the content, in order.
    pub fn texts(&self) -> Vec<&str> {
        let blocks = self.raw.get("content").and_then(Value::as_array);
        let text = |block: &'_ Value| -> bool { block.get("type") == Some(&json!("text")) };
        blocks
            .into_iter()
            .flatten()
            .filter(|block| text(block))
            .filter_map(|block| block.get("text").and_then(Value::as_str))
            .collect()
    }

    /// The structured content, if there is one. Some servers write null where they have none.
    pub fn structured(&self) -> Option<&Value> {
        self.raw.get("structuredContent").filter(|content| !content.is_null())
    }
}
