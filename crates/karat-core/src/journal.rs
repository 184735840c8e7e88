//! The run journal: what a system answered, on disk as soon as it is known.
//!
//! One line for each answer, written with a single write, so that a run killed at any moment leaves
//! at most one torn line, the last. `--resume` reads the lines back and asks for what is missing and
//! for what failed. A journal belongs to one run: its first line names dataset, system, seed and number
//! of runs, and a journal of another run is refused rather than mixed in. Every line ends with a check
//! sum of itself, so that a damaged one is refused rather than believed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use karat_io::input::{
    self, Blocks, InputError, Limits, WriteError, open_existing_for_writing, open_for_writing,
};
use karat_io::text::{hex, printable};

use crate::kind::Kind;
use crate::partition::Part;
use crate::report::{DatasetRef, SystemRef};
use crate::run::{Event, Listener, RunError};

/// The name of the journal format.
pub const SCHEMA: &str = "karat.journal/3";

/// The longest line that is read back; a longer one was not written by us.
const MAX_LINE_BYTES: usize = 256 << 20;
const MAX_LINE: u64 = MAX_LINE_BYTES as u64;

/// The end of a line: its checksum, as the last field of the object.
const SUM_START: &[u8] = b",\"sum\":\"";
const SUM_END: &[u8] = b"\"}";
/// The number of hexadecimal digits of a checksum.
const SUM_DIGITS: usize = 16;

/// The identity of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The kind of report.
    pub kind: Kind,
    /// The entry of the project.
    pub name: String,
    /// The data.
    pub dataset: DatasetRef,
    /// The system and its settings.
    pub system: SystemRef,
    /// The number of runs.
    pub runs: u32,
    /// The seed.
    pub seed: u64,
    /// The part of the run; absent where it is not divided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
}

/// One answered question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry<A> {
    /// The run, from 0.
    pub run: u32,
    /// The item.
    pub id: String,
    /// The time the answer took, in nanoseconds.
    pub nanos: u64,
    /// The answer, or the final failure.
    pub outcome: Outcome<A>,
}

/// An answer, or the failure in its place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome<A> {
    /// The system answered.
    Answer(A),
    /// It did not, after all retries.
    Failure {
        /// The class of the failure.
        class: String,
        /// A description of the failure.
        message: String,
    },
}

/// An error of a journal.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file cannot be read or written.
    #[error("{path}: cannot {doing} the run journal: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// `read`, `create` or `append to`.
        doing: &'static str,
        /// The reason.
        source: std::io::Error,
    },
    /// The file cannot be opened for writing.
    #[error(transparent)]
    Open(#[from] WriteError),
    /// The file cannot be read, or its compressed data is damaged.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The first line is not that of a journal.
    #[error(
        "{path}:1: not a journal line: {message}; pass the files that a run with --partition left in `journal`"
    )]
    NotJournal {
        /// The file.
        path: PathBuf,
        /// The problem.
        message: String,
    },
    /// It is of another run.
    #[error(
        "{path}: this journal belongs to another run ({difference}); run without --resume to start over"
    )]
    OtherRun {
        /// The file.
        path: PathBuf,
        /// The difference.
        difference: String,
    },
    /// A line in the middle cannot be read.
    #[error("{path}:{line}: not a journal line: {message}; run without --resume to start over")]
    Broken {
        /// The file.
        path: PathBuf,
        /// The line.
        line: u64,
        /// The problem.
        message: String,
    },
    /// Another process is writing to it.
    #[error("{path}: another run is writing to this journal; wait for it or use another --out")]
    InUse {
        /// The file.
        path: PathBuf,
    },
}

/// A journal that is open for appending.
pub struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Starts a new journal, replacing an older one.
    pub fn create(path: &Path, identity: &Identity) -> Result<Journal, JournalError> {
        let io = |source| JournalError::Io { path: path.to_owned(), doing: "create", source };
        let file = open_for_writing(path)?;
        lock(path, &file)?;
        file.set_len(0).map_err(io)?;
        let mut journal = Journal { path: path.to_owned(), file };
        journal.write_line(identity)?;
        Ok(journal)
    }

    /// Opens the journal of an interrupted run and returns the answers that it already holds; what
    /// failed is asked again. Without a file, or with one in which not even the first line is whole,
    /// this is a new run.
    pub fn resume<A: DeserializeOwned>(
        path: &Path,
        identity: &Identity,
    ) -> Result<(Journal, Vec<Entry<A>>), JournalError> {
        let io = |source| JournalError::Io { path: path.to_owned(), doing: "read", source };
        let Some(mut file) = open_existing_for_writing(path)? else {
            return Ok((Journal::create(path, identity)?, Vec::new()));
        };
        lock(path, &file)?;

        let (whole, mut entries) = read_entries(path, &mut BufReader::new(&file), identity)?;
        entries.retain(|entry| matches!(entry.outcome, Outcome::Answer(_)));
        if whole == 0 {
            drop(file);
            return Ok((Journal::create(path, identity)?, Vec::new()));
        }
        // What follows the last whole line was torn by the kill: cut it off before appending.
        file.set_len(whole).map_err(io)?;
        file.seek(SeekFrom::End(0)).map_err(io)?;
        Ok((Journal { path: path.to_owned(), file }, entries))
    }

    /// Appends one answer.
    pub fn append<A: Serialize>(&mut self, entry: &Entry<A>) -> Result<(), JournalError> {
        self.write_line(entry)
    }

    fn write_line<T: Serialize>(&mut self, value: &T) -> Result<(), JournalError> {
        let io = |source| JournalError::Io { path: self.path.clone(), doing: "append to", source };
        let line = serde_json::to_vec(value).map_err(|error| io(error.into()))?;
        let mut line = with_sum(line);
        line.push(b'\n');
        self.file.write_all(&line).map_err(io)
    }
}

impl<A: Serialize> Listener<A> for Journal {
    fn on(&mut self, event: &Event<'_, A>) -> Result<(), RunError> {
        match event {
            Event::Answered(entry) => Ok(self.append(entry)?),
            Event::Started { .. } | Event::Finished => Ok(()),
        }
    }
}

fn lock(path: &Path, file: &File) -> Result<(), JournalError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(std::fs::TryLockError::WouldBlock) => {
            Err(JournalError::InUse { path: path.to_owned() })
        }
        // A file system without locks: then two runs at once are the user's business.
        Err(std::fs::TryLockError::Error(_)) => Ok(()),
    }
}

/// A line with its checksum as the last field, from the object without it.
pub fn with_sum(mut object: Vec<u8>) -> Vec<u8> {
    let sum = sum(&object);
    object.pop();
    object.extend_from_slice(SUM_START);
    object.extend_from_slice(sum.as_bytes());
    object.extend_from_slice(SUM_END);
    object
}

fn sum(object: &[u8]) -> String {
    let mut digits = hex(&Sha256::digest(object));
    digits.truncate(SUM_DIGITS);
    digits
}

/// Checks the checksum of a line, without its line feed, and returns the object that was written.
///
/// # Errors
/// Says what is wrong with the line.
pub fn check_sum(line: &[u8]) -> Result<Vec<u8>, &'static str> {
    let without = "it has no checksum";
    let rest = line.strip_suffix(SUM_END).ok_or(without)?;
    let (rest, found) =
        rest.split_at_checked(rest.len().wrapping_sub(SUM_DIGITS)).ok_or(without)?;
    let mut object = rest.strip_suffix(SUM_START).ok_or(without)?.to_vec();
    object.push(b'}');
    match sum(&object).as_bytes() == found {
        true => Ok(object),
        false => Err("its checksum is wrong: the line was changed or damaged"),
    }
}

/// The format that a first line without a checksum names.
fn named_format(line: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Head {
        schema: String,
    }
    let Head { schema } = serde_json::from_slice(line).ok()?;
    (schema != SCHEMA).then_some(schema)
}

/// The identity of the run that a journal is of; none if not even its first line is whole.
///
/// # Errors
/// If the file cannot be read, or does not begin like a journal.
pub(crate) fn read_identity(path: &Path) -> Result<Option<Identity>, JournalError> {
    let mut line = Vec::new();
    let read = open(path)?.take(MAX_LINE).read_until(b'\n', &mut line);
    read.map_err(|source| unread(path, source))?;
    if line.last() != Some(&b'\n') {
        return Ok(None);
    }
    let found = serde_json::from_slice(&line);
    found.map(Some).map_err(|error| JournalError::NotJournal {
        path: path.to_owned(),
        message: error.to_string(),
    })
}

/// Reads the journal of an earlier run, to score its answers again. A last line that was torn is not one.
///
/// # Errors
/// If the file cannot be read, is not a journal of this format, is damaged, or is of another kind.
pub fn recorded<A: DeserializeOwned>(
    path: &Path,
    kind: &Kind,
) -> Result<(Identity, Vec<Entry<A>>), JournalError> {
    let wrong = |place: &str, message: String| {
        JournalError::Input(InputError::invalid(path, place, message))
    };
    let identity = match read_identity(path) {
        Ok(Some(identity)) => identity,
        Ok(None) => {
            let message = "no whole first line: not a run journal, or of a run that did not begin";
            return Err(wrong("line 1", message.to_owned()));
        }
        Err(JournalError::NotJournal { message, .. }) => {
            return Err(wrong("line 1", format!("not a run journal: {message}")));
        }
        Err(error) => return Err(error),
    };
    input::check_schema(path, Some(&identity.schema), SCHEMA)?;
    // Answers of another kind are of another form, which would be the less helpful message.
    if identity.kind != *kind {
        let message = format!(
            "this is the journal of {} {:?}, not of a {kind}",
            identity.kind, identity.name
        );
        return Err(wrong("line 1", message));
    }
    match read_entries(path, &mut open(path)?, &identity) {
        Ok((_, entries)) => Ok((identity, entries)),
        Err(JournalError::Broken { line, message, .. }) => {
            Err(wrong(&format!("line {line}"), format!("not a journal line: {message}")))
        }
        Err(error) => Err(error),
    }
}

/// Opens a journal to read it only, compressed or not.
///
/// # Errors
/// If the file cannot be opened.
pub(crate) fn open(path: &Path) -> Result<impl BufRead, JournalError> {
    let limits = Limits { line_bytes: MAX_LINE_BYTES, ..Limits::streaming() };
    let blocks = input::blocks(path, &limits)?;
    Ok(Whole { blocks, block: Vec::new(), read: 0, lines: 0 })
}

/// A file block by block, of which none is larger than a line may be.
struct Whole {
    blocks: Blocks<'static>,
    block: Vec<u8>,
    /// The bytes of the block that were read.
    read: usize,
    /// The lines of the blocks before.
    lines: u64,
}

impl Read for Whole {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.fill_buf()?.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}

impl BufRead for Whole {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        if self.read == self.block.len() {
            self.lines += self.block.iter().filter(|byte| **byte == b'\n').count() as u64;
            self.read = 0;
            let next = self.blocks.next_block(&mut self.block);
            next.map_err(|error| std::io::Error::other(error.at_line(self.lines + 1)))?;
        }
        Ok(&self.block[self.read..])
    }

    fn consume(&mut self, amount: usize) {
        self.read = (self.read + amount).min(self.block.len());
    }
}

/// The error for a journal that cannot be read on. The one of a bounded reader names the file already.
fn unread(path: &Path, source: std::io::Error) -> JournalError {
    match source.downcast::<InputError>() {
        Ok(error) => JournalError::Input(error),
        Err(source) => JournalError::Io { path: path.to_owned(), doing: "read", source },
    }
}

/// Reads the whole lines and says where the last one ends. Pure but for the reader.
pub fn read_entries<A: DeserializeOwned>(
    path: &Path,
    reader: &mut impl BufRead,
    identity: &Identity,
) -> Result<(u64, Vec<Entry<A>>), JournalError> {
    let broken =
        |line, message: String| JournalError::Broken { path: path.to_owned(), line, message };
    let mut entries: BTreeMap<(u32, String), Entry<A>> = BTreeMap::new();
    let mut whole = 0;
    let mut buffer = Vec::new();
    for line in 1.. {
        buffer.clear();
        let read = reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut buffer);
        let read = read.map_err(|source| unread(path, source))?;
        if buffer.last() != Some(&b'\n') {
            if read as u64 == MAX_LINE {
                return Err(broken(line, format!("longer than {MAX_LINE} bytes")));
            }
            break;
        }
        let object = check_sum(buffer.strip_suffix(b"\n").unwrap_or(&buffer)).map_err(|why| {
            match named_format(&buffer).filter(|_| line == 1) {
                Some(schema) => JournalError::OtherRun {
                    path: path.to_owned(),
                    difference: format!("format {} there, {SCHEMA} here", printable(&schema)),
                },
                None => broken(line, why.to_owned()),
            }
        })?;
        if line == 1 {
            let found: Identity =
                serde_json::from_slice(&object).map_err(|error| broken(line, error.to_string()))?;
            if let Some(difference) = difference(&found, identity) {
                return Err(JournalError::OtherRun { path: path.to_owned(), difference });
            }
        } else {
            let entry: Entry<A> =
                serde_json::from_slice(&object).map_err(|error| broken(line, error.to_string()))?;
            if entry.run >= identity.runs {
                return Err(broken(line, format!("run {} of {}", entry.run, identity.runs)));
            }
            entries.insert((entry.run, entry.id.clone()), entry);
        }
        whole += read as u64;
    }
    Ok((whole, entries.into_values().collect()))
}

pub(crate) fn difference(found: &Identity, expected: &Identity) -> Option<String> {
    let differs = |what: &str, found: &dyn std::fmt::Display, expected: &dyn std::fmt::Display| {
        Some(format!("{what} {found} there, {expected} here"))
    };
    if found.schema != expected.schema {
        return differs("format", &found.schema, &expected.schema);
    }
    if found.kind != expected.kind || found.name != expected.name {
        return differs(
            "entry",
            &format_args!("{} {}", found.kind, found.name),
            &format_args!("{} {}", expected.kind, expected.name),
        );
    }
    if found.dataset != expected.dataset {
        return differs(
            "dataset",
            &format_args!(
                "{} {} {}",
                found.dataset.id, found.dataset.version, found.dataset.digest
            ),
            &format_args!(
                "{} {} {}",
                expected.dataset.id, expected.dataset.version, expected.dataset.digest
            ),
        );
    }
    if found.system != expected.system {
        return Some("the system or its settings differ".to_owned());
    }
    if found.runs != expected.runs {
        return differs("runs", &found.runs, &expected.runs);
    }
    if found.seed != expected.seed {
        return differs("seed", &found.seed, &expected.seed);
    }
    if found.part != expected.part {
        let named = |part: &Option<Part>| match part {
            Some(Part { partition, karat }) => format!("{partition} by karat {karat}"),
            None => "none".to_owned(),
        };
        return differs("partition", &named(&found.part), &named(&expected.part));
    }
    None
}
