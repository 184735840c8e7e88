//! Characters that a reviewer does not see, or sees as something else.
//!
//! Tag characters, zero-width characters inside words, direction overrides, variation selectors in
//! rows, terminal escapes, letters of another script that look like Latin ones. What good writing needs
//! stays quiet: joiners in emoji and in Indic or Persian words, direction marks in right-to-left text,
//! the flags of England, Scotland and Wales.

use super::reading::{Part, Reading, Surface, excerpt};
use super::{Finding, Tier};

/// So many zero-width characters are a message, not a slip.
const MESSAGE: usize = 8;
/// So much white space in a row pushes what follows out of sight.
const PADDING: usize = 200;

/// What stands in one text.
#[derive(Default)]
struct Seen {
    /// Tag characters, decoded.
    tags: String,
    /// Selectors in rows, counted.
    selectors: usize,
    overrides: usize,
    marks: usize,
    zero_width: usize,
    inside_words: usize,
    private: usize,
    escapes: usize,
    controls: usize,
    /// Words in a mathematical style.
    styled: usize,
    /// Marks that strike letters out.
    struck: usize,
    right_to_left: bool,
    /// Where the first of them stands.
    first: Option<usize>,
}

/// What this detector finds.
pub fn inspect(reading: &Reading<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for part in &reading.parts {
        let kinds = if part.has_odd_characters() { kinds(part.raw) } else { 0 };
        if kinds & HIDING != 0 {
            report(part, &look(part.raw), &mut findings);
        }
        if kinds & DOUBLE != 0 && kinds & LATIN != 0 {
            findings.extend(posing_word(part.raw, part.surface).map(|word| Finding {
                rule: "look-alike-letters",
                tier: Tier::Block,
                message: "a word mixes Latin letters with others that look the same".to_owned(),
                place: part.place(),
                excerpt: word.to_owned(),
            }));
        }
        if may_have_gap(part.raw) && longest_gap(part.raw) >= PADDING {
            findings.push(Finding {
                rule: "padding",
                tier: Tier::Warn,
                message: format!("a gap of {} blanks hides what follows", longest_gap(part.raw)),
                place: part.place(),
                excerpt: excerpt(part.raw.trim_end(), part.raw.trim_end().len(), 0).into_owned(),
            });
        }
    }
    findings
}

/// A Latin letter.
const LATIN: u8 = 1;
/// A control character, or the first byte of characters of which some are hidden.
const HIDING: u8 = 2;
/// The first byte of letters of which some look like Latin ones.
const DOUBLE: u8 = 4;

/// What each byte may be part of. Most texts have neither hidden characters nor doubles, and their bytes
/// tell.
const KINDS: [u8; 256] = {
    let mut kinds = [0; 256];
    let mut byte: u8 = 0;
    loop {
        kinds[byte as usize] = match byte {
            b'a'..=b'z' | b'A'..=b'Z' => LATIN,
            b'\n' | b'\r' | b'\t' => 0,
            // Soft hyphens and controls; strokes and joiners; Arabic marks; Hangul and Mongolian fillers.
            0..=0x1f | 0x7f | 0xc2 | 0xcc | 0xcd | 0xd8 | 0xe1 | 0xe3 | 0xee..=0xf4 => HIDING,
            // General punctuation and enclosed letters, among them doubles.
            0xe2 => HIDING | DOUBLE,
            // Latin extensions, phonetic letters, Greek, Cyrillic, Armenian.
            0xc4 | 0xc9 | 0xce..=0xd6 => DOUBLE,
            _ => 0,
        };
        if byte == u8::MAX {
            break kinds;
        }
        byte += 1;
    }
};

/// Everything that a text may hold.
fn kinds(text: &str) -> u8 {
    text.bytes().fold(0, |kinds, byte| kinds | KINDS[usize::from(byte)])
}

fn report(part: &Part<'_>, seen: &Seen, findings: &mut Vec<Finding>) {
    let mut add = |rule, tier, message: String| {
        let at = seen.first.unwrap_or(0);
        findings.push(Finding {
            rule,
            tier,
            message,
            place: part.place(),
            excerpt: excerpt(part.raw, at, at).into_owned(),
        });
    };
    // A page or a mail from elsewhere has slips of all kinds: there only a message counts.
    let strict = part.surface != Surface::Result;
    if !seen.tags.is_empty() {
        add(
            "tag-characters",
            Tier::Block,
            format!("invisible tag characters spell {:?}", seen.tags),
        );
    }
    if seen.selectors > 2 {
        let message = format!("{} variation selectors stand in rows", seen.selectors);
        add("variation-selectors", Tier::Block, message);
    }
    if seen.overrides > 0 {
        add("direction-override", Tier::Block, "the reading direction is overridden".to_owned());
    }
    if seen.marks > 0 && !seen.right_to_left && strict {
        add("direction-marks", Tier::Warn, "direction marks in left-to-right text".to_owned());
    }
    if seen.escapes > 0 {
        add("terminal-escape", Tier::Block, "a terminal escape sequence".to_owned());
    } else if seen.controls > 0 && strict {
        add("control-characters", Tier::Warn, format!("{} control characters", seen.controls));
    }
    if seen.zero_width >= MESSAGE {
        let message = format!("{} zero-width characters, enough for a message", seen.zero_width);
        add("zero-width", Tier::Block, message);
    } else if strict && (seen.inside_words > 0 || seen.zero_width > 1) {
        let message = "zero-width characters split words that filters look for".to_owned();
        add("zero-width", Tier::Block, message);
    } else if strict && seen.zero_width > 0 {
        add("zero-width", Tier::Warn, "a zero-width character".to_owned());
    }
    if seen.private > 2 && strict {
        add("private-use", Tier::Block, format!("{} private-use characters", seen.private));
    } else if seen.private > 0 && strict {
        add("private-use", Tier::Warn, "a private-use character".to_owned());
    }
    if seen.styled >= 3 {
        let message = format!("{} words in a mathematical style instead of letters", seen.styled);
        add("styled-letters", Tier::Block, message);
    }
    if seen.struck >= MESSAGE {
        let message = "text that is struck out for people, but not for a model".to_owned();
        add("struck-out", Tier::Block, message);
    }
    if strict && split_words(part.raw) >= 3 {
        add("soft-hyphens", Tier::Block, "soft hyphens split short words".to_owned());
    }
}

/// Counts what is hidden. One pass, with the characters before and after at hand.
fn look(text: &str) -> Seen {
    let mut seen = Seen::default();
    let mut before = '\0';
    let mut flag = false;
    let mut in_row = 0;
    let mut earlier_styled = false;
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        // Nearly all text: printable ASCII, kana, ideographs.
        if matches!(character, ' '..='~' | '\u{3041}'..='\u{30ff}' | '\u{4e00}'..='\u{9fff}') {
            (flag, in_row, before) = (false, 0, character);
            continue;
        }
        let after = characters.peek().map_or('\0', |(_, next)| *next);
        let mut hidden = true;
        match character {
            '\u{e0020}'..='\u{e007e}' => {
                if flag {
                    hidden = false;
                } else {
                    seen.tags.push(char::from_u32(u32::from(character) - 0xe0000).unwrap_or('?'));
                }
            }
            '\u{e007f}' if flag => {
                flag = false;
                hidden = false;
            }
            '\u{e0001}' | '\u{e007f}' => seen.tags.push('?'),
            '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' | '\u{180b}'..='\u{180d}' => {
                in_row += 1;
                if in_row > 1 {
                    seen.selectors += in_row.min(2);
                }
                hidden = in_row > 1;
            }
            '\u{202d}' | '\u{202e}' => seen.overrides += 1,
            '\u{200e}'
            | '\u{200f}'
            | '\u{061c}'
            | '\u{202a}'..='\u{202c}'
            | '\u{2066}'..='\u{2069}' => {
                seen.marks += 1;
                hidden = !seen.right_to_left;
            }
            '\u{200b}'..='\u{200d}'
            | '\u{2060}'..='\u{2064}'
            | '\u{feff}'
            | '\u{00ad}'
            | '\u{034f}'
            | '\u{180e}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{3164}'
            | '\u{ffa0}'
            | '\u{206a}'..='\u{206f}' => {
                hidden = !joins_honestly(before, character, after);
                if hidden && !(at == 0 && character == '\u{feff}') {
                    seen.zero_width += 1;
                    if is_latin(before) && is_latin(after) && character != '\u{00ad}' {
                        seen.inside_words += 1;
                    }
                }
            }
            '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10fffd}' => seen.private += 1,
            '\u{1b}' | '\u{9b}' => seen.escapes += 1,
            '\n' | '\r' | '\t' => hidden = false,
            control if control.is_control() => seen.controls += 1,
            styled if is_styled(styled) => {
                // Two in a row are a word; single ones are variables.
                let second = is_styled(before) && !earlier_styled;
                seen.styled += usize::from(second);
                earlier_styled = is_styled(before);
                hidden = false;
            }
            '\u{0334}'..='\u{0338}' => {
                seen.struck += 1;
                hidden = false;
            }
            other => {
                hidden = false;
                seen.right_to_left |= is_right_to_left(other);
                flag = other == '\u{1f3f4}';
            }
        }
        if !matches!(
            character,
            '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' | '\u{180b}'..='\u{180d}'
        ) {
            in_row = 0;
        }
        if hidden {
            seen.first.get_or_insert(at);
        } else if !is_invisible(character) {
            before = character;
        }
    }
    seen
}

/// Whether an invisible character does what it is for.
fn joins_honestly(before: char, character: char, after: char) -> bool {
    match character {
        // Joiners shape Arabic and Indic words and hold emoji together.
        '\u{200c}' | '\u{200d}' => {
            shapes(before) && (shapes(after) || !after.is_alphanumeric())
                || is_emoji(before) && is_emoji(after)
        }
        // Breaking hints where words are not set apart by spaces.
        '\u{200b}' | '\u{2060}' => {
            let unspaced = |c: char| {
                matches!(c, '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}')
                    || matches!(c, '\u{3000}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}')
            };
            unspaced(before) || unspaced(after)
        }
        // A soft hyphen inside a long word.
        '\u{00ad}' => before.is_alphabetic() && after.is_alphabetic(),
        _ => false,
    }
}

fn shapes(character: char) -> bool {
    matches!(
        character,
        '\u{0590}'..='\u{08ff}' | '\u{0900}'..='\u{0dff}' | '\u{1800}'..='\u{18af}'
        | '\u{fb50}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}'
    )
}

fn is_emoji(character: char) -> bool {
    matches!(
        character,
        '\u{2190}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}' | '\u{fe0f}' | '\u{3030}' | '\u{303d}'
    )
}

fn is_right_to_left(character: char) -> bool {
    matches!(character, '\u{0590}'..='\u{08ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}')
}

fn is_styled(character: char) -> bool {
    matches!(
        character,
        '\u{1d400}'..='\u{1d6a5}' | '\u{24b6}'..='\u{24e9}' | '\u{1f130}'..='\u{1f189}'
    )
}

/// How many short words are split by soft hyphens; they are meant for long ones.
fn split_words(text: &str) -> usize {
    if !text.contains('\u{00ad}') {
        return 0;
    }
    text.split_whitespace()
        .filter(|word| word.contains('\u{00ad}'))
        .filter(|word| word.chars().filter(|c| c.is_alphanumeric()).count() <= 9)
        .count()
}

fn is_latin(character: char) -> bool {
    character.is_ascii_alphabetic() || matches!(character, '\u{c0}'..='\u{24f}')
}

/// Whether a character shows as nothing: what the other detectors read past.
pub(super) fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{00ad}' | '\u{034f}' | '\u{061c}' | '\u{115f}' | '\u{1160}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{e0000}'..='\u{e0fff}'
    )
}

/// The Latin letter that a letter of another script looks like.
pub(super) fn looks_like(character: char) -> Option<char> {
    Some(match character {
        'а' | 'α' | 'ɑ' => 'a',
        'в' | 'Β' | 'В' => 'b',
        'с' | 'ϲ' | 'С' => 'c',
        'ԁ' => 'd',
        'е' | 'ε' | 'Е' | 'Ε' => 'e',
        'ɡ' | 'ց' => 'g',
        'һ' | 'Н' | 'Η' | 'հ' => 'h',
        'і' | 'ι' | 'Ι' | 'І' | 'ı' => 'i',
        'ј' | 'Ј' => 'j',
        'к' | 'κ' | 'К' | 'Κ' => 'k',
        'ӏ' | 'Ӏ' | 'ⅼ' => 'l',
        'м' | 'М' | 'Μ' => 'm',
        'ո' | 'Ν' => 'n',
        'о' | 'ο' | 'О' | 'Ο' | 'օ' => 'o',
        'р' | 'ρ' | 'Р' | 'Ρ' => 'p',
        'ԛ' => 'q',
        'ѕ' | 'Ѕ' => 's',
        'т' | 'τ' | 'Т' | 'Τ' => 't',
        'υ' | 'ս' => 'u',
        'ν' | 'ѵ' => 'v',
        'ԝ' | 'ω' => 'w',
        'х' | 'χ' | 'Х' | 'Χ' => 'x',
        'у' | 'γ' | 'У' | 'Υ' => 'y',
        'Ζ' => 'z',
        _ => return None,
    })
}

/// A word in which Latin letters and their doubles from another script stand side by side.
fn posing_word(text: &str, surface: Surface) -> Option<&str> {
    if surface == Surface::Result || !may_pose(text) {
        return None;
    }
    text.split(|character: char| !character.is_alphanumeric()).find(|word| {
        let latin = word.chars().filter(|c| c.is_ascii_alphabetic()).count();
        let posing = word.chars().filter(|c| looks_like(*c).is_some()).count();
        let foreign = word.chars().filter(|c| c.is_alphabetic() && !is_latin(*c)).count();
        let cyrillic = word.chars().filter(|c| matches!(c, '\u{0400}'..='\u{052f}')).count();
        let doubles = word.chars().filter(|c| "aceopxyABCEHKMOPTXy".contains(*c)).count();
        // µm, ΔT and the like have a letter or two; a word that poses is a word.
        posing > 0 && posing == foreign && latin >= 3
            || latin > 0 && latin == doubles && cyrillic >= 3 && cyrillic == foreign
    })
}

/// Whether Latin letters and possible doubles stand together without an ASCII sign between them.
fn may_pose(text: &str) -> bool {
    text.as_bytes()
        .split(|byte| byte.is_ascii() && !byte.is_ascii_alphanumeric())
        .map(|word| word.iter().fold(0, |kinds, byte| kinds | KINDS[usize::from(*byte)]))
        .any(|kinds| kinds & DOUBLE != 0 && kinds & LATIN != 0)
}

/// A gap of that length covers a whole block of half of it; looking at the ends of blocks is enough to
/// rule one out.
fn may_have_gap(text: &str) -> bool {
    let mut blocks = text.as_bytes().chunks_exact(PADDING / 2);
    blocks.any(|block| {
        let blank = |at: usize| block.get(at).is_some_and(u8::is_ascii_whitespace);
        blank(0) && blank(1) && blank(PADDING / 4) && blank(PADDING / 2 - 1)
    })
}

fn longest_gap(text: &str) -> usize {
    let mut longest = 0;
    let mut length = 0;
    for byte in text.bytes() {
        length = if byte.is_ascii_whitespace() { length + 1 } else { 0 };
        longest = longest.max(length);
    }
    let trailing = text.len() - text.trim_end().len();
    if trailing == longest { 0 } else { longest }
}
