//! A file as blocks of whole lines.
//!
//! A file may be read more than once (first to find its order), so an input is a way to open
//! it. Memory is one block, which grows only for a long line, up to [`MAX_LINE_BYTES`].

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::error::{LineProblem, TrecError};

/// The largest number of bytes in a line. A file with a longer one is not a TREC file.
pub const MAX_LINE_BYTES: usize = 1 << 20;

/// The number of bytes read at a time. Small enough to stay in the processor's cache.
const BLOCK: usize = 128 << 10;

/// Compressions, by their first bytes. They are recognized, and left to the one who opens the file.
const COMPRESSIONS: [(&[u8], &str); 4] = [
    (&[0x1f, 0x8b], "gzip"),
    (&[0x28, 0xb5, 0x2f, 0xfd], "zstd"),
    (&[0xfd, 0x37, 0x7a, 0x58, 0x5a], "xz"),
    (b"PK\x03\x04", "zip"),
];
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

type Open = dyn Fn() -> io::Result<Box<dyn Read>>;

/// A TREC file that can be opened any number of times.
///
/// ```
/// let qrels = trec::Input::new("qrels", || Ok("q1 0 a 1\n".as_bytes()));
/// let run = trec::Input::new("run", || Ok("q1 Q0 a 1 0.5 tag\n".as_bytes()));
/// assert_eq!(trec::score(&qrels, &run, &trec::Options::default(), None)?.evaluated, 1);
/// # Ok::<(), trec::TrecError>(())
/// ```
pub struct Input {
    path: PathBuf,
    open: Box<Open>,
}

impl Input {
    /// A plain file. For a compressed one, or a pipe, which can be read only once, see
    /// [`new`](Self::new).
    ///
    /// ```
    /// let missing = trec::Input::file("no/such/file");
    /// let error = trec::read_run(&missing).unwrap_err();
    /// assert!(error.to_string().starts_with("cannot read no/such/file: "), "{error}");
    /// ```
    pub fn file(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let name = path.clone();
        Self::new(path, move || File::open(&name))
    }

    /// A file that `open` opens at its first byte, decompressed if it is compressed.
    /// Errors show `path`.
    pub fn new<R: Read + 'static>(
        path: impl Into<PathBuf>,
        open: impl Fn() -> io::Result<R> + 'static,
    ) -> Self {
        Self { path: path.into(), open: Box::new(move || Ok(Box::new(open()?))) }
    }

    /// Opens the file at its first line.
    pub(super) fn open(&self) -> Result<Blocks<'_>, TrecError> {
        let source = (self.open)().map_err(|source| self.read_error(source))?;
        Ok(Blocks {
            input: self,
            source,
            content: Content::Bytes(Vec::new()),
            lines: 0,
            rest: Vec::new(),
            first: true,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn line_error(&self, line: u64, problem: LineProblem) -> TrecError {
        TrecError::Line { path: self.path.clone(), line, problem }
    }

    fn read_error(&self, source: io::Error) -> TrecError {
        TrecError::Read { path: self.path.clone(), source }
    }
}

/// Some whole lines of a file, each with its line feed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block<'a> {
    pub(super) bytes: &'a [u8],
    /// The same as text, if it is known to be UTF-8.
    pub(super) text: Option<&'a str>,
}

enum Content {
    Text(String),
    Bytes(Vec<u8>),
}

impl Content {
    /// Takes the memory, to reuse it.
    fn take(&mut self) -> Vec<u8> {
        match std::mem::replace(self, Self::Bytes(Vec::new())) {
            Self::Text(text) => text.into_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

/// The blocks of a file, one at a time.
pub(super) struct Blocks<'i> {
    pub(super) input: &'i Input,
    source: Box<dyn Read>,
    content: Content,
    /// The number of lines before the next block. The caller counts them.
    pub(super) lines: u64,
    /// The beginning of a line whose end has not been read yet.
    rest: Vec<u8>,
    first: bool,
}

impl Blocks<'_> {
    /// Reads the next block and returns its bytes; `None` at the end of the file.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, TrecError> {
        self.read()?;
        let bytes = self.present().bytes;
        Ok((!bytes.is_empty()).then_some(bytes))
    }

    /// Checks once if the block is UTF-8, which saves a check of each column.
    pub(super) fn recognise_text(&mut self) {
        self.content = match String::from_utf8(self.content.take()) {
            Ok(text) => Content::Text(text),
            Err(error) => Content::Bytes(error.into_bytes()),
        };
    }

    /// The block that [`next`](Self::next) read.
    pub(super) fn present(&self) -> Block<'_> {
        match &self.content {
            Content::Text(text) => Block { bytes: text.as_bytes(), text: Some(text) },
            Content::Bytes(bytes) => Block { bytes, text: None },
        }
    }

    fn read(&mut self) -> Result<(), TrecError> {
        let mut bytes = self.content.take();
        bytes.clear();
        bytes.append(&mut self.rest);
        // The beginning of a line may be longer than a block.
        let mut wanted = BLOCK.max(bytes.len() * 2).min(MAX_LINE_BYTES + 1);
        loop {
            self.read_up_to(wanted, &mut bytes)?;
            if std::mem::take(&mut self.first) {
                self.check_start(&mut bytes)?;
            }
            if let Some(last) = memchr::memrchr(b'\n', &bytes) {
                self.rest.extend_from_slice(&bytes[last + 1..]);
                bytes.truncate(last + 1);
                break;
            }
            if bytes.len() > MAX_LINE_BYTES {
                return Err(self.too_long());
            }
            if bytes.len() < wanted {
                // The file ends, perhaps without a line feed after its last line.
                if !bytes.is_empty() {
                    bytes.push(b'\n');
                }
                break;
            }
            // One byte more than a line may have: its line feed.
            wanted = (wanted * 2).min(MAX_LINE_BYTES + 1);
        }
        self.content = Content::Bytes(bytes);
        Ok(())
    }

    /// Removes a byte order mark, and refuses compressed data by its name.
    fn check_start(&self, bytes: &mut Vec<u8>) -> Result<(), TrecError> {
        let packed = COMPRESSIONS.iter().find(|(mark, _)| bytes.starts_with(mark));
        if let Some((_, name)) = packed {
            let message = format!("it is compressed with {name}; decompress it");
            let error = io::Error::new(io::ErrorKind::InvalidData, message);
            return Err(self.input.read_error(error));
        }
        if bytes.starts_with(BYTE_ORDER_MARK) {
            bytes.drain(..BYTE_ORDER_MARK.len());
        }
        Ok(())
    }

    /// Reads until there are as many bytes as wanted. Fewer mean that the file ends.
    fn read_up_to(&mut self, wanted: usize, bytes: &mut Vec<u8>) -> Result<(), TrecError> {
        let mut end = bytes.len();
        bytes.resize(wanted, 0);
        while end < wanted {
            match self.source.read(&mut bytes[end..]) {
                Ok(0) => break,
                Ok(read) => end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.input.read_error(error)),
            }
        }
        bytes.truncate(end);
        Ok(())
    }

    fn too_long(&self) -> TrecError {
        self.input.line_error(self.lines + 1, LineProblem::TooLong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(content: &[u8]) -> Result<Vec<Vec<u8>>, TrecError> {
        let content = content.to_vec();
        let input = Input::new("lines", move || Ok(io::Cursor::new(content.clone())));
        let mut blocks = input.open()?;
        let mut all = Vec::new();
        while let Some(bytes) = blocks.next()? {
            let lines = bytes.split_inclusive(|byte| *byte == b'\n');
            all.extend(lines.map(|line| line.strip_suffix(b"\n").unwrap().to_vec()));
            blocks.lines = all.len() as u64;
            blocks.recognise_text();
            let block = blocks.present();
            assert_eq!(block.text, std::str::from_utf8(block.bytes).ok());
        }
        Ok(all)
    }

    #[test]
    fn the_last_line_needs_no_line_feed() {
        assert_eq!(lines_of(b"a\nb\n").unwrap(), lines_of(b"a\nb").unwrap());
        assert_eq!(lines_of(b"\n\n").unwrap(), [b"", b""]);
        assert!(lines_of(b"").unwrap().is_empty());
    }

    #[test]
    fn lines_across_blocks_stay_whole() {
        let expected: Vec<Vec<u8>> = (0..200_000_u32)
            .map(|n| format!("{n} {}", "é".repeat(n as usize % 7)).into_bytes())
            .collect();
        assert!(expected.iter().map(Vec::len).sum::<usize>() > 4 * BLOCK);
        assert_eq!(lines_of(&expected.join(&b'\n')).unwrap(), expected);
    }

    #[test]
    fn compressed_data_is_refused_by_name() {
        for (start, name) in [
            (&b"\x1f\x8b\x08\x00"[..], "gzip"),
            (b"\x28\xb5\x2f\xfd\x04\x58", "zstd"),
            (b"\xfd7zXZ\x00", "xz"),
            (b"PK\x03\x04\x14\x00", "zip"),
        ] {
            let error = lines_of(start).unwrap_err().to_string();
            let expected = format!("it is compressed with {name}; decompress it");
            assert!(error.contains(&expected), "{error}");
        }
        assert_eq!(lines_of(b"PK\n\n1\n").unwrap(), [&b"PK"[..], b"", b"1"]);
    }

    #[test]
    fn a_byte_order_mark_is_not_part_of_the_first_id() {
        assert_eq!(lines_of(b"\xef\xbb\xbfq1 x\n").unwrap(), [b"q1 x"]);
    }

    #[test]
    fn a_line_of_the_maximum_length_is_accepted_and_a_longer_one_is_not() {
        let longest = vec![b'x'; MAX_LINE_BYTES];
        for after in ["", "\n", "\nmore\n"] {
            let content = [b"first\n", &longest[..], after.as_bytes()].concat();
            assert_eq!(lines_of(&content).unwrap()[1].len(), MAX_LINE_BYTES, "{after:?}");
        }
        for after in ["x", "x\n", "x\nmore\n"] {
            let content = [b"first\n", &longest[..], after.as_bytes()].concat();
            let error = lines_of(&content).unwrap_err();
            let expected =
                TrecError::Line { path: PathBuf::new(), line: 2, problem: LineProblem::TooLong };
            assert!(error.to_string().ends_with(&expected.to_string()), "{error}");
        }
    }
}
