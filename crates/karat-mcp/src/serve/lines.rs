//! Serving over lines: standard input and output, or any pair of streams.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, BufReader};
use tokio::task::{AbortHandle, JoinSet};

use super::Respond;
use super::context::{Asks, Tell};
use super::desk::{Desk, Received, Request};
use crate::limits::Limits;
use crate::outbox::Outbox;

/// How long calls under way may go on after the client has closed its side.
const LAST_CALLS: Duration = Duration::from_secs(1);
/// How many bytes of answers may wait for a client that does not read.
const WAITING_AT_MOST: usize = 256 << 20;

/// Calls under way, by the JSON of their id.
type UnderWay = Arc<Mutex<HashMap<String, AbortHandle>>>;

pub(super) async fn serve<R, S, W>(desk: Arc<Desk<R>>, read: S, write: W)
where
    R: Respond,
    S: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let outbox = Outbox::new(WAITING_AT_MOST);
    let writing = Arc::clone(&outbox);
    let writer = tokio::spawn(async move { writing.drain(write).await });
    let telling = Arc::clone(&outbox);
    let client = Client {
        tell: Arc::new(move |message| {
            let _ = telling.push(&message);
        }),
        asks: Arc::default(),
    };
    let under_way = UnderWay::default();
    let mut calls = JoinSet::new();
    let mut lines = BufReader::with_capacity(64 << 10, read);
    let mut line = Vec::new();
    while next_line(&mut lines, &mut line).await {
        for received in Desk::<R>::receive(line.trim_ascii()) {
            match received {
                Received::Request(request) if is_quick(&request.method) => {
                    let answered = desk.answer(&request, &client.tell, &client.asks).await;
                    let _ = outbox.push(&answered.bytes);
                }
                Received::Request(request) => {
                    spawn(&mut calls, &desk, &client, &under_way, request);
                }
                Received::Answer { id, outcome } => client.asks.answered(&id, outcome),
                Received::Cancelled(id) => {
                    if let Some(call) = lock(&under_way).remove(&id.to_string()) {
                        call.abort();
                    }
                }
                Received::Broken(answer) => {
                    let _ = outbox.push(&answer);
                }
                Received::Told => {}
            }
        }
        while calls.try_join_next().is_some() {}
    }
    let rest = async { while calls.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(LAST_CALLS, rest).await;
    outbox.close();
    let _ = tokio::time::timeout(LAST_CALLS, writer).await;
}

/// Whether the desk answers by itself, without asking anybody.
fn is_quick(method: &str) -> bool {
    matches!(method, "initialize" | "server/discover" | "ping" | "tools/list")
}

/// The client at the other end.
#[derive(Clone)]
struct Client {
    tell: Tell,
    asks: Arc<Asks>,
}

fn lock(under_way: &UnderWay) -> std::sync::MutexGuard<'_, HashMap<String, AbortHandle>> {
    under_way.lock().unwrap_or_else(PoisonError::into_inner)
}

fn spawn<R: Respond>(
    calls: &mut JoinSet<()>,
    desk: &Arc<Desk<R>>,
    client: &Client,
    under_way: &UnderWay,
    request: Request,
) {
    let id = request.id.to_string();
    let (desk, client, finished) = (Arc::clone(desk), client.clone(), Arc::clone(under_way));
    // Held until the call is on the list, so that it cannot leave the list before it is on it.
    let mut list = lock(under_way);
    let key = id.clone();
    let call = calls.spawn(async move {
        let answered = desk.answer(&request, &client.tell, &client.asks).await;
        lock(&finished).remove(&key);
        (client.tell)(answered.bytes);
    });
    list.insert(id, call);
}

/// The next line that is not empty; none when the stream ends or a line is beyond the limit.
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
