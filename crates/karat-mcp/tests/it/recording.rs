//! Recordings: their content, and serving them again.

use crate::support;

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use karat_mcp::replay::{self, NOT_RECORDED, Recording};
use karat_mcp::{CallError, CallOptions, Options, Recorder, Revision, ServerSpec, Session};
use serde_json::{Map, Value, json};
use support::{arguments, in_process, on_http};

#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Kept {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

async fn replayed(recording: Recording, protocol: Option<Revision>) -> Session {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (read, write) = tokio::io::split(theirs);
    tokio::spawn(replay::over(recording, read, write));
    let (read, write) = tokio::io::split(ours);
    Session::over(read, write, protocol, &Options::default()).await.unwrap()
}

/// A recording of these lines.
fn recorded(lines: &[Value]) -> Recording {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.jsonl");
    let text: Vec<String> = lines.iter().map(Value::to_string).collect();
    std::fs::write(&path, text.join("\n")).unwrap();
    Recording::read(&path).unwrap()
}

fn short() -> CallOptions {
    CallOptions { timeout: Some(Duration::from_millis(50)), ..CallOptions::default() }
}

#[tokio::test]
async fn a_recording_answers_like_the_recorded_server() {
    for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("session.jsonl");
        let recorder = Recorder::create(&path).unwrap();
        let options = Options { recorder: Some(recorder.clone()), ..Options::default() };
        let session = in_process(Some(revision), &options).await;
        let tools = session.tools().await.unwrap();
        let given = arguments(json!({"b": 1, "a": [2]}));
        let reply = session.call("echo", &given).await.unwrap();
        let refused = session.call("refuse", &Map::new()).await.unwrap_err();
        let late = session.call_with("wait", &Map::new(), short()).await.unwrap_err();
        assert!(matches!(late, CallError::Timeout { .. }), "{late}");
        session.close().await;
        recorder.finish().unwrap();

        let session = replayed(Recording::read(&path).unwrap(), Some(revision)).await;
        assert_eq!(session.server().name, "toolbox");
        assert_eq!(session.tools().await.unwrap(), tools);
        // The order of keys does not matter, and a request may be repeated.
        let turned = arguments(json!({"a": [2], "b": 1}));
        for given in [&given, &turned, &given] {
            assert_eq!(session.call("echo", given).await.unwrap().raw, reply.raw);
        }
        assert_eq!(session.call("refuse", &Map::new()).await.unwrap_err(), refused);
        let late = session.call_with("wait", &Map::new(), short()).await.unwrap_err();
        assert!(matches!(late, CallError::Timeout { .. }), "{late}");
        let unknown = session.call("echo", &Map::new()).await.unwrap_err();
        assert!(matches!(&unknown, CallError::Protocol { code: NOT_RECORDED, .. }), "{unknown}");
    }
}

#[tokio::test]
async fn lines_have_time_and_sender_and_no_secrets() {
    let kept = Kept::default();
    let recorder = Recorder::to(kept.clone());
    let url = on_http().await;
    let mut spec = ServerSpec::from_url(format!("{url}/toolbox/mcp?token=querysecret"));
    spec.headers.insert("Authorization".into(), "Bearer headersecret".into());
    let options = Options { recorder: Some(recorder.clone()), ..Options::default() };
    let session = Session::start(&spec, &options).await.unwrap();
    // A server that echoes its arguments.
    let given = arguments(json!({"leak": "headersecret and querysecret"}));
    let reply = session.call("echo", &given).await.unwrap();
    assert_eq!(reply.structured().unwrap()["leak"], "headersecret and querysecret");
    session.close().await;
    recorder.finish().unwrap();

    let text = kept.text();
    assert!(!text.contains("headersecret") && !text.contains("querysecret"), "{text}");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0], json!({"schema": "karat.recording/1"}));
    assert_eq!(lines[1]["event"], "start");
    let times: Vec<u64> = lines[1..].iter().map(|line| line["at_ns"].as_u64().unwrap()).collect();
    assert!(times.is_sorted());
    let first = &lines[2];
    assert_eq!(
        (&first["from"], &first["message"]["method"]),
        (&json!("client"), &json!("initialize"))
    );
    assert!(lines.iter().any(|line| line["from"] == "server" && line["message"]["id"] == 1));
}

#[tokio::test]
async fn a_file_that_is_not_a_recording_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.jsonl");
    std::fs::write(&path, "{\"schema\":\"karat.report/1\"}\n").unwrap();
    assert!(Recording::read(&path).is_err());
    std::fs::write(&path, "{\"schema\":\"karat.recording/2\"}\n").unwrap();
    assert!(Recording::read(&path).unwrap_err().to_string().contains("newer"));
}

#[tokio::test]
async fn notifications_are_replayed_before_their_answer() {
    let lines = [
        json!({"schema": "karat.recording/1"}),
        json!({"at_ns": 1, "session": 1, "from": "client", "message": {"jsonrpc": "2.0", "id": 1, "method": "initialize"}}),
        json!({"at_ns": 2, "session": 1, "from": "server", "message": {"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-06-18"}}}),
        json!({"at_ns": 3, "session": 1, "from": "client", "message": {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "t", "arguments": {}, "_meta": {"progressToken": 7}}}}),
        json!({"at_ns": 4, "session": 1, "from": "server", "message": {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 7, "progress": 0.5}}}),
        json!({"at_ns": 5, "session": 1, "from": "server", "text": "garbage"}),
        json!({"at_ns": 6, "session": 1, "from": "server", "message": {"jsonrpc": "2.0", "id": 7, "result": {"content": []}}}),
    ];
    let session = replayed(recorded(&lines).paced(), None).await;
    let options = CallOptions { progress: true, ..CallOptions::default() };
    let reply = session.call_with("t", &Map::new(), options).await.unwrap();
    assert_eq!(reply.progress[0]["progress"], 0.5);
}

#[tokio::test]
async fn answers_in_a_batch_are_replayed() {
    let lines = [
        json!({"schema": "karat.recording/1"}),
        json!({"at_ns": 1, "session": 1, "from": "client", "message": {"jsonrpc": "2.0", "id": 1, "method": "initialize"}}),
        json!({"at_ns": 2, "session": 1, "from": "server", "message": {"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-03-26"}}}),
        json!({"at_ns": 3, "session": 1, "from": "client", "message": {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "t", "arguments": {}}}}),
        json!({"at_ns": 4, "session": 1, "from": "server", "message": [
            {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}},
            {"jsonrpc": "2.0", "id": 2, "result": {"content": []}}]}),
    ];
    let session = replayed(recorded(&lines), None).await;
    let options = CallOptions { timeout: Some(Duration::from_secs(10)), ..CallOptions::default() };
    let reply = session.call_with("t", &Map::new(), options).await.unwrap();
    assert_eq!(reply.raw, json!({"content": []}));
    assert_eq!(session.protocol_log().log_messages, 1);
}
