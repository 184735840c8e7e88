//! Conversations, in the message formats of many libraries, put together into calls and an answer.
//!
//! Read are messages of OpenAI (chat and Responses items), Anthropic, Gemini, the GenAI conventions of
//! OpenTelemetry, LangChain, Pydantic AI and the Vercel AI SDK. They differ in the names of roles and
//! fields, not in their meaning, so one reader takes them all, and mixed ones too: frameworks pass
//! messages of providers on as they are.

use serde_json::{Map, Value};

use crate::trace::{Arguments, CallError, CallMade, ToolDefinition, Trace, Turns};

/// One thing that a message says.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Piece {
    /// The user spoke.
    User(String),
    /// The model spoke.
    Answer(String),
    /// The model called a tool.
    Call { id: Option<String>, call: Box<CallMade> },
    /// A tool answered.
    Outcome { id: Option<String>, result: Value, failed: bool },
}

#[derive(Clone, Copy, PartialEq)]
enum Role {
    User,
    Model,
    Tool,
    /// Instructions and the like: not an action of anyone.
    Other,
}

/// The pieces of a message; none if it is not a message at all.
pub(super) fn pieces(message: &Value) -> Option<Vec<Piece>> {
    let message = unwrapped(message);
    let fields = message.as_object()?;
    if let Some(item) = item(fields) {
        return Some(item);
    }
    let role = role(fields)?;
    let mut out = Vec::new();
    if role == Role::Tool {
        let (result, failed) = result_of_message(fields);
        // Results can be in parts, each with the id of its call.
        let parts = content_pieces(fields, role);
        match parts.iter().any(|piece| matches!(piece, Piece::Outcome { .. })) {
            true => out.extend(parts),
            false => out.push(Piece::Outcome { id: call_id(fields), result, failed }),
        }
        return Some(out);
    }
    out.extend(content_pieces(fields, role));
    if role == Role::Model {
        let calls = fields.get("tool_calls").or_else(|| fields.get("toolCalls")).map(structured);
        for call in calls.as_ref().and_then(Value::as_array).into_iter().flatten() {
            let Some(read) = call.as_object().and_then(call_of) else { continue };
            // A message can have its calls as blocks and again as a list. The list is whole where a
            // stream left only parts in the blocks.
            out.retain(|piece| !is_same_call(piece, &read));
            out.push(read);
        }
        let older = fields.get("function_call").and_then(Value::as_object).and_then(call_of);
        out.extend(older);
    }
    Some(out)
}

fn is_same_call(one: &Piece, other: &Piece) -> bool {
    match (one, other) {
        (Piece::Call { id: Some(one), .. }, Piece::Call { id: Some(other), .. }) => one == other,
        _ => false,
    }
}

/// The message inside a wrapper: LangChain's dicts (`data`) and serialized objects (`kwargs`), and
/// messages of DeepEval-like logs in `message`.
fn unwrapped(message: &Value) -> Value {
    let Some(fields) = message.as_object() else { return message.clone() };
    if let (Some(kind), Some(Value::Object(data))) = (text(fields, "type"), fields.get("data")) {
        let mut data = data.clone();
        data.insert("type".to_owned(), kind.into());
        return Value::Object(data);
    }
    if let (Some(1), Some(Value::Object(kwargs))) =
        (fields.get("lc").and_then(Value::as_u64), fields.get("kwargs"))
    {
        let class = fields.get("id").and_then(Value::as_array).and_then(|id| id.last()?.as_str());
        let mut kwargs = kwargs.clone();
        if let Some(class) = class {
            kwargs.insert("type".to_owned(), class.into());
        }
        return Value::Object(kwargs);
    }
    message.clone()
}

fn role(fields: &Map<String, Value>) -> Option<Role> {
    let named = |name: &str| match name {
        "user" | "human" | "HumanMessage" | "HumanMessageChunk" => Some(Role::User),
        "assistant" | "ai" | "model" | "AIMessage" | "AIMessageChunk" | "chatbot" => {
            Some(Role::Model)
        }
        "tool" | "function" | "ToolMessage" | "FunctionMessage" => Some(Role::Tool),
        "system" | "developer" | "SystemMessage" | "remove" | "environment" | "context" => {
            Some(Role::Other)
        }
        _ => None,
    };
    if let Some(role) = text(fields, "role") {
        return Some(named(role).unwrap_or(Role::Other));
    }
    match text(fields, "kind") {
        Some("request") => return Some(Role::User),
        Some("response") => return Some(Role::Model),
        _ => {}
    }
    text(fields, "type").and_then(named)
}

/// An item of the Responses API, which is a message by itself.
fn item(fields: &Map<String, Value>) -> Option<Vec<Piece>> {
    let kind = text(fields, "type")?;
    // The shell, computer and search tools of the provider are called by their kind.
    let hosted = |name: &str, arguments: Option<&Value>| {
        let mut call = CallMade::named(name);
        call.arguments = arguments.map_or(Arguments::NotRecorded, arguments_of);
        vec![Piece::Call { id: call_id(fields), call: Box::new(call) }]
    };
    Some(match kind {
        "function_call" | "custom_tool_call" => call_of(fields).into_iter().collect(),
        "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => {
            let (result, failed) = result_of_message(fields);
            vec![Piece::Outcome { id: call_id(fields), result, failed }]
        }
        "mcp_call" => {
            let mut call = CallMade::named(text(fields, "name")?);
            call.server = text(fields, "server_label").map(str::to_owned).or(call.server);
            call.arguments = fields.get("arguments").map_or(Arguments::NotRecorded, arguments_of);
            if let Some(error) = fields.get("error").filter(|error| !error.is_null()) {
                call.error = Some(error_of(plain_text(error)));
            } else if let Some(output) = fields.get("output").filter(|output| !output.is_null()) {
                call.result = Some(result_value(output));
            }
            vec![Piece::Call { id: call_id(fields), call: Box::new(call) }]
        }
        "local_shell_call" => hosted("local_shell", fields.get("action")),
        "web_search_call" => hosted("web_search", fields.get("action")),
        "file_search_call" => hosted("file_search", fields.get("queries")),
        "computer_call" => hosted("computer", fields.get("action")),
        "code_interpreter_call" => hosted("code_interpreter", fields.get("code")),
        "reasoning" | "mcp_list_tools" | "item_reference" | "compaction" => Vec::new(),
        // Messages of AutoGen, which name the speaker and not the role.
        "ToolCallRequestEvent" => {
            let calls = fields.get("content").and_then(Value::as_array).into_iter().flatten();
            calls.filter_map(|call| call_of(call.as_object()?)).collect()
        }
        "ToolCallExecutionEvent" => {
            let results = fields.get("content").and_then(Value::as_array).into_iter().flatten();
            let outcome = |result: &Value| {
                let fields = result.as_object()?;
                let (result, failed) = result_of_message(fields);
                Some(Piece::Outcome { id: call_id(fields), result, failed })
            };
            results.filter_map(outcome).collect()
        }
        "TextMessage" | "ToolCallSummaryMessage" | "StopMessage" => {
            let said = fields.get("content").map(plain_text).unwrap_or_default();
            match text(fields, "source") {
                Some("user") => vec![Piece::User(said)],
                _ => vec![Piece::Answer(said)],
            }
        }
        _ => return None,
    })
}

/// The pieces of a message's content: a text, or parts.
fn content_pieces(fields: &Map<String, Value>, role: Role) -> Vec<Piece> {
    let mut out = Vec::new();
    let (mut words, mut others) = (Vec::new(), 0);
    let parts = ["parts", "content", "contents", "items"].iter().filter_map(|key| fields.get(*key));
    for content in parts {
        // Gemini's content is an object with the parts.
        match content.get("parts").unwrap_or(content) {
            Value::String(text) => words.push(text.clone()),
            Value::Array(parts) => {
                for part in parts {
                    match part_of(part) {
                        Some(Piece::User(text) | Piece::Answer(text)) => words.push(text),
                        Some(piece) => {
                            others += 1;
                            out.push(piece);
                        }
                        None => {}
                    }
                }
            }
            _ => {}
        }
        // `parts` and `content` are two spellings of the same.
        if others > 0 || !words.is_empty() {
            break;
        }
    }
    let text = words.join("\n");
    match role {
        // Results of tools are in messages of the user, who need not say anything.
        Role::User if !text.is_empty() || others == 0 => out.insert(0, Piece::User(text)),
        Role::Model if !text.is_empty() => {
            out.splice(0..0, said(text).map(Piece::Answer));
        }
        _ => {}
    }
    out
}

/// The answer in a text of a model, which DSPy has in fields, each after a line with its name: it is the last
/// of them. A text that names a tool to call is a step, and no answer.
fn said(text: String) -> Option<String> {
    if !text.starts_with("[[ ## ") || !text.trim_end().ends_with("[[ ## completed ## ]]") {
        return Some(text);
    }
    let fields: Vec<(&str, &str)> =
        text.split("[[ ## ").filter_map(|field| field.split_once(" ## ]]")).collect();
    if fields.iter().any(|(name, _)| *name == "next_tool_name") {
        return None;
    }
    let last = fields.iter().rev().find(|(name, _)| *name != "completed");
    last.map(|(_, value)| value.trim().to_owned())
}

/// One part of a message.
fn part_of(part: &Value) -> Option<Piece> {
    if let Value::String(text) = part {
        return Some(Piece::Answer(text.clone()));
    }
    let fields = part.as_object()?;
    // Some put `message_content` around it.
    if let Some(inside) = fields.get("message_content").filter(|inside| inside.is_object()) {
        return part_of(inside);
    }
    let kinds = ["type", "part_kind", "content_type"];
    let kind = kinds.iter().find_map(|key| text(fields, key)).unwrap_or_default();
    match kind.replace('_', "-").as_str() {
        "tool-use" | "mcp-tool-use" | "server-tool-use" | "tool-call" | "builtin-tool-call"
        | "function-call" | "function" => call_of(fields),
        "tool-result"
        | "mcp-tool-result"
        | "tool-call-response"
        | "tool-return"
        | "builtin-tool-return"
        | "function-response"
        | "function-result" => {
            let (result, failed) = result_of_message(fields);
            Some(Piece::Outcome { id: call_id(fields), result, failed })
        }
        // A retry without a tool is a message to the model, not a result.
        "retry-prompt" => fields.get("tool_name").filter(|name| !name.is_null()).map(|_| {
            let (result, _) = result_of_message(fields);
            Piece::Outcome { id: call_id(fields), result, failed: true }
        }),
        "text" | "input-text" | "output-text" | "user-prompt" | "refusal" => {
            let text = ["text", "content", "refusal"].iter().find_map(|key| fields.get(*key))?;
            Some(Piece::Answer(plain_text(text)))
        }
        "" => {
            // The parts of Gemini, Bedrock and Haystack have no type: their only field names it.
            let under = |names: &[&str]| {
                names.iter().find_map(|name| fields.get(*name)).and_then(Value::as_object)
            };
            if let Some(call) = under(&["functionCall", "function_call", "toolUse", "tool_call"]) {
                return call_of(call);
            }
            if let Some(result) = under(&["toolResult", "tool_call_result"]) {
                let id = call_id(result).or_else(|| call_id(result.get("origin")?.as_object()?));
                let (value, failed) = result_of_message(result);
                let failed = failed || result.get("error") == Some(&Value::Bool(true));
                return Some(Piece::Outcome { id, result: value, failed });
            }
            if let Some(response) = under(&["functionResponse", "function_response"]) {
                let result = response.get("response").cloned().unwrap_or_default();
                let failed = result.get("error").is_some_and(|error| !error.is_null());
                let id = call_id(response);
                // What is not an object is put into one.
                let plain = match &result {
                    Value::Object(fields) if fields.len() == 1 => fields.get("output"),
                    _ => None,
                };
                let result = result_value(plain.unwrap_or(&result));
                return Some(Piece::Outcome { id, result, failed });
            }
            let thought = fields.get("thought").and_then(Value::as_bool).unwrap_or(false);
            let text = fields.get("text").and_then(Value::as_str).filter(|_| !thought)?;
            Some(Piece::Answer(text.to_owned()))
        }
        // Thinking, images, system prompts and the like.
        _ => None,
    }
}

/// A call, under the names of its fields in all formats.
fn call_of(fields: &Map<String, Value>) -> Option<Piece> {
    if let Some(inside) = fields.get("tool_call").and_then(Value::as_object) {
        return call_of(inside);
    }
    let inside = fields.get("function").and_then(Value::as_object);
    let names = ["name", "toolName", "tool_name", "function"];
    let find = |keys: &[&str]| -> Option<&Value> {
        let found = |map: &'_ Map<String, Value>, key: &str| map.contains_key(key);
        keys.iter().find_map(|key| match inside.filter(|inside| found(inside, key)) {
            Some(inside) => inside.get(*key),
            None => fields.get(*key),
        })
    };
    let mut call = CallMade::named(find(&names)?.as_str()?);
    if let Some(server) =
        ["server_name", "server", "server_label"].iter().find_map(|key| text(fields, key))
    {
        call.server = Some(server.to_owned());
    }
    // Codex has the server so.
    if let Some(server) = text(fields, "namespace").and_then(|space| space.strip_prefix("mcp__")) {
        call.server = Some(server.trim_end_matches('_').to_owned());
    }
    call.arguments = find(&["arguments", "input", "args", "parameters"])
        .map_or(Arguments::NotRecorded, arguments_of);
    if let Some(answer) = answer_in(&call) {
        return Some(Piece::Answer(answer));
    }
    Some(Piece::Call { id: call_id(fields), call: Box::new(call) })
}

/// The answer in the call by which agents of smolagents end: `final_answer` with `answer` alone. It does
/// not count as a tool call.
pub(super) fn answer_in(call: &CallMade) -> Option<String> {
    let Arguments::Object(text) = &call.arguments else { return None };
    if call.name != "final_answer" {
        return None;
    }
    let arguments = serde_json::from_str::<Map<String, Value>>(text).ok()?;
    arguments.get("answer").filter(|_| arguments.len() == 1).map(plain_text)
}

pub(super) fn arguments_of(value: &Value) -> Arguments {
    match value {
        Value::Null => Arguments::NotRecorded,
        Value::String(text) => Arguments::written(text),
        value => Arguments::from_raw(&value.to_string()),
    }
}

/// The id that joins a call and its result.
fn call_id(fields: &Map<String, Value>) -> Option<String> {
    let names = ["call_id", "tool_call_id", "tool_use_id", "toolCallId", "toolUseId", "id"];
    names.iter().find_map(|name| text(fields, name)).map(str::to_owned)
}

/// The result in a message or part, and whether it is an error.
fn result_of_message(fields: &Map<String, Value>) -> (Value, bool) {
    let names = ["output", "response", "result", "content", "contents", "parts"];
    let found = names.iter().find_map(|name| fields.get(*name).filter(|value| !value.is_null()));
    let mut result = found.map_or(Value::Null, result_value);
    let error = fields.get("error").filter(|error| !error.is_null());
    let flag = |name: &str| fields.get(name).and_then(Value::as_bool).unwrap_or(false);
    let mut failed = flag("is_error") || flag("isError") || text(fields, "status") == Some("error");
    failed |= text(fields, "outcome") == Some("failed") || error.is_some_and(|e| !e.is_boolean());
    // Vercel's results name their kind.
    let kind = result.get("type").and_then(Value::as_str).map(str::to_owned);
    if let (Some(kind), Some(value)) = (kind, result.get("value").cloned())
        && ["text", "json", "error-text", "error-json", "content"].contains(&kind.as_str())
    {
        failed |= kind.starts_with("error");
        result = value;
    }
    if let (Value::Null, Some(error)) = (&result, error) {
        result = error.clone();
    }
    (result, failed)
}

/// A result as the model got it: the text of its parts, and an object if the text is one.
pub(super) fn result_value(value: &Value) -> Value {
    match value {
        Value::String(text) => result_of(text.clone()),
        Value::Array(_) => result_of(plain_text(value)),
        value => value.clone(),
    }
}

/// A result as the model got it: an object if the text is one.
pub(super) fn result_of(text: String) -> Value {
    match serde_json::from_str::<Value>(&text) {
        Ok(value @ Value::Object(_)) => value,
        _ => Value::String(text),
    }
}

/// The text of a value: itself, or that of its parts.
pub(super) fn plain_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().map(|part| match part {
                Value::Object(fields) => ["text", "content", "json"]
                    .iter()
                    .find_map(|key| fields.get(*key))
                    .map_or_else(|| part.to_string(), plain_text),
                part => plain_text(part),
            });
            texts.collect::<Vec<_>>().join("\n")
        }
        value => value.to_string(),
    }
}

pub(super) fn error_of(message: String) -> CallError {
    CallError { class: "tool_error".to_owned(), message }
}

/// A value, or the value that a text holds.
pub(super) fn structured(value: &Value) -> Value {
    match value {
        Value::String(text) => serde_json::from_str(text).unwrap_or_else(|_| value.clone()),
        value => value.clone(),
    }
}

fn text<'v>(fields: &'v Map<String, Value>, key: &str) -> Option<&'v str> {
    fields.get(key)?.as_str()
}

/// A tool as a request offers it; `None` if it has no name.
pub(super) fn tool(value: &Value) -> Option<ToolDefinition> {
    let value = value.get("function").unwrap_or(value);
    let name = value.get("name")?.as_str()?;
    let call = CallMade::named(name);
    let schemas = ["parameters", "input_schema", "inputSchema", "parameters_json_schema"];
    let schema = schemas.iter().find_map(|key| value.get(key)).filter(|schema| !schema.is_null());
    Some(ToolDefinition {
        name: call.name,
        server: call.server,
        description: value.get("description").and_then(Value::as_str).map(str::to_owned),
        input_schema: schema.map(structured),
    })
}

/// A conversation as far as it was read.
#[derive(Default)]
pub(super) struct Dialog {
    pub(super) input: Option<String>,
    pub(super) output: Option<String>,
    /// The number of user messages.
    pub(super) spoken: usize,
    pub(super) calls: Vec<CallMade>,
    /// Ids of the calls, in the same order.
    pub(super) ids: Vec<Option<String>>,
}

impl Dialog {
    /// Adds a message of the conversation; false if it is not one.
    pub(super) fn message(&mut self, message: &Value) -> bool {
        let Some(pieces) = pieces(message) else { return false };
        let calls = pieces.iter().any(|piece| matches!(piece, Piece::Call { .. }));
        for piece in pieces {
            match piece {
                Piece::User(text) => self.user(text),
                Piece::Answer(text) => self.output = Some(text),
                Piece::Call { id, call } => self.call(id, *call),
                Piece::Outcome { id, result, failed } => {
                    self.outcome(id.as_deref(), result, failed);
                }
            }
        }
        // A model that still calls has not answered yet.
        if calls {
            self.output = None;
        }
        true
    }

    fn user(&mut self, text: String) {
        self.spoken += 1;
        self.input.get_or_insert(text);
        // The answer to an earlier message.
        self.output = None;
    }

    pub(super) fn call(&mut self, id: Option<String>, call: CallMade) {
        self.calls.push(call);
        self.ids.push(id);
    }

    /// The result of the call with this id that has none yet; without an id of the first such call.
    pub(super) fn outcome(&mut self, id: Option<&str>, result: Value, failed: bool) {
        let open = |call: &CallMade| call.result.is_none() && call.error.is_none();
        let known = id.filter(|id| self.ids.iter().any(|known| known.as_deref() == Some(id)));
        let found = (0..self.calls.len()).find(|&at| {
            open(&self.calls[at])
                && match (known, id) {
                    (Some(id), _) => self.ids[at].as_deref() == Some(id),
                    (None, None) => true,
                    // The id of a call that is not here; calls without ids may be meant.
                    (None, Some(_)) => self.ids[at].is_none(),
                }
        });
        if let Some(at) = found {
            let call = &mut self.calls[at];
            call.error = failed.then(|| error_of(plain_text(&result)));
            call.result = Some(result);
        }
    }

    /// Moves the conversation into a trace.
    pub(super) fn into_trace(self, trace: &mut Trace) {
        trace.input = self.input.or(trace.input.take());
        trace.output = self.output.or(trace.output.take());
        trace.calls = self.calls;
        if self.spoken > 1 {
            trace.turns = Turns::Multi;
        }
    }
}
