//! A file as blocks of whole lines.
//!
//! A file may be read more than once (first to find its order), so input that can be read only once,
//! such as a pipe, is read into memory. Compressed data is recognised by its first bytes, not by the
//! name. Memory is one block, which grows only for a long line, up to [`MAX_LINE_BYTES`].

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::read::MultiGzDecoder;

use super::error::{LineProblem, TrecError};

/// The largest number of bytes in a line. A file with a longer one is not a TREC file.
pub const MAX_LINE_BYTES: usize = 1 << 20;

/// The largest number of bytes of an input that can be read only once, because it is kept in memory.
const MAX_PIPE_BYTES: u64 = 512 << 20;
/// The time to wait for the writer of a pipe.
const WRITER_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

/// The number of bytes read at a time. Small enough to stay in the processor's cache.
const BLOCK: usize = 128 << 10;

const GZIP: &[u8] = &[0x1f, 0x8b];
/// Compressions that are recognized and not read, by their first bytes.
const OTHER_COMPRESSIONS: [(&[u8], &str); 3] = [
    (&[0x28, 0xb5, 0x2f, 0xfd], "zstd"),
    (&[0xfd, 0x37, 0x7a, 0x58, 0x5a], "xz"),
    (b"PK\x03\x04", "zip"),
];
/// The number of bytes that tell a compression.
const MARK: u64 = 5;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A file that can be opened any number of times.
pub(super) struct Input {
    path: PathBuf,
    /// The content of an input that can be read only once.
    content: Option<Arc<[u8]>>,
}

impl Input {
    pub(super) fn new(path: &Path) -> Result<Self, TrecError> {
        let failed = |source| TrecError::Read { path: path.to_owned(), source };
        let regular = std::fs::metadata(path).map_err(failed)?.is_file();
        let content = match regular {
            true => {
                File::open(path).map_err(failed)?;
                None
            }
            false => Some(read_once(path).map_err(failed)?.into()),
        };
        Ok(Self { path: path.to_owned(), content })
    }

    /// Opens the file at its first line.
    pub(super) fn open(&self) -> Result<Blocks<'_>, TrecError> {
        let failed = |source| self.read_error(source);
        let mut raw: Box<dyn Read> = match &self.content {
            Some(content) => Box::new(Cursor::new(Arc::clone(content))),
            None => Box::new(File::open(&self.path).map_err(failed)?),
        };
        let mut start = Vec::new();
        raw.by_ref().take(MARK).read_to_end(&mut start).map_err(failed)?;
        if let Some((_, name)) = OTHER_COMPRESSIONS.iter().find(|(mark, _)| start.starts_with(mark))
        {
            return Err(failed(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("it is compressed with {name}; decompress it, or compress it with gzip"),
            )));
        }
        if start.starts_with(GZIP) {
            let whole = Cursor::new(start).chain(raw);
            let decoder = Gzip(MultiGzDecoder::new(whole));
            return Ok(Blocks::new(self, Box::new(decoder), Vec::new()));
        }
        Ok(Blocks::new(self, raw, start))
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

/// Decompressed gzip data, with errors that say so.
struct Gzip<R: Read>(MultiGzDecoder<R>);

impl<R: Read> Read for Gzip<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput
            | io::ErrorKind::InvalidData
            | io::ErrorKind::UnexpectedEof => io::Error::new(
                error.kind(),
                format!(
                    "the gzip data is cut off or damaged ({error}); fetch or compress it again"
                ),
            ),
            _ => error,
        })
    }
}

/// Reads an input that can be read only once, up to [`MAX_PIPE_BYTES`].
fn read_once(path: &Path) -> io::Result<Vec<u8>> {
    // Opening a pipe waits for its writer. The thread is left behind if there is none.
    let (send, opened) = std::sync::mpsc::channel();
    let name = path.to_owned();
    std::thread::spawn(move || send.send(File::open(name)));
    let file = opened.recv_timeout(WRITER_TIMEOUT).unwrap_or_else(|_| {
        let seconds = WRITER_TIMEOUT.as_secs();
        Err(io::Error::other(format!("nothing opened the pipe for writing within {seconds} s")))
    })?;
    let mut content = Vec::new();
    let mut rest = file.take(MAX_PIPE_BYTES + 1);
    loop {
        let before = content.len();
        rest.by_ref().take(BLOCK as u64).read_to_end(&mut content)?;
        if content.len() == before {
            return Ok(content);
        }
        if content.len() as u64 > MAX_PIPE_BYTES {
            let limit = MAX_PIPE_BYTES >> 20;
            return Err(io::Error::other(format!("more than {limit} MiB, and it is not a file")));
        }
        // A device such as /dev/zero never ends, and has no lines.
        if content.len() > MAX_LINE_BYTES && !content.starts_with(GZIP) && !content.contains(&b'\n')
        {
            return Err(io::Error::other("it has no lines"));
        }
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
    source: Box<dyn Read + 'i>,
    content: Content,
    /// The number of lines before the next block. The caller counts them.
    pub(super) lines: u64,
    /// The beginning of a line whose end has not been read yet.
    rest: Vec<u8>,
    first: bool,
}

impl<'i> Blocks<'i> {
    fn new(input: &'i Input, source: Box<dyn Read + 'i>, start: Vec<u8>) -> Self {
        let content = Content::Bytes(Vec::new());
        Self { input, source, content, lines: 0, rest: start, first: true }
    }

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
        if std::mem::take(&mut self.first) && bytes.starts_with(BYTE_ORDER_MARK) {
            bytes.drain(..BYTE_ORDER_MARK.len());
        }
        self.content = Content::Bytes(bytes);
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
    use std::io::Write;

    use super::*;

    fn lines_of(content: &[u8]) -> Result<Vec<Vec<u8>>, TrecError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        std::fs::write(&path, content).unwrap();
        let input = Input::new(&path)?;
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

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
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
    fn compressed_data_is_recognised_by_its_first_bytes() {
        assert_eq!(lines_of(&gzip(b"a\nb\n")).unwrap(), [b"a", b"b"]);
    }

    #[test]
    fn compressed_members_are_read_to_the_last() {
        let members = [gzip(b"a\n"), gzip(b"b\n")].concat();
        assert_eq!(lines_of(&members).unwrap(), [b"a", b"b"]);
    }

    #[test]
    fn damaged_compressed_data_is_an_error_and_not_a_shorter_file() {
        let mut damaged = gzip("line\n".repeat(1000).as_bytes());
        damaged.truncate(damaged.len() - 9);
        let error = lines_of(&damaged).unwrap_err();
        assert!(matches!(error, TrecError::Read { .. }));
        assert!(error.to_string().contains("the gzip data is cut off or damaged ("), "{error}");
    }

    #[test]
    fn a_compression_that_is_not_read_is_named() {
        for (start, name) in [
            (&b"\x28\xb5\x2f\xfd\x04\x58"[..], "zstd"),
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

    #[test]
    fn the_error_for_a_missing_file_shows_its_path() {
        let error = Input::new(Path::new("no/such/file")).err().unwrap();
        assert!(error.to_string().starts_with("cannot read no/such/file: "), "{error}");
    }
}
