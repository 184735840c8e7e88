//! A file as batches of whole lines.
//!
//! Decompresses by the first bytes, drops a byte-order mark, and cuts the stream into batches that
//! end with a line, so that they can be scored apart. Holds one batch and one unfinished line, which
//! must not grow beyond the limit. Does not look into the lines.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;

use crate::error::Compression;

/// How much is read before a batch is handed out.
const BATCH: usize = 1 << 18;

/// The lines of a file.
pub(crate) struct Lines {
    stream: Box<dyn Read>,
    compression: Option<Compression>,
    /// The unfinished line behind the last batch.
    rest: Vec<u8>,
    line_limit: usize,
    is_start: bool,
    is_done: bool,
    /// An error that is reported once the lines before it are handed out.
    failure: Option<InputError>,
}

/// Why there are no more lines.
#[derive(Debug)]
pub(crate) enum InputError {
    Read(io::Error),
    Damaged(Compression, io::Error),
    LineTooLong,
}

impl Lines {
    /// Opens a file, compressed or not.
    pub(crate) fn open(path: &Path, line_limit: usize) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let mut head = Vec::new();
        file.by_ref().take(4).read_to_end(&mut head)?;
        let compression = match head[..] {
            [0x1f, 0x8b, ..] => Some(Compression::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd] => Some(Compression::Zstd),
            _ => None,
        };
        let whole = Cursor::new(head).chain(file);
        let stream: Box<dyn Read> = match compression {
            None => Box::new(whole),
            Some(Compression::Gzip) => Box::new(flate2::bufread::MultiGzDecoder::new(
                BufReader::with_capacity(BATCH, whole),
            )),
            Some(Compression::Zstd) => Box::new(zstd::stream::read::Decoder::new(whole)?),
        };
        Ok(Self::new(stream, compression, line_limit))
    }

    fn new(stream: Box<dyn Read>, compression: Option<Compression>, line_limit: usize) -> Self {
        Lines {
            stream,
            compression,
            rest: Vec::new(),
            line_limit,
            is_start: true,
            is_done: false,
            failure: None,
        }
    }

    /// Fills `batch` with whole lines, the last one of the file with or without its line end; leaves
    /// it empty if there are none left. What was read whole before an error is handed out first.
    pub(crate) fn next_batch(&mut self, batch: &mut Vec<u8>) -> Result<(), InputError> {
        batch.clear();
        batch.append(&mut self.rest);
        let mut searched = 0;
        while !self.is_done {
            batch.reserve(BATCH);
            match (&mut self.stream).take(BATCH as u64).read_to_end(batch) {
                Ok(0) => self.is_done = true,
                Ok(_) => {}
                Err(error) => self.fail(error),
            }
            if self.is_start && batch.starts_with("\u{feff}".as_bytes()) {
                batch.drain(..3);
            }
            self.is_start = false;
            if self.is_done && self.failure.is_none() {
                return Ok(());
            }
            if let Some(end) = memchr::memrchr(b'\n', &batch[searched..]) {
                let end = searched + end + 1;
                self.rest.extend_from_slice(&batch[end..]);
                batch.truncate(end);
                return Ok(());
            }
            searched = batch.len();
            if batch.len() > self.line_limit {
                self.is_done = true;
                self.failure = Some(InputError::LineTooLong);
            }
        }
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }

    fn fail(&mut self, error: io::Error) {
        self.is_done = true;
        self.failure = Some(match self.compression {
            Some(compression) => InputError::Damaged(compression, error),
            None => InputError::Read(error),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives out a part of what is asked for at a time, then ends or fails.
    struct Trickle {
        text: Cursor<Vec<u8>>,
        fails: bool,
    }

    impl Read for Trickle {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let part = into.len().div_ceil(3);
            let count = self.text.read(&mut into[..part])?;
            if count == 0 && self.fails {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            Ok(count)
        }
    }

    fn batches(text: &str, limit: usize, fails: bool) -> (String, Option<InputError>) {
        let stream = Box::new(Trickle { text: Cursor::new(text.into()), fails });
        let mut lines = Lines::new(stream, None, limit);
        let (mut all, mut batch) = (String::new(), Vec::new());
        loop {
            match lines.next_batch(&mut batch) {
                Ok(()) if batch.is_empty() => return (all, None),
                Ok(()) => all += std::str::from_utf8(&batch).unwrap(),
                Err(error) => return (all, Some(error)),
            }
        }
    }

    #[test]
    fn all_lines_come_out_as_they_went_in() {
        for text in ["", "a", "a\n", "a\n\nb", "\n\n"] {
            assert_eq!(batches(text, 10, false).0, text);
        }
        let long = "line\n".repeat(BATCH);
        let (all, error) = batches(&long, 10, false);
        assert!(all == long && error.is_none());
    }

    #[test]
    fn a_byte_order_mark_is_dropped_at_the_start_only() {
        assert_eq!(batches("\u{feff}a\n\u{feff}b", 10, false).0, "a\n\u{feff}b");
        assert_eq!(batches("\u{feff}", 10, false).0, "");
    }

    #[test]
    fn a_line_that_never_ends_is_given_up() {
        let text = "x".repeat(3 * BATCH);
        let (all, error) = batches(&text, BATCH, false);
        assert!(all.is_empty() && matches!(error, Some(InputError::LineTooLong)), "{error:?}");
    }

    #[test]
    fn lines_before_an_error_are_handed_out_first() {
        let (all, error) = batches("a\nb\nunfinished", 100, true);
        assert_eq!(all, "a\nb\n");
        assert!(matches!(error, Some(InputError::Read(_))), "{error:?}");
    }
}
