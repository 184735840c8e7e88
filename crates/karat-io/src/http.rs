//! The HTTP client of adapters and model endpoints, and what every HTTP client here shares.
//!
//! A request has a time limit and its answer a size limit. Redirects are not followed unless asked for,
//! headers are sent to the origin of the request only, and a request to this machine never goes through a
//! proxy that the environment names. Errors are [`Failure`]s with their class, and no message holds the
//! value of a header that came from a variable. Nothing here retries; the caller does, and honours
//! [`Failure::retry_after`].

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use reqwest::header::{HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::{Method, StatusCode, Url, redirect};

use crate::exchange::quoted;
use crate::failure::{Failure, FailureClass};
use crate::input::{Limits, read_raw};
use crate::interpolate::{self, Variables};
use crate::redact::Redactor;
use crate::secrets;
use crate::text::{clip, printable};

/// Columns of an error body that a message quotes.
const QUOTED: usize = 200;
/// Bytes of an error body that are read for that.
const MAX_ERROR_BYTES: usize = 4 << 10;

/// Settings of a [`Client`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Time for a request, from connecting to the last byte, with its redirects.
    pub timeout: Duration,
    /// Maximum size of an answer in bytes.
    pub max_body: usize,
    /// Maximum number of redirects to follow.
    pub redirects: usize,
    /// Headers of every request. Values may hold variables ([`crate::interpolate`]). After a redirect to
    /// another scheme, host or port they are not sent.
    pub headers: BTreeMap<String, String>,
}

impl Default for Options {
    /// 30 seconds, 16 MiB, no redirects, no headers.
    fn default() -> Options {
        Options {
            timeout: Duration::from_secs(30),
            max_body: 16 << 20,
            redirects: 0,
            headers: BTreeMap::new(),
        }
    }
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// `GET`, `POST` …
    pub method: String,
    /// An `http` or `https` URL.
    pub url: String,
    /// The body with its type, sent unchanged.
    pub body: Option<Body>,
}

/// The body of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// The content type, such as `application/json`.
    pub content_type: String,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl Request {
    /// A request without a body.
    pub fn get(url: impl Into<String>) -> Request {
        Request { method: "GET".to_owned(), url: url.into(), body: None }
    }

    /// A request with a JSON body.
    pub fn post_json(url: impl Into<String>, body: &serde_json::Value) -> Request {
        Request { method: "POST".to_owned(), url: url.into(), body: Some(Body::json(body)) }
    }
}

impl Body {
    /// A JSON body.
    pub fn json(value: &serde_json::Value) -> Body {
        Body { content_type: "application/json".to_owned(), bytes: value.to_string().into_bytes() }
    }
}

/// A successful answer: its status is below 300.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The `Content-Type` header.
    pub content_type: Option<String>,
    /// The whole body.
    pub body: Vec<u8>,
}

/// A builder of HTTP clients; every client of this process is made with it.
///
/// reqwest comes without an implementation of TLS's cryptography and needs one to be chosen first.
pub fn builder() -> reqwest::ClientBuilder {
    // An error says that it has been chosen before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
}

/// Bytes of a file of certificates that are read; the authorities of a whole system take a fifth of it.
const MAX_CERTIFICATES: u64 = 1 << 20;

/// The certificates in a file, in PEM.
///
/// # Errors
/// If it cannot be read or holds none.
pub fn certificates(file: &Path) -> Result<Vec<reqwest::Certificate>, String> {
    let wrong = |why: &str| format!("{}: {why}", file.display());
    let limits = Limits { bytes: MAX_CERTIFICATES, ..Limits::default() };
    let bytes = read_raw(file, &limits).map_err(|error| error.to_string())?;
    match reqwest::Certificate::from_pem_bundle(&bytes) {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(wrong("no certificate found; it must be in PEM format")),
    }
}

/// An HTTP client. Connections are kept and shared between requests and clones.
///
/// ```
/// use karat_io::http::{Client, Options, Request};
/// use karat_io::http_server::{ServerLimits, serve};
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// let url = format!("http://{}/", listener.local_addr()?);
/// let router = axum::Router::new().route("/", axum::routing::get(async || "hello"));
/// let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
/// let server = tokio::spawn(serve(listener, router, ServerLimits::default(), stopped));
///
/// let client = Client::new(&Options::default())?;
/// let answer = client.send(&Request::get(&url)).await.map_err(|failure| failure.message)?;
/// assert_eq!((answer.status, answer.body.as_slice()), (200, &b"hello"[..]));
///
/// let small = Client::new(&Options { max_body: 2, ..Options::default() })?;
/// assert!(small.send(&Request::get(&url)).await.is_err());
/// drop(stop);
/// server.await?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Client {
    /// For this machine, without a proxy.
    direct: reqwest::Client,
    /// For other machines, through the proxy of the environment if it names one.
    outward: reqwest::Client,
    headers: HeaderMap,
    timeout: Duration,
    redirects: usize,
    max_body: usize,
    redactor: Redactor,
}

impl Client {
    /// Makes a client. Variables in header values are read from the environment here, once;
    /// `${workspaceFolder}` is the current folder.
    ///
    /// # Errors
    /// If a header cannot be sent or one of its variables is not set.
    pub fn new(options: &Options) -> Result<Client, String> {
        let here = std::env::current_dir().unwrap_or_default();
        Client::with_variables(options, &Variables::new(&interpolate::environment, &here))
    }

    /// As [`Client::new`], with variables from elsewhere, or another `${workspaceFolder}`.
    ///
    /// # Errors
    /// As [`Client::new`].
    pub fn with_variables(options: &Options, variables: &Variables<'_>) -> Result<Client, String> {
        let mut redactor = Redactor::default();
        let mut filled = BTreeMap::new();
        for (name, text) in &options.headers {
            let value =
                variables.interpolate(text).map_err(|error| format!("header {name:?}: {error}"))?;
            value.used.iter().for_each(|used| redactor.add_used(used));
            if value.used.iter().any(|used| used.from_variable)
                || secrets::is_secret(name, &value.text)
            {
                redactor.add(&value.text);
            }
            filled.insert(name.clone(), value.text);
        }
        let headers = header_map(&filled)?;
        let build = |builder: reqwest::ClientBuilder| {
            builder
                // Followed by `send`: reqwest keeps headers such as `X-API-Key` for other hosts, and
                // names the address, with the keys in it, in `Referer`.
                .redirect(redirect::Policy::none())
                .user_agent(concat!("karat/", env!("CARGO_PKG_VERSION")))
                .build()
                .map_err(|error| format!("cannot set up the HTTP client: {}", root_cause(&error)))
        };
        Ok(Client {
            direct: build(builder().no_proxy())?,
            outward: build(builder())?,
            headers,
            timeout: options.timeout,
            redirects: options.redirects,
            max_body: options.max_body,
            redactor,
        })
    }

    /// Sends a request and reads the whole answer.
    ///
    /// # Errors
    /// `timeout`; `transport` if there is no connection or it ends early; `refused` for a status of 400
    /// and above, with [`Failure::retry_after`] set for 429 and 503; `invalid_answer` for a redirect that
    /// is not followed and for a body that is too large.
    pub async fn send(&self, request: &Request) -> Result<Answer, Failure> {
        let invalid = |message: String| Failure::new(FailureClass::InvalidAnswer, message);
        let origin = checked_url(&request.url).map_err(invalid)?;
        let mut method = checked_method(&request.method).map_err(invalid)?;
        let (mut url, mut body) = (origin.clone(), request.body.as_ref());
        let (started, mut followed) = (Instant::now(), 0);
        loop {
            let client = if is_loopback(&url) { &self.direct } else { &self.outward };
            let left = self.timeout.saturating_sub(started.elapsed());
            let mut builder = client.request(method.clone(), url.clone()).timeout(left);
            if let Some(body) = body {
                builder = builder
                    .header(reqwest::header::CONTENT_TYPE, &body.content_type)
                    .body(body.bytes.clone());
            }
            // Last: a header that was asked for replaces what the request would have.
            if url.origin() == origin.origin() {
                builder = builder.headers(self.headers.clone());
            }
            let response = builder.send().await.map_err(|error| self.failure(error))?;
            if response.status().is_success() {
                return self.answer(response).await;
            }
            let next = redirected(&response, &url).filter(|_| followed < self.redirects);
            let Some(next) = next else { return Err(self.refusal(response).await) };
            if is_asked_for_anew(response.status(), &method) {
                (method, body) = (Method::GET, None);
            }
            url = next;
            followed += 1;
        }
    }

    async fn answer(&self, response: reqwest::Response) -> Result<Answer, Failure> {
        let status = response.status();
        let content_type = response
            .headers()
            .get(reqwest::header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned);
        let body = self.body(response).await?;
        Ok(Answer { status: status.as_u16(), content_type, body })
    }

    async fn body(&self, mut response: reqwest::Response) -> Result<Vec<u8>, Failure> {
        let mut body = Vec::new();
        while let Some(block) = response.chunk().await.map_err(|error| self.failure(error))? {
            if body.len() + block.len() > self.max_body {
                return Err(Failure::new(
                    FailureClass::InvalidAnswer,
                    format!("the answer has more than {} bytes", self.max_body),
                ));
            }
            body.extend_from_slice(&block);
        }
        Ok(body)
    }

    async fn refusal(&self, mut response: reqwest::Response) -> Failure {
        let status = response.status();
        let name = status.canonical_reason().unwrap_or("");
        let mut message = format!("HTTP {} {name}", status.as_u16()).trim_end().to_owned();
        if status.is_redirection() {
            let to = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
            let to = to.map(|to| format!(" to {}", self.redactor.hide(&quoted(to))));
            let why = match (self.redirects, redirected(&response, response.url())) {
                (0, _) => "redirects are not followed unless `redirects` is set".to_owned(),
                (_, None) => "it cannot be followed".to_owned(),
                (most, Some(_)) => format!("more than `redirects = {most}` allows"),
            };
            message.push_str(&format!("{}; {why}", to.unwrap_or_default()));
            return Failure::new(FailureClass::InvalidAnswer, message);
        }
        let busy = [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE];
        let retry_after = busy.contains(&status).then(|| {
            let header = response.headers().get(RETRY_AFTER);
            let seconds = header.and_then(|value| value.to_str().ok()?.trim().parse().ok());
            Duration::from_secs(seconds.unwrap_or(0))
        });
        let mut said = Vec::new();
        // The body only adds detail to the status, so a failure to read it is not reported.
        while let Ok(Some(block)) = response.chunk().await {
            said.extend_from_slice(&block);
            if said.len() >= MAX_ERROR_BYTES {
                break;
            }
        }
        said.truncate(MAX_ERROR_BYTES);
        let said = String::from_utf8_lossy(&said);
        if !said.trim().is_empty() {
            let said = self.redactor.hide(said.trim());
            message.push_str(&format!(": {}", clip(&printable(&said), QUOTED)));
        }
        let permanent = matches!(status.as_u16(), 401 | 403 | 404 | 405);
        Failure { retry_after, permanent, ..Failure::new(FailureClass::Refused, message) }
    }

    fn failure(&self, error: reqwest::Error) -> Failure {
        // A URL may hold a key, and the caller knows it.
        let error = error.without_url();
        let cause = quoted(&self.redactor.hide(&root_cause(&error)));
        if error.is_timeout() {
            return Failure::new(FailureClass::Timeout, "no answer in time");
        }
        let message = if error.is_connect() {
            format!("cannot connect: {cause}")
        } else if error.is_body() || error.is_decode() {
            format!("the connection ended in the middle of the answer: {cause}")
        } else {
            format!("the connection failed: {cause}")
        };
        let permanent = error.is_connect();
        Failure { permanent, ..Failure::new(FailureClass::Transport, message) }
    }

    /// Removes the secrets of this client's requests from text and values.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// For adding secrets that are not in headers, such as a key in a URL.
    pub fn redactor_mut(&mut self) -> &mut Redactor {
        &mut self.redactor
    }
}

/// Checks that requests can be sent with a method.
///
/// # Errors
/// If they cannot.
pub fn check_method(text: &str) -> Result<(), String> {
    checked_method(text).map(|_| ())
}

fn checked_method(text: &str) -> Result<Method, String> {
    Method::from_bytes(text.as_bytes()).map_err(|_| format!("{text:?} is not an HTTP method"))
}

/// The address that a redirect leads to, if requests can be sent there.
fn redirected(response: &reqwest::Response, from: &Url) -> Option<Url> {
    let statuses = [301, 302, 303, 307, 308];
    let to = response.headers().get(LOCATION)?.to_str().ok()?;
    let to = from.join(to).ok().filter(|_| statuses.contains(&response.status().as_u16()))?;
    checked_url(to.as_str()).ok()
}

/// Returns whether a redirect is followed with a `GET` without a body, as browsers and curl do.
fn is_asked_for_anew(status: StatusCode, method: &Method) -> bool {
    match status {
        StatusCode::SEE_OTHER => method != Method::HEAD,
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => method == Method::POST,
        _ => false,
    }
}

/// Checks that requests can be sent to a URL: `http` or `https`, with a host.
///
/// # Errors
/// If they cannot, with the reason.
pub fn check_url(text: &str) -> Result<(), String> {
    checked_url(text).map(|_| ())
}

fn checked_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("not a URL: {error}"))?;
    match (url.scheme(), url.host_str()) {
        ("http" | "https", Some(_)) => Ok(url),
        // The scheme is not shown: in a URL of a variable it could be any part of a secret.
        _ => Err("a URL must start with http:// or https://".to_owned()),
    }
}

/// True if a URL leads to this machine: `localhost` or a loopback address.
#[must_use]
pub fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

/// Headers ready to be sent, marked as sensitive so that no debug output shows them.
///
/// # Errors
/// If a name or value cannot be sent in a header.
pub fn header_map(headers: &BTreeMap<String, String>) -> Result<HeaderMap, String> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let wrong = |what: &str| format!("header {name:?}: {what}");
        let key = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| wrong("not a valid header name"))?;
        let mut value = HeaderValue::from_str(value)
            .map_err(|_| wrong("its value has characters that are not allowed in a header"))?;
        value.set_sensitive(true);
        map.insert(key, value);
    }
    Ok(map)
}

/// The innermost cause of an error, which is the one that says what happened.
pub fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    describe(cause.to_string())
}

/// A failure of TLS in plain English; the library shows its types.
fn describe(cause: String) -> String {
    const WORDS: [(&str, &str); 7] = [
        (
            "UnknownIssuer",
            "the issuer of the server's certificate is not trusted; add it with --ca-file FILE or the \
             variable SSL_CERT_FILE",
        ),
        (
            "CaUsedAsEndEntity",
            "the certificate of the server belongs to a certificate authority; use a server certificate signed by it",
        ),
        ("NotValidForName", "the certificate of the server is for another name"),
        ("not valid for name", "the certificate of the server is for another name"),
        ("not valid yet", "the certificate of the server is not valid yet"),
        ("expired", "the certificate of the server has expired"),
        ("InvalidContentType", "the server does not speak TLS; is it at http:// instead?"),
    ];
    let is_tls = cause.contains("certificate") || cause.contains("corrupt message");
    match WORDS.iter().find(|(sign, _)| is_tls && cause.contains(sign)) {
        Some((_, words)) => format!("{words} ({cause})"),
        None => cause,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::path::Path;

    use super::*;

    /// A server that answers each connection with the next of these texts and closes it. Returns its
    /// address and the requests that it gets.
    fn server(answers: Vec<&'static str>) -> (String, std::sync::mpsc::Receiver<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (sender, asked) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = Vec::new();
                let mut block = [0; 1024];
                while !request.windows(4).any(|four| four == b"\r\n\r\n") {
                    let read = stream.read(&mut block).unwrap();
                    request.extend_from_slice(&block[..read]);
                    if read == 0 {
                        break;
                    }
                }
                let _ = sender.send(String::from_utf8_lossy(&request).into_owned());
                if answer == "hang" {
                    std::thread::sleep(Duration::from_secs(5));
                }
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        (address, asked)
    }

    fn client(options: &Options) -> Client {
        Client::new(options).unwrap()
    }

    async fn ask(answer: &'static str) -> Result<Answer, Failure> {
        let options =
            Options { timeout: Duration::from_millis(700), max_body: 64, ..Options::default() };
        client(&options).send(&Request::get(server(vec![answer]).0)).await
    }

    #[tokio::test]
    async fn a_successful_answer_is_returned_whole() {
        let answer =
            ask("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n[]")
                .await
                .unwrap();
        assert_eq!(answer.status, 200);
        assert_eq!(answer.body, b"[]");
        assert_eq!(answer.content_type.as_deref(), Some("application/json"));
    }

    #[tokio::test]
    async fn each_kind_of_failure_has_its_class() {
        let long = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789";
        for (answer, class, message) in [
            (
                "HTTP/1.1 500 No\r\ncontent-length: 4\r\n\r\nboom",
                FailureClass::Refused,
                "HTTP 500 Internal Server Error: boom",
            ),
            (
                "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/x\r\ncontent-length: 0\r\n\r\n",
                FailureClass::InvalidAnswer,
                "redirects are not followed",
            ),
            (
                "HTTP/1.1 200 OK\r\ncontent-length: 60\r\n\r\nhalf",
                FailureClass::Transport,
                "in the middle of the answer",
            ),
            (long, FailureClass::InvalidAnswer, "more than 64 bytes"),
            ("", FailureClass::Transport, "the connection"),
            ("hang", FailureClass::Timeout, "no answer in time"),
        ] {
            let failure = ask(answer).await.unwrap_err();
            assert_eq!(failure.class, class, "{answer}: {failure:?}");
            assert!(failure.message.contains(message), "{answer}: {}", failure.message);
            assert_eq!(failure.retry_after, None);
        }
        let unreachable = Request::get("http://127.0.0.1:1/");
        let failure = client(&Options::default()).send(&unreachable).await.unwrap_err();
        assert_eq!(failure.class, FailureClass::Transport);
        assert!(failure.message.contains("cannot connect"), "{}", failure.message);
    }

    fn redirect(status: u16, to: &str) -> &'static str {
        format!("HTTP/1.1 {status} Moved\r\nlocation: {to}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n").leak()
    }

    const DONE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

    fn following(redirects: usize) -> Client {
        let headers = BTreeMap::from([("X-API-Key".to_owned(), "hush-hush".to_owned())]);
        client(&Options { headers, redirects, ..Options::default() })
    }

    #[tokio::test]
    async fn headers_and_the_address_are_not_sent_to_another_origin() {
        let (elsewhere, asked_there) = server(vec![DONE]);
        let (address, asked) = server(vec![redirect(307, "/moved"), redirect(307, &elsewhere)]);
        let request = Request::post_json(
            format!("{address}/search?key=hush-hush"),
            &serde_json::json!({"q": "find"}),
        );
        following(2).send(&request).await.unwrap();
        for expected in ["POST /search?key=hush-hush", "POST /moved"] {
            let asked = asked.recv().unwrap();
            assert!(asked.starts_with(expected), "{asked}");
            assert!(asked.contains("x-api-key: hush-hush"), "{asked}");
        }
        let asked = asked_there.recv().unwrap();
        assert!(asked.starts_with("POST / HTTP") && !asked.contains("hush"), "{asked}");
        assert!(asked.contains("content-type: application/json"), "{asked}");
    }

    #[tokio::test]
    async fn no_more_redirects_are_followed_than_allowed() {
        let (address, _asked) = server(vec![redirect(302, "/1"), redirect(302, "/2"), DONE]);
        let failure = following(1).send(&Request::get(address)).await.unwrap_err();
        assert_eq!(failure.class, FailureClass::InvalidAnswer);
        assert_eq!(failure.message, "HTTP 302 Found to /2; more than `redirects = 1` allows");
        let (address, _asked) = server(vec![redirect(302, "file:///etc/passwd")]);
        let failure = following(9).send(&Request::get(address)).await.unwrap_err();
        let expected = "to file:///etc/passwd; it cannot be followed";
        assert!(failure.message.ends_with(expected), "{}", failure.message);
    }

    #[tokio::test]
    async fn a_redirect_keeps_or_drops_the_body_by_its_status() {
        for (status, expected) in [(301, "GET"), (302, "GET"), (303, "GET"), (307, "POST")] {
            let (address, asked) = server(vec![redirect(status, "/next"), DONE]);
            let request = Request::post_json(address, &serde_json::json!({"q": 1}));
            following(1).send(&request).await.unwrap();
            assert!(asked.recv().unwrap().starts_with("POST / "));
            let asked = asked.recv().unwrap();
            assert!(asked.starts_with(&format!("{expected} /next ")), "{status}: {asked}");
            assert_eq!(asked.contains("content-length: 7"), expected == "POST", "{asked}");
        }
    }

    #[tokio::test]
    async fn a_header_that_was_asked_for_is_sent_once() {
        let (address, asked) = server(vec![DONE]);
        let headers = BTreeMap::from([("Content-Type".to_owned(), "text/x-query".to_owned())]);
        let client = client(&Options { headers, ..Options::default() });
        client.send(&Request::post_json(address, &serde_json::json!({}))).await.unwrap();
        let asked = asked.recv().unwrap();
        assert!(asked.contains("content-type: text/x-query"), "{asked}");
        assert_eq!(asked.matches("content-type").count(), 1, "{asked}");
    }

    #[tokio::test]
    async fn a_busy_server_says_when_to_retry() {
        let failure = ask("HTTP/1.1 429 Slow\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n").await;
        assert_eq!(failure.unwrap_err().retry_after, Some(Duration::from_secs(7)));
        let failure = ask("HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n").await;
        assert_eq!(failure.unwrap_err().retry_after, Some(Duration::ZERO));
    }

    #[tokio::test]
    async fn values_of_variables_are_sent_and_kept_out_of_messages() {
        let lookup = |name: &str| (name == "KEY").then(|| "hush-hush".to_owned());
        let variables = Variables::new(&lookup, Path::new("/"));
        let headers = BTreeMap::from([
            ("X-Api-Version".to_owned(), "2023-06-01".to_owned()),
            ("X-Custom".to_owned(), "key ${KEY}".to_owned()),
        ]);
        let options = Options { headers, ..Options::default() };
        let client = Client::with_variables(&options, &variables).unwrap();
        assert_eq!(
            client.redactor().hide("you sent hush-hush to 2023-06-01"),
            "you sent [redacted] to 2023-06-01"
        );
        let (address, asked) = server(vec!["HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"]);
        client.send(&Request::post_json(address, &serde_json::json!({"a": 1}))).await.unwrap();
        let asked = asked.recv().unwrap();
        assert!(asked.contains("x-custom: key hush-hush"), "{asked}");
        assert!(!format!("{client:?}").contains("hush"), "{client:?}");
        let missing = BTreeMap::from([("X-Key".to_owned(), "${NO_SUCH_KEY}".to_owned())]);
        let options = Options { headers: missing, ..Options::default() };
        let error = Client::with_variables(&options, &variables).unwrap_err();
        assert!(error.contains("NO_SUCH_KEY is not set"), "{error}");
    }

    #[test]
    fn tls_failures_have_readable_messages() {
        let unknown = describe("invalid peer certificate: UnknownIssuer".to_owned());
        assert!(
            unknown.starts_with("the issuer of the server's certificate is not trusted"),
            "{unknown}"
        );
        assert!(unknown.contains("--ca-file FILE"), "{unknown}");
        let other = "invalid peer certificate: Other(OtherError(CaUsedAsEndEntity))";
        assert!(describe(other.to_owned()).contains("belongs to a certificate authority"));
        let plain = describe("received corrupt message of type InvalidContentType".to_owned());
        assert!(plain.starts_with("the server does not speak TLS"), "{plain}");
        assert_eq!(describe("the lease expired".to_owned()), "the lease expired");
    }

    #[test]
    fn a_file_of_certificates_holds_at_least_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        assert!(certificates(&file).is_err());
        std::fs::write(&file, "hello").unwrap();
        let error = certificates(&file).unwrap_err();
        assert!(error.ends_with("it must be in PEM format"), "{error}");
    }

    #[test]
    fn only_http_urls_are_accepted_and_loopback_is_recognized() {
        assert!(check_url("http://127.0.0.1:8080/search?q=x").is_ok());
        for wrong in ["ftp://host/", "file:///etc/passwd", "127.0.0.1:8080", "http://"] {
            assert!(check_url(wrong).is_err(), "{wrong}");
        }
        for (url, loopback) in [
            ("http://localhost:1/", true),
            ("http://127.3.2.1/", true),
            ("http://[::1]:80/", true),
            ("http://example.org/", false),
            ("http://127.0.0.1.example.org/", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(url).unwrap()), loopback, "{url}");
        }
    }
}
