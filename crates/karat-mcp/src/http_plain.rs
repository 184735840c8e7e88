//! HTTP/1.1 over plain connections to one address: short POSTs and their responses.
//!
//! A measuring client must cost little, and under load a general HTTP client spends most of its time on
//! tasks, channels and layers that this case does not need. Here the sending task writes and reads its
//! connection itself, and connections are kept for the next message. `cargo bench --bench http` compares
//! this with hyper, and ARCHITECTURE.md has figures. There is no TLS, no proxy, no redirect and no long
//! body (a server may answer those before it has read them). A message is sent a second time in one case
//! only: a kept connection ends before the first byte of the response, because the server closed it in the
//! meantime.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use karat_io::platform;
use reqwest::header::{
    CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE,
};
use reqwest::{StatusCode, Url};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::headers::SESSION;

/// Maximum size of a body: what the buffers of a connection hold before the server reads.
pub(crate) const MAX_BODY_BYTES: usize = 32 << 10;
/// Maximum size of the head of a response.
const MAX_HEAD_BYTES: usize = 64 << 10;
/// Maximum number of headers of a response.
const MAX_HEADERS: usize = 100;
/// Maximum size of a line between chunks, and of everything after the last chunk.
const MAX_LINE_BYTES: usize = 4 << 10;
/// Bytes that are read at once.
const READ_BYTES: usize = 8 << 10;

/// Headers that would change the framing, or that a session adds and that must not be sent twice.
const UNSUPPORTED_HEADERS: &[&str] = &[
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "expect",
    "te",
    "upgrade",
    "user-agent",
    "mcp-session-id",
    "mcp-protocol-version",
];

/// An error, by the phase of the exchange.
#[derive(Debug)]
pub(crate) enum PlainError {
    /// The connection could not be opened.
    Connect(io::Error),
    /// There is no response.
    Exchange(io::Error),
    /// The body of the response is incomplete or invalid.
    Body(io::Error),
}

fn invalid(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

fn closed(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, why)
}

/// A pool of connections to one address.
pub(crate) struct Plain {
    host: String,
    port: u16,
    /// The request line and the `host` header.
    opening: Vec<u8>,
    idle: Mutex<Vec<Connection>>,
}

/// A connection, with bytes that were read and not used yet.
struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
    used: usize,
    /// True once a byte of the response to the last message has arrived.
    responded: bool,
    /// The buffer for messages.
    message: Vec<u8>,
}

impl Plain {
    /// A pool for this URL, if requests with these headers can use plain connections.
    pub(crate) fn new(url: &Url, headers: &HeaderMap) -> Option<Arc<Plain>> {
        let plain = url.scheme() == "http" && url.username().is_empty() && url.password().is_none();
        if !plain || UNSUPPORTED_HEADERS.iter().any(|name| headers.contains_key(*name)) {
            return None;
        }
        let (host, port) = (url.host_str()?, url.port_or_known_default()?);
        let authority = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
        let opening = format!("POST {}{query} HTTP/1.1\r\nhost: {authority}\r\n", url.path());
        Some(Arc::new(Plain {
            host: host.trim_matches(['[', ']']).to_owned(),
            port,
            opening: opening.into_bytes(),
            idle: Mutex::default(),
        }))
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a message of at most [`MAX_BODY_BYTES`] and reads the head of the response.
    pub(crate) async fn post<'h>(
        self: &Arc<Self>,
        headers: impl Iterator<Item = (&'h HeaderName, &'h HeaderValue)>,
        body: &[u8],
    ) -> Result<PlainResponse, PlainError> {
        let (kept, mut hangups) = self.kept();
        let reused = kept.is_some();
        let mut connection = match kept {
            Some(connection) => connection,
            None => self.connect().await.map_err(PlainError::Connect)?,
        };
        connection.compose(&self.opening, headers, body);
        let mut exchanged = connection.exchange().await;
        // If there is no new connection, the end of the first one is the error.
        if reused
            && let Err(error) = &exchanged
            && connection.ended_without_response(error)
            && let Ok(mut fresh) = self.connect().await
        {
            hangups += 1;
            fresh.message = std::mem::take(&mut connection.message);
            connection = fresh;
            exchanged = connection.exchange().await;
        }
        let (head, framing, written) = exchanged.map_err(PlainError::Exchange)?;
        let mut response = PlainResponse {
            status: head.status,
            headers: head.headers,
            hangups,
            framing,
            reusable: head.reusable && written,
            pool: Arc::clone(self),
            connection: Some(connection),
        };
        response.release_if_ended();
        Ok(response)
    }

    /// A kept connection, and the number of those that the server has closed since.
    fn kept(&self) -> (Option<Connection>, u32) {
        let mut closed = 0;
        loop {
            let Some(connection) = self.idle().pop() else { return (None, closed) };
            // An idle connection must have nothing to read, not even its end.
            if platform::nothing_to_read(&connection.stream) {
                return (Some(connection), closed);
            }
            closed += 1;
        }
    }

    async fn connect(&self) -> io::Result<Connection> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        stream.set_nodelay(true)?;
        Ok(Connection {
            stream,
            read: Vec::with_capacity(READ_BYTES),
            used: 0,
            responded: false,
            message: Vec::with_capacity(1 << 10),
        })
    }
}

struct Head {
    status: StatusCode,
    headers: HeaderMap,
    reusable: bool,
}

impl Connection {
    fn compose<'h>(
        &mut self,
        opening: &[u8],
        headers: impl Iterator<Item = (&'h HeaderName, &'h HeaderValue)>,
        body: &[u8],
    ) {
        let message = &mut self.message;
        message.clear();
        message.extend_from_slice(opening);
        for (name, value) in headers {
            message.extend_from_slice(name.as_str().as_bytes());
            message.extend_from_slice(b": ");
            message.extend_from_slice(value.as_bytes());
            message.extend_from_slice(b"\r\n");
        }
        message.extend_from_slice(b"content-length: ");
        message.extend_from_slice(body.len().to_string().as_bytes());
        message.extend_from_slice(b"\r\n\r\n");
        message.extend_from_slice(body);
    }

    fn unused(&self) -> &[u8] {
        &self.read[self.used..]
    }

    /// Reads more bytes; false at the end of the connection.
    async fn fill(&mut self) -> io::Result<bool> {
        if self.used == self.read.len() {
            self.read.clear();
            self.used = 0;
        }
        self.read.reserve(READ_BYTES);
        let more = self.stream.read_buf(&mut self.read).await? > 0;
        self.responded |= more;
        Ok(more)
    }

    /// Sends the composed message and reads the head of the response. The last value is true if the whole
    /// message was sent.
    async fn exchange(&mut self) -> io::Result<(Head, Framing, bool)> {
        self.responded = false;
        let written = self.stream.write_all(&self.message).await;
        match self.head().await {
            Ok((head, framing)) => Ok((head, framing, written.is_ok())),
            // A server that stops reading may still respond; if it does not, the write error counts.
            Err(error) => Err(written.err().unwrap_or(error)),
        }
    }

    /// True if the server ended the connection before the first byte of a response.
    fn ended_without_response(&self, error: &io::Error) -> bool {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
        let ended = [BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof];
        !self.responded && ended.contains(&error.kind())
    }

    async fn head(&mut self) -> io::Result<(Head, Framing)> {
        loop {
            if let Some((head, framing, length)) = parse_head(self.unused())? {
                self.used += length;
                // Informational responses are skipped.
                if !head.status.is_informational() {
                    return Ok((head, framing));
                }
                continue;
            }
            if self.unused().len() > MAX_HEAD_BYTES {
                return Err(invalid("the head of the response is too long"));
            }
            if !self.fill().await? {
                return Err(closed("connection closed before message completed"));
            }
        }
    }

    /// The next line, without its end.
    async fn line(&mut self) -> io::Result<&[u8]> {
        let length = loop {
            if let Some(length) = memchr::memchr(b'\n', self.unused()) {
                break length;
            }
            if self.unused().len() > MAX_LINE_BYTES {
                return Err(invalid("a line between chunks is too long"));
            }
            if !self.fill().await? {
                return Err(closed("unexpected EOF between chunks"));
            }
        };
        let start = self.used;
        self.used += length + 1;
        let line = &self.read[start..start + length];
        Ok(line.strip_suffix(b"\r").unwrap_or(line))
    }

    /// Between one and `max` bytes; empty at the end of the connection.
    async fn some(&mut self, max: u64) -> io::Result<Bytes> {
        if self.unused().is_empty() && !self.fill().await? {
            return Ok(Bytes::new());
        }
        let length = usize::try_from(max).unwrap_or(usize::MAX).min(self.unused().len());
        let bytes = Bytes::copy_from_slice(&self.unused()[..length]);
        self.used += length;
        Ok(bytes)
    }
}

/// The end of the body of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    /// After this many bytes.
    Length(u64),
    /// Before a chunk.
    Chunked,
    /// Within a chunk with this many bytes left.
    Chunk(u64),
    /// After the last chunk; this many bytes were skipped.
    Trailers(usize),
    /// At the end of the connection.
    Connection,
}

impl Framing {
    const ENDED: Framing = Framing::Length(0);
}

/// The head of a response with its length, once it is complete.
fn parse_head(bytes: &[u8]) -> io::Result<Option<(Head, Framing, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let parsed = response.parse(bytes);
    let parsed = parsed.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    let httparse::Status::Complete(length) = parsed else { return Ok(None) };
    let status = response.code.and_then(|code| StatusCode::from_u16(code).ok());
    let status = status.ok_or_else(|| invalid("invalid HTTP status"))?;
    let mut head =
        Head { status, headers: HeaderMap::new(), reusable: response.version == Some(1) };
    let mut sized: Option<u64> = None;
    let mut chunked = false;
    for header in response.headers.iter() {
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        if is("content-length") {
            let size = decimal(header.value).ok_or_else(|| invalid("invalid content-length"))?;
            if sized.is_some_and(|other| other != size) {
                return Err(invalid("two different content lengths"));
            }
            sized = Some(size);
        } else if is("transfer-encoding") {
            chunked = last_value(header.value).eq_ignore_ascii_case(b"chunked");
            if !chunked {
                return Err(invalid("unsupported transfer-encoding"));
            }
        } else if is("connection") {
            head.reusable &= !last_value(header.value).eq_ignore_ascii_case(b"close");
        } else {
            for wanted in [&CONTENT_TYPE, &SESSION, &LOCATION, &RETRY_AFTER, &WWW_AUTHENTICATE] {
                if is(wanted.as_str())
                    && let Ok(value) = HeaderValue::from_bytes(header.value)
                {
                    head.headers.append(wanted, value);
                }
            }
        }
    }
    let bodiless = matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    let framing = match sized {
        _ if bodiless || status.is_informational() => Framing::ENDED,
        _ if chunked => Framing::Chunked,
        Some(size) => Framing::Length(size),
        None => Framing::Connection,
    };
    head.reusable &= framing != Framing::Connection;
    if status == StatusCode::SWITCHING_PROTOCOLS {
        return Err(invalid("the server switches to another protocol"));
    }
    Ok(Some((head, framing, length)))
}

fn decimal(digits: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(digits).ok()?.trim();
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// The last of the values that commas separate.
fn last_value(value: &[u8]) -> &[u8] {
    let start = memchr::memrchr(b',', value).map_or(0, |comma| comma + 1);
    value[start..].trim_ascii()
}

/// The size in the line before a chunk; extensions are ignored.
fn chunk_size(line: &[u8]) -> io::Result<u64> {
    let end = line.iter().position(|byte| !byte.is_ascii_hexdigit()).unwrap_or(line.len());
    let (digits, rest) = line.split_at(end);
    let is_valid = matches!(rest.trim_ascii_start().first(), None | Some(b';'));
    let size = std::str::from_utf8(digits).ok().and_then(|text| u64::from_str_radix(text, 16).ok());
    size.filter(|_| is_valid).ok_or_else(|| invalid("invalid chunk size"))
}

/// A response whose head has been read.
pub(crate) struct PlainResponse {
    /// The status.
    pub(crate) status: StatusCode,
    /// Those headers that are used.
    pub(crate) headers: HeaderMap,
    /// The number of kept connections that the server had closed.
    pub(crate) hangups: u32,
    framing: Framing,
    reusable: bool,
    pool: Arc<Plain>,
    /// `None` once the body has ended. If it is dropped before, the connection is closed.
    connection: Option<Connection>,
}

impl PlainResponse {
    /// The next part of the body; `None` at its end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, PlainError> {
        let bytes = self.piece().await.map_err(PlainError::Body)?;
        self.release_if_ended();
        Ok(bytes)
    }

    async fn piece(&mut self) -> io::Result<Option<Bytes>> {
        let Some(connection) = &mut self.connection else { return Ok(None) };
        // The state advances with each read, so that a cancelled call can be repeated.
        loop {
            self.framing = match self.framing {
                Framing::Chunked => match chunk_size(connection.line().await?)? {
                    0 => Framing::Trailers(0),
                    size => Framing::Chunk(size),
                },
                Framing::Chunk(0) if connection.line().await?.is_empty() => Framing::Chunked,
                Framing::Chunk(0) => return Err(invalid("a chunk is longer than its size")),
                Framing::Trailers(skipped) => match connection.line().await?.len() {
                    0 => Framing::ENDED,
                    length if skipped + length <= MAX_LINE_BYTES => {
                        Framing::Trailers(skipped + length)
                    }
                    _ => return Err(invalid("too much follows the last chunk")),
                },
                Framing::Length(0) => return Ok(None),
                Framing::Length(_) | Framing::Chunk(_) | Framing::Connection => break,
            };
        }
        let max = match self.framing {
            Framing::Length(left) | Framing::Chunk(left) => left,
            _ => u64::MAX,
        };
        let bytes = connection.some(max).await?;
        match &mut self.framing {
            Framing::Length(left) | Framing::Chunk(left) if !bytes.is_empty() => {
                *left -= bytes.len() as u64;
            }
            Framing::Length(_) | Framing::Chunk(_) => {
                return Err(closed("end of file before message length reached"));
            }
            framing if bytes.is_empty() => *framing = Framing::ENDED,
            _ => {}
        }
        Ok((!bytes.is_empty()).then_some(bytes))
    }

    /// Returns the connection to the pool if it can be reused.
    fn release_if_ended(&mut self) {
        if self.framing != Framing::ENDED {
            return;
        }
        if let Some(connection) = self.connection.take()
            && self.reusable
            && connection.unused().is_empty()
        {
            self.pool.idle().push(connection);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// A server that answers each message with the next of these texts, in portions of this size. Returns
    /// its pool and the number of connections.
    async fn answers(
        texts: &'static [&'static str],
        size: usize,
    ) -> (Arc<Plain>, Arc<Mutex<usize>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/a?b=c", listener.local_addr().unwrap());
        let connections = Arc::new(Mutex::new(0));
        let counted = Arc::clone(&connections);
        tokio::spawn(async move {
            let mut texts = texts.iter();
            while let Ok((mut stream, _)) = listener.accept().await {
                *counted.lock().unwrap() += 1;
                stream.set_nodelay(true).unwrap();
                let mut seen = Vec::new();
                while let Ok(1..) = stream.read_buf(&mut seen).await {
                    if !seen.ends_with(b"{}") {
                        continue;
                    }
                    assert!(seen.starts_with(b"POST /a?b=c HTTP/1.1\r\nhost: 127.0.0.1:"));
                    seen.clear();
                    let Some(text) = texts.next() else { return };
                    for piece in text.as_bytes().chunks(size) {
                        stream.write_all(piece).await.unwrap();
                        tokio::task::yield_now().await;
                    }
                    if text.contains("close") || text.starts_with("HTTP/1.0") {
                        break;
                    }
                }
            }
        });
        (Plain::new(&Url::parse(&url).unwrap(), &HeaderMap::new()).unwrap(), connections)
    }

    async fn ask(pool: &Arc<Plain>) -> Result<(u16, String), PlainError> {
        let mut response = pool.post(HeaderMap::new().iter(), b"{}").await?;
        let mut body = Vec::new();
        while let Some(bytes) = response.chunk().await? {
            body.extend_from_slice(&bytes);
        }
        Ok((response.status.as_u16(), String::from_utf8(body).unwrap()))
    }

    #[tokio::test]
    async fn every_framing_is_read_in_any_portions_and_the_connection_is_kept() {
        const TEXTS: &[&str] = &[
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n",
            "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n\
             5\r\nhello\r\n000\r\nx-after: 1\r\n\r\n",
            "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 204 No Content\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
        ];
        for size in [1, 2, 3, 7, 1_000] {
            let (pool, connections) = answers(TEXTS, size).await;
            for _ in 0..3 {
                assert_eq!(ask(&pool).await.unwrap(), (200, "hello".to_owned()), "{size}");
            }
            assert_eq!(ask(&pool).await.unwrap(), (202, String::new()));
            assert_eq!(ask(&pool).await.unwrap(), (204, String::new()));
            assert_eq!(ask(&pool).await.unwrap(), (200, "hello".to_owned()));
            assert_eq!(*connections.lock().unwrap(), 1, "{size}");
        }
    }

    #[tokio::test]
    async fn a_connection_that_the_server_ends_is_not_reused() {
        const TEXTS: &[&str] = &[
            "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 5\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhello",
            "HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
        ];
        let (pool, connections) = answers(TEXTS, 1_000).await;
        for _ in TEXTS {
            assert_eq!(ask(&pool).await.unwrap(), (200, "hello".to_owned()));
        }
        assert_eq!(*connections.lock().unwrap(), TEXTS.len());
    }

    #[tokio::test]
    async fn a_kept_connection_that_ends_without_notice_is_replaced_and_counted() {
        const WHOLE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
        // The first ends right after its response, the second when it gets another request.
        for close_early in [true, false] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}/", listener.local_addr().unwrap());
            tokio::spawn(async move {
                while let Ok((mut stream, _)) = listener.accept().await {
                    let mut seen = Vec::new();
                    while !seen.ends_with(b"{}") && stream.read_buf(&mut seen).await.unwrap() > 0 {}
                    stream.write_all(WHOLE.as_bytes()).await.unwrap();
                    if !close_early {
                        let _ = stream.read_buf(&mut seen).await;
                    }
                }
            });
            let pool = Plain::new(&Url::parse(&url).unwrap(), &HeaderMap::new()).unwrap();
            let mut hangups = 0;
            for _ in 0..20 {
                let mut response = pool.post(HeaderMap::new().iter(), b"{}").await.unwrap();
                while response.chunk().await.unwrap().is_some() {}
                hangups += response.hangups;
            }
            assert_eq!(hangups, 19, "{close_early}");
        }
    }

    #[tokio::test]
    async fn a_message_on_a_new_connection_is_sent_once() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let accepted = Arc::new(Mutex::new(0));
        let counted = Arc::clone(&accepted);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                *counted.lock().unwrap() += 1;
                let _ = stream.read_buf(&mut Vec::new()).await;
            }
        });
        let pool = Plain::new(&Url::parse(&url).unwrap(), &HeaderMap::new()).unwrap();
        assert!(pool.post(HeaderMap::new().iter(), b"{}").await.is_err());
        assert_eq!(*accepted.lock().unwrap(), 1);
    }

    #[tokio::test]
    async fn invalid_responses_are_errors() {
        for text in [
            &["HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 9\r\n\r\nhello"],
            &["HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: -1\r\n\r\nhello"],
            &["HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\nx: close\r\n\r\nhello"],
            &["HTTP/1.1 200 OK\r\nx: close\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel"],
            &[
                "HTTP/1.1 200 OK\r\nx: close\r\ntransfer-encoding: chunked\r\n\r\n3\r\nhello\r\n0\r\n\r\n",
            ],
            &[
                "HTTP/1.1 200 OK\r\nx: close\r\ntransfer-encoding: chunked\r\n\r\nx\r\nhel\r\n0\r\n\r\n",
            ],
            &["HTTP/1.1 200 OK\r\nx: close\r\ntransfer-encoding: chunked\r\n\r\n\
               11111111111111111\r\nhel\r\n0\r\n\r\n"],
            &["HTTP/1.1 200 OK\r\nx: close\r\ntransfer-encoding: gzip\r\n\r\nhello"],
            &["HTTP/1.1 101 Switching Protocols\r\nx: close\r\n\r\n"],
            &["HTTP/1.1 099 OK\r\nconnection: close\r\n\r\n"],
            &["nothing like it, close\r\n\r\n"],
            &["HTTP/1.1 200 OK\r\nx: close"],
        ] as [&'static [&'static str; 1]; 12]
        {
            let (pool, _) = answers(text, 1_000).await;
            assert!(ask(&pool).await.is_err(), "{text:?}");
            assert!(pool.idle().is_empty(), "{text:?}");
        }
    }

    #[tokio::test]
    async fn unrequested_bytes_end_a_connection() {
        const TEXTS: &[&str] = &[
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhelloHTTP/1.1 500 Smuggled\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
        ];
        let (pool, connections) = answers(TEXTS, 1_000).await;
        for _ in TEXTS {
            assert_eq!(ask(&pool).await.unwrap(), (200, "hello".to_owned()));
            tokio::task::yield_now().await;
        }
        assert_eq!(*connections.lock().unwrap(), 2);
    }

    #[test]
    fn urls_and_headers_that_need_more_are_rejected() {
        let url = |text: &str| Url::parse(text).unwrap();
        let none = HeaderMap::new();
        assert!(Plain::new(&url("http://[::1]:80/x"), &none).is_some());
        assert!(Plain::new(&url("https://127.0.0.1/x"), &none).is_none());
        assert!(Plain::new(&url("http://user@127.0.0.1/x"), &none).is_none());
        let mut framed = HeaderMap::new();
        framed.insert("transfer-encoding", HeaderValue::from_static("chunked"));
        assert!(Plain::new(&url("http://127.0.0.1/x"), &framed).is_none());
    }
}
