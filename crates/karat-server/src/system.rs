//! A live server that runs cases, and is started again when it falls over.
//!
//! One session serves the whole suite. When the server ends in the middle, the call says so, the
//! next attempt gets a new session (with the suite's set-up calls made anew, for the old state is
//! gone), and the restart is counted. A server that does not come back is lost.

use std::sync::{Arc, OnceLock};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use karat_core::run::{Failure, System};
use karat_mcp::{Options, Redactor, ServerSpec, Session, StartError, serve};
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use crate::demo;
use crate::observation::{Attempt, Called, Observed, Outcome, Role};
use crate::suite::matcher::Answer;
use crate::suite::variables::{self, Variables};
use crate::suite::{Case, Step};

/// How often a server is started in a row before it counts as lost.
const STARTS: u32 = 3;
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
    restarts: AtomicU64,
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
        for (number, step) in self.setup.iter().enumerate() {
            let made = self.make(&session, step, Role::Setup, number).await;
            let why = match made {
                Ok(Called { outcome: Outcome::Result { .. }, .. }) => continue,
                Ok(called) => called.outcome.words(),
                Err(why) => why,
            };
            return Err(StartError::Handshake {
                why: format!("set-up call {} ({}) ended with {why}", number + 1, step.tool),
            });
        }
        Ok(session)
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

    /// Makes the calls that come after the last case; how they end is nobody's score.
    pub async fn tear_down(&self, steps: &[Step]) {
        let Ok(session) = self.session().await else { return };
        for (number, step) in steps.iter().enumerate() {
            let _ = self.make(&session, step, Role::Teardown, number).await;
        }
    }

    /// Makes calls that come before another, and puts what they saved into its arguments.
    ///
    /// # Errors
    /// Which call did not come to a result, or which value is missing.
    pub(crate) async fn prepare(
        &self,
        setup: &[Step],
        input: &Map<String, Value>,
    ) -> Result<Map<String, Value>, String> {
        let session = self.session().await.map_err(|error| error.to_string())?;
        for (number, step) in setup.iter().enumerate() {
            let called = self.make(&session, step, Role::Setup, number).await?;
            if !matches!(called.outcome, Outcome::Result { .. }) {
                return Err(format!("{} ended with {}", step.tool, called.outcome.words()));
            }
        }
        variables::fill(input, &*self.variables.lock().await)
    }

    /// Makes one call. The error says why it could not be made.
    async fn make(
        &self,
        session: &Arc<Session>,
        step: &Step,
        role: Role,
        number: usize,
    ) -> Result<Called, String> {
        let arguments = variables::fill(&step.input, &*self.variables.lock().await)?;
        let started = Instant::now();
        let answered = session.call(&step.tool, &arguments).await;
        let whole = started.elapsed();
        let (outcome, latency) = match answered {
            Ok(reply) => (Outcome::Result { result: reply.raw }, reply.latency),
            Err(error) => {
                if error.is_lost() {
                    self.lose(session).await;
                }
                (Outcome::from(error), whole)
            }
        };
        if let Outcome::Result { result } = &outcome {
            self.save(step, result).await;
        }
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        let called = Called { role, number, tool: step.tool.clone(), arguments, outcome, nanos };
        Ok(called.hidden(self.redactor()))
    }

    async fn save(&self, step: &Step, result: &Value) {
        if step.save.is_empty() {
            return;
        }
        let answer = Answer::new(result);
        let mut variables = self.variables.lock().await;
        for (name, path) in &step.save {
            match answer.data_at(path) {
                Some(value) => variables.insert(name.clone(), value),
                // What an earlier call left must not stand in for what this one did not give.
                None => variables.remove(name),
            };
        }
    }

    /// Forgets a session that is over, unless another attempt has already replaced it.
    pub(crate) async fn lose(&self, lost: &Arc<Session>) {
        let mut slot = self.session.lock().await;
        if slot.as_ref().is_some_and(|session| Arc::ptr_eq(session, lost)) {
            *slot = None;
        }
    }

    async fn attempt(&self, case: &Case) -> Result<Attempt, StartError> {
        let session = self.session().await?;
        let mut attempt = Attempt { calls: Vec::new(), stopped: None };
        let one = std::slice::from_ref(&case.step);
        let parts: [(Role, &[Step]); 4] = [
            (Role::Setup, &case.setup),
            (Role::Call, one),
            (Role::Then, &case.then),
            (Role::Teardown, &case.teardown),
        ];
        for (role, steps) in parts {
            for (number, step) in steps.iter().enumerate() {
                match self.make(&session, step, role, number).await {
                    Ok(called) => {
                        let answered = called.outcome.is_answer();
                        let lost = matches!(called.outcome, Outcome::Crash { .. });
                        attempt.calls.push(called);
                        // Without its set-up the call would be another one.
                        if lost || (role == Role::Setup && !answered) {
                            return Ok(attempt);
                        }
                    }
                    Err(why) => {
                        attempt.stopped = Some(why);
                        return Ok(attempt);
                    }
                }
            }
        }
        Ok(attempt)
    }
}

/// One repetition after the other, or several at once where the case says so.
async fn attempts(server: &Arc<Server>, case: &Arc<Case>) -> Result<Vec<Attempt>, StartError> {
    let repeat = case.repeat as usize;
    let mut found: Vec<Option<Attempt>> = Vec::new();
    found.resize_with(repeat, || None);
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
            Some(Ok((number, attempt))) => found[number] = Some(attempt?),
            Some(Err(error)) => {
                let stopped = Some(format!("the attempt broke off: {error}"));
                if let Some(slot) = found.iter_mut().find(|slot| slot.is_none()) {
                    *slot = Some(Attempt { calls: Vec::new(), stopped });
                }
            }
        }
    }
    Ok(found.into_iter().flatten().collect())
}

/// The server as [`karat_core::run`] asks it: one question is one case with all its repetitions.
pub struct Cases(pub Arc<Server>);

impl System for Cases {
    type Question = Arc<Case>;
    type Answer = Observed;

    async fn ask(&self, _run: u32, case: &Arc<Case>) -> Result<Observed, Failure> {
        match attempts(&self.0, case).await {
            Ok(attempts) => Ok(Observed { attempts }),
            Err(error) => Err(Failure::lost(format!("it does not start again: {error}"))),
        }
    }
}

/// Arguments for a message: as JSON.
pub(crate) fn shown(arguments: &Map<String, Value>) -> String {
    serde_json::to_string(arguments).unwrap_or_default()
}
