//! The way back to a client while one of its requests is answered.
//!
//! A tool may tell its client how far it is, and in the revisions with a handshake ask it for
//! something. What it says travels before the answer, on the same lines or in the same response.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::ProtocolError;
use crate::error::CallError;
use crate::wire;

type Outcome = Result<Value, ProtocolError>;
/// Sends a message to the client.
pub(super) type Tell = Arc<dyn Fn(Vec<u8>) + Send + Sync>;

/// The way back to the client of one request.
#[derive(Clone)]
pub struct Context {
    tell: Tell,
    asks: Arc<Asks>,
    progress_token: Option<Value>,
    stateless: bool,
    /// What a request without a handshake says of itself and of earlier rounds.
    sent: Option<Arc<Sent>>,
}

/// The parts of a request that only revisions without a handshake have.
struct Sent {
    id: Value,
    meta: Value,
    responses: Option<Value>,
    state: Option<Value>,
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("stateless", &self.stateless).finish_non_exhaustive()
    }
}

impl Context {
    pub(super) fn new(
        tell: Tell,
        asks: Arc<Asks>,
        id: &Value,
        params: &Value,
        stateless: bool,
    ) -> Context {
        let meta = params.get("_meta");
        let progress_token = meta.and_then(|meta| meta.get("progressToken")).cloned();
        let sent = stateless.then(|| {
            Arc::new(Sent {
                id: id.clone(),
                meta: meta.cloned().unwrap_or_default(),
                responses: params.get("inputResponses").cloned(),
                state: params.get("requestState").cloned(),
            })
        });
        Context { tell, asks, progress_token, stateless, sent }
    }

    /// Whether the request is of a revision without a handshake, in which a server asks nothing.
    pub fn is_stateless(&self) -> bool {
        self.stateless
    }

    /// The id of a request without a handshake.
    pub fn request_id(&self) -> Option<&Value> {
        self.sent.as_deref().map(|sent| &sent.id)
    }

    /// What a request without a handshake says of its client, by the full name of the key.
    pub fn meta(&self, key: &str) -> Option<&Value> {
        self.sent.as_deref()?.meta.get(key)
    }

    /// What the client answers to the input that an earlier result of this request wanted.
    pub fn input_responses(&self) -> Option<&Value> {
        self.sent.as_deref()?.responses.as_ref()
    }

    /// What an earlier result of this request gave the client to keep.
    pub fn request_state(&self) -> Option<&Value> {
        self.sent.as_deref()?.state.as_ref()
    }

    /// Tells the client something.
    pub fn notify(&self, method: &str, params: &Value) {
        (self.tell)(wire::notification(method, Some(params)));
    }

    /// Tells the client how far the request is, if it wants to know.
    pub fn progress(&self, progress: f64, total: Option<f64>) {
        let Some(token) = &self.progress_token else { return };
        let mut params = json!({"progressToken": token, "progress": progress});
        if let (Some(total), Some(fields)) = (total, params.as_object_mut()) {
            fields.insert("total".to_owned(), json!(total));
        }
        self.notify("notifications/progress", &params);
    }

    /// Asks the client for something (`sampling/createMessage`, say) and waits for its answer.
    ///
    /// # Errors
    /// What the client refuses with, and where clients cannot be asked.
    pub async fn ask(&self, method: &str, params: &Value) -> Outcome {
        if self.stateless {
            let message = "this revision of the protocol asks clients by results, not by requests";
            return Err(ProtocolError::new(-32601, message));
        }
        let (id, answer, _guard) = Asks::open(&self.asks);
        (self.tell)(wire::bytes(
            &json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}),
        ));
        let gone = || ProtocolError::new(-32603, "the client is gone");
        answer.await.unwrap_or_else(|_| Err(gone()))
    }
}

/// What was asked of clients and is not answered yet.
#[derive(Default)]
pub(super) struct Asks {
    next: AtomicU64,
    open: Mutex<HashMap<String, oneshot::Sender<Outcome>>>,
}

impl Asks {
    fn open(asks: &Arc<Asks>) -> (String, oneshot::Receiver<Outcome>, Open) {
        let id = format!("server-{}", asks.next.fetch_add(1, Ordering::Relaxed) + 1);
        let (sender, receiver) = oneshot::channel();
        asks.lock().insert(id.clone(), sender);
        let guard = Open { asks: Arc::clone(asks), id: id.clone() };
        (id, receiver, guard)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, oneshot::Sender<Outcome>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client answered. An answer to nothing is passed over.
    pub(super) fn answered(&self, id: &Value, outcome: Result<Value, CallError>) {
        let Some(sender) = id.as_str().and_then(|id| self.lock().remove(id)) else { return };
        let _ = sender.send(outcome.map_err(|error| match error {
            CallError::Protocol { code, message, data } => ProtocolError { code, message, data },
            other => ProtocolError::new(-32603, other.to_string()),
        }));
    }
}

/// Forgets a question when nobody waits for its answer any more.
struct Open {
    asks: Arc<Asks>,
    id: String,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.asks.lock().remove(&self.id);
    }
}
