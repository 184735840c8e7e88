//! The reasons for which an evaluation has no report, each with the exit code that follows.

use karat_io::input::{InputError, WriteError};

use crate::dataset::DatasetError;
use crate::journal::JournalError;
use crate::run::{Failures, RunError};

/// The reason for which an evaluation has no report.
#[derive(Debug, thiserror::Error)]
pub enum EvalError {
    /// A file is not valid.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A dataset is not valid.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// A file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The entry or the command contradicts itself.
    #[error("{0}")]
    Config(String),
    /// The system did not start.
    #[error("{0}")]
    NotStarted(String),
    /// The system was lost, or there was nothing to ask.
    #[error(transparent)]
    Run(RunError),
    /// More items lack a usable answer than are allowed.
    #[error("{} (first: {id}: {message})", too_many(*failed, *asked, *allowed, items))]
    TooManyFailures {
        /// The number without a usable answer.
        failed: usize,
        /// The number that was asked.
        asked: usize,
        /// The allowed share.
        allowed: f64,
        /// The word for the items, in the plural: `queries`.
        items: &'static str,
        /// The first of them.
        id: String,
        /// The reason.
        message: String,
    },
    /// Answers came, and nothing in them can be scored.
    #[error("{0}")]
    NothingMeasured(String),
}

fn too_many(failed: usize, asked: usize, allowed: f64, items: &str) -> String {
    if failed == asked {
        return format!("none of {asked} {items} has a valid answer");
    }
    format!(
        "{failed} of {asked} {items} have no usable answer, more than the allowed share {allowed}"
    )
}

impl From<RunError> for EvalError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Journal(error) => EvalError::Journal(error),
            other => EvalError::Run(other),
        }
    }
}

impl Failures {
    /// Holds them to the share `allowed`. `items` is the word for them, in the plural.
    ///
    /// # Errors
    /// If they exceed it.
    pub fn allow(self, allowed: f64, items: &'static str) -> Result<(), EvalError> {
        if !self.exceed(allowed) {
            return Ok(());
        }
        let Failures { failed, asked, id, message } = self;
        Err(EvalError::TooManyFailures { failed, asked, allowed, items, id, message })
    }
}

impl EvalError {
    /// A contradiction in the entry or the command.
    pub fn config(message: impl std::fmt::Display) -> EvalError {
        EvalError::Config(message.to_string())
    }

    /// Returns whether nothing was measured although the input is valid: exit code 3, not 2.
    pub fn is_not_measured(&self) -> bool {
        match self {
            // A dataset without items is the user's to fill.
            EvalError::Run(error) => !matches!(error, RunError::Nothing),
            EvalError::NotStarted(_)
            | EvalError::TooManyFailures { .. }
            | EvalError::NothingMeasured(_) => true,
            _ => false,
        }
    }

    /// Returns whether the journal holds answers that `--resume` can use.
    pub fn is_resumable(&self) -> bool {
        matches!(self, EvalError::Run(RunError::Lost { .. }))
    }
}
