//! Files of traces: documents one after the other, and what an importer makes of them.
//!
//! A document is a line; or, where a shape allows it and the first line is not one, the whole file or
//! each entry of the list that it is. What cannot be read is handed out as bad with its line and
//! class, so that it is counted and not lost; only a file that breaks off in its compression ends the
//! reading.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

use karat_io::input::{Blocks, InputError, Limits, blocks};

use super::{Importer, Shape};
use crate::error::AgentError;
use crate::metric::CallMetric;
use crate::trace::Trace;
use crate::trace::fields::{Invalid, is_list, list};

/// Maximum size of a file that is one document.
const MAX_DOCUMENT_BYTES: usize = 256 << 20;

/// The documents of a file.
pub struct Documents {
    path: PathBuf,
    blocks: Blocks<'static>,
    batch: Vec<u8>,
    at: usize,
    line: u64,
    may_be_whole: bool,
    ready: VecDeque<Numbered>,
}

/// A text with its line, or what is wrong with it.
type Numbered = (u64, Result<String, Bad>);

/// A part of a file that is no trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bad {
    /// The line, from 1.
    pub line: u64,
    /// What is wrong: `truncated`, `not_json`, `not_utf8`, `invalid`.
    pub class: &'static str,
    /// In words.
    pub message: String,
}

impl Documents {
    /// Opens a file, plain or compressed.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(path: &Path, shape: Shape) -> Result<Self, AgentError> {
        Ok(Documents {
            path: path.to_owned(),
            blocks: blocks(path, &Limits::streaming())?,
            batch: Vec::new(),
            at: 0,
            line: 0,
            may_be_whole: shape.may_be_whole(),
            ready: VecDeque::new(),
        })
    }

    /// The next document with its line.
    fn next_document(&mut self) -> Result<Option<Numbered>, AgentError> {
        loop {
            if let Some(document) = self.ready.pop_front() {
                return Ok(Some(document));
            }
            let Some((line, text)) = self.next_line()? else { return Ok(None) };
            let text = match text {
                Ok(text) if text.trim().is_empty() => continue,
                Ok(text) => text,
                Err(bad) => return Ok(Some((line, Err(bad)))),
            };
            let first = std::mem::replace(&mut self.may_be_whole, false);
            if first && !is_complete(&text) {
                let whole = self.rest(text)?;
                self.split(line, whole);
            } else if first && is_list(&text) {
                self.split(line, text);
            } else {
                return Ok(Some((line, Ok(text))));
            }
        }
    }

    fn split(&mut self, line: u64, text: String) {
        match list(&text) {
            Ok(all) => {
                let all: Vec<_> = all.into_iter().map(|one| (line, Ok(one.to_owned()))).collect();
                self.ready.extend(all);
            }
            Err(_) => self.ready.push_back((line, Ok(text))),
        }
    }

    fn rest(&mut self, mut text: String) -> Result<String, AgentError> {
        while let Some((_, next)) = self.next_line()? {
            let Ok(next) = next else { continue };
            text.push('\n');
            text.push_str(&next);
            if text.len() > MAX_DOCUMENT_BYTES {
                let (path, limit) = (self.path.clone(), MAX_DOCUMENT_BYTES as u64);
                return Err(InputError::TooLarge { path, limit }.into());
            }
        }
        Ok(text)
    }

    fn next_line(&mut self) -> Result<Option<Numbered>, AgentError> {
        if self.at >= self.batch.len() {
            self.at = 0;
            let next = self.blocks.next_block(&mut self.batch);
            next.map_err(|error| error.at_line(self.line + 1))?;
            if self.batch.is_empty() {
                return Ok(None);
            }
        }
        let rest = &self.batch[self.at..];
        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        self.at += end + 1;
        self.line += 1;
        let text = std::str::from_utf8(&rest[..end]).map(str::to_owned).map_err(|error| Bad {
            line: self.line,
            class: "not_utf8",
            message: format!("byte {} is not UTF-8", error.valid_up_to() + 1),
        });
        Ok(Some((self.line, text)))
    }
}

/// Whether a text is a whole JSON value; broken ones are whole enough to be refused as they are.
fn is_complete(text: &str) -> bool {
    match serde_json::from_str::<serde::de::IgnoredAny>(text) {
        Ok(_) => true,
        Err(error) => !error.is_eof(),
    }
}

/// The traces of a file.
pub struct Traces {
    documents: Documents,
    importer: Box<dyn Importer + Send>,
    ready: VecDeque<Trace>,
    line: u64,
    finished: bool,
}

/// What a file holds at a place.
#[derive(Debug)]
pub enum Read {
    /// A trace, and the line at which it was whole.
    Trace(u64, Box<Trace>),
    /// Something that is none.
    Bad(Bad),
}

impl Traces {
    /// Opens a file. `metrics` are those that are scored on peers' samples as they are.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(path: &Path, shape: Shape, metrics: &[CallMetric]) -> Result<Self, AgentError> {
        Ok(Traces {
            documents: Documents::open(path, shape)?,
            importer: shape.importer(path, metrics),
            ready: VecDeque::new(),
            line: 0,
            finished: false,
        })
    }

    /// The next trace, or the next thing that is none.
    ///
    /// # Errors
    /// When the file cannot be read on.
    pub fn next_trace(&mut self) -> Result<Option<Read>, AgentError> {
        loop {
            if let Some(trace) = self.ready.pop_front() {
                return Ok(Some(Read::Trace(self.line, Box::new(trace))));
            }
            if self.finished {
                return Ok(None);
            }
            let mut out = Vec::new();
            match self.documents.next_document()? {
                None => {
                    self.finished = true;
                    self.importer.finish(&mut out);
                }
                Some((_, Err(bad))) => return Ok(Some(Read::Bad(bad))),
                Some((line, Ok(text))) => {
                    self.line = line;
                    if let Err(error) = self.importer.take(&text, line, &mut out) {
                        return Ok(Some(Read::Bad(classed(line, &text, &error))));
                    }
                }
            }
            self.ready.extend(out);
        }
    }

    /// What a reader should know about the file, with how often it happened.
    pub fn notes(&self) -> BTreeMap<String, u64> {
        self.importer.notes()
    }
}

fn classed(line: u64, text: &str, error: &Invalid) -> Bad {
    let class = match serde_json::from_str::<serde::de::IgnoredAny>(text) {
        Err(error) if error.is_eof() => "truncated",
        Err(_) => "not_json",
        Ok(_) => "invalid",
    };
    Bad { line, class, message: error.to_string() }
}
