//! Live runs: an agent works on a case, through a defence.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use karat_core::observed::StateChange;
use karat_core::run::System;
use karat_io::text::clip;
use karat_io::{Failure, FailureClass};
use karat_mcp::{Elicitation, Options, Policies, Recorder, Sampling};
use karat_recordings::Run;
use karat_recordings::declines;
use serde_json::Value;

use crate::agents::{AgentKind, Done, Planned, Wire, Work, plan};
use crate::defence::{Guard, Watch};
use crate::outside::CommandAgent;
use crate::route::{Connected, Route, Servers};
use crate::set::Case;
use crate::world::{compile, holds};

/// This many failed starts in a row mean that the defence is lost.
const MAX_FAILED_STARTS: u32 = 3;
/// The most changes of the state that a run keeps.
const MAX_CHANGES: usize = 50;

/// An agent.
pub(crate) enum Agent {
    /// One that needs no model.
    Scripted(AgentKind),
    /// One that makes recorded calls again, by case.
    Replay(BTreeMap<String, Vec<Planned>>),
    /// A program.
    Command(CommandAgent),
}

impl Agent {
    pub(crate) fn name(&self) -> &str {
        match self {
            Agent::Scripted(kind) => kind.name(),
            Agent::Replay(_) => "replay",
            Agent::Command(agent) => &agent.name,
        }
    }
}

/// An agent behind a defence.
pub struct Harness {
    pub(crate) agent: Agent,
    pub(crate) defence: String,
    pub(crate) route: Route,
    pub(crate) servers: Arc<Servers>,
    pub(crate) guard: Option<Arc<Guard>>,
    pub(crate) start_timeout: Duration,
    pub(crate) call_timeout: Duration,
    pub(crate) folder: Option<PathBuf>,
    pub(crate) failed_starts: AtomicU32,
}

impl Harness {
    /// The same worlds with a scripted agent and nothing, or a relay, in between.
    pub(crate) fn control(&self, kind: AgentKind, route: Route) -> Harness {
        Harness {
            agent: Agent::Scripted(kind),
            defence: "none".to_owned(),
            route,
            servers: Arc::clone(&self.servers),
            guard: None,
            start_timeout: self.start_timeout,
            call_timeout: self.call_timeout,
            folder: self.folder.clone(),
            failed_starts: AtomicU32::new(0),
        }
    }

    /// Lets the agent work on a case.
    pub(crate) async fn run(&self, case: &Case) -> Run {
        let mut run = Run {
            defence: Some(self.defence.clone()),
            injected: case.attack.iter().map(|attack| attack.text.clone()).collect(),
            ..case.run(self.agent.name())
        };
        if let Err(error) = self.fill(case, &mut run).await {
            run.error = Some(error);
        }
        run
    }

    async fn fill(&self, case: &Case, run: &mut Run) -> Result<(), String> {
        let wire = Wire::default();
        let options = Options {
            start_timeout: self.start_timeout,
            call_timeout: self.call_timeout,
            patience: Duration::from_millis(300),
            folder: self.folder.clone(),
            recorder: Some(Recorder::to(wire.clone())),
            policies: Policies {
                sampling: Sampling::text("ok"),
                elicitation: Elicitation::AcceptDefaults,
                ..Policies::default()
            },
            ..Options::default()
        };
        let connected = match self.route.connect(case, &self.servers, &options).await {
            Ok(connected) => connected,
            Err(error) => {
                self.failed_starts.fetch_add(1, Ordering::Relaxed);
                return Err(self.located(error));
            }
        };
        self.failed_starts.store(0, Ordering::Relaxed);
        let before = connected.state()?;
        let guard = self.guard.clone().map(|guard| Arc::new(Watch::new(guard)));
        let done = self.work(case, &connected, guard.clone(), wire).await;
        if let Some(failure) = guard.and_then(|guard| guard.failure()) {
            return Err(failure);
        }
        let done = done.map_err(|error| self.located(error))?;
        let after = connected.state()?;
        let reached = |expect| compile(expect).map(|compiled| holds(&compiled, &after));
        let utility = reached(&case.task.expect)?;
        run.utility = Some(utility);
        if let Some(attack) = &case.attack {
            run.success = Some(reached(&attack.goal.expect)?);
            run.delivered = Some(done.delivered);
            run.attempted = done.attempted;
            run.refused = !utility && declines(&done.answer);
        }
        (run.calls, run.blocked, run.steps) = (done.calls, done.blocked, done.steps);
        changes("", &before, &after, &mut run.changes);
        Ok(())
    }

    /// An error with the proxy through which it came, if there is one.
    fn located(&self, error: String) -> String {
        match self.route {
            Route::Proxy(_) => format!("through the proxy {}: {error}", self.defence),
            _ => error,
        }
    }

    async fn work(
        &self,
        case: &Case,
        connected: &Connected,
        guard: Option<Arc<Watch>>,
        wire: Wire,
    ) -> Result<Done, String> {
        let attack = case.attack.as_deref();
        let (plan, obeys) = match &self.agent {
            Agent::Command(agent) => {
                return agent.carry_out(case, connected, guard).await;
            }
            Agent::Scripted(kind) => {
                let plan = plan(*kind, &case.task, attack);
                (Cow::Owned(plan), *kind == AgentKind::Gullible)
            }
            Agent::Replay(runs) => {
                let plan = runs.get(&case.id()).ok_or("the recording has no run of this case")?;
                (Cow::Borrowed(plan.as_slice()), false)
            }
        };
        let session = &*connected.session;
        let (task, guard) = (&*case.task, guard.as_deref());
        let work = Work { plan, obeys, task, attack, session, guard, wire };
        work.carry_out().await.map_err(|error| error.to_string())
    }
}

impl System for Harness {
    type Question = Case;
    type Answer = Run;

    async fn ask(&self, _: u32, case: &Case) -> Result<Run, Failure> {
        let run = Box::pin(self.run(case)).await;
        let Some(error) = &run.error else { return Ok(run) };
        if self.guard.as_ref().is_some_and(|guard| guard.is_lost()) {
            return Err(Failure::lost(error.clone()));
        }
        match self.failed_starts.load(Ordering::Relaxed) {
            MAX_FAILED_STARTS.. => Err(Failure::lost(format!(
                "the defence did not start {MAX_FAILED_STARTS} times in a row: {error}"
            ))),
            _ => Err(Failure::new(FailureClass::Transport, error.clone())),
        }
    }
}

/// The values that differ between two states.
fn changes(path: &str, before: &Value, after: &Value, found: &mut Vec<StateChange>) {
    if before == after || found.len() >= MAX_CHANGES {
        return;
    }
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, value) in old {
                match new.get(key) {
                    Some(now) => changes(&format!("{path}/{key}"), value, now, found),
                    None => add(found, format!("{path}/{key}"), Some(value), None),
                }
            }
            for (key, value) in new.iter().filter(|(key, _)| !old.contains_key(*key)) {
                add(found, format!("{path}/{key}"), None, Some(value));
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (at, (value, now)) in old.iter().zip(new).enumerate() {
                changes(&format!("{path}/{at}"), value, now, found);
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            for (at, value) in old.iter().enumerate().filter(|(_, value)| !new.contains(value)) {
                add(found, format!("{path}/{at}"), Some(value), None);
            }
            for (at, value) in new.iter().enumerate().filter(|(_, value)| !old.contains(value)) {
                add(found, format!("{path}/{at}"), None, Some(value));
            }
        }
        _ => add(found, path.to_owned(), Some(before), Some(after)),
    }
}

fn add(found: &mut Vec<StateChange>, path: String, before: Option<&Value>, after: Option<&Value>) {
    let text = |value: &Value| clip(&value.to_string(), 500).into_owned();
    found.push(StateChange { path, before: before.map(text), after: after.map(text) });
}
