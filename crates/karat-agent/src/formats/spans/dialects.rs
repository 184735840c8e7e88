//! Attributes of platforms that have names of their own, under the names of the GenAI conventions.
//!
//! A platform states the kind of a span, what went in and what came out, and that is all that is needed:
//! a row of a table is a platform. Names of the conventions that a span has already are kept.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Span;
use super::exports::{messages, set, set_split_usage, set_usage};
use crate::formats::dialog::{plain_text, structured};

/// The names of one platform.
struct Dialect {
    /// The attribute with the kind of the span.
    kind: &'static str,
    /// The ends of the kinds of spans in which a model is asked, and in which a tool is called.
    model: &'static [&'static str],
    tool: &'static [&'static str],
    input: &'static str,
    output: &'static str,
    model_name: &'static str,
    usage: &'static str,
}

const DIALECTS: [Dialect; 6] = [
    Dialect {
        kind: "mlflow.spanType",
        model: &["LLM", "CHAT_MODEL"],
        tool: &["TOOL"],
        input: "mlflow.spanInputs",
        output: "mlflow.spanOutputs",
        model_name: "mlflow.llm.model",
        usage: "mlflow.chat.tokenUsage",
    },
    Dialect {
        kind: "langfuse.observation.type",
        model: &["generation"],
        tool: &["tool"],
        input: "langfuse.observation.input",
        output: "langfuse.observation.output",
        model_name: "langfuse.observation.model.name",
        usage: "langfuse.observation.usage_details",
    },
    Dialect {
        kind: "haystack.component.type",
        model: &["ChatGenerator"],
        tool: &[],
        input: "haystack.component.input",
        output: "haystack.component.output",
        model_name: "haystack.model",
        usage: "haystack.usage",
    },
    Dialect {
        kind: "langsmith.span.kind",
        model: &["llm"],
        tool: &["tool"],
        input: "gen_ai.prompt",
        output: "gen_ai.completion",
        model_name: "langsmith.metadata.ls_model_name",
        usage: "langsmith.usage_metadata",
    },
    // The steps of Mastra: the spans around them add up what is inside.
    Dialect {
        kind: "mastra.span.type",
        model: &["model_step", "llm_step"],
        tool: &[],
        input: "input",
        output: "output",
        model_name: "modelId",
        usage: "usage",
    },
    // Logfire has no kind, and the request only in spans that ask a model.
    Dialect {
        kind: "request_data",
        model: &[""],
        tool: &[],
        input: "request_data",
        output: "response_data",
        model_name: "gen_ai.request.model",
        usage: "gen_ai.usage",
    },
];

/// Adds the names of the conventions.
pub(super) fn translate(span: &mut Span) {
    mlflow(span);
    for dialect in &DIALECTS {
        let Some(kind) = span.attributes.get(dialect.kind).map(structured) else { continue };
        let kind = kind.as_str().unwrap_or_default().to_owned();
        let ends = |kinds: &[&str]| kinds.iter().any(|end| kind.ends_with(end));
        let value = |key: &str| span.attributes.get(key).map(structured);
        let (input, output) = (value(dialect.input), value(dialect.output));
        if ends(dialect.tool) {
            let name = span.name.clone();
            // A result that only looks like a number stays the text that it is.
            let plain = output.filter(|output| !output.is_number() && !output.is_boolean());
            let output = plain.or_else(|| span.attributes.get(dialect.output).cloned());
            let output = output.map(|output| result_in(span, output));
            // The recorded JSON, with every digit.
            let given = input.filter(|input| !input.is_null());
            let given = given.and_then(|_| span.attributes.get(dialect.input).cloned());
            add(span, "gen_ai.operation.name", "execute_tool".into());
            add(span, "gen_ai.tool.name", name.into());
            add(span, "gen_ai.tool.call.arguments", given.unwrap_or_default());
            add(span, "gen_ai.tool.call.result", output.unwrap_or_default());
        } else if ends(dialect.model) {
            let (model, usage) = (value(dialect.model_name), value(dialect.usage));
            let output = output.map(|output| with_chunks(span, output));
            add(span, "gen_ai.operation.name", "chat".into());
            add(span, "gen_ai.request.model", model.unwrap_or_default());
            add(span, "gen_ai.input.messages", messages(input.as_ref(), "user"));
            add(span, "gen_ai.output.messages", messages(output.as_ref(), "assistant"));
            if !span.attributes.contains_key("gen_ai.usage.input_tokens") {
                // The provider's own count says what is in it.
                let inside = output.as_ref().and_then(|output| output.get("usage"));
                match dialect.kind.starts_with("langfuse") {
                    true => set_split_usage(span, usage.as_ref().or(inside)),
                    false => {
                        let inside = inside.filter(|usage| usage.is_object());
                        set_usage(span, inside.or(usage.as_ref()));
                    }
                }
            }
        }
    }
    texts(span);
    vertex(span);
}

fn add(span: &mut Span, key: &str, value: Value) {
    if !span.attributes.contains_key(key) {
        set(span, key, value);
    }
}

/// MLflow writes every attribute as JSON, the cost too.
fn mlflow(span: &mut Span) {
    if !span.attributes.contains_key("mlflow.spanType") {
        return;
    }
    for (_, value) in span.attributes.iter_mut() {
        let text = value.as_str().filter(|text| text.starts_with('"'));
        if let Some(plain) = text.and_then(|text| serde_json::from_str::<String>(text).ok()) {
            *value = plain.into();
        }
    }
    let cost = span.attributes.get("mlflow.llm.cost").map(structured);
    if let Some(cost) = cost.as_ref().and_then(|cost| cost.get("total_cost")) {
        add(span, "gen_ai.usage.cost", cost.clone());
    }
}

/// A result without what LangChain wraps around it. A tool that failed says so there.
fn result_in(span: &mut Span, output: Value) -> Value {
    let message = output.get("output").filter(|inside| inside.is_object()).unwrap_or(&output);
    if message.get("type").and_then(Value::as_str) != Some("tool") {
        return output;
    }
    let content = message.get("content").cloned().unwrap_or_default();
    if message.get("status").and_then(Value::as_str) == Some("error") {
        span.failed.get_or_insert_with(|| plain_text(&content));
    }
    add(span, "gen_ai.tool.call.id", message.get("tool_call_id").cloned().unwrap_or_default());
    content
}

/// A response whose calls were left out when it was put together from a stream, with the calls of the
/// parts, which MLflow has as events.
fn with_chunks(span: &Span, mut output: Value) -> Value {
    let message = output.pointer_mut("/choices/0/message").and_then(Value::as_object_mut);
    let Some(message) = message else { return output };
    if message.get("tool_calls").is_some_and(|calls| !calls.is_null()) {
        return output;
    }
    // By their number: id, name and arguments.
    let mut calls: BTreeMap<u64, [String; 3]> = BTreeMap::new();
    for (_, attributes) in &span.events {
        let chunk = attributes.get("mlflow.chunk.value").map(structured).unwrap_or_default();
        let parts = chunk.pointer("/choices/0/delta/tool_calls").and_then(Value::as_array);
        for part in parts.into_iter().flatten() {
            let call = calls.entry(part.get("index").and_then(Value::as_u64).unwrap_or(0));
            let fields = ["/id", "/function/name", "/function/arguments"];
            for (field, text) in fields.iter().zip(call.or_default()) {
                text.push_str(part.pointer(field).and_then(Value::as_str).unwrap_or_default());
            }
        }
    }
    if !calls.is_empty() {
        let call = |[id, name, arguments]: [String; 3]| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
        message.insert("tool_calls".to_owned(), calls.into_values().map(call).collect());
    }
    output
}

/// Prompt and completion in one attribute each, of the span or of its events: messages as JSON, or a text
/// that begins with the role.
fn texts(span: &mut Span) {
    for (from, to, role) in [
        ("gen_ai.prompt", "gen_ai.input.messages", "user"),
        ("gen_ai.completion", "gen_ai.output.messages", "assistant"),
    ] {
        // Of LangSmith's spans, the models' alone have messages there.
        let other = span.text(&["langsmith.span.kind"]).is_some_and(|kind| kind != "llm");
        if span.anywhere(&[to]).is_some() || (other && role == "assistant") {
            continue;
        }
        let Some(found) = span.anywhere(&[from]).map(structured) else { continue };
        let found = match found {
            Value::String(text) => {
                let begins = format!("{role}: ");
                let text = text.strip_prefix(&begins).unwrap_or(&text);
                json!([{"role": role, "content": text}])
            }
            other => messages(Some(&other), role),
        };
        set(span, to, found);
    }
}

/// Google's agents: the tokens are in the response, and without content there are empty objects.
fn vertex(span: &mut Span) {
    let value = |span: &Span, key: &str| span.attributes.get(key).map(structured);
    if !span.attributes.contains_key("gen_ai.usage.input_tokens")
        && let Some(response) = value(span, "gcp.vertex.agent.llm_response")
    {
        set_usage(span, response.get("usage_metadata").or_else(|| response.get("usageMetadata")));
    }
    let tool = ["gcp.vertex.agent.tool_call_args", "gcp.vertex.agent.tool_response"];
    let is_empty = |value: Option<Value>| value.is_some_and(|value| value == json!({}));
    if tool.iter().all(|key| is_empty(value(span, key))) {
        tool.iter().for_each(|key| _ = span.attributes.shift_remove(*key));
    }
}
