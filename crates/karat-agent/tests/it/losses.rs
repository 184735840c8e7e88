//! Parts of a record that a reader could lose: calls under an id that is used again, calls of
//! further kinds, empty answers, errors inside an agent, and tokens where agents nest.

use karat_agent::trace::{Arguments, CallOutcome, Turns};
use karat_agent::{Trace, TraceFiles, TraceFormat, TraceSet, TraceSource, recognize};
use serde_json::{Value, json};

use crate::formats::read;

/// The traces of a file, with the notes on it.
fn set(lines: &[Value]) -> TraceSet {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.jsonl");
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(&path, text).unwrap();
    read(&[path]).1
}

/// The message with which lines are refused; nothing if they are not.
fn refusal(lines: &[Value]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.jsonl");
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(&path, text).unwrap();
    let paths = [path];
    let formats = recognize(&paths, TraceFormat::Auto).unwrap();
    let files = TraceFiles { files: &paths, formats: &formats, metrics: &[] };
    let read =
        TraceSet::read(&TraceSource { files, tasks: None, max_malformed: 0.0, prices: None });
    read.err().map(|error| error.to_string()).unwrap_or_default()
}

fn one(lines: &[Value]) -> Trace {
    let mut all = set(lines).traces;
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

/// The calls, as `name({"x":1})`, with `!` after those that failed.
fn calls(trace: &Trace) -> Vec<String> {
    let shown = |call: &karat_agent::trace::CallMade| {
        let arguments = match &call.arguments {
            Arguments::NotRecorded => "?",
            Arguments::Object(text) | Arguments::Text(text) => text,
        };
        let mark = if call.outcome() == CallOutcome::Failed { "!" } else { "" };
        format!("{}({arguments}){mark}", call.name)
    };
    trace.calls.iter().map(shown).collect()
}

fn counted(set: &TraceSet) -> String {
    format!("{:?}", set.stats.unknown)
}

/// A span from one time to another; `at` is its id, after `<` the id of its parent.
fn span(at: &str, (start, end): (u64, u64), name: &str, attributes: Value) -> Value {
    let (id, parent) = at.split_once('<').unwrap_or((at, ""));
    json!({"traceId": "t", "spanId": id, "parentSpanId": parent, "name": name,
        "startTimeUnixNano": start.to_string(), "endTimeUnixNano": end.to_string(), "attributes": attributes})
}

fn failed(mut span: Value) -> Value {
    span["status"] = json!({"code": 2, "message": "no"});
    span
}

fn asks(id: &str, name: &str, arguments: Value) -> Value {
    json!({"role": "assistant", "parts": [{"type": "tool_call", "id": id, "name": name, "arguments": arguments}]})
}

fn says(text: &str) -> Value {
    json!({"role": "assistant", "parts": [{"type": "text", "content": text}]})
}

fn answered(id: &str, result: &str) -> Value {
    json!({"role": "tool", "parts": [{"type": "tool_call_response", "id": id, "result": result}]})
}

/// A request to a model.
fn chat(given: &[Value], said: &Value) -> Value {
    json!({"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 1,
        "gen_ai.input.messages": Value::from(given.to_vec()).to_string(),
        "gen_ai.output.messages": json!([said]).to_string()})
}

#[test]
fn calls_of_several_turns_under_one_id_are_all_read_with_their_own_results() {
    for id in ["call_0", ""] {
        let user = json!({"role": "user", "parts": [{"type": "text", "content": "Q"}]});
        let steps = [
            asks(id, "a", json!({"x": 1})),
            answered(id, "one"),
            asks(id, "b", json!({"x": 2})),
            answered(id, "two"),
            asks(id, "a", json!({"x": 1})),
            answered(id, "three"),
        ];
        let given = |count: usize| [std::slice::from_ref(&user), &steps[..count]].concat();
        let turn = |at: usize, said: &Value| {
            let start = 10 + at as u64 * 10;
            span(&format!("{at}1"), (start, start + 5), "chat", chat(&given(at), said))
        };
        let trace = one(&[
            turn(0, &steps[0]),
            turn(2, &steps[2]),
            turn(4, &steps[4]),
            turn(6, &says("Done.")),
        ]);
        assert_eq!(calls(&trace), ["a({\"x\":1})", "b({\"x\":2})", "a({\"x\":1})"], "{id:?}");
        let results: Vec<Value> =
            trace.calls.iter().filter_map(|call| call.result.clone()).collect();
        assert_eq!(results, ["one", "two", "three"], "{id:?}");
        assert_eq!(trace.output.as_deref(), Some("Done."));
    }
}

#[test]
fn the_same_exchange_from_two_instrumentations_is_one() {
    let said = asks("call_0", "a", json!({"x": 1}));
    // They overlap, or have the response's id, or no result came in between.
    let overlapping = [
        span("1", (10, 20), "outer", chat(&[], &said)),
        span("2", (12, 18), "inner", chat(&[], &said)),
    ];
    assert_eq!(calls(&one(&overlapping)), ["a({\"x\":1})"]);
    let with_id = |at: &str, times: (u64, u64), response: &str| {
        let mut attributes = chat(&[], &said);
        attributes["gen_ai.response.id"] = response.into();
        span(at, times, "chat", attributes)
    };
    assert_eq!(calls(&one(&[with_id("1", (10, 20), "r"), with_id("2", (30, 40), "r")])).len(), 1);
    assert_eq!(calls(&one(&[with_id("1", (10, 20), "r"), with_id("2", (30, 40), "s")])).len(), 2);
    let apart = [
        span("1", (10, 20), "chat", chat(&[], &said)),
        span("2", (30, 40), "chat", chat(&[], &said)),
    ];
    assert_eq!(calls(&one(&apart)).len(), 1);
    let tool = json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "a", "gen_ai.tool.call.id": "call_0"});
    let between = [apart[0].clone(), span("3", (22, 24), "execute_tool a", tool), apart[1].clone()];
    assert_eq!(calls(&one(&between)).len(), 2);
}

#[test]
fn the_history_of_a_request_that_failed_is_not_called_again() {
    let call = json!({"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "a", "arguments": "{}"}}]});
    let event = |name: &str, content: Value| json!({"name": name, "attributes": content});
    let mut second = span("2", (30, 40), "chat", json!({"gen_ai.operation.name": "chat"}));
    second["events"] = json!([
        event("gen_ai.assistant.message", json!({"tool_calls": call["tool_calls"].to_string()})),
        event("gen_ai.tool.message", json!({"id": "c", "content": "one"})),
    ]);
    let first = span("1", (10, 20), "chat", chat(&[], &call));
    let trace = one(&[first, failed(second)]);
    assert_eq!(
        (calls(&trace), trace.calls[0].result.clone()),
        (vec!["a({})".to_owned()], Some("one".into()))
    );
}

#[test]
fn custom_and_invalid_calls_are_calls_and_unknown_ones_are_counted() {
    let chat = |call: Value| {
        json!({"id": "t", "messages": [{"role": "user", "content": "Q"},
            {"role": "assistant", "content": null, "tool_calls": [call]}, {"role": "assistant", "content": "done"}]})
    };
    let custom =
        json!({"id": "c", "type": "custom", "custom": {"name": "run_code", "input": "print(1)"}});
    assert_eq!(calls(&one(&[chat(custom)])), ["run_code(print(1))"]);
    let unknown = set(&[chat(json!({"id": "c", "type": "later", "later": {"title": "x"}}))]);
    assert_eq!(counted(&unknown), r#"Counts({"tool_calls[] (later)": 1})"#);
    let message = json!({"content": "", "tool_calls": [], "invalid_tool_calls": [
        {"name": "a", "args": "{\"x\":", "id": "c", "error": "not JSON", "type": "invalid_tool_call"}]});
    let messages = json!({"id": "t", "messages": [{"type": "human", "data": {"content": "Q"}}, {"type": "ai", "data": message}]});
    assert_eq!(calls(&one(&[messages])), ["a({\"x\":)"]);
    let run = json!({"id": "r", "trace_id": "r", "run_type": "llm", "name": "model", "start_time": "2026-01-01T10:00:00",
        "inputs": {"messages": [[{"role": "user", "content": "Q"}]]},
        "outputs": {"generations": [[{"message": {"lc": 1, "id": ["AIMessage"], "kwargs": message}}]]}});
    assert_eq!(calls(&one(&[run])), ["a({\"x\":)"]);
    // Two calls of one message without ids.
    let call = |x: u8| json!({"id": "", "function": {"name": "a", "arguments": json!({"x": x}).to_string()}});
    let both = json!({"id": "t", "messages": [{"role": "user", "content": "Q"}, {"role": "assistant", "tool_calls": [call(1), call(2)]}]});
    assert_eq!(calls(&one(&[both])), ["a({\"x\":1})", "a({\"x\":2})"]);
}

/// An exchange of the Responses API, whose conversation the provider keeps.
fn response(id: &str, after: Option<&str>, input: Value, output: Value) -> Value {
    json!({"id": "t", "request": {"previous_response_id": after, "input": input},
        "response": {"id": id, "output": output, "usage": {"input_tokens": 10, "output_tokens": 1}}})
}

#[test]
fn an_exchange_after_a_previous_response_goes_on_with_it() {
    let call = |id: &str, name: &str| json!({"type": "function_call", "call_id": id, "name": name, "arguments": "{}"});
    let result = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "r"});
    let said = |text: &str| json!([{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}]);
    let user = json!([{"role": "user", "content": "Q"}]);
    let trace = one(&[
        response("r1", None, user.clone(), json!([call("1", "a"), call("2", "b")])),
        response("r2", Some("r1"), json!([result("1"), result("2")]), said("mid")),
        response("r3", Some("r2"), user, json!([call("3", "a")])),
        response("r4", Some("r3"), json!([result("3")]), said("fine")),
    ]);
    assert_eq!(
        (calls(&trace), trace.output.as_deref()),
        (vec!["a({})".to_owned(), "b({})".into(), "a({})".into()], Some("fine"))
    );
    assert!(trace.calls.iter().all(|call| call.outcome() == CallOutcome::Succeeded));
    assert_eq!((trace.turns, trace.usage.input_tokens), (Turns::Multi, Some(40)));
}

#[test]
fn calls_before_a_compaction_of_the_context_are_kept_and_counted() {
    let call = |id: &str, name: &str| {
        json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function",
        "function": {"name": name, "arguments": "{}"}}]})
    };
    let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "r"});
    let exchange = |request: &[Value], answer: Value| json!({"id": "t", "request": {"messages": request}, "response": {"choices": [{"message": answer}]}});
    let (user, summary) =
        (json!({"role": "user", "content": "Q"}), json!({"role": "user", "content": "So far: a."}));
    let (a, c, d) = (call("1", "a"), call("2", "c"), call("3", "d"));
    let done = json!({"role": "assistant", "content": "done"});
    // The new context has other messages, or begins as before and has the last result.
    for compacted in [vec![summary.clone()], vec![user.clone(), summary, c.clone(), result("2")]] {
        let after = [&compacted[..], &[d.clone(), result("3")]].concat();
        let lines = [
            exchange(std::slice::from_ref(&user), a.clone()),
            exchange(&[user.clone(), a.clone(), result("1")], c.clone()),
            exchange(&compacted, d.clone()),
            exchange(&after, done.clone()),
        ];
        let set = set(&lines);
        let [trace] = &set.traces[..] else { panic!("{:?}", set.traces) };
        assert_eq!(calls(trace), ["a({})", "c({})", "d({})"]);
        assert_eq!((trace.input.as_deref(), trace.output.as_deref()), (Some("Q"), Some("done")));
        assert!(
            set.stats.notes.keys().any(|note| note.contains("earlier exchanges")),
            "{:?}",
            set.stats.notes
        );
    }
    // A request without the answer of the one before: the call was not made.
    let retried = [
        exchange(std::slice::from_ref(&user), a),
        exchange(&[user.clone(), json!({"role": "user", "content": "?"})], done),
    ];
    assert!(calls(&one(&retried)).is_empty());
}

#[test]
fn an_agent_that_failed_inside_a_span_that_did_not_was_stopped() {
    let call = asks("c", "a", json!({}));
    let agents = [
        json!({"gen_ai.operation.name": "invoke_agent"}),
        json!({"openinference.span.kind": "AGENT"}),
        json!({"traceloop.span.kind": "agent"}),
    ];
    for agent in agents {
        let root = span("1", (10, 90), "Agent workflow", json!({"karat.task": "x"}));
        let failure = failed(span("2<1", (11, 80), "root", agent.clone()));
        let asked = span("3<2", (12, 20), "chat", chat(&[], &call));
        let trace = one(&[root.clone(), failure.clone(), asked.clone()]);
        assert_eq!((trace.stopped.as_deref(), trace.output), (Some("error"), None), "{agent}");
        // An agent that a tool started is not the run.
        let inner = [
            root.clone(),
            span("2<1", (11, 80), "root", agent.clone()),
            asked.clone(),
            failed(span("4<2", (30, 40), "helper", agent.clone())),
        ];
        assert_eq!(one(&inner).stopped, None, "{agent}");
        // An answer after the failure is one, an answer before it belongs to an earlier turn.
        let answer = |times| span("5<1", times, "chat", chat(&[], &says("Fine.")));
        let later = one(&[root.clone(), failure.clone(), asked.clone(), answer((82, 85))]);
        assert_eq!((later.stopped, later.output.as_deref()), (None, Some("Fine.")), "{agent}");
        let again = failed(span("6<1", (86, 89), "root", agent.clone()));
        let earlier = one(&[root, answer((82, 85)), again]);
        assert_eq!((earlier.stopped.as_deref(), earlier.output), (Some("error"), None), "{agent}");
    }
    let record = |id: &str, parent: Value, at: u8, data: Value, error: Value| {
        json!({"object": "trace.span", "id": id, "trace_id": "t", "parent_id": parent, "span_data": data, "error": error,
            "started_at": format!("2026-01-01T10:00:0{at}+00:00"), "ended_at": "2026-01-01T10:00:09+00:00"})
    };
    let generation = json!({"type": "generation", "model": "m", "output": [{"role": "assistant", "content": null,
        "tool_calls": [{"id": "c", "function": {"name": "a", "arguments": "{}"}}]}]});
    let trace = one(&[
        record("1", Value::Null, 0, json!({"type": "custom", "name": "task"}), Value::Null),
        record(
            "2",
            "1".into(),
            1,
            json!({"type": "agent", "name": "root"}),
            json!({"message": "Max turns exceeded"}),
        ),
        record("3", "2".into(), 2, generation, Value::Null),
    ]);
    assert_eq!((trace.calls.len(), trace.stopped.as_deref()), (1, Some("error")));
}

#[test]
fn a_refusal_and_a_recorded_empty_output_are_answers() {
    let answer = |message: Value| {
        one(&[json!({"id": "t", "messages": [{"role": "user", "content": "Q"}, message]})]).output
    };
    let refused = json!({"role": "assistant", "content": null, "refusal": "I cannot help."});
    assert_eq!(answer(refused).as_deref(), Some("I cannot help."));
    assert_eq!(answer(json!({"role": "assistant", "content": ""})).as_deref(), Some(""));
    assert_eq!(
        answer(json!({"role": "assistant", "content": [{"type": "text", "text": ""}]})).as_deref(),
        Some("")
    );
    let alone = json!({"id": "t", "request": {"messages": [{"role": "user", "content": "Q"}]}, "response": "Bern."});
    assert_eq!(one(&[alone]).output.as_deref(), Some("Bern."));
    // A content that was not recorded is not known.
    assert_eq!(answer(json!({"role": "assistant", "content": null})), None);
    let call = json!([{"id": "c", "function": {"name": "a", "arguments": "{}"}}]);
    assert_eq!(answer(json!({"role": "assistant", "content": "", "tool_calls": call})), None);
    let spoken = |reasons: Value| {
        let mut attributes = chat(&[], &json!({"role": "assistant", "content": ""}));
        attributes["gen_ai.response.finish_reasons"] = reasons;
        one(&[span("1", (10, 20), "chat", attributes)]).output
    };
    assert_eq!(spoken(json!(["stop"])).as_deref(), Some(""));
}

#[test]
fn a_model_that_a_tool_asks_does_not_repeat_the_span_around_it() {
    for kind in ["execute_tool", "invoke_agent"] {
        let inside = json!({"gen_ai.operation.name": kind, "gen_ai.tool.name": "a", "gen_ai.tool.call.id": "c"});
        let answer = says("Done.");
        let trace = one(&[
            span(
                "1",
                (10, 99),
                "agent",
                json!({"gen_ai.operation.name": "invoke_agent",
                "gen_ai.usage.input_tokens": 300, "gen_ai.usage.output_tokens": 3}),
            ),
            span("2<1", (11, 60), "call_llm", chat(&[], &asks("c", "a", json!({})))),
            span("3<2", (20, 50), "inside", inside),
            span("4<3", (21, 40), "call_llm", chat(&[], &asks("d", "b", json!({})))),
            span("5<1", (70, 90), "call_llm", chat(&[], &answer)),
        ]);
        assert_eq!(calls(&trace), ["a({})", "b({})"], "{kind}");
        assert_eq!(
            (trace.usage.input_tokens, trace.output.as_deref()),
            (Some(300), Some("Done.")),
            "{kind}"
        );
    }
}

#[test]
fn an_agent_of_google_that_another_hands_over_to_keeps_both_requests() {
    let request = |at: &str, times, tokens: u64| {
        span(
            at,
            times,
            "call_llm",
            json!({"gen_ai.request.model": "m", "gen_ai.usage.input_tokens": tokens}),
        )
    };
    let trace = one(&[
        span("1", (10, 99), "agent_run [root]", json!({"karat.task": "x"})),
        request("2<1", (11, 90), 100),
        span("3<2", (20, 30), "execute_tool go", json!({"gen_ai.operation.name": "execute_tool"})),
        span("4<2", (31, 80), "agent_run [helper]", json!({})),
        request("5<4", (32, 70), 200),
    ]);
    assert_eq!(trace.usage.input_tokens, Some(300));
}

#[test]
fn tokens_of_inspect_are_of_the_evaluated_model() {
    let usage = |tokens: u64| json!({"input_tokens": tokens, "output_tokens": 1, "total_tokens": tokens + 1});
    let log = |model: Value, output: &str| {
        let sample = json!({"id": "t", "epoch": 1, "messages": [{"role": "user", "content": "Q"}],
            "output": {"model": output}, "model_usage": {"p/planner": usage(5000), "p/model": usage(300)}});
        one(&[json!({"status": "success", "eval": {"model": model}, "samples": [sample]})])
            .usage
            .input_tokens
    };
    assert_eq!(log("p/model".into(), "p"), Some(300));
    assert_eq!(log(Value::Null, "model"), Some(300));
    assert_eq!(log(Value::Null, "p/planner"), Some(5000));
}

#[test]
fn a_handoff_is_one_call() {
    let call = asks("c", "transfer_to_billing", json!({}));
    let handoff = json!({"openinference.span.kind": "TOOL", "input.value": "root", "output.value": "billing"});
    let spans = [
        span("1", (10, 20), "chat", chat(&[], &call)),
        span("2", (21, 22), "handoff to billing", handoff),
    ];
    assert_eq!(calls(&one(&spans)), ["transfer_to_billing({})"]);
    // The SDK's export has no responses, and then the handoff's span counts.
    let record = |id: &str, at: u8, data: Value| {
        json!({"object": "trace.span", "id": id, "trace_id": "t", "parent_id": null, "span_data": data,
            "started_at": format!("2026-01-01T10:00:0{at}+00:00"), "ended_at": "2026-01-01T10:00:09+00:00"})
    };
    let handed =
        record("2", 2, json!({"type": "handoff", "from_agent": "root", "to_agent": "Refund desk"}));
    let own = [record("1", 1, json!({"type": "response", "response_id": "r"})), handed.clone()];
    assert_eq!(calls(&one(&own)), ["transfer_to_refund_desk(?)"]);
    let generation = json!({"type": "generation", "output": [{"role": "assistant", "tool_calls": [
        {"id": "c", "function": {"name": "to_the_desk", "arguments": "{}"}}]}]});
    assert_eq!(calls(&one(&[record("1", 1, generation), handed])), ["to_the_desk({})"]);
}

#[test]
fn a_tool_whose_call_was_retried_denied_or_interrupted_failed() {
    for (outcome, expected) in [
        ("retried", "a({})!"),
        ("denied", "a({})!"),
        ("interrupted", "a({})!"),
        ("success", "a({})"),
    ] {
        let messages = json!([{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Q"}]},
            {"kind": "response", "parts": [{"part_kind": "tool-call", "tool_name": "a", "args": {}, "tool_call_id": "c"}]},
            {"kind": "request", "parts": [{"part_kind": "tool-return", "tool_name": "a", "content": "no", "tool_call_id": "c", "outcome": outcome}]}]);
        assert_eq!(
            calls(&one(&[json!({"id": "t", "messages": messages})])),
            [expected],
            "{outcome}"
        );
    }
}

#[test]
fn items_of_further_kinds_are_calls_or_are_counted() {
    let items = |more: Value| {
        let mut all = vec![json!({"role": "user", "content": "Q"})];
        all.extend(more.as_array().unwrap().iter().cloned());
        all.push(json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]}));
        set(&[json!({"id": "t", "input": all})])
    };
    let shell = items(json!([
        {"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}, "status": "completed"},
        {"type": "shell_call_output", "call_id": "c", "output": [{"stdout": "x"}]},
        {"type": "apply_patch_call", "call_id": "d", "operation": {"type": "delete_file"}},
        {"type": "apply_patch_call_output", "call_id": "d", "status": "failed", "output": "no"},
        {"type": "mcp_approval_request", "id": "m", "name": "x", "arguments": "{}", "server_label": "s"},
        {"type": "mcp_approval_response", "approval_request_id": "m", "approve": true},
        {"type": "image_generation_call", "id": "i", "status": "completed"},
    ]));
    let [trace] = &shell.traces[..] else { panic!("{:?}", shell.traces) };
    assert_eq!(
        calls(trace),
        [
            "shell({\"commands\":[\"ls\"]})",
            "apply_patch({\"type\":\"delete_file\"})!",
            "image_generation(?)"
        ]
    );
    assert_eq!(
        (trace.calls[0].outcome(), trace.output.as_deref()),
        (CallOutcome::Succeeded, Some("done"))
    );
    let later = items(json!([{"type": "hologram", "id": "h"}]));
    assert_eq!(counted(&later), r#"Counts({"items of the type hologram": 1})"#);
    let event =
        |kind: &str, content: Value| json!({"type": kind, "source": "helper", "content": content});
    let autogen = json!([{"type": "TextMessage", "source": "user", "content": "Q"}, event("MemoryQueryEvent", json!([])),
        event("ThoughtEvent", "hm".into()), event("HandoffMessage", "over to you".into()),
        event("MultiModalMessage", json!(["Done.", {"data": "aGk="}])), event("SelectSpeakerEvent", json!(["helper"]))]);
    assert_eq!(one(&[json!({"id": "t", "messages": autogen})]).output.as_deref(), Some("Done."));
}

#[test]
fn long_numbers_in_arguments_keep_their_digits() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.jsonl");
    let call = r#"{"type":"tool_use","id":"c","name":"a","input":{"x":12345678901234567890123, "y":0.1000000000000000055}}"#;
    std::fs::write(&path, format!("{{\"id\":\"t\",\"messages\":[{{\"role\":\"user\",\"content\":\"Q\"}},{{\"role\":\"assistant\",\"content\":[{call}]}}]}}\n")).unwrap();
    let traces = read(&[path]).1.traces;
    assert_eq!(
        calls(&traces[0]),
        [r#"a({"x":12345678901234567890123, "y":0.1000000000000000055})"#]
    );
}

#[test]
fn arguments_that_the_attributes_leave_out_are_in_the_response() {
    let message = json!({"lc": 1, "id": ["AIMessage"], "kwargs": {"content": "", "tool_calls": [{"name": "now", "args": {}, "id": "c"}]}});
    let attributes = json!({"openinference.span.kind": "LLM", "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "now",
        "output.value": json!({"generations": [[{"message": message}]]}).to_string()});
    assert_eq!(calls(&one(&[span("1", (10, 20), "model", attributes)])), ["now({})"]);
}

#[test]
fn results_without_ids_go_to_the_call_of_their_tool() {
    let call = |name: &str| json!({"functionCall": {"name": name, "args": {}}});
    let result = |name: &str, response: Value| json!({"functionResponse": {"name": name, "response": response}});
    let contents = json!([{"role": "user", "parts": [{"text": "Q"}]}, {"role": "model", "parts": [call("a"), call("b")]},
        {"role": "user", "parts": [result("b", json!({"error": "no"})), result("a", json!({"output": "5"}))]}]);
    assert_eq!(calls(&one(&[json!({"id": "t", "contents": contents})])), ["a({})", "b({})!"]);
}

#[test]
fn a_result_that_is_an_object_is_not_a_part_of_the_message() {
    let result = json!({"type": "tool_result", "tool_use_id": "row 7", "content": "4 rows"});
    let trace = one(&[json!({"id": "t", "messages": [
        {"role": "user", "content": "Q"},
        {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "rows", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c", "content": result},
        // A part without a list.
        {"role": "assistant", "content": {"type": "text", "text": "4."}},
    ]})]);
    assert_eq!(trace.calls[0].result, Some(result));
    assert_eq!(trace.output.as_deref(), Some("4."));
}

#[test]
fn runs_of_langsmith_may_be_inside_each_other() {
    let message = json!({"lc": 1, "id": ["AIMessage"], "kwargs": {"content": "", "tool_calls": [{"name": "a", "args": {"x": 1}, "id": "c"}]}});
    let child = json!({"id": "l", "run_type": "llm", "name": "model", "start_time": "2026-01-01T10:00:01",
        "inputs": {"messages": [[{"role": "user", "content": "Q"}]]}, "outputs": {"generations": [[{"message": message}]]}});
    let root = json!({"id": "r", "trace_id": "r", "run_type": "chain", "name": "agent", "start_time": "2026-01-01T10:00:00",
        "inputs": {"messages": [{"role": "user", "content": "Q"}]}, "child_runs": [child]});
    assert_eq!(calls(&one(&[root])), ["a({\"x\":1})"]);
}

#[test]
fn half_of_a_batch_says_how_to_get_the_other() {
    let message = |line: Value| refusal(&[line]);
    let openai = json!({"custom_id": "t", "response": {"body": {"choices": []}}});
    let anthropic = json!({"custom_id": "t", "result": {"type": "succeeded", "message": {"role": "assistant", "content": []}}});
    let input =
        json!({"custom_id": "t", "method": "POST", "url": "/v1/responses", "body": {"input": "Q"}});
    assert!(message(openai).contains("by `custom_id`"));
    assert!(message(input).contains("response: is missing"));
    assert!(message(anthropic.clone()).contains("by `custom_id`"));
    let mut whole = anthropic;
    whole["params"] = json!({"model": "m", "messages": [{"role": "user", "content": "Q"}]});
    whole["result"]["message"]["content"] = json!([{"type": "text", "text": "Done."}]);
    let trace = one(&[whole]);
    assert_eq!((trace.id.as_str(), trace.output.as_deref()), ("t", Some("Done.")));
}

#[test]
fn actions_of_others_and_remarks_next_to_a_result_do_not_begin_turns() {
    let context =
        json!({"role": "user", "parts": [{"text": "For context:"}, {"text": "[helper] said: hm"}]});
    let said = |text: &str| json!({"role": "model", "parts": [{"text": text}]});
    let adk = json!({"id": "t", "contents": [{"role": "user", "parts": [{"text": "Q"}]}, said("hm"), context, said("Done.")]});
    assert_eq!(
        (one(std::slice::from_ref(&adk)).turns, one(&[adk]).output.as_deref()),
        (Turns::Single, Some("Done."))
    );
    let reply = json!([{"type": "tool_result", "tool_use_id": "c", "content": "5"}, {"type": "text", "text": "go on"}]);
    let call = json!([{"type": "tool_use", "id": "c", "name": "a", "input": {}}]);
    let messages = json!([{"role": "user", "content": "Q"}, {"role": "assistant", "content": call}, {"role": "user", "content": reply},
        {"role": "assistant", "content": "Done."}]);
    assert_eq!(one(&[json!({"id": "t", "messages": messages})]).turns, Turns::Single);
}

#[test]
fn an_answer_after_the_tools_of_the_provider_is_the_answer() {
    let user = json!({"role": "user", "content": "Q"});
    let text = |text: &str| json!({"type": "text", "text": text});
    let used = json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}});
    let found = |content: Value| json!({"type": "web_search_tool_result", "tool_use_id": "s", "content": content});
    let pages = json!([{"type": "web_search_result", "url": "u", "title": "t"}]);
    let refused =
        json!({"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"});
    let run = |parts: Value| {
        one(&[json!({"id": "t", "messages": [user, {"role": "assistant", "content": parts}]})])
    };
    let answered = run(json!([text("Let me see."), used, found(pages.clone()), text("Bern.")]));
    assert_eq!(calls(&answered), ["web_search({\"query\":\"x\"})"]);
    assert_eq!(answered.calls[0].outcome(), CallOutcome::Succeeded);
    assert_eq!(answered.output.as_deref(), Some("Bern."));
    let paused = run(json!([text("Let me see."), used, found(pages)]));
    assert_eq!(paused.output, None);
    assert_eq!(calls(&run(json!([used, found(refused)]))), ["web_search({\"query\":\"x\"})!"]);
    // A call of the agent's own tools still waits.
    let own = json!({"type": "tool_use", "id": "c", "name": "a", "input": {}});
    assert_eq!(run(json!([used, found(json!([])), text("So far."), own])).output, None);
    // The same in spans, and in the logs of Inspect.
    let parts = json!([{"type": "tool_call", "id": "s", "name": "web_search", "arguments": {}},
        {"type": "tool_call_response", "id": "s", "response": "found"}, {"type": "text", "content": "Bern."}]);
    let message = json!({"role": "assistant", "parts": parts});
    let trace = one(&[span("1", (10, 20), "chat", chat(&[], &message))]);
    assert_eq!((calls(&trace).len(), trace.output.as_deref()), (1, Some("Bern.")));
    let inside = |error: Value| {
        json!({"type": "tool_use", "tool_type": "web_search", "id": "s", "name": "web_search",
        "arguments": "{}", "result": "found", "error": error})
    };
    let log = |error: Value| {
        let message = json!({"role": "assistant", "content": [inside(error), text("Bern.")]});
        let sample = json!({"id": "t", "epoch": 1, "messages": [user, message]});
        one(&[json!({"status": "success", "eval": {"model": "m"}, "samples": [sample]})])
    };
    let trace = log(Value::Null);
    assert_eq!(
        (calls(&trace), trace.output.as_deref()),
        (vec!["web_search({})".to_owned()], Some("Bern."))
    );
    assert_eq!(calls(&log("no".into())), ["web_search({})!"]);
}

#[test]
fn messages_of_a_page_have_their_calls_and_results_in_parts() {
    let part = |state: &str, rest: Value| {
        let mut part =
            json!({"type": "tool-find_city", "toolCallId": "c", "state": state, "input": {"x": 1}});
        part.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        part
    };
    let run = |parts: Value| {
        let all = json!([{"id": "1", "role": "user", "parts": [{"type": "text", "text": "Q"}]},
            {"id": "2", "role": "assistant", "parts": parts}]);
        one(&[json!({"id": "t", "messages": all})])
    };
    let (step, text) = (
        json!({"type": "step-start"}),
        |text: &str| json!({"type": "text", "text": text, "state": "done"}),
    );
    let done = part("output-available", json!({"output": {"id": 17}}));
    let dynamic = json!({"type": "dynamic-tool", "toolName": "forecast", "toolCallId": "d", "state": "output-error",
        "input": {}, "errorText": "no such city"});
    let trace = run(json!([step, text("One moment."), done, step, dynamic, step, text("Bern.")]));
    assert_eq!(calls(&trace), ["find_city({\"x\":1})", "forecast({})!"]);
    assert_eq!(
        (trace.calls[0].result.clone(), trace.output.as_deref()),
        (Some(json!({"id": 17})), Some("Bern."))
    );
    let waiting = run(json!([text("One moment."), part("input-available", json!({}))]));
    assert_eq!(
        (calls(&waiting).len(), waiting.calls[0].outcome(), waiting.output),
        (1, CallOutcome::NotRecorded, None)
    );
    assert_eq!(calls(&run(json!([part("output-denied", json!({}))]))), ["find_city({\"x\":1})!"]);
    // As older versions write them.
    let older = json!({"state": "result", "toolCallId": "c", "toolName": "find_city", "args": {"x": 1}, "result": 17});
    let trace = run(json!([{"type": "tool-invocation", "toolInvocation": older}, text("Bern.")]));
    assert_eq!(
        (calls(&trace), trace.output.as_deref()),
        (vec!["find_city({\"x\":1})".to_owned()], Some("Bern."))
    );
    let oldest = json!([{"role": "user", "content": "Q"}, {"role": "assistant", "content": "Bern.", "toolInvocations": [older]}]);
    let trace = one(&[json!({"id": "t", "messages": oldest})]);
    assert_eq!(
        (calls(&trace), trace.output.as_deref()),
        (vec!["find_city({\"x\":1})".to_owned()], Some("Bern."))
    );
}

#[test]
fn whole_conversations_under_one_id_are_runs() {
    let call = |id: &str, name: &str| json!({"role": "assistant", "tool_calls": [{"id": id, "function": {"name": name, "arguments": "{}"}}]});
    let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "r"});
    let said = |text: &str| json!({"role": "assistant", "content": text});
    let record = |rest: &[Value]| {
        let messages = [
            &[json!({"role": "system", "content": "S"}), json!({"role": "user", "content": "Q"})],
            rest,
        ]
        .concat();
        json!({"id": "t", "messages": messages})
    };
    // The second is longer, and may have the first call of the other as it was.
    for (first, second) in [("1", "2"), ("1", "1")] {
        let set = set(&[
            record(&[call(first, "a"), result(first), said("one")]),
            record(&[call(second, "a"), result(second), call("3", "b"), result("3"), said("two")]),
            record(&[said("three")]),
        ]);
        let found: Vec<(u32, usize)> =
            set.traces.iter().map(|trace| (trace.run, trace.calls.len())).collect();
        assert_eq!(found, [(1, 1), (2, 2), (3, 0)]);
        assert!(set.stats.notes.is_empty(), "{:?}", set.stats.notes);
    }
    // Each record has all that was said until then.
    let steps = [call("1", "a"), result("1"), call("2", "b"), result("2"), said("done")];
    let growing: Vec<Value> = (0..=steps.len()).map(|count| record(&steps[..count])).collect();
    assert_eq!(calls(&one(&growing)), ["a({})", "b({})"]);
    // Marks for the cache move to the last message.
    let marked = |text: &str| json!({"role": "user", "content": [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]});
    let first = json!({"id": "t", "messages": [marked("Q")]});
    assert_eq!(calls(&one(&[first, record(&steps)])), ["a({})", "b({})"]);
}

#[test]
fn a_request_of_a_batch_that_was_not_made_has_failed() {
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "Q"}]});
    let openai = |response: Value, error: Value| json!({"custom_id": "t", "body": body, "response": response, "error": error});
    let anthropic = |result: Value| json!({"custom_id": "t", "params": body, "result": result});
    let refused =
        json!({"type": "error", "error": {"type": "invalid_request_error", "message": "too long"}});
    for (line, class, message) in [
        (
            openai(Value::Null, json!({"code": "batch_expired", "message": "late"})),
            "batch_expired",
            "late",
        ),
        (
            openai(
                json!({"status_code": 400, "body": {"error": {"message": "bad", "type": "invalid", "code": null}}}),
                Value::Null,
            ),
            "invalid",
            "bad",
        ),
        (openai(json!({"status_code": 500, "body": null}), Value::Null), "status 500", ""),
        (
            anthropic(json!({"type": "errored", "error": refused})),
            "invalid_request_error",
            "too long",
        ),
        (anthropic(json!({"type": "expired"})), "expired", ""),
    ] {
        let set = set(std::slice::from_ref(&line));
        let failed = set.traces[0].failed.clone().unwrap_or_else(|| panic!("{line}"));
        assert_eq!((failed.class.as_str(), failed.message.as_str()), (class, message));
        assert_eq!(counted(&set), "Counts({})");
    }
    let message = json!({"role": "assistant", "content": "Done."});
    let made = openai(
        json!({"status_code": 200, "body": {"choices": [{"message": message}]}}),
        Value::Null,
    );
    assert_eq!(
        (one(std::slice::from_ref(&made)).failed, one(&[made]).output.as_deref()),
        (None, Some("Done."))
    );
}

#[test]
fn an_agent_that_a_tool_starts_may_call_that_tool_again() {
    let tool = |id: &str| {
        json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "delegate", "gen_ai.tool.call.id": id,
        "gen_ai.tool.call.arguments": "{}", "gen_ai.tool.call.result": "r"})
    };
    let nested = |inner: Value, between: Value| {
        one(&[
            span("1", (10, 90), "execute_tool delegate", tool("c")),
            span("2<1", (20, 80), "inside", between),
            span("3<2", (30, 70), "execute_tool delegate", inner),
        ])
    };
    assert_eq!(calls(&nested(tool("d"), json!({}))).len(), 2);
    assert_eq!(calls(&nested(tool("c"), json!({}))).len(), 1);
    let mut unnamed = tool("");
    unnamed.as_object_mut().unwrap().shift_remove("gen_ai.tool.call.id");
    assert_eq!(calls(&nested(unnamed.clone(), json!({}))).len(), 1);
    let agent = json!({"gen_ai.operation.name": "invoke_agent"});
    assert_eq!(calls(&nested(unnamed, agent)).len(), 2);
}

#[test]
fn a_conversation_that_another_one_interrupts_is_refused() {
    let call = json!({"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "a", "arguments": "{}"}}]});
    let user = json!({"role": "user", "content": "Q"});
    let result = json!({"role": "tool", "tool_call_id": "c", "content": "r"});
    let done = json!({"role": "assistant", "content": "done"});
    let exchange = |id: &str, request: &[Value], answer: &Value| json!({"id": id, "request": {"messages": request}, "response": {"choices": [{"message": answer}]}});
    let first = |id: &str| exchange(id, std::slice::from_ref(&user), &call);
    let second = |id: &str| exchange(id, &[user.clone(), call.clone(), result.clone()], &done);
    // One after the other, twice.
    let all = set(&[first("s"), second("s"), first("t"), second("t"), first("s"), second("s")]);
    let found: Vec<(&str, usize)> =
        all.traces.iter().map(|t| (t.id.as_str(), t.calls.len())).collect();
    assert_eq!(found, [("s", 1), ("s", 1), ("t", 1)]);
    let refused = |lines: &[Value]| refusal(lines).contains("another one interrupted");
    assert!(refused(&[first("s"), first("t"), second("s"), second("t")]));
    let later = |id: &str, after: &str| response(id, Some(after), json!([user]), json!([]));
    let mut kept = [response("r1", None, json!([user]), json!([])), first("x"), later("r2", "r1")];
    assert!(refused(&kept));
    kept.swap(1, 2);
    assert!(!refused(&kept));
}
