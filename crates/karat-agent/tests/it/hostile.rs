//! Files that are broken, huge, or made to harm: one clear message each, in bounded memory.

use std::path::PathBuf;

use karat_agent::{Trace, TraceFiles, TraceFormat, TraceSet, TraceSource, recognize};
use karat_core::error::EvalError;
use serde_json::{Value, json};
use tempfile::TempDir;

struct File {
    _directory: TempDir,
    path: PathBuf,
}

impl File {
    fn new(name: &str, content: impl AsRef<[u8]>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        std::fs::write(&path, content).unwrap();
        File { _directory: directory, path }
    }

    fn read(&self) -> Result<TraceSet, EvalError> {
        let paths = std::slice::from_ref(&self.path);
        let formats = recognize(paths, TraceFormat::Auto)?;
        let files = TraceFiles { files: paths, formats: &formats, metrics: &[] };
        TraceSet::read(&TraceSource { files, tasks: None, max_malformed: 0.0, prices: None })
    }

    /// The message, which must have these words, and whether it is that nothing was measured (exit code 3).
    fn refused(&self, words: &[&str]) -> bool {
        let error = self.read().map(|set| set.traces.len()).unwrap_err();
        let message = error.to_string();
        for word in words {
            assert!(message.contains(word), "{word:?} is not in {message:?}");
        }
        assert!(message.lines().count() == 1 && message.len() < 1000, "{message}");
        error.is_not_measured()
    }
}

fn native(id: &str) -> String {
    json!({"id": id, "calls": [{"name": "add", "arguments": {"a": 1}}]}).to_string()
}

#[test]
fn nothing_recorded_is_not_measured() {
    assert!(File::new("empty.jsonl", "").refused(&["nothing to score"]));
    assert!(File::new("blank.jsonl", "\n \n\n").refused(&["nothing to score"]));
    let silent =
        json!({"traceId": "t", "spanId": "s", "attributes": {"gen_ai.operation.name": "chat"}});
    let file = File::new("silent.jsonl", silent.to_string());
    assert!(file.refused(&["neither messages nor tool calls were recorded"]));
}

#[test]
fn broken_files_name_the_line_and_the_mistake() {
    let whole = native("a");
    let cut = File::new("cut.jsonl", format!("{whole}\n{}", &whole[..whole.len() - 9]));
    assert!(!cut.refused(&["cut.jsonl:2", "truncated"]));
    let binary = File::new("noise.jsonl", format!("{whole}\n\u{fffd}oops\n"));
    assert!(!binary.refused(&["noise.jsonl:2", "not_json"]));
    let twice = File::new("twice.jsonl", format!("{whole}\n{whole}\n"));
    assert!(!twice.refused(&["twice.jsonl:2", "duplicate id", "line 1"]));
    let span = json!({"traceId": "t", "spanId": "s", "attributes": {}});
    let mixed = File::new("mixed.jsonl", format!("{whole}\n{span}\n"));
    assert!(!mixed.refused(&["mixed.jsonl:2", "this looks like OpenTelemetry"]));
    let table = File::new("table.csv", "id,input,output\n1,q,a\n");
    assert!(!table.refused(&["table.csv:1", "looks like a table"]));
}

/// A gigabyte in a line, made of zstd blocks that say "this byte, 131,072 times".
fn gigabyte(start: &str) -> Vec<u8> {
    const BLOCK: u32 = 1 << 17;
    let mut bytes = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x38];
    let block = |kind: u32, size: u32, last: u32| {
        (size << 3 | kind << 1 | last).to_le_bytes()[..3].to_vec()
    };
    bytes.extend(block(0, start.len() as u32, 0));
    bytes.extend(start.as_bytes());
    for number in (0..1 << 13).rev() {
        bytes.extend(block(1, BLOCK, u32::from(number == 0)));
        bytes.push(b'a');
    }
    bytes
}

#[test]
fn a_gigabyte_in_one_line_is_refused_at_the_limit() {
    for start in [
        r#"{"id":"a","calls":[],"output":""#,
        r#"{"resourceSpans":[{"x":""#,
        r#"[{"role":"user","content":""#,
        "a",
    ] {
        let file = File::new("long.jsonl.zst", gigabyte(start));
        assert!(!file.refused(&["long.jsonl.zst", "line"]), "{start}");
    }
}

/// A field of a protobuf message.
fn field(number: u64, content: &[u8]) -> Vec<u8> {
    let varint = |mut number: u64| {
        let mut bytes = Vec::new();
        while number > 127 {
            bytes.push(number as u8 | 128);
            number >>= 7;
        }
        bytes.push(number as u8);
        bytes
    };
    [&varint(number << 3 | 2)[..], &varint(content.len() as u64), content].concat()
}

/// A batch with one span, and one attribute on it.
fn batch(value: &[u8]) -> Vec<u8> {
    let attribute = [field(1, b"k"), field(2, value)].concat();
    let span = [field(1, &[1; 16]), field(2, &[2; 8]), field(5, b"chat"), field(9, &attribute)];
    field(1, &field(2, &field(2, &span.concat())))
}

#[test]
fn protobuf_that_grows_or_nests_without_end_is_refused() {
    // Two bytes are a value that takes a hundred times that.
    let many = field(5, &field(1, b"").repeat(4_100_000));
    assert!(!File::new("many.binpb", batch(&many)).refused(&["too many values"]));
    let deep = (0..2_000).fold(field(1, b"x"), |inside, _| field(5, &field(1, &inside)));
    assert!(!File::new("deep.binpb", batch(&deep)).refused(&["nest too deeply"]));
    let whole = batch(&field(1, b"x"));
    let cut = File::new("cut.binpb", &whole[..whole.len() - 3]);
    assert!(!cut.refused(&["cut off", "not_protobuf"]));
    // Four bytes of length before each message, and one that promises more than there is.
    let length = [&[0, 0xff, 0xff, 0xff][..], &whole].concat();
    assert!(!File::new("length.binpb", length).refused(&["cut off in message 1"]));
}

#[test]
fn clocks_that_jump_cost_the_times_and_not_the_trace() {
    let span = |id: &str, start: &str, end: &str, attributes: Value| json!({"traceId": "t", "spanId": id, "startTimeUnixNano": start, "endTimeUnixNano": end, "attributes": attributes});
    let call = json!([{"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "add", "arguments": {"a": 1}}]}]);
    let answer = json!([{"role": "assistant", "parts": [{"type": "text", "content": "1."}]}]);
    let chat = |output: &Value| json!({"gen_ai.operation.name": "chat", "gen_ai.output.messages": output.to_string()});
    let tool = json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "add", "gen_ai.tool.call.id": "c"});
    let lines = [
        span("1", "5000000000", "4000000000", chat(&call)),
        span("2", "6000000000", "1000000000", tool),
        span("3", "7000000000", "99999999999999999999999999999999999999999", chat(&answer)),
    ];
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let set = File::new("clocks.jsonl", lines).read().unwrap();
    let [Trace { calls, output, usage, .. }] = &set.traces[..] else { panic!("{:?}", set.traces) };
    assert_eq!((calls.len(), output.as_deref(), usage.duration_ms), (1, Some("1."), None));
    assert_eq!(calls[0].end_ms, None);
    let note = "spans with an end before the beginning, whose times were not used";
    assert_eq!(set.stats.notes.get(note), Some(&2), "{:?}", set.stats.notes);
}
