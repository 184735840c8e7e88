//! SHA-256 digests in the one form in which Karat writes them.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Read};
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest, written `sha256:` and 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Digest([u8; 32]);

const PREFIX: &str = "sha256:";

impl Digest {
    /// The digest of bytes in memory.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Its first 64 bits.
    pub(crate) fn head(&self) -> u64 {
        let head = self.0.first_chunk().copied().unwrap_or_default();
        u64::from_be_bytes(head)
    }

    /// The digest of everything that can be read, of which little is in memory at a time.
    ///
    /// # Errors
    /// If reading fails.
    pub(crate) fn of_reader(mut reader: impl Read) -> io::Result<Self> {
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; 64 << 10];
        loop {
            match reader.read(&mut buffer) {
                Ok(0) => return Ok(Self(hasher.finalize().into())),
                Ok(read) => hasher.update(&buffer[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is not a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a digest; expected `sha256:` and 64 lower-case hexadecimal digits")]
pub struct NotADigest;

impl FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        let digits = text.strip_prefix(PREFIX).ok_or(NotADigest)?.as_bytes();
        let (pairs, rest) = digits.as_chunks::<2>();
        if pairs.len() != 32 || !rest.is_empty() {
            return Err(NotADigest);
        }
        let mut bytes = [0; 32];
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = digit(*high)? << 4 | digit(*low)?;
        }
        Ok(Self(bytes))
    }
}

fn digit(character: u8) -> Result<u8, NotADigest> {
    match character {
        b'0'..=b'9' => Ok(character - b'0'),
        b'a'..=b'f' => Ok(character - b'a' + 10),
        _ => Err(NotADigest),
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

impl TryFrom<String> for Digest {
    type Error = NotADigest;

    fn try_from(text: String) -> Result<Self, NotADigest> {
        text.parse()
    }
}

impl JsonSchema for Digest {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Digest".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"})
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_digest_is_the_published_one() {
        // The example of FIPS 180-4 for "abc".
        let expected = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Digest::of(b"abc").to_string(), expected);
        assert_eq!(Digest::of_reader(&b"abc"[..]).unwrap().to_string(), expected);
    }

    #[test]
    fn more_than_one_buffer_is_read() {
        let bytes: Vec<u8> = (0..150_000_u32).flat_map(u32::to_le_bytes).collect();
        assert_eq!(Digest::of_reader(bytes.as_slice()).unwrap(), Digest::of(&bytes));
    }

    #[test]
    fn only_the_one_form_is_a_digest() {
        let good = Digest::of(b"abc").to_string();
        let bad = [
            "",
            "sha256:",
            &good[7..],
            &good[..70],
            &format!("{good}0"),
            &good.to_uppercase(),
            &good.replace('b', "B"),
            &good.replace("sha256", "sha512"),
            &good.replace('b', "g"),
            &good.replace("ba", "é"),
        ]
        .map(str::parse::<Digest>);
        assert!(bad.iter().all(|parsed| parsed == &Err(NotADigest)), "{bad:?}");
    }

    proptest! {
        #[test]
        fn a_digest_is_read_back(bytes in any::<[u8; 32]>()) {
            let digest = Digest(bytes);
            prop_assert_eq!(digest.to_string().parse(), Ok(digest));
            let json = serde_json::to_string(&digest).unwrap();
            prop_assert_eq!(serde_json::from_str::<Digest>(&json).unwrap(), digest);
        }

        #[test]
        fn it_does_not_matter_in_how_many_pieces_bytes_arrive(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            at in any::<prop::sample::Index>(),
        ) {
            let (start, end) = bytes.split_at(at.index(bytes.len() + 1));
            prop_assert_eq!(Digest::of_reader(start.chain(end)).unwrap(), Digest::of(&bytes));
        }

        #[test]
        fn arbitrary_text_is_not_a_digest(text in ".{0,80}", prefix in prop::sample::select(vec!["", "sha256:"])) {
            prop_assert_eq!(format!("{prefix}{text}").parse::<Digest>(), Err(NotADigest));
        }
    }
}
