//! A recording served as a server.
//!
//! A request is matched by its method and its parameters (metadata aside; `initialize` and
//! `server/discover` by the method alone). It gets what it got when it was recorded: the answer under
//! its new id, the notifications that came before it, or nothing if nothing came. The same request
//! asked again gets the recorded answers in their order, and the last one from then on. A request that
//! is not in the recording is an error, never a guess.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use karat_io::input::{InputError, Limits as FileLimits, records};
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
    scenes: BTreeMap<String, VecDeque<Scene>>,
    paced: bool,
}

/// What one request got.
#[derive(Clone, Debug, PartialEq)]
struct Scene {
    id: Value,
    after: Duration,
    before: Vec<Value>,
    /// The answer without its id; nothing if none came.
    answer: Option<Value>,
}

#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    schema: Option<String>,
    #[serde(default)]
    at_ns: u64,
    #[serde(default)]
    session: u32,
    #[serde(default)]
    from: Option<Side>,
    #[serde(default)]
    message: Option<Value>,
}

impl Recording {
    /// Reads a recording. Of several sessions, the answers follow each other.
    ///
    /// # Errors
    /// When the file is not a recording.
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

    /// Answers come as late as they came when they were recorded.
    #[must_use]
    pub fn paced(self) -> Recording {
        Recording { paced: true, ..self }
    }

    /// What is said to a message.
    fn play(&mut self, message: Incoming) -> Option<Played> {
        let Incoming::Request { id, method, params } = message else { return None };
        let Some(scenes) = self.scenes.get_mut(&key(&method, &params)) else {
            let text = format!("not in the recording: {method} {params}");
            let error = json!({"code": NOT_RECORDED, "message": text});
            let answer = json!({"jsonrpc": "2.0", "id": id, "error": error});
            return Some(Played { after: Duration::ZERO, messages: vec![answer] });
        };
        let scene = match scenes.len() {
            1 => scenes.front().cloned(),
            _ => scenes.pop_front(),
        }?;
        let mut messages: Vec<Value> =
            scene.before.into_iter().map(|told| readdressed(told, &scene.id, &id)).collect();
        if let Some(mut answer) = scene.answer {
            if let Some(fields) = answer.as_object_mut() {
                fields.insert("id".to_owned(), id);
            }
            messages.push(answer);
        }
        let after = if self.paced { scene.after } else { Duration::ZERO };
        Some(Played { after, messages })
    }
}

struct Played {
    after: Duration,
    messages: Vec<Value>,
}

/// A notification of progress names the request by the token that it was given.
fn readdressed(mut told: Value, old: &Value, new: &Value) -> Value {
    if let Some(token) = told.pointer_mut("/params/progressToken")
        && token == old
    {
        *token = new.clone();
    }
    told
}

/// Which request it is, whoever asks and whenever.
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

/// Puts the scenes together while the lines are read.
#[derive(Default)]
struct Reader {
    recording: Recording,
    /// Requests that wait for their answer, by session and id, with where their scene stands.
    open: BTreeMap<(u32, String), (String, usize, u64)>,
    told: BTreeMap<u32, Vec<Value>>,
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
                let scenes = self.recording.scenes.entry(key.clone()).or_default();
                let place = (session, id.to_string());
                self.open.insert(place, (key, scenes.len(), at_ns));
                scenes.push_back(Scene {
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
                let scenes = self.recording.scenes.get_mut(&key);
                let Some(scene) = scenes.and_then(|scenes| scenes.get_mut(at)) else { return };
                scene.before = self.told.remove(&session).unwrap_or_default();
                scene.after = Duration::from_nanos(at_ns.saturating_sub(asked));
                scene.answer = Some(message);
            }
            (Side::Server, Some(_), None) => {
                self.told.entry(session).or_default().push(message);
            }
            // What the server asked of its client then, its client of now was not asked.
            _ => {}
        }
    }

    fn finish(self) -> Recording {
        self.recording
    }
}

/// Serves a recording over the input and output of this process until the input ends.
pub async fn over_stdio(recording: Recording) {
    over(recording, tokio::io::stdin(), tokio::io::stdout()).await;
}

/// Serves a recording over a pair of streams until the reading one ends.
pub async fn over<R, W>(mut recording: Recording, read: R, write: W)
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let outbox = Outbox::new(256 << 20);
    let writing = Arc::clone(&outbox);
    let writer = tokio::spawn(async move { writing.drain(write).await });
    let mut lines = tokio::io::BufReader::with_capacity(64 << 10, read);
    let mut line = Vec::new();
    while crate::serve::next_line(&mut lines, &mut line).await {
        for message in wire::read(line.trim_ascii(), &Limits::default()).into_iter().flatten() {
            let Some(played) = recording.play(message) else { continue };
            let outbox = Arc::clone(&outbox);
            let say = move || {
                for message in &played.messages {
                    let _ = outbox.push(&wire::bytes(message));
                }
            };
            if played.after.is_zero() {
                say();
            } else {
                tokio::spawn(async move {
                    tokio::time::sleep(played.after).await;
                    say();
                });
            }
        }
    }
    outbox.close();
    let _ = tokio::time::timeout(Duration::from_secs(1), writer).await;
}
