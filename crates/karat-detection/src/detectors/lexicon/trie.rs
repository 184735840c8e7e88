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
}

impl Default for Builder {
    fn default() -> Builder {
        Builder { nodes: vec![Growing::default()] }
    }
}

impl Builder {
    /// Adds a term; an open one may go on behind its end.
    pub(super) fn add(&mut self, word: &str, mask: Mask, open: bool) {
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
        let mut trie =
            Trie { nodes: Vec::new(), labels: Vec::new(), targets: Vec::new(), first: [0; 256] };
        for node in &self.nodes {
            let start = trie.labels.len();
            for (label, target) in &node.edges {
                trie.labels.push(*label);
                trie.targets.push(index(*target));
            }
            trie.nodes.push(Node {
                start: index(start),
                edges: index(node.edges.len()),
                closed: node.closed,
                open: node.open,
            });
        }
        for (byte, target) in &self.nodes[0].edges {
            trie.first[usize::from(*byte)] = index(*target);
        }
        trie
    }
}

/// The tables hold some ten thousand nodes; the number fits by far.
fn index(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

struct Node {
    start: u32,
    edges: u32,
    closed: Mask,
    open: Mask,
}

/// Terms by their prefixes.
pub(super) struct Trie {
    nodes: Vec<Node>,
    labels: Vec<u8>,
    targets: Vec<u32>,
    /// The node after the first byte; 0, the root, where no term begins so.
    first: [u32; 256],
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
        let mut node = self.first[usize::from(*text.get(at)?)] as usize;
        if node == 0 {
            return None;
        }
        let mut end = at + 1;
        let mut longest = None;
        loop {
            let here = &self.nodes[node];
            let mut mask = here.open;
            if here.closed != Mask::NONE && ends_word(end) {
                mask |= here.closed;
            }
            if mask != Mask::NONE {
                longest = Some((end, mask));
            }
            let Some(byte) = text.get(end) else { return longest };
            let (start, edges) = (here.start as usize, here.edges as usize);
            let labels = &self.labels[start..start + edges];
            let Some(edge) = labels.iter().position(|label| label == byte) else { return longest };
            node = self.targets[start + edge] as usize;
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
