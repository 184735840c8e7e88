//! Characters that a reviewer does not see, or sees as something else.
//!
//! Tag characters, zero-width characters inside words, direction overrides, variation selectors in a row,
//! terminal escapes, letters of another script that look like Latin ones. Characters that honest text needs
//! are not findings: joiners in emoji and in Indic or Persian words, direction marks in right-to-left text,
//! the flags of England, Scotland and Wales.

use super::characters::{is_invisible, looks_like};
use super::finding::{Finding, Tier, excerpt};
use super::reading::{Part, Reading, Surface};

/// The number of zero-width characters that is a message rather than a slip.
const MIN_MESSAGE: usize = 8;
/// The number of blanks in a row that pushes the text after them out of sight.
const MIN_PADDING: usize = 200;

/// The characters of interest in one text, counted.
#[derive(Default)]
struct Seen {
    /// Tag characters, decoded.
    tags: String,
    /// Variation selectors in a row.
    selectors: usize,
    overrides: usize,
    marks: usize,
    zero_width: usize,
    inside_words: usize,
    private: usize,
    soft_hyphens: usize,
    escapes: usize,
    controls: usize,
    /// Words in a mathematical style.
    styled: usize,
    /// Marks that strike letters out.
    struck: usize,
    right_to_left: bool,
    /// The place of the first of them.
    first: Option<usize>,
}

pub(super) fn inspect(reading: &Reading<'_>, findings: &mut Vec<Finding>) {
    for part in &reading.parts {
        if !part.has_odd_characters() && part.raw.len() < MIN_PADDING {
            continue;
        }
        let kinds = if part.has_odd_characters() { kinds(part.raw) } else { 0 };
        if kinds & HIDING != 0 {
            report(part, &look(part.raw), findings);
        }
        if kinds & LOOK_ALIKE != 0 && kinds & LATIN != 0 {
            findings.extend(posing_word(part.raw, part.surface).map(|word| Finding {
                rule: "look-alike-letters",
                tier: Tier::Block,
                message: "a word mixes Latin letters with others that look the same".into(),
                place: part.place(),
                excerpt: word.to_owned(),
            }));
        }
        if may_have_gap(part.raw) && longest_gap(part.raw) >= MIN_PADDING {
            findings.push(Finding {
                rule: "padding",
                tier: Tier::Warn,
                message: format!(
                    "a gap of {} blanks hides the text after it",
                    longest_gap(part.raw)
                )
                .into(),
                place: part.place(),
                excerpt: excerpt(part.raw.trim_end(), part.raw.trim_end().len(), 0).into_owned(),
            });
        }
    }
}

/// A Latin letter.
const LATIN: u8 = 1;
/// A control character, or the first byte of characters of which some are hidden.
const HIDING: u8 = 2;
/// The first byte of letters of which some look like Latin ones.
const LOOK_ALIKE: u8 = 4;

/// The kinds of characters that each byte may be part of: most texts have neither hidden characters nor
/// look-alikes, and their bytes are enough to know it.
const KINDS: [u8; 256] = {
    let mut kinds = [0; 256];
    let mut byte: u8 = 0;
    loop {
        kinds[byte as usize] = match byte {
            b'a'..=b'z' | b'A'..=b'Z' => LATIN,
            b'\n' | b'\r' | b'\t' => 0,
            // Soft hyphens and controls; strokes and joiners; Arabic marks; Hangul and Mongolian fillers.
            0..=0x1f | 0x7f | 0xc2 | 0xcc | 0xcd | 0xd8 | 0xe1 | 0xe3 | 0xee..=0xf4 => HIDING,
            // General punctuation and enclosed letters, some of them look-alikes.
            0xe2 => HIDING | LOOK_ALIKE,
            // Latin extensions, phonetic letters, Greek, Cyrillic, Armenian.
            0xc4 | 0xc9 | 0xce..=0xd6 => LOOK_ALIKE,
            _ => 0,
        };
        if byte == u8::MAX {
            break kinds;
        }
        byte += 1;
    }
};

/// The kinds of characters that a text may have.
fn kinds(text: &str) -> u8 {
    text.bytes().fold(0, |kinds, byte| kinds | KINDS[usize::from(byte)])
}

fn report(part: &Part<'_>, seen: &Seen, findings: &mut Vec<Finding>) {
    let mut add = |rule, tier, message: String| {
        let at = seen.first.unwrap_or(0);
        findings.push(Finding {
            rule,
            tier,
            message: message.into(),
            place: part.place(),
            excerpt: excerpt(part.raw, at, at).into_owned(),
        });
    };
    // A page or a mail from elsewhere has slips of all kinds: only a message counts there.
    let strict = part.surface != Surface::Result;
    if !seen.tags.is_empty() {
        add(
            "tag-characters",
            Tier::Block,
            format!("invisible tag characters spell {:?}", seen.tags),
        );
    }
    if seen.selectors > 2 {
        let message = format!("{} variation selectors in a row", seen.selectors);
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
    if seen.zero_width >= MIN_MESSAGE {
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
        let message = format!("{} words in mathematical letters", seen.styled);
        add("styled-letters", Tier::Block, message);
    }
    if seen.struck >= MIN_MESSAGE {
        let message = "text that is struck out for people, but not for a model".to_owned();
        add("struck-out", Tier::Block, message);
    }
    if strict && seen.soft_hyphens >= 3 && split_words(part.raw) >= 3 {
        add("soft-hyphens", Tier::Block, "soft hyphens split short words".to_owned());
    }
}

/// Counts hidden characters in one pass, looking at the characters before and after each.
fn look(text: &str) -> Seen {
    let mut seen = Seen::default();
    let mut before = '\0';
    let mut flag = false;
    let mut in_row = 0;
    let mut earlier_styled = false;
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        // Most characters: printable ASCII, kana, ideographs.
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
                seen.soft_hyphens += usize::from(character == '\u{00ad}');
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

/// Returns true if an invisible character serves its purpose.
fn joins_honestly(before: char, character: char, after: char) -> bool {
    match character {
        // Joiners shape Arabic and Indic words and hold emoji together.
        '\u{200c}' | '\u{200d}' => {
            shapes(before) && (shapes(after) || !after.is_alphanumeric())
                || is_emoji(before) && is_emoji(after)
        }
        // Break hints in scripts that do not separate words by spaces.
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

/// The number of short words that soft hyphens split; these are meant for long words.
fn split_words(text: &str) -> usize {
    text.split_whitespace()
        .filter(|word| word.contains('\u{00ad}'))
        .filter(|word| word.chars().filter(|c| c.is_alphanumeric()).count() <= 9)
        .count()
}

fn is_latin(character: char) -> bool {
    character.is_ascii_alphabetic() || matches!(character, '\u{c0}'..='\u{24f}')
}

/// A word that mixes Latin letters with look-alikes from another script.
fn posing_word(text: &str, surface: Surface) -> Option<&str> {
    if surface == Surface::Result || !may_pose(text) {
        return None;
    }
    text.split(|character: char| !character.is_alphanumeric()).find(|word| {
        // Most words are of one script.
        if word.is_ascii() || !word.bytes().any(|byte| byte.is_ascii_alphabetic()) {
            return false;
        }
        let latin = word.chars().filter(|c| c.is_ascii_alphabetic()).count();
        let posing = word.chars().filter(|c| looks_like(*c).is_some()).count();
        let foreign = word.chars().filter(|c| c.is_alphabetic() && !is_latin(*c)).count();
        let cyrillic = word.chars().filter(|c| matches!(c, '\u{0400}'..='\u{052f}')).count();
        let look_alikes = word.chars().filter(|c| "aceopxyABCEHKMOPTXy".contains(*c)).count();
        // µm, ΔT and the like have a letter or two; a posing word has more.
        posing > 0 && posing == foreign && latin >= 3
            || latin > 0 && latin == look_alikes && cyrillic >= 3 && cyrillic == foreign
    })
}

/// Returns true if a word may have both Latin letters and look-alikes.
fn may_pose(text: &str) -> bool {
    text.as_bytes()
        .split(|byte| byte.is_ascii() && !byte.is_ascii_alphanumeric())
        .map(|word| word.iter().fold(0, |kinds, byte| kinds | KINDS[usize::from(*byte)]))
        .any(|kinds| kinds & LOOK_ALIKE != 0 && kinds & LATIN != 0)
}

/// Returns false if no gap is long enough to count. A gap of that length covers a whole block of half of
/// it, so it is enough to look at a few bytes of each block.
fn may_have_gap(text: &str) -> bool {
    let mut blocks = text.as_bytes().chunks_exact(MIN_PADDING / 2);
    blocks.any(|block| {
        let blank = |at: usize| block.get(at).is_some_and(u8::is_ascii_whitespace);
        blank(0) && blank(1) && blank(MIN_PADDING / 4) && blank(MIN_PADDING / 2 - 1)
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
