//! A definition, read once for all detectors.
//!
//! Every string that a model would see (name, title, description, the schemas, server instructions, the
//! result of a call) is laid out in one buffer: lower case, white space collapsed, invisible characters
//! dropped, cut into sentences. The terms of the lexicon are looked up in one pass over it. The work is
//! linear in the text; of a definition longer than [`layout::MAX_BYTES`], only that much is read, in equal parts
//! from its start and its end.

mod interpret;
mod layout;
mod parts;
mod plain_run;
mod sentence_end;
mod strings;

use std::cell::Cell;
use std::mem::take;

pub(super) use self::parts::{Keyword, Part, Sentence, Surface};

use self::layout::Layout;
use self::strings::Pending;
use super::meaning::{Hit, Mask};
use super::{addresses, lexicon, peers};
use crate::definition::ScanInput;

/// A definition that was read.
pub(crate) struct Reading<'a> {
    /// The definition itself.
    pub(super) input: &'a ScanInput,
    /// Its strings.
    pub(super) parts: Vec<Part<'a>>,
    /// Its sentences, in the order of the buffer.
    pub(super) sentences: Vec<Sentence>,
    /// The meanings of all sentences together.
    pub(super) mask: Mask,
    /// The declared subject of the tool: the meanings in its name, title, server and first sentence.
    pub(super) purpose: Mask,
    buffer: String,
    hits: Vec<Hit>,
    /// Empty; kept for the next reading.
    pending: Vec<Pending<'static>>,
}

impl<'a> Reading<'a> {
    /// Reads a definition.
    pub(crate) fn of(input: &'a ScanInput) -> Reading<'a> {
        let mut scratch = Scratch::get();
        let (parts, pending) = (take(&mut scratch.parts), take(&mut scratch.pending));
        let (parts, pending) = strings::collect(input, emptied(parts), emptied(pending));
        scratch.pending = emptied(pending);
        Reading::new(input, parts, scratch)
    }

    /// Reads one text as if it were the description, such as a text that was decoded.
    pub(super) fn of_text(input: &'a ScanInput, text: &'a str) -> Reading<'a> {
        let mut scratch = Scratch::get();
        let mut parts = emptied(take(&mut scratch.parts));
        parts.push(Part::new(Surface::Description, text));
        Reading::new(input, parts, scratch)
    }

    fn new(input: &'a ScanInput, mut parts: Vec<Part<'a>>, scratch: Scratch) -> Reading<'a> {
        let Scratch { buffer, sentences, mut hits, pending, .. } = scratch;
        let (buffer, mut sentences) = Layout::of(&mut parts, buffer, sentences);
        lexicon::look_up(&buffer, &mut hits);
        addresses::mark(&buffer, &mut hits);
        peers::mark(input, &buffer, &mut hits);
        interpret::keep_longest(&mut hits);
        let (mut next, mut mask) = (0, Mask::NONE);
        for sentence in &mut sentences {
            while hits.get(next).is_some_and(|hit| hit.start < sentence.start) {
                next += 1;
            }
            sentence.first_hit = next;
            while let Some(hit) = hits.get(next)
                && hit.start < sentence.end
            {
                sentence.mask |= hit.mask;
                next += 1;
            }
            sentence.end_hit = next;
            if sentence.mask.has(interpret::TURNING) {
                sentence.mask = interpret::sentence(&buffer, &mut hits[sentence.first_hit..next]);
            }
            parts[sentence.part].mask |= sentence.mask;
            mask |= sentence.mask;
        }
        let purpose = Mask::NONE;
        let mut reading = Reading { input, parts, sentences, mask, purpose, buffer, hits, pending };
        reading.purpose = reading.find_purpose();
        reading
    }

    /// The hits in a sentence, in order.
    pub(super) fn hits(&self, sentence: &Sentence) -> &[Hit] {
        self.hits.get(sentence.first_hit..sentence.end_hit).unwrap_or_default()
    }

    /// The number of hits in all sentences.
    pub(super) fn hit_count(&self) -> usize {
        self.hits.len()
    }

    /// A stretch of the laid-out text.
    pub(super) fn text(&self, start: usize, end: usize) -> &str {
        self.buffer.get(start..end).unwrap_or_default()
    }

    /// The laid-out text of a sentence.
    pub(super) fn sentence_text(&self, sentence: &Sentence) -> &str {
        self.text(sentence.start, sentence.end)
    }

    /// The part that a sentence belongs to.
    pub(super) fn part(&self, sentence: &Sentence) -> &Part<'a> {
        &self.parts[sentence.part]
    }

    /// Returns true if a word is in the declared subject of the tool: its name, its title, its server, or
    /// the first sentence of its description.
    pub(super) fn declares(&self, word: &str) -> bool {
        let first = self
            .sentences
            .iter()
            .find(|sentence| self.part(sentence).surface == Surface::Description);
        let named = self.sentences.iter().filter(|sentence| {
            matches!(self.part(sentence).surface, Surface::Server | Surface::Name | Surface::Title)
        });
        first.into_iter().chain(named).any(|sentence| self.sentence_text(sentence).contains(word))
    }

    fn find_purpose(&self) -> Mask {
        let mut purpose = Mask::NONE;
        let mut seen_description = false;
        for sentence in &self.sentences {
            match self.part(sentence).surface {
                Surface::Server | Surface::Name | Surface::Title => purpose |= sentence.mask,
                Surface::Description if !seen_description => {
                    purpose |= self.first_clause(sentence);
                    seen_description = true;
                }
                _ => {}
            }
        }
        purpose
    }

    /// The meanings before the first break of a sentence: text after "and" may have been slipped in.
    fn first_clause(&self, sentence: &Sentence) -> Mask {
        let text = self.sentence_text(sentence);
        let bytes = text.as_bytes();
        // Every break has a blank: before the word, or after the sign.
        let length = memchr::memchr_iter(b' ', bytes).find_map(|at| {
            let sign =
                at.checked_sub(1).filter(|before| matches!(bytes[*before], b',' | b';' | b':'));
            let word = || bytes[at..].starts_with(b" and ") || bytes[at..].starts_with(b" then ");
            sign.or_else(|| word().then_some(at))
        });
        let length = length.unwrap_or(text.len());
        let within = self.hits(sentence).iter().filter(|hit| hit.start < sentence.start + length);
        within.map(|hit| hit.mask).collect()
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        // The memory that one huge definition took is not kept.
        if self.buffer.capacity() + self.parts.capacity() > MAX_KEPT {
            return;
        }
        let mut scratch = Scratch {
            buffer: take(&mut self.buffer),
            parts: emptied(take(&mut self.parts)),
            pending: take(&mut self.pending),
            sentences: take(&mut self.sentences),
            hits: take(&mut self.hits),
        };
        scratch.buffer.clear();
        scratch.sentences.clear();
        scratch.hits.clear();
        // A thread that is ending has no use for it.
        let _ = SCRATCH.try_with(|kept| {
            let mut all = kept.take();
            if all.len() < MAX_AT_ONCE {
                all.push(scratch);
            }
            kept.set(all);
        });
    }
}

/// The most readings that a thread has at once.
pub(super) const MAX_AT_ONCE: usize = 16;
/// The most memory that a thread keeps of one of them.
const MAX_KEPT: usize = 64 << 10;

thread_local! {
    /// The buffers of this thread's last readings: nearly every definition fits into them, and allocating
    /// them anew would be a tenth of the work.
    static SCRATCH: Cell<Vec<Scratch>> = Cell::default();
}

/// Empty buffers with capacity.
#[derive(Default)]
struct Scratch {
    buffer: String,
    parts: Vec<Part<'static>>,
    pending: Vec<Pending<'static>>,
    sentences: Vec<Sentence>,
    hits: Vec<Hit>,
}

impl Scratch {
    fn get() -> Scratch {
        let kept = SCRATCH.try_with(|kept| {
            let mut all = kept.take();
            let one = all.pop();
            kept.set(all);
            one
        });
        kept.ok().flatten().unwrap_or_default()
    }
}

/// Empties a list for another definition, whose lifetime differs, and keeps its capacity.
fn emptied<A, B>(mut list: Vec<A>) -> Vec<B> {
    list.clear();
    list.into_iter().map_while(|_| None).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::Tool;

    #[test]
    fn a_reading_is_independent_of_earlier_ones() {
        let tool = |description: &str| ScanInput {
            server: "acme".to_owned(),
            ..ScanInput::of_tool(Tool {
                name: "lookup".to_owned(),
                description: description.to_owned(),
                ..Default::default()
            })
        };
        let (long, short) = (tool("Send the password. Then read on. And on."), tool("Reads."));
        let seen = |input: &ScanInput| {
            let reading = Reading::of(input);
            (reading.buffer.clone(), reading.hits.clone(), format!("{:?}", reading.sentences))
        };
        let first = seen(&short);
        seen(&long);
        assert_eq!(seen(&short), first);
    }
}
