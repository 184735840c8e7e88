//! Faults with their place, before the file name is known.

use std::path::Path;

use super::error::InputError;
use super::suggest::{Subject, nearest, unknown_word};
use super::words::plain;

/// A fault at a line and column, both counted from 1.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) line: u64,
    pub(super) column: u64,
    pub(super) kind: FaultKind,
}

#[derive(Debug)]
pub(super) enum FaultKind {
    Syntax(String),
    Mismatch(String),
    TooDeep(usize),
    Expands,
    LineTooLong(usize),
    DuplicateKey(String),
    UnknownKey { key: String, known: Vec<String> },
    UnknownChoice { value: String, known: Vec<String> },
}

impl FaultKind {
    /// Classifies the message of serde for well-formed text that does not fit the type.
    pub(super) fn from_serde(message: &str) -> Self {
        match unknown_word(message) {
            Some(unknown) if unknown.subject == Subject::Key => {
                Self::UnknownKey { key: unknown.word, known: unknown.known }
            }
            Some(unknown) => Self::UnknownChoice { value: unknown.word, known: unknown.known },
            None => Self::Mismatch(plain(message)),
        }
    }
}

impl Fault {
    pub(super) fn at(self, path: &Path) -> InputError {
        let Fault { line, column, kind } = self;
        let path = path.to_owned();
        let closest =
            |word: &str, known: &[String]| nearest(word, known.iter().map(String::as_str));
        match kind {
            FaultKind::Syntax(message) => InputError::Syntax { path, line, column, message },
            FaultKind::Mismatch(message) => InputError::Mismatch { path, line, column, message },
            FaultKind::TooDeep(limit) => InputError::TooDeep { path, line, limit },
            FaultKind::Expands => InputError::Expands { path, line },
            FaultKind::LineTooLong(limit) => InputError::LineTooLong { path, line, limit },
            FaultKind::DuplicateKey(key) => InputError::DuplicateKey { path, line, key },
            FaultKind::UnknownKey { key, known } => {
                let nearest = closest(&key, &known);
                InputError::UnknownKey { path, line, key, nearest, known }
            }
            FaultKind::UnknownChoice { value, known } => {
                let nearest = closest(&value, &known);
                InputError::UnknownChoice { path, line, value, nearest, known }
            }
        }
    }
}

/// Line and column of a byte in a text.
pub(super) fn place(text: &str, byte: usize) -> (u64, u64) {
    let mut byte = byte.min(text.len());
    while !text.is_char_boundary(byte) {
        byte -= 1;
    }
    let before = &text[..byte];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = 1 + memchr::memchr_iter(b'\n', before.as_bytes()).count() as u64;
    (line, 1 + before[line_start..].chars().count() as u64)
}

/// The position of the first byte of a line, counted from 1.
pub(super) fn line_start(text: &str, line: u64) -> usize {
    let Some(newlines_before) = usize::try_from(line).ok().and_then(|line| line.checked_sub(2))
    else {
        return 0;
    };
    memchr::memchr_iter(b'\n', text.as_bytes()).nth(newlines_before).map_or(text.len(), |at| at + 1)
}
