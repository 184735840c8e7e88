//! A recording served as a server.
//!
//! A request is matched by its method and its parameters without metadata; `initialize` and
//! `server/discover` by the method alone. It gets the recorded answer with its own id, after the recorded
//! notifications, or no answer if none was recorded. A repeated request gets the recorded answers in their
//! order, and then the last one again. A request that is not in the recording is an error.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use karat_mcp::replay::{self, Recording};
//! use karat_mcp::{Options, Session};
//!
//! # let folder = std::env::temp_dir().join(format!("karat-replay-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! let path = folder.join("session.jsonl");
//! std::fs::write(
//!     &path,
//!     r#"{"schema": "karat.recording/1"}
//! {"session": 1, "from": "client", "message": {"jsonrpc": "2.0", "id": 1, "method": "initialize"}}
//! {"session": 1, "from": "server", "message": {"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "recorded", "version": "1"}}}}"#,
//! )?;
//! let (ours, theirs) = tokio::io::duplex(1 << 16);
//! let (read, write) = tokio::io::split(theirs);
//! tokio::spawn(replay::over(Recording::read(&path)?, read, write));
//! let (read, write) = tokio::io::split(ours);
//! let session = Session::over(read, write, None, &Options::default()).await?;
//! assert_eq!(session.server().name, "recorded");
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok(()) }
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use karat_io::input::{InputError, Limits as FileLimits, records};
use karat_io::task;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::limits::Limits;
use crate::outbox::Outbox;
use crate::record::{SCHEMA, Side};
use crate::wire::{self, Incoming};

/// The code of the error for a request that is not in the recording.
pub const NOT_RECORDED: i64 = -32001;

/// A recording, ready to be served.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    exchanges: BTreeMap<String, VecDeque<Exchange>>,
    paced: bool,
}

/// A request with its answer.
#[derive(Clone, Debug, PartialEq)]
struct Exchange {
    id: Value,
    after: Duration,
    before: Vec<Value>,
    /// The answer; `None` if there was none.
    answer: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Line {
    schema: Option<String>,
    at_ns: u64,
    session: u32,
    from: Option<Side>,
    message: Option<Value>,
    event: Option<String>,
    detail: Option<String>,
}

impl Recording {
    /// Reads a recording. The answers of several sessions follow each other.
    ///
    /// # Errors
    /// If the file is not a valid recording.
    pub fn read(path: &Path) -> Result<Recording, InputError> {
        let mut reader = Reader::default();
        for line in records::<Line>(path, &FileLimits::streaming())? {
            let (number, line) = line?;
            if number == 1 {
                karat_io::input::check_schema(path, line.schema.as_deref(), SCHEMA)?;
            }
            reader.take(line);
        }
        Ok(reader.finish())
    }

    /// Delays answers as they were delayed in the recording.
    #[must_use]
    pub fn paced(self) -> Recording {
        Recording { paced: true, ..self }
    }

    /// The response to a message.
    fn respond(&mut self, message: Incoming) -> Option<Response> {
        let Incoming::Request { id, method, params } = message else { return None };
        let Some(exchanges) = self.exchanges.get_mut(&key(&method, &params)) else {
            let text = format!("not in the recording: {method} {params}");
            let error = json!({"code": NOT_RECORDED, "message": text});
            let answer = json!({"jsonrpc": "2.0", "id": id, "error": error});
            return Some(Response { after: Duration::ZERO, messages: vec![answer] });
        };
        let exchange = match exchanges.len() {
            1 => exchanges.front().cloned(),
            _ => exchanges.pop_front(),
        }?;
        let mut messages: Vec<Value> = exchange
            .before
            .into_iter()
            .map(|message| readdressed(message, &exchange.id, &id))
            .collect();
        if let Some(mut answer) = exchange.answer {
            if let Some(fields) = answer.as_object_mut() {
                fields.insert("id".to_owned(), id);
            }
            messages.push(answer);
        }
        let after = if self.paced { exchange.after } else { Duration::ZERO };
        Some(Response { after, messages })
    }
}

/// A recorded request with its answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// The number of the session.
    pub session: u32,
    /// The method.
    pub method: String,
    /// The parameters.
    pub params: Value,
    /// The result, or the error.
    pub answer: Result<Value, Value>,
}

/// A recording as a list of requests, with the server that it is of. Requests without an answer are left out.
///
/// ```
/// use karat_mcp::replay;
/// use serde_json::json;
///
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("session.jsonl");
/// std::fs::write(
///     &path,
///     r#"{"schema": "karat.recording/1"}
/// {"session": 1, "event": "start", "detail": "my-server"}
/// {"session": 1, "from": "client", "message": {"jsonrpc": "2.0", "id": 1, "method": "ping"}}
/// {"session": 1, "from": "client", "message": {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}}
/// {"session": 1, "from": "server", "message": {"jsonrpc": "2.0", "id": 1, "result": {}}}"#,
/// )?;
/// let (requests, server) = replay::requests(&path)?;
/// assert_eq!(server.as_deref(), Some("my-server"));
/// assert_eq!(requests.len(), 1);
/// assert_eq!((requests[0].method.as_str(), &requests[0].answer), ("ping", &Ok(json!({}))));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the file is not a valid recording.
pub fn requests(path: &Path) -> Result<(Vec<Recorded>, Option<String>), InputError> {
    let mut open: BTreeMap<(u32, String), usize> = BTreeMap::new();
    let mut found: Vec<(Recorded, bool)> = Vec::new();
    let mut server = None;
    for line in records::<Line>(path, &FileLimits::streaming())? {
        let (number, line) = line?;
        if number == 1 {
            karat_io::input::check_schema(path, line.schema.as_deref(), SCHEMA)?;
        }
        if line.event.as_deref() == Some("start") {
            server = line.detail;
        }
        let (Some(from), Some(message)) = (line.from, line.message) else { continue };
        let messages = match message {
            Value::Array(batch) => batch,
            message => vec![message],
        };
        for mut message in messages {
            let Some(id) = message.get("id").map(Value::to_string) else { continue };
            let method = message.get("method").and_then(Value::as_str).map(str::to_owned);
            let mut take = |key: &str| message.get_mut(key).map(Value::take);
            match (from, method) {
                (Side::Client, Some(method)) => {
                    open.insert((line.session, id), found.len());
                    let params = take("params").unwrap_or_default();
                    let answer = Ok(Value::Null);
                    found.push((Recorded { session: line.session, method, params, answer }, false));
                }
                (Side::Server, None) => {
                    let Some(at) = open.remove(&(line.session, id)) else { continue };
                    let Some((recorded, answered)) = found.get_mut(at) else { continue };
                    *answered = true;
                    recorded.answer = match take("result") {
                        Some(result) => Ok(result),
                        None => Err(take("error").unwrap_or_default()),
                    };
                }
                _ => {}
            }
        }
    }
    let answered = found.into_iter().filter(|(_, answered)| *answered);
    Ok((answered.map(|(recorded, _)| recorded).collect(), server))
}

struct Response {
    after: Duration,
    messages: Vec<Value>,
}

/// The message with the id of the new request as its progress token.
fn readdressed(mut message: Value, old: &Value, new: &Value) -> Value {
    if let Some(token) = message.pointer_mut("/params/progressToken")
        && token == old
    {
        *token = new.clone();
    }
    message
}

/// The key by which a request is found again.
fn key(method: &str, params: &Value) -> String {
    if matches!(method, "initialize" | "server/discover") {
        return method.to_owned();
    }
    let mut params = params.clone();
    if let Some(fields) = params.as_object_mut() {
        fields.remove("_meta");
    }
    if params.as_object().is_some_and(serde_json::Map::is_empty) {
        params = Value::Null;
    }
    sort(&mut params);
    format!("{method} {params}")
}

fn sort(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.sort_keys();
            fields.values_mut().for_each(sort);
        }
        Value::Array(items) => items.iter_mut().for_each(sort),
        _ => {}
    }
}

/// Collects exchanges while lines are read.
#[derive(Default)]
struct Reader {
    recording: Recording,
    /// Requests without an answer, by session and id, with the place of their exchange and their time.
    open: BTreeMap<(u32, String), (String, usize, u64)>,
    notifications: BTreeMap<u32, Vec<Value>>,
}

impl Reader {
    fn take(&mut self, line: Line) {
        let (Some(from), Some(message)) = (line.from, line.message) else { return };
        match message {
            Value::Array(batch) => {
                for message in batch {
                    self.take_one(line.session, line.at_ns, from, message);
                }
            }
            message => self.take_one(line.session, line.at_ns, from, message),
        }
    }

    fn take_one(&mut self, session: u32, at_ns: u64, from: Side, message: Value) {
        let id = message.get("id").cloned();
        let method = message.get("method").and_then(Value::as_str).map(str::to_owned);
        match (from, method, id) {
            (Side::Client, Some(method), Some(id)) => {
                let params = message.get("params").cloned().unwrap_or_default();
                let key = key(&method, &params);
                let exchanges = self.recording.exchanges.entry(key.clone()).or_default();
                let place = (session, id.to_string());
                self.open.insert(place, (key, exchanges.len(), at_ns));
                exchanges.push_back(Exchange {
                    id,
                    after: Duration::ZERO,
                    before: Vec::new(),
                    answer: None,
                });
            }
            (Side::Server, None, Some(id)) => {
                let Some((key, at, asked)) = self.open.remove(&(session, id.to_string())) else {
                    return;
                };
                let exchanges = self.recording.exchanges.get_mut(&key);
                let Some(exchange) = exchanges.and_then(|exchanges| exchanges.get_mut(at)) else {
                    return;
                };
                exchange.before = self.notifications.remove(&session).unwrap_or_default();
                exchange.after = Duration::from_nanos(at_ns.saturating_sub(asked));
                exchange.answer = Some(message);
            }
            (Side::Server, Some(_), None) => {
                self.notifications.entry(session).or_default().push(message);
            }
            // Requests of the server are not replayed.
            _ => {}
        }
    }

    fn finish(self) -> Recording {
        self.recording
    }
}

/// Serves a recording over stdin and stdout of this process until stdin ends.
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::path::Path;
///
/// use karat_mcp::replay::{self, Recording};
///
/// replay::over_stdio(Recording::read(Path::new("session.jsonl"))?.paced()).await;
/// # Ok(()) }
/// ```
pub async fn over_stdio(recording: Recording) {
    over(recording, tokio::io::stdin(), tokio::io::stdout()).await;
}

/// Serves a recording over a pair of streams until `read` ends.
///
/// A request that is not in the recording is answered with the error [`NOT_RECORDED`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use karat_mcp::replay::{self, Recording};
///
/// let mut answers = Vec::new();
/// let request = b"{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"tools/list\"}\n";
/// let (mut ours, theirs) = tokio::io::duplex(1 << 10);
/// let serving = replay::over(Recording::default(), &request[..], theirs);
/// let reading = tokio::io::AsyncReadExt::read_to_end(&mut ours, &mut answers);
/// tokio::join!(serving, reading).1?;
/// assert!(String::from_utf8(answers)?.contains("-32001"));
/// # Ok(()) }
/// ```
pub async fn over<R, W>(mut recording: Recording, read: R, write: W)
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let outbox = Outbox::new(256 << 20);
    let writing = Arc::clone(&outbox);
    let writer = task::spawn(async move { writing.drain(write).await });
    let mut lines = tokio::io::BufReader::with_capacity(64 << 10, read);
    let mut line = Vec::new();
    while crate::serve::next_line(&mut lines, &mut line).await {
        for message in
            wire::read(line.trim_ascii(), &Limits::default()).messages.into_iter().flatten()
        {
            let Some(response) = recording.respond(message) else { continue };
            let outbox = Arc::clone(&outbox);
            let send = move || {
                for message in &response.messages {
                    let _ = outbox.push(&wire::bytes(message));
                }
            };
            if response.after.is_zero() {
                send();
            } else {
                task::spawn(async move {
                    tokio::time::sleep(response.after).await;
                    send();
                });
            }
        }
    }
    outbox.close();
    let _ = tokio::time::timeout(Duration::from_secs(1), writer).await;
}
