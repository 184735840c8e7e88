//! An evaluation as a type, and the one function that runs every evaluation.
//!
//! A new evaluation implements [`Evaluation`] and is registered in one line
//! ([`crate::project::Registry::with`]). Everything else is here, once: starting, the journal, the
//! stopwatch, retries, the allowance for failures, and the [`Report`].

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use karat_metrics::MetricId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::aggregate;
use crate::dataset::Contents;
use crate::error::EvalError;
use crate::gate::Policy;
use crate::journal::{self, Entry as Outcome, Identity, Journal};
use crate::kind::Kind;
use crate::partition::{Part, Partition};
use crate::parts::{self, PartDone, PartFile};
use crate::project::Root;
use crate::provenance::{self, Stopwatch};
use crate::report::{
    self, Bin, Check, Control, DatasetRef, Environment, Gate, Item, Measured, Report, Slice,
    SystemRef,
};
use crate::run::{self, Failures, Options, Progress, ProgressListener, RunError, System};

/// The settings that entries of every evaluation share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Common {
    /// The name; unique among the entries of its evaluation.
    pub name: String,
    /// The number of times each item is asked; 1 for a system that always answers the same.
    pub runs: u32,
    /// The seed of everything random: bootstrap, permutations, shuffled controls.
    pub seed: u64,
    /// The number of items under way at once.
    pub concurrency: usize,
    /// The time limit for one answer, in milliseconds.
    pub timeout_ms: u64,
    /// The time limit for starting the system, in milliseconds.
    pub start_timeout_ms: u64,
    /// The number of times a failed item is asked again.
    pub retries: u32,
    /// The pause before the first retry, in milliseconds; doubled for each further one.
    pub backoff_ms: u64,
    /// The committed reference scores.
    pub baseline: Option<PathBuf>,
    /// The rules that the report must meet.
    pub gate: Policy,
}

impl Default for Common {
    fn default() -> Common {
        Common {
            name: String::new(),
            runs: 1,
            seed: 0,
            concurrency: 1,
            timeout_ms: 30_000,
            start_timeout_ms: 30_000,
            retries: 0,
            backoff_ms: 200,
            baseline: None,
            gate: Policy::default(),
        }
    }
}

/// The keys of [`Common`] that every entry takes.
pub(crate) const KEYS: &[&str] = &["name", "seed", "baseline", "gate"];
/// The keys of [`Common`] that an evaluation takes only if it lists them in [`Evaluation::TAKES`].
pub const OPTIONAL_KEYS: &[&str] =
    &["runs", "concurrency", "timeout_ms", "start_timeout_ms", "retries", "backoff_ms"];

impl Common {
    /// The settings of an unnamed entry with this name.
    pub fn named(name: impl Into<String>) -> Common {
        Common { name: name.into(), ..Common::default() }
    }

    /// The time limit for one answer.
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }

    /// The time limit for starting the system.
    pub fn start_timeout(&self) -> Duration {
        Duration::from_millis(self.start_timeout_ms)
    }

    /// The settings of the loop that asks.
    pub fn options(&self) -> Options {
        Options {
            runs: self.runs,
            concurrency: self.concurrency,
            timeout: self.timeout(),
            retries: self.retries,
            backoff: Duration::from_millis(self.backoff_ms),
        }
    }

    /// Finds values out of range and names that cannot be file names.
    ///
    /// # Errors
    /// If there is one.
    pub fn validate(&self) -> Result<(), EvalError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let name = &self.name;
        if name.is_empty() || !name.chars().all(plain) || name.starts_with('.') {
            return Err(EvalError::config(
                "a name consists of letters, digits, '-', '_' and '.', and does not begin with '.'",
            ));
        }
        if !(1..=10_000).contains(&self.runs) || !(1..=10_000).contains(&self.concurrency) {
            return Err(EvalError::config("`runs` and `concurrency` must be between 1 and 10000"));
        }
        if self.timeout_ms == 0 || self.start_timeout_ms == 0 {
            return Err(EvalError::config(
                "`timeout_ms` and `start_timeout_ms` must be at least 1",
            ));
        }
        self.gate.validate().map_err(EvalError::config)
    }
}

/// A key of an entry that had another name or place. The earlier one works for one release, with a hint.
pub struct RenamedKey {
    /// The keys that lead to it, and itself.
    pub earlier: &'static [&'static str],
    /// The same today.
    pub present: &'static [&'static str],
    /// The unit of its number, which the present value names; empty if the value is the same.
    pub unit: &'static str,
}

impl RenamedKey {
    /// A key whose value is the same.
    pub const fn new(
        earlier: &'static [&'static str],
        present: &'static [&'static str],
    ) -> RenamedKey {
        RenamedKey { earlier, present, unit: "" }
    }

    /// A key that was a number of seconds and is a time with its unit.
    pub const fn seconds(
        earlier: &'static [&'static str],
        present: &'static [&'static str],
    ) -> RenamedKey {
        RenamedKey { earlier, present, unit: "s" }
    }
}

/// One entry of a project: its settings, and the data it names.
pub struct Entry<E: Evaluation> {
    /// The settings that all evaluations share.
    pub common: Common,
    /// The settings of its own evaluation.
    pub config: E::Config,
    /// The data it is measured on.
    pub data: E::Dataset,
}

/// The surroundings of a run.
pub struct RunContext<'a> {
    /// The folder of the project: paths start and commands run here, and its commit is recorded.
    pub folder: &'a Path,
    /// The journal file; none where nothing is worth resuming.
    pub journal: Option<&'a Path>,
    /// Set to continue an interrupted run.
    pub resume: bool,
    /// Shows the progress.
    pub progress: Arc<dyn Progress>,
}

/// The metrics and slices that a report of an entry can have, as far as that is known before it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Computes {
    /// The ids of the metrics.
    pub metrics: Vec<MetricId>,
    /// The slices, as property and value.
    pub slices: BTreeSet<(String, String)>,
    /// True if the system itself adds slices by properties that the data does not have.
    pub open: bool,
}

/// A system that was started, or answers that were recorded earlier.
pub enum Start<E: Evaluation> {
    /// A system to ask.
    Live {
        /// The system.
        system: Arc<E::System>,
        /// The system as the report names it.
        reference: SystemRef,
    },
    /// Answers that need no system.
    Recorded {
        /// The outcomes; may be empty where the dataset itself holds them.
        outcomes: Vec<Outcome<Answer<E>>>,
        /// The system as the report names it.
        reference: SystemRef,
        /// The number of runs that were recorded.
        runs: u32,
    },
}

/// The answers of an evaluation's system.
pub type Answer<E> = <<E as Evaluation>::System as System>::Answer;
/// The questions to an evaluation's system.
pub(crate) type Question<E> = <<E as Evaluation>::System as System>::Question;
/// The questions of a run, by item id, in the order in which they are asked.
pub type Questions<E> = Vec<(String, Arc<Question<E>>)>;

/// Everything that was observed, ready to be scored.
pub struct Observations<'a, E: Evaluation> {
    /// The entry.
    pub entry: &'a Entry<E>,
    /// The system as the report names it.
    pub system: &'a SystemRef,
    /// The outcomes, in the order of run, then question.
    pub outcomes: &'a [Outcome<Answer<E>>],
    /// Facts from the system apart from its answers.
    pub facts: &'a E::Facts,
    /// The number of runs.
    pub runs: u32,
    /// True if the answers were recorded earlier: no system was asked.
    pub recorded: bool,
}

/// The scores of one run; [`evaluate`] makes the report from them.
#[derive(Default)]
pub struct Scored {
    /// The headline metrics.
    pub metrics: Vec<Measured>,
    /// The same metrics over parts of the items.
    pub slices: Vec<Slice>,
    /// The items; the report sorts them by id.
    pub items: Vec<Item>,
    /// The controls.
    pub controls: Vec<Control>,
    /// The rules behind the numbers.
    pub conventions: BTreeMap<String, String>,
    /// Remarks for a careful reader.
    pub warnings: Vec<String>,
    /// Checks that the evaluation makes itself; the gate adds its own to them.
    pub checks: Vec<Check>,
    /// The time that each answer took.
    pub latencies: Vec<Duration>,
    /// Times by size, where they are not those of `latencies`.
    pub latency_bins: Option<Vec<Bin>>,
    /// The isolation that was in force.
    pub isolation: Vec<String>,
}

/// One kind of evaluation.
pub trait Evaluation: Sized + Send + Sync + 'static {
    /// The kind of its reports.
    const KIND: Kind;
    /// Its table in karat.toml: `retrieval` for `[[retrieval]]`.
    const TABLE: &'static str;
    /// The [`OPTIONAL_KEYS`] that its entries take.
    const TAKES: &'static [&'static str];
    /// The [`OPTIONAL_KEYS`] that are keys of its `Config`, with a meaning of their own.
    const OWNS: &'static [&'static str] = &[];
    /// The `start_timeout_ms` of an entry that does not say it.
    const START_TIMEOUT_MS: u64 = 30_000;
    /// The keys of its entries that had another name or place.
    const RENAMED: &'static [RenamedKey] = &[];
    /// The word for its items in messages, in the plural.
    const ITEMS: &'static str;
    /// The word for what items share, in the plural.
    const GROUPS: &'static str = "groups";

    /// The settings of an entry, apart from [`Common`].
    type Config: DeserializeOwned + Send + Sync;
    /// The data that an entry is measured on.
    type Dataset: Send + Sync;
    /// The system that is asked.
    type System: System;
    /// Facts from the system apart from its answers: its tools, its conduct, a second pass.
    type Facts: Default + Send + Sync;

    /// Completes and checks an entry before its data is read: contradictions, default rules.
    ///
    /// # Errors
    /// If the entry contradicts itself.
    fn check(_config: &Self::Config, _common: &mut Common) -> Result<(), EvalError> {
        Ok(())
    }

    /// Reads the data that an entry names.
    ///
    /// # Errors
    /// If it is not valid.
    fn load(
        config: &Self::Config,
        common: &Common,
        root: &Root,
    ) -> Result<Self::Dataset, EvalError>;

    /// The data as reports and baselines name it.
    fn reference(data: &Self::Dataset) -> DatasetRef;

    /// The content of the data, part by part, if scores on other versions of it can be compared.
    fn contents(_data: &Self::Dataset) -> Option<Contents> {
        None
    }

    /// The files and folders that an entry names, relative to the project.
    fn reads(config: &Self::Config) -> Vec<PathBuf>;

    /// The files that a run of an entry writes, relative to the project; the report and its journal apart.
    fn writes(_config: &Self::Config) -> Vec<PathBuf> {
        Vec::new()
    }

    /// The items whose labels name parts of the corpus that are not there, each with that part: the run
    /// fails whatever it measures, and is not compared with a baseline.
    fn dangling(_data: &Self::Dataset) -> Vec<(String, String)> {
        Vec::new()
    }

    /// The metrics and slices that a report can have; none where that depends on the run.
    fn computes(_config: &Self::Config, _data: &Self::Dataset) -> Option<Computes> {
        None
    }

    /// The reason why an entry is measured as a whole; none where its items are independent of each
    /// other, so that parts of them can be measured apart.
    fn whole(_entry: &Entry<Self>) -> Option<&'static str> {
        None
    }

    /// Starts the system, or returns what was recorded.
    fn start(
        entry: &Entry<Self>,
        context: &RunContext<'_>,
    ) -> impl Future<Output = Result<Start<Self>, EvalError>> + Send;

    /// The questions; `known` are the outcomes that a resumed journal holds, from which an
    /// evaluation may take out those that must be asked again.
    fn questions(
        entry: &Entry<Self>,
        system: &Self::System,
        known: &mut Vec<Outcome<Answer<Self>>>,
    ) -> Result<Questions<Self>, EvalError>;

    /// The settings of the loop that asks.
    fn options(entry: &Entry<Self>) -> Options {
        entry.common.options()
    }

    /// Ends the work with the system in good order, and keeps what scoring needs of it.
    fn finish(
        _entry: &Entry<Self>,
        _system: &Self::System,
        _questions: &Questions<Self>,
        _outcomes: &mut Vec<Outcome<Answer<Self>>>,
    ) -> impl Future<Output = Result<Self::Facts, EvalError>> + Send {
        async { Ok(Self::Facts::default()) }
    }

    /// The reason for which an answer cannot be used; such answers count against the allowance.
    fn unusable(_entry: &Entry<Self>, _id: &str, _answer: &Answer<Self>) -> Option<String> {
        None
    }

    /// Holds the outcomes to the allowance for failures.
    ///
    /// # Errors
    /// If more than `max_errors` of them lack a usable answer.
    fn allow(observed: &Observations<'_, Self>) -> Result<(), EvalError> {
        allowance(observed)
    }

    /// Scores. Pure: no system is asked, no file is read.
    ///
    /// # Errors
    /// If nothing can be scored.
    fn score(observed: &Observations<'_, Self>) -> Result<Scored, EvalError>;
}

/// Holds outcomes to the share that may lack a usable answer.
///
/// # Errors
/// If more of them do.
pub fn allowance<E: Evaluation>(observed: &Observations<'_, E>) -> Result<(), EvalError> {
    let allowed = observed.entry.common.gate.allowed_errors();
    let problem = |id: &str, answer: &Answer<E>| E::unusable(observed.entry, id, answer);
    Failures::of(observed.outcomes, problem)
        .map_or(Ok(()), |failures| failures.allow(allowed, E::ITEMS))
}

/// The outcomes of a run, not yet scored.
pub struct Collected<E: Evaluation> {
    /// The system as the report names it.
    pub system: SystemRef,
    /// The outcomes, in the order of run, then question.
    pub outcomes: Vec<Outcome<Answer<E>>>,
    /// Facts from the system apart from its answers.
    pub facts: E::Facts,
    /// The number of runs.
    pub runs: u32,
    /// True if the answers were recorded earlier.
    pub recorded: bool,
    stopwatch: Stopwatch,
}

/// Measures one entry: starts the system, asks, scores, reports.
///
/// # Errors
/// If nothing could be measured.
pub async fn evaluate<E: Evaluation>(
    entry: &Entry<E>,
    context: &RunContext<'_>,
) -> Result<Report, EvalError> {
    let collected = collect(entry, context).await?;
    report(entry, &collected, Some(context.folder))
}

/// Measures one part of an entry; what was answered is in its journal.
///
/// # Errors
/// If the system cannot be started or is lost, or the journal cannot be used.
pub(crate) async fn evaluate_part<E: Evaluation>(
    entry: &Entry<E>,
    context: &RunContext<'_>,
    part: Partition,
) -> Result<PartDone, EvalError> {
    let gathered = gather(entry, context, &Share::Part(part)).await?;
    Ok(gathered.done)
}

/// Makes the report of a run from the journals of its parts, as if it had not been divided. The system
/// is started, as when a run is resumed, and asked nothing that a part has asked.
///
/// # Errors
/// If a part is missing, there twice, not finished or of another run, and as [`evaluate`].
pub(crate) async fn merge<E: Evaluation>(
    entry: &Entry<E>,
    context: &RunContext<'_>,
    parts: &[PartFile],
) -> Result<Report, EvalError> {
    // What is wrong with the parts is found before a system is started.
    parts::check_parts(parts, &identity(entry, nameless(), 0, None))?;
    let gathered = gather(entry, context, &Share::Merged(parts)).await?;
    report(entry, &gathered.collected, Some(context.folder))
}

/// The first half of [`evaluate`]: everything that needs the system.
///
/// # Errors
/// If the system cannot be started or is lost, or the journal cannot be used.
pub async fn collect<E: Evaluation>(
    entry: &Entry<E>,
    context: &RunContext<'_>,
) -> Result<Collected<E>, EvalError> {
    Ok(gather(entry, context, &Share::All).await?.collected)
}

/// The items that are asked.
enum Share<'a> {
    All,
    Part(Partition),
    /// None: these parts have asked them.
    Merged(&'a [PartFile]),
}

struct Gathered<E: Evaluation> {
    collected: Collected<E>,
    done: PartDone,
}

fn nameless() -> SystemRef {
    let (kind, name) = (String::new(), String::new());
    SystemRef { kind, name, version: None, settings: BTreeMap::new() }
}

fn identity<E: Evaluation>(
    entry: &Entry<E>,
    system: SystemRef,
    runs: u32,
    part: Option<Part>,
) -> Identity {
    Identity {
        schema: journal::SCHEMA.to_owned(),
        kind: E::KIND,
        name: entry.common.name.clone(),
        dataset: E::reference(&entry.data),
        system,
        runs,
        seed: entry.common.seed,
        part,
    }
}

async fn gather<E: Evaluation>(
    entry: &Entry<E>,
    context: &RunContext<'_>,
    share: &Share<'_>,
) -> Result<Gathered<E>, EvalError> {
    let stopwatch = Stopwatch::start();
    // Started before the journal is touched: a system that does not work leaves the old one alone.
    let (system, reference, runs, recorded) = match E::start(entry, context).await? {
        Start::Live { system, reference } => {
            (Some(system), reference, entry.common.runs, Vec::new())
        }
        Start::Recorded { outcomes, reference, runs } => (None, reference, runs, outcomes),
    };
    let part = match share {
        Share::Part(part) => Some(Part::new(*part)),
        Share::All | Share::Merged(_) => None,
    };
    let identity = identity(entry, reference, runs, part);
    // Recorded answers are worth a journal only as the mark of a part.
    let path = context.journal.filter(|_| system.is_some() || identity.part.is_some());
    let (mut journal, mut known) = match (share, path) {
        (Share::Merged(parts), _) => (None, parts::outcomes(parts, &identity)?),
        (_, None) => (None, Vec::new()),
        (_, Some(path)) if context.resume => {
            let (journal, known) = Journal::resume(path, &identity)?;
            (Some(journal), known)
        }
        (_, Some(path)) => (Some(Journal::create(path, &identity)?), Vec::new()),
    };
    let mut collected = Collected {
        system: identity.system,
        outcomes: recorded,
        facts: E::Facts::default(),
        runs,
        recorded: system.is_none(),
        stopwatch,
    };
    let Some(system) = system else {
        return Ok(Gathered { collected, done: PartDone::default() });
    };
    let mut questions = E::questions(entry, &system, &mut known)?;
    match share {
        Share::All => {}
        Share::Part(part) => questions.retain(|(id, _)| part.holds(id)),
        Share::Merged(parts) => {
            let ids: Vec<&str> = questions.iter().map(|(id, _)| id.as_str()).collect();
            parts::check_complete(parts, &known, &ids, runs, E::ITEMS)?;
        }
    }
    // A part without items is still a part.
    if questions.is_empty() && matches!(share, Share::Part(_)) {
        return Ok(Gathered { collected, done: PartDone::default() });
    }
    let mut progress = ProgressListener(context.progress.as_ref());
    let mut listeners: Vec<&mut (dyn run::Listener<Answer<E>> + Send)> = Vec::new();
    if let Some(journal) = &mut journal {
        listeners.push(journal);
    }
    listeners.push(&mut progress);
    let mut outcomes =
        run::collect(Arc::clone(&system), &questions, &E::options(entry), known, &mut listeners)
            .await?;
    let is_failure =
        |entry: &&Outcome<Answer<E>>| matches!(entry.outcome, journal::Outcome::Failure { .. });
    let done =
        PartDone { items: questions.len(), failed: outcomes.iter().filter(is_failure).count() };
    collected.facts = E::finish(entry, &system, &questions, &mut outcomes).await?;
    collected.outcomes = outcomes;
    Ok(Gathered { collected, done })
}

/// The second half of [`evaluate`]: scores what was collected and makes the report. `folder` is the
/// project whose commit is recorded.
///
/// # Errors
/// If too much failed, or nothing can be scored.
pub fn report<E: Evaluation>(
    entry: &Entry<E>,
    collected: &Collected<E>,
    folder: Option<&Path>,
) -> Result<Report, EvalError> {
    let Collected { system, outcomes, facts, runs, recorded, stopwatch } = collected;
    let (runs, recorded) = (*runs, *recorded);
    let observed = Observations { entry, system, outcomes, facts, runs, recorded };
    E::allow(&observed)?;
    let mut scored = E::score(&observed)?;
    let mut environment = stopwatch.environment(&scored.latencies, folder);
    if let Some(bins) = scored.latency_bins.take() {
        environment.latency_bins = bins;
    }
    environment.isolation = std::mem::take(&mut scored.isolation);
    let subject = Subject {
        kind: E::KIND,
        name: entry.common.name.clone(),
        dataset: E::reference(&entry.data),
        contents: E::contents(&entry.data),
        system: system.clone(),
        runs,
        seed: entry.common.seed,
        items: E::ITEMS,
        groups: E::GROUPS,
    };
    Ok(subject.report(scored, environment))
}

/// The subject of a report.
pub struct Subject {
    /// The kind of the report.
    pub kind: Kind,
    /// The name of the entry.
    pub name: String,
    /// The data.
    pub dataset: DatasetRef,
    /// The files of the data.
    pub contents: Option<Contents>,
    /// The system that was measured.
    pub system: SystemRef,
    /// The number of runs.
    pub runs: u32,
    /// The seed.
    pub seed: u64,
    /// The word for items in messages, in the plural.
    pub items: &'static str,
    /// The word for what items share, in the plural.
    pub groups: &'static str,
}

impl Subject {
    /// Makes the report of the scores. No other code does.
    pub fn report(self, mut scored: Scored, environment: Environment) -> Report {
        let Subject { kind, name, dataset, contents, system, runs, seed, items, groups } = self;
        scored.items.sort_by(|a, b| a.id.cmp(&b.id));
        let sentence = aggregate::independence(&scored.metrics, items, groups);
        scored.conventions.insert("independence".to_owned(), sentence);
        let halved = |measured: &&Measured| {
            let uncertain = measured.count.filter(|count| count.hits < count.of);
            let groups = uncertain.and_then(|count| Some((count.of, count.groups?)));
            groups.is_some_and(|(of, groups)| groups.effective * 2.0 < of as f64)
        };
        if let Some(worst) = scored.metrics.iter().filter(halved).max_by_key(|one| one.n) {
            let counted = aggregate::independence(std::slice::from_ref(worst), items, groups);
            scored.warnings.push(format!("{counted}; intervals and certificates respect that"));
        }
        let verdict = scored.checks.iter().map(|check| check.verdict).max();
        Report {
            schema: report::SCHEMA.to_owned(),
            evaluation: kind.evaluation(),
            kind,
            name,
            dataset,
            contents,
            system,
            runs,
            seed,
            conventions: scored.conventions,
            metrics: scored.metrics,
            slices: scored.slices,
            items: scored.items,
            controls: scored.controls,
            comparison: None,
            gate: verdict.map(|verdict| Gate { verdict, checks: scored.checks }),
            warnings: scored.warnings,
            environment,
        }
    }
}

/// Scores answers that were recorded elsewhere: no system, no journal, no project.
///
/// # Errors
/// As [`report()`].
pub fn report_recorded<E: Evaluation>(
    entry: &Entry<E>,
    outcomes: Vec<Outcome<Answer<E>>>,
    system: SystemRef,
    runs: u32,
) -> Result<Report, EvalError> {
    let facts = E::Facts::default();
    report_observed(entry, Recording { outcomes, facts, system, runs }, None)
}

/// Answers that were recorded elsewhere, with the known facts of their system.
pub struct Recording<E: Evaluation> {
    /// The outcomes, in the order of run, then question.
    pub outcomes: Vec<Outcome<Answer<E>>>,
    /// Facts from the system apart from its answers.
    pub facts: E::Facts,
    /// The system as the report names it.
    pub system: SystemRef,
    /// The number of runs.
    pub runs: u32,
}

/// As [`report_recorded`], with facts from the system. `folder` is the project whose commit is recorded.
///
/// # Errors
/// As [`report()`].
pub fn report_observed<E: Evaluation>(
    entry: &Entry<E>,
    recording: Recording<E>,
    folder: Option<&Path>,
) -> Result<Report, EvalError> {
    let (Recording { outcomes, facts, system, runs }, stopwatch) = (recording, Stopwatch::start());
    report(entry, &Collected { system, outcomes, facts, runs, recorded: true, stopwatch }, folder)
}

/// Conventions from pairs of name and rule.
pub fn conventions<'a>(
    rules: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> BTreeMap<String, String> {
    rules.into_iter().map(|(name, rule)| (name.to_owned(), rule.to_owned())).collect()
}

/// The time that each answered question took.
pub fn latencies<A>(outcomes: &[Outcome<A>]) -> Vec<Duration> {
    let asked = outcomes.iter().filter(|entry| entry.nanos > 0);
    asked.map(|entry| Duration::from_nanos(entry.nanos)).collect()
}

/// A system of evaluations whose answers are all recorded: it is never asked.
pub struct NeverAsked<A>(std::marker::PhantomData<fn() -> A>);

impl<A: Serialize + DeserializeOwned + Send + 'static> System for NeverAsked<A> {
    type Question = ();
    type Answer = A;

    async fn ask(&self, _: u32, (): &()) -> Result<A, karat_io::Failure> {
        Err(karat_io::Failure::lost("no system to measure"))
    }
}

/// The error of an evaluation that has nothing to ask.
pub fn nothing_to_ask() -> EvalError {
    EvalError::Run(RunError::Nothing)
}

/// Times by size, for [`Scored::latency_bins`].
pub use provenance::bins;
