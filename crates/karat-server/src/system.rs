//! A live server that runs cases, and is started again when it falls over.
//!
//! One session serves the whole suite. When the server ends in the middle, or hangs and does not even
//! answer a ping, the call says so, the next attempt gets a new session (with the suite's set-up calls
//! made anew, for the old state is gone), and the restart is counted. A server that does not come back
//! is lost. Saved values stay in memory as they are; what is seen of a call is kept without secrets.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use karat_core::run::System;
use karat_io::Failure;
use karat_mcp::{
    CallError, Definition, Options, ProtocolLog, Redactor, ServerSpec, Session, StartError, serve,
};
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use crate::demo;
use crate::observation::{Attempt, Called, Observed, Outcome, Role};
use crate::score::{answered, wrong_ending};
use crate::suite::matcher::Answer;
use crate::suite::variables::{self, Changes, Scope, Variables};
use crate::suite::{Case, Step};

/// How often a server is started in a row before it counts as lost.
const STARTS: u32 = 3;
/// The longest that a server which did not answer a call may take to answer a ping.
const PING: Duration = Duration::from_secs(5);
/// How long a server may take to end by itself once everything is measured; then it is asked to. Some take
/// a quarter of a second to do nothing, for which nobody should wait.
pub(crate) const PATIENCE: Duration = Duration::from_millis(100);
/// The bytes under way between a session and a server in this process.
const PIPE: usize = 64 << 10;

/// Where the server is.
#[derive(Clone, Debug)]
pub enum Target {
    /// Started or reached as a spec says.
    Spec(Box<ServerSpec>),
    /// The demo server, in this process.
    Demo,
}

impl Target {
    /// In one line that is safe to print.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Target::Spec(spec) => spec.describe(),
            Target::Demo => "the demo server, in this process".to_owned(),
        }
    }

    async fn open(&self, options: &Options) -> Result<Session, StartError> {
        let spec = match self {
            Target::Spec(spec) => spec,
            Target::Demo => {
                let (ours, theirs) = tokio::io::duplex(PIPE);
                let (their_input, their_output) = tokio::io::split(theirs);
                tokio::spawn(serve::over(
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

/// A server that is measured.
pub struct Server {
    target: Target,
    options: Options,
    setup: Vec<Arc<Step>>,
    session: Mutex<Option<Arc<Session>>>,
    variables: Mutex<Variables>,
    /// Of the spec, so the same for every session.
    redactor: OnceLock<Redactor>,
    listed: Mutex<Listed>,
    restarts: AtomicU64,
}

/// The tools of a server by name, and how many changes of its lists it had told of by then.
#[derive(Default)]
struct Listed {
    tools: BTreeMap<String, Definition>,
    changes: Option<u64>,
}

impl Server {
    /// Starts the server and makes the calls that come before the first case.
    ///
    /// # Errors
    /// When there is no session, or a set-up call does not come to a result.
    pub async fn start(
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
        };
        let session = server.fresh().await?;
        *server.session.lock().await = Some(session);
        Ok(server)
    }

    /// The session as it is now.
    ///
    /// # Errors
    /// When the server is gone and does not come back.
    pub async fn session(&self) -> Result<Arc<Session>, StartError> {
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
                Err(error) if tried == STARTS => return Err(error),
                Err(_) => tried += 1,
            }
        }
    }

    /// Lists the tools, unless they were listed since the server last told of a change.
    ///
    /// # Errors
    /// Why there is no list.
    pub(crate) async fn list(&self) -> Result<(), String> {
        let changes = Some(self.options.violations.list_changes());
        let mut listed = self.listed.lock().await;
        if listed.changes == changes {
            return Ok(());
        }
        let session = self.session().await.map_err(|error| error.to_string())?;
        let tools = session.tools().await.map_err(|error| error.to_string())?;
        // A tool that is gone stays as it was: calls that were made to it are judged by that.
        listed.tools.extend(tools.into_iter().map(|tool| (tool.name().to_owned(), tool)));
        listed.changes = changes;
        Ok(())
    }

    /// Every tool that was listed, as it was listed last.
    pub(crate) async fn tools(&self) -> Vec<Definition> {
        self.listed.lock().await.tools.values().cloned().collect()
    }

    /// What the server did beside answering, over all its sessions.
    pub fn protocol_log(&self) -> ProtocolLog {
        self.options.violations.log()
    }

    /// How often the server had to be started again.
    pub fn restarts(&self) -> u64 {
        self.restarts.load(Ordering::Relaxed)
    }

    /// What takes the secrets of the spec out of what is shown and kept.
    pub fn redactor(&self) -> &Redactor {
        self.redactor.get_or_init(Redactor::default)
    }

    async fn fresh(&self) -> Result<Arc<Session>, StartError> {
        let session = Arc::new(self.target.open(&self.options).await?);
        self.redactor.get_or_init(|| session.redactor().clone());
        let mut values = self.scope().await;
        for (number, step) in self.setup.iter().enumerate() {
            let made = self.make(&session, step, Role::Setup, number, &mut values).await;
            let why = match made {
                Ok(Made { called, .. }) => unmet(step, &called.outcome),
                Err(why) => Some(why),
            };
            if let Some(why) = why {
                return Err(StartError::Handshake {
                    why: format!("set-up call {} ({}): {why}", number + 1, step.tool),
                });
            }
        }
        self.keep(values.changes()).await;
        Ok(session)
    }

    /// What has been saved up to now, for calls that go on from there.
    async fn scope(&self) -> Scope {
        Scope::new(self.variables.lock().await.clone())
    }

    async fn keep(&self, changes: Changes) {
        variables::merge(&mut *self.variables.lock().await, changes);
    }

    /// Makes one call that belongs to no case: how it ended, how long it took, and its answer in words
    /// without the secrets of the spec.
    ///
    /// # Errors
    /// When the server is gone and does not come back.
    pub async fn call(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
    ) -> Result<(Outcome, Duration, String), StartError> {
        let session = self.session().await?;
        let started = Instant::now();
        let answered = session.call(tool, arguments).await;
        let whole = started.elapsed();
        let (outcome, latency) = match answered {
            Ok(reply) => (Outcome::Result { result: reply.raw }, reply.latency),
            Err(error) => {
                if error.is_lost() {
                    self.lose(&session).await;
                }
                (Outcome::from(error), whole)
            }
        };
        let words = self.redactor().hidden(crate::probe::live::words(&outcome));
        Ok((outcome, latency, words))
    }

    /// Ends the server in good order where that is possible; the next call gets a fresh one.
    pub async fn renew(&self) {
        let session = self.session.lock().await.take();
        if let Some(session) = session.and_then(Arc::into_inner) {
            session.close().await;
        }
    }

    /// Whether the server answers a ping in this time. A refusal is a sign of life too.
    pub(crate) async fn answers_ping(session: &Session, limit: Duration) -> bool {
        let nothing = Map::new();
        let asked = tokio::time::timeout(limit, session.request("ping", &nothing));
        matches!(asked.await, Ok(Ok(_) | Err(CallError::Protocol { .. })))
    }

    /// How long a call may take.
    pub(crate) fn call_timeout(&self) -> Duration {
        self.options.call_timeout
    }

    /// Makes the calls that come after the last case, and says which of them did not clean up. How they
    /// end is nobody's score. A call that needs a value which only cases outside of `ran` save is left
    /// out: they left nothing behind.
    pub async fn tear_down(&self, steps: &[Step], ran: &[Arc<Case>]) -> Vec<String> {
        let mut problems = Vec::new();
        let mut session = None;
        let mut values = self.scope().await;
        for (number, step) in steps.iter().enumerate() {
            let place = format!("teardown {} ({})", number + 1, step.tool);
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
                    let why = unmet(step, &made.called.outcome);
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

    /// Whether every value that a step needs is saved by a call that was due.
    fn saved_by_some(&self, step: &Step, teardown: &[Step], ran: &[Arc<Case>]) -> bool {
        let due = (self.setup.iter().map(AsRef::as_ref))
            .chain(ran.iter().flat_map(|case| case.steps()))
            .chain(teardown)
            .flat_map(|step| step.save.keys())
            .collect::<BTreeSet<&String>>();
        step.names().iter().all(|name| due.contains(name))
    }

    /// Makes calls that come before another, and puts what they saved into its arguments.
    ///
    /// # Errors
    /// Which call did not end as it must, or which value is missing.
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
            if let Some(why) = unmet(step, &made.called.outcome) {
                return Err(format!("{}: {why}", step.tool));
            }
        }
        let arguments = variables::fill(input, values.known());
        self.keep(values.changes()).await;
        arguments
    }

    /// Makes one call, with the values that are known, and saves what it gives. The error says why it
    /// could not be made. A session that is over is for the caller to lose.
    async fn make(
        &self,
        session: &Session,
        step: &Step,
        role: Role,
        number: usize,
        values: &mut Scope,
    ) -> Result<Made, String> {
        let arguments = match variables::fill(&step.input, values.known()) {
            Ok(arguments) => arguments,
            Err(why) => {
                values.save(&step.save, None);
                return Err(why);
            }
        };
        let started = Instant::now();
        let answered = session.call(&step.tool, &arguments).await;
        let whole = started.elapsed();
        let over = match &answered {
            Err(CallError::Timeout { .. }) => {
                // A server that is busy with what nobody waits for any more would fail all that follows.
                !Server::answers_ping(session, PING.min(self.options.call_timeout)).await
            }
            Err(error) => error.is_lost(),
            Ok(_) => false,
        };
        let (outcome, latency) = match answered {
            Ok(reply) => (Outcome::Result { result: reply.raw }, reply.latency),
            Err(error) => (Outcome::from(error), whole),
        };
        let result = match &outcome {
            Outcome::Result { result } => Some(result),
            _ => None,
        };
        values.save(&step.save, result);
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        let called = Called { role, number, tool: step.tool.clone(), arguments, outcome, nanos };
        Ok(Made { called: called.hidden(self.redactor()), over })
    }

    /// Forgets a session that is over, unless another attempt has already replaced it.
    pub(crate) async fn lose(&self, lost: &Arc<Session>) {
        let mut slot = self.session.lock().await;
        if slot.as_ref().is_some_and(|session| Arc::ptr_eq(session, lost)) {
            *slot = None;
        }
    }

    async fn attempt(&self, case: &Case) -> Result<(Attempt, Changes), StartError> {
        let session = self.session().await?;
        let mut values = self.scope().await;
        let mut attempt = Attempt { calls: Vec::new(), stopped: None };
        let (mut going, mut over) = (true, false);
        for (role, number, step) in numbered(case) {
            if !going {
                values.save(&step.save, None);
                continue;
            }
            match self.make(&session, step, role, number, &mut values).await {
                Ok(made) => {
                    // Without its set-up the call would be another one.
                    let missed = role == Role::Setup && !made.called.outcome.is_answer();
                    over = made.over;
                    going = !over && !missed;
                    attempt.calls.push(made.called);
                }
                Err(why) => {
                    attempt.stopped = Some(why);
                    going = false;
                }
            }
        }
        for (number, step) in case.teardown.iter().enumerate() {
            // What the process kept is gone with it, and in the next one the same id may be another's.
            if over {
                break;
            }
            // A call that lacks a value has nothing to clean up; the others have.
            let made = self.make(&session, step, Role::Teardown, number, &mut values).await;
            if let Ok(made) = made {
                over = made.over;
                attempt.calls.push(made.called);
            }
        }
        if over {
            self.lose(&session).await;
        }
        Ok((attempt, values.changes()))
    }
}

/// A call that was made.
struct Made {
    called: Called,
    /// Whether the session is of no use any more: the server ended, or does not even answer a ping.
    over: bool,
}

/// The calls of a case that are judged, in order, each with its role and its number in it.
pub(crate) fn numbered(case: &Case) -> impl Iterator<Item = (Role, usize, &Step)> {
    let parts: [(Role, &[Step]); 3] = [
        (Role::Setup, &case.setup),
        (Role::Call, std::slice::from_ref(&case.step)),
        (Role::Then, &case.then),
    ];
    parts.into_iter().flat_map(|(role, steps)| {
        steps.iter().enumerate().map(move |(number, step)| (role, number, step))
    })
}

/// What a call that is no case of its own was to bring and did not: another ending, or another answer.
pub(crate) fn unmet(step: &Step, outcome: &Outcome) -> Option<String> {
    if let Some(wrong) = wrong_ending(step.ending, outcome) {
        return Some(wrong);
    }
    let result = answered(outcome)?;
    let answer = Answer::new(&result);
    step.matchers.iter().find_map(|matcher| matcher.check(&answer).err())
}

/// One repetition after the other, or several at once where the case says so. What they save lives on
/// in the order of their numbers; those that are under way at once all begin with the same values.
async fn attempts(server: &Arc<Server>, case: &Arc<Case>) -> Result<Vec<Attempt>, StartError> {
    let repeat = case.repeat as usize;
    let mut found: BTreeMap<usize, Attempt> = BTreeMap::new();
    let mut saved: BTreeMap<String, (usize, Option<Value>)> = BTreeMap::new();
    let mut broken = String::new();
    let mut under_way = JoinSet::new();
    let mut next = 0;
    loop {
        while next < repeat && under_way.len() < case.concurrency {
            let (server, case, number) = (Arc::clone(server), Arc::clone(case), next);
            under_way.spawn(async move { (number, server.attempt(&case).await) });
            next += 1;
        }
        match under_way.join_next().await {
            None => break,
            Some(Ok((number, attempt))) => {
                let (attempt, changes) = attempt?;
                found.insert(number, attempt);
                if case.concurrency == 1 {
                    server.keep(changes).await;
                    continue;
                }
                for (name, value) in changes {
                    let last = saved.entry(name).or_insert((number, None));
                    if number >= last.0 {
                        *last = (number, value);
                    }
                }
            }
            Some(Err(error)) => broken = format!("the attempt broke off: {error}"),
        }
    }
    server.keep(saved.into_iter().map(|(name, (_, value))| (name, value)).collect()).await;
    if !broken.is_empty() {
        for number in 0..repeat {
            let stopped = Some(broken.clone());
            found.entry(number).or_insert(Attempt { calls: Vec::new(), stopped });
        }
    }
    Ok(found.into_values().collect())
}

/// The server as [`karat_core::run`] asks it: one question is one case with all its repetitions.
pub struct Cases(pub Arc<Server>);

impl System for Cases {
    type Question = Arc<Case>;
    type Answer = Observed;

    async fn ask(&self, _run: u32, case: &Arc<Case>) -> Result<Observed, Failure> {
        let attempts = attempts(&self.0, case).await;
        // Without a new list, the case is judged by the old one.
        let _ = self.0.list().await;
        match attempts {
            Ok(attempts) => Ok(Observed { attempts }),
            Err(error) => Err(Failure::lost(format!("it does not start again: {error}"))),
        }
    }
}

/// Arguments for a message: as JSON.
pub(crate) fn shown(arguments: &Map<String, Value>) -> String {
    serde_json::to_string(arguments).unwrap_or_default()
}
