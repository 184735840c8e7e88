//! Errors in TREC files, with file and line.

use std::io;
use std::path::PathBuf;

/// The reason why files could not be scored or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrecError {
    /// A file cannot be opened or read, or its compressed data is damaged.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A file has only blank lines, or none.
    #[error("{} is empty", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// A line is wrong.
    #[error("{}:{line}: {problem}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The problem.
        problem: LineProblem,
    },
    /// A file that is read more than once changed in between.
    #[error("{} changed while it was being read", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The output cannot be written.
    #[error("cannot write: {0}")]
    Write(#[from] io::Error),
    /// An id cannot be written to a TREC file, whose columns are separated by white space.
    #[error("the id {id:?} cannot be written to a TREC file: it is empty or contains white space")]
    Id {
        /// The id.
        id: String,
    },
}

/// A problem of a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LineProblem {
    /// A wrong number of columns.
    #[error("{found} columns instead of {}: expected `{expected}`", expected.split(' ').count())]
    Columns {
        /// The number of columns.
        found: usize,
        /// The names of the columns.
        expected: &'static str,
    },
    /// A relevance that is not a whole number.
    #[error("the relevance {text} is not a whole number")]
    Relevance {
        /// The text, quoted and shortened.
        text: String,
    },
    /// A score that is not a number, or not a finite one.
    #[error("the score {text} is not a finite number")]
    Score {
        /// The text, quoted and shortened.
        text: String,
    },
    /// A document that the run lists twice for a query.
    #[error("query {query} has the document {document} twice, first on line {first}")]
    DuplicateResult {
        /// The query, quoted and shortened.
        query: String,
        /// The document, quoted and shortened.
        document: String,
        /// The line of its first appearance.
        first: u64,
    },
    /// A document that is judged twice for a query.
    #[error("query {query} has a judgement for the document {document} already, on line {first}")]
    DuplicateJudgement {
        /// The query, quoted and shortened.
        query: String,
        /// The document, quoted and shortened.
        document: String,
        /// The line of its first appearance.
        first: u64,
    },
    /// An id that is not UTF-8.
    #[error("the {column} {text} is not UTF-8")]
    NotUtf8 {
        /// The column.
        column: &'static str,
        /// The text, quoted and shortened.
        text: String,
    },
    /// A line of more than [`MAX_LINE_BYTES`](super::MAX_LINE_BYTES).
    #[error("the line is longer than {} bytes: is this a TREC file?", super::MAX_LINE_BYTES)]
    TooLong,
}

/// Prepares text from a file for a message: quoted, control characters escaped, shortened.
pub(super) fn quote(text: &[u8]) -> String {
    const MAX_SHOWN_CHARS: usize = 60;
    let text = String::from_utf8_lossy(text);
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_a_file_cannot_disturb_a_terminal() {
        assert_eq!(quote(b"a\x1b[2Jb"), "\"a\\u{1b}[2Jb\"");
        assert_eq!(quote(b"\xff"), "\"\u{fffd}\"");
    }

    #[test]
    fn long_text_is_shortened_between_characters() {
        let quoted = quote("é".repeat(100).as_bytes());
        assert_eq!(quoted, format!("\"{}\"…", "é".repeat(60)));
    }

    #[test]
    fn a_message_names_file_line_and_format() {
        let problem = LineProblem::Columns { found: 3, expected: "qid 0 docid relevance" };
        let error = TrecError::Line { path: "judged.txt".into(), line: 7, problem };
        let expected = "judged.txt:7: 3 columns instead of 4: expected `qid 0 docid relevance`";
        assert_eq!(error.to_string(), expected);
    }
}
