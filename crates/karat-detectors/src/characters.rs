//! Characters as detectors compare them.

use super::register::{BYTES, Register};

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
    // Letters without case or in lower case, the most frequent ones in the scripts that have them.
    if matches!(
        character,
        '\u{e0}'..='\u{ff}' | '\u{430}'..='\u{45f}' | '\u{620}'..='\u{64a}' | '\u{905}'..='\u{939}'
        | '\u{3041}'..='\u{30ff}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}'
    ) {
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

/// Adds the words of a name such as `send_password` or `sendMail`, in lower case. Returns true if it is
/// plain: short, and of lower-case letters, digits and signs that begin no escape.
pub(super) fn fold_name(name: &str, words: &mut String) -> bool {
    if fold_plain_name(name, words).is_some() {
        return true;
    }
    let mut lower = false;
    if name.is_ascii() {
        for byte in name.bytes() {
            if lower && byte.is_ascii_uppercase() {
                words.push(' ');
            }
            lower = byte.is_ascii_lowercase();
            let word = !matches!(byte, b'_' | b'\n');
            words.push(if word { char::from(byte.to_ascii_lowercase()) } else { ' ' });
        }
        return false;
    }
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
    false
}

/// Adds the words of a plain name; `None` if it is not.
fn fold_plain_name(name: &str, words: &mut String) -> Option<()> {
    // The processor cannot predict where a loop over the bytes of a short name ends, so eight bytes are
    // compared at a time; letters fill the last eight.
    let mut padded = [b'a'; 64];
    padded.get_mut(..name.len())?.copy_from_slice(name.as_bytes());
    let (mut plain, mut one_word) = (true, true);
    for eight in padded.chunks_exact_mut(BYTES).take(name.len().div_ceil(BYTES)) {
        let register = Register::of(eight);
        let usual = register.within(b' ', b'@').or(register.within(b'[', b'~'));
        plain &= usual.not().or(register.first_of([b'\\', b'&'])).is_none();
        one_word &= register.equal(b'_').is_none();
        eight.copy_from_slice(&register.replaced(b'_', b' '));
    }
    if !plain {
        return None;
    }
    words.push_str(if one_word { name } else { str::from_utf8(&padded[..name.len()]).ok()? });
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition of `fold_name`, character by character.
    fn by_characters(name: &str) -> String {
        let mut words = String::new();
        let mut lower = false;
        for character in name.chars() {
            if lower && character.is_uppercase() {
                words.push(' ');
            }
            lower = character.is_lowercase();
            let folded = character.to_lowercase().next().unwrap_or(character);
            words.push(if matches!(folded, '_' | '\n') { ' ' } else { folded });
        }
        words
    }

    proptest! {
        #[test]
        fn names_of_any_length_and_script_are_folded_alike(name in "[a-z_]{0,70}[A-Zé_ \\\\&0-9.\n\u{430}-]{0,4}") {
            let mut words = "before ".to_owned();
            let plain = fold_name(&name, &mut words);
            prop_assert_eq!(words, format!("before {}", by_characters(&name)));
            let odd = |byte: u8| !matches!(byte, b' '..=b'@' | b'['..=b'~') || matches!(byte, b'\\' | b'&');
            prop_assert!(!plain || !name.bytes().any(odd));
        }

        #[test]
        fn letters_that_are_kept_have_no_other_lower_case(letter in "[\u{e0}-\u{ff}\u{430}-\u{45f}\u{620}-\u{64a}\u{905}-\u{939}]") {
            let letter = letter.chars().next().unwrap_or(' ');
            prop_assert_eq!(letter.to_lowercase().collect::<Vec<_>>(), vec![letter]);
            prop_assert!(!is_invisible(letter) && !letter.is_whitespace());
            prop_assert_eq!(fold(letter), Some(letter));
        }
    }
}
