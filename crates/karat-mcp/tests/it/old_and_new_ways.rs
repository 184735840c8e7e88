//! Features of a single revision: HTTP+SSE of the first, input rounds of the last.
//!
//! The servers are written here: karat-test-server does not have the two addresses of the first revision, and
//! the others talk over streams within the process.

use crate::support;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use karat_mcp::{
    CallError, CallOptions, Elicitation, Options, Policies, Revision, ServerSpec, Session,
    StartError, TransportKind,
};
use serde_json::{Map, Value, json};
use support::arguments;
use tokio::sync::{Mutex, mpsc};

/// A server of the first revision: a stream of events, and an address for messages.
#[derive(Clone)]
struct OldServer {
    events: Arc<Mutex<Option<mpsc::Sender<String>>>>,
    endpoint: Arc<String>,
}

async fn open_stream(State(server): State<OldServer>, headers: HeaderMap) -> Response {
    if headers.get("x-key").is_none_or(|key| key != "sesame") {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let (sender, mut receiver) = mpsc::channel::<String>(16);
    sender.send(format!("event: endpoint\ndata: {}\n\n", server.endpoint)).await.unwrap();
    *server.events.lock().await = Some(sender);
    let stream = futures_stream(move |context| receiver.poll_recv(context));
    ([("content-type", "text/event-stream")], Body::from_stream(stream)).into_response()
}

/// A stream from a function, so that no further crate is needed.
fn futures_stream(
    poll: impl FnMut(&mut std::task::Context<'_>) -> std::task::Poll<Option<String>> + Unpin + Send,
) -> impl futures_core::Stream<Item = Result<String, std::io::Error>> + Send {
    struct Polled<F>(F);
    impl<F> futures_core::Stream for Polled<F>
    where
        F: FnMut(&mut std::task::Context<'_>) -> std::task::Poll<Option<String>> + Unpin,
    {
        type Item = Result<String, std::io::Error>;
        fn poll_next(
            mut self: std::pin::Pin<&mut Self>,
            context: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Self::Item>> {
            (self.0)(context).map(|item| item.map(Ok))
        }
    }
    Polled(poll)
}

async fn take_message(State(server): State<OldServer>, uri: Uri, body: String) -> StatusCode {
    assert_eq!(uri.query(), Some("session=1"));
    let message: Value = serde_json::from_str(&body).unwrap();
    let result = match message["method"].as_str() {
        Some("initialize") => {
            json!({"protocolVersion": "2024-11-05", "capabilities": {"tools": {}},
            "serverInfo": {"name": "old", "version": "0"}})
        }
        Some("tools/list") => json!({"tools": [{"name": "t"}]}),
        Some("tools/call") if message["params"]["name"] == "end" => {
            *server.events.lock().await = None;
            return StatusCode::ACCEPTED;
        }
        Some("tools/call") if message["params"]["name"] == "hang" => return StatusCode::ACCEPTED,
        Some("tools/call") => json!({"content": [{"type": "text", "text": "hello"}]}),
        _ => return StatusCode::ACCEPTED,
    };
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    let events = server.events.lock().await.clone().unwrap();
    events.send(format!("event: message\r\ndata: {answer}\r\n\r\n")).await.unwrap();
    StatusCode::ACCEPTED
}

async fn old_server(endpoint: &str) -> String {
    let server = OldServer { events: Arc::default(), endpoint: Arc::new(endpoint.to_owned()) };
    let router = Router::new()
        .route("/sse", get(open_stream))
        .route("/messages", post(take_message))
        .with_state(server);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}/sse")
}

fn old_spec(url: &str, transport: Option<TransportKind>) -> ServerSpec {
    let mut spec = ServerSpec { transport, ..ServerSpec::from_url(url) };
    spec.headers.insert("X-Key".into(), "sesame".into());
    spec
}

#[tokio::test]
async fn the_first_revision_works_over_events() {
    let url = old_server("/messages?session=1").await;
    // Named in the spec, and detected because the URL does not accept POST.
    for transport in [Some(TransportKind::Sse), None] {
        let spec = old_spec(&url, transport);
        let session = Session::start(&spec, &Options::default()).await.unwrap();
        assert_eq!(session.server().revision, Revision::V2024_11_05);
        assert_eq!(session.tools().await.unwrap()[0].name(), "t");
        assert_eq!(session.call("t", &Map::new()).await.unwrap().texts(), ["hello"]);
        let short =
            CallOptions { timeout: Some(Duration::from_millis(50)), ..CallOptions::default() };
        let hung = session.call_with("hang", &Map::new(), short).await;
        assert!(matches!(hung, Err(CallError::Timeout { .. })), "{hung:?}");
        let lost = session.call("end", &Map::new()).await.unwrap_err();
        assert!(lost.is_lost(), "{lost}");
        assert!(session.call("t", &Map::new()).await.unwrap_err().is_lost());
    }
}

#[tokio::test]
async fn a_stream_with_a_foreign_url_for_messages_is_refused() {
    let url = old_server("http://127.0.0.1:9/messages").await;
    let spec = old_spec(&url, Some(TransportKind::Sse));
    let error = Session::start(&spec, &Options::default()).await.unwrap_err();
    assert!(error.to_string().contains("another origin"), "{error}");
}

#[tokio::test]
async fn a_stream_without_its_key_is_refused_with_the_status() {
    let url = old_server("/messages").await;
    let spec = ServerSpec { transport: Some(TransportKind::Sse), ..ServerSpec::from_url(&url) };
    let error = Session::start(&spec, &Options::default()).await.unwrap_err();
    assert!(matches!(&error, StartError::Handshake { why } if why.contains("401")), "{error}");
}

/// Answers lines with what `answer` makes of them.
fn scripted(answer: impl Fn(&Value) -> Option<Value> + Send + 'static) -> tokio::io::DuplexStream {
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    tokio::spawn(async move {
        let (read, mut write) = tokio::io::split(theirs);
        let mut lines = BufReader::new(read).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let message: Value = serde_json::from_str(&line).unwrap();
            if let Some(result) = answer(&message) {
                let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
                write.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
            }
        }
    });
    ours
}

fn wants_input(message: &Value) -> Option<Value> {
    match message["method"].as_str()? {
        "server/discover" => Some(json!({"supportedVersions": ["2026-07-28"], "capabilities": {}})),
        _ if message["params"]["inputResponses"].is_null() => Some(json!({
            "resultType": "input_required",
            "requestState": "opaque",
            "inputRequests": {"q": {"method": "elicitation/create", "params": {"requestedSchema": {
                "properties": {"name": {"type": "string", "default": "Ada"}}}}}},
        })),
        _ => Some(json!({"resultType": "complete", "content": [], "structuredContent": {
            "got": message["params"]["inputResponses"], "state": message["params"]["requestState"]}})),
    }
}

#[tokio::test]
async fn a_server_that_asks_for_input_gets_the_answer_of_the_policy() {
    let policies = Policies { elicitation: Elicitation::AcceptDefaults, ..Policies::default() };
    let options = Options { policies, ..Options::default() };
    let (read, write) = tokio::io::split(scripted(wants_input));
    let session = Session::over(read, write, Some(Revision::V2026_07_28), &options).await.unwrap();
    let reply = session.call("t", &arguments(json!({"a": 1}))).await.unwrap();
    assert_eq!(
        reply.structured(),
        Some(
            &json!({"got": {"q": {"action": "accept", "content": {"name": "Ada"}}}, "state": "opaque"})
        )
    );
}

#[tokio::test]
async fn without_a_policy_the_request_for_input_is_the_result() {
    let (read, write) = tokio::io::split(scripted(wants_input));
    let session =
        Session::over(read, write, Some(Revision::V2026_07_28), &Options::default()).await.unwrap();
    let reply = session.call("t", &Map::new()).await.unwrap();
    assert_eq!(reply.raw["resultType"], "input_required");
}

#[tokio::test]
async fn a_server_without_a_handshake_is_detected() {
    // A server of the last revision does not have `initialize`.
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    tokio::spawn(async move {
        use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
        let (read, mut write) = tokio::io::split(theirs);
        let mut lines = BufReader::new(read).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let message: Value = serde_json::from_str(&line).unwrap();
            let mut answer = json!({"jsonrpc": "2.0", "id": message["id"]});
            match message["method"].as_str() {
                Some("server/discover") => {
                    let versions = json!(["2026-07-28"]);
                    answer["result"] = json!({"supportedVersions": versions, "capabilities": {}});
                }
                _ => answer["error"] = json!({"code": -32601, "message": "Method not found"}),
            }
            write.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
        }
    });
    let (read, write) = tokio::io::split(ours);
    let session = Session::over(read, write, None, &Options::default()).await.unwrap();
    assert_eq!(session.server().revision, Revision::V2026_07_28);
}

#[tokio::test]
async fn a_fixed_revision_that_the_server_does_not_have_is_an_error() {
    let answer = |message: &Value| {
        (message["method"] == "initialize").then(|| {
            json!({"protocolVersion": "2024-11-05", "capabilities": {}, "serverInfo": {"name": "x"}})
        })
    };
    let (read, write) = tokio::io::split(scripted(answer));
    let asked = Some(Revision::V2025_06_18);
    let error = Session::over(read, write, asked, &Options::default()).await.unwrap_err();
    assert!(matches!(error, StartError::Revision { .. }), "{error}");
    // If none is fixed, the older one is used.
    let (read, write) = tokio::io::split(scripted(answer));
    let session = Session::over(read, write, None, &Options::default()).await.unwrap();
    assert_eq!(session.server().revision, Revision::V2024_11_05);
}
