//! A server over streamable HTTP: several offers on one listener, each under its path.
//!
//! The response to a request is one JSON body, or a stream of events if the tool sends messages before its
//! answer. There are no sessions and no stream of server-initiated messages, which the protocol allows. Web
//! pages of other origins are rejected.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Task, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request as HttpRequest, State};
use axum::http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures_core::Stream;
use karat_io::http_server::{self, ServerLimits, is_local};
use rmcp::model::ErrorCode;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::context::{ClientRequests, SendMessage};
use super::request_handler::{Received, Request, RequestHandler, failure, version_of};
use super::respond::{Offer, ProtocolError, Respond, Responder, ServeError};
use crate::headers::header_text;
use crate::limits::Limits;
use crate::revision::Revision;

/// Time for running requests to finish after the shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// A server that is bound to an address.
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
    router: Router,
}

impl HttpServer {
    /// Binds to an address; port 0 is any free port. The keys of `at` are paths such as `/github/mcp`.
    ///
    /// # Errors
    /// If the address cannot be bound, or a path or a definition is invalid.
    pub async fn bind(
        address: SocketAddr,
        at: BTreeMap<String, Offer>,
        respond: impl Respond,
    ) -> Result<HttpServer, ServeError> {
        HttpServer::bound(address, at, Arc::new(respond)).await
    }

    async fn bound(
        address: SocketAddr,
        at: BTreeMap<String, Offer>,
        respond: Arc<dyn Responder>,
    ) -> Result<HttpServer, ServeError> {
        let mut handlers = BTreeMap::new();
        for (path, offer) in at {
            if !path.starts_with('/') {
                return Err(ServeError::Path { path });
            }
            handlers.insert(path, Arc::new(RequestHandler::new(&offer, Arc::clone(&respond))?));
        }
        let bound = async {
            let listener = TcpListener::bind(address).await?;
            let address = listener.local_addr()?;
            std::io::Result::Ok((listener, address))
        };
        let (listener, address) =
            bound.await.map_err(|source| ServeError::Bind { address, source })?;
        let routes = Routes { handlers, requests: Arc::default() };
        Ok(HttpServer { listener, address, router: router(routes) })
    }

    /// The bound address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown` completes.
    pub async fn run_until(self, shutdown: impl Future + Send) {
        let limits = ServerLimits {
            body_bytes: Limits::default().message_bytes,
            shutdown: SHUTDOWN_TIMEOUT,
            ..ServerLimits::default()
        };
        http_server::serve(self.listener, self.router, limits, shutdown).await;
    }
}

/// The handlers of one listener by path.
struct Routes {
    handlers: BTreeMap<String, Arc<RequestHandler>>,
    requests: Arc<ClientRequests>,
}

fn router(routes: Routes) -> Router {
    Router::new().fallback(answer).with_state(Arc::new(routes))
}

async fn answer(State(routes): State<Arc<Routes>>, request: HttpRequest) -> Response {
    let (parts, body) = request.into_parts();
    let Some(handler) = routes.handlers.get(parts.uri.path()) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    if !is_local(&parts.headers) {
        return (StatusCode::FORBIDDEN, "this origin is not allowed").into_response();
    }
    if parts.method != Method::POST {
        return (StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, "POST")]).into_response();
    }
    if !is_json(&parts.headers) {
        return StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response();
    }
    let Ok(bytes) = to_bytes(body, Limits::default().message_bytes).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let mut received = RequestHandler::receive(&bytes);
    if received.len() != 1 {
        return batch(handler, &routes.requests, received).await;
    }
    match received.pop() {
        Some(Received::Request(request)) => {
            one(handler, &routes.requests, &parts.headers, request).await
        }
        Some(Received::Answer { id, outcome }) => {
            routes.requests.answered(&id, outcome);
            StatusCode::ACCEPTED.into_response()
        }
        Some(Received::Invalid(answer)) => json(StatusCode::BAD_REQUEST, answer),
        _ => StatusCode::ACCEPTED.into_response(),
    }
}

async fn one(
    handler: &Arc<RequestHandler>,
    requests: &Arc<ClientRequests>,
    headers: &HeaderMap,
    request: Request,
) -> Response {
    if let Err(error) = check_headers(headers, &request) {
        return json(StatusCode::BAD_REQUEST, failure(&request.id, &error));
    }
    let (sender, mut messages) = mpsc::unbounded_channel();
    let send: SendMessage = Arc::new(move |message| {
        let _ = sender.send(message);
    });
    let (handler, requests) = (Arc::clone(handler), Arc::clone(requests));
    let mut answering: Answering = Box::pin(async move {
        let answered = handler.answer(&request, &send, &requests).await;
        let status =
            if answered.stateless { status(answered.code, &request) } else { StatusCode::OK };
        (status, answered.bytes)
    });
    let first = tokio::select! {
        biased;
        answer = &mut answering => match messages.try_recv() {
            // The tool sent messages before it finished.
            Ok(first) => return events(first, messages, Err(answer.1)),
            Err(_) => return json(answer.0, answer.1),
        },
        Some(first) = messages.recv() => first,
    };
    events(first, messages, Ok(answering))
}

type Answering = Pin<Box<dyn Future<Output = (StatusCode, Vec<u8>)> + Send>>;

/// A stream of events: the first message, further messages, and at last the answer.
fn events(
    first: Vec<u8>,
    messages: mpsc::UnboundedReceiver<Vec<u8>>,
    answer: Result<Answering, Vec<u8>>,
) -> Response {
    let answer = match answer {
        Ok(answering) => answering,
        Err(bytes) => Box::pin(std::future::ready((StatusCode::OK, bytes))),
    };
    let stream = Events { first: Some(first), messages, answer: Some(answer) };
    let headers = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-cache")];
    (headers, Body::from_stream(stream)).into_response()
}

struct Events {
    first: Option<Vec<u8>>,
    messages: mpsc::UnboundedReceiver<Vec<u8>>,
    answer: Option<Answering>,
}

impl Stream for Events {
    type Item = Result<Vec<u8>, Infallible>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Task<'_>) -> Poll<Option<Self::Item>> {
        let events = self.get_mut();
        if let Some(first) = events.first.take() {
            return Poll::Ready(Some(Ok(event(&first))));
        }
        let Some(answer) = &mut events.answer else { return Poll::Ready(None) };
        if let Poll::Ready(Some(message)) = events.messages.poll_recv(context) {
            return Poll::Ready(Some(Ok(event(&message))));
        }
        let Poll::Ready((_, bytes)) = answer.as_mut().poll(context) else {
            // The tool may have sent a message while it was polled.
            return match events.messages.poll_recv(context) {
                Poll::Ready(Some(message)) => Poll::Ready(Some(Ok(event(&message)))),
                _ => Poll::Pending,
            };
        };
        events.answer = None;
        let mut last = Vec::new();
        while let Ok(message) = events.messages.try_recv() {
            last.extend(event(&message));
        }
        last.extend(event(&bytes));
        Poll::Ready(Some(Ok(last)))
    }
}

fn event(message: &[u8]) -> Vec<u8> {
    [b"event: message\ndata: ", message, b"\n\n"].concat()
}

/// Batches belong to revision 2025-03-26.
async fn batch(
    handler: &RequestHandler,
    requests: &Arc<ClientRequests>,
    received: Vec<Received>,
) -> Response {
    // The response is one body, so messages before the answers are dropped.
    let send: SendMessage = Arc::new(|_| {});
    let mut answers = Vec::new();
    for message in received {
        let bytes = match message {
            Received::Request(request) => handler.answer(&request, &send, requests).await.bytes,
            Received::Invalid(answer) => answer,
            Received::Answer { id, outcome } => {
                requests.answered(&id, outcome);
                continue;
            }
            Received::Cancelled(_) | Received::Notification => continue,
        };
        answers.push(bytes);
    }
    if answers.is_empty() {
        return StatusCode::ACCEPTED.into_response();
    }
    let mut body = b"[".to_vec();
    body.extend(answers.join(&b','));
    body.push(b']');
    json(StatusCode::OK, body)
}

fn json(status: StatusCode, bytes: Vec<u8>) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], Body::from(bytes)).into_response()
}

/// The HTTP status of a protocol error, from revision 2026-07-28 on.
fn status(code: Option<i64>, request: &Request) -> StatusCode {
    let Some(code) = code else { return StatusCode::OK };
    let is = |expected: ErrorCode| i64::from(expected.0) == code;
    if is(ErrorCode::METHOD_NOT_FOUND) {
        return StatusCode::NOT_FOUND;
    }
    let lacks_metadata = request
        .params
        .get("_meta")
        .and_then(|meta| meta.get("io.modelcontextprotocol/clientCapabilities"))
        .is_none();
    let malformed = is(ErrorCode::UNSUPPORTED_PROTOCOL_VERSION)
        || is(ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY)
        || is(ErrorCode::HEADER_MISMATCH)
        || (is(ErrorCode::INVALID_PARAMS) && lacks_metadata);
    if malformed { StatusCode::BAD_REQUEST } else { StatusCode::OK }
}

/// Checks that headers repeat the values of the body.
fn check_headers(headers: &HeaderMap, request: &Request) -> Result<(), ProtocolError> {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let mismatch =
        |message: String| Err(ProtocolError::new(i64::from(ErrorCode::HEADER_MISMATCH.0), message));
    let named = text("mcp-protocol-version");
    let Some(version) = version_of(&request.params) else {
        return match named {
            Some(name) if request.method != "initialize" && Revision::of(name).is_none() => {
                let message = format!("Unsupported MCP-Protocol-Version: {name}");
                Err(ProtocolError::new(i64::from(ErrorCode::INVALID_REQUEST.0), message))
            }
            Some(name)
                if name >= Revision::V2026_07_28.name() && request.method != "initialize" =>
            {
                let message = "The request needs its metadata in params._meta";
                Err(ProtocolError::new(i64::from(ErrorCode::INVALID_PARAMS.0), message))
            }
            _ => Ok(()),
        };
    };
    if named != Some(version) {
        return mismatch(format!("The header MCP-Protocol-Version is not {version}"));
    }
    if version < Revision::V2026_07_28.name() {
        return Ok(());
    }
    if text("mcp-method") != Some(&request.method) {
        return mismatch(format!("The header Mcp-Method is not {}", request.method));
    }
    let name = match request.method.as_str() {
        "tools/call" | "prompts/get" => request.params.get("name"),
        "resources/read" => request.params.get("uri"),
        _ => None,
    };
    if let Some(name) = name.and_then(Value::as_str)
        && headers.get("mcp-name") != Some(&header_text(name))
    {
        return mismatch("The header Mcp-Name is not the name in the body".to_owned());
    }
    Ok(())
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}
