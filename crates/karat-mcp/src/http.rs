//! Streamable HTTP, as a client.
//!
//! Each message is a POST of its own, driven by the task that sends it. The response is a JSON body or a
//! stream of events, and every message in it goes to [`PendingCalls`]. Redirects are not followed, sessions
//! are not silently restarted, and an error status is an error of its own kind. Short messages over plain
//! HTTP take the short way ([`Plain`]); everything else uses the client with TLS and proxies.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use karat_io::http::{is_loopback, root_cause};
use karat_io::task;
use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER,
    USER_AGENT,
};
use reqwest::{Client, Response, StatusCode, Url};
use tokio::task::JoinHandle;

use crate::auth::{Authorizer, Challenge, authorizer};
use crate::error::{CallError, StartError, quoted};
use crate::event_stream::EventStream;
use crate::headers::{LAST_EVENT, METHOD, NAME, PROTOCOL, ResponseHead, SESSION, header_text};
use crate::http_client::{AGENT, client, header_map, parse_url};
use crate::http_plain::{MAX_BODY_BYTES, Plain, PlainError, PlainResponse};
use crate::pending_calls::PendingCalls;
use crate::protocol_log::Violation;
use crate::revision::Revision;
use crate::spec::Address;

/// Bytes of an error body that are read.
const MAX_ERROR_BYTES: usize = 4 << 10;
/// Time to wait for the stream of server-initiated messages to open.
const LISTEN_TIMEOUT: Duration = Duration::from_millis(500);
/// Number of times that a broken stream is resumed before the pauses double. There is no maximum: the time
/// limit of the call decides.
const RESUMES_PER_DOUBLING: u32 = 20;
/// Minimum pause before a stream is resumed.
const MIN_RESUME_PAUSE: Duration = Duration::from_millis(10);
/// Pause before a stream is resumed if the server does not name one.
const RESUME_PAUSE: Duration = Duration::from_millis(500);
/// Maximum pause before a stream is resumed.
const MAX_RESUME_PAUSE: Duration = Duration::from_secs(10);
/// Time to wait for the end of a stream after its answer.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);
/// A hint for the answer of a server that sends people to a login.
const LOGIN_PAGE: &str = "; it may be a page where people log in, or not the address of the MCP server: \
                          pass --header 'Authorization: Bearer ${TOKEN}' or --auth (docs/auth.md)";
/// Environment variables that name a proxy for plain HTTP.
const PROXY_VARIABLES: &[&str] = &["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"];

/// A transport over streamable HTTP.
pub(crate) struct HttpLink {
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

struct Shared {
    client: Client,
    plain: Option<Arc<Plain>>,
    url: Url,
    headers: HeaderMap,
    login: Arc<Authorizer>,
    session: OnceLock<HeaderValue>,
    revision: OnceLock<Revision>,
    calls: Arc<PendingCalls>,
}

/// A message, with the parts of it that headers repeat from revision 2026-07-28 on.
#[derive(Clone, Copy)]
pub(crate) struct Post<'a> {
    pub(crate) bytes: &'a [u8],
    /// Its id, if it is a request.
    pub(crate) id: Option<u64>,
    pub(crate) method: &'a str,
    pub(crate) name: Option<&'a str>,
    pub(crate) headers: &'a [(HeaderName, HeaderValue)],
    /// Keeps the headers of the response.
    pub(crate) head: Option<&'a ResponseHead>,
}

/// The outcome of a POST.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Posted {
    /// The response held everything.
    Finished,
    /// The server accepted the message; an answer may come on another stream.
    Accepted,
}

/// True if requests to a URL go through a proxy.
fn has_proxy(url: &Url) -> bool {
    !is_loopback(url) && PROXY_VARIABLES.iter().any(|name| std::env::var_os(name).is_some())
}

impl HttpLink {
    pub(crate) fn new(
        address: &Address,
        calls: &Arc<PendingCalls>,
    ) -> Result<HttpLink, StartError> {
        let url = parse_url(&address.url)?;
        let headers = header_map(&address.headers)?;
        let shared = Arc::new(Shared {
            client: client(&url, address.ca_file.as_deref())?,
            plain: if has_proxy(&url) { None } else { Plain::new(&url, &headers) },
            url,
            headers,
            login: authorizer(address)?,
            session: OnceLock::new(),
            revision: OnceLock::new(),
            calls: Arc::clone(calls),
        });
        Ok(HttpLink { shared, listener: None })
    }

    /// Returns whether the server gave this session an id.
    pub(crate) fn has_session_id(&self) -> bool {
        self.shared.session.get().is_some()
    }

    /// Sets the revision that messages name.
    pub(crate) fn set_revision(&self, revision: Revision) {
        let _ = self.shared.revision.set(revision);
    }

    /// Opens the stream of server-initiated messages, if the server offers one.
    ///
    /// Returns when the server has answered, because it may send requests that belong to a call on this
    /// stream, and they are lost if the call is faster. A server that does not answer is not waited for.
    pub(crate) async fn listen(&mut self) {
        let shared = Arc::clone(&self.shared);
        // Not spawned: it must end with the listener.
        let mut opening = Box::pin(async move {
            let opened = shared.get(None).await;
            (shared, opened)
        });
        let opened = tokio::time::timeout(LISTEN_TIMEOUT, &mut opening).await;
        self.listener = Some(task::spawn(async move {
            let opened = match opened {
                Ok(opened) => opened,
                Err(_) => opening.await,
            };
            // Most servers do not offer this stream, and need not.
            if let (shared, Ok(response)) = opened {
                let _ = shared.follow(response, None).await;
            }
        }));
    }

    /// Sends a message and handles everything in the response.
    pub(crate) async fn post(&self, post: Post<'_>) -> Result<Posted, CallError> {
        self.shared.calls.sent(post.bytes);
        self.shared.post_boxed(post).await
    }

    /// Sends a message in the background.
    pub(crate) fn post_unattended(&self, bytes: Vec<u8>, method: &'static str) {
        let shared = Arc::clone(&self.shared);
        shared.calls.sent(&bytes);
        task::spawn(async move {
            let post =
                Post { bytes: &bytes, id: None, method, name: None, headers: &[], head: None };
            let _ = tokio::time::timeout(Duration::from_secs(5), shared.post(post)).await;
        });
    }

    /// Deletes the session on the server. Returns a description.
    pub(crate) async fn close(self) -> String {
        if self.shared.session.get().is_none() {
            return "the connection was closed".to_owned();
        }
        let request = self.shared.common(self.shared.client.delete(self.shared.url.clone()));
        match tokio::time::timeout(Duration::from_secs(2), request.send()).await {
            Ok(Ok(response)) => {
                format!("the session was ended (HTTP {})", response.status().as_u16())
            }
            Ok(Err(error)) => format!("the session could not be ended: {}", root_cause(&error)),
            Err(_) => "the session was ended without a response of the server".to_owned(),
        }
    }
}

impl Drop for HttpLink {
    fn drop(&mut self) {
        if let Some(listener) = &self.listener {
            listener.abort();
        }
    }
}

impl Shared {
    /// The headers of the session.
    fn session_headers(&self) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        let session = self.session.get().map(|session| (SESSION, session.clone()));
        let revision = self.revision.get().filter(|revision| **revision >= Revision::V2025_06_18);
        let revision = revision.map(|named| (PROTOCOL, HeaderValue::from_static(named.name())));
        session.into_iter().chain(revision)
    }

    fn common(&self, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        let mut headers = self.headers.clone();
        for (name, value) in self.session_headers() {
            headers.insert(name, value);
        }
        if let Some(token) = self.login.header_as_it_is() {
            headers.insert(AUTHORIZATION, token);
        }
        request.headers(headers)
    }

    /// The headers of a message.
    fn message_headers(&self, post: Post<'_>) -> Vec<(HeaderName, HeaderValue)> {
        let kinds = HeaderValue::from_static("application/json, text/event-stream");
        let mut own = Vec::with_capacity(8);
        own.push((CONTENT_TYPE, HeaderValue::from_static("application/json")));
        own.push((ACCEPT, kinds));
        if self.revision.get().is_some_and(|revision| !revision.has_handshake()) {
            own.push((METHOD, header_text(post.method)));
            own.extend(post.name.map(|name| (NAME, header_text(name))));
            own.extend_from_slice(post.headers);
        }
        own
    }

    /// Sends a message, again after a login if the server asks for one.
    async fn post(self: &Arc<Self>, post: Post<'_>) -> Result<Posted, CallError> {
        let mut answered = 0;
        loop {
            let token = self.login.header().await;
            let response = self.send(post, token.clone()).await?;
            let status = response.status().as_u16();
            let Some(challenge) = Challenge::of(status, response.headers()) else {
                if token.is_some() {
                    self.login.accepted();
                }
                return self.take(response, post).await;
            };
            if let Err(why) = self.login.answer(&challenge, token.as_ref(), answered).await {
                return Err(CallError::Http { status, said: self.calls.redactor.hidden(why) });
            }
            answered += 1;
        }
    }

    async fn send(&self, post: Post<'_>, token: Option<HeaderValue>) -> Result<Answer, CallError> {
        let mut own = self.message_headers(post);
        let response = match &self.plain {
            // Plain connections keep only the headers that the protocol needs.
            Some(plain) if post.bytes.len() <= MAX_BODY_BYTES && post.head.is_none() => {
                own.push((USER_AGENT, HeaderValue::from_static(AGENT)));
                own.extend(self.session_headers());
                own.extend(token.map(|token| (AUTHORIZATION, token)));
                let headers = self.headers.iter().chain(own.iter().map(|(name, of)| (name, of)));
                let sent = plain.post(headers, post.bytes).await;
                let sent = sent.map_err(|error| plain_error(&error, &self.calls))?;
                for _ in 0..sent.hangups {
                    self.calls.violation(Violation::Hangup);
                }
                Answer::Plain(sent)
            }
            _ => {
                let request = self.common(self.client.post(self.url.clone()));
                let request =
                    own.iter().fold(request, |request, (name, value)| request.header(name, value));
                let sent = request.body(post.bytes.to_vec()).send().await;
                Answer::Full(sent.map_err(|error| connection_error(&error, &self.calls))?)
            }
        };
        Ok(response)
    }

    async fn take(
        self: &Arc<Self>,
        mut response: Answer,
        post: Post<'_>,
    ) -> Result<Posted, CallError> {
        if let Some(head) = post.head {
            head.set(response.headers());
        }
        let status = response.status();
        if !status.is_success() {
            return self.error_status(response, post).await;
        }
        if post.method == "initialize"
            && let Some(session) = response.headers().get(SESSION)
        {
            let mut session = session.clone();
            session.set_sensitive(true);
            let _ = self.session.set(session);
        }
        let kind = content_type(response.headers());
        if kind == "text/event-stream" {
            self.follow(response, post.id).await?;
            return Ok(Posted::Finished);
        }
        let accepted = status == StatusCode::ACCEPTED;
        if kind == "application/json" {
            let body = self.body(&mut response).await?;
            if !body.trim_ascii().is_empty() {
                self.receive(&body, Instant::now(), post.id);
                return Ok(if accepted { Posted::Accepted } else { Posted::Finished });
            }
        }
        // Only this status announces an answer on another stream, and only a request needs one.
        if accepted || post.id.is_none() {
            return Ok(Posted::Accepted);
        }
        let empty = kind == "application/json"
            || kind.is_empty() && self.body(&mut response).await?.trim_ascii().is_empty();
        let status = status.as_u16();
        Err(CallError::invalid(if empty {
            format!("the answer has no body (HTTP status {status})")
        } else if kind.is_empty() {
            "the answer has no content type; it must be JSON or an event stream".to_owned()
        } else {
            let kind = quoted(&kind);
            let page = if kind == "text/html" { LOGIN_PAGE } else { "" };
            format!("the answer has the content type {kind}, not JSON or an event stream{page}")
        }))
    }

    /// Reads a stream of events to its end or to the answer of its request. A stream that breaks before is
    /// resumed if its events have ids, as the protocol demands.
    async fn follow(
        self: &Arc<Self>,
        mut response: Answer,
        request: Option<u64>,
    ) -> Result<(), CallError> {
        let mut resumed = 0_u32;
        let mut last_id: Option<String> = None;
        loop {
            let mut events = EventStream::default();
            let end = self.events(&mut response, &mut events, request).await;
            if self.is_answered(request) {
                self.drain(response, events).await;
                return end;
            }
            last_id = events.last_id.take().or(last_id);
            let Some(id) = &last_id else { return end };
            let wait = events.retry_milliseconds.map_or(RESUME_PAUSE, Duration::from_millis);
            tokio::time::sleep(pause(wait, resumed)).await;
            resumed += 1;
            response = match self.get(Some(id)).await {
                Ok(response) => response,
                // If it cannot be resumed, the end of the stream is the error.
                Err(_) => return end,
            };
        }
    }

    fn is_answered(&self, request: Option<u64>) -> bool {
        request.is_some_and(|id| !self.calls.is_awaited(id))
    }

    /// Handles events until the stream ends or the request is answered.
    async fn events(
        self: &Arc<Self>,
        response: &mut Answer,
        events: &mut EventStream,
        request: Option<u64>,
    ) -> Result<(), CallError> {
        while let Some(bytes) = response.chunk(&self.calls).await? {
            self.take_events(&bytes, events)?;
            if self.is_answered(request) {
                return Ok(());
            }
        }
        Ok(())
    }

    fn take_events(
        self: &Arc<Self>,
        bytes: &[u8],
        events: &mut EventStream,
    ) -> Result<(), CallError> {
        let limit = self.calls.limits.message_bytes;
        let arrived = Instant::now();
        let taken = events.push(bytes, limit, |event| {
            if event.kind == "message" && !event.data.is_empty() {
                self.receive(&event.data, arrived, None);
            }
        });
        taken.map_err(|_| CallError::TooLarge { limit, what: "bytes" })
    }

    /// Reads a stream to its end after its answer, so that its connection can be reused. This happens in the
    /// background.
    async fn drain(self: &Arc<Self>, mut response: Answer, mut events: EventStream) {
        // Nearly always the end came with the answer.
        let next = poll_fn(|context| Poll::Ready(pin!(response.chunk(&self.calls)).poll(context)));
        match next.await {
            Poll::Ready(Ok(None) | Err(_)) => return,
            Poll::Ready(Ok(Some(bytes))) if self.take_events(&bytes, &mut events).is_err() => {
                return;
            }
            Poll::Ready(Ok(Some(_))) | Poll::Pending => {}
        }
        let shared = Arc::clone(self);
        task::spawn(async move {
            let rest = shared.events(&mut response, &mut events, None);
            let _ = tokio::time::timeout(DRAIN_TIMEOUT, rest).await;
        });
    }

    async fn get(&self, last_event: Option<&str>) -> Result<Answer, CallError> {
        let mut request = self
            .common(self.client.get(self.url.clone()))
            .header(ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(id) = last_event {
            request = request.header(LAST_EVENT, id);
        }
        let response =
            request.send().await.map_err(|error| connection_error(&error, &self.calls))?;
        let kind = content_type(response.headers());
        if !response.status().is_success() || kind != "text/event-stream" {
            let status = response.status().as_u16();
            return Err(CallError::Http { status, said: String::new() });
        }
        Ok(Answer::Full(response))
    }

    /// Handles a message; `body_of` as in [`PendingCalls::receive`].
    fn receive(self: &Arc<Self>, bytes: &[u8], arrived: Instant, body_of: Option<u64>) {
        for reply in self.calls.receive(bytes, arrived, body_of) {
            let shared = Arc::clone(self);
            task::spawn(async move {
                // A reply has neither method nor name for headers to repeat.
                let (method, name) = ("", None);
                let post = Post { bytes: &reply, id: None, method, name, headers: &[], head: None };
                let _ =
                    tokio::time::timeout(Duration::from_secs(30), shared.post_boxed(post)).await;
            });
        }
    }

    /// [`Shared::post`] in a box, because it calls itself, and because of its size.
    fn post_boxed<'a>(
        self: &'a Arc<Self>,
        post: Post<'a>,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<Posted, CallError>> + Send + 'a>> {
        Box::pin(self.post(post))
    }

    async fn body(&self, response: &mut Answer) -> Result<Vec<u8>, CallError> {
        let limit = self.calls.limits.message_bytes;
        let mut body = Vec::new();
        while let Some(bytes) = response.chunk(&self.calls).await? {
            if body.len() + bytes.len() > limit {
                return Err(CallError::TooLarge { limit, what: "bytes" });
            }
            body.extend_from_slice(&bytes);
        }
        Ok(body)
    }

    async fn error_status(
        self: &Arc<Self>,
        mut response: Answer,
        post: Post<'_>,
    ) -> Result<Posted, CallError> {
        let status = response.status();
        // From 2026-07-28 on, protocol errors have a status of their own.
        let stateless = self.revision.get().is_some_and(|revision| !revision.has_handshake());
        if stateless && content_type(response.headers()) == "application/json" {
            let body = self.body(&mut response).await?;
            if crate::wire::id_in(&body).is_some() {
                self.receive(&body, Instant::now(), post.id);
                return Ok(Posted::Finished);
            }
            let said = quoted(&self.calls.redactor.hide(&String::from_utf8_lossy(&body)));
            return Err(CallError::Http { status: status.as_u16(), said });
        }
        if status == StatusCode::NOT_FOUND && self.session.get().is_some() {
            let why = "the server ended the session (HTTP 404)".to_owned();
            let gone = CallError::Expired { why };
            self.calls.end(&gone);
            return Err(gone);
        }
        Err(status_error(response, &self.calls).await)
    }
}

/// The pause before a stream is resumed, given the wish of the server. It grows with the number of times.
fn pause(asked: Duration, resumed: u32) -> Duration {
    let doublings = (resumed / RESUMES_PER_DOUBLING).min(16);
    let asked = asked.clamp(MIN_RESUME_PAUSE, MAX_RESUME_PAUSE);
    (asked * (1 << doublings)).min(MAX_RESUME_PAUSE)
}

/// A response whose head has been read.
pub(crate) enum Answer {
    /// From the client with TLS and proxies.
    Full(Response),
    /// From a plain connection.
    Plain(PlainResponse),
}

impl Answer {
    fn status(&self) -> StatusCode {
        match self {
            Answer::Full(response) => response.status(),
            Answer::Plain(response) => response.status,
        }
    }

    fn headers(&self) -> &HeaderMap {
        match self {
            Answer::Full(response) => response.headers(),
            Answer::Plain(response) => &response.headers,
        }
    }

    /// The next part of the body; `None` at its end.
    async fn chunk(&mut self, calls: &PendingCalls) -> Result<Option<Bytes>, CallError> {
        match self {
            Answer::Full(response) => {
                response.chunk().await.map_err(|error| connection_error(&error, calls))
            }
            Answer::Plain(response) => {
                response.chunk().await.map_err(|error| plain_error(&error, calls))
            }
        }
    }
}

async fn start_of_body(mut response: Answer, calls: &PendingCalls) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(bytes)) = response.chunk(calls).await {
        body.extend_from_slice(&bytes);
        if body.len() > MAX_ERROR_BYTES {
            break;
        }
    }
    body
}

/// The error for an error status.
pub(crate) async fn status_error(response: Answer, calls: &PendingCalls) -> CallError {
    let status = response.status();
    let header = |name: &HeaderName| {
        response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
    };
    let detail = if status.is_redirection() {
        header(&LOCATION).map(|to| {
            let login = ["login", "signin", "sign-in", "oauth", "authorize"];
            let is_login = login.iter().any(|word| to.to_ascii_lowercase().contains(word));
            let page = if is_login { LOGIN_PAGE } else { "" };
            format!("redirect to {}, which is not followed{page}", quoted(&to))
        })
    } else {
        header(&RETRY_AFTER).map(|after| format!("retry after {after}"))
    };
    let said = match detail {
        Some(detail) => detail,
        None => String::from_utf8_lossy(&start_of_body(response, calls).await).into_owned(),
    };
    CallError::Http { status: status.as_u16(), said: quoted(&calls.redactor.hide(&said)) }
}

const NO_CONNECTION: &str = "cannot connect";
const NO_ANSWER: &str = "the connection failed";
const NO_END: &str = "the connection ended in the middle of the answer";

/// The error for a failed connection.
pub(crate) fn connection_error(error: &reqwest::Error, calls: &PendingCalls) -> CallError {
    let what = if error.is_connect() {
        NO_CONNECTION
    } else if error.is_body() || error.is_decode() {
        NO_END
    } else {
        NO_ANSWER
    };
    failed(what, &root_cause(error), calls)
}

fn plain_error(error: &PlainError, calls: &PendingCalls) -> CallError {
    let (what, error) = match error {
        PlainError::Connect(error) => (NO_CONNECTION, error),
        PlainError::Exchange(error) => (NO_ANSWER, error),
        PlainError::Body(error) => (NO_END, error),
    };
    failed(what, &error.to_string(), calls)
}

fn failed(what: &str, cause: &str, calls: &PendingCalls) -> CallError {
    let why = format!("{what}: {cause}");
    CallError::Transport { why: quoted(&calls.redactor.hide(&why)) }
}

/// The content type without its parameters.
pub(crate) fn content_type(headers: &HeaderMap) -> String {
    let header = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = header.unwrap_or_default().split(';').next().unwrap_or_default();
    kind.trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_follow_the_server_and_then_grow() {
        let milliseconds = Duration::from_millis;
        assert_eq!(pause(milliseconds(100), 0), milliseconds(100));
        assert_eq!(pause(milliseconds(100), 19), milliseconds(100));
        assert_eq!(pause(milliseconds(100), 20), milliseconds(200));
        assert_eq!(pause(milliseconds(0), 0), MIN_RESUME_PAUSE);
        assert_eq!(pause(milliseconds(100), u32::MAX), MAX_RESUME_PAUSE);
        assert_eq!(pause(milliseconds(u64::MAX), u32::MAX), MAX_RESUME_PAUSE);
    }
}
