//! A sentence and its neighbours: the unit that most rules judge.

use super::finding::{Finding, Tier, excerpt};
use super::meaning::{Hit, Mask};
use super::reading::{Reading, Sentence, Surface};

/// A sentence with its neighbours in the same text.
pub(super) struct Window<'r, 'a> {
    reading: &'r Reading<'a>,
    /// The sentence.
    pub(super) sentence: &'r Sentence,
    /// Its meanings.
    pub(super) here: Mask,
    /// Its meanings and those of its neighbours.
    pub(super) around: Mask,
}

/// Every sentence of the chosen surfaces that has a meaning, with its neighbours.
pub(super) fn windows<'r, 'a>(
    reading: &'r Reading<'a>,
    chosen: impl Fn(Surface) -> bool + 'r,
) -> impl Iterator<Item = Window<'r, 'a>> {
    let sentences = &reading.sentences;
    (0..sentences.len()).filter_map(move |number| {
        let sentence = &sentences[number];
        if sentence.mask == Mask::NONE || !chosen(reading.part(sentence).surface) {
            return None;
        }
        let near = |other: Option<&Sentence>| match other {
            Some(other) if other.part == sentence.part => other.mask,
            _ => Mask::NONE,
        };
        let around = sentence.mask
            | near(number.checked_sub(1).and_then(|before| sentences.get(before)))
            | near(sentences.get(number + 1));
        Some(Window { reading, sentence, here: sentence.mask, around })
    })
}

impl Window<'_, '_> {
    /// Returns true if two meanings are within this many bytes of each other, neither of them negated.
    pub(super) fn close(&self, one: Mask, other: Mask, bytes: usize) -> bool {
        // Hits are in order, so the last of the earlier ones is the nearest: one pass, however many there
        // are.
        let (mut one_ends, mut other_ends) = (None, None);
        self.reading.hits(self.sentence).iter().filter(|hit| !hit.negated).any(|hit| {
            let (is_one, is_other) = (hit.mask.has(one), hit.mask.has(other));
            if is_one {
                one_ends = one_ends.max(Some(hit.end));
            }
            if is_other {
                other_ends = other_ends.max(Some(hit.end));
            }
            let near =
                |end: Option<usize>| end.is_some_and(|end| hit.start.saturating_sub(end) <= bytes);
            is_one && near(other_ends) || is_other && near(one_ends)
        })
    }

    /// As [`Window::close`], where the other meaning has the form of an order: "read the file" counts, and
    /// "reads the file", "including the file" and "the file is read" do not.
    pub(super) fn close_order(&self, one: Mask, other: Mask, bytes: usize) -> bool {
        let hits = self.reading.hits(self.sentence).iter().filter(|hit| !hit.negated);
        let orders = hits.clone().filter(|hit| hit.mask.has(other) && !self.narrates(hit));
        // Orders are few, and only sentences that `close` finds come here.
        orders.into_iter().any(|order| {
            hits.clone().filter(|hit| hit.mask.has(one)).any(|hit| {
                let gap = hit.start.saturating_sub(order.end) + order.start.saturating_sub(hit.end);
                gap <= bytes
            })
        })
    }

    /// Returns true if one of these meanings has the form of an order.
    pub(super) fn orders(&self, mask: Mask) -> bool {
        let mut hits = self.reading.hits(self.sentence).iter();
        hits.any(|hit| hit.mask.has(mask) && !hit.negated && !self.narrates(hit))
    }

    /// Returns true if the form of an English verb says what happens, not what the reader shall do.
    fn narrates(&self, hit: &Hit) -> bool {
        // A term may be the stem of the word.
        let rest = self.reading.text(hit.end, self.sentence.end);
        let rest = rest.bytes().take_while(u8::is_ascii_lowercase).count();
        let word = self.reading.text(hit.start, hit.end + rest);
        let before = self.reading.text(self.sentence.start, hit.start).trim_end();
        let follows = |words: &[&str]| {
            let last = before.rsplit(' ').next().unwrap_or_default();
            words.contains(&last)
        };
        if follows(&["be"]) {
            // "Can be read" is a fact, "must be read" an order.
            let before = before.trim_end_matches("be").trim_end();
            return ["can", "may", "will", "could", "would"]
                .iter()
                .any(|word| before.ends_with(word));
        }
        follows(&["is", "are", "was", "were", "been", "being"])
            || word.ends_with("ing")
            || word.ends_with("ed")
            || word.ends_with('s') && !word.ends_with("ss") && !word.contains(' ')
    }

    /// Returns true if every mention of the conversation or of another part of the context is about things
    /// that the tool itself deals with: a help desk has conversations, a mail server has messages.
    pub(super) fn context_is_own_data(&self) -> bool {
        const GENERAL: &[&str] = &[
            "all",
            "this",
            "that",
            "full",
            "entire",
            "whole",
            "user",
            "user's",
            "your",
            "what",
            "last",
            "earlier",
            "prior",
            "previous",
            "original",
            "everything",
            "open",
            "opened",
            "other",
        ];
        let declares = |word: &str| {
            let stem = word.trim_end_matches('s');
            stem.len() >= 4 && !GENERAL.contains(&word) && self.reading.declares(stem)
        };
        let hits = self.reading.hits(self.sentence);
        let mut mentions = hits.iter().filter(|hit| hit.mask.has(Mask::CONTEXT) && !hit.negated);
        mentions.all(|hit| self.reading.text(hit.start, hit.end).split([' ', '_']).any(declares))
    }

    /// Returns true if the sentence names a parameter of the tool, in quotation marks of code, whose own name
    /// has none of these meanings.
    pub(super) fn names_parameter_without(&self, mask: Mask) -> bool {
        let text = self.reading.sentence_text(self.sentence);
        text.split('`').skip(1).step_by(2).any(|name| {
            self.reading.parts.iter().any(|part| {
                part.surface == Surface::ParameterName
                    && part.raw.eq_ignore_ascii_case(name)
                    && !part.mask.has(mask)
            })
        })
    }

    /// Returns true if the sentence documents a parameter that cannot carry a text, in the schema or in a
    /// list of arguments: `include_notes (bool): add the notes`.
    pub(super) fn documents_switch(&self) -> bool {
        if !self.reading.part(self.sentence).may_carry_text() {
            return true;
        }
        let text = self.reading.sentence_text(self.sentence);
        let text = text.trim_start_matches(['-', '*', ' ', '`']);
        let name = text.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
        let after = text[name.count()..].trim_start_matches(['`', ' ']);
        let kinds = ["(bool", "(int", "(number", "(float", "(optional bool", "(optional[bool"];
        kinds.iter().any(|kind| after.starts_with(kind))
    }

    /// Returns true if every mention of a meaning is in quotation marks.
    pub(super) fn cited(&self, mask: Mask) -> bool {
        let start = self.sentence.start;
        let mut quotes = Quotes::of(self.reading.sentence_text(self.sentence));
        let mut hits = self.reading.hits(self.sentence).iter().filter(|hit| hit.mask.has(mask));
        hits.all(|hit| quotes.enclose(hit.start - start, hit.end - start))
    }

    /// A finding about this sentence.
    pub(super) fn finding(&self, rule: &'static str, tier: Tier, message: &'static str) -> Finding {
        let text = self.reading.sentence_text(self.sentence);
        Finding {
            rule,
            tier,
            message: message.into(),
            place: self.reading.part(self.sentence).place(),
            excerpt: excerpt(text, 0, 0).into_owned(),
        }
    }
}

/// The quotation marks of a text, read once from its start to its end.
#[derive(Default)]
struct Quotes<'t> {
    text: &'t str,
    /// The last closing mark of each kind.
    last_double: Option<usize>,
    last_single: Option<usize>,
    last_angle: Option<usize>,
    last_corner: Option<usize>,
    /// The number of bytes read, the last character of them, and the marks in them.
    read: usize,
    last: char,
    double: usize,
    opened: usize,
    closed: usize,
    angle: bool,
    corner: bool,
}

impl Quotes<'_> {
    fn of(text: &str) -> Quotes<'_> {
        Quotes {
            text,
            last_double: text.rfind('"'),
            last_single: text.rfind('\''),
            last_angle: text.rfind('»'),
            last_corner: text.rfind('」'),
            ..Quotes::default()
        }
    }

    /// Returns true if a stretch is in quotation marks. No stretch may begin before the one asked for last.
    fn enclose(&mut self, start: usize, end: usize) -> bool {
        self.read_to(start);
        let closes = |last: Option<usize>| last.is_some_and(|last| last >= end);
        self.double % 2 == 1 && closes(self.last_double)
            || self.opened > self.closed && closes(self.last_single)
            || self.angle && closes(self.last_angle)
            || self.corner && closes(self.last_corner)
    }

    fn read_to(&mut self, to: usize) {
        for character in self.text.get(self.read..to).unwrap_or_default().chars() {
            match (self.last, character) {
                (_, '"') => self.double += 1,
                (' ', '\'') => self.opened += 1,
                ('\'', ' ') => self.closed += 1,
                (_, '«' | '»') => self.angle = character == '«',
                (_, '「' | '」') => self.corner = character == '「',
                _ => {}
            }
            self.last = character;
        }
        self.read = self.read.max(to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::{ScanInput, Tool};

    fn input(description: &str) -> ScanInput {
        ScanInput::of_tool(Tool { description: description.to_owned(), ..Tool::default() })
    }

    /// The definition of `close`, pair by pair.
    fn close_by_pairs(hits: &[Hit], one: Mask, other: Mask, bytes: usize) -> bool {
        let with = |mask: Mask| hits.iter().filter(move |hit| hit.mask.has(mask) && !hit.negated);
        let distance =
            |a: &Hit, b: &Hit| b.start.saturating_sub(a.end) + a.start.saturating_sub(b.end);
        with(one).any(|a| with(other).any(|b| distance(a, b) <= bytes))
    }

    /// The definition of `enclose`, from the text before and after.
    fn in_quotes(before: &str, after: &str) -> bool {
        let open = |quote: char| before.matches(quote).count() % 2 == 1 && after.contains(quote);
        let paired =
            |from: char, to: char| before.rfind(from) > before.rfind(to) && after.contains(to);
        let apostrophe = before.matches(" '").count() > before.matches("' ").count();
        open('"') || apostrophe && after.contains('\'') || paired('«', '»') || paired('「', '」')
    }

    const WORDS: [&str; 14] = [
        "ignore",
        "previous instructions",
        "send",
        "the password",
        "~/.ssh/id_rsa",
        "do not",
        "read",
        "the conversation",
        "\"",
        " '",
        "' ",
        "«x",
        "y»",
        "「z」 and some words of no interest",
    ];

    proptest::proptest! {
        #[test]
        fn one_pass_gives_the_same_as_all_pairs(chosen in proptest::collection::vec(0..WORDS.len(), 0..24)) {
            let words: Vec<&str> = chosen.iter().map(|number| WORDS[*number]).collect();
            let input = input(&words.join(" "));
            let reading = Reading::of(&input);
            let masks = [
                Mask::OVERRIDE, Mask::INSTRUCTIONS, Mask::TRANSFER, Mask::SECRET, Mask::SECRET_PATH,
                Mask::COLLECT, Mask::CONTEXT, Mask::CLASSIC,
            ];
            for window in windows(&reading, |_| true) {
                let hits = reading.hits(window.sentence);
                for (one, other) in masks.iter().flat_map(|one| masks.map(|other| (*one, other))) {
                    for bytes in [0, 12, 40, 120] {
                        let expected = close_by_pairs(hits, one, other, bytes);
                        proptest::prop_assert_eq!(window.close(one, other, bytes), expected);
                    }
                    let cited = hits.iter().filter(|hit| hit.mask.has(one)).all(|hit| {
                        let before = reading.text(window.sentence.start, hit.start);
                        in_quotes(before, reading.text(hit.end, window.sentence.end))
                    });
                    proptest::prop_assert_eq!(window.cited(one), cited);
                }
            }
        }
    }
}
