//! One `[[agent]]` entry of a project: which traces, against which tasks, held to what.

use std::path::PathBuf;

use karat_core::gate::Policy;
use karat_core::provenance::Stopwatch;
use karat_core::report::{DatasetRef, Report, SystemRef};
use serde::{Deserialize, Serialize};

use crate::error::AgentError;
use crate::evaluate::Scoring;
use crate::judge::Verdicts;
use crate::made::Made;
use crate::marks;
use crate::metric::CallMetric;
use crate::recorded::Recorded;
use crate::shapes::Shape;
use crate::tools::Tools;
use crate::trace::Trace;

/// One `[[agent]]` entry of a project.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its name; unique among the agent entries.
    pub name: String,
    /// A dataset of traces; or else files of them.
    #[serde(default)]
    pub dataset: Option<String>,
    /// Files of traces.
    #[serde(default)]
    pub traces: Vec<PathBuf>,
    /// How the files are written.
    #[serde(default)]
    pub format: Shape,
    /// Files of tasks, for traces that carry no expectations.
    #[serde(default)]
    pub tasks: Vec<PathBuf>,
    /// What was on offer: datasets of tools, or files.
    #[serde(default)]
    pub tools: Vec<String>,
    /// Recorded verdicts of a judge.
    #[serde(default)]
    pub verdicts: Option<PathBuf>,
    /// Which share of records may be bad.
    #[serde(default)]
    pub max_bad: f64,
    /// The seed of the bootstrap.
    #[serde(default)]
    pub seed: u64,
    /// The committed reference scores.
    #[serde(default)]
    pub baseline: Option<PathBuf>,
    /// What must hold.
    #[serde(default)]
    pub gate: Policy,
}

/// What an entry names, read.
#[derive(Debug)]
pub struct Loaded {
    /// The traces.
    pub recorded: Recorded,
    /// What was on offer.
    pub tools: Tools,
    /// The metrics of calls, beside ours.
    pub metrics: Vec<CallMetric>,
    /// What a judge said, where it was asked.
    pub verdicts: Option<Verdicts>,
    /// An earlier run of the same tasks, where it is at hand.
    pub before: Option<Vec<Trace>>,
}

impl Loaded {
    /// What the traces are measured against.
    pub fn reference(&self) -> DatasetRef {
        self.recorded.reference.clone().unwrap_or_else(|| DatasetRef {
            id: "traces".to_owned(),
            version: "tasks".to_owned(),
            digest: String::new(),
        })
    }
}

/// Scores what was read.
///
/// # Errors
/// When more runs could not be made than the gate allows, or when not one score is defined.
pub fn run(entry: &Entry, loaded: &Loaded) -> Result<Report, AgentError> {
    let made: Made = loaded.recorded.traces.iter().collect();
    made.within(entry.gate.max_errors)?;
    let stopwatch = Stopwatch::start();
    let scoring = Scoring {
        name: &entry.name,
        tools: &loaded.tools,
        metrics: &loaded.metrics,
        verdicts: loaded.verdicts.as_ref(),
        before: loaded.before.as_deref(),
        seed: entry.seed,
        system: system(entry, &loaded.recorded),
    };
    let report = scoring.report(&loaded.recorded, &stopwatch);
    if report.metrics.iter().any(|metric| metric.value.is_some()) {
        return Ok(report);
    }
    let why = report.metric("task.success").and_then(|metric| metric.undefined.as_deref());
    Err(AgentError::no_score(made.runs, why))
}

/// The metrics that are scored where nobody asks for others.
pub fn usual_metrics() -> Vec<CallMetric> {
    marks::peer_metrics()
}

/// Who acted: the model, where there is one.
fn system(entry: &Entry, recorded: &Recorded) -> SystemRef {
    let models: std::collections::BTreeSet<&str> =
        recorded.traces.iter().filter_map(|trace| trace.model.as_deref()).collect();
    let name = match models.len() {
        0 => "recorded traces".to_owned(),
        1 => models.into_iter().collect(),
        n => format!("{n} models"),
    };
    SystemRef {
        kind: "file".to_owned(),
        name,
        version: None,
        settings: [("format".to_owned(), entry.format.name().to_owned())].into(),
    }
}
