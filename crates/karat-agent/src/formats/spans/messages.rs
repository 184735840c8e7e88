//! The messages in spans: those that a model was given, and those that it answered with.
//!
//! They are in one attribute (the GenAI conventions), in an event or log record for each (their older
//! form), with every field as an attribute of its own (`llm.output_messages.0.message.role` of
//! OpenInference, `gen_ai.completion.0.role` of older OpenLLMetry), or under the names of one library.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::Span;
use super::choices::{ANSWER, CHOICE, CHOICE_EVENT, FINISH, messages_of_choices};
use crate::formats::dialog::{Piece, pieces, structured, tool};
use crate::trace::ToolDefinition;

/// The end of the names of events with messages that a model was given.
const MESSAGE_EVENT: &str = ".message";

/// The depth of a flattened key.
const MAX_STEPS: usize = 16;

/// The messages that a model was given.
pub(super) fn inputs(span: &Span) -> Vec<Value> {
    if let Some(all) = listed(span, &["gen_ai.input.messages", "ai.prompt.messages"]) {
        return all;
    }
    let mut names = vec!["gen_ai.user.message", "gen_ai.tool.message"];
    // Without a choice, the last message of the model may be its answer.
    names.extend(has_choice(span).then_some("gen_ai.assistant.message"));
    let mut all = events(&span.events, &names);
    all.extend(flattened(span, "llm.input_messages."));
    all.extend(flattened(span, "gen_ai.prompt."));
    if all.is_empty()
        && let Some(prompt) = span.attributes.get("ai.prompt").map(structured)
    {
        match (prompt.get("messages"), prompt.get("prompt")) {
            (Some(Value::Array(messages)), _) | (None, Some(Value::Array(messages))) => {
                all.extend(messages.iter().cloned());
            }
            (None, Some(text)) => all.push(json!({"role": "user", "content": text})),
            _ => {}
        }
    }
    if all.is_empty() {
        all = raw_messages(span, "input.value", &["messages", "input"]);
    }
    if all.is_empty()
        && let Some(request) = gemini(span, "gcp.vertex.agent.llm_request")
    {
        all.extend(
            request.get("contents").and_then(Value::as_array).into_iter().flatten().cloned(),
        );
    }
    all
}

fn has_choice(span: &Span) -> bool {
    span.events.iter().any(|(name, _)| name == CHOICE_EVENT)
}

/// The messages that a model answered with.
pub(super) fn outputs(span: &Span) -> Vec<Value> {
    // LiteLLM lists a message without its calls, which it has elsewhere.
    let says = |message: &Value| {
        let is_read = |piece: &Piece| !matches!(piece, Piece::Unread(_));
        pieces(message).is_some_and(|pieces| pieces.iter().any(is_read))
    };
    let listed = listed(span, &["gen_ai.output.messages"]);
    if let Some(all) = listed.as_ref().filter(|all| all.iter().any(says)) {
        return all.clone();
    }
    let mut all = events(&span.events, &[CHOICE_EVENT]);
    if all.is_empty() {
        // Next to a choice it is an earlier message of the model, also before a tool's.
        let is_given = |(name, _): &(String, _)| name == "gen_ai.tool.message";
        let from = span.events.iter().rposition(is_given).map_or(0, |at| at + 1);
        all = events(&span.events[from..], &["gen_ai.assistant.message"]);
    }
    all.extend(flattened(span, "llm.output_messages."));
    all.extend(flattened(span, "gen_ai.completion."));
    let (text, calls) = (
        span.text(&["ai.response.text", "ai.result.text", "ai.response.object"]),
        ["ai.response.toolCalls", "ai.result.toolCalls"]
            .iter()
            .find_map(|key| span.attributes.get(*key))
            .map(structured),
    );
    if all.is_empty() && (text.is_some() || calls.is_some()) {
        all.push(json!({"role": "assistant", "content": text, "tool_calls": calls}));
    }
    if all.is_empty() {
        all = raw_messages(span, "output.value", &["output", "choices"]);
    }
    if all.is_empty()
        && let Some(response) = gemini(span, "gcp.vertex.agent.llm_response")
    {
        all.extend(response.get("content").cloned());
    }
    if all.is_empty() {
        all = listed.unwrap_or_default();
    }
    // Some leave the role of an answer out.
    for message in &mut all {
        if let Some(fields) = message.as_object_mut().filter(|fields| !fields.contains_key("role"))
        {
            fields.insert("role".to_owned(), "assistant".into());
        }
    }
    all
}

/// The messages in what a model's span of OpenInference keeps of the request or the response, as the
/// provider has it: some instrumentations write nothing else.
fn raw_messages(span: &Span, key: &str, inside: &[&str]) -> Vec<Value> {
    if span.text(&["openinference.span.kind"]) != Some("LLM") {
        return Vec::new();
    }
    let found = span.attributes.get(key).map(structured).unwrap_or_default();
    let documents = match found {
        Value::Array(all) => all,
        one => vec![one],
    };
    let mut all = Vec::new();
    for document in documents {
        match inside.iter().find_map(|key| document.get(key)) {
            Some(Value::Array(choices))
                if choices.iter().all(|one| one.get("message").is_some()) =>
            {
                let messages = messages_of_choices(choices);
                all.extend(messages.as_array().into_iter().flatten().cloned());
            }
            Some(Value::Array(messages)) => {
                let message = |one: &Value| one.get("message").unwrap_or(one).clone();
                all.extend(messages.iter().map(message));
            }
            Some(Value::String(text)) => all.push(json!({"role": "user", "content": text})),
            _ if pieces(&document).is_some() => all.push(document),
            _ => {}
        }
    }
    all
}

fn gemini(span: &Span, key: &str) -> Option<Value> {
    span.attributes.get(key).map(structured).filter(Value::is_object)
}

/// A list of messages in one attribute.
fn listed(span: &Span, keys: &[&str]) -> Option<Vec<Value>> {
    let found = keys.iter().find_map(|key| span.anywhere(&[key]))?;
    match structured(found) {
        Value::Array(all) => Some(all.iter().map(structured).collect()),
        message @ Value::Object(_) => Some(vec![message]),
        _ => None,
    }
}

/// The older conventions have an event or a log record for each message, whose name says the role.
fn events(all: &[(String, Map<String, Value>)], names: &[&str]) -> Vec<Value> {
    let of_name = all.iter().zip(answers(all)).filter(|((name, _), _)| names.contains(&&**name));
    of_name.map(|((name, attributes), answer)| event(name, attributes, answer)).collect()
}

/// The message of an event, with the number of its answer if it is one.
fn event(name: &str, attributes: &Map<String, Value>, answer: usize) -> Value {
    let mut message = match attributes.get("message").map(structured) {
        Some(Value::Object(message)) => message,
        // Strands writes the blocks of the message alone.
        Some(blocks @ Value::Array(_)) => Map::from_iter([("content".to_owned(), blocks)]),
        _ => attributes.clone(),
    };
    let role = name.strip_prefix("gen_ai.").and_then(|name| name.strip_suffix(".message"));
    if let (Some(role), false) = (role, message.contains_key("role")) {
        message.insert("role".to_owned(), role.into());
    }
    if name == CHOICE_EVENT {
        message.insert(ANSWER.to_owned(), answer.into());
    }
    // OpenLLMetry has the calls next to the message.
    for key in [CHOICE, FINISH, "tool_calls"] {
        let is_missing = message.get(key).is_none_or(Value::is_null);
        if let Some(value) = attributes.get(key).filter(|_| is_missing) {
            message.insert(key.to_owned(), value.clone());
        }
    }
    for key in ["content", "tool_calls", "parts"] {
        if let Some(value) = message.get_mut(key).filter(|value| is_json_list(value)) {
            *value = structured(value);
        }
    }
    Value::Object(message)
}

/// For each event the number of answers that have begun. The events of several exchanges can be on one span: that
/// of the program, under which a client writes them.
fn answers(all: &[(String, Map<String, Value>)]) -> Vec<usize> {
    let (mut number, mut is_answering) = (0, false);
    let count = |(name, _): &(String, Map<String, Value>)| {
        if name == CHOICE_EVENT {
            number += usize::from(!is_answering);
            is_answering = true;
        } else if name.ends_with(MESSAGE_EVENT) {
            is_answering = false;
        }
        number
    };
    all.iter().map(count).collect()
}

/// The messages that the events of a span have between an answer and the next one.
pub(super) fn after_answer(span: &Span, number: usize) -> Vec<Value> {
    let all = span.events.iter().zip(answers(&span.events));
    let after = all.filter(|((name, _), at)| *at == number && name.ends_with(MESSAGE_EVENT));
    after.map(|((name, attributes), at)| event(name, attributes, at)).collect()
}

fn is_json_list(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.starts_with("[{"))
}

/// Messages whose every field is an attribute of its own, put together.
fn flattened(span: &Span, prefix: &str) -> Vec<Value> {
    let mut tree = Map::new();
    for (key, value) in &span.attributes {
        let Some(path) = key.strip_prefix(prefix) else { continue };
        let steps: Vec<&str> = path.split('.').filter(|step| *step != "message").collect();
        if steps.len() <= MAX_STEPS && steps.first().is_some_and(|step| is_number(step)) {
            insert(&mut tree, &steps, value);
        }
    }
    match lists(Value::Object(tree)) {
        Value::Array(all) => all,
        _ => Vec::new(),
    }
}

fn is_number(step: &str) -> bool {
    !step.is_empty() && step.bytes().all(|byte| byte.is_ascii_digit())
}

fn insert(tree: &mut Map<String, Value>, steps: &[&str], value: &Value) {
    let Some((step, rest)) = steps.split_first() else { return };
    if rest.is_empty() {
        let value = if is_json_list(value) { structured(value) } else { value.clone() };
        tree.entry(*step).or_insert(value);
    } else if let Value::Object(inside) = tree.entry(*step).or_insert_with(|| json!({})) {
        insert(inside, rest, value);
    }
}

/// Objects whose keys are numbers, as lists.
fn lists(value: Value) -> Value {
    let Value::Object(fields) = value else { return value };
    if !fields.is_empty() && fields.keys().all(|key| is_number(key)) {
        let sorted: BTreeMap<u64, Value> = fields
            .into_iter()
            .filter_map(|(key, value)| Some((key.parse().ok()?, lists(value))))
            .collect();
        return sorted.into_values().collect();
    }
    Value::Object(fields.into_iter().map(|(key, value)| (key, lists(value))).collect())
}

/// The tools that a model was offered.
pub(super) fn definitions(spans: &[Span]) -> Option<Vec<ToolDefinition>> {
    let stated =
        |span: &Span| span.anywhere(&["gen_ai.tool.definitions", "ai.prompt.tools"]).cloned();
    let all = match spans.iter().find_map(stated).map(|found| structured(&found)) {
        Some(Value::Array(all)) => all.iter().map(structured).collect(),
        Some(_) => return None,
        None => spans.iter().map(numbered_tools).find(|all| !all.is_empty())?,
    };
    Some(all.iter().filter_map(tool).collect())
}

/// OpenInference's `llm.tools.0.tool.json_schema`.
fn numbered_tools(span: &Span) -> Vec<Value> {
    let tools: BTreeMap<u32, Value> = span
        .attributes
        .iter()
        .filter_map(|(key, value)| {
            let number = key.strip_prefix("llm.tools.")?.strip_suffix(".tool.json_schema")?;
            Some((number.parse().ok()?, structured(value)))
        })
        .collect();
    tools.into_values().collect()
}
