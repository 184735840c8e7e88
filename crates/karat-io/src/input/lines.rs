//! Files read line by line, and JSON Lines of one type.
//!
//! Only one line is in memory at a time. Lines end in `\n` or `\r\n`; the last one may lack it. Reading
//! stops at the first error. A line is returned as soon as it has been read, so a pipe can be followed;
//! [`Blocks`](super::Blocks) are faster for large files.

use std::io::{BufRead, Read};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use super::error::InputError;
use super::json;
use super::limits::Limits;
use super::source::{BYTE_ORDER_MARK, Source, not_utf8};

/// The lines of a file; see [`lines`].
pub struct Lines<'a> {
    path: PathBuf,
    source: Source<'a>,
    limits: Limits,
    /// The last line that was read, counted from 1.
    line: u64,
    /// Bytes before this line.
    offset: u64,
    buffer: Vec<u8>,
    done: bool,
}

/// Opens a file (plain, gzip or zstd) to read it line by line.
///
/// `limits.line_bytes` bounds each line and `limits.bytes` the whole file; use [`Limits::streaming`] for
/// files of any length.
///
/// # Errors
/// If the file cannot be opened.
pub fn lines(path: &Path, limits: &Limits) -> Result<Lines<'static>, InputError> {
    Ok(Lines::new(path, Source::open(path, limits)?, limits))
}

impl<'a> Lines<'a> {
    fn new(path: &Path, source: Source<'a>, limits: &Limits) -> Self {
        let (path, limits) = (path.to_owned(), *limits);
        Lines { path, source, limits, line: 0, offset: 0, buffer: Vec::new(), done: false }
    }

    /// Lines of any reader; messages show `name` as the path.
    ///
    /// # Errors
    /// If the first bytes cannot be read.
    ///
    /// # Examples
    ///
    /// ```
    /// use karat_io::input::{Limits, Lines};
    ///
    /// let mut lines = Lines::of("notes.txt", &b"one\r\ntwo"[..], &Limits::default())?;
    /// assert_eq!(lines.next_line()?, Some((1, "one")));
    /// assert_eq!(lines.next_line()?, Some((2, "two")));
    /// assert_eq!(lines.next_line()?, None);
    /// # Ok::<(), karat_io::input::InputError>(())
    /// ```
    pub fn of(name: &str, reader: impl Read + 'a, limits: &Limits) -> Result<Self, InputError> {
        let path = Path::new(name);
        let failed = |source| InputError::Io { path: path.to_owned(), line: None, source };
        Ok(Self::new(path, Source::of(reader).map_err(failed)?, limits))
    }

    /// The next line with its number, or `None` at the end.
    ///
    /// # Errors
    /// If reading fails, a line is too long, the file is too large, or a line is not UTF-8. After an error
    /// there are no more lines.
    pub fn next_line(&mut self) -> Result<Option<(u64, &str)>, InputError> {
        if self.done {
            return Ok(None);
        }
        self.done = true;
        if !self.fill()? {
            return Ok(None);
        }
        let mut line = self.buffer.as_slice();
        line = line.strip_suffix(b"\n").unwrap_or(line);
        line = line.strip_suffix(b"\r").unwrap_or(line);
        let text = std::str::from_utf8(line)
            .map_err(|error| not_utf8(&self.path, self.line, error.valid_up_to(), &self.buffer))?;
        let text = match self.line {
            1 => text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text),
            _ => text,
        };
        self.done = false;
        Ok(Some((self.line, text)))
    }

    /// Reads one line with its end into the buffer; false at the end of the file.
    fn fill(&mut self) -> Result<bool, InputError> {
        self.offset += self.buffer.len() as u64;
        self.buffer.clear();
        self.line += 1;
        // Room for the line end, which does not count.
        let max = self.limits.line_bytes.saturating_add(2);
        loop {
            let available = match self.source.reader.fill_buf() {
                Ok(available) => available,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    return Err(self.source.failed(&self.path, Some(self.line), error));
                }
            };
            if available.is_empty() {
                break;
            }
            let end = memchr::memchr(b'\n', available);
            let used = end.map_or(available.len(), |end| end + 1);
            let room = max - self.buffer.len();
            self.buffer.extend_from_slice(&available[..used.min(room)]);
            self.source.reader.consume(used);
            if used > room {
                return Err(self.too_long());
            }
            if self.offset + self.buffer.len() as u64 > self.limits.bytes {
                let limit = self.limits.bytes;
                return Err(InputError::TooLarge { path: self.path.clone(), limit });
            }
            if end.is_some() {
                break;
            }
        }
        let text = self.buffer.strip_suffix(b"\n").unwrap_or(&self.buffer);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        if text.len() > self.limits.line_bytes {
            return Err(self.too_long());
        }
        Ok(!self.buffer.is_empty())
    }

    fn too_long(&self) -> InputError {
        let limit = self.limits.line_bytes;
        InputError::LineTooLong { path: self.path.clone(), line: self.line, limit }
    }

    /// Reads every line as JSON of one type; blank lines are skipped.
    ///
    /// ```
    /// use karat_io::input::{Limits, Lines};
    ///
    /// let text = "{\"id\": 1}\n\n{\"id\": oops}\n";
    /// let lines = Lines::of("log.jsonl", text.as_bytes(), &Limits::default())?;
    /// let mut records = lines.records::<serde_json::Value>();
    /// assert_eq!(records.next().transpose()?, Some((1, serde_json::json!({"id": 1}))));
    /// let error = records.next().transpose().unwrap_err();
    /// assert_eq!(error.line(), Some(3));
    /// # Ok::<(), karat_io::input::InputError>(())
    /// ```
    pub fn records<T: DeserializeOwned>(self) -> Records<'a, T> {
        Records { lines: self, of: PhantomData }
    }
}

impl Iterator for Lines<'_> {
    type Item = Result<(u64, String), InputError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_line()
            .map(|line| line.map(|(number, text)| (number, text.to_owned())))
            .transpose()
    }
}

/// The records of a JSON Lines file with their line numbers; see [`records`].
pub struct Records<'a, T> {
    lines: Lines<'a>,
    of: PhantomData<fn() -> T>,
}

/// Opens a JSON Lines file to read it record by record.
///
/// # Errors
/// If the file cannot be opened.
pub fn records<T: DeserializeOwned>(
    path: &Path,
    limits: &Limits,
) -> Result<Records<'static, T>, InputError> {
    Ok(lines(path, limits)?.records())
}

impl<T: DeserializeOwned> Iterator for Records<'_, T> {
    type Item = Result<(u64, T), InputError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let depth = self.lines.limits.depth();
            let (number, text) = match self.lines.next_line() {
                Ok(Some(line)) => line,
                Ok(None) => return None,
                Err(error) => return Some(Err(error)),
            };
            if text.trim_ascii().is_empty() {
                continue;
            }
            let record = json::parse_line(text, number, depth);
            let record = record.map_err(|fault| fault.at(&self.lines.path));
            self.lines.done = record.is_err();
            return Some(record.map(|record| (number, record)));
        }
    }
}
