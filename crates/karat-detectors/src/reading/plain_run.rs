//! Runs of plain text, which are copied as they are but for upper case.

use super::super::register::{BYTES, Lanes, Register};

/// The length of the run of plain text that the bytes begin with: words of printable ASCII with single
/// blanks between them, up to a byte that may end a sentence or begin an escape. `space` is true if a
/// blank comes before.
pub(super) fn plain_run(bytes: &[u8], space: bool) -> usize {
    // Often the first byte is not plain: the sign that ended the run before, or the blank after it.
    match bytes.first() {
        Some(b'.' | b'!' | b'?' | b'\\' | b'&') | None => return 0,
        Some(b' ') if space => return 0,
        Some(b' '..=b'~') => {}
        Some(_) => return 0,
    }
    let mut length = 1;
    loop {
        let (wide, ended) = wide_run(bytes, length);
        length += wide;
        if ended {
            return length;
        }
        let before = if bytes[length - 1] == b' ' { Lanes::FIRST } else { Lanes::NONE };
        let register = Register::of(&bytes[length..]);
        let blanks = register.equal(b' ');
        let doubled = blanks.and(blanks.followers(before));
        // The zeros after the end are not plain either.
        let odd = register.within(b' ', b'~').not();
        let special = register.first_of([b'.', b'!', b'?', b'\\', b'&']);
        let run = odd.or(doubled).or(special).before_first();
        length += run;
        if run < BYTES {
            return length;
        }
    }
}

/// Continues a run from a byte that is not the first, sixteen bytes at a time while there are enough;
/// returns the number of bytes and whether the run ended among them. The compiler turns each comparison
/// into one instruction for all sixteen.
fn wide_run(bytes: &[u8], from: usize) -> (usize, bool) {
    const WIDE: usize = 16;
    let mut at = from;
    while let (Some(before), Some(here)) =
        (bytes[at - 1..].first_chunk::<WIDE>(), bytes[at..].first_chunk::<WIDE>())
    {
        let mut stops = [0_u8; WIDE];
        for ((stop, byte), before) in stops.iter_mut().zip(here).zip(before) {
            let odd = byte.wrapping_sub(b' ') > b'~' - b' ';
            let doubled = (*byte == b' ') & (*before == b' ');
            let ends = (*byte == b'.') | (*byte == b'!') | (*byte == b'?');
            let escapes = (*byte == b'\\') | (*byte == b'&');
            *stop = u8::from(odd | doubled | ends | escapes);
        }
        let stops = u128::from_le_bytes(stops);
        if stops != 0 {
            return (at - from + stops.trailing_zeros() as usize / 8, true);
        }
        at += WIDE;
    }
    (at - from, false)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition of `plain_run`, byte by byte.
    fn byte_by_byte(bytes: &[u8], space: bool) -> usize {
        let mut before = if space { b' ' } else { 0 };
        let ends = |byte: &u8| {
            let doubled = before == b' ' && *byte == b' ';
            before = *byte;
            !matches!(byte, b' '..=b'~') || doubled || b".!?\\&".contains(byte)
        };
        bytes.iter().position(ends).unwrap_or(bytes.len())
    }

    proptest! {
        #[test]
        fn a_run_ends_at_the_first_byte_that_is_not_plain(
            words in "([a-zA-Z0-9,;-]{1,12} ){0,12}", end in "[ .!?&\\\\a\n\u{e9}\u{0}~]{0,3}",
            more in "[a-z .]{0,40}", space: bool,
        ) {
            let text = words + &end + &more;
            let run = plain_run(text.as_bytes(), space);
            prop_assert_eq!(run, byte_by_byte(text.as_bytes(), space));
        }
    }
}
