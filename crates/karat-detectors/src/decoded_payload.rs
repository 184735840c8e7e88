//! Encoded text: base64, hex, escapes, numbers.
//!
//! Text that decodes to readable text is read like a description. An example that decodes to a greeting,
//! an image or a token header is not a finding; a command, an address for secrets or an order to the model
//! is. At most three layers are decoded, and nothing grows: every code here is longer than the text that it
//! encodes.

use std::borrow::Cow;

use karat_io::symbols::{decode, sextet};

use super::finding::{Finding, Tier, excerpt};
use super::meaning::Mask;
use super::reading::{Keyword, Part, Reading};
use super::register::{BYTES, Lanes, Register};
use super::{instruction_phrases, lexicon};

/// The shortest decoded text that counts.
const MIN_TEXT: usize = 10;
/// The most layers that are decoded.
const MAX_LAYERS: usize = 3;
/// The most candidates of one definition that are decoded.
const MAX_CANDIDATES: usize = 2_000;

pub(super) fn inspect(reading: &Reading<'_>, findings: &mut Vec<Finding>) {
    let mut budget = MAX_CANDIDATES;
    let pieces = joined_pieces(reading);
    let parts = reading.parts.iter().map(|part| {
        let signs = Signs { codes: part.mask.has(Mask::CODE), escapes: part.has_escapes() };
        (part.raw, signs, Place::Part(part))
    });
    let pieces = pieces.iter().map(|(text, place)| {
        (text.as_str(), Signs { codes: false, escapes: true }, Place::Pieces(place))
    });
    for (raw, signs, place) in parts.chain(pieces) {
        // Shorter ones have no code unless they announce it.
        if raw.len() < MIN_TEXT || raw.len() < MIN_CODE && !signs.codes {
            continue;
        }
        for (code, token, text) in decoded(raw, signs, &mut budget) {
            let Some((tier, why)) = judge(reading, code, &text, MAX_LAYERS, &mut budget) else {
                continue;
            };
            findings.push(Finding {
                rule: "decoded-payload",
                tier,
                message: format!("{code} that decodes to {why}: {:?}", excerpt(&text, 0, 0)).into(),
                place: place.name(),
                excerpt: excerpt(token, 0, 0).into_owned(),
            });
        }
    }
}

/// Signs of code in a text.
#[derive(Clone, Copy)]
struct Signs {
    /// True if it mentions codes.
    codes: bool,
    /// True if it may have characters written as escapes.
    escapes: bool,
}

/// The place of a candidate; described only if there is a finding.
enum Place<'p> {
    Part(&'p Part<'p>),
    Pieces(&'p Cow<'static, str>),
}

impl Place<'_> {
    fn name(&self) -> Cow<'static, str> {
        match self {
            Place::Part(part) => part.place(),
            Place::Pieces(name) => (*name).clone(),
        }
    }
}

/// The allowed values of a parameter joined, if all of them look like code: a message in pieces. Each with
/// its place.
fn joined_pieces(reading: &Reading<'_>) -> Vec<(String, Cow<'static, str>)> {
    let enums = reading.parts.iter().filter(|part| part.keyword == Some(Keyword::Enum));
    let pieces: Vec<&Part<'_>> =
        enums.filter(|part| part.raw.len() >= 8 && part.raw.bytes().all(is_code)).collect();
    pieces
        .chunk_by(|one, next| one.parameter == next.parameter)
        .filter(|group| group.len() >= 3)
        .map(|group| (group.iter().map(|part| part.raw).collect(), group[0].place()))
        .collect()
}

/// Judges a decoded text: the tier and the reason, if it is suspicious.
fn judge(
    reading: &Reading<'_>,
    code: &str,
    text: &str,
    layers: usize,
    budget: &mut usize,
) -> Option<(Tier, &'static str)> {
    let inner = Reading::of_text(reading.input, text);
    let mask = inner.mask;
    if mask.has(Mask::EXECUTE) || mask.has(Mask::PERSIST) && mask.has(Mask::PUT.and(Mask::WRITE)) {
        return Some((Tier::Block, "a command"));
    }
    if mask.has(Mask::SECRET_PATH) {
        return Some((Tier::Block, "the path of a secret"));
    }
    let mut orders = Vec::new();
    instruction_phrases::inspect(&inner, &mut orders);
    if !orders.is_empty() {
        return Some((Tier::Block, "an order to the model"));
    }
    let acts = mask.has(Mask::TRANSFER.and(Mask::PUT).and(Mask::COLLECT).and(Mask::DESTROY));
    let on = mask.has(Mask::SENSITIVE.and(Mask::EXTERNAL).and(Mask::USER).and(Mask::OTHER_TOOL));
    if acts && on || mask.has_all(Mask::OVERRIDE | Mask::INSTRUCTIONS) || mask.has(Mask::CONCEAL) {
        return Some((Tier::Block, "an instruction"));
    }
    // A tool about codes may show encoded sentences; any other has no reason to.
    let meant = !ANNOUNCED.contains(&code) || inner.hit_count() >= 4;
    if is_sentence(text) && meant && !reading.purpose.has(Mask::CODE) {
        let announced = reading.mask.has(Mask::CODE);
        return Some((if announced || acts { Tier::Block } else { Tier::Warn }, "a sentence"));
    }
    if layers > 1 {
        let signs = Signs { codes: mask.has(Mask::CODE), escapes: true };
        for (code, _, deeper) in decoded(text, signs, budget) {
            if let Some((tier, why)) = judge(reading, code, &deeper, layers - 1, budget) {
                return Some((tier, why));
            }
        }
    }
    None
}

/// Returns true if a text is a sentence: several words of letters, as opposed to a key, a path or JSON.
fn is_sentence(text: &str) -> bool {
    let plain =
        |c: char| c.is_alphanumeric() || c.is_whitespace() || ".,;:!?'-()%/@\"+#&*=_$€".contains(c);
    let words =
        text.split_whitespace().filter(|word| word.chars().any(char::is_alphabetic)).count();
    let unspaced = text.chars().filter(|c| matches!(c, '\u{3040}'..='\u{9fff}')).count();
    text.chars().all(plain) && (words >= 5 || unspaced >= 10)
}

/// Everything in a text that decodes to readable text: the code, the encoded part, the decoded text. A text
/// that mentions codes is also decoded as a whole.
fn decoded<'t>(
    text: &'t str,
    signs: Signs,
    budget: &mut usize,
) -> Vec<(&'static str, &'t str, String)> {
    let mut found = Vec::new();
    let mut add = |code: &'static str, token: &'t str, bytes: Option<Vec<u8>>| {
        if let Some(text) = bytes.and_then(readable) {
            found.push((code, token, text));
        }
    };
    for token in code_runs(text) {
        // `name=code`: the code is after the sign; a sign at the end is padding.
        let body = token.trim_end_matches('=');
        let token = body.rfind('=').map_or(token, |at| &token[at + 1..]);
        if token.len() < MIN_CODE || *budget == 0 {
            continue;
        }
        *budget -= 1;
        if token.contains('%') {
            add("percent-encoded text", token, percent(token));
        } else if token.len().is_multiple_of(2)
            && token.bytes().all(|byte| byte.is_ascii_hexdigit())
        {
            add("hex", token, hex(token));
        } else if token.bytes().all(|byte| matches!(byte, b'A'..=b'Z' | b'2'..=b'7' | b'=')) {
            add("base32", token, base32(token));
            add("base64", token, base64(token));
        } else {
            add("base64", token, base64(token));
        }
    }
    if signs.escapes && has_escapes(text) {
        add("escaped text", text, escapes(text));
    }
    for run in if has_digits(text) { number_runs(text) } else { Vec::new() } {
        if *budget == 0 {
            break;
        }
        *budget -= 1;
        add("characters as numbers", run, numbers(run));
    }
    if signs.codes
        && let Some((code, plain)) = announced(text)
    {
        found.push((code, text, plain));
    }
    found
}

/// Returns true if a text has the start of an escape.
fn has_escapes(text: &str) -> bool {
    let bytes = text.as_bytes();
    memchr::memchr2_iter(b'\\', b'&', bytes)
        .any(|at| matches!(bytes[at..], [b'\\', b'u' | b'x', ..] | [b'&', b'#', ..]))
}

/// Returns true if a text has as many digits as the shortest run of numbers.
fn has_digits(text: &str) -> bool {
    let mut digits = 0;
    for chunk in text.as_bytes().chunks(128) {
        // The count of one chunk fits a byte, so that the compiler adds many at once.
        digits += usize::from(chunk.iter().map(|byte| u8::from(byte.is_ascii_digit())).sum::<u8>());
    }
    digits >= MIN_TEXT
}

/// The shortest code that is decoded.
const MIN_CODE: usize = 16;

/// Stretches without a break that could be code. Each of them covers a whole block of half the minimal
/// length and at least as much around it, and few blocks of plain text are so far from blanks, since words
/// are short.
fn code_runs(text: &str) -> Vec<&str> {
    const BLOCK: usize = MIN_CODE / 2;
    const { assert!(BLOCK == BYTES, "a block fits a register") };
    let bytes = text.as_bytes();
    let blanks = |at: usize| match bytes.get(at..at + BLOCK) {
        Some(block) => Register::of(block).equal(b' '),
        None => Lanes::NONE,
    };
    let mut runs = Vec::new();
    let mut done = 0;
    // Before the first block there is as little as before a blank.
    let (mut before, mut here) = (Register::of(b"        ").equal(b' '), blanks(0));
    for (number, block) in bytes.chunks_exact(BLOCK).enumerate() {
        let at = number * BLOCK;
        let after = blanks(at + BLOCK);
        let around = before.after_last() + after.before_first();
        let far = here.is_none() & (around >= BLOCK);
        (before, here) = (here, after);
        if !far || at < done || !block.iter().all(|byte| is_code(*byte)) {
            continue;
        }
        let before = bytes[done..at].iter().rev().take_while(|byte| is_code(**byte)).count();
        let after = bytes[at..].iter().take_while(|byte| is_code(**byte)).count();
        done = at + after;
        if before + after >= MIN_CODE {
            // Code is ASCII, so the cuts are between characters.
            runs.push(&text[at - before..done]);
        }
    }
    runs
}

/// Returns true for the characters of base64 in both alphabets and of percent encoding.
fn is_code(byte: u8) -> bool {
    const CODE: [bool; 256] = {
        let mut code = [false; 256];
        let mut byte: u8 = 0;
        while byte < 128 {
            let sign = matches!(byte, b'+' | b'/' | b'=' | b'_' | b'-' | b'%');
            code[byte as usize] = sign || byte.is_ascii_alphanumeric();
            byte += 1;
        }
        code
    };
    CODE[usize::from(byte)]
}

/// The text of decoded bytes, if people can read it.
fn readable(bytes: Vec<u8>) -> Option<String> {
    let text = String::from_utf8(bytes).ok()?;
    let total = text.chars().count();
    let letters = text.chars().filter(|c| c.is_alphabetic() || *c == ' ').count();
    let plain = total >= MIN_TEXT && letters * 10 >= total * 3;
    (plain && !text.chars().any(is_odd)).then_some(text)
}

fn base64(token: &str) -> Option<Vec<u8>> {
    decode_text(token.trim_end_matches('='), 6, sextet)
}

fn base32(token: &str) -> Option<Vec<u8>> {
    decode_text(token.trim_end_matches('='), 5, |byte| {
        Some(match byte {
            b'A'..=b'Z' => byte - b'A',
            b'2'..=b'7' => byte - b'2' + 26,
            _ => return None,
        })
    })
}

fn hex(token: &str) -> Option<Vec<u8>> {
    decode_text(token, 4, nibble)
}

/// Decodes a code in which each symbol is this many bits; none if people could not read the result.
fn decode_text(code: &str, width: u32, value: impl Fn(u8) -> Option<u8>) -> Option<Vec<u8>> {
    let code = code.as_bytes();
    // The first bytes of most long names already decode to no text.
    let (head, length) = (&code[..code.len().min(MIN_CODE / 2)], &mut 0);
    let mut decoded = [0; MIN_CODE / 2];
    decode(head, width, &value, |byte| {
        decoded[*length] = byte;
        *length += 1;
    })?;
    if !may_begin_text(&decoded[..*length]) {
        return None;
    }
    let mut bytes = Vec::with_capacity(code.len() * width as usize / 8);
    decode(code, width, value, |byte| bytes.push(byte))?;
    Some(bytes)
}

/// Returns false if no readable text begins with these bytes.
fn may_begin_text(bytes: &[u8]) -> bool {
    match str::from_utf8(bytes) {
        Ok(text) => !text.chars().any(is_odd),
        // The last character may go on after them.
        Err(error) => error.error_len().is_none(),
    }
}

/// Returns true for a character that readable text does not have.
fn is_odd(character: char) -> bool {
    character.is_control() && !character.is_whitespace()
        || matches!(character, '\u{e000}'..='\u{f8ff}')
}

fn nibble(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

/// Percent encoding that hides letters; links have it for spaces and punctuation alone.
fn percent(token: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(token.len());
    let mut hidden = 0;
    let mut rest = token.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        match (first, after) {
            (b'%', [high, low, after @ ..]) => {
                let byte = nibble(*high)? << 4 | nibble(*low)?;
                hidden += usize::from(byte.is_ascii_alphanumeric() || byte == b' ');
                bytes.push(byte);
                rest = after;
            }
            (byte, after) => {
                bytes.push(*byte);
                rest = after;
            }
        }
    }
    (hidden >= 4).then_some(bytes)
}

/// Decodes `\u0041`, `\x41` and `&#65;`.
fn escapes(text: &str) -> Option<Vec<u8>> {
    let mut plain = String::with_capacity(text.len());
    let mut replaced = 0;
    let mut rest = text;
    while let Some(at) = rest.find(['\\', '&']) {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        let unit = |prefix: &str, length: usize| {
            let digits = rest.strip_prefix(prefix)?.get(..length)?;
            let code = u32::from_str_radix(digits, 16).ok()?;
            Some((char::from_u32(code)?, prefix.len() + length))
        };
        let entity = || {
            let body = rest.strip_prefix("&#")?;
            let end = body.find(';').filter(|end| *end <= 8)?;
            let code = match body[..end].strip_prefix(['x', 'X']) {
                Some(digits) => u32::from_str_radix(digits, 16).ok()?,
                None => body[..end].parse().ok()?,
            };
            Some((char::from_u32(code)?, 2 + end + 1))
        };
        match unit("\\u", 4).or_else(|| unit("\\x", 2)).or_else(entity) {
            Some((character, length)) => {
                replaced += usize::from(character.is_alphanumeric());
                plain.push(character);
                rest = &rest[length..];
            }
            None => {
                plain.push_str(&rest[..1]);
                rest = &rest[1..];
            }
        }
    }
    plain.push_str(rest);
    (replaced >= MIN_TEXT).then(|| plain.into_bytes())
}

/// Stretches of numbers that could be characters: `72 101 108`, `48 65 6c`, `01001000 01100101`.
fn number_runs(text: &str) -> Vec<&str> {
    const LENGTH: usize = 2 * MIN_TEXT;
    let in_run = |byte: &u8| {
        byte.is_ascii_hexdigit() || matches!(byte, b' ' | b',' | b':' | b'-' | b'x' | b'X' | b'\\')
    };
    let bytes = text.as_bytes();
    let mut runs = Vec::new();
    // A run covers at least one byte of every `LENGTH`, so most bytes need not be looked at.
    let (mut done, mut at) = (0, LENGTH - 1);
    while let Some(byte) = bytes.get(at) {
        if !in_run(byte) {
            at += LENGTH;
            continue;
        }
        let start = at - bytes[done..at].iter().rev().take_while(|byte| in_run(byte)).count();
        done = at + bytes[at..].iter().take_while(|byte| in_run(byte)).count();
        if done - start >= LENGTH {
            // All of them are ASCII, so the cuts are between characters.
            runs.push(text[start..done].trim());
        }
        at = done + LENGTH;
    }
    runs
}

fn numbers(run: &str) -> Option<Vec<u8>> {
    let words: Vec<&str> =
        run.split([' ', ',', ':', '-', '\\']).filter(|word| !word.is_empty()).collect();
    if words.len() < MIN_TEXT {
        return None;
    }
    let longest = |radix: u32, length: std::ops::RangeInclusive<usize>| -> Option<Vec<u8>> {
        let values = words.iter().map(|word| {
            let digits = word.strip_prefix("0x").or_else(|| word.strip_prefix('x')).unwrap_or(word);
            let value = u8::from_str_radix(digits, radix).ok()?;
            (length.contains(&digits.len()) && (value.is_ascii() || radix != 10)).then_some(value)
        });
        let values: Vec<Option<u8>> = values.collect();
        let runs = values.split(Option::is_none).map(|run| run.iter().flatten().copied().collect());
        runs.max_by_key(|run: &Vec<u8>| run.len()).filter(|run| run.len() >= MIN_TEXT)
    };
    longest(2, 7..=8).or_else(|| longest(10, 2..=3)).or_else(|| longest(16, 2..=2))
}

/// Codes that turn any text into text, so that the result has to make sense to count.
const ANNOUNCED: [&str; 2] = ["rot13", "reversed text"];

/// Decodes rot13 and reversed text, which look like words and are decoded only if the text announces them.
fn announced(text: &str) -> Option<(&'static str, String)> {
    let lower = text.to_ascii_lowercase();
    let rotated = lower.contains("rot")
        && ["rot13", "rot-13", "rot 13"].iter().any(|name| lower.contains(name));
    if rotated {
        let turn = |c: char| match c {
            'a'..='z' => char::from((c as u8 - b'a' + 13) % 26 + b'a'),
            'A'..='Z' => char::from((c as u8 - b'A' + 13) % 26 + b'A'),
            other => other,
        };
        return Some((ANNOUNCED[0], text.chars().map(turn).collect()));
    }
    if lexicon::announces_reversed_text(&lower) {
        return Some((ANNOUNCED[1], text.chars().rev().collect()));
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The longest stretches of bytes of a kind, found byte by byte.
    fn stretches(text: &str, kind: impl Fn(u8) -> bool, least: usize) -> Vec<&str> {
        let mut found = Vec::new();
        let mut start = 0;
        for (at, byte) in text.bytes().chain([b'\n']).enumerate() {
            if !kind(byte) {
                if at - start >= least {
                    found.push(text[start..at].trim());
                }
                start = at + 1;
            }
        }
        found
    }

    proptest! {
        #[test]
        fn every_stretch_is_found_wherever_it_begins(
            pieces in proptest::collection::vec("[0-9a-f ,]{0,45}|[g-w.]{0,30}|[A-Za-z0-9_/+=]{0,40}|é", 0..8),
        ) {
            let text = pieces.concat();
            let number = |byte: u8| byte.is_ascii_hexdigit() || b" ,:-xX\\".contains(&byte);
            prop_assert_eq!(number_runs(&text), stretches(&text, number, 2 * MIN_TEXT));
            prop_assert_eq!(code_runs(&text), stretches(&text, is_code, MIN_CODE));
        }
    }
}
