//! What can go wrong while scoring traces, with file and line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use karat_metrics::calls::Kind;
use karat_metrics::calls::json::JsonError;
use thiserror::Error;

/// Why a file of traces could not be scored.
#[derive(Debug, Error)]
pub enum AgentError {
    /// A line is not JSON, or nests too deep.
    #[error("{}:{line}: {source}", path.display())]
    BrokenJson {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        source: JsonError,
    },
    /// A sample lacks a field that scoring needs.
    #[error("{}:{line}: {field} is missing", path.display())]
    MissingField {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The field, with the way to it.
        field: String,
    },
    /// A field holds another kind of value than it should.
    #[error("{}:{line}: {field} should be {expected}, not {found}", path.display())]
    WrongType {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The field, with the way to it.
        field: String,
        /// What it should hold.
        expected: Kind,
        /// What it holds.
        found: Kind,
    },
    /// A field holds a word that is not known there.
    #[error("{}:{line}: {field} is {value:?}, should be one of {known}", path.display())]
    UnknownValue {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The field, with the way to it.
        field: String,
        /// What it holds.
        value: String,
        /// What is known there.
        known: &'static str,
    },
    /// Two samples have the same id.
    #[error("{}:{line}: id {id:?} is already that of line {first_line}", path.display())]
    DuplicateId {
        /// The file.
        path: PathBuf,
        /// The second line with the id, from 1.
        line: u64,
        /// The first line with the id, from 1.
        first_line: u64,
        /// The id.
        id: String,
    },
    /// The file holds no sample. Not a pass: nothing was measured.
    #[error("{}: nothing to score: the file holds no sample", path.display())]
    NothingToScore {
        /// The file.
        path: PathBuf,
    },
    /// A record is not what it should be.
    #[error("{}:{line}: {place}{}{message}", path.display(), if place.is_empty() { "" } else { ": " })]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The way to the field.
        place: String,
        /// What is wrong there.
        message: String,
    },
    /// A file could not be read.
    #[error(transparent)]
    Input(#[from] karat_io::input::InputError),
    /// A dataset is not what it should be.
    #[error(transparent)]
    Dataset(Box<karat_core::dataset::DatasetError>),
    /// Something that is asked for makes no sense.
    #[error("{0}")]
    Usage(String),
    /// Nothing could be measured.
    #[error("{0}")]
    NotMeasured(String),
    /// No metric was asked for.
    #[error("no metric was asked for")]
    NoMetrics,
}

impl AgentError {
    /// A file without a trace, with what its importer says about that.
    pub(crate) fn nothing(path: &Path, notes: &BTreeMap<String, u64>) -> Self {
        if notes.is_empty() {
            return AgentError::NothingToScore { path: path.to_owned() };
        }
        let notes: Vec<String> =
            notes.iter().map(|(note, count)| format!("{count} {note}")).collect();
        AgentError::NotMeasured(format!(
            "{}: nothing to score: {}",
            path.display(),
            notes.join("; ")
        ))
    }

    /// Traces that nothing can be said about, and why they do not even say whether a task was done.
    pub(crate) fn no_score(traces: u64, why: Option<&str>) -> Self {
        let why = why.unwrap_or("nothing is expected");
        AgentError::NotMeasured(format!(
            "not one score is defined; whether a task was done is not known from {traces} traces: {why}"
        ))
    }

    /// Whether nothing was measured although the input was right.
    #[must_use]
    pub fn is_not_measured(&self) -> bool {
        matches!(self, AgentError::NothingToScore { .. } | AgentError::NotMeasured(_))
    }
}
