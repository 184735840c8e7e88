//! HTTP+SSE of revision 2024-11-05, as a client.
//!
//! One stream of events carries every message of the server; its first event names the URL for messages to
//! the server. That URL must have the same origin, so that a server cannot redirect headers and messages to
//! another host. When the stream ends, so does the session.

use std::sync::Arc;
use std::time::{Duration, Instant};

use karat_io::task;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, RequestBuilder, Response, Url};
use tokio::task::JoinHandle;

use crate::auth::{Authorizer, Challenge, authorizer};
use crate::error::{CallError, StartError, quoted};
use crate::event_stream::EventStream;
use crate::http::{Answer, connection_error, content_type, status_error};
use crate::http_client::{client, header_map, parse_url};
use crate::pending_calls::PendingCalls;
use crate::spec::Address;

/// Time to post a reply to the server.
const REPLY_TIMEOUT: Duration = Duration::from_secs(30);

/// A transport over HTTP+SSE.
pub(crate) struct SseLink {
    poster: Arc<Poster>,
    reader: JoinHandle<()>,
}

struct Poster {
    client: Client,
    headers: HeaderMap,
    login: Arc<Authorizer>,
    endpoint: Url,
    calls: Arc<PendingCalls>,
}

impl SseLink {
    /// Opens the stream and waits for the URL for messages.
    pub(crate) async fn connect(
        address: &Address,
        calls: &Arc<PendingCalls>,
    ) -> Result<SseLink, StartError> {
        let base = parse_url(&address.url)?;
        let client = client(&base, address.ca_file.as_deref())?;
        let headers = header_map(&address.headers)?;
        let login = authorizer(address)?;
        let request = || {
            let request = client.get(base.clone()).headers(headers.clone());
            request.header(ACCEPT, HeaderValue::from_static("text/event-stream"))
        };
        let mut response = send(&login, &request, calls).await?;
        if !response.status().is_success() {
            return Err(status_error(Answer::Full(response), calls).await.into());
        }
        let kind = content_type(response.headers());
        if kind != "text/event-stream" {
            let why = format!(
                "{} answered with the content type {kind:?}, not with an event stream",
                base.path()
            );
            return Err(StartError::Handshake { why: quoted(&why) });
        }
        let mut events = EventStream::default();
        let (named, early) = endpoint(&mut response, &mut events, calls).await?;
        let endpoint = same_origin(&base, &named)
            .map_err(|why| StartError::Handshake { why: calls.redactor.hidden(why) })?;
        let poster =
            Arc::new(Poster { client, headers, login, endpoint, calls: Arc::clone(calls) });
        for message in early {
            poster.receive(&message, Instant::now());
        }
        let reader = task::spawn(read(response, events, Arc::clone(&poster)));
        Ok(SseLink { poster, reader })
    }

    /// Posts a message. Answers come on the stream.
    pub(crate) async fn post(&self, bytes: &[u8]) -> Result<(), CallError> {
        self.poster.calls.sent(bytes);
        self.poster.post(bytes).await
    }

    /// Posts a message in the background.
    pub(crate) fn post_unattended(&self, bytes: Vec<u8>) {
        self.poster.calls.sent(&bytes);
        self.poster.post_later(bytes);
    }
}

impl Drop for SseLink {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Poster {
    async fn post(&self, bytes: &[u8]) -> Result<(), CallError> {
        let request = || {
            let request = self.client.post(self.endpoint.clone()).headers(self.headers.clone());
            let json = HeaderValue::from_static("application/json");
            request.header(CONTENT_TYPE, json).body(bytes.to_vec())
        };
        let response = send(&self.login, &request, &self.calls).await?;
        if response.status().is_success() {
            return Ok(());
        }
        Err(status_error(Answer::Full(response), &self.calls).await)
    }

    fn post_later(self: &Arc<Self>, bytes: Vec<u8>) {
        let poster = Arc::clone(self);
        task::spawn(async move {
            let _ = tokio::time::timeout(REPLY_TIMEOUT, poster.post(&bytes)).await;
        });
    }

    fn receive(self: &Arc<Self>, bytes: &[u8], arrived: Instant) {
        for reply in self.calls.receive(bytes, arrived, None) {
            self.post_later(reply);
        }
    }
}

/// Sends a request, again after a login if the server asks for one.
async fn send(
    login: &Authorizer,
    request: &(dyn Fn() -> RequestBuilder + Sync),
    calls: &PendingCalls,
) -> Result<Response, CallError> {
    let mut answered = 0;
    loop {
        let token = login.header().await;
        let with_token = match &token {
            Some(token) => request().header(AUTHORIZATION, token),
            None => request(),
        };
        let sent = with_token.send().await;
        let response = sent.map_err(|error| connection_error(&error, calls))?;
        let status = response.status().as_u16();
        let Some(challenge) = Challenge::of(status, response.headers()) else {
            if token.is_some() {
                login.accepted();
            }
            return Ok(response);
        };
        if let Err(why) = login.answer(&challenge, token.as_ref(), answered).await {
            return Err(CallError::Http { status, said: calls.redactor.hidden(why) });
        }
        answered += 1;
    }
}

/// Reads up to the event with the URL for messages. Returns it with the messages before it.
async fn endpoint(
    response: &mut Response,
    events: &mut EventStream,
    calls: &PendingCalls,
) -> Result<(String, Vec<Vec<u8>>), StartError> {
    let ended = || StartError::Handshake {
        why: "the event stream ended before it named the URL for messages".to_owned(),
    };
    let mut named = None;
    let mut early = Vec::new();
    loop {
        let bytes = response.chunk().await.map_err(|error| connection_error(&error, calls))?;
        let Some(bytes) = bytes else { return Err(ended()) };
        let limit = calls.limits.message_bytes;
        let taken = events.push(&bytes, limit, |event| match event.kind.as_str() {
            "endpoint" if named.is_none() => {
                named = Some(String::from_utf8_lossy(&event.data).into_owned());
            }
            "message" => early.push(event.data),
            _ => {}
        });
        if taken.is_err() {
            return Err(CallError::TooLarge { limit, what: "bytes" }.into());
        }
        if let Some(named) = named.take() {
            return Ok((named, early));
        }
    }
}

fn same_origin(base: &Url, named: &str) -> Result<Url, String> {
    let endpoint = base
        .join(named.trim())
        .map_err(|error| format!("the URL for messages is invalid: {error}"))?;
    if endpoint.origin() != base.origin() {
        let why = format!("the URL for messages has another origin: {}", quoted(named));
        return Err(why);
    }
    Ok(endpoint)
}

async fn read(mut response: Response, mut events: EventStream, poster: Arc<Poster>) {
    let limit = poster.calls.limits.message_bytes;
    let why = loop {
        match response.chunk().await {
            Ok(Some(bytes)) => {
                let arrived = Instant::now();
                let taken = events.push(&bytes, limit, |event| {
                    if event.kind == "message" && !event.data.is_empty() {
                        poster.receive(&event.data, arrived);
                    }
                });
                if taken.is_err() {
                    poster.calls.oversized(&[], arrived);
                    break "it sent an endless event".to_owned();
                }
            }
            Ok(None) => break "it ended the event stream".to_owned(),
            Err(error) => break connection_error(&error, &poster.calls).to_string(),
        }
    };
    poster.calls.end(&CallError::Closed { why });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_only_posted_to_the_same_origin() {
        let base = Url::parse("http://127.0.0.1:1/a/sse").unwrap();
        let found = same_origin(&base, "/messages?sessionId=1").unwrap();
        assert_eq!(found.as_str(), "http://127.0.0.1:1/messages?sessionId=1");
        assert!(same_origin(&base, "http://127.0.0.1:1/x").is_ok());
        for elsewhere in ["http://127.0.0.1:2/x", "//other/x", "https://127.0.0.1:1/x", "file:///x"]
        {
            assert!(same_origin(&base, elsewhere).is_err(), "{elsewhere}");
        }
    }
}
