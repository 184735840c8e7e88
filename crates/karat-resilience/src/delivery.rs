//! Did an injected text reach a message?
//!
//! On its way a text is quoted, escaped, folded into lines and encoded as JSON or YAML, several times
//! over. What survives all of that is its letters and digits in their order. Both texts are reduced to
//! those, with escapes undone, and one is searched in the other.

use memchr::memmem;

/// Texts to look for.
#[derive(Clone, Debug, Default)]
pub struct Injected {
    texts: Vec<Vec<u8>>,
}

impl Injected {
    /// Texts to look for; one without letters and digits cannot be found, and equal ones count once.
    pub fn new<'a>(texts: impl IntoIterator<Item = &'a str>) -> Injected {
        let mut all: Vec<Vec<u8>> = texts.into_iter().map(letters).collect();
        all.retain(|text| !text.is_empty());
        all.sort();
        all.dedup();
        Injected { texts: all }
    }

    /// Returns whether there is nothing to look for.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Returns whether a message carries one of the texts. `buffer` is working memory.
    pub fn is_in(&self, message: &str, buffer: &mut Vec<u8>) -> bool {
        let shortest = self.texts.iter().map(Vec::len).min();
        if shortest.is_none_or(|shortest| message.len() < shortest) {
            return false;
        }
        buffer.clear();
        reduce(message.as_bytes(), buffer);
        self.texts.iter().any(|text| memmem::find(buffer, text).is_some())
    }
}

/// The letters and digits of a text.
pub fn letters(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    reduce(text.as_bytes(), &mut out);
    out
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

fn keep(character: char, out: &mut Vec<u8>) {
    if character.is_alphanumeric() {
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    }
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
    u32::from_str_radix(digits, 16).ok()
}

/// Skips a character reference of HTML or XML such as `&lt;` or `&#39;`; any other `&` is dropped.
fn entity(text: &[u8], at: usize, out: &mut Vec<u8>) -> usize {
    let rest = &text[at + 1..text.len().min(at + 12)];
    let Some(end) = rest.iter().position(|byte| *byte == b';') else { return at + 1 };
    let Ok(name) = std::str::from_utf8(&rest[..end]) else { return at + 1 };
    let number = match name.strip_prefix('#') {
        Some(hex) if hex.starts_with(['x', 'X']) => u32::from_str_radix(&hex[1..], 16).ok(),
        Some(decimal) => decimal.parse().ok(),
        None if matches!(name, "lt" | "gt" | "amp" | "quot" | "apos" | "nbsp") => Some(0x20),
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
        for message in [TEXT, &json, &twice, &ascii, &folded, &quoted, &html] {
            assert!(found(message), "{message}");
        }
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
        for text in
            ["\\", "\\u12", "\\ud800", "\\ud800\\u", "&#x", "&#xffffffff;", "&;", "\\U0011ffff"]
        {
            letters(text);
        }
    }
}
