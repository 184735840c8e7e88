//! A live server that runs cases and is restarted when it fails.
//!
//! One session serves the whole suite. If the server ends, or hangs and does not even answer a
//! ping, the outcome of the call records it, the next attempt gets a new session (with the suite's
//! setup calls made again, since the old state is gone), and the restart is counted. A server that
//! does not come back is lost. Saved values stay in memory as they are; observations are kept
//! without secrets.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use karat_io::task;
use karat_mcp::{
    CallError, CallOptions, Definition, Options, ProtocolLog, Redactor, ResponseHead, ServerSpec,
    Session, StartError, serve,
};
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;

use crate::demo;
use crate::judge::{call_name, unmet};
use crate::observation::{Called, Outcome};
use crate::suite::headers;
use crate::suite::variables::{self, Changes, Scope, Variables};
use crate::suite::{Case, Feature, Role, Step};
use crate::tasks::{self, TaskRun};

/// The number of starts in a row after which a server counts as lost.
const MAX_STARTS: u32 = 3;
/// The time limit for a ping, after a call without an answer.
const PING_TIMEOUT: Duration = Duration::from_secs(5);
/// The time that a server has to end by itself after the measurement; then it is asked to. Some
/// servers take a quarter of a second to do nothing, which is not worth waiting for.
pub(crate) const PATIENCE: Duration = Duration::from_millis(100);
/// The size of the buffer between a session and a server in this process, in bytes.
const PIPE_BYTES: usize = 64 << 10;

/// The place of a server.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// The program or address of a spec.
    Spec(Box<ServerSpec>),
    /// The demo server, in this process.
    Demo,
}

impl Target {
    /// A one-line description that is safe to print.
    pub(crate) fn describe(&self) -> String {
        match self {
            Target::Spec(spec) => spec.describe(),
            Target::Demo => "the demo server, in this process".to_owned(),
        }
    }

    async fn open(&self, options: &Options) -> Result<Session, StartError> {
        let spec = match self {
            Target::Spec(spec) => spec,
            Target::Demo => {
                let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
                let (their_input, their_output) = tokio::io::split(theirs);
                task::spawn(serve::over(
                    demo::offer(),
                    demo::Demo::default(),
                    their_input,
                    their_output,
                ));
                let (input, output) = tokio::io::split(ours);
                return Session::over(input, output, None, options).await;
            }
        };
        Session::start(spec, options).await
    }
}

/// A server under test.
pub(crate) struct Server {
    target: Target,
    options: Options,
    setup: Vec<Arc<Step>>,
    session: Mutex<Option<Arc<Session>>>,
    variables: Mutex<Variables>,
    /// CompletedCall from the spec, so the same for every session.
    redactor: OnceLock<Redactor>,
    listed: Mutex<Listed>,
    restarts: AtomicU64,
    hides_private: bool,
}

/// The tools of a server by name, and the number of list changes that it had announced by then.
#[derive(Default)]
struct Listed {
    tools: BTreeMap<String, Definition>,
    changes: Option<u64>,
}

impl Server {
    /// Starts the server and makes the calls before the first case.
    ///
    /// # Errors
    /// If there is no session, or a setup call does not do what it should.
    pub(crate) async fn start(
        target: Target,
        options: Options,
        setup: Vec<Arc<Step>>,
    ) -> Result<Server, StartError> {
        let server = Server {
            target,
            options,
            setup,
            session: Mutex::new(None),
            variables: Mutex::new(Variables::new()),
            redactor: OnceLock::new(),
            listed: Mutex::default(),
            restarts: AtomicU64::new(0),
            hides_private: false,
        };
        let session = server.fresh().await?;
        *server.session.lock().await = Some(session);
        Ok(server)
    }

    /// The same server; what reads as private is removed from its answers before they are kept.
    #[must_use]
    pub(crate) fn without_private(self) -> Server {
        Server { hides_private: true, ..self }
    }

    /// The current session, or a new one.
    ///
    /// # Errors
    /// If the server is gone and does not come back.
    pub(crate) async fn session(&self) -> Result<Arc<Session>, StartError> {
        let mut slot = self.session.lock().await;
        if let Some(session) = &*slot {
            return Ok(Arc::clone(session));
        }
        self.restarts.fetch_add(1, Ordering::Relaxed);
        let mut tried = 1;
        loop {
            match self.fresh().await {
                Ok(session) => {
                    *slot = Some(Arc::clone(&session));
                    return Ok(session);
                }
                Err(error) if tried == MAX_STARTS => return Err(error),
                Err(_) => tried += 1,
            }
        }
    }

    /// Lists the tools, unless they were listed after the last change that the server announced.
    ///
    /// # Errors
    /// If the server does not list them.
    pub(crate) async fn list(&self) -> Result<(), String> {
        let changes = Some(self.options.violations.list_changes());
        let mut listed = self.listed.lock().await;
        if listed.changes == changes {
            return Ok(());
        }
        let session = self.session().await.map_err(|error| error.to_string())?;
        let tools = session.tools().await.map_err(|error| error.to_string())?;
        // A tool that was removed stays: the calls that were made to it are judged by it.
        listed.tools.extend(tools.into_iter().map(|tool| (tool.name().to_owned(), tool)));
        listed.changes = changes;
        Ok(())
    }

    /// Every tool that was listed, with its latest definition.
    pub(crate) async fn tools(&self) -> Vec<Definition> {
        self.listed.lock().await.tools.values().cloned().collect()
    }

    /// The same by name, and the number of list changes that the server had announced by then.
    pub(crate) async fn listed(&self) -> (BTreeMap<String, Definition>, Option<u64>) {
        let listed = self.listed.lock().await;
        (listed.tools.clone(), listed.changes)
    }

    /// Conduct apart from answers, over all sessions.
    pub(crate) fn protocol_log(&self) -> ProtocolLog {
        self.options.violations.log()
    }

    /// The server as it is opened.
    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// The settings of its sessions.
    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// The number of restarts.
    pub(crate) fn restarts(&self) -> u64 {
        self.restarts.load(Ordering::Relaxed)
    }

    /// The redactor for the secrets of the spec.
    pub(crate) fn redactor(&self) -> &Redactor {
        self.redactor.get_or_init(Redactor::default)
    }

    /// Another session next to the current one, prepared like it.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) async fn another_session(&self) -> Result<Arc<Session>, StartError> {
        self.fresh().await
    }

    async fn fresh(&self) -> Result<Arc<Session>, StartError> {
        let session = Arc::new(self.target.open(&self.options).await?);
        self.redactor.get_or_init(|| session.redactor().clone());
        let mut values = self.scope().await;
        for (number, step) in self.setup.iter().enumerate() {
            let made = match filled(step, &mut values) {
                Ok(arguments) => {
                    // Without another session for an expired one: that would be made by this function.
                    let answered = self.answered(&session, step, &arguments).await;
                    let place = (Role::Setup, number);
                    Ok(self.made(&session, step, place, (arguments, answered), &mut values).await)
                }
                Err(why) => Err(why),
            };
            let why = match made {
                Ok(CompletedCall { called, .. }) => unmet(step, &called),
                Err(why) => Some(why),
            };
            if let Some(why) = why {
                return Err(StartError::Handshake {
                    why: format!("{}: {why}", call_name(Role::Setup, number, &step.tool)),
                });
            }
        }
        self.keep(values.changes()).await;
        Ok(session)
    }

    /// The values that have been saved up to now.
    pub(crate) async fn scope(&self) -> Scope {
        Scope::new(self.variables.lock().await.clone())
    }

    pub(crate) async fn keep(&self, changes: Changes) {
        variables::merge(&mut *self.variables.lock().await, changes);
    }

    /// Makes one call that belongs to no case. Returns its outcome, the time it took, and its
    /// answer as text without the secrets of the spec.
    ///
    /// # Errors
    /// If the server is gone and does not come back.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
    ) -> Result<(Outcome, Duration, String), StartError> {
        let (outcome, latency) = self.ask(Feature::Tool, tool, arguments).await?;
        let words = self.redactor().hidden(outcome.describe());
        Ok((outcome, latency, words))
    }

    /// Makes one request that belongs to no case. Returns its outcome and the time it took.
    ///
    /// # Errors
    /// If the server is gone and does not come back.
    pub(crate) async fn ask(
        &self,
        feature: Feature,
        name: &str,
        arguments: &Map<String, Value>,
    ) -> Result<(Outcome, Duration), StartError> {
        let session = self.session().await?;
        let options = CallOptions::default();
        let mut sent = send(&session, feature, name, arguments, options.clone()).await;
        if let Some(fresh) = self.after_expiry(&session, &sent.0).await {
            sent = send(&fresh, feature, name, arguments, options).await;
        }
        let (answered, latency) = sent;
        if answered.as_ref().is_err_and(CallError::is_lost) {
            self.lose(&session).await;
        }
        Ok((Outcome::from(answered), latency))
    }

    /// Another session for a call that found its session expired: a server may end a session at any time,
    /// and a client then opens another one and makes the call again there, once.
    async fn after_expiry(
        &self,
        session: &Session,
        answered: &Result<Value, CallError>,
    ) -> Option<Arc<Session>> {
        if !matches!(answered, Err(CallError::Expired { .. })) {
            return None;
        }
        {
            let mut slot = self.session.lock().await;
            if slot.as_ref().is_some_and(|open| std::ptr::eq(&raw const **open, session)) {
                *slot = None;
            }
        }
        self.session().await.ok()
    }

    /// Makes one call with these arguments, as a task if the step says so.
    async fn answered(
        &self,
        session: &Session,
        step: &Step,
        arguments: &Map<String, Value>,
    ) -> Answered {
        let head = ResponseHead::default();
        let options = CallOptions {
            // Progress is asked for where notifications are expected.
            progress: !step.notices.is_empty(),
            head: (!step.headers.is_empty()).then(|| head.clone()),
            ..CallOptions::default()
        };
        let Step { feature, tool, .. } = step;
        let (sent, task) = match &step.task {
            None => (send(session, *feature, tool, arguments, options).await, None),
            Some(plan) => {
                let (started, limit) = (Instant::now(), self.options.call_timeout);
                let call = (tool.as_str(), arguments);
                let (answer, seen) = tasks::run(session, call, plan, &options, limit).await;
                ((answer, started.elapsed()), Some(seen))
            }
        };
        Answered { sent, task, headers: headers::kept(&step.headers, &head, self.redactor()) }
    }

    /// Returns whether the server still answers a ping while a call is without an answer.
    pub(crate) async fn is_alive(&self) -> bool {
        let session = self.session.lock().await.clone();
        match session {
            Some(session) => {
                Server::answers_ping(&session, PING_TIMEOUT.min(self.options.call_timeout)).await
            }
            None => false,
        }
    }

    /// Ends the server, in good order if possible; the next call gets a new one.
    pub(crate) async fn renew(&self) {
        let session = self.session.lock().await.take();
        if let Some(session) = session.and_then(Arc::into_inner) {
            session.close().await;
        }
    }

    /// Returns whether the server answers a ping in this time. A refusal is an answer too.
    pub(crate) async fn answers_ping(session: &Session, limit: Duration) -> bool {
        let nothing = Map::new();
        let asked = tokio::time::timeout(limit, session.request("ping", &nothing));
        matches!(asked.await, Ok(Ok(_) | Err(CallError::Protocol { .. })))
    }

    /// The time limit for a call.
    pub(crate) fn call_timeout(&self) -> Duration {
        self.options.call_timeout
    }

    /// Makes the calls after the last case. Returns the problems of those that did not clean up;
    /// they do not affect scores. A call that needs a value which only cases outside of `ran` save
    /// is left out: those cases left nothing behind.
    pub(crate) async fn tear_down(&self, steps: &[Step], ran: &[Arc<Case>]) -> Vec<String> {
        let mut problems = Vec::new();
        let mut session = None;
        let mut values = self.scope().await;
        for (number, step) in steps.iter().enumerate() {
            let place = call_name(Role::Teardown, number, &step.tool);
            if !self.saved_by_some(step, steps, ran) {
                continue;
            }
            let open = match &session {
                Some(open) => Arc::clone(open),
                None => match self.session().await {
                    Ok(open) => Arc::clone(session.insert(open)),
                    Err(error) => {
                        problems.push(format!("{place} was not made: {error}"));
                        break;
                    }
                },
            };
            match self.make(&open, step, Role::Teardown, number, &mut values).await {
                Ok(made) => {
                    let why = unmet(step, &made.called);
                    problems.extend(why.map(|why| format!("{place}: {why}")));
                    if made.over {
                        self.lose(&open).await;
                        break;
                    }
                }
                Err(why) => problems.push(format!("{place} was not made: {why}")),
            }
        }
        problems
    }

    /// Returns whether every value that a step needs is saved by a call of this run.
    fn saved_by_some(&self, step: &Step, teardown: &[Step], ran: &[Arc<Case>]) -> bool {
        let due = (self.setup.iter().map(AsRef::as_ref))
            .chain(ran.iter().flat_map(|case| case.steps()))
            .chain(teardown)
            .flat_map(|step| step.save.keys())
            .collect::<BTreeSet<&String>>();
        step.names().iter().all(|name| due.contains(name))
    }

    /// Makes setup calls, and puts the values that they saved into arguments.
    ///
    /// # Errors
    /// If a call does not do what it should, or a value is missing.
    pub(crate) async fn prepare(
        &self,
        setup: &[Step],
        input: &Map<String, Value>,
    ) -> Result<Map<String, Value>, String> {
        let session = self.session().await.map_err(|error| error.to_string())?;
        let mut values = self.scope().await;
        for (number, step) in setup.iter().enumerate() {
            let made = self.make(&session, step, Role::Setup, number, &mut values).await?;
            if made.over {
                self.lose(&session).await;
            }
            if let Some(why) = unmet(step, &made.called) {
                return Err(format!("{}: {why}", step.tool));
            }
        }
        let arguments = variables::fill(input, values.known());
        self.keep(values.changes()).await;
        arguments
    }

    /// Makes one call with the saved values, and saves values of its answer. Dropping a session
    /// that is over is up to the caller.
    ///
    /// # Errors
    /// If the call cannot be made because a value is missing.
    pub(crate) async fn make(
        &self,
        session: &Session,
        step: &Step,
        role: Role,
        number: usize,
        values: &mut Scope,
    ) -> Result<CompletedCall, String> {
        let arguments = filled(step, values)?;
        let mut answered = self.answered(session, step, &arguments).await;
        if let Some(fresh) = self.after_expiry(session, &answered.sent.0).await {
            answered = self.answered(&fresh, step, &arguments).await;
        }
        Ok(self.made(session, step, (role, number), (arguments, answered), values).await)
    }

    /// A call with its arguments and its answer, and whether the session is over.
    async fn made(
        &self,
        session: &Session,
        step: &Step,
        (role, number): (Role, usize),
        (arguments, answered): (Map<String, Value>, Answered),
        values: &mut Scope,
    ) -> CompletedCall {
        let Answered { sent: (answered, latency), task, headers } = answered;
        let over = match &answered {
            Err(CallError::Timeout { .. }) => {
                // A server that is still busy with this call would fail all calls that follow.
                !Server::answers_ping(session, PING_TIMEOUT.min(self.options.call_timeout)).await
            }
            Err(error) => error.is_lost(),
            Ok(_) => false,
        };
        values.save(&step.save, answered.as_ref().ok());
        let outcome = Outcome::from(answered);
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        let (feature, tool) = (step.feature, step.tool.clone());
        let notifications = Vec::new();
        let called = Called {
            role,
            number,
            feature,
            tool,
            arguments,
            outcome,
            nanos,
            notifications,
            headers,
            task,
            violation: None,
        };
        CompletedCall { called: self.without_secrets(called), over }
    }

    /// A call without secrets, as it is kept.
    pub(crate) fn without_secrets(&self, called: Called) -> Called {
        self.kept(called.redacted(self.redactor()))
    }

    /// A call as it is kept.
    pub(crate) fn kept(&self, called: Called) -> Called {
        if self.hides_private { called.without_private() } else { called }
    }

    /// Drops a session that is over, unless another attempt has already replaced it.
    pub(crate) async fn lose(&self, lost: &Arc<Session>) {
        let mut slot = self.session.lock().await;
        if slot.as_ref().is_some_and(|session| Arc::ptr_eq(session, lost)) {
            *slot = None;
        }
    }
}

/// The result of a call, and the time it took.
type Sent = (Result<Value, CallError>, Duration);

/// The arguments of a call with the saved values.
fn filled(step: &Step, values: &mut Scope) -> Result<Map<String, Value>, String> {
    let arguments = variables::fill(&step.input, values.known());
    if arguments.is_err() {
        values.save(&step.save, None);
    }
    arguments
}

/// An answer, with what was observed during the call.
struct Answered {
    sent: Sent,
    task: Option<TaskRun>,
    headers: Option<BTreeMap<String, String>>,
}

/// Sends one call.
async fn send(
    session: &Session,
    feature: Feature,
    name: &str,
    arguments: &Map<String, Value>,
    options: CallOptions,
) -> Sent {
    let started = Instant::now();
    let asked = match feature {
        Feature::Tool => {
            return match session.call_with(name, arguments, options).await {
                Ok(reply) => (Ok(reply.raw), reply.latency),
                Err(error) => (Err(error), started.elapsed()),
            };
        }
        Feature::Resource => session.request_with("resources/read", arguments, options).await,
        Feature::Prompt => {
            let mut params = Map::from_iter([("name".to_owned(), Value::from(name))]);
            params.insert("arguments".to_owned(), Value::Object(arguments.clone()));
            session.request_with("prompts/get", &params, options).await
        }
        // The handshake is over; its answer is known.
        Feature::Method if HANDSHAKES.contains(&name) => Ok(introduction(session)),
        Feature::Method => session.request_with(name, arguments, options).await,
    };
    let answered = asked.and_then(|result| match result.is_object() {
        true => Ok(result),
        false => Err(CallError::Invalid { why: "the result is not an object".to_owned() }),
    });
    (answered, started.elapsed())
}

/// The methods whose answer is the server's description of itself.
const HANDSHAKES: [&str; 2] = ["initialize", "server/discover"];

/// The server's description of itself, in the form of the answer to `initialize`.
fn introduction(session: &Session) -> Value {
    let info = session.server();
    let mut result = json!({
        "protocolVersion": info.revision.to_string(),
        "capabilities": info.capabilities,
        "serverInfo": {"name": info.name, "version": info.version},
    });
    if let Some(instructions) = &info.instructions {
        result["instructions"] = Value::from(instructions.as_str());
    }
    if let Some(title) = &info.title {
        result["serverInfo"]["title"] = Value::from(title.as_str());
    }
    result
}

/// A call that was made.
pub(crate) struct CompletedCall {
    pub(crate) called: Called,
    /// True if the session is over: the server ended, or does not even answer a ping.
    pub(crate) over: bool,
}
