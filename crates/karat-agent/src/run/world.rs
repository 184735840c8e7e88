//! Models and servers, live or from a recording.
//!
//! Everything from outside (the answers of a model, the results of tools, and their times) passes
//! through a [`Connection`]. Live, each exchange is recorded; from a recording, the same request must
//! come at the same place, or the recording does not fit. The same traces come out.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use karat_core::run::{self, Options};
use karat_io::http::{Client, Request};
use karat_io::text::clip;
use karat_io::{Failure, FailureClass};
use karat_mcp::{ServerSpec, Session, StartError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::model::Model;
use super::recording::Recording;
use crate::task_digest::canonical;
use crate::trace::CallError;

/// The class of an exchange that was cut off because the time of the run was spent.
pub(super) const OUT_OF_TIME: &str = "out_of_time";

/// Starts a server that needs no configuration.
pub type Starter = Arc<
    dyn Fn() -> Pin<Box<dyn Future<Output = Result<Session, StartError>> + Send>> + Send + Sync,
>;

/// A request that is not the one in the recording at its place.
#[derive(Debug)]
pub(super) struct Mismatch(pub(super) String);

/// A request to a model or a server, and its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Exchange {
    /// `tools`, `call` or `model`.
    pub kind: String,
    /// The request.
    pub request: Value,
    /// The answer; none if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Value>,
    /// The error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Value>,
    /// The time in milliseconds.
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

/// The way to a server.
#[derive(Clone)]
pub(super) enum Server {
    Spec(Box<ServerSpec>),
    Builtin(Starter),
}

/// The models and servers of an agent.
pub(super) enum World {
    Live {
        servers: BTreeMap<String, Server>,
        client: Box<Client>,
        /// The retries of requests to a model.
        options: Options,
        folder: PathBuf,
    },
    Replay(Recording),
}

impl World {
    /// The models and servers as one run sees them.
    pub(super) fn connect(&self, key: &Value) -> Connection {
        match self {
            World::Live { servers, client, options, folder } => Connection::Live(Box::new(Live {
                servers: servers.clone(),
                client: (**client).clone(),
                options: options.clone(),
                folder: folder.clone(),
                sessions: BTreeMap::new(),
                exchanges: Vec::new(),
            })),
            World::Replay(recording) => {
                let key = canonical(key);
                let exchanges = recording.runs.get(&key).cloned();
                Connection::Replay { key, exchanges: exchanges.unwrap_or_default().into() }
            }
        }
    }
}

/// The models and servers of one run.
pub(super) enum Connection {
    Live(Box<Live>),
    Replay { key: String, exchanges: VecDeque<Exchange> },
}

impl Connection {
    /// Sends a request, which may take as long as `within`.
    pub(super) async fn exchange(
        &mut self,
        kind: &'static str,
        request: Value,
        model: &Model,
        within: Option<Duration>,
    ) -> Result<Exchange, Mismatch> {
        match self {
            Connection::Live(live) => Ok(live.exchange(kind, request, model, within).await),
            Connection::Replay { key, exchanges } => match exchanges.pop_front() {
                Some(found)
                    if found.kind == kind && canonical(&found.request) == canonical(&request) =>
                {
                    Ok(found)
                }
                found => Err(Mismatch(format!(
                    "the recording does not fit: run {key} sends {kind} {}, recorded is {}",
                    clip(&request.to_string(), 200),
                    found.map_or("nothing more".to_owned(), |found| found.kind),
                ))),
            },
        }
    }

    /// Ends the sessions, and returns the exchanges.
    pub(super) async fn close(self) -> Vec<Exchange> {
        match self {
            Connection::Live(live) => {
                for session in live.sessions.into_values() {
                    session.close().await;
                }
                live.exchanges
            }
            Connection::Replay { .. } => Vec::new(),
        }
    }
}

/// Live models and servers.
pub(super) struct Live {
    servers: BTreeMap<String, Server>,
    client: Client,
    options: Options,
    folder: PathBuf,
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
            _ => return ask(&self.client, &self.options, model, request).await,
        };
        // The answer is recorded, and a server may repeat the key of the endpoint.
        self.client.redactor().hide_in(&mut answer);
        Ok(answer)
    }

    async fn start(&self, name: &str) -> Result<Session, StartError> {
        match self.servers.get(name) {
            Some(Server::Spec(spec)) => {
                let folder = Some(self.folder.clone());
                let options = karat_mcp::Options { folder, ..karat_mcp::Options::default() };
                Session::start(spec, &options).await
            }
            Some(Server::Builtin(start)) => start().await,
            None => Err(StartError::Spec { why: format!("no server {name:?}") }),
        }
    }

    async fn tools(&mut self, request: &Value) -> Result<Value, CallError> {
        let server = request["server"].as_str().unwrap_or_default().to_owned();
        let failed = |message: String| CallError { class: "server".to_owned(), message };
        let session = self.start(&server).await;
        let session = session.map_err(|error| failed(format!("{server}: {error}")))?;
        let tools = session.tools().await;
        let tools = tools.map_err(|error| failed(format!("{server}: {error}")))?;
        self.sessions.insert(server, session);
        Ok(tools.into_iter().map(karat_mcp::Definition::into_raw).collect())
    }

    async fn call(&mut self, request: &Value) -> Result<Value, CallError> {
        let server = request["server"].as_str().unwrap_or_default();
        let session = self.sessions.get(server).ok_or_else(|| CallError {
            class: "server".to_owned(),
            message: format!("no server {server:?}"),
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

/// Asks a model; a busy or broken endpoint is asked again as the options say.
pub(crate) async fn ask(
    client: &Client,
    options: &Options,
    model: &Model,
    request: &Value,
) -> Result<Value, CallError> {
    let request = Request::post_json(model.url(), request);
    let (answer, _) = run::retry(options, || ask_once(client, &request)).await;
    answer.map_err(|failure| CallError {
        class: failure.class.name().to_owned(),
        message: failure.message,
    })
}

async fn ask_once(client: &Client, request: &Request) -> Result<Value, Failure> {
    let answer = client.send(request).await.map_err(|failure| match failure.class {
        // An error of the server may pass, whether or not it says when.
        FailureClass::Refused if failure.message.starts_with("HTTP 5") => {
            let retry_after = Some(failure.retry_after.unwrap_or_default());
            Failure { retry_after, ..failure }
        }
        _ => failure,
    })?;
    let mut value = serde_json::from_slice::<Value>(&answer.body).map_err(|error| {
        let message = format!("the endpoint's answer is not JSON: {error}");
        Failure::new(FailureClass::InvalidAnswer, message)
    })?;
    client.redactor().hide_in(&mut value);
    Ok(value)
}
