//! The HTTP server below the dashboard, the receiver of traces, and MCP over HTTP.
//!
//! Bounds what clients can hold: connections, the time until a request is complete, the bytes of bodies,
//! and the time in which an answer is taken. A body is read as a whole before the router sees the request.
//! Does not decide who may ask: [`is_local`] is for routers that answer programs and pages of this machine.

use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::{CONNECTION, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Sleep, sleep, timeout};

use crate::task;
use crate::text::hex;

/// The time between two looks for room, and after a failure to accept.
const PAUSE: Duration = Duration::from_millis(100);

/// The limits of one server.
#[derive(Clone, Debug)]
pub struct ServerLimits {
    /// Connections at a time. Further ones wait, and those without a request make room for them. The
    /// default is half of the 1,024 descriptors that a process usually has.
    pub connections: usize,
    /// The time for the head of a request, which is also that of a connection without one, and again for
    /// its body.
    pub request: Duration,
    /// The time for which a client may refuse to take bytes of an answer.
    pub stalled: Duration,
    /// The time that a connection may be without a request while others wait for room.
    pub crowded: Duration,
    /// The size of a body.
    pub body_bytes: usize,
    /// The size of the bodies of all requests together.
    pub all_bodies_bytes: usize,
    /// The time for requests under way when the server is stopped.
    pub shutdown: Duration,
}

impl Default for ServerLimits {
    fn default() -> ServerLimits {
        ServerLimits {
            connections: 512,
            request: Duration::from_secs(30),
            stalled: Duration::from_secs(30),
            crowded: Duration::from_secs(1),
            body_bytes: 64 << 10,
            all_bodies_bytes: 256 << 20,
            shutdown: Duration::ZERO,
        }
    }
}

/// Serves until `shutdown` is done.
///
/// [`Client`](crate::http::Client) has an example.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: ServerLimits,
    shutdown: impl Future + Send,
) {
    let mut shutdown = pin!(async {
        shutdown.await;
    });
    serve_until(listener, router, limits, shutdown.as_mut()).await;
}

/// As [`serve`], compiled once: here, and not in each crate that awaits it.
fn serve_until<'a>(
    listener: TcpListener,
    router: Router,
    limits: ServerLimits,
    shutdown: Pin<&'a mut (dyn Future<Output = ()> + Send)>,
) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
    Box::pin(accept_until(listener, router, limits, shutdown))
}

async fn accept_until(
    listener: TcpListener,
    router: Router,
    limits: ServerLimits,
    mut shutdown: Pin<&mut (dyn Future<Output = ()> + Send)>,
) {
    let room = Arc::new(Semaphore::new(limits.connections));
    let (phase, changes) = watch::channel(Phase::Open);
    let shared = Arc::new(Shared { router, limits, held: AtomicUsize::new(0) });
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            biased;
            _ = &mut shutdown => break,
            accepted = accept(&listener, &room, &phase) => accepted,
        };
        if let Some((stream, permit)) = accepted {
            connections.spawn(task::boxed(converse(
                stream,
                Arc::clone(&shared),
                permit,
                changes.clone(),
            )));
        }
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    let _ = phase.send(Phase::Ending);
    let rest = async { while connections.join_next().await.is_some() {} };
    let _ = timeout(shared.limits.shutdown, rest).await;
}

/// Returns whether a request is of a program, which has no origin, or of a local web page. A host name that
/// is not local means that a web page has pointed its own name at this server.
///
/// ```
/// use axum::http::{HeaderMap, HeaderValue};
/// use karat_io::http_server::is_local;
///
/// let mut headers = HeaderMap::new();
/// headers.insert("host", HeaderValue::from_static("localhost:8080"));
/// assert!(is_local(&headers));
/// headers.insert("origin", HeaderValue::from_static("https://example.com"));
/// assert!(!is_local(&headers));
/// ```
pub fn is_local(headers: &HeaderMap) -> bool {
    let local = |host: &str| {
        let name = match host.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or_default(),
            None => host.split(':').next().unwrap_or_default(),
        };
        name == "localhost" || name.parse::<IpAddr>().is_ok()
    };
    let origin = match headers.get(ORIGIN).map(|value| value.to_str().unwrap_or_default()) {
        None => true,
        Some(origin) => origin.split_once("://").is_some_and(|(_, host)| local(host)),
    };
    let host = headers.get(HOST).is_none_or(|host| host.to_str().is_ok_and(local));
    origin && host
}

/// A new secret of 128 bits, in hexadecimal.
///
/// # Errors
/// If the system has no random bytes.
pub fn random_token() -> io::Result<String> {
    let mut bytes = [0; 16];
    let random = rustls::crypto::ring::default_provider().secure_random;
    random
        .fill(&mut bytes)
        .map_err(|_| io::Error::other("cannot get random bytes from the system"))?;
    Ok(hex(&bytes))
}

#[derive(Clone, Copy)]
enum Phase {
    Open,
    /// A client waits for room.
    Full,
    Ending,
}

struct Shared {
    router: Router,
    limits: ServerLimits,
    /// The bytes of bodies that are being received or answered.
    held: AtomicUsize,
}

/// The next connection, once there is room for it; none if it failed before it was accepted.
async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
    phase: &watch::Sender<Phase>,
) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    let permit = loop {
        if let Ok(Ok(permit)) = timeout(PAUSE, Arc::clone(room).acquire_owned()).await {
            break permit;
        }
        let _ = phase.send(Phase::Full);
    };
    match listener.accept().await {
        Ok((stream, _)) => Some((stream, permit)),
        Err(error) => {
            let of_the_client = [io::ErrorKind::ConnectionAborted, io::ErrorKind::ConnectionReset];
            if !of_the_client.contains(&error.kind()) {
                // Most likely there are no descriptors left.
                let _ = phase.send(Phase::Full);
                sleep(PAUSE).await;
            }
            None
        }
    }
}

/// One connection from its first byte to its last.
async fn converse(
    stream: TcpStream,
    shared: Arc<Shared>,
    _room: OwnedSemaphorePermit,
    mut phase: watch::Receiver<Phase>,
) {
    let activity = Arc::new(Activity::default());
    let service = {
        let (shared, activity) = (Arc::clone(&shared), Arc::clone(&activity));
        service_fn(move |request| answer(request, Arc::clone(&shared), Arc::clone(&activity)))
    };
    let _ = stream.set_nodelay(true);
    let patience = shared.limits.stalled;
    let stream = Impatient { stream, patience, stalled: None, activity: Arc::clone(&activity) };
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(shared.limits.request)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    loop {
        tokio::select! {
            _ = connection.as_mut() => return,
            changed = phase.changed() => {
                let now = *phase.borrow_and_update();
                let patience = match now {
                    Phase::Open => continue,
                    Phase::Full => shared.limits.crowded,
                    Phase::Ending => Duration::ZERO,
                };
                if changed.is_err() || activity.is_without_request_for(patience) {
                    return;
                }
                if matches!(now, Phase::Ending) {
                    connection.as_mut().graceful_shutdown();
                }
            }
        }
    }
}

async fn answer(
    request: Request<Incoming>,
    shared: Arc<Shared>,
    activity: Arc<Activity>,
) -> Result<Response<Tracked>, Infallible> {
    let (head, body) = request.into_parts();
    let mut held = Held { shared: &shared, bytes: 0 };
    let body = match timeout(shared.limits.request, held.read(body)).await {
        Ok(Ok(body)) => body,
        Ok(Err(status)) => return Ok(refusal(status)),
        Err(_) => return Ok(refusal(StatusCode::REQUEST_TIMEOUT)),
    };
    let busy = activity.request();
    let service = TowerToHyperService::new(shared.router.clone());
    let response = service.call(Request::from_parts(head, Body::from(body))).await?;
    Ok(response.map(|body| Tracked { body, _busy: Some(busy) }))
}

/// An answer to a request that was not read to its end.
fn refusal(status: StatusCode) -> Response<Tracked> {
    let text = format!("{}\n", status.canonical_reason().unwrap_or("refused"));
    let mut response = Response::new(Tracked { body: Body::from(text), _busy: None });
    *response.status_mut() = status;
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// The bytes of one body, as part of those of all.
struct Held<'a> {
    shared: &'a Shared,
    bytes: usize,
}

impl Held<'_> {
    async fn read(&mut self, body: Incoming) -> Result<Vec<u8>, StatusCode> {
        let limits = &self.shared.limits;
        if body.size_hint().lower() > limits.body_bytes as u64 {
            return Err(StatusCode::PAYLOAD_TOO_LARGE);
        }
        let mut read = Vec::new();
        let mut body = pin!(body);
        while let Some(frame) = std::future::poll_fn(|task| body.as_mut().poll_frame(task)).await {
            let frame = frame.map_err(|_| StatusCode::BAD_REQUEST)?;
            let Ok(data) = frame.into_data() else { continue };
            if read.len() + data.len() > limits.body_bytes {
                return Err(StatusCode::PAYLOAD_TOO_LARGE);
            }
            self.bytes += data.len();
            let before = self.shared.held.fetch_add(data.len(), Ordering::Relaxed);
            if before + data.len() > limits.all_bodies_bytes {
                return Err(StatusCode::SERVICE_UNAVAILABLE);
            }
            read.extend_from_slice(&data);
        }
        Ok(read)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.shared.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Whether a connection has a complete request, and since when it has none.
struct Activity(Mutex<Doing>);

struct Doing {
    /// A request is answered.
    request: bool,
    /// Bytes of an answer are not yet taken; they outlive its body.
    writing: bool,
    changed: Instant,
}

impl Default for Activity {
    fn default() -> Activity {
        Activity(Mutex::new(Doing { request: false, writing: false, changed: Instant::now() }))
    }
}

impl Activity {
    fn change(&self, change: impl FnOnce(&mut Doing)) {
        let mut doing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut doing);
        doing.changed = Instant::now();
    }

    /// Marks a request that lasts until the guard is dropped. HTTP/1 has one at a time.
    fn request(self: Arc<Self>) -> Busy {
        self.change(|doing| doing.request = true);
        Busy(self)
    }

    fn is_without_request_for(&self, time: Duration) -> bool {
        let doing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        !doing.request && !doing.writing && doing.changed.elapsed() >= time
    }
}

struct Busy(Arc<Activity>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.change(|doing| doing.request = false);
    }
}

/// The body of an answer; its request lasts until all of it is sent.
struct Tracked {
    body: Body,
    _busy: Option<Busy>,
}

impl HttpBody for Tracked {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(task)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A stream that gives up when the other side takes nothing for some time.
struct Impatient {
    stream: TcpStream,
    patience: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
    activity: Arc<Activity>,
}

impl Impatient {
    fn unless_stalled<T>(
        &mut self,
        task: &mut Context<'_>,
        polled: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        self.activity.change(|doing| doing.writing = polled.is_pending());
        if polled.is_ready() {
            self.stalled = None;
            return polled;
        }
        let patience = self.patience;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(stalled.as_mut().poll(task));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Impatient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(task, buffer)
    }
}

impl AsyncWrite for Impatient {
    fn poll_write(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(task, bytes);
        self.unless_stalled(task, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(task, parts);
        self.unless_stalled(task, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(task);
        self.unless_stalled(task, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(task);
        self.unless_stalled(task, polled)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

    use axum::routing::{get, post};
    use std::net::SocketAddr;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// Time-outs so long that a test which waits for one hangs, but for those that it sets.
    fn patient() -> ServerLimits {
        let long = Duration::from_secs(600);
        ServerLimits { request: long, stalled: long, crowded: long, ..ServerLimits::default() }
    }

    async fn start(limits: ServerLimits) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new()
            .route("/", get(async || "hello"))
            .route("/size", post(async |body: Bytes| body.len().to_string()))
            .route("/long", get(async || vec![b'x'; 64 << 20]));
        tokio::spawn(serve(listener, router, limits, std::future::pending::<()>()));
        address
    }

    async fn send(to: SocketAddr, text: &str) -> TcpStream {
        let mut stream = TcpStream::connect(to).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        stream
    }

    /// Reads until the server closes the connection; a reset counts as the end.
    async fn rest(mut stream: TcpStream) -> String {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes).await;
        String::from_utf8_lossy(&bytes).into_owned()
    }

    async fn ask(to: SocketAddr) -> String {
        rest(send(to, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await).await
    }

    #[tokio::test]
    async fn half_sent_requests_and_idle_connections_are_closed() {
        let limits = ServerLimits { request: Duration::from_millis(50), ..patient() };
        let address = start(limits).await;
        for head in ["", "GET / HT", "GET / HTTP/1.1\r\nHost: a\r\n"] {
            assert!(!rest(send(address, head).await).await.contains("200 OK"), "{head:?}");
        }
        let body = "POST /size HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabc";
        assert!(rest(send(address, body).await).await.contains("408 Request Timeout"));
        let kept = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        assert!(rest(send(address, kept).await).await.ends_with("hello"));
    }

    #[tokio::test]
    async fn connections_without_a_request_make_room_for_others() {
        let crowded = Duration::from_millis(10);
        let address = start(ServerLimits { connections: 4, crowded, ..patient() }).await;
        let mut held = Vec::new();
        for head in
            ["", "GET / HT", "POST /size HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabc"]
        {
            held.push(send(address, head).await);
        }
        // This one has been answered and is kept alive.
        let mut kept = send(address, "GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let mut byte = [0];
        kept.read_exact(&mut byte).await.unwrap();
        for _ in 0..20 {
            assert!(ask(address).await.ends_with("hello"));
        }
        drop((held, kept));
    }

    #[tokio::test]
    async fn a_request_under_way_does_not_make_room() {
        let crowded = Duration::from_millis(10);
        let address = start(ServerLimits { connections: 1, crowded, ..patient() }).await;
        let mut taking =
            send(address, "GET /long HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
        let mut byte = [0];
        taking.read_exact(&mut byte).await.unwrap();
        let waiting = tokio::spawn(ask(address));
        assert!(rest(taking).await.len() >= 64 << 20);
        assert!(waiting.await.unwrap().ends_with("hello"));
    }

    #[tokio::test]
    async fn a_client_that_takes_nothing_is_dropped() {
        let stalled = Duration::from_millis(50);
        let address = start(ServerLimits { connections: 1, stalled, ..patient() }).await;
        let stuck = send(address, "GET /long HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert!(ask(address).await.ends_with("hello"));
        drop(stuck);
    }

    #[tokio::test]
    async fn bodies_are_bounded_each_and_together() {
        let limits = ServerLimits { body_bytes: 10, all_bodies_bytes: 15, ..patient() };
        let address = start(limits).await;
        let head = "POST /size HTTP/1.1\r\nHost: a\r\nConnection: close\r\n";
        let sized =
            |size: usize| format!("{head}Content-Length: {size}\r\n\r\n{}", "x".repeat(size));
        assert!(rest(send(address, &sized(10)).await).await.ends_with("10"));
        assert!(rest(send(address, &sized(11)).await).await.contains("413 Payload Too Large"));
        let chunked = format!(
            "{head}Transfer-Encoding: chunked\r\n\r\n8\r\n12345678\r\n8\r\n12345678\r\n0\r\n\r\n"
        );
        assert!(rest(send(address, &chunked).await).await.contains("413 Payload Too Large"));
        let first = send(address, &format!("{head}Content-Length: 10\r\n\r\n123456789")).await;
        // Until the server has read the first one, the second has room.
        let is_refused = |answer: &str| answer.contains("503 Service Unavailable");
        let refused = asked_until(address, &sized(10), is_refused).await;
        assert!(is_refused(&refused), "the first body does not count: {refused:?}");
        drop(first);
        let has_room = |answer: &str| answer.ends_with("10");
        let answered = asked_until(address, &sized(10), has_room).await;
        assert!(
            has_room(&answered),
            "the body of a client that is gone still counts: {answered:?}"
        );
    }

    /// Sends a request until its answer is as wanted, at most a thousand times. Returns the last answer.
    async fn asked_until(to: SocketAddr, request: &str, wanted: impl Fn(&str) -> bool) -> String {
        let mut answer = String::new();
        for _ in 0..1_000 {
            answer = rest(send(to, request).await).await;
            if wanted(&answer) {
                break;
            }
            sleep(Duration::from_millis(5)).await;
        }
        answer
    }

    #[tokio::test]
    async fn the_end_waits_for_requests_under_way_alone() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (asked, was_asked) = tokio::sync::oneshot::channel::<()>();
        let asked = Arc::new(Mutex::new(Some(asked)));
        let slow = move || {
            let asked = asked.lock().unwrap().take();
            async move {
                drop(asked);
                sleep(Duration::from_millis(50)).await;
                "done"
            }
        };
        let router = Router::new().route("/", get(slow));
        let limits = ServerLimits { shutdown: Duration::from_secs(600), ..patient() };
        let serving = tokio::spawn(serve(listener, router, limits, was_asked));
        let idle = send(address, "GET").await;
        let answered = rest(send(address, "GET / HTTP/1.1\r\nHost: a\r\n\r\n").await).await;
        assert!(answered.ends_with("done"), "{answered}");
        serving.await.unwrap();
        assert_eq!(rest(idle).await, "");
    }

    #[test]
    fn tokens_differ() {
        let (one, other) = (random_token().unwrap(), random_token().unwrap());
        assert!(one.len() == 32 && one != other);
    }
}
