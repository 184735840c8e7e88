//! The terms of all languages, looked up together at a given place of a text.
//!
//! Terms are indexed by how they begin: by their first eight bytes, or five or three if they are shorter,
//! and closed terms of one word by that word. So a place in a text has four keys. For each key a small
//! table of bits, which fits the fastest cache, rules out nearly all places; only at the others are the few
//! terms with such a beginning compared.
//!
//! An automaton of `aho-corasick` is simpler but slower here. Walked from each place where a word begins, its
//! fastest form took 1.6 times as long to look up the text of the benchmark, 2.5 times as long for the tools
//! and threats of the datasets, and several times as long to build, which every process has to wait for.

use std::collections::BTreeMap;
use std::ops::Range;

use super::super::meaning::Mask;
use super::super::register::{BYTES, Register};

/// A term and its meanings.
#[derive(Clone, Copy)]
pub(super) struct Term {
    /// The term as laid-out text has it.
    pub(super) text: &'static str,
    /// Its meanings.
    pub(super) mask: Mask,
    /// True if the word may go on after the term.
    pub(super) open: bool,
}

impl Term {
    /// Returns true if only this very word matches.
    fn is_word(&self) -> bool {
        !self.open && self.text.bytes().all(|byte| byte.is_ascii_alphanumeric())
    }

    fn begins_with_ascii(&self) -> bool {
        self.text.bytes().next().is_some_and(|byte| byte.is_ascii())
    }
}

/// A term with a copy of its first sixteen bytes: they nearly always decide, and fetching its text from
/// elsewhere would cost more than all the rest.
#[derive(Clone, Copy)]
struct Entry {
    first: u64,
    second: u64,
    term: Term,
}

impl Entry {
    fn of(term: Term) -> Entry {
        let bytes = term.text.as_bytes();
        let second = Register::of(bytes.get(BYTES..).unwrap_or_default()).first(BYTES);
        Entry { first: Register::of(bytes).first(BYTES), second, term }
    }

    /// Returns true if the text begins with the term. `first` and `second` are the first sixteen bytes of
    /// the text.
    fn begins(&self, text: &[u8], first: Register, second: Register) -> bool {
        let length = self.term.text.len();
        first.first(length) == self.first
            && second.first(length.saturating_sub(BYTES)) == self.second
            && (length <= 2 * BYTES || text.starts_with(self.term.text.as_bytes()))
    }
}

/// All terms.
pub(super) struct Terms {
    words: Table<512>,
    ascii: Prefixes,
    others: Prefixes,
    /// The signs of ASCII that no term begins with.
    idle: [bool; 256],
}

/// A place in a text.
pub(super) struct Place<'t> {
    /// The text from there on.
    pub(super) rest: &'t [u8],
    /// Its first eight bytes.
    pub(super) first: Register,
    /// The number of lower-case letters and digits of ASCII that it begins with.
    pub(super) word: usize,
}

impl Terms {
    pub(super) fn of(terms: &[Term]) -> Terms {
        let (words, rest): (Vec<Term>, Vec<Term>) = terms.iter().partition(|term| term.is_word());
        let (ascii, others): (Vec<Term>, Vec<Term>) =
            rest.iter().partition(|term| term.begins_with_ascii());
        let word = |term: &Term| word_key(Register::of(term.text.as_bytes()), term.text.len());
        let mut idle = [false; 256];
        for byte in (0..=u8::MAX).filter(u8::is_ascii_punctuation) {
            idle[usize::from(byte)] = !ascii.iter().any(|term| term.text.as_bytes()[0] == byte);
        }
        Terms {
            idle,
            words: Table::of(words.iter().map(|term| (word(term), *term))),
            ascii: Prefixes::of(&ascii),
            others: Prefixes::of(&others),
        }
    }

    /// Returns false if no term begins at this place, the start of an ASCII word.
    #[inline]
    pub(super) fn may_begin_with_word(&self, first: Register, word: usize) -> bool {
        self.words.may_have(word_key(first, word)) | self.ascii.may_begin(first)
    }

    /// Returns false if no term begins at this place, another ASCII character.
    #[inline]
    pub(super) fn may_begin_with_sign(&self, first: Register) -> bool {
        self.ascii.may_begin(first)
    }

    /// Returns true for a sign of ASCII that no term begins with.
    #[inline]
    pub(super) fn never_begin_with(&self, byte: u8) -> bool {
        self.idle[usize::from(byte)]
    }

    /// Returns false if no term begins at this place, a character that is not ASCII.
    #[inline]
    pub(super) fn may_begin_otherwise(&self, first: Register) -> bool {
        self.others.may_begin(first)
    }

    /// The length and the meanings of the longest term that begins at a place. `ends_word` returns true if
    /// a closed term of a given length may end there.
    #[inline(never)]
    pub(super) fn longest(
        &self,
        place: &Place<'_>,
        ends_word: impl Fn(usize) -> bool,
    ) -> Option<(usize, Mask)> {
        let is_ascii = place.rest.first().is_some_and(u8::is_ascii);
        let prefixes = if is_ascii { &self.ascii } else { &self.others };
        let second = Register::of(place.rest.get(BYTES..).unwrap_or_default());
        // Long ones first.
        let candidates = [
            prefixes.eight.with_key(place.first.first(8)),
            self.words.with_key(word_key(place.first, place.word)),
            prefixes.five.with_key(place.first.first(5)),
            prefixes.three.with_key(place.first.first(3)),
        ];
        let mut longest = (0, Mask::NONE);
        for entries in candidates {
            for entry in entries {
                let Entry { term, .. } = entry;
                let length = term.text.len();
                if length < longest.0 || !entry.begins(place.rest, place.first, second) {
                    continue;
                }
                if term.open || ends_word(length) {
                    // The same term may be in several word lists.
                    let before = if length == longest.0 { longest.1 } else { Mask::NONE };
                    longest = (length, before | term.mask);
                }
            }
        }
        (longest.0 > 0).then_some(longest)
    }
}

/// The key of an ASCII word: its first eight bytes and its length.
#[inline]
fn word_key(first: Register, length: usize) -> u64 {
    // ASCII does not use the highest bit, so the length does.
    first.first(length) ^ (length as u64) << 59
}

/// Terms by their first eight, five or three bytes, whichever is the most that they have.
struct Prefixes {
    eight: Table<2048>,
    five: Table<512>,
    three: Table<256>,
}

impl Prefixes {
    fn of(terms: &[Term]) -> Prefixes {
        let by = |lengths: Range<usize>, count: usize| {
            let chosen = terms.iter().filter(move |term| lengths.contains(&term.text.len()));
            chosen.map(move |term| (Register::of(term.text.as_bytes()).first(count), *term))
        };
        // Two bytes are less than a key: they are under every key that begins with them.
        let short = by(0..3, 2).flat_map(|(key, term)| {
            (0..=u8::MAX).map(move |third| (key | u64::from(third) << 16, term))
        });
        Prefixes {
            eight: Table::of(by(8..usize::MAX, 8)),
            five: Table::of(by(5..8, 5)),
            three: Table::of(by(3..5, 3).chain(short)),
        }
    }

    #[inline]
    fn may_begin(&self, first: Register) -> bool {
        // No branch between them: the processor could not predict it.
        self.eight.may_have(first.first(8))
            | self.five.may_have(first.first(5))
            | self.three.may_have(first.first(3))
    }
}

/// Terms by a key. `WORDS`, a power of two, is the number of words of bits for the keys.
struct Table<const WORDS: usize> {
    /// Two bits for each key, chosen by its hash; sparse, so that few absent keys seem to be present.
    bits: Box<[u64; WORDS]>,
    /// The keys by their hash, each with its terms; in the next free slot if its own is taken.
    slots: Vec<Slot>,
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    key: u64,
    start: u32,
    /// 0 if the slot is free.
    count: u32,
}

/// The hash of a key; its highest bits are the best ones.
#[inline]
fn hash(key: u64) -> u64 {
    key.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl<const WORDS: usize> Table<WORDS> {
    /// Indexes terms by their keys. Several terms may have the same key; the longest come first.
    fn of(keyed: impl Iterator<Item = (u64, Term)>) -> Table<WORDS> {
        let mut by_key: BTreeMap<u64, Vec<Term>> = BTreeMap::new();
        for (key, term) in keyed {
            by_key.entry(key).or_default().push(term);
        }
        // Half of the slots stay free, so that a search is short and ends.
        let room = (by_key.len() * 2).next_power_of_two().max(2);
        let mut table = Table {
            bits: Box::new([0; WORDS]),
            slots: vec![Slot::default(); room],
            entries: Vec::new(),
        };
        for (key, mut terms) in by_key {
            terms.sort_by_key(|term| std::cmp::Reverse(term.text.len()));
            let (word, bits) = Self::bits(key);
            table.bits[word] |= bits;
            let mut place = table.slot(key);
            while table.slots[place].count > 0 {
                place = (place + 1) % room;
            }
            // There are some thousand terms.
            let number = |count: usize| u32::try_from(count).unwrap_or(0);
            table.slots[place] =
                Slot { key, start: number(table.entries.len()), count: number(terms.len()) };
            table.entries.extend(terms.into_iter().map(Entry::of));
        }
        table
    }

    /// The word and the two bits of a key.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "some bits of a hash are enough")]
    fn bits(key: u64) -> (usize, u64) {
        const { assert!(WORDS.is_power_of_two()) };
        let hash = hash(key) >> (u64::BITS - 12 - WORDS.trailing_zeros());
        (hash as usize >> 12 & (WORDS - 1), 1 << (hash & 63) | 1 << (hash >> 6 & 63))
    }

    #[expect(clippy::cast_possible_truncation, reason = "as many bits as there are slots")]
    fn slot(&self, key: u64) -> usize {
        (hash(key) >> (u64::BITS - self.slots.len().trailing_zeros())) as usize
    }

    #[inline]
    fn may_have(&self, key: u64) -> bool {
        let (word, bits) = Self::bits(key);
        self.bits[word] & bits == bits
    }

    fn with_key(&self, key: u64) -> &[Entry] {
        if !self.may_have(key) {
            return &[];
        }
        let mut place = self.slot(key);
        while let Some(slot) = self.slots.get(place)
            && slot.count > 0
        {
            if slot.key == key {
                let start = slot.start as usize;
                return self.entries.get(start..start + slot.count as usize).unwrap_or_default();
            }
            place = (place + 1) % self.slots.len();
        }
        &[]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_term_wins_and_closed_terms_end_at_borders() {
        let terms = Terms::of(&[
            Term { text: "pass", mask: Mask::PUT, open: false },
            Term { text: "pass on", mask: Mask::TRANSFER, open: false },
            Term { text: "mail", mask: Mask::ANSWER, open: true },
            Term { text: "mail", mask: Mask::TELL, open: false },
            Term { text: "#1", mask: Mask::SOLE, open: true },
            Term { text: "pass on the word", mask: Mask::TELL, open: false },
        ]);
        let find = |text: &str| {
            let bytes = text.as_bytes();
            let letter = |byte: &u8| byte.is_ascii_alphanumeric();
            let word = bytes.iter().take_while(|byte| letter(byte)).count();
            let place = Place { rest: bytes, first: Register::of(bytes), word };
            let may = if word > 0 {
                terms.may_begin_with_word(place.first, word)
            } else {
                terms.may_begin_with_sign(place.first)
            };
            let found = terms.longest(&place, |end| !bytes.get(end).is_some_and(letter));
            assert!(may || found.is_none(), "{text}");
            found
        };
        assert_eq!(find("pass on it"), Some((7, Mask::TRANSFER)));
        assert_eq!(find("pass on the word."), Some((16, Mask::TELL)));
        assert_eq!(find("pass on the words"), Some((7, Mask::TRANSFER)));
        assert_eq!(find("pass once"), Some((4, Mask::PUT)));
        assert_eq!(find("passage"), None);
        assert_eq!(find("mailing"), Some((4, Mask::ANSWER)));
        assert_eq!(find("mail"), Some((4, Mask::ANSWER | Mask::TELL)));
        assert_eq!(find("#1"), Some((2, Mask::SOLE)));
        assert_eq!(find("#12"), Some((2, Mask::SOLE)));
        assert_eq!(find(""), None);
    }
}
