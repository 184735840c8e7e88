//! The fields of a JSON object, taken one by one, so that unknown ones can be counted.
//!
//! Values stay text until they are taken: arguments must keep the order of keys and the difference of
//! `1` and `1.0`, which a parsed document may lose. `null` is the same as absent.

use std::borrow::Cow;

use karat_io::input::{InputError, nearest, parse_json, plain, shown};
use karat_io::text::clip;
pub use karat_metrics::calls::samples::Invalid;
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The number of characters of a task's id in a message.
const MAX_ID: usize = 100;

/// The mistake, with the id of its task.
#[must_use]
pub(crate) fn of_task(mut mistake: Invalid, id: &str) -> Invalid {
    mistake.message = format!("{} (task {:?})", mistake.message, clip(id, MAX_ID));
    mistake
}

/// The fields of one object.
pub(crate) struct Fields<'a> {
    entries: Vec<(Cow<'a, str>, &'a RawValue)>,
}

/// A text that is borrowed unless it has escapes, which `Cow` by itself is not.
struct Borrowed<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Borrowed<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Borrowed<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E: serde::de::Error>(
                self,
                text: &'de str,
            ) -> Result<Borrowed<'de>, E> {
                Ok(Borrowed(Cow::Borrowed(text)))
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Borrowed<'de>, E> {
                Ok(Borrowed(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// The number of fields that most objects have.
const USUAL: usize = 4;

struct Entries;

impl<'de> Visitor<'de> for Entries {
    type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::with_capacity(USUAL);
        while let Some((Borrowed(name), value)) =
            map.next_entry::<Borrowed<'de>, &'de RawValue>()?
        {
            entries.push((name, value));
        }
        Ok(entries)
    }
}

impl<'a> Fields<'a> {
    /// Reads an object.
    pub(crate) fn parse(text: &'a str) -> Result<Self, Invalid> {
        let mut json = serde_json::Deserializer::from_str(text);
        let entries = json.deserialize_map(Entries).map_err(|error| explain(&error))?;
        json.end().map_err(|error| explain(&error))?;
        Ok(Fields { entries })
    }

    /// Takes a field, as text. Of a key that is there twice the last one counts.
    pub(crate) fn raw(&mut self, key: &str) -> Option<&'a str> {
        self.present(key).filter(|text| *text != "null")
    }

    /// Takes a field that may be `null`.
    pub(crate) fn present(&mut self, key: &str) -> Option<&'a str> {
        let mut found = None;
        self.entries.retain(|(name, value)| {
            if name == key {
                found = Some(value.get());
            }
            name != key
        });
        found
    }

    /// Returns whether a field is there and not `null`; it is not taken.
    pub(crate) fn has(&self, key: &str) -> bool {
        let last = self.entries.iter().rev().find(|(name, _)| name == key);
        last.is_some_and(|(_, value)| value.get() != "null")
    }

    /// Takes a field that has several names; the first one counts.
    pub(crate) fn any(&mut self, keys: &[&str]) -> Option<&'a str> {
        let mut found = None;
        for key in keys {
            let value = self.raw(key);
            found = found.or(value);
        }
        found
    }

    /// Takes a field of a known type.
    pub(crate) fn get<T: DeserializeOwned>(&mut self, key: &str) -> Result<Option<T>, Invalid> {
        self.raw(key).map(|text| typed(text).map_err(|error| error.within(key))).transpose()
    }

    /// Takes a text.
    pub(crate) fn text(&mut self, key: &str) -> Result<Option<Cow<'a, str>>, Invalid> {
        let read = |raw: &'a str| -> Result<Cow<'a, str>, Invalid> {
            let Borrowed(text) =
                serde_json::from_str(raw).map_err(|error| explain(&error).within(key))?;
            Ok(text)
        };
        self.raw(key).map(read).transpose()
    }

    /// Takes a field that must be there.
    pub(crate) fn need<T: DeserializeOwned>(&mut self, key: &str) -> Result<T, Invalid> {
        self.get(key)?.ok_or_else(|| Invalid::at(key, "is missing"))
    }

    /// Takes a list, each entry as text.
    pub(crate) fn list(&mut self, key: &str) -> Result<Option<Vec<&'a str>>, Invalid> {
        self.raw(key).map(|text| list(text).map_err(|error| error.within(key))).transpose()
    }

    /// The fields that were not taken, by name, as text.
    pub(crate) fn each(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.entries.iter().map(|(name, value)| (&**name, value.get()))
    }

    /// The names that were not taken.
    pub(crate) fn left(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|(name, _)| &**name)
    }

    /// Refuses names that were not taken; `known` are those that may be there.
    pub(crate) fn end(&self, known: &[&str]) -> Result<(), Invalid> {
        let Some(name) = self.left().next() else { return Ok(()) };
        let advice = match nearest(name, known.iter().copied()) {
            Some(nearest) => format!("did you mean `{nearest}`?"),
            None => format!("expected {}", known.join(", ")),
        };
        Err(Invalid::new(format!("unknown key `{}`; {advice}", shown(name))))
    }
}

/// A value of a known type.
pub(crate) fn typed<T: DeserializeOwned>(text: &str) -> Result<T, Invalid> {
    serde_json::from_str(text)
        .map_err(|error| as_in_other_files::<T>(text).unwrap_or_else(|| explain(&error)))
}

/// The message of the reader of all other files for a wrong key or type. Its place is left out: it
/// would be that in a part of the line.
fn as_in_other_files<T: DeserializeOwned>(text: &str) -> Option<Invalid> {
    let error = parse_json::<T>("", text.as_bytes()).err()?;
    let is_about_content = matches!(
        error,
        InputError::UnknownKey { .. }
            | InputError::UnknownChoice { .. }
            | InputError::Mismatch { .. }
    );
    let error = is_about_content.then(|| error.to_string())?;
    error.split_once(": ").map(|(_, message)| Invalid::new(message))
}

/// The entries of a list, each as text.
pub(crate) fn list(text: &str) -> Result<Vec<&str>, Invalid> {
    let entries: Vec<&RawValue> = serde_json::from_str(text).map_err(|error| explain(&error))?;
    Ok(entries.into_iter().map(RawValue::get).collect())
}

/// The message of serde without its position, which is relative to a part of the line.
fn explain(error: &serde_json::Error) -> Invalid {
    let message = error.to_string();
    let end = message.rfind(" at line ").unwrap_or(message.len());
    let cut_off = if error.is_eof() { "is cut off: " } else { "" };
    Invalid::new(format!("{cut_off}{}", plain(&message[..end])))
}

/// Returns whether a text is a JSON string, by its first character.
pub(crate) fn is_string(text: &str) -> bool {
    text.trim_start().starts_with('"')
}

/// Returns whether a text is a JSON object.
pub(crate) fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

/// Returns whether a text is a JSON list.
pub(crate) fn is_list(text: &str) -> bool {
    text.trim_start().starts_with('[')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_taken_and_the_others_are_left() {
        let mut fields = Fields::parse(r#"{"a": 1, "b": null, "c": [1, "x"], "a": 2}"#).unwrap();
        assert_eq!(fields.get::<u32>("a"), Ok(Some(2)));
        assert_eq!(fields.raw("b"), None);
        assert_eq!(fields.left().collect::<Vec<_>>(), ["c"]);
        assert_eq!(fields.list("c").unwrap().unwrap(), ["1", "\"x\""]);
    }

    #[test]
    fn mistakes_are_named_as_in_other_files() {
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Named {
            #[serde(rename = "contains")]
            _contains: String,
        }
        let message = |text: &str| typed::<Named>(text).unwrap_err().message;
        assert_eq!(
            message(r#"{"contians":"x"}"#),
            "unknown key `contians`; did you mean `contains`?"
        );
        let wrong = message(r#"{"contains":3}"#);
        assert!(wrong.starts_with("found the number `3`, expected a "), "{wrong}");
        assert_eq!(message("{}"), "missing key `contains`");
        assert!(message(r#"{"contains""#).starts_with("is cut off"));
        let fields = Fields::parse(r#"{"calsl":1}"#).unwrap();
        let unknown = fields.end(&["calls", "state"]).unwrap_err().message;
        assert_eq!(unknown, "unknown key `calsl`; did you mean `calls`?");
        let fields = Fields::parse(r#"{"banana":1}"#).unwrap();
        let unknown = fields.end(&["calls", "state"]).unwrap_err().message;
        assert_eq!(unknown, "unknown key `banana`; expected calls, state");
    }

    #[test]
    fn a_mistake_has_its_place() {
        let mut fields = Fields::parse(r#"{"a": "x"}"#).unwrap();
        let error = fields.get::<u32>("a").unwrap_err();
        assert_eq!(error.place, "a");
        assert!(Fields::parse(r#"{"a": "#).err().unwrap().message.starts_with("is cut off"));
        assert!(Fields::parse("[]").is_err());
    }
}
