//! A server over lines: stdin and stdout, or any pair of streams.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use karat_io::task;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, BufReader};
use tokio::task::{AbortHandle, JoinSet};

use super::context::{ClientRequests, SendMessage};
use super::request_handler::{Received, Request, RequestHandler};
use super::respond::{Offer, Responder, ServeError};
use crate::limits::Limits;
use crate::outbox::Outbox;

/// Time for running calls to finish after the client has closed its side.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Bytes of answers that may wait for a client that does not read.
const MAX_WAITING_BYTES: usize = 256 << 20;

/// Running calls by the JSON of their id.
type Running = Arc<Mutex<HashMap<String, AbortHandle>>>;

pub(super) type Reading = Box<dyn AsyncRead + Unpin + Send>;
pub(super) type Writing = Box<dyn AsyncWrite + Unpin + Send>;
type Served<'a> = Pin<Box<dyn Future<Output = Result<(), ServeError>> + Send + 'a>>;

/// Serves until `read` ends. It is boxed here so that it is compiled here: the body of an `async fn` is
/// compiled in each crate that awaits it.
pub(super) fn serve(
    offer: &Offer,
    respond: Arc<dyn Responder>,
    read: Reading,
    write: Writing,
) -> Served<'_> {
    Box::pin(async move {
        serve_with(Arc::new(RequestHandler::new(offer, respond)?), read, write).await;
        Ok(())
    })
}

async fn serve_with(handler: Arc<RequestHandler>, read: Reading, write: Writing) {
    let outbox = Outbox::new(MAX_WAITING_BYTES);
    let writing = Arc::clone(&outbox);
    let writer = task::spawn(async move { writing.drain(write).await });
    let sending = Arc::clone(&outbox);
    let client = Client {
        send: Arc::new(move |message| {
            let _ = sending.push(&message);
        }),
        requests: Arc::default(),
    };
    let running = Running::default();
    let mut calls = JoinSet::new();
    let mut lines = BufReader::with_capacity(64 << 10, read);
    let mut line = Vec::new();
    while next_line(&mut lines, &mut line).await {
        for received in RequestHandler::receive(line.trim_ascii()) {
            match received {
                Received::Request(request) if is_quick(&request.method) => {
                    let answered = handler.answer(&request, &client.send, &client.requests).await;
                    let _ = outbox.push(&answered.bytes);
                }
                Received::Request(request) => {
                    spawn(&mut calls, &handler, &client, &running, request);
                }
                Received::Answer { id, outcome } => client.requests.answered(&id, outcome),
                Received::Cancelled(id) => {
                    if let Some(call) = lock(&running).remove(&id.to_string()) {
                        call.abort();
                    }
                }
                Received::Invalid(answer) => {
                    let _ = outbox.push(&answer);
                }
                Received::Notification => {}
            }
        }
        while calls.try_join_next().is_some() {}
    }
    let rest = async { while calls.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, rest).await;
    outbox.close();
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, writer).await;
}

/// True if the handler answers this method itself and at once.
fn is_quick(method: &str) -> bool {
    matches!(method, "initialize" | "server/discover" | "ping" | "tools/list")
}

/// The client at the other end.
#[derive(Clone)]
struct Client {
    send: SendMessage,
    requests: Arc<ClientRequests>,
}

fn lock(running: &Running) -> std::sync::MutexGuard<'_, HashMap<String, AbortHandle>> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

fn spawn(
    calls: &mut JoinSet<()>,
    handler: &Arc<RequestHandler>,
    client: &Client,
    running: &Running,
    request: Request,
) {
    let id = request.id.to_string();
    let (handler, client, finished) = (Arc::clone(handler), client.clone(), Arc::clone(running));
    // Locked until the call is listed, so that it cannot be removed before.
    let mut list = lock(running);
    let key = id.clone();
    let call = calls.spawn(async move {
        let answered = handler.answer(&request, &client.send, &client.requests).await;
        lock(&finished).remove(&key);
        (client.send)(answered.bytes);
    });
    list.insert(id, call);
}

/// Reads the next line that is not empty; false if the stream ends or a line is too long.
pub(crate) async fn next_line<S: AsyncRead + Unpin>(
    from: &mut BufReader<S>,
    line: &mut Vec<u8>,
) -> bool {
    let limit = Limits::default().message_bytes;
    loop {
        line.clear();
        loop {
            let Ok(available) = from.fill_buf().await else { return false };
            if available.is_empty() {
                break;
            }
            let end = memchr::memchr(b'\n', available);
            let taken = end.map_or(available.len(), |at| at + 1);
            line.extend_from_slice(&available[..taken]);
            from.consume(taken);
            if line.len() > limit {
                return false;
            }
            if end.is_some() {
                break;
            }
        }
        if line.is_empty() {
            return false;
        }
        if !line.trim_ascii().is_empty() {
            return true;
        }
    }
}
