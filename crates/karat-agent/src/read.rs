//! Files of traces, read as batches that threads can parse and score.
//!
//! A document is a line, an entry of a list, or a value in a file that is written over several lines.
//! Protobuf and archives are turned into documents first. What cannot be read becomes a [`Bad`] with its line
//! and class, so that it is counted and not lost; only a file that cannot be read on ends the reading.

use std::collections::{BTreeMap, VecDeque};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use karat_core::error::EvalError;
use karat_io::input::{Blocks, InputError, Limits, blocks, decode, read_raw};
use serde_json::value::RawValue;

use crate::error::in_line;
use crate::formats::spans::protobuf;
use crate::formats::{Importer, Position, TraceFormat, describe, detect, inspect, is_conversation};
use crate::metric::CallMetric;
use crate::trace::Trace;
use crate::trace::fields::{Invalid, is_list, list};

/// The size in bytes of a file that is one document.
const MAX_DOCUMENT_BYTES: usize = 256 << 20;
/// The size in bytes, and the number of documents, at which a batch of documents is full.
const BATCH_BYTES: usize = 1 << 18;
const BATCH_DOCUMENTS: usize = 256;
/// The size in bytes of one message of a protobuf file, which takes many times that when it is read.
const MAX_MESSAGE_BYTES: usize = 64 << 20;
/// The number of bytes that are looked at to know a binary file.
const PEEKED: u64 = 4096;
/// The number of bytes by which a compression is recognized, and too few for any content.
const COMPRESSION_MARK: usize = 6;

/// A part of a file that is not a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bad {
    /// The line, from 1.
    pub line: u64,
    /// The class: `truncated`, `not_json`, `not_utf8` or `invalid`.
    pub class: &'static str,
    /// The mistake.
    pub message: String,
}

/// One record of a file.
#[derive(Debug)]
pub enum Record {
    /// A trace.
    Trace(Box<Trace>),
    /// A part of the file that is not one.
    Bad(Bad),
}

/// Part of a file.
#[derive(Default)]
pub(crate) struct Batch {
    /// The number of the file.
    pub(crate) file: usize,
    content: Content,
}

enum Content {
    /// Whole lines, the first of them with its number.
    Lines(u64, Vec<u8>),
    /// Documents that are records by themselves.
    Documents(Vec<(Position, Result<String, Bad>)>),
    /// Records that an importer had to read in order.
    Records(Vec<(u64, Record)>),
}

impl Default for Content {
    fn default() -> Self {
        Content::Lines(0, Vec::new())
    }
}

impl Batch {
    /// Passes on every document that is a record by itself, blank lines left out; none of a format in
    /// which records must be read in order.
    pub(crate) fn documents<'b>(&'b self, mut each: impl FnMut(Position, Result<&'b str, Bad>)) {
        match &self.content {
            Content::Lines(first, bytes) => {
                let (mut line, mut rest) = (*first, &bytes[..]);
                while !rest.is_empty() {
                    let this = first_line(rest);
                    rest = rest.get(this.len() + 1..).unwrap_or_default();
                    if !this.trim_ascii().is_empty() {
                        each(Position { line, entry: 0 }, text(line, this));
                    }
                    line += 1;
                }
            }
            Content::Documents(documents) => {
                for (at, text) in documents {
                    each(*at, text.as_deref().map_err(Clone::clone));
                }
            }
            Content::Records(_) => {}
        }
    }

    /// Passes on every record with its line.
    pub(crate) fn records(&mut self, source: &TraceFiles<'_>, mut each: impl FnMut(u64, Record)) {
        if let Content::Records(records) = &mut self.content {
            return records.drain(..).for_each(|(line, record)| each(line, record));
        }
        let format = source.formats[self.file];
        let mut importer = format.importer(&source.files[self.file], source.metrics);
        let mut out = Vec::new();
        self.documents(|at, text| {
            let read = text.and_then(|text| {
                importer.take(text, at, &mut out).map_err(|error| classed(format, at, text, &error))
            });
            out.drain(..).for_each(|trace| each(at.line, Record::Trace(Box::new(trace))));
            if let Err(bad) = read {
                each(at.line, Record::Bad(bad));
            }
        });
    }
}

/// The first line without its end.
fn first_line(bytes: &[u8]) -> &[u8] {
    &bytes[..memchr::memchr(b'\n', bytes).unwrap_or(bytes.len())]
}

fn text(line: u64, bytes: &[u8]) -> Result<&str, Bad> {
    std::str::from_utf8(bytes).map_err(|error| Bad {
        line,
        class: "not_utf8",
        message: format!("byte {} is not UTF-8", error.valid_up_to() + 1),
    })
}

/// The class of a document that an importer refused. A document of another known kind is named.
pub(crate) fn classed(format: TraceFormat, at: Position, text: &str, error: &Invalid) -> Bad {
    let (class, looks) = match serde_json::from_str::<serde::de::IgnoredAny>(text) {
        Err(error) if error.is_eof() => ("truncated", None),
        Err(_) => ("not_json", None),
        Ok(_) => match detect(text) {
            Some(found)
                if found != format
                    && !(found.has_conversations() && format.has_conversations()) =>
            {
                let (name, about) = (found.name(), found.about());
                ("invalid", Some(format!("{about}; try --format {name}")))
            }
            // It is what it should be, but for the mistake.
            Some(found) if found == format => ("invalid", None),
            _ => ("invalid", describe(text).map(str::to_owned)),
        },
    };
    let message = match looks {
        Some(looks) => format!("this looks like {looks} (as {}: {error})", format.name()),
        None => error.to_string(),
    };
    Bad { line: at.line, class, message }
}

/// Files of traces.
#[derive(Clone, Copy, Debug)]
pub struct TraceFiles<'a> {
    /// The files.
    pub files: &'a [PathBuf],
    /// The format of each file; see [`recognize`].
    pub formats: &'a [TraceFormat],
    /// The metrics that are computed from samples themselves.
    pub metrics: &'a [CallMetric],
}

/// The format of each file: the stated one, or the one that its first document has.
///
/// # Errors
/// If a file cannot be read, or is of no known format.
pub fn recognize(files: &[PathBuf], format: TraceFormat) -> Result<Vec<TraceFormat>, EvalError> {
    files
        .iter()
        .map(|path| match format {
            TraceFormat::Auto => recognize_file(path),
            stated => Ok(stated),
        })
        .collect()
}

fn recognize_file(path: &Path) -> Result<TraceFormat, EvalError> {
    match Binary::of(path) {
        Some(Binary::Protobuf) => return Ok(TraceFormat::Otlp),
        Some(Binary::Zip) => return Ok(TraceFormat::Inspect),
        None => {}
    }
    if std::fs::metadata(path).is_ok_and(|file| !file.is_file() && !file.is_dir()) {
        return Err(EvalError::config(format!(
            "{}: only a file can be looked at before it is read; name its format with --format",
            path.display()
        )));
    }
    let mut lines = NumberedLines::open(path)?;
    let one_document = !lines.begins_with_a_record()?;
    let mut documents = Documents::of(lines, one_document, TraceFormat::Messages);
    // Nothing in it: any reader says so.
    let Some((at, text)) = documents.next_document()? else { return Ok(TraceFormat::Native) };
    let text =
        text.map_err(|bad| in_line(path, bad.line, format!("{} ({})", bad.message, bad.class)))?;
    if let Some(found) = detect(&text) {
        return Ok(found);
    }
    let whole = serde_json::from_str::<serde::de::IgnoredAny>(&text);
    let message = match (whole, describe(&text)) {
        (Err(error), _) if error.is_eof() => "is cut off (truncated)".to_owned(),
        (Err(_), _) if is_table(&text) => {
            "this looks like a table (CSV); export JSON or JSON lines instead".to_owned()
        }
        (Err(error), _) => format!("{error} (not_json)"),
        (Ok(_), Some(looks)) => format!("this looks like {looks}"),
        // Karat's own reader names the field that is missing.
        (Ok(_), None) => {
            let error =
                Trace::parse(&text).err().map_or_else(String::new, |error| error.to_string());
            let known: Vec<&str> =
                TraceFormat::ALL[1..].iter().map(|format| format.name()).collect();
            format!(
                "the format is not recognized; name it with --format (one of {}); as native: {error} (invalid)",
                known.join(", ")
            )
        }
    };
    Err(in_line(path, at.line, message))
}

/// Returns whether the first line of a text is the head of a table.
fn is_table(text: &str) -> bool {
    let head = text.lines().next().unwrap_or_default();
    let is_name = |cell: &str| {
        let cell = cell.trim().trim_matches('"');
        !cell.is_empty() && cell.chars().all(|c| c.is_alphanumeric() || "_- .".contains(c))
    };
    head.contains([',', ';', '\t']) && head.split([',', ';', '\t']).all(is_name)
}

/// A kind of file that is not text.
#[derive(Clone, Copy)]
enum Binary {
    Protobuf,
    Zip,
}

impl Binary {
    fn of(path: &Path) -> Option<Binary> {
        // Before it is opened: a pipe would be waited for.
        if !std::fs::metadata(path).is_ok_and(|data| data.is_file()) {
            return None;
        }
        let file = std::fs::File::open(path).ok()?;
        let mut start = Vec::new();
        file.take(PEEKED).read_to_end(&mut start).ok()?;
        match &start[..] {
            start if is_compressed(start) => None,
            [b'P', b'K', 3, 4, ..] => Some(Binary::Zip),
            // Text has no such bytes, and ids, lengths and times do.
            start if start.iter().any(|byte| *byte < 9) => Some(Binary::Protobuf),
            _ => None,
        }
    }

    /// The documents of such a file, to be decoded one after the other.
    fn documents(self, path: &Path) -> Result<VecDeque<Pending>, EvalError> {
        if let Binary::Zip = self {
            return Ok(inspect::samples(path)?.into_iter().map(Pending::Text).collect());
        }
        let bytes =
            read_raw(path, &Limits { bytes: MAX_DOCUMENT_BYTES as u64, ..Limits::default() })?;
        let wrong = |message: String| in_line(path, 1, message);
        let messages = protobuf::messages(&bytes).map_err(wrong)?;
        if messages.iter().any(|message| message.len() > MAX_MESSAGE_BYTES) {
            let limit = MAX_MESSAGE_BYTES >> 20;
            return Err(wrong(format!(
                "a message has more than {limit} MB; export smaller batches"
            )));
        }
        Ok(messages.into_iter().map(|message| Pending::Protobuf(message.to_vec())).collect())
    }
}

/// Returns whether the first bytes of a file are those of a compression that is read: of so few bytes,
/// the reader can say only that they are cut off.
fn is_compressed(start: &[u8]) -> bool {
    let start = &start[..start.len().min(COMPRESSION_MARK)];
    matches!(decode("", start, &Limits::default()), Err(InputError::Compression { .. }))
}

/// A document that was not decoded yet.
enum Pending {
    Text(String),
    Protobuf(Vec<u8>),
}

/// Reads files of traces batch by batch.
pub(crate) struct Reader<'a> {
    source: TraceFiles<'a>,
    /// The number of files that were opened.
    opened: usize,
    open: Option<Open<'a>>,
    /// The importers of formats whose traces may go on in the next file.
    shared: BTreeMap<TraceFormat, Box<dyn Importer + Send + 'a>>,
    /// The remarks of importers, with their counts.
    pub(crate) notes: BTreeMap<String, u64>,
}

enum Open<'a> {
    Lines(NumberedLines),
    Documents(Documents),
    InOrder { documents: Documents, importer: Box<dyn Importer + Send + 'a>, format: TraceFormat },
}

impl<'a> Reader<'a> {
    pub(crate) fn new(source: TraceFiles<'a>) -> Self {
        Reader { source, opened: 0, open: None, shared: BTreeMap::new(), notes: BTreeMap::new() }
    }

    /// Fills a batch; false at the end of the last file.
    pub(crate) fn next(&mut self, batch: &mut Batch) -> Result<bool, EvalError> {
        loop {
            if self.open.is_none() {
                if self.opened == self.source.files.len() {
                    return Ok(self.finish_shared(batch));
                }
                self.open = Some(self.open_next()?);
                self.opened += 1;
            }
            batch.file = self.opened - 1;
            let Some(open) = &mut self.open else { continue };
            if fill(open, &mut batch.content)? {
                return Ok(true);
            }
            if let Some(Open::InOrder { mut importer, format, documents }) = self.open.take() {
                if format.spans_files() {
                    self.shared.insert(format, importer);
                    continue;
                }
                let mut out = Vec::new();
                importer.finish(&mut out);
                self.note(&*importer);
                if !out.is_empty() {
                    batch.content = records(out, documents.line());
                    return Ok(true);
                }
            }
        }
    }

    fn note(&mut self, importer: &(dyn Importer + Send)) {
        for (note, count) in importer.notes() {
            *self.notes.entry(note).or_default() += count;
        }
    }

    /// The traces that were open until the last file.
    fn finish_shared(&mut self, batch: &mut Batch) -> bool {
        let Some((_, mut importer)) = self.shared.pop_first() else { return false };
        let mut out = Vec::new();
        importer.finish(&mut out);
        self.note(&*importer);
        batch.content = records(out, 1);
        true
    }

    fn open_next(&mut self) -> Result<Open<'a>, EvalError> {
        let (path, format) = (&self.source.files[self.opened], self.source.formats[self.opened]);
        let documents = match Binary::of(path) {
            Some(binary) => Documents {
                lines: None,
                one_document: false,
                format,
                pending: binary.documents(path)?,
                ready: VecDeque::new(),
            },
            None => {
                let mut lines = NumberedLines::open(path)?;
                let one_document = format.may_be_one_document() && !lines.begins_with_a_record()?;
                if format.is_record_per_document() && !one_document {
                    return Ok(Open::Lines(lines));
                }
                Documents::of(lines, one_document, format)
            }
        };
        if format.is_record_per_document() {
            return Ok(Open::Documents(documents));
        }
        let shared = self.shared.remove(&format);
        let importer = shared.unwrap_or_else(|| format.importer(path, self.source.metrics));
        Ok(Open::InOrder { documents, importer, format })
    }
}

fn records(traces: Vec<Trace>, line: u64) -> Content {
    let record = |trace| (line, Record::Trace(Box::new(trace)));
    Content::Records(traces.into_iter().map(record).collect())
}

/// Fills a batch; false at the end of the file.
fn fill(open: &mut Open<'_>, content: &mut Content) -> Result<bool, EvalError> {
    match open {
        Open::Lines(lines) => {
            // The memory of the last batch is used again.
            let mut bytes = match std::mem::take(content) {
                Content::Lines(_, bytes) => bytes,
                _ => Vec::new(),
            };
            let first = lines.next_batch(&mut bytes)?;
            let any = !bytes.is_empty();
            *content = Content::Lines(first, bytes);
            Ok(any)
        }
        Open::Documents(documents) => {
            let (mut batch, mut bytes) = (Vec::new(), 0);
            while bytes < BATCH_BYTES && batch.len() < BATCH_DOCUMENTS {
                let Some((at, text)) = documents.next_document()? else { break };
                bytes += text.as_ref().map_or(0, String::len);
                batch.push((at, text));
            }
            let any = !batch.is_empty();
            *content = Content::Documents(batch);
            Ok(any)
        }
        Open::InOrder { documents, importer, format } => {
            let (mut batch, mut out, mut bytes) = (Vec::new(), Vec::new(), 0);
            let mut any = false;
            while bytes < BATCH_BYTES && batch.len() < BATCH_DOCUMENTS {
                let Some((at, text)) = documents.next_document()? else { break };
                any = true;
                bytes += text.as_ref().map_or(0, String::len);
                let read = text.and_then(|text| {
                    let read = importer.take(&text, at, &mut out);
                    read.map_err(|error| classed(*format, at, &text, &error))
                });
                batch.extend(read.err().map(|bad| (at.line, Record::Bad(bad))));
                let line = documents.line();
                batch.extend(out.drain(..).map(|trace| (line, Record::Trace(Box::new(trace)))));
            }
            *content = Content::Records(batch);
            Ok(any)
        }
    }
}

/// The lines of a file with their numbers.
struct NumberedLines {
    path: PathBuf,
    blocks: Blocks<'static>,
    batch: Vec<u8>,
    at: usize,
    /// The number of the line that was read last.
    line: u64,
}

/// A text with its place, or the reason for which it is bad.
type Numbered<P> = (P, Result<String, Bad>);

impl NumberedLines {
    fn open(path: &Path) -> Result<Self, InputError> {
        let blocks = blocks(path, &Limits::streaming())?;
        Ok(NumberedLines { path: path.to_owned(), blocks, batch: Vec::new(), at: 0, line: 0 })
    }

    /// Reads on if all lines of the batch were used; false at the end.
    fn fill(&mut self) -> Result<bool, InputError> {
        if self.at >= self.batch.len() {
            self.at = 0;
            let next = self.blocks.next_block(&mut self.batch);
            next.map_err(|error| error.at_line(self.line + 1))?;
        }
        Ok(!self.batch.is_empty())
    }

    /// Returns whether the first line that is not blank is a document that is not a list; a broken one counts
    /// as one, and is refused as it is.
    fn begins_with_a_record(&mut self) -> Result<bool, InputError> {
        while self.fill()? {
            let mut rest = &self.batch[..];
            while !rest.is_empty() {
                let this = first_line(rest);
                rest = rest.get(this.len() + 1..).unwrap_or_default();
                if !this.trim_ascii().is_empty() {
                    let text = std::str::from_utf8(this);
                    return Ok(text.is_ok_and(|text| is_complete(text) && !is_list(text)));
                }
            }
            // Nothing but blank lines, which are not needed again.
            self.line += memchr::memchr_iter(b'\n', &self.batch).count() as u64;
            self.batch.clear();
        }
        Ok(true)
    }

    /// Fills a batch with whole lines and returns the number of the first of them.
    fn next_batch(&mut self, bytes: &mut Vec<u8>) -> Result<u64, InputError> {
        self.fill()?;
        std::mem::swap(bytes, &mut self.batch);
        self.batch.clear();
        let first = self.line + 1;
        self.line += memchr::memchr_iter(b'\n', bytes).count() as u64;
        Ok(first)
    }

    fn next_line(&mut self) -> Result<Option<Numbered<u64>>, InputError> {
        if !self.fill()? {
            return Ok(None);
        }
        let this = first_line(&self.batch[self.at..]);
        self.at += this.len() + 1;
        self.line += 1;
        Ok(Some((self.line, text(self.line, this).map(str::to_owned))))
    }
}

/// Returns whether a text is a whole JSON value; a broken one is whole enough to be refused as it is.
fn is_complete(text: &str) -> bool {
    match serde_json::from_str::<serde::de::IgnoredAny>(text) {
        Ok(_) => true,
        Err(error) => !error.is_eof(),
    }
}

/// The documents of a file.
struct Documents {
    lines: Option<NumberedLines>,
    /// True if the file is one document or one list, not yet read.
    one_document: bool,
    format: TraceFormat,
    pending: VecDeque<Pending>,
    ready: VecDeque<(Position, Result<String, Bad>)>,
}

impl Documents {
    fn of(lines: NumberedLines, one_document: bool, format: TraceFormat) -> Self {
        let (pending, ready) = (VecDeque::new(), VecDeque::new());
        Documents { lines: Some(lines), one_document, format, pending, ready }
    }

    fn line(&self) -> u64 {
        self.lines.as_ref().map_or(1, |lines| lines.line)
    }

    fn next_document(&mut self) -> Result<Option<Numbered<Position>>, EvalError> {
        let first = Position { line: 1, entry: 0 };
        match self.pending.pop_front() {
            Some(Pending::Text(text)) => return Ok(Some((first, Ok(text)))),
            Some(Pending::Protobuf(bytes)) => {
                let json = protobuf::to_json(&bytes).map(|value| value.to_string());
                let bad = |message| Bad { line: 1, class: "not_protobuf", message };
                return Ok(Some((first, json.map_err(bad))));
            }
            None => {}
        }
        if std::mem::take(&mut self.one_document) {
            self.read_whole()?;
        }
        loop {
            if let Some(document) = self.ready.pop_front() {
                return Ok(Some(document));
            }
            let Some(lines) = &mut self.lines else { return Ok(None) };
            let Some((line, text)) = lines.next_line()? else { return Ok(None) };
            match text {
                Ok(text) if text.trim().is_empty() => {}
                Ok(text) => self.add(line, text),
                bad => return Ok(Some((Position { line, entry: 0 }, bad))),
            }
        }
    }

    /// Adds a document, or the entries of a list of documents.
    fn add(&mut self, line: u64, text: String) {
        let one = self.format.has_conversations() && is_conversation(&text);
        match list(&text).ok().filter(|_| is_list(&text) && !one) {
            Some(all) => {
                let entries = all.into_iter().enumerate();
                let entries: Vec<_> = entries
                    .map(|(entry, one)| (Position { line, entry }, Ok(one.to_owned())))
                    .collect();
                self.ready.extend(entries);
            }
            None => self.ready.push_back((Position { line, entry: 0 }, Ok(text))),
        }
    }

    /// Reads the first line that is not blank and, if it is not whole, all lines after it: one document
    /// or several, one after the other.
    fn read_whole(&mut self) -> Result<(), EvalError> {
        let Some(lines) = &mut self.lines else { return Ok(()) };
        let (line, mut whole) = loop {
            match lines.next_line()? {
                None => return Ok(()),
                Some((_, Ok(text))) if text.trim().is_empty() => {}
                Some((line, Ok(text))) => break (line, text),
                Some((line, bad)) => {
                    self.ready.push_back((Position { line, entry: 0 }, bad));
                    return Ok(());
                }
            }
        };
        if is_complete(&whole) {
            self.add(line, whole);
            return Ok(());
        }
        while let Some((line, next)) = lines.next_line()? {
            let Ok(next) = next else { continue };
            whole.push('\n');
            whole.push_str(&next);
            if whole.len() > MAX_DOCUMENT_BYTES {
                let (path, limit) = (lines.path.clone(), MAX_DOCUMENT_BYTES);
                return Err(InputError::LineTooLong { path, line, limit }.into());
            }
        }
        let mut values = serde_json::Deserializer::from_str(&whole).into_iter::<&RawValue>();
        let breaks = |text: &str| memchr::memchr_iter(b'\n', text.as_bytes()).count() as u64;
        let (mut line, mut end) = (line, 0);
        while let Some(Ok(value)) = values.next() {
            // A value begins after the white space that follows the one before it.
            let document = value.get();
            let start = values.byte_offset() - document.len();
            line += breaks(&whole[end..start]);
            self.add(line, document.to_owned());
            line += breaks(document);
            end = values.byte_offset();
        }
        let rest = &whole[end..];
        if !rest.trim().is_empty() {
            let place = Position { line: line + 1, entry: 0 };
            self.ready.push_back((place, Ok(rest.trim().to_owned())));
        }
        Ok(())
    }
}
