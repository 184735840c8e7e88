//! Shapes that were found in what libraries really export, one test for each that was read wrongly.

use karat_agent::Trace;
use karat_agent::trace::CallOutcome;
use serde_json::{Value, json};

use crate::formats::read;

fn traces(name: &str, lines: &[Value]) -> Vec<Trace> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(&path, text).unwrap();
    read(&[path]).1.traces
}

fn one(lines: &[Value]) -> Trace {
    let mut all = traces("run.jsonl", lines);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

/// A span of the trace `t`; `at` is its id and its start, after `<` the id of its parent.
fn span(at: &str, name: &str, attributes: Value) -> Value {
    let (id, parent) = at.split_once('<').unwrap_or((at, ""));
    json!({"traceId": "t", "spanId": id, "parentSpanId": parent, "name": name, "startTimeUnixNano": id,
        "endTimeUnixNano": "900", "attributes": attributes})
}

fn arguments(trace: &Trace) -> Vec<Option<Value>> {
    trace.calls.iter().map(|call| call.arguments.value()).collect()
}

fn tokens(trace: &Trace) -> (Option<u64>, Option<u64>) {
    (trace.usage.input_tokens, trace.usage.output_tokens)
}

#[test]
fn a_call_that_a_stream_records_in_parts_is_one_call_with_its_last_arguments() {
    let part = |id: &str, arguments: Value| json!({"role": "assistant", "parts": [{"type": "tool_call", "id": id, "name": "add", "arguments": arguments}]});
    let messages = json!([
        part("c", Value::Null),
        part("c", json!({"a": 2})),
        part("d", Value::Null),
        part("d", json!({"a": 3})),
        part("c", Value::Null),
    ]);
    let model = span("1", "chat", json!({"gen_ai.output.messages": messages.to_string()}));
    assert_eq!(arguments(&one(&[model])), [Some(json!({"a": 2})), Some(json!({"a": 3}))]);
    // Two calls of one message are two, also if a provider gives them the same id.
    let both = json!([{"role": "assistant", "parts": [
        {"type": "tool_call", "id": "c", "name": "add", "arguments": {"a": 2}},
        {"type": "tool_call", "id": "c", "name": "add", "arguments": {"a": 3}}]}]);
    let model = span("1", "chat", json!({"gen_ai.output.messages": both.to_string()}));
    assert_eq!(arguments(&one(&[model])).len(), 2);
}

#[test]
fn of_a_message_over_several_lines_the_last_line_has_the_tokens() {
    let line = |id: &str, block: Value, output: u64| {
        json!({"type": "assistant", "sessionId": "s", "uuid": format!("{id}-{output}"),
            "message": {"id": id, "role": "assistant", "model": "m", "content": [block],
                "usage": {"input_tokens": 7, "cache_read_input_tokens": 100, "output_tokens": output}}})
    };
    let text = json!({"type": "text", "text": "One moment."});
    let call = json!({"type": "tool_use", "id": "c", "name": "add", "input": {"a": 2}});
    let user = json!({"type": "user", "sessionId": "s", "uuid": "u", "message": {"role": "user", "content": "Q"}});
    let answer = json!({"type": "text", "text": "Done."});
    let lines = [
        user,
        line("m1", text, 1),
        line("m1", call, 64),
        line("m2", answer.clone(), 2),
        line("m2", answer, 20),
    ];
    let trace = one(&lines);
    assert_eq!((tokens(&trace), trace.usage.cached_tokens), ((Some(214), Some(84)), Some(200)));
    // A printed session ends with all of its tokens.
    let mut printed = lines.map(|mut line| {
        line["session_id"] = "s".into();
        line
    });
    let result = json!({"type": "result", "session_id": "s", "result": "Done.", "total_cost_usd": 0.5,
        "usage": {"input_tokens": 14, "output_tokens": 90}});
    let all = [&printed[..], std::slice::from_ref(&result)].concat();
    let trace = one(&all);
    assert_eq!((tokens(&trace), trace.usage.cost), ((Some(14), Some(90)), Some(0.5)));
    printed[4]["message"]["usage"]["output_tokens"] = 21.into();
    let mut unknown = result;
    unknown.as_object_mut().unwrap().shift_remove("usage");
    let all = [&printed[..], &[unknown]].concat();
    assert_eq!(tokens(&one(&all)), (Some(214), Some(85)));
}

#[test]
fn the_end_of_a_stream_that_logfire_records_belongs_to_its_request() {
    let request = json!({"request_data": "{\"model\":\"m\"}", "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": "[{\"role\":\"user\",\"content\":\"hi\"}]"});
    let mut end = request.clone();
    for (key, value) in [
        ("logfire.span_type", json!("log")),
        ("duration", json!(0.5)),
        ("gen_ai.usage.input_tokens", json!(30)),
        ("gen_ai.usage.output_tokens", json!(10)),
        ("gen_ai.output.messages", json!("[{\"role\":\"assistant\",\"content\":\"Hello.\"}]")),
    ] {
        end[key] = value;
    }
    // The provider's client records the same exchange inside the request.
    let client = json!({"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 30,
        "gen_ai.usage.output_tokens": 10, "gen_ai.response.id": "r"});
    let trace = one(&[
        span("1", "task", json!({"karat.task": "x"})),
        span("2<1", "request", request),
        span("3<2", "client", client),
        span("4<1", "streaming response", end),
    ]);
    assert_eq!((trace.output.as_deref(), tokens(&trace)), (Some("Hello."), (Some(30), Some(10))));
}

#[test]
fn mlflow_quotes_every_attribute_and_its_streams_lose_calls() {
    let chunk = |delta: Value| {
        json!({"name": "mlflow.chunk.item.0", "attributes": {"mlflow.chunk.value":
        json!({"choices": [{"delta": delta}]}).to_string()}})
    };
    let part = |id: Value, name: Value, text: &str| {
        json!({"tool_calls": [{"index": 0, "id": id,
        "function": {"name": name, "arguments": text}}]})
    };
    let model = json!({"trace_id": "t", "span_id": "2", "parent_span_id": "1", "name": "Completions",
        "start_time_unix_nano": 2, "end_time_unix_nano": 3, "status": {"code": "STATUS_CODE_OK"},
        "attributes": {"mlflow.spanType": "\"CHAT_MODEL\"",
            "mlflow.spanInputs": json!({"model": "m", "input": [{"role": "user", "content": "hi"}]}).to_string(),
            "mlflow.spanOutputs": json!({"choices": [{"message": {"role": "assistant", "content": "", "tool_calls": null}}]}).to_string(),
            "mlflow.chat.tokenUsage": json!({"input_tokens": 30, "output_tokens": 10, "total_tokens": 40,
                "cache_read_input_tokens": 12}).to_string(),
            "mlflow.llm.cost": "{\"total_cost\": 0.5}"},
        "events": [chunk(part("c".into(), "add".into(), "")), chunk(part(Value::Null, Value::Null, "{\"a\":")),
            chunk(part(Value::Null, Value::Null, " 2}"))]});
    let root = json!({"trace_id": "t", "span_id": "1", "parent_span_id": null, "name": "task",
        "start_time_unix_nano": 1, "end_time_unix_nano": 4,
        "attributes": {"mlflow.spanType": "\"UNKNOWN\"", "karat.task": "\"x\""}});
    let trace = one(&[json!({"info": {}, "data": {"spans": [root, model]}})]);
    assert_eq!((trace.id.as_str(), trace.input.as_deref()), ("x", Some("hi")));
    assert_eq!(arguments(&trace), [Some(json!({"a": 2}))]);
    assert_eq!(tokens(&trace), (Some(30), Some(10)));
    assert_eq!((trace.usage.cached_tokens, trace.usage.cost), (Some(12), Some(0.5)));
}

#[test]
fn tokens_that_are_counted_apart_are_added() {
    let langfuse = |usage: Value| {
        let attributes = json!({"langfuse.observation.type": "generation",
            "langfuse.observation.output": {"role": "assistant", "content": "Hello."},
            "langfuse.observation.usage_details": usage.to_string()});
        tokens(&one(&[span("1", "model", attributes)]))
    };
    let apart = json!({"input": 18, "output": 6, "total": 40, "input_cache_read": 12, "output_reasoning": 4});
    let within = json!({"input": 30, "output": 10, "total": 40, "input_cache_read": 12, "output_reasoning": 4});
    assert_eq!(langfuse(apart), (Some(30), Some(10)));
    assert_eq!(langfuse(within), (Some(30), Some(10)));
    let pair = |usage: Value| {
        let answer = json!({"message": {"role": "assistant", "content": [{"text": "Hello."}]}});
        let asked = json!({"messages": [{"role": "user", "content": [{"text": "hi"}]}]});
        let trace = one(&[
            json!({"task": "x", "request": asked, "response": {"output": answer, "usage": usage}}),
        ]);
        assert_eq!(trace.output.as_deref(), Some("Hello."));
        tokens(&trace)
    };
    // Bedrock and Anthropic count what came from a cache apart, Gemini its thoughts.
    assert_eq!(
        pair(json!({"inputTokens": 18, "outputTokens": 10, "cacheReadInputTokens": 12})),
        (Some(30), Some(10))
    );
    assert_eq!(
        pair(json!({"input_tokens": 18, "output_tokens": 10, "cache_read_input_tokens": 12})),
        (Some(30), Some(10))
    );
    let gemini = |total: u64| json!({"promptTokenCount": 30, "candidatesTokenCount": 6, "thoughtsTokenCount": 4, "totalTokenCount": total});
    assert_eq!(pair(gemini(40)), (Some(30), Some(10)));
    assert_eq!(pair(gemini(36)), (Some(30), Some(6)));
}

#[test]
fn langsmith_as_spans_has_what_models_generated() {
    let said = |kwargs: Value| {
        json!({"generations": [[{"message": {"lc": 1, "type": "constructor", "id": ["langchain", "AIMessage"],
            "kwargs": kwargs}}]]})
        .to_string()
    };
    let asked = json!({"messages": [[{"lc": 1, "id": ["langchain", "HumanMessage"], "kwargs": {"content": "hi"}}]]});
    let model = |at: &str, kwargs: Value| {
        let attributes = json!({"langsmith.span.kind": "llm", "gen_ai.operation.name": "chat",
            "gen_ai.prompt": asked.to_string(), "gen_ai.completion": said(kwargs)});
        span(at, "ChatModel", attributes)
    };
    let tool = json!({"langsmith.span.kind": "tool", "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "add",
        "gen_ai.tool.call.id": "c", "gen_ai.prompt": "{\"a\": 2}",
        "gen_ai.completion": json!({"output": {"type": "tool", "content": "no", "tool_call_id": "c", "status": "error"}}).to_string()});
    let chain = json!({"langsmith.span.kind": "chain", "gen_ai.completion": "{\"output\": [{\"update\": {}}]}"});
    let call = json!({"content": "", "tool_calls": [{"id": "c", "name": "add", "args": {"a": 2}}]});
    let trace = one(&[
        model("1", call),
        span("2", "add", tool.clone()),
        model("3", json!({"content": "Hello."})),
        span("4", "graph", chain),
    ]);
    assert_eq!((trace.input.as_deref(), trace.output.as_deref()), (Some("hi"), Some("Hello.")));
    assert_eq!(arguments(&trace), [Some(json!({"a": 2}))]);
    assert!(matches!(trace.calls[0].outcome(), CallOutcome::Failed), "{:?}", trace.calls);
    // Without the model the tool's span has the arguments.
    assert_eq!(arguments(&one(&[span("2", "add", tool)])), [Some(json!({"a": 2}))]);
}

#[test]
fn calls_next_to_a_message_without_them_are_read() {
    let attributes = json!({"gen_ai.operation.name": "chat",
        "gen_ai.output.messages": "[{\"role\": \"assistant\", \"parts\": [], \"finish_reason\": \"tool_calls\"}]",
        "gen_ai.completion.0.function_call.name": "add", "gen_ai.completion.0.function_call.arguments": "{\"a\": 2}",
        "gen_ai.completion.1.function_call.name": "add", "gen_ai.completion.1.function_call.arguments": "{\"a\": 3}"});
    let trace = one(&[span("1", "chat", attributes)]);
    assert_eq!(arguments(&trace), [Some(json!({"a": 2})), Some(json!({"a": 3}))]);
}

#[test]
fn the_kinds_that_a_value_is_not_may_be_null() {
    let text = |text: &str| json!({"array_value": null, "bool_value": null, "int_value": null, "string_value": text});
    let number =
        |number: u64| json!({"int_value": number, "double_value": null, "string_value": null});
    let span = json!({"trace_id": "t", "span_id": "1", "name": "chat", "start_time_unix_nano": 1, "attributes": [
        {"key": "karat.task", "value": text("x")}, {"key": "gen_ai.completion", "value": text("Hello.")},
        {"key": "gen_ai.usage.input_tokens", "value": number(30)}]});
    let trace = one(&[json!({"data": [span]})]);
    assert_eq!((trace.id.as_str(), trace.output.as_deref()), ("x", Some("Hello.")));
    assert_eq!(tokens(&trace).0, Some(30));
}

#[test]
fn a_log_record_may_hold_its_message_as_text() {
    let log = |name: &str, body: Value| {
        json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [{"traceId": "t", "spanId": "1", "timeUnixNano": "2",
            "body": {"stringValue": body.to_string()},
            "attributes": [{"key": "event.name", "value": {"stringValue": name}}]}]}]}]})
    };
    let call = json!({"message": {"role": "assistant", "tool_calls": [{"id": "c", "type": "function",
        "function": {"name": "tools-add", "arguments": "{\"a\": 2}"}}]}});
    let trace = one(&[
        span("1", "chat", json!({"gen_ai.operation.name": "chat"})),
        log("gen_ai.user.message", json!({"role": "user", "content": "hi"})),
        log("gen_ai.choice", call),
    ]);
    assert_eq!(
        (trace.input.as_deref(), arguments(&trace)),
        (Some("hi"), vec![Some(json!({"a": 2}))])
    );
}

#[test]
fn an_agent_that_answers_by_a_call_has_answered() {
    let calls = |at: &str, name: &str, arguments: &str| {
        let prefix = "llm.output_messages.0.message.tool_calls.0.tool_call";
        let mut attributes = json!({"openinference.span.kind": "LLM", "llm.output_messages.0.message.role": "assistant"});
        attributes[format!("{prefix}.id")] = at.into();
        attributes[format!("{prefix}.function.name")] = name.into();
        attributes[format!("{prefix}.function.arguments")] = arguments.into();
        span(at, "model", attributes)
    };
    let tool = json!({"openinference.span.kind": "TOOL", "tool.name": "final_answer",
        "input.value": "{\"args\": [], \"kwargs\": {\"answer\": \"Hello.\"}}", "output.value": "Hello."});
    let trace = one(&[
        calls("1", "add", "{\"a\": 2}"),
        calls("2", "final_answer", "{\"answer\": \"Hello.\"}"),
        span("3", "FinalAnswerTool", tool),
    ]);
    assert_eq!((trace.calls.len(), trace.output.as_deref()), (1, Some("Hello.")));
    // A tool of that name with other arguments is a tool.
    let trace = one(&[calls("1", "final_answer", "{\"answer\": \"Hello.\", \"to\": 1}")]);
    assert_eq!((trace.calls.len(), trace.output), (1, None));
}

#[test]
fn fields_in_the_text_of_dspy_are_steps_or_the_answer() {
    let says = |at: &str, text: &str| {
        span(
            at,
            "LM.__call__",
            json!({"openinference.span.kind": "LLM",
            "llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": text}),
        )
    };
    let tool = |at: &str, name: &str| {
        span(
            at,
            name,
            json!({"openinference.span.kind": "TOOL", "input.value": "{\"kwargs\": {\"a\": 2}}", "output.value": "5"}),
        )
    };
    let step = says(
        "1",
        "[[ ## next_tool_name ## ]]\nadd\n\n[[ ## next_tool_args ## ]]\n{}\n\n[[ ## completed ## ]]\n",
    );
    let answer = says(
        "4",
        "[[ ## reasoning ## ]]\nSo.\n\n[[ ## answer ## ]]\nHello.\n\n[[ ## completed ## ]]\n",
    );
    let trace = one(&[step, tool("2", "add.__call__"), tool("3", "finish.__call__"), answer]);
    assert_eq!((trace.calls.len(), trace.calls[0].name.as_str()), (1, "add"));
    assert_eq!(
        (arguments(&trace), trace.output.as_deref()),
        (vec![Some(json!({"a": 2}))], Some("Hello."))
    );
}

#[test]
fn steps_of_mastra_have_the_answer() {
    let step = |at: &str, output: Value| {
        span(
            at,
            "step",
            json!({"gen_ai.operation.name": "model.step", "mastra.span.type": "model_step",
            "input": json!({"body": {"messages": [{"role": "user", "content": "hi"}]}}).to_string(),
            "output": output.to_string()}),
        )
    };
    let call = json!({"text": "", "toolCalls": [{"toolCallId": "c", "toolName": "add", "args": {"a": 2}}]});
    let trace = one(&[step("1", call), step("2", json!({"text": "Hello.", "toolCalls": []}))]);
    assert_eq!((trace.input.as_deref(), trace.output.as_deref()), (Some("hi"), Some("Hello.")));
    assert_eq!(arguments(&trace), [Some(json!({"a": 2}))]);
}

#[test]
fn codex_says_elsewhere_that_a_call_failed() {
    let item = |payload: Value| json!({"timestamp": "2026-01-01T00:00:00Z", "type": "response_item", "payload": payload});
    let event = |payload: Value| json!({"timestamp": "2026-01-01T00:00:00Z", "type": "event_msg", "payload": payload});
    let failed = json!({"content": [{"type": "text", "text": "no"}], "isError": true});
    for said in [
        json!({"type": "item_completed", "item": {"type": "McpToolCall", "id": "c", "status": "failed", "result": failed}}),
        json!({"type": "mcp_tool_call_end", "call_id": "c", "result": {"Ok": failed}}),
    ] {
        let trace = one(&[
            item(
                json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}),
            ),
            item(
                json!({"type": "function_call", "call_id": "c", "name": "divide", "namespace": "mcp__demo", "arguments": "{\"a\": 1}"}),
            ),
            event(said),
            item(json!({"type": "function_call_output", "call_id": "c", "output": "Output: no"})),
        ]);
        let call = &trace.calls[0];
        assert_eq!((call.server.as_deref(), call.outcome()), (Some("demo"), CallOutcome::Failed));
    }
}
