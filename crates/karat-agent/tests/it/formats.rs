//! Files of other programs: recognized by their content, and read into the same trace whatever wrote it.

use std::path::{Path, PathBuf};

use karat_agent::{Tasks, Trace, TraceFiles, TraceFormat, TraceSet, TraceSource, recognize};
use tempfile::TempDir;

fn write(directory: &TempDir, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = directory.path().join(name);
    std::fs::write(&path, content).unwrap();
    path
}

pub(crate) fn read(paths: &[PathBuf]) -> (Vec<TraceFormat>, TraceSet) {
    let formats = recognize(paths, TraceFormat::Auto).unwrap();
    let files = TraceFiles { files: paths, formats: &formats, metrics: &[] };
    let source = TraceSource { files, tasks: None, max_malformed: 0.0, prices: None };
    let set = TraceSet::read(&source).unwrap();
    (formats, set)
}

fn error(path: &Path) -> String {
    let paths = [path.to_owned()];
    let read = recognize(&paths, TraceFormat::Auto).and_then(|formats| {
        let files = TraceFiles { files: &paths, formats: &formats, metrics: &[] };
        TraceSet::read(&TraceSource { files, tasks: None, max_malformed: 0.0, prices: None })
    });
    read.map(|set| set.traces.len()).unwrap_err().to_string()
}

/// One run: the user asks, the model calls `add`, the tool answers, the model answers.
const RUNS: &[(&str, &str, TraceFormat)] = &[
    (
        "chat.jsonl",
        r#"{"messages":[{"role":"user","content":"What do 2 and 3 make?"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"add","arguments":"{\"a\":2,\"b\":3}"}}]},{"role":"tool","tool_call_id":"c","content":"5"},{"role":"assistant","content":"5."}]}"#,
        TraceFormat::Openai,
    ),
    (
        "responses.json",
        r#"[{"role":"user","content":"What do 2 and 3 make?"},{"type":"function_call","call_id":"c","name":"add","arguments":"{\"a\":2,\"b\":3}"},{"type":"function_call_output","call_id":"c","output":"5"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"5."}]}]"#,
        TraceFormat::Messages,
    ),
    (
        "exchange.jsonl",
        r#"{"task":"t","request":{"model":"m","input":[{"role":"user","content":"What do 2 and 3 make?"},{"type":"function_call","call_id":"c","name":"add","arguments":"{\"a\":2,\"b\":3}"},{"type":"function_call_output","call_id":"c","output":"5"}]},"response":{"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"5."}]}]}}"#,
        TraceFormat::Openai,
    ),
    (
        "anthropic.jsonl",
        r#"{"messages":[{"role":"user","content":"What do 2 and 3 make?"},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"add","input":{"a":2,"b":3}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"5"}]},{"role":"assistant","content":[{"type":"text","text":"5."}]}]}"#,
        TraceFormat::Anthropic,
    ),
    (
        "langchain.json",
        r#"[{"type":"human","data":{"content":"What do 2 and 3 make?"}},{"type":"ai","data":{"content":"","tool_calls":[{"name":"add","args":{"a":2,"b":3},"id":"c","type":"tool_call"}]}},{"type":"tool","data":{"content":"5","tool_call_id":"c","status":"success"}},{"type":"ai","data":{"content":"5."}}]"#,
        TraceFormat::Messages,
    ),
    (
        "pydantic.json",
        r#"[{"kind":"request","parts":[{"part_kind":"user-prompt","content":"What do 2 and 3 make?"}]},{"kind":"response","parts":[{"part_kind":"tool-call","tool_name":"add","args":"{\"a\":2,\"b\":3}","tool_call_id":"c"}]},{"kind":"request","parts":[{"part_kind":"tool-return","tool_name":"add","content":"5","tool_call_id":"c"}]},{"kind":"response","parts":[{"part_kind":"text","content":"5."}]}]"#,
        TraceFormat::Messages,
    ),
    (
        "claude.jsonl",
        "{\"type\":\"summary\",\"summary\":\"sums\",\"leafUuid\":\"u\"}\n{\"type\":\"user\",\"sessionId\":\"s\",\"uuid\":\"1\",\"message\":{\"role\":\"user\",\"content\":\"What do 2 and 3 make?\"}}\n{\"type\":\"assistant\",\"sessionId\":\"s\",\"uuid\":\"2\",\"message\":{\"id\":\"m\",\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"add\",\"input\":{\"a\":2,\"b\":3}}]}}\n{\"type\":\"user\",\"sessionId\":\"s\",\"uuid\":\"3\",\"message\":{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"c\",\"content\":\"5\"}]}}\n{\"type\":\"assistant\",\"sessionId\":\"s\",\"uuid\":\"4\",\"message\":{\"id\":\"n\",\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"5.\"}]}}\n",
        TraceFormat::ClaudeCode,
    ),
    (
        "qwen.jsonl",
        "{\"uuid\":\"1\",\"parentUuid\":null,\"sessionId\":\"s\",\"timestamp\":\"2026-01-01T00:00:00Z\",\"type\":\"user\",\"message\":{\"role\":\"user\",\"parts\":[{\"text\":\"What do 2 and 3 make?\"}]}}\n{\"uuid\":\"2\",\"sessionId\":\"s\",\"type\":\"assistant\",\"model\":\"m\",\"message\":{\"role\":\"model\",\"parts\":[{\"functionCall\":{\"id\":\"c\",\"name\":\"add\",\"args\":{\"a\":2,\"b\":3}}}]},\"usageMetadata\":{\"promptTokenCount\":30,\"candidatesTokenCount\":10,\"thoughtsTokenCount\":4,\"totalTokenCount\":40}}\n{\"uuid\":\"3\",\"sessionId\":\"s\",\"type\":\"tool_result\",\"message\":{\"role\":\"user\",\"parts\":[{\"functionResponse\":{\"id\":\"c\",\"name\":\"add\",\"response\":{\"output\":\"5\"}}}]}}\n{\"uuid\":\"4\",\"sessionId\":\"s\",\"type\":\"assistant\",\"message\":{\"role\":\"model\",\"parts\":[{\"text\":\"5.\"}]},\"usageMetadata\":{\"promptTokenCount\":30,\"candidatesTokenCount\":10,\"totalTokenCount\":40}}\n",
        TraceFormat::ClaudeCode,
    ),
    (
        "codex.jsonl",
        "{\"timestamp\":\"2026-01-01T00:00:00Z\",\"type\":\"session_meta\",\"payload\":{\"id\":\"s\"}}\n{\"timestamp\":\"2026-01-01T00:00:00Z\",\"type\":\"response_item\",\"payload\":{\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"<environment_context>x</environment_context>\"}]}}\n{\"timestamp\":\"2026-01-01T00:00:01Z\",\"type\":\"response_item\",\"payload\":{\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"What do 2 and 3 make?\"}]}}\n{\"timestamp\":\"2026-01-01T00:00:02Z\",\"type\":\"response_item\",\"payload\":{\"type\":\"function_call\",\"name\":\"add\",\"arguments\":\"{\\\"a\\\":2,\\\"b\\\":3}\",\"call_id\":\"c\"}}\n{\"timestamp\":\"2026-01-01T00:00:03Z\",\"type\":\"response_item\",\"payload\":{\"type\":\"function_call_output\",\"call_id\":\"c\",\"output\":\"5\"}}\n{\"timestamp\":\"2026-01-01T00:00:04Z\",\"type\":\"response_item\",\"payload\":{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"5.\"}]}}\n",
        TraceFormat::Codex,
    ),
    (
        "gemini.jsonl",
        "{\"sessionId\":\"s\",\"projectHash\":\"h\",\"startTime\":\"2026-01-01T00:00:00Z\",\"kind\":\"main\"}\n{\"$set\":{\"messages\":[{\"id\":\"0\",\"timestamp\":\"2026-01-01T00:00:00Z\",\"type\":\"user\",\"content\":[{\"text\":\"<session_context>\\nToday is a day.</session_context>\"}]}]}}\n{\"id\":\"1\",\"timestamp\":\"2026-01-01T00:00:00Z\",\"type\":\"user\",\"content\":[{\"text\":\"What do 2 and 3 make?\"}]}\n{\"$set\":{\"lastUpdated\":\"2026-01-01T00:00:01Z\"}}\n{\"id\":\"2\",\"timestamp\":\"2026-01-01T00:00:01Z\",\"type\":\"gemini\",\"content\":\"\",\"tokens\":{\"input\":30,\"output\":6,\"cached\":12,\"thoughts\":4,\"tool\":0,\"total\":40},\"model\":\"m\"}\n{\"id\":\"2\",\"timestamp\":\"2026-01-01T00:00:01Z\",\"type\":\"gemini\",\"content\":\"\",\"tokens\":{\"input\":30,\"output\":6,\"cached\":12,\"thoughts\":4,\"tool\":0,\"total\":40},\"model\":\"m\",\"toolCalls\":[{\"id\":\"c\",\"name\":\"mcp_tools_add\",\"args\":{\"a\":2,\"b\":3},\"result\":[{\"functionResponse\":{\"id\":\"c\",\"name\":\"mcp_tools_add\",\"response\":{\"output\":\"5\"}}}],\"status\":\"success\",\"displayName\":\"add (tools MCP Server)\"}]}\n{\"id\":\"3\",\"timestamp\":\"2026-01-01T00:00:02Z\",\"type\":\"user\",\"content\":[{\"functionResponse\":{\"id\":\"c\",\"name\":\"mcp_tools_add\",\"response\":{\"output\":\"5\"}}}]}\n{\"id\":\"4\",\"timestamp\":\"2026-01-01T00:00:03Z\",\"type\":\"gemini\",\"content\":\"5.\",\"tokens\":{\"input\":30,\"output\":6,\"cached\":12,\"thoughts\":4,\"tool\":0,\"total\":40},\"model\":\"m\"}\n",
        TraceFormat::GeminiCli,
    ),
    (
        "gemini-printed.jsonl",
        "{\"type\":\"init\",\"timestamp\":\"2026-01-01T00:00:00Z\",\"session_id\":\"s\",\"model\":\"m\"}\n{\"type\":\"message\",\"timestamp\":\"2026-01-01T00:00:00Z\",\"role\":\"user\",\"content\":\"What do 2 and 3 make?\"}\n{\"type\":\"tool_use\",\"timestamp\":\"2026-01-01T00:00:01Z\",\"tool_name\":\"add\",\"tool_id\":\"c\",\"parameters\":{\"a\":2,\"b\":3}}\n{\"type\":\"tool_result\",\"timestamp\":\"2026-01-01T00:00:02Z\",\"tool_id\":\"c\",\"status\":\"success\",\"output\":\"5\"}\n{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"5\",\"delta\":true}\n{\"type\":\"message\",\"role\":\"assistant\",\"content\":\".\",\"delta\":true}\n{\"type\":\"result\",\"timestamp\":\"2026-01-01T00:00:03Z\",\"status\":\"success\",\"stats\":{\"total_tokens\":80,\"input_tokens\":60,\"output_tokens\":12,\"cached\":24}}\n",
        TraceFormat::GeminiCli,
    ),
    (
        "opencode.json",
        "{\"info\":{\"id\":\"ses_1\",\"title\":\"sums\",\"time\":{\"created\":1794923050065,\"updated\":1794923089163}},\"messages\":[{\"info\":{\"role\":\"user\",\"id\":\"m1\",\"sessionID\":\"ses_1\",\"time\":{\"created\":1794923050065}},\"parts\":[{\"type\":\"text\",\"text\":\"Called the Read tool.\",\"synthetic\":true},{\"type\":\"text\",\"text\":\"What do 2 and 3 make?\"}]},{\"info\":{\"role\":\"assistant\",\"modelID\":\"m\",\"id\":\"m2\",\"sessionID\":\"ses_1\",\"time\":{\"created\":1794923050066,\"completed\":1794923050067}},\"parts\":[{\"type\":\"step-start\"},{\"type\":\"tool\",\"tool\":\"add\",\"callID\":\"c\",\"state\":{\"status\":\"completed\",\"input\":{\"a\":2,\"b\":3},\"output\":\"5\"}},{\"type\":\"step-finish\",\"reason\":\"tool-calls\",\"tokens\":{\"total\":40,\"input\":18,\"output\":6,\"reasoning\":4,\"cache\":{\"write\":0,\"read\":12}},\"cost\":0}]},{\"info\":{\"role\":\"assistant\",\"modelID\":\"m\",\"id\":\"m3\",\"sessionID\":\"ses_1\",\"time\":{\"created\":1794923050068,\"completed\":1794923050069}},\"parts\":[{\"type\":\"text\",\"text\":\"5.\"},{\"type\":\"step-finish\",\"reason\":\"stop\",\"tokens\":{\"total\":40,\"input\":18,\"output\":6,\"reasoning\":4,\"cache\":{\"write\":0,\"read\":12}},\"cost\":0}]}]}",
        TraceFormat::Opencode,
    ),
    (
        "inspect.json",
        r#"{"version":2,"status":"success","eval":{"task":"t"},"samples":[{"id":"t","epoch":1,"input":"q","messages":[{"role":"user","content":"What do 2 and 3 make?"},{"role":"assistant","content":"","tool_calls":[{"id":"c","function":"add","arguments":{"a":2,"b":3},"type":"function"}]},{"role":"tool","content":"5","tool_call_id":"c","function":"add"},{"role":"assistant","content":"5."}],"scores":{"match":{"value":"C"}}}]}"#,
        TraceFormat::Inspect,
    ),
    (
        "langsmith.jsonl",
        "{\"id\":\"r\",\"trace_id\":\"r\",\"name\":\"agent\",\"run_type\":\"chain\",\"start_time\":\"2026-01-01T00:00:00Z\",\"inputs\":{\"messages\":[{\"role\":\"user\",\"content\":\"What do 2 and 3 make?\"}]},\"outputs\":{}}\n{\"id\":\"l\",\"trace_id\":\"r\",\"parent_run_id\":\"r\",\"name\":\"ChatOpenAI\",\"run_type\":\"llm\",\"start_time\":\"2026-01-01T00:00:01Z\",\"inputs\":{},\"outputs\":{\"generations\":[[{\"message\":{\"lc\":1,\"type\":\"constructor\",\"id\":[\"langchain\",\"schema\",\"messages\",\"AIMessage\"],\"kwargs\":{\"content\":\"\",\"tool_calls\":[{\"name\":\"add\",\"args\":{\"a\":2,\"b\":3},\"id\":\"c\"}]}}}]]}}\n{\"id\":\"x\",\"trace_id\":\"r\",\"parent_run_id\":\"r\",\"name\":\"add\",\"run_type\":\"tool\",\"start_time\":\"2026-01-01T00:00:02Z\",\"end_time\":\"2026-01-01T00:00:03Z\",\"inputs\":{\"input\":\"{'a': 2, 'b': 3}\"},\"outputs\":{\"output\":{\"content\":\"5\",\"tool_call_id\":\"c\",\"status\":\"success\"}}}\n{\"id\":\"m\",\"trace_id\":\"r\",\"parent_run_id\":\"r\",\"name\":\"ChatOpenAI\",\"run_type\":\"llm\",\"start_time\":\"2026-01-01T00:00:04Z\",\"inputs\":{},\"outputs\":{\"generations\":[[{\"message\":{\"lc\":1,\"type\":\"constructor\",\"id\":[\"langchain\",\"schema\",\"messages\",\"AIMessage\"],\"kwargs\":{\"content\":\"5.\"}}}]]}}\n",
        TraceFormat::Langsmith,
    ),
    (
        "langfuse.json",
        r#"{"data":[{"id":"g","traceId":"t","type":"GENERATION","name":"chat","startTime":"2026-01-01T00:00:00Z","input":[{"role":"user","content":"What do 2 and 3 make?"}],"output":{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"add","arguments":"{\"a\":2,\"b\":3}"}}]}},{"id":"x","traceId":"t","type":"TOOL","name":"add","startTime":"2026-01-01T00:00:01Z","endTime":"2026-01-01T00:00:02Z","input":{"a":2,"b":3},"output":"5"},{"id":"h","traceId":"t","type":"GENERATION","name":"chat","startTime":"2026-01-01T00:00:03Z","input":[{"role":"user","content":"What do 2 and 3 make?"}],"output":"5."}]}"#,
        TraceFormat::Langfuse,
    ),
    (
        "braintrust.jsonl",
        "{\"id\":\"r\",\"span_id\":\"r\",\"root_span_id\":\"r\",\"span_parents\":null,\"is_root\":true,\"span_attributes\":{\"name\":\"agent\",\"type\":\"task\"},\"input\":\"What do 2 and 3 make?\",\"output\":\"5.\",\"metrics\":{\"start\":1767225600.0,\"end\":1767225604.5}}\n{\"id\":\"l\",\"span_id\":\"l\",\"root_span_id\":\"r\",\"span_parents\":[\"r\"],\"span_attributes\":{\"name\":\"Chat Completion\",\"type\":\"llm\"},\"input\":[{\"role\":\"user\",\"content\":\"What do 2 and 3 make?\"}],\"output\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c\",\"type\":\"function\",\"function\":{\"name\":\"add\",\"arguments\":\"{\\\"a\\\":2,\\\"b\\\":3}\"}}]},\"finish_reason\":\"tool_calls\"}],\"metrics\":{\"start\":1767225600.5,\"end\":1767225601.0,\"prompt_tokens\":30,\"completion_tokens\":10}}\n{\"id\":\"x\",\"span_id\":\"x\",\"root_span_id\":\"r\",\"span_parents\":[\"r\"],\"span_attributes\":{\"name\":\"add\",\"type\":\"tool\"},\"input\":{\"a\":2,\"b\":3},\"output\":\"5\",\"metrics\":{\"start\":1767225602.0,\"end\":1767225602.5}}\n{\"id\":\"m\",\"span_id\":\"m\",\"root_span_id\":\"r\",\"span_parents\":[\"r\"],\"span_attributes\":{\"name\":\"Chat Completion\",\"type\":\"llm\"},\"input\":[{\"role\":\"user\",\"content\":\"What do 2 and 3 make?\"}],\"output\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"5.\"}}],\"metrics\":{\"start\":1767225603.0,\"end\":1767225604.0}}\n",
        TraceFormat::Braintrust,
    ),
    (
        "opik.json",
        r#"{"trace":{"id":"t","name":"agent","project_name":"p","start_time":"2026-01-01T00:00:00Z","input":{"question":"What do 2 and 3 make?"},"output":{"output":"5."}},"spans":[{"id":"l","trace_id":"t","type":"llm","name":"chat","start_time":"2026-01-01T00:00:00Z","input":{"messages":[{"role":"user","content":"What do 2 and 3 make?"}]},"output":{"choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"add","arguments":"{\"a\":2,\"b\":3}"}}]}}]}},{"id":"x","trace_id":"t","type":"tool","name":"add","start_time":"2026-01-01T00:00:01Z","end_time":"2026-01-01T00:00:02Z","input":{"a":2,"b":3},"output":{"output":"5"}},{"id":"m","trace_id":"t","type":"llm","name":"chat","start_time":"2026-01-01T00:00:03Z","input":{"messages":[{"role":"user","content":"What do 2 and 3 make?"}]},"output":{"choices":[{"index":0,"message":{"role":"assistant","content":"5."}}]}}]}"#,
        TraceFormat::Opik,
    ),
    (
        "weave.jsonl",
        "{\"id\":\"r\",\"op_name\":\"weave:///e/p/op/agent:d1\",\"trace_id\":\"t\",\"parent_id\":null,\"started_at\":\"2026-01-01T00:00:00Z\",\"ended_at\":\"2026-01-01T00:00:09Z\",\"attributes\":{},\"inputs\":{\"question\":\"What do 2 and 3 make?\"},\"output\":\"5.\"}\n{\"id\":\"l\",\"op_name\":\"weave:///e/p/op/openai.chat.completions.create:d2\",\"trace_id\":\"t\",\"parent_id\":\"r\",\"started_at\":\"2026-01-01T00:00:01Z\",\"attributes\":{},\"inputs\":{\"self\":{},\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"What do 2 and 3 make?\"}]},\"output\":{\"model\":\"m\",\"choices\":[{\"message\":{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c\",\"function\":{\"name\":\"add\",\"arguments\":\"{\\\"a\\\":2,\\\"b\\\":3}\"}}]}}]}}\n{\"id\":\"x\",\"op_name\":\"weave:///e/p/op/add:d3\",\"trace_id\":\"t\",\"parent_id\":\"r\",\"started_at\":\"2026-01-01T00:00:02Z\",\"ended_at\":\"2026-01-01T00:00:03Z\",\"attributes\":{\"kind\":\"tool\"},\"inputs\":{\"a\":2,\"b\":3},\"output\":\"5\"}\n{\"id\":\"m\",\"op_name\":\"weave:///e/p/op/openai.chat.completions.create:d2\",\"trace_id\":\"t\",\"parent_id\":\"r\",\"started_at\":\"2026-01-01T00:00:04Z\",\"attributes\":{},\"inputs\":{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"What do 2 and 3 make?\"}]},\"output\":{\"model\":\"m\",\"choices\":[{\"message\":{\"role\":\"assistant\",\"content\":\"5.\"}}]}}\n",
        TraceFormat::Weave,
    ),
];

/// Reads the run from a file of another format; it must be the one that all formats have.
pub(crate) fn assert_is_the_run(name: &str, content: &str, format: TraceFormat) {
    let directory = tempfile::tempdir().unwrap();
    let mut tasks = Tasks::default();
    let task = r#"{"id":"sum","input":"What do 2 and 3 make?","expect":{"calls":[{"name":"add","arguments":{"a":2,"b":3}}],"answer":{"equals":"5."}}}"#;
    tasks.add(Path::new("tasks.jsonl"), task).unwrap();
    let path = write(&directory, name, content);
    let (formats, set) = read(&[path]);
    assert_eq!(formats, [format], "{name}");
    let [trace] = &set.traces[..] else { panic!("{name}: {:?}", set.traces) };
    assert_eq!(trace.input.as_deref(), Some("What do 2 and 3 make?"), "{name}");
    assert_eq!(trace.output.as_deref(), Some("5."), "{name}");
    let [call] = &trace.calls[..] else { panic!("{name}: {:?}", trace.calls) };
    assert_eq!((call.name.as_str(), &call.result), ("add", &Some("5".into())), "{name}");
    assert_eq!(call.arguments.value(), Some(serde_json::json!({"a": 2, "b": 3})), "{name}");
    let mut trace: Trace = trace.clone();
    assert_eq!(tasks.complete(&mut trace), Some(0), "{name}");
}

#[test]
fn one_run_is_the_same_trace_in_every_format() {
    for (name, content, format) in RUNS {
        assert_is_the_run(name, content, *format);
    }
}

/// A zip file of files with the number of their compression, packed by it.
fn zip(files: &[(&str, u16, &[u8], usize)]) -> Vec<u8> {
    let (mut archive, mut directory) = (Vec::new(), Vec::new());
    for (name, method, packed, size) in files {
        let offset = u32::try_from(archive.len()).unwrap().to_le_bytes();
        let numbers = [packed.len(), *size].map(|size| u32::try_from(size).unwrap().to_le_bytes());
        let length = u16::try_from(name.len()).unwrap().to_le_bytes();
        // Version, flags and method; time and checksum, which nothing reads; sizes; lengths.
        let head = [
            &[20, 0, 0, 0][..],
            &method.to_le_bytes(),
            &[0; 8],
            &numbers.concat(),
            &length,
            &[0, 0],
        ]
        .concat();
        archive.extend([b"PK\x03\x04", &head[..], name.as_bytes(), packed].concat());
        let entry = [b"PK\x01\x02\x14\0", &head[..], &[0; 10], &offset, name.as_bytes()];
        directory.extend(entry.concat());
    }
    let sizes = [directory.len(), archive.len()].map(|n| u32::try_from(n).unwrap().to_le_bytes());
    [&archive[..], &directory, b"PK\x05\x06\0\0\0\0\0\0\0\0", &sizes.concat(), &[0, 0]].concat()
}

#[test]
fn samples_of_an_archive_are_read_whatever_their_compression() {
    let sample = |id: &str| {
        format!(
            r#"{{"id":"{id}","epoch":1,"input":"q","messages":[{{"role":"user","content":"q"}}]}}"#
        )
    };
    let (stored, packed) = (sample("stored"), sample("packed"));
    let zstd = zstd::encode_all(packed.as_bytes(), 1).unwrap();
    let header = r#"{"eval":{"model":"m"}}"#;
    let file = |zstd: &[u8]| {
        zip(&[
            ("samples/stored.json", 0, stored.as_bytes(), stored.len()),
            ("samples/packed.json", 93, zstd, packed.len()),
            ("header.json", 0, header.as_bytes(), header.len()),
        ])
    };
    let directory = tempfile::tempdir().unwrap();
    let (formats, set) = read(&[write(&directory, "log.eval", file(&zstd))]);
    assert_eq!(formats, [TraceFormat::Inspect]);
    let ids: Vec<&str> = set.traces.iter().map(|trace| trace.id.as_str()).collect();
    assert_eq!(ids, ["packed", "stored"]);
    let cut = error(&write(&directory, "cut.eval", file(&zstd[..zstd.len() - 9])));
    assert!(cut.contains("samples/packed.json") && cut.contains("damaged"), "{cut}");
}

#[test]
fn tokens_next_to_the_message_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    for (name, tokens) in [
        ("qwen.jsonl", 80),
        ("braintrust.jsonl", 40),
        ("gemini.jsonl", 80),
        ("gemini-printed.jsonl", 80),
        ("opencode.json", 80),
    ] {
        let run = RUNS.iter().find(|(run, _, _)| *run == name).unwrap();
        let (_, set) = read(&[write(&directory, name, run.1)]);
        assert_eq!(set.traces[0].usage.tokens(), Some(tokens), "{name}");
    }
}

#[test]
fn a_folder_is_called_one() {
    let directory = tempfile::tempdir().unwrap();
    assert!(error(directory.path()).contains("is a folder"), "{}", error(directory.path()));
}

#[test]
fn runs_of_one_task_are_numbered_over_files() {
    let directory = tempfile::tempdir().unwrap();
    let line = |answer: &str| {
        format!(
            r#"{{"task":"t","messages":[{{"role":"user","content":"q"}},{{"role":"assistant","content":"{answer}"}}]}}"#
        )
    };
    let first = write(&directory, "a.jsonl", format!("{}\n{}\n", line("1"), line("2")));
    let second = write(&directory, "b.jsonl", line("3"));
    let (_, set) = read(&[first, second]);
    let runs: Vec<_> = set.traces.iter().map(|t| (t.run, t.output.clone().unwrap())).collect();
    assert_eq!(runs, [(1, "1".into()), (2, "2".into()), (3, "3".into())]);
    // Karat's own format has a field for it, and the same record twice is a mistake there.
    let path =
        write(&directory, "c.jsonl", "{\"id\":\"t\",\"calls\":[]}\n{\"id\":\"t\",\"calls\":[]}\n");
    assert!(error(&path).contains("duplicate id"), "{}", error(&path));
}

#[test]
fn printed_spans_are_read_and_a_cut_off_file_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let span = |id: &str, task: &str| {
        format!(
            "{{\n    \"name\": \"chat\",\n    \"context\": {{\n        \"trace_id\": \"0x{id}\",\n        \"span_id\": \"0x{id}\"\n    }},\n    \"attributes\": {{\"karat.task\": \"{task}\", \"gen_ai.output.messages\": \"[{{\\\"role\\\":\\\"assistant\\\",\\\"content\\\":\\\"hi\\\"}}]\"}}\n}}\n"
        )
    };
    let whole = span("1", "a") + &span("2", "b");
    let (formats, set) = read(&[write(&directory, "console.json", &whole)]);
    assert_eq!((formats, set.traces.len()), (vec![TraceFormat::Otlp], 2));
    let cut = error(&write(&directory, "cut.json", &whole[..whole.len() - 9]));
    assert!(cut.contains("truncated") && cut.contains(":9:"), "{cut}");
}

#[test]
fn a_file_of_another_kind_is_named() {
    let directory = tempfile::tempdir().unwrap();
    for (content, expected) in [
        (r#"{"id":"t","expect":{"calls":[]}}"#, "--tasks"),
        (r#"{"tools":[{"name":"add"}]}"#, "--tools"),
        (r#"{"suite_name":"s","pipeline_name":"p","messages_":[]}"#, "AgentDojo"),
        (r#"{"something":1}"#, "the format is not recognized"),
        ("id,name,input\n1,chat,hello\n", "this looks like a table (CSV)"),
        (
            "{\"id\":\"t\",\"calls\":[]}\n{\"traceId\":\"t\",\"spanId\":\"s\"}",
            "this looks like OpenTelemetry",
        ),
        ("\0\0\0\u{5}x", "cut off"),
        ("PK\u{3}\u{4}nothing", "is it whole?"),
    ] {
        let message = error(&write(&directory, "file", content));
        assert!(message.contains(expected), "{content}: {message}");
    }
    // A trace with a mistake is a trace.
    for content in [
        r#"{"id":"t","calls":[],"expect":{"anwser":{"contains":"x"}}}"#,
        r#"{"id":"t","calls":[],"tools":[{"name":"a"}],"expect":{"anwser":{"contains":"x"}}}"#,
    ] {
        let message = error(&write(&directory, "file", content));
        assert!(message.contains("did you mean `answer`?"), "{message}");
        assert!(!message.contains("looks like"), "{message}");
    }
}
