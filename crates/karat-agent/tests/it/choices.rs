//! Requests for several choices: the calls of one choice count.

use karat_agent::Trace;
use karat_agent::trace::Arguments;
use serde_json::{Value, json};

use crate::formats::read;

fn one(lines: &[Value]) -> Trace {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.jsonl");
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(&path, text).unwrap();
    let mut all = read(&[path]).1.traces;
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

/// The calls, as `name(arguments)`.
fn calls(trace: &Trace) -> Vec<String> {
    let shown = |call: &karat_agent::trace::CallMade| match &call.arguments {
        Arguments::NotRecorded => call.name.clone(),
        Arguments::Object(text) | Arguments::Text(text) => format!("{}({text})", call.name),
    };
    trace.calls.iter().map(shown).collect()
}

fn user() -> Value {
    json!({"role": "user", "content": "Q"})
}

fn asks(id: &str, x: u8) -> Value {
    let function = json!({"name": "a", "arguments": json!({"x": x}).to_string()});
    json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function", "function": function}]})
}

fn says(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

fn result(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": "r"})
}

/// A choice of a chat completion.
fn choice(index: usize, message: &Value) -> Value {
    json!({"index": index, "message": message, "finish_reason": "stop"})
}

fn choices(messages: &[Value]) -> Value {
    messages.iter().enumerate().map(|(index, message)| choice(index, message)).collect()
}

/// A request to a model, in one format.
type Request = fn(at: u8, given: &[Value], choices: &[Value]) -> Value;

fn exchange(_: u8, given: &[Value], said: &[Value]) -> Value {
    json!({"id": "t", "request": {"messages": given, "n": 2}, "response": {"choices": choices(said)}})
}

fn span(at: u8, attributes: Value) -> Value {
    json!({"traceId": "t", "spanId": at.to_string(), "name": "chat", "attributes": attributes,
        "startTimeUnixNano": format!("{at}0"), "endTimeUnixNano": format!("{at}5")})
}

fn conventions(at: u8, given: &[Value], said: &[Value]) -> Value {
    let text = |messages: &[Value]| Value::from(messages.to_vec()).to_string();
    span(
        at,
        json!({"gen_ai.operation.name": "chat", "gen_ai.request.choice.count": said.len(),
        "gen_ai.input.messages": text(given), "gen_ai.output.messages": text(said)}),
    )
}

fn events(at: u8, given: &[Value], said: &[Value]) -> Value {
    let event = |name: &str, attributes: Value| json!({"name": name, "attributes": attributes});
    let mut all: Vec<Value> = given
        .iter()
        .filter_map(|message| {
            let role = message["role"].as_str().filter(|role| *role != "assistant")?;
            let id = message.get("tool_call_id");
            Some(event(
                &format!("gen_ai.{role}.message"),
                json!({"content": message["content"], "id": id}),
            ))
        })
        .collect();
    all.extend(said.iter().enumerate().map(|(index, message)| {
        event(
            "gen_ai.choice",
            json!({"index": index, "message": message.to_string(), "finish_reason": "stop"}),
        )
    }));
    let mut span = span(at, json!({"gen_ai.operation.name": "chat"}));
    span["events"] = all.into();
    span
}

fn openinference(at: u8, given: &[Value], said: &[Value]) -> Value {
    let response = json!({"choices": choices(said)}).to_string();
    let request = json!({"messages": given}).to_string();
    span(
        at,
        json!({"openinference.span.kind": "LLM", "input.value": request, "output.value": response}),
    )
}

fn langsmith(at: u8, given: &[Value], said: &[Value]) -> Value {
    let generated: Vec<Value> = said.iter().map(|message| json!({"message": message})).collect();
    json!({"id": at.to_string(), "trace_id": "t", "run_type": "llm", "name": "model",
        "start_time": format!("2026-01-01T10:00:0{at}"), "inputs": {"messages": [given]},
        "outputs": {"generations": [generated]}})
}

fn opik(at: u8, given: &[Value], said: &[Value]) -> Value {
    json!({"id": at.to_string(), "trace_id": "t", "type": "llm", "name": "chat",
        "start_time": format!("2026-01-01T00:00:0{at}Z"), "input": {"messages": given},
        "output": {"choices": choices(said)}})
}

/// The first is the reader of plain exchanges, with which the others agree.
const REQUESTS: [(&str, Request); 6] = [
    ("exchange", exchange),
    ("conventions", conventions),
    ("events", events),
    ("openinference", openinference),
    ("langsmith", langsmith),
    ("opik", opik),
];

#[test]
fn the_first_choice_counts_where_nothing_follows() {
    for (name, request) in REQUESTS {
        let trace = one(&[request(1, &[user()], &[asks("c", 1), asks("d", 2)])]);
        assert_eq!(calls(&trace), ["a({\"x\":1})"], "{name}");
        let trace = one(&[request(1, &[user()], &[says("one"), asks("d", 2)])]);
        assert_eq!((calls(&trace).len(), trace.output.as_deref()), (0, Some("one")), "{name}");
    }
}

#[test]
fn the_choice_counts_that_the_conversation_goes_on_with() {
    for (name, request) in REQUESTS {
        let second = asks("d", 2);
        let trace = one(&[
            request(1, &[user()], &[asks("c", 1), second.clone()]),
            request(2, &[user(), second, result("d")], &[says("Done.")]),
        ]);
        assert_eq!(calls(&trace), ["a({\"x\":2})"], "{name}");
        assert_eq!(trace.calls[0].result, Some("r".into()), "{name}");
        assert_eq!(trace.output.as_deref(), Some("Done."), "{name}");
    }
}

#[test]
fn the_choice_counts_whose_call_a_tool_executes() {
    let tool = json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "a", "gen_ai.tool.call.id": "d"});
    let trace = one(&[events(1, &[user()], &[asks("c", 1), asks("d", 2)]), span(2, tool)]);
    assert_eq!(calls(&trace), ["a({\"x\":2})"]);
}

#[test]
fn several_messages_of_one_answer_are_not_choices() {
    let messages = json!([asks("c", 1), asks("d", 2)]).to_string();
    let model =
        span(1, json!({"gen_ai.operation.name": "chat", "gen_ai.output.messages": messages}));
    assert_eq!(calls(&one(&[model])), ["a({\"x\":1})", "a({\"x\":2})"]);
}
