//! A listener on 127.0.0.1, and on ::1 if possible, that records requests. Only an attack that worked
//! makes a server send one.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use karat_io::task;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// The size of a request head, the time limit for it, and the number of requests that are recorded.
const MAX_HEAD: usize = 8 << 10;
const TIMEOUT: Duration = Duration::from_secs(5);
const MAX_RECORDED: usize = 10_000;
/// Connections at a time, and the time after a failure to accept one.
const MAX_CONNECTIONS: usize = 128;
const PAUSE: Duration = Duration::from_millis(100);
/// The beginning of the paths that are redirected.
pub(super) const REDIRECTING: &str = "/moved/";
/// The beginnings of the paths that attempts ask for.
const EXPECTED: [&str; 6] =
    ["/loopback/", REDIRECTING, "/landed/", "/latest/", "/computeMetadata/", "/orders"];

/// The listener.
pub(super) struct CanaryListener {
    port: u16,
    page_token: String,
    calls: Arc<Mutex<Vec<String>>>,
    tasks: Vec<JoinHandle<()>>,
}

impl CanaryListener {
    /// Listens on a free port of 127.0.0.1, and on the same port of ::1 if it is free.
    pub(super) async fn listen(
        page_token: String,
        orders: &str,
    ) -> std::io::Result<CanaryListener> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let calls = Arc::new(Mutex::new(Vec::new()));
        let page = format!("{page_token}\n{orders}");
        let mut tasks = vec![task::spawn(serve(listener, port, page.clone(), Arc::clone(&calls)))];
        if let Ok(listener) = TcpListener::bind((Ipv6Addr::LOCALHOST, port)).await {
            tasks.push(task::spawn(serve(listener, port, page, Arc::clone(&calls))));
        }
        Ok(CanaryListener { port, page_token, calls, tasks })
    }

    /// Returns whether it listens on ::1 too.
    pub(super) fn has_v6(&self) -> bool {
        self.tasks.len() > 1
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// The token on every page.
    pub(super) fn page_token(&self) -> &str {
        &self.page_token
    }

    /// Records a simulated request.
    pub(super) fn record(&self, path: &str) {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_owned());
    }

    /// Returns whether this path was requested, or one that continues it.
    pub(super) fn was_called(&self, path: &str) -> bool {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        // The paths end in a number, and with more digits it is another number.
        let fits = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_digit());
        calls.iter().any(|call| call.strip_prefix(path).is_some_and(fits))
    }

    /// Returns whether there was a request, apart from the first `since`, for a path with this start. A connection
    /// without a path, such as one of a client that speaks TLS, shows nothing of what would be asked for.
    pub(super) fn was_asked(&self, since: usize, start: &str) -> bool {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.iter().skip(since).any(|call| call.starts_with(start))
    }

    /// The number of requests.
    pub(super) fn count(&self) -> usize {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Returns whether there was a request, apart from the first `since`, for a path that no attempt asks for:
    /// the tool chose it.
    pub(super) fn was_visited(&self, since: usize) -> bool {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let own = |call: &String| {
            call.starts_with('/') && !EXPECTED.iter().any(|start| call.starts_with(start))
        };
        calls.iter().skip(since).any(own)
    }
}

impl Drop for CanaryListener {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

async fn serve(listener: TcpListener, port: u16, page: String, calls: Arc<Mutex<Vec<String>>>) {
    let page = Arc::new(page);
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            // There may be no descriptors left.
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let (page, calls) = (Arc::clone(&page), Arc::clone(&calls));
        task::spawn(async move {
            let _ = tokio::time::timeout(TIMEOUT, answer(stream, port, &page, &calls)).await;
            drop(permit);
        });
    }
}

async fn answer(
    mut stream: TcpStream,
    port: u16,
    page: &str,
    calls: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut head = Vec::new();
    let mut block = [0; 1024];
    while head.len() < MAX_HEAD && !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut block).await? {
            0 => break,
            read => head.extend_from_slice(&block[..read]),
        }
    }
    let head = String::from_utf8_lossy(&head);
    let path = head.split_whitespace().nth(1).unwrap_or_default();
    {
        let mut calls = calls.lock().unwrap_or_else(PoisonError::into_inner);
        if calls.len() < MAX_RECORDED {
            calls.push(path.to_owned());
        }
    }
    let answer = match path.strip_prefix(REDIRECTING) {
        Some(rest) => format!(
            "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{port}/landed/{rest}\r\n\
             Content-Length: 0\r\nConnection: close\r\n\r\n"
        ),
        None => format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{page}",
            page.len()
        ),
    };
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn get(port: u16, path: &str) -> String {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).await.unwrap();
        page
    }

    #[tokio::test]
    async fn requests_are_recorded_and_redirects_lead_back_to_the_listener() {
        let listener = CanaryListener::listen("token".to_owned(), "orders").await.unwrap();
        assert!(!listener.was_called("/a"));
        assert!(get(listener.port(), "/a").await.contains("token\norders"));
        assert!(listener.was_called("/a"));
        let moved = get(listener.port(), "/moved/7").await;
        assert!(
            moved.contains(&format!("Location: http://127.0.0.1:{}/landed/7", listener.port()))
        );
        assert!(!listener.was_called("/landed/7"));
    }

    #[tokio::test]
    async fn a_connection_without_a_path_asks_for_nothing() {
        let listener = CanaryListener::listen("token".to_owned(), "orders").await.unwrap();
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, listener.port())).await.unwrap();
        // The start of a TLS handshake, and the end of the connection.
        stream.write_all(b"\x16\x03\x01 \x02\x00").await.unwrap();
        stream.shutdown().await.unwrap();
        let _ = stream.read_to_end(&mut Vec::new()).await;
        assert_eq!(listener.count(), 1);
        assert!(!listener.was_asked(0, "/"));
        get(listener.port(), "/moved/7").await;
        assert!(listener.was_asked(1, "/") && listener.was_asked(1, REDIRECTING));
        assert!(!listener.was_asked(2, "/") && !listener.was_asked(0, "/landed/"));
    }

    #[tokio::test]
    async fn paths_that_a_tool_extends_or_chooses_are_recognized() {
        let listener = CanaryListener::listen("token".to_owned(), "orders").await.unwrap();
        get(listener.port(), "/loopback/12/status").await;
        assert!(listener.was_called("/loopback/12") && !listener.was_called("/loopback/1"));
        assert!(!listener.was_visited(0));
        let before = listener.count();
        get(listener.port(), "/status").await;
        assert!(listener.was_visited(before) && !listener.was_visited(listener.count()));
    }
}
