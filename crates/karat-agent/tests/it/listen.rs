//! The receiver: what exporters send over HTTP, in JSON and protobuf, with restarts.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

use karat_agent::listen::{Received, Receiver};
use karat_agent::{TraceFiles, TraceFormat, TraceSet, TraceSource};
use serde_json::json;
use tokio::sync::oneshot;

/// The status of a request.
fn post(to: SocketAddr, path: &str, headers: &str, body: &[u8]) -> u16 {
    let mut stream = TcpStream::connect(to).unwrap();
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost:4318\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n"
    );
    stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

/// Runs a receiver while `send` is at work.
fn receive(path: &Path, send: impl FnOnce(SocketAddr) + Send + 'static) -> (Received, u64) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let receiver = Receiver::bind(path, 0).await.unwrap();
        let (address, removed) = (receiver.address().unwrap(), receiver.removed);
        let (done, end) = oneshot::channel::<()>();
        let sending = tokio::task::spawn_blocking(move || {
            send(address);
            let _ = done.send(());
        });
        let received = receiver.run_until(end).await;
        sending.await.unwrap();
        (received, removed)
    })
}

fn span(id: &str, parent: &str, attributes: serde_json::Value) -> Vec<u8> {
    let pairs: Vec<_> = attributes
        .as_object()
        .unwrap()
        .iter()
        .map(|(key, value)| json!({"key": key, "value": {"stringValue": value}}))
        .collect();
    json!({"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "07", "spanId": id, "parentSpanId": parent,
        "startTimeUnixNano": id, "endTimeUnixNano": "90", "attributes": pairs}]}]}]})
    .to_string()
    .into_bytes()
}

const JSON: &str = "Content-Type: application/json\r\n";
const PROTOBUF: &str = "Content-Type: application/x-protobuf\r\n";

#[test]
fn batches_in_any_order_over_a_restart_become_one_trace() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("spans.jsonl");
    let (received, _) = receive(&path, |to| {
        let tool = span(
            "2",
            "1",
            json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "add"}),
        );
        assert_eq!(post(to, "/v1/traces", JSON, &tool), 200);
        // An exporter that did not hear the answer sends it again.
        assert_eq!(post(to, "/v1/traces", JSON, &tool), 200);
        assert_eq!(post(to, "/v1/traces", JSON, b"{\"resourceSpans\": 1"), 400);
        assert_eq!(post(to, "/v1/traces", PROTOBUF, b"\x0a\xff\xff"), 400);
        assert_eq!(post(to, "/v1/metrics", JSON, b"{}"), 200);
        assert_eq!(post(to, "/elsewhere", JSON, b"{}"), 404);
    });
    assert_eq!(received, Received { batches: 2, spans: 2, logs: 0, refused: 2 });
    // Killed in the middle of a line.
    let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"{\"resourceSp").unwrap();
    let (received, removed) = receive(&path, |to| {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(&span("1", "", json!({"karat.task": "t"}))).unwrap();
        let headers = format!("{JSON}Content-Encoding: gzip\r\n");
        assert_eq!(post(to, "/v1/traces", &headers, &gz.finish().unwrap()), 200);
        // A span in protobuf: trace id, span id and parent, `gen_ai.completion.0.content` = "Done.".
        let field =
            |number: u8, inside: &[u8]| [&[number << 3 | 2, inside.len() as u8], inside].concat();
        let value = field(2, &field(1, b"Done."));
        let pair = [field(1, b"gen_ai.completion.0.content"), value].concat();
        let answer = [field(1, &[7]), field(2, &[3]), field(4, &[1]), field(9, &pair)].concat();
        let request = field(1, &field(2, &field(2, &answer)));
        assert_eq!(post(to, "/v1/traces", PROTOBUF, &request), 200);
    });
    assert_eq!((received.spans, removed), (2, 12));
    let files = TraceFiles { files: &[path], formats: &[TraceFormat::Otlp], metrics: &[] };
    let set = TraceSet::read(&TraceSource { files, tasks: None, max_malformed: 0.0, prices: None })
        .unwrap();
    let [trace] = &set.traces[..] else { panic!("{:?}", set.traces) };
    assert_eq!((trace.id.as_str(), trace.calls.len()), ("t", 1));
    assert_eq!(trace.output.as_deref(), Some("Done."));
}

#[test]
fn a_request_that_unpacks_to_too_much_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("spans.jsonl");
    let (received, _) = receive(&path, |to| {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        gz.write_all(&vec![b' '; 65 << 20]).unwrap();
        let headers = format!("{JSON}Content-Encoding: gzip\r\n");
        assert_eq!(post(to, "/v1/traces", &headers, &gz.finish().unwrap()), 400);
    });
    assert_eq!((received.batches, std::fs::metadata(&path).unwrap().len()), (0, 0));
}
