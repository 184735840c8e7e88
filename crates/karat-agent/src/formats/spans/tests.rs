#![allow(clippy::cast_possible_truncation, reason = "lengths of small messages")]

use serde_json::{Value, json};

use super::time::nanoseconds;
use super::*;
use crate::trace::{Arguments, CallOutcome, Turns};

fn traces(lines: &[&str]) -> Vec<Trace> {
    let (mut spans, mut out) = (Spans::new(otlp::read), Vec::new());
    for text in lines {
        spans.take(text, Position::default(), &mut out).unwrap();
    }
    spans.finish(&mut out);
    out
}

#[test]
fn times_of_day_are_read() {
    assert_eq!(nanoseconds("\"17\""), 17);
    assert_eq!(nanoseconds("17"), 17);
    assert_eq!(nanoseconds("\"1970-01-01T00:01:02Z\""), 62_000_000_000);
    assert_eq!(nanoseconds("\"2000-03-01T00:00:00.5Z\""), 951_868_800_500_000_000);
    assert_eq!(nanoseconds("\"2000-99-01T00:00:00Z\""), 0);
    for offset in
        ["2000-03-01T02:00:00+02:00", "2000-02-29T19:00:00-0500", "2000-03-01 01:00:00 +01"]
    {
        assert_eq!(nanoseconds(offset), 951_868_800_000_000_000, "{offset}");
    }
    assert_eq!(nanoseconds("2000-03-01T02:00:00+ab:cd"), 0);
}

#[test]
fn one_call_at_three_heights_is_one_call() {
    let lines = [
        r#"{"traceId":"t","spanId":"c","parentSpanId":"b","startTimeUnixNano":"30","endTimeUnixNano":"40","kind":2,"attributes":[{"key":"mcp.method.name","value":{"stringValue":"tools/call"}},{"key":"gen_ai.tool.name","value":{"stringValue":"add"}},{"key":"mcp.server.name","value":{"stringValue":"demo"}}]}"#,
        r#"{"traceId":"t","spanId":"b","parentSpanId":"a","startTimeUnixNano":"20","endTimeUnixNano":"50","kind":3,"attributes":[{"key":"mcp.method.name","value":{"stringValue":"tools/call"}},{"key":"gen_ai.tool.name","value":{"stringValue":"add"}},{"key":"gen_ai.tool.call.arguments","value":{"kvlistValue":{"values":[{"key":"a","value":{"intValue":"2"}}]}}}]}"#,
        r#"{"traceId":"t","spanId":"a","startTimeUnixNano":"10","endTimeUnixNano":"60","attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"execute_tool"}},{"key":"gen_ai.tool.name","value":{"stringValue":"add"}}]}"#,
    ];
    let traces = traces(&lines);
    let [trace] = &traces[..] else { panic!("{traces:?}") };
    let [call] = &trace.calls[..] else { panic!("{:?}", trace.calls) };
    assert_eq!(call.server.as_deref(), Some("demo"));
    assert_eq!(call.arguments, Arguments::Object(r#"{"a":2}"#.into()));
}

#[test]
fn arguments_that_were_left_out_are_not_recorded() {
    let line = r#"{"context":{"trace_id":"0x1","span_id":"0x2"},"start_time":"2026-01-01T00:00:00.1Z","end_time":"2026-01-01T00:00:00.2Z","status":{"status_code":"OK"},"attributes":{"gen_ai.operation.name":"execute_tool","gen_ai.tool.name":"add"}}"#;
    let traces = traces(&[line]);
    assert_eq!(traces[0].calls[0].arguments, Arguments::NotRecorded);
    assert_eq!(traces[0].calls[0].outcome(), CallOutcome::Succeeded);
}

#[test]
fn the_models_calls_count_where_no_span_executes_a_tool() {
    let line = r#"{"traceId":"t","spanId":"a","attributes":{"gen_ai.operation.name":"chat"},"events":[{"name":"gen_ai.client.inference.operation.details","attributes":{"gen_ai.input.messages":"[{\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"content\":\"add\"}]}]","gen_ai.output.messages":"[{\"role\":\"assistant\",\"parts\":[{\"type\":\"tool_call\",\"id\":\"1\",\"name\":\"add\",\"arguments\":{\"a\":1}}]}]"}}]}"#;
    let traces = traces(&[line]);
    assert_eq!(traces[0].input.as_deref(), Some("add"));
    assert_eq!(traces[0].calls[0].arguments, Arguments::Object(r#"{"a":1}"#.into()));
}

#[test]
fn a_model_whose_last_word_is_a_call_has_not_answered() {
    let span = |at: u32, says: &str| {
        format!(
            r#"{{"traceId":"t","spanId":"{at}","startTimeUnixNano":"{at}","attributes":{{"gen_ai.operation.name":"chat","gen_ai.output.messages":"[{{\"role\":\"assistant\",\"parts\":[{says}]}}]"}}}}"#
        )
    };
    let answer = span(1, r#"{\"type\":\"text\",\"content\":\"It is 1.\"}"#);
    let call = span(2, r#"{\"type\":\"tool_call\",\"id\":\"1\",\"name\":\"add\"}"#);
    assert_eq!(traces(&[&answer])[0].output.as_deref(), Some("It is 1."));
    assert_eq!(traces(&[&answer, &call])[0].output, None);
}

#[test]
fn messages_with_a_field_in_each_attribute_are_put_together() {
    let lines = [
        r#"{"traceId":"t","spanId":"a","startTimeUnixNano":"1","endTimeUnixNano":"2","attributes":{"openinference.span.kind":"LLM","llm.tools.0.tool.json_schema":"{\"type\":\"function\",\"function\":{\"name\":\"add\",\"parameters\":{\"type\":\"object\"}}}","llm.input_messages.0.message.role":"user","llm.input_messages.0.message.content":"add","llm.output_messages.0.message.role":"assistant","llm.output_messages.0.message.tool_calls.0.tool_call.id":"c","llm.output_messages.0.message.tool_calls.0.tool_call.function.name":"add","llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments":"{\"a\":1}","llm.finish_reason":"tool_calls"}}"#,
        r#"{"traceId":"t","spanId":"b","startTimeUnixNano":"3","endTimeUnixNano":"4","attributes":{"openinference.span.kind":"LLM","llm.input_messages.0.message.role":"user","llm.input_messages.0.message.content":"add","llm.input_messages.1.message.role":"tool","llm.input_messages.1.message.tool_call_id":"c","llm.input_messages.1.message.content":"{\"sum\":1}","llm.output_messages.0.message.role":"assistant","llm.output_messages.0.message.content":"It is 1."}}"#,
    ];
    let traces = traces(&lines);
    let [trace] = &traces[..] else { panic!("{traces:?}") };
    assert_eq!(trace.input.as_deref(), Some("add"));
    assert_eq!(trace.output.as_deref(), Some("It is 1."));
    assert_eq!(trace.turns, Turns::Single);
    let [call] = &trace.calls[..] else { panic!("{:?}", trace.calls) };
    assert_eq!(call.arguments, Arguments::Object(r#"{"a":1}"#.into()));
    assert_eq!(call.result, Some(serde_json::json!({"sum": 1})));
    let tools = trace.tools.as_deref().unwrap();
    assert!(tools.len() == 1 && tools[0].input_schema.is_some(), "{tools:?}");
}

#[test]
fn results_in_messages_of_the_user_are_not_a_turn() {
    let messages = r#"[{\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"content\":\"add\"}]},{\"role\":\"user\",\"parts\":[{\"type\":\"tool_call_response\",\"id\":\"c\",\"result\":{\"sum\":1}}]}]"#;
    let line = format!(
        r#"{{"traceId":"t","spanId":"a","attributes":{{"gen_ai.operation.name":"chat","gen_ai.response.finish_reasons":["stop"],"gen_ai.input.messages":"{messages}"}}}}"#
    );
    assert_eq!(traces(&[&line])[0].turns, Turns::Single);
}

#[test]
fn a_tool_in_the_name_of_a_span_is_known_and_its_end_is_not() {
    let line = r#"{"traceId":"t","spanId":"a","name":"MCP send tools/call add","startTimeUnixNano":"1","endTimeUnixNano":"2","status":{},"attributes":{"mcp.method.name":"tools/call"}}"#;
    let traces = traces(&[line]);
    assert_eq!(traces[0].calls[0].name, "add");
    assert_eq!(traces[0].calls[0].outcome(), CallOutcome::NotRecorded);
}

#[test]
fn arguments_are_taken_out_of_what_is_wrapped_around_them() {
    let arguments = |input: &str| {
        let line = format!(
            r#"{{"traceId":"t","spanId":"a","attributes":{{"traceloop.span.kind":"tool","traceloop.entity.name":"add","traceloop.entity.input":{}}}}}"#,
            Value::from(input)
        );
        traces(&[&line])[0].calls[0].arguments.clone()
    };
    for input in [
        r#"{"tool_name":"add","arguments":{"a":1}}"#,
        r#"{"args":[],"kwargs":{"a":1}}"#,
        r#"{"a":1}"#,
    ] {
        assert_eq!(arguments(input), Arguments::Object(r#"{"a":1}"#.into()), "{input}");
    }
    assert_eq!(arguments("{oops"), Arguments::Text("{oops".into()));
}

#[test]
fn a_trace_whose_calls_were_not_recorded_is_left_out() {
    let line = r#"{"traceId":"t","spanId":"a","attributes":{"gen_ai.operation.name":"chat","gen_ai.response.finish_reasons":["tool_calls"]}}"#;
    let (mut spans, mut out) = (Spans::new(otlp::read), Vec::new());
    spans.take(line, Position::default(), &mut out).unwrap();
    spans.finish(&mut out);
    assert!(out.is_empty(), "{out:?}");
    assert_eq!(spans.notes().into_values().collect::<Vec<_>>(), [1]);
}

#[test]
fn spans_of_other_things_are_ignored() {
    assert!(
        traces(&[r#"{"traceId":"t","spanId":"a","attributes":{"http.method":"GET"}}"#]).is_empty()
    );
}

/// A span with these attributes; the id, the parent and the start are `at`.
fn span(at: &str, attributes: &Value) -> String {
    let (id, parent) = at.split_once('<').unwrap_or((at, ""));
    let start = id.trim_start_matches(|letter: char| !letter.is_ascii_digit());
    json!({"traceId": "t", "spanId": id, "parentSpanId": parent, "startTimeUnixNano": start,
        "endTimeUnixNano": "900", "attributes": attributes})
    .to_string()
}

fn only(lines: &[String]) -> Trace {
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let mut all = traces(&lines);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

fn asks(id: &str, name: &str, arguments: &Value) -> Value {
    json!([{"role": "assistant", "tool_calls": [{"id": id, "function": {"name": name, "arguments": arguments.to_string()}}]}])
}

#[test]
fn the_models_arguments_count_over_those_of_the_tools_span() {
    let model = span("1", &json!({"gen_ai.output.messages": asks("c", "add", &json!({"a": 1}))}));
    for tool in [
        json!({"openinference.span.kind": "TOOL", "tool.name": "add", "tool.parameters": "{\"type\":\"object\",\"properties\":{}}", "output.value": "2"}),
        json!({"openinference.span.kind": "TOOL", "tool.name": "add", "input.value": "plain", "output.value": "2"}),
        json!({"traceloop.span.kind": "tool", "gen_ai.tool.name": "add", "gen_ai.tool.call.result": "2",
            "gen_ai.tool.call.arguments": "{\"input_str\":\"{}\",\"metadata\":{},\"inputs\":{\"a\":\"1\"},\"kwargs\":{\"tool_call_id\":\"c\"}}"}),
    ] {
        let trace = only(&[model.clone(), span("2", &tool)]);
        let [call] = &trace.calls[..] else { panic!("{:?}", trace.calls) };
        assert_eq!(call.arguments, Arguments::Object(r#"{"a":1}"#.into()));
        assert_eq!(call.result, Some(json!("2")));
    }
    // Without the model's message the schema is still not the arguments.
    let tool = json!({"openinference.span.kind": "TOOL", "tool.name": "add", "input.value": "{\"a\":1}",
        "tool.parameters": "{\"type\":\"object\",\"properties\":{}}"});
    let trace = only(&[span("2", &tool)]);
    assert_eq!(trace.calls[0].arguments, Arguments::Object(r#"{"a":1}"#.into()));
}

#[test]
fn spans_that_no_model_asked_for_are_calls_too_in_their_order() {
    let tool =
        |name: &str| json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name});
    let model = span("2", &json!({"gen_ai.output.messages": asks("c", "add", &json!({}))}));
    let trace = only(&[span("1", &tool("fetch")), model, span("3", &tool("add"))]);
    let names: Vec<&str> = trace.calls.iter().map(|call| call.name.as_str()).collect();
    assert_eq!(names, ["fetch", "add"]);
}

#[test]
fn an_answer_in_content_parts_is_read() {
    let trace = only(&[span(
        "1",
        &json!({
            "openinference.span.kind": "LLM",
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.contents.0.message_content.type": "text",
            "llm.output_messages.0.message.contents.0.message_content.text": "Five.",
        }),
    )]);
    assert_eq!(trace.output.as_deref(), Some("Five."));
}

#[test]
fn tokens_count_once_where_model_spans_nest_or_lie_side_by_side() {
    let used = |id: &str, output: u64| {
        json!({"gen_ai.response.id": id, "gen_ai.usage.input_tokens": 30,
        "gen_ai.usage.output_tokens": output, "gen_ai.response.finish_reasons": ["stop"]})
    };
    let sums = json!({"gen_ai.usage.input_tokens": 60, "gen_ai.usage.output_tokens": 20});
    let from_to = |at: &str, start: u32, end: u32, attributes: &Value| {
        let mut span: Value = serde_json::from_str(&span(at, attributes)).unwrap();
        span["startTimeUnixNano"] = start.into();
        span["endTimeUnixNano"] = end.into();
        span.to_string()
    };
    let counted = json!({"openinference.span.kind": "LLM", "llm.token_count.prompt": 30, "llm.token_count.completion": 11});
    let trace = only(&[
        from_to("a1", 1, 900, &sums),
        from_to("b2<a1", 10, 20, &used("x", 11)),
        from_to("c3<b2", 12, 18, &used("x", 10)),
        from_to("d4<a1", 30, 40, &used("y", 11)),
        from_to("e5<a1", 31, 39, &used("y", 10)),
        // Another instrumentation, which does not know the id.
        from_to("f6<a1", 50, 60, &counted),
        from_to("g7<a1", 51, 59, &used("z", 10)),
    ]);
    assert_eq!((trace.usage.input_tokens, trace.usage.output_tokens), (Some(90), Some(30)));
}

#[test]
fn the_names_of_vercels_sdk_are_known() {
    let trace = only(&[
        span(
            "1",
            &json!({"ai.operationId": "ai.generateText", "ai.prompt": "{\"prompt\":\"add\"}", "ai.usage.inputTokens": 30}),
        ),
        span(
            "2<1",
            &json!({"ai.operationId": "ai.generateText.doGenerate", "gen_ai.response.finish_reasons": ["tool-calls"],
            "ai.usage.inputTokens": 30, "ai.response.toolCalls": "[{\"toolCallId\":\"c\",\"toolName\":\"add\",\"input\":\"{\\\"a\\\":1}\"}]"}),
        ),
        span(
            "3<1",
            &json!({"ai.operationId": "ai.toolCall", "ai.toolCall.name": "add", "ai.toolCall.id": "c", "ai.toolCall.result": "2"}),
        ),
        span(
            "4<1",
            &json!({"ai.operationId": "ai.generateText.doGenerate", "ai.response.text": "Two."}),
        ),
    ]);
    assert_eq!((trace.input.as_deref(), trace.output.as_deref()), (Some("add"), Some("Two.")));
    assert_eq!((trace.calls.len(), trace.usage.input_tokens), (1, Some(30)));
    assert_eq!(trace.calls[0].arguments, Arguments::Object(r#"{"a":1}"#.into()));
}

#[test]
fn content_in_log_records_belongs_to_its_span() {
    let spans = span("1", &json!({"gen_ai.operation.name": "chat", "karat.task": "x"}));
    let logs = json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [
        {"traceId": "t", "spanId": "1", "eventName": "gen_ai.user.message", "timeUnixNano": "1",
            "body": {"kvlistValue": {"values": [{"key": "content", "value": {"stringValue": "hi"}}]}}},
        {"traceId": "t", "spanId": "1", "timeUnixNano": "2",
            "attributes": [{"key": "event.name", "value": {"stringValue": "gen_ai.choice"}}],
            "body": {"kvlistValue": {"values": [{"key": "message", "value": {"kvlistValue": {"values": [
                {"key": "content", "value": {"stringValue": "Hello."}}]}}}]}}},
    ]}]}]});
    for lines in [[logs.to_string(), spans.clone()], [spans, logs.to_string()]] {
        let trace = only(&lines);
        assert_eq!((trace.id.as_str(), trace.input.as_deref()), ("x", Some("hi")));
        assert_eq!(trace.output.as_deref(), Some("Hello."));
    }
}

#[test]
fn an_agent_that_ended_in_an_error_was_stopped() {
    let failed = json!({"traceId": "t", "spanId": "1", "status": {"code": 2, "message": "boom"}, "attributes": {"karat.task": "x"}});
    let asks = span("2<1", &json!({"gen_ai.output.messages": asks("c", "add", &json!({}))}));
    let trace = only(&[failed.to_string(), asks]);
    assert_eq!((trace.output, trace.stopped.as_deref()), (None, Some("error")));
}

#[test]
fn nothing_recorded_is_left_out_and_counted() {
    let (mut spans, mut out) = (Spans::new(otlp::read), Vec::new());
    let line = span("1", &json!({"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 3}));
    spans.take(&line, Position::default(), &mut out).unwrap();
    spans.finish(&mut out);
    assert!(out.is_empty() && spans.notes().keys().all(|note| note.contains("left out")));
    // The end of the turn says that there was no call; the answer is still not known.
    let line = span(
        "1",
        &json!({"gen_ai.operation.name": "chat", "gen_ai.response.finish_reasons": ["stop"]}),
    );
    let trace = only(&[line]);
    assert!(trace.calls.is_empty() && trace.output.is_none());
}

#[test]
fn protobuf_says_the_same_as_json() {
    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        // Two bytes for every length, which is valid and simple.
        let length = content.len() as u16;
        let mut bytes = vec![number << 3 | 2, (length & 0x7f) as u8 | 0x80, (length >> 7) as u8];
        bytes.extend_from_slice(content);
        bytes
    }
    let text = |text: &str| field(1, text.as_bytes());
    let pair = [text("gen_ai.tool.name"), field(2, &text("add"))].concat();
    let kind = [text("gen_ai.operation.name"), field(2, &text("execute_tool"))].concat();
    let span = [field(1, &[7; 16]), field(2, &[8; 8]), field(9, &pair), field(9, &kind)].concat();
    let request = field(1, &field(2, &field(2, &span)));
    let found = traces(&[&protobuf::to_json(&request).unwrap().to_string()]);
    assert_eq!((found[0].id.as_str(), found[0].calls[0].name.as_str()), (&*"07".repeat(16), "add"));
    let framed = [&(request.len() as u32).to_be_bytes()[..], &request].concat();
    assert_eq!(protobuf::messages(&framed).unwrap(), [&request[..]]);
    assert!(protobuf::messages(&framed[..9]).is_err());
    assert!(protobuf::to_json(&request[..request.len() - 1]).is_err());
    // Values in values, far deeper than any exporter writes.
    let mut deep = text("x");
    for _ in 0..40 {
        deep = field(5, &field(1, &deep));
    }
    let bomb = field(1, &field(1, &field(1, &field(2, &deep))));
    assert!(protobuf::to_json(&bomb).unwrap_err().contains("deep"));
}
