//! Chat logs of OpenAI and Anthropic: `{"messages": […], "tools": […]}`, or `{"request": …, "response": …}`
//! for each exchange, or the two halves of a batch file joined.
//!
//! Calls are the `tool_calls` (or the older `function_call`) of assistant messages, with the arguments
//! as the model wrote them, and their `tool_use` blocks; results are messages of the tool, and
//! `tool_result` blocks. Chat completions do not record whether a tool failed, unless its content is an
//! MCP result with `isError`; blocks have `is_error`.
//!
//! Exchanges of one conversation follow each other in the file and have the same id; the longest one
//! counts, and the tokens of all are added. Karat's own fields (`id`, `run`, `setting`, `expect`, …) are
//! read in each document.

use std::sync::Arc;

use serde_json::Value;

use super::{Importer, Position};
use crate::trace::fields::{Fields, is_list, is_object, is_string, list, typed};
use crate::trace::{
    Arguments, CallError, CallMade, Expectation, Invalid, ToolDefinition, Trace, Turns, as_id,
};

/// The settings of a request, which say nothing about the agent.
const SETTINGS: [&str; 8] =
    ["temperature", "max_tokens", "seed", "tool_choice", "stream", "top_p", "system", "thinking"];

/// The content of one document.
#[derive(Default)]
struct Conversation {
    trace: Trace,
    /// The number of user messages.
    spoken: usize,
    /// Ids of the calls in the trace, in the same order.
    ids: Vec<Option<String>>,
    /// The number of messages, which decides which exchange is the longest.
    length: usize,
}

impl Conversation {
    /// Adds a call that the model made.
    fn call(&mut self, id: Option<String>, name: &str, arguments: Arguments) {
        let mut call = CallMade::named(name);
        call.arguments = arguments;
        self.trace.calls.push(call);
        self.ids.push(id);
    }

    /// The call with this id that has no result yet; without an id the first such call.
    fn waiting(&mut self, id: Option<&str>) -> Option<&mut CallMade> {
        let open = |call: &CallMade| call.result.is_none() && call.error.is_none();
        let position = (0..self.ids.len()).find(|&position| {
            open(&self.trace.calls[position])
                && (id.is_none() || self.ids[position].as_deref() == id)
        })?;
        self.trace.calls.get_mut(position)
    }

    /// Adds a user message.
    fn said(&mut self, text: &str) {
        self.spoken += 1;
        if self.trace.input.is_none() {
            self.trace.input = Some(text.to_owned());
        }
        if self.spoken > 1 {
            self.trace.turns = Turns::Multi;
        }
    }

    fn usage(&mut self, usage: &Value) {
        let number = |key: &str| usage.get(key).and_then(Value::as_u64);
        // Tokens from the cache are input too.
        let cached = number("cache_creation_input_tokens").unwrap_or_default()
            + number("cache_read_input_tokens").unwrap_or_default();
        let input = number("input_tokens").map(|tokens| tokens.saturating_add(cached));
        self.trace.usage.input_tokens = number("prompt_tokens").or(input);
        self.trace.usage.output_tokens =
            number("completion_tokens").or_else(|| number("output_tokens"));
    }

    fn message(&mut self, text: &str) -> Result<(), Invalid> {
        let mut fields = Fields::parse(text)?;
        self.length += 1;
        if let Ok(message) = serde_json::from_str(text) {
            self.trace.messages.push(message);
        }
        let role: String = fields.need("role")?;
        let content = fields.raw("content");
        match role.as_str() {
            "user" => {
                let results = self.blocks(content)?.1;
                let text = text_of(content);
                // Results of tools are in messages of the user, who need not say anything.
                if !text.is_empty() || results == 0 {
                    self.said(&text);
                }
            }
            "assistant" => {
                let mut calls = self.blocks(content)?.0;
                for (number, call) in
                    fields.list("tool_calls")?.unwrap_or_default().iter().enumerate()
                {
                    let read = self.tool_call(call);
                    read.map_err(|error| error.within(&format!("tool_calls[{number}]")))?;
                    calls += 1;
                }
                if let Some(call) = fields.raw("function_call") {
                    self.function(call, None)?;
                    calls += 1;
                }
                let text = text_of(content);
                // A model that still calls has not answered yet.
                self.trace.output = (calls == 0 && !text.is_empty()).then_some(text);
            }
            "tool" | "function" => {
                let id: Option<String> = fields.get("tool_call_id")?;
                if let Some(call) = self.waiting(id.as_deref()) {
                    call.result = Some(result_of(text_of(content)));
                }
            }
            // Messages of the developer are not actions of the agent.
            _ => {}
        }
        Ok(())
    }

    fn tool_call(&mut self, text: &str) -> Result<(), Invalid> {
        let mut fields = Fields::parse(text)?;
        let id = fields.get("id")?;
        let function = fields.raw("function");
        let function = function.ok_or_else(|| Invalid::at("function", "is missing"))?;
        self.function(function, id).map_err(|error| error.within("function"))
    }

    fn function(&mut self, text: &str, id: Option<String>) -> Result<(), Invalid> {
        let mut fields = Fields::parse(text)?;
        let name: String = fields.need("name")?;
        let arguments = fields.raw("arguments").map_or(Arguments::NotRecorded, Arguments::from_raw);
        self.call(id, &name, arguments);
        Ok(())
    }

    /// Reads the calls and results among the blocks of a message, and returns their numbers.
    fn blocks(&mut self, content: Option<&str>) -> Result<(usize, usize), Invalid> {
        let (mut calls, mut results) = (0, 0);
        let blocks = content.filter(|content| is_list(content)).map(list).transpose()?;
        for (number, block) in blocks.into_iter().flatten().enumerate() {
            let place = |error: Invalid| error.within(&format!("content[{number}]"));
            let mut fields = Fields::parse(block).map_err(place)?;
            match fields.get::<String>("type").map_err(place)?.as_deref() {
                Some("tool_use" | "mcp_tool_use" | "server_tool_use") => {
                    self.tool_use(&mut fields).map_err(place)?;
                    calls += 1;
                }
                Some("tool_result" | "mcp_tool_result") => {
                    self.tool_result(&mut fields).map_err(place)?;
                    results += 1;
                }
                // Text is read as a whole; thinking, images and documents are not scored.
                _ => {}
            }
        }
        Ok((calls, results))
    }

    fn tool_use(&mut self, fields: &mut Fields<'_>) -> Result<(), Invalid> {
        let name: String = fields.need("name")?;
        let arguments = fields.raw("input").map_or(Arguments::NotRecorded, Arguments::from_raw);
        self.call(fields.get("id")?, &name, arguments);
        let server: Option<String> = fields.get("server_name")?;
        if let (Some(server), Some(call)) = (server, self.trace.calls.last_mut()) {
            call.server = Some(server);
        }
        Ok(())
    }

    fn tool_result(&mut self, fields: &mut Fields<'_>) -> Result<(), Invalid> {
        let id: Option<String> = fields.get("tool_use_id")?;
        let failed = fields.get::<bool>("is_error")?.unwrap_or(false);
        let text = text_of(fields.raw("content"));
        if let Some(call) = self.waiting(id.as_deref()) {
            if failed {
                let class = "tool_error".to_owned();
                call.error = Some(CallError { class, message: text.clone() });
            }
            call.result = Some(result_of(text));
        }
        Ok(())
    }
}

fn read(text: &str) -> Result<Conversation, Invalid> {
    let mut fields = Fields::parse(text)?;
    let mut conversation = Conversation::default();
    overlay(&mut fields, &mut conversation.trace)?;
    let (request, response) = halves(&mut fields)?;
    let mut request = match request {
        Some(request) => request,
        None => std::mem::replace(&mut fields, Fields::parse("{}")?),
    };
    let messages = request.list("messages")?;
    let messages = messages.ok_or_else(|| Invalid::at("messages", "is missing"))?;
    for (number, message) in messages.iter().enumerate() {
        let read = conversation.message(message);
        read.map_err(|error| error.within(&format!("messages[{number}]")))?;
    }
    conversation.trace.model = request.get("model")?;
    let tools = request.get::<Vec<Value>>("tools")?;
    if let Some(tools) = tools.or(request.get::<Vec<Value>>("functions")?) {
        let inside = |value: &Value| tool(value.get("function").unwrap_or(value));
        conversation.trace.tools = Some(tools.iter().filter_map(inside).collect());
    }
    if let Some(usage) = request.get::<Value>("usage")? {
        conversation.usage(&usage);
    }
    for known in SETTINGS {
        request.raw(known);
    }
    if let Some(mut response) = response {
        if let Some(model) = response.get("model")? {
            conversation.trace.model = Some(model);
        }
        if let Some(usage) = response.get::<Value>("usage")? {
            conversation.usage(&usage);
        }
        read_response(&mut response, &mut conversation)?;
    }
    conversation.trace.count_unknown("", &request);
    conversation.trace.count_unknown("", &fields);
    Ok(conversation)
}

/// The message of a response: in its first choice, or its content.
fn read_response(
    response: &mut Fields<'_>,
    conversation: &mut Conversation,
) -> Result<(), Invalid> {
    if let Some(choice) = response.list("choices")?.unwrap_or_default().first() {
        if let Some(message) = Fields::parse(choice)?.raw("message") {
            let read = conversation.message(message);
            read.map_err(|error| error.within("response.choices[0].message"))?;
        }
    } else if let Some(content) = response.raw("content") {
        let message = format!(r#"{{"role":"assistant","content":{content}}}"#);
        conversation.message(&message).map_err(|error| error.within("response"))?;
    }
    Ok(())
}

/// Joins the exchanges of a conversation.
#[derive(Default)]
pub(super) struct Conversations {
    open: Option<Conversation>,
}

impl Importer for Conversations {
    fn take(&mut self, text: &str, at: Position, out: &mut Vec<Trace>) -> Result<(), Invalid> {
        let mut next = read(text)?;
        let named = !next.trace.id.is_empty();
        if !named {
            next.trace.id = at.name();
        }
        match self.open.take() {
            Some(mut open) if named && open.trace.key() == next.trace.key() => {
                let usage = added(&open.trace, &next.trace);
                if next.length >= open.length {
                    next.trace.expect = next.trace.expect.or(open.trace.expect.take());
                    open = next;
                }
                open.trace.usage = usage;
                self.open = Some(open);
            }
            before => {
                out.extend(before.map(|open| open.trace));
                self.open = Some(next);
            }
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<Trace>) {
        out.extend(self.open.take().map(|open| open.trace));
    }
}

fn added(a: &Trace, b: &Trace) -> crate::trace::Usage {
    let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (None, None) => None,
        (a, b) => Some(a.unwrap_or_default().saturating_add(b.unwrap_or_default())),
    };
    let time = |a: Option<f64>, b: Option<f64>| match (a, b) {
        (None, None) => None,
        (a, b) => Some(a.unwrap_or_default() + b.unwrap_or_default()),
    };
    crate::trace::Usage {
        input_tokens: sum(a.usage.input_tokens, b.usage.input_tokens),
        output_tokens: sum(a.usage.output_tokens, b.usage.output_tokens),
        duration_ms: time(a.usage.duration_ms, b.usage.duration_ms),
        cost: time(a.usage.cost, b.usage.cost),
    }
}

/// Reads the fields of Karat's own records.
pub(super) fn overlay(fields: &mut Fields<'_>, trace: &mut Trace) -> Result<(), Invalid> {
    let metadata = fields.raw("metadata");
    let inside = metadata.filter(|text| is_object(text)).and_then(|text| {
        Fields::parse(text).ok().and_then(|mut fields| fields.any(&["task_id", "task", "id"]))
    });
    let id = fields.any(&["task_id", "task", "custom_id"]);
    let plain = fields.raw("id");
    if let Some(id) = id.or(inside).or(plain).and_then(as_id) {
        trace.id = id;
    }
    // Names that others use too: a value that does not fit is theirs.
    let run = fields.get::<u32>("run").ok().flatten();
    trace.run = run.filter(|run| *run > 0).unwrap_or(1);
    if let Ok(Some(setting)) = fields.get("setting") {
        trace.setting = setting;
    }
    if let Ok(Some(turns)) = fields.get("turns") {
        trace.turns = turns;
    }
    trace.case = fields.get("case").ok().flatten();
    trace.tags = fields.get("tags").ok().flatten().unwrap_or_default();
    trace.servers = fields.get("servers").ok().flatten().unwrap_or_default();
    trace.state = fields.get("state")?;
    trace.expected_scores = fields.get("expected_scores")?.unwrap_or_default();
    if let Some(text) = fields.raw("expect") {
        let read = Expectation::parse(text).map_err(|error| error.within("expect"))?;
        trace.expect = Some(Arc::new(read));
    }
    if let Ok(Some(duration)) = fields.get::<f64>("duration_ms") {
        trace.usage.duration_ms = Some(duration);
    }
    Ok(())
}

/// The request and the response of a document: as `request` and `response`, wrapped in `body` as in
/// batch files, or all in one.
fn halves<'a>(
    fields: &mut Fields<'a>,
) -> Result<(Option<Fields<'a>>, Option<Fields<'a>>), Invalid> {
    let unwrap = |text: &'a str| -> Result<Fields<'a>, Invalid> {
        let mut inside = Fields::parse(text)?;
        match inside.raw("body").filter(|body| is_object(body)) {
            Some(body) => Fields::parse(body),
            None => Fields::parse(text),
        }
    };
    let request = fields.any(&["request", "body"]);
    let response = fields.raw("response");
    Ok((
        request.map(unwrap).transpose().map_err(|error| error.within("request"))?,
        response.map(unwrap).transpose().map_err(|error| error.within("response"))?,
    ))
}

/// The text of a message: a string, or the `text` of its parts.
fn text_of(raw: Option<&str>) -> String {
    let Some(raw) = raw else { return String::new() };
    if is_string(raw) {
        return typed(raw).unwrap_or_default();
    }
    let Ok(parts) = typed::<Value>(raw) else { return String::new() };
    let texts: Vec<&str> = parts
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|part| part.get("text").and_then(Value::as_str))
        .collect();
    texts.join("\n")
}

/// A result as the model got it: an object if the text is one.
pub(super) fn result_of(text: String) -> Value {
    match serde_json::from_str::<Value>(&text) {
        Ok(value @ Value::Object(_)) => value,
        _ => Value::String(text),
    }
}

/// A tool as a request offers it; `None` if it has no name.
pub(super) fn tool(value: &Value) -> Option<ToolDefinition> {
    let name = value.get("name")?.as_str()?;
    let call = CallMade::named(name);
    let schema =
        ["parameters", "input_schema", "inputSchema"].iter().find_map(|key| value.get(key));
    Some(ToolDefinition {
        name: call.name,
        server: call.server,
        description: value.get("description").and_then(Value::as_str).map(str::to_owned),
        input_schema: schema.cloned(),
    })
}
