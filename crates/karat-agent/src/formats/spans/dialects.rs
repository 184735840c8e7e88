//! Attributes of platforms that have names of their own, under the names of the GenAI conventions.
//!
//! A platform states the kind of a span, what went in and what came out, and that is all that is needed:
//! a row of a table is a platform. Names of the conventions that a span has already are kept.

use serde_json::{Value, json};

use super::Span;
use super::exports::{messages, set, set_tool, set_usage};
use crate::formats::dialog::structured;

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

const DIALECTS: [Dialect; 5] = [
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
    for dialect in &DIALECTS {
        let Some(kind) = span.attributes.get(dialect.kind).map(structured) else { continue };
        let kind = kind.as_str().unwrap_or_default().to_owned();
        let ends = |kinds: &[&str]| kinds.iter().any(|end| kind.ends_with(end));
        let value = |key: &str| span.attributes.get(key).map(structured);
        let (input, output) = (value(dialect.input), value(dialect.output));
        if ends(dialect.tool) && !span.attributes.contains_key("gen_ai.tool.name") {
            let name = span.name.clone();
            // A result that only looks like a number stays the text that it is.
            let plain = output.filter(|output| !output.is_number() && !output.is_boolean());
            let output = plain.or_else(|| span.attributes.get(dialect.output).cloned());
            set_tool(span, &name, input.unwrap_or_default(), output.unwrap_or_default());
        } else if ends(dialect.model) {
            let (model, usage) = (value(dialect.model_name), value(dialect.usage));
            add(span, "gen_ai.operation.name", "chat".into());
            add(span, "gen_ai.request.model", model.unwrap_or_default());
            add(span, "gen_ai.input.messages", messages(input.as_ref(), "user"));
            add(span, "gen_ai.output.messages", messages(output.as_ref(), "assistant"));
            if !span.attributes.contains_key("gen_ai.usage.input_tokens") {
                let inside = output.as_ref().and_then(|output| output.get("usage"));
                set_usage(span, usage.as_ref().or(inside));
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

/// Prompt and completion in one attribute each, of the span or of its events: messages as JSON, or a text
/// that begins with the role.
fn texts(span: &mut Span) {
    for (from, to, role) in [
        ("gen_ai.prompt", "gen_ai.input.messages", "user"),
        ("gen_ai.completion", "gen_ai.output.messages", "assistant"),
    ] {
        if span.anywhere(&[to]).is_some() {
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
