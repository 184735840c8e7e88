//! A listener on 127.0.0.1 that notes who calls. Nobody should, unless an attack made them.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// How much of a request is read, how long is waited for it, and how many calls are remembered.
const HEAD: usize = 8 << 10;
const PATIENCE: Duration = Duration::from_secs(5);
const REMEMBERED: usize = 10_000;

/// The listener.
pub(super) struct Canary {
    port: u16,
    page_token: String,
    calls: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Canary {
    /// Listens on a free port of 127.0.0.1.
    pub(super) async fn listen(page_token: String, orders: &str) -> std::io::Result<Canary> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let calls = Arc::new(Mutex::new(Vec::new()));
        let page = format!("{page_token}\n{orders}");
        let task = tokio::spawn(serve(listener, port, page, Arc::clone(&calls)));
        Ok(Canary { port, page_token, calls, task })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// What stands on every page.
    pub(super) fn page_token(&self) -> &str {
        &self.page_token
    }

    /// Notes a call that was only played.
    pub(super) fn note(&self, path: &str) {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_owned());
    }

    /// Whether this path was called.
    pub(super) fn was_called(&self, path: &str) -> bool {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.iter().any(|call| call == path)
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, port: u16, page: String, calls: Arc<Mutex<Vec<String>>>) {
    let page = Arc::new(page);
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let (page, calls) = (Arc::clone(&page), Arc::clone(&calls));
        tokio::spawn(async move {
            let _ = tokio::time::timeout(PATIENCE, answer(stream, port, &page, &calls)).await;
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
    while head.len() < HEAD && !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut block).await? {
            0 => break,
            read => head.extend_from_slice(&block[..read]),
        }
    }
    let head = String::from_utf8_lossy(&head);
    let path = head.split_whitespace().nth(1).unwrap_or_default();
    {
        let mut calls = calls.lock().unwrap_or_else(PoisonError::into_inner);
        if calls.len() < REMEMBERED {
            calls.push(path.to_owned());
        }
    }
    let answer = match path.strip_prefix("/moved/") {
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
    async fn calls_are_noted_and_redirects_lead_back_here() {
        let canary = Canary::listen("token".to_owned(), "orders").await.unwrap();
        assert!(!canary.was_called("/a"));
        assert!(get(canary.port(), "/a").await.contains("token\norders"));
        assert!(canary.was_called("/a"));
        let moved = get(canary.port(), "/moved/7").await;
        assert!(moved.contains(&format!("Location: http://127.0.0.1:{}/landed/7", canary.port())));
        assert!(!canary.was_called("/landed/7"));
    }
}
