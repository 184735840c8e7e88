//! The reasons for which nothing is imported. All of them are bad input.

use std::io;
use std::path::{Path, PathBuf};

use karat_core::dataset::DatasetError;
use karat_core::error::EvalError;
use karat_io::input::{self, InputError, WriteError};

/// The reason for which nothing is imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A file cannot be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A recording cannot be read.
    #[error(transparent)]
    Recording(#[from] EvalError),
    /// The dataset cannot be frozen.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// A folder cannot be read or written.
    #[error("{}: {source}", input::name(path))]
    Io {
        /// The folder.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A file is not what the benchmark writes.
    #[error("{}: expected {expected}; found {found}", input::name(path))]
    Unexpected {
        /// The file.
        path: PathBuf,
        /// The expected content.
        expected: String,
        /// The content that was found.
        found: String,
    },
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl ImportError {
    pub(crate) fn unexpected(
        path: &Path,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> ImportError {
        ImportError::Unexpected {
            path: path.to_owned(),
            expected: expected.into(),
            found: input::shown(&found.into()),
        }
    }

    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> ImportError {
        move |source| ImportError::Io { path: path.to_owned(), source }
    }
}
