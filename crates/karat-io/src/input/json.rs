//! JSON and JSON Lines.
//!
//! Two passes: [`Inspect`] refuses duplicate keys and deep nesting with their place, then the text becomes
//! the requested type. NaN and Infinity are not JSON and are refused, as are numbers that do not fit a
//! 64-bit float.

use std::cell::Cell;

use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, SeqAccess, Unexpected, Visitor,
    value,
};
use serde_json::error::Category;

use super::inspect::{Finding, Found, Inspect};
use super::place::{Fault, FaultKind, line_start, place};

/// Reads one JSON document.
pub(super) fn parse<T: DeserializeOwned>(text: &str, depth: usize) -> Result<T, Fault> {
    parse_seed(text, depth, std::marker::PhantomData)
}

/// Reads one line of a JSON Lines file.
pub(super) fn parse_line<T: DeserializeOwned>(
    text: &str,
    line: u64,
    depth: usize,
) -> Result<T, Fault> {
    parse(text, depth).map_err(|fault| Fault { line, ..fault })
}

/// Reads a JSON Lines file as a sequence, so that it becomes a `Vec<T>` like a JSON array.
pub(super) fn parse_lines<T: DeserializeOwned>(
    text: &str,
    depth: usize,
    line_bytes: usize,
) -> Result<T, Fault> {
    let fault = Cell::new(None);
    let lines = text.lines().zip(1..);
    T::deserialize(LineSequence { lines, depth, line_bytes, fault: &fault }).map_err(|error| {
        fault.take().unwrap_or_else(|| {
            let message = format!("{error}; a JSON Lines file is a list, one value per line");
            Fault { line: 1, column: 1, kind: FaultKind::Mismatch(message) }
        })
    })
}

fn parse_seed<'de, S: DeserializeSeed<'de>>(
    text: &'de str,
    depth: usize,
    seed: S,
) -> Result<S::Value, Fault> {
    let found = Found::default();
    read(text, Inspect::new(depth, &found))
        .map_err(|error| explain(text, &error, &found, depth))?;
    read(text, seed).map_err(|error| explain(text, &error, &found, depth))
}

fn read<'de, S: DeserializeSeed<'de>>(
    text: &'de str,
    seed: S,
) -> Result<S::Value, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    // Depth is counted by the first pass, which the second follows only if it succeeded.
    deserializer.disable_recursion_limit();
    let value = seed.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

fn explain(text: &str, error: &serde_json::Error, found: &Found, depth: usize) -> Fault {
    // serde_json counts columns in bytes, and the first may be 0.
    let line = (error.line() as u64).max(1);
    let byte = line_start(text, line) + error.column().saturating_sub(1);
    let (_, column) = place(text, byte);
    let message = error.to_string();
    let suffix = format!(" at line {} column {}", error.line(), error.column());
    let message = message.strip_suffix(&suffix).unwrap_or(&message);
    let kind = match found.take() {
        Some(Finding::TooDeep) => FaultKind::TooDeep(depth),
        Some(Finding::DuplicateKey(key)) => FaultKind::DuplicateKey(key),
        Some(Finding::ReservedKey(key)) => {
            FaultKind::Syntax(format!("the key `{key}` cannot be used; rename it"))
        }
        None if error.classify() == Category::Data => FaultKind::from_serde(message),
        None => FaultKind::Syntax(reword(text, byte, message)),
    };
    Fault { line, column, kind }
}

/// Replaces terse messages of the parser.
fn reword(text: &str, byte: usize, message: &str) -> String {
    if text.trim_ascii().is_empty() {
        return "empty; expected JSON".to_owned();
    }
    let rest = text.get(byte..).unwrap_or_default();
    let not_a_number = ["NaN", "Infinity", "-Infinity"].iter().any(|word| {
        // The parser may be at the sign or at the letter after it.
        rest.starts_with(word) || (word.starts_with('-') && rest.starts_with(&word[1..]))
    });
    match message {
        _ if not_a_number => "NaN and Infinity are not JSON; use null or leave the key out".into(),
        "expected value" if rest.starts_with('\'') => "strings need double quotes in JSON".into(),
        "expected value" if rest.starts_with('/') => "JSON has no comments; remove it".into(),
        "trailing comma" => "trailing comma; remove it".to_owned(),
        "key must be a string" => "keys need double quotes in JSON".to_owned(),
        "trailing characters" => {
            "unexpected text after the JSON value; remove it, or name the file .jsonl if it has one value per line"
                .to_owned()
        }
        other => match other.strip_prefix("EOF while parsing ") {
            Some(place) => format!("the text ends in the middle of {place}; is it cut off?"),
            None => other.to_owned(),
        },
    }
}

/// The lines of a text as a serde sequence. Faults are stored separately, with their line.
struct LineSequence<'de, 'f, L: Iterator<Item = (&'de str, u64)>> {
    lines: L,
    depth: usize,
    line_bytes: usize,
    fault: &'f Cell<Option<Fault>>,
}

impl<'de, L: Iterator<Item = (&'de str, u64)>> SeqAccess<'de> for LineSequence<'de, '_, L> {
    type Error = value::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Self::Error> {
        let Some((text, line)) = self.lines.find(|(text, _)| !text.trim_ascii().is_empty()) else {
            return Ok(None);
        };
        let fault = if text.len() > self.line_bytes {
            Fault { line, column: 1, kind: FaultKind::LineTooLong(self.line_bytes) }
        } else {
            match parse_seed(text, self.depth, seed) {
                Ok(value) => return Ok(Some(value)),
                Err(fault) => Fault { line, ..fault },
            }
        };
        self.fault.set(Some(fault));
        Err(value::Error::custom("refused"))
    }
}

impl<'de, L: Iterator<Item = (&'de str, u64)>> Deserializer<'de> for LineSequence<'de, '_, L> {
    type Error = value::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_seq(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_some(self)
    }

    // Derived types accept a sequence for a struct, field by field, which is never meant here.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        Err(value::Error::invalid_type(Unexpected::Seq, &visitor))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}
