//! What a server says: about itself, of its tools, and in answer to a call.
//!
//! Raw JSON with the parts that are asked for most; what is right about it is for others to judge.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use crate::revision::Revision;

/// What a server says about itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ServerInfo {
    /// Its name.
    pub name: String,
    /// Its name for people.
    pub title: Option<String>,
    /// Its version.
    pub version: String,
    /// How it wants to be used.
    pub instructions: Option<String>,
    /// The revision that is spoken.
    pub revision: Revision,
    /// What it can do.
    pub capabilities: Value,
}

/// A tool as the server defines it: the raw JSON object.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Definition(Value);

impl Definition {
    /// Takes a definition as it is.
    ///
    /// # Errors
    /// When it is no object or has no name.
    pub fn new(raw: Value) -> Result<Definition, String> {
        match raw.get("name") {
            Some(Value::String(_)) => Ok(Definition(raw)),
            Some(_) => Err("its name is not a text".to_owned()),
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

    /// What is wrong with the properties that the definition wants repeated in headers, if anything.
    pub fn parameter_headers_fault(&self) -> Option<String> {
        self.input_schema().and_then(crate::parameter_headers::fault)
    }

    /// The whole definition.
    pub fn raw(&self) -> &Value {
        &self.0
    }

    /// The whole definition, to keep.
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
    /// The whole result as on the wire.
    pub raw: Value,
    /// Whether the tool says that it failed.
    pub is_error: bool,
    /// From the sending of the request to the arrival of the answer.
    pub latency: Duration,
    /// What the server told about its progress, in order.
    pub progress: Vec<Value>,
}

impl Reply {
    /// The texts of the content, in order.
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

    /// The structured content, if there is one.
    pub fn structured(&self) -> Option<&Value> {
        self.raw.get("structuredContent")
    }
}
