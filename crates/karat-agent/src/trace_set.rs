//! Traces in memory: completed by their tasks, each once, ready to be scored.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use karat_core::dataset::{Dataset, DatasetFiles, Digest};
use karat_core::error::EvalError;
use karat_core::report::DatasetRef;
use karat_io::input::{self, Limits};

use crate::error::{in_record, nothing_to_score};
use crate::formats::TraceFormat;
use crate::intake::{Intake, TraceSource};
use crate::pass::over_traces;
use crate::read::TraceFiles;
use crate::read_stats::ReadStats;
use crate::task_digest::{canonical_expectation, digest, room_for_another};
use crate::tasks::Tasks;
use crate::tools::Tools;
use crate::trace::Trace;

/// Traces with their data.
#[derive(Debug)]
pub struct TraceSet {
    /// The traces, sorted by `Trace::key`.
    pub traces: Vec<Trace>,
    /// Everything else that was found in the files.
    pub stats: ReadStats,
    /// The tasks that the traces are measured against.
    pub reference: DatasetRef,
}

impl TraceSet {
    /// Reads files.
    ///
    /// # Errors
    /// If they cannot be read, too many records are bad, an id is a duplicate, or there is no trace.
    pub fn read(source: &TraceSource<'_>) -> Result<Self, EvalError> {
        let mut intake = Intake::new(*source, usize::MAX);
        let mut traces = Vec::new();
        let work = |trace: Box<Trace>, task: Option<usize>| (trace, task);
        let notes = over_traces(source, None, work, |(file, line), found| {
            let (mut trace, task) = match found {
                Err(bad) => return intake.bad(file, bad),
                Ok(found) => found,
            };
            intake.trace((file, line), &mut trace, task)?;
            trace.unknown.clear();
            room_for_another(traces.len(), &source.files.files[file])?;
            traces.push(*trace);
            Ok(())
        })?;
        let stats = intake.finish(notes)?;
        let digest = source.tasks.and_then(|tasks| tasks.digest);
        Ok(TraceSet::new(traces, stats, source.name(), digest))
    }

    /// Reads the traces of a dataset, every file below `traces/`, and adds the tools below `tools/`.
    ///
    /// # Errors
    /// If the dataset is not valid.
    pub fn open(files: DatasetFiles, tools: &mut Tools) -> Result<Self, EvalError> {
        let dataset = Dataset::of(files)?;
        tools.add_dataset(&dataset)?;
        let paths = dataset.manifest().files.keys();
        let paths: Vec<_> = paths.filter(|path| path.as_str().starts_with("traces/")).collect();
        let labels: Vec<PathBuf> =
            paths.iter().map(|path| dataset.files().label(path.as_str())).collect();
        let formats = vec![TraceFormat::Native; labels.len()];
        let files = TraceFiles { files: &labels, formats: &formats, metrics: &[] };
        let mut intake = Intake::new(
            TraceSource { files, tasks: None, max_malformed: 0.0, prices: None },
            usize::MAX,
        );
        let mut traces = Vec::new();
        for (file, path) in paths.into_iter().enumerate() {
            let bytes = dataset.bytes(path, &Limits::default())?;
            let text = input::decode(path.as_str(), &bytes, &Limits::default())?;
            for (line, text) in (1..).zip(text.lines()) {
                if text.trim().is_empty() {
                    continue;
                }
                let trace = Trace::parse(text);
                let mut trace = trace.map_err(|error| in_record(&labels[file], line, &error))?;
                intake.trace((file, line), &mut trace, None)?;
                trace.unknown.clear();
                room_for_another(traces.len(), &labels[file])?;
                traces.push(trace);
            }
        }
        if traces.is_empty() {
            return Err(nothing_to_score(Path::new(dataset.id()), &BTreeMap::new()));
        }
        let stats = intake.finish(BTreeMap::new())?;
        let mut set = TraceSet::new(traces, stats, String::new(), None);
        set.reference = DatasetRef {
            id: dataset.id().to_owned(),
            version: dataset.version().to_string(),
            digest: dataset.digest().to_string(),
        };
        Ok(set)
    }

    /// Traces that were just made, on these tasks.
    pub(crate) fn made(traces: Vec<Trace>, tasks: &Tasks, name: &str) -> Self {
        let mut stats = ReadStats { runs: traces.len() as u64, ..ReadStats::default() };
        for trace in &traces {
            stats.models.extend(trace.model.clone());
            if let Some(failed) = &trace.failed {
                stats.failures.add(trace, failed);
            }
        }
        TraceSet::new(traces, stats, name.to_owned(), tasks.digest)
    }

    fn new(mut traces: Vec<Trace>, stats: ReadStats, id: String, digest: Option<Digest>) -> Self {
        traces.sort_by(|a, b| a.key().cmp(&b.key()));
        let digest = digest.unwrap_or_else(|| digest_of(&traces)).to_string();
        let reference = DatasetRef { id, version: "tasks".to_owned(), digest };
        TraceSet { traces, stats, reference }
    }
}

fn digest_of(traces: &[Trace]) -> Digest {
    let task = |trace: &Trace| (trace.id.clone(), canonical_expectation(trace.expect.as_deref()));
    digest(&traces.iter().map(task).collect())
}
