//! The errors of a history. Each message says what to do.

use std::path::{Path, PathBuf};

use karat_io::input::{InputError, WriteError};
use karat_io::text::printable;

/// The reason for which a history could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// There is no such file.
    #[error(
        "{}: no history found; create one with `karat history add REPORT.json` or `karat check \
         --history`",
        shown(path)
    )]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The file is something else.
    #[error(
        "{}: not a Karat history ({why}), left unchanged; choose another file with --db or --history=FILE",
        shown(path)
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The evidence.
        why: String,
    },
    /// The file is of a later version of Karat.
    #[error(
        "{}: the history has format {found}, and this version of Karat reads formats up to \
         {supported}; update Karat",
        shown(path)
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The latest format that is supported.
        supported: i64,
    },
    /// The file is damaged.
    #[error(
        "{}: the history is damaged ({why}); restore a copy of it, or move it away and add its reports again with \
         `karat history add`",
        shown(path)
    )]
    Broken {
        /// The file.
        path: PathBuf,
        /// The evidence.
        why: String,
    },
    /// The database failed.
    #[error("{}: {source}", shown(path))]
    Database {
        /// The file.
        path: PathBuf,
        /// The error of the database.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The file is a link, or its folder cannot be created.
    #[error(transparent)]
    Place(#[from] WriteError),
    /// The document of a run is damaged.
    #[error(
        "{}: run {run} is damaged ({why}); remove it with `karat history prune` and add its report \
         again",
        shown(path)
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The run.
        run: i64,
        /// The problem.
        why: String,
    },
    /// There is no such run.
    #[error("no run {id}; `karat history list` shows all runs")]
    NoRun {
        /// The id that was asked for.
        id: i64,
    },
    /// The document to add is not a report.
    #[error(transparent)]
    Input(#[from] InputError),
}

fn shown(path: &Path) -> String {
    printable(&path.to_string_lossy()).into_owned()
}
