//! The layout of all text of a definition in one buffer, cut into sentences.
//!
//! Lower case, single blanks, one form of each quotation mark and dash, nothing invisible: the form in
//! which the word lists are written. Plain ASCII is copied in runs; other characters one by one.

use super::super::characters;
use super::parts::{MAX_NAME, Part, Sentence};
use super::plain_run::plain_run;
use super::sentence_end::{breaks_line, closes, is_abbreviation};

/// The most text of one definition that is read.
pub(super) const MAX_BYTES: usize = 4 << 20;

/// The text laid out so far.
pub(super) struct Layout {
    buffer: String,
    sentences: Vec<Sentence>,
}

impl Layout {
    /// Lays out all parts in the given buffers, which are empty, and notes the kinds of their bytes.
    pub(super) fn of(
        parts: &mut [Part<'_>],
        mut buffer: String,
        sentences: Vec<Sentence>,
    ) -> (String, Vec<Sentence>) {
        let total: usize = parts.iter().map(|part| part.raw.len() + 1).sum();
        buffer.reserve(total.min(MAX_BYTES) + parts.len());
        let mut layout = Layout { buffer, sentences };
        for (number, part) in parts.iter_mut().enumerate() {
            let room = MAX_BYTES.saturating_sub(layout.buffer.len());
            if part.is_name() {
                let read = part.raw.floor_char_boundary(room.min(MAX_NAME));
                part.kinds = layout.add_name(number, &part.raw[..read]) | unread(part, read);
            } else {
                for piece in pieces(part.raw, room) {
                    part.kinds |= layout.add_text(number, piece);
                }
                part.kinds |= unread(part, room);
            }
            layout.buffer.push('\n');
        }
        // At once: it is less work than for each run.
        layout.buffer.make_ascii_lowercase();
        (layout.buffer, layout.sentences)
    }

    /// Adds a text, sentence by sentence; returns the kinds of its bytes.
    fn add_text(&mut self, part: usize, text: &str) -> u8 {
        let mut kinds = 0;
        let bytes = text.as_bytes();
        let mut start = self.buffer.len();
        // Blanks at the start of a sentence and after another blank are dropped.
        let mut space = true;
        let mut at = 0;
        while at < bytes.len() {
            let run = plain_run(&bytes[at..], space);
            if run > 0 {
                self.buffer.push_str(&text[at..at + run]);
                at += run;
                space = bytes[at - 1] == b' ';
                continue;
            }
            let Some(character) = text[at..].chars().next() else { break };
            kinds |= KINDS[usize::from(bytes[at])];
            at += character.len_utf8();
            match character {
                '\\' | '&' => {
                    self.buffer.push(character);
                    space = false;
                }
                '\n' if breaks_line(&self.buffer[start..], &text[at..]) => {
                    start = self.end_sentence(part, start);
                    space = true;
                }
                ' ' | '\n' | '\t' | '\r' | '\u{b}' | '\u{c}' => {
                    if !space {
                        self.buffer.push(' ');
                    }
                    space = true;
                }
                '.' | '!' | '?' => {
                    self.buffer.push(character);
                    space = false;
                    if closes(&text[at..]) && !is_abbreviation(&self.buffer[start..]) {
                        start = self.end_sentence(part, start);
                        space = true;
                    }
                }
                control if control.is_ascii() => {}
                other => match characters::fold(other) {
                    None => {}
                    Some(' ') if space => {}
                    Some(folded) => {
                        self.buffer.push(folded);
                        space = folded == ' ';
                        if matches!(folded, '。' | '！' | '？' | '।' | '؟' | '۔') {
                            start = self.end_sentence(part, start);
                            space = true;
                        }
                    }
                },
            }
        }
        self.end_sentence(part, start);
        kinds
    }

    /// Adds a name, cut into its words, as one sentence; returns the kinds of its bytes.
    fn add_name(&mut self, part: usize, name: &str) -> u8 {
        let start = self.buffer.len();
        let plain = characters::fold_name(name, &mut self.buffer);
        self.end_sentence(part, start);
        if plain { 0 } else { name.bytes().fold(0, |kinds, byte| kinds | KINDS[usize::from(byte)]) }
    }

    /// Ends the sentence that begins at `start`, unless it is blank; returns the start of the next.
    fn end_sentence(&mut self, part: usize, start: usize) -> usize {
        let end = self.buffer.len();
        let begins = self.buffer.as_bytes().get(start).is_some_and(u8::is_ascii_graphic);
        if !begins && self.buffer[start..].trim().is_empty() {
            return start;
        }
        self.sentences.push(Sentence::new(part, start, end));
        self.buffer.push(' ');
        self.buffer.len()
    }
}

/// The kinds of bytes that the unread rest of a part may have: all of them.
fn unread(part: &Part<'_>, read: usize) -> u8 {
    if part.raw.len() > read { Part::ODD | Part::ESCAPE } else { 0 }
}

/// The text, or its two ends if it is longer than `room`.
fn pieces(text: &str, room: usize) -> impl Iterator<Item = &str> {
    let (head, tail) = if text.len() <= room {
        (text, "")
    } else {
        let head = text.floor_char_boundary(room / 2);
        let tail = text.ceil_char_boundary(text.len() - room / 2);
        (&text[..head], &text[tail..])
    };
    [head, tail].into_iter().filter(|piece| !piece.is_empty())
}

/// The kind of each byte.
const KINDS: [u8; 256] = {
    let mut kinds = [Part::ODD; 256];
    let mut byte: u8 = 0;
    while byte < 128 {
        kinds[byte as usize] = match byte {
            b'\\' | b'&' => Part::ESCAPE,
            b' '..=b'~' | b'\n' | b'\r' | b'\t' => 0,
            _ => Part::ODD,
        };
        byte += 1;
    }
    kinds
};
