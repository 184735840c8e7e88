//! Retrieval evaluation: does tool search find the right tools?
//!
//! Stations: [`dataset`] (frozen corpus and golden queries), [`system`] (built-in [`engines`] and
//! adapters under [`systems`]), [`score`] (rankings to scored items), [`controls`], and [`run()`],
//! which puts them in line and returns the report. [`score_rankings`] does the same with
//! [`rankings`] that were made elsewhere. [`snapshot`] holds definitions as servers serve them:
//! captured, compared, locked. [`trec`] reads and writes the files of trec_eval.

pub mod audit;
pub mod controls;
pub mod dataset;
pub mod engines;
pub mod fitness;
mod measurement;
pub mod rankings;
pub mod ready;
pub mod score;
pub mod snapshot;
pub mod system;
pub mod systems;
pub mod tokens;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use karat_core::dataset::DatasetError;
use karat_core::gate::Policy;
use karat_core::journal::{self, Identity, Journal, JournalError};
use karat_core::provenance::Stopwatch;
use karat_core::report::{Control, Evaluation, Report, SystemRef};
use karat_core::run::{self, RunError, Surroundings};
use karat_io::input::{InputError, WriteError};
use serde::{Deserialize, Serialize};

use crate::dataset::Dataset;
use crate::measurement::Measurement;
use crate::rankings::Rankings;
use crate::ready::ReadyConfig;
use crate::system::{Question, Ranking, Search, Setting, SystemConfig};

/// One `[[retrieval]]` entry of a project.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its name; unique among the retrieval entries.
    pub name: String,
    /// A dataset folder, or `bundled:tools/v1`.
    #[serde(default)]
    pub dataset: Option<String>,
    /// A corpus file, together with `golden`, instead of a folder.
    #[serde(default)]
    pub corpus: Option<PathBuf>,
    /// A golden file.
    #[serde(default)]
    pub golden: Option<PathBuf>,
    /// What is measured.
    pub system: SystemConfig,
    /// How many results are asked for.
    #[serde(default = "default_limit")]
    pub limit: usize,
    /// How often each query is asked; 1 for a system that always answers the same.
    #[serde(default = "default_runs")]
    pub runs: u32,
    /// The seed of bootstrap, permutations and the shuffled control.
    #[serde(default)]
    pub seed: u64,
    /// How many queries are under way at once.
    #[serde(default = "default_concurrency")]
    pub concurrency: usize,
    /// How long an answer may take, in milliseconds.
    #[serde(default = "default_timeout_ms")]
    pub timeout_ms: u64,
    /// How often a failed query is asked again.
    #[serde(default)]
    pub retries: u32,
    /// How long to wait before the first retry, in milliseconds; doubled for each further one.
    #[serde(default = "default_backoff_ms")]
    pub backoff_ms: u64,
    /// How to make sure that every tool is indexed before the first query.
    #[serde(default)]
    pub ready: ReadyConfig,
    /// Whether to count the tokens of answers; without it, those of systems outside this process.
    #[serde(default)]
    pub answer_tokens: Option<bool>,
    /// The committed reference scores.
    #[serde(default)]
    pub baseline: Option<PathBuf>,
    /// What must hold.
    #[serde(default)]
    pub gate: Policy,
}

fn default_limit() -> usize {
    20
}
fn default_runs() -> u32 {
    1
}
fn default_concurrency() -> usize {
    1
}
fn default_timeout_ms() -> u64 {
    30_000
}
fn default_backoff_ms() -> u64 {
    200
}

/// What can go wrong, apart from a gate that fails.
#[derive(Debug, thiserror::Error)]
pub enum RetrievalError {
    /// A file is not what it should be.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A dataset is not what it should be.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// A file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A TREC file is not what it should be.
    #[error(transparent)]
    Trec(#[from] trec::TrecError),
    /// The entry contradicts itself.
    #[error("system: {0}")]
    System(String),
    /// No such engine.
    #[error("system: there is no built-in engine {name:?}; there are: {}", engine_names())]
    UnknownEngine {
        /// What was written.
        name: String,
    },
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The system could not be started.
    #[error("the system did not start: {0}")]
    NotStarted(String),
    /// The system answers, but does not have all tools.
    #[error(
        "the search is not ready: after {waited_ms} ms it lists {} of {of} tools, {missing} are not \
         found by name; {reason}",
        of - missing
    )]
    NotReady {
        /// How many are missing.
        missing: usize,
        /// Out of how many.
        of: usize,
        /// How long it was waited for them.
        waited_ms: u64,
        /// Which, and what else was seen.
        reason: String,
    },
    /// The system was lost, or there was nothing to ask.
    #[error(transparent)]
    Run(RunError),
    /// There are answers, and none of them has a score.
    #[error(
        "no query has a score: none of {queries} has a relevant label (1 or 2) and an answer; \
         look at the labels of the golden set"
    )]
    NothingScored {
        /// How many queries there are.
        queries: usize,
    },
    /// More questions failed than are allowed.
    #[error("{} (first: {id}: {message})", too_many(*failed, *asked, *allowed))]
    TooManyFailures {
        /// How many failed.
        failed: usize,
        /// Out of how many.
        asked: usize,
        /// The allowance.
        allowed: f64,
        /// The first that failed.
        id: String,
        /// Why.
        message: String,
    },
}

fn too_many(failed: usize, asked: usize, allowed: f64) -> String {
    if failed == asked {
        return format!("none of {asked} queries was answered");
    }
    format!("{failed} of {asked} queries were not answered, more than the allowed share {allowed}")
}

impl From<RunError> for RetrievalError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Journal(error) => RetrievalError::Journal(error),
            other => RetrievalError::Run(other),
        }
    }
}

impl RetrievalError {
    /// Whether nothing was measured although the input was right.
    pub fn is_not_measured(&self) -> bool {
        matches!(
            self,
            RetrievalError::NotStarted(_)
                | RetrievalError::NotReady { .. }
                | RetrievalError::Run(_)
                | RetrievalError::NothingScored { .. }
                | RetrievalError::TooManyFailures { .. }
        )
    }
}

fn engine_names() -> String {
    engines::ENGINES.iter().map(|engine| engine.name).collect::<Vec<_>>().join(", ")
}

/// Measures one system: asks every query, scores, averages, runs the controls.
pub async fn run(
    entry: &Entry,
    dataset: &Dataset,
    surroundings: &Surroundings<'_>,
) -> Result<Report, RetrievalError> {
    let stopwatch = Stopwatch::start();
    let timeout = Duration::from_millis(entry.timeout_ms);
    let setting = Setting {
        dataset,
        folder: surroundings.folder,
        timeout,
        count_tokens: entry.answer_tokens.unwrap_or(!entry.system.is_builtin()),
    };
    let mut system = entry.system.reference()?;
    // Started before the journal is touched: a search that does not work leaves the old one alone.
    let search = Arc::new(entry.system.start(&setting).await?);
    if entry.ready.probe.unwrap_or(entry.system.is_live()) {
        ready::wait(&search, dataset, &entry.ready, entry.limit, timeout).await?;
    }
    system.settings.extend(search.settings());
    system.settings.insert("limit".to_owned(), entry.limit.to_string());
    let identity = Identity {
        schema: journal::SCHEMA.to_owned(),
        evaluation: Evaluation::Retrieval,
        name: entry.name.clone(),
        dataset: dataset.reference.clone(),
        system,
        runs: entry.runs,
        seed: entry.seed,
    };
    let (journal, known) = if surroundings.resume {
        Journal::resume::<Ranking>(surroundings.journal, &identity)?
    } else {
        (Journal::create(surroundings.journal, &identity)?, Vec::new())
    };
    let questions: Vec<(String, Arc<Question>)> = dataset
        .queries
        .iter()
        .map(|query| {
            let question =
                Question { id: query.id.clone(), query: query.query.clone(), limit: entry.limit };
            (query.id.clone(), Arc::new(question))
        })
        .collect();
    let options = run::Options {
        runs: entry.runs,
        concurrency: entry.concurrency,
        timeout,
        retries: entry.retries,
        backoff: Duration::from_millis(entry.backoff_ms),
    };
    let mut entries = run::collect(
        Arc::clone(&search),
        &questions,
        &options,
        Some(journal),
        known,
        surroundings.listener,
    )
    .await?;
    let mut controls = controls::run(dataset, entry.limit, entry.seed)?;
    if let Search::Builtin { engine, .. } = &*search {
        controls.push(second_pass(&entries, &questions, engine.as_ref()));
    }
    let mut warnings = search.notes();
    warnings.extend(cut_to(entry.limit, &mut entries));
    warnings.extend(score::beyond(entry.limit));
    if entry.runs == 1 && !entry.system.is_builtin() {
        warnings.push(
            "one run: if the system's answers vary, set runs to 5 or more so that the gate \
             takes the variation into account"
                .to_owned(),
        );
    }
    let measured = Measurement {
        name: &entry.name,
        dataset,
        system: identity.system,
        limit: Some(entry.limit),
        runs: entry.runs,
        seed: entry.seed,
        max_errors: entry.gate.max_errors,
        entries: &entries,
        controls,
        warnings,
    };
    measured.report(&stopwatch, Some(surroundings.folder))
}

/// Leaves of each answer what was asked for: who answers more would otherwise be scored deeper than
/// the others. Says how many did; what they cost is counted in full.
fn cut_to(limit: usize, entries: &mut [journal::Entry<Ranking>]) -> Option<String> {
    let mut longer = 0;
    let mut first = None;
    for entry in entries {
        let journal::Outcome::Answer(ranking) = &mut entry.outcome else { continue };
        if ranking.ranked.len() > limit {
            longer += 1;
            first.get_or_insert((entry.id.clone(), ranking.ranked.len()));
            ranking.ranked.truncate(limit);
        }
    }
    let (id, results) = first?;
    Some(format!(
        "{longer} answers have more results than the {limit} asked for (first: {id} with {results}); \
         those beyond are not scored"
    ))
}

/// How rankings that were made elsewhere are scored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScoreOptions {
    /// The seed of the bootstrap.
    pub seed: u64,
    /// The largest share of queries that may be without a ranking.
    pub max_errors: f64,
}

/// Scores rankings against the golden queries; no system is asked. `path` is where they came from.
///
/// # Errors
/// When they do not belong to these queries, or too many queries have none.
pub fn score_rankings(
    dataset: &Dataset,
    rankings: &Rankings,
    path: &Path,
    options: &ScoreOptions,
) -> Result<Report, RetrievalError> {
    let stopwatch = Stopwatch::start();
    let entries = rankings.outcomes(path, dataset)?;
    if entries.is_empty() {
        return Err(RetrievalError::Run(RunError::Nothing));
    }
    let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name = name.unwrap_or_default();
    let system = SystemRef {
        kind: "file".to_owned(),
        name: name.clone(),
        version: None,
        settings: BTreeMap::new(),
    };
    let longest = entries.iter().map(|entry| match &entry.outcome {
        journal::Outcome::Answer(ranking) => ranking.ranked.len(),
        journal::Outcome::Failure { .. } => 0,
    });
    let longest = longest.max().unwrap_or(0);
    let measured = Measurement {
        name: &name,
        dataset,
        system,
        limit: None,
        runs: rankings.runs(),
        seed: options.seed,
        max_errors: options.max_errors,
        entries: &entries,
        controls: controls::run(dataset, longest.max(1), options.seed)?,
        warnings: Vec::new(),
    };
    measured.report(&stopwatch, None)
}

/// A deterministic system proves it: asked again, it answers the same.
fn second_pass(
    entries: &[journal::Entry<Ranking>],
    questions: &[(String, Arc<Question>)],
    engine: &dyn engines::Engine,
) -> Control {
    let asked: BTreeMap<&str, &Question> =
        questions.iter().map(|(id, question)| (id.as_str(), question.as_ref())).collect();
    let same = entries.iter().all(|entry| match (&entry.outcome, asked.get(entry.id.as_str())) {
        (journal::Outcome::Answer(ranking), Some(question)) => {
            engine.search(&question.query, question.limit) == ranking.ranked
        }
        _ => false,
    });
    Control {
        name: "second-pass".to_owned(),
        expected: "a second pass gives identical rankings".to_owned(),
        metrics: Vec::new(),
        ok: same,
    }
}
