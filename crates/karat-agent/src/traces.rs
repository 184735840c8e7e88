//! The evaluation of recorded traces: an `[[agent]]` entry, or `karat agent score`.

use std::path::PathBuf;

use karat_core::dataset::DatasetFiles;
use karat_core::error::EvalError;
use karat_core::evaluation::{
    Common, Entry, Evaluation, NeverAsked, Observations, Questions, RenamedKey, RunContext, Scored,
    Start,
};
use karat_core::journal::Entry as Outcome;
use karat_core::kind::Kind;
use karat_core::project::{BUNDLED, Root, own_datasets};
use karat_core::report::{DatasetRef, SystemRef};
use serde::{Deserialize, Serialize};

use crate::error::check_scored;
use crate::formats::TraceFormat;
use crate::intake::TraceSource;
use crate::judge::{Labels, Verdicts};
use crate::metric::CallMetric;
use crate::prices::Prices;
use crate::read::{TraceFiles, recognize};
use crate::read_stats::ReadStats;
use crate::report::{self, Scoring};
use crate::scored::{Keep, ScoredSet};
use crate::scores::TraceScorer;
use crate::streaming::Aggregates;
use crate::tasks::Tasks;
use crate::tools::Tools;
use crate::trace::Trace;
use crate::trace_set::TraceSet;

/// The evaluation of recorded traces.
pub struct Traces;

/// An `[[agent]]` entry, apart from the settings that all entries share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// A dataset of traces, instead of files.
    pub dataset: Option<String>,
    /// Files of traces.
    pub traces: Vec<PathBuf>,
    /// The format of the files.
    pub format: TraceFormat,
    /// Files of tasks, for traces that have no expectation of their own.
    pub tasks: Vec<PathBuf>,
    /// The tools that were on offer: datasets of tools, or files.
    pub tools: Vec<String>,
    /// Recorded verdicts of a judge.
    pub verdicts: Option<PathBuf>,
    /// Labels of people, to compare the judge with.
    pub labels: Option<PathBuf>,
    /// The prices of models, for runs whose cost was not recorded.
    pub prices: Option<PathBuf>,
    /// The share of records that may be bad.
    pub max_malformed: f64,
}

/// Everything that an entry names, read.
#[derive(Debug)]
pub struct Data {
    /// The traces.
    pub traces: Kept,
    /// The tools that were on offer.
    pub tools: Tools,
    /// The metrics of peers.
    pub metrics: Vec<CallMetric>,
    /// The recorded verdicts of a judge.
    pub verdicts: Option<Verdicts>,
    /// An earlier run of the same tasks, to be compared call by call.
    pub before: Option<Vec<Trace>>,
}

/// The traces as far as they are kept: all of them for a full report, or the means in flat memory.
#[derive(Debug)]
pub enum Kept {
    /// Every trace, scored.
    Traces(ScoredSet),
    /// Sums over the traces.
    Aggregates(Aggregates),
}

impl Kept {
    /// Everything that is known about the traces apart from their scores.
    pub(crate) fn stats(&self) -> &ReadStats {
        match self {
            Kept::Traces(set) => &set.stats,
            Kept::Aggregates(aggregates) => &aggregates.stats,
        }
    }
}

impl Config {
    /// The files of traces, relative to the project.
    pub(crate) fn files(&self, root: &Root<'_>) -> Vec<PathBuf> {
        self.traces.iter().map(|file| root.path(file)).collect()
    }

    /// The prices that are named.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn load_prices(&self, root: &Root<'_>) -> Result<Option<Prices>, EvalError> {
        self.prices.as_ref().map(|file| Prices::load(&root.path(file))).transpose()
    }

    /// The tools that are named.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn load_tools(&self, root: &Root<'_>) -> Result<Tools, EvalError> {
        let mut tools = Tools::default();
        for name in &self.tools {
            let path = root.path(name.as_ref());
            match name.starts_with(BUNDLED) || root.is_bundled() {
                true => tools.load_dataset(root.dataset(name)?)?,
                false if path.is_dir() => tools.load_dataset(DatasetFiles::Folder(path))?,
                false => tools.load(&path)?,
            }
        }
        Ok(tools)
    }

    /// Reads the traces of the files as they are.
    ///
    /// # Errors
    /// If anything is not valid.
    pub fn whole_traces(&self, root: &Root<'_>) -> Result<TraceSet, EvalError> {
        self.with_files(&[], root, TraceSet::read).map(|(set, _)| set)
    }

    /// Passes the files on, and returns what comes of them with the formats of the files.
    fn with_files<T>(
        &self,
        metrics: &[CallMetric],
        root: &Root<'_>,
        read: impl FnOnce(&TraceSource<'_>) -> Result<T, EvalError>,
    ) -> Result<(T, Vec<TraceFormat>), EvalError> {
        let tasks = Tasks::load_any(&self.tasks, root)?;
        let files = self.files(root);
        let formats = recognize(&files, self.format)?;
        let files = TraceFiles { files: &files, formats: &formats, metrics };
        let max_malformed = self.max_malformed;
        let prices = self.load_prices(root)?;
        let (tasks, prices) = (tasks.as_ref(), prices.as_ref());
        let found = read(&TraceSource { files, tasks, max_malformed, prices })?;
        Ok((found, formats))
    }

    /// Reads and scores every trace, and reads everything else that the entry names; `metrics` are those
    /// of peers. `keep` says what stays of a trace.
    ///
    /// # Errors
    /// If anything is not valid.
    pub fn read(
        &self,
        metrics: Vec<CallMetric>,
        keep: Keep,
        root: &Root<'_>,
    ) -> Result<Data, EvalError> {
        let mut tools = self.load_tools(root)?;
        let set = match (&self.dataset, self.traces.is_empty()) {
            (Some(name), true) => {
                let set = TraceSet::open(root.dataset(name)?, &mut tools)?;
                ScoredSet::of(set, &TraceScorer::new(&tools, &metrics), keep)
            }
            (None, false) => {
                let scorer = TraceScorer::new(&tools, &metrics);
                let (mut set, formats) = self
                    .with_files(&metrics, root, |source| ScoredSet::read(source, &scorer, keep))?;
                set.stats.note_recognized(self.format, &formats);
                set
            }
            _ => return Err(EvalError::config("give either `dataset` or `traces`")),
        };
        let verdicts = self.verdicts.as_ref().map(|file| Verdicts::load(&root.path(file)));
        let mut verdicts = verdicts.transpose()?;
        match (&self.labels, &mut verdicts) {
            (None, _) => {}
            (Some(file), Some(verdicts)) => verdicts.labels = Some(Labels::load(&root.path(file))?),
            (Some(_), None) => {
                return Err(EvalError::config("labels are compared with verdicts: give both"));
            }
        }
        Ok(Data { traces: Kept::Traces(set), tools, metrics, verdicts, before: None })
    }

    /// The system that made the traces: the model, if there is one.
    pub fn system(&self, data: &Data) -> SystemRef {
        let stats = data.traces.stats();
        let models = &stats.models;
        let formats: Vec<&str> = stats.formats.iter().map(|format| format.name()).collect();
        let name = match models.len() {
            0 => "recorded traces".to_owned(),
            1 => models.iter().cloned().collect(),
            count => format!("{count} models"),
        };
        SystemRef {
            kind: "file".to_owned(),
            name,
            version: None,
            settings: [("format".to_owned(), formats.join("+"))].into(),
        }
    }
}

impl Data {
    /// The number of runs of every task.
    pub fn runs(&self) -> u32 {
        match &self.traces {
            Kept::Traces(set) => report::runs_of_every_task(&set.traces),
            Kept::Aggregates(_) => 1,
        }
    }
}

impl Evaluation for Traces {
    const KIND: Kind = Kind::Traces;
    const TABLE: &'static str = "agent";
    const TAKES: &'static [&'static str] = &[];
    const RENAMED: &'static [RenamedKey] = &[RenamedKey::new(&["max_bad"], &["max_malformed"])];
    const ITEMS: &'static str = "runs";

    type Config = Config;
    type Dataset = Data;
    type System = NeverAsked<()>;
    type Facts = ();

    fn check(config: &Config, _: &mut Common) -> Result<(), EvalError> {
        match (0.0..=1.0).contains(&config.max_malformed) {
            true => Ok(()),
            false => Err(EvalError::config("`max_malformed` must be between 0 and 1")),
        }
    }

    fn load(config: &Config, _: &Common, root: &Root<'_>) -> Result<Data, EvalError> {
        config.read(CallMetric::usual(), Keep::Scores, root)
    }

    fn reference(data: &Data) -> DatasetRef {
        match &data.traces {
            Kept::Traces(set) => set.reference.clone(),
            Kept::Aggregates(aggregates) => aggregates.reference.clone(),
        }
    }

    fn reads(config: &Config) -> Vec<PathBuf> {
        let tools = config.tools.iter();
        let mut reads = own_datasets(config.dataset.iter().chain(tools));
        reads.extend(
            config
                .traces
                .iter()
                .chain(&config.tasks)
                .chain(&config.verdicts)
                .chain(&config.labels)
                .chain(&config.prices)
                .cloned(),
        );
        reads
    }

    async fn start(entry: &Entry<Traces>, _: &RunContext<'_>) -> Result<Start<Traces>, EvalError> {
        Ok(Start::Recorded {
            // The traces are in the data.
            outcomes: Vec::new(),
            reference: entry.config.system(&entry.data),
            runs: entry.data.runs(),
        })
    }

    fn questions(
        _: &Entry<Traces>,
        _: &NeverAsked<()>,
        _: &mut Vec<Outcome<()>>,
    ) -> Result<Questions<Traces>, EvalError> {
        Ok(Vec::new())
    }

    fn allow(observed: &Observations<'_, Traces>) -> Result<(), EvalError> {
        let stats = observed.entry.data.traces.stats();
        stats.failures.check(stats.runs, observed.entry.common.gate.allowed_errors())
    }

    fn score(observed: &Observations<'_, Traces>) -> Result<Scored, EvalError> {
        let Entry { common, data, .. } = observed.entry;
        match &data.traces {
            Kept::Aggregates(aggregates) => aggregates.scored(),
            Kept::Traces(set) => score_set(&Scoring {
                set,
                tools: &data.tools,
                metrics: &data.metrics,
                verdicts: data.verdicts.as_ref(),
                before: data.before.as_deref(),
                seed: common.seed,
            }),
        }
    }
}

/// Scores traces; recorded ones and those that an agent just made alike.
///
/// # Errors
/// If no score is defined.
pub(crate) fn score_set(scoring: &Scoring<'_>) -> Result<Scored, EvalError> {
    let scored = scoring.scored();
    check_scored(&scored.metrics, &scoring.set.stats, scoring.set.traces.len() as u64)?;
    Ok(scored)
}
