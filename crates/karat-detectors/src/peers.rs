//! Names of other tools and servers in the text of a definition.

use std::collections::BTreeSet;

use aho_corasick::AhoCorasick;

use super::meaning::{Hit, Mask};
use crate::definition::{Peer, ScanInput};

/// The most peers that are compared with; a client has at most some hundred tools.
const MAX_PEERS: usize = 1_000;
/// The shortest name that is searched for in text.
pub(super) const MIN_NAME: usize = 5;
/// The longest tool name in text.
const MAX_NAME: usize = 100;

/// The connected tools of other servers.
pub(super) fn foreign(input: &ScanInput) -> impl Iterator<Item = &Peer> {
    input.peers.iter().filter(|peer| peer.server != input.server).take(MAX_PEERS)
}

/// Marks the names of other tools and servers in laid-out text.
pub(super) fn mark(input: &ScanInput, text: &str, hits: &mut Vec<Hit>) {
    mark_named_tools(input, text, hits);
    if input.peers.is_empty() {
        return;
    }
    let own = input.tool.name.to_lowercase();
    let names = foreign(input).flat_map(|peer| [&peer.tool.name, &peer.server]);
    let names: BTreeSet<String> = names
        .map(|name| name.to_lowercase())
        .filter(|name| name.len() >= MIN_NAME && *name != own)
        .collect();
    let Ok(automaton) = AhoCorasick::new(&names) else { return };
    for found in automaton.find_iter(text) {
        let (start, end) = (found.start(), found.end());
        let letter =
            |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
        let before = start.checked_sub(1).and_then(|at| text.as_bytes().get(at));
        if !letter(before) && !letter(text.as_bytes().get(end)) {
            hits.push(Hit::new(start, end, Mask::PEER));
        }
    }
}

/// Marks tools that are called by name, as in `the send_mail tool`. Their servers are not known.
fn mark_named_tools(input: &ScanInput, text: &str, hits: &mut Vec<Hit>) {
    for number in 0..hits.len() {
        if !hits[number].mask.has(Mask::TOOL_WORD) {
            continue;
        }
        let before = text[..hits[number].start].trim_end();
        let near = before.ceil_char_boundary(before.len().saturating_sub(MAX_NAME));
        let start = before[near..]
            .trim_end_matches(['`', '"', '\''])
            .rfind([' ', '`', '(', '"', '\''])
            .map_or(near, |at| near + at + 1);
        let name = before[start..].trim_end_matches(['`', '"', '\'']);
        if name.contains('_') && name.is_ascii() && !name.eq_ignore_ascii_case(&input.tool.name) {
            hits.push(Hit::new(start, before.len(), Mask::NAMED_TOOL));
        }
    }
}
