//! Snapshots: what an answer was when somebody looked at it and found it right.
//!
//! They lie beside the suite, one file for each case, with sorted keys, so that a change of one is
//! read in a review like a change of code. Nothing here writes one on the side: a snapshot that is
//! missing fails the case, and only a run that was told to update writes it.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};

use karat_core::dataset::Digest;
use karat_io::input::{self, InputError, Limits, WriteError};
use karat_io::json_path::JsonPath;
use karat_io::text::{clip, printable};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

/// The form of the files.
pub const SCHEMA: &str = "karat.snapshot/1";
/// What stands for something that changes from call to call.
const REDACTED: &str = "[redacted]";
/// How many differences are named.
const DIFFERENCES: usize = 6;
/// How much of a value is quoted in a difference.
const QUOTED: usize = 80;
/// How long the name of a file is at most, without its ending.
const NAME: usize = 120;
/// What a regular expression may cost in memory once it is compiled.
const PATTERN_BYTES: usize = 1 << 20;

/// `snapshot: true`, or what is left out of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum SnapshotFile {
    /// All of the value; `false` is refused.
    Plain(bool),
    /// The value without what changes from call to call.
    Redacted(RedactionFile),
}

impl<'de> Deserialize<'de> for SnapshotFile {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<SnapshotFile, D::Error> {
        struct PlainOrRedacted;

        impl<'de> Visitor<'de> for PlainOrRedacted {
            type Value = SnapshotFile;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("true, or an object with redact and redact_matches")
            }

            fn visit_bool<E>(self, wanted: bool) -> Result<SnapshotFile, E> {
                Ok(SnapshotFile::Plain(wanted))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SnapshotFile, A::Error> {
                RedactionFile::deserialize(MapAccessDeserializer::new(map))
                    .map(SnapshotFile::Redacted)
            }
        }

        from.deserialize_any(PlainOrRedacted)
    }
}

/// What is left out of a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RedactionFile {
    /// Paths into the value.
    pub redact: Vec<String>,
    /// Regular expressions: what they find in any text is replaced.
    pub redact_matches: Vec<String>,
}

/// A snapshot that was asked for, and what is stored of it.
#[derive(Debug)]
pub struct Snapshot {
    paths: Vec<JsonPath>,
    patterns: Vec<regex::Regex>,
    /// The file and what it holds for this expectation.
    stored: Stored,
}

/// What is known of the stored snapshot.
#[derive(Debug, Default)]
struct Stored {
    file: Option<PathBuf>,
    value: Option<Value>,
}

impl SnapshotFile {
    /// Reads paths and patterns.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(super) fn prepare(&self) -> Result<Snapshot, String> {
        let redactions = match self {
            SnapshotFile::Plain(true) => &RedactionFile::default(),
            SnapshotFile::Plain(false) => {
                return Err("snapshot: false says nothing; leave it out".to_owned());
            }
            SnapshotFile::Redacted(redactions) => redactions,
        };
        let paths = redactions.redact.iter().map(|path| JsonPath::parse(path));
        let patterns = redactions.redact_matches.iter().map(|pattern| {
            let built = regex::RegexBuilder::new(pattern).size_limit(PATTERN_BYTES).build();
            match built {
                Ok(built) if built.is_match("") => {
                    Err(format!("redact_matches: {pattern:?} matches nothing at all"))
                }
                Ok(built) => Ok(built),
                Err(error) => Err(format!("redact_matches: {error}")),
            }
        });
        Ok(Snapshot {
            paths: paths.collect::<Result<_, _>>()?,
            patterns: patterns.collect::<Result<_, _>>()?,
            stored: Stored::default(),
        })
    }
}

impl Snapshot {
    /// What is stored for this expectation, and where.
    pub(super) fn fill(&mut self, file: PathBuf, value: Option<Value>) {
        self.stored = Stored { file: Some(file), value };
    }

    /// A value as it is stored: redacted, with sorted keys.
    #[must_use]
    pub fn of(&self, value: &Value) -> Value {
        let mut value = sorted(value);
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
                    if let std::borrow::Cow::Owned(replaced) = pattern.replace_all(text, REDACTED) {
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

    /// Compares a value with what is stored.
    ///
    /// # Errors
    /// There is no snapshot, or the value is another one.
    pub(super) fn check(&self, value: &Value) -> Result<(), String> {
        let Some(stored) = &self.stored.value else {
            let file = match &self.stored.file {
                Some(file) => format!(" in {}", file.display()),
                None => String::new(),
            };
            return Err(format!(
                "has no snapshot{file}: look at the answer, and if it is right, run again with --update"
            ));
        };
        let found = self.of(value);
        let differences = differences(stored, &found);
        if differences.is_empty() {
            return Ok(());
        }
        let file = self.stored.file.as_deref().unwrap_or(Path::new("the snapshot"));
        Err(format!(
            "is not its snapshot in {} (--update accepts it): {}",
            file.display(),
            summed(&differences)
        ))
    }
}

fn summed(differences: &[String]) -> String {
    let mut words = differences[..differences.len().min(DIFFERENCES)].join("; ");
    if differences.len() > DIFFERENCES {
        let _ = write!(words, "; and {} more", differences.len() - DIFFERENCES);
    }
    words
}

/// The same value with the keys of every object in order.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Object(fields) => {
            let ordered: BTreeMap<&String, Value> =
                fields.iter().map(|(key, value)| (key, sorted(value))).collect();
            let fields: Map<String, Value> =
                ordered.into_iter().map(|(key, value)| (key.clone(), value)).collect();
            Value::Object(fields)
        }
        other => other.clone(),
    }
}

/// What is different, place by place.
fn differences(was: &Value, is: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("$", was, is, &mut found);
    found
}

fn compare(place: &str, was: &Value, is: &Value, found: &mut Vec<String>) {
    match (was, is) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, was) in old {
                let place = member(place, key);
                match new.get(key) {
                    Some(is) => compare(&place, was, is, found),
                    None => found.push(format!("{place} is gone, was {}", quoted(was))),
                }
            }
            for (key, is) in new.iter().filter(|(key, _)| !old.contains_key(*key)) {
                found.push(format!("{} is new: {}", member(place, key), quoted(is)));
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            for (at, pair) in old.iter().zip(new).enumerate() {
                compare(&format!("{place}[{at}]"), pair.0, pair.1, found);
            }
            for (at, was) in old.iter().enumerate().skip(new.len()) {
                found.push(format!("{place}[{at}] is gone, was {}", quoted(was)));
            }
            for (at, is) in new.iter().enumerate().skip(old.len()) {
                found.push(format!("{place}[{at}] is new: {}", quoted(is)));
            }
        }
        (Value::String(old), Value::String(new)) if old != new => {
            found.push(text_difference(place, old, new));
        }
        _ if was != is => found.push(format!("{place} was {}, is {}", quoted(was), quoted(is))),
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
    if old.lines().count() < 2 && new.lines().count() < 2 {
        return format!("{place} was {}, is {}", quoted(&old.into()), quoted(&new.into()));
    }
    if new.strip_suffix('\n') == Some(old) {
        return format!("{place} ends with a newline, and did not");
    }
    if old.strip_suffix('\n') == Some(new) {
        return format!("{place} ended with a newline, and does no more");
    }
    // Not `lines`, to which a carriage return before the newline is nothing.
    let (before, after): (Vec<&str>, Vec<&str>) =
        (old.split('\n').collect(), new.split('\n').collect());
    let at = before.iter().zip(&after).take_while(|(old, new)| old == new).count();
    let line = |lines: &[&str]| match lines.get(at) {
        Some(line) => quoted(&Value::from(*line)),
        None => "nothing".to_owned(),
    };
    format!("{place} line {} was {}, is {}", at + 1, line(&before), line(&after))
}

fn quoted(value: &Value) -> String {
    clip(&printable(&value.to_string()), QUOTED).into_owned()
}

/// The folder beside a suite where its snapshots lie.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

/// The snapshots of one case: for each expectation, such as `call 1`, what it saw.
pub type Snapshots = BTreeMap<String, Value>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema: String,
    case: String,
    snapshots: Snapshots,
}

impl Store {
    /// The store of a suite: `tests/files.yaml` has `tests/files.snapshots/`.
    #[must_use]
    pub fn beside(suite: &Path) -> Store {
        Store { folder: suite.with_extension("snapshots") }
    }

    /// The file of a case. What a file name should not hold is written as its number.
    #[must_use]
    pub fn file(&self, case: &str) -> PathBuf {
        let mut name = String::new();
        for (at, byte) in case.bytes().enumerate() {
            let plain = byte.is_ascii_alphanumeric()
                || matches!(byte, b'-' | b'_')
                || (byte == b'.' && at > 0);
            match plain {
                true => name.push(char::from(byte)),
                false => {
                    let _ = write!(name, "%{byte:02x}");
                }
            }
        }
        if name.len() > NAME {
            // Two long ids may begin alike.
            let digest = Digest::of(case.as_bytes()).to_string();
            let digits = digest.rsplit(':').next().unwrap_or_default();
            name.truncate(NAME - 17);
            let _ = write!(name, "-{}", &digits[..digits.len().min(16)]);
        }
        self.folder.join(format!("{name}.json"))
    }

    /// What is stored for a case; nothing if there is no file.
    ///
    /// # Errors
    /// The file is there and is not what it should be.
    pub fn read(&self, case: &str) -> Result<Snapshots, InputError> {
        let path = self.file(case);
        if !path.exists() {
            return Ok(Snapshots::new());
        }
        let file: File = input::load(&path, &Limits::default())?;
        input::check_schema(&path, Some(&file.schema), SCHEMA)?;
        if file.case != case {
            let message = format!("the snapshots are those of case {:?}", file.case);
            return Err(InputError::invalid(&path, "case", message));
        }
        Ok(file.snapshots)
    }

    /// Writes what is stored for a case, whole or not at all.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, case: &str, snapshots: &Snapshots) -> Result<(), WriteError> {
        let document = json!({"schema": SCHEMA, "case": case, "snapshots": snapshots});
        let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
        text.push('\n');
        input::write_atomic(&self.file(case), text.as_bytes())
    }

    /// Files in the folder that belong to none of these cases.
    #[must_use]
    pub fn orphans<'a>(&self, cases: impl Iterator<Item = &'a str>) -> Vec<PathBuf> {
        let known: Vec<PathBuf> = cases.map(|case| self.file(case)).collect();
        let Ok(entries) = std::fs::read_dir(&self.folder) else { return Vec::new() };
        let mut found: Vec<PathBuf> = entries
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|kind| kind == "json"))
            .filter(|path| !known.contains(path))
            .collect();
        found.sort();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(written: Value) -> Snapshot {
        serde_json::from_value::<SnapshotFile>(written).unwrap().prepare().unwrap()
    }

    fn against(stored: Value, found: &Value) -> Result<(), String> {
        let mut snapshot = prepared(json!(true));
        snapshot.fill(PathBuf::from("s.json"), Some(stored));
        snapshot.check(found)
    }

    #[test]
    fn what_changes_from_call_to_call_can_be_left_out() {
        let snapshot = prepared(
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
    fn a_missing_snapshot_fails_and_says_what_to_do() {
        let mut snapshot = prepared(json!(true));
        snapshot.fill(PathBuf::from("suite.snapshots/a.json"), None);
        let why = snapshot.check(&json!(null)).unwrap_err();
        assert!(why.contains("suite.snapshots/a.json") && why.contains("--update"), "{why}");
    }

    #[test]
    fn differences_are_named_by_their_place() {
        assert_eq!(against(json!({"a": 1}), &json!({"a": 1})), Ok(()));
        for (was, is, expected) in [
            (json!({"a": {"b": 1}}), json!({"a": {"b": 2}}), "$.a.b was 1, is 2"),
            (json!({"a": 1}), json!({}), "$.a is gone, was 1"),
            (json!({}), json!({"a b": 1}), "$['a b'] is new: 1"),
            (json!([1, 2]), json!([1]), "$[1] is gone, was 2"),
            (json!([1]), json!([1, 2]), "$[1] is new: 2"),
            (json!("one\ntwo\n"), json!("one\n2\n"), r#"$ line 2 was "two", is "2""#),
            (json!("one\ntwo"), json!("one"), r#"$ line 2 was "two", is nothing"#),
            (json!("x\ny\n"), json!("x\ny"), "$ ended with a newline, and does no more"),
            (json!("x\ny"), json!("x\ny\n"), "$ ends with a newline, and did not"),
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
    fn a_file_is_read_back_as_it_was_written_and_only_for_its_case() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::beside(&folder.path().join("files.yaml"));
        assert_eq!(store.read("a").unwrap(), Snapshots::new());
        let snapshots = Snapshots::from([("call 1".to_owned(), json!({"b": [1, null]}))]);
        store.write("a/b c", &snapshots).unwrap();
        assert!(store.file("a/b c").ends_with("files.snapshots/a%2fb%20c.json"));
        assert_eq!(store.read("a/b c").unwrap(), snapshots);
        assert_eq!(store.orphans(["a/b c"].into_iter()), [] as [PathBuf; 0]);
        assert_eq!(store.orphans(["x"].into_iter()).len(), 1);

        std::fs::copy(store.file("a/b c"), store.file("other")).unwrap();
        let why = store.read("other").unwrap_err().to_string();
        assert!(why.contains("a/b c"), "{why}");
        std::fs::write(store.file("torn"), "{\"schema\": ").unwrap();
        assert!(store.read("torn").is_err());
    }

    #[test]
    fn names_of_files_stay_apart_and_inside() {
        let store = Store::beside(Path::new("s.yaml"));
        let long = "x".repeat(500);
        let files = ["..", "../../etc/passwd", "a", "A b", &long, &format!("{long}y")]
            .map(|case| store.file(case));
        for (at, file) in files.iter().enumerate() {
            assert_eq!(file.parent(), Some(Path::new("s.snapshots")), "{file:?}");
            assert!(file.file_name().unwrap().len() <= NAME + 5, "{file:?}");
            assert!(!files[..at].contains(file), "{file:?}");
        }
    }

    #[test]
    fn redactions_that_make_no_sense_are_refused() {
        for written in [
            json!(false),
            json!({"redact": ["a["]}),
            json!({"redact_matches": ["("]}),
            json!({"redact_matches": ["x*"]}),
        ] {
            let read: SnapshotFile = serde_json::from_value(written.clone()).unwrap();
            assert!(read.prepare().is_err(), "{written}");
        }
    }
}
