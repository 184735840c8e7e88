//! A session with one server.
//!
//! Everything that comes back is kept as it was on the wire: definitions and results are raw JSON, and the
//! caller judges them. Methods take `&self` and may be called concurrently. Everything has a time limit,
//! and a server does not outlive its session.

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

use crate::error::{CallError, StartError, quoted};
use crate::http::{HttpLink, Post, Posted};
use crate::isolate;
use crate::limits::Limits;
use crate::parameter_headers::ParameterHeaders;
use crate::pending_calls::{Delivered, PendingCall, PendingCalls};
use crate::policy::Policies;
use crate::protocol_log::{ProtocolLog, ViolationSink};
use crate::record::Recorder;
use crate::reply::{Definition, Reply, ServerInfo};
use crate::revision::Revision;
use crate::spec::{ServerSpec, Target};
use crate::sse::SseLink;
use crate::stdio::StdioLink;
use crate::wire;

/// Settings of a [`Session`].
#[derive(Clone, Debug)]
pub struct Options {
    /// Time for the server to get ready: start, connection and handshake.
    pub start_timeout: Duration,
    /// Time for one request.
    pub call_timeout: Duration,
    /// Time for a server to exit by itself when its session is closed.
    pub patience: Duration,
    /// Time for it to exit after SIGTERM, before it is killed.
    pub grace: Duration,
    /// Limits on messages of the server.
    pub limits: Limits,
    /// Answers to requests of the server, unless its spec has policies of its own.
    pub policies: Policies,
    /// Records every message.
    pub recorder: Option<Recorder>,
    /// The project folder: the working folder of programs and the base of relative paths.
    pub folder: Option<PathBuf>,
    /// Values that are not hidden although they look like secrets: planted ones whose leak is looked for.
    pub canaries: Vec<String>,
    /// Adds up the protocol logs of all sessions that share it.
    pub violations: ViolationSink,
}

impl Default for Options {
    /// 30 seconds to start, 30 for a call, 1 to exit and 1 more after SIGTERM; every request of the server
    /// is refused.
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
            violations: ViolationSink::default(),
        }
    }
}

/// Settings of one call.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallOptions {
    /// Time for the call; that of the session if not set.
    pub timeout: Option<Duration>,
    /// Asks the server for progress notifications.
    pub progress: bool,
}

/// The end of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ending {
    /// A description.
    pub how: String,
    /// The end of the server's stderr, without secrets.
    pub stderr: String,
    /// Its protocol violations and notifications.
    pub protocol_log: ProtocolLog,
}

enum Link {
    Stdio(StdioLink),
    Http(HttpLink),
    Sse(SseLink),
}

/// Maximum number of rounds in which a server asks for more input before it answers a call.
const MAX_ROUNDS: usize = 10;

/// A session with a server. Dropping it kills the server and its children.
pub struct Session {
    link: Link,
    calls: Arc<PendingCalls>,
    server: ServerInfo,
    options: Options,
    /// The metadata of each request, in revisions without a handshake.
    meta: Option<Map<String, Value>>,
    /// The arguments that are repeated in headers, once tools have been listed.
    parameters: Mutex<ParameterHeaders>,
    /// Descriptions of the isolation in force.
    isolation: Vec<String>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("server", &self.server).finish_non_exhaustive()
    }
}

/// A request, with the parts of it that headers repeat.
struct Outgoing<'a, P> {
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

/// Answers to a server that asks for input before it answers a call.
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
    /// If there is no session within `start_timeout`. Nothing is left running then.
    pub async fn start(spec: &ServerSpec, options: &Options) -> Result<Session, StartError> {
        let resolved = spec.resolve(options.folder.as_deref())?;
        let mut redactor = resolved.redactor;
        redactor.keep(&options.canaries);
        let options = &Options {
            policies: resolved.policies.unwrap_or_else(|| options.policies.clone()),
            ..options.clone()
        };
        let calls = || {
            let calls =
                PendingCalls::new(options.limits, options.policies.clone(), redactor.clone())
                    .reporting_to(&options.violations);
            let described = redactor.hidden(spec.describe());
            Arc::new(calls.recorded(options.recorder.as_ref(), &described))
        };
        match resolved.target {
            Target::Stdio { command, env, folder, isolate } => {
                let calls = calls();
                let isolate = isolate.as_ref();
                isolate::check_folder(isolate, folder.as_deref())?;
                let program = Program { command, env, folder, ..Program::default() };
                let launch = isolate::launch(isolate, program, spec.cwd.is_some()).await?;
                let link = Link::Stdio(StdioLink::start(&launch.program, &calls)?);
                let mut session = Session::open(link, calls, spec.protocol, options)
                    .await
                    .map_err(|error| isolate::explain(isolate, error))?;
                session.isolation = launch.in_force;
                Ok(session)
            }
            Target::Sse { url, headers } => {
                Session::start_sse(&url, &headers, calls(), spec.protocol, options).await
            }
            Target::Http { url, headers } => {
                let first = calls();
                let link = Link::Http(HttpLink::new(&url, &headers, &first)?);
                match Session::open(link, first, spec.protocol, options).await {
                    // A server of the first revision does not accept POST at its address.
                    Err(StartError::Handshake { why })
                        if spec.transport.is_none() && lacks_streamable_http(&why) =>
                    {
                        let old =
                            Session::start_sse(&url, &headers, calls(), spec.protocol, options);
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
        calls: Arc<PendingCalls>,
        protocol: Option<Revision>,
        options: &Options,
    ) -> Result<Session, StartError> {
        let seconds = options.start_timeout.as_secs_f64();
        let connected =
            tokio::time::timeout(options.start_timeout, SseLink::connect(url, headers, &calls));
        let link =
            connected.await.map_err(|_| StartError::Timeout { seconds, said: String::new() })??;
        Session::open(Link::Sse(link), calls, protocol, options).await
    }

    /// Opens a session over streams, for servers that run in this process.
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
        let calls = PendingCalls::new(options.limits, options.policies.clone(), redactor)
            .reporting_to(&options.violations)
            .recorded(options.recorder.as_ref(), "a server over streams");
        let calls = Arc::new(calls);
        let link = Link::Stdio(StdioLink::over(read, write, &calls));
        Session::open(link, calls, protocol, options).await
    }

    async fn open(
        link: Link,
        calls: Arc<PendingCalls>,
        protocol: Option<Revision>,
        options: &Options,
    ) -> Result<Session, StartError> {
        let mut session = Session {
            link,
            calls,
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
                let mut said = session.calls.describe_violations();
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

    /// Without a fixed revision, tries a handshake, which most servers have, and then without one.
    async fn negotiate(&mut self, protocol: Option<Revision>) -> Result<(), StartError> {
        match protocol {
            Some(revision) if revision.has_handshake() => self.initialize(revision, true).await,
            Some(revision) => self.discover(revision).await,
            None => match self.initialize(Revision::NEWEST_WITH_HANDSHAKE, false).await {
                Err(refused @ StartError::Handshake { .. }) if self.calls.ended().is_none() => {
                    // If both fail, the first refusal says more.
                    self.discover(Revision::V2026_07_28).await.map_err(|_| refused)
                }
                other => other,
            },
        }
    }

    async fn initialize(&mut self, asked: Revision, forced: bool) -> Result<(), StartError> {
        let params = InitializeRequestParams::new(self.capabilities(), client_info())
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
                        "" => "without naming a revision".to_owned(),
                        named => quoted(named),
                    },
                });
            }
        };
        let info = answer.get("serverInfo").cloned().unwrap_or_default();
        self.set_server(&answer, &info, revision);
        if let Link::Http(link) = &self.link {
            link.set_revision(revision);
        }
        self.notify("notifications/initialized", None).await.map_err(handshake)
    }

    async fn discover(&mut self, revision: Revision) -> Result<(), StartError> {
        let meta = RequestMetaObject::with_client_context(
            revision.sdk(),
            client_info(),
            self.capabilities(),
        );
        let Ok(Value::Object(meta)) = serde_json::to_value(&meta) else {
            return Err(StartError::Handshake {
                why: "the request metadata cannot be written as JSON".to_owned(),
            });
        };
        self.meta = Some(meta);
        if let Link::Http(link) = &self.link {
            link.set_revision(revision);
        }
        let mut answer = self.opening("server/discover", &json!({})).await?;
        if answer.as_ref().is_err_and(|error| supports(error, revision)) {
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
        self.set_server(&answer, &info.unwrap_or_default(), revision);
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
        let outgoing = Outgoing {
            method,
            name: None,
            headers: &[],
            params,
            // `start_timeout` covers all of it.
            timeout: Duration::from_secs(u64::from(u32::MAX)),
            progress: false,
        };
        Ok(self.exchange(outgoing).await?.outcome)
    }

    fn set_server(&mut self, answer: &Value, info: &Value, revision: Revision) {
        let text = |value: &Value, field: &str| {
            value.get(field).and_then(Value::as_str).map(str::to_owned)
        };
        self.calls.set_revision(revision);
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

    /// Name, version and capabilities of the server.
    pub fn server(&self) -> &ServerInfo {
        &self.server
    }

    /// Descriptions of the isolation in force; empty if there is none.
    pub fn isolation(&self) -> &[String] {
        &self.isolation
    }

    /// Protocol violations and notifications so far.
    pub fn protocol_log(&self) -> ProtocolLog {
        self.calls.protocol_log()
    }

    /// The end of the server's stderr, without secrets.
    pub fn stderr(&self) -> String {
        match &self.link {
            Link::Stdio(link) => self.calls.redactor.hidden(link.stderr()),
            Link::Http(_) | Link::Sse(_) => String::new(),
        }
    }

    /// Removes the secrets of the spec from text and values.
    pub fn redactor(&self) -> &Redactor {
        &self.calls.redactor
    }

    /// All tools, in the order of the server.
    ///
    /// # Errors
    /// If the server does not answer, the answer is invalid, or there are too many pages.
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
            // A server without tools need not know the method.
            Err(CallError::Protocol { code: -32601, .. })
                if self.server.capabilities.get("tools").is_none() =>
            {
                Ok(Vec::new())
            }
            Err(error) => Err(error),
        }
    }

    /// All entries of a list over all its pages, such as `prompts` of `prompts/list`. No further page is
    /// requested once they have taken longer than `start_timeout` and `call_timeout`.
    ///
    /// # Errors
    /// As [`Session::tools`].
    pub async fn list(&self, method: &str, field: &str) -> Result<Vec<Value>, CallError> {
        let limits = &self.calls.limits;
        let max_time = self.options.start_timeout.max(self.options.call_timeout);
        let started = Instant::now();
        let mut entries = Vec::new();
        let mut cursor: Option<String> = None;
        for number in 0..limits.pages {
            if number > 0 && started.elapsed() > max_time {
                let seconds = max_time.as_secs_f64();
                let said = format!(": {number} pages of {method} took more than {seconds} s");
                return Err(CallError::Timeout { said });
            }
            let params = ListParams { cursor: cursor.as_deref() };
            let mut page = self.ask(method, None, params).await?;
            let Some(Value::Array(found)) = page.get_mut(field).map(Value::take) else {
                let why = format!("the answer to {method} has no list `{field}`");
                return Err(CallError::invalid(why));
            };
            entries.extend(found);
            if entries.len() > limits.entries {
                return Err(CallError::TooLarge { limit: limits.entries, what: "entries" });
            }
            let next = match page.get_mut("nextCursor").map(Value::take) {
                None | Some(Value::Null) => return Ok(entries),
                Some(Value::String(next)) => next,
                Some(_) => return Err(CallError::invalid("`nextCursor` is not a string")),
            };
            if cursor.as_ref() == Some(&next) {
                let why = format!("{method} does not end: the server repeats its cursor");
                return Err(CallError::invalid(why));
            }
            cursor = Some(next);
        }
        Err(CallError::TooLarge { limit: limits.pages, what: "pages" })
    }

    /// Calls a tool.
    ///
    /// # Errors
    /// If there is no result. A result with `isError` is a result.
    pub async fn call(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
    ) -> Result<Reply, CallError> {
        self.call_with(tool, arguments, CallOptions::default()).await
    }

    /// Calls a tool with settings of its own.
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
        let mut progress = Vec::new();
        let mut rounds = 0;
        loop {
            let answer = self
                .exchange(Outgoing {
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
            progress.extend(answer.progress);
            rounds += 1;
            if rounds < MAX_ROUNDS
                && let Some(more) = self.requested_input(&raw)
            {
                input = more;
                continue;
            }
            return Ok(Reply {
                is_error: raw.get("isError").and_then(Value::as_bool).unwrap_or(false),
                raw,
                latency: answer.arrived.saturating_duration_since(started),
                progress,
            });
        }
    }

    /// The answers to a result that asks for input, if the policies answer all of it.
    fn requested_input(&self, raw: &Value) -> Option<Input> {
        if self.meta.is_none() || raw.get("resultType")?.as_str()? != "input_required" {
            return None;
        }
        let mut responses = Map::new();
        for (key, request) in
            raw.get("inputRequests").and_then(Value::as_object).into_iter().flatten()
        {
            let method = request.get("method").and_then(Value::as_str).unwrap_or_default();
            let params = request.get("params").unwrap_or(&Value::Null);
            let answer = self.calls.policies.answer(method, params).ok()?;
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

    /// Sends any other request.
    ///
    /// # Errors
    /// If there is no result.
    pub async fn request(
        &self,
        method: &str,
        params: &Map<String, Value>,
    ) -> Result<Value, CallError> {
        let name = params.get("name").or_else(|| params.get("uri")).and_then(Value::as_str);
        self.ask(method, name, params).await
    }

    /// Sends a notification.
    ///
    /// # Errors
    /// If it cannot be sent.
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

    /// Closes the session as the protocol demands: a server process may exit by itself, then gets SIGTERM,
    /// and is then killed.
    pub async fn close(self) -> Ending {
        let Session { link, calls, options, .. } = self;
        let (how, stderr) = match link {
            Link::Stdio(link) => link.close(options.patience, options.grace).await,
            Link::Http(link) => (link.close().await, String::new()),
            Link::Sse(_) => ("the event stream was closed".to_owned(), String::new()),
        };
        Ending {
            how: calls.redactor.hidden(how),
            stderr: calls.redactor.hidden(stderr),
            protocol_log: calls.protocol_log(),
        }
    }

    async fn ask<P: Serialize>(
        &self,
        method: &str,
        name: Option<&str>,
        params: P,
    ) -> Result<Value, CallError> {
        let timeout = self.options.call_timeout;
        let outgoing = Outgoing { method, name, headers: &[], params, timeout, progress: false };
        self.exchange(outgoing).await?.outcome
    }

    async fn exchange<P: Serialize>(
        &self,
        outgoing: Outgoing<'_, P>,
    ) -> Result<Delivered, CallError> {
        let id = self.calls.next_id();
        let meta = (self.meta.is_some() || outgoing.progress)
            .then(|| Meta { fixed: self.meta.as_ref(), progress: outgoing.progress.then_some(id) });
        let bytes = match meta {
            Some(meta) => {
                let params = WithMeta { params: outgoing.params, meta: Some(meta) };
                wire::request(id, outgoing.method, Some(params))
            }
            None => wire::request(id, outgoing.method, Some(outgoing.params)),
        };
        let post = Post {
            bytes: &bytes,
            id: Some(id),
            method: outgoing.method,
            name: outgoing.name,
            headers: outgoing.headers,
        };
        let mut waiting = self.calls.register(id)?;
        let answer = self.send_and_wait(&mut waiting, post);
        if let Ok(answer) = tokio::time::timeout(outgoing.timeout, answer).await {
            return answer;
        }
        let said = waiting.describe_violations();
        drop(waiting);
        self.cancel(id);
        Err(CallError::Timeout { said })
    }

    async fn send_and_wait(
        &self,
        waiting: &mut PendingCall<'_>,
        post: Post<'_>,
    ) -> Result<Delivered, CallError> {
        let link = match &self.link {
            Link::Stdio(link) => {
                if let Err(error) = link.send(post.bytes) {
                    // The reason for its end says more than the failed write.
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
        // The answer may come before its stream ends, or on another stream.
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
                "the response does not hold an answer to the request{}",
                waiting.describe_violations()
            ))),
        }
    }

    /// Sends a cancellation.
    fn cancel(&self, id: u64) {
        let params = json!({"requestId": id, "reason": "no answer in time"});
        let bytes = wire::notification("notifications/cancelled", Some(&params));
        match &self.link {
            Link::Stdio(link) => {
                let _ = link.send(&bytes);
            }
            // In revisions without a handshake, closing the stream cancels.
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

/// True if a server refuses the revision of a request and yet names it as supported: one address may lead
/// to servers of several versions, and the protocol says to try again.
fn supports(error: &CallError, revision: Revision) -> bool {
    let CallError::Protocol { code, data: Some(data), .. } = error else { return false };
    let supported = data.get("supported").and_then(Value::as_array);
    *code == i64::from(ErrorCode::UNSUPPORTED_PROTOCOL_VERSION.0)
        && supported.is_some_and(|all| all.iter().any(|name| name == revision.name()))
}

/// The name and version of this client.
fn client_info() -> Implementation {
    Implementation::new("karat", env!("CARGO_PKG_VERSION"))
}

/// True if the server answered like one without streamable HTTP.
fn lacks_streamable_http(why: &str) -> bool {
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
