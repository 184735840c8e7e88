//! Conversations, in the message formats of many libraries, put together into calls and an answer.
//!
//! Read are messages of OpenAI (chat and Responses items), Anthropic, Gemini, the GenAI conventions of
//! OpenTelemetry, LangChain, Pydantic AI and the Vercel AI SDK. They differ in the names of roles and
//! fields, not in their meaning, so one reader takes them all, and mixed ones too: frameworks pass
//! messages of providers on as they are.

use std::collections::{BTreeMap, HashMap};

use karat_io::text::clip;
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
    /// A tool answered. The name names the tool, where the message has it.
    Outcome { id: Option<String>, name: Option<String>, result: Value, failed: bool },
    /// An entry of a list of calls that is not known, by its place.
    Unread(String),
}

/// The number of characters of a name that is not known.
const MAX_NAME: usize = 60;

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
        // Results can be in parts, each with the id of its call.
        let parts = content_pieces(fields, role);
        match parts.iter().any(|piece| matches!(piece, Piece::Outcome { .. })) {
            true => out.extend(parts),
            false => out.push(outcome_of(fields)),
        }
        return Some(out);
    }
    out.extend(content_pieces(fields, role));
    if role == Role::Model {
        let mut blocks = out.len();
        // LangChain lists the calls separately whose arguments it could not parse.
        for names in [["tool_calls", "toolCalls"], ["invalid_tool_calls", "invalidToolCalls"]] {
            let calls = names.iter().find_map(|name| fields.get(*name)).map(structured);
            for call in calls.as_ref().and_then(Value::as_array).into_iter().flatten() {
                let Some(read) = call.as_object().and_then(call_of) else {
                    out.extend(unread(names[0], call));
                    continue;
                };
                // A message can have its calls as blocks and again as a list. The list is whole where a
                // stream left only parts in the blocks.
                if let Some(at) = out[..blocks].iter().position(|one| is_same_call(one, &read)) {
                    out.remove(at);
                    blocks -= 1;
                }
                out.push(read);
            }
        }
        let older = fields.get("function_call").and_then(Value::as_object).and_then(call_of);
        out.extend(older);
        // Vercel's messages of a page repeat the calls of their parts here, and older ones have them only here.
        let shown = fields.get("toolInvocations").and_then(Value::as_array);
        if let Some(shown) = shown
            && !out.iter().any(|piece| matches!(piece, Piece::Call { .. }))
        {
            // The text follows the calls, unless one of them waits for its result.
            let shown = shown.iter().filter_map(|call| call_of_page(call.as_object()?));
            let (ended, open): (Vec<Piece>, Vec<Piece>) = shown
                .partition(|piece| matches!(piece, Piece::Call { call, .. } if !is_open(call)));
            out.splice(0..0, ended);
            out.extend(open);
        }
        // OpenAI has a refusal next to a content that is null.
        let refusal = text(fields, "refusal").filter(|refusal| !refusal.is_empty());
        if let Some(refusal) = refusal
            && !out.iter().any(|piece| matches!(piece, Piece::Answer(_)))
        {
            out.insert(0, Piece::Answer(refusal.to_owned()));
        }
    }
    Some(out)
}

/// Takes note of an entry in a list of calls that is not one in any known form.
fn unread(place: &str, call: &Value) -> Option<Piece> {
    let kind = call.get("type").and_then(Value::as_str).unwrap_or("without a name");
    (!call.is_null()).then(|| Piece::Unread(format!("{place}[] ({})", clip(kind, MAX_NAME))))
}

/// Returns whether this is a message of the model with a text in which there is nothing. A content that is
/// null or absent was not recorded.
pub(super) fn is_empty_answer(message: &Value) -> bool {
    let message = unwrapped(message);
    let Some(fields) = message.as_object().filter(|fields| role(fields) == Some(Role::Model))
    else {
        return false;
    };
    let is_empty =
        |part: &Value| matches!(part_of(part), Some(Piece::Answer(text)) if text.is_empty());
    match fields.get("content") {
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(parts)) => parts.iter().all(is_empty),
        _ => false,
    }
}

/// The kind of an item that has no role and is not known.
pub(super) fn unknown_kind(message: &Value) -> Option<String> {
    let fields = message.as_object().filter(|fields| !fields.contains_key("role"))?;
    text(fields, "type")
        .filter(|kind| !kind.is_empty())
        .map(|kind| clip(kind, MAX_NAME).into_owned())
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
        // An approved call is a further item.
        "reasoning"
        | "mcp_list_tools"
        | "mcp_approval_request"
        | "mcp_approval_response"
        | "item_reference"
        | "compaction" => Vec::new(),
        // Messages of AutoGen, which name the speaker and not the role.
        "ToolCallRequestEvent" => {
            let calls = fields.get("content").and_then(Value::as_array).into_iter().flatten();
            calls.filter_map(|call| call_of(call.as_object()?)).collect()
        }
        "ToolCallExecutionEvent" => {
            let results = fields.get("content").and_then(Value::as_array).into_iter().flatten();
            results.filter_map(|result| result.as_object().map(outcome_of)).collect()
        }
        // Thoughts, memories and handoffs of an agent, and the parts of a message that follows as a whole.
        "ThoughtEvent"
        | "MemoryQueryEvent"
        | "ModelClientStreamingChunkEvent"
        | "UserInputRequestedEvent"
        | "SelectSpeakerEvent"
        | "SelectorEvent"
        | "CodeGenerationEvent"
        | "CodeExecutionEvent" => Vec::new(),
        "HandoffMessage" if text(fields, "source") != Some("user") => Vec::new(),
        "TextMessage"
        | "ToolCallSummaryMessage"
        | "StopMessage"
        | "MultiModalMessage"
        | "StructuredMessage"
        | "HandoffMessage" => {
            let said = match fields.get("content") {
                // Images are between the parts.
                Some(Value::Array(parts)) if kind == "MultiModalMessage" => {
                    parts.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
                }
                content => content.map(plain_text).unwrap_or_default(),
            };
            match text(fields, "source") {
                Some("user") => vec![Piece::User(said)],
                _ => vec![Piece::Answer(said)],
            }
        }
        "tool_search_output" => vec![outcome_of(fields)],
        // Further tools of the provider, such as `shell_call`: the items of all of them have this form.
        _ => {
            if kind.strip_suffix("_output").is_some_and(|kind| kind.ends_with("_call")) {
                return Some(vec![outcome_of(fields)]);
            }
            let name = kind.strip_suffix("_call").filter(|name| !name.is_empty())?;
            if fields.contains_key("name") || fields.contains_key("function") {
                return call_of(fields).map(|call| vec![call]);
            }
            let given = ["action", "operation", "arguments", "input"];
            hosted(name, given.iter().find_map(|key| fields.get(*key)))
        }
    })
}

/// The pieces of a message's content: a text, or parts.
fn content_pieces(fields: &Map<String, Value>, role: Role) -> Vec<Piece> {
    let mut out = Vec::new();
    let (mut words, mut others) = (Vec::new(), 0);
    // The number of words before the last call, and whether a call has its result in this message.
    let (mut before, mut is_closed) = (0, false);
    let parts = ["parts", "content", "contents", "items"].iter().filter_map(|key| fields.get(*key));
    for content in parts {
        // Gemini's content is an object with the parts.
        match content.get("parts").unwrap_or(content) {
            Value::String(text) => words.push(text.clone()),
            // A result that is an object is not a part of the message.
            Value::Object(_) if role == Role::Tool => {}
            // A stream that OpenLLMetry puts together has one part, without a list.
            parts @ (Value::Array(_) | Value::Object(_)) => {
                let parts = parts.as_array().map_or(std::slice::from_ref(parts), Vec::as_slice);
                for part in parts {
                    match part_of(part) {
                        Some(Piece::User(text) | Piece::Answer(text)) => words.push(text),
                        Some(piece) => {
                            others += 1;
                            before = words.len();
                            is_closed |= match &piece {
                                Piece::Call { call, .. } => !is_open(call),
                                piece => matches!(piece, Piece::Outcome { .. }),
                            };
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
    // Google's ADK reports the steps of other agents in a message of the user.
    let is_context = words.len() > 1 && words[0] == "For context:" && words[1].starts_with('[');
    // Where the provider has called tools by itself, the answer follows in the same message.
    let goes_on = role == Role::Model && is_closed;
    if goes_on {
        words.drain(..before);
    }
    let text = words.join("\n");
    match role {
        Role::User if is_context => {}
        // Results of tools are in messages of the user, who need not say anything.
        Role::User if !text.is_empty() || others == 0 => out.insert(0, Piece::User(text)),
        Role::Model if !text.is_empty() => {
            let at = if goes_on { out.len() } else { 0 };
            out.splice(at..at, said(text).map(Piece::Answer));
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
    if let Some(call) = call_of_page(fields) {
        return Some(call);
    }
    let kinds = ["type", "part_kind", "content_type"];
    let kind = kinds.iter().find_map(|key| text(fields, key)).unwrap_or_default();
    match kind.replace('_', "-").as_str() {
        // Inspect has the result of a tool of the provider next to the arguments.
        "tool-use" if fields.contains_key("tool_type") => {
            let (result, error) = (fields.get("result"), fields.get("error"));
            Some(ended(call_of(fields)?, result, error))
        }
        "tool-use" | "mcp-tool-use" | "server-tool-use" | "tool-call" | "builtin-tool-call"
        | "server-tool-call" | "function-call" | "function" | "invalid-tool-call" => {
            call_of(fields)
        }
        "tool-result"
        | "mcp-tool-result"
        | "tool-call-response"
        | "tool-return"
        | "builtin-tool-return"
        | "function-response"
        | "function-result" => Some(outcome_of(fields)),
        // A retry without a tool is a message to the model, not a result.
        "retry-prompt" => fields.get("tool_name").filter(|name| !name.is_null()).map(|_| {
            let (result, _) = result_of_message(fields);
            Piece::Outcome { id: call_id(fields), name: tool_in(fields), result, failed: true }
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
                let origin = result.get("origin").and_then(Value::as_object);
                let id = call_id(result).or_else(|| call_id(origin?));
                let name = tool_in(result).or_else(|| tool_in(origin?));
                let (value, failed) = result_of_message(result);
                let failed = failed || result.get("error") == Some(&Value::Bool(true));
                return Some(Piece::Outcome { id, name, result: value, failed });
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
                return Some(Piece::Outcome { id, name: tool_in(response), result, failed });
            }
            let thought = fields.get("thought").and_then(Value::as_bool).unwrap_or(false);
            let text = fields.get("text").and_then(Value::as_str).filter(|_| !thought)?;
            Some(Piece::Answer(text.to_owned()))
        }
        // The results of tools of the provider, such as `web_search_tool_result`.
        kind if kind.ends_with("-tool-result") => Some(outcome_of(fields)),
        // Thinking, images, system prompts and the like.
        _ => None,
    }
}

/// The call in a part of a message as the Vercel AI SDK shows it on a page (`tool-NAME`, `dynamic-tool`, in
/// older versions `tool-invocation`), with its result.
fn call_of_page(part: &Map<String, Value>) -> Option<Piece> {
    let inside = part.get("toolInvocation").and_then(Value::as_object).unwrap_or(part);
    let (state, id) = (text(inside, "state")?, text(inside, "toolCallId")?);
    let name = text(inside, "toolName").or_else(|| text(part, "type")?.strip_prefix("tool-"))?;
    let mut call = CallMade::named(name);
    let given = ["input", "args", "rawInput"];
    let given = given.iter().find_map(|key| inside.get(*key).filter(|given| !given.is_null()));
    call.arguments = given.map_or(Arguments::NotRecorded, arguments_of);
    let call = Piece::Call { id: Some(id.to_owned()), call: Box::new(call) };
    let error = || inside.get("errorText").cloned().unwrap_or_else(|| state.into());
    Some(match state {
        "output-available" => ended(call, inside.get("output").or(Some(&Value::Null)), None),
        "result" => ended(call, inside.get("result").or(Some(&Value::Null)), None),
        "output-error" | "output-denied" => ended(call, None, Some(&error())),
        _ => call,
    })
}

/// A call with its end.
fn ended(mut piece: Piece, result: Option<&Value>, error: Option<&Value>) -> Piece {
    if let Piece::Call { call, .. } = &mut piece {
        call.result = result.map(result_value);
        call.error =
            error.filter(|error| !error.is_null()).map(|error| error_of(plain_text(error)));
    }
    piece
}

/// A call, under the names of its fields in all formats.
fn call_of(fields: &Map<String, Value>) -> Option<Piece> {
    if let Some(inside) = fields.get("tool_call").and_then(Value::as_object) {
        return call_of(inside);
    }
    // OpenAI's calls have their kind around the name.
    let inside = ["function", "custom"].iter().find_map(|kind| fields.get(*kind)?.as_object());
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

/// The tool that a result names.
fn tool_in(fields: &Map<String, Value>) -> Option<String> {
    let names = ["tool_name", "toolName", "name"];
    names.iter().find_map(|name| text(fields, name)).map(|name| CallMade::named(name).name)
}

fn outcome_of(fields: &Map<String, Value>) -> Piece {
    let (result, failed) = result_of_message(fields);
    Piece::Outcome { id: call_id(fields), name: tool_in(fields), result, failed }
}

/// The result in a message or part, and whether it is an error.
fn result_of_message(fields: &Map<String, Value>) -> (Value, bool) {
    let names = ["output", "response", "result", "content", "contents", "parts"];
    let found = names.iter().find_map(|name| fields.get(*name).filter(|value| !value.is_null()));
    let mut result = found.map_or(Value::Null, result_value);
    let error = fields.get("error").filter(|error| !error.is_null());
    let flag = |name: &str| fields.get(name).and_then(Value::as_bool).unwrap_or(false);
    let mut failed = flag("is_error") || flag("isError");
    failed |= matches!(text(fields, "status"), Some("error" | "failed"));
    // Pydantic AI: the model was asked to try again, a person refused the call, or it was cut off.
    let outcomes = ["failed", "retried", "denied", "interrupted"];
    failed |= text(fields, "outcome").is_some_and(|outcome| outcomes.contains(&outcome));
    failed |= error.is_some_and(|e| !e.is_boolean());
    // Results name their kind: Anthropic's an error of a tool of the provider, Vercel's all of them.
    let kind = result.get("type").and_then(Value::as_str).map(str::to_owned);
    failed |= kind
        .as_deref()
        .is_some_and(|kind| kind.ends_with("_tool_result_error") || kind == "execution-denied");
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

/// The result of a call that is not in the conversation.
pub(super) struct Orphan {
    id: String,
    result: Value,
    failed: bool,
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
    /// The places of the calls with an id.
    by_id: HashMap<String, Vec<usize>>,
    /// Results of calls that an earlier part of the conversation may have.
    pub(super) orphans: Vec<Orphan>,
    /// Places that were not known, with their counts.
    pub(super) unread: BTreeMap<String, u64>,
}

impl Dialog {
    /// Adds a message of the conversation; false if it is not one.
    pub(super) fn message(&mut self, message: &Value) -> bool {
        let Some(pieces) = pieces(message) else { return false };
        let replies = pieces.iter().any(|piece| matches!(piece, Piece::Outcome { .. }));
        let is_empty = pieces.is_empty() && is_empty_answer(message);
        for piece in pieces {
            match piece {
                // A part next to the result of a tool does not begin a turn.
                Piece::User(text) if replies => _ = self.input.get_or_insert(text),
                Piece::User(text) => self.user(text),
                Piece::Answer(text) => self.output = Some(text),
                Piece::Call { id, call } => {
                    // A model that still calls has not answered yet.
                    self.output = None;
                    self.call(id, *call);
                }
                Piece::Outcome { id, name, result, failed } => {
                    self.outcome(id.as_deref(), name.as_deref(), result, failed);
                }
                Piece::Unread(place) => self.unread(place),
            }
        }
        if is_empty {
            self.output.get_or_insert_default();
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
        if let Some(id) = &id {
            self.by_id.entry(id.clone()).or_default().push(self.calls.len());
        }
        self.calls.push(call);
        self.ids.push(id);
    }

    /// Counts a place that is not known.
    pub(super) fn unread(&mut self, place: String) {
        *self.unread.entry(place).or_default() += 1;
    }

    /// The result of the call with this id that has none yet; without an id of the first such call, if there
    /// is one of the tool that is named.
    pub(super) fn outcome(
        &mut self,
        id: Option<&str>,
        name: Option<&str>,
        result: Value,
        failed: bool,
    ) {
        let known = id.and_then(|id| self.by_id.get(id));
        let open = |at: &usize| is_open(&self.calls[*at]);
        // The id of a call that is not here: calls without ids may be meant.
        let fits = |at: &usize| open(at) && (id.is_none() || self.ids[*at].is_none());
        let found = match known {
            Some(places) => self.of_tool(name, places.iter().copied().filter(open)),
            None => self.of_tool(name, (0..self.calls.len()).filter(fits)),
        };
        let known = known.is_some();
        match (found, id) {
            (Some(at), _) => answer(&mut self.calls[at], result, failed),
            (None, Some(id)) if !known => {
                self.orphans.push(Orphan { id: id.to_owned(), result, failed });
            }
            _ => {}
        }
    }

    /// The first of these calls that is of the tool, or else the first.
    fn of_tool(
        &self,
        name: Option<&str>,
        mut calls: impl Iterator<Item = usize> + Clone,
    ) -> Option<usize> {
        let is_named = |at: &usize| name == Some(self.calls[*at].name.as_str());
        calls.clone().find(is_named).or_else(|| calls.next())
    }

    /// Moves the conversation into a trace.
    pub(super) fn into_trace(self, trace: &mut Trace) {
        trace.input = self.input.or(trace.input.take());
        trace.output = self.output.or(trace.output.take());
        trace.calls = self.calls;
        if self.spoken > 1 {
            trace.turns = Turns::Multi;
        }
        for (place, count) in self.unread {
            *trace.unknown.entry(place).or_default() += count;
        }
    }
}

impl Orphan {
    /// Gives the result to the call with this id, if it has none.
    pub(super) fn answer(&self, id: Option<&str>, call: &mut CallMade) {
        if id == Some(self.id.as_str()) && is_open(call) {
            answer(call, self.result.clone(), self.failed);
        }
    }
}

/// Returns whether neither a result nor an error is known yet.
pub(super) fn is_open(call: &CallMade) -> bool {
    call.result.is_none() && call.error.is_none()
}

pub(super) fn answer(call: &mut CallMade, result: Value, failed: bool) {
    call.error = failed.then(|| error_of(plain_text(&result)));
    call.result = Some(result);
}
