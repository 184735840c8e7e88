//! Reaching for other servers' tools: rules about them in a definition that is not theirs, and names
//! that pose as theirs.
//!
//! Naming another tool is honest in many ways (which of two to use, what to call first), so a name
//! alone is nothing: what counts is what is asked of it.

use std::collections::BTreeSet;

use super::hidden_unicode::looks_like;
use super::instruction_phrases::windows;
use super::lexicon::{Hit, Mask};
use super::reading::{Reading, Surface};
use super::{Finding, Tier};
use crate::dataset::Peer;
use crate::system::Exhibit;

/// How many peers are compared with; a client has at most some hundred tools.
const MOST_PEERS: usize = 1_000;
/// The shortest name that is looked for in text.
const SHORTEST: usize = 5;

/// Marks the names of foreign tools and servers in laid-out text.
pub(super) fn mark_peers(exhibit: &Exhibit, text: &str, hits: &mut Vec<Hit>) {
    mark_named_tools(exhibit, text, hits);
    if exhibit.peers.is_empty() {
        return;
    }
    let own = exhibit.tool.name.to_lowercase();
    let mut names: BTreeSet<String> = BTreeSet::new();
    for peer in foreign(exhibit).take(MOST_PEERS) {
        for name in [&peer.tool.name, &peer.server] {
            let name = name.to_lowercase();
            if name.len() >= SHORTEST && name != own {
                names.insert(name);
            }
        }
    }
    let Ok(automaton) = aho_corasick::AhoCorasick::new(&names) else { return };
    for found in automaton.find_iter(text) {
        let (start, end) = (found.start(), found.end());
        let letter =
            |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
        let before = start.checked_sub(1).and_then(|at| text.as_bytes().get(at));
        if !letter(before) && !letter(text.as_bytes().get(end)) {
            hits.push(Hit { start, end, mask: Mask::PEER, negated: false });
        }
    }
}

/// Marks tools that are called by name: `the send_mail tool`. Whose they are is not known.
fn mark_named_tools(exhibit: &Exhibit, text: &str, hits: &mut Vec<Hit>) {
    for number in 0..hits.len() {
        if !hits[number].mask.has(Mask::TOOL_WORD) {
            continue;
        }
        let before = text[..hits[number].start].trim_end();
        // A name of more than a hundred bytes is none.
        let near = before.ceil_char_boundary(before.len().saturating_sub(100));
        let start = before[near..]
            .trim_end_matches(['`', '"', '\''])
            .rfind([' ', '`', '(', '"', '\''])
            .map_or(near, |at| near + at + 1);
        let name = before[start..].trim_end_matches(['`', '"', '\'']);
        if name.contains('_') && name.is_ascii() && !name.eq_ignore_ascii_case(&exhibit.tool.name) {
            hits.push(Hit { start, end: before.len(), mask: Mask::NAMED_TOOL, negated: false });
        }
    }
}

fn foreign(exhibit: &Exhibit) -> impl Iterator<Item = &Peer> {
    exhibit.peers.iter().filter(|peer| peer.server != exhibit.server)
}

/// What this detector finds.
pub fn inspect(reading: &Reading<'_>) -> Vec<Finding> {
    let mut findings = rules_about_others(reading);
    findings.extend(boasting_name(&reading.exhibit.tool.name));
    findings.extend(foreign(reading.exhibit).take(MOST_PEERS).filter_map(|peer| {
        posing_name(reading.exhibit, peer).map(|(tier, rule, message)| Finding {
            rule,
            tier,
            message,
            place: "name".to_owned(),
            excerpt: format!("{} / {}", reading.exhibit.tool.name, peer.tool.name),
        })
    }));
    findings
}

fn rules_about_others(reading: &Reading<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for window in windows(reading, |surface| surface != Surface::Result) {
        let (here, around) = (window.here, window.around);
        if !here.has(Mask::PEER.and(Mask::OTHER_TOOL).and(Mask::NAMED_TOOL)) || here.has(Mask::CARE)
        {
            continue;
        }
        let moves = Mask::PUT.and(Mask::TRANSFER);
        if around.has(Mask::EXTERNAL) && here.has(moves)
            || around.has(Mask::CONCEAL)
            || here.has(Mask::MAILBOX)
        {
            findings.push(window.finding(
                "rule-for-other-tool",
                Tier::Block,
                "a rule about another tool that leads outside or is kept from the user",
            ));
        } else if here.has(Mask::AGAINST.and(Mask::UNASKED)) {
            findings.push(window.finding(
                "rule-for-other-tool",
                Tier::Block,
                "a rule about another tool that works without or against the user",
            ));
        } else if here.has(Mask::SENSITIVE) && here.has(moves) {
            findings.push(window.finding(
                "rule-for-other-tool",
                Tier::Block,
                "what another tool returns is to be handed over",
            ));
        } else if here.has(Mask::PEER)
            && here.has(Mask::REPLACE.and(Mask::OVERRIDE).and(Mask::DISPARAGE))
        {
            findings.push(window.finding(
                "replaces-other-tool",
                Tier::Block,
                "claims the place of another server's tool",
            ));
        } else if here.has(Mask::ALTER.and(Mask::DESTROY).and(Mask::DISABLE)) {
            let tier = if here.has(Mask::PEER) { Tier::Block } else { Tier::Warn };
            let message = "changes how another tool is used";
            findings.push(window.finding("rule-for-other-tool", tier, message));
        }
    }
    findings
}

/// A name that recommends itself: one such word may describe what the tool is about, two do not.
fn boasting_name(name: &str) -> Option<Finding> {
    let words = name.split(|c: char| !c.is_alphanumeric());
    let is_boast = |word: &&str| BOASTS.iter().any(|boast| boast.eq_ignore_ascii_case(word));
    let boasts = words.filter(is_boast).count();
    (boasts >= 2).then(|| Finding {
        rule: "boasting-name",
        tier: Tier::Block,
        message: "the name recommends itself to whoever picks a tool".to_owned(),
        place: "name".to_owned(),
        excerpt: name.to_owned(),
    })
}

/// Words by which a name recommends itself.
const BOASTS: &[&str] = &[
    "official",
    "verified",
    "best",
    "preferred",
    "trusted",
    "certified",
    "recommended",
    "first",
    "primary",
    "default",
    "priority",
    "approved",
    "ultimate",
    "authoritative",
    "secure",
    "safe",
    "always",
    "use",
];

/// Whether a name is made to be taken for a foreign one.
fn posing_name(exhibit: &Exhibit, peer: &Peer) -> Option<(Tier, &'static str, String)> {
    let (own, theirs) = (&exhibit.tool.name, &peer.tool.name);
    if own.is_empty() || theirs.is_empty() {
        return None;
    }
    let same_text = alike(&exhibit.tool.description, &peer.tool.description);
    if own == theirs {
        let message = format!("has the name and the description of a tool of {}", peer.server);
        return same_text.then_some((Tier::Warn, "same-name", message));
    }
    if skeleton(own) == skeleton(theirs) {
        let message = format!("the name looks like {theirs} of {}", peer.server);
        return Some((Tier::Block, "look-alike-name", message));
    }
    let prefixed = own
        .strip_prefix(peer.server.as_str())
        .is_some_and(|rest| rest.trim_start_matches(['_', '-', '.', ':', '/']) == theirs);
    if prefixed && !peer.server.is_empty() {
        let message =
            format!("the name is that of {theirs} as clients prefix it for {}", peer.server);
        return Some((Tier::Block, "prefixed-name", message));
    }
    if same_text && own.len() >= SHORTEST && one_edit(own, theirs) {
        let message =
            format!("one letter away from {theirs} of {}, with its description", peer.server);
        return Some((Tier::Block, "look-alike-name", message));
    }
    None
}

/// A name with everything folded that looks alike.
fn skeleton(name: &str) -> String {
    name.chars()
        .filter(|character| !super::hidden_unicode::is_invisible(*character))
        .flat_map(char::to_lowercase)
        .map(|character| looks_like(character).unwrap_or(character))
        .map(|character| match character {
            '0' => 'o',
            '1' | '|' | 'i' => 'l',
            '-' | '.' | ' ' => '_',
            '5' => 's',
            other => other,
        })
        .collect()
}

/// Whether two descriptions are copies: most words of each stand in the other.
fn alike(one: &str, other: &str) -> bool {
    if one.len() > 100_000 || other.len() > 100_000 {
        return one == other;
    }
    let words = |text: &str| -> BTreeSet<String> {
        text.split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect()
    };
    let (one, other) = (words(one), words(other));
    let shared = one.intersection(&other).count();
    let all = one.len() + other.len() - shared;
    shared >= 4 && shared * 10 >= all * 8
}

/// Whether one letter added, dropped, changed or swapped leads from one name to the other.
fn one_edit(one: &str, other: &str) -> bool {
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    let (short, long): (Vec<char>, Vec<char>) = (short.chars().collect(), long.chars().collect());
    if long.len() > 200 || long.len() - short.len().min(long.len()) > 1 {
        return false;
    }
    let head = short.iter().zip(&long).take_while(|(a, b)| a == b).count();
    let (short, long) = (&short[head..], &long[head..]);
    match (short, long) {
        ([], rest) => rest.len() <= 1,
        ([_, a @ ..], [_, b @ ..]) if a == b => true,
        ([a, b, x @ ..], [c, d, y @ ..]) if a == d && b == c && x == y => true,
        (a, [_, b @ ..]) => a == b,
        _ => false,
    }
}
