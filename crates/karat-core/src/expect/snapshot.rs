//! Snapshots: values that somebody looked at and accepted.
//!
//! A matcher knows what to leave out of a snapshot and compares an answer with the stored value. The
//! caller stores the values and puts them in ([`Snapshot::fill`]).

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

use karat_io::json_path::JsonPath;
use karat_io::text::printable;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{Case, pattern, quoted};

/// The text in place of a value that changes from call to call.
const REDACTED: &str = "[redacted]";
/// The number of differences that are listed.
const MAX_DIFFERENCES: usize = 6;
/// The columns of a value in a difference.
const MAX_COLUMNS: usize = 80;

/// `snapshot: true`, or what is left out of it.
#[derive(Clone, Debug, PartialEq)]
pub enum SnapshotSpec {
    /// All of the value; `false` is refused.
    Plain(bool),
    /// The value without the parts that change from call to call.
    Redacted(RedactionSpec),
}

/// The parts that are left out of a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RedactionSpec {
    /// Paths in the value.
    pub redact: Vec<String>,
    /// Regular expressions; their matches in any text are replaced.
    pub redact_matches: Vec<String>,
}

impl<'de> Deserialize<'de> for SnapshotSpec {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<SnapshotSpec, D::Error> {
        struct PlainOrRedacted;

        impl<'de> Visitor<'de> for PlainOrRedacted {
            type Value = SnapshotSpec;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("true, or an object with redact and redact_matches")
            }

            fn visit_bool<E>(self, wanted: bool) -> Result<SnapshotSpec, E> {
                Ok(SnapshotSpec::Plain(wanted))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SnapshotSpec, A::Error> {
                RedactionSpec::deserialize(MapAccessDeserializer::new(map))
                    .map(SnapshotSpec::Redacted)
            }
        }

        from.deserialize_any(PlainOrRedacted)
    }
}

impl SnapshotSpec {
    pub(super) fn compile(&self) -> Result<Snapshot, String> {
        let redactions = match self {
            SnapshotSpec::Plain(true) => &RedactionSpec::default(),
            SnapshotSpec::Plain(false) => {
                return Err("snapshot: false has no effect; leave it out".to_owned());
            }
            SnapshotSpec::Redacted(redactions) => redactions,
        };
        let paths = redactions.redact.iter().map(|path| JsonPath::parse(path));
        let patterns =
            redactions.redact_matches.iter().map(|text| match pattern(text, Case::Sensitive) {
                Ok(built) if built.is_match("") => {
                    Err(format!("redact_matches: {text:?} matches the empty text"))
                }
                Ok(built) => Ok(built),
                Err(error) => Err(format!("redact_matches: {error}")),
            });
        Ok(Snapshot {
            paths: paths.collect::<Result<_, _>>()?,
            patterns: patterns.collect::<Result<_, _>>()?,
            file: PathBuf::new(),
            stored: None,
        })
    }
}

/// An expected snapshot, and the value that is stored for it.
#[derive(Debug)]
pub struct Snapshot {
    paths: Vec<JsonPath>,
    patterns: Vec<regex::Regex>,
    file: PathBuf,
    stored: Option<Value>,
}

impl Snapshot {
    /// Puts in the stored value, if there is one, and the file that it is or would be in.
    pub fn fill(&mut self, file: PathBuf, stored: Option<Value>) {
        (self.file, self.stored) = (file, stored);
    }

    /// A value as it is stored: redacted, with sorted keys.
    pub(super) fn of(&self, value: &Value) -> Value {
        let mut value = value.clone();
        value.sort_all_objects();
        for path in &self.paths {
            for found in path.find_mut(&mut value) {
                *found = Value::from(REDACTED);
            }
        }
        if !self.patterns.is_empty() {
            self.redact_texts(&mut value);
        }
        value
    }

    fn redact_texts(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                for pattern in &self.patterns {
                    if let Cow::Owned(replaced) = pattern.replace_all(text, REDACTED) {
                        *text = replaced;
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_texts(item)),
            Value::Object(fields) => {
                fields.values_mut().for_each(|field| self.redact_texts(field));
            }
            _ => {}
        }
    }

    pub(super) fn check(&self, value: &Value) -> Result<(), String> {
        let file = self.file.display();
        let Some(stored) = &self.stored else {
            return Err(format!(
                "has no snapshot in {file}: look at the answer, and if it is right, run again with \
                 --update"
            ));
        };
        let mut differences = Vec::new();
        compare("$", stored, &self.of(value), &mut differences);
        if differences.is_empty() {
            return Ok(());
        }
        let more = differences.len().saturating_sub(MAX_DIFFERENCES);
        differences.truncate(MAX_DIFFERENCES);
        if more > 0 {
            differences.push(format!("and {more} more"));
        }
        Err(format!(
            "differs from its snapshot in {file} (--update accepts it): {}",
            differences.join("; ")
        ))
    }
}

/// Adds the differences, each with its place.
fn compare(place: &str, was: &Value, is: &Value, found: &mut Vec<String>) {
    let shown = |value: &Value| quoted(value, MAX_COLUMNS);
    match (was, is) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, was) in old {
                let place = member(place, key);
                match new.get(key) {
                    Some(is) => compare(&place, was, is, found),
                    None => found.push(format!("{place} is gone, was {}", shown(was))),
                }
            }
            for (key, is) in new.iter().filter(|(key, _)| !old.contains_key(*key)) {
                found.push(format!("{} is new: {}", member(place, key), shown(is)));
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            for (at, pair) in old.iter().zip(new).enumerate() {
                compare(&format!("{place}[{at}]"), pair.0, pair.1, found);
            }
            for (at, was) in old.iter().enumerate().skip(new.len()) {
                found.push(format!("{place}[{at}] is gone, was {}", shown(was)));
            }
            for (at, is) in new.iter().enumerate().skip(old.len()) {
                found.push(format!("{place}[{at}] is new: {}", shown(is)));
            }
        }
        (Value::String(old), Value::String(new)) if old != new => {
            found.push(text_difference(place, old, new));
        }
        _ if was != is => found.push(format!("{place} was {}, is {}", shown(was), shown(is))),
        _ => {}
    }
}

fn member(place: &str, key: &str) -> String {
    let plain = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    match plain {
        true => format!("{place}.{key}"),
        false => format!("{place}['{}']", printable(key)),
    }
}

/// The first line that differs, if the texts have several.
fn text_difference(place: &str, old: &str, new: &str) -> String {
    let shown = |text: &str| quoted(&text.into(), MAX_COLUMNS);
    if old.lines().count() < 2 && new.lines().count() < 2 {
        return format!("{place} was {}, is {}", shown(old), shown(new));
    }
    if new.strip_suffix('\n') == Some(old) {
        return format!("{place} now ends with a newline");
    }
    if old.strip_suffix('\n') == Some(new) {
        return format!("{place} no longer ends with a newline");
    }
    // Not `lines`, which drops a carriage return before the newline.
    let (before, after): (Vec<&str>, Vec<&str>) =
        (old.split('\n').collect(), new.split('\n').collect());
    let at = before.iter().zip(&after).take_while(|(old, new)| old == new).count();
    let line = |lines: &[&str]| lines.get(at).map_or("nothing".to_owned(), |line| shown(line));
    format!("{place} line {} was {}, is {}", at + 1, line(&before), line(&after))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn snapshot(written: Value) -> Snapshot {
        serde_json::from_value::<SnapshotSpec>(written).unwrap().compile().unwrap()
    }

    fn against(stored: Value, found: &Value) -> Result<(), String> {
        let mut snapshot = snapshot(json!(true));
        snapshot.fill(PathBuf::from("s.json"), Some(stored));
        snapshot.check(found)
    }

    #[test]
    fn volatile_parts_can_be_left_out() {
        let snapshot = snapshot(
            json!({"redact": ["$.items[*].id"], "redact_matches": ["\\d{4}-\\d\\d-\\d\\d"]}),
        );
        let value = json!({"z": "on 2026-11-15", "items": [{"id": 1, "n": "a"}, {"id": 2}]});
        let stored = snapshot.of(&value);
        assert_eq!(
            stored,
            json!({"z": "on [redacted]", "items": [{"id": "[redacted]", "n": "a"}, {"id": "[redacted]"}]})
        );
        assert_eq!(stored.to_string().find("items"), Some(2), "the keys are sorted: {stored}");
    }

    #[test]
    fn a_missing_snapshot_fails_and_explains_what_to_do() {
        let mut snapshot = snapshot(json!(true));
        snapshot.fill(PathBuf::from("suite.snapshots/a.json"), None);
        let why = snapshot.check(&json!(null)).unwrap_err();
        assert!(why.contains("suite.snapshots/a.json") && why.contains("--update"), "{why}");
    }

    #[test]
    fn each_difference_is_listed_with_its_place() {
        assert_eq!(against(json!({"a": 1}), &json!({"a": 1})), Ok(()));
        for (was, is, expected) in [
            (json!({"a": {"b": 1}}), json!({"a": {"b": 2}}), "$.a.b was 1, is 2"),
            (json!({"a": 1}), json!({}), "$.a is gone, was 1"),
            (json!({}), json!({"a b": 1}), "$['a b'] is new: 1"),
            (json!([1, 2]), json!([1]), "$[1] is gone, was 2"),
            (json!([1]), json!([1, 2]), "$[1] is new: 2"),
            (json!("one\ntwo\n"), json!("one\n2\n"), r#"$ line 2 was "two", is "2""#),
            (json!("one\ntwo"), json!("one"), r#"$ line 2 was "two", is nothing"#),
            (json!("x\ny\n"), json!("x\ny"), "$ no longer ends with a newline"),
            (json!("x\ny"), json!("x\ny\n"), "$ now ends with a newline"),
            (json!("x\ny\n"), json!("x\ny\n\n\n"), r#"$ line 4 was nothing, is """#),
            (json!("x\ny"), json!("x\r\ny"), r#"$ line 1 was "x", is "x\r""#),
            (json!("x\n"), json!("x"), r#"$ was "x\n", is "x""#),
            (json!("x"), json!("y"), r#"$ was "x", is "y""#),
            (json!(1), json!(1.5), "$ was 1, is 1.5"),
        ] {
            let why = against(was, &is).unwrap_err();
            assert!(why.ends_with(expected), "{why}");
        }
    }

    #[test]
    fn many_differences_are_counted() {
        let list = |from: u64| -> Value { (from..from + 10).collect::<Vec<u64>>().into() };
        let why = against(list(0), &list(100)).unwrap_err();
        assert!(why.ends_with("; and 4 more"), "{why}");
    }

    #[test]
    fn redactions_without_meaning_are_refused() {
        for written in [
            json!(false),
            json!({"redact": ["a["]}),
            json!({"redact_matches": ["("]}),
            json!({"redact_matches": ["x*"]}),
        ] {
            let read: SnapshotSpec = serde_json::from_value(written.clone()).unwrap();
            assert!(read.compile().is_err(), "{written}");
        }
    }
}
