//! Runs in parts: which items a part measures.
//!
//! A part is chosen by item id alone, so every machine agrees on it without talking to the others.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::dataset::Digest;

/// The version that must have made all parts of a run.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The largest number of parts.
const MAX_PARTS: u32 = 10_000;

/// One of the parts that items are divided into, written `hash:2/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Partition {
    /// Counted from 1.
    pub(crate) part: u32,
    pub(crate) of: u32,
}

/// The text is not a partition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected hash:PART/PARTS, such as hash:1/8 for the first of eight, with at most {MAX_PARTS} parts"
)]
pub struct NotAPartition;

impl Partition {
    /// The part that an item belongs to: the first 64 bits of the SHA-256 of its id, big-endian,
    /// modulo the number of parts.
    pub(crate) fn of_item(id: &str, of: u32) -> Partition {
        let place = Digest::of(id.as_bytes()).head() % u64::from(of.max(1));
        Partition { part: u32::try_from(place).unwrap_or_default() + 1, of }
    }

    /// Returns whether an item belongs to this part.
    #[must_use]
    pub fn holds(self, id: &str) -> bool {
        Partition::of_item(id, self.of) == self
    }

    /// The number of this part, from 1.
    #[must_use]
    pub fn number(self) -> u32 {
        self.part
    }

    /// The number of parts.
    #[must_use]
    pub fn parts(self) -> u32 {
        self.of
    }

    /// The file of a part, without its ending.
    #[must_use]
    pub fn file_stem(self, entry: &str) -> String {
        format!("{entry}.part-{}-of-{}", self.part, self.of)
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hash:{}/{}", self.part, self.of)
    }
}

impl FromStr for Partition {
    type Err = NotAPartition;

    fn from_str(text: &str) -> Result<Partition, NotAPartition> {
        let plain = |number: &str| {
            let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
            digits.then(|| number.parse::<u32>().ok()).flatten()
        };
        let numbers = text.strip_prefix("hash:").and_then(|rest| rest.split_once('/'));
        let numbers = numbers.and_then(|(part, of)| Some((plain(part)?, plain(of)?)));
        match numbers {
            Some((part, of)) if (1..=of).contains(&part) && of <= MAX_PARTS => {
                Ok(Partition { part, of })
            }
            _ => Err(NotAPartition),
        }
    }
}

impl TryFrom<String> for Partition {
    type Error = NotAPartition;

    fn try_from(text: String) -> Result<Partition, NotAPartition> {
        text.parse()
    }
}

impl From<Partition> for String {
    fn from(partition: Partition) -> String {
        partition.to_string()
    }
}

/// The mark of a part in the first line of its journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The part.
    pub partition: Partition,
    /// The version of Karat that made it.
    pub karat: String,
}

impl Part {
    /// A part that this version makes.
    #[must_use]
    pub(crate) fn new(partition: Partition) -> Part {
        Part { partition, karat: VERSION.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_part_is_the_same_on_every_machine() {
        // Computed by hand from SHA-256; a change here breaks runs that are under way.
        let of = |id: &str| Partition::of_item(id, 8).to_string();
        assert_eq!([of("q1"), of("q2"), of("")], ["hash:3/8", "hash:4/8", "hash:5/8"]);
    }

    #[test]
    fn what_is_not_a_partition_is_refused() {
        for text in [
            "",
            "1/8",
            "hash:",
            "hash:0/8",
            "hash:9/8",
            "hash:1/0",
            "hash:+1/8",
            "hash:1/8/8",
            "hash:1/10001",
            "count:1/8",
        ] {
            assert_eq!(text.parse::<Partition>(), Err(NotAPartition), "{text}");
        }
        assert_eq!("hash:3/8".parse::<Partition>().unwrap().to_string(), "hash:3/8");
    }

    proptest! {
        #[test]
        fn every_item_is_in_exactly_one_part(id in ".*", of in 1..50u32) {
            let parts = (1..=of).filter(|&part| Partition { part, of }.holds(&id)).count();
            prop_assert_eq!(parts, 1);
        }
    }
}
