//! From a path or bytes to bounded, decompressed bytes and text.
//!
//! Nothing is read beyond the limit, whatever the size of the file, the length of the pipe or the
//! compression ratio. gzip, zstd and xz are recognized by their first bytes, not by the file name.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use super::error::InputError;
use super::limits::Limits;

/// The first bytes of a gzip member, of a zstd frame and of an xz stream.
const GZIP: [u8; 2] = [0x1F, 0x8B];
const ZSTD: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
const XZ: [u8; 4] = [0xFD, 0x37, 0x7A, 0x58];

/// Time to wait for the writer of a named pipe.
const WRITER_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

/// Bytes buffered between the file, the decoder and the reader.
const BUFFER: usize = 64 << 10;

/// A byte stream, decompressed if necessary, and the name of its compression.
pub(super) struct Source<'a> {
    pub(super) reader: Box<dyn BufRead + 'a>,
    compression: Option<&'static str>,
}

impl<'a> Source<'a> {
    /// Opens a file, a pipe or a device.
    ///
    /// Pipes are read like files, so `<(command)` works; a named pipe waits for its writer, as usual. A
    /// regular file beyond the limit is refused before a byte is read.
    pub(super) fn open(path: &Path, limits: &Limits) -> Result<Source<'static>, InputError> {
        Source::of(open_file(path, limits)?).map_err(|error| unreadable(path, None, error))
    }

    /// Reads from anything and recognizes compression.
    pub(super) fn of(mut raw: impl Read + 'a) -> io::Result<Source<'a>> {
        let mut start = Vec::with_capacity(ZSTD.len());
        raw.by_ref().take(ZSTD.len() as u64).read_to_end(&mut start)?;
        let compression = match start.as_slice() {
            start if start.starts_with(&GZIP) => Some("gzip"),
            start if start.starts_with(&ZSTD) => Some("zstd"),
            start if start.starts_with(&XZ) => Some("xz"),
            _ => None,
        };
        let whole = BufReader::with_capacity(BUFFER, Cursor::new(start).chain(raw));
        let reader: Box<dyn BufRead + 'a> = match compression {
            Some("gzip") => {
                let decoder = flate2::bufread::MultiGzDecoder::new(whole);
                Box::new(BufReader::with_capacity(BUFFER, decoder))
            }
            Some("xz") => {
                let decoder = lzma_rust2::XzReader::new(whole, true);
                Box::new(BufReader::with_capacity(BUFFER, decoder))
            }
            Some(_) => {
                let decoder = zstd::stream::read::Decoder::with_buffer(whole)?;
                Box::new(BufReader::with_capacity(BUFFER, decoder))
            }
            None => Box::new(whole),
        };
        Ok(Source { reader, compression })
    }

    /// The error for a failed read: damaged data if the stream is compressed, an error of the system
    /// otherwise.
    pub(super) fn failed(&self, path: &Path, line: Option<u64>, source: io::Error) -> InputError {
        match self.compression {
            Some(format) if is_damage(source.kind()) => {
                let message = source.to_string();
                InputError::Compression { path: path.to_owned(), line, format, message }
            }
            _ => unreadable(path, line, source),
        }
    }

    /// Everything, or an error as soon as it is more than the limit.
    pub(super) fn bytes(mut self, path: &Path, limits: &Limits) -> Result<Vec<u8>, InputError> {
        let mut bytes = Vec::new();
        let one_more = limits.bytes.saturating_add(1);
        match self.reader.by_ref().take(one_more).read_to_end(&mut bytes) {
            Err(error) => Err(self.failed(path, None, error)),
            Ok(_) if bytes.len() as u64 > limits.bytes => {
                Err(InputError::TooLarge { path: path.to_owned(), limit: limits.bytes })
            }
            Ok(_) => Ok(bytes),
        }
    }
}

impl Read for Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buffer).map_err(|error| match self.compression {
            Some(format) if is_damage(error.kind()) => {
                let message = format!(
                    "the {format} data is cut off or damaged ({error}); fetch or compress it again"
                );
                io::Error::new(error.kind(), message)
            }
            _ => error,
        })
    }
}

/// Returns whether an error of a decoder is one of the data.
fn is_damage(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};
    matches!(kind, InvalidInput | InvalidData | UnexpectedEof | Other)
}

pub(super) fn open_file(path: &Path, limits: &Limits) -> Result<File, InputError> {
    // Checked before opening: the error for opening a folder differs between systems.
    let metadata = std::fs::metadata(path).map_err(|error| unreadable(path, None, error))?;
    if metadata.is_dir() {
        return Err(InputError::IsFolder { path: path.to_owned() });
    }
    if metadata.is_file() && metadata.len() > limits.bytes {
        return Err(InputError::TooLarge { path: path.to_owned(), limit: limits.bytes });
    }
    let opened = if metadata.is_file() { File::open(path) } else { open_special(path) };
    opened.map_err(|error| unreadable(path, None, error))
}

/// Opens what may be a named pipe, if a writer does so too in time: without one, opening it would never return.
fn open_special(path: &Path) -> io::Result<File> {
    let (send, opened) = std::sync::mpsc::channel();
    let name = path.to_owned();
    // It is left behind if there is no writer, and ends with this process.
    std::thread::spawn(move || send.send(File::open(name)));
    opened.recv_timeout(WRITER_TIMEOUT).unwrap_or_else(|_| {
        let seconds = WRITER_TIMEOUT.as_secs();
        Err(io::Error::other(format!("nothing opened the pipe for writing within {seconds} s")))
    })
}

pub(super) fn unreadable(path: &Path, line: Option<u64>, source: io::Error) -> InputError {
    let path = path.to_owned();
    match source.kind() {
        // A file where a folder should be, so there is nothing below it.
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => InputError::NotFound { path },
        io::ErrorKind::IsADirectory => InputError::IsFolder { path },
        _ => InputError::Io { path, line, source },
    }
}

/// Opens a file as a stream, decompressed and of any length: bound the memory that you fill from it.
///
/// # Errors
/// If the file cannot be opened. Reading it fails if its data is damaged.
pub fn open(path: &Path) -> Result<impl Read + use<>, InputError> {
    Source::open(path, &Limits::streaming())
}

/// Reads a whole file, decompressed.
///
/// # Errors
/// If the file is missing, unreadable, damaged or too large.
pub fn read_bytes(path: &Path, limits: &Limits) -> Result<Vec<u8>, InputError> {
    Source::open(path, limits)?.bytes(path, limits)
}

/// Reads a whole file without decompressing it.
///
/// # Errors
/// If the file is missing, unreadable or too large.
pub fn read_raw(path: &Path, limits: &Limits) -> Result<Vec<u8>, InputError> {
    let file = open_file(path, limits)?;
    Source { reader: Box::new(BufReader::new(file)), compression: None }.bytes(path, limits)
}

/// Reads a whole file as UTF-8 text, decompressed and without byte order mark.
///
/// # Errors
/// As [`read_bytes`], and if the text is not UTF-8.
pub fn read_text(path: &Path, limits: &Limits) -> Result<String, InputError> {
    into_text(path, read_bytes(path, limits)?)
}

/// As [`read_text`] for bytes in memory; messages show `name` as the path.
///
/// # Errors
/// As [`read_text`].
///
/// # Examples
///
/// ```
/// use karat_io::input::{Limits, decode};
///
/// assert_eq!(decode("a.txt", b"\xEF\xBB\xBFtext", &Limits::default())?, "text");
/// let limits = Limits { bytes: 3, ..Limits::default() };
/// assert!(decode("a.txt", b"text", &limits).is_err());
/// # Ok::<(), karat_io::input::InputError>(())
/// ```
pub fn decode(name: &str, bytes: &[u8], limits: &Limits) -> Result<String, InputError> {
    into_text(Path::new(name), read_stream(name, bytes, limits)?)
}

/// As [`read_bytes`] for any reader, such as standard input; messages show `name` as the path.
///
/// # Errors
/// If reading fails, or the data is damaged or too large.
pub fn read_stream(name: &str, reader: impl Read, limits: &Limits) -> Result<Vec<u8>, InputError> {
    let path = Path::new(name);
    Source::of(reader).map_err(|error| unreadable(path, None, error))?.bytes(path, limits)
}

pub(super) const BYTE_ORDER_MARK: &str = "\u{FEFF}";

fn into_text(path: &Path, bytes: Vec<u8>) -> Result<String, InputError> {
    let mut text = String::from_utf8(bytes).map_err(|error| {
        let (good, _) = error.as_bytes().split_at(error.utf8_error().valid_up_to());
        let line = 1 + memchr::memchr_iter(b'\n', good).count() as u64;
        let start = memchr::memrchr(b'\n', good).map_or(0, |newline| newline + 1);
        not_utf8(path, line, good.len() - start, error.as_bytes())
    })?;
    if text.starts_with(BYTE_ORDER_MARK) {
        text.drain(..BYTE_ORDER_MARK.len());
    }
    Ok(text)
}

/// The error for text that is not UTF-8, with the likely reason. `good` bytes of the line are UTF-8, and
/// `start` is the beginning of the file if the first line is the wrong one.
pub(super) fn not_utf8(path: &Path, line: u64, good: usize, start: &[u8]) -> InputError {
    let utf16 = start.starts_with(&[0xFF, 0xFE]) || start.starts_with(&[0xFE, 0xFF]);
    let hint = if line == 1 && good == 0 && utf16 {
        "the file looks like UTF-16: save it as UTF-8"
    } else {
        "save the file as UTF-8"
    };
    InputError::NotUtf8 { path: path.to_owned(), line, column: good as u64 + 1, hint }
}
