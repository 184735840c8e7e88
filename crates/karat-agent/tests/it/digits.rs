//! Numbers of arguments that have more digits than 64 bits hold, in every export of a platform: each digit
//! stays, in the calls of models and in the records of tools.

use karat_agent::trace::Arguments;
use serde_json::{Value, json};

use crate::formats::read;

/// Replaced by a number of 23 digits once a line is text: a value would have rounded it.
const LONG: &str = "\"@long\"";
const DIGITS: &str = "12345678901234567890123";

/// The JSON of the arguments of the calls in a file of these lines.
fn arguments(name: &str, lines: &[Value]) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.jsonl");
    // Also inside of strings.
    let escaped = LONG.replace('"', "\\\"");
    let exact = |line: &Value| line.to_string().replace(LONG, DIGITS).replace(&escaped, DIGITS);
    let text: String = lines.iter().map(|line| exact(line) + "\n").collect();
    std::fs::write(&path, text).unwrap();
    let traces = read(&[path]).1.traces;
    assert_eq!(traces.len(), 1, "{name}: {traces:?}");
    let text = |arguments: &Arguments| match arguments {
        Arguments::NotRecorded => panic!("{name}: not recorded"),
        Arguments::Object(text) | Arguments::Text(text) => text.clone(),
    };
    traces[0].calls.iter().map(|call| text(&call.arguments)).collect()
}

fn user() -> Value {
    json!({"role": "user", "content": "Q"})
}

/// A message with a call whose arguments are an object.
fn asks() -> Value {
    json!({"role": "assistant", "tool_calls": [{"id": "c", "name": "a", "args": {"x": "@long"}}]})
}

/// The records of one call in one format: each of them, and all together.
fn assert_exact(name: &str, lines: &[Value]) {
    let written = format!("{{\"x\":{DIGITS}}}");
    for line in lines {
        let found = arguments(name, std::slice::from_ref(line));
        assert_eq!(found, [written.as_str()], "{name}: {line}");
    }
    // The two are one call.
    assert_eq!(arguments(name, lines), [written.as_str()], "{name}");
    // A page of them.
    if !["langsmith", "gemini"].contains(&name) {
        assert_eq!(arguments(name, &[json!({"data": lines})]), [written.as_str()], "{name}");
    }
}

#[test]
fn openai_agents_keeps_long_numbers() {
    let record = |id: &str, data: Value| {
        json!({"object": "trace.span", "id": id, "trace_id": "t", "span_data": data,
        "started_at": "2026-01-01T10:00:00Z", "ended_at": "2026-01-01T10:00:01Z"})
    };
    let model = json!({"type": "generation", "input": [user()], "output": [asks()]});
    let tool = json!({"type": "function", "name": "a", "input": {"x": "@long"}, "output": "r"});
    assert_exact("openai-agents", &[record("1", model), record("2", tool)]);
    let text =
        json!({"type": "function", "name": "a", "input": "{\"x\":\"@long\"}", "output": "r"});
    assert_exact("openai-agents", &[record("3", text)]);
}

#[test]
fn langsmith_keeps_long_numbers() {
    let run = |id: &str, kind: &str, name: &str, inputs: Value, outputs: Value| {
        json!({"id": id, "trace_id": "r", "run_type": kind, "name": name,
            "start_time": format!("2026-01-01T10:00:0{id}"), "inputs": inputs, "outputs": outputs})
    };
    let message = json!({"lc": 1, "id": ["AIMessage"], "kwargs": {"content": "",
        "tool_calls": [{"name": "a", "args": {"x": "@long"}, "id": "c"}]}});
    let given = json!({"messages": [[user()]]});
    let model = run("1", "llm", "model", given, json!({"generations": [[{"message": message}]]}));
    let tool = |id: &str, inputs: Value| run(id, "tool", "a", inputs, json!({"output": "r"}));
    let tools = [
        tool("2", json!({"x": "@long"})),
        tool("3", json!({"input": {"x": "@long"}})),
        tool("4", json!({"input": "{\"x\":\"@long\"}"})),
    ];
    for tool in tools {
        assert_exact("langsmith", &[model.clone(), tool.clone()]);
        // Inside the run that started it.
        let mut root = run("0", "chain", "agent", json!({"messages": [user()]}), json!({}));
        root["child_runs"] = json!([tool]);
        assert_exact("langsmith", &[root]);
    }
}

#[test]
fn langfuse_keeps_long_numbers() {
    let one = |id: &str, kind: &str, input: Value, output: Value| {
        json!({"id": id, "traceId": "t", "type": kind, "name": "a",
            "startTime": format!("2026-01-01T00:00:0{id}Z"), "input": input, "output": output})
    };
    let model = one("1", "GENERATION", json!([user()]), asks());
    assert_exact("langfuse", &[model, one("2", "TOOL", json!({"x": "@long"}), "r".into())]);
    // As strings.
    let model = one("1", "GENERATION", json!([user()]), asks().to_string().into());
    let tool = one("2", "TOOL", json!({"x": "@long"}).to_string().into(), "r".into());
    assert_exact("langfuse", &[model, tool]);
}

#[test]
fn braintrust_keeps_long_numbers() {
    let row = |id: &str, name: &str, kind: &str, input: Value, output: Value| {
        json!({"id": id, "span_id": id, "root_span_id": "r", "span_parents": null, "is_root": false,
            "span_attributes": {"name": name, "type": kind}, "input": input, "output": output,
            "metrics": {"start": 1_767_225_600.5}})
    };
    let output = json!([{"index": 0, "message": asks()}]);
    let model = row("1", "chat", "llm", json!([user()]), output);
    assert_exact("braintrust", &[model, row("2", "a", "tool", json!({"x": "@long"}), "r".into())]);
}

#[test]
fn opik_keeps_long_numbers() {
    let one = |id: &str, name: &str, kind: &str, input: Value, output: Value| {
        json!({"id": id, "trace_id": "t", "type": kind, "name": name,
            "start_time": format!("2026-01-01T00:00:0{id}Z"), "input": input, "output": output})
    };
    let output = json!({"choices": [{"index": 0, "message": asks()}]});
    let model = one("1", "chat", "llm", json!({"messages": [user()]}), output);
    let tool = one("2", "a", "tool", json!({"x": "@long"}), json!({"output": "r"}));
    assert_exact("opik", &[model, tool]);
}

#[test]
fn weave_keeps_long_numbers() {
    let call = |id: &str, name: &str, kind: Value, inputs: Value, output: Value| {
        json!({"id": id, "op_name": format!("weave:///e/p/op/{name}:d"), "trace_id": "t", "attributes": {"kind": kind},
            "started_at": format!("2026-01-01T00:00:0{id}Z"), "inputs": inputs, "output": output})
    };
    let output = json!({"model": "m", "choices": [{"message": asks()}]});
    let model = call("1", "create", Value::Null, json!({"messages": [user()]}), output);
    let tool = |id: &str, inputs: Value| call(id, "a", "tool".into(), inputs, "r".into());
    assert_exact("weave", &[model.clone(), tool("2", json!({"x": "@long"}))]);
    assert_exact("weave", &[model, tool("3", json!({"self": {"y": 1}, "x": "@long"}))]);
}

#[test]
fn the_gemini_cli_keeps_long_numbers() {
    let header = json!({"sessionId": "s", "projectHash": "h"});
    let call =
        json!({"id": "c", "name": "a", "args": {"x": "@long"}, "status": "success", "result": "r"});
    let message = json!({"id": "1", "type": "gemini", "content": "", "toolCalls": [call]});
    let mut whole = header.clone();
    whole["messages"] = json!([message]);
    assert_exact("gemini", &[whole]);
    let written = [format!("{{\"x\":{DIGITS}}}")];
    for line in [message.clone(), json!({"$set": {"messages": [message]}})] {
        assert_eq!(arguments("gemini", &[header.clone(), line]), written);
    }
    let printed = [
        json!({"type": "init", "session_id": "s", "model": "m"}),
        json!({"type": "tool_use", "tool_name": "a", "tool_id": "c", "parameters": {"x": "@long"}}),
    ];
    assert_eq!(arguments("gemini", &printed), written);
}

#[test]
fn spans_of_tools_of_a_platform_keep_long_numbers() {
    let attributes =
        json!({"mlflow.spanType": "TOOL", "mlflow.spanInputs": json!({"x": "@long"}).to_string()});
    let span = json!({"traceId": "t", "spanId": "1", "name": "a", "startTimeUnixNano": "1", "attributes": attributes});
    assert_eq!(arguments("mlflow", &[span]), [format!("{{\"x\":{DIGITS}}}")]);
}

#[test]
fn arguments_that_a_result_quotes_do_not_belong_to_the_next_call() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("session.jsonl");
    let numbers = ["123456789012345678901", "123456789012345678902"];
    let call = |number: &str| {
        let quoted = json!({"args": {"x": "@"}});
        let result = json!([{"functionResponse": {"id": number, "name": "a", "response": quoted}}]);
        json!({"id": number, "name": "a", "args": {"x": "@"}, "status": "success", "result": result})
            .to_string()
            .replace("\"@\"", number)
    };
    let session =
        json!({"sessionId": "t", "projectHash": "h", "startTime": "2026-01-01T00:00:00Z"});
    let asked =
        json!({"id": "1", "timestamp": "2026-01-01T00:00:01Z", "type": "user", "content": "Q"});
    let said = json!({"id": "2", "timestamp": "2026-01-01T00:00:02Z", "type": "gemini", "content": "", "toolCalls": "@"});
    let said = said.to_string().replace("\"@\"", &format!("[{}]", numbers.map(call).join(",")));
    std::fs::write(&path, format!("{session}\n{asked}\n{said}\n")).unwrap();
    let traces = read(&[path]).1.traces;
    let found: Vec<&Arguments> = traces[0].calls.iter().map(|call| &call.arguments).collect();
    let expected = numbers.map(|number| Arguments::Object(format!("{{\"x\":{number}}}")));
    assert_eq!(found, expected.iter().collect::<Vec<_>>());
}
