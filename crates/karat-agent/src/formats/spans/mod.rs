//! Spans, put together into traces: OpenTelemetry as it is really written, and the exports of tools that
//! record their own spans.
//!
//! Each source is read into `Span`s by a file of its own; `Spans` collects them by trace, and
//! `assemble` makes the traces. The traces that are still open are bounded in number and size: beyond
//! that, the one that was silent longest is handed out, and spans that come for it later are counted.

mod assemble;
mod call;
mod choices;
mod chosen;
mod dialects;
pub(super) mod exports;
mod messages;
pub(crate) mod otlp;
pub mod protobuf;
pub(super) mod records;
mod same;
mod span;
pub(super) mod time;

use std::collections::{BTreeMap, BTreeSet};

use self::assemble::Closed;
pub(crate) use self::span::Span;
use super::{Importer, Position};
use crate::trace::{Invalid, Trace};

/// The number of traces that are held open at a time, and the size in bytes of their documents.
const MAX_OPEN: usize = 16_384;
const MAX_OPEN_BYTES: usize = 96 << 20;
/// The number of ids of traces that were handed out and are remembered, to know late spans.
const MAX_REMEMBERED: usize = 65_536;

const LATE: &str = "spans that came after their trace was closed";
const BACKWARDS: &str = "spans with an end before the beginning, whose times were not used";

/// Reads the spans of one document.
pub(crate) type ReadSpans = fn(&str, &mut Vec<Span>) -> Result<(), Invalid>;

/// Collects the spans of traces.
pub(super) struct Spans {
    read: ReadSpans,
    open: BTreeMap<String, Open>,
    bytes: usize,
    clock: u64,
    done: BTreeSet<String>,
    notes: BTreeMap<String, u64>,
}

#[derive(Default)]
struct Open {
    touched: u64,
    bytes: usize,
    spans: Vec<Span>,
}

impl Importer for Spans {
    fn take(&mut self, text: &str, _: Position, out: &mut Vec<Trace>) -> Result<(), Invalid> {
        let mut spans = Vec::new();
        (self.read)(text, &mut spans)?;
        let bytes = text.len() / spans.len().max(1);
        for span in spans {
            self.add(span, bytes, out);
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<Trace>) {
        let mut all: Vec<(String, Open)> = std::mem::take(&mut self.open).into_iter().collect();
        // Runs of one task are numbered in the order in which they began.
        all.sort_by_cached_key(|(id, open)| {
            (open.spans.iter().map(|span| span.start).min(), id.clone())
        });
        for (id, open) in all {
            self.close(id, open, out);
        }
    }

    fn notes(&self) -> BTreeMap<String, u64> {
        self.notes.clone()
    }
}

impl Spans {
    pub(super) fn new(read: ReadSpans) -> Self {
        Spans {
            read,
            open: BTreeMap::new(),
            bytes: 0,
            clock: 0,
            done: BTreeSet::new(),
            notes: BTreeMap::new(),
        }
    }

    fn add(&mut self, mut span: Span, bytes: usize, out: &mut Vec<Trace>) {
        // A clock that was set back while the span was open.
        if span.end > 0 && span.end < span.start {
            self.note(BACKWARDS);
            span.end = 0;
        }
        if self.done.contains(&span.trace) {
            return self.note(LATE);
        }
        self.clock += 1;
        let open = self.open.entry(span.trace.clone()).or_default();
        open.touched = self.clock;
        open.bytes += bytes;
        open.spans.push(span);
        self.bytes += bytes;
        while self.open.len() > MAX_OPEN || (self.bytes > MAX_OPEN_BYTES && self.open.len() > 1) {
            let silent = self.open.iter().min_by_key(|(_, open)| open.touched);
            let Some(id) = silent.map(|(id, _)| id.clone()) else { break };
            if let Some(open) = self.open.remove(&id) {
                if self.done.len() < MAX_REMEMBERED {
                    self.done.insert(id.clone());
                }
                self.bytes -= open.bytes;
                self.close(id, open, out);
            }
        }
    }

    fn close(&mut self, id: String, open: Open, out: &mut Vec<Trace>) {
        match assemble::trace(id, open.spans) {
            Closed::Trace(trace) => out.push(*trace),
            Closed::LeftOut(reason) => self.note(reason),
            Closed::NotOfAgent => {}
        }
    }

    fn note(&mut self, note: &str) {
        *self.notes.entry(note.to_owned()).or_default() += 1;
    }
}

#[cfg(test)]
mod tests;
