//! The files of a folder or of an archive (tar, also compressed; zip), one after the other.
//!
//! One file is in memory at a time, and each is bounded. Nothing is unpacked to disk, so names that
//! lead out of the archive are only names.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use super::error::InputError;
use super::limits::Limits;
use super::source::{Source, open_file, unreadable};

/// The size of a block of a tar file.
const BLOCK: usize = 512;
/// The deepest folder that is looked into.
const MAX_FOLDERS: usize = 64;
/// The most bytes of a name in an archive, and of the directory of a zip file.
const MAX_NAME: u64 = 64 << 10;
const MAX_DIRECTORY: u64 = 256 << 20;

/// A file of a folder or archive.
pub struct Member<'a> {
    /// The path inside the folder or archive, with `/`.
    pub name: &'a str,
    /// The bytes.
    pub bytes: &'a [u8],
}

/// Calls `visit` with every file whose name is `wanted`; folders in the order of names, archives in
/// their own order. A file that is not an archive is the only member.
///
/// # Errors
/// If something cannot be read, is damaged or too large, or `visit` fails.
///
/// # Examples
///
/// ```
/// use karat_io::input::{InputError, Limits, members};
///
/// let folder = tempfile::tempdir()?;
/// std::fs::write(folder.path().join("a.json"), "{}")?;
/// std::fs::write(folder.path().join("b.txt"), "text")?;
/// let mut names = Vec::new();
/// members::<InputError>(folder.path(), &Limits::default(), |name| name.ends_with(".json"), |member| {
///     names.push(member.name.to_owned());
///     Ok(())
/// })?;
/// assert_eq!(names, ["a.json"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn members<E: From<InputError>>(
    path: &Path,
    limits: &Limits,
    wanted: impl Fn(&str) -> bool,
    mut visit: impl FnMut(Member<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let metadata = fs::metadata(path).map_err(|error| unreadable(path, None, error))?;
    let mut reading =
        Reading { path, limits, wanted: &wanted, visit: &mut visit, bytes: Vec::new() };
    if metadata.is_dir() {
        return reading.folder(path, "", 0);
    }
    let mut file = open_file(path, &Limits { bytes: u64::MAX, ..*limits })?;
    let mut start = [0; 4];
    let zip = metadata.is_file()
        && file.read_exact(&mut start).is_ok()
        && matches!(&start, b"PK\x03\x04" | b"PK\x05\x06");
    if zip {
        return reading.zip(file, metadata.len());
    }
    let source = Source::open(path, &Limits { bytes: u64::MAX, ..*limits })?;
    reading.tar_or_file(source)
}

struct Reading<'a, W, V> {
    path: &'a Path,
    limits: &'a Limits,
    wanted: &'a W,
    visit: &'a mut V,
    /// The bytes of the present member; its memory is used again.
    bytes: Vec<u8>,
}

impl<E, W, V> Reading<'_, W, V>
where
    E: From<InputError>,
    W: Fn(&str) -> bool,
    V: FnMut(Member<'_>) -> Result<(), E>,
{
    fn folder(&mut self, folder: &Path, name: &str, depth: usize) -> Result<(), E> {
        let failed = |error| unreadable(folder, None, error);
        if depth > MAX_FOLDERS {
            return Err(self.damaged(name, "folders are nested too deeply").into());
        }
        let listed = fs::read_dir(folder).map_err(failed)?;
        let mut entries = listed.collect::<Result<Vec<_>, _>>().map_err(failed)?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let own = entry.file_name();
            let own = own.to_string_lossy();
            let name = if name.is_empty() { own.into_owned() } else { format!("{name}/{own}") };
            let kind = entry.file_type().map_err(failed)?;
            if kind.is_dir() {
                self.folder(&entry.path(), &name, depth + 1)?;
            } else if (self.wanted)(&name) {
                let path = entry.path();
                // Without a further look at a plain file: many small ones are the usual case. Anything
                // else, such as a pipe or a link to one, could be waited for without end.
                let file = match kind.is_file() {
                    true => File::open(&path).map_err(|error| unreadable(&path, None, error))?,
                    false => open_file(&path, self.limits)?,
                };
                self.read(file, &path)?;
                (self.visit)(Member { name: &name, bytes: &self.bytes })?;
            }
        }
        Ok(())
    }

    /// Reads a file into the buffer; a compressed one is decompressed.
    fn read(&mut self, mut file: File, path: &Path) -> Result<(), InputError> {
        self.bytes.clear();
        let limit = self.limits.bytes;
        let mut bounded = file.by_ref().take(limit.saturating_add(1));
        bounded.read_to_end(&mut self.bytes).map_err(|error| unreadable(path, None, error))?;
        if self.bytes.len() as u64 > limit {
            return Err(InputError::TooLarge { path: path.to_owned(), limit });
        }
        if matches!(self.bytes.first(), Some(0x1F | 0x28 | 0xFD)) {
            let packed = std::mem::take(&mut self.bytes);
            let source = Source::of(packed.as_slice()).map_err(|e| unreadable(path, None, e))?;
            self.bytes = source.bytes(path, self.limits)?;
        }
        Ok(())
    }

    fn tar_or_file(&mut self, mut source: Source<'static>) -> Result<(), E> {
        let mut header = Vec::with_capacity(BLOCK);
        self.fill(&mut source, &mut header, BLOCK as u64)?;
        if !is_tar(&header) {
            let whole = Source::of(std::io::Cursor::new(header).chain(source.reader))
                .map_err(|error| unreadable(self.path, None, error))?;
            self.bytes = whole.bytes(self.path, self.limits)?;
            let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            return (self.visit)(Member { name: &name, bytes: &self.bytes });
        }
        let mut long_name = None;
        while header.len() == BLOCK && header.iter().any(|byte| *byte != 0) {
            if !is_tar(&header) {
                return Err(self.damaged("", "a header of the tar file is damaged").into());
            }
            let size = number(&header[124..136])
                .ok_or_else(|| self.damaged("", "the size of a member is not a number"))?;
            let padding = (BLOCK as u64 - size % BLOCK as u64) % BLOCK as u64;
            let kind = header[156];
            let name = long_name.take().unwrap_or_else(|| short_name(&header));
            match kind {
                b'L' | b'x' if size > MAX_NAME => {
                    return Err(self.damaged("", "the name of a member is too long").into());
                }
                b'L' | b'x' => {
                    let mut bytes = std::mem::take(&mut self.bytes);
                    self.exactly(&mut source, &mut bytes, size, &name)?;
                    long_name = if kind == b'L' { Some(text(&bytes)) } else { pax_path(&bytes) };
                    self.bytes = bytes;
                    self.skip(&mut source, padding)?;
                }
                0 | b'0' | b'7' if (self.wanted)(&name) => {
                    if size > self.limits.bytes {
                        let path = self.path.join(&name);
                        return Err(InputError::TooLarge { path, limit: self.limits.bytes }.into());
                    }
                    let mut bytes = std::mem::take(&mut self.bytes);
                    self.exactly(&mut source, &mut bytes, size, &name)?;
                    self.bytes = bytes;
                    (self.visit)(Member { name: &name, bytes: &self.bytes })?;
                    self.skip(&mut source, padding)?;
                }
                b'1' if (self.wanted)(&name) => {
                    let why =
                        "is a link to another file; pack the files with tar --hard-dereference";
                    return Err(self.damaged(&name, why).into());
                }
                _ => self.skip(&mut source, size.saturating_add(padding))?,
            }
            self.fill(&mut source, &mut header, BLOCK as u64)?;
        }
        match header.len() == BLOCK {
            true => Ok(()),
            false => Err(self.damaged("", "the tar file has no end mark: is it cut off?").into()),
        }
    }

    /// Reads up to `size` bytes.
    fn fill(
        &self,
        source: &mut Source<'_>,
        into: &mut Vec<u8>,
        size: u64,
    ) -> Result<(), InputError> {
        into.clear();
        let read = source.reader.by_ref().take(size).read_to_end(into);
        read.map(drop).map_err(|error| source.failed(self.path, None, error))
    }

    fn exactly(
        &self,
        source: &mut Source<'_>,
        into: &mut Vec<u8>,
        size: u64,
        name: &str,
    ) -> Result<(), InputError> {
        self.fill(source, into, size)?;
        match into.len() as u64 == size {
            true => Ok(()),
            false => Err(self.damaged(name, "the archive ends in the middle of this file")),
        }
    }

    fn skip(&self, source: &mut Source<'_>, size: u64) -> Result<(), InputError> {
        let skipped = std::io::copy(&mut source.reader.by_ref().take(size), &mut std::io::sink());
        skipped.map(drop).map_err(|error| source.failed(self.path, None, error))
    }

    fn damaged(&self, name: &str, message: &str) -> InputError {
        let place = if name.is_empty() { "archive" } else { name };
        InputError::invalid(self.path, place, message)
    }

    /// Reads the directory at the end of a zip file, then each file where it says.
    fn zip(&mut self, mut file: File, length: u64) -> Result<(), E> {
        let directory = self.zip_directory(&mut file, length)?;
        let mut at = directory.as_slice();
        while at.len() >= 46 && at.starts_with(b"PK\x01\x02") {
            let (method, packed, size) = (u16_at(at, 10), u32_at(at, 20), u32_at(at, 24));
            let (name, extra, comment) = (u16_at(at, 28), u16_at(at, 30), u16_at(at, 32));
            let offset = u32_at(at, 42);
            let end = 46 + usize::from(name);
            let Some(bytes) = at.get(46..end) else { break };
            let name = text(bytes);
            at = at.get(end + usize::from(extra) + usize::from(comment)..).unwrap_or_default();
            if name.ends_with('/') || !(self.wanted)(&name) {
                continue;
            }
            if [packed, size, offset].contains(&u32::MAX) {
                return Err(self
                    .damaged(&name, "zip files over 4 GiB are not read; use tar")
                    .into());
            }
            if u64::from(size) > self.limits.bytes {
                let path = self.path.join(&name);
                return Err(InputError::TooLarge { path, limit: self.limits.bytes }.into());
            }
            let io = |error| InputError::from_io(self.path, error);
            file.seek(SeekFrom::Start(offset.into())).map_err(io)?;
            let mut header = [0; 30];
            file.read_exact(&mut header).map_err(io)?;
            let skip = i64::from(u16_at(&header, 26)) + i64::from(u16_at(&header, 28));
            file.seek(SeekFrom::Current(skip)).map_err(io)?;
            let raw = file.by_ref().take(packed.into());
            self.bytes.clear();
            let bytes = &mut self.bytes;
            let mut unpack = |from: &mut dyn Read| from.take(size.into()).read_to_end(bytes);
            let read = match method {
                0 => unpack(&mut { raw }),
                8 => unpack(&mut flate2::read::DeflateDecoder::new(raw)),
                93 => {
                    zstd::stream::read::Decoder::new(raw).and_then(|mut plain| unpack(&mut plain))
                }
                _ => return Err(self.damaged(&name, "unsupported compression method").into()),
            };
            if read.ok() != Some(size as usize) {
                return Err(self.damaged(&name, "this file of the archive is damaged").into());
            }
            (self.visit)(Member { name: &name, bytes: &self.bytes })?;
        }
        match at.is_empty() {
            true => Ok(()),
            false => Err(self.damaged("", "the directory of the zip file is damaged").into()),
        }
    }

    fn zip_directory(&self, file: &mut File, length: u64) -> Result<Vec<u8>, InputError> {
        let io = |error| InputError::from_io(self.path, error);
        let damaged = || self.damaged("", "the zip file has no directory at its end; is it whole?");
        let tail = length.min(65_557);
        file.seek(SeekFrom::Start(length - tail)).map_err(io)?;
        let mut bytes = Vec::new();
        file.by_ref().take(tail).read_to_end(&mut bytes).map_err(io)?;
        let end = memchr::memmem::rfind(&bytes, b"PK\x05\x06").ok_or_else(damaged)?;
        let end = bytes.get(end..end + 22).ok_or_else(damaged)?;
        let (size, start) = (u64::from(u32_at(end, 12)), u64::from(u32_at(end, 16)));
        if size > MAX_DIRECTORY || start.saturating_add(size) > length {
            return Err(damaged());
        }
        file.seek(SeekFrom::Start(start)).map_err(io)?;
        let mut directory = Vec::new();
        file.by_ref().take(size).read_to_end(&mut directory).map_err(io)?;
        Ok(directory)
    }
}

impl InputError {
    fn from_io(path: &Path, error: std::io::Error) -> InputError {
        unreadable(path, None, error)
    }
}

fn is_tar(header: &[u8]) -> bool {
    header.len() == BLOCK && {
        let sum: u64 = header.iter().map(|byte| u64::from(*byte)).sum();
        let stored: u64 = header[148..156].iter().map(|byte| u64::from(*byte)).sum();
        number(&header[148..156]) == Some(sum - stored + 8 * u64::from(b' '))
    }
}

/// An octal number, or a binary one as GNU writes large sizes.
fn number(field: &[u8]) -> Option<u64> {
    if field.first()? & 0x80 != 0 {
        let start = field.len().checked_sub(8)?;
        return Some(u64::from_be_bytes(field[start..].try_into().ok()?));
    }
    let digits = text(field);
    u64::from_str_radix(digits.trim(), 8).ok()
}

/// The text up to the first NUL.
fn text(bytes: &[u8]) -> String {
    let end = memchr::memchr(0, bytes).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn short_name(header: &[u8]) -> String {
    let (name, prefix) = (text(&header[..100]), text(&header[345..500]));
    let posix = &header[257..263] == b"ustar\0";
    if posix && !prefix.is_empty() { format!("{prefix}/{name}") } else { name }
}

/// The path in the records of a pax header: `27 path=a/long/name\n`.
fn pax_path(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    text.lines().find_map(|line| Some(line.split_once(" path=")?.1.to_owned()))
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
