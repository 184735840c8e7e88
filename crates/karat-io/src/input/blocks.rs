//! Files as blocks of whole lines, for readers that split lines themselves.
//!
//! The fast path next to [`Lines`](super::Lines): bytes are copied once, from the file into a block whose
//! memory the caller reuses, and blocks can be handed to threads. Blocks are not checked for UTF-8, and
//! line numbers are left to the caller, who sees every line anyway. Memory is one block, which grows only
//! for a long line, up to `limits.line_bytes`.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::error::InputError;
use super::limits::Limits;
use super::source::{BYTE_ORDER_MARK, Source};

/// Bytes that are read before a block is returned.
const BLOCK: usize = 256 << 10;

/// The blocks of a file; see [`blocks`].
pub struct Blocks<'a> {
    path: PathBuf,
    source: Source<'a>,
    limits: Limits,
    /// The start of the line that the last block did not contain to its end.
    rest: Vec<u8>,
    /// Bytes of all blocks so far.
    returned: u64,
    is_start: bool,
    is_done: bool,
    /// An error to report once the lines before it have been returned.
    failure: Option<BlockError>,
}

/// An error in the middle of a file. It gets its line from the caller, who counts them.
#[derive(Debug)]
pub struct BlockError {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Input(InputError),
    LineTooLong { path: PathBuf, limit: usize },
}

impl BlockError {
    /// The error at a line: the one after the last line of the blocks before it, counted from 1.
    #[must_use]
    pub fn at_line(self, at: u64) -> InputError {
        match self.kind {
            Kind::LineTooLong { path, limit } => InputError::LineTooLong { path, line: at, limit },
            Kind::Input(InputError::Io { path, source, .. }) => {
                InputError::Io { path, line: Some(at), source }
            }
            Kind::Input(InputError::Compression { path, format, message, .. }) => {
                InputError::Compression { path, line: Some(at), format, message }
            }
            Kind::Input(other) => other,
        }
    }
}

/// Opens a file (plain, gzip or zstd) to read it in blocks of whole lines.
///
/// `limits.line_bytes` bounds each line, its `\n` excluded, and `limits.bytes` the whole file.
///
/// # Errors
/// If the file cannot be opened.
pub fn blocks(path: &Path, limits: &Limits) -> Result<Blocks<'static>, InputError> {
    Ok(Blocks::new(path, Source::open(path, limits)?, limits))
}

impl<'a> Blocks<'a> {
    fn new(path: &Path, source: Source<'a>, limits: &Limits) -> Self {
        Blocks {
            path: path.to_owned(),
            source,
            limits: *limits,
            rest: Vec::new(),
            returned: 0,
            is_start: true,
            is_done: false,
            failure: None,
        }
    }

    /// Blocks of any reader; messages show `name` as the path.
    ///
    /// # Errors
    /// If the first bytes cannot be read.
    ///
    /// # Examples
    ///
    /// ```
    /// use karat_io::input::{Blocks, Limits};
    ///
    /// let limits = Limits { line_bytes: 8, ..Limits::default() };
    /// let mut blocks = Blocks::of("log.txt", &b"one\ntwo\n"[..], &limits)?;
    /// let mut block = Vec::new();
    /// blocks.next_block(&mut block).map_err(|error| error.at_line(1))?;
    /// assert_eq!(block, b"one\ntwo\n");
    /// # Ok::<(), karat_io::input::InputError>(())
    /// ```
    pub fn of(name: &str, reader: impl Read + 'a, limits: &Limits) -> Result<Self, InputError> {
        let path = Path::new(name);
        let failed = |source| InputError::Io { path: path.to_owned(), line: None, source };
        Ok(Self::new(path, Source::of(reader).map_err(failed)?, limits))
    }

    /// Fills `block` with whole lines and their `\n`, which the last line of the file may lack. Leaves it
    /// empty at the end of the file. A byte order mark at the start of the file is dropped.
    ///
    /// # Errors
    /// If reading fails, a line is too long or the file is too large. All lines before the error have been
    /// returned by then, and nothing follows it.
    pub fn next_block(&mut self, block: &mut Vec<u8>) -> Result<(), BlockError> {
        block.clear();
        block.append(&mut self.rest);
        let mut searched = 0;
        while !self.is_done {
            block.reserve(BLOCK);
            match self.source.reader.by_ref().take(BLOCK as u64).read_to_end(block) {
                Ok(0) => self.is_done = true,
                Ok(_) => {}
                Err(error) => {
                    let error = self.source.failed(&self.path, None, error);
                    self.fail(Kind::Input(error));
                }
            }
            if std::mem::take(&mut self.is_start) && block.starts_with(BYTE_ORDER_MARK.as_bytes()) {
                block.drain(..BYTE_ORDER_MARK.len());
            }
            if self.returned + block.len() as u64 > self.limits.bytes {
                let (path, limit) = (self.path.clone(), self.limits.bytes);
                self.fail(Kind::Input(InputError::TooLarge { path, limit }));
            }
            if self.is_done && self.failure.is_none() {
                break;
            }
            if let Some(end) = memchr::memrchr(b'\n', &block[searched..]) {
                let end = searched + end + 1;
                // After an error nothing is read on, so the start of the next line is not needed.
                if self.failure.is_none() {
                    self.rest.extend_from_slice(&block[end..]);
                }
                block.truncate(end);
                break;
            }
            if self.failure.is_some() {
                block.clear();
                break;
            }
            searched = block.len();
            if block.len() > self.limits.line_bytes {
                block.clear();
                let (path, limit) = (self.path.clone(), self.limits.line_bytes);
                self.fail(Kind::LineTooLong { path, limit });
            }
        }
        self.cut_before_long_line(block);
        if block.is_empty()
            && let Some(failure) = self.failure.take()
        {
            return Err(failure);
        }
        self.returned += block.len() as u64;
        Ok(())
    }

    /// Ends the block, and the file, before a line that is too long. Only a block that is longer than a
    /// line may be can hold one, so this is rarely more than a comparison.
    fn cut_before_long_line(&mut self, block: &mut Vec<u8>) {
        let limit = self.limits.line_bytes;
        if block.len() <= limit {
            return;
        }
        let mut start = 0;
        while start < block.len() {
            let rest = &block[start..];
            let length = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            if length > limit {
                block.truncate(start);
                self.rest.clear();
                let path = self.path.clone();
                self.fail(Kind::LineTooLong { path, limit });
                return;
            }
            start += length + 1;
        }
    }

    fn fail(&mut self, kind: Kind) {
        self.is_done = true;
        self.failure = Some(BlockError { kind });
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Cursor};

    use super::*;

    /// Returns a part of what is asked for at a time, then ends or fails.
    struct Trickle {
        text: Cursor<Vec<u8>>,
        fails: bool,
    }

    impl Read for Trickle {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let part = into.len().div_ceil(3);
            let count = self.text.read(&mut into[..part])?;
            if count == 0 && self.fails {
                return Err(io::ErrorKind::ConnectionReset.into());
            }
            Ok(count)
        }
    }

    /// All text that is returned, and the error at its end.
    fn read(text: &str, limits: Limits, fails: bool) -> (String, Option<InputError>) {
        let reader = Trickle { text: Cursor::new(text.into()), fails };
        let mut blocks = Blocks::of("a", reader, &limits).unwrap();
        let (mut all, mut block) = (String::new(), Vec::new());
        loop {
            match blocks.next_block(&mut block) {
                Ok(()) if block.is_empty() => return (all, None),
                Ok(()) => all += std::str::from_utf8(&block).unwrap(),
                Err(error) => {
                    let line = all.matches('\n').count() as u64 + 1;
                    assert!(blocks.next_block(&mut block).is_ok() && block.is_empty());
                    return (all, Some(error.at_line(line)));
                }
            }
        }
    }

    fn lines_of(bytes: usize) -> Limits {
        Limits { line_bytes: bytes, ..Limits::streaming() }
    }

    #[test]
    fn all_lines_come_out_as_they_went_in() {
        for text in ["", "a", "a\n", "a\n\nb", "\n\n"] {
            assert_eq!(read(text, lines_of(10), false).0, text);
        }
        let long = "line\n".repeat(BLOCK);
        let (all, error) = read(&long, lines_of(10), false);
        assert!(all == long && error.is_none());
    }

    #[test]
    fn a_byte_order_mark_is_dropped_at_the_start_only() {
        assert_eq!(read("\u{feff}a\n\u{feff}b", lines_of(10), false).0, "a\n\u{feff}b");
        assert_eq!(read("\u{feff}", lines_of(10), false).0, "");
    }

    #[test]
    fn a_line_may_be_as_long_as_the_limit_and_no_longer() {
        for ending in ["", "\n", "\nmore\n"] {
            let text = format!("first\n12345{ending}");
            assert_eq!(read(&text, lines_of(5), false).0, text);
            let text = format!("first\n123456{ending}");
            let (all, error) = read(&text, lines_of(5), false);
            assert_eq!(all, "first\n");
            assert!(matches!(error, Some(InputError::LineTooLong { line: 2, limit: 5, .. })));
        }
        let (all, error) = read(&"x".repeat(3 * BLOCK), lines_of(BLOCK), false);
        assert!(all.is_empty());
        assert!(matches!(error, Some(InputError::LineTooLong { line: 1, .. })), "{error:?}");
    }

    #[test]
    fn the_size_of_the_file_is_bounded() {
        let limits = Limits { bytes: 10, ..Limits::default() };
        assert_eq!(read("1234\n1234\n", limits, false).0, "1234\n1234\n");
        let (_, error) = read("1234\n1234\n1", limits, false);
        assert!(matches!(error, Some(InputError::TooLarge { limit: 10, .. })), "{error:?}");
    }

    #[test]
    fn lines_before_an_error_are_returned_first() {
        let (all, error) = read("a\nb\nunfinished", lines_of(100), true);
        assert_eq!(all, "a\nb\n");
        assert!(matches!(error, Some(InputError::Io { line: Some(3), .. })), "{error:?}");
    }
}
