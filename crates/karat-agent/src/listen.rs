//! A receiver of OpenTelemetry over HTTP, on this machine alone: what exporters send, JSON or protobuf,
//! becomes one line of a file each, which `karat agent score` reads.
//!
//! A batch is checked before it is acknowledged and is on disk when it is, so that an exporter sends it
//! again if the receiver is stopped in between. Batches in any order, and batches that come twice, are
//! put right when the file is read.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use karat_io::http_server::{self, ServerLimits, is_local};
use karat_io::input::{self, Limits, open_for_writing};
use serde_json::Value;
use tokio::net::TcpListener;

use crate::formats::spans::{otlp, protobuf};

/// The size in bytes of a request, also once it is unpacked.
const MAX_BODY_BYTES: usize = 64 << 20;

/// The received traces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Requests that were written.
    pub batches: u64,
    /// Spans in them.
    pub spans: u64,
    /// Log records in them.
    pub logs: u64,
    /// Requests that were refused.
    pub refused: u64,
}

struct Sink {
    file: File,
    received: Received,
}

/// A receiver that is bound to its port.
pub struct Receiver {
    listener: TcpListener,
    sink: Arc<Mutex<Sink>>,
    /// The number of bytes of an unfinished line that were removed from the end of the file.
    pub removed: u64,
}

impl Receiver {
    /// Binds a port of 127.0.0.1, 0 for any, and opens the file, which is continued if it exists.
    ///
    /// # Errors
    /// If the port is taken or the file cannot be written.
    pub async fn bind(path: &Path, port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let mut file = open_for_writing(path).map_err(io::Error::other)?;
        let removed = remove_unfinished_line(&mut file)?;
        let sink = Arc::new(Mutex::new(Sink { file, received: Received::default() }));
        Ok(Receiver { listener, sink, removed })
    }

    /// The address.
    ///
    /// # Errors
    /// If the system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Receives until `end` is done.
    pub async fn run_until(self, end: impl Future + Send) -> Received {
        let routes = axum::Router::new()
            .route("/v1/traces", post(receive))
            .route("/v1/logs", post(receive))
            // Exporters that send metrics too should not fail.
            .route("/v1/metrics", post(async || StatusCode::OK))
            .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
            .with_state(Arc::clone(&self.sink));
        let limits = ServerLimits { body_bytes: MAX_BODY_BYTES, ..ServerLimits::default() };
        http_server::serve(self.listener, routes, limits, end).await;
        self.sink.lock().unwrap_or_else(PoisonError::into_inner).received
    }
}

/// Removes what a receiver that was killed left after the last whole line, and goes to the end.
fn remove_unfinished_line(file: &mut File) -> io::Result<u64> {
    let length = file.seek(SeekFrom::End(0))?;
    let mut end = length;
    let mut block = [0; 4096];
    while end > 0 {
        let from = end.saturating_sub(block.len() as u64);
        let size = usize::try_from(end - from).unwrap_or(block.len());
        let part = &mut block[..size];
        file.seek(SeekFrom::Start(from))?;
        file.read_exact(part)?;
        if let Some(at) = memchr::memrchr(b'\n', part) {
            end = from + at as u64 + 1;
            break;
        }
        end = from;
    }
    if end < length {
        file.set_len(end)?;
    }
    file.seek(SeekFrom::End(0))?;
    Ok(length - end)
}

async fn receive(
    State(sink): State<Arc<Mutex<Sink>>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if !is_local(&headers) {
        return (StatusCode::FORBIDDEN, "this origin is not allowed").into_response();
    }
    let named = |name: header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    // A web page may send other types to any address without being asked for permission.
    let kind = named(header::CONTENT_TYPE).unwrap_or_default();
    let is_json = kind.contains("json");
    if !is_json && !kind.contains("protobuf") {
        return StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response();
    }
    let packed = named(header::CONTENT_ENCODING).is_some_and(|how| how.contains("gzip"));
    let line = unpacked(&body, packed).and_then(|body| line(&body, is_json));
    let mut sink = sink.lock().unwrap_or_else(PoisonError::into_inner);
    let (line, spans, logs) = match line {
        Ok(found) => found,
        Err(message) => {
            sink.received.refused += 1;
            return (StatusCode::BAD_REQUEST, message).into_response();
        }
    };
    if let Err(error) = sink.file.write_all(line.as_bytes()).and_then(|()| sink.file.flush()) {
        // The exporter keeps the batch and tries again.
        return (StatusCode::SERVICE_UNAVAILABLE, error.to_string()).into_response();
    }
    sink.received.batches += 1;
    sink.received.spans += spans;
    sink.received.logs += logs;
    // An empty message is an empty response in protobuf.
    match is_json {
        true => ([(header::CONTENT_TYPE, "application/json")], "{}").into_response(),
        false => ([(header::CONTENT_TYPE, "application/x-protobuf")], "").into_response(),
    }
}

fn unpacked(body: &[u8], packed: bool) -> Result<Cow<'_, [u8]>, String> {
    if !packed {
        return Ok(body.into());
    }
    let limits = Limits { bytes: MAX_BODY_BYTES as u64, ..Limits::default() };
    let plain = input::read_stream("the request", body, &limits);
    plain.map(Cow::from).map_err(|error| error.to_string())
}

/// The line of a batch, and the numbers of spans and log records in it.
fn line(body: &[u8], is_json: bool) -> Result<(String, u64, u64), String> {
    let value = match is_json {
        true => serde_json::from_slice::<Value>(body).map_err(|error| error.to_string())?,
        false => protobuf::to_json(body)?,
    };
    let text = value.to_string();
    let mut read = Vec::new();
    otlp::read(&text, &mut read).map_err(|error| error.to_string())?;
    let logs = read.iter().filter(|span| span.is_log).count() as u64;
    Ok((text + "\n", read.len() as u64 - logs, logs))
}
