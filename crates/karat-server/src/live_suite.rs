//! A live server with a suite: it is asked case by case.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use karat_core::error::EvalError;
use karat_core::run::System;
use karat_io::Failure;
use karat_mcp::{Definition, Options, ServerInfo, StartError};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::observation::{Attempt, CaseRun};
use crate::plan::Plan;
use crate::probe::live::not_started;
use crate::suite::variables::Changes;
use crate::suite::{Case, Ending, Role, Suite};
use crate::system::{Server, Target};

/// A live server with the cases of a suite: one question is one case with all its attempts.
pub struct LiveSuite {
    pub(crate) server: Arc<Server>,
    /// The cases of the suite for the tools of the server.
    pub(crate) cases: Vec<Arc<Case>>,
    /// The server's description of itself.
    pub(crate) info: ServerInfo,
    /// The isolation of the server from the machine.
    pub(crate) isolation: Vec<String>,
    /// The tools at the start.
    pub(crate) tools: Vec<Definition>,
    /// The cases that this run asks.
    pub(crate) plan: OnceLock<Plan>,
}

impl LiveSuite {
    /// Starts a server and lists its tools.
    ///
    /// # Errors
    /// If it does not start, or has no tools and the suite asks for nothing else.
    pub(crate) async fn start(
        target: Target,
        options: Options,
        suite: &Suite,
    ) -> Result<LiveSuite, EvalError> {
        let setup = suite.setup.clone();
        let server = Arc::new(Server::start(target, options, setup).await.map_err(not_started)?);
        let session = server.session().await.map_err(not_started)?;
        let (info, isolation) = (session.server().clone(), session.isolation().to_vec());
        drop(session);
        server.list().await.map_err(|why| {
            EvalError::NothingMeasured(format!("the tools of the server cannot be listed: {why}"))
        })?;
        let tools = server.tools().await;
        let cases = suite.cases_for(&tools);
        let asks_more =
            |case: &Arc<Case>| !case.step.feature.is_tool() && case.step.ending == Ending::Success;
        if tools.is_empty() && !cases.iter().any(asks_more) {
            // A suite that only expects errors would pass.
            return Err(EvalError::NothingMeasured(
                "the server offers no tools, so there is nothing to call".to_owned(),
            ));
        }
        if cases.is_empty() && !suite.is_empty() {
            return Err(EvalError::NothingMeasured(
                "no tool takes free text, so the texts of the suite cannot be sent".to_owned(),
            ));
        }
        Ok(LiveSuite { server, cases, info, isolation, tools, plan: OnceLock::new() })
    }
}

impl System for LiveSuite {
    /// The position of a case in the suite.
    type Question = usize;
    type Answer = CaseRun;

    async fn ask(&self, _run: u32, position: &usize) -> Result<CaseRun, Failure> {
        let Some(case) = self.cases.get(*position) else {
            return Err(Failure::lost(format!("the suite has no case number {position}")));
        };
        let attempts = attempts(&self.server, case).await;
        // Without a new list, the case is judged by the old one.
        let _ = self.server.list().await;
        match attempts {
            Ok(attempts) => Ok(CaseRun { attempts }),
            Err(error) => Err(Failure::lost(format!("it does not start again: {error}"))),
        }
    }
}

/// Makes the attempts of a case, one after the other or several at once. Saved values are kept in the
/// order of the attempts; those that are under way at once all start with the same values.
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
            under_way.spawn(async move { (number, attempt(&server, &case).await) });
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
            Some(Err(error)) => broken = format!("the attempt stopped: {error}"),
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

/// Makes one attempt at a case. Returns the values that it saved too.
async fn attempt(server: &Server, case: &Case) -> Result<(Attempt, Changes), StartError> {
    let session = server.session().await?;
    let mut values = server.scope().await;
    let mut attempt = Attempt { calls: Vec::new(), stopped: None };
    let (mut going, mut over) = (true, false);
    for (role, number, step) in case.judged_steps() {
        if !going {
            values.save(&step.save, None);
            continue;
        }
        match server.make(&session, step, role, number, &mut values).await {
            Ok(made) => {
                // Without its setup the call would be another one.
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
        // The state is gone with the process, and in the next one the same id may mean another thing.
        if over {
            break;
        }
        // A call that lacks a value has nothing to clean up.
        let made = server.make(&session, step, Role::Teardown, number, &mut values).await;
        if let Ok(made) = made {
            over = made.over;
            attempt.calls.push(made.called);
        }
    }
    if over {
        server.lose(&session).await;
    }
    Ok((attempt, values.changes()))
}
