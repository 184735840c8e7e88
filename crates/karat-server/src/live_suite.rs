//! A live server with a suite: it is asked case by case.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use karat_core::error::EvalError;
use karat_core::expect::Answer;
use karat_core::run::System;
use karat_io::{Failure, private};
use karat_mcp::{Definition, Options, ServerInfo, Session, StartError};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use crate::asked::{self, Fingerprints};
use crate::compliance::Contract;
use crate::observation::{Attempt, Called, CaseRun, Outcome};
use crate::plan::Plan;
use crate::probe::live::not_started;
use crate::secrets;
use crate::suite::relations::{Isolated, MAX_PAGES, Pages};
use crate::suite::variables::{self, Changes, Scope};
use crate::suite::{Case, Ending, Role, Step, Suite};
use crate::system::{CompletedCall, Server, Target};

/// The time between two looks at the notifications that have come.
const LOOK: Duration = Duration::from_millis(5);

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
    fingerprints: Fingerprints,
    /// The contract of the tools as they were listed last, with the number of list changes by then.
    contract: Mutex<Option<(Option<u64>, Arc<Contract>)>>,
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
        let server = Server::start(target, options, setup).await.map_err(|error| {
            match (not_started(error), suite.hides_private) {
                (EvalError::NotStarted(why), true) => {
                    EvalError::NotStarted(private::hide("", &why).into_owned())
                }
                (error, _) => error,
            }
        })?;
        let server = Arc::new(if suite.hides_private { server.without_private() } else { server });
        let session = server.session().await.map_err(not_started)?;
        let (info, isolation) = (session.server().clone(), session.isolation().to_vec());
        drop(session);
        server.list().await.map_err(|why| {
            EvalError::NothingMeasured(format!("the tools of the server cannot be listed: {why}"))
        })?;
        let tools = server.tools().await;
        let cases = secrets::without_secrets(suite.cases_for(&tools), server.redactor());
        let asks_more =
            |case: &Arc<Case>| !case.step.feature.is_tool() && case.step.ending == Ending::Success;
        if tools.is_empty() && !cases.iter().any(asks_more) {
            // A suite that only expects errors would pass.
            return Err(EvalError::NothingMeasured(
                "the server offers no tools to call".to_owned(),
            ));
        }
        if cases.is_empty() && !suite.is_empty() {
            return Err(EvalError::NothingMeasured(
                "no tool takes free text, so the texts of the suite cannot be sent".to_owned(),
            ));
        }
        let fingerprints = Fingerprints::of(suite, &cases);
        let (plan, contract) = (OnceLock::new(), Mutex::new(None));
        Ok(LiveSuite { server, cases, info, isolation, tools, plan, fingerprints, contract })
    }

    /// Adds the notes that a scorer without the server needs: fingerprints, and violations of schemas.
    async fn noted(&self, position: usize, case: &Case, mut attempts: Vec<Attempt>) -> CaseRun {
        let (tools, contract) = self.listed().await;
        for called in attempts.iter_mut().flat_map(|attempt| &mut attempt.calls) {
            if called.feature.is_tool() {
                let output = contract.output(&called.tool, &called.outcome);
                called.violation = output.reasons().first().cloned();
                if called.violation.is_some() {
                    // The schema may have a secret where the answer has none.
                    *called = self.server.without_secrets(called.clone());
                }
            }
        }
        let Fingerprints { session, cases } = &self.fingerprints;
        let asked = cases
            .get(position)
            .map(|calls| asked::asked(case, (*session, *calls), &tools, self.server.redactor()));
        CaseRun { attempts, asked }
    }

    /// The tools of the server, and their contract, which is made again only after a change.
    async fn listed(&self) -> (BTreeMap<String, Definition>, Arc<Contract>) {
        let (tools, changes) = self.server.listed().await;
        let mut kept = self.contract.lock().await;
        let contract = match &*kept {
            Some((then, contract)) if *then == changes => Arc::clone(contract),
            _ => {
                let definitions: Vec<Definition> = tools.values().cloned().collect();
                let contract = Arc::new(Contract::new(&definitions, self.info.revision));
                *kept = Some((changes, Arc::clone(&contract)));
                contract
            }
        };
        (tools, contract)
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
            Ok(attempts) => Ok(self.noted(*position, case, attempts).await),
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
    let began = session.notification_count();
    for (role, number, step) in case.judged_steps() {
        if !going {
            values.save(&step.save, None);
            continue;
        }
        if let Some(isolated) = step.relation.as_ref().and_then(|relation| relation.isolated()) {
            match side_by_side(server, step, isolated, number, &values).await {
                Ok(calls) => attempt.calls.extend(calls),
                Err(why) => {
                    attempt.stopped = Some(why);
                    going = false;
                }
            }
            continue;
        }
        // A subscription in the setup may be answered at once.
        let since = if role == Role::Call { began } else { session.notification_count() };
        match server.make(&session, step, role, number, &mut values).await {
            Ok(mut made) => {
                if !step.notices.is_empty() && !made.over {
                    made.called.notifications = notified(&session, step, since).await;
                    made.called = server.kept(made.called);
                }
                if let Some(pages) = step.relation.as_ref().and_then(|relation| relation.pages()) {
                    let place = Place { server, session: &session, step, number };
                    made = further_pages(&place, pages, made, &mut attempt, &mut values).await;
                }
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

/// The notifications since there were `since`, after the time that the expected ones have.
async fn notified(session: &Session, step: &Step, since: u64) -> Vec<Value> {
    let started = Instant::now();
    loop {
        let seen = session.notifications_since(since);
        let mut open = step.notices.iter().filter(|notice| !notice.is_settled(&seen));
        if !open.any(|notice| started.elapsed() < notice.within) {
            return seen;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// A call of a case, and where it is made.
struct Place<'a> {
    server: &'a Server,
    session: &'a Arc<Session>,
    step: &'a Step,
    number: usize,
}

/// Asks for one page after the other, until an answer names no further one. Returns the last call.
async fn further_pages(
    place: &Place<'_>,
    pages: &Pages,
    first: CompletedCall,
    attempt: &mut Attempt,
    values: &mut Scope,
) -> CompletedCall {
    let Place { server, session, step, number } = *place;
    let mut made = first;
    for _ in 1..MAX_PAGES {
        let next = match &made.called.outcome {
            Outcome::Result { result } => Answer::new(result).data_at(&pages.next),
            _ => None,
        };
        let Some(next) = next.filter(|next| !next.is_null() && next != "") else {
            break;
        };
        let mut input = step.input.clone();
        input.insert(pages.parameter.clone(), next);
        let step = Step::plain(&step.tool, input);
        match server.make(session, &step, Role::Then, number, values).await {
            Ok(next) if !next.over => {
                attempt.calls.push(std::mem::replace(&mut made, next).called);
            }
            Ok(next) => {
                attempt.calls.push(std::mem::replace(&mut made, next).called);
                break;
            }
            Err(_) => break,
        }
    }
    made
}

/// Opens several sessions, lets each write a mark of its own at the same time, and then lets each read.
async fn side_by_side(
    server: &Server,
    step: &Step,
    isolated: &Isolated,
    number: usize,
    values: &Scope,
) -> Result<Vec<Called>, String> {
    let arguments = variables::fill(&step.input, values.known())?;
    let mut sessions = Vec::with_capacity(isolated.sessions);
    for _ in 0..isolated.sessions {
        let session = server.another_session().await;
        sessions.push(session.map_err(|error| format!("isolated: no further session: {error}"))?);
    }
    let mark = |number: usize| {
        let mut arguments = arguments.clone();
        let text = format!("karat-mark-{number}-{:016x}", RandomState::new().hash_one(number));
        arguments.insert(isolated.parameter.clone(), Value::from(text));
        Step::plain(&step.tool, arguments)
    };
    let writing: Vec<Step> = (1..=isolated.sessions).map(mark).collect();
    let reading: Vec<Step> = (0..isolated.sessions)
        .map(|_| Step::plain(&isolated.read, isolated.input.clone()))
        .collect();
    let mut calls = Vec::new();
    for steps in [writing, reading] {
        let all = sessions.iter().zip(&steps).map(|(session, step)| async move {
            let mut own = Scope::new(values.known().clone());
            server.make(session, step, Role::Then, number, &mut own).await
        });
        for made in futures_util::future::join_all(all).await {
            calls.push(made?.called);
        }
    }
    for session in sessions {
        if let Some(session) = Arc::into_inner(session) {
            session.close().await;
        }
    }
    Ok(calls)
}
