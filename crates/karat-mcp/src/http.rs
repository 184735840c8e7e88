//! Streamable HTTP, as a client.
//!
//! Each message is a POST of its own, driven by whoever sends it: its answer is a JSON body or a
//! stream of events, and everything in it goes to the board. Redirects are not followed, sessions are
//! not started anew behind anyone's back, and a status that is no success is an error of its own kind.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use reqwest::header::{
    ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER,
};
use reqwest::{Client, Response, StatusCode, Url, redirect};
use tokio::task::JoinHandle;

use crate::board::Board;
use crate::error::{CallError, StartError, quoted};
use crate::event_stream::EventStream;
use crate::revision::Revision;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const PROTOCOL: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// How much of the body of an error is read.
const ERROR_BODY: usize = 4 << 10;
/// How long the stream of the server's own is waited for.
const LISTENING_WITHIN: Duration = Duration::from_millis(500);
/// How often a stream that broke off is taken up again for one request.
const RESUMED_AT_MOST: usize = 20;
/// How long to wait before a stream is taken up again when the server does not say.
const RESUME_AFTER: Duration = Duration::from_millis(500);
/// The longest that a server may make a client wait before a stream is taken up again.
const RESUME_AFTER_AT_MOST: Duration = Duration::from_secs(10);

/// The way to a server at an address.
pub(crate) struct HttpLink {
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

struct Shared {
    client: Client,
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
    let mut builder = Client::builder()
        .redirect(redirect::Policy::none())
        .tcp_nodelay(true)
        .user_agent(concat!("karat/", env!("CARGO_PKG_VERSION")));
    if is_this_machine(url) {
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

fn is_this_machine(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Headers of a spec as they are sent.
pub(crate) fn header_map(headers: &BTreeMap<String, String>) -> Result<HeaderMap, StartError> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let wrong = |what| StartError::Spec {
            why: format!("the {what} of header {name:?} cannot be sent"),
        };
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong("name"))?;
        let mut value = HeaderValue::from_str(value).map_err(|_| wrong("value"))?;
        value.set_sensitive(true);
        map.insert(key, value);
    }
    Ok(map)
}

/// The last of the errors within an error: the one that says what happened.
pub(crate) fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

impl HttpLink {
    pub(crate) fn new(
        url: &str,
        headers: &BTreeMap<String, String>,
        board: &Arc<Board>,
    ) -> Result<HttpLink, StartError> {
        let url = parse_url(url)?;
        let shared = Arc::new(Shared {
            client: client(&url)?,
            url,
            headers: header_map(headers)?,
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
                let _ = shared.follow(response).await;
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
            let post = Post { bytes: &bytes, method, name: None, headers: &[] };
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
    fn common(&self, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        let mut headers = self.headers.clone();
        if let Some(session) = self.session.get() {
            headers.insert(SESSION, session.clone());
        }
        if let Some(revision) = self.revision.get()
            && *revision >= Revision::V2025_06_18
        {
            headers.insert(PROTOCOL, HeaderValue::from_static(revision.name()));
        }
        request.headers(headers)
    }

    async fn post(self: &Arc<Self>, post: Post<'_>) -> Result<Posted, CallError> {
        let mut request = self
            .common(self.client.post(self.url.clone()))
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .header(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        if self.revision.get().is_some_and(|revision| !revision.has_handshake()) {
            request = request.header(METHOD, header_text(post.method));
            if let Some(name) = post.name {
                request = request.header(NAME, header_text(name));
            }
            for (name, value) in post.headers {
                request = request.header(name, value);
            }
        }
        let response =
            request.body(post.bytes.to_vec()).send().await.map_err(|error| self.broken(&error))?;
        self.take(response, post.method).await
    }

    async fn take(
        self: &Arc<Self>,
        mut response: Response,
        method: &str,
    ) -> Result<Posted, CallError> {
        let status = response.status();
        if !status.is_success() {
            return self.refused(response).await;
        }
        if method == "initialize"
            && let Some(session) = response.headers().get(SESSION)
        {
            let mut session = session.clone();
            session.set_sensitive(true);
            let _ = self.session.set(session);
        }
        let kind = content_type(&response);
        if kind == "application/json" {
            let body = self.body(&mut response).await?;
            self.receive(&body, Instant::now());
            return Ok(Posted::Finished);
        }
        if kind == "text/event-stream" {
            self.follow(response).await?;
            return Ok(Posted::Finished);
        }
        if status == StatusCode::ACCEPTED || kind.is_empty() {
            return Ok(Posted::Accepted);
        }
        let kind = quoted(&kind);
        Err(CallError::invalid(format!(
            "the answer has the content type {kind}, not JSON or an event stream"
        )))
    }

    /// Reads a stream of events to its end. A stream that breaks off and gave ids is taken up again,
    /// as the protocol has it.
    async fn follow(self: &Arc<Self>, mut response: Response) -> Result<(), CallError> {
        let mut resumed = 0;
        let mut last_id: Option<String> = None;
        loop {
            let mut events = EventStream::default();
            let end = self.events(&mut response, &mut events).await;
            last_id = events.last_id.take().or(last_id);
            let Some(id) = &last_id else { return end };
            if resumed == RESUMED_AT_MOST {
                return end;
            }
            resumed += 1;
            let wait = events.retry_milliseconds.map_or(RESUME_AFTER, Duration::from_millis);
            tokio::time::sleep(wait.min(RESUME_AFTER_AT_MOST)).await;
            response = match self.get(Some(id)).await {
                Ok(response) => response,
                // Without a way to go on, how the stream ended is what counts.
                Err(_) => return end,
            };
        }
    }

    async fn events(
        self: &Arc<Self>,
        response: &mut Response,
        events: &mut EventStream,
    ) -> Result<(), CallError> {
        let limit = self.board.limits.message_bytes;
        loop {
            match response.chunk().await {
                Ok(Some(bytes)) => {
                    let arrived = Instant::now();
                    let taken = events.push(&bytes, limit, |event| {
                        if event.kind == "message" && !event.data.is_empty() {
                            self.receive(&event.data, arrived);
                        }
                    });
                    if taken.is_err() {
                        return Err(CallError::TooLarge { limit, what: "bytes" });
                    }
                }
                Ok(None) => return Ok(()),
                Err(error) => return Err(self.broken(&error)),
            }
        }
    }

    async fn get(&self, last_event: Option<&str>) -> Result<Response, CallError> {
        let mut request = self
            .common(self.client.get(self.url.clone()))
            .header(ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(id) = last_event {
            request = request.header(LAST_EVENT, id);
        }
        let response = request.send().await.map_err(|error| self.broken(&error))?;
        if !response.status().is_success() || content_type(&response) != "text/event-stream" {
            let status = response.status().as_u16();
            return Err(CallError::Http { status, said: String::new() });
        }
        Ok(response)
    }

    fn receive(self: &Arc<Self>, bytes: &[u8], arrived: Instant) {
        for reply in self.board.receive(bytes, arrived) {
            let shared = Arc::clone(self);
            tokio::spawn(async move {
                // An answer of ours is a message of its own; its headers repeat nothing.
                let post = Post { bytes: &reply, method: "", name: None, headers: &[] };
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

    async fn body(&self, response: &mut Response) -> Result<Vec<u8>, CallError> {
        let limit = self.board.limits.message_bytes;
        let mut body = Vec::new();
        while let Some(bytes) = response.chunk().await.map_err(|error| self.broken(&error))? {
            if body.len() + bytes.len() > limit {
                return Err(CallError::TooLarge { limit, what: "bytes" });
            }
            body.extend_from_slice(&bytes);
        }
        Ok(body)
    }

    async fn refused(self: &Arc<Self>, response: Response) -> Result<Posted, CallError> {
        let status = response.status();
        // From 2026-07-28 on, protocol errors come with a status of their own.
        let stateless = self.revision.get().is_some_and(|revision| !revision.has_handshake());
        if stateless && content_type(&response) == "application/json" {
            let body = start_of_body(response).await;
            if crate::wire::id_in(&body).is_some() {
                self.receive(&body, Instant::now());
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

    fn broken(&self, error: &reqwest::Error) -> CallError {
        broken(error, &self.board)
    }
}

async fn start_of_body(mut response: Response) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(bytes)) = response.chunk().await {
        body.extend_from_slice(&bytes);
        if body.len() > ERROR_BODY {
            break;
        }
    }
    body
}

/// The error for a status that is no success.
pub(crate) async fn status_error(response: Response, board: &Board) -> CallError {
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
        None => String::from_utf8_lossy(&start_of_body(response).await).into_owned(),
    };
    CallError::Http { status: status.as_u16(), said: quoted(&board.redactor.hide(&said)) }
}

/// The error for a connection that failed.
pub(crate) fn broken(error: &reqwest::Error, board: &Board) -> CallError {
    let what = if error.is_connect() {
        "cannot connect"
    } else if error.is_body() || error.is_decode() {
        "the connection broke off in the middle of the answer"
    } else {
        "the connection failed"
    };
    let why = format!("{what}: {}", root_cause(error));
    CallError::Transport { why: quoted(&board.redactor.hide(&why)) }
}

/// The content type without its parameters.
pub(crate) fn content_type(response: &Response) -> String {
    let header = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = header.unwrap_or_default().split(';').next().unwrap_or_default();
    kind.trim().to_ascii_lowercase()
}

/// Text as a header value; what a header cannot carry travels in Base64, as the protocol has it.
pub(crate) fn header_text(text: &str) -> HeaderValue {
    let plain = text.bytes().all(|byte| (0x20..=0x7e).contains(&byte))
        && text.trim_matches([' ', '\t']) == text
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    let value = if plain { text.to_owned() } else { format!("=?base64?{}?=", base64(text)) };
    HeaderValue::from_str(&value).unwrap_or(HeaderValue::from_static(""))
}

fn base64(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut encoded = String::with_capacity(text.len().div_ceil(3) * 4);
    for group in text.as_bytes().chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let index = (bits >> (18 - 6 * digit)) & 63;
            let filled = digit <= group.len();
            encoded.push(if filled { char::from(DIGITS[index as usize]) } else { '=' });
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_headers_cannot_carry_are_encoded() {
        assert_eq!(header_text("get_weather"), "get_weather");
        assert_eq!(header_text("wetter für"), "=?base64?d2V0dGVyIGbDvHI=?=");
        assert_eq!(header_text(" x"), "=?base64?IHg=?=");
        assert_eq!(base64("a"), "YQ==");
        assert_eq!(base64("abc"), "YWJj");
    }
}
