//! Many words at once, looked up from a given place.
//!
//! A plain prefix tree in flat arrays. Text is read from the start of a word for as long as some term
//! goes on, which is two or three letters for most words; that is why it is faster here than an
//! automaton over the whole text.

use std::collections::BTreeMap;

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
    sieve: Sieve,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder { nodes: vec![Growing::default()], sieve: Sieve::new() }
    }
}

/// Says of most places, from a table that stays in the fastest cache, that no term begins there: by the
/// first bytes, up to six of them.
struct Sieve {
    bits: Vec<u64>,
}

impl Sieve {
    const BITS: u32 = 17;
    const LENGTHS: std::ops::RangeInclusive<usize> = 2..=6;

    fn new() -> Sieve {
        Sieve { bits: vec![0; 1 << (Sieve::BITS - 6)] }
    }

    /// The place in the table of the first bytes of a word.
    fn place(bytes: u64, length: usize) -> usize {
        let key = bytes & (u64::MAX >> (64 - 8 * length));
        let mixed = (key ^ length as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        usize::try_from(mixed >> (64 - Sieve::BITS)).unwrap_or(0)
    }

    /// The first eight bytes at a place, zero behind the end.
    fn load(text: &[u8], at: usize) -> u64 {
        if let Some(bytes) = text.get(at..).and_then(<[u8]>::first_chunk) {
            return u64::from_le_bytes(*bytes);
        }
        let rest = text.get(at..).unwrap_or_default();
        rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
    }

    fn add(&mut self, word: &str) {
        let length = word.len().min(*Sieve::LENGTHS.end());
        let place = Sieve::place(Sieve::load(word.as_bytes(), 0), length);
        self.bits[place / 64] |= 1 << (place % 64);
    }

    fn lets_pass(&self, text: &[u8], at: usize) -> bool {
        let bytes = Sieve::load(text, at);
        Sieve::LENGTHS.into_iter().any(|length| {
            let place = Sieve::place(bytes, length);
            self.bits[place / 64] >> (place % 64) & 1 == 1
        })
    }
}

impl Builder {
    /// Adds a term; an open one may go on behind its end.
    pub(super) fn add(&mut self, word: &str, mask: Mask, open: bool) {
        self.sieve.add(word);
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

    /// The tree, laid flat.
    pub(super) fn finish(self) -> Trie {
        let mut trie = Trie {
            nodes: Vec::with_capacity(self.nodes.len()),
            labels: Vec::new(),
            targets: Vec::new(),
            terms: vec![(Mask::NONE, Mask::NONE)],
            rows: vec![[0; 256]],
            first: [0; 256],
            sieve: self.sieve,
        };
        for node in &self.nodes {
            let start = index(trie.labels.len());
            for (label, target) in &node.edges {
                trie.labels.push(*label);
                trie.targets.push(index(*target));
            }
            let mut term = 0;
            if node.closed != Mask::NONE || node.open != Mask::NONE {
                term = index(trie.terms.len());
                trie.terms.push((node.closed, node.open));
            }
            trie.nodes.push(Node { start, end: index(trie.labels.len()), term });
        }
        // One-letter terms do not exist, so the first letter needs no node of its own.
        for (byte, target) in &self.nodes[0].edges {
            trie.first[usize::from(*byte)] = index(trie.rows.len());
            let mut row = [0; 256];
            for (label, target) in &self.nodes[*target].edges {
                row[usize::from(*label)] = index(*target);
            }
            trie.rows.push(row);
        }
        trie
    }
}

/// The tables hold some ten thousand nodes; the number fits by far.
fn index(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

struct Node {
    /// Its edges, in `labels` and `targets`.
    start: u32,
    end: u32,
    /// The term that ends here; 0 for none.
    term: u32,
}

/// Terms by their prefixes.
pub(super) struct Trie {
    nodes: Vec<Node>,
    labels: Vec<u8>,
    targets: Vec<u32>,
    /// What a term means if it ends a word, and if it need not.
    terms: Vec<(Mask, Mask)>,
    /// The node after two bytes: by the row of the first, then by the second; 0 for none.
    rows: Vec<[u32; 256]>,
    first: [u32; 256],
    sieve: Sieve,
}

impl Trie {
    /// The longest term that begins at a place, with its end. `ends_word` says whether a closed term may
    /// end there.
    pub(super) fn longest(
        &self,
        text: &[u8],
        at: usize,
        ends_word: impl Fn(usize) -> bool,
    ) -> Option<(usize, Mask)> {
        let (first, second) = (*text.get(at)?, *text.get(at + 1)?);
        let row = self.first[usize::from(first)] as usize;
        if row == 0 || !self.sieve.lets_pass(text, at) {
            return None;
        }
        let mut node = self.rows[row][usize::from(second)] as usize;
        if node == 0 {
            return None;
        }
        let mut end = at + 2;
        let mut longest = None;
        loop {
            let here = &self.nodes[node];
            if here.term != 0 {
                let (closed, open) = self.terms[here.term as usize];
                let mask =
                    if closed != Mask::NONE && ends_word(end) { closed | open } else { open };
                if mask != Mask::NONE {
                    longest = Some((end, mask));
                }
            }
            let Some(byte) = text.get(end) else { return longest };
            let (from, to) = (here.start as usize, here.end as usize);
            let Some(edge) = self.labels[from..to].iter().position(|label| label == byte) else {
                return longest;
            };
            node = self.targets[from + edge] as usize;
            end += 1;
        }
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
