//! OpenAI chat logs: `{"messages": […], "tools": […]}`, or `{"request": …, "response": …}` for each
//! exchange, or the two halves of a batch file joined.
//!
//! Calls are the `tool_calls` (or the old `function_call`) of assistant messages, their arguments the
//! text that the model wrote. Chat logs do not say whether a tool failed, unless its content is an MCP
//! result with `isError`.

use serde_json::Value;

use super::chat::{Conversation, halves, overlay, result_of, text_of, tool};
use crate::trace::fields::Fields;
use crate::trace::{Arguments, Invalid};

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
        let inside = |value: &Value| tool(value.get("function").unwrap_or(value), "parameters");
        conversation.trace.tools = Some(tools.iter().filter_map(inside).collect());
    } else if let Some(functions) = request.get::<Vec<Value>>("functions")? {
        let inside = |value: &Value| tool(value, "parameters");
        conversation.trace.tools = Some(functions.iter().filter_map(inside).collect());
    }
    if let Some(usage) = request.get::<Value>("usage")? {
        read_usage(&usage, &mut conversation);
    }
    // A request's settings are known, whatever they are.
    for known in ["temperature", "max_tokens", "seed", "tool_choice", "stream", "top_p"] {
        request.raw(known);
    }
    if let Some(mut response) = response {
        if let Some(model) = response.get("model")? {
            conversation.trace.model = Some(model);
        }
        if let Some(usage) = response.get::<Value>("usage")? {
            read_usage(&usage, &mut conversation);
        }
        for choice in response.list("choices")?.unwrap_or_default().iter().take(1) {
            let mut choice = Fields::parse(choice)?;
            if let Some(message) = choice.raw("message") {
                let read = read_message(message, &mut conversation);
                read.map_err(|error| error.within("response.choices[0].message"))?;
            }
        }
    }
    conversation.trace.count_unknown("", &request);
    conversation.trace.count_unknown("", &fields);
    Ok(conversation)
}

fn read_usage(usage: &Value, conversation: &mut Conversation) {
    let number = |key: &str| usage.get(key).and_then(Value::as_u64);
    let own = &mut conversation.trace.usage;
    own.input_tokens = number("prompt_tokens").or_else(|| number("input_tokens"));
    own.output_tokens = number("completion_tokens").or_else(|| number("output_tokens"));
}

fn read_message(text: &str, conversation: &mut Conversation) -> Result<(), Invalid> {
    let mut fields = Fields::parse(text)?;
    conversation.length += 1;
    if let Ok(message) = serde_json::from_str(text) {
        conversation.trace.messages.push(message);
    }
    let role: String = fields.need("role")?;
    match role.as_str() {
        "user" => conversation.said(&text_of(fields.raw("content"))),
        "assistant" => {
            let before = conversation.trace.calls.len();
            for (number, call) in fields.list("tool_calls")?.unwrap_or_default().iter().enumerate()
            {
                let read = read_call(call, conversation);
                read.map_err(|error| error.within(&format!("tool_calls[{number}]")))?;
            }
            if let Some(call) = fields.raw("function_call") {
                read_function(call, None, conversation)?;
            }
            let said = text_of(fields.raw("content"));
            let done = conversation.trace.calls.len() == before && !said.is_empty();
            conversation.trace.output = done.then_some(said);
        }
        "tool" | "function" => {
            let id: Option<String> = fields.get("tool_call_id")?;
            let result = result_of(text_of(fields.raw("content")));
            if let Some(call) = conversation.waiting(id.as_deref()) {
                call.result = Some(result);
            }
        }
        // What the developer said is no part of what the agent did.
        _ => {}
    }
    Ok(())
}

fn read_call(text: &str, conversation: &mut Conversation) -> Result<(), Invalid> {
    let mut fields = Fields::parse(text)?;
    let id = fields.get("id")?;
    let function = fields.raw("function").ok_or_else(|| Invalid::at("function", "is missing"))?;
    read_function(function, id, conversation).map_err(|error| error.within("function"))
}

fn read_function(
    text: &str,
    id: Option<String>,
    conversation: &mut Conversation,
) -> Result<(), Invalid> {
    let mut fields = Fields::parse(text)?;
    let name: String = fields.need("name")?;
    let arguments = fields.raw("arguments").map_or(Arguments::NotRecorded, Arguments::from_raw);
    conversation.call(id, &name, arguments);
    Ok(())
}
