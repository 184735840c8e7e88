//! Recordings of agent runs: every exchange with models and servers, one line for each run.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use karat_core::error::EvalError;
use karat_core::report::DatasetRef;
use karat_io::input::{self, Limits, open_for_writing, refuse_links};
use karat_io::text::printable;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::settings::Config;
use super::world::Exchange;
use crate::error::in_line;
use crate::task_digest::canonical;
use crate::tasks::{Task, Tasks};

/// The schema of a recording.
const SCHEMA: &str = "karat.agent-recording/1";

/// The exchanges of a recording, by the key of the run.
#[derive(Debug, Default)]
pub(super) struct Recording {
    pub(super) runs: BTreeMap<String, Vec<Exchange>>,
}

#[derive(Deserialize)]
struct Line {
    trace: Value,
    exchanges: Vec<Exchange>,
}

#[derive(Deserialize)]
struct Key {
    trace: Value,
}

/// A line holds all exchanges of a run, each with the messages before it.
fn limits() -> Limits {
    Limits { line_bytes: 256 << 20, ..Limits::streaming() }
}

/// The head of a recording: everything that making its runs again needs.
#[derive(Serialize, Deserialize)]
pub(super) struct Head {
    schema: String,
    /// The number of runs of each task.
    #[serde(default)]
    pub(super) runs: u32,
    /// The name of the tasks, and their digest.
    #[serde(default)]
    pub(super) dataset: DatasetRef,
    /// The tasks as they were written.
    #[serde(default)]
    tasks: Vec<Value>,
    /// The settings, without addresses, keys and paths.
    pub(super) config: Option<Config>,
}

impl Head {
    pub(super) fn new(config: &Config, runs: u32, tasks: &Tasks, dataset: &DatasetRef) -> Self {
        let value = |text: &str| serde_json::from_str(text).unwrap_or_default();
        Head {
            schema: SCHEMA.to_owned(),
            runs,
            dataset: dataset.clone(),
            tasks: tasks.texts().map(value).collect(),
            config: Some(config.without_surroundings()),
        }
    }

    /// Reads the head of a recording.
    ///
    /// # Errors
    /// If the file is not a recording, or one that does not hold its tasks.
    pub(super) fn load(path: &Path) -> Result<Self, EvalError> {
        let mut lines = input::lines(path, &limits())?;
        let text = lines.next_line()?.map(|(_, text)| text.to_owned()).unwrap_or_default();
        check_head(path, &text)?;
        let head: Head = serde_json::from_str(&text).map_err(|error| in_line(path, 1, error))?;
        match head.config.is_some() && !head.tasks.is_empty() {
            true => Ok(head),
            false => Err(in_line(
                path,
                1,
                "this recording does not hold its tasks; name the tasks, the model and the endpoint as they were",
            )),
        }
    }

    /// The tasks of the recording.
    ///
    /// # Errors
    /// If one is not valid.
    pub(super) fn tasks(&self, path: &Path) -> Result<Tasks, EvalError> {
        let mut tasks = Tasks::default();
        for task in &self.tasks {
            let task = Task::parse(&task.to_string()).and_then(|task| tasks.push(task));
            task.map_err(|error| in_line(path, 1, error))?;
        }
        tasks.digest = self.dataset.digest.parse().ok();
        Ok(tasks)
    }
}

impl Recording {
    /// Reads a recording.
    ///
    /// # Errors
    /// If it is not valid.
    pub(super) fn load(path: &Path) -> Result<Self, EvalError> {
        let mut recording = Recording::default();
        let mut lines = input::lines(path, &limits())?;
        while let Some((number, text)) = lines.next_line()? {
            if number == 1 {
                check_head(path, text)?;
                continue;
            }
            if text.trim().is_empty() {
                continue;
            }
            let read: Line =
                serde_json::from_str(text).map_err(|error| in_line(path, number, error))?;
            let key = canonical(&read.trace);
            if recording.runs.contains_key(&key) {
                let message = format!("the run {} is recorded twice", printable(&key));
                return Err(in_line(path, number, message));
            }
            recording.runs.insert(key, read.exchanges);
        }
        Ok(recording)
    }
}

fn check_head(path: &Path, text: &str) -> Result<(), EvalError> {
    let head: Value = serde_json::from_str(text).unwrap_or_default();
    match head["schema"] == SCHEMA {
        true => Ok(()),
        false => Err(in_line(path, 1, format!("this is not a recording of an agent ({SCHEMA})"))),
    }
}

/// Writes a recording, run by run.
pub(super) struct Recorder {
    path: PathBuf,
    head: Head,
    file: Mutex<Option<File>>,
}

impl Recorder {
    pub(super) fn new(path: PathBuf, head: Head) -> Self {
        Recorder { path, head, file: Mutex::new(None) }
    }

    /// Opens the file. Of an earlier recording only the runs in `keep` stay: a run that was interrupted
    /// before it was in the journal is made again, and would be recorded twice.
    ///
    /// # Errors
    /// If it cannot be written, or an earlier one is not valid.
    pub(super) fn open(&self, keep: Option<&BTreeSet<String>>) -> Result<(), EvalError> {
        let cannot = |error: std::io::Error| EvalError::config(self.cannot(&error));
        refuse_links(&self.path).map_err(EvalError::config)?;
        let fresh = self.path.with_extension("new");
        let file = open_for_writing(&fresh).map_err(EvalError::config)?;
        file.set_len(0).map_err(cannot)?;
        let mut file = BufWriter::new(file);
        serde_json::to_writer(&mut file, &self.head).map_err(|error| cannot(error.into()))?;
        writeln!(file).map_err(cannot)?;
        if let Some(keep) = keep.filter(|_| self.path.exists()) {
            self.copy(keep, &mut file)?;
        }
        file.flush().map_err(cannot)?;
        drop(file);
        std::fs::rename(&fresh, &self.path).map_err(cannot)?;
        let file = OpenOptions::new().append(true).open(&self.path).map_err(cannot)?;
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = Some(file);
        Ok(())
    }

    /// Copies the runs in `keep`. A last line that was cut off by the kill is not one of them.
    fn copy(&self, keep: &BTreeSet<String>, into: &mut impl Write) -> Result<(), EvalError> {
        let mut blocks = input::blocks(&self.path, &limits())?;
        let (mut block, mut line) = (Vec::new(), 0);
        loop {
            blocks.next_block(&mut block).map_err(|error| error.at_line(line + 1))?;
            if block.is_empty() {
                return Ok(());
            }
            for text in block.split_inclusive(|byte| *byte == b'\n') {
                line += 1;
                if line == 1 {
                    check_head(&self.path, &String::from_utf8_lossy(text))?;
                    continue;
                }
                let key = serde_json::from_slice::<Key>(text).ok();
                if key.is_some_and(|key| keep.contains(&canonical(&key.trace))) {
                    into.write_all(text).map_err(|error| EvalError::config(self.cannot(&error)))?;
                }
            }
        }
    }

    fn cannot(&self, error: &std::io::Error) -> String {
        format!("{}: cannot be written: {error}", self.path.display())
    }

    /// Writes a run, so that it is on disk before the journal has it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn write(&self, key: &Value, exchanges: &[Exchange]) -> Result<(), String> {
        let line = format!("{}\n", json!({"trace": key, "exchanges": exchanges}));
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(file) = file.as_mut() else { return Ok(()) };
        file.write_all(line.as_bytes()).map_err(|error| self.cannot(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resumed_recording_keeps_the_runs_of_the_journal_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("recording.jsonl");
        let key = |run: u32| json!({"id": "t", "run": run});
        let head = || Head::new(&Config::default(), 1, &Tasks::default(), &DatasetRef::default());
        let recorder = Recorder::new(path.clone(), head());
        recorder.open(None).unwrap();
        for run in 1..=3 {
            recorder.write(&key(run), &[]).unwrap();
        }
        // The kill cut the last line in the middle of a character.
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.extend(b"{\"trace\":{\"id\":\"\xc3");
        std::fs::write(&path, bytes).unwrap();
        let keep = BTreeSet::from([canonical(&key(1)), canonical(&key(3))]);
        let resumed = Recorder::new(path.clone(), head());
        resumed.open(Some(&keep)).unwrap();
        resumed.write(&key(2), &[]).unwrap();
        let recording = Recording::load(&path).unwrap();
        assert_eq!(recording.runs.len(), 3);
        // Another file is not taken for a recording.
        std::fs::write(&path, "{\"notes\": 1}\n").unwrap();
        let error = resumed.open(Some(&keep)).unwrap_err().to_string();
        assert!(
            error.contains("recording.jsonl:1") && error.contains("not a recording"),
            "{error}"
        );
    }
}
