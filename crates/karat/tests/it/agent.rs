//! `karat agent` through the binary: every shape, every class of trouble, gates, comparison.

use crate::common;

use std::io::Write;

use common::{Ran, Scratch, value};
use serde_json::{Value, json};

const TOOLS: &str = r#"{"server": {"name": "demo"}, "tools": [
    {"name": "add", "inputSchema": {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"], "additionalProperties": false}},
    {"name": "keep_note", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}}]}"#;

/// The task that every shape records: the sum is right, the note's text is not.
const TASK: &str = r#"{"id": "sum-and-note", "input": "Add 2 and 3 and note the sum.", "servers": ["demo"],
    "expect": {"calls": [{"name": "add", "arguments": {"a": 2, "b": 3}}, {"name": "keep_note", "arguments": {"text": "5"}}]}}"#;

fn one_line(text: &str) -> String {
    serde_json::from_str::<Value>(text).unwrap().to_string()
}

/// The same run in each shape: file name, format, text.
fn shapes() -> Vec<(&'static str, &'static str, String)> {
    let (add, note) = (json!({"a": 2, "b": 3}), json!({"text": "five"}));
    let native = json!({"id": "sum-and-note", "calls": [
        {"name": "add", "server": "demo", "arguments": add, "result": {"sum": 5}},
        {"name": "keep_note", "server": "demo", "arguments": note, "result": {"id": 1}}]});
    let ragas = json!({"id": "sum-and-note", "user_input": [
        {"type": "human", "content": "Add 2 and 3 and note the sum."},
        {"type": "ai", "content": "", "tool_calls": [{"name": "add", "args": add}]},
        {"type": "tool", "content": "5"},
        {"type": "ai", "content": "", "tool_calls": [{"name": "keep_note", "args": note}]}],
        "reference_tool_calls": [{"name": "add", "args": {"a": 2, "b": 3}}, {"name": "keep_note", "args": {"text": "5"}}]});
    let deepeval = json!({"id": "sum-and-note", "input": "Add 2 and 3 and note the sum.",
        "actual_output": "Done.",
        "tools_called": [{"name": "add", "input_parameters": add, "output": {"sum": 5}}, {"name": "keep_note", "input_parameters": note, "output": {"id": 1}}],
        "expected_tools": [{"name": "add", "input_parameters": {"a": 2, "b": 3}}, {"name": "keep_note", "input_parameters": {"text": "5"}}]});
    let openai = json!({"custom_id": "sum-and-note", "model": "m", "messages": [
        {"role": "system", "content": "Use tools."},
        {"role": "user", "content": "Add 2 and 3 and note the sum."},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "1", "type": "function", "function": {"name": "mcp__demo__add", "arguments": add.to_string()}}]},
        {"role": "tool", "tool_call_id": "1", "content": "{\"sum\": 5}"},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "2", "type": "function", "function": {"name": "mcp__demo__keep_note", "arguments": note.to_string()}}]},
        {"role": "tool", "tool_call_id": "2", "content": "{\"id\": 1}"},
        {"role": "assistant", "content": "Done."}]});
    let anthropic = json!({"id": "sum-and-note", "request": {"model": "m", "max_tokens": 100, "messages": [
        {"role": "user", "content": "Add 2 and 3 and note the sum."},
        {"role": "assistant", "content": [{"type": "text", "text": "First the sum."}, {"type": "tool_use", "id": "1", "name": "add", "input": add}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "{\"sum\": 5}"}]}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "2", "name": "keep_note", "input": note}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "2", "content": "{\"id\": 1}"}]}]},
        "response": {"content": [{"type": "text", "text": "Done."}], "usage": {"input_tokens": 7, "output_tokens": 3}}});
    let text = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let span = |id: &str, start: u32, tool: &str, arguments: &Value| {
        json!({"traceId": "aa", "spanId": id, "parentSpanId": "root", "name": format!("execute_tool {tool}"),
            "startTimeUnixNano": start.to_string(), "endTimeUnixNano": (start + 5).to_string(),
            "attributes": [text("gen_ai.operation.name", "execute_tool"), text("gen_ai.tool.name", tool),
                text("mcp.server.name", "demo"), text("gen_ai.tool.call.arguments", &arguments.to_string()),
                text("gen_ai.conversation.id", "sum-and-note")]})
    };
    // The later call comes first: exporters write spans as they end.
    let batch = json!({"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [{"spans": [
        span("b", 20, "keep_note", &note), span("a", 10, "add", &add)]}]}]});
    let recording = [
        json!({"schema": "karat.recording/1"}),
        json!({"at_ns": 1, "session": 1, "event": "start", "detail": "demo"}),
        json!({"at_ns": 2, "session": 1, "from": "client", "message": {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}}),
        json!({"at_ns": 3, "session": 1, "from": "server", "message": {"jsonrpc": "2.0", "id": 0, "result": {"serverInfo": {"name": "demo", "version": "1"}}}}),
        json!({"at_ns": 4, "session": 1, "from": "client", "message": {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add", "arguments": add}}}),
        json!({"at_ns": 5, "session": 1, "from": "server", "message": {"jsonrpc": "2.0", "id": 1, "result": {"content": [], "structuredContent": {"sum": 5}}}}),
        json!({"at_ns": 6, "session": 1, "from": "client", "message": {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "keep_note", "arguments": note}}}),
        json!({"at_ns": 7, "session": 1, "from": "server", "message": {"jsonrpc": "2.0", "id": 2, "result": {"content": []}}}),
    ];
    let lines = |all: &[Value]| all.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
    vec![
        ("native.jsonl", "native", native.to_string()),
        ("ragas.jsonl", "ragas", ragas.to_string()),
        ("deepeval.jsonl", "deepeval", deepeval.to_string()),
        ("openai.jsonl", "openai", openai.to_string()),
        // A whole document over many lines.
        ("anthropic.json", "anthropic", serde_json::to_string_pretty(&anthropic).unwrap()),
        ("otlp.jsonl", "otlp", batch.to_string()),
        ("sum-and-note.jsonl", "mcp-recording", lines(&recording)),
    ]
}

/// The report of these traces.
fn scored(scratch: &Scratch, arguments: &[&str]) -> Value {
    let mut all = vec!["agent", "score"];
    all.extend(arguments);
    all.push("--json");
    scratch.karat(&all).expect(0).report()
}

/// Ends with a failed gate that names these words on stdout.
fn fails(ran: common::Ran, words: &str) {
    let ran = ran.expect(1);
    assert!(ran.stdout.contains(words), "{}", ran.stdout);
}

#[test]
fn the_same_run_in_every_shape_gets_the_same_scores() {
    let scratch = Scratch::new();
    scratch.write("tasks.jsonl", one_line(TASK));
    scratch.write("tools.json", TOOLS);
    let mut first: Option<Value> = None;
    for (file, format, text) in shapes() {
        scratch.write(file, text);
        let report = scored(
            &scratch,
            &["--format", format, file, "--tasks", "tasks.jsonl", "--tools", "tools.json"],
        );
        let items = report["items"].as_array().unwrap();
        assert_eq!(items.len(), 1, "{format}");
        assert_eq!(items[0]["id"], "sum-and-note", "{format}");
        let mut metrics = items[0]["metrics"].clone();
        // What a run cost is not in every shape, and a peer's sample does not say how calls ended.
        for absent in ["run.tokens", "run.ms", "mcpbench.execution_success"] {
            metrics.as_object_mut().unwrap().remove(absent);
        }
        assert_eq!(metrics["calls.exact"], 0.0, "{format}");
        assert_eq!(metrics["calls.f1"], 0.5, "{format}");
        assert_eq!(metrics["calls.first_error"], 2.0, "{format}");
        assert_eq!(metrics["mcpbench.schema_compliance"], 1.0, "{format}");
        match &first {
            None => first = Some(metrics),
            Some(first) => assert_eq!(&metrics, first, "{format}"),
        }
    }
}

#[test]
fn spans_of_several_exporters_are_the_same_run() {
    let scratch = Scratch::new();
    scratch.write("tasks.jsonl", one_line(TASK));
    let attributes = |tool: &str, arguments: Value| json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool, "gen_ai.tool.call.arguments": arguments, "karat.task": "sum-and-note"});
    let (add, note) = (json!({"a": 2, "b": 3}), json!({"text": "five"}));
    // As an SDK prints them: attributes as an object, times as text.
    let printed = [
        json!({"name": "x", "context": {"trace_id": "0x1", "span_id": "0x2"}, "start_time": "2026-01-01T00:00:00.1Z", "end_time": "2026-01-01T00:00:00.2Z", "attributes": attributes("add", json!(add.to_string()))}),
        json!({"name": "x", "context": {"trace_id": "0x1", "span_id": "0x3"}, "start_time": "2026-01-01T00:00:00.3Z", "end_time": "2026-01-01T00:00:00.4Z", "attributes": attributes("keep_note", json!(note.to_string()))}),
    ];
    // Messages in an event of the model's span, as a text.
    let message = json!([{"role": "assistant", "parts": [
        {"type": "tool_call", "id": "1", "name": "add", "arguments": add},
        {"type": "tool_call", "id": "2", "name": "keep_note", "arguments": note}]}]);
    let events = json!({"traceId": "1", "spanId": "2", "name": "chat", "startTimeUnixNano": "1", "endTimeUnixNano": "2",
        "attributes": [{"key": "karat.task", "value": {"stringValue": "sum-and-note"}}],
        "events": [{"name": "gen_ai.client.inference.operation.details", "attributes": [{"key": "gen_ai.output.messages", "value": {"stringValue": message.to_string()}}]}]});
    // As OpenInference marks them.
    let marked = |id: &str, start: &str, tool: &str, input: &Value| json!({"traceId": "1", "spanId": id, "startTimeUnixNano": start, "endTimeUnixNano": "99", "attributes": {"openinference.span.kind": "TOOL", "tool.name": tool, "input.value": input.to_string(), "karat.task": "sum-and-note"}});
    let files = [
        ("printed.jsonl", printed.iter().map(Value::to_string).collect::<Vec<_>>().join("\n")),
        ("events.jsonl", events.to_string()),
        (
            "marked.jsonl",
            [marked("a", "1", "add", &add), marked("b", "2", "keep_note", &note)]
                .iter()
                .map(Value::to_string)
                .collect::<Vec<_>>()
                .join("\n"),
        ),
    ];
    for (file, text) in files {
        scratch.write(file, text);
        let report = scored(&scratch, &["--format", "otlp", file, "--tasks", "tasks.jsonl"]);
        assert_eq!(value(&report, "calls.f1"), Some(0.5), "{file}");
        assert_eq!(value(&report, "calls.first_error"), Some(2.0), "{file}");
    }
}

/// The same run as real exporters and clients wrote it, their texts and ids made short.
fn fixture(name: &str) -> String {
    format!("{}/tests/fixtures/traces/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_same_run_as_real_exporters_write_it_gets_the_same_scores() {
    let scratch = Scratch::new();
    scratch.write("tasks.jsonl", one_line(TASK));
    scratch.write("tools.json", TOOLS);
    for (format, file) in [
        ("ragas", "ragas-sample.jsonl"),
        ("deepeval", "deepeval-dataset.json"),
        ("openai", "openai-exchanges.jsonl"),
        ("anthropic", "anthropic-exchanges.jsonl"),
        ("otlp", "otlp-openllmetry.jsonl"),
        ("otlp", "otlp-openinference.jsonl"),
        ("otlp", "otlp-pydantic-ai-2.jsonl"),
        ("otlp", "otlp-pydantic-ai-6.jsonl"),
    ] {
        let path = fixture(file);
        let report = scored(
            &scratch,
            &["--format", format, &path, "--tasks", "tasks.jsonl", "--tools", "tools.json"],
        );
        let item = &report["items"][0];
        assert_eq!(item["id"], "sum-and-note", "{file}");
        assert_eq!(item["tags"]["turns"], "single", "{file}");
        assert_eq!(item["observed"]["output"], "Done.", "{file}");
        for (id, expected) in [
            ("calls.exact", 0.0),
            ("calls.f1", 0.5),
            ("calls.first_error", 2.0),
            ("mcpbench.tool_name_validity", 1.0),
            ("mcpbench.schema_compliance", 1.0),
            ("ragas.tool_call_f1", 0.5),
            ("deepeval.tool_correctness|ordered|name+input", 0.5),
        ] {
            assert_eq!(item["metrics"][id], expected, "{file} {id}");
        }
        // A sample of RAGAS has results, but not of which call.
        if format != "ragas" {
            assert_eq!(item["metrics"]["mcpbench.execution_success"], 1.0, "{file}");
        }
        if format == "openai" || format == "anthropic" || format == "otlp" {
            assert_eq!(item["metrics"]["run.tokens"], 135.0, "{file}");
        }
        assert_eq!(report["warnings"], json!([]), "{file}");
    }
}

#[test]
fn spans_that_leave_things_out_are_never_taken_for_calls_that_were_not_made() {
    let scratch = Scratch::new();
    // The client of an SDK: the tool is in the span's name alone, and no span reports an error.
    let client = scored(&scratch, &["--format", "otlp", &fixture("otlp-mcp-python-sdk.jsonl")]);
    let names: Vec<&Value> = client["items"][0]["observed"]["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| &c["name"])
        .collect();
    assert_eq!(names, ["add", "keep_note", "add"]);
    assert_eq!(value(&client, "mcpbench.execution_success"), None);
    assert!(client["warnings"].to_string().contains("the arguments of 3 calls were not recorded"));
    // Another one for the same session: arguments inside a wrapper, and errors.
    let wrapped = scored(&scratch, &["--format", "otlp", &fixture("otlp-openllmetry-mcp.jsonl")]);
    let calls = &wrapped["items"][0]["observed"]["calls"];
    assert_eq!(calls[0]["arguments"], json!({"a": 2, "b": 3}));
    assert_eq!(calls[2]["error"], "a must be a number");
    assert_eq!(value(&wrapped, "mcpbench.execution_success"), Some(2.0 / 3.0));
    // Models that called tools, without their messages.
    let silent = fixture("otlp-openai-without-content.jsonl");
    for means in [&[][..], &["--means"]] {
        let mut all = vec!["agent", "score", "--format", "otlp", &silent];
        all.extend(means);
        scratch.karat(&all).expect(3).says(&["nothing to score", "did not record which"]);
    }
}

#[test]
fn a_session_that_was_really_recorded_is_a_trace() {
    use karat_mcp::{Options, Recorder, Revision, ServerSpec, Session};
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
        let scratch = Scratch::new();
        scratch.write("tasks.jsonl", one_line(TASK));
        let recorder = Recorder::create(&scratch.path("sum-and-note.jsonl")).unwrap();
        let options = Options { recorder: Some(recorder.clone()), ..Options::default() };
        let program = scratch.command(&[]).get_program().to_string_lossy().into_owned();
        let mut spec = ServerSpec::from_command(vec![program, "demo-server".to_owned()]);
        spec.protocol = Some(revision);
        runtime.block_on(async {
            let session = Session::start(&spec, &options).await.unwrap();
            session.tools().await.unwrap();
            for (tool, arguments) in
                [("add", json!({"a": 2, "b": 3})), ("keep_note", json!({"text": "five"}))]
            {
                session.call(tool, arguments.as_object().unwrap()).await.unwrap();
            }
            session.close().await;
        });
        recorder.finish().unwrap();
        let score = ["--format", "mcp-recording", "sum-and-note.jsonl", "--tasks", "tasks.jsonl"];
        let report = scored(&scratch, &score);
        let metrics = &report["items"][0]["metrics"];
        assert_eq!(report["items"][0]["observed"]["calls"][0]["name"], "karat-demo:add");
        for (id, expected) in [
            ("calls.f1", 0.5),
            ("calls.first_error", 2.0),
            ("mcpbench.tool_name_validity", 1.0),
            ("mcpbench.schema_compliance", 1.0),
            ("mcpbench.execution_success", 1.0),
        ] {
            assert_eq!(metrics[id], expected, "{revision:?} {id}");
        }
    }
}

/// The output of verifying a frozen dataset of this trace or task.
fn verified(file: &str, text: &str) -> Ran {
    let scratch = Scratch::new();
    scratch.write(&format!("set/v1/{file}"), text);
    let tools = r#"{"server": "demo", "tools": [{"name": "add"}]}"#;
    scratch.write("set/v1/tools/demo.json", tools);
    let freeze = ["corpus", "freeze", "set/v1", "--licence", "CC0-1.0", "--made", "here"];
    scratch.karat(&freeze).expect(0);
    scratch.karat(&["corpus", "verify", "set/v1"])
}

#[test]
fn a_dataset_of_traces_or_tasks_is_verified_record_by_record() {
    let ran = verified("traces/a.jsonl", GOOD).expect(0);
    assert!(ran.stdout.contains("1 tool, 1 trace; digests"), "{}", ran.stdout);
    let task = r#"{"id": "t", "input": "Add.", "expect": {"calls": [{"name": "add"}]}}"#;
    let ran = verified("tasks/a.jsonl", task).expect(0);
    assert!(ran.stdout.contains("1 tool, 1 task; digests"), "{}", ran.stdout);

    // An agent may call what does not exist; no one may expect it to.
    let called = GOOD.replacen("\"add\"", "\"ad\"", 1);
    verified("traces/a.jsonl", &called).expect(0);
    for (file, text) in [
        ("traces/a.jsonl", called.replace("{\"name\":\"add\"", "{\"name\":\"sum\"")),
        ("tasks/a.jsonl", task.replace("add", "sum")),
        ("tasks/a.jsonl", task.replace("\"add\"", "\"sum\", \"server\": \"demo\"")),
    ] {
        let ran = verified(file, &text).expect(2);
        assert!(ran.stdout.contains("expect.calls: no tool \"sum\""), "{}", ran.stdout);
        assert!(ran.stderr.contains("1 rule is broken"), "{}", ran.stderr);
    }
    // Of other servers it is not known what they offer.
    let elsewhere = task.replace("\"add\"", "\"sum\", \"server\": \"other\"");
    verified("tasks/a.jsonl", &elsewhere).expect(0);
    // What the trace itself was offered goes first.
    let offered = GOOD.replacen('{', "{\"tools\":[{\"name\":\"echo\"}],", 1);
    let ran = verified("traces/a.jsonl", &offered).expect(2);
    assert!(ran.stdout.contains("a: expect.calls: no tool \"add\""), "{}", ran.stdout);
}

#[test]
fn a_dataset_of_traces_with_a_bad_record_does_not_verify() {
    for (file, text, word) in [
        ("traces/a.jsonl", format!("{GOOD}\n{GOOD}\n"), "a.jsonl:2"),
        ("traces/a.jsonl", format!("{GOOD}\n{{\"id\": 3}}\n"), "a.jsonl:2"),
        ("tasks/a.jsonl", "{\"id\": \"t\", \"expects\": {}}".to_owned(), "a.jsonl:1"),
    ] {
        verified(file, &text).expect(2).says(&[word]);
    }
}

const GOOD: &str = r#"{"id":"a","calls":[{"name":"add","arguments":{"a":1,"b":2},"result":{}}],"output":"3","expect":{"calls":[{"name":"add","arguments":{"a":1,"b":2}}],"answer":{"number":3}}}"#;

#[test]
fn trouble_is_classed_and_counted_and_never_a_zero() {
    let scratch = Scratch::new();
    let cut = &GOOD[..60];
    scratch.write("cut.jsonl", format!("{GOOD}\n{cut}"));
    scratch.karat(&["agent", "score", "cut.jsonl"]).expect(2).says(&["cut.jsonl:2", "truncated"]);
    let allowed = scored(&scratch, &["cut.jsonl", "--max-malformed", "0.5"]);
    assert_eq!(value(&allowed, "calls.exact"), Some(1.0));
    assert!(allowed["warnings"].to_string().contains("truncated 1"), "{}", allowed["warnings"]);

    scratch.write("odd.jsonl", r#"{"id":"a","calls":[{"name":"f","arguments":"{oops","why":1}],"later":true,"expect":{"calls":[{"name":"f","arguments":{}}]}}"#);
    let odd = scored(&scratch, &["odd.jsonl"]);
    assert_eq!(value(&odd, "calls.exact"), Some(0.0));
    let warnings = odd["warnings"].to_string();
    assert!(warnings.contains("1 call with arguments that are not a JSON object"), "{warnings}");
    assert!(warnings.contains("calls[].why (1)") && warnings.contains("later (1)"), "{warnings}");

    scratch.write("none.jsonl", r#"{"id":"a","calls":[],"expect":{"calls":[{"name":"f"}]}}"#);
    let none = scored(&scratch, &["none.jsonl"]);
    assert_eq!(value(&none, "mcpbench.execution_success"), None);
    assert_eq!(value(&none, "gauge.proactivity"), Some(0.0));

    scratch.write("empty.jsonl", "\n\n");
    scratch.karat(&["agent", "score", "empty.jsonl"]).expect(3).says(&["nothing to score"]);
    scratch.write("twice.jsonl", format!("{GOOD}\n{GOOD}\n"));
    scratch.karat(&["agent", "score", "twice.jsonl"]).expect(2).says(&["twice.jsonl:2", "line 1"]);
    scratch.write("text.jsonl", "hello\n");
    scratch.karat(&["agent", "score", "text.jsonl"]).expect(2).says(&["text.jsonl:1", "not_json"]);
    scratch
        .write("spans.jsonl", r#"{"traceId":"1","spanId":"2","attributes":{"http.method":"GET"}}"#);
    scratch.karat(&["agent", "score", "--format", "otlp", "spans.jsonl"]).expect(3);
}

#[test]
fn compressed_traces_are_read_as_they_are() {
    let scratch = Scratch::new();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(GOOD.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    scratch.write("good.jsonl.gz", &packed);
    assert_eq!(value(&scored(&scratch, &["good.jsonl.gz"]), "calls.exact"), Some(1.0));
    scratch.write("cut.jsonl.gz", &packed[..packed.len() - 9]);
    scratch.karat(&["agent", "score", "cut.jsonl.gz"]).expect(2).says(&["damaged"]);
    // A frame of zstd whose one block is stored as it is: magic, no size in the head, a window of 1 MB.
    let mut stored = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x50];
    let block = u32::try_from(GOOD.len()).unwrap() << 3 | 1;
    stored.extend(&block.to_le_bytes()[..3]);
    stored.extend(GOOD.as_bytes());
    scratch.write("good.jsonl.zst", &stored);
    assert_eq!(value(&scored(&scratch, &["good.jsonl.zst"]), "calls.exact"), Some(1.0));
    scratch.write("cut.jsonl.zst", &stored[..stored.len() - 9]);
    for means in [&[][..], &["--means"]] {
        let mut all = vec!["agent", "score", "cut.jsonl.zst"];
        all.extend(means);
        scratch.karat(&all).expect(2).says(&["cut.jsonl.zst", "damaged"]);
    }
}

#[test]
fn what_is_wrong_in_the_shapes_of_others_is_classed_and_counted_too() {
    let scratch = Scratch::new();
    for (file, format, text) in shapes() {
        if format == "native" {
            continue;
        }
        scratch.write(file, &text[..text.len() * 2 / 3]);
        let ran = scratch.karat(&["agent", "score", "--format", format, file]);
        // A recording that breaks off holds what was recorded until then, but for the last line.
        ran.expect(2).says(&[file, "truncated"]);
        scratch.write(file, "[1, {}, null]");
        scratch.karat(&["agent", "score", "--format", format, file]).expect(2).says(&[file]);
        scratch.write(file, "");
        scratch.karat(&["agent", "score", "--format", format, file]).expect(3);
    }
    // Arguments that are not JSON, and unknown fields.
    let odd = json!({"id": "odd", "messages": [
        {"role": "user", "content": "Add."},
        {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "add", "arguments": "{\"a\": 2,"}}]}],
        "weather": "fair", "expect": {"calls": [{"name": "add", "arguments": {"a": 2}}]}});
    scratch.write("odd.jsonl", odd.to_string());
    let odd = scored(&scratch, &["--format", "openai", "odd.jsonl"]);
    assert_eq!(value(&odd, "calls.exact"), Some(0.0));
    let warnings = odd["warnings"].to_string();
    assert!(warnings.contains("1 call with arguments that are not a JSON object"), "{warnings}");
    assert!(warnings.contains("weather (1)"), "{warnings}");
}

/// Two tasks, each with and without tools, twice.
fn both_ways() -> String {
    let expect =
        json!({"calls": [{"name": "add", "arguments": {"a": 1, "b": 2}}], "answer": {"number": 3}});
    let mut lines = Vec::new();
    for (id, run, knows) in [("a", 1, false), ("a", 2, false), ("b", 1, true), ("b", 2, true)] {
        let call = json!({"name": "add", "arguments": {"a": 1, "b": 2}, "result": {}});
        // The second run of the first task goes wrong.
        let right = id == "b" || run == 1;
        lines.push(json!({"id": id, "run": run, "calls": [call], "output": if right { "3" } else { "4" },
            "usage": {"input_tokens": 90, "output_tokens": 10, "duration_ms": 300}, "expect": expect}));
        lines.push(json!({"id": id, "run": run, "setting": "without_tools", "calls": [], "output": if knows { "3" } else { "?" },
            "usage": {"input_tokens": 30, "output_tokens": 10, "duration_ms": 100}, "expect": expect}));
    }
    lines.iter().map(Value::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn what_tools_are_good_for_and_what_they_cost() {
    let scratch = Scratch::new();
    scratch.write("both.jsonl", both_ways());
    let report = scored(&scratch, &["both.jsonl"]);
    for (id, expected) in [
        ("task.success", 0.75),
        ("gauge.success_with_tools", 0.75),
        ("gauge.success_without_tools", 0.5),
        ("gauge.effectiveness", 0.25),
        ("gauge.tokens_with_tools", 100.0),
        ("gauge.tokens_without_tools", 40.0),
        ("gauge.overhead_tokens", 60.0),
        ("gauge.overhead_tokens_ratio", 2.5),
        ("gauge.overhead_ms", 200.0),
        ("gauge.overhead_ms_ratio", 3.0),
        ("gauge.proactivity", 1.0),
        ("pass@1", 0.75),
        ("pass@2", 1.0),
        ("pass^2", 0.5),
    ] {
        assert_eq!(value(&report, id), Some(expected), "{id}");
    }
    assert_eq!(value(&report, "gauge.compliance"), None);
    let slices = report["slices"].as_array().unwrap();
    assert!(slices.iter().any(|slice| slice["by"] == "turns" && slice["value"] == "single"));
}

#[test]
fn each_task_weighs_the_same_however_often_it_was_run() {
    let scratch = Scratch::new();
    // The first task is run once more, and again goes wrong.
    let more = r#"{"id":"a","run":3,"calls":[],"output":"4","usage":{"input_tokens":200,"output_tokens":0},"expect":{"calls":[{"name":"add","arguments":{"a":1,"b":2}}],"answer":{"number":3}}}"#;
    scratch.write("more.jsonl", format!("{}\n{more}", both_ways()));
    let report = scored(&scratch, &["more.jsonl"]);
    let close = |id: &str, expected: f64| {
        let found = value(&report, id).unwrap();
        assert!((found - expected).abs() < 1e-12, "{id}: {found}");
    };
    // One of three runs and both of two: (1/3 − 0 + 1 − 1) / 2.
    close("gauge.effectiveness", 1.0 / 6.0);
    close("gauge.success_with_tools", 2.0 / 3.0);
    close("gauge.success_without_tools", 0.5);
    close("gauge.overhead_tokens", ((400.0 / 3.0 - 40.0) + 60.0) / 2.0);
    close("gauge.overhead_tokens_ratio", (400.0 / 3.0 + 100.0) / 80.0);
    // Over runs it is another figure.
    close("task.success", 0.6);
    let metrics = report["metrics"].as_array().unwrap();
    let of = |id: &str| metrics.iter().find(|metric| metric["id"] == id).unwrap();
    assert_eq!(of("gauge.effectiveness")["n"], 2);
    for id in ["pass@1", "pass^1", "pass^2", "gauge.effectiveness", "gauge.overhead_tokens_ratio"] {
        let (found, interval) = (of(id)["value"].as_f64().unwrap(), &of(id)["interval"]);
        let (low, high) = (interval["low"].as_f64().unwrap(), interval["high"].as_f64().unwrap());
        assert!(low <= found && found <= high && low < high, "{id}: {interval}");
    }
    assert_eq!(of("pass^1")["interval"]["method"], "bootstrap");
}

#[test]
fn tools_that_are_taken_for_others_have_a_table() {
    let scratch = Scratch::new();
    let trace = |id: &str, called: &str| json!({"id": id, "calls": [{"name": called, "arguments": {}}], "expect": {"calls": [{"name": "keep", "arguments": {}}]}});
    let lines = [("a", "keep"), ("b", "echo"), ("c", "echo"), ("d", "lose")]
        .map(|(id, called)| trace(id, called).to_string());
    scratch.write("traces.jsonl", lines.join("\n"));
    let report = scored(&scratch, &["traces.jsonl"]);
    let pairs: Vec<(&Value, &Value)> = report["slices"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|slice| slice["by"] == "confusion")
        .map(|slice| (&slice["value"], &slice["metrics"][0]["count"]))
        .collect();
    let (echo, lose) = (json!("echo instead of keep"), json!("lose instead of keep"));
    let (two, one) = (json!({"hits": 2, "of": 4}), json!({"hits": 1, "of": 4}));
    assert_eq!(pairs, [(&echo, &two), (&lose, &one)]);
    let shown = scratch.karat(&["agent", "score", "traces.jsonl", "-o", "r.md"]).expect(0).stdout;
    let row = shown.lines().find(|line| line.trim_start().starts_with("echo ")).unwrap();
    assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["echo", "keep", "2", "4"]);
    assert!(scratch.read("r.md").contains("echo instead of keep"), "{}", scratch.read("r.md"));
}

#[test]
fn mcp_bench_is_reproduced_where_it_differs_from_what_one_would_expect() {
    let scratch = Scratch::new();
    scratch.write("tools.json", r#"{"server": {"name": "s"}, "tools": [{"name": "free"}]}"#);
    let of = |name: &str| {
        let trace = json!({"id": "a", "calls": [{"name": name, "arguments": {"x": 1}}]});
        scratch.write("t.jsonl", trace.to_string());
        let report = scored(&scratch, &["t.jsonl", "--tools", "tools.json"]);
        let id = |id| value(&report, id);
        (id("mcpbench.tool_name_validity"), id("mcpbench.schema_compliance"))
    };
    // Nothing to break is complied with; a tool that does not exist complies with nothing.
    assert_eq!(of("free"), (Some(1.0), Some(1.0)));
    assert_eq!(of("invented"), (Some(0.0), Some(0.0)));
}

#[test]
fn a_gate_holds_or_fails_and_the_same_traces_give_the_same_bytes() {
    let scratch = Scratch::new();
    scratch.write("both.jsonl", both_ways());
    let gated = |least: &str| {
        scratch.karat(&["agent", "score", "both.jsonl", "--min", least, "-o", "r.json"])
    };
    gated("task.success=0.7").expect(0);
    let first = scratch.read("r.json");
    gated("task.success=0.7").expect(0);
    assert_eq!(first, scratch.read("r.json"));
    fails(gated("task.success=0.8"), "task.success = 0.7500 is below");
    gated("gauge.compliance=0.1").expect(1);
    gated("no.such=1").expect(2);
    gated("task.success").expect(2);
}

#[test]
fn a_project_gates_traces_against_its_baseline() {
    let scratch = Scratch::new();
    let all = both_ways();
    let once = all.lines().filter(|line| line.contains("\"run\":1")).collect::<Vec<_>>().join("\n");
    scratch.write("traces.jsonl", &once);
    scratch.write(
        "karat.toml",
        "[[agent]]\nname = \"calls\"\ntraces = [\"traces.jsonl\"]\nbaseline = \"base.json\"\n\n\
         [agent.gate.metrics]\n\"task.success\" = { max_drop = 0.0 }\n",
    );
    scratch.karat(&["check", "-v"]).expect(2).says(&["no baseline"]);
    scratch.karat(&["baseline", "update"]).expect(0);
    scratch.karat(&["check", "-v"]).expect(0);
    // Another run of the same tasks is measured on the same data.
    scratch.write("traces.jsonl", once.replacen("\"3\"", "\"9\"", 1));
    fails(scratch.karat(&["check", "-v"]), "task.success 1.0000 → 0.5000");
    // Other expectations are other data.
    scratch.write("traces.jsonl", once.replace("\"number\":3", "\"number\":4"));
    scratch.karat(&["check", "-v"]).expect(2);
    // An agent that was run again may do otherwise: two tasks cannot tell a loss from chance.
    scratch.write("traces.jsonl", &all);
    scratch.karat(&["baseline", "update"]).expect(0);
    scratch.write("traces.jsonl", all.replacen("\"3\"", "\"9\"", 1));
    scratch.karat(&["check", "--strict"]).expect(4);
}

#[test]
fn controls_land_where_they_must() {
    let scratch = Scratch::new();
    let other = GOOD.replace("\"id\":\"a\"", "\"id\":\"b\"").replace("add", "echo");
    scratch.write("traces.jsonl", format!("{GOOD}\n{other}\n"));
    let report = scored(&scratch, &["traces.jsonl"]);
    let controls = report["controls"].as_array().unwrap();
    let names: Vec<&str> = controls.iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["oracle", "silent", "shuffled"]);
    assert!(controls.iter().all(|control| control["ok"] == true), "{controls:?}");
    // A trace that states a score which it does not get fails the check.
    let wrong = GOOD.replacen('{', r#"{"expected_scores":{"calls.exact":0},"#, 1);
    scratch.write("traces.jsonl", wrong);
    fails(scratch.karat(&["agent", "score", "traces.jsonl"]), "expected-scores");
}

#[test]
fn a_frozen_set_of_traces_is_measured_with_its_tools() {
    let scratch = Scratch::new();
    let trace = GOOD.replacen('{', r#"{"servers":["demo"],"expected_scores":{"calls.exact":1,"mcpbench.schema_compliance":1,"gauge.compliance":null},"#, 1);
    scratch.write("datasets/traces/v1/traces/all.jsonl", trace);
    scratch.write("datasets/traces/v1/tools/demo.json", TOOLS);
    scratch.write("karat.toml", "[[agent]]\nname = \"set\"\ndataset = \"datasets/traces/v1\"\n");
    let freeze =
        ["corpus", "freeze", "datasets/traces/v1", "--licence", "CC0-1.0", "--made", "here"];
    scratch.karat(&freeze).expect(0);
    let report = scratch.karat(&["check", "--json"]).expect(0).report();
    assert_eq!(report["dataset"]["id"], "traces");
    assert_eq!(value(&report, "mcpbench.schema_compliance"), Some(1.0));
    // What was frozen is not edited.
    scratch.write("datasets/traces/v1/traces/all.jsonl", GOOD);
    scratch.karat(&["check", "-v"]).expect(2);
}

#[test]
fn two_runs_are_compared_call_by_call() {
    let scratch = Scratch::new();
    scratch.write("before.jsonl", GOOD);
    scratch.write("after.jsonl", GOOD.replacen("\"b\":2", "\"b\":2.5", 1));
    let same =
        scratch.karat(&["agent", "diff", "before.jsonl", "before.jsonl", "--json"]).expect(0);
    assert_eq!(same.json()["similarity"], 1.0);
    let changed = scratch.karat(&["agent", "diff", "before.jsonl", "after.jsonl"]).expect(0);
    assert!(changed.stdout.contains("~ add: b 2 → 2.5"), "{}", changed.stdout);
    let compared = scored(&scratch, &["after.jsonl", "--before", "before.jsonl"]);
    assert_eq!(compared["items"][0]["observed"]["trajectory"]["similarity"], 0.25);
    assert!(compared["warnings"].to_string().contains("0 of 1 traces make the same calls"));
    let least = ["agent", "diff", "before.jsonl", "after.jsonl", "--min-similarity", "1"];
    scratch.karat(&least).expect(1);
    let mut within = least.to_vec();
    within.extend(["--within", "b=0.5"]);
    scratch.karat(&within).expect(0);
}

#[test]
fn a_gate_on_similarity_sees_what_is_gone_and_what_cannot_be_compared() {
    let scratch = Scratch::new();
    let task = |id: &str, calls: &str| format!("{{\"id\":\"{id}\",\"calls\":[{calls}]}}\n");
    let call = |number: usize| format!(r#"{{"name":"f","arguments":{{"n":{number}}}}}"#);
    scratch.write("before.jsonl", task("a", &call(1)) + &task("b", &call(2)));
    scratch.write("after.jsonl", task("a", &call(1)));
    let diff = |more: &[&str]| {
        let mut all = vec!["agent", "diff", "before.jsonl", "after.jsonl"];
        all.extend(more);
        scratch.karat(&all)
    };
    let lost = diff(&["--min-similarity", "0.9", "-o", "diff.json", "-o", "diff.html"]).expect(1);
    assert!(lost.stdout.contains("mean similarity 0.5000"), "{}", lost.stdout);
    assert!(lost.stdout.contains("b  missing in the later run"), "{}", lost.stdout);
    let document: Value = serde_json::from_str(&scratch.read("diff.json")).unwrap();
    assert_eq!(document["verdict"], "fail");
    assert_eq!(value(&document["reports"][0], "calls.similarity"), Some(0.5));
    for wrong in ["nan", "1.5"] {
        diff(&["--min-similarity", wrong]).expect(2).says(&["--min-similarity", "between 0 and 1"]);
    }
    // Thousands of calls in another order are not guessed at, and no gate passes on them.
    let calls: Vec<String> = (0..2100).map(call).collect();
    let turned: Vec<String> = calls.iter().rev().cloned().collect();
    scratch.write("before.jsonl", task("a", &call(1)) + &task("b", &calls.join(",")));
    scratch.write("after.jsonl", task("a", &call(1)) + &task("b", &turned.join(",")));
    let unknown = diff(&[]).expect(0).stdout;
    assert!(unknown.contains("2 tasks in both, 1 with the same calls"), "{unknown}");
    assert!(unknown.contains("b  not compared: 2100 calls"), "{unknown}");
    diff(&["--min-similarity", "0.5"]).expect(3).says(&["b was not compared"]);
    let compared = scored(&scratch, &["after.jsonl", "--before", "before.jsonl"]);
    let warnings = compared["warnings"].to_string();
    assert!(warnings.contains("1 of 1 traces make the same calls"), "{warnings}");
    assert!(warnings.contains("1 have too many calls to be compared"), "{warnings}");
}

#[test]
fn runs_of_repeated_tasks_are_counted_as_runs() {
    let scratch = Scratch::new();
    let runs = |id: &str, numbers: &[u8]| -> String {
        let run = |n: &u8| format!("{{\"id\":\"{id}\",\"run\":{n},\"calls\":[]}}\n");
        numbers.iter().map(run).collect()
    };
    scratch.write("before.jsonl", runs("a", &[1, 2]) + &runs("b", &[1, 2]) + &runs("c", &[1]));
    scratch.write("after.jsonl", runs("a", &[1, 2]) + &runs("c", &[1, 2]));
    let text = scratch.karat(&["agent", "diff", "before.jsonl", "after.jsonl"]).expect(0).stdout;
    assert!(text.starts_with("3 runs in both, 3 with the same calls"), "{text}");
    assert!(text.contains("note: 1 task only in the earlier run: b\n"), "{text}");
    assert!(text.contains("note: 1 run without a counterpart, since the earlier file"), "{text}");
    assert!(text.contains("b#2  missing in the later run"), "{text}");
}

#[test]
fn two_runs_are_written_as_a_report_with_the_calls_of_both() {
    let scratch = Scratch::new();
    scratch.write("before.jsonl", GOOD);
    scratch.write("after.jsonl", GOOD.replacen("\"b\":2", "\"b\":2.5", 1));
    let mut compared =
        vec!["agent", "diff", "before.jsonl", "after.jsonl", "--min-similarity", "1"];
    compared.extend(["-o", "diff.html", "-o", "diff.json"]);
    scratch.karat(&compared).expect(1);
    assert!(scratch.read("diff.html").contains("Calls of both runs"));
    let document: Value = serde_json::from_str(&scratch.read("diff.json")).unwrap();
    assert_eq!(document["verdict"], "fail");
    let report = &document["reports"][0];
    assert_eq!(value(report, "calls.similarity"), Some(0.25));
    let observed = &report["items"][0]["observed"];
    assert_eq!(observed["steps"][0]["change"], "changed");
    assert_eq!(observed["before"][0]["arguments"]["b"], 2);
    assert_eq!(observed["after"][0]["arguments"]["b"], 2.5);
    scratch.karat(&["agent", "diff", "before.jsonl", "after.jsonl", "-o", "diff.odd"]).expect(2);
}

#[test]
fn a_report_shows_expected_and_actual_calls() {
    let scratch = Scratch::new();
    scratch.write("traces.jsonl", GOOD.replacen("\"b\":2", "\"b\":2.5", 1));
    let report = scored(&scratch, &["traces.jsonl"]);
    let observed = &report["items"][0]["observed"];
    assert_eq!(observed["expected"][0]["accepts"]["b"], "2");
    assert_eq!(observed["steps"][0]["arguments"][0]["after"], "2.5");
}

#[test]
fn ragas_vectors_keep_their_values_in_a_report() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../karat-metrics/tests/vectors/ragas_tool_calls.json"
    );
    let vectors: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    // Integers beyond 64 bits do not survive this reader; they are tested where they do.
    let survives = |case: &&Value| !case["tags"].to_string().contains("bigint");
    let cases: Vec<&Value> = vectors["cases"].as_array().unwrap().iter().filter(survives).collect();
    let lines: Vec<String> = cases
        .iter()
        .map(|case| {
            json!({"id": case["id"], "user_input": case["messages"], "reference_tool_calls": case["reference_tool_calls"]}).to_string()
        })
        .collect();
    let scratch = Scratch::new();
    scratch.write("samples.jsonl", lines.join("\n"));
    let report = scored(&scratch, &["--format", "ragas", "samples.jsonl"]);
    let items = report["items"].as_array().unwrap();
    assert_eq!(items.len(), cases.len());
    for case in &cases {
        let id = case["id"].as_str().map_or_else(|| case["id"].to_string(), str::to_owned);
        let item = items.iter().find(|item| item["id"] == id.as_str()).unwrap();
        let found = item["metrics"]["ragas.tool_call_accuracy"].as_f64().unwrap();
        let expected = case["expected"]["collections_accuracy_strict"].as_f64().unwrap();
        assert!((found - expected).abs() <= 1e-12, "{id}: {found} {expected}");
    }
}

/// Traces with so many properties that averaging over all of them takes a while.
#[cfg(unix)]
#[test]
#[cfg_attr(karat_portable, ignore = "SIGTERM is not known")]
fn a_signal_ends_a_computation_and_leaves_nothing_half_written() {
    let scratch = Scratch::new();
    let mut lines = String::new();
    for number in 0..3000 {
        let tags: serde_json::Map<String, Value> = (0..60)
            .map(|tag| (format!("tag{tag}"), ((number >> (tag % 11)) % 2).to_string().into()))
            .collect();
        let trace = json!({"id": format!("t{number}"), "tags": tags, "calls": [{"name": "a", "arguments": {"x": number % 3}}],
            "usage": {"input_tokens": number, "duration_ms": number}, "expect": {"calls": [{"name": "a", "arguments": {"x": 1, "y": number % 2}}]}});
        lines.push_str(&format!("{trace}\n"));
    }
    scratch.write("traces.jsonl", lines);
    let mut run = std::process::Command::new(assert_cmd::cargo::cargo_bin("karat"))
        .args(["agent", "score", "traces.jsonl"])
        .current_dir(scratch.path(""))
        .spawn()
        .unwrap();
    // The folder is made when the traces are scored and the averages begin.
    while !scratch.path("karat-report").exists() {
        assert!(run.try_wait().unwrap().is_none(), "it ended before it began");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    std::thread::sleep(std::time::Duration::from_millis(100));
    let killed = std::process::Command::new("kill").args(["-TERM", &run.id().to_string()]).status();
    assert!(killed.unwrap().success());
    assert_eq!(run.wait().unwrap().code(), Some(143));
    let left: Vec<String> = scratch
        .files()
        .into_iter()
        .filter(|file| file.contains("report.") || file.contains(".tmp"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}
