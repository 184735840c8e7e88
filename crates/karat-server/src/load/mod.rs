//! Load: how fast and how reliably a server answers many calls.
//!
//! [`Load`] is the evaluation. The mix of calls comes from a suite or is a single call; a closed loop
//! keeps a number of calls under way, an open loop begins them at a rate. How calls end is judged, not
//! what they say: suites do that. The cost of the harness itself is in the report, so that it can be
//! separated from the server's.

mod condition;
mod driver;
mod mix;
pub mod parts;
mod plan;
mod score;
mod search;
mod tally;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use karat_core::dataset::Digest;
use karat_core::error::EvalError;
use karat_core::evaluation::{
    Common, Computes, Entry, Evaluation, Observations, Questions, RunContext, Scored, Start,
};
use karat_core::journal::{Entry as Outcome, Outcome as Kept};
use karat_core::kind::Kind;
use karat_core::project::Root;
use karat_core::report::{DatasetRef, Property};
use karat_core::run::{Options, Progress, System};
use karat_io::Failure;
use karat_io::text::{count, first_few, printable};
use karat_mcp::{Definition, TransportKind};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use self::condition::Condition;
pub use self::plan::{Config, Length};
pub use self::search::Step;

use self::driver::{Connection, Phase, Sessions};
use self::mix::{Call, Mix};
use self::plan::Plan;
use self::tally::Class;
use crate::cleanup;
use crate::probe::live::{self, not_started, system_ref};
use crate::secrets;
use crate::suite::{self, Case, Suite};
use crate::system::{PATIENCE, Server, Target};

/// The number of tools that are named in a message.
const NAMED: usize = 20;

/// The load evaluation.
pub struct Load;

/// The calls of a load.
pub struct Data {
    calls: Vec<Call>,
    setup: Vec<Arc<suite::Step>>,
    teardown: Vec<suite::Step>,
    /// The server that the suite names.
    server: Option<Value>,
    reference: DatasetRef,
}

/// The result of a load.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measurement {
    /// The steps of the search for the highest load.
    steps: Vec<Step>,
    /// The measured load; the highest one that holds where a maximum is searched for.
    phase: Phase,
}

/// Everything the servers reported apart from their answers.
#[derive(Default)]
pub struct Facts {
    /// The ids of the calls, without secrets.
    calls: Vec<String>,
    restarts: u64,
    isolation: Vec<String>,
    warnings: Vec<String>,
}

/// The sessions that are loaded; the one question is the whole load.
pub struct LoadSystem {
    sessions: Arc<Sessions>,
    plan: Plan,
    isolation: Vec<String>,
    /// The ids of the calls, without secrets.
    calls: Vec<String>,
    /// True if all sessions are with the same server.
    is_shared: bool,
    options: karat_mcp::Options,
    progress: Arc<dyn Progress>,
}

impl System for LoadSystem {
    type Question = ();
    /// The error says why nothing was measured.
    type Answer = Result<Measurement, String>;

    async fn ask(&self, _: u32, (): &()) -> Result<Result<Measurement, String>, Failure> {
        Ok(self.measure().await)
    }
}

impl LoadSystem {
    async fn measure(&self) -> Result<Measurement, String> {
        let LoadSystem { sessions, plan, .. } = self;
        if ![Length::Calls(0), Length::Time(Duration::ZERO)].contains(&plan.warm_up) {
            let warm_up = driver::run(sessions, plan.shape, Duration::ZERO, plan.warm_up).await;
            check_executed(&warm_up)?;
        }
        let (steps, phase) = match &plan.find_max {
            Some(condition) => search::run(sessions, plan, condition, self.progress.as_ref()).await,
            None => (Vec::new(), driver::run(sessions, plan.shape, plan.ramp, plan.length).await),
        };
        check_executed(&phase)?;
        self.check_still_there(&phase).await?;
        Ok(Measurement { steps, phase })
    }

    /// The end of a server at an address cannot be seen: if connections failed, it is asked once more.
    async fn check_still_there(&self, phase: &Phase) -> Result<(), String> {
        if !phase.tally.all.classes.contains_key(&Class::Transport) {
            return Ok(());
        }
        for connection in &self.sessions.connections {
            let answered = match connection.server.session().await {
                Ok(session) => session.tools().await.map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            };
            answered.map_err(|why| {
                format!("the server was lost under load and no longer answers: {why}")
            })?;
        }
        Ok(())
    }
}

/// Refuses a load in which no call ended as it should, or whose server was lost.
fn check_executed(phase: &Phase) -> Result<(), String> {
    if let Some(why) = &phase.lost {
        return Err(format!("the server was lost under load and cannot be restarted: {why}"));
    }
    let (all, first) = (&phase.tally.all, phase.tally.first.values().next());
    let first = first.map_or("no call was made", String::as_str);
    let calls = all.calls();
    match (all.ok(), all.answered()) {
        (1.., _) => Ok(()),
        (0, 0) => Err(format!(
            "nothing was executed: none of {calls} calls was answered (first: {first})"
        )),
        (0, _) => {
            Err(format!("nothing was measured: none of {calls} calls succeeded (first: {first})"))
        }
    }
}

impl Evaluation for Load {
    const KIND: Kind = Kind::Load;
    const TABLE: &'static str = "load";
    const TAKES: &'static [&'static str] = &["timeout_ms", "start_timeout_ms"];
    const OWNS: &'static [&'static str] = &["concurrency"];
    const ITEMS: &'static str = "loads";

    type Config = Config;
    type Dataset = Data;
    type System = LoadSystem;
    type Facts = Facts;

    fn check(config: &Config, _: &mut Common) -> Result<(), EvalError> {
        config.plan().map(drop)
    }

    fn load(config: &Config, _: &Common, root: &Root<'_>) -> Result<Data, EvalError> {
        let data = match &config.suite {
            Some(file) => of_suite(config, root, file)?,
            None => of_call(config.tool.as_deref().unwrap_or_default(), &config.input),
        };
        live::target(config.server.as_ref(), config.builtin.as_deref(), data.server.as_ref())?;
        Ok(data)
    }

    fn reference(data: &Data) -> DatasetRef {
        data.reference.clone()
    }

    fn reads(config: &Config) -> Vec<PathBuf> {
        config.suite.iter().cloned().collect()
    }

    fn computes(config: &Config, data: &Data) -> Option<Computes> {
        let calls = data.calls.iter().filter(|_| data.calls.len() > 1);
        let calls = calls.map(|call| (Property::Call.into(), call.id.clone()));
        let classes = Class::ERRORS.map(|class| (Property::Class.into(), class.name().to_owned()));
        let plan = config.plan().ok()?;
        let metrics = score::metric_ids(&plan).collect();
        Some(Computes { metrics, slices: calls.chain(classes).collect(), open: false })
    }

    fn whole(_: &Entry<Load>) -> Option<&'static str> {
        Some("a load is one measurement")
    }

    async fn start(
        entry: &Entry<Load>,
        context: &RunContext<'_>,
    ) -> Result<Start<Load>, EvalError> {
        let Entry { common, config, data } = entry;
        let plan = config.plan()?;
        let (server, builtin) = (config.server.as_ref(), config.builtin.as_deref());
        let target = live::target(server, builtin, data.server.as_ref())?;
        let is_shared = match &target {
            Target::Spec(spec) => spec.transport().map_err(not_started)? != TransportKind::Stdio,
            Target::Demo => false,
        };
        let options = karat_mcp::Options {
            patience: PATIENCE,
            ..live::session_options(common, context.folder, config.recorder.as_ref())
        };
        let mut connections: Vec<Connection> = Vec::with_capacity(plan.connections);
        for number in 1..=plan.connections {
            let shared = connections.first().filter(|_| is_shared);
            let connection = match shared.map(|first| first.arguments.clone()) {
                // Sessions with the same server share what the first one has prepared.
                Some(arguments) => {
                    let server = Server::start(target.clone(), options.clone(), Vec::new()).await;
                    Connection::new(server.map_err(not_started)?, arguments)
                }
                None => connect(data, target.clone(), &options, number).await?,
            };
            connections.push(connection);
        }
        let first = match connections.first() {
            Some(first) => first.server.session().await.map_err(not_started)?,
            None => return Err(EvalError::config("`connections` must be at least 1")),
        };
        let tools = first.tools().await.map_err(|error| {
            EvalError::NothingMeasured(format!("the server's tools cannot be listed: {error}"))
        })?;
        let ids = data.calls.iter().map(|call| call.id.as_str());
        let calls = secrets::hidden_ids(ids, first.redactor());
        check_tools(&data.calls, &calls, &tools)?;
        let mut reference = system_ref(target.describe(), first.server());
        reference.settings.insert("load".to_owned(), plan.to_string());
        let system = LoadSystem {
            isolation: first.isolation().to_vec(),
            calls,
            sessions: Arc::new(Sessions {
                connections,
                mix: Mix::new(data.calls.clone(), common.seed),
            }),
            plan,
            is_shared,
            options,
            progress: Arc::clone(&context.progress),
        };
        Ok(Start::Live { system: Arc::new(system), reference })
    }

    fn questions(
        _: &Entry<Load>,
        _: &LoadSystem,
        known: &mut Vec<Outcome<Result<Measurement, String>>>,
    ) -> Result<Questions<Load>, EvalError> {
        known.retain(|outcome| matches!(outcome.outcome, Kept::Answer(Ok(_))));
        Ok(vec![("load".to_owned(), Arc::new(()))])
    }

    fn options(_: &Entry<Load>) -> Options {
        // Each call has its own time limit, and the plan says how long the load lasts.
        Options { timeout: Duration::MAX, ..Options::default() }
    }

    async fn finish(
        entry: &Entry<Load>,
        system: &LoadSystem,
        _: &Questions<Load>,
        outcomes: &mut Vec<Outcome<Result<Measurement, String>>>,
    ) -> Result<Facts, EvalError> {
        let connections = &system.sessions.connections;
        let mut left = Vec::new();
        if outcomes.iter().all(|outcome| matches!(outcome.outcome, Kept::Answer(Ok(_)))) {
            let prepared: Vec<Arc<Case>> =
                entry.data.calls.iter().filter_map(|call| call.setup.clone()).collect();
            // Sessions with the same server share what is to be cleaned up.
            let cleaning = if system.is_shared { 1 } else { connections.len() };
            for connection in connections.iter().take(cleaning) {
                left.extend(connection.server.tear_down(&entry.data.teardown, &prepared).await);
            }
        }
        for connection in connections {
            connection.server.renew().await;
        }
        let mut warnings: Vec<String> = cleanup::warning(&[], &[], &left).into_iter().collect();
        warnings.extend(system.options.violations.log().warnings());
        Ok(Facts {
            calls: system.calls.clone(),
            restarts: connections.iter().map(|connection| connection.server.restarts()).sum(),
            isolation: system.isolation.clone(),
            warnings,
        })
    }

    fn score(observed: &Observations<'_, Load>) -> Result<Scored, EvalError> {
        score::score(observed)
    }
}

/// The cases of a suite as calls.
fn of_suite(config: &Config, root: &Root<'_>, file: &Path) -> Result<Data, EvalError> {
    let suite = match root.is_bundled() {
        true => Suite::parse(file, &root.bytes(file)?),
        false => Suite::load(&root.path(file)),
    };
    let suite = suite.map_err(EvalError::config)?;
    let is_wanted = |case: &&Arc<Case>| {
        let tags = &config.tags;
        case.weight > 0 && (tags.is_empty() || tags.iter().any(|tag| case.tags.contains(tag)))
    };
    let wanted: Vec<&Arc<Case>> = suite.cases.iter().filter(is_wanted).collect();
    if let Some(case) =
        wanted.iter().find(|case| !case.step.feature.is_tool() || case.step.task.is_some())
    {
        let id = &case.id;
        return Err(EvalError::config(format!(
            "{id}: load calls tools only, and not as tasks; choose the cases with a tag, or give this one `weight: 0`"
        )));
    }
    let calls: Vec<Call> = wanted.into_iter().map(Call::from).collect();
    if calls.is_empty() {
        return Err(EvalError::NothingMeasured(format!(
            "no case is left to load the server with; the suite has {}",
            count(suite.cases.len(), "case")
        )));
    }
    let reference = DatasetRef {
        id: suite.name,
        version: "suite".to_owned(),
        digest: suite.digest.to_string(),
    };
    let Suite { setup, teardown, server, .. } = suite;
    Ok(Data { calls, setup, teardown, server, reference })
}

/// One call that must succeed.
fn of_call(tool: &str, input: &Map<String, Value>) -> Data {
    let text = Value::Object(input.clone()).to_string();
    let reference = DatasetRef {
        id: tool.to_owned(),
        version: "call".to_owned(),
        digest: Digest::of(text.as_bytes()).to_string(),
    };
    let calls = vec![Call::to(tool, input.clone())];
    Data { calls, setup: Vec::new(), teardown: Vec::new(), server: None, reference }
}

/// Starts a session, and makes the calls that come once before the load.
async fn connect(
    data: &Data,
    target: Target,
    options: &karat_mcp::Options,
    number: usize,
) -> Result<Connection, EvalError> {
    let server = Server::start(target, options.clone(), data.setup.clone()).await;
    let server = server.map_err(not_started)?;
    let mut arguments = Vec::with_capacity(data.calls.len());
    for call in &data.calls {
        let setup = call.setup.as_ref().map_or(&[][..], |case| &case.setup);
        arguments.push(server.prepare(setup, &call.input).await.map_err(|why| {
            let id = server.redactor().hide(&call.id);
            EvalError::NotStarted(format!("{id}: set-up on connection {number}: {why}"))
        })?);
    }
    Ok(Connection::new(server, arguments))
}

/// Refuses calls, with these ids, that must succeed and whose tool does not exist.
fn check_tools(calls: &[Call], ids: &[String], tools: &[Definition]) -> Result<(), EvalError> {
    let exists = |name: &str| tools.iter().any(|tool| tool.name() == name);
    let mut needed =
        calls.iter().zip(ids).filter(|(call, _)| call.ending == suite::Ending::Success);
    let Some((call, id)) = needed.find(|(call, _)| !exists(&call.tool)) else { return Ok(()) };
    let names: Vec<String> = tools.iter().map(|tool| printable(tool.name()).into_owned()).collect();
    Err(EvalError::config(format!(
        "{}: the server has no tool {:?}; it has: {}",
        printable(id),
        call.tool,
        first_few(&names, NAMED)
    )))
}
