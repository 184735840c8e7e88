//! The model: behind an OpenAI-compatible or an Anthropic endpoint, or a plan in the task.
//!
//! Conversations are kept in the format of chat completions; this module turns them into requests, and
//! reads the answers. It sends nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use karat_core::error::EvalError;
use karat_io::http::{self, Client};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::offer::Offer;
use crate::tasks::Task;
use crate::trace::{CallError, Setting, Usage};

/// The API of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Api {
    /// None: the agent follows the plan of the task.
    Scripted,
    /// OpenAI-compatible chat completions.
    Openai,
    /// Anthropic messages.
    Anthropic,
}

impl Api {
    /// A client for an endpoint with this API. `key_variable` is the environment variable with its key.
    ///
    /// # Errors
    /// If the variable is not set.
    pub fn client(
        self,
        key_variable: Option<&str>,
        timeout: Duration,
    ) -> Result<Client, EvalError> {
        let mut headers = BTreeMap::new();
        if let Some(variable) = key_variable {
            let (name, value) = match self {
                Api::Anthropic => ("x-api-key", format!("${{{variable}}}")),
                _ => ("Authorization", format!("Bearer ${{{variable}}}")),
            };
            headers.insert(name.to_owned(), value);
        }
        if self == Api::Anthropic {
            headers.insert("anthropic-version".to_owned(), "2023-06-01".to_owned());
        }
        let options = http::Options { timeout, headers, ..http::Options::default() };
        Client::new(&options).map_err(EvalError::config)
    }
}

/// A model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// Its name at the endpoint.
    pub name: String,
    /// The API of the endpoint.
    pub api: Api,
    /// The URL of the endpoint, without `/chat/completions` or `/messages`.
    pub endpoint: String,
    /// The maximum number of tokens of one answer.
    pub max_tokens: u64,
    /// The temperature.
    pub temperature: f64,
    /// The seed of the first run, for endpoints that take one; each run has the next.
    pub seed: Option<u64>,
    /// The price of a million input tokens, and of as many output tokens.
    pub price: Option<(f64, f64)>,
}

impl Model {
    /// The scripted agent.
    #[must_use]
    pub(crate) fn scripted() -> Self {
        Model {
            name: "scripted".to_owned(),
            api: Api::Scripted,
            endpoint: String::new(),
            max_tokens: 0,
            temperature: 0.0,
            seed: None,
            price: None,
        }
    }

    /// The URL of requests.
    pub(super) fn url(&self) -> String {
        let base = self.endpoint.trim_end_matches('/');
        match self.api {
            Api::Anthropic => format!("{base}/messages"),
            _ => format!("{base}/chat/completions"),
        }
    }

    /// The cost so far, if prices and tokens are known.
    pub(super) fn cost(&self, usage: &Usage) -> Option<f64> {
        let (input, output) = self.price?;
        let millions = |tokens: Option<u64>| Some(tokens? as f64 / 1e6);
        Some(millions(usage.input_tokens)? * input + millions(usage.output_tokens)? * output)
    }

    /// The body of a request.
    pub(super) fn request(&self, messages: &[Value], offer: &Offer, run: u64) -> Value {
        match self.api {
            Api::Anthropic => self.anthropic(messages, offer),
            _ => self.openai(messages, offer, run),
        }
    }

    fn openai(&self, messages: &[Value], offer: &Offer, run: u64) -> Value {
        let mut body = json!({
            "model": self.name,
            "messages": messages,
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
        });
        if let Some(seed) = self.seed {
            body["seed"] = json!(seed.saturating_add(run.saturating_sub(1)));
        }
        let tools: Vec<Value> = offer
            .shown()
            .map(|(name, tool)| {
                json!({"type": "function", "function": {
                    "name": name,
                    "description": tool.description,
                    "parameters": tool.input_schema.clone().unwrap_or(json!({"type": "object"})),
                }})
            })
            .collect();
        if !tools.is_empty() {
            body["tools"] = Value::Array(tools);
        }
        body
    }

    fn anthropic(&self, messages: &[Value], offer: &Offer) -> Value {
        let mut system = Vec::new();
        let mut turned: Vec<Value> = Vec::new();
        for message in messages {
            let text = message["content"].as_str().unwrap_or_default();
            match message["role"].as_str().unwrap_or_default() {
                "system" => system.push(text.to_owned()),
                "tool" => {
                    let id = &message["tool_call_id"];
                    add_block(
                        &mut turned,
                        json!({"type": "tool_result", "tool_use_id": id, "content": text}),
                    );
                }
                "assistant" => {
                    let blocks = blocks(message);
                    // A message without content would be refused.
                    if !blocks.is_empty() {
                        turned.push(json!({"role": "assistant", "content": blocks}));
                    }
                }
                _ => add_block(&mut turned, json!({"type": "text", "text": text})),
            }
        }
        let mut body = json!({
            "model": self.name,
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "messages": turned,
        });
        if !system.is_empty() {
            body["system"] = json!(system.join("\n"));
        }
        let tools: Vec<Value> = offer
            .shown()
            .map(|(name, tool)| {
                json!({
                    "name": name,
                    "description": tool.description.clone().unwrap_or_default(),
                    "input_schema": tool.input_schema.clone().unwrap_or(json!({"type": "object"})),
                })
            })
            .collect();
        if !tools.is_empty() {
            body["tools"] = Value::Array(tools);
        }
        body
    }

    /// The body of a request that offers no tools.
    pub(crate) fn plain_request(&self, messages: &[Value], number: u64) -> Value {
        self.request(messages, &Offer::default(), number)
    }

    /// The text of an answer.
    pub(crate) fn text_of(&self, answer: &Value) -> Result<String, CallError> {
        self.read(answer).map(|said| said.text.unwrap_or_default())
    }

    /// Reads an answer.
    pub(super) fn read(&self, answer: &Value) -> Result<Said, CallError> {
        match self.api {
            Api::Anthropic => read_anthropic(answer),
            _ => read_openai(answer),
        }
        .ok_or_else(|| CallError {
            class: "invalid_answer".to_owned(),
            message: format!(
                "the endpoint's answer is not a model response: {}",
                karat_io::text::clip(&karat_io::text::printable(&answer.to_string()), 200)
            ),
        })
    }
}

/// Adds a block of the user; consecutive ones are one message.
fn add_block(turned: &mut Vec<Value>, block: Value) {
    let last = turned.last_mut().filter(|last| last["role"] == "user");
    match last.map(|last| &mut last["content"]) {
        Some(Value::Array(blocks)) => blocks.push(block),
        Some(content) => {
            let before = json!({"type": "text", "text": content.take()});
            *content = json!([before, block]);
        }
        None if block["type"] == "text" => {
            turned.push(json!({"role": "user", "content": block["text"]}));
        }
        None => turned.push(json!({"role": "user", "content": [block]})),
    }
}

/// An assistant message as blocks.
fn blocks(message: &Value) -> Vec<Value> {
    let mut blocks = Vec::new();
    if let Some(text) = message["content"].as_str().filter(|text| !text.is_empty()) {
        blocks.push(json!({"type": "text", "text": text}));
    }
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        let arguments = call["function"]["arguments"].as_str().unwrap_or("{}");
        let input = serde_json::from_str::<Map<String, Value>>(arguments).unwrap_or_default();
        blocks.push(json!({"type": "tool_use", "id": call["id"], "name": call["function"]["name"], "input": input}));
    }
    blocks
}

/// One answer of a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Said {
    /// The text.
    pub text: Option<String>,
    /// The calls that it asks for: id, name, the arguments as it wrote them.
    pub calls: Vec<(String, String, String)>,
    /// Input tokens.
    pub input_tokens: Option<u64>,
    /// Output tokens.
    pub output_tokens: Option<u64>,
}

impl Said {
    /// As a message of a chat.
    pub(super) fn message(&self) -> Value {
        let mut message = json!({"role": "assistant", "content": self.text});
        if !self.calls.is_empty() {
            message["tool_calls"] = self
                .calls
                .iter()
                .map(|(id, name, arguments)| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}))
                .collect();
        }
        message
    }
}

fn read_openai(answer: &Value) -> Option<Said> {
    let message = answer.get("choices")?.get(0)?.get("message")?.as_object()?;
    let text = match message.get("content") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Array(parts)) => {
            let texts: Vec<&str> =
                parts.iter().filter_map(|part| part.get("text")?.as_str()).collect();
            Some(texts.join("\n"))
        }
        Some(_) => return None,
    };
    let mut said = Said { text, ..Said::default() };
    let calls = message.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
    for (number, call) in calls.enumerate() {
        let id = call.get("id").and_then(Value::as_str).filter(|id| !id.is_empty());
        let id = id.map_or_else(|| format!("call_{number}"), str::to_owned);
        said.calls.push(called(id, call.get("function")?)?);
    }
    // The older name of tool calls.
    if let Some(function) = message.get("function_call").filter(|call| call.is_object())
        && said.calls.is_empty()
    {
        said.calls.push(called("call_0".to_owned(), function)?);
    }
    let tokens = |key: &str| answer.get("usage")?.get(key)?.as_u64();
    said.input_tokens = tokens("prompt_tokens");
    said.output_tokens = tokens("completion_tokens");
    Some(said)
}

/// A call: its id, the name of the function, the arguments as they were written.
fn called(id: String, function: &Value) -> Option<(String, String, String)> {
    let arguments = match function.get("arguments") {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => "{}".to_owned(),
    };
    Some((id, function.get("name")?.as_str()?.to_owned(), arguments))
}

fn read_anthropic(answer: &Value) -> Option<Said> {
    let mut said = Said::default();
    let mut texts = Vec::new();
    for block in answer.get("content")?.as_array()? {
        match block.get("type")?.as_str()? {
            "text" => texts.push(block.get("text")?.as_str()?.to_owned()),
            "tool_use" => said.calls.push((
                block.get("id")?.as_str()?.to_owned(),
                block.get("name")?.as_str()?.to_owned(),
                block.get("input").map_or_else(|| "{}".to_owned(), ToString::to_string),
            )),
            _ => {}
        }
    }
    said.text = Some(texts.join("\n")).filter(|text| !text.is_empty());
    let tokens = |key: &str| answer.get("usage")?.get(key)?.as_u64();
    said.input_tokens = tokens("input_tokens");
    said.output_tokens = tokens("output_tokens");
    Some(said)
}

/// The answer of the plan of a task at a turn: `{"turns": [{"calls": […], "say": "…"}],
/// "without_tools": "…"}`.
pub(super) fn scripted(task: &Task, setting: Setting, number: u32) -> Result<Said, CallError> {
    let wrong = |message: &str| CallError {
        class: "invalid_plan".to_owned(),
        message: format!("the plan of {:?} {message}", task.id),
    };
    let plan = task.plan.as_ref().ok_or_else(|| wrong("is missing"))?;
    if !setting.has_tools() {
        let text = plan.get("without_tools").and_then(Value::as_str).map(str::to_owned);
        return Ok(Said { text, ..Said::default() });
    }
    let turns = plan.get("turns").and_then(Value::as_array).ok_or_else(|| wrong("has no turns"))?;
    let Some(turn) = turns.get(number as usize - 1) else { return Ok(Said::default()) };
    let mut said = Said {
        text: turn.get("say").and_then(Value::as_str).map(str::to_owned),
        ..Said::default()
    };
    for (at, call) in turn.get("calls").and_then(Value::as_array).into_iter().flatten().enumerate()
    {
        let id = format!("call_{number}_{at}");
        said.calls.push(called(id, call).ok_or_else(|| wrong("has a call without a name"))?);
    }
    Ok(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_the_old_function_call_are_read() {
        let read = |message: Value| read_openai(&json!({"choices": [{"message": message}]}));
        let parts = read(
            json!({"content": [{"type": "text", "text": "It is"}, {"type": "text", "text": "5."}]}),
        );
        assert_eq!(parts.unwrap().text.as_deref(), Some("It is\n5."));
        let old =
            read(json!({"content": null, "function_call": {"name": "add", "arguments": "{}"}}));
        assert_eq!(old.unwrap().calls, [("call_0".into(), "add".into(), "{}".into())]);
        assert_eq!(read(json!({"content": 5})), None);
        assert_eq!(read(json!({"function_call": {}})), None);
    }

    #[test]
    fn an_empty_answer_is_not_sent_back() {
        let model = Model { api: Api::Anthropic, ..Model::scripted() };
        let user = |text: &str| json!({"role": "user", "content": text});
        let silence = json!({"role": "assistant", "content": null});
        let sent = |messages: &[Value]| model.plain_request(messages, 1)["messages"].clone();
        assert_eq!(
            sent(&[user("one"), silence.clone(), user("two")]),
            json!([{"role": "user", "content": [
                {"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}])
        );
        let call = json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": "1", "function": {"name": "f", "arguments": "{}"}}]});
        let result = json!({"role": "tool", "tool_call_id": "1", "content": "r"});
        let all = sent(&[user("one"), call, result, silence, user("two")]);
        let roles: Vec<&Value> = all.as_array().unwrap().iter().map(|m| &m["role"]).collect();
        assert_eq!(roles, ["user", "assistant", "user"]);
        assert_eq!(all[2]["content"][1]["text"], "two");
    }

    #[test]
    fn unknown_tokens_have_no_price() {
        let model = Model { price: Some((1.0, 2.0)), ..Model::scripted() };
        assert_eq!(model.cost(&Usage::default()), None);
        let usage = Usage {
            input_tokens: Some(1_000_000),
            output_tokens: Some(500_000),
            ..Usage::default()
        };
        assert_eq!(model.cost(&usage), Some(2.0));
    }
}
