//! The lines of one query, from a file in which they are consecutive.

use super::error::TrecError;
use super::fields::{Record, Records, Value};
use super::input::Blocks;
use super::survey::Orders;

/// A judgement or a result without its query. The id is in the bytes of [`Rows`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<V> {
    start: usize,
    end: usize,
    pub(super) line: u64,
    pub(super) value: V,
}

/// All judgements or all results of a query, wherever they are stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows<'a, V> {
    pub(super) bytes: &'a [u8],
    pub(super) entries: &'a [Entry<V>],
}

impl<'a, V> Rows<'a, V> {
    pub(super) const NONE: Self = Self { bytes: &[], entries: &[] };

    pub(super) fn id(&self, index: usize) -> &'a [u8] {
        self.entries[index].id(self.bytes)
    }
}

impl<V> Entry<V> {
    /// Appends an id to the bytes and returns the entry that refers to it.
    pub(super) fn append(bytes: &mut Vec<u8>, id: &[u8], line: u64, value: V) -> Self {
        let start = bytes.len();
        bytes.extend_from_slice(id);
        Self { start, end: bytes.len(), line, value }
    }

    pub(super) fn id<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[self.start..self.end]
    }
}

/// One query.
#[derive(Debug)]
pub(super) struct Group<V> {
    pub(super) query: Vec<u8>,
    bytes: Vec<u8>,
    entries: Vec<Entry<V>>,
}

impl<V> Group<V> {
    fn new() -> Self {
        Self { query: Vec::new(), bytes: Vec::new(), entries: Vec::new() }
    }

    pub(super) fn rows(&self) -> Rows<'_, V> {
        Rows { bytes: &self.bytes, entries: &self.entries }
    }

    fn clear(&mut self) {
        self.query.clear();
        self.bytes.clear();
        self.entries.clear();
    }

    fn push(&mut self, record: &Record<'_, V>)
    where
        V: Copy,
    {
        self.entries.push(Entry::append(
            &mut self.bytes,
            record.document,
            record.line,
            record.value,
        ));
    }
}

/// Reads one query after the other. A query that appears again later is a new group; the orders show
/// if that is possible.
pub(super) struct Groups<'i, V> {
    records: Records<'i>,
    current: Group<V>,
    /// The first line of the next query, which ends the current one.
    ahead: Group<V>,
    /// The orders of the queries that have been read so far.
    pub(super) orders: Orders,
}

impl<'i, V: Value> Groups<'i, V> {
    pub(super) fn new(blocks: Blocks<'i>) -> Self {
        Self {
            records: Records::new(blocks),
            current: Group::new(),
            ahead: Group::new(),
            orders: Orders::ALL,
        }
    }

    /// Reads the next query; `false` after the last one.
    pub(super) fn advance(&mut self) -> Result<bool, TrecError> {
        std::mem::swap(&mut self.current, &mut self.ahead);
        self.ahead.clear();
        while let Some(record) = self.records.next::<V>()? {
            if self.current.entries.is_empty() {
                self.current.query.extend_from_slice(record.query);
            } else if self.current.query != record.query {
                self.orders.keep(&self.current.query, record.query);
                self.ahead.query.extend_from_slice(record.query);
                self.ahead.push(&record);
                break;
            }
            self.current.push(&record);
        }
        Ok(!self.current.entries.is_empty())
    }

    /// The query that [`advance`](Self::advance) read.
    pub(super) fn current(&self) -> &Group<V> {
        &self.current
    }
}
