//! The bytes of a partial result: a line that names the format, the settings, the sums, and a digest of
//! everything before it. Equal partial results have equal bytes.

use sha2::{Digest as _, Sha256};

use crate::Error;

/// The first line; the number rises with any change of what follows.
pub(crate) const MAGIC: &str = "karat.partial/1\n";
/// The start of the first line in every version.
const ANY_MAGIC: &str = "karat.partial/";
/// The most rows that anything is counted over: sums of such counts over all groups do not overflow.
const MAX_ROWS: u64 = 1 << 40;
/// The longest text in a partial result.
const MAX_TEXT: u64 = 1 << 24;

/// Writes a partial result.
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub(crate) fn new() -> Writer {
        Writer(MAGIC.as_bytes().to_vec())
    }

    /// A count, seven bits to a byte, the lowest first.
    pub(crate) fn count(&mut self, mut count: u64) {
        while count >= 0x80 {
            self.0.push(0x80 | u8::try_from(count & 0x7f).unwrap_or_default());
            count >>= 7;
        }
        self.0.push(u8::try_from(count).unwrap_or_default());
    }

    pub(crate) fn number(&mut self, number: f64) {
        self.0.extend(number.to_bits().to_le_bytes());
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len() as u64);
        self.0.extend(bytes);
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        let digest = Sha256::digest(&self.0);
        self.0.extend(&digest[..]);
        self.0
    }
}

/// Reads a partial result.
pub(crate) struct Reader<'b> {
    rest: &'b [u8],
    whole: usize,
}

impl<'b> Reader<'b> {
    /// Checks the first line and the digest.
    pub(crate) fn new(bytes: &'b [u8]) -> Result<Reader<'b>, Error> {
        let Some(body) = bytes.strip_prefix(MAGIC.as_bytes()) else {
            let end = bytes.iter().take(40).position(|byte| *byte == b'\n');
            let line = end.map(|end| &bytes[..end]).unwrap_or_default();
            return Err(match line.starts_with(ANY_MAGIC.as_bytes()) {
                true => Error::PartialVersion {
                    found: String::from_utf8_lossy(line).into_owned(),
                    expected: MAGIC.trim_end().to_owned(),
                },
                false => Error::Damaged("it does not begin as one".to_owned()),
            });
        };
        let length = Sha256::output_size();
        let Some(at) = body.len().checked_sub(length) else {
            return Err(Error::Damaged("it is cut off".to_owned()));
        };
        let (rest, digest) = body.split_at(at);
        if Sha256::digest(&bytes[..bytes.len() - length])[..] != *digest {
            return Err(Error::Damaged("its digest does not match".to_owned()));
        }
        Ok(Reader { rest, whole: bytes.len() })
    }

    pub(crate) fn damaged(&self, what: &str) -> Error {
        let at = self.whole - self.rest.len();
        Error::Damaged(format!("{what} before byte {at} cannot be read"))
    }

    pub(crate) fn count(&mut self) -> Result<u64, Error> {
        let mut count = 0;
        for place in 0..10 {
            let (first, rest) = self.rest.split_first().ok_or_else(|| self.damaged("a count"))?;
            self.rest = rest;
            let bits = u64::from(first & 0x7f);
            if place == 9 && bits > 1 {
                break;
            }
            count |= bits << (7 * place);
            if first & 0x80 == 0 {
                return Ok(count);
            }
        }
        Err(self.damaged("a count"))
    }

    /// A count of rows.
    pub(crate) fn rows(&mut self) -> Result<u64, Error> {
        let count = self.count()?;
        if count > MAX_ROWS { Err(self.damaged("a count of rows")) } else { Ok(count) }
    }

    /// A count of things that are at least `least` bytes each, so that it cannot ask for more memory
    /// than there are bytes.
    pub(crate) fn length(&mut self, least: usize) -> Result<usize, Error> {
        let count = usize::try_from(self.count()?).unwrap_or(usize::MAX);
        match count.saturating_mul(least) <= self.rest.len() {
            true => Ok(count),
            false => Err(self.damaged("a length")),
        }
    }

    pub(crate) fn number(&mut self) -> Result<f64, Error> {
        let (bits, rest) =
            self.rest.split_first_chunk::<8>().ok_or_else(|| self.damaged("a number"))?;
        self.rest = rest;
        let number = f64::from_bits(u64::from_le_bytes(*bits));
        if number.is_nan() { Err(self.damaged("a number")) } else { Ok(number) }
    }

    pub(crate) fn bytes(&mut self) -> Result<&'b [u8], Error> {
        let length = self.count()?;
        let length = usize::try_from(length.min(MAX_TEXT)).unwrap_or(usize::MAX);
        if length > self.rest.len() {
            return Err(self.damaged("a text"));
        }
        let (bytes, rest) = self.rest.split_at(length);
        self.rest = rest;
        Ok(bytes)
    }

    pub(crate) fn text(&mut self) -> Result<&'b str, Error> {
        let bytes = self.bytes()?;
        std::str::from_utf8(bytes).map_err(|_| self.damaged("a text"))
    }

    pub(crate) fn end(&self) -> Result<(), Error> {
        match self.rest.is_empty() {
            true => Ok(()),
            false => Err(self.damaged("the end")),
        }
    }
}
