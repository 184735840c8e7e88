//! The tools that a model is offered: under names that endpoints take, each leading back to its server.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::trace::ToolDefinition;

/// The longest name that endpoints take.
const NAME: usize = 64;
/// How much of a result is told to a model.
const TOLD: usize = 20_000;

/// What is on offer.
#[derive(Debug, Default)]
pub(super) struct Offer {
    /// By the name that the model sees: the definition.
    tools: BTreeMap<String, ToolDefinition>,
    servers: BTreeSet<String>,
}

impl Offer {
    /// Adds the tools that a server lists.
    pub(super) fn add(&mut self, server: &str, tools: &Value) {
        self.servers.insert(server.to_owned());
        for tool in tools.as_array().into_iter().flatten() {
            let Some(name) = tool.get("name").and_then(Value::as_str) else { continue };
            let mut shown = plain(name);
            if self.tools.contains_key(&shown) {
                shown = plain(&format!("{server}__{name}"));
            }
            let definition = ToolDefinition {
                name: name.to_owned(),
                server: Some(server.to_owned()),
                description: tool.get("description").and_then(Value::as_str).map(str::to_owned),
                input_schema: tool.get("inputSchema").cloned(),
            };
            self.tools.insert(shown, definition);
        }
    }

    /// Server and tool behind a name that the model used.
    pub(super) fn find(&self, name: &str) -> Option<(&str, &str)> {
        let tool = self.tools.get(name).or_else(|| {
            self.tools.values().find(|tool| {
                let server = tool.server.as_deref().unwrap_or_default();
                name == format!("{server}:{}", tool.name)
            })
        })?;
        Some((tool.server.as_deref()?, &tool.name))
    }

    /// The one server, if there is one.
    pub(super) fn only_server(&self) -> Option<String> {
        self.servers.first().filter(|_| self.servers.len() == 1).cloned()
    }

    /// The tools with the names that the model sees.
    pub(super) fn shown(&self) -> impl Iterator<Item = (&String, &ToolDefinition)> {
        self.tools.iter()
    }

    /// The tools as they stand in a trace.
    pub(super) fn definitions(&self) -> Vec<ToolDefinition> {
        self.tools.values().cloned().collect()
    }
}

fn plain(name: &str) -> String {
    let fine = |c: char| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '_' };
    name.chars().map(fine).take(NAME).collect()
}

/// A result as a model reads it.
pub(super) fn words(result: &Value) -> String {
    let blocks = result.get("content").and_then(Value::as_array);
    let texts: Vec<&str> = blocks
        .into_iter()
        .flatten()
        .filter_map(|block| block.get("text").and_then(Value::as_str))
        .collect();
    let text = if texts.is_empty() { result.to_string() } else { texts.join("\n") };
    karat_core::text::clip(&text, TOLD).into_owned()
}

/// The data of a result: what is structured, else the JSON in its text, else the text.
pub(super) fn data(result: &Value) -> Value {
    if let Some(data) = result.get("structuredContent") {
        return data.clone();
    }
    let text = words(result);
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}
