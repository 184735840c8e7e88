//! What can be wrong with a file, said so that the reader can mend it.
//!
//! Every message names the file first, then the place, then what to do. Names and keys come from
//! the file, so they are made printable and clipped before they are shown.

use std::io;
use std::path::{Path, PathBuf};

use crate::text::{clip, printable};

/// Why a file could not be read as what it should be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// There is no such file.
    #[error("{}: no such file; check the path", name(path))]
    NotFound {
        /// The file.
        path: PathBuf,
    },
    /// The path leads to a folder.
    #[error("{}: this is a folder; name a file in it", name(path))]
    IsFolder {
        /// The folder.
        path: PathBuf,
    },
    /// The operating system refused to read.
    #[error("{}: cannot be read: {source}", name(path))]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Compressed data is damaged or cut short.
    #[error(
        "{}: damaged {format} data ({}); fetch or compress it again",
        name(path),
        shown(message)
    )]
    Compression {
        /// The file.
        path: PathBuf,
        /// `gzip` or `zstd`.
        format: &'static str,
        /// What the decoder said.
        message: String,
    },
    /// The file (after decompression) is larger than allowed.
    #[error("{}: larger than {}, which is the limit; split it or leave out what is not needed", name(path), size(*limit))]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit in bytes.
        limit: u64,
    },
    /// One line is longer than allowed.
    #[error("{}:{line}: this line is longer than {}, which is the limit; is this a file with one record per line?", name(path), size(*limit as u64))]
    LineTooLong {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// The limit in bytes.
        limit: usize,
    },
    /// The text is not UTF-8.
    #[error("{}:{line}: not UTF-8 at byte {offset} of the file; {hint}", name(path))]
    NotUtf8 {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// Bytes before the first wrong one, in the (decompressed) file.
        offset: u64,
        /// What to do.
        hint: &'static str,
    },
    /// The file name does not say what the file holds.
    #[error(
        "{}: unknown kind of file; use .json, .jsonl, .ndjson, .yaml, .yml or .toml (.gz and .zst may follow)",
        name(path)
    )]
    UnknownFormat {
        /// The file.
        path: PathBuf,
    },
    /// The text breaks the rules of its format.
    #[error("{}:{line}:{column}: {}", name(path), shown(message))]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// The character in the line, counted from 1.
        column: u64,
        /// What is wrong.
        message: String,
    },
    /// Lists and objects are nested deeper than allowed.
    #[error(
        "{}:{line}: nested deeper than {limit} levels, which is the limit; flatten the data",
        name(path)
    )]
    TooDeep {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// The limit.
        limit: usize,
    },
    /// YAML aliases multiply the data beyond the limit.
    #[error(
        "{}:{line}: the aliases of this YAML expand to more than is allowed; write the values out",
        name(path)
    )]
    Expands {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
    },
    /// An object has a key twice.
    #[error("{}:{line}: the key `{}` is given twice; remove one", name(path), shown(key))]
    DuplicateKey {
        /// The file.
        path: PathBuf,
        /// The line of the second one, counted from 1.
        line: u64,
        /// The key.
        key: String,
    },
    /// A key that does not belong here.
    #[error("{}:{line}: unknown key `{}`{}", name(path), shown(key), advice(nearest.as_deref(), known))]
    UnknownKey {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// The key as written.
        key: String,
        /// The known key that looks most like it.
        nearest: Option<String>,
        /// All keys that may stand here.
        known: Vec<String>,
    },
    /// A word that is not one of the choices.
    #[error("{}:{line}: unknown value `{}`{}", name(path), shown(value), advice(nearest.as_deref(), known))]
    UnknownChoice {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// The value as written.
        value: String,
        /// The known value that looks most like it.
        nearest: Option<String>,
        /// All values that may stand here.
        known: Vec<String>,
    },
    /// The text is well formed, but does not hold what is expected: a wrong type, a missing key.
    #[error("{}:{line}:{column}: {}", name(path), shown(message))]
    Mismatch {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// The character in the line, counted from 1.
        column: u64,
        /// What was found and what was expected.
        message: String,
    },
    /// The data has the right shape but breaks a rule (an unknown tool in a label, say).
    #[error("{}: {}: {}", name(path), shown(place), shown(message))]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Where, in the words of the file: `query q-017`, `files."corpus.json"`.
        place: String,
        /// What is wrong and what to do.
        message: String,
    },
    /// The file was written by a later Karat.
    #[error(
        "{}: written as `{}`, this Karat reads up to `{supported}`; use a newer Karat",
        name(path),
        shown(found)
    )]
    NewerSchema {
        /// The file.
        path: PathBuf,
        /// What the file says.
        found: String,
        /// What is supported.
        supported: String,
    },
}

impl InputError {
    /// The file that is meant.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::NotFound { path }
            | Self::IsFolder { path }
            | Self::Io { path, .. }
            | Self::Compression { path, .. }
            | Self::TooLarge { path, .. }
            | Self::LineTooLong { path, .. }
            | Self::NotUtf8 { path, .. }
            | Self::UnknownFormat { path }
            | Self::Syntax { path, .. }
            | Self::TooDeep { path, .. }
            | Self::Expands { path, .. }
            | Self::DuplicateKey { path, .. }
            | Self::UnknownKey { path, .. }
            | Self::UnknownChoice { path, .. }
            | Self::Mismatch { path, .. }
            | Self::Invalid { path, .. }
            | Self::NewerSchema { path, .. } => path,
        }
    }

    /// The line that is meant, counted from 1, where the error has one.
    #[must_use]
    pub fn line(&self) -> Option<u64> {
        match self {
            Self::LineTooLong { line, .. }
            | Self::NotUtf8 { line, .. }
            | Self::Syntax { line, .. }
            | Self::TooDeep { line, .. }
            | Self::Expands { line, .. }
            | Self::DuplicateKey { line, .. }
            | Self::UnknownKey { line, .. }
            | Self::UnknownChoice { line, .. }
            | Self::Mismatch { line, .. } => Some(*line),
            _ => None,
        }
    }

    /// An [`InputError::Invalid`], for rules that the caller checks after reading.
    pub fn invalid(path: &Path, place: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Invalid { path: path.to_owned(), place: place.into(), message: message.into() }
    }
}

/// Bytes in the unit a person would use.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["bytes", "KiB", "MiB", "GiB"];
    let mut value = bytes;
    let mut unit = 0;
    while value >= 1024 && value.is_multiple_of(1024) && unit + 1 < UNITS.len() {
        value /= 1024;
        unit += 1;
    }
    format!("{value} {}", UNITS[unit])
}

/// The name of a file as a message shows it.
pub fn name(path: &Path) -> String {
    shown(&path.to_string_lossy())
}

/// Text from the file: on one line, harmless, and not longer than a message may be.
pub fn shown(text: &str) -> String {
    clip(&printable(text), 300).into_owned()
}

fn advice(nearest: Option<&str>, known: &[String]) -> String {
    match (nearest, known) {
        (Some(nearest), _) => format!("; did you mean `{nearest}`?"),
        (None, []) => "; nothing may stand here".to_owned(),
        (None, known) => format!("; expected {}", clip(&known.join(", "), 200)),
    }
}
