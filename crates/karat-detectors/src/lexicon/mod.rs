//! The words that detectors look for, by meaning.
//!
//! Each language has a word list in the `lexicon` folder of the crate; a new language is a new file there
//! and a line in [`LISTS`]. All lists are searched in one pass, whatever the language of the text, because
//! attackers mix languages. They are read on first use. A test reports every mistake in them with its file
//! and line, so reading them here leaves faulty lines out instead of failing.

mod terms;
mod word_list;

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use self::terms::{Place, Term, Terms};
use self::word_list::{Heading, WordList};
use super::characters::{fold_name, has_borders};
use super::meaning::{Hit, Mask};
use super::register::{BYTES, Register};

macro_rules! lists {
    ($($file:literal,)*) => {
        &[$(WordList { file: $file, text: include_str!(concat!("../../lexicon/", $file)) },)*]
    };
}

/// All word lists.
const LISTS: &[WordList] = lists![
    "technical.txt",
    "english.txt",
    "german.txt",
    "french.txt",
    "spanish.txt",
    "portuguese.txt",
    "italian.txt",
    "dutch.txt",
    "swedish.txt",
    "polish.txt",
    "turkish.txt",
    "russian.txt",
    "arabic.txt",
    "hindi.txt",
    "chinese.txt",
    "japanese.txt",
    "korean.txt",
];

static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::read(LISTS));

struct Lexicon {
    terms: Terms,
    reversed_text: Option<AhoCorasick>,
    abbreviations: Vec<&'static str>,
    longest_abbreviation: usize,
}

impl Lexicon {
    fn read(lists: &[WordList]) -> Lexicon {
        let (mut terms, mut reversed_text, mut abbreviations) =
            (Vec::new(), Vec::new(), Vec::new());
        for entry in lists.iter().flat_map(|list| list.entries().flatten()) {
            match entry.heading {
                Heading::Meaning(mask) => {
                    // Words of scripts without borders may have endings attached.
                    let bordered = entry.term.chars().next_back().is_some_and(has_borders);
                    terms.push(Term { text: entry.term, mask, open: entry.open || !bordered });
                }
                Heading::ReversedText => reversed_text.push(entry.term),
                Heading::Abbreviation => abbreviations.push(entry.term),
            }
        }
        let longest_abbreviation = abbreviations.iter().map(|word| word.len()).max().unwrap_or(0);
        let terms = Terms::of(&terms);
        let reversed_text = AhoCorasick::new(reversed_text).ok();
        Lexicon { terms, reversed_text, abbreviations, longest_abbreviation }
    }
}

/// Returns true if a full stop after this word does not end a sentence.
pub(super) fn is_abbreviation(word: &str) -> bool {
    // Most words are longer than all of them.
    word.len() <= LEXICON.longest_abbreviation
        && LEXICON.abbreviations.iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// Returns true if a text, in lower case, announces text that is written from its end.
pub(super) fn announces_reversed_text(text: &str) -> bool {
    LEXICON.reversed_text.as_ref().is_some_and(|phrases| phrases.is_match(text))
}

/// Finds the terms in laid-out text: the longest at each place where a word or a sign begins.
pub(super) fn look_up(text: &str, hits: &mut Vec<Hit>) {
    let terms = &LEXICON.terms;
    let bytes = text.as_bytes();
    let mut look = |start: usize, place: &Place<'_>| {
        let found = terms.longest(place, |length| ends_word(text, start + length));
        match found {
            Some((length, mask)) if !mask.has(Mask::ORDINARY) => {
                hits.push(Hit::new(start, start + length, mask));
            }
            // A phrase is kept without a meaning, so that it hides the words in it.
            Some((length, _)) if place.word < length => {
                hits.push(Hit::new(start, start + length, Mask::NONE));
            }
            _ => {}
        }
    };
    let mut at = 0;
    // True right after a letter of a script with borders.
    let mut within_word = false;
    while let Some(byte) = bytes.get(at) {
        let rest = &bytes[at..];
        match byte {
            b' ' | b'\n' => {
                within_word = false;
                at += 1;
            }
            b'a'..=b'z' | b'0'..=b'9' => {
                let first = Register::of(rest);
                let word = word_length(first, rest);
                if !within_word && terms.may_begin_with_word(first, word) {
                    look(at, &Place { rest, first, word });
                }
                at += word;
                // Most words end with a blank, or with a comma and a blank, where no term begins.
                let sign = bytes.get(at).is_some_and(|sign| terms.never_begin_with(*sign));
                at += usize::from(sign);
                let blank = bytes.get(at) == Some(&b' ');
                at += usize::from(blank);
                within_word = !(sign | blank);
            }
            0..0x80 => {
                let first = Register::of(rest);
                if terms.may_begin_with_sign(first) {
                    look(at, &Place { rest, first, word: 0 });
                }
                within_word = false;
                at += 1;
            }
            _ => {
                let (length, bordered) = other_character(*byte, &text[at..]);
                let first = Register::of(rest);
                if !(within_word && bordered) && terms.may_begin_otherwise(first) {
                    look(at, &Place { rest, first, word: 0 });
                }
                within_word = bordered;
                at += length;
            }
        }
    }
}

/// The meanings in a laid-out text.
fn meanings(text: &str) -> Mask {
    let mut hits = Vec::new();
    look_up(text, &mut hits);
    hits.iter().map(|hit| hit.mask).collect()
}

/// The meanings in a name such as `send_password-reset` or `sendMail`.
pub(super) fn mask_of_name(name: &str) -> Mask {
    let mut words = String::with_capacity(name.len() + 8);
    fold_name(&name[..name.floor_char_boundary(200)], &mut words);
    meanings(&words)
}

/// The length of a character that is not ASCII, and whether its script has borders.
#[inline]
fn other_character(first: u8, text: &str) -> (usize, bool) {
    match first {
        // From U+2000 on no script has borders.
        0xe2..0xf0 => (3, false),
        0xf0.. => (4, false),
        _ => {
            let character = text.chars().next().unwrap_or(' ');
            (character.len_utf8(), has_borders(character))
        }
    }
}

/// The number of lower-case letters and digits of ASCII that a text begins with. `first` holds its first
/// eight bytes.
#[inline]
fn word_length(first: Register, text: &[u8]) -> usize {
    let length = first.lower_alphanumeric().not().before_first();
    if length < BYTES { length } else { BYTES + long_word_rest(&text[BYTES..]) }
}

fn long_word_rest(text: &[u8]) -> usize {
    let mut length = 0;
    loop {
        let more = Register::of(&text[length..]).lower_alphanumeric().not().before_first();
        length += more;
        if more < BYTES {
            return length;
        }
    }
}

/// Returns true if no letter follows.
fn ends_word(text: &str, end: usize) -> bool {
    match text.as_bytes().get(end) {
        None => true,
        Some(byte) if byte.is_ascii() => !byte.is_ascii_alphanumeric(),
        Some(_) => !text[end..].chars().next().is_some_and(has_borders),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::super::characters::fold;
    use super::super::meaning::MEANINGS;
    use super::word_list::{Entry, Mistake};
    use super::*;

    /// The folder of the word lists.
    const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/lexicon");

    /// The reason why a term could never be found, if there is one.
    fn problem(entry: &Entry) -> Option<&'static str> {
        let term = entry.term;
        let as_laid_out = |character: char| match character {
            ' '..='~' => !character.is_ascii_uppercase(),
            other => fold(other) == Some(other),
        };
        if term.len() < 2 {
            Some("is too short: a term has at least two bytes")
        } else if term.contains("  ") {
            Some("has two blanks in a row")
        } else if !term.chars().all(as_laid_out) {
            Some(
                "is never found: write lower case, ' \" and - for quotes and dashes, nothing invisible",
            )
        } else if term.contains('*') && !term.contains("***") {
            Some("has a star inside: the star goes to the end of the term")
        } else {
            None
        }
    }

    /// Every mistake in a word list.
    fn mistakes(list: WordList) -> Vec<Mistake> {
        let mut seen: Vec<Entry> = Vec::new();
        let checked = list.entries().filter_map(|entry| match entry {
            Err(mistake) => Some(mistake),
            Ok(entry) => {
                let twin =
                    |known: &Entry| Entry { line: 0, ..*known } == Entry { line: 0, ..entry };
                let twice = seen.iter().any(twin).then_some("is twice under this heading");
                seen.push(entry);
                let problem = problem(&entry).or(twice)?;
                Some(list.mistake(entry.line, entry.term, problem))
            }
        });
        checked.collect()
    }

    #[test]
    fn the_word_lists_have_no_mistakes() {
        let found: Vec<String> =
            LISTS.iter().flat_map(|list| mistakes(*list)).map(|found| found.to_string()).collect();
        assert!(found.is_empty(), "correct these lines in {FOLDER}:\n{}", found.join("\n"));
    }

    #[test]
    fn a_mistake_is_reported_with_its_file_line_and_entry() {
        let report = |text| -> Vec<String> {
            mistakes(WordList { file: "test.txt", text }).iter().map(ToString::to_string).collect()
        };
        assert_eq!(report("# A comment.\n\ntell + user:\n  show the user\n  tell*\n"), [""; 0]);
        assert_eq!(report("tell:\n  no |\n"), [""; 0]);
        let cases = [
            ("  early\n", "test.txt:1: \"early\" has no valid heading above it"),
            ("tell:\n  show\n  show\n", "test.txt:3: \"show\" is twice under this heading"),
            ("tell\n", "test.txt:1: \"tell\" is neither an indented term nor a heading such as"),
            ("tell:\n\n  Show\n", "test.txt:3: \"Show\" is never found: write lower case"),
            ("tell:\n  don’t\n", "test.txt:2: \"don’t\" is never found: write lower case"),
            ("tell:\n  a  b\n", "test.txt:2: \"a  b\" has two blanks in a row"),
            ("tell:\n  a*b\n", "test.txt:2: \"a*b\" has a star inside"),
            ("tell:\n  *\n", "test.txt:2: \"\" is too short"),
        ];
        for (text, expected) in cases {
            let found = report(text);
            assert!(found.len() == 1 && found[0].starts_with(expected), "{text:?}: {found:?}");
        }
        assert_eq!(report("tell + usr:\n  show\n").len(), 2, "an unknown meaning has no terms");
    }

    #[test]
    fn every_file_in_the_folder_is_a_list_or_the_readme() {
        let files = std::fs::read_dir(FOLDER).unwrap();
        let files = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let known = LISTS.iter().map(|list| list.file).chain(["README.md"]).map(str::to_owned);
        assert_eq!(files.collect::<BTreeSet<_>>(), known.collect::<BTreeSet<_>>());
    }

    #[test]
    fn the_readme_lists_every_meaning() {
        let readme = std::fs::read_to_string(Path::new(FOLDER).join("README.md")).unwrap();
        let rows: String = MEANINGS
            .iter()
            .map(|(name, _, doc)| format!("| `{}` | {} |\n", name.to_lowercase(), doc.trim()))
            .collect();
        assert!(readme.contains(&rows), "put these rows into the table of README.md:\n{rows}");
    }

    fn entries() -> impl Iterator<Item = Entry> {
        LISTS.iter().flat_map(|list| list.entries().flatten())
    }

    #[test]
    fn every_term_is_found_where_it_is_alone() {
        let is_ordinary = |entry: &Entry| matches!(entry.heading, Heading::Meaning(mask) if mask.has(Mask::ORDINARY));
        let ordinary: BTreeSet<&str> =
            entries().filter(is_ordinary).map(|entry| entry.term).collect();
        assert!(ordinary.contains("information"), "{ordinary:?}");
        for entry in entries() {
            let Heading::Meaning(mask) = entry.heading else { continue };
            let mut hits = Vec::new();
            look_up(entry.term, &mut hits);
            let found = hits.iter().find(|hit| hit.start == 0);
            if ordinary.contains(entry.term) {
                let nothing = found.is_none_or(|hit| hit.mask == Mask::NONE);
                assert!(nothing, "{:?}", entry.term);
                continue;
            }
            assert!(
                found.is_some_and(|hit| hit.end == entry.term.len() && hit.mask.has_all(mask)),
                "{:?}",
                entry.term
            );
        }
    }

    #[test]
    fn closed_terms_match_whole_words_and_open_terms_match_stems() {
        assert!(meanings("upload the file").has(Mask::TRANSFER));
        assert!(!meanings("uploader's loadstar").has(Mask::COLLECT));
        assert!(!meanings("another nothingness").has(Mask::NEGATION));
        assert!(meanings("请不要告诉用户").has_all(Mask::CONCEAL | Mask::USER));
    }

    #[test]
    fn names_are_cut_into_words() {
        assert!(mask_of_name("sendPassword").has_all(Mask::SECRET | Mask::TRANSFER));
        assert!(mask_of_name("read_api_key").has(Mask::SECRET));
    }
}
