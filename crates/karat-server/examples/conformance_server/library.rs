//! Resources, prompts and completion with the names of the conformance suite. All texts are fixed.

use karat_mcp::serve::{Context, ProtocolError};
use serde_json::{Map, Value, json};

use super::{INVALID_PARAMS, PNG, rounds};

/// The code for a resource that does not exist, before revision 2026-07-28.
const RESOURCE_NOT_FOUND: i64 = -32002;
const TEMPLATE: (&str, &str) = ("test://template/", "/data");

/// The answer to a request for resources, prompts or completion; `None` for any other.
pub(super) fn answer(
    context: &Context,
    method: &str,
    params: &Value,
) -> Result<Option<Value>, ProtocolError> {
    let result = match method {
        "resources/list" => json!({"resources": resources()}),
        "resources/templates/list" => json!({"resourceTemplates": [{
            "uriTemplate": format!("{}{{id}}{}", TEMPLATE.0, TEMPLATE.1),
            "name": "template",
            "description": "Data by its id.",
            "mimeType": "application/json",
        }]}),
        "resources/read" => read(context, uri(params)?)?,
        "prompts/list" => json!({"prompts": prompts()}),
        "prompts/get" => match prompt(params)? {
            Some(prompt) => prompt,
            None => return Ok(None),
        },
        "completion/complete" => complete(params),
        _ => return Ok(None),
    };
    let cacheable = method.ends_with("/list") || method == "resources/read";
    Ok(Some(if cacheable && context.is_stateless() { with_hints(result) } else { result }))
}

/// Adds the hints for caching.
fn with_hints(mut result: Value) -> Value {
    result["ttlMs"] = json!(0);
    result["cacheScope"] = json!("private");
    result
}

pub(super) fn uri(params: &Value) -> Result<&str, ProtocolError> {
    let uri = params.get("uri").and_then(Value::as_str);
    uri.ok_or_else(|| ProtocolError::new(INVALID_PARAMS, "The request has no uri"))
}

fn resources() -> Value {
    let entry = |uri: &str, name: &str, about: &str, mime: &str| json!({"uri": uri, "name": name, "description": about, "mimeType": mime});
    json!([
        entry("test://static-text", "static-text", "A text that never changes.", "text/plain"),
        entry("test://static-binary", "static-binary", "An image of one pixel.", "image/png"),
        entry("test://watched-resource", "watched", "A text to subscribe to.", "text/plain"),
    ])
}

fn read(context: &Context, uri: &str) -> Result<Value, ProtocolError> {
    let text = |mime: &str, text: &str| json!({"uri": uri, "mimeType": mime, "text": text});
    let content = match uri {
        "test://static-text" => {
            text("text/plain", "This is the content of the static text resource.")
        }
        "test://static-binary" => json!({"uri": uri, "mimeType": "image/png", "blob": PNG}),
        "test://watched-resource" => text("text/plain", "Nothing has happened yet."),
        other => {
            let id = other
                .strip_prefix(TEMPLATE.0)
                .and_then(|rest| rest.strip_suffix(TEMPLATE.1))
                .filter(|id| !id.is_empty() && !id.contains('/'));
            let Some(id) = id else { return Err(not_found(context, uri)) };
            let data =
                json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
            text("application/json", &data.to_string())
        }
    };
    Ok(json!({"contents": [content]}))
}

fn not_found(context: &Context, uri: &str) -> ProtocolError {
    let code = if context.is_stateless() { INVALID_PARAMS } else { RESOURCE_NOT_FOUND };
    let data = Some(json!({"uri": uri}));
    ProtocolError { code, message: "Resource not found".to_owned(), data }
}

fn prompts() -> Value {
    let argument =
        |name: &str, about: &str| json!({"name": name, "description": about, "required": true});
    json!([
        {"name": "test_simple_prompt", "description": "A prompt without arguments."},
        {
            "name": "test_prompt_with_arguments",
            "description": "A prompt that repeats its arguments.",
            "arguments": [argument("arg1", "First test argument"), argument("arg2", "Second test argument")],
        },
        {
            "name": "test_prompt_with_embedded_resource",
            "description": "A prompt with a resource in it.",
            "arguments": [argument("resourceUri", "URI of the resource to embed")],
        },
        {"name": "test_prompt_with_image", "description": "A prompt with an image in it."},
        {"name": rounds::PROMPT, "description": "A prompt that first asks for its context."},
    ])
}

/// A prompt that is complete at once; `None` for the one that asks first.
fn prompt(params: &Value) -> Result<Option<Value>, ProtocolError> {
    let name = params.get("name").and_then(Value::as_str).unwrap_or_default();
    let none = Map::new();
    let arguments = params.get("arguments").and_then(Value::as_object).unwrap_or(&none);
    let argument = |name: &str| {
        let found = arguments.get(name).and_then(Value::as_str);
        found.ok_or_else(|| ProtocolError::new(INVALID_PARAMS, format!("{name} is missing")))
    };
    let contents = match name {
        "test_simple_prompt" => vec![text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            let (first, second) = (argument("arg1")?, argument("arg2")?);
            vec![text(&format!("Prompt with arguments: arg1='{first}', arg2='{second}'"))]
        }
        "test_prompt_with_embedded_resource" => vec![
            json!({"type": "resource", "resource": {
                "uri": argument("resourceUri")?,
                "mimeType": "text/plain",
                "text": "Embedded resource content for testing.",
            }}),
            text("Please process the embedded resource above."),
        ],
        "test_prompt_with_image" => vec![
            json!({"type": "image", "data": PNG, "mimeType": "image/png"}),
            text("Please analyze the image above."),
        ],
        rounds::PROMPT => return Ok(None),
        other => {
            return Err(ProtocolError::new(INVALID_PARAMS, format!("Unknown prompt: {other}")));
        }
    };
    Ok(Some(messages(contents)))
}

pub(super) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// The contents as messages of the user.
pub(super) fn messages(contents: Vec<Value>) -> Value {
    let message = |content: Value| json!({"role": "user", "content": content});
    let messages: Vec<Value> = contents.into_iter().map(message).collect();
    json!({"messages": messages})
}

/// The words that complete the beginning that the client sends.
fn complete(params: &Value) -> Value {
    let begun = params.pointer("/argument/value").and_then(Value::as_str).unwrap_or_default();
    let values: Vec<&str> =
        ["paper", "parcel", "parent"].into_iter().filter(|word| word.starts_with(begun)).collect();
    let total = values.len();
    json!({"completion": {"values": values, "total": total, "hasMore": false}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_needs_its_arguments() {
        let get = |arguments: Value| {
            prompt(&json!({"name": "test_prompt_with_arguments", "arguments": arguments}))
        };
        let both = get(json!({"arg1": "a", "arg2": "b"})).unwrap().unwrap();
        let said = both.pointer("/messages/0/content/text").unwrap();
        assert_eq!(said, "Prompt with arguments: arg1='a', arg2='b'");
        assert_eq!(get(json!({"arg1": "a"})).unwrap_err().code, INVALID_PARAMS);
    }

    #[test]
    fn completion_offers_only_words_that_fit() {
        let complete = complete(&json!({"argument": {"name": "arg1", "value": "pare"}}));
        assert_eq!(complete["completion"]["values"], json!(["parent"]));
    }
}
