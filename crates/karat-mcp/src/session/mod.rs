//! A session with one server.
//!
//! Everything that comes back is kept as it was on the wire: definitions and results are raw JSON, and the
//! caller judges them. Methods take `&self` and may be called concurrently. Everything has a time limit,
//! and a server does not outlive its session.

mod handshake;
mod requests;

pub use self::requests::TASKS_EXTENSION;

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use karat_io::process::{Program, SAID};
use karat_io::redact::Redactor;
use karat_io::text::last_lines;
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::auth::{Authorizer, authorizer};
use crate::error::StartError;
use crate::headers::ResponseHead;
use crate::http::HttpLink;
use crate::isolate;
use crate::limits::Limits;
use crate::parameter_headers::ParameterHeaders;
use crate::pending_calls::PendingCalls;
use crate::policy::Policies;
use crate::protocol_log::{ProtocolLog, ViolationSink};
use crate::record::Recorder;
use crate::reply::ServerInfo;
use crate::revision::Revision;
use crate::spec::{Address, ServerSpec, Target};
use crate::sse::SseLink;
use crate::stdio::StdioLink;

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
    /// Keeps the latest notifications for [`Session::notifications_since`].
    pub keep_notifications: bool,
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
            keep_notifications: false,
            folder: None,
            canaries: Vec::new(),
            violations: ViolationSink::default(),
        }
    }
}

/// Settings of one call.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use serde_json::{Map, Value, json};
/// # use karat_mcp::serve::{self, Context, Offer, ProtocolError, Respond};
/// # struct Silent;
/// # impl Respond for Silent {
/// #     async fn call(&self, _: &Context, _: &str, _: &Value) -> Result<Value, ProtocolError> {
/// #         std::future::pending().await
/// #     }
/// # }
/// # let tools = vec![json!({"name": "wait", "inputSchema": {"type": "object"}})];
/// # let offer = Offer { name: "silent".to_owned(), tools, ..Offer::default() };
/// # let (client, server) = tokio::io::duplex(1 << 16);
/// # let (from_client, to_client) = tokio::io::split(server);
/// # tokio::spawn(serve::over(offer, Silent, from_client, to_client));
/// # let (read, write) = tokio::io::split(client);
/// use std::time::Duration;
///
/// use karat_mcp::{CallError, CallOptions, Options, Session};
///
/// // A tool that never answers.
/// let session = Session::over(read, write, None, &Options::default()).await?;
/// let options = CallOptions { timeout: Some(Duration::from_millis(20)), ..CallOptions::default() };
/// let reply = session.call_with("wait", &Map::new(), options).await;
/// assert!(matches!(reply, Err(CallError::Timeout { .. })));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default)]
pub struct CallOptions {
    /// Time for the call; that of the session if not set.
    pub timeout: Option<Duration>,
    /// Asks the server for progress notifications.
    pub progress: bool,
    /// Keeps the headers of the response, over streamable HTTP.
    pub head: Option<ResponseHead>,
    /// Declares the tasks extension with the request, in revisions without a handshake: the server may then
    /// answer a call with a task.
    pub tasks: bool,
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

/// A session with a server. Dropping it kills the server and its children.
pub struct Session {
    link: Link,
    calls: Arc<PendingCalls>,
    server: ServerInfo,
    options: Options,
    /// The token of a server at a URL.
    login: Option<Arc<Authorizer>>,
    /// The metadata of each request, in revisions without a handshake.
    meta: Option<Map<String, Value>>,
    /// The same with the tasks extension among the capabilities.
    tasks_meta: Option<Map<String, Value>>,
    /// The arguments that are repeated in headers, once tools have been listed.
    parameters: Mutex<ParameterHeaders>,
    /// Descriptions of the isolation in force.
    isolation: Vec<String>,
}

/// The future that a method of a session returns. Boxed, so that the code behind it is compiled once,
/// here and optimised for speed, and not again in every crate that awaits it.
pub type Awaited<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("server", &self.server).finish_non_exhaustive()
    }
}

impl Session {
    /// Starts or reaches the server and opens a session.
    ///
    /// # Errors
    /// If there is no session within `start_timeout`. Nothing is left running then.
    pub fn start<'a>(
        spec: &'a ServerSpec,
        options: &'a Options,
    ) -> Awaited<'a, Result<Session, StartError>> {
        Box::pin(async move {
            let resolved = spec.resolve(options.folder.as_deref())?;
            let mut redactor = resolved.redactor;
            redactor.keep(&options.canaries);
            let login = match &resolved.target {
                Target::Stdio { .. } => None,
                Target::Http(address) | Target::Sse(address) => Some(authorizer(address)?),
            };
            if let Some(login) = &login {
                redactor.follow(login.late());
            }
            let options = &Options {
                policies: resolved.policies.unwrap_or_else(|| options.policies.clone()),
                ..options.clone()
            };
            let calls = || {
                let calls =
                    PendingCalls::new(options.limits, options.policies.clone(), redactor.clone())
                        .keeping_notifications(options.keep_notifications)
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
                    let mut session = Session::open(link, calls, spec.protocol, options, None)
                        .await
                        .map_err(|error| isolate::explain(isolate, error))?;
                    session.isolation = launch.in_force;
                    Ok(session)
                }
                Target::Sse(address) => {
                    Session::start_sse(&address, calls(), spec.protocol, options, login).await
                }
                Target::Http(address) => {
                    let first = calls();
                    let link = Link::Http(HttpLink::new(&address, &first)?);
                    match Session::open(link, first, spec.protocol, options, login.clone()).await {
                        // A server of the first revision does not accept POST at its address.
                        Err(StartError::Handshake { why })
                            if spec.transport.is_none() && lacks_streamable_http(&why) =>
                        {
                            let old = Session::start_sse(
                                &address,
                                calls(),
                                spec.protocol,
                                options,
                                login,
                            );
                            old.await.map_err(|_| StartError::Handshake { why })
                        }
                        other => other,
                    }
                }
            }
        })
    }

    async fn start_sse(
        address: &Address,
        calls: Arc<PendingCalls>,
        protocol: Option<Revision>,
        options: &Options,
        login: Option<Arc<Authorizer>>,
    ) -> Result<Session, StartError> {
        let seconds = options.start_timeout.as_secs_f64();
        let connecting = SseLink::connect(address, &calls);
        let connected = within(login.as_deref(), options.start_timeout, connecting).await;
        let link = connected.ok_or(StartError::Timeout { seconds, said: String::new() })??;
        Session::open(Link::Sse(link), calls, protocol, options, login).await
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
            .keeping_notifications(options.keep_notifications)
            .reporting_to(&options.violations)
            .recorded(options.recorder.as_ref(), "a server over streams");
        let calls = Arc::new(calls);
        let link = Link::Stdio(StdioLink::over(read, write, &calls));
        Session::open(link, calls, protocol, options, None).await
    }

    async fn open(
        link: Link,
        calls: Arc<PendingCalls>,
        protocol: Option<Revision>,
        options: &Options,
        login: Option<Arc<Authorizer>>,
    ) -> Result<Session, StartError> {
        let mut session = Session {
            link,
            calls,
            server: ServerInfo::default(),
            options: options.clone(),
            login: login.clone(),
            meta: None,
            tasks_meta: None,
            parameters: Mutex::default(),
            isolation: Vec::new(),
        };
        let negotiating = session.negotiate(protocol);
        match within(login.as_deref(), options.start_timeout, negotiating).await {
            Some(Ok(())) => {}
            Some(Err(error)) => return Err(error),
            None => {
                let mut said = session.calls.describe_violations();
                let stderr = last_lines(&session.stderr(), SAID);
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

    /// Name, version and capabilities of the server.
    pub fn server(&self) -> &ServerInfo {
        &self.server
    }

    /// Descriptions of the isolation in force; empty if there is none.
    pub fn isolation(&self) -> &[String] {
        &self.isolation
    }

    /// Returns whether the server gave this session an id (`Mcp-Session-Id`).
    pub fn has_session_id(&self) -> bool {
        matches!(&self.link, Link::Http(link) if link.has_session_id())
    }

    /// The number of notifications so far, if they are kept.
    pub fn notification_count(&self) -> u64 {
        self.calls.notification_count()
    }

    /// The notifications after the first `count`, as `{method, params}`, without secrets. Only the latest are
    /// kept, and none unless [`Options::keep_notifications`] is set.
    pub fn notifications_since(&self, count: u64) -> Vec<Value> {
        self.calls.notifications_since(count)
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

    /// Closes the session as the protocol demands: a server process may exit by itself, then gets SIGTERM,
    /// and is then killed.
    pub fn close(self) -> Awaited<'static, Ending> {
        Box::pin(async move {
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
        })
    }
}

/// Runs a future for at most this time, not counting that of logins.
async fn within<F: Future>(
    login: Option<&Authorizer>,
    limit: Duration,
    future: F,
) -> Option<F::Output> {
    match login {
        Some(login) => login.within(limit, future).await,
        None => tokio::time::timeout(limit, future).await.ok(),
    }
}

/// True if the server answered like one without streamable HTTP.
fn lacks_streamable_http(why: &str) -> bool {
    ["HTTP status 400", "HTTP status 404", "HTTP status 405"]
        .iter()
        .any(|status| why.starts_with(status))
}
