//! In which order are the queries of a file?
//!
//! Queries in a strictly ascending order cannot come back, and two files in the same order can be
//! merged. Two orders are recognised: by bytes, and shorter ids first, which is how `q2` comes before
//! `q10` and 9 before 10. Anything else is still scored right, with more memory.

use std::cmp::Ordering;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use hashbrown::HashTable;

use super::error::TrecError;
use super::fields::first_column;
use super::input::Input;

/// The orders that queries are in, as far as they have been seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Orders {
    by_bytes: bool,
    short_first: bool,
}

impl Orders {
    /// As long as nothing has been seen.
    pub(super) const ALL: Self = Self { by_bytes: true, short_first: true };

    pub(super) fn is_none(self) -> bool {
        !self.by_bytes && !self.short_first
    }

    /// Those that are left when one query was seen before another.
    pub(super) fn keep(&mut self, before: &[u8], after: &[u8]) {
        self.by_bytes &= by_bytes(before, after).is_lt();
        self.short_first &= short_first(before, after).is_lt();
    }

    /// Which of two queries comes first, if the orders say so with one voice.
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

    /// Those that two files share.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            by_bytes: self.by_bytes && other.by_bytes,
            short_first: self.short_first && other.short_first,
        }
    }

    /// One of them, so that there is only one voice. All are right once the whole of both files has
    /// been seen.
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

/// How many queries a file has if none comes back after another one. `None` if one does, or if two
/// ids have the same hash.
pub(super) fn count_if_together(input: &Input) -> Result<Option<usize>, TrecError> {
    let hasher = RandomState::new();
    let mut seen = HashTable::new();
    let mut groups = 0;
    each_group(input, |_, query| {
        groups += 1;
        let hash = hasher.hash_one(query);
        // Stays behind the number of groups from the first repetition on.
        if seen.len() + 1 == groups && seen.find(hash, |other| *other == hash).is_none() {
            seen.insert_unique(hash, hash, |hash| *hash);
        }
    })?;
    Ok(Some(groups).filter(|groups| *groups == seen.len()))
}

/// Calls back with the query before (empty at first) and the query, each time it changes.
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
            // Nearly all lines belong to the query before. A space behind it, or the id goes on.
            if line.starts_with(&previous) && line.get(previous.len()) == Some(&b' ') {
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
        let input = Input::new(&path).unwrap();
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
    fn orders_that_disagree_decide_nothing() {
        assert_eq!(Orders::ALL.compare(b"q9", b"q10"), None);
        assert_eq!(Orders::ALL.compare(b"q1", b"q10"), Some(Ordering::Less));
        assert_eq!(BY_BYTES.compare(b"q9", b"q10"), Some(Ordering::Greater));
        assert_eq!(SHORT_FIRST.compare(b"q9", b"q10"), Some(Ordering::Less));
        assert!(BY_BYTES.and(SHORT_FIRST).is_none());
        assert_eq!(Orders::ALL.one(), BY_BYTES);
        assert_eq!(SHORT_FIRST.one(), SHORT_FIRST);
    }

    #[test]
    fn a_query_that_comes_back_is_noticed() {
        assert_eq!(look("b x\nb y\na x\nc x\n").1, Some(3));
        assert_eq!(look("b x\na x\nb y\nc x\n").1, None);
        assert_eq!(look("a x\nb x\na y\n").1, None);
    }

    #[test]
    fn an_id_that_begins_with_the_one_before_is_another() {
        assert_eq!(look("q1 a\nq10 a\n q10\tb\r\n\nq10\n").1, Some(2));
    }
}
