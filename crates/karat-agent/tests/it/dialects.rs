//! The run of `formats.rs` as further libraries and platforms write it, each in its own shape.

use karat_agent::trace::CallOutcome;
use karat_agent::{Trace, TraceFormat};
use serde_json::{Map, Value, json};

use crate::formats::{assert_is_the_run, read};

const ASKED: &str = "What do 2 and 3 make?";

/// A span of the trace `t` at a time, with plain attributes.
fn span(id: &str, parent: Option<&str>, at: u64, name: &str, attributes: Value) -> Value {
    json!({"traceId": "t", "spanId": id, "parentSpanId": parent.unwrap_or_default(), "name": name,
        "startTimeUnixNano": (1000 * at).to_string(), "endTimeUnixNano": (1000 * at + 900).to_string(),
        "attributes": attributes})
}

fn lines(all: &[Value]) -> String {
    all.iter().map(|one| format!("{one}\n")).collect()
}

fn with(mut span: Value, key: &str, value: Value) -> Value {
    span[key] = value;
    span
}

fn one_trace(name: &str, content: &str) -> Trace {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    std::fs::write(&path, content).unwrap();
    let (_, mut set) = read(&[path]);
    assert_eq!(set.traces.len(), 1, "{name}");
    set.traces.remove(0)
}

/// Google's ADK: requests and responses of Gemini, and one more span for parallel calls.
fn adk(content: bool) -> Vec<Value> {
    let text =
        |value: Value| Value::from(if content { value.to_string() } else { "{}".to_owned() });
    let asked = json!({"role": "user", "parts": [{"text": ASKED}]});
    let call = json!({"role": "model", "parts": [{"function_call": {"id": "c", "name": "add", "args": {"a": 2, "b": 3}}}]});
    let answer = json!({"role": "model", "parts": [{"text": "5."}]});
    let usage = json!({"prompt_token_count": 10, "candidates_token_count": 2});
    let model = |id: &str, at: u64, request: Value, response: Value| {
        span(
            id,
            Some("root"),
            at,
            "call_llm",
            json!({"gen_ai.system": "gcp.vertex.agent",
            "gen_ai.request.model": "gemini-x", "gcp.vertex.agent.llm_request": text(json!({"contents": request})),
            "gcp.vertex.agent.llm_response": text(json!({"content": response, "usage_metadata": usage}))}),
        )
    };
    let tool = |id: &str, name: &str, args: Value, result: Value| {
        span(
            id,
            Some("root"),
            3,
            &format!("execute_tool {name}"),
            json!({"gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name, "gen_ai.tool.call.id": "c", "gcp.vertex.agent.tool_call_args": args,
            "gcp.vertex.agent.tool_response": result}),
        )
    };
    vec![
        span("root", None, 1, "invocation", json!({"gen_ai.system": "gcp.vertex.agent"})),
        model("m1", 2, json!([asked]), call.clone()),
        tool(
            "x",
            "add",
            text(json!({"a": 2, "b": 3})),
            if content { "5".into() } else { "{}".into() },
        ),
        tool("y", "(merged tools)", "N/A".into(), "5".into()),
        model("m2", 4, json!([asked, call]), answer),
    ]
}

#[test]
fn google_adk_is_read_and_without_content_arguments_are_not_recorded() {
    assert_is_the_run("adk.jsonl", &lines(&adk(true)), TraceFormat::Otlp);
    let whole = one_trace("adk.jsonl", &lines(&adk(true)));
    assert_eq!((whole.usage.input_tokens, whole.usage.output_tokens), (Some(20), Some(4)));
    let bare = one_trace("bare.jsonl", &lines(&adk(false)));
    assert_eq!((bare.output, bare.calls.len()), (None, 1));
    assert_eq!(bare.calls[0].arguments.value(), None);
    // Its debug output has numbers for ids.
    let numbered = lines(&adk(true)).replace("\"t\"", "77").replace("\"x\"", "5");
    assert_is_the_run("numbers.jsonl", &numbered, TraceFormat::Otlp);
}

#[test]
fn strands_writes_the_blocks_of_bedrock_in_events() {
    let event = |name: &str, attributes: Value| json!({"name": name, "attributes": attributes});
    let asked =
        event("gen_ai.user.message", json!({"content": json!([{"text": ASKED}]).to_string()}));
    let call = json!([{"toolUse": {"toolUseId": "c", "name": "add", "input": {"a": 2, "b": 3}}}]);
    let answer = json!([{"text": "5."}]);
    let choice = |message: &Value, reason: &str| {
        event("gen_ai.choice", json!({"finish_reason": reason, "message": message.to_string()}))
    };
    let chat = json!({"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 1});
    let run = [
        with(
            span(
                "a",
                None,
                1,
                "invoke_agent x",
                json!({"gen_ai.operation.name": "invoke_agent",
            "gen_ai.usage.input_tokens": 20, "gen_ai.usage.output_tokens": 2}),
            ),
            "events",
            json!([asked, choice(&json!("5."), "end_turn")]),
        ),
        with(
            span("m1", Some("a"), 2, "chat", chat.clone()),
            "events",
            json!([asked, choice(&call, "tool_use")]),
        ),
        with(
            span(
                "x",
                Some("a"),
                3,
                "execute_tool add",
                json!({"gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "add", "gen_ai.tool.call.id": "c", "tool.status": "success"}),
            ),
            "events",
            json!([event(
                "gen_ai.tool.message",
                json!({"role": "tool", "content": "{\"a\": 2, \"b\": 3}", "id": "c"})
            )]),
        ),
        with(
            span("m2", Some("a"), 4, "chat", chat),
            "events",
            json!([
                asked,
                event(
                    "gen_ai.tool.message",
                    json!({"content":
                json!([{"toolResult": {"toolUseId": "c", "status": "success", "content": [{"text": "5"}]}}]).to_string()})
                ),
                choice(&answer, "end_turn")
            ]),
        ),
    ];
    assert_is_the_run("strands.jsonl", &lines(&run), TraceFormat::Otlp);
    assert_eq!(one_trace("strands.jsonl", &lines(&run)).usage.input_tokens, Some(20));
    let failed = lines(&run).replace("\"tool.status\":\"success\"", "\"tool.status\":\"error\"");
    assert_eq!(one_trace("failed.jsonl", &failed).calls[0].outcome(), CallOutcome::Failed);
}

/// A model's turn, a tool's turn and another of the model, in the words of a platform.
fn platform(model: impl Fn(Value, Value) -> Value, tool: &Value) -> String {
    let asked = json!({"role": "user", "content": ASKED});
    let call = json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "c", "type": "function", "function": {"name": "add", "arguments": "{\"a\": 2, \"b\": 3}"}}]});
    let answer = json!({"role": "assistant", "content": "5."});
    let first = model(json!([asked]), call.clone());
    let second = model(json!([asked, call]), answer);
    lines(&[
        span("m1", None, 1, "chat", first),
        span("x", Some("m1"), 2, "add", tool.clone()),
        span("m2", None, 3, "chat", second),
    ])
}

#[test]
fn platforms_with_names_of_their_own_are_translated() {
    let arguments = json!({"a": 2, "b": 3}).to_string();
    let mlflow = platform(
        |input, output| {
            json!({"mlflow.spanType": "\"CHAT_MODEL\"", "mlflow.spanInputs": json!({"messages": input}).to_string(),
                "mlflow.spanOutputs": json!({"choices": [{"message": output}]}).to_string(),
                "mlflow.chat.tokenUsage": "{\"input_tokens\": 10, \"output_tokens\": 1}"})
        },
        &json!({"mlflow.spanType": "\"TOOL\"", "mlflow.spanInputs": arguments, "mlflow.spanOutputs": "\"5\""}),
    );
    let langfuse = platform(
        |input, output| {
            json!({"langfuse.observation.type": "generation", "langfuse.observation.input": input.to_string(),
                "langfuse.observation.output": output.to_string(), "langfuse.observation.model.name": "m",
                "langfuse.observation.usage_details": "{\"input\": 10, \"output\": 1}"})
        },
        &json!({"langfuse.observation.type": "tool", "langfuse.observation.input": arguments,
            "langfuse.observation.output": "5"}),
    );
    let logfire = platform(
        |input, output| {
            json!({"gen_ai.request.model": "m", "request_data": json!({"messages": input}).to_string(),
                "response_data": json!({"message": output, "usage": {"prompt_tokens": 10, "completion_tokens": 1}}).to_string()})
        },
        &json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "add",
            "tool_arguments": arguments, "tool_response": "5"}),
    );
    let mastra = platform(
        |input, output| {
            json!({"gen_ai.operation.name": "chat", "gen_ai.prompt": input.to_string(),
                "gen_ai.completion": json!([output]).to_string(),
                "gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 1})
        },
        &json!({"gen_ai.operation.name": "tool.execute", "gen_ai.tool.name": "add", "gen_ai.tool.input": arguments,
            "gen_ai.tool.output": "5"}),
    );
    for (name, content) in
        [("mlflow", mlflow), ("langfuse", langfuse), ("logfire", logfire), ("mastra", mastra)]
    {
        assert_is_the_run(name, &content, TraceFormat::Otlp);
        let usage = one_trace(name, &content).usage;
        assert_eq!((usage.input_tokens, usage.output_tokens), (Some(20), Some(2)), "{name}");
    }
}

#[test]
fn a_trace_of_mlflow_has_its_spans_inside() {
    let span = |id: &str, kind: &str, input: Value, output: Value| {
        json!({"name": "add", "context": {"trace_id": "t", "span_id": id}, "parent_id": null,
            "start_time": 1, "end_time": 2, "status_code": "OK", "attributes": {
            "mlflow.spanType": Value::from(kind).to_string(), "mlflow.spanInputs": input.to_string(),
            "mlflow.spanOutputs": output.to_string()}})
    };
    let document = json!({"info": {"request_id": "t"}, "data": {"spans": [
        span("1", "LLM", json!({"messages": [{"role": "user", "content": ASKED}]}), json!({"choices": [{"message":
            {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "add", "arguments": "{\"a\":2,\"b\":3}"}}]}}]})),
        span("2", "TOOL", json!({"a": 2, "b": 3}), json!("5")),
        span("3", "LLM", json!({"messages": []}), json!({"choices": [{"message": {"role": "assistant", "content": "5."}}]})),
    ]}});
    assert_is_the_run("mlflow.json", &document.to_string(), TraceFormat::Otlp);
}

/// Phoenix: rows of a data frame with columns for attributes, and attributes as objects in objects.
#[test]
fn attributes_may_be_columns_or_nested() {
    let asked = json!({"message.role": "user", "message.content": ASKED});
    let call = json!({"message.role": "assistant", "message.tool_calls": [{"tool_call.id": "c",
        "tool_call.function.name": "add", "tool_call.function.arguments": "{\"a\": 2, \"b\": 3}"}]});
    let result =
        json!({"message.role": "tool", "message.tool_call_id": "c", "message.content": "5"});
    let answer = json!({"message.role": "assistant", "message.content": "5."});
    let row = |id: &str, at: u64, input: Value, output: Value| {
        json!({"name": "ChatCompletion", "span_kind": "LLM", "parent_id": null, "start_time": 1_700_000_000_000_u64 + at,
            "end_time": 1_700_000_000_500_u64 + at, "status_code": "OK", "context.trace_id": "t", "context.span_id": id,
            "attributes.llm.input_messages": input, "attributes.llm.output_messages": output,
            "attributes.llm.token_count.prompt": 10.0, "attributes.llm.token_count.completion": 1.0})
    };
    let rows = [
        row("1", 0, json!([asked]), json!([call])),
        row("2", 1000, json!([asked, call, result]), json!([answer])),
    ];
    assert_is_the_run("rows.json", &Value::from(rows.to_vec()).to_string(), TraceFormat::Otlp);
    let usage = one_trace("rows.jsonl", &lines(&rows)).usage;
    assert_eq!((usage.input_tokens, usage.duration_ms), (Some(20), Some(1500.0)));

    let message = |text: &Value| {
        let inside: Map<String, Value> = text
            .as_object()
            .unwrap()
            .iter()
            .map(|(key, value)| (key.trim_start_matches("message.").to_owned(), value.clone()))
            .collect();
        json!({"message": inside})
    };
    let nested = |id: &str, at: u64, input: &[&Value], output: &Value| {
        let input: Vec<Value> = input.iter().map(|one| message(one)).collect();
        span(
            id,
            None,
            at,
            "ChatCompletion",
            json!({"openinference": {"span": {"kind": "LLM"}},
            "llm": {"input_messages": input, "output_messages": [message(output)], "token_count": {"prompt": 10}}}),
        )
    };
    let spans =
        [nested("1", 1, &[&asked], &call), nested("2", 2, &[&asked, &call, &result], &answer)];
    assert_is_the_run("nested.jsonl", &lines(&spans), TraceFormat::Otlp);
}

/// A function that a library calls with options of its own.
#[test]
fn positional_arguments_have_no_names_and_are_not_recorded() {
    let of = |input: Value| {
        let tool = json!({"openinference.span.kind": "TOOL", "tool.name": "add", "input.value": input.to_string(),
            "output.value": "5"});
        one_trace("t.jsonl", &lines(&[span("a", None, 1, "SimpleTool", tool)])).calls[0]
            .arguments
            .value()
    };
    let named = json!({"args": [], "sanitize_inputs_outputs": true, "kwargs": {"a": 2}});
    assert_eq!(of(named), Some(json!({"a": 2})));
    assert_eq!(of(json!({"args": [2], "sanitize_inputs_outputs": true, "kwargs": {}})), None);
    // A tool whose own argument is called kwargs.
    assert_eq!(of(json!({"kwargs": "x", "y": 1})), Some(json!({"kwargs": "x", "y": 1})));
}

#[test]
fn conversations_of_further_libraries_are_the_same_run() {
    let result = |id: &str| json!({"text": "5", "id": id});
    let gemini = json!({"contents": [
        {"role": "user", "parts": [{"text": ASKED}]},
        {"role": "model", "parts": [{"functionCall": {"name": "add", "args": {"a": 2, "b": 3}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "add", "response": "5"}}]},
        {"role": "model", "parts": [{"text": "5."}]}]});
    let bedrock = json!({"messages": [
        {"role": "user", "content": [{"text": ASKED}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c", "name": "add", "input": {"a": 2, "b": 3}}}]},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "c", "content": [{"text": "5"}], "status": "success"}}]},
        {"role": "assistant", "content": [{"text": "5."}]}]});
    let kernel = json!({"messages": [
        {"role": "user", "items": [{"content_type": "text", "text": ASKED}]},
        {"role": "assistant", "items": [{"content_type": "function_call", "id": "c", "name": "add",
            "arguments": "{\"a\":2,\"b\":3}"}]},
        {"role": "tool", "items": [{"content_type": "function_result", "id": "c", "result": result("c")["text"]}]},
        {"role": "assistant", "items": [{"content_type": "text", "text": "5."}]}]});
    let haystack = json!({"messages": [
        {"role": "user", "content": [{"text": ASKED}]},
        {"role": "assistant", "content": [{"tool_call": {"id": "c", "tool_name": "add", "arguments": {"a": 2, "b": 3}}}]},
        {"role": "tool", "content": [{"tool_call_result": {"result": "5", "error": false,
            "origin": {"id": "c", "tool_name": "add", "arguments": {"a": 2, "b": 3}}}}]},
        {"role": "assistant", "content": [{"text": "5."}]}]});
    let autogen = json!([
        {"type": "TextMessage", "source": "user", "content": ASKED},
        {"type": "ToolCallRequestEvent", "source": "assistant", "content": [
            {"id": "c", "name": "add", "arguments": "{\"a\":2,\"b\":3}"}]},
        {"type": "ToolCallExecutionEvent", "source": "assistant", "content": [
            {"call_id": "c", "name": "add", "content": "5", "is_error": false}]},
        {"type": "TextMessage", "source": "assistant", "content": "5."}]);
    let litellm = json!({"id": "x", "model": "m", "messages": [{"role": "user", "content": ASKED},
            {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "add", "arguments": "{\"a\":2,\"b\":3}"}}]},
            {"role": "tool", "tool_call_id": "c", "content": "5"}],
        "response": {"choices": [{"message": {"role": "assistant", "content": "5."}}]}});
    let graph = json!({"values": {"messages": [{"type": "human", "content": ASKED},
            {"type": "ai", "content": "", "tool_calls": [{"id": "c", "name": "add", "args": {"a": 2, "b": 3}}]},
            {"type": "tool", "tool_call_id": "c", "content": "5"}, {"type": "ai", "content": "5."}]},
        "next": [], "config": {}});
    for (name, content, format) in [
        ("graph.json", graph, TraceFormat::Openai),
        ("gemini.json", gemini, TraceFormat::Openai),
        ("bedrock.json", bedrock, TraceFormat::Openai),
        ("kernel.json", kernel, TraceFormat::Openai),
        ("haystack.json", haystack, TraceFormat::Openai),
        ("autogen.json", autogen, TraceFormat::Messages),
        ("litellm.jsonl", litellm, TraceFormat::Openai),
    ] {
        assert_is_the_run(name, &content.to_string(), format);
    }
}

#[test]
fn coding_agents_that_scripts_run_print_their_sessions() {
    let claude = [
        json!({"type": "system", "subtype": "init", "session_id": "s", "tools": ["Bash"]}),
        json!({"type": "assistant", "session_id": "s", "parent_tool_use_id": null, "message": {"id": "m1", "role":
            "assistant", "model": "c", "content": [{"type": "tool_use", "id": "c", "name": "add", "input": {"a": 2, "b": 3}}]}}),
        json!({"type": "assistant", "session_id": "s", "parent_tool_use_id": "c", "message": {"id": "m9", "role":
            "assistant", "content": [{"type": "tool_use", "id": "z", "name": "inner", "input": {}}]}}),
        json!({"type": "user", "session_id": "s", "message": {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c", "content": "5"}]}}),
        json!({"type": "result", "subtype": "success", "is_error": false, "session_id": "s", "result": "5.",
            "total_cost_usd": 0.25, "duration_ms": 1200, "usage": {"input_tokens": 10, "output_tokens": 1}}),
    ];
    let codex = [
        json!({"type": "thread.started", "thread_id": "s"}),
        json!({"type": "item.completed", "item": {"id": "item_0", "type": "mcp_tool_call", "server": "demo",
            "tool": "add", "arguments": {"a": 2, "b": 3}, "result": "5", "error": null, "status": "completed"}}),
        json!({"type": "item.completed", "item": {"id": "item_1", "type": "agent_message", "text": "5."}}),
        json!({"type": "turn.completed", "usage": {"input_tokens": 10, "cached_input_tokens": 4, "output_tokens": 1}}),
    ];
    for (name, content) in [("claude.jsonl", &claude[..]), ("codex.jsonl", &codex[..])] {
        let trace = one_trace(name, &lines(content));
        // Nothing that is printed says what was asked, and the ids are new each time: the file is named
        // after the task.
        let stem = name.trim_end_matches(".jsonl");
        assert_eq!((trace.id.as_str(), trace.output.as_deref()), (stem, Some("5.")), "{name}");
        let [call] = &trace.calls[..] else { panic!("{name}: {:?}", trace.calls) };
        assert_eq!(call.arguments.value(), Some(json!({"a": 2, "b": 3})), "{name}");
        assert_eq!((call.name.as_str(), call.outcome()), ("add", CallOutcome::Succeeded), "{name}");
        assert_eq!(
            (trace.usage.input_tokens, trace.usage.output_tokens),
            (Some(10), Some(1)),
            "{name}"
        );
    }
    let trace = one_trace("claude.jsonl", &lines(&claude));
    assert_eq!((trace.usage.cost, trace.usage.duration_ms), (Some(0.25), Some(1200.0)));
    let failed = json!({"type": "item.completed", "item": {"id": "i", "type": "command_execution", "command": "false",
        "aggregated_output": "no", "exit_code": 1, "status": "failed"}});
    let trace = one_trace("codex.jsonl", &lines(&[codex[0].clone(), failed]));
    assert_eq!(trace.calls[0].error.as_ref().map(|error| error.message.as_str()), Some("no"));
}

/// An attribute that another platform uses in its own way must not make calls of it.
#[test]
fn a_prompt_as_text_is_the_users_request() {
    let attributes = Map::from_iter([("gen_ai.operation.name".to_owned(), Value::from("chat"))]);
    let event =
        |name: &str, key: &str, text: &str| json!({"name": name, "attributes": {key: text}});
    let chat = with(
        span("a", None, 1, "chat", attributes.into()),
        "events",
        json!([
            event("gen_ai.content.prompt", "gen_ai.prompt", &format!("user: {ASKED}")),
            event("gen_ai.content.completion", "gen_ai.completion", "5.")
        ]),
    );
    let trace = one_trace("text.jsonl", &lines(&[chat]));
    assert_eq!((trace.input.as_deref(), trace.output.as_deref()), (Some(ASKED), Some("5.")));
    assert!(trace.calls.is_empty());
}
