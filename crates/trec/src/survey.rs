//! The order of the queries in a file.
//!
//! Queries in a strictly ascending order cannot appear again later, and two files in the same order
//! can be merged. Two orders are recognised: by bytes, and shorter ids first, where `q2` comes before
//! `q10` and 9 before 10. Any other order is scored correctly too, with more memory.

use std::cmp::Ordering;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use hashbrown::HashTable;

use super::error::TrecError;
use super::fields::first_column;
use super::input::Input;

/// The orders of the queries seen so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Orders {
    by_bytes: bool,
    short_first: bool,
}

impl Orders {
    /// Before any query has been seen.
    pub(super) const ALL: Self = Self { by_bytes: true, short_first: true };

    pub(super) fn is_none(self) -> bool {
        !self.by_bytes && !self.short_first
    }

    /// Keeps the orders in which one query comes before another.
    pub(super) fn keep(&mut self, before: &[u8], after: &[u8]) {
        self.by_bytes &= by_bytes(before, after).is_lt();
        self.short_first &= short_first(before, after).is_lt();
    }

    /// The order of two queries; `None` if the orders disagree.
    pub(super) fn compare(self, left: &[u8], right: &[u8]) -> Option<Ordering> {
        match (self.by_bytes, self.short_first) {
            (true, false) => Some(by_bytes(left, right)),
            (false, true) => Some(short_first(left, right)),
            (false, false) => None,
            (true, true) => {
                Some(by_bytes(left, right)).filter(|ordering| *ordering == short_first(left, right))
            }
        }
    }

    /// The orders that two files share.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            by_bytes: self.by_bytes && other.by_bytes,
            short_first: self.short_first && other.short_first,
        }
    }

    /// One of the orders, so that there is no disagreement. All are correct once both files have been
    /// seen completely.
    pub(super) fn one(self) -> Self {
        Self { by_bytes: self.by_bytes, short_first: self.short_first && !self.by_bytes }
    }

    /// The orders of a whole file.
    pub(super) fn of(input: &Input) -> Result<Self, TrecError> {
        let mut orders = Self::ALL;
        let mut first = true;
        each_group(input, |previous, query| {
            if !std::mem::take(&mut first) {
                orders.keep(previous, query);
            }
        })?;
        Ok(orders)
    }
}

fn by_bytes(left: &[u8], right: &[u8]) -> Ordering {
    left.cmp(right)
}

fn short_first(left: &[u8], right: &[u8]) -> Ordering {
    left.len().cmp(&right.len()).then_with(|| left.cmp(right))
}

/// The number of queries of a file; `None` if a query appears again after another one, or if two ids
/// have the same hash.
pub(super) fn count_if_together(input: &Input) -> Result<Option<usize>, TrecError> {
    let hasher = RandomState::new();
    let mut seen = HashTable::new();
    let mut groups = 0;
    each_group(input, |_, query| {
        groups += 1;
        let hash = hasher.hash_one(query);
        // Falls behind the number of groups at the first repetition.
        if seen.len() + 1 == groups && seen.find(hash, |other| *other == hash).is_none() {
            seen.insert_unique(hash, hash, |hash| *hash);
        }
    })?;
    Ok(Some(groups).filter(|groups| *groups == seen.len()))
}

/// Calls `changed` with the previous query (empty at first) and the new one at each change.
fn each_group(input: &Input, mut changed: impl FnMut(&[u8], &[u8])) -> Result<(), TrecError> {
    let mut blocks = input.open()?;
    let mut previous = Vec::new();
    let mut lines = 0;
    while let Some(bytes) = blocks.next()? {
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let line = &rest[..end];
            rest = &rest[end + 1..];
            lines += 1;
            // Nearly all lines belong to the previous query. Without a space after it, the id is longer.
            // Before the first query, a space is only a space before it.
            if !previous.is_empty()
                && line.starts_with(&previous)
                && line.get(previous.len()) == Some(&b' ')
            {
                continue;
            }
            let Some(query) = first_column(line) else { continue };
            if previous != query {
                changed(&previous, query);
                previous.clear();
                previous.extend_from_slice(query);
            }
        }
        blocks.lines = lines;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(content: &str) -> (Orders, Option<usize>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        std::fs::write(&path, content).unwrap();
        let input = Input::file(&path);
        (Orders::of(&input).unwrap(), count_if_together(&input).unwrap())
    }

    const BY_BYTES: Orders = Orders { by_bytes: true, short_first: false };
    const SHORT_FIRST: Orders = Orders { by_bytes: false, short_first: true };

    #[test]
    fn both_orders_are_recognised() {
        assert_eq!(look("q1 a\nq1 b\nq2 a\n").0, Orders::ALL);
        assert_eq!(look("9 a\n10 a\n11 b\n").0, SHORT_FIRST);
        assert_eq!(look("10 a\n11 a\n9 b\n").0, BY_BYTES);
        assert!(look("10 a\n9 a\n11 b\n").0.is_none());
        assert!(look("a x\na x\nb x\na x\n").0.is_none());
    }

    #[test]
    fn orders_that_disagree_give_no_answer() {
        assert_eq!(Orders::ALL.compare(b"q9", b"q10"), None);
        assert_eq!(Orders::ALL.compare(b"q1", b"q10"), Some(Ordering::Less));
        assert_eq!(BY_BYTES.compare(b"q9", b"q10"), Some(Ordering::Greater));
        assert_eq!(SHORT_FIRST.compare(b"q9", b"q10"), Some(Ordering::Less));
        assert!(BY_BYTES.and(SHORT_FIRST).is_none());
        assert_eq!(Orders::ALL.one(), BY_BYTES);
        assert_eq!(SHORT_FIRST.one(), SHORT_FIRST);
    }

    #[test]
    fn a_query_that_appears_again_is_detected() {
        assert_eq!(look("b x\nb y\na x\nc x\n").1, Some(3));
        assert_eq!(look("b x\na x\nb y\nc x\n").1, None);
        assert_eq!(look("a x\nb x\na y\n").1, None);
        assert_eq!(look(" a x\n b x\n").1, Some(2));
        assert!(look(" b x\na x\nc x\n").0.is_none());
    }

    #[test]
    fn an_id_that_begins_with_the_previous_one_is_another() {
        assert_eq!(look("q1 a\nq10 a\n q10\tb\r\n\nq10\n").1, Some(2));
    }
}
