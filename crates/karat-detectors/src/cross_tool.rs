//! Attacks on other servers' tools: rules about them in a definition that is not theirs, and names that
//! pose as theirs.
//!
//! Honest definitions mention other tools too (which of two to use, which to call first), so a name alone
//! is not a finding: it depends on what is asked of that tool.

use std::collections::BTreeSet;

use super::characters::{is_invisible, looks_like};
use super::finding::{Finding, Tier};
use super::meaning::Mask;
use super::peers::{MIN_NAME, foreign};
use super::reading::{Reading, Surface};
use super::window::windows;
use crate::definition::{Peer, ScanInput};

pub(super) fn inspect(reading: &Reading<'_>, findings: &mut Vec<Finding>) {
    rules_about_others(reading, findings);
    findings.extend(boasting_name(&reading.input.tool.name));
    findings.extend(foreign(reading.input).filter_map(|peer| {
        posing_name(reading.input, peer).map(|(tier, rule, message)| Finding {
            rule,
            tier,
            message: message.into(),
            place: "name".into(),
            excerpt: format!("{} / {}", reading.input.tool.name, peer.tool.name),
        })
    }));
}

fn rules_about_others(reading: &Reading<'_>, findings: &mut Vec<Finding>) {
    const OTHERS: Mask = Mask::PEER.and(Mask::OTHER_TOOL).and(Mask::NAMED_TOOL);
    if !reading.mask.has(OTHERS) {
        return;
    }
    for window in windows(reading, |surface| surface != Surface::Result) {
        let (here, around) = (window.here, window.around);
        if !here.has(OTHERS) || here.has(Mask::CARE) {
            continue;
        }
        let moves = Mask::PUT.and(Mask::TRANSFER);
        // A tool that is only known by its name is most often a sibling, and documentation has links.
        let foreign = here.has(Mask::PEER.and(Mask::OTHER_TOOL));
        let outside = here.has(Mask::EXTERNAL) || foreign && around.has(Mask::EXTERNAL);
        if outside && (here.has(Mask::TRANSFER) || window.orders(Mask::PUT))
            || around.has(Mask::CONCEAL)
            || here.has(Mask::MAILBOX)
        {
            findings.push(window.finding(
                "rule-for-other-tool",
                Tier::Block,
                "a rule about another tool that leads outside or is hidden from the user",
            ));
        } else if here.has(Mask::AGAINST.and(Mask::UNASKED)) {
            findings.push(window.finding(
                "rule-for-other-tool",
                Tier::Block,
                "a rule about another tool that acts without or against the user",
            ));
        } else if here.has(Mask::SENSITIVE) && here.has(moves) {
            findings.push(window.finding(
                "rule-for-other-tool",
                Tier::Block,
                "asks for the output of another tool",
            ));
        } else if here.has(Mask::PEER)
            && here.has(Mask::REPLACE.and(Mask::OVERRIDE).and(Mask::DISPARAGE))
        {
            findings.push(window.finding(
                "replaces-other-tool",
                Tier::Block,
                "claims to replace another server's tool",
            ));
        } else if here.has(Mask::ALTER.and(Mask::DESTROY).and(Mask::DISABLE)) {
            let tier = if here.has(Mask::PEER) { Tier::Block } else { Tier::Warn };
            let message = "changes how another tool is used";
            findings.push(window.finding("rule-for-other-tool", tier, message));
        }
    }
}

/// Finds a name that advertises the tool: one such word may describe its subject, two do not.
fn boasting_name(name: &str) -> Option<Finding> {
    let first = |word: &[u8]| word.first().map(u8::to_ascii_lowercase);
    let is_boast = |word: &&[u8]| {
        // Nearly always, the first letter decides.
        let begins = first(word);
        let mut boasts = BOASTS.iter().map(|boast| boast.as_bytes());
        boasts.any(|boast| first(boast) == begins && boast.eq_ignore_ascii_case(word))
    };
    let boasts = if name.is_ascii() {
        name.as_bytes().split(|byte| !byte.is_ascii_alphanumeric()).filter(is_boast).count()
    } else {
        let words = name.split(|c: char| !c.is_alphanumeric());
        words.map(str::as_bytes).filter(is_boast).count()
    };
    (boasts >= 2).then(|| Finding {
        rule: "boasting-name",
        tier: Tier::Block,
        message: "the name advertises the tool".into(),
        place: "name".into(),
        excerpt: name.to_owned(),
    })
}

/// Words that advertise.
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

/// Compares a name with a foreign one that it may pose as.
fn posing_name(input: &ScanInput, peer: &Peer) -> Option<(Tier, &'static str, String)> {
    let (own, theirs) = (&input.tool.name, &peer.tool.name);
    if own.is_empty() || theirs.is_empty() {
        return None;
    }
    let same_text = alike(&input.tool.description, &peer.tool.description);
    if own == theirs {
        let message = format!("has the same name and description as a tool of {}", peer.server);
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
            format!("the name is {theirs} with the prefix that clients add for {}", peer.server);
        return Some((Tier::Block, "prefixed-name", message));
    }
    if same_text && own.len() >= MIN_NAME && one_edit(own, theirs) {
        let message =
            format!("one letter away from {theirs} of {}, with the same description", peer.server);
        return Some((Tier::Block, "look-alike-name", message));
    }
    None
}

/// A name with one form for all characters that look alike.
fn skeleton(name: &str) -> String {
    name.chars()
        .filter(|character| !is_invisible(*character))
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

/// Returns true if two descriptions are copies: they share most of their words.
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

/// Returns true if one letter added, dropped, changed or swapped turns one name into the other.
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
