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

fn langfuse(at: u8, given: &[Value], said: &[Value]) -> Value {
    json!({"id": at.to_string(), "traceId": "t", "type": "GENERATION", "name": "chat",
        "startTime": format!("2026-01-01T00:00:0{at}Z"), "input": given, "output": said,
        "modelParameters": {"n": said.len()}})
}

/// Gemini by OpenInference.
fn candidates(at: u8, given: &[Value], said: &[Value]) -> Value {
    let mut span = conventions(at, given, said);
    let attributes = span["attributes"].as_object_mut().unwrap();
    attributes.shift_remove("gen_ai.request.choice.count");
    let parameters = json!({"candidate_count": said.len()}).to_string();
    attributes.insert("llm.invocation_parameters".to_owned(), parameters.into());
    span
}

/// The first is the reader of plain exchanges, with which the others agree.
const REQUESTS: [(&str, Request); 8] = [
    ("exchange", exchange),
    ("conventions", conventions),
    ("events", events),
    ("openinference", openinference),
    ("langsmith", langsmith),
    ("opik", opik),
    ("langfuse", langfuse),
    ("candidates", candidates),
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
fn a_tool_without_an_id_shows_the_only_choice_that_it_fits() {
    let tool = |x: u8| {
        let arguments = json!({"x": x}).to_string();
        span(
            2,
            json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "a", "gen_ai.tool.call.arguments": arguments}),
        )
    };
    let said = [asks("c", 1), asks("d", 2)];
    for x in [1, 2] {
        let trace = one(&[conventions(1, &[user()], &said), tool(x)]);
        assert_eq!(calls(&trace), [format!("a({{\"x\":{x}}})")]);
    }
    // It fits both.
    let bare = span(2, json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "a"}));
    assert_eq!(calls(&one(&[conventions(1, &[user()], &said), bare])), ["a({\"x\":1})"]);
}

#[test]
fn a_conversation_that_lost_its_beginning_shows_the_choice() {
    let (first, second) = (asks("c", 1), asks("d", 2));
    let before = [user(), says("One."), user(), says("Two."), user()];
    let trace = one(&[
        conventions(1, &before, &[first, second.clone()]),
        conventions(2, &[user(), second, result("d")], &[says("Done.")]),
    ]);
    assert_eq!(calls(&trace), ["a({\"x\":2})"]);
}

/// OpenLLMetry does not record `n`.
fn openllmetry(at: u8, given: &[Value], said: &[Value], ends: usize) -> Value {
    let ended = |message: &Value| {
        let mut message = message.clone();
        message["finish_reason"] = "tool_call".into();
        message
    };
    let said: Vec<Value> = said.iter().map(ended).collect();
    let mut span = conventions(at, given, &said);
    let attributes = span["attributes"].as_object_mut().unwrap();
    attributes.shift_remove("gen_ai.request.choice.count");
    attributes.insert("gen_ai.response.finish_reasons".to_owned(), vec!["tool_call"; ends].into());
    span
}

#[test]
fn messages_that_ended_each_by_itself_are_choices() {
    let said = [asks("c", 1), asks("d", 2)];
    assert_eq!(calls(&one(&[openllmetry(1, &[user()], &said, 2)])), ["a({\"x\":1})"]);
    let next = conventions(2, &[user(), said[1].clone(), result("d")], &[says("Done.")]);
    // Some write equal ends once.
    for ends in [1, 2] {
        let trace = one(&[openllmetry(1, &[user()], &said, ends), next.clone()]);
        assert_eq!(calls(&trace), ["a({\"x\":2})"], "{ends}");
    }
}

#[test]
fn items_of_one_answer_that_have_an_end_each_are_not_choices() {
    let both = ["a({\"x\":1})", "a({\"x\":2})"];
    let said = [asks("c", 1), asks("d", 2)];
    let first = openllmetry(1, &[user()], &said, 1);
    assert_eq!(calls(&one(std::slice::from_ref(&first))), both);
    let next = [user(), said[0].clone(), said[1].clone(), result("c"), result("d")];
    assert_eq!(calls(&one(&[first.clone(), conventions(2, &next, &[says("Done.")])])), both);
    // A tool was called, and its agent was asked something else, before the other call.
    let tool = span(
        2,
        json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "a", "gen_ai.tool.call.id": "c"}),
    );
    let asked = json!({"role": "user", "content": "Something else."});
    let inside = conventions(3, &[asked.clone(), asked], &[says("Yes.")]);
    assert_eq!(calls(&one(&[first, tool, inside])), both);
}

#[test]
fn a_request_in_events_shows_the_choice_by_the_message_of_the_model() {
    let event = |name: &str, attributes: Value| json!({"name": name, "attributes": attributes});
    let chat = |at: u8, events: &[Value]| {
        answered(span(at, json!({"gen_ai.operation.name": "chat"})), events)
    };
    let asked = event("gen_ai.user.message", json!({"content": "Q"}));
    let blocks = [
        block(0, None, Some(("c", 1)), "tool_calls"),
        block(1, None, Some(("d", 2)), "tool_calls"),
    ];
    let first = chat(1, &[std::slice::from_ref(&asked), &blocks[..]].concat());
    // The result has no id.
    let second = [
        asked,
        event("gen_ai.assistant.message", json!({"tool_calls": asks("d", 2)["tool_calls"]})),
        event("gen_ai.tool.message", json!({"content": "r"})),
        block(0, Some("Done."), None, "stop"),
    ];
    let trace = one(&[first, chat(2, &second)]);
    assert_eq!(calls(&trace), ["a({\"x\":2})"]);
    assert_eq!(trace.output.as_deref(), Some("Done."));
}

/// A block of an answer as some instrumentations number it, with calls next to the message.
fn block(index: usize, content: Option<&str>, call: Option<(&str, u8)>, finish: &str) -> Value {
    let calls: Option<Vec<Value>> = call.map(|(id, x)| {
        vec![
            json!({"id": id, "type": "function", "function": {"name": "a", "arguments": {"x": x}}}),
        ]
    });
    json!({"name": "gen_ai.choice", "attributes":
        {"index": index, "message": {"content": content}, "finish_reason": finish, "tool_calls": calls}})
}

fn answered(mut span: Value, blocks: &[Value]) -> Value {
    span["events"] = blocks.to_vec().into();
    span
}

#[test]
fn calls_next_to_the_message_of_an_event_count() {
    let chat = span(1, json!({"gen_ai.operation.name": "chat"}));
    let trace = one(&[answered(chat, &[block(0, None, Some(("c", 1)), "tool_calls")])]);
    assert_eq!(calls(&trace), ["a({\"x\":1})"]);
}

#[test]
fn the_end_that_an_event_states_says_whether_tools_were_called() {
    let bare = |finish: &str| {
        let event =
            json!({"name": "gen_ai.choice", "attributes": {"index": 0, "finish_reason": finish}});
        answered(span(1, json!({"gen_ai.operation.name": "chat"})), &[event])
    };
    let mut other = bare("tool_calls");
    other["traceId"] = "u".into();
    // The trace whose calls were not recorded is left out.
    let trace = one(&[other, bare("stop")]);
    assert_eq!((trace.id.as_str(), calls(&trace).len()), ("t", 0));
}

#[test]
fn numbered_blocks_of_one_answer_are_not_choices() {
    let chat = |more: Value| {
        let mut chat = span(1, json!({"gen_ai.operation.name": "chat"}));
        chat["attributes"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        chat
    };
    let both = ["a({\"x\":1})", "a({\"x\":2})"];
    let blocks = [block(0, None, Some(("c", 1)), "stop"), block(1, None, Some(("d", 2)), "stop")];
    // By the model.
    let claude = chat(json!({"gen_ai.request.model": "claude-opus"}));
    assert_eq!(calls(&one(&[answered(claude.clone(), &blocks)])), both);
    let thought = [block(0, Some("A thought."), None, "stop"), block(1, Some("42"), None, "stop")];
    assert_eq!(one(&[answered(claude, &thought)]).output.as_deref(), Some("42"));
    // By the end.
    let text = block(0, Some("I look."), None, "tool_use");
    let tools =
        [block(1, None, Some(("c", 1)), "tool_use"), block(2, None, Some(("d", 2)), "tool_use")];
    let said = [&[text][..], &tools].concat();
    assert_eq!(calls(&one(&[answered(chat(json!({})), &said)])), both);
    // By later calls.
    let tool = |at: u8, id: &str| {
        span(
            at,
            json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "a", "gen_ai.tool.call.id": id}),
        )
    };
    let first = answered(chat(json!({})), &blocks);
    assert_eq!(calls(&one(&[first.clone(), tool(2, "c"), tool(3, "d")])), both);
    let next = [asks("c", 1)["tool_calls"][0].clone(), asks("d", 2)["tool_calls"][0].clone()];
    let next = json!({"role": "assistant", "content": null, "tool_calls": next});
    let next = conventions(2, &[user(), next, result("c"), result("d")], &[says("Done.")]);
    assert_eq!(calls(&one(&[first, next.clone()])), both);
    // Unless the request is for several.
    let asked = chat(json!({"gen_ai.request.choice.count": 2}));
    assert_eq!(calls(&one(&[answered(asked, &blocks), next])), both[..1]);
}

/// As OpenLLMetry writes the events of Anthropic's client under the span of a program.
#[test]
fn the_events_of_several_exchanges_can_be_on_one_span() {
    let given = |role: &str, content: Value| json!({"name": format!("gen_ai.{role}.message"), "attributes": {"content": content}});
    let used =
        |id: &str, x: u8| json!({"type": "tool_use", "id": id, "name": "a", "input": {"x": x}});
    let back = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "r"});
    let first = [block(0, None, Some(("c", 1)), "stop"), block(1, None, Some(("d", 2)), "stop")];
    let asked = [
        given("user", "Q".into()),
        given("assistant", json!([used("c", 1), used("d", 2)])),
        given("user", json!([back("c"), back("d")])),
    ];
    // A stream has the text as a part by itself.
    let mut last = block(0, None, None, "stop");
    last["attributes"]["message"]["content"] = json!({"type": "text", "content": "Done."});
    let all = [&asked[..1], &first, &asked, &[last]].concat();
    let trace = one(&[answered(span(1, json!({"karat.task": "t"})), &all)]);
    assert_eq!(calls(&trace), ["a({\"x\":1})", "a({\"x\":2})"]);
    assert!(trace.calls.iter().all(|call| call.result == Some("r".into())), "{trace:?}");
    assert_eq!(trace.output.as_deref(), Some("Done."));
}

#[test]
fn a_choice_keeps_its_own_digits() {
    // Both are the same number of 64 bits.
    let arguments = ["{\"x\":123456789012345678901}", "{\"x\":123456789012345678902}"];
    let message = |id: &str, arguments: &str| {
        format!(
            "{{\"role\":\"assistant\",\"tool_calls\":[{{\"id\":\"{id}\",\"name\":\"a\",\"args\":{arguments}}}]}}"
        )
    };
    let said = [message("c", arguments[0]), message("d", arguments[1])];
    let model = span(
        1,
        json!({"gen_ai.operation.name": "chat", "gen_ai.request.choice.count": 2,
        "gen_ai.output.messages": format!("[{}]", said.join(","))}),
    );
    for (id, expected) in ["c", "d"].into_iter().zip(arguments) {
        let tool = json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "a", "gen_ai.tool.call.id": id});
        assert_eq!(calls(&one(&[model.clone(), span(2, tool)])), [format!("a({expected})")]);
    }
}

#[test]
fn several_messages_of_one_answer_are_not_choices() {
    let messages = json!([asks("c", 1), asks("d", 2)]).to_string();
    let model =
        span(1, json!({"gen_ai.operation.name": "chat", "gen_ai.output.messages": messages}));
    assert_eq!(calls(&one(&[model])), ["a({\"x\":1})", "a({\"x\":2})"]);
}
