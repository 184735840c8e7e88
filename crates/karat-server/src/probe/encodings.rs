//! Encoded tokens: planted secrets are searched for as plain text, reversed, in hexadecimal and in
//! base64, anywhere inside a longer text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use karat_io::text::hex;

/// The encoding in which a token occurs in a text, if it does.
#[must_use]
pub(crate) fn find_encoded(text: &str, token: &str) -> Option<&'static str> {
    if token.is_empty() {
        return None;
    }
    let lower = text.to_ascii_lowercase();
    if text.contains(token) {
        Some("as plain text")
    } else if lower.contains(&hex(token.as_bytes())) {
        Some("as hexadecimal")
    } else if lower.contains(&reversed(token)) {
        Some("reversed")
    } else if base64_forms(token).iter().any(|form| text.contains(form)) {
        Some("as base64")
    } else {
        None
    }
}

/// Every form of a token that [`find_encoded`] finds.
#[must_use]
pub(crate) fn encoded_forms(token: &str) -> Vec<String> {
    let digits = hex(token.as_bytes());
    let mut forms = vec![token.to_owned(), reversed(token), digits.to_uppercase(), digits];
    forms.extend(base64_forms(token));
    forms
}

fn reversed(token: &str) -> String {
    token.chars().rev().collect()
}

/// The part of a token that is the same in base64 whatever surrounds it: one form for each of the
/// three ways in which it can be aligned to groups of three bytes.
fn base64_forms(token: &str) -> Vec<String> {
    (0..3)
        .filter_map(|shift| {
            let bytes: Vec<u8> = std::iter::repeat_n(0, shift).chain(token.bytes()).collect();
            // The first group holds what is before the token, the last what comes after it.
            let start = if shift == 0 { 0 } else { 4 };
            STANDARD.encode(&bytes).get(start..bytes.len() / 3 * 4).map(str::to_owned)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_found_in_every_encoding() {
        let token = "karatenv0123456789abcdef";
        let whole = "before karatenv0123456789abcdef after";
        assert_eq!(find_encoded(whole, token), Some("as plain text"));
        let digits = hex(whole.as_bytes()).to_uppercase();
        assert_eq!(find_encoded(&digits, token), Some("as hexadecimal"));
        assert_eq!(find_encoded(&reversed(whole), token), Some("reversed"));
        for before in ["", "x", "xy", "xyz"] {
            let text = STANDARD.encode(format!("{before}{token}yz"));
            assert_eq!(find_encoded(&text, token), Some("as base64"), "{before}");
        }
        assert_eq!(find_encoded("karatenv", token), None);
        assert_eq!(find_encoded("", ""), None);
    }
}
