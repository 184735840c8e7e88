//! Retrieval evaluation: does tool search find the right tools?
//!
//! Stations: [`dataset`] (frozen corpus and golden queries), [`system`] (built-in [`engines`] and
//! adapters under [`systems`]), [`score`] (rankings to scored items), [`controls`], and [`run()`],
//! which puts them in line and returns the report. [`snapshot`] holds definitions as servers serve
//! them: captured, compared, locked. [`trec`] reads and writes the files of trec_eval.

pub mod audit;
pub mod controls;
pub mod dataset;
pub mod engines;
pub mod score;
pub mod snapshot;
pub mod system;
pub mod systems;
pub mod trec;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use karat_core::aggregate;
use karat_core::dataset::DatasetError;
use karat_core::gate::Policy;
use karat_core::input::{InputError, WriteError};
use karat_core::journal::{self, Identity, Journal, JournalError};
use karat_core::provenance::Stopwatch;
use karat_core::report::{self, Control, Evaluation, Report};
use karat_core::run::{self, RunError, Surroundings};
use serde::{Deserialize, Serialize};

use crate::dataset::Dataset;
use crate::system::{Question, Ranking, Search, SystemConfig};

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
    /// The system was lost, or there was nothing to ask.
    #[error(transparent)]
    Run(RunError),
    /// More questions failed than are allowed.
    #[error(
        "{failed} of {asked} queries were not answered, more than the allowed share {allowed} \
         (first: {id}: {message})"
    )]
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
                | RetrievalError::Run(_)
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
    let mut system = entry.system.reference()?;
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
        timeout: Duration::from_millis(entry.timeout_ms),
        retries: entry.retries,
        ..run::Options::default()
    };
    let search = Arc::new(entry.system.start(dataset, surroundings.folder)?);
    let entries = run::collect(
        Arc::clone(&search),
        &questions,
        &options,
        Some(journal),
        known,
        surroundings.listener,
    )
    .await?;
    allow(&entries, dataset, entry.gate.max_errors)?;

    let mut controls = controls::run(dataset, entry.limit, entry.seed)?;
    if let Search::Builtin(engine) = &*search {
        controls.push(second_pass(&entries, &questions, engine.as_ref()));
    }
    let (items, anomalies) = score::items(dataset, &entries);
    let refs: Vec<&report::Item> = items.iter().collect();
    let metrics = score::SPECS
        .iter()
        .map(|spec| aggregate::measure(*spec, &refs, entry.runs, entry.seed))
        .collect();
    let slices = ["split", "kind", "server"]
        .iter()
        .flat_map(|by| aggregate::slices(by, score::SPECS, &items, entry.runs, entry.seed))
        .collect();
    let latencies: Vec<Duration> =
        entries.iter().map(|entry| Duration::from_nanos(entry.nanos)).collect();
    let warnings = warnings(entry, &items, &anomalies);
    Ok(Report {
        schema: report::SCHEMA.to_owned(),
        evaluation: Evaluation::Retrieval,
        name: entry.name.clone(),
        dataset: dataset.reference.clone(),
        system: identity.system,
        runs: entry.runs,
        seed: entry.seed,
        conventions: conventions(entry),
        metrics,
        slices,
        items,
        controls,
        comparison: None,
        gate: None,
        warnings,
        environment: stopwatch.environment(&latencies, Some(surroundings.folder)),
    })
}

/// Counts unanswered and unusable answers against the allowance.
fn allow(
    entries: &[journal::Entry<Ranking>],
    dataset: &Dataset,
    allowed: f64,
) -> Result<(), RetrievalError> {
    let queries: BTreeMap<&str, &dataset::Query> =
        dataset.queries.iter().map(|query| (query.id.as_str(), query)).collect();
    let mut failed = 0;
    let mut first = None;
    for entry in entries {
        let message = match &entry.outcome {
            journal::Outcome::Failure { class, message } => Some(format!("{class}: {message}")),
            journal::Outcome::Answer(ranking) => queries
                .get(entry.id.as_str())
                .and_then(|query| score::judged(query, ranking).err())
                .map(|message| format!("invalid_answer: {message}")),
        };
        if let Some(message) = message {
            failed += 1;
            first.get_or_insert((entry.id.clone(), message));
        }
    }
    match first {
        Some((id, message)) if failed as f64 > allowed * entries.len() as f64 => {
            let asked = entries.len();
            Err(RetrievalError::TooManyFailures { failed, asked, allowed, id, message })
        }
        _ => Ok(()),
    }
}

/// A deterministic system proves it: asked again, it answers the same.
fn second_pass(
    entries: &[journal::Entry<Ranking>],
    questions: &[(String, Arc<Question>)],
    engine: &dyn engines::Engine,
) -> Control {
    let again: BTreeMap<&str, Ranking> = questions
        .iter()
        .map(|(id, question)| {
            let ranked = engine.search(&question.query, question.limit);
            (id.as_str(), Ranking { ranked })
        })
        .collect();
    let same = entries.iter().all(|entry| match &entry.outcome {
        journal::Outcome::Answer(ranking) => again.get(entry.id.as_str()) == Some(ranking),
        journal::Outcome::Failure { .. } => false,
    });
    Control {
        name: "second-pass".to_owned(),
        expected: "a second pass gives identical rankings".to_owned(),
        metrics: Vec::new(),
        ok: same,
    }
}

fn conventions(entry: &Entry) -> BTreeMap<String, String> {
    [
        ("order", "as answered; no tie rule is applied".to_owned()),
        (
            "relevant",
            "labels 1 and 2; a label 0 is a hard negative; unlabelled is not relevant".to_owned(),
        ),
        ("gain", "linear".to_owned()),
        ("depth", format!("map and mrr are over the {} results asked for", entry.limit)),
        ("unanswered", "no score, counted, and fatal beyond max_errors".to_owned()),
        ("interval", "bootstrap over servers for means, Wilson for rates, 95 %".to_owned()),
    ]
    .into_iter()
    .map(|(name, rule)| (name.to_owned(), rule))
    .collect()
}

fn warnings(entry: &Entry, items: &[report::Item], anomalies: &score::Anomalies) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some((id, _)) = anomalies.unknown_ids.first_key_value() {
        let times: usize = anomalies.unknown_ids.values().sum();
        warnings.push(format!(
            "{} answered ids are not in the corpus ({times} times; first: {id}); they count as \
             wrong results",
            anomalies.unknown_ids.len()
        ));
    }
    if let Some(first) = anomalies.unjudged.first() {
        warnings.push(format!(
            "{} queries have no relevant label and no score (first: {first})",
            anomalies.unjudged.len()
        ));
    }
    let failed = items.iter().filter(|item| item.error.is_some()).count();
    if failed > 0 {
        warnings.push(format!("{failed} queries have no score because they were not answered"));
    }
    if entry.runs == 1 && !entry.system.is_builtin() {
        warnings.push(
            "one run: if the system's answers vary, set runs to 5 or more so that the gate \
             takes the variation into account"
                .to_owned(),
        );
    }
    warnings
}
