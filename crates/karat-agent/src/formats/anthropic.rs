//! Anthropic message logs: `{"messages": […], "tools": […]}` with or without the `response` to it.
//!
//! Calls are the `tool_use` blocks of assistant messages (also `mcp_tool_use`, which names its
//! server), results the `tool_result` blocks with the same id; `is_error` marks a failure.

use serde_json::Value;

use super::chat::{Conversation, halves, overlay, result_of, text_of, tool};
use crate::trace::fields::{Fields, is_string, list, typed};
use crate::trace::{Arguments, CallError, Invalid};

pub(super) fn read(text: &str) -> Result<Conversation, Invalid> {
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
        let read = read_message(message, &mut conversation);
        read.map_err(|error| error.within(&format!("messages[{number}]")))?;
    }
    conversation.trace.model = request.get("model")?;
    if let Some(tools) = request.get::<Vec<Value>>("tools")? {
        let inside = |value: &Value| tool(value, "input_schema");
        conversation.trace.tools = Some(tools.iter().filter_map(inside).collect());
    }
    if let Some(usage) = request.get::<Value>("usage")? {
        read_usage(&usage, &mut conversation);
    }
    for known in ["system", "max_tokens", "temperature", "tool_choice", "stream", "thinking"] {
        request.raw(known);
    }
    if let Some(mut response) = response {
        if let Some(model) = response.get("model")? {
            conversation.trace.model = Some(model);
        }
        if let Some(usage) = response.get::<Value>("usage")? {
            read_usage(&usage, &mut conversation);
        }
        if let Some(content) = response.raw("content") {
            let message = format!(r#"{{"role":"assistant","content":{content}}}"#);
            let read = read_message(&message, &mut conversation);
            read.map_err(|error| error.within("response"))?;
        }
    }
    conversation.trace.count_unknown("", &request);
    conversation.trace.count_unknown("", &fields);
    Ok(conversation)
}

fn read_usage(usage: &Value, conversation: &mut Conversation) {
    let number = |key: &str| usage.get(key).and_then(Value::as_u64);
    // Tokens from the cache went in too.
    let cached = number("cache_creation_input_tokens").unwrap_or_default()
        + number("cache_read_input_tokens").unwrap_or_default();
    let own = &mut conversation.trace.usage;
    own.input_tokens = number("input_tokens").map(|tokens| tokens.saturating_add(cached));
    own.output_tokens = number("output_tokens");
}

fn read_message(text: &str, conversation: &mut Conversation) -> Result<(), Invalid> {
    let mut fields = Fields::parse(text)?;
    conversation.length += 1;
    if let Ok(message) = serde_json::from_str(text) {
        conversation.trace.messages.push(message);
    }
    let role: String = fields.need("role")?;
    let content = fields.raw("content").unwrap_or("\"\"");
    if is_string(content) {
        let text: String = typed(content)?;
        match role.as_str() {
            "user" => conversation.said(&text),
            "assistant" => conversation.trace.output = Some(text).filter(|text| !text.is_empty()),
            _ => {}
        }
        return Ok(());
    }
    let before = conversation.trace.calls.len();
    let mut said = Vec::new();
    for (number, block) in list(content)?.into_iter().enumerate() {
        let place = format!("content[{number}]");
        read_block(block, &mut said, conversation).map_err(|error| error.within(&place))?;
    }
    let said = said.join("\n");
    match role.as_str() {
        "user" if !said.is_empty() => conversation.said(&said),
        "assistant" => {
            let done = conversation.trace.calls.len() == before && !said.is_empty();
            conversation.trace.output = done.then_some(said);
        }
        _ => {}
    }
    Ok(())
}

fn read_block(
    text: &str,
    said: &mut Vec<String>,
    conversation: &mut Conversation,
) -> Result<(), Invalid> {
    let mut fields = Fields::parse(text)?;
    let kind: String = fields.need("type")?;
    match kind.as_str() {
        "text" => said.push(fields.get("text")?.unwrap_or_default()),
        "tool_use" | "mcp_tool_use" | "server_tool_use" => {
            let name: String = fields.need("name")?;
            let arguments = fields.raw("input").map_or(Arguments::NotRecorded, Arguments::from_raw);
            conversation.call(fields.get("id")?, &name, arguments);
            let server: Option<String> = fields.get("server_name")?;
            if let (Some(server), Some(call)) = (server, conversation.trace.calls.last_mut()) {
                call.server = Some(server);
            }
        }
        "tool_result" | "mcp_tool_result" => {
            let id: Option<String> = fields.get("tool_use_id")?;
            let failed = fields.get::<bool>("is_error")?.unwrap_or(false);
            let text = text_of(fields.raw("content"));
            if let Some(call) = conversation.waiting(id.as_deref()) {
                if failed {
                    let class = "tool_error".to_owned();
                    call.error = Some(CallError { class, message: text.clone() });
                }
                call.result = Some(result_of(text));
            }
        }
        // Thinking, images, documents: nothing that is scored.
        _ => {}
    }
    Ok(())
}
