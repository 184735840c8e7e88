//! Codes in which each symbol is a few bits: base64, base32, hexadecimal.
//!
//! Decodes whatever has symbols: either alphabet, without padding, cut off anywhere. Input that must be
//! exact, such as a key, is decoded with the crate `base64` instead.

/// The value of a symbol of base64 in either alphabet. Padding has none.
#[inline]
#[must_use]
pub fn sextet(symbol: u8) -> Option<u8> {
    match symbol {
        b'A'..=b'Z' => Some(symbol - b'A'),
        b'a'..=b'z' => Some(symbol - b'a' + 26),
        b'0'..=b'9' => Some(symbol - b'0' + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    }
}

/// Passes the bytes of a code to `add`: `value` returns the `width` bits of each symbol. Bits that do not
/// fill a byte are dropped. None if a symbol has no value.
///
/// ```
/// use karat_io::symbols::{decode, sextet};
///
/// let mut text = Vec::new();
/// assert!(decode(b"aGV_bG8", 6, sextet, |byte| text.push(byte)).is_some());
/// assert_eq!(text, *b"he\x7Flo");
/// ```
// Inlined into the crates that are compiled for speed.
#[inline]
pub fn decode(
    symbols: &[u8],
    width: u32,
    value: impl Fn(u8) -> Option<u8>,
    mut add: impl FnMut(u8),
) -> Option<()> {
    let (mut bits, mut held) = (0_u32, 0);
    for symbol in symbols {
        bits = bits << width | u32::from(value(*symbol)?);
        held += width;
        if held >= 8 {
            held -= 8;
            add(((bits >> held) & 0xff) as u8);
        }
    }
    Some(())
}
