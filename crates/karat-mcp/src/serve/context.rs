//! Messages to a client while one of its requests is answered.
//!
//! A tool may send notifications, and in revisions with a handshake also requests. They are sent before the
//! answer, on the same lines or in the same response.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::respond::ProtocolError;
use crate::error::CallError;
use crate::wire;

type Outcome = Result<Value, ProtocolError>;
/// Sends a message to the client.
pub(super) type SendMessage = Arc<dyn Fn(Vec<u8>) + Send + Sync>;

/// The client of one request.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use karat_mcp::serve::{self, Context, Offer, ProtocolError, Respond};
/// use karat_mcp::{CallOptions, Options, Policies, Revision, Sampling, Session};
/// use serde_json::{Map, Value, json};
///
/// struct Poet;
///
/// impl Respond for Poet {
///     async fn call(
///         &self,
///         client: &Context,
///         _tool: &str,
///         _arguments: &Value,
///     ) -> Result<Value, ProtocolError> {
///         client.progress(1.0, Some(2.0));
///         client.notify("notifications/message", &json!({"level": "info", "data": "asking"}));
///         let question = json!({"messages": [], "maxTokens": 100});
///         let answer = client.ask("sampling/createMessage", &question).await?;
///         Ok(json!({"content": [answer["content"]]}))
///     }
/// }
///
/// # let tools = vec![json!({"name": "write", "inputSchema": {"type": "object"}})];
/// # let offer = Offer { name: "poet".to_owned(), tools, ..Offer::default() };
/// # let (client, server) = tokio::io::duplex(1 << 16);
/// # let (from_client, to_client) = tokio::io::split(server);
/// # tokio::spawn(serve::over(offer, Poet, from_client, to_client));
/// # let (read, write) = tokio::io::split(client);
/// // A client that answers requests for a completion, in a revision that has them.
/// let policies = Policies { sampling: Sampling::text("Roses are red"), ..Policies::default() };
/// let options = Options { policies, ..Options::default() };
/// let revision = Some(Revision::V2025_11_25);
/// let session = Session::over(read, write, revision, &options).await?;
/// let wanted = CallOptions { progress: true, ..CallOptions::default() };
/// let reply = session.call_with("write", &Map::new(), wanted).await?;
/// assert_eq!(reply.texts(), ["Roses are red"]);
/// assert_eq!(reply.progress.len(), 1);
/// assert_eq!(session.protocol_log().log_messages, 1);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Context {
    send: SendMessage,
    requests: Arc<ClientRequests>,
    progress_token: Option<Value>,
    stateless: bool,
    /// Set in revisions without a handshake.
    parts: Option<Arc<StatelessParts>>,
}

/// The parts of a request that only revisions without a handshake have.
struct StatelessParts {
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
        send: SendMessage,
        requests: Arc<ClientRequests>,
        id: &Value,
        params: &Value,
        stateless: bool,
    ) -> Context {
        let meta = params.get("_meta");
        let progress_token = meta.and_then(|meta| meta.get("progressToken")).cloned();
        let parts = stateless.then(|| {
            Arc::new(StatelessParts {
                id: id.clone(),
                meta: meta.cloned().unwrap_or_default(),
                responses: params.get("inputResponses").cloned(),
                state: params.get("requestState").cloned(),
            })
        });
        Context { send, requests, progress_token, stateless, parts }
    }

    /// True if the revision has no handshake, so that the server cannot send requests.
    pub fn is_stateless(&self) -> bool {
        self.stateless
    }

    /// The id of the request, in revisions without a handshake.
    pub fn request_id(&self) -> Option<&Value> {
        self.parts.as_deref().map(|parts| &parts.id)
    }

    /// Metadata of the request by the full name of the key, in revisions without a handshake.
    pub fn meta(&self, key: &str) -> Option<&Value> {
        self.parts.as_deref()?.meta.get(key)
    }

    /// The client's answers to the input that an earlier result of this request asked for.
    pub fn input_responses(&self) -> Option<&Value> {
        self.parts.as_deref()?.responses.as_ref()
    }

    /// The state that an earlier result of this request gave to the client.
    pub fn request_state(&self) -> Option<&Value> {
        self.parts.as_deref()?.state.as_ref()
    }

    /// Sends a notification.
    pub fn notify(&self, method: &str, params: &Value) {
        (self.send)(wire::notification(method, Some(params)));
    }

    /// Sends a progress notification, if the client asked for it.
    pub fn progress(&self, progress: f64, total: Option<f64>) {
        let Some(token) = &self.progress_token else { return };
        let mut params = json!({"progressToken": token, "progress": progress});
        if let (Some(total), Some(fields)) = (total, params.as_object_mut()) {
            fields.insert("total".to_owned(), json!(total));
        }
        self.notify("notifications/progress", &params);
    }

    /// Sends a request such as `sampling/createMessage` and waits for the answer.
    ///
    /// # Errors
    /// The error of the client, or if the revision does not have requests to clients.
    pub async fn ask(&self, method: &str, params: &Value) -> Outcome {
        if self.stateless {
            let message =
                "this protocol revision asks clients for input in results, not by requests";
            return Err(ProtocolError::new(-32601, message));
        }
        let (id, answer, _guard) = ClientRequests::open(&self.requests);
        (self.send)(wire::bytes(
            &json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}),
        ));
        let gone = || ProtocolError::new(-32603, "the client disconnected");
        answer.await.unwrap_or_else(|_| Err(gone()))
    }
}

/// Requests to clients without an answer.
#[derive(Default)]
pub(super) struct ClientRequests {
    next: AtomicU64,
    open: Mutex<HashMap<String, oneshot::Sender<Outcome>>>,
}

impl ClientRequests {
    fn open(requests: &Arc<ClientRequests>) -> (String, oneshot::Receiver<Outcome>, Open) {
        let id = format!("server-{}", requests.next.fetch_add(1, Ordering::Relaxed) + 1);
        let (sender, receiver) = oneshot::channel();
        requests.lock().insert(id.clone(), sender);
        let guard = Open { requests: Arc::clone(requests), id: id.clone() };
        (id, receiver, guard)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, oneshot::Sender<Outcome>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the answer of a client. An unknown one is ignored.
    pub(super) fn answered(&self, id: &Value, outcome: Result<Value, CallError>) {
        let Some(sender) = id.as_str().and_then(|id| self.lock().remove(id)) else { return };
        let _ = sender.send(outcome.map_err(|error| match error {
            CallError::Protocol { code, message, data } => ProtocolError { code, message, data },
            other => ProtocolError::new(-32603, other.to_string()),
        }));
    }
}

/// Removes a request that is no longer waited for.
struct Open {
    requests: Arc<ClientRequests>,
    id: String,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.requests.lock().remove(&self.id);
    }
}
