//! The one HTTP client.
//!
//! A request has a time limit and its answer a size limit. Redirects are not followed unless that is
//! asked for, and a request to this machine never goes through a proxy that happens to be set in the
//! environment. What goes wrong comes back as the [`Failure`] class that it is, and no message ever
//! holds the value of a header that came from the environment. Nothing here retries:
//! [`run::collect`](crate::run::collect) does, and honours the `Retry-After` of a busy system.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::{Method, StatusCode, Url, redirect};

use crate::exchange::quoted;
use crate::failure::{Failure, FailureClass};
use crate::template::from_environment;
use crate::text::{clip, printable};

/// How much of an answer that is an error is quoted.
const QUOTED: usize = 200;
/// How much of it is read for that.
const READ_OF_ERROR: usize = 4 << 10;
/// Shorter values are not looked for in messages: they would match everywhere.
const SHORTEST_SECRET: usize = 4;

/// How to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How long a request may take, from connecting to the last byte.
    pub timeout: Duration,
    /// The most bytes that an answer may have.
    pub max_body: usize,
    /// How many redirects are followed.
    pub redirects: usize,
    /// Headers of every request; `${VAR}` in a value comes from the environment.
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
    /// Where to; `http` or `https`.
    pub url: String,
    /// The body, and its type. A body goes out as it is.
    pub body: Option<Body>,
}

/// What is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// Such as `application/json`.
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
    /// JSON.
    pub fn json(value: &serde_json::Value) -> Body {
        Body { content_type: "application/json".to_owned(), bytes: value.to_string().into_bytes() }
    }
}

/// An answer that is no error: its status is below 300.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The type that the answer says it has.
    pub content_type: Option<String>,
    /// The whole body.
    pub body: Vec<u8>,
}

/// Asks over HTTP. Connections are kept and shared between requests.
#[derive(Clone, Debug)]
pub struct Client {
    /// For this machine: straight to it.
    direct: reqwest::Client,
    /// For elsewhere: through the proxy of the environment, where there is one.
    outward: reqwest::Client,
    max_body: usize,
    secrets: Vec<String>,
}

impl Client {
    /// Makes a client. Header values are read from the environment here, once.
    ///
    /// # Errors
    /// When a header cannot be sent or its variable is not set, in words for the user.
    pub fn new(options: &Options) -> Result<Client, String> {
        let mut headers = HeaderMap::new();
        let mut secrets = Vec::new();
        for (name, text) in &options.headers {
            let wrong = |what: &str| format!("header {name:?}: {what}");
            let value = from_environment(text).map_err(|error| wrong(&error))?;
            let key = HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| wrong("this is not the name of a header"))?;
            let mut sent = HeaderValue::from_str(&value)
                .map_err(|_| wrong("its value cannot stand in a header"))?;
            if value != *text {
                sent.set_sensitive(true);
                secrets.extend(secret_parts(text, &value));
            }
            headers.insert(key, sent);
        }
        let build = |builder: reqwest::ClientBuilder| {
            builder
                .timeout(options.timeout)
                .redirect(match options.redirects {
                    0 => redirect::Policy::none(),
                    most => redirect::Policy::limited(most),
                })
                .default_headers(headers.clone())
                .user_agent(concat!("karat/", env!("CARGO_PKG_VERSION")))
                .build()
                .map_err(|error| format!("the HTTP client cannot be made: {}", causes(&error)))
        };
        Ok(Client {
            direct: build(reqwest::Client::builder().no_proxy())?,
            outward: build(reqwest::Client::builder())?,
            max_body: options.max_body,
            secrets,
        })
    }

    /// Sends a request and reads the whole answer.
    ///
    /// # Errors
    /// `timeout`; `transport` when there is no connection or it ends early; `refused` for a status
    /// of 400 and above, with [`Failure::retry_after`] set for 429 and 503; `invalid_answer` for a
    /// redirect that is not followed and for a body that is too large.
    pub async fn send(&self, request: &Request) -> Result<Answer, Failure> {
        let url = checked_url(&request.url)
            .map_err(|error| Failure::new(FailureClass::InvalidAnswer, error))?;
        let method = Method::from_bytes(request.method.as_bytes()).map_err(|_| {
            let message = format!("{:?} is not an HTTP method", request.method);
            Failure::new(FailureClass::InvalidAnswer, message)
        })?;
        let client = if is_loopback(&url) { &self.direct } else { &self.outward };
        let mut builder = client.request(method, url);
        if let Some(body) = &request.body {
            builder = builder
                .header(reqwest::header::CONTENT_TYPE, &body.content_type)
                .body(body.bytes.clone());
        }
        let response = builder.send().await.map_err(|error| self.failure(error))?;
        let status = response.status();
        if !status.is_success() {
            return Err(self.refusal(response).await);
        }
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
            let to = to.map(|to| format!(" to {}", self.redact(&quoted(to)))).unwrap_or_default();
            message.push_str(&format!("{to}; redirects are not followed"));
            return Failure::new(FailureClass::InvalidAnswer, message);
        }
        let busy = [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE];
        let retry_after = busy.contains(&status).then(|| {
            let header = response.headers().get(RETRY_AFTER);
            let seconds = header.and_then(|value| value.to_str().ok()?.trim().parse().ok());
            Duration::from_secs(seconds.unwrap_or(0))
        });
        let mut said = Vec::new();
        // What was said beside the status is welcome, and its lack is no further failure.
        while let Ok(Some(block)) = response.chunk().await {
            said.extend_from_slice(&block);
            if said.len() >= READ_OF_ERROR {
                break;
            }
        }
        said.truncate(READ_OF_ERROR);
        let said = String::from_utf8_lossy(&said);
        if !said.trim().is_empty() {
            let said = self.redact(said.trim());
            message.push_str(&format!(": {}", clip(&printable(&said), QUOTED)));
        }
        Failure { retry_after, ..Failure::new(FailureClass::Refused, message) }
    }

    fn failure(&self, error: reqwest::Error) -> Failure {
        // A URL may hold a key; whoever asked knows where.
        let error = error.without_url();
        let said = self.redact(&causes(&error));
        if error.is_timeout() {
            return Failure::new(FailureClass::Timeout, "no answer in time");
        }
        let message = if error.is_connect() {
            format!("cannot connect: {said}")
        } else if error.is_body() || error.is_decode() {
            format!("the connection ended in the middle of the answer: {said}")
        } else {
            format!("the connection failed: {said}")
        };
        Failure::new(FailureClass::Transport, message)
    }

    /// The text without the values that came from the environment: for messages that quote an answer.
    pub fn redact(&self, text: &str) -> String {
        self.secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret, "[redacted]"))
    }
}

/// Whether requests can go there: a URL of `http` or `https` with a host.
///
/// # Errors
/// What is wrong with it, in words.
pub fn check_url(text: &str) -> Result<(), String> {
    checked_url(text).map(|_| ())
}

fn checked_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("this is not a URL: {error}"))?;
    match (url.scheme(), url.host_str()) {
        ("http" | "https", Some(_)) => Ok(url),
        (scheme, _) => Err(format!("a URL starts with http:// or https://, not {scheme}:")),
    }
}

fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

/// What of a header value is secret: all that does not stand in the project file, as `Bearer ` does.
fn secret_parts(written: &str, value: &str) -> Vec<String> {
    let same = |(a, b): &(char, char)| a == b;
    let before: usize =
        written.chars().zip(value.chars()).take_while(same).map(|(a, _)| a.len_utf8()).sum();
    let secret = &value[before..];
    [value, secret]
        .into_iter()
        .filter(|part| part.len() >= SHORTEST_SECRET)
        .map(str::to_owned)
        .collect()
}

/// An error with what is behind it.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let more = inner.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = inner.source();
    }
    quoted(&text)
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    /// A server that answers each connection with the next of these bytes and closes it. Gives its
    /// address, and what it was asked, request by request.
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
    async fn an_answer_comes_back_whole() {
        let answer =
            ask("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n[]")
                .await
                .unwrap();
        assert_eq!(answer.status, 200);
        assert_eq!(answer.body, b"[]");
        assert_eq!(answer.content_type.as_deref(), Some("application/json"));
    }

    #[tokio::test]
    async fn each_way_to_fail_has_its_class() {
        let long = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789";
        for (answer, class, words) in [
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
            assert!(failure.message.contains(words), "{answer}: {}", failure.message);
            assert_eq!(failure.retry_after, None);
        }
        let nobody = client(&Options::default()).send(&Request::get("http://127.0.0.1:1/")).await;
        let failure = nobody.unwrap_err();
        assert_eq!(failure.class, FailureClass::Transport);
        assert!(failure.message.contains("cannot connect"), "{}", failure.message);
    }

    #[tokio::test]
    async fn a_busy_system_says_when_to_come_back() {
        let failure = ask("HTTP/1.1 429 Slow\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n").await;
        assert_eq!(failure.unwrap_err().retry_after, Some(Duration::from_secs(7)));
        let failure = ask("HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n").await;
        assert_eq!(failure.unwrap_err().retry_after, Some(Duration::ZERO));
    }

    #[tokio::test]
    async fn headers_come_from_the_environment_and_stay_out_of_messages() {
        // PATH is the one variable that every machine has set.
        let secret = std::env::var("PATH").unwrap();
        let headers = BTreeMap::from([("X-API-Key".to_owned(), "key ${PATH}".to_owned())]);
        let client = client(&Options { headers, ..Options::default() });
        assert_eq!(client.redact(&format!("you sent {secret}!")), "you sent [redacted]!");
        let (address, asked) = server(vec!["HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"]);
        client.send(&Request::post_json(address, &serde_json::json!({"a": 1}))).await.unwrap();
        let asked = asked.recv().unwrap();
        assert!(asked.contains(&format!("x-api-key: key {secret}")), "{asked}");
        assert!(!format!("{client:?}").contains("x-api-key: key /"));
        let missing = BTreeMap::from([("X-Key".to_owned(), "${KARAT_NO_SUCH_KEY}".to_owned())]);
        let error = Client::new(&Options { headers: missing, ..Options::default() }).unwrap_err();
        assert!(error.contains("KARAT_NO_SUCH_KEY is not set"), "{error}");
    }

    #[test]
    fn only_http_is_spoken_and_this_machine_is_known() {
        assert!(check_url("http://127.0.0.1:8080/search?q=x").is_ok());
        for wrong in ["ftp://host/", "file:///etc/passwd", "127.0.0.1:8080", "http://"] {
            assert!(check_url(wrong).is_err(), "{wrong}");
        }
        for (url, here) in [
            ("http://localhost:1/", true),
            ("http://127.3.2.1/", true),
            ("http://[::1]:80/", true),
            ("http://example.org/", false),
            ("http://127.0.0.1.example.org/", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(url).unwrap()), here, "{url}");
        }
    }
}
