//! The parts of an answer that matchers look at.

use std::borrow::Cow;

use karat_io::json_path::JsonPath;
use serde_json::Value;

/// An answer that is checked.
#[derive(Debug)]
pub struct Answer<'a> {
    pub(super) source: Source,
    pub(super) result: Option<&'a Value>,
    pub(super) text: Option<Cow<'a, str>>,
    pub(super) data: Option<Cow<'a, Value>>,
}

/// The origin of an answer, which decides how its texts are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The result of a tool.
    Tool,
    /// The prose of an agent.
    Agent,
    /// The state at the end of a task.
    State,
}

impl<'a> Answer<'a> {
    /// The result of a tool, a resource, a prompt or any other request, as it was on the wire.
    pub fn new(result: &'a Value) -> Answer<'a> {
        let blocks = blocks(result);
        let texts: Vec<&str> = blocks.iter().copied().filter_map(block_text).collect();
        let structured = result.get("structuredContent").filter(|value| !value.is_null());
        // The results of other methods are data themselves.
        let other = || (result.is_object() && !has_blocks(result)).then_some(result);
        let data = structured
            .map(Cow::Borrowed)
            .or_else(|| serde_json::from_str(texts.first()?).ok().map(Cow::Owned))
            .or_else(|| other().map(Cow::Borrowed));
        // Empty blocks at the start leave no empty lines behind.
        let start = texts.iter().position(|text| !text.is_empty()).unwrap_or(texts.len());
        let text = texts[start..].join("\n");
        Answer { source: Source::Tool, result: Some(result), text: Some(text.into()), data }
    }

    /// The answer of an agent.
    pub fn prose(text: &'a str) -> Answer<'a> {
        let data = serde_json::from_str(text).ok().map(Cow::Owned);
        Answer { source: Source::Agent, result: None, text: Some(text.into()), data }
    }

    /// The state at the end of a task.
    pub fn state(state: &'a Value) -> Answer<'a> {
        let data = Some(Cow::Borrowed(state));
        Answer { source: Source::State, result: None, text: None, data }
    }

    /// The text; empty if there is none.
    pub fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// The first value at a path in the data.
    pub fn data_at(&self, path: &JsonPath) -> Option<Value> {
        path.find(self.data.as_deref()?).first().map(|found| (*found).clone())
    }

    /// A content block by its number, from 0.
    pub(super) fn block(&self, number: usize) -> Option<&'a Value> {
        blocks(self.result?).get(number).copied()
    }
}

fn has_blocks(result: &Value) -> bool {
    ["content", "contents", "messages"].iter().any(|field| result.get(field).is_some())
}

/// The content of a tool's result, the contents of a resource, or the messages of a prompt.
fn blocks(result: &Value) -> Vec<&Value> {
    let list = |field: &str| result.get(field).and_then(Value::as_array);
    let content = list("content").or_else(|| list("contents"));
    let messages = || list("messages").into_iter().flatten();
    match content {
        Some(blocks) => blocks.iter().collect(),
        None => messages().filter_map(|message| message.get("content")).collect(),
    }
}

/// The text of a content block, also of an embedded resource.
pub(super) fn block_text(block: &Value) -> Option<&str> {
    block.get("text").or_else(|| block.get("resource")?.get("text")).and_then(Value::as_str)
}
