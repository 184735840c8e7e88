//! Eight bytes of text at a time, in one register.
//!
//! Most text is plain ASCII, and the questions about it (where does the word end, is there a special byte)
//! are answered for eight bytes as cheaply as for one. An answer is a [`Lanes`]: one bit for each byte.

/// The number of bytes in a register.
pub(super) const BYTES: usize = 8;

/// One in each byte.
const ONES: u64 = 0x0101_0101_0101_0101;
/// The highest bit of each byte.
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Eight bytes, the first one lowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Register(u64);

/// Some of eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lanes(u64);

impl Register {
    /// The first eight bytes of a text, zeros after its end.
    #[inline]
    pub(super) fn of(text: &[u8]) -> Register {
        Register(match text.first_chunk() {
            Some(bytes) => u64::from_le_bytes(*bytes),
            None => short(text),
        })
    }

    /// The bytes between two of ASCII, both included.
    #[inline]
    pub(super) const fn within(self, low: u8, high: u8) -> Lanes {
        // Without their highest bits, sums of bytes do not carry into the next byte.
        let seven = self.0 & !HIGH;
        let from = seven + (0x80 - low as u64) * ONES;
        let beyond = seven + (0x7f - high as u64) * ONES;
        Lanes(from & !beyond & !self.0 & HIGH)
    }

    /// The bytes that equal an ASCII byte.
    #[inline]
    pub(super) const fn equal(self, byte: u8) -> Lanes {
        self.within(byte, byte)
    }

    /// The bytes that are one of these. Exact up to the first of them; there may be wrong ones after it.
    #[inline]
    pub(super) fn first_of<const N: usize>(self, wanted: [u8; N]) -> Lanes {
        let mut zeros = 0;
        for byte in wanted {
            // Equal bytes become zero, and subtracting one from zero sets the highest bit.
            let differs = self.0 ^ (u64::from(byte) * ONES);
            zeros |= differs.wrapping_sub(ONES) & !differs;
        }
        Lanes(zeros & HIGH)
    }

    /// The lower-case letters and digits of ASCII.
    #[inline]
    pub(super) const fn lower_alphanumeric(self) -> Lanes {
        self.within(b'a', b'z').or(self.within(b'0', b'9'))
    }

    /// The bytes, with another ASCII byte in the place of one.
    #[inline]
    pub(super) const fn replaced(self, from: u8, to: u8) -> [u8; BYTES] {
        let each = self.equal(from).0 >> 7;
        (self.0 ^ (each * (from ^ to) as u64)).to_le_bytes()
    }

    /// The first `count` bytes as a number, zeros after them.
    #[inline]
    pub(super) const fn first(self, count: usize) -> u64 {
        if count >= BYTES { self.0 } else { self.0 & ((1 << (8 * count)) - 1) }
    }
}

/// The bytes of a text of fewer than eight. Its first and its last bytes, which may overlap, are all of
/// them: a loop over so few would take longer, since the processor cannot predict its end.
#[inline]
fn short(text: &[u8]) -> u64 {
    let after = |bytes: usize| 8 * text.len().saturating_sub(bytes);
    if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << after(4)
    } else if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        u64::from(u16::from_le_bytes(*first)) | u64::from(u16::from_le_bytes(*last)) << after(2)
    } else {
        text.first().map_or(0, |byte| u64::from(*byte))
    }
}

impl Lanes {
    /// None of the bytes.
    pub(super) const NONE: Lanes = Lanes(0);
    /// The first byte alone.
    pub(super) const FIRST: Lanes = Lanes(0x80);

    /// The bytes in either set.
    #[inline]
    pub(super) const fn or(self, other: Lanes) -> Lanes {
        Lanes(self.0 | other.0)
    }

    /// The bytes in both sets.
    #[inline]
    pub(super) const fn and(self, other: Lanes) -> Lanes {
        Lanes(self.0 & other.0)
    }

    /// The bytes that follow these; `carried` decides for the first.
    #[inline]
    pub(super) const fn followers(self, carried: Lanes) -> Lanes {
        Lanes(self.0 << 8 | carried.0)
    }

    /// The other bytes.
    #[inline]
    pub(super) const fn not(self) -> Lanes {
        Lanes(!self.0 & HIGH)
    }

    /// The number of bytes before the first of them.
    #[inline]
    pub(super) const fn before_first(self) -> usize {
        self.0.trailing_zeros() as usize / 8
    }

    /// The number of bytes after the last of them.
    #[inline]
    pub(super) const fn after_last(self) -> usize {
        self.0.leading_zeros() as usize / 8
    }

    /// Returns true if there are none.
    #[inline]
    pub(super) const fn is_none(self) -> bool {
        self.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_recognised_in_every_place() {
        for byte in 0..=u8::MAX {
            for place in 0..BYTES {
                for around in [0, b' ', b'a', 0x7f, 0x80, 0xff] {
                    let mut bytes = [around; BYTES];
                    bytes[place] = byte;
                    let register = Register::of(&bytes);
                    let found = |lanes: Lanes| lanes.0 >> (8 * place + 7) & 1 == 1;
                    assert_eq!(found(register.equal(b' ')), byte == b' ');
                    assert_eq!(found(register.within(b' ', b'~')), matches!(byte, b' '..=b'~'));
                    let lower = byte.is_ascii_lowercase() || byte.is_ascii_digit();
                    assert_eq!(found(register.lower_alphanumeric()), lower);
                    assert_eq!(found(register.lower_alphanumeric().not()), !lower);
                }
            }
        }
    }

    #[test]
    fn the_first_is_counted_and_the_next_is_found() {
        let blanks = Register::of(b"one two ").equal(b' ');
        assert_eq!(blanks.before_first(), 3);
        assert_eq!(blanks.after_last(), 0);
        assert_eq!(Register::of(b"one two").equal(b' ').after_last(), 4);
        assert_eq!((Lanes::NONE.before_first(), Lanes::NONE.after_last()), (BYTES, BYTES));
        assert_eq!(blanks.followers(Lanes::FIRST).before_first(), 0);
        assert_eq!(blanks.and(blanks.followers(Lanes::NONE)), Lanes::NONE);
    }

    #[test]
    fn the_first_of_several_bytes_is_found_in_every_place() {
        for length in 0..40 {
            for place in 0..length {
                for around in [0, b'!', b'-', b'/', 0x80, 0xff] {
                    let mut text = vec![around; length];
                    text[place] = b'.';
                    let found = Register::of(&text).first_of([b'.', b'?']).before_first();
                    assert_eq!(found.min(BYTES), place.min(BYTES), "{text:?}");
                }
            }
        }
    }

    #[test]
    fn a_byte_is_replaced_wherever_it_is() {
        assert_eq!(Register::of(b"_a__b\x80_\xff").replaced(b'_', b' '), *b" a  b\x80 \xff");
        assert_eq!(Register::of(b"________").replaced(b'_', b' '), [b' '; BYTES]);
    }

    #[test]
    fn a_short_text_is_filled_with_zeros() {
        assert_eq!(Register::of(b"ab"), Register::of(b"ab\0\0\0\0\0\0"));
        assert_eq!(Register::of(b"abc").first(2), Register::of(b"ab").first(8));
        for length in 0..=BYTES {
            let text = b"\xff12345\x807";
            let mut filled = [0; BYTES];
            filled[..length].copy_from_slice(&text[..length]);
            assert_eq!(Register::of(&text[..length]), Register::of(&filled), "{length} bytes");
        }
    }
}
