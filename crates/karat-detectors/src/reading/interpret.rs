//! The meaning of a sentence: terms together, and what a negation turns into its contrary.

use std::cmp::Reverse;

use super::super::meaning::{Hit, Mask};

/// The most bytes between a negation and a later word that it governs.
const REACH: usize = 48;
/// The most bytes between a verb and a negation that follows it.
const REACH_BACK: usize = 30;

/// A chain of meanings that together mean something else.
struct Chain {
    steps: &'static [Mask],
    /// The most bytes between one step and the next.
    gap: usize,
    gives: Mask,
}

const CHAINS: &[Chain] = &[
    // Do not … tell … the user; nothing to tell the user.
    Chain { steps: &[Mask::NEGATION, Mask::TELL, Mask::USER], gap: 40, gives: Mask::CONCEAL },
    Chain { steps: &[Mask::NEGATION, Mask::TELL_THIS], gap: 30, gives: Mask::CONCEAL },
    Chain { steps: &[Mask::USER, Mask::UNTOLD], gap: 60, gives: Mask::CONCEAL },
    Chain { steps: &[Mask::UNTOLD, Mask::USER], gap: 60, gives: Mask::CONCEAL },
    // Do not … mention … in the answer.
    Chain { steps: &[Mask::NEGATION, Mask::TELL, Mask::ANSWER], gap: 16, gives: Mask::CONCEAL },
    // Without asking; no confirmation is needed.
    Chain { steps: &[Mask::NEGATION, Mask::ASK], gap: 24, gives: Mask::UNASKED },
    Chain { steps: &[Mask::ASK, Mask::NEGATION_AFTER], gap: 12, gives: Mask::UNASKED },
    // Even if … the user … wants something else.
    Chain { steps: &[Mask::EVEN_IF, Mask::USER, Mask::WANT], gap: 40, gives: Mask::AGAINST },
    Chain { steps: &[Mask::EVEN_IF, Mask::WANT], gap: 40, gives: Mask::AGAINST },
    Chain { steps: &[Mask::USER, Mask::WANT, Mask::EVEN_IF], gap: 30, gives: Mask::AGAINST },
];

/// Meanings that turn into their contrary when negated; the others stay the same.
const NEGATABLE: Mask = Mask::PUT
    .and(Mask::TRANSFER)
    .and(Mask::COLLECT)
    .and(Mask::OVERRIDE)
    .and(Mask::DESTROY)
    .and(Mask::DISABLE)
    .and(Mask::ALTER)
    .and(Mask::WRITE)
    .and(Mask::PAY)
    .and(Mask::REPLACE)
    .and(Mask::EXECUTE)
    .and(Mask::USE)
    .and(Mask::CARE)
    .and(Mask::ACTS)
    .and(Mask::ROLE)
    .and(Mask::CLASSIC)
    .and(Mask::OBEY)
    .and(Mask::DIVULGE);

/// Every chain has one of these, and so has a sentence in which a hit is negated or is false care; without
/// them its meanings are those of its hits.
pub(super) const TURNING: Mask = Mask::NEGATION
    .and(Mask::NEGATION_AFTER)
    .and(Mask::UNTOLD)
    .and(Mask::EVEN_IF)
    .and(Mask::UNASKED);

/// Sorts hits and drops those inside a longer one: "no" in "no matter what" negates nothing.
pub(super) fn keep_longest(hits: &mut Vec<Hit>) {
    hits.sort_unstable_by_key(|hit| (hit.start, Reverse(hit.end)));
    let mut end = 0;
    let mut covering = (0, 0);
    hits.retain(|hit| {
        let inside = hit.end <= end && (hit.start, hit.end) != covering;
        if hit.end > end {
            end = hit.end;
            covering = (hit.start, hit.end);
        }
        !inside
    });
}

/// Marks the negated hits of a sentence, adds the meanings of chains, and returns the meanings of the
/// whole sentence. `text` is the text that the hits refer to.
pub(super) fn sentence(text: &str, hits: &mut [Hit]) -> Mask {
    mark_negated(text, hits);
    drop_false_care(hits);
    for hit in hits.iter_mut() {
        // "Tell the user" is care; "do not tell the user" is its contrary.
        if hit.negated && hit.mask.has_all(Mask::CARE | Mask::TELL | Mask::USER) {
            hit.mask |= Mask::CONCEAL;
        }
    }
    let mut present: Mask = hits.iter().map(|hit| hit.mask).collect();
    for chain in CHAINS {
        if chain.steps.iter().all(|step| present.has(*step)) {
            apply(chain, text, hits);
            present |= chain.gives;
        }
    }
    let effective = |hit: &Hit| if hit.negated { hit.mask.without(NEGATABLE) } else { hit.mask };
    hits.iter().map(effective).collect()
}

fn mark_negated(text: &str, hits: &mut [Hit]) {
    // The end of the last negation, while its clause lasts.
    let mut last: Option<usize> = None;
    for number in 0..hits.len() {
        let hit = hits[number];
        if let Some(end) = last
            && hit.start >= end
        {
            let broken = hit.start - end > REACH || clause_ends(&text[end..hit.start]);
            hits[number].negated = !broken;
        }
        if hit.mask.has(Mask::NEGATION) {
            last = Some(hit.end);
        }
        if hit.mask.has(Mask::NEGATION_AFTER) {
            for earlier in hits[..number].iter_mut().rev() {
                let near = earlier.end <= hit.start && hit.start - earlier.end <= REACH_BACK;
                if !near && earlier.end + REACH_BACK < hit.start {
                    break;
                }
                if near && !clause_ends(&text[earlier.end..hit.start]) {
                    earlier.negated = true;
                }
            }
        }
    }
}

/// Drops care that overlaps its contrary: "without confirming with the user" contains "confirm with the
/// user".
fn drop_false_care(hits: &mut [Hit]) {
    for number in 1..hits.len() {
        let (earlier, later) = (hits[number - 1], hits[number]);
        if later.start < earlier.end {
            let both = earlier.mask | later.mask;
            if both.has_all(Mask::CARE | Mask::UNASKED) {
                hits[number - 1].mask = earlier.mask.without(Mask::CARE);
                hits[number].mask = later.mask.without(Mask::CARE);
            }
        }
    }
}

fn clause_ends(between: &str) -> bool {
    between.char_indices().any(|(at, character)| match character {
        ',' | ';' | ':' | '(' | ')' | '、' | '，' | '；' | '،' | '"' | '«' | '»' => true,
        ' ' => between[at..].starts_with(" but ") || between[at..].starts_with(" and then "),
        _ => false,
    })
}

/// Adds the meaning of a chain to its last word, wherever the chain is found.
fn apply(chain: &Chain, text: &str, hits: &mut [Hit]) {
    let Some((first, rest)) = chain.steps.split_first() else { return };
    for start in 0..hits.len() {
        if !hits[start].mask.has(*first) {
            continue;
        }
        let mut at = start;
        let complete = rest.iter().all(|step| {
            let end = hits[at].end;
            let next =
                (at + 1..hits.len()).take_while(|n| hits[*n].start <= end + chain.gap).find(|n| {
                    hits[*n].start >= end
                        && hits[*n].mask.has(*step)
                        && !text[end..hits[*n].start].contains([';', '(', ')', '；'])
                });
            at = next.unwrap_or(at);
            next.is_some()
        });
        if complete {
            hits[at].mask |= chain.gives;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_chain_has_a_meaning_that_turns_a_sentence() {
        for chain in CHAINS {
            assert!(chain.steps.iter().any(|step| TURNING.has(*step)), "{:?}", chain.steps);
        }
    }
}
