//! Files of traces, read as batches that threads can parse and score.
//!
//! A document is a line; or, where the format allows it and the first line is not a whole one, the
//! whole file or each entry of the list that it is. What cannot be read becomes a [`Bad`] with its line
//! and class, so that it is counted and not lost; only a file that cannot be read on ends the reading.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

use karat_core::error::EvalError;
use karat_io::input::{Blocks, InputError, Limits, blocks};

use crate::formats::{Importer, Position, TraceFormat};
use crate::metric::CallMetric;
use crate::trace::Trace;
use crate::trace::fields::{Invalid, is_list, list};

/// The size in bytes of a file that is one document.
const MAX_DOCUMENT_BYTES: usize = 256 << 20;
/// The size in bytes, and the number of documents, at which a batch of documents is full.
const BATCH_BYTES: usize = 1 << 18;
const BATCH_DOCUMENTS: usize = 256;

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
        let mut importer = source.format.importer(&source.files[self.file], source.metrics);
        let mut out = Vec::new();
        self.documents(|at, text| {
            let read = text.and_then(|text| {
                importer.take(text, at, &mut out).map_err(|error| classed(at, text, &error))
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

/// The class of a document that an importer refused.
pub(crate) fn classed(at: Position, text: &str, error: &Invalid) -> Bad {
    let class = match serde_json::from_str::<serde::de::IgnoredAny>(text) {
        Err(error) if error.is_eof() => "truncated",
        Err(_) => "not_json",
        Ok(_) => "invalid",
    };
    Bad { line: at.line, class, message: error.to_string() }
}

/// Files of traces in one format.
#[derive(Clone, Copy, Debug)]
pub struct TraceFiles<'a> {
    /// The files.
    pub files: &'a [PathBuf],
    /// Their format.
    pub format: TraceFormat,
    /// The metrics that are computed from samples themselves.
    pub metrics: &'a [CallMetric],
}

/// Reads files of traces batch by batch.
pub(crate) struct Reader<'a> {
    source: TraceFiles<'a>,
    /// The number of files that were opened.
    opened: usize,
    open: Option<Open<'a>>,
    /// The remarks of importers, with their counts.
    pub(crate) notes: BTreeMap<String, u64>,
}

enum Open<'a> {
    Lines(NumberedLines),
    Documents(Documents),
    InOrder { documents: Documents, importer: Box<dyn Importer + Send + 'a>, finished: bool },
}

impl<'a> Reader<'a> {
    pub(crate) fn new(source: TraceFiles<'a>) -> Self {
        Reader { source, opened: 0, open: None, notes: BTreeMap::new() }
    }

    /// Fills a batch; false at the end of the last file.
    pub(crate) fn next(&mut self, batch: &mut Batch) -> Result<bool, EvalError> {
        loop {
            if self.open.is_none() {
                let Some(path) = self.source.files.get(self.opened) else { return Ok(false) };
                self.open = Some(open(path, &self.source)?);
                self.opened += 1;
            }
            batch.file = self.opened - 1;
            let Some(open) = &mut self.open else { continue };
            if fill(open, &mut batch.content)? {
                return Ok(true);
            }
            if let Some(Open::InOrder { importer, .. }) = self.open.take() {
                for (note, count) in importer.notes() {
                    *self.notes.entry(note).or_default() += count;
                }
            }
        }
    }
}

fn open<'a>(path: &Path, source: &TraceFiles<'a>) -> Result<Open<'a>, EvalError> {
    let mut lines = NumberedLines::open(path)?;
    let one_document = source.format.may_be_one_document() && !lines.begins_with_a_record()?;
    let documents = |lines| Documents { lines, one_document, ready: VecDeque::new() };
    Ok(match source.format.is_record_per_document() {
        true if one_document => Open::Documents(documents(lines)),
        true => Open::Lines(lines),
        false => {
            let importer = source.format.importer(path, source.metrics);
            Open::InOrder { documents: documents(lines), importer, finished: false }
        }
    })
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
        Open::InOrder { documents, importer, finished } => {
            let (mut batch, mut out, mut bytes) = (Vec::new(), Vec::new(), 0);
            while !*finished && bytes < BATCH_BYTES && batch.len() < BATCH_DOCUMENTS {
                match documents.next_document()? {
                    Some((at, text)) => {
                        bytes += text.as_ref().map_or(0, String::len);
                        let read = text.and_then(|text| {
                            let read = importer.take(&text, at, &mut out);
                            read.map_err(|error| classed(at, &text, &error))
                        });
                        batch.extend(read.err().map(|bad| (at.line, Record::Bad(bad))));
                    }
                    None => {
                        *finished = true;
                        importer.finish(&mut out);
                    }
                }
                let line = documents.lines.line;
                batch.extend(out.drain(..).map(|trace| (line, Record::Trace(Box::new(trace)))));
            }
            let any = !batch.is_empty() || !*finished;
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
    lines: NumberedLines,
    /// True if the file is one document or one list, not yet read.
    one_document: bool,
    ready: VecDeque<(Position, Result<String, Bad>)>,
}

impl Documents {
    fn next_document(&mut self) -> Result<Option<Numbered<Position>>, EvalError> {
        if std::mem::take(&mut self.one_document) {
            self.read_whole()?;
        }
        if let Some(document) = self.ready.pop_front() {
            return Ok(Some(document));
        }
        while let Some((line, text)) = self.lines.next_line()? {
            if !text.as_ref().is_ok_and(|text| text.trim().is_empty()) {
                return Ok(Some((Position { line, entry: 0 }, text)));
            }
        }
        Ok(None)
    }

    /// Reads the first line that is not blank and, if it is not whole, all lines after it.
    fn read_whole(&mut self) -> Result<(), EvalError> {
        let (line, mut whole) = loop {
            match self.lines.next_line()? {
                None => return Ok(()),
                Some((_, Ok(text))) if text.trim().is_empty() => {}
                Some((line, Ok(text))) => break (line, text),
                Some((line, bad)) => {
                    self.ready.push_back((Position { line, entry: 0 }, bad));
                    return Ok(());
                }
            }
        };
        if !is_complete(&whole) {
            while let Some((line, next)) = self.lines.next_line()? {
                let Ok(next) = next else { continue };
                whole.push('\n');
                whole.push_str(&next);
                if whole.len() > MAX_DOCUMENT_BYTES {
                    let (path, limit) = (self.lines.path.clone(), MAX_DOCUMENT_BYTES);
                    return Err(InputError::LineTooLong { path, line, limit }.into());
                }
            }
        }
        match list(&whole) {
            Ok(all) => {
                let numbered = all.into_iter().enumerate();
                self.ready.extend(
                    numbered.map(|(entry, one)| (Position { line, entry }, Ok(one.to_owned()))),
                );
            }
            Err(_) => self.ready.push_back((Position { line, entry: 0 }, Ok(whole))),
        }
        Ok(())
    }
}
