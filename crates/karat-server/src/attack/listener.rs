//! A listener on 127.0.0.1, and on ::1 if possible, that records connections and requests. Only an attack that worked
//! makes a server send a request with the number of an attempt.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use karat_io::task;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::pages::{Page, Place, Requested, landing};

/// The size of a request head, the time limit for it, and the number of connections that are recorded.
const MAX_HEAD: usize = 8 << 10;
const TIMEOUT: Duration = Duration::from_secs(5);
const MAX_RECORDED: usize = 100_000;
/// Connections at a time, and the time after a failure to accept one.
const MAX_CONNECTIONS: usize = 128;
const PAUSE: Duration = Duration::from_millis(100);

/// The bytes that came through a connection so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Received {
    Nothing,
    /// Bytes that are not an HTTP request, such as the start of TLS.
    Unreadable,
    Request(Requested),
}

/// A contact without the number of an attempt, the weakest first. It may come from anything that found the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Contact {
    /// A connection through which nothing was sent.
    Silent,
    /// A connection through which something was sent that is not a plain HTTP request.
    Unreadable,
    /// A request for a page that the tool chose.
    Page,
}

type Connections = Mutex<Vec<Received>>;

/// The listener.
pub(super) struct CanaryListener {
    port: u16,
    page_token: String,
    connections: Arc<Connections>,
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
        let connections = Arc::default();
        let page = format!("{page_token}\n{orders}");
        let mut tasks =
            vec![task::spawn(serve(listener, port, page.clone(), Arc::clone(&connections)))];
        if let Ok(listener) = TcpListener::bind((Ipv6Addr::LOCALHOST, port)).await {
            tasks.push(task::spawn(serve(listener, port, page, Arc::clone(&connections))));
        }
        Ok(CanaryListener { port, page_token, connections, tasks })
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
    pub(super) fn record(&self, target: &str) {
        let received = Requested::read(target).map_or(Received::Unreadable, Received::Request);
        lock(&self.connections).push(received);
    }

    /// Records a simulated connection through which nothing is sent.
    #[cfg(test)]
    pub(super) fn record_silence(&self) {
        lock(&self.connections).push(Received::Nothing);
    }

    /// Returns whether the page was requested, or one that a tool derived from its address.
    pub(super) fn was_called(&self, page: Page) -> bool {
        let requested = Requested { place: page.place, number: Some(page.number) };
        lock(&self.connections).contains(&Received::Request(requested))
    }

    /// The strongest contact without a number, apart from the first `since` connections. Requests count that are for
    /// these places, and connections without a request if these include pages that no attempt asks for.
    pub(super) fn contact(&self, since: usize, places: &[Place]) -> Option<Contact> {
        let is_anywhere = places.contains(&Place::Other);
        let contact = |received: &Received| match received {
            Received::Nothing if is_anywhere => Some(Contact::Silent),
            Received::Unreadable if is_anywhere => Some(Contact::Unreadable),
            Received::Request(Requested { place, number: None }) if places.contains(place) => {
                Some(Contact::Page)
            }
            _ => None,
        };
        lock(&self.connections).iter().skip(since).filter_map(contact).max()
    }

    /// The number of connections.
    pub(super) fn count(&self) -> usize {
        lock(&self.connections).len()
    }
}

fn lock(connections: &Connections) -> MutexGuard<'_, Vec<Received>> {
    connections.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for CanaryListener {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

async fn serve(listener: TcpListener, port: u16, page: String, connections: Arc<Connections>) {
    let page = Arc::new(page);
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            // There may be no descriptors left.
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let at = {
            let mut connections = lock(&connections);
            let at = connections.len();
            if at < MAX_RECORDED {
                connections.push(Received::Nothing);
            }
            at
        };
        let (page, connections) = (Arc::clone(&page), Arc::clone(&connections));
        task::spawn(async move {
            let note = |received: Received| {
                if let Some(known) = lock(&connections).get_mut(at) {
                    *known = received;
                }
            };
            let _ = tokio::time::timeout(TIMEOUT, answer(stream, port, &page, note)).await;
            drop(permit);
        });
    }
}

async fn answer(
    mut stream: TcpStream,
    port: u16,
    page: &str,
    note: impl Fn(Received),
) -> std::io::Result<()> {
    let mut head = Vec::new();
    let mut block = [0; 1024];
    while head.len() < MAX_HEAD && !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut block).await? {
            0 => break,
            read => head.extend_from_slice(&block[..read]),
        }
        note(Received::Unreadable);
        // A client that speaks something else waits for an answer that it would never get.
        if !head.first().is_some_and(u8::is_ascii_uppercase) {
            return stream.shutdown().await;
        }
    }
    let head = String::from_utf8_lossy(&head);
    let target = head.split_whitespace().nth(1).unwrap_or_default();
    let Some(requested) = Requested::read(target) else { return stream.shutdown().await };
    note(Received::Request(requested));
    let answer = match landing(target) {
        Some(path) => format!(
            "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{port}{path}\r\n\
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

    const ANY: &[Place] = &[Place::Loopback, Place::Moved, Place::Other];

    async fn send(port: u16, bytes: &[u8]) {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        // The listener may close the connection with bytes unread.
        let _ = stream.shutdown().await;
        let _ = stream.read_to_end(&mut Vec::new()).await;
    }

    #[tokio::test]
    async fn requests_are_recorded_and_redirects_lead_back_to_the_listener() {
        let listener = CanaryListener::listen("token".to_owned(), "orders").await.unwrap();
        let (page, moved) =
            (Page { place: Place::Loopback, number: 7 }, Page { place: Place::Moved, number: 7 });
        assert!(!listener.was_called(page));
        assert!(get(listener.port(), &page.path()).await.contains("token\norders"));
        assert!(listener.was_called(page) && !listener.was_called(moved));
        let answer = get(listener.port(), &moved.path()).await;
        let landed = Page { place: Place::Landed, number: 7 };
        let to = format!("Location: http://127.0.0.1:{}{}\r", listener.port(), landed.path());
        assert!(answer.contains(&to), "{answer}");
        assert!(listener.was_called(moved) && !listener.was_called(landed));
    }

    #[tokio::test]
    async fn a_connection_without_a_request_differs_from_one_with_a_request() {
        let listener = CanaryListener::listen("token".to_owned(), "orders").await.unwrap();
        assert_eq!(listener.contact(0, ANY), None);
        send(listener.port(), b"").await;
        assert_eq!(listener.contact(0, ANY), Some(Contact::Silent));
        // The starts of TLS and of HTTP/2.
        for bytes in [&b"\x16\x03\x01 \x02\x00"[..], b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
            let since = listener.count();
            send(listener.port(), bytes).await;
            assert_eq!(listener.contact(since, ANY), Some(Contact::Unreadable));
            assert_eq!(listener.contact(since, &[Place::Loopback]), None);
        }
        assert_eq!(listener.count(), 3);
    }

    #[tokio::test]
    async fn a_page_with_the_number_of_an_attempt_is_not_a_contact_of_another_one() {
        let listener = CanaryListener::listen("token".to_owned(), "orders").await.unwrap();
        let page = |number| Page { place: Place::Loopback, number };
        get(listener.port(), "/loopback/12/status").await;
        assert!(listener.was_called(page(12)) && !listener.was_called(page(1)));
        assert_eq!(listener.contact(0, ANY), None);
        let before = listener.count();
        get(listener.port(), "/status").await;
        assert_eq!(listener.contact(before, ANY), Some(Contact::Page));
        assert_eq!(listener.contact(before, &[Place::Loopback]), None);
        get(listener.port(), "/loopback/status").await;
        assert_eq!(listener.contact(before, &[Place::Loopback]), Some(Contact::Page));
        assert_eq!(listener.contact(listener.count(), ANY), None);
    }
}
