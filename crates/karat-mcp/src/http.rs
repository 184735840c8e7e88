//! Streamable HTTP, as a client.
//!
//! Each message is a POST of its own, driven by whoever sends it: its answer is a JSON body or a
//! stream of events, and everything in it goes to the board. Redirects are not followed, sessions are
//! not started anew behind anyone's back, and a status that is no success is an error of its own kind.
//! Short messages to a plain address go the short way ([`Plain`]); everything else goes by the client
//! that knows TLS and proxies.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use karat_io::http::{is_loopback, root_cause};
use reqwest::header::{
    ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER, USER_AGENT,
};
use reqwest::{Client, Response, StatusCode, Url, redirect};
use tokio::task::JoinHandle;

use crate::board::Board;
use crate::conduct::Oddity;
use crate::error::{CallError, StartError, quoted};
use crate::event_stream::EventStream;
use crate::http_plain::{LONGEST_BODY, Plain, PlainError, PlainResponse};
use crate::revision::Revision;

/// Who we are.
const AGENT: &str = concat!("karat/", env!("CARGO_PKG_VERSION"));
pub(crate) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const PROTOCOL: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// How much of the body of an error is read.
const ERROR_BODY: usize = 4 << 10;
/// How long the stream of the server's own is waited for.
const LISTENING_WITHIN: Duration = Duration::from_millis(500);
/// How often a stream that broke off is taken up again before the pauses double. There is no end to it:
/// the time for the call decides.
const RESUMED_AT_THE_SAME_PACE: u32 = 20;
/// The shortest pause before a stream is taken up again.
const RESUME_AFTER_AT_LEAST: Duration = Duration::from_millis(10);
/// How long to wait before a stream is taken up again when the server does not say.
const RESUME_AFTER: Duration = Duration::from_millis(500);
/// The longest that a server may make a client wait before a stream is taken up again.
const RESUME_AFTER_AT_MOST: Duration = Duration::from_secs(10);
/// How long the end of a stream is waited for after the answer has come.
const END_WITHIN: Duration = Duration::from_secs(1);
/// Where the environment names a proxy for plain addresses.
const PROXIES: &[&str] = &["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"];

/// The way to a server at an address.
pub(crate) struct HttpLink {
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

struct Shared {
    client: Client,
    plain: Option<Arc<Plain>>,
    url: Url,
    headers: HeaderMap,
    session: OnceLock<HeaderValue>,
    revision: OnceLock<Revision>,
    board: Arc<Board>,
}

/// A message, with what the headers of revision 2026-07-28 repeat of it.
#[derive(Clone, Copy)]
pub(crate) struct Post<'a> {
    pub(crate) bytes: &'a [u8],
    /// The id of the request that it is.
    pub(crate) id: Option<u64>,
    pub(crate) method: &'a str,
    pub(crate) name: Option<&'a str>,
    pub(crate) headers: &'a [(HeaderName, HeaderValue)],
}

/// What a POST came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Posted {
    /// Everything that the server had to say came with it.
    Finished,
    /// The server took the message; an answer may come another way.
    Accepted,
}

/// The HTTP client of a session: no redirects, no time-outs of its own, and no proxy on the way to
/// this machine.
pub(crate) fn client(url: &Url) -> Result<Client, StartError> {
    let mut builder =
        Client::builder().redirect(redirect::Policy::none()).tcp_nodelay(true).user_agent(AGENT);
    if is_loopback(url) {
        builder = builder.no_proxy();
    }
    if url.scheme() == "http" {
        // Never used without redirects, and reading the certificates of the system takes longer than
        // a whole suite of calls.
        builder = builder.tls_certs_only([]);
    }
    builder.build().map_err(|error| StartError::NotStarted { why: root_cause(&error) })
}

pub(crate) fn parse_url(url: &str) -> Result<Url, StartError> {
    Url::parse(url).map_err(|error| StartError::Spec { why: format!("the url is wrong: {error}") })
}

/// Whether the way to an address leads over a proxy.
fn has_proxy(url: &Url) -> bool {
    !is_loopback(url) && PROXIES.iter().any(|name| std::env::var_os(name).is_some())
}

/// The headers of a spec, ready to be sent.
pub(crate) fn header_map(headers: &BTreeMap<String, String>) -> Result<HeaderMap, StartError> {
    karat_io::http::header_map(headers).map_err(|why| StartError::Spec { why })
}

impl HttpLink {
    pub(crate) fn new(
        url: &str,
        headers: &BTreeMap<String, String>,
        board: &Arc<Board>,
    ) -> Result<HttpLink, StartError> {
        let url = parse_url(url)?;
        let headers = header_map(headers)?;
        let shared = Arc::new(Shared {
            client: client(&url)?,
            plain: if has_proxy(&url) { None } else { Plain::new(&url, &headers) },
            url,
            headers,
            session: OnceLock::new(),
            revision: OnceLock::new(),
            board: Arc::clone(board),
        });
        Ok(HttpLink { shared, listener: None })
    }

    /// From now on messages name this revision.
    pub(crate) fn speak(&self, revision: Revision) {
        let _ = self.shared.revision.set(revision);
    }

    /// Listens for what the server says of its own accord, where it offers that.
    ///
    /// Ready when the server has answered: what it asks during a call may go to this stream, and is
    /// lost if the call is faster. A server that does not answer is not waited for.
    pub(crate) async fn listen(&mut self) {
        let shared = Arc::clone(&self.shared);
        // Not a task of its own: it must end with the listener.
        let mut opening = Box::pin(async move {
            let opened = shared.get(None).await;
            (shared, opened)
        });
        let opened = tokio::time::timeout(LISTENING_WITHIN, &mut opening).await;
        self.listener = Some(tokio::spawn(async move {
            let opened = match opened {
                Ok(opened) => opened,
                Err(_) => opening.await,
            };
            // Most servers offer no such stream; that is their right and no fault.
            if let (shared, Ok(response)) = opened {
                let _ = shared.follow(response, None).await;
            }
        }));
    }

    /// Sends a message and takes in what comes back with it.
    pub(crate) async fn post(&self, post: Post<'_>) -> Result<Posted, CallError> {
        self.shared.board.sent(post.bytes);
        self.shared.post(post).await
    }

    /// Sends a message that nobody waits for.
    pub(crate) fn post_unattended(&self, bytes: Vec<u8>, method: &'static str) {
        let shared = Arc::clone(&self.shared);
        shared.board.sent(&bytes);
        tokio::spawn(async move {
            let post = Post { bytes: &bytes, id: None, method, name: None, headers: &[] };
            let _ = tokio::time::timeout(Duration::from_secs(5), shared.post(post)).await;
        });
    }

    /// Tells the server that the session is over.
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
            Err(_) => "the session was ended, and the server did not say that it heard".to_owned(),
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
    /// The headers that every message has of the session.
    fn standing(&self) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        let session = self.session.get().map(|session| (SESSION, session.clone()));
        let revision = self.revision.get().filter(|revision| **revision >= Revision::V2025_06_18);
        let revision = revision.map(|named| (PROTOCOL, HeaderValue::from_static(named.name())));
        session.into_iter().chain(revision)
    }

    fn common(&self, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        let mut headers = self.headers.clone();
        for (name, value) in self.standing() {
            headers.insert(name, value);
        }
        request.headers(headers)
    }

    /// The headers that a message has of its own.
    fn own(&self, post: Post<'_>) -> Vec<(HeaderName, HeaderValue)> {
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

    async fn post(self: &Arc<Self>, post: Post<'_>) -> Result<Posted, CallError> {
        let mut own = self.own(post);
        let response = match &self.plain {
            Some(plain) if post.bytes.len() <= LONGEST_BODY => {
                own.push((USER_AGENT, HeaderValue::from_static(AGENT)));
                own.extend(self.standing());
                let headers = self.headers.iter().chain(own.iter().map(|(name, of)| (name, of)));
                let sent = plain.post(headers, post.bytes).await;
                let sent = sent.map_err(|error| broken_plain(&error, &self.board))?;
                for _ in 0..sent.hangups {
                    self.board.saw(Oddity::Hangup);
                }
                Answer::Plain(sent)
            }
            _ => {
                let request = self.common(self.client.post(self.url.clone()));
                let request =
                    own.iter().fold(request, |request, (name, value)| request.header(name, value));
                let sent = request.body(post.bytes.to_vec()).send().await;
                Answer::Whole(sent.map_err(|error| broken(&error, &self.board))?)
            }
        };
        self.take(response, post).await
    }

    async fn take(
        self: &Arc<Self>,
        mut response: Answer,
        post: Post<'_>,
    ) -> Result<Posted, CallError> {
        let status = response.status();
        if !status.is_success() {
            return self.refused(response, post).await;
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
        // Only this status says that an answer comes another way, and what is no request wants none.
        if accepted || post.id.is_none() {
            return Ok(Posted::Accepted);
        }
        let empty = kind == "application/json"
            || kind.is_empty() && self.body(&mut response).await?.trim_ascii().is_empty();
        let status = status.as_u16();
        Err(CallError::invalid(if empty {
            format!("the answer has no body (HTTP status {status})")
        } else if kind.is_empty() {
            "the answer has no content type, and must have that of JSON or an event stream"
                .to_owned()
        } else {
            let kind = quoted(&kind);
            format!("the answer has the content type {kind}, not JSON or an event stream")
        }))
    }

    /// Reads a stream of events to its end, or to the answer of the request that it is for. A stream that
    /// breaks off before and gave ids is taken up again, as the protocol has it.
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
                self.let_end(response, events).await;
                return end;
            }
            last_id = events.last_id.take().or(last_id);
            let Some(id) = &last_id else { return end };
            let wait = events.retry_milliseconds.map_or(RESUME_AFTER, Duration::from_millis);
            tokio::time::sleep(pause(wait, resumed)).await;
            resumed += 1;
            response = match self.get(Some(id)).await {
                Ok(response) => response,
                // Without a way to go on, how the stream ended is what counts.
                Err(_) => return end,
            };
        }
    }

    fn is_answered(&self, request: Option<u64>) -> bool {
        request.is_some_and(|id| !self.board.is_awaited(id))
    }

    /// Takes events in until the stream ends or the request is answered.
    async fn events(
        self: &Arc<Self>,
        response: &mut Answer,
        events: &mut EventStream,
        request: Option<u64>,
    ) -> Result<(), CallError> {
        while let Some(bytes) = response.chunk(&self.board).await? {
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
        let limit = self.board.limits.message_bytes;
        let arrived = Instant::now();
        let taken = events.push(bytes, limit, |event| {
            if event.kind == "message" && !event.data.is_empty() {
                self.receive(&event.data, arrived, None);
            }
        });
        taken.map_err(|_| CallError::TooLarge { limit, what: "bytes" })
    }

    /// Lets a stream come to its end after its answer: broken off, it would take its connection with it.
    /// Nobody waits for that.
    async fn let_end(self: &Arc<Self>, mut response: Answer, mut events: EventStream) {
        // Nearly always the end came along with the answer.
        let next = poll_fn(|context| Poll::Ready(pin!(response.chunk(&self.board)).poll(context)));
        match next.await {
            Poll::Ready(Ok(None) | Err(_)) => return,
            Poll::Ready(Ok(Some(bytes))) if self.take_events(&bytes, &mut events).is_err() => {
                return;
            }
            Poll::Ready(Ok(Some(_))) | Poll::Pending => {}
        }
        let shared = Arc::clone(self);
        tokio::spawn(async move {
            let rest = shared.events(&mut response, &mut events, None);
            let _ = tokio::time::timeout(END_WITHIN, rest).await;
        });
    }

    async fn get(&self, last_event: Option<&str>) -> Result<Answer, CallError> {
        let mut request = self
            .common(self.client.get(self.url.clone()))
            .header(ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(id) = last_event {
            request = request.header(LAST_EVENT, id);
        }
        let response = request.send().await.map_err(|error| broken(&error, &self.board))?;
        let kind = content_type(response.headers());
        if !response.status().is_success() || kind != "text/event-stream" {
            let status = response.status().as_u16();
            return Err(CallError::Http { status, said: String::new() });
        }
        Ok(Answer::Whole(response))
    }

    /// Takes a message in; `body_of` as [`Board::receive`] has it.
    fn receive(self: &Arc<Self>, bytes: &[u8], arrived: Instant, body_of: Option<u64>) {
        for reply in self.board.receive(bytes, arrived, body_of) {
            let shared = Arc::clone(self);
            tokio::spawn(async move {
                // An answer of ours is a message of its own; its headers repeat nothing.
                let post = Post { bytes: &reply, id: None, method: "", name: None, headers: &[] };
                let _ =
                    tokio::time::timeout(Duration::from_secs(30), shared.post_boxed(post)).await;
            });
        }
    }

    /// [`Shared::post`] behind a pointer: it is called from within itself.
    fn post_boxed<'a>(
        self: &'a Arc<Self>,
        post: Post<'a>,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<Posted, CallError>> + Send + 'a>> {
        Box::pin(self.post(post))
    }

    async fn body(&self, response: &mut Answer) -> Result<Vec<u8>, CallError> {
        let limit = self.board.limits.message_bytes;
        let mut body = Vec::new();
        while let Some(bytes) = response.chunk(&self.board).await? {
            if body.len() + bytes.len() > limit {
                return Err(CallError::TooLarge { limit, what: "bytes" });
            }
            body.extend_from_slice(&bytes);
        }
        Ok(body)
    }

    async fn refused(
        self: &Arc<Self>,
        mut response: Answer,
        post: Post<'_>,
    ) -> Result<Posted, CallError> {
        let status = response.status();
        // From 2026-07-28 on, protocol errors come with a status of their own.
        let stateless = self.revision.get().is_some_and(|revision| !revision.has_handshake());
        if stateless && content_type(response.headers()) == "application/json" {
            let body = self.body(&mut response).await?;
            if crate::wire::id_in(&body).is_some() {
                self.receive(&body, Instant::now(), post.id);
                return Ok(Posted::Finished);
            }
            let said = quoted(&self.board.redactor.hide(&String::from_utf8_lossy(&body)));
            return Err(CallError::Http { status: status.as_u16(), said });
        }
        if status == StatusCode::NOT_FOUND && self.session.get().is_some() {
            let gone = CallError::Closed { why: "it ended the session (HTTP 404)".to_owned() };
            self.board.end(&gone);
            return Err(gone);
        }
        Err(status_error(response, &self.board).await)
    }
}

/// How long to wait before a stream is taken up again, the server having asked for so much: in the end
/// less and less often.
fn pause(asked: Duration, resumed: u32) -> Duration {
    let doublings = (resumed / RESUMED_AT_THE_SAME_PACE).min(16);
    let asked = asked.clamp(RESUME_AFTER_AT_LEAST, RESUME_AFTER_AT_MOST);
    (asked * (1 << doublings)).min(RESUME_AFTER_AT_MOST)
}

/// An answer of which the head was read, whichever way it came.
pub(crate) enum Answer {
    /// By the client for everything.
    Whole(Response),
    /// The short way.
    Plain(PlainResponse),
}

impl Answer {
    fn status(&self) -> StatusCode {
        match self {
            Answer::Whole(response) => response.status(),
            Answer::Plain(response) => response.status,
        }
    }

    fn headers(&self) -> &HeaderMap {
        match self {
            Answer::Whole(response) => response.headers(),
            Answer::Plain(response) => &response.headers,
        }
    }

    /// The next piece of the body; none at its end.
    async fn chunk(&mut self, board: &Board) -> Result<Option<Bytes>, CallError> {
        match self {
            Answer::Whole(response) => {
                response.chunk().await.map_err(|error| broken(&error, board))
            }
            Answer::Plain(response) => {
                response.chunk().await.map_err(|error| broken_plain(&error, board))
            }
        }
    }
}

async fn start_of_body(mut response: Answer, board: &Board) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(bytes)) = response.chunk(board).await {
        body.extend_from_slice(&bytes);
        if body.len() > ERROR_BODY {
            break;
        }
    }
    body
}

/// The error for a status that is no success.
pub(crate) async fn status_error(response: Answer, board: &Board) -> CallError {
    let status = response.status();
    let header = |name: &HeaderName| {
        response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
    };
    let detail = if status.is_redirection() {
        header(&LOCATION).map(|to| format!("a redirect to {to}, which is not followed"))
    } else {
        header(&RETRY_AFTER).map(|after| format!("retry after {after}"))
    };
    let said = match detail {
        Some(detail) => detail,
        None => String::from_utf8_lossy(&start_of_body(response, board).await).into_owned(),
    };
    CallError::Http { status: status.as_u16(), said: quoted(&board.redactor.hide(&said)) }
}

const NO_CONNECTION: &str = "cannot connect";
const NO_ANSWER: &str = "the connection failed";
const NO_END: &str = "the connection broke off in the middle of the answer";

/// The error for a connection that failed.
pub(crate) fn broken(error: &reqwest::Error, board: &Board) -> CallError {
    let what = if error.is_connect() {
        NO_CONNECTION
    } else if error.is_body() || error.is_decode() {
        NO_END
    } else {
        NO_ANSWER
    };
    failed(what, &root_cause(error), board)
}

fn broken_plain(error: &PlainError, board: &Board) -> CallError {
    let (what, error) = match error {
        PlainError::Connect(error) => (NO_CONNECTION, error),
        PlainError::Exchange(error) => (NO_ANSWER, error),
        PlainError::Body(error) => (NO_END, error),
    };
    failed(what, &error.to_string(), board)
}

fn failed(what: &str, cause: &str, board: &Board) -> CallError {
    let why = format!("{what}: {cause}");
    CallError::Transport { why: quoted(&board.redactor.hide(&why)) }
}

/// The content type without its parameters.
pub(crate) fn content_type(headers: &HeaderMap) -> String {
    let header = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = header.unwrap_or_default().split(';').next().unwrap_or_default();
    kind.trim().to_ascii_lowercase()
}

/// Text as a header value; what a header cannot carry travels in Base64, as the protocol has it.
pub(crate) fn header_text(text: &str) -> HeaderValue {
    let plain = text.bytes().all(|byte| (0x20..=0x7e).contains(&byte))
        && text.trim_matches([' ', '\t']) == text
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    let value = if plain { text.to_owned() } else { format!("=?base64?{}?=", BASE64.encode(text)) };
    HeaderValue::from_str(&value).unwrap_or(HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_taken_up_again_as_the_server_asks_and_then_less_and_less_often() {
        let milliseconds = Duration::from_millis;
        assert_eq!(pause(milliseconds(100), 0), milliseconds(100));
        assert_eq!(pause(milliseconds(100), 19), milliseconds(100));
        assert_eq!(pause(milliseconds(100), 20), milliseconds(200));
        assert_eq!(pause(milliseconds(0), 0), RESUME_AFTER_AT_LEAST);
        assert_eq!(pause(milliseconds(100), u32::MAX), RESUME_AFTER_AT_MOST);
        assert_eq!(pause(milliseconds(u64::MAX), u32::MAX), RESUME_AFTER_AT_MOST);
    }

    #[test]
    fn names_that_headers_cannot_carry_are_encoded() {
        assert_eq!(header_text("get_weather"), "get_weather");
        assert_eq!(header_text("wetter für"), "=?base64?d2V0dGVyIGbDvHI=?=");
        assert_eq!(header_text(" x"), "=?base64?IHg=?=");
    }
}
