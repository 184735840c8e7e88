//! A sentence and its neighbours: the unit that most rules judge.

use super::finding::{Finding, Tier, excerpt};
use super::meaning::Mask;
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
    /// Returns true if two meanings are within so many bytes of each other, neither of them negated.
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

    /// Returns true if every mention of a meaning is in quotation marks.
    pub(super) fn cited(&self, mask: Mask) -> bool {
        let start = self.sentence.start;
        let mut quotes = Quotes::of(self.reading.sentence_text(self.sentence));
        let mut hits = self.reading.hits(self.sentence).iter().filter(|hit| hit.mask.has(mask));
        hits.all(|hit| quotes.enclose(hit.start - start, hit.end - start))
    }

    /// A finding about this sentence.
    pub(super) fn finding(&self, rule: &'static str, tier: Tier, message: &str) -> Finding {
        let text = self.reading.sentence_text(self.sentence);
        Finding {
            rule,
            tier,
            message: message.to_owned(),
            place: self.reading.part(self.sentence).place(),
            excerpt: excerpt(text, 0, 0).into_owned(),
        }
    }
}

/// The quotation marks of a text, read once from its start to its end.
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
            read: 0,
            last: '\0',
            double: 0,
            opened: 0,
            closed: 0,
            angle: false,
            corner: false,
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
    use super::super::meaning::Hit;
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
