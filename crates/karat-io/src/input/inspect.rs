//! A first pass over JSON and YAML that refuses what types do not notice.
//!
//! In serde formats the last of two equal keys wins if the target is a map, and deep nesting stops only at
//! limits of their own. This pass visits every value, counts the depth before going down, and compares the
//! keys of each object. Its finding is stored separately from the error of the format, which has the place,
//! so both formats report the same findings in the same way.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A reason to refuse a document.
#[derive(Debug)]
pub(super) enum Finding {
    TooDeep,
    DuplicateKey(String),
    ReservedKey(String),
}

/// The finding, until the error of the format has been returned.
pub(super) type Found = Cell<Option<Finding>>;

/// Keys that `serde_json` uses internally: an object with such a key would be replaced by the JSON in its
/// text, without this pass.
const RESERVED: &str = "$serde_json::private::";

/// Visits one value and everything below it.
#[derive(Clone, Copy)]
pub(super) struct Inspect<'f> {
    levels_left: usize,
    found: &'f Found,
}

impl<'f> Inspect<'f> {
    pub(super) fn new(depth: usize, found: &'f Found) -> Self {
        Self { levels_left: depth, found }
    }

    fn deeper<E: Error>(self) -> Result<Self, E> {
        match self.levels_left.checked_sub(1) {
            Some(levels_left) => Ok(Self { levels_left, ..self }),
            None => Err(self.stop(Finding::TooDeep)),
        }
    }

    fn stop<E: Error>(self, finding: Finding) -> E {
        self.found.set(Some(finding));
        E::custom("refused")
    }
}

impl<'de> DeserializeSeed<'de> for Inspect<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Inspect<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_i128<E: Error>(self, _: i128) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u128<E: Error>(self, _: u128) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_bytes<E: Error>(self, _: &[u8]) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_none<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let inner = self.deeper()?;
        while items.next_element_seed(inner)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let inner = self.deeper()?;
        let mut seen = Keys::default();
        while let Some(key) = entries.next_key_seed(Key)? {
            if let Some(key) = key {
                if key.starts_with(RESERVED) {
                    return Err(self.stop(Finding::ReservedKey(key.into_owned())));
                }
                if let Some(twice) = seen.insert(key) {
                    return Err(self.stop(Finding::DuplicateKey(twice)));
                }
            }
            entries.next_value_seed(inner)?;
        }
        Ok(())
    }
}

/// The keys of one object. Most have only a few, and a list is then faster than hashing.
#[derive(Default)]
struct Keys<'de> {
    few: Vec<Cow<'de, str>>,
    many: HashSet<Cow<'de, str>>,
}

impl<'de> Keys<'de> {
    const FEW: usize = 16;

    /// Adds a key; returns it if it is a duplicate.
    fn insert(&mut self, key: Cow<'de, str>) -> Option<String> {
        if self.few.contains(&key) || self.many.contains(&key) {
            return Some(key.into_owned());
        }
        if self.few.len() < Self::FEW {
            self.few.push(key);
        } else {
            self.many.insert(key);
        }
        None
    }
}

/// The text of a key, or nothing for other kinds of YAML keys, which the YAML reader compares itself.
struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Option<Cow<'de, str>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = Option<Cow<'de, str>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E: Error>(self, key: &'de str) -> Result<Self::Value, E> {
        Ok(Some(Cow::Borrowed(key)))
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Self::Value, E> {
        Ok(Some(Cow::Owned(key.to_owned())))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i128<E: Error>(self, _: i128) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u128<E: Error>(self, _: u128) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}
