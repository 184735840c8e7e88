//! What can be wrong with a history or with what is added to it. Each message says what to do.

use std::path::PathBuf;

use karat_io::input::InputError;
use karat_io::text::printable;

/// Why a history could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// There is no such file.
    #[error(
        "{}: there is no history here; `karat history add REPORT.json` or `karat check --history` \
         begins one",
        shown(path)
    )]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The file is something else.
    #[error(
        "{}: this is not a history of Karat's ({why}), and it was left as it is; name another file \
         with --db",
        shown(path)
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// How that was seen.
        why: String,
    },
    /// The file is of a later Karat.
    #[error(
        "{}: this history has version {found}, and this Karat knows versions up to {supported}; use \
         a later Karat",
        shown(path)
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The version that is known.
        supported: i64,
    },
    /// The database said no.
    #[error("{}: {source}", shown(path))]
    Database {
        /// The file.
        path: PathBuf,
        /// What it said.
        source: rusqlite::Error,
    },
    /// The folder of the file cannot be made.
    #[error("{}: cannot make the folder: {source}", shown(path))]
    Folder {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// What is in the file does not hold together.
    #[error(
        "{}: run {run} is damaged ({why}); `karat history add` can take its report again after \
             `karat history prune`",
        shown(path)
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The run.
        run: i64,
        /// What is wrong.
        why: String,
    },
    /// There is no such run.
    #[error("there is no run {id}; `karat history list` shows what there is")]
    NoRun {
        /// The id that was asked for.
        id: i64,
    },
    /// What should be added is no report.
    #[error(transparent)]
    Input(#[from] InputError),
}

fn shown(path: &std::path::Path) -> String {
    printable(&path.to_string_lossy()).into_owned()
}
