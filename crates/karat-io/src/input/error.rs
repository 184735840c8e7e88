//! Errors of reading files, with messages that say where the mistake is and how to fix it.
//!
//! Every message names the file first, then the place, then the remedy. Names and keys come from the
//! file, so they are made printable and clipped before they are shown.

use std::io;
use std::path::{Path, PathBuf};

use crate::text::{clip, printable};

/// A file that could not be read as what it should be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// There is no such file.
    #[error("{}: no such file; check the path", name(path))]
    NotFound {
        /// The file.
        path: PathBuf,
    },
    /// The path is a folder.
    #[error("{}: is a folder; name a file in it", name(path))]
    IsFolder {
        /// The folder.
        path: PathBuf,
    },
    /// The operating system refused to read.
    #[error("{}: cannot be read: {source}", place(path, *line))]
    Io {
        /// The file.
        path: PathBuf,
        /// The line that could not be read, counted from 1, where lines are read.
        line: Option<u64>,
        /// The error of the system.
        source: io::Error,
    },
    /// Compressed data is cut off or damaged.
    #[error(
        "{}: the {format} data is cut off or damaged ({}); fetch or compress it again",
        place(path, *line),
        shown(message)
    )]
    Compression {
        /// The file.
        path: PathBuf,
        /// The line in which it breaks, counted from 1, where lines are read.
        line: Option<u64>,
        /// `gzip` or `zstd`.
        format: &'static str,
        /// The error of the decoder.
        message: String,
    },
    /// The file (after decompression) is larger than allowed.
    #[error("{}: larger than the maximum of {}; split it or remove unneeded parts", name(path), size(*limit))]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit in bytes.
        limit: u64,
    },
    /// One line is longer than allowed.
    #[error("{}:{line}: this line is longer than the maximum of {}; does the file have one record per line?", name(path), size(*limit as u64))]
    LineTooLong {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// The limit in bytes.
        limit: usize,
    },
    /// The text is not UTF-8.
    #[error("{}:{line}: byte {column} of the line is not UTF-8; {hint}", name(path))]
    NotUtf8 {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// The first wrong byte of the line, counted from 1.
        column: u64,
        /// The remedy.
        hint: &'static str,
    },
    /// The file extension is not a known one.
    #[error(
        "{}: unrecognized file extension; use .json, .jsonl, .ndjson, .yaml, .yml or .toml (.gz, .zst or .xz may follow)",
        name(path)
    )]
    UnknownFormat {
        /// The file.
        path: PathBuf,
    },
    /// The text is not valid in its format.
    #[error("{}:{line}:{column}: {}", name(path), shown(message))]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// The character in the line, counted from 1.
        column: u64,
        /// The mistake.
        message: String,
    },
    /// Lists and objects are nested deeper than allowed.
    #[error(
        "{}:{line}: nested deeper than the maximum of {limit} levels; flatten the data",
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
        "{}:{line}: the YAML aliases expand to too many values; write the values out",
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
        /// All keys that are allowed here.
        known: Vec<String>,
    },
    /// A value that is not one of the choices.
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
        /// All values that are allowed here.
        known: Vec<String>,
    },
    /// The text is well formed, but has a wrong type or lacks a key.
    #[error("{}:{line}:{column}: {}", name(path), shown(message))]
    Mismatch {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// The character in the line, counted from 1.
        column: u64,
        /// The value that was found and the one that was expected.
        message: String,
    },
    /// The data has the right shape but breaks a rule (an unknown tool in a label, say).
    #[error("{}: {}: {}", name(path), shown(place), shown(message))]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The place in the terms of the file: `query q-017`, `files."corpus.json"`.
        place: String,
        /// The mistake and the remedy.
        message: String,
    },
    /// The file was written by a later Karat.
    #[error(
        "{}: format `{}` is newer than `{supported}`, the latest that this version of Karat reads; update Karat",
        name(path),
        shown(found)
    )]
    NewerSchema {
        /// The file.
        path: PathBuf,
        /// The version of the file.
        found: String,
        /// The newest supported version.
        supported: String,
    },
}

impl InputError {
    /// The file.
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

    /// The line, counted from 1, if the error has one.
    #[must_use]
    pub fn line(&self) -> Option<u64> {
        match self {
            Self::Io { line, .. } | Self::Compression { line, .. } => *line,
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

fn place(path: &Path, line: Option<u64>) -> String {
    match line {
        Some(line) => format!("{}:{line}", name(path)),
        None => name(path),
    }
}

/// A number of bytes in the largest unit that divides it.
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

/// The name of a file as messages show it.
pub fn name(path: &Path) -> String {
    shown(&path.to_string_lossy())
}

/// Text of a file as messages show it: on one line, printable, and short.
pub fn shown(text: &str) -> String {
    clip(&printable(text), 300).into_owned()
}

fn advice(nearest: Option<&str>, known: &[String]) -> String {
    match (nearest, known) {
        (Some(nearest), _) => format!("; did you mean `{nearest}`?"),
        (None, []) => "; no keys are allowed here".to_owned(),
        (None, known) => format!("; expected {}", clip(&known.join(", "), 200)),
    }
}
