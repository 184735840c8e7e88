//! One conversation with one server.
//!
//! Everything that comes back is kept as it was on the wire: definitions and results are raw JSON, to
//! be judged by those who know what is right. Methods take `&self` and may be called at the same time.
//! Nothing waits for ever, and a server does not outlive its session.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use karat_io::process::Program;
use karat_io::redact::Redactor;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{
    ClientCapabilities, ErrorCode, Implementation, InitializeRequestParams, RequestMetaObject,
};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::board::{Board, Delivered, Waiting};
use crate::conduct::{Conduct, Witness};
use crate::error::{CallError, StartError, quoted};
use crate::http::{HttpLink, Post, Posted};
use crate::isolate;
use crate::limits::Limits;
use crate::parameter_headers::ParameterHeaders;
use crate::policy::Policies;
use crate::record::Recorder;
use crate::reply::{Definition, Reply, ServerInfo};
use crate::revision::Revision;
use crate::spec::{ServerSpec, Target};
use crate::sse::SseLink;
use crate::stdio::StdioLink;
use crate::wire;

/// How a session is held.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long the server may take until it is ready: start, connection and handshake.
    pub start_timeout: Duration,
    /// How long one request may take.
    pub call_timeout: Duration,
    /// How long a server may take to end by itself when its session is closed.
    pub patience: Duration,
    /// How long it may take when it is then asked to end.
    pub grace: Duration,
    /// How much is taken in.
    pub limits: Limits,
    /// How requests of the server are answered, where its spec does not say it.
    pub policies: Policies,
    /// Where every message is written down.
    pub recorder: Option<Recorder>,
    /// The folder of the project: programs run here and relative paths start here.
    pub folder: Option<PathBuf>,
    /// Values that are not hidden although they look like secrets: bait whose way is watched.
    pub canaries: Vec<String>,
    /// Who sees what servers do beside answering, over all sessions that share it.
    pub witness: Witness,
}

impl Default for Options {
    /// 30 seconds to start, 30 for a call, 1 to end and 1 more when asked to, everything refused that a
    /// server asks.
    fn default() -> Self {
        Options {
            start_timeout: Duration::from_secs(30),
            call_timeout: Duration::from_secs(30),
            patience: Duration::from_secs(1),
            grace: Duration::from_secs(1),
            limits: Limits::default(),
            policies: Policies::default(),
            recorder: None,
            folder: None,
            canaries: Vec::new(),
            witness: Witness::default(),
        }
    }
}

/// How one call is made.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallOptions {
    /// How long it may take; otherwise as the session has it.
    pub timeout: Option<Duration>,
    /// Whether the server is asked to tell how far it is.
    pub progress: bool,
}

/// How a session ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ending {
    /// In words.
    pub how: String,
    /// The end of what the server said on stderr, without secrets.
    pub stderr: String,
    /// What it did beside answering.
    pub conduct: Conduct,
}

enum Link {
    Stdio(StdioLink),
    Http(HttpLink),
    Sse(SseLink),
}

/// How often a call is taken up again because the server wants more input.
const ROUNDS: usize = 10;

/// A conversation with a server. Dropping it ends the server with everything that it started.
pub struct Session {
    link: Link,
    board: Arc<Board>,
    server: ServerInfo,
    options: Options,
    /// What each request carries, where there is no handshake.
    meta: Option<Map<String, Value>>,
    /// Which arguments of which tool are repeated in headers, as far as tools were listed.
    parameters: Mutex<ParameterHeaders>,
    /// What keeps the server apart from the machine, in words.
    isolation: Vec<String>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("server", &self.server).finish_non_exhaustive()
    }
}

/// A request, with what is repeated of it in headers.
struct Asked<'a, P> {
    method: &'a str,
    name: Option<&'a str>,
    headers: &'a [(HeaderName, HeaderValue)],
    params: P,
    timeout: Duration,
    progress: bool,
}

#[derive(Serialize)]
struct WithMeta<'a, P> {
    #[serde(flatten)]
    params: P,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<Meta<'a>>,
}

#[derive(Serialize)]
struct Meta<'a> {
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    fixed: Option<&'a Map<String, Value>>,
    #[serde(rename = "progressToken", skip_serializing_if = "Option::is_none")]
    progress: Option<u64>,
}

#[derive(Serialize)]
struct CallParams<'a> {
    name: &'a str,
    arguments: &'a Map<String, Value>,
    #[serde(rename = "inputResponses", skip_serializing_if = "Option::is_none")]
    input_responses: Option<&'a Map<String, Value>>,
    #[serde(rename = "requestState", skip_serializing_if = "Option::is_none")]
    request_state: Option<&'a Value>,
}

/// Answers to what a server wanted to know before it could go on.
#[derive(Default)]
struct Input {
    responses: Option<Map<String, Value>>,
    state: Option<Value>,
}

#[derive(Serialize)]
struct ListParams<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<&'a str>,
}

impl Session {
    /// Starts or reaches the server and opens a session.
    ///
    /// # Errors
    /// When there is no session within `start_timeout`. Nothing is left running then.
    pub async fn start(spec: &ServerSpec, options: &Options) -> Result<Session, StartError> {
        let resolved = spec.resolve(options.folder.as_deref())?;
        let mut redactor = resolved.redactor;
        redactor.keep(&options.canaries);
        let options = &Options {
            policies: resolved.policies.unwrap_or_else(|| options.policies.clone()),
            ..options.clone()
        };
        let board = || {
            let board = Board::new(options.limits, options.policies.clone(), redactor.clone())
                .seen_by(&options.witness);
            let described = redactor.hidden(spec.describe());
            Arc::new(board.recorded(options.recorder.as_ref(), &described))
        };
        match resolved.target {
            Target::Stdio { command, env, folder, isolate } => {
                let board = board();
                let isolate = isolate.as_ref();
                isolate::check_folder(isolate, folder.as_deref())?;
                let program = Program { command, env, folder, ..Program::default() };
                let launch = isolate::launch(isolate, program, spec.cwd.is_some()).await?;
                let link = Link::Stdio(StdioLink::start(&launch.program, &board)?);
                let mut session = Session::open(link, board, spec.protocol, options)
                    .await
                    .map_err(|error| isolate::explain(isolate, error))?;
                session.isolation = launch.in_force;
                Ok(session)
            }
            Target::Sse { url, headers } => {
                Session::start_sse(&url, &headers, board(), spec.protocol, options).await
            }
            Target::Http { url, headers } => {
                let first = board();
                let link = Link::Http(HttpLink::new(&url, &headers, &first)?);
                match Session::open(link, first, spec.protocol, options).await {
                    // A server of the first revision knows no POST at its address.
                    Err(StartError::Handshake { why })
                        if spec.transport.is_none() && is_no_such_method(&why) =>
                    {
                        let old =
                            Session::start_sse(&url, &headers, board(), spec.protocol, options);
                        old.await.map_err(|_| StartError::Handshake { why })
                    }
                    other => other,
                }
            }
        }
    }

    async fn start_sse(
        url: &str,
        headers: &BTreeMap<String, String>,
        board: Arc<Board>,
        protocol: Option<Revision>,
        options: &Options,
    ) -> Result<Session, StartError> {
        let seconds = options.start_timeout.as_secs_f64();
        let connected =
            tokio::time::timeout(options.start_timeout, SseLink::connect(url, headers, &board));
        let link =
            connected.await.map_err(|_| StartError::Timeout { seconds, said: String::new() })??;
        Session::open(Link::Sse(link), board, protocol, options).await
    }

    /// Opens a session over streams: for servers that run in this process.
    ///
    /// # Errors
    /// As [`Session::start`].
    pub async fn over<R, W>(
        read: R,
        write: W,
        protocol: Option<Revision>,
        options: &Options,
    ) -> Result<Session, StartError>
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let redactor = Redactor::default();
        let board = Board::new(options.limits, options.policies.clone(), redactor)
            .seen_by(&options.witness)
            .recorded(options.recorder.as_ref(), "a server over streams");
        let board = Arc::new(board);
        let link = Link::Stdio(StdioLink::over(read, write, &board));
        Session::open(link, board, protocol, options).await
    }

    async fn open(
        link: Link,
        board: Arc<Board>,
        protocol: Option<Revision>,
        options: &Options,
    ) -> Result<Session, StartError> {
        let mut session = Session {
            link,
            board,
            server: ServerInfo::default(),
            options: options.clone(),
            meta: None,
            parameters: Mutex::default(),
            isolation: Vec::new(),
        };
        let opened = tokio::time::timeout(options.start_timeout, session.negotiate(protocol)).await;
        match opened {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(error),
            Err(_) => {
                let mut said = session.board.oddities();
                let stderr = quoted(&session.stderr());
                if !stderr.is_empty() {
                    said.push_str(&format!("; its stderr ends with: {stderr}"));
                }
                return Err(StartError::Timeout {
                    seconds: options.start_timeout.as_secs_f64(),
                    said,
                });
            }
        }
        if let Link::Http(link) = &mut session.link
            && session.meta.is_none()
        {
            link.listen().await;
        }
        Ok(session)
    }

    /// Without a wish: a handshake, which all servers but the newest know, then without one.
    async fn negotiate(&mut self, protocol: Option<Revision>) -> Result<(), StartError> {
        match protocol {
            Some(revision) if revision.has_handshake() => self.initialize(revision, true).await,
            Some(revision) => self.discover(revision).await,
            None => match self.initialize(Revision::NEWEST_WITH_HANDSHAKE, false).await {
                Err(refused @ StartError::Handshake { .. }) if self.board.ended().is_none() => {
                    // The first refusal says more when the second way is closed too.
                    self.discover(Revision::V2026_07_28).await.map_err(|_| refused)
                }
                other => other,
            },
        }
    }

    async fn initialize(&mut self, asked: Revision, forced: bool) -> Result<(), StartError> {
        let params = InitializeRequestParams::new(self.capabilities(), us())
            .with_protocol_version(asked.sdk());
        let answer = self.bootstrap("initialize", &params).await?;
        let answered = answer.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
        let revision = match Revision::of(answered) {
            Some(revision) if revision.has_handshake() && (!forced || revision == asked) => {
                revision
            }
            _ => {
                return Err(StartError::Revision {
                    asked: asked.to_string(),
                    answered: match answered {
                        "" => "no revision that it names".to_owned(),
                        named => quoted(named),
                    },
                });
            }
        };
        let info = answer.get("serverInfo").cloned().unwrap_or_default();
        self.met(&answer, &info, revision);
        if let Link::Http(link) = &self.link {
            link.speak(revision);
        }
        self.notify("notifications/initialized", None).await.map_err(handshake)
    }

    async fn discover(&mut self, revision: Revision) -> Result<(), StartError> {
        let meta =
            RequestMetaObject::with_client_context(revision.sdk(), us(), self.capabilities());
        let Ok(Value::Object(meta)) = serde_json::to_value(&meta) else {
            return Err(StartError::Handshake {
                why: "the metadata cannot be composed".to_owned(),
            });
        };
        self.meta = Some(meta);
        if let Link::Http(link) = &self.link {
            link.speak(revision);
        }
        let mut answer = self.opening("server/discover", &json!({})).await?;
        if answer.as_ref().is_err_and(|error| still_speaks(error, revision)) {
            answer = self.opening("server/discover", &json!({})).await?;
        }
        let answer = object("server/discover", answer)?;
        let supported: Vec<&str> = answer
            .get("supportedVersions")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        if !supported.contains(&revision.name()) {
            return Err(StartError::Revision {
                asked: revision.to_string(),
                answered: quoted(&supported.join(", ")),
            });
        }
        let info = answer.pointer("/_meta/io.modelcontextprotocol~1serverInfo").cloned();
        self.met(&answer, &info.unwrap_or_default(), revision);
        Ok(())
    }

    async fn bootstrap<P: Serialize>(&self, method: &str, params: &P) -> Result<Value, StartError> {
        object(method, self.opening(method, params).await?)
    }

    /// The first request, before there is a session.
    async fn opening<P: Serialize>(
        &self,
        method: &str,
        params: &P,
    ) -> Result<Result<Value, CallError>, StartError> {
        let asked = Asked {
            method,
            name: None,
            headers: &[],
            params,
            // The time for starting runs around all of it.
            timeout: Duration::from_secs(u64::from(u32::MAX)),
            progress: false,
        };
        Ok(self.exchange(asked).await?.outcome)
    }

    fn met(&mut self, answer: &Value, info: &Value, revision: Revision) {
        let text = |value: &Value, field: &str| {
            value.get(field).and_then(Value::as_str).map(str::to_owned)
        };
        self.board.speak(revision);
        self.server = ServerInfo {
            name: text(info, "name").unwrap_or_default(),
            title: text(info, "title"),
            version: text(info, "version").unwrap_or_default(),
            instructions: text(answer, "instructions"),
            revision,
            capabilities: answer.get("capabilities").cloned().unwrap_or_default(),
        };
    }

    fn capabilities(&self) -> ClientCapabilities {
        serde_json::from_value(self.options.policies.capabilities()).unwrap_or_default()
    }

    /// What the server says about itself.
    pub fn server(&self) -> &ServerInfo {
        &self.server
    }

    /// What keeps the server apart from the machine, in words; empty where nothing does.
    pub fn isolation(&self) -> &[String] {
        &self.isolation
    }

    /// What the server did so far beside answering.
    pub fn conduct(&self) -> Conduct {
        self.board.conduct()
    }

    /// The end of what the server said on stderr, without secrets.
    pub fn stderr(&self) -> String {
        match &self.link {
            Link::Stdio(link) => self.board.redactor.hidden(link.stderr()),
            Link::Http(_) | Link::Sse(_) => String::new(),
        }
    }

    /// What takes the secrets of the spec out of text and values.
    pub fn redactor(&self) -> &Redactor {
        &self.board.redactor
    }

    /// Every tool, in the order in which the server lists them.
    ///
    /// # Errors
    /// When the server does not answer, answers wrongly, or has no end of pages in number or time.
    pub async fn tools(&self) -> Result<Vec<Definition>, CallError> {
        match self.list("tools/list", "tools").await {
            Ok(tools) => {
                let define = |(at, raw): (usize, Value)| {
                    Definition::new(raw)
                        .map_err(|why| CallError::invalid(format!("tool {}: {why}", at + 1)))
                };
                let tools: Result<Vec<Definition>, CallError> =
                    tools.into_iter().enumerate().map(define).collect();
                if self.meta.is_some()
                    && let Ok(tools) = &tools
                {
                    *self.parameters.lock().unwrap_or_else(PoisonError::into_inner) =
                        ParameterHeaders::of(tools);
                }
                tools
            }
            // A server that offers no tools need not know the method.
            Err(CallError::Protocol { code: -32601, .. })
                if self.server.capabilities.get("tools").is_none() =>
            {
                Ok(Vec::new())
            }
            Err(error) => Err(error),
        }
    }

    /// Every entry of a listing (`prompts/list` and `prompts`, say), over all its pages. No page is asked
    /// for once the others have taken longer than the server may take to start, or than a call may take
    /// if that is longer.
    ///
    /// # Errors
    /// As [`Session::tools`].
    pub async fn list(&self, method: &str, field: &str) -> Result<Vec<Value>, CallError> {
        let limits = &self.board.limits;
        let longest = self.options.start_timeout.max(self.options.call_timeout);
        let started = Instant::now();
        let mut entries = Vec::new();
        let mut cursor: Option<String> = None;
        for number in 0..limits.pages {
            if number > 0 && started.elapsed() > longest {
                let seconds = longest.as_secs_f64();
                let said = format!(": {number} pages of {method} took more than {seconds} s");
                return Err(CallError::Timeout { said });
            }
            let params = ListParams { cursor: cursor.as_deref() };
            let mut page = self.ask(method, None, params).await?;
            let Some(Value::Array(found)) = page.get_mut(field).map(Value::take) else {
                let why = format!("the answer to {method} has no list of {field}");
                return Err(CallError::invalid(why));
            };
            entries.extend(found);
            if entries.len() > limits.entries {
                return Err(CallError::TooLarge { limit: limits.entries, what: "entries" });
            }
            let next = match page.get_mut("nextCursor").map(Value::take) {
                None | Some(Value::Null) => return Ok(entries),
                Some(Value::String(next)) => next,
                Some(_) => return Err(CallError::invalid("the next cursor is not a text")),
            };
            if cursor.as_ref() == Some(&next) {
                let why = format!("{method} has no end: the server repeats the cursor");
                return Err(CallError::invalid(why));
            }
            cursor = Some(next);
        }
        Err(CallError::TooLarge { limit: limits.pages, what: "pages" })
    }

    /// Calls a tool.
    ///
    /// # Errors
    /// When there is no result. A result with `isError` is a result.
    pub async fn call(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
    ) -> Result<Reply, CallError> {
        self.call_with(tool, arguments, CallOptions::default()).await
    }

    /// Calls a tool in a way of one's own.
    ///
    /// # Errors
    /// As [`Session::call`].
    pub async fn call_with(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        options: CallOptions,
    ) -> Result<Reply, CallError> {
        let started = Instant::now();
        let headers = self.parameter_headers(tool, arguments);
        let mut input = Input::default();
        let mut told = Vec::new();
        let mut rounds = 0;
        loop {
            let answer = self
                .exchange(Asked {
                    method: "tools/call",
                    name: Some(tool),
                    headers: &headers,
                    params: CallParams {
                        name: tool,
                        arguments,
                        input_responses: input.responses.as_ref(),
                        request_state: input.state.as_ref(),
                    },
                    timeout: options.timeout.unwrap_or(self.options.call_timeout),
                    progress: options.progress,
                })
                .await?;
            let raw = answer.outcome?;
            if !raw.is_object() {
                return Err(CallError::invalid("the result of the call is not an object"));
            }
            told.extend(answer.progress);
            rounds += 1;
            if rounds < ROUNDS
                && let Some(more) = self.wanted_input(&raw)
            {
                input = more;
                continue;
            }
            return Ok(Reply {
                is_error: raw.get("isError").and_then(Value::as_bool).unwrap_or(false),
                raw,
                latency: answer.arrived.saturating_duration_since(started),
                progress: told,
            });
        }
    }

    /// What a result that wants more input gets, if the policies have an answer to all of it.
    fn wanted_input(&self, raw: &Value) -> Option<Input> {
        if self.meta.is_none() || raw.get("resultType")?.as_str()? != "input_required" {
            return None;
        }
        let mut responses = Map::new();
        for (key, request) in
            raw.get("inputRequests").and_then(Value::as_object).into_iter().flatten()
        {
            let method = request.get("method").and_then(Value::as_str).unwrap_or_default();
            let params = request.get("params").unwrap_or(&Value::Null);
            let answer = self.board.policies.answer(method, params).ok()?;
            responses.insert(key.clone(), answer);
        }
        Some(Input { responses: Some(responses), state: raw.get("requestState").cloned() })
    }

    fn parameter_headers(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
    ) -> Vec<(HeaderName, HeaderValue)> {
        if self.meta.is_none() {
            return Vec::new();
        }
        self.parameters.lock().unwrap_or_else(PoisonError::into_inner).headers(tool, arguments)
    }

    /// Any other request.
    ///
    /// # Errors
    /// When there is no result.
    pub async fn request(
        &self,
        method: &str,
        params: &Map<String, Value>,
    ) -> Result<Value, CallError> {
        let name = params.get("name").or_else(|| params.get("uri")).and_then(Value::as_str);
        self.ask(method, name, params).await
    }

    /// Tells the server something.
    ///
    /// # Errors
    /// When it cannot be sent.
    pub async fn notify(&self, method: &str, params: Option<&Value>) -> Result<(), CallError> {
        let bytes = wire::notification(method, params);
        match &self.link {
            Link::Stdio(link) => link.send(&bytes),
            Link::Http(link) => {
                let post = Post { bytes: &bytes, id: None, method, name: None, headers: &[] };
                tokio::time::timeout(self.options.call_timeout, link.post(post))
                    .await
                    .map_err(|_| CallError::timeout())?
                    .map(|_| ())
            }
            Link::Sse(link) => tokio::time::timeout(self.options.call_timeout, link.post(&bytes))
                .await
                .map_err(|_| CallError::timeout())?,
        }
    }

    /// Ends the session in the way that the protocol asks for, and says how it went.
    pub async fn close(self) -> Ending {
        let Session { link, board, options, .. } = self;
        let (how, stderr) = match link {
            Link::Stdio(link) => link.close(options.patience, options.grace).await,
            Link::Http(link) => (link.close().await, String::new()),
            Link::Sse(_) => ("the event stream was closed".to_owned(), String::new()),
        };
        Ending {
            how: board.redactor.hidden(how),
            stderr: board.redactor.hidden(stderr),
            conduct: board.conduct(),
        }
    }

    async fn ask<P: Serialize>(
        &self,
        method: &str,
        name: Option<&str>,
        params: P,
    ) -> Result<Value, CallError> {
        let timeout = self.options.call_timeout;
        let asked = Asked { method, name, headers: &[], params, timeout, progress: false };
        self.exchange(asked).await?.outcome
    }

    async fn exchange<P: Serialize>(&self, asked: Asked<'_, P>) -> Result<Delivered, CallError> {
        let id = self.board.next_id();
        let meta = (self.meta.is_some() || asked.progress)
            .then(|| Meta { fixed: self.meta.as_ref(), progress: asked.progress.then_some(id) });
        let bytes = match meta {
            Some(meta) => {
                let params = WithMeta { params: asked.params, meta: Some(meta) };
                wire::request(id, asked.method, Some(params))
            }
            None => wire::request(id, asked.method, Some(asked.params)),
        };
        let post = Post {
            bytes: &bytes,
            id: Some(id),
            method: asked.method,
            name: asked.name,
            headers: asked.headers,
        };
        let mut waiting = self.board.wait_for(id)?;
        let answer = self.send_and_wait(&mut waiting, post);
        if let Ok(answer) = tokio::time::timeout(asked.timeout, answer).await {
            return answer;
        }
        let said = waiting.oddities();
        drop(waiting);
        self.cancel(id);
        Err(CallError::Timeout { said })
    }

    async fn send_and_wait(
        &self,
        waiting: &mut Waiting<'_>,
        post: Post<'_>,
    ) -> Result<Delivered, CallError> {
        let link = match &self.link {
            Link::Stdio(link) => {
                if let Err(error) = link.send(post.bytes) {
                    // How it ended says more than that it takes no more.
                    return match error {
                        CallError::Closed { .. } => Ok(waiting.answer().await),
                        other => Err(other),
                    };
                }
                return Ok(waiting.answer().await);
            }
            Link::Sse(link) => {
                link.post(post.bytes).await?;
                return Ok(waiting.answer().await);
            }
            Link::Http(link) => link,
        };
        let posting = link.post(post);
        tokio::pin!(posting);
        // The answer may come before its stream ends, and on another stream than its own.
        let posted = tokio::select! {
            biased;
            answer = waiting.answer() => return Ok(answer),
            posted = &mut posting => posted,
        };
        if let Some(answer) = waiting.try_answer() {
            return Ok(answer);
        }
        match posted? {
            Posted::Accepted => Ok(waiting.answer().await),
            Posted::Finished => Err(CallError::invalid(format!(
                "the server answered without an answer to the request{}",
                waiting.oddities()
            ))),
        }
    }

    /// Tells the server that nobody waits any more.
    fn cancel(&self, id: u64) {
        let params = json!({"requestId": id, "reason": "no answer in time"});
        let bytes = wire::notification("notifications/cancelled", Some(&params));
        match &self.link {
            Link::Stdio(link) => {
                let _ = link.send(&bytes);
            }
            // Without a handshake, closing the stream says it.
            Link::Http(link) if self.meta.is_none() => {
                link.post_unattended(bytes, "notifications/cancelled");
            }
            Link::Http(_) => {}
            Link::Sse(link) => link.post_unattended(bytes),
        }
    }
}

fn object(method: &str, answer: Result<Value, CallError>) -> Result<Value, StartError> {
    match answer {
        Ok(result) if result.is_object() => Ok(result),
        Ok(_) => {
            Err(StartError::Handshake { why: format!("the answer to {method} is not an object") })
        }
        Err(error) => Err(handshake(error)),
    }
}

/// Whether a server refuses the revision of a request and names the very one as supported: behind
/// one address, servers of several versions may answer, and the protocol wants it tried again.
fn still_speaks(error: &CallError, revision: Revision) -> bool {
    let CallError::Protocol { code, data: Some(data), .. } = error else { return false };
    let supported = data.get("supported").and_then(Value::as_array);
    *code == i64::from(ErrorCode::UNSUPPORTED_PROTOCOL_VERSION.0)
        && supported.is_some_and(|all| all.iter().any(|name| name == revision.name()))
}

/// Who we say that we are.
fn us() -> Implementation {
    Implementation::new("karat", env!("CARGO_PKG_VERSION"))
}

/// Whether the server answered like one that knows nothing of streamable HTTP.
fn is_no_such_method(why: &str) -> bool {
    ["HTTP status 400", "HTTP status 404", "HTTP status 405"]
        .iter()
        .any(|status| why.starts_with(status))
}

fn handshake(error: CallError) -> StartError {
    match error {
        CallError::Transport { why } => StartError::NotStarted { why },
        CallError::Closed { why } => StartError::NotStarted { why },
        other => StartError::Handshake { why: other.to_string() },
    }
}

impl From<CallError> for StartError {
    fn from(error: CallError) -> Self {
        handshake(error)
    }
}
