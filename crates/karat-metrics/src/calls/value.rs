//! The values of a call's arguments.
//!
//! [`Value`] keeps what the metrics depend on and most JSON types lose: the order of keys, `1` against
//! `1.0`, `-0.0`, and integers of any size. Text that needs no unescaping is borrowed from the input.
//! There is deliberately no `==`: two values can be the same text, the same JSON or the same to
//! Python, so callers choose by [`Equality`](super::Equality) or [`Value::identical`].

use std::borrow::Cow;
use std::collections::HashMap;

/// One JSON value.
///
/// ```
/// use karat_metrics::calls::{Kind, json};
///
/// let value = json::parse("[1, 1.0, 123456789012345678901234567890]")?;
/// assert_eq!(value.kind(), Kind::List);
/// assert_eq!(value.to_string(), "[1,1.0,123456789012345678901234567890]");
/// # Ok::<(), karat_metrics::calls::json::JsonError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub enum Value<'a> {
    /// `null`, Python's `None`.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number written without fraction and exponent that fits 64 bits.
    Int(i64),
    /// A number written without fraction and exponent that does not fit 64 bits.
    BigInt(BigInt<'a>),
    /// A number written with a fraction or an exponent. Too large a one is infinite, as in Python.
    Float(f64),
    /// A string.
    String(Cow<'a, str>),
    /// A list.
    List(Vec<Value<'a>>),
    /// An object, its keys in order.
    Object(Object<'a>),
}

impl Value<'_> {
    /// Returns the kind of this value.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Value::Null => Kind::Null,
            Value::Bool(_) => Kind::Bool,
            Value::Int(_) | Value::BigInt(_) | Value::Float(_) => Kind::Number,
            Value::String(_) => Kind::String,
            Value::List(_) => Kind::List,
            Value::Object(_) => Kind::Object,
        }
    }

    /// Returns the nearest float of a number; `None` for any other value.
    #[must_use]
    pub fn as_number(&self) -> Option<f64> {
        match self {
            Value::Int(value) => Some(*value as f64),
            Value::BigInt(value) => value.digits().parse().ok(),
            Value::Float(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns `true` if both are the same down to the order of keys, the kind of number and the sign of
    /// zero.
    #[must_use]
    pub fn identical(&self, other: &Value<'_>) -> bool {
        match (self, other) {
            (Value::Null, Value::Null) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Int(a), Value::Int(b)) => a == b,
            (Value::BigInt(a), Value::BigInt(b)) => a.digits() == b.digits(),
            (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
            (Value::String(a), Value::String(b)) => a == b,
            (Value::List(a), Value::List(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.identical(b))
            }
            (Value::Object(a), Value::Object(b)) => a.identical(b),
            _ => false,
        }
    }

    /// Converts to a value that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Value::Null => Value::Null,
            Value::Bool(value) => Value::Bool(value),
            Value::Int(value) => Value::Int(value),
            Value::BigInt(value) => Value::BigInt(BigInt(Cow::Owned(value.0.into_owned()))),
            Value::Float(value) => Value::Float(value),
            Value::String(value) => Value::String(Cow::Owned(value.into_owned())),
            Value::List(items) => Value::List(items.into_iter().map(Value::into_owned).collect()),
            Value::Object(object) => Value::Object(object.into_owned()),
        }
    }
}

/// The kinds of JSON values, for messages and for looking ahead while reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// Any number.
    Number,
    /// A string.
    String,
    /// A list.
    List,
    /// An object.
    Object,
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Kind::Null => "null",
            Kind::Bool => "a boolean",
            Kind::Number => "a number",
            Kind::String => "a string",
            Kind::List => "a list",
            Kind::Object => "an object",
        })
    }
}

/// An integer outside 64 bits, as its decimal digits: no leading zero, a `-` if negative.
#[derive(Clone, Debug)]
pub struct BigInt<'a>(Cow<'a, str>);

impl<'a> BigInt<'a> {
    /// Takes digits that the JSON reader has checked and that do not fit `i64`.
    pub(super) fn from_checked(digits: &'a str) -> Self {
        BigInt(Cow::Borrowed(digits))
    }

    /// Takes such digits as a text of their own.
    pub(super) fn owned(digits: String) -> Self {
        BigInt(Cow::Owned(digits))
    }

    /// Returns the decimal digits, with a leading `-` if it is negative.
    #[must_use]
    pub fn digits(&self) -> &str {
        &self.0
    }

    /// Returns `true` if the float has exactly this integer's value.
    pub(super) fn equals_float(&self, float: f64) -> bool {
        // `{:.0}` writes every digit of a float, so this is exact; `inf` never equals digits.
        float.fract() == 0.0 && format!("{float:.0}") == self.0
    }
}

/// An object's entries, in order, each key once.
///
/// ```
/// use karat_metrics::calls::{Object, Value};
///
/// let object: Object = [("a", Value::from(1)), ("b", Value::from("x"))].into_iter().collect();
/// assert_eq!(object.to_string(), r#"{"a":1,"b":"x"}"#);
/// assert!(object.get("b").is_some());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Object<'a> {
    entries: Vec<(Cow<'a, str>, Value<'a>)>,
}

/// Up to this many keys, looking through all of them is faster than any index.
const FEW_KEYS: usize = 24;

impl<'a> Object<'a> {
    /// Creates an object without entries.
    #[must_use]
    pub const fn new() -> Self {
        Object { entries: Vec::new() }
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns `true` if the object has no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the entries in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value<'a>)> + Clone {
        self.entries.iter().map(|(key, value)| (&**key, value))
    }

    /// Returns the value of a key. Compares the keys one by one.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value<'a>> {
        self.entries.iter().find(|(known, _)| same_key(known, key)).map(|(_, value)| value)
    }

    /// A way to look up many keys, fast also in a large object.
    pub(super) fn lookup(&self) -> Lookup<'_, 'a> {
        Lookup { entries: &self.entries, by_key: Vec::new() }
    }

    /// The entry at a position.
    pub(super) fn entry(&self, position: usize) -> (&str, &Value<'a>) {
        let (key, value) = &self.entries[position];
        (key, value)
    }

    /// Returns `true` if both have identical entries in the same order.
    #[must_use]
    pub fn identical(&self, other: &Object<'_>) -> bool {
        self.len() == other.len()
            && self.iter().zip(other.iter()).all(|((a, x), (b, y))| a == b && x.identical(y))
    }

    /// Converts to an object that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> Object<'static> {
        let owned = |(key, value): (Cow<'a, str>, Value<'a>)| {
            (Cow::Owned(key.into_owned()), value.into_owned())
        };
        Object { entries: self.entries.into_iter().map(owned).collect() }
    }
}

/// Collects entries; of a key that comes twice the last value counts, at the first one's place, as
/// in Python.
impl<'a, K: Into<Cow<'a, str>>> FromIterator<(K, Value<'a>)> for Object<'a> {
    fn from_iter<I: IntoIterator<Item = (K, Value<'a>)>>(entries: I) -> Self {
        let mut builder = ObjectBuilder::default();
        for (key, value) in entries {
            builder.insert(key.into(), value);
        }
        builder.finish()
    }
}

/// Builds an object without comparing every key with every other.
#[derive(Default)]
pub(super) struct ObjectBuilder<'a> {
    entries: Vec<(Cow<'a, str>, Value<'a>)>,
    /// One bit for each key, by a cheap hash: a key whose bit is not set is new.
    bits: u64,
    /// The positions of the keys beyond the first few.
    positions: Option<HashMap<Cow<'a, str>, usize>>,
}

impl<'a> ObjectBuilder<'a> {
    #[inline]
    pub(super) fn insert(&mut self, key: Cow<'a, str>, value: Value<'a>) {
        let bit = bit_of(&key);
        if self.bits & bit != 0
            && let Some(position) = self.position(&key)
        {
            self.entries[position].1 = value;
            return;
        }
        self.bits |= bit;
        if self.entries.len() >= FEW_KEYS {
            let positions = self.positions.get_or_insert_default();
            positions.insert(key.clone(), self.entries.len());
        }
        if self.entries.is_empty() {
            self.entries.reserve(4);
        }
        self.entries.push((key, value));
    }

    fn position(&self, key: &str) -> Option<usize> {
        let few = self.entries.len().min(FEW_KEYS);
        self.entries[..few]
            .iter()
            .position(|(known, _)| same_key(known, key))
            .or_else(|| self.positions.as_ref()?.get(key).copied())
    }

    pub(super) fn finish(self) -> Object<'a> {
        Object { entries: self.entries }
    }
}

/// One of 64 bits for a key, from its length and two of its bytes.
#[inline]
fn bit_of(key: &str) -> u64 {
    let bytes = key.as_bytes();
    let byte = |position: usize| bytes.get(position).copied().map_or(0, u32::from);
    let hash = byte(0) ^ byte(bytes.len().wrapping_sub(1)).rotate_left(2);
    1 << ((hash as usize + bytes.len()) % 64)
}

/// Equality of keys that compares one byte before all of them: most keys differ there already.
#[inline]
fn same_key(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.as_bytes().first() == b.as_bytes().first() && a == b
}

/// Finds keys of one object: first at the expected position, then by search.
pub(super) struct Lookup<'o, 'a> {
    entries: &'o [(Cow<'a, str>, Value<'a>)],
    /// Positions sorted by key; made at the first search in a large object.
    by_key: Vec<usize>,
}

impl<'o, 'a> Lookup<'o, 'a> {
    /// The value of a key that is probably at position `hint`.
    pub(super) fn find(&mut self, key: &str, hint: usize) -> Option<&'o Value<'a>> {
        let entries = self.entries;
        if let Some((known, value)) = entries.get(hint)
            && known == key
        {
            return Some(value);
        }
        if entries.len() <= FEW_KEYS {
            return entries.iter().find(|(known, _)| same_key(known, key)).map(|(_, value)| value);
        }
        if self.by_key.is_empty() {
            self.by_key = (0..entries.len()).collect();
            self.by_key.sort_unstable_by_key(|&position| &*entries[position].0);
        }
        let found =
            self.by_key.binary_search_by(|&position| (*entries[position].0).cmp(key)).ok()?;
        Some(&entries[self.by_key[found]].1)
    }
}

impl From<bool> for Value<'_> {
    fn from(value: bool) -> Self {
        Value::Bool(value)
    }
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Value::Int(value)
    }
}

impl From<f64> for Value<'_> {
    fn from(value: f64) -> Self {
        Value::Float(value)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(value: &'a str) -> Self {
        Value::String(Cow::Borrowed(value))
    }
}

impl From<String> for Value<'_> {
    fn from(value: String) -> Self {
        Value::String(Cow::Owned(value))
    }
}

impl<'a> From<Vec<Value<'a>>> for Value<'a> {
    fn from(items: Vec<Value<'a>>) -> Self {
        Value::List(items)
    }
}

impl<'a> From<Object<'a>> for Value<'a> {
    fn from(object: Object<'a>) -> Self {
        Value::Object(object)
    }
}

/// Writes JSON that reads back as the identical value: a float always keeps a point or an exponent,
/// and infinity is a number too large for a float. NaN cannot come from JSON and is written as null.
impl std::fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::Int(value) => write!(f, "{value}"),
            Value::BigInt(value) => f.write_str(value.digits()),
            Value::Float(value) if value.is_nan() => f.write_str("null"),
            Value::Float(value) if value.is_infinite() => {
                f.write_str(if *value > 0.0 { "1e999" } else { "-1e999" })
            }
            Value::Float(value) => write!(f, "{value:?}"),
            Value::String(value) => write_string(f, value),
            Value::List(items) => {
                f.write_str("[")?;
                for (position, item) in items.iter().enumerate() {
                    f.write_str(if position == 0 { "" } else { "," })?;
                    write!(f, "{item}")?;
                }
                f.write_str("]")
            }
            Value::Object(object) => write!(f, "{object}"),
        }
    }
}

/// Writes JSON that reads back as the identical object.
impl std::fmt::Display for Object<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("{")?;
        for (position, (key, value)) in self.iter().enumerate() {
            f.write_str(if position == 0 { "" } else { "," })?;
            write_string(f, key)?;
            write!(f, ":{value}")?;
        }
        f.write_str("}")
    }
}

fn write_string(f: &mut std::fmt::Formatter<'_>, text: &str) -> std::fmt::Result {
    use std::fmt::Write as _;
    f.write_char('"')?;
    for character in text.chars() {
        match character {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            control if control < ' ' => write!(f, "\\u{:04x}", u32::from(control))?,
            other => f.write_char(other)?,
        }
    }
    f.write_char('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_key_keeps_its_first_place_and_its_last_value() {
        let object: Object<'_> = [("a", Value::Int(1)), ("b", Value::Int(2)), ("a", Value::Int(3))]
            .into_iter()
            .collect();
        assert_eq!(object.to_string(), r#"{"a":3,"b":2}"#);
    }

    #[test]
    fn a_repeated_key_is_found_in_a_large_object_too() {
        let keys: Vec<String> = (0..4 * FEW_KEYS).map(|n| format!("key {n}")).collect();
        let twice = keys.iter().chain(&keys).enumerate();
        let object: Object<'_> =
            twice.map(|(n, key)| (key.as_str(), Value::Int(i64::try_from(n).unwrap()))).collect();
        assert_eq!(object.len(), keys.len());
        let mut lookup = object.lookup();
        for (n, key) in keys.iter().enumerate() {
            let last = i64::try_from(n + keys.len()).unwrap();
            assert!(lookup.find(key, 0).unwrap().identical(&Value::Int(last)), "{key}");
            assert!(object.get(key).unwrap().identical(&Value::Int(last)), "{key}");
        }
        assert!(lookup.find("absent", 0).is_none());
    }

    #[test]
    fn a_big_integer_equals_only_the_float_of_its_exact_value() {
        let big = BigInt::from_checked("18446744073709551616");
        assert!(big.equals_float(18_446_744_073_709_551_616.0));
        assert!(
            !BigInt::from_checked("18446744073709551617")
                .equals_float(18_446_744_073_709_551_616.0)
        );
        assert!(!big.equals_float(f64::INFINITY));
        assert!(!big.equals_float(0.5));
    }
}
