//! Serving over streamable HTTP: several offers on one listener, each under its path.
//!
//! A request is answered with one JSON body, or with a stream of events when its tool tells or asks
//! the client something before. There are no sessions and no stream of the server's own, which the
//! protocol allows; web pages of other origins are turned away.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::IntoFuture as _;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Task, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request as HttpRequest, State};
use axum::http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HOST, ORIGIN};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures_core::Stream;
use rmcp::model::ErrorCode;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::context::{Asks, Tell};
use super::desk::{Desk, Received, Request, failure, version_of};
use super::{Offer, ProtocolError, Respond, ServeError};
use crate::http::header_text;
use crate::limits::Limits;
use crate::revision::Revision;

/// How long requests under way may go on after the shutdown.
const LAST_REQUESTS: Duration = Duration::from_secs(1);

/// Offers that are listened for.
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
    router: Router,
}

impl HttpServer {
    /// Listens on an address; port 0 takes a free one. The keys are paths such as `/github/mcp`.
    ///
    /// # Errors
    /// When the address cannot be listened on or an offer cannot be served.
    pub async fn bind(
        address: SocketAddr,
        at: BTreeMap<String, Offer>,
        respond: impl Respond,
    ) -> Result<HttpServer, ServeError> {
        let respond = Arc::new(respond);
        let mut desks = BTreeMap::new();
        for (path, offer) in at {
            if !path.starts_with('/') {
                return Err(ServeError::Path { path });
            }
            desks.insert(path, Arc::new(Desk::new(&offer, Arc::clone(&respond))?));
        }
        let bound = async {
            let listener = TcpListener::bind(address).await?;
            let address = listener.local_addr()?;
            std::io::Result::Ok((listener, address))
        };
        let (listener, address) =
            bound.await.map_err(|source| ServeError::Bind { address, source })?;
        let house = House { desks, asks: Arc::default() };
        let router = Router::new().fallback(answer).with_state(Arc::new(house));
        Ok(HttpServer { listener, address, router })
    }

    /// The address that is listened on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown` is ready.
    pub async fn run_until(self, shutdown: impl Future) {
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let serving = axum::serve(self.listener, self.router)
            .with_graceful_shutdown(async move {
                let _ = stopped.await;
            })
            .into_future();
        tokio::pin!(serving);
        tokio::select! {
            _ = &mut serving => return,
            _ = shutdown => {}
        }
        drop(stop);
        let _ = tokio::time::timeout(LAST_REQUESTS, serving).await;
    }
}

/// Everything behind one listener.
struct House<R> {
    desks: BTreeMap<String, Arc<Desk<R>>>,
    asks: Arc<Asks>,
}

async fn answer<R: Respond>(State(house): State<Arc<House<R>>>, request: HttpRequest) -> Response {
    let (parts, body) = request.into_parts();
    let Some(desk) = house.desks.get(parts.uri.path()) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    if !is_local(&parts.headers) {
        return (StatusCode::FORBIDDEN, "this origin is not served").into_response();
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
    let mut received = Desk::<R>::receive(&bytes);
    if received.len() != 1 {
        return batch(desk, &house.asks, received).await;
    }
    match received.pop() {
        Some(Received::Request(request)) => one(desk, &house.asks, &parts.headers, request).await,
        Some(Received::Answer { id, outcome }) => {
            house.asks.answered(&id, outcome);
            StatusCode::ACCEPTED.into_response()
        }
        Some(Received::Broken(answer)) => json(StatusCode::BAD_REQUEST, answer),
        _ => StatusCode::ACCEPTED.into_response(),
    }
}

async fn one<R: Respond>(
    desk: &Arc<Desk<R>>,
    asks: &Arc<Asks>,
    headers: &HeaderMap,
    request: Request,
) -> Response {
    if let Err(error) = check_headers(headers, &request) {
        return json(StatusCode::BAD_REQUEST, failure(&request.id, &error));
    }
    let (sender, mut told) = mpsc::unbounded_channel();
    let tell: Tell = Arc::new(move |message| {
        let _ = sender.send(message);
    });
    let (desk, asks) = (Arc::clone(desk), Arc::clone(asks));
    let mut answering: Answering = Box::pin(async move {
        let answered = desk.answer(&request, &tell, &asks).await;
        let status =
            if answered.stateless { status(answered.code, &request) } else { StatusCode::OK };
        (status, answered.bytes)
    });
    let first = tokio::select! {
        biased;
        answer = &mut answering => match told.try_recv() {
            // It said something in the same breath.
            Ok(first) => return events(first, told, Err(answer.1)),
            Err(_) => return json(answer.0, answer.1),
        },
        Some(first) = told.recv() => first,
    };
    events(first, told, Ok(answering))
}

type Answering = Pin<Box<dyn Future<Output = (StatusCode, Vec<u8>)> + Send>>;

/// A response that is a stream: what was told first, what is told, and in the end the answer.
fn events(
    first: Vec<u8>,
    told: mpsc::UnboundedReceiver<Vec<u8>>,
    answer: Result<Answering, Vec<u8>>,
) -> Response {
    let answer = match answer {
        Ok(answering) => answering,
        Err(bytes) => Box::pin(std::future::ready((StatusCode::OK, bytes))),
    };
    let stream = Events { first: Some(first), told, answer: Some(answer) };
    let headers = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-cache")];
    (headers, Body::from_stream(stream)).into_response()
}

struct Events {
    first: Option<Vec<u8>>,
    told: mpsc::UnboundedReceiver<Vec<u8>>,
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
        if let Poll::Ready(Some(message)) = events.told.poll_recv(context) {
            return Poll::Ready(Some(Ok(event(&message))));
        }
        let Poll::Ready((_, bytes)) = answer.as_mut().poll(context) else {
            // The answer may have said something on its way.
            return match events.told.poll_recv(context) {
                Poll::Ready(Some(message)) => Poll::Ready(Some(Ok(event(&message)))),
                _ => Poll::Pending,
            };
        };
        events.answer = None;
        let mut last = Vec::new();
        while let Ok(message) = events.told.try_recv() {
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
async fn batch<R: Respond>(desk: &Desk<R>, asks: &Arc<Asks>, received: Vec<Received>) -> Response {
    // There is one body for all of it, so nothing can be told on the way.
    let tell: Tell = Arc::new(|_| {});
    let mut answers = Vec::new();
    for message in received {
        let bytes = match message {
            Received::Request(request) => desk.answer(&request, &tell, asks).await.bytes,
            Received::Broken(answer) => answer,
            Received::Answer { id, outcome } => {
                asks.answered(&id, outcome);
                continue;
            }
            Received::Cancelled(_) | Received::Told => continue,
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

/// The status of a protocol error, from revision 2026-07-28 on.
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

/// What the headers repeat must be what the body says.
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

/// Whether a request may be answered: programs send no origin, and web pages must be local ones. A
/// host that is no local name means that a page has pointed its own name at us.
fn is_local(headers: &HeaderMap) -> bool {
    let local = |host: &str| {
        let name = match host.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or_default(),
            None => host.split(':').next().unwrap_or_default(),
        };
        name == "localhost" || name.parse::<std::net::IpAddr>().is_ok()
    };
    let origin = match headers.get(ORIGIN).map(|value| value.to_str().unwrap_or_default()) {
        None => true,
        Some(origin) => origin.split_once("://").is_some_and(|(_, host)| local(host)),
    };
    let host = headers.get(HOST).is_none_or(|host| host.to_str().is_ok_and(local));
    origin && host
}
