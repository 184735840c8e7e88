//! Traces in memory: completed by their tasks, each once, ready to be scored.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use karat_core::dataset::{Dataset, DatasetFiles, Digest};
use karat_core::error::EvalError;
use karat_core::report::DatasetRef;
use karat_io::input::{self, Limits};
use serde_json::Value;

use crate::error::{in_record, nothing_to_score};
use crate::formats::TraceFormat;
use crate::intake::{Intake, ReadStats, TraceSource};
use crate::pipeline;
use crate::read::{Batch, Reader, Record, TraceFiles};
use crate::tasks::Tasks;
use crate::tools::Tools;
use crate::trace::Trace;

/// The number of traces in a report; of more only the means are computed.
pub const MAX_TRACES: usize = 200_000;

/// Traces with their data.
#[derive(Debug)]
pub struct TraceSet {
    /// The traces, sorted by [`Trace::key`].
    pub traces: Vec<Trace>,
    /// Everything else that was found in the files.
    pub stats: ReadStats,
    /// The tasks that the traces are measured against.
    pub reference: DatasetRef,
}

/// A batch, and the records that were read from it with the numbers of their tasks.
#[derive(Default)]
struct Slot {
    batch: Batch,
    records: Vec<(u64, Record, Option<usize>)>,
}

impl TraceSet {
    /// Reads files.
    ///
    /// # Errors
    /// If they cannot be read, too many records are bad, an id is a duplicate, or there is no trace.
    pub fn read(source: &TraceSource<'_>) -> Result<Self, EvalError> {
        let mut reader = Reader::new(source.files);
        let mut intake = Intake::new(*source, usize::MAX);
        let mut traces = Vec::new();
        let work = |slot: &mut Slot| {
            let Slot { batch, records } = slot;
            batch.records(&source.files, |line, mut record| {
                let task = match &mut record {
                    Record::Trace(trace) => source.complete(trace),
                    Record::Bad(_) => None,
                };
                records.push((line, record, task));
            });
        };
        pipeline::run(
            None,
            |slot: &mut Slot| reader.next(&mut slot.batch),
            work,
            |slot| {
                let file = slot.batch.file;
                for (line, record, task) in slot.records.drain(..) {
                    match record {
                        Record::Bad(bad) => intake.bad(file, bad)?,
                        Record::Trace(mut trace) => {
                            intake.trace((file, line), &mut trace, task)?;
                            trace.unknown.clear();
                            push(&mut traces, *trace, &source.files.files[file])?;
                        }
                    }
                }
                Ok(())
            },
        )?;
        let stats = intake.finish(reader.notes)?;
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
        let mut intake =
            Intake::new(TraceSource { files, tasks: None, max_bad: 0.0, prices: None }, usize::MAX);
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
                push(&mut traces, trace, &labels[file])?;
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
    pub fn made(traces: Vec<Trace>, tasks: &Tasks, name: &str) -> Self {
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

fn push(traces: &mut Vec<Trace>, trace: Trace, path: &Path) -> Result<(), EvalError> {
    if traces.len() == MAX_TRACES {
        return Err(EvalError::config(format!(
            "{}: a report takes at most {MAX_TRACES} traces; --means scores any number in one pass",
            path.display()
        )));
    }
    traces.push(trace);
    Ok(())
}

/// The digest of tasks and expectations, not of the traces: two runs of the same tasks are measured on
/// the same data.
fn digest_of(traces: &[Trace]) -> Digest {
    let tasks: BTreeSet<(&str, String)> = traces
        .iter()
        .map(|trace| {
            let expect = trace.expect.as_ref().and_then(|all| serde_json::to_string(&**all).ok());
            let expect = expect.and_then(|text| serde_json::from_str::<Value>(&text).ok());
            (trace.id.as_str(), canonical(&expect.unwrap_or_default()))
        })
        .collect();
    let mut text = String::new();
    for (id, expect) in tasks {
        text.push_str(&format!("{}\t{expect}\n", Value::from(id)));
    }
    Digest::of(text.as_bytes())
}

/// The text of a value with sorted keys.
pub(crate) fn canonical(value: &Value) -> String {
    match value {
        Value::Object(object) => {
            let sorted: BTreeMap<&String, &Value> = object.iter().collect();
            let parts: Vec<String> = sorted
                .into_iter()
                .map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), canonical(value)))
                .collect();
            format!("{{{}}}", parts.join(","))
        }
        Value::Array(all) => {
            let parts: Vec<String> = all.iter().map(canonical).collect();
            format!("[{}]", parts.join(","))
        }
        plain => plain.to_string(),
    }
}
