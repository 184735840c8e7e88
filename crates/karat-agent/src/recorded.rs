//! Traces that were read, ready to be scored: completed by their tasks, each once, what was wrong with
//! the files counted.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use karat_core::dataset::{Dataset, DatasetFiles, Digest};
use karat_core::report::DatasetRef;
use karat_io::input::Limits;
use serde_json::Value;

use crate::error::AgentError;
use crate::metric::CallMetric;
use crate::shapes::{Bad, Read, Shape, Traces};
use crate::tasks::Tasks;
use crate::tools::Tools;
use crate::trace::Trace;

/// How many traces a report may have; more are scored as means alone.
pub const MOST: usize = 200_000;
/// How many bad records are kept in words.
const KEPT: usize = 10;

/// What is read, and how.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The files.
    pub files: &'a [PathBuf],
    /// How they are written.
    pub shape: Shape,
    /// What the traces should have done, if it does not stand in them.
    pub tasks: Option<&'a Tasks>,
    /// Which share of records may be bad.
    pub max_bad: f64,
    /// What is scored on peers' samples as they are.
    pub metrics: &'a [CallMetric],
}

/// What was read.
#[derive(Debug, Default)]
pub struct Recorded {
    /// The traces, sorted by what tells them apart.
    pub traces: Vec<Trace>,
    /// What they are measured against.
    pub reference: Option<DatasetRef>,
    /// Bad records by class.
    pub bad: BTreeMap<&'static str, u64>,
    /// The first of them.
    pub first_bad: Vec<Bad>,
    /// Unknown fields, with how often they came.
    pub unknown: BTreeMap<String, u64>,
    /// What importers want to be known.
    pub notes: BTreeMap<String, u64>,
    /// Traces for which there is no task.
    pub without_task: u64,
    /// Tasks for which there is no trace, in words.
    pub without_trace: Option<String>,
}

impl Recorded {
    /// Reads files.
    ///
    /// # Errors
    /// When they cannot be read, when too many records are bad, or when there is no trace.
    pub fn read(source: &Source<'_>) -> Result<Self, AgentError> {
        let mut recorded = Recorded::default();
        let mut places = BTreeMap::new();
        for path in source.files {
            let mut traces = Traces::open(path, source.shape, source.metrics)?;
            while let Some(read) = traces.next_trace()? {
                match read {
                    Read::Trace(line, trace) => {
                        recorded.add(path, line, *trace, source.tasks, &mut places)?;
                    }
                    Read::Bad(bad) => recorded.add_bad(path, bad, source.max_bad)?,
                }
            }
            for (note, count) in traces.notes() {
                *recorded.notes.entry(note).or_default() += count;
            }
        }
        recorded.finish(source)
    }

    /// Reads the traces of a dataset: every file below `traces/`; tools below `tools/` are added.
    ///
    /// # Errors
    /// When the dataset is not what it should be.
    pub fn open(files: DatasetFiles, tools: &mut Tools) -> Result<Self, AgentError> {
        let boxed = |error| AgentError::Dataset(Box::new(error));
        let dataset = Dataset::of(files).map_err(boxed)?;
        let has_tools =
            dataset.manifest().files.keys().any(|path| path.as_str().starts_with("tools/"));
        if has_tools {
            tools.add_dataset(&dataset)?;
        }
        let mut recorded = Recorded::default();
        let mut places = BTreeMap::new();
        for path in dataset.manifest().files.keys() {
            if !path.as_str().starts_with("traces/") {
                continue;
            }
            let bytes = dataset.bytes(path, &Limits::default()).map_err(boxed)?;
            let label = dataset.files().label(path.as_str());
            let text = karat_io::input::decode(path.as_str(), &bytes, &Limits::default())
                .map_err(AgentError::Input)?;
            for (line, text) in (1..).zip(text.lines()) {
                if text.trim().is_empty() {
                    continue;
                }
                let trace = Trace::parse(text).map_err(|error| AgentError::Invalid {
                    path: label.clone(),
                    line,
                    place: error.place,
                    message: error.message,
                })?;
                recorded.add(&label, line, trace, None, &mut places)?;
            }
        }
        recorded.sort();
        recorded.reference = Some(DatasetRef {
            id: dataset.id().to_owned(),
            version: dataset.version().to_string(),
            digest: dataset.digest().to_string(),
        });
        recorded.some(Path::new(dataset.id()))
    }

    /// Traces that were made just now, on these tasks.
    ///
    /// # Errors
    /// When there are none.
    pub fn made(traces: Vec<Trace>, tasks: &Tasks, name: &str) -> Result<Self, AgentError> {
        let mut recorded = Recorded { traces, ..Recorded::default() };
        recorded.sort();
        recorded.reference = Some(DatasetRef {
            id: name.to_owned(),
            version: "tasks".to_owned(),
            digest: tasks.digest.unwrap_or_else(|| recorded.digest()).to_string(),
        });
        recorded.some(Path::new(name))
    }

    fn add(
        &mut self,
        path: &Path,
        line: u64,
        mut trace: Trace,
        tasks: Option<&Tasks>,
        places: &mut BTreeMap<String, u64>,
    ) -> Result<(), AgentError> {
        if let Some(tasks) = tasks
            && !tasks.complete(&mut trace)
        {
            self.without_task += 1;
        }
        if let Some(first_line) = places.insert(format!("{:?}", trace.key()), line) {
            let (path, id) = (path.to_owned(), trace.id);
            return Err(AgentError::DuplicateId { path, line, first_line, id });
        }
        if self.traces.len() == MOST {
            return Err(AgentError::Usage(format!(
                "{}: more than {MOST} traces are too many for a report with every item; --means \
                 scores them in one pass",
                path.display()
            )));
        }
        for (name, count) in std::mem::take(&mut trace.unknown) {
            *self.unknown.entry(name).or_default() += count;
        }
        self.traces.push(trace);
        Ok(())
    }

    fn add_bad(&mut self, path: &Path, bad: Bad, max_bad: f64) -> Result<(), AgentError> {
        // With no allowance the first one ends it, with its place.
        if max_bad <= 0.0 {
            return Err(AgentError::Invalid {
                path: path.to_owned(),
                line: bad.line,
                place: String::new(),
                message: format!("{} ({})", bad.message, bad.class),
            });
        }
        *self.bad.entry(bad.class).or_default() += 1;
        if self.first_bad.len() < KEPT {
            self.first_bad.push(bad);
        }
        Ok(())
    }

    fn finish(mut self, source: &Source<'_>) -> Result<Self, AgentError> {
        let bad: u64 = self.bad.values().sum();
        let all = self.traces.len() as u64 + bad;
        let first = source.files.first().map(PathBuf::as_path).unwrap_or(Path::new(""));
        if all > 0 && bad as f64 / all as f64 > source.max_bad {
            let classes: Vec<String> =
                self.bad.iter().map(|(class, count)| format!("{class} {count}")).collect();
            let words = self.first_bad.first().map_or("", |bad| bad.message.as_str());
            return Err(AgentError::Invalid {
                path: first.to_owned(),
                line: self.first_bad.first().map_or(1, |bad| bad.line),
                place: String::new(),
                message: format!(
                    "{bad} of {all} records are bad ({}), more than --max-bad allows; first: {words}",
                    classes.join(", ")
                ),
            });
        }
        self.sort();
        let seen: BTreeSet<&str> = self.traces.iter().map(|trace| trace.id.as_str()).collect();
        self.without_trace = source.tasks.and_then(|tasks| tasks.without_trace(&seen));
        let mut id = first.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for end in [".gz", ".zst", ".jsonl", ".json"] {
            id = id.strip_suffix(end).unwrap_or(&id).to_owned();
        }
        let digest = match source.tasks.and_then(|tasks| tasks.digest) {
            Some(digest) => digest,
            None => self.digest(),
        };
        self.reference =
            Some(DatasetRef { id, version: "tasks".to_owned(), digest: digest.to_string() });
        self.some(first)
    }

    fn some(self, path: &Path) -> Result<Self, AgentError> {
        if self.traces.is_empty() {
            return Err(AgentError::nothing(path, &self.notes));
        }
        Ok(self)
    }

    fn sort(&mut self) {
        self.traces.sort_by(|a, b| a.key().cmp(&b.key()));
    }

    /// The digest of what the traces are measured against, not of the traces: two runs of the same
    /// tasks are measured on the same data.
    fn digest(&self) -> Digest {
        let tasks: BTreeSet<(&str, String)> = self
            .traces
            .iter()
            .map(|trace| {
                let expect = trace.expect.as_ref().and_then(|all| serde_json::to_string(all).ok());
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
