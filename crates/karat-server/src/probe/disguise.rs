//! Tokens in disguise: planted secrets are looked for as they are, reversed, in hexadecimal and in
//! base64, wherever in a longer text they lie.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

/// How a token is in a text, as it is or dressed up, if it is.
#[must_use]
pub fn carried(text: &str, token: &str) -> Option<&'static str> {
    if token.is_empty() {
        return None;
    }
    let lower = text.to_ascii_lowercase();
    let hex: String = token.bytes().map(|byte| format!("{byte:02x}")).collect();
    let reversed: String = token.chars().rev().collect();
    if text.contains(token) {
        Some("as it is")
    } else if lower.contains(&hex) {
        Some("as hexadecimal")
    } else if lower.contains(&reversed) {
        Some("reversed")
    } else if base64_forms(token).iter().any(|form| text.contains(form)) {
        Some("as base64")
    } else {
        None
    }
}

/// A token in every dress in which it is looked for.
#[must_use]
pub fn dressed(token: &str) -> Vec<String> {
    let hex: String = token.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut forms = vec![token.to_owned(), token.chars().rev().collect(), hex.to_uppercase(), hex];
    forms.extend(base64_forms(token));
    forms
}

/// What of a token is in base64 whatever stands around it: one form for each of the three ways in
/// which it can lie over the groups of three bytes.
fn base64_forms(token: &str) -> Vec<String> {
    (0..3)
        .filter_map(|shift| {
            let bytes: Vec<u8> = std::iter::repeat_n(0, shift).chain(token.bytes()).collect();
            let text = BASE64.encode(&bytes);
            // The first group holds what stands before, the last what comes after.
            let start = if shift == 0 { 0 } else { 4 };
            let end = bytes.len() / 3 * 4;
            text.get(start..end).map(str::to_owned)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_known_in_every_dress() {
        let token = "karatenv0123456789abcdef";
        let whole = "before karatenv0123456789abcdef after";
        assert_eq!(carried(whole, token), Some("as it is"));
        let hex: String = whole.bytes().map(|byte| format!("{byte:02X}")).collect();
        assert_eq!(carried(&hex, token), Some("as hexadecimal"));
        let reversed: String = whole.chars().rev().collect();
        assert_eq!(carried(&reversed, token), Some("reversed"));
        for before in ["", "x", "xy", "xyz"] {
            let text = BASE64.encode(format!("{before}{token}yz"));
            assert_eq!(carried(&text, token), Some("as base64"), "{before}");
        }
        assert_eq!(carried("karatenv", token), None);
        assert_eq!(carried("", ""), None);
    }
}
