//! What the messages in models' spans say: question, answer, calls and their results, tools on offer.
//!
//! Messages are in one attribute (the GenAI conventions), in an event for each (their older form), or
//! with every field as an attribute of its own (`llm.output_messages.0.message.role` of OpenInference,
//! `gen_ai.completion.0.role` of older OpenLLMetry). All are read into one form first. What was said
//! before is in every later span again, so calls are taken from outputs alone and results from
//! inputs.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::Span;
use crate::formats::chat::{result_of, tool};
use crate::trace::{Arguments, CallMade, ToolDefinition};

/// What the messages of the models' spans say.
#[derive(Default)]
pub(super) struct Said {
    pub(super) input: Option<String>,
    pub(super) output: Option<String>,
    /// The number of messages the user wrote.
    pub(super) spoken: usize,
    pub(super) calls: Vec<CallMade>,
    /// Ids of the calls, in the same order.
    ids: Vec<Option<String>>,
    /// What came back, by the id of the call.
    results: BTreeMap<String, Value>,
}

impl Said {
    pub(super) fn of(spans: &[Span]) -> Said {
        let mut said = Said::default();
        // An agent's span may repeat what the models' spans below it say.
        let is_agent = |span: &Span| span.text(&["gen_ai.operation.name"]) == Some("invoke_agent");
        let by_models = spans.iter().any(|span| !is_agent(span) && !outputs(span).is_empty());
        for span in spans.iter().filter(|span| !by_models || !is_agent(span)) {
            said.heard(&inputs(span));
            for message in outputs(span) {
                said.take(&message);
            }
        }
        let ended = said.calls.iter_mut().zip(&said.ids);
        for (call, id) in ended {
            call.result = id.as_ref().and_then(|id| said.results.get(id).cloned());
        }
        said
    }

    /// What a model was given.
    fn heard(&mut self, messages: &[Value]) {
        // Some put the results of tools into messages of the user.
        let spoken: Vec<String> = messages
            .iter()
            .filter(|message| role(message) == "user")
            .map(words)
            .filter(|words| !words.is_empty())
            .collect();
        self.spoken = self.spoken.max(spoken.len());
        if self.input.is_none() {
            self.input = spoken.into_iter().next();
        }
        for message in messages {
            for part in parts(message) {
                if part.get("type").and_then(Value::as_str) == Some("tool_call_response") {
                    let result = ["response", "result", "content"].iter().find_map(|k| part.get(k));
                    self.result(part.get("id"), result);
                }
            }
            if role(message) == "tool" {
                let id = message.get("tool_call_id").or_else(|| message.get("id"));
                self.result(id, message.get("content"));
            }
        }
    }

    fn result(&mut self, id: Option<&Value>, result: Option<&Value>) {
        let (Some(id), Some(result)) = (id.and_then(Value::as_str), result) else { return };
        let result = match result {
            Value::String(text) => result_of(text.clone()),
            other => other.clone(),
        };
        self.results.insert(id.to_owned(), result);
    }

    /// What a model answered.
    fn take(&mut self, message: &Value) {
        let before = self.calls.len();
        for part in parts(message) {
            if part.get("type").and_then(Value::as_str) == Some("tool_call") {
                self.call(part.get("id"), part.get("name"), part.get("arguments"));
            }
        }
        let calls = message.get("tool_calls").map(structured);
        for call in calls.as_ref().and_then(Value::as_array).into_iter().flatten() {
            let function = call.get("function").unwrap_or(call);
            self.call(call.get("id"), function.get("name"), function.get("arguments"));
        }
        let text = words(message);
        // Anyone who still calls has not answered yet.
        if self.calls.len() > before {
            self.output = None;
        } else if !text.is_empty() {
            self.output = Some(text);
        }
    }

    fn call(&mut self, id: Option<&Value>, name: Option<&Value>, arguments: Option<&Value>) {
        let Some(name) = name.and_then(Value::as_str) else { return };
        let mut call = CallMade::named(name);
        call.arguments = match arguments {
            None | Some(Value::Null) => Arguments::NotRecorded,
            Some(Value::String(text)) => Arguments::written(text),
            Some(value) => Arguments::from_raw(&value.to_string()),
        };
        self.calls.push(call);
        self.ids.push(id.and_then(Value::as_str).map(str::to_owned));
    }
}

/// What a model was given, in whatever form it is in the span.
fn inputs(span: &Span) -> Vec<Value> {
    if let Some(Value::Array(all)) = span.anywhere(&["gen_ai.input.messages"]).map(structured) {
        return all;
    }
    let mut all = events(span, &["gen_ai.user.message", "gen_ai.tool.message"]);
    all.extend(flattened(span, "llm.input_messages."));
    all.extend(flattened(span, "gen_ai.prompt."));
    all
}

/// What a model answered, likewise.
fn outputs(span: &Span) -> Vec<Value> {
    if let Some(Value::Array(all)) = span.anywhere(&["gen_ai.output.messages"]).map(structured) {
        return all;
    }
    let mut all = events(span, &["gen_ai.choice"]);
    if all.is_empty() {
        // Beside a choice it is what the model had said before.
        all = events(span, &["gen_ai.assistant.message"]);
    }
    all.extend(flattened(span, "llm.output_messages."));
    all.extend(flattened(span, "gen_ai.completion."));
    all
}

/// The older conventions have an event for each message, whose name says the role.
fn events(span: &Span, names: &[&str]) -> Vec<Value> {
    let of_name = span.events.iter().filter(|(name, _)| names.contains(&name.as_str()));
    of_name
        .map(|(name, attributes)| {
            let mut message = match attributes.get("message").map(structured) {
                Some(Value::Object(message)) => message,
                _ => attributes.clone(),
            };
            let role = name.strip_prefix("gen_ai.").and_then(|name| name.strip_suffix(".message"));
            if let (Some(role), false) = (role, message.contains_key("role")) {
                message.insert("role".to_owned(), role.into());
            }
            Value::Object(message)
        })
        .collect()
}

/// Messages whose every field is an attribute of its own, put together.
fn flattened(span: &Span, prefix: &str) -> Vec<Value> {
    let mut messages: BTreeMap<u32, Map<String, Value>> = BTreeMap::new();
    let mut calls: BTreeMap<u32, BTreeMap<u32, Map<String, Value>>> = BTreeMap::new();
    for (key, value) in &span.attributes {
        let Some((number, field)) = key.strip_prefix(prefix).and_then(numbered) else { continue };
        let field = field.strip_prefix("message.").unwrap_or(field);
        match field.strip_prefix("tool_calls.").and_then(numbered) {
            Some((call, field)) => {
                let field = field.rsplit('.').next().unwrap_or(field);
                let call = calls.entry(number).or_default().entry(call).or_default();
                call.insert(field.to_owned(), value.clone());
            }
            None => {
                messages.entry(number).or_default().insert(field.to_owned(), value.clone());
            }
        }
    }
    for (number, calls) in calls {
        let all: Vec<Value> = calls.into_values().map(Value::Object).collect();
        messages.entry(number).or_default().insert("tool_calls".to_owned(), json!(all));
    }
    messages.into_values().map(Value::Object).collect()
}

/// The number at the start of a key, and what follows it.
fn numbered(key: &str) -> Option<(u32, &str)> {
    let (number, rest) = key.split_once('.')?;
    Some((number.parse().ok()?, rest))
}

/// A value, or the value that a text holds.
pub(super) fn structured(value: &Value) -> Value {
    match value {
        Value::String(text) => serde_json::from_str(text).unwrap_or_else(|_| value.clone()),
        value => value.clone(),
    }
}

fn role(message: &Value) -> &str {
    message.get("role").and_then(Value::as_str).unwrap_or_default()
}

fn parts(message: &Value) -> impl Iterator<Item = &Value> {
    message.get("parts").and_then(Value::as_array).into_iter().flatten()
}

fn words(message: &Value) -> String {
    if let Some(text) = message.get("content").and_then(Value::as_str) {
        return text.to_owned();
    }
    let texts: Vec<&str> = parts(message)
        .filter(|part| part.get("type").and_then(Value::as_str) == Some("text"))
        .filter_map(|part| part.get("content").or_else(|| part.get("text"))?.as_str())
        .collect();
    texts.join("\n")
}

/// The tools that a model was offered.
pub(super) fn definitions(spans: &[Span]) -> Option<Vec<ToolDefinition>> {
    let stated = spans.iter().find_map(|span| span.anywhere(&["gen_ai.tool.definitions"]));
    let all = match stated.map(structured) {
        Some(Value::Array(all)) => all,
        Some(_) => return None,
        None => spans.iter().map(numbered_tools).find(|all| !all.is_empty())?,
    };
    let read = |value: &Value| tool(value.get("function").unwrap_or(value));
    Some(all.iter().filter_map(read).collect())
}

/// OpenInference's `llm.tools.0.tool.json_schema`.
fn numbered_tools(span: &Span) -> Vec<Value> {
    let tools: BTreeMap<u32, Value> = span
        .attributes
        .iter()
        .filter_map(|(key, value)| {
            let (number, field) = key.strip_prefix("llm.tools.").and_then(numbered)?;
            (field == "tool.json_schema").then(|| (number, structured(value)))
        })
        .collect();
    tools.into_values().collect()
}
