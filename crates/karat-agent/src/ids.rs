//! Noticing ids that come twice, in bounded memory.
//!
//! Only fingerprints are kept (8 bytes each), and only of the first so many ids. That finds a file
//! that was joined with itself whatever its size, and every repetition in files up to the bound; the
//! summary says how many ids went unremembered. A fingerprint seen twice is a suspicion, not yet a
//! repetition: the caller confirms it by reading again.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The ids seen so far.
pub(crate) struct Ids {
    fingerprints: HashSet<u64>,
    limit: usize,
    /// Ids that later ones are not compared with.
    pub(crate) unremembered: u64,
}

impl Ids {
    /// Remembers up to `limit` ids.
    pub(crate) fn new(limit: usize) -> Self {
        Ids { fingerprints: HashSet::new(), limit, unremembered: 0 }
    }

    /// Takes note of an id; true if it may have been seen before.
    pub(crate) fn is_suspect(&mut self, id: &str) -> bool {
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        let fingerprint = hasher.finish();
        if self.fingerprints.len() < self.limit {
            return !self.fingerprints.insert(fingerprint);
        }
        let known = self.fingerprints.contains(&fingerprint);
        self.unremembered += u64::from(!known);
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_ids_are_remembered_and_the_others_counted() {
        let mut ids = Ids::new(2);
        assert!(!ids.is_suspect("a"));
        assert!(!ids.is_suspect("b"));
        assert!(!ids.is_suspect("c"));
        assert!(ids.is_suspect("a"));
        assert!(!ids.is_suspect("c"));
        assert_eq!(ids.unremembered, 2);
    }
}
