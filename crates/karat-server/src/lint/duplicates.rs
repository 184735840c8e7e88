//! The rule about tools whose definitions are nearly the same.

use std::cmp::Reverse;
use std::collections::HashMap;

use karat_core::finding::Severity;

use super::definition::Definition;
use super::{Findings, Server};
use crate::probe::Rule;
use crate::probe::destructive_tools::{is_in, split_name};

/// The share of common words that makes two tools near-duplicates.
const SHARED: f64 = 0.8;
/// The number of words below which sharing most of them means little.
const ENOUGH_WORDS: usize = 6;

pub(super) const NEAR_DUPLICATE: Rule = Rule {
    id: "near-duplicate",
    severity: Severity::Warning,
    summary: "two tools share at least four fifths of their words",
    help: "A model chooses between them by chance. Merge them, with a parameter for what differs, or \
           say in each description when to use it and not the other.",
};

/// The work that may be spent on one server: comparisons of marks, and of words one by one. A server with
/// thousands of tools that all look alike is compared with those before each tool as far as this goes.
const MAX_WORK: usize = 100_000_000;

/// The words of a tool: name, description and parameter names.
struct Words {
    /// Numbers of words, sorted.
    numbers: Vec<u32>,
    /// Each word sets one of these bits.
    marks: [u64; 4],
}

impl Words {
    fn of(tool: &Definition<'_>, known: &mut HashMap<String, u32>) -> Words {
        let mut text = format!("{} {}", tool.name(), tool.description().unwrap_or_default());
        for parameter in tool.parameters() {
            text.push(' ');
            text.push_str(&parameter.name);
        }
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        let mut numbers: Vec<u32> = words
            .map(|word| {
                let next = u32::try_from(known.len()).unwrap_or(u32::MAX);
                *known.entry(word.to_lowercase()).or_insert(next)
            })
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        let mut marks = [0; 4];
        for number in &numbers {
            // Spread by a multiplication, because neighbours in a text have neighbouring numbers.
            let bit = number.wrapping_mul(0x9e37_79b1) >> 24;
            marks[(bit >> 6) as usize] |= 1 << (bit & 63);
        }
        Words { numbers, marks }
    }

    /// False if so many words are missing in the other that they cannot share enough.
    fn may_share(&self, other: &Words) -> bool {
        let (a, b) = (self.numbers.len(), other.numbers.len());
        if a.min(b) < ENOUGH_WORDS || (a.min(b) as f64) < SHARED * a.max(b) as f64 {
            return false;
        }
        let missing: u32 = self
            .marks
            .iter()
            .zip(other.marks)
            .map(|(own, theirs)| (own & !theirs).count_ones())
            .sum();
        let common = a.saturating_sub(missing as usize);
        common as f64 >= SHARED * (a + b - common) as f64
    }

    /// The share of common words among all.
    fn shared(&self, other: &Words) -> f64 {
        let (mut common, mut theirs) = (0, other.numbers.iter().peekable());
        for number in &self.numbers {
            while theirs.next_if(|other| *other < number).is_some() {}
            common += usize::from(theirs.next_if(|other| *other == number).is_some());
        }
        common as f64 / (self.numbers.len() + other.numbers.len() - common) as f64
    }
}

/// Finds the tools that may share enough words with a later one. Two tools that share four fifths of their
/// words share one of the rarest fifth of either, so only tools with such a word in common are compared.
struct Candidates {
    /// By word, the number of tools that have it.
    frequency: Vec<usize>,
    /// By word, the tools so far of which it is one of the rarest, in order.
    by_rare_word: HashMap<u32, Vec<usize>>,
}

impl Candidates {
    fn new(words: &[Words], known: usize) -> Candidates {
        let mut frequency = vec![0; known];
        for number in words.iter().flat_map(|words| &words.numbers) {
            frequency[*number as usize] += 1;
        }
        Candidates { frequency, by_rare_word: HashMap::new() }
    }

    fn rarest(&self, words: &Words) -> Vec<u32> {
        let mut numbers = words.numbers.clone();
        numbers.sort_unstable_by_key(|number| (self.frequency[*number as usize], *number));
        // All but the four fifths (`SHARED`) that may be in common, and one of those.
        let common = (numbers.len() * 4).div_ceil(5);
        numbers.truncate(numbers.len() + 1 - common.max(1));
        numbers
    }

    /// The latest earlier tools that may share enough, latest first and at most `most`, and adds this one.
    fn before(&mut self, index: usize, words: &Words, most: usize) -> Vec<usize> {
        let mut found: Vec<usize> = Vec::new();
        for word in self.rarest(words) {
            let tools = self.by_rare_word.entry(word).or_default();
            found.extend(tools.iter().rev().take(most));
            tools.push(index);
        }
        found.sort_unstable_by_key(|index| Reverse(*index));
        found.dedup();
        found.truncate(most);
        found
    }
}

pub(super) fn near_duplicate(server: &Server<'_>, findings: &mut Findings<'_>) {
    let mut known = HashMap::new();
    let words: Vec<Words> = server.tools.iter().map(|tool| Words::of(tool, &mut known)).collect();
    let mut candidates = Candidates::new(&words, known.len());
    for (index, tool) in server.tools.iter().enumerate() {
        let own = &words[index];
        let mut work = MAX_WORK / server.tools.len().max(1);
        let mut nearest: Option<(usize, f64)> = None;
        for other in candidates.before(index, own, work) {
            let theirs = &words[other];
            let cost = match own.may_share(theirs) {
                true => 1 + own.numbers.len() + theirs.numbers.len(),
                false => 1,
            };
            let Some(left) = work.checked_sub(cost) else { break };
            work = left;
            if cost == 1 {
                continue;
            }
            let shared = own.shared(theirs);
            // Among equals the first.
            if shared >= SHARED
                && nearest.is_none_or(|(_, best)| shared >= best)
                // Equal descriptions are a finding of their own.
                && server.tools[other].description() != tool.description()
                && !differ_by_verb(server.tools[other].name(), tool.name())
            {
                nearest = Some((other, shared));
            }
        }
        if let Some((other, shared)) = nearest {
            let other = server.tools[other].name();
            let message = format!("shares {:.0} % of its words with {other}", shared * 100.0);
            findings.tool(index, tool, "/description", message);
        }
    }
}

/// Verbs of names: tools that do different things to the same thing are not duplicates.
const VERBS: &str = "\
    add append apply approve archive block cancel check close copy count create delete disable edit \
    enable export fetch find get import insert list lock merge move open patch pause post pull push put \
    read reject remove rename reopen replace reset restart restore resume revoke rollback run save scale \
    search send set show start stop subscribe sync undo unlock unsubscribe update upload validate view write";

fn differ_by_verb(one: &str, other: &str) -> bool {
    let (one, other) = (split_name(one), split_name(other));
    let has_own_verb = |own: &[String], others: &[String]| {
        own.iter().any(|word| is_in(word, VERBS) && !others.contains(word))
    };
    has_own_verb(&one, &other) && has_own_verb(&other, &one)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::found;
    use super::*;

    #[test]
    fn marks_never_hide_a_near_duplicate() {
        let mut known = HashMap::new();
        let texts: Vec<String> = (0..60)
            .map(|at| (at..at + 10 + at % 3).map(|word| format!("w{} ", word % 40)).collect())
            .collect();
        let raw: Vec<_> =
            texts.iter().map(|text| json!({"name": "x", "description": text})).collect();
        let words: Vec<Words> =
            raw.iter().map(|raw| Words::of(&Definition::read(raw), &mut known)).collect();
        for (a, b) in words.iter().flat_map(|a| words.iter().map(move |b| (a, b))) {
            assert!(a.shared(b) < SHARED || a.may_share(b));
        }
    }

    #[test]
    fn every_tool_that_shares_enough_is_a_candidate() {
        // All sets of ten words out of twelve.
        let sets = (0_u32..1 << 12).filter(|bits| bits.count_ones() == 10);
        let words: Vec<Words> = sets
            .map(|bits| {
                let numbers = (0..12).filter(|number| bits & (1 << number) != 0).collect();
                Words { numbers, marks: [0; 4] }
            })
            .collect();
        let mut candidates = Candidates::new(&words, 12);
        for (index, own) in words.iter().enumerate() {
            let found = candidates.before(index, own, usize::MAX);
            for other in (0..index).filter(|other| own.shared(&words[*other]) >= SHARED) {
                assert!(found.contains(&other), "{index} {other}");
            }
        }
    }

    #[test]
    fn tools_that_differ_in_a_word_are_found_and_related_tools_are_not() {
        let definitions = [
            json!({"name": "list_open_issues", "description": "Lists the open issues of a repository, newest first, with labels and authors."}),
            json!({"name": "list_closed_issues", "description": "Lists the closed issues of a repository, newest first, with labels and authors."}),
            json!({"name": "create_issue", "description": "Opens a new issue in a repository with title, body and labels."}),
        ];
        let found = found(&NEAR_DUPLICATE, &definitions);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, "list_closed_issues");
        assert!(found[0].2.ends_with("with list_open_issues"), "{}", found[0].2);
    }
    #[test]
    fn tools_with_different_verbs_are_not_duplicates() {
        let about = |which: &str| {
            format!(
                "Takes the {which} issues of a repository, newest first, with labels, authors, \
                 assignees, milestones, linked requests, reactions, comments, dates, and their state."
            )
        };
        let pair = |one: &str, other: &str| {
            let first = json!({"name": one, "description": about("open")});
            let second = json!({"name": other, "description": about("closed")});
            found(&NEAR_DUPLICATE, &[first, second]).len()
        };
        assert_eq!(pair("issues_get", "issues_delete"), 0);
        assert_eq!(pair("issues_one", "issues_other"), 1);
    }
}
