//! Who acts: a model behind an OpenAI-compatible or an Anthropic endpoint, or a plan in the task.
//!
//! Conversations are kept in the shape of chat completions; this module turns them into requests and
//! answers back into what was said. It sends nothing.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::offer::Offer;
use crate::tasks::Task;
use crate::trace::{CallError, Setting, Usage};

/// How a model is talked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Api {
    /// Not at all: it does what the task's plan says.
    Scripted,
    /// OpenAI-compatible chat completions.
    Openai,
    /// Anthropic messages.
    Anthropic,
}

/// A model.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Its name, as the endpoint knows it.
    pub name: String,
    /// How it is talked to.
    pub api: Api,
    /// Where: up to and without `/chat/completions` or `/messages`.
    pub endpoint: String,
    /// The most tokens of one answer.
    pub max_tokens: u64,
    /// The temperature.
    pub temperature: f64,
    /// The first seed, for endpoints that take one; each run has the next.
    pub seed: Option<u64>,
    /// What a million tokens cost, in and out.
    pub price: Option<(f64, f64)>,
}

impl Model {
    /// The scripted agent.
    #[must_use]
    pub fn scripted() -> Self {
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

    /// Where requests go.
    #[must_use]
    pub fn url(&self) -> String {
        let base = self.endpoint.trim_end_matches('/');
        match self.api {
            Api::Anthropic => format!("{base}/messages"),
            _ => format!("{base}/chat/completions"),
        }
    }

    /// What it cost so far, where prices are known.
    pub(super) fn cost(&self, usage: &Usage) -> Option<f64> {
        let (input, output) = self.price?;
        let tokens = |count: Option<u64>| count.unwrap_or_default() as f64 / 1e6;
        Some(tokens(usage.input_tokens) * input + tokens(usage.output_tokens) * output)
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
            body["seed"] = json!(seed + run - 1);
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
                    let block = json!({"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": text});
                    // Results of one answer stand in one message.
                    match turned
                        .last_mut()
                        .filter(|last| last["role"] == "user" && last["content"].is_array())
                    {
                        Some(last) => {
                            if let Some(blocks) = last["content"].as_array_mut() {
                                blocks.push(block);
                            }
                        }
                        None => turned.push(json!({"role": "user", "content": [block]})),
                    }
                }
                "assistant" => {
                    turned.push(json!({"role": "assistant", "content": blocks(message)}));
                }
                _ => turned.push(json!({"role": "user", "content": text})),
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

    /// The words of an answer.
    pub(crate) fn text_of(&self, answer: &Value) -> Result<String, CallError> {
        self.read(answer).map(|said| said.text.unwrap_or_default())
    }

    /// What an answer says.
    pub(super) fn read(&self, answer: &Value) -> Result<Said, CallError> {
        match self.api {
            Api::Anthropic => read_anthropic(answer),
            _ => read_openai(answer),
        }
        .ok_or_else(|| CallError {
            class: "invalid_answer".to_owned(),
            message: format!(
                "the endpoint's answer is not one of a model: {}",
                karat_core::text::clip(&karat_core::text::printable(&answer.to_string()), 200)
            ),
        })
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

/// What a model said once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Said {
    /// In words.
    pub text: Option<String>,
    /// What it asks to be called: id, name, the arguments as it wrote them.
    pub calls: Vec<(String, String, String)>,
    /// Tokens that went in.
    pub input_tokens: Option<u64>,
    /// Tokens that came out.
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
    let mut said = Said {
        text: message.get("content").and_then(Value::as_str).map(str::to_owned),
        ..Said::default()
    };
    for (number, call) in
        message.get("tool_calls").and_then(Value::as_array).into_iter().flatten().enumerate()
    {
        let function = call.get("function")?;
        let arguments = match function.get("arguments") {
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
            None => "{}".to_owned(),
        };
        let id = call.get("id").and_then(Value::as_str).filter(|id| !id.is_empty());
        let id = id.map_or_else(|| format!("call_{number}"), str::to_owned);
        said.calls.push((id, function.get("name")?.as_str()?.to_owned(), arguments));
    }
    let tokens = |key: &str| answer.get("usage")?.get(key)?.as_u64();
    said.input_tokens = tokens("prompt_tokens");
    said.output_tokens = tokens("completion_tokens");
    Some(said)
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

/// What the plan of a task says at a turn: `{"turns": [{"calls": […], "say": "…"}], "without_tools":
/// "…"}`.
pub(super) fn scripted(task: &Task, setting: Setting, number: u32) -> Result<Said, CallError> {
    let wrong = |message: &str| CallError {
        class: "invalid_plan".to_owned(),
        message: format!("the plan of {:?}: {message}", task.id),
    };
    let plan = task.plan.as_ref().ok_or_else(|| wrong("there is none"))?;
    if !setting.has_tools() {
        let text = plan.get("without_tools").and_then(Value::as_str).map(str::to_owned);
        return Ok(Said { text, ..Said::default() });
    }
    let turns = plan.get("turns").and_then(Value::as_array).ok_or_else(|| wrong("no turns"))?;
    let Some(turn) = turns.get(number as usize - 1) else { return Ok(Said::default()) };
    let mut said = Said {
        text: turn.get("say").and_then(Value::as_str).map(str::to_owned),
        ..Said::default()
    };
    for (at, call) in turn.get("calls").and_then(Value::as_array).into_iter().flatten().enumerate()
    {
        let name =
            call.get("name").and_then(Value::as_str).ok_or_else(|| wrong("a call has no name"))?;
        let arguments = match call.get("arguments") {
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
            None => "{}".to_owned(),
        };
        said.calls.push((format!("call_{number}_{at}"), name.to_owned(), arguments));
    }
    Ok(said)
}
