//! Characters as detectors compare them.

/// Returns true if words of this character's script are separated by spaces and have no prefixes.
pub(super) fn has_borders(character: char) -> bool {
    character.is_ascii_alphanumeric()
        || matches!(character, '\u{c0}'..='\u{24f}' | '\u{370}'..='\u{52f}' | '\u{1e00}'..='\u{1eff}')
}

/// Returns true if a character is not visible. All detectors but hidden-unicode skip such characters.
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

/// The form of a character that is compared, or `None` if it is invisible.
pub(super) fn fold(character: char) -> Option<char> {
    // Letters without case, the most frequent ones in the scripts that have them.
    if matches!(character, '\u{3041}'..='\u{30ff}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}')
    {
        return Some(character);
    }
    if is_invisible(character) {
        return None;
    }
    Some(match character {
        '’' | '‘' | 'ʼ' | '＇' => '\'',
        '“' | '”' | '„' | '＂' => '"',
        '–' | '—' | '‒' | '―' => '-',
        character if character.is_whitespace() => ' ',
        // Letters in a mathematical style.
        '\u{1d400}'..='\u{1d7ff}' | '\u{24b6}'..='\u{24e9}' => {
            use unicode_normalization::UnicodeNormalization as _;
            std::iter::once(character).nfkc().next().unwrap_or(character).to_ascii_lowercase()
        }
        // Clauses and sentences end with these; the other full-width forms are ASCII in disguise.
        '！' | '？' | '：' | '；' => character,
        '\u{ff01}'..='\u{ff5e}' => {
            let ascii = char::from_u32(u32::from(character) - 0xfee0).unwrap_or(character);
            ascii.to_ascii_lowercase()
        }
        other => {
            let mut lower = other.to_lowercase();
            match (lower.next(), lower.next()) {
                (Some(lower), None) => lower,
                _ => other,
            }
        }
    })
}

/// Adds the words of a name such as `send_password` or `sendMail`, in lower case.
pub(super) fn fold_name(name: &str, words: &mut String) {
    // No early exit, so that the compiler compares many bytes at once.
    let is_odd = |byte: u8| !matches!(byte, b' '..=b'@' | b'['..=b'~');
    if !name.bytes().fold(false, |odd, byte| odd | is_odd(byte)) {
        let mut start = 0;
        for (at, _) in name.bytes().enumerate().filter(|(_, byte)| *byte == b'_') {
            words.push_str(&name[start..at]);
            words.push(' ');
            start = at + 1;
        }
        words.push_str(&name[start..]);
        return;
    }
    let mut lower = false;
    for character in name.chars() {
        if lower && character.is_uppercase() {
            words.push(' ');
        }
        lower = character.is_lowercase();
        words.push(match character {
            '_' | '\n' => ' ',
            other => other.to_lowercase().next().unwrap_or(other),
        });
    }
}
