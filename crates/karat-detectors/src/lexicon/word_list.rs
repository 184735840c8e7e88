//! The format of the word lists.
//!
//! A line that begins with a blank is a term; any other line is a heading for the terms below it, a
//! comment (`#`) or empty. Terms are written as they are, without quotation marks or escapes, so that a
//! speaker of the language can correct them. The `README.md` next to the lists describes the details.

use std::fmt;

use super::super::meaning::Mask;

/// A word list.
#[derive(Clone, Copy)]
pub(super) struct WordList {
    /// The name of its file.
    pub(super) file: &'static str,
    /// The content of its file.
    pub(super) text: &'static str,
}

/// One term of a word list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The line in the file, from 1.
    pub(super) line: usize,
    /// The heading above it.
    pub(super) heading: Heading,
    /// The term as laid-out text has it.
    pub(super) term: &'static str,
    /// True if the word may go on after the term.
    pub(super) open: bool,
}

/// The use of the terms under a heading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heading {
    /// Words with these meanings.
    Meaning(Mask),
    /// Phrases that announce text written from its end.
    ReversedText,
    /// Words whose full stop does not end a sentence.
    Abbreviation,
}

/// A line that is neither a heading nor a term, or a heading of unknown meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mistake {
    pub(super) file: &'static str,
    pub(super) line: usize,
    pub(super) text: String,
    pub(super) problem: &'static str,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {:?} {}", self.file, self.line, self.text, self.problem)
    }
}

impl WordList {
    /// Reads the list, line by line.
    pub(super) fn entries(self) -> impl Iterator<Item = Result<Entry, Mistake>> {
        let mut heading = None;
        self.text.lines().zip(1..).filter_map(move |(text, line)| match text.as_bytes().first() {
            None | Some(b'#') => None,
            Some(b' ' | b'\t') => Some(match heading {
                Some(heading) => Ok(Entry::new(line, heading, text.trim_ascii())),
                None => Err(self.mistake(line, text, "has no valid heading above it")),
            }),
            Some(_) => {
                heading = text.trim_ascii_end().strip_suffix(':').and_then(Heading::parse);
                let problem = "is neither an indented term nor a heading such as `tell + user:`";
                heading.is_none().then(|| Err(self.mistake(line, text, problem)))
            }
        })
    }

    pub(super) fn mistake(self, line: usize, text: &str, problem: &'static str) -> Mistake {
        Mistake { file: self.file, line, text: text.trim().to_owned(), problem }
    }
}

impl Heading {
    fn parse(text: &str) -> Option<Heading> {
        match text {
            "reversed_text" => Some(Heading::ReversedText),
            "abbreviation" => Some(Heading::Abbreviation),
            _ => {
                let meanings = text.split('+').map(|name| Mask::named(name.trim()));
                meanings.collect::<Option<Mask>>().map(Heading::Meaning)
            }
        }
    }
}

impl Entry {
    fn new(line: usize, heading: Heading, text: &'static str) -> Entry {
        // Blanks at the end of a line cannot be seen, so a term that ends with one is closed by a bar.
        let text = if text.ends_with(" |") { &text[..text.len() - 1] } else { text };
        let stars = text.bytes().rev().take_while(|byte| *byte == b'*').count();
        Entry { line, heading, term: &text[..text.len() - stars], open: stars > 0 }
    }
}
