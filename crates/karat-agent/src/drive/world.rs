//! Everything outside: models and servers, live or from a recording.
//!
//! A run asks for one thing after the other and gets an answer and how long it took. Live, each
//! exchange is kept; from a recording, the same question must come at the same place, or the recording
//! is one of something else.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use karat_core::run::LONGEST_PAUSE;
use karat_io::http::{Client, Request};
use karat_io::input::{self, Limits};
use karat_io::{Failure, FailureClass};
use karat_mcp::{Session, StartError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Job, Model};
use crate::error::AgentError;
use crate::recorded::canonical;
use crate::trace::CallError;

/// What a recording says that it is.
const SCHEMA: &str = "karat.agent-recording/1";
/// How often a busy or broken endpoint is asked again.
const RETRIES: u32 = 4;
/// The pause before the first time, doubled for each further one.
const PAUSE: Duration = Duration::from_millis(500);

/// The class of an exchange that was cut off because the time of the run was spent.
pub(super) const OUT_OF_TIME: &str = "out_of_time";

/// Starts the server of a name.
pub type Starter = Arc<
    dyn Fn(String) -> Pin<Box<dyn Future<Output = Result<Session, StartError>> + Send>>
        + Send
        + Sync,
>;

/// Something that was asked of the outside, and what came back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    /// `tools`, `call` or `model`.
    pub kind: String,
    /// What was asked.
    pub request: Value,
    /// What came back; none if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Value>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Value>,
    /// How long it took.
    pub ms: f64,
}

impl Exchange {
    pub(super) fn outcome(&self) -> Result<Value, CallError> {
        if let Some(response) = &self.response {
            return Ok(response.clone());
        }
        let text = |key: &str| {
            let error = self.error.as_ref().and_then(|error| error.get(key)?.as_str());
            error.unwrap_or_default().to_owned()
        };
        Err(CallError { class: text("class"), message: text("message") })
    }
}

/// The outside.
#[derive(Clone)]
pub enum World {
    /// As it is.
    Live {
        /// How servers are started.
        start: Starter,
        /// How models are asked.
        client: Client,
        /// The pause before a busy endpoint is asked again; the usual one if not given.
        pause: Option<Duration>,
    },
    /// As it was.
    Replay(Arc<Recording>),
}

/// A recording, by run.
#[derive(Debug, Default)]
pub struct Recording {
    runs: BTreeMap<String, Vec<Exchange>>,
    /// What was recorded: the settings, as they were written.
    pub settings: Value,
}

impl Recording {
    /// The first line of a recording.
    #[must_use]
    pub fn head(settings: &Value) -> String {
        json!({"schema": SCHEMA, "settings": settings}).to_string()
    }

    /// The lines of a run, each with its line end.
    #[must_use]
    pub fn lines(job: &Job, exchanges: &[Exchange]) -> String {
        let mut text = String::new();
        let key = job.key();
        // A run that asked for nothing is one too.
        text.push_str(&format!("{}\n", json!({"trace": key, "exchanges": exchanges})));
        text
    }

    /// Reads a recording.
    ///
    /// # Errors
    /// When it is none.
    pub fn load(path: &Path) -> Result<Self, AgentError> {
        let mut recording = Recording::default();
        let mut lines = input::lines(path, &Limits::streaming()).map_err(AgentError::Input)?;
        while let Some((line, text)) = lines.next_line().map_err(AgentError::Input)? {
            if text.trim().is_empty() {
                continue;
            }
            let wrong = |message: String| AgentError::Invalid {
                path: path.to_owned(),
                line,
                place: String::new(),
                message,
            };
            if line == 1 {
                let head: Value =
                    serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
                if head["schema"] != SCHEMA {
                    return Err(wrong(format!("this is no recording of an agent ({SCHEMA})")));
                }
                recording.settings = head["settings"].clone();
                continue;
            }
            #[derive(Deserialize)]
            struct Line {
                trace: Value,
                exchanges: Vec<Exchange>,
            }
            let read: Line =
                serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
            let key = canonical(&read.trace);
            if recording.runs.contains_key(&key) {
                let run = karat_io::text::printable(&key);
                return Err(wrong(format!("the run {run} stands there twice")));
            }
            recording.runs.insert(key, read.exchanges);
        }
        Ok(recording)
    }
}

impl World {
    /// The outside as one run sees it.
    pub(super) fn enter(&self, job: &Job) -> Inside {
        let key = canonical(&job.key());
        match self {
            World::Live { start, client, pause } => Inside::Live(Live {
                start: Arc::clone(start),
                client: client.clone(),
                pause: pause.unwrap_or(PAUSE),
                sessions: BTreeMap::new(),
                exchanges: Vec::new(),
            }),
            World::Replay(recording) => {
                let exchanges = recording.runs.get(&key).cloned();
                Inside::Replay { key, exchanges: exchanges.map(VecDeque::from) }
            }
        }
    }
}

/// The outside of one run.
pub(super) enum Inside {
    Live(Live),
    Replay { key: String, exchanges: Option<VecDeque<Exchange>> },
}

impl Inside {
    /// Asks for something, which may take as long as is said.
    pub(super) async fn exchange(
        &mut self,
        kind: &'static str,
        request: Value,
        model: &Model,
        within: Option<Duration>,
    ) -> Result<Exchange, AgentError> {
        match self {
            Inside::Live(live) => Ok(live.exchange(kind, request, model, within).await),
            Inside::Replay { key, exchanges } => {
                let found = exchanges.as_mut().and_then(VecDeque::pop_front);
                let same = |found: &Exchange| {
                    found.kind == kind && canonical(&found.request) == canonical(&request)
                };
                match found {
                    Some(found) if same(&found) => Ok(found),
                    found => Err(AgentError::Usage(format!(
                        "the recording does not fit: run {key} asks for {kind} {}, recorded is {}",
                        karat_io::text::clip(&request.to_string(), 200),
                        found.map_or("nothing more".to_owned(), |found| found.kind),
                    ))),
                }
            }
        }
    }

    /// Ends what was started, and hands out what was exchanged.
    pub(super) async fn close(self) -> Vec<Exchange> {
        match self {
            Inside::Live(live) => {
                for session in live.sessions.into_values() {
                    session.close().await;
                }
                live.exchanges
            }
            Inside::Replay { .. } => Vec::new(),
        }
    }
}

/// The outside, live.
pub(super) struct Live {
    start: Starter,
    client: Client,
    pause: Duration,
    sessions: BTreeMap<String, Session>,
    exchanges: Vec<Exchange>,
}

impl Live {
    async fn exchange(
        &mut self,
        kind: &'static str,
        request: Value,
        model: &Model,
        within: Option<Duration>,
    ) -> Exchange {
        let started = Instant::now();
        let answer = self.answer(kind, &request, model);
        let outcome = match within {
            Some(within) => tokio::time::timeout(within, answer).await.unwrap_or_else(|_| {
                let message = "the time of the run was spent before the answer came".to_owned();
                Err(CallError { class: OUT_OF_TIME.to_owned(), message })
            }),
            None => answer.await,
        };
        // Microseconds: finer than any network, and a short text.
        let ms = started.elapsed().as_micros() as f64 / 1000.0;
        let (response, error) = match outcome {
            Ok(response) => (Some(response), None),
            Err(error) => (None, Some(json!({"class": error.class, "message": error.message}))),
        };
        let exchange = Exchange { kind: kind.to_owned(), request, response, error, ms };
        self.exchanges.push(exchange.clone());
        exchange
    }

    async fn answer(
        &mut self,
        kind: &'static str,
        request: &Value,
        model: &Model,
    ) -> Result<Value, CallError> {
        let mut answer = match kind {
            "tools" => self.tools(request).await?,
            "call" => self.call(request).await?,
            _ => return ask(&self.client, self.pause, model, request).await,
        };
        // The answer is recorded, and a server may repeat the key of the endpoint.
        self.client.redactor().hide_in(&mut answer);
        Ok(answer)
    }

    async fn tools(&mut self, request: &Value) -> Result<Value, CallError> {
        let server = request["server"].as_str().unwrap_or_default().to_owned();
        let failed = |message: String| CallError { class: "server".to_owned(), message };
        let session = (self.start)(server.clone())
            .await
            .map_err(|error| failed(format!("{server}: {error}")))?;
        let tools = session.tools().await;
        let tools = tools.map_err(|error| failed(format!("{server}: {error}")))?;
        self.sessions.insert(server, session);
        Ok(tools.into_iter().map(karat_mcp::Definition::into_raw).collect())
    }

    async fn call(&mut self, request: &Value) -> Result<Value, CallError> {
        let server = request["server"].as_str().unwrap_or_default();
        let session = self.sessions.get(server).ok_or_else(|| CallError {
            class: "server".to_owned(),
            message: format!("there is no server {server:?}"),
        })?;
        let none = Map::new();
        let arguments = request["arguments"].as_object().unwrap_or(&none);
        let reply = session.call(request["tool"].as_str().unwrap_or_default(), arguments).await;
        reply.map(|reply| reply.raw).map_err(|error| CallError {
            class: error.class().name().to_owned(),
            message: error.to_string(),
        })
    }
}

/// Asks a model, again where that makes sense, and not for ever.
pub(crate) async fn ask(
    client: &Client,
    mut pause: Duration,
    model: &Model,
    request: &Value,
) -> Result<Value, CallError> {
    let wanted = Request::post_json(model.url(), request);
    let mut tried = 0;
    loop {
        let failure = match client.send(&wanted).await {
            Ok(answer) => match serde_json::from_slice::<Value>(&answer.body) {
                Ok(mut value) => {
                    client.redactor().hide_in(&mut value);
                    return Ok(value);
                }
                Err(error) => Failure::new(
                    FailureClass::InvalidAnswer,
                    format!("the endpoint's answer is not JSON: {error}"),
                ),
            },
            Err(failure) => failure,
        };
        let wait = failure.retry_after.unwrap_or_default().max(pause);
        if tried == RETRIES || !worth_retrying(&failure) || wait > LONGEST_PAUSE {
            let after = match tried {
                0 => String::new(),
                tried => format!(" (asked {} times)", tried + 1),
            };
            return Err(CallError {
                class: failure.class.name().to_owned(),
                message: format!("{}{after}", failure.message),
            });
        }
        tokio::time::sleep(wait).await;
        pause *= 2;
        tried += 1;
    }
}

fn worth_retrying(failure: &Failure) -> bool {
    match failure.class {
        FailureClass::Timeout | FailureClass::Transport => true,
        FailureClass::Refused => {
            failure.retry_after.is_some() || failure.message.starts_with("HTTP 5")
        }
        FailureClass::InvalidAnswer => false,
    }
}
