//! HTTP servers that close, stall, redirect and refuse: each fault has its class.
//!
//! The server is written here: a stream that broke off is resumed by a request of its own, which
//! karat-test-server does not answer, and the other faults are in the same connection.

use std::time::Duration;

use karat_io::FailureClass;
use karat_mcp::{CallError, Limits, Options, Revision, ServerSpec, Session, StartError, Violation};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The response to a call.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Status(&'static str),
    /// These bytes, and then nothing.
    Stall(&'static str),
    /// These bytes, and then the end of the connection.
    Drop(&'static str),
    /// A whole answer with this content type and body.
    Body(&'static str, &'static str),
    /// An endless event.
    EndlessEvent,
    /// A body of this many bytes.
    Large(usize),
    /// A stream that breaks this many times and can be resumed.
    BreaksOff(u32),
    /// A protocol error with a status, and with this many bytes of data.
    Refuses(usize),
    /// A whole answer, and then the end of the connection without notice.
    HangsUp,
}

struct Asked {
    line: String,
    headers: String,
    message: Value,
}

async fn read_request(stream: &mut TcpStream) -> Option<Asked> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_lowercase();
    let length: usize = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map_or(0, |length| length.parse().unwrap());
    while bytes.len() < end + 4 + length {
        stream.read_buf(&mut bytes).await.ok()?;
    }
    let message = serde_json::from_slice(&bytes[end + 4..]).unwrap_or(Value::Null);
    let (line, headers) = head.split_once("\r\n").unwrap_or((&head, ""));
    Some(Asked { line: line.to_owned(), headers: headers.to_owned(), message })
}

fn whole(status: &str, kind: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\
         mcp-session-id: s1\r\n\r\n{body}",
        body.len()
    )
}

/// A stream that ends before the answer and can be resumed this many times.
fn breaks_off(times: u32, id: &str) -> String {
    whole("200 OK", "text/event-stream", &format!("id: {}.{id}\nretry: 10\ndata: \n\n", times - 1))
}

async fn serve(mut stream: TcpStream, fault: Fault) {
    while let Some(asked) = read_request(&mut stream).await {
        let result = |result: Value| {
            json!({"jsonrpc": "2.0", "id": asked.message["id"], "result": result}).to_string()
        };
        let answer = match asked.message["method"].as_str() {
            Some("initialize") => {
                let body = result(json!({"protocolVersion": "2025-11-25", "capabilities": {},
                    "serverInfo": {"name": "x", "version": "1"}}));
                whole("200 OK", "application/json", &body)
            }
            Some("tools/list") => {
                whole("200 OK", "application/json", &result(json!({"tools": []})))
            }
            Some("tools/call") => match fault {
                Fault::Status(status) => whole(status, "text/plain", "no"),
                Fault::Stall(bytes) => {
                    stream.write_all(bytes.as_bytes()).await.unwrap();
                    std::future::pending::<()>().await;
                    return;
                }
                Fault::Drop(bytes) => {
                    stream.write_all(bytes.as_bytes()).await.unwrap();
                    return;
                }
                Fault::Body(kind, body) => whole("200 OK", kind, body),
                Fault::EndlessEvent => {
                    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: ";
                    stream.write_all(head.as_bytes()).await.unwrap();
                    while stream.write_all(&[b'x'; 4096]).await.is_ok() {}
                    return;
                }
                Fault::Large(bytes) => whole("200 OK", "application/json", &"x".repeat(bytes)),
                Fault::BreaksOff(times) => breaks_off(times, &asked.message["id"].to_string()),
                Fault::Refuses(bytes) => {
                    let error = json!({"code": -32602, "message": "no", "data": "x".repeat(bytes)});
                    let body = json!({"jsonrpc": "2.0", "id": asked.message["id"], "error": error});
                    whole("400 Bad Request", "application/json", &body.to_string())
                }
                Fault::HangsUp => {
                    let body = result(json!({"content": [{"type": "text", "text": "bye"}]}));
                    let bytes = whole("200 OK", "application/json", &body);
                    stream.write_all(bytes.as_bytes()).await.unwrap();
                    return;
                }
            },
            Some("server/discover") => {
                let body = result(json!({"resultType": "complete", "capabilities": {},
                    "supportedVersions": ["2026-07-28"]}));
                whole("200 OK", "application/json", &body)
            }
            _ if asked.line.starts_with("get") && asked.headers.contains("last-event-id: ") => {
                let event = asked.headers.split("last-event-id: ").nth(1).unwrap();
                let (left, id) = event.lines().next().unwrap().split_once('.').unwrap();
                match left.parse::<u32>().unwrap() {
                    0 => {
                        let result = json!({"content": [{"type": "text", "text": "resumed"}]});
                        let id: u64 = id.parse().unwrap();
                        let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
                        whole("200 OK", "text/event-stream", &format!("data: {answer}\n\n"))
                    }
                    left => breaks_off(left, id),
                }
            }
            _ if asked.line.starts_with("get") => whole("405 Method Not Allowed", "text/plain", ""),
            _ => whole("202 Accepted", "text/plain", ""),
        };
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn server(fault: Fault) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, fault));
        }
    });
    format!("http://{address}/mcp")
}

async fn call(fault: Fault) -> (Session, CallError) {
    let (session, reply) = try_call(fault).await;
    (session, reply.unwrap_err())
}

fn options() -> Options {
    Options {
        call_timeout: Duration::from_millis(700),
        limits: Limits { message_bytes: 1 << 16, ..Limits::default() },
        ..Options::default()
    }
}

async fn try_call(fault: Fault) -> (Session, Result<karat_mcp::Reply, CallError>) {
    let spec = ServerSpec::from_url(server(fault).await);
    try_call_at(&spec, &options()).await
}

async fn try_call_at(
    spec: &ServerSpec,
    options: &Options,
) -> (Session, Result<karat_mcp::Reply, CallError>) {
    let session = Session::start(spec, options).await.unwrap();
    let reply = session.call("t", &Map::new()).await;
    (session, reply)
}

#[tokio::test]
async fn an_error_status_is_reported_and_the_session_continues() {
    for status in ["500 Internal Server Error", "429 Too Many Requests", "406 Not Acceptable"] {
        let (session, error) = call(Fault::Status(status)).await;
        let number: u16 = status[..3].parse().unwrap();
        assert!(matches!(error, CallError::Http { status, .. } if status == number), "{error}");
        assert_eq!((error.class(), error.is_lost()), (FailureClass::Transport, false));
        assert!(session.tools().await.is_ok());
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let head = "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:9/\r\n\
                content-length: 0\r\n\r\n";
    let (_, error) = call(Fault::Drop(head)).await;
    assert!(matches!(error, CallError::Http { status: 307, .. }), "{error}");
    assert!(error.to_string().contains("not followed"), "{error}");
}

#[tokio::test]
async fn an_ended_session_is_lost_and_not_restarted() {
    let (session, error) = call(Fault::Status("404 Not Found")).await;
    assert!(error.is_lost(), "{error}");
    assert!(session.tools().await.unwrap_err().is_lost());
}

#[tokio::test]
async fn answers_that_stall_are_time_outs() {
    for bytes in [
        "",
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n{\"jsonrpc\"",
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: waiting\n\n",
    ] {
        let (session, error) = call(Fault::Stall(bytes)).await;
        assert_eq!(error, CallError::Timeout { said: String::new() }, "{bytes}");
        assert!(session.tools().await.is_ok());
    }
}

#[tokio::test]
async fn broken_connections_are_transport_errors() {
    for bytes in [
        "",
        "HTTP/1.1 200 OK\r\ncontent-",
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n{\"jsonrpc\"",
        "not http at all\r\n\r\n",
    ] {
        let (session, error) = call(Fault::Drop(bytes)).await;
        assert!(matches!(error, CallError::Transport { .. }), "{bytes:?}: {error}");
        assert!(session.tools().await.is_ok());
    }
}

#[tokio::test]
async fn responses_without_an_answer_are_invalid() {
    for (kind, body) in [
        ("text/html", "<html>It works!</html>"),
        ("application/json", ""),
        ("application/json", "<html>"),
        ("application/json", "{\"jsonrpc\":\"2.0\",\"id\":77,\"result\":{}}"),
        ("application/json", "{\"id\":3,\"result\":{}}"),
        ("text/event-stream", ": nothing\n\n"),
        ("text/event-stream", "data: garbage\n\n"),
    ] {
        let (_, error) = call(Fault::Body(kind, body)).await;
        assert!(matches!(error, CallError::Invalid { .. }), "{kind} {body}: {error}");
    }
}

#[tokio::test]
async fn endless_answers_are_too_large() {
    for fault in [Fault::EndlessEvent, Fault::Large(1 << 17)] {
        let (_, error) = call(fault).await;
        assert_eq!(error, CallError::TooLarge { limit: 1 << 16, what: "bytes" }, "{fault:?}");
    }
}

#[tokio::test]
async fn a_broken_stream_with_ids_is_resumed() {
    // There is no maximum: the time limit of the call decides.
    let patient = Options { call_timeout: Duration::from_secs(30), ..options() };
    for times in [1, 30] {
        let spec = ServerSpec::from_url(server(Fault::BreaksOff(times)).await);
        let (_, reply) = try_call_at(&spec, &patient).await;
        assert_eq!(reply.unwrap().texts(), ["resumed"], "{times}");
    }
}

#[tokio::test]
async fn only_an_accepted_status_is_waited_for() {
    for (bytes, message) in [
        ("HTTP/1.1 204 No Content\r\n\r\n", "no body (HTTP status 204)"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", "no body (HTTP status 200)"),
        (
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 0\r\n\r\n",
            "no body (HTTP status 200)",
        ),
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}", "no content type"),
    ] {
        let (session, error) = call(Fault::Stall(bytes)).await;
        assert!(matches!(error, CallError::Invalid { .. }), "{bytes}: {error}");
        assert!(error.to_string().contains(message), "{bytes}: {error}");
        assert_eq!(session.protocol_log().warnings(), [""; 0], "{bytes}");
    }
    let later = "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n";
    let (_, error) = call(Fault::Stall(later)).await;
    assert_eq!(error.class(), FailureClass::Timeout, "{error}");
}

#[tokio::test]
async fn a_protocol_error_with_a_status_is_read_up_to_the_limit() {
    for (bytes, class) in [
        (10, FailureClass::Refused),
        (60_000, FailureClass::Refused),
        (70_000, FailureClass::InvalidAnswer),
    ] {
        let spec = ServerSpec {
            protocol: Some(Revision::V2026_07_28),
            ..ServerSpec::from_url(server(Fault::Refuses(bytes)).await)
        };
        let (_, reply) = try_call_at(&spec, &options()).await;
        let error = reply.unwrap_err();
        assert_eq!(error.class(), class, "{bytes}: {error}");
    }
}

#[tokio::test]
async fn a_connection_that_ends_without_notice_fails_no_call() {
    let (session, reply) = try_call(Fault::HangsUp).await;
    assert_eq!(reply.unwrap().texts(), ["bye"]);
    for _ in 0..20 {
        assert_eq!(session.call("t", &Map::new()).await.unwrap().texts(), ["bye"]);
    }
    assert_eq!(session.protocol_log().count(Violation::Hangup), 20);
}

#[tokio::test]
async fn an_answer_in_an_endless_stream_is_returned() {
    // The first request was the handshake, so the call is the second.
    let bytes = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nid: 1\n\
                 data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"content\":\
                 [{\"type\":\"text\",\"text\":\"held\"}]}}\n\n";
    let (session, reply) = try_call(Fault::Stall(bytes)).await;
    assert_eq!(reply.unwrap().texts(), ["held"]);
    assert!(session.tools().await.is_ok());
}

#[tokio::test]
async fn an_unreachable_address_is_a_server_that_did_not_start() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    drop(listener);
    let error = Session::start(&ServerSpec::from_url(url), &Options::default()).await.unwrap_err();
    assert!(matches!(error, StartError::NotStarted { .. }), "{error}");
}
