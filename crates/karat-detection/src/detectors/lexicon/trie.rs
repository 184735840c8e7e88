//! Many words at once, looked up from a given place.
//!
//! A prefix tree as a double array: the cell of a child lies at its parent's base plus the byte, so each
//! byte of the text costs one look. Text is read from the start of a word for as long as some term goes
//! on; tables of the first letters, small enough for the fastest cache, say beforehand of most words that
//! none does. That is why it is faster here than an automaton over the whole text.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::Mask;

/// A node while the tree grows.
#[derive(Default)]
struct Growing {
    edges: BTreeMap<u8, usize>,
    closed: Mask,
    open: Mask,
}

/// Collects terms.
pub(super) struct Builder {
    nodes: Vec<Growing>,
    beginnings: Beginnings,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder { nodes: vec![Growing::default()], beginnings: Beginnings::new() }
    }
}

impl Builder {
    /// Adds a term; an open one may go on behind its end.
    pub(super) fn add(&mut self, word: &str, mask: Mask, open: bool) {
        self.beginnings.add(word.as_bytes());
        let mut node = 0;
        for byte in word.bytes() {
            let fresh = self.nodes.len();
            node = *self.nodes[node].edges.entry(byte).or_insert(fresh);
            if node == fresh {
                self.nodes.push(Growing::default());
            }
        }
        let end = &mut self.nodes[node];
        if open {
            end.open |= mask;
        } else {
            end.closed |= mask;
        }
    }

    /// The tree, laid flat: level by level, each node's children into the first gap that fits them all.
    pub(super) fn finish(self) -> Trie {
        let mut trie = Trie {
            cells: vec![Cell::GAP; 256],
            terms: vec![(Mask::NONE, Mask::NONE); 256],
            beginnings: self.beginnings,
            root: 0,
        };
        let mut bases = BTreeSet::new();
        // Families go behind each other; single children fill the gaps that they leave.
        let (mut gap, mut end): (usize, usize) = (256, 256);
        let mut waiting = VecDeque::from([(0, None)]);
        while let Some((number, place)) = waiting.pop_front() {
            let node: &Growing = &self.nodes[number];
            let has_term = node.closed != Mask::NONE || node.open != Mask::NONE;
            let mut base = 0;
            if let Some(least) = node.edges.keys().next() {
                let from = if node.edges.len() == 1 { &mut gap } else { &mut end };
                base = from.saturating_sub(usize::from(*least)).max(1);
                // A base of one's own: then the byte alone tells whose child a cell is.
                while bases.contains(&base) || !trie.has_room(base, node) {
                    base += 1;
                }
                *from = base + usize::from(*least);
                bases.insert(base);
            }
            match place {
                Some((place, byte)) => {
                    trie.cells[place] = Cell::new(byte, has_term, base);
                    trie.terms[place] = (node.closed, node.open);
                }
                None => trie.root = base,
            }
            for (byte, child) in &node.edges {
                let at = base + usize::from(*byte);
                if trie.cells.len() <= at {
                    trie.cells.resize(at + 1, Cell::GAP);
                    trie.terms.resize(at + 1, (Mask::NONE, Mask::NONE));
                }
                // Taken until its turn comes.
                trie.cells[at] = Cell::new(*byte, false, 0);
                waiting.push_back((*child, Some((at, *byte))));
            }
        }
        trie
    }
}

/// A node in four bytes, so that many share a line of the cache: where its children begin, whether a
/// term ends here, and the byte that leads here.
#[derive(Clone, Copy, PartialEq)]
struct Cell(u32);

impl Cell {
    /// No text in UTF-8 has this byte.
    const GAP: Cell = Cell(0xff);

    /// The tables hold some ten thousand nodes; their places fit by far.
    fn new(byte: u8, has_term: bool, base: usize) -> Cell {
        let base = u32::try_from(base).unwrap_or(0);
        Cell(base << 9 | u32::from(has_term) << 8 | u32::from(byte))
    }

    fn byte(self) -> u8 {
        self.0.to_le_bytes()[0]
    }

    fn has_term(self) -> bool {
        self.0 >> 8 & 1 == 1
    }

    fn base(self) -> usize {
        (self.0 >> 9) as usize
    }
}

/// Terms by their prefixes.
pub(super) struct Trie {
    cells: Vec<Cell>,
    root: usize,
    /// What the term that ends in a cell means if it ends a word, and if it need not. Beside the cells,
    /// since few are needed.
    terms: Vec<(Mask, Mask)>,
    beginnings: Beginnings,
}

impl Trie {
    fn has_room(&self, base: usize, node: &Growing) -> bool {
        let mut places = node.edges.keys().map(|byte| base + usize::from(*byte));
        places.all(|place| self.cells.get(place).is_none_or(|cell| *cell == Cell::GAP))
    }

    /// The longest term that begins at a place, with its end. `ends_word` says whether a closed term may
    /// end there.
    pub(super) fn longest(
        &self,
        text: &[u8],
        at: usize,
        ends_word: impl Fn(usize) -> bool,
    ) -> Option<(usize, Mask)> {
        let rest = text.get(at..)?;
        if !self.beginnings.may_begin(rest) {
            return None;
        }
        let mut longest = None;
        let mut base = self.root;
        for (count, byte) in rest.iter().enumerate() {
            let place = base + usize::from(*byte);
            let cell = match self.cells.get(place) {
                Some(cell) if cell.byte() == *byte => cell,
                _ => return longest,
            };
            if cell.has_term() {
                let (closed, open) = self.terms[place];
                let end = at + count + 1;
                let ends = closed != Mask::NONE && ends_word(end);
                let mask = if ends { closed | open } else { open };
                if mask != Mask::NONE {
                    longest = Some((end, mask));
                }
            }
            base = cell.base();
        }
        longest
    }
}

/// The first letters of all terms. What is not among them begins none; what is among them may not either.
struct Beginnings {
    /// By the first two bytes: whether a term of two or three bytes begins so.
    short: Bits,
    /// By the first four bytes: whether a term of four or five bytes begins so.
    medium: Bits,
    /// By the first six bytes: whether a longer term begins so.
    long: Bits,
}

impl Beginnings {
    fn new() -> Beginnings {
        Beginnings { short: Bits::new(), medium: Bits::new(), long: Bits::new() }
    }

    fn add(&mut self, word: &[u8]) {
        let bytes = eight(word);
        match word.len() {
            0..4 => self.short.set(first(bytes, 2)),
            4..6 => self.medium.set(first(bytes, 4)),
            _ => self.long.set(first(bytes, 6)),
        }
    }

    fn may_begin(&self, text: &[u8]) -> bool {
        let bytes = eight(text);
        self.long.has(first(bytes, 6))
            || self.medium.has(first(bytes, 4))
            || self.short.has(first(bytes, 2))
    }
}

/// The first eight bytes, zero behind the end.
fn eight(text: &[u8]) -> u64 {
    match text.first_chunk() {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => text.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

fn first(bytes: u64, count: u32) -> u64 {
    bytes & (u64::MAX >> (64 - 8 * count))
}

/// A set of numbers by their hashes: it may hold more than was put in, never less.
struct Bits(Vec<u64>);

impl Bits {
    fn new() -> Bits {
        Bits(vec![0; 1 << 10])
    }

    fn place(number: u64) -> (usize, u32) {
        let [.., high, higher] = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
        let hash = u16::from_le_bytes([high, higher]);
        (usize::from(hash / 64), u32::from(hash % 64))
    }

    fn set(&mut self, number: u64) {
        let (word, bit) = Bits::place(number);
        self.0[word] |= 1 << bit;
    }

    fn has(&self, number: u64) -> bool {
        let (word, bit) = Bits::place(number);
        self.0[word] >> bit & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_term_wins_and_borders_hold() {
        let mut builder = Builder::default();
        builder.add("pass", Mask::PUT, false);
        builder.add("pass on", Mask::TRANSFER, false);
        builder.add("mail", Mask::ANSWER, true);
        let trie = builder.finish();
        let find = |text: &str| {
            let border = |end: usize| {
                !text.as_bytes().get(end).is_some_and(|byte| byte.is_ascii_alphanumeric())
            };
            trie.longest(text.as_bytes(), 0, border)
        };
        assert_eq!(find("pass on it"), Some((7, Mask::TRANSFER)));
        assert_eq!(find("pass once"), Some((4, Mask::PUT)));
        assert_eq!(find("passage"), None);
        assert_eq!(find("mailing"), Some((4, Mask::ANSWER)));
        assert_eq!(find(""), None);
    }
}
