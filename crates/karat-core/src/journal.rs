//! The run journal: what a system answered, on disk as soon as it is known.
//!
//! One line for each answer, written with a single write, so that a run killed at any moment leaves
//! at most one torn line, the last. `--resume` reads the lines back and asks only for what is
//! missing. A journal belongs to one run: its first line names dataset, system, seed and number of
//! runs, and a journal of another run is refused rather than mixed in.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::kind::Kind;
use crate::report::{DatasetRef, SystemRef};
use crate::run::{Event, Listener, RunError};

/// The name of the journal format.
pub const SCHEMA: &str = "karat.journal/2";

/// The longest line that is read back; a longer one was not written by us.
const MAX_LINE: u64 = 256 << 20;

/// The identity of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The kind of report.
    pub kind: Kind,
    /// The entry of the project.
    pub name: String,
    /// On which data.
    pub dataset: DatasetRef,
    /// Of which system, with its settings.
    pub system: SystemRef,
    /// The number of runs.
    pub runs: u32,
    /// With which seed.
    pub seed: u64,
}

/// One answered question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry<A> {
    /// The run, from 0.
    pub run: u32,
    /// The item.
    pub id: String,
    /// The time the answer took, in nanoseconds.
    pub nanos: u64,
    /// The answer, or the final failure.
    pub outcome: Outcome<A>,
}

/// An answer, or the failure in its place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome<A> {
    /// The system answered.
    Answer(A),
    /// It did not, after all retries.
    Failure {
        /// The class of the failure.
        class: String,
        /// A description of the failure.
        message: String,
    },
}

/// An error of a journal.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file cannot be read or written.
    #[error("{path}: cannot {doing} the run journal: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// `read`, `create` or `append to`.
        doing: &'static str,
        /// The reason.
        source: std::io::Error,
    },
    /// It is of another run.
    #[error(
        "{path}: this journal is of another run ({difference}); run without --resume to start anew"
    )]
    OtherRun {
        /// The file.
        path: PathBuf,
        /// The difference.
        difference: String,
    },
    /// A line in the middle cannot be read.
    #[error(
        "{path}:{line}: this is not a journal line: {message}; run without --resume to start anew"
    )]
    Broken {
        /// The file.
        path: PathBuf,
        /// The line.
        line: u64,
        /// The problem.
        message: String,
    },
    /// Another process is writing to it.
    #[error("{path}: another run is writing to this journal; wait for it or use another --out")]
    InUse {
        /// The file.
        path: PathBuf,
    },
}

/// A journal that is open for appending.
pub struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Starts a new journal, replacing an older one.
    pub fn create(path: &Path, identity: &Identity) -> Result<Journal, JournalError> {
        let io = |source| JournalError::Io { path: path.to_owned(), doing: "create", source };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(io)?;
        }
        let file =
            OpenOptions::new().write(true).create(true).truncate(false).open(path).map_err(io)?;
        lock(path, &file)?;
        file.set_len(0).map_err(io)?;
        let mut journal = Journal { path: path.to_owned(), file };
        journal.write_line(identity)?;
        Ok(journal)
    }

    /// Opens the journal of an interrupted run and returns what it already holds. Without a file,
    /// or with one in which not even the first line is whole, this is a new run.
    pub fn resume<A: DeserializeOwned>(
        path: &Path,
        identity: &Identity,
    ) -> Result<(Journal, Vec<Entry<A>>), JournalError> {
        let io = |source| JournalError::Io { path: path.to_owned(), doing: "read", source };
        let mut file = match OpenOptions::new().read(true).write(true).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok((Journal::create(path, identity)?, Vec::new()));
            }
            Err(error) => return Err(io(error)),
        };
        lock(path, &file)?;

        let (whole, entries) = read_entries(path, &mut BufReader::new(&file), identity)?;
        if whole == 0 {
            drop(file);
            return Ok((Journal::create(path, identity)?, Vec::new()));
        }
        // What follows the last whole line was torn by the kill: cut it off before appending.
        file.set_len(whole).map_err(io)?;
        file.seek(SeekFrom::End(0)).map_err(io)?;
        Ok((Journal { path: path.to_owned(), file }, entries))
    }

    /// Appends one answer.
    pub fn append<A: Serialize>(&mut self, entry: &Entry<A>) -> Result<(), JournalError> {
        self.write_line(entry)
    }

    fn write_line<T: Serialize>(&mut self, value: &T) -> Result<(), JournalError> {
        let io = |source| JournalError::Io { path: self.path.clone(), doing: "append to", source };
        let mut line = serde_json::to_vec(value).map_err(|error| io(error.into()))?;
        line.push(b'\n');
        self.file.write_all(&line).map_err(io)
    }
}

impl<A: Serialize> Listener<A> for Journal {
    fn on(&mut self, event: &Event<'_, A>) -> Result<(), RunError> {
        match event {
            Event::Answered(entry) => Ok(self.append(entry)?),
            Event::Started { .. } | Event::Finished => Ok(()),
        }
    }
}

fn lock(path: &Path, file: &File) -> Result<(), JournalError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(std::fs::TryLockError::WouldBlock) => {
            Err(JournalError::InUse { path: path.to_owned() })
        }
        // A file system without locks: then two runs at once are the user's business.
        Err(std::fs::TryLockError::Error(_)) => Ok(()),
    }
}

/// Reads the whole lines and says where the last one ends. Pure but for the reader.
pub fn read_entries<A: DeserializeOwned>(
    path: &Path,
    reader: &mut impl BufRead,
    identity: &Identity,
) -> Result<(u64, Vec<Entry<A>>), JournalError> {
    let broken =
        |line, message: String| JournalError::Broken { path: path.to_owned(), line, message };
    let mut entries: BTreeMap<(u32, String), Entry<A>> = BTreeMap::new();
    let mut whole = 0;
    let mut buffer = Vec::new();
    for line in 1.. {
        buffer.clear();
        let read =
            reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut buffer).map_err(|source| {
                JournalError::Io { path: path.to_owned(), doing: "read", source }
            })?;
        if buffer.last() != Some(&b'\n') {
            if read as u64 == MAX_LINE {
                return Err(broken(line, format!("longer than {MAX_LINE} bytes")));
            }
            break;
        }
        if line == 1 {
            let found: Identity =
                serde_json::from_slice(&buffer).map_err(|error| broken(line, error.to_string()))?;
            if let Some(difference) = difference(&found, identity) {
                return Err(JournalError::OtherRun { path: path.to_owned(), difference });
            }
        } else {
            let entry: Entry<A> =
                serde_json::from_slice(&buffer).map_err(|error| broken(line, error.to_string()))?;
            if entry.run >= identity.runs {
                return Err(broken(line, format!("run {} of {}", entry.run, identity.runs)));
            }
            entries.insert((entry.run, entry.id.clone()), entry);
        }
        whole += read as u64;
    }
    Ok((whole, entries.into_values().collect()))
}

fn difference(found: &Identity, expected: &Identity) -> Option<String> {
    let differs = |what: &str, found: &dyn std::fmt::Display, expected: &dyn std::fmt::Display| {
        Some(format!("{what} {found} there, {expected} here"))
    };
    if found.schema != expected.schema {
        return differs("format", &found.schema, &expected.schema);
    }
    if found.kind != expected.kind || found.name != expected.name {
        return differs(
            "entry",
            &format_args!("{} {}", found.kind, found.name),
            &format_args!("{} {}", expected.kind, expected.name),
        );
    }
    if found.dataset != expected.dataset {
        return differs(
            "dataset",
            &format_args!(
                "{} {} {}",
                found.dataset.id, found.dataset.version, found.dataset.digest
            ),
            &format_args!(
                "{} {} {}",
                expected.dataset.id, expected.dataset.version, expected.dataset.digest
            ),
        );
    }
    if found.system != expected.system {
        return Some("the system or its settings differ".to_owned());
    }
    if found.runs != expected.runs {
        return differs("runs", &found.runs, &expected.runs);
    }
    if found.seed != expected.seed {
        return differs("seed", &found.seed, &expected.seed);
    }
    None
}
