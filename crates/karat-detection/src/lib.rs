//! Detection evaluation: does a scanner catch attacks and stay quiet otherwise?
//!
//! Stations: [`dataset`] (the labelled threat corpus, with its [`audit`]), [`system`] (built-in
//! [`detectors`] and adapters under [`systems`]), [`decision`] (what counts as flagged), [`score`]
//! (verdicts to scored entries), [`controls`], and [`run()`], which puts them in line and returns the
//! report. [`score_verdicts`] does the same with verdicts that were made elsewhere.

pub mod aggregate_metrics;
pub mod audit;
pub mod controls;
pub mod dataset;
pub mod decision;
mod definition;
pub mod detectors;
pub mod score;
pub mod system;
pub mod systems;
pub mod tuning_guard;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use karat_core::dataset::DatasetError;
use karat_core::gate::Policy;
use karat_core::journal::{self, Identity, Journal, JournalError, Outcome};
use karat_core::provenance::Stopwatch;
use karat_core::report::{self, Control, Evaluation, Report, SystemRef};
use karat_core::run::{self, Excess, RunError, Surroundings};
use karat_io::input::InputError;
use karat_metrics::stats;
use serde::{Deserialize, Serialize};

use crate::dataset::Dataset;
use crate::decision::Decision;
use crate::score::Scored;
use crate::system::{Answer, Exhibit, Stated, SystemConfig, questions};
use crate::systems::verdicts::Verdicts;

/// One `[[detection]]` entry of a project.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its name; unique among the detection entries.
    pub name: String,
    /// A dataset folder, or `bundled:threats/v2`.
    #[serde(default)]
    pub dataset: Option<String>,
    /// A corpus file instead of a folder.
    #[serde(default)]
    pub corpus: Option<PathBuf>,
    /// A tools dataset whose tools serve as plain benign entries; the caller reads it.
    #[serde(default)]
    pub benign_from: Option<String>,
    /// What is measured.
    pub system: SystemConfig,
    /// How often each entry is asked about; 1 for a system that always answers the same.
    #[serde(default = "default_runs")]
    pub runs: u32,
    /// The seed of the bootstrap and of permutations.
    #[serde(default)]
    pub seed: u64,
    /// How many entries are under way at once.
    #[serde(default = "default_concurrency")]
    pub concurrency: usize,
    /// How long an answer may take, in milliseconds.
    #[serde(default = "default_timeout_ms")]
    pub timeout_ms: u64,
    /// How often a failed question is asked again.
    #[serde(default)]
    pub retries: u32,
    /// The committed reference scores.
    #[serde(default)]
    pub baseline: Option<PathBuf>,
    /// What must hold.
    #[serde(default)]
    pub gate: Policy,
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
pub enum DetectionError {
    /// A file is not what it should be.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A dataset is not what it should be.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// The corpus has entries that cannot be measured on.
    #[error("{dataset}: {first}{}", and_more(*.more))]
    Refused {
        /// Which corpus.
        dataset: String,
        /// The first of them, with the reason.
        first: String,
        /// How many more there are.
        more: usize,
    },
    /// The entry contradicts itself.
    #[error("system: {0}")]
    System(String),
    /// No such detector.
    #[error("system: there is no built-in detector {name:?}; there are: {}", detector_names())]
    UnknownDetector {
        /// What was written.
        name: String,
    },
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The system could not be started, or did not do its work.
    #[error("the system did not do its work: {0}")]
    NotStarted(String),
    /// The system was lost, or there was nothing to ask.
    #[error(transparent)]
    Run(RunError),
    /// More entries have no verdict than are allowed.
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
    /// Not one entry has a verdict.
    #[error("the system gave no verdict on any of {asked} entries: {why}")]
    NoVerdicts {
        /// How many were asked about.
        asked: usize,
        /// What came instead.
        why: String,
    },
}

fn too_many(failed: usize, asked: usize, allowed: f64) -> String {
    if failed == asked {
        return format!("none of {asked} entries has a verdict");
    }
    format!("{failed} of {asked} entries have no verdict, more than the allowed share {allowed}")
}

fn and_more(more: usize) -> String {
    if more == 0 { String::new() } else { format!(" (and {more} more)") }
}

impl From<RunError> for DetectionError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Journal(error) => DetectionError::Journal(error),
            other => DetectionError::Run(other),
        }
    }
}

impl DetectionError {
    /// Whether nothing was measured although the input was right.
    pub fn is_not_measured(&self) -> bool {
        matches!(
            self,
            DetectionError::NotStarted(_)
                | DetectionError::Run(_)
                | DetectionError::TooManyFailures { .. }
                | DetectionError::NoVerdicts { .. }
        )
    }
}

fn detector_names() -> String {
    let mut names = vec![detectors::COMBINED];
    names.extend(detectors::DETECTORS.iter().map(|detector| detector.name));
    names.join(", ")
}

/// Measures one scanner: asks about every entry, scores, averages, runs the controls.
///
/// # Errors
/// When the input is wrong, or when nothing could be measured.
pub async fn run(
    entry: &Entry,
    dataset: &Dataset,
    surroundings: &Surroundings<'_>,
) -> Result<Report, DetectionError> {
    let stopwatch = Stopwatch::start();
    let identity = Identity {
        schema: journal::SCHEMA.to_owned(),
        evaluation: Evaluation::Detection,
        name: entry.name.clone(),
        dataset: dataset.reference.clone(),
        system: entry.system.reference()?,
        runs: entry.runs,
        seed: entry.seed,
    };
    // Started before the journal is touched: a scanner that does not work leaves the old one alone.
    let timeout = Duration::from_millis(entry.timeout_ms);
    let scanner =
        Arc::new(entry.system.start(dataset, surroundings.folder, entry.runs, timeout).await?);
    let (journal, known) = if surroundings.resume {
        Journal::resume::<Answer>(surroundings.journal, &identity)?
    } else {
        (Journal::create(surroundings.journal, &identity)?, Vec::new())
    };
    let questions = questions(dataset);
    let options = run::Options {
        runs: entry.runs,
        concurrency: entry.concurrency,
        timeout,
        retries: entry.retries,
        ..run::Options::default()
    };
    let entries = run::collect(
        Arc::clone(&scanner),
        &questions,
        &options,
        Some(journal),
        known,
        surroundings.listener,
    )
    .await?;

    let mut controls = controls::run(dataset);
    if entry.system.is_builtin() {
        let by_id: BTreeMap<&str, &Exhibit> =
            questions.iter().map(|(id, exhibit)| (id.as_str(), &**exhibit)).collect();
        controls.push(controls::second_pass(&entries, |id| scanner.repeat(by_id.get(id)?)));
    }
    let mut warnings = scanner.notes();
    if entry.runs == 1 && entry.system.may_vary() {
        warnings.push(
            "one run: if the scanner's verdicts vary, set runs to 5 or more so that the gate takes \
             the variation into account"
                .to_owned(),
        );
    }
    let measured = Measurement {
        name: &entry.name,
        dataset,
        system: identity.system,
        decision: entry.system.decision(),
        runs: entry.runs,
        seed: entry.seed,
        max_errors: entry.gate.max_errors,
        entries: &entries,
        times: scanner.times().map(<[Duration]>::to_vec),
        controls,
        warnings,
    };
    measured.report(&stopwatch, Some(surroundings.folder))
}

/// How verdicts that were made elsewhere are scored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScoreOptions {
    /// The name of the report; the file's name where empty.
    pub name: String,
    /// What counts as flagged.
    pub decision: Decision,
    /// The seed of the bootstrap.
    pub seed: u64,
    /// The largest share of entries that may be without a verdict.
    pub max_errors: f64,
}

/// Scores a file of verdicts against a corpus; no system is asked.
///
/// # Errors
/// When the file is wrong, contradicts the corpus, or has too few verdicts.
pub fn score_verdicts(
    dataset: &Dataset,
    verdicts: &Path,
    options: &ScoreOptions,
) -> Result<Report, DetectionError> {
    let stopwatch = Stopwatch::start();
    let loaded = Verdicts::load(verdicts, dataset)?;
    let config = SystemConfig {
        verdicts: Some(verdicts.to_owned()),
        decision: options.decision.clone(),
        ..SystemConfig::default()
    };
    let entries: Vec<journal::Entry<Answer>> = dataset
        .samples
        .iter()
        .map(|sample| journal::Entry {
            run: 0,
            id: sample.id.clone(),
            nanos: 0,
            outcome: match loaded.answer(&sample.id) {
                Ok(answer) => Outcome::Answer(answer),
                Err(failure) => Outcome::Failure {
                    class: failure.class.name().to_owned(),
                    message: failure.message,
                },
            },
        })
        .collect();
    if entries.is_empty() {
        return Err(DetectionError::Run(RunError::Nothing));
    }
    let mut warnings = Vec::new();
    if let Some(first) = loaded.unknown.first() {
        warnings.push(format!(
            "{} verdicts are on entries that the corpus does not have (first: {first})",
            loaded.unknown.len()
        ));
    }
    let stem = verdicts.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name =
        if options.name.is_empty() { stem.unwrap_or_default() } else { options.name.clone() };
    let measured = Measurement {
        name: &name,
        dataset,
        system: config.reference()?,
        decision: config.decision(),
        runs: 1,
        seed: options.seed,
        max_errors: options.max_errors,
        entries: &entries,
        // Nothing was asked, so nothing took time.
        times: Some(Vec::new()),
        controls: controls::run(dataset),
        warnings,
    };
    measured.report(&stopwatch, None)
}

/// What was observed, ready to be scored.
struct Measurement<'a> {
    name: &'a str,
    dataset: &'a Dataset,
    system: SystemRef,
    decision: Decision,
    runs: u32,
    seed: u64,
    max_errors: f64,
    entries: &'a [journal::Entry<Answer>],
    /// How long the answers took, where the journal does not know.
    times: Option<Vec<Duration>>,
    controls: Vec<Control>,
    warnings: Vec<String>,
}

impl Measurement<'_> {
    fn report(
        self,
        stopwatch: &Stopwatch,
        folder: Option<&Path>,
    ) -> Result<Report, DetectionError> {
        allow(self.entries, &self.decision, self.max_errors)?;
        let scored = score::score(self.dataset, self.entries, &self.decision, self.runs, self.seed);
        if scored.verdicts == 0 {
            let why = without_verdicts(self.entries, &self.decision);
            return Err(DetectionError::NoVerdicts { asked: self.entries.len(), why });
        }
        let mut warnings = self.warnings;
        warnings.extend(remarks(self.dataset, &scored));
        let latencies = self.times.unwrap_or_else(|| {
            self.entries.iter().map(|entry| Duration::from_nanos(entry.nanos)).collect()
        });
        Ok(Report {
            schema: report::SCHEMA.to_owned(),
            evaluation: Evaluation::Detection,
            name: self.name.to_owned(),
            dataset: self.dataset.reference.clone(),
            system: self.system,
            runs: self.runs,
            seed: self.seed,
            conventions: conventions(),
            metrics: scored.metrics,
            slices: scored.slices,
            items: scored.items,
            controls: self.controls,
            comparison: None,
            gate: None,
            warnings,
            environment: stopwatch.environment(&latencies, folder),
        })
    }
}

/// Counts entries without a verdict against the allowance. An abstention is a verdict of its own kind.
fn allow(
    entries: &[journal::Entry<Answer>],
    decision: &Decision,
    allowed: f64,
) -> Result<(), DetectionError> {
    match failures(entries, decision, allowed) {
        Some(Excess { failed, asked, id, message }) => {
            Err(DetectionError::TooManyFailures { failed, asked, allowed, id, message })
        }
        None => Ok(()),
    }
}

fn failures(
    entries: &[journal::Entry<Answer>],
    decision: &Decision,
    allowed: f64,
) -> Option<Excess> {
    run::beyond_allowance(entries, allowed, |_, answer| {
        let whole = decision.judge(answer).whole;
        (whole.outcome == Stated::Error)
            .then(|| format!("error: {}", whole.problem.unwrap_or_default()))
    })
}

/// What came of entries of which none has a verdict: nothing was measured then, however many failures are
/// allowed.
fn without_verdicts(entries: &[journal::Entry<Answer>], decision: &Decision) -> String {
    match failures(entries, decision, 0.0) {
        Some(Excess { failed, id, message, .. }) => {
            format!("{failed} failed (first: {id}: {message})")
        }
        None => "all are unsupported".to_owned(),
    }
}

fn conventions() -> BTreeMap<String, String> {
    [
        ("positive", "an entry labelled malicious"),
        ("fpr_hard", "over benign entries of category hard_negative; fpr is over all benign ones"),
        ("unsupported", "an abstention: no score, counted in coverage, not an error"),
        (
            "no verdict",
            "error, time-out or missing: no score, counted, and fatal beyond max_errors",
        ),
        ("undefined", "a quotient without a denominator is null, never 0"),
        (
            "detector/category",
            "attacks of the category and the hard negatives that resemble it; benign ones by themselves",
        ),
        ("tier", "flagged if only findings of at least this severity counted"),
        ("threshold", "flagged if only scores of at least this value counted"),
        ("agreement", "kappa and Jaccard of two detectors' flags, whatever the truth; first run"),
        (
            "adds",
            "share of attacks (recall) and benign entries (fpr) that this detector alone flags",
        ),
        ("interval", "Wilson for rates, bootstrap for the rest (plain benign by server), 95 %"),
    ]
    .into_iter()
    .map(|(name, rule)| (name.to_owned(), rule.to_owned()))
    .collect()
}

/// What a careful reader should know before trusting the numbers.
fn remarks(dataset: &Dataset, scored: &Scored) -> Vec<String> {
    let mut remarks = Vec::new();
    let hard = dataset.samples.iter().filter(|sample| sample.is_hard_negative()).count() as u64;
    match stats::clopper_pearson_upper(0, hard, 0.95) {
        Ok(best) if best > 0.01 => remarks.push(format!(
            "{hard} hard negatives can certify a false-positive rate of {:.1} % at best; 299 without \
             a false alarm would certify 1 %",
            100.0 * best
        )),
        Ok(_) => {}
        Err(_) => remarks.push("there are no hard negatives, so fpr_hard is undefined".to_owned()),
    }
    let mut attacks: BTreeMap<&str, usize> = BTreeMap::new();
    for sample in dataset.samples.iter().filter(|sample| sample.is_malicious()) {
        *attacks.entry(&sample.category).or_default() += 1;
    }
    let small: Vec<String> = attacks
        .iter()
        .filter(|(_, count)| **count < 10)
        .map(|(category, count)| format!("{category} ({count})"))
        .collect();
    if !small.is_empty() {
        remarks.push(format!(
            "few attacks in: {}; read their recall with its interval",
            small.join(", ")
        ));
    }
    if scored.unsupported > 0 {
        remarks.push(format!(
            "{} verdicts are abstentions; the rates are over the others",
            scored.unsupported
        ));
    }
    let failed = scored.items.iter().filter(|item| item.error.is_some()).count();
    if failed > 0 {
        remarks.push(format!("{failed} entries have no score because they have no verdict"));
    }
    remarks
}
