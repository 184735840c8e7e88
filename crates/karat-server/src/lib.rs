//! Server evaluation: does an MCP server answer right, validly, reliably, fast and safely?
//!
//! Stations: [`suite`] (what to call and what must come back), [`system`] (a live server that is
//! started again when it falls over), [`observation`] (what was seen), [`score`] and [`compliance`]
//! (what it is worth), [`controls`], and [`run()`], which puts them in line and returns the report.
//! [`lint`] judges tool definitions without calling a tool, [`load`] makes many calls at once, [`fuzz`]
//! and [`attack`] call tools with made-up and with hostile arguments, with what they share in
//! [`probe`].

pub mod accept;
pub mod attack;
mod cleanup;
pub mod compliance;
pub mod controls;
pub mod demo;
pub mod fuzz;
pub mod lint;
pub mod load;
pub mod observation;
mod plan;
pub mod probe;
pub mod score;
pub mod suite;
pub mod system;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use karat_core::aggregate;
use karat_core::gate::{Policy, Rule};
use karat_core::journal::{self, Identity, Journal, JournalError, Outcome};
use karat_core::provenance::Stopwatch;
use karat_core::report::{
    self, Count, DatasetRef, Evaluation, Item, ItemError, Measured, Report, Slice, SystemRef,
};
use karat_core::run::{self, RunError, Surroundings};
use karat_mcp::{Options, Recorder, Redactor, ServerInfo, ServerSpec, StartError};
use karat_metrics::stats;
use serde::{Deserialize, Serialize};

use crate::compliance::Contract;
use crate::observation::Observed;
use crate::plan::Plan;
use crate::probe::rate;
use crate::score::{PASS_RATE, Scored};
use crate::suite::snapshot::Store;
use crate::suite::{Case, Ending, Suite, SuiteError};
use crate::system::{Cases, Server, Target};

/// How many tools or cases of a kind are named in a warning.
const NAMED: usize = 5;

/// One `[[server]]` entry of a project.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its name; unique among the server entries.
    pub name: String,
    /// The suite, JSON or YAML.
    pub suite: PathBuf,
    /// The server, if it is not the one that the suite names.
    #[serde(default)]
    pub server: Option<ServerSpec>,
    /// A server that is built in, instead: `demo`.
    #[serde(default)]
    pub builtin: Option<String>,
    /// Only cases with one of these tags.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Only the case of this id.
    #[serde(default)]
    pub case: Option<String>,
    /// How long a call may take, in milliseconds.
    #[serde(default = "default_timeout_ms")]
    pub timeout_ms: u64,
    /// How long the server may take to start, in milliseconds.
    #[serde(default = "default_timeout_ms")]
    pub start_timeout_ms: u64,
    /// The seed of the bootstrap.
    #[serde(default)]
    pub seed: u64,
    /// The committed reference scores.
    #[serde(default)]
    pub baseline: Option<PathBuf>,
    /// What must hold; where it says nothing, every case must pass.
    #[serde(default)]
    pub gate: Policy,
    /// Whether snapshots are written anew. Only a command line says so, never a project.
    #[serde(skip)]
    pub update_snapshots: bool,
    /// Where every message is written down, likewise.
    #[serde(skip)]
    pub recorder: Option<Recorder>,
}

fn default_timeout_ms() -> u64 {
    30_000
}

impl Entry {
    /// The gate, with the default where the project has none.
    #[must_use]
    pub fn policy(&self) -> Policy {
        let mut policy = self.gate.clone();
        if policy.metrics.is_empty() && policy.protected.is_none() {
            let all = Rule { min: Some(1.0), ..Rule::default() };
            policy.metrics.insert("pass_rate".to_owned(), all);
        }
        policy
    }
}

/// What can go wrong, apart from a gate that fails.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The suite is not what it should be.
    #[error(transparent)]
    Suite(#[from] SuiteError),
    /// No server is named.
    #[error("{0}")]
    Spec(String),
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Snapshots cannot be updated.
    #[error(transparent)]
    Accept(#[from] accept::AcceptError),
    /// The server did not start.
    #[error(transparent)]
    NotStarted(StartError),
    /// The tools could not be listed.
    #[error("the tools of the server cannot be listed: {0}")]
    NoTools(String),
    /// The server has none.
    #[error("the server offers no tools, so there is nothing to call")]
    ToolLess,
    /// The server was lost, or there was nothing to run.
    #[error(transparent)]
    Run(RunError),
    /// No case is left.
    #[error("no case matches; the suite has {cases} cases{hint}")]
    NothingChosen {
        /// How many there are.
        cases: usize,
        /// What there is to choose from.
        hint: String,
    },
    /// Not one call was answered.
    #[error("nothing was executed: none of {attempts} calls was answered (first: {first})")]
    NothingExecuted {
        /// How many calls were tried.
        attempts: usize,
        /// What happened to the first.
        first: String,
    },
    /// Calls were answered, and not one as it should be.
    #[error("nothing was measured: none of {attempts} calls ended as it should (first: {first})")]
    NothingWell {
        /// How many calls were made.
        attempts: usize,
        /// What happened to the first.
        first: String,
    },
}

impl From<RunError> for ServerError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Journal(error) => ServerError::Journal(error),
            other => ServerError::Run(other),
        }
    }
}

impl From<StartError> for ServerError {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Spec { why } => ServerError::Spec(why),
            other => ServerError::NotStarted(other),
        }
    }
}

impl ServerError {
    /// Whether nothing was measured although the input was right.
    #[must_use]
    pub fn is_not_measured(&self) -> bool {
        !matches!(
            self,
            ServerError::Suite(_)
                | ServerError::Spec(_)
                | ServerError::Journal(_)
                | ServerError::Accept(_)
        )
    }
}

/// The suite as a report names it.
#[must_use]
pub fn reference(suite: &Suite) -> DatasetRef {
    DatasetRef {
        id: suite.name.clone(),
        version: "suite".to_owned(),
        digest: suite.digest.to_string(),
    }
}

/// Runs the suite against a live server, scores, averages, plays the controls.
///
/// # Errors
/// When nothing could be measured.
pub async fn run(
    entry: &Entry,
    suite: &Suite,
    surroundings: &Surroundings<'_>,
) -> Result<Report, ServerError> {
    let stopwatch = Stopwatch::start();
    let server = target(entry, suite)?;
    let cases = chosen(entry, &suite.cases)?;
    let target = suite.target;
    let options = Options {
        call_timeout: Duration::from_millis(entry.timeout_ms),
        start_timeout: Duration::from_millis(entry.start_timeout_ms),
        patience: system::PATIENCE,
        folder: Some(surroundings.folder.to_owned()),
        recorder: entry.recorder.clone(),
        ..Options::default()
    };
    let described = server.describe();
    let server = Arc::new(Server::start(server, options, suite.setup.clone()).await?);
    let session = server.session().await?;
    let info = session.server().clone();
    let isolation = session.isolation().to_vec();
    drop(session);
    server.list().await.map_err(ServerError::NoTools)?;
    let mut tools = server.tools().await;
    if tools.is_empty() {
        // A suite that only expects errors would pass.
        return Err(ServerError::ToolLess);
    }

    let identity = Identity {
        schema: journal::SCHEMA.to_owned(),
        evaluation: Evaluation::Server,
        name: entry.name.clone(),
        dataset: reference(suite),
        system: system(&described, &info, target),
        runs: 1,
        seed: entry.seed,
    };
    let (journal, known) = if surroundings.resume {
        Journal::resume::<Observed>(surroundings.journal, &identity)?
    } else {
        (Journal::create(surroundings.journal, &identity)?, Vec::new())
    };
    let plan = Plan::new(&suite.cases, &cases, known);
    let (asked, mut notes) = (plan.asked(), plan.words());
    let questions: Vec<(String, Arc<Arc<Case>>)> =
        plan.cases.iter().map(|case| (case.id.clone(), Arc::new(Arc::clone(case)))).collect();
    // Each call has a limit of its own; a case of many calls may take long.
    let patient = run::Options { timeout: Duration::from_secs(86_400), ..run::Options::default() };
    let system = Arc::new(Cases(Arc::clone(&server)));
    let known = plan.known;
    let mut entries =
        run::collect(system, &questions, &patient, Some(journal), known, surroundings.listener)
            .await?;
    let left = server.tear_down(&suite.teardown, &asked).await;
    // In good order: a server may write what it knows when its input ends, and what it sent last is seen.
    server.renew().await;
    let conduct = server.protocol_log().warnings();
    notes.extend(cleanup::warning(&plan.cases, &entries, &left));
    let chosen_ids: BTreeSet<&str> = cases.iter().map(|case| case.id.as_str()).collect();
    entries.retain(|entry| chosen_ids.contains(entry.id.as_str()));
    executed(&entries, &conduct)?;
    notes.extend(conduct);
    notes.extend(given_away(&entries, server.redactor()));
    let first_tools = std::mem::replace(&mut tools, server.tools().await);
    if first_tools != tools {
        notes.push(CHANGED.to_owned());
    }
    let contract = Contract::new(&tools, info.revision);

    let store = Store::beside(&suite.path);
    let accepted = match entry.update_snapshots {
        true => Some(accept::snapshots(&store, &cases, &entries, &contract)?),
        false => None,
    };
    let updated = match &accepted {
        Some(accepted) => {
            notes.extend(accepted.words());
            Some(Suite::load(&suite.path)?)
        }
        None => None,
    };
    // What was observed is scored against what is stored now.
    let suite = updated.as_ref().unwrap_or(suite);
    let cases = chosen(entry, &suite.cases)?;
    let identity = Identity { dataset: reference(suite), ..identity };
    notes.extend(left_over(&store, suite));

    let measured = Measurement {
        cases: &cases,
        entries: &entries,
        contract: &contract,
        target,
        seed: entry.seed,
    };
    let mut report = measured.report(&identity, &server, tools.len(), &stopwatch, surroundings);
    report.warnings.extend(notes);
    report.environment.isolation = isolation;
    hide(&mut report, server.redactor());
    Ok(report)
}

const CHANGED: &str = "the server changed its tools during the run; every call is judged by the last \
                       definition of its tool";

/// What was observed has no secrets in it; what the suite says beside it may.
fn hide(report: &mut Report, redactor: &Redactor) {
    for item in &mut report.items {
        redactor.hide_in(&mut item.observed);
    }
    for text in &mut report.warnings {
        *text = redactor.hidden(std::mem::take(text));
    }
}

/// The cases in whose answers secrets were: they are judged without them, and no server should tell.
fn given_away(entries: &[journal::Entry<Observed>], redactor: &Redactor) -> Option<String> {
    let told = |entry: &&journal::Entry<Observed>| match &entry.outcome {
        Outcome::Answer(observed) => observed.attempts.iter().any(|attempt| {
            attempt.calls.iter().any(|called| match &called.outcome {
                observation::Outcome::Result { result } => redactor.has_hidden_in(result),
                _ => false,
            })
        }),
        Outcome::Failure { .. } => false,
    };
    let ids: Vec<&str> = entries.iter().filter(told).map(|entry| entry.id.as_str()).collect();
    let first = ids.first()?;
    let count = ids.len();
    Some(format!(
        "secrets of the server were in the answers of {count} cases and were taken out before they were judged: {first}"
    ))
}

/// Snapshots of cases that are no more.
fn left_over(store: &Store, suite: &Suite) -> Option<String> {
    let wanting = suite.cases.iter().filter(|case| case.steps().any(suite::Step::wants_snapshot));
    let orphans = store.orphans(wanting.map(|case| case.id.as_str()));
    let first = orphans.first()?;
    let count = orphans.len();
    Some(format!("{count} snapshots belong to no case and can be removed: {}", first.display()))
}

fn target(entry: &Entry, suite: &Suite) -> Result<Target, ServerError> {
    let wrong = |message: String| Err(ServerError::Spec(message));
    match (&entry.builtin, &entry.server, &suite.server) {
        (Some(name), None, _) if name == "demo" => Ok(Target::Demo),
        (Some(name), None, _) => {
            wrong(format!("there is no built-in server {name:?}; there is: demo"))
        }
        (Some(_), Some(_), _) => wrong("give server or builtin, not both".to_owned()),
        (None, Some(spec), _) => Ok(Target::Spec(Box::new(spec.clone()))),
        (None, None, Some(written)) => suite::server::read(written)
            .map(|spec| Target::Spec(Box::new(spec)))
            .map_err(ServerError::Spec),
        (None, None, None) => wrong(format!(
            "the suite {:?} names no server; add mcp_server to it, or give the server after `--`",
            suite.name
        )),
    }
}

fn chosen(entry: &Entry, cases: &[Arc<Case>]) -> Result<Vec<Arc<Case>>, ServerError> {
    let all = cases.len();
    let known: BTreeSet<String> = cases.iter().flat_map(|case| case.tags.iter().cloned()).collect();
    let wanted = |case: &&Arc<Case>| {
        entry.case.as_ref().is_none_or(|id| *id == case.id)
            && (entry.tags.is_empty() || entry.tags.iter().any(|tag| case.tags.contains(tag)))
    };
    let left: Vec<Arc<Case>> = cases.iter().filter(wanted).cloned().collect();
    if left.is_empty() {
        let hint = match known.is_empty() {
            true => String::new(),
            false => {
                format!(" and these tags: {}", known.into_iter().collect::<Vec<_>>().join(", "))
            }
        };
        return Err(ServerError::NothingChosen { cases: all, hint });
    }
    Ok(left)
}

fn system(described: &str, info: &ServerInfo, target: f64) -> SystemRef {
    let name = if info.name.is_empty() { described } else { &info.name };
    SystemRef {
        kind: "mcp".to_owned(),
        name: name.to_owned(),
        version: Some(info.version.clone()).filter(|version| !version.is_empty()),
        settings: BTreeMap::from([
            ("server".to_owned(), described.to_owned()),
            ("protocol".to_owned(), info.revision.to_string()),
            ("target".to_owned(), target.to_string()),
        ]),
    }
}

/// Zero calls are not a pass.
fn executed(entries: &[journal::Entry<Observed>], remarks: &[String]) -> Result<(), ServerError> {
    let calls: Vec<&observation::Called> = entries
        .iter()
        .filter_map(|entry| match &entry.outcome {
            Outcome::Answer(observed) => Some(observed),
            Outcome::Failure { .. } => None,
        })
        .flat_map(|observed| observed.attempts.iter().flat_map(|attempt| &attempt.calls))
        .collect();
    if calls.iter().any(|call| call.outcome.is_answer()) {
        return Ok(());
    }
    let mut first =
        calls.first().map_or("no call was made".to_owned(), |call| call.outcome.words());
    for remark in remarks {
        first = format!("{first}; {remark}");
    }
    Err(ServerError::NothingExecuted { attempts: calls.len(), first })
}

/// What was observed, ready to be scored.
struct Measurement<'a> {
    cases: &'a [Arc<Case>],
    entries: &'a [journal::Entry<Observed>],
    contract: &'a Contract,
    target: f64,
    seed: u64,
}

impl Measurement<'_> {
    fn report(
        &self,
        identity: &Identity,
        server: &Server,
        tools: usize,
        stopwatch: &Stopwatch,
        surroundings: &Surroundings<'_>,
    ) -> Report {
        let (items, scored) = self.items();
        let mut metrics = self.metrics(&scored.iter().collect::<Vec<_>>());
        metrics.extend(self.pass_hat(&scored));
        let slices = self.slices(&scored);
        let cases: Vec<&Case> = self.cases.iter().map(AsRef::as_ref).collect();
        let latencies: Vec<Duration> = self
            .entries
            .iter()
            .filter_map(|entry| match &entry.outcome {
                Outcome::Answer(observed) => Some(observed),
                Outcome::Failure { .. } => None,
            })
            .flat_map(|observed| observed.attempts.iter().filter_map(observation::Attempt::latency))
            .collect();
        Report {
            schema: report::SCHEMA.to_owned(),
            evaluation: Evaluation::Server,
            name: identity.name.clone(),
            dataset: identity.dataset.clone(),
            system: identity.system.clone(),
            runs: 1,
            seed: self.seed,
            conventions: self.conventions(),
            metrics,
            slices,
            items,
            controls: controls::run(&cases, self.contract, self.target, self.seed),
            comparison: None,
            gate: None,
            warnings: self.warnings(&scored, server, tools),
            environment: stopwatch.environment(&latencies, Some(surroundings.folder)),
        }
    }

    fn items(&self) -> (Vec<Item>, Vec<Scored>) {
        let mut items = Vec::new();
        let mut all = Vec::new();
        for (case, entry) in self.cases.iter().zip(self.entries) {
            match &entry.outcome {
                Outcome::Answer(observed) => {
                    let scored = score::score(case, observed, self.contract, self.target);
                    items.push(scored.item.clone());
                    all.push(scored);
                }
                Outcome::Failure { class, message } => items.push(Item {
                    id: case.id.clone(),
                    group: None,
                    tags: score::tags(case),
                    metrics: BTreeMap::new(),
                    per_run: Vec::new(),
                    observed: serde_json::Value::Null,
                    error: Some(ItemError { class: class.clone(), message: message.clone() }),
                }),
            }
        }
        items.sort_by(|a, b| a.id.cmp(&b.id));
        (items, all)
    }

    /// The metrics over all cases, or over those of a slice.
    fn metrics(&self, scored: &[&Scored]) -> Vec<Measured> {
        let items: Vec<&Item> = scored.iter().map(|scored| &scored.item).collect();
        let over = |id: &str, count: fn(&Scored) -> Count, nothing: &str| {
            let counts = || scored.iter().map(|scored| count(scored));
            let hits = counts().map(|count| count.hits).sum();
            rate(id, hits, counts().map(|count| count.of).sum(), nothing)
        };
        vec![
            aggregate::measure(PASS_RATE, &items, 1, self.seed),
            over(
                "schema.input",
                |scored| scored.fits.input,
                "no call that wants a result of a tool that the server has",
            ),
            over(
                "schema.output",
                |scored| scored.fits.output,
                "no result of a tool that declares an outputSchema",
            ),
            over(
                "reliability",
                |scored| Count { hits: scored.passed, of: scored.attempts },
                "no case was run",
            ),
        ]
    }

    /// By tool, by tag (a case belongs to the slice of each of its tags) and by class.
    fn slices(&self, scored: &[Scored]) -> Vec<Slice> {
        ["tool", "tag", "class"].iter().flat_map(|by| self.slices_by(by, scored)).collect()
    }

    fn slices_by(&self, by: &str, scored: &[Scored]) -> Vec<Slice> {
        let mut parts: BTreeMap<&str, Vec<&Scored>> = BTreeMap::new();
        for one in scored {
            for (_, value) in one.slices.iter().filter(|(property, _)| *property == by) {
                parts.entry(value).or_default().push(one);
            }
        }
        let slice = |(value, part): (&str, Vec<&Scored>)| Slice {
            by: by.to_owned(),
            value: value.to_owned(),
            metrics: self.metrics(&part),
        };
        parts.into_iter().map(slice).collect()
    }

    /// pass^k for the number of repetitions that every repeated case has.
    fn pass_hat(&self, scored: &[Scored]) -> Option<Measured> {
        let repeated = |scored: &&Scored| scored.attempts > 1;
        let k = scored.iter().filter(repeated).map(|scored| scored.attempts).min()?;
        let scores = scored.iter().map(|scored| {
            let found = stats::pass_hat_k(scored.attempts, scored.passed, k);
            (scored.item.id.as_str(), found.ok().filter(|_| scored.attempts > 1))
        });
        Some(aggregate::over_tasks(&format!("pass^{k}"), scores, self.seed))
    }

    fn conventions(&self) -> BTreeMap<String, String> {
        [
            ("pass", format!("a case passes when its attempts succeed at a rate of {} or more", self.target)),
            ("expected error", "a tool error or a protocol error; a time-out, a crash or a failed connection never is".to_owned()),
            ("schema.input", "over all calls that want a result, setup and then included".to_owned()),
            ("schema.output", "over all results of tools that declare an output schema, likewise".to_owned()),
            ("slices", "a case belongs to that of each of its tags; reliability is over attempts in them too".to_owned()),
            ("interval", "Wilson for rates, bootstrap over cases for means, 95 %".to_owned()),
        ]
        .into_iter()
        .map(|(name, rule)| (name.to_owned(), rule))
        .collect()
    }

    fn warnings(&self, scored: &[Scored], server: &Server, tools: usize) -> Vec<String> {
        let mut warnings = Vec::new();
        let mut failures: BTreeMap<&str, u64> = BTreeMap::new();
        for (class, count) in scored.iter().flat_map(|scored| &scored.failures) {
            *failures.entry(class).or_default() += count;
        }
        if !failures.is_empty() {
            let list: Vec<String> =
                failures.iter().map(|(class, count)| format!("{class} {count}")).collect();
            warnings.push(format!("failed attempts by class: {}", list.join(", ")));
        }
        match server.restarts() {
            0 => {}
            1 => warnings.push("the server had to be started again once".to_owned()),
            n => warnings.push(format!("the server had to be started again {n} times")),
        }
        let called: std::collections::BTreeSet<&str> = self
            .cases
            .iter()
            .flat_map(|case| case.steps())
            .map(|step| step.tool.as_str())
            .collect();
        let untried: Vec<&str> =
            self.contract.names().filter(|name| !called.contains(name)).collect();
        if !untried.is_empty() {
            let first: Vec<&str> = untried.iter().take(NAMED).copied().collect();
            let more = if untried.len() > NAMED { " …" } else { "" };
            let count = untried.len();
            warnings.push(format!(
                "no case calls {count} of {tools} tools: {}{more}",
                first.join(", ")
            ));
        }
        let lacking: Vec<&str> = self
            .cases
            .iter()
            .filter(|case| case.step.ending != Ending::Success && !case.needs_tool)
            .filter(|case| !self.contract.knows(&case.step.tool))
            .map(|case| case.id.as_str())
            .collect();
        if !lacking.is_empty() {
            let count = lacking.len();
            let call = if count == 1 { "case calls" } else { "cases call" };
            let first = lacking[..count.min(NAMED)].join(", ");
            let more = if count > NAMED { " …" } else { "" };
            warnings.push(format!("{count} {call} a tool that the server lacks: {first}{more}"));
        }
        let formats: Vec<&String> =
            scored.iter().flat_map(|scored| &scored.fits.format_warnings).collect();
        if let Some(first) = formats.first() {
            warnings.push(format!(
                "{} values break a format, which is no error: {first}",
                formats.len()
            ));
        }
        warnings
    }
}
