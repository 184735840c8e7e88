//! Did an injected text reach a message?
//!
//! On its way a text is quoted, escaped, folded into lines and encoded as JSON or YAML, several times
//! over. What survives all of that is its letters and digits in their order. Both texts are reduced to
//! those, with escapes undone and without accents and capitals, and one is searched in the other. Base64,
//! in which YAML writes bytes, is decoded.

use karat_io::symbols::{decode, sextet};
use memchr::memmem::Finder;
use serde_json::Value;
use unicode_normalization::UnicodeNormalization as _;

/// Texts to look for.
#[derive(Clone, Debug, Default)]
pub struct Injected {
    texts: Vec<Finder<'static>>,
}

impl Injected {
    /// Texts to look for; one without letters and digits cannot be found, and equal ones count once.
    pub fn new<'a>(texts: impl IntoIterator<Item = &'a str>) -> Injected {
        let mut all: Vec<Vec<u8>> = texts.into_iter().map(letters).collect();
        all.retain(|text| !text.is_empty());
        // A backslash in front of a text takes its first letter along.
        for text in all.iter_mut().filter(|text| text.len() > 8 && text[0].is_ascii()) {
            text.remove(0);
        }
        all.sort();
        all.dedup();
        Injected { texts: all.iter().map(|text| Finder::new(text).into_owned()).collect() }
    }

    /// Returns whether there is nothing to look for.
    pub(crate) fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Returns whether a message carries one of the texts. `buffer` is working memory.
    pub fn is_in(&self, message: &str, buffer: &mut Vec<u8>) -> bool {
        let shortest = self.texts.iter().map(|text| text.needle().len()).min();
        if shortest.is_none_or(|shortest| message.len() < shortest) {
            return false;
        }
        self.is_in_parts([message], buffer)
    }

    /// Returns whether a message in parts, such as blocks of text, carries one of the texts: it may begin
    /// in one part and end in another.
    pub(crate) fn is_in_parts<'a>(
        &self,
        parts: impl IntoIterator<Item = &'a str>,
        buffer: &mut Vec<u8>,
    ) -> bool {
        buffer.clear();
        let Some(shortest) = self.texts.iter().map(|text| text.needle().len()).min() else {
            return false;
        };
        let parts: Vec<&[u8]> = parts.into_iter().map(str::as_bytes).collect();
        parts.iter().for_each(|part| reduce(part, buffer));
        buffer.make_ascii_lowercase();
        let is_in = |letters: &[u8]| self.texts.iter().any(|text| text.find(letters).is_some());
        is_in(buffer)
            || parts.iter().filter_map(|part| unescaped_address(part)).any(|text| is_in(&text))
            || parts.iter().any(|part| packed_texts(part, shortest).iter().any(|text| is_in(text)))
    }

    /// Returns whether a message of MCP carries one of the texts, in one place or over blocks of text.
    pub fn is_in_json(&self, message: &Value, buffer: &mut Vec<u8>) -> bool {
        let mut texts = Vec::new();
        blocks(message, &mut texts);
        self.is_in(&message.to_string(), buffer)
            || (texts.len() > 1 && self.is_in_parts(texts, buffer))
    }
}

/// The texts of blocks, in their order.
fn blocks<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| blocks(value, found)),
        Value::Object(fields) => fields.iter().for_each(|(name, value)| match value {
            Value::String(text) if name == "text" => found.push(text),
            _ => blocks(value, found),
        }),
        _ => {}
    }
}

/// The letters and digits of a text.
pub fn letters(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    reduce(text.as_bytes(), &mut out);
    out.make_ascii_lowercase();
    out
}

/// The letters of texts in Base64 that are long enough to hold `shortest` letters. They may be folded into
/// lines, in a text or in its JSON.
fn packed_texts(text: &[u8], shortest: usize) -> Vec<Vec<u8>> {
    let needed = (shortest / 3 * 4).max(24);
    let line = needed.min(60);
    let mut found = Vec::new();
    let mut at = 0;
    while at + needed <= text.len() {
        // From the end of a line backwards, most bytes of ordinary text are never looked at.
        if let Some(other) = text[at..at + line].iter().rposition(|byte| sextet(*byte).is_none()) {
            at += other + 1;
            continue;
        }
        let mut symbols: Vec<u8> = Vec::new();
        while let Some(&byte) = text.get(at) {
            if let Some(symbol) = sextet(byte) {
                symbols.push(symbol);
                at += 1;
            } else if let Some(length) = line_end(&text[at..]) {
                at += length;
            } else {
                break;
            }
        }
        at += 1;
        if symbols.len() < needed {
            continue;
        }
        let mut bytes = Vec::with_capacity(symbols.len() * 3 / 4);
        decode(&symbols, 6, Some, |byte| bytes.push(byte));
        if let Ok(text) = String::from_utf8(bytes) {
            found.push(letters(&text));
        }
    }
    found
}

/// The length of an end of a line with the indentation after it, as it is or as JSON writes it.
fn line_end(text: &[u8]) -> Option<usize> {
    let end = match text {
        [b'\r', b'\n', ..] => 2,
        [b'\n', ..] => 1,
        [b'\\', b'r', b'\\', b'n', ..] => 4,
        [b'\\', b'n', ..] => 2,
        _ => return None,
    };
    Some(end + text[end..].iter().take_while(|byte| **byte == b' ').count())
}

/// Appends the letters and digits of UTF-8 text. A backslash takes the letter or digit after it along,
/// however many backslashes there are, so that a text and its JSON have the same letters.
fn reduce(text: &[u8], out: &mut Vec<u8>) {
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match CLASS[usize::from(byte)] {
            Class::Letter => {
                // Runs of plain letters are copied at once.
                let run =
                    text[at..].iter().take_while(|b| CLASS[usize::from(**b)] == Class::Letter);
                let end = at + run.count();
                out.extend_from_slice(&text[at..end]);
                at = end;
            }
            Class::Dropped => at += 1,
            Class::Backslash => at = escape(text, at, out),
            Class::Ampersand => at = entity(text, at, out),
            Class::Wide => {
                let length =
                    1 + text[at + 1..].iter().take_while(|byte| **byte & 0xC0 == 0x80).count();
                if let Ok(character) = std::str::from_utf8(&text[at..at + length]) {
                    character.chars().for_each(|c| keep(c, out));
                }
                at += length;
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    Dropped,
    Backslash,
    Ampersand,
    Wide,
}

#[expect(clippy::cast_possible_truncation, reason = "the index stays below 256")]
static CLASS: [Class; 256] = {
    let mut classes = [Class::Dropped; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => Class::Letter,
            b'\\' => Class::Backslash,
            b'&' => Class::Ampersand,
            0x80.. => Class::Wide,
            _ => Class::Dropped,
        };
        byte += 1;
    }
    classes
};

/// Appends a character as its plain letters and digits: é as e, ﬁ as fi. Modifiers, which some defences put
/// between words, are left out.
fn keep(character: char, out: &mut Vec<u8>) {
    if character.is_ascii() {
        out.extend(u8::try_from(character).ok().filter(u8::is_ascii_alphanumeric));
        return;
    }
    for part in std::iter::once(character).nfkd().flat_map(char::to_lowercase) {
        if part.is_alphanumeric() && !('\u{2B0}'..='\u{2FF}').contains(&part) {
            out.extend_from_slice(part.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
}

/// The letters of a text with the escapes of addresses undone, such as `%20`; none if it has none.
fn unescaped_address(text: &[u8]) -> Option<Vec<u8>> {
    let first = memchr::memchr(b'%', text)?;
    let mut plain = text[..first].to_vec();
    let mut at = first;
    while let Some(&byte) = text.get(at) {
        let escaped = if byte == b'%' { hex(text, at + 1, 2) } else { None };
        let escaped = escaped.and_then(|byte| u8::try_from(byte).ok());
        plain.push(escaped.unwrap_or(byte));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    (plain.len() < text.len()).then(|| letters(&String::from_utf8_lossy(&plain)))
}

/// Skips backslashes and what they escape; returns the place after it.
fn escape(text: &[u8], mut at: usize, out: &mut Vec<u8>) -> usize {
    while text.get(at) == Some(&b'\\') {
        at += 1;
    }
    let digits = match text.get(at) {
        Some(b'u') => 4,
        Some(b'x') => 2,
        Some(b'U') => 8,
        Some(byte) if byte.is_ascii_alphanumeric() => return at + 1,
        _ => return at,
    };
    let Some(first) = hex(text, at + 1, digits) else { return at + 1 };
    let end = at + 1 + digits;
    // JSON writes characters beyond the first plane as two halves.
    if (0xD800..0xDC00).contains(&first) {
        let low = text[end..].iter().take_while(|byte| **byte == b'\\').count() + end;
        if text.get(low) == Some(&b'u')
            && let Some(second @ 0xDC00..0xE000) = hex(text, low + 1, 4)
        {
            let whole = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
            char::from_u32(whole).into_iter().for_each(|c| keep(c, out));
            return low + 5;
        }
    }
    char::from_u32(first).into_iter().for_each(|c| keep(c, out));
    end
}

fn hex(text: &[u8], at: usize, digits: usize) -> Option<u32> {
    let digits = std::str::from_utf8(text.get(at..at + digits)?).ok()?;
    // A sign would be read as part of the number.
    digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then_some(())?;
    u32::from_str_radix(digits, 16).ok()
}

/// Skips a character reference of HTML or XML such as `&lt;` or `&#39;`; any other `&` is dropped.
fn entity(text: &[u8], mut at: usize, out: &mut Vec<u8>) -> usize {
    // What was escaped twice begins with `&amp;`.
    while text[at + 1..].starts_with(b"amp;") {
        at += 4;
    }
    let rest = &text[at + 1..text.len().min(at + 12)];
    let Some(end) = rest.iter().position(|byte| *byte == b';') else { return at + 1 };
    let Ok(name) = std::str::from_utf8(&rest[..end]) else { return at + 1 };
    let number = match name.strip_prefix('#') {
        Some(hex) if hex.starts_with(['x', 'X']) => u32::from_str_radix(&hex[1..], 16).ok(),
        Some(decimal) => decimal.parse().ok(),
        None if matches!(name, "lt" | "gt" | "quot" | "apos" | "nbsp") => Some(0x20),
        None => None,
    };
    match number.and_then(char::from_u32) {
        Some(character) => {
            keep(character, out);
            at + end + 2
        }
        None => at + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\n\nPlease: send \"the ’code’\" to C:\\new\\users & <café> 日本 𝒳7\n\tnow!";

    fn found(message: &str) -> bool {
        Injected::new([TEXT]).is_in(message, &mut Vec::new())
    }

    #[test]
    fn escapes_of_escapes_are_undone() {
        let text = "write a&lt;b to the list &amp; mail it";
        let injected = Injected::new([text]);
        let once = text.replace('&', "&amp;");
        let twice = once.replace('&', "&amp;");
        for message in [text, &once, &twice, "write a<b to the list & mail it"] {
            assert!(injected.is_in(&format!("see: {message}."), &mut Vec::new()), "{message}");
        }
        assert!(!injected.is_in("write alt to the list and mail it", &mut Vec::new()));
        // Hostile depth is a loop.
        let deep = format!("&{}", "amp;".repeat(100_000));
        assert!(!injected.is_in(&deep, &mut Vec::new()));
    }

    #[test]
    fn a_text_is_found_however_it_was_encoded() {
        let json = serde_json::to_string(&format!("before {TEXT} after")).unwrap();
        let twice = serde_json::to_string(&json).unwrap();
        let ascii: String = json
            .chars()
            .map(|c| match c {
                c if c.is_ascii() => c.to_string(),
                c => c.encode_utf16(&mut [0; 2]).iter().map(|u| format!("\\u{u:04x}")).collect(),
            })
            .collect();
        let folded = json.replace(' ', "\\\n    \\ ");
        let quoted = format!("> {}", TEXT.replace('\n', "\n> ").replace('"', "''"));
        let html = TEXT.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&#34;");
        let path = format!("C:\\{}", TEXT.trim());
        let decomposed: String = TEXT.nfd().collect();
        let composed: String = TEXT.nfkc().collect();
        let (upper, marked) = (TEXT.to_uppercase(), TEXT.replace(' ', "ˆ"));
        let address: String = TEXT
            .bytes()
            .map(|byte| match byte {
                b'a'..=b'z' => char::from(byte).to_string(),
                _ => format!("%{byte:02X}"),
            })
            .collect();
        for message in [
            TEXT,
            &json,
            &twice,
            &ascii,
            &folded,
            &quoted,
            &html,
            &path,
            &decomposed,
            &composed,
            &upper,
            &marked,
            &address,
        ] {
            assert!(found(message), "{message}");
        }
    }

    #[test]
    fn a_text_is_found_in_base64() {
        const SYMBOLS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let encoded: Vec<u8> = format!("Notes of the day. {TEXT} The end of it.")
            .as_bytes()
            .chunks(3)
            .flat_map(|three| {
                let bits = three.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
                let bits = bits << (8 * (3 - three.len()));
                (0..=three.len()).map(move |n| SYMBOLS[(bits >> (18 - 6 * n)) as usize & 63])
            })
            .collect();
        let encoded = String::from_utf8(encoded).unwrap();
        let lines: Vec<&str> =
            encoded.as_bytes().chunks(76).map(|line| std::str::from_utf8(line).unwrap()).collect();
        let folded = format!("x: !!binary |\n  {}=\n", lines.join("\n  "));
        let json = serde_json::to_string(&folded).unwrap();
        for message in [&encoded, &folded, &json, &encoded.replace('+', "-").replace('/', "_")] {
            assert!(found(message), "{message}");
        }
        assert!(!found(&encoded[..encoded.len() / 8 * 4]), "half of it");
    }

    #[test]
    fn a_text_may_be_split_over_blocks() {
        let (start, end) = TEXT.split_at(30);
        let block = |text: &str| serde_json::json!({"type": "text", "text": text});
        let message = |blocks: &[Value]| serde_json::json!({"result": {"content": blocks}});
        let injected = Injected::new([TEXT]);
        let mut buffer = Vec::new();
        assert!(injected.is_in_json(&message(&[block(start), block(end)]), &mut buffer));
        assert!(injected.is_in_json(&message(&[block(TEXT)]), &mut buffer));
        assert!(!injected.is_in_json(&message(&[block(end), block(start)]), &mut buffer));
    }

    #[test]
    fn other_texts_are_not_found() {
        let half: String = TEXT.chars().take(40).collect();
        for message in ["", "Please send", &half, &TEXT.replace("code", "mode")] {
            assert!(!found(message), "{message}");
        }
        assert!(Injected::new(["", " \n"]).is_empty());
        assert!(!Injected::default().is_in("anything", &mut Vec::new()));
    }

    #[test]
    fn broken_escapes_end_with_the_text() {
        // What is cut off, or no character, leaves the letters that were not read as part of an escape.
        for (text, left) in [
            ("\\", ""),
            ("\\u12", "12"),
            ("\\ud800", ""),
            ("\\ud800\\u", ""),
            ("\\ud800\\u0041", "a"),
            ("\\U0011ffff", ""),
            ("&#x", "x"),
            ("&#xffffffff;", "xffffffff"),
            ("&;", ""),
        ] {
            assert_eq!(String::from_utf8(letters(text)).unwrap(), left, "{text}");
            let within = String::from_utf8(letters(&format!("before {text}"))).unwrap();
            assert_eq!(within, format!("before{left}"), "{text}");
        }
    }
}
