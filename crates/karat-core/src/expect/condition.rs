//! Conditions on one value.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use super::answer::Source;
use super::equality::equal;
use super::number::{Near, numbers};
use super::snapshot::Snapshot;
use super::{Case, quoted};
use crate::schema::Compiled;

/// The columns of a value in a message.
const MAX_COLUMNS: usize = 160;

/// A condition that is ready to be checked. Its `Display` is a noun phrase that follows "expected".
#[derive(Debug)]
pub(super) enum Condition {
    Equals(Value, Case),
    OneOf(Vec<Value>, Case),
    Contains(Vec<String>, Case),
    Lacks(Vec<String>, Case),
    Includes(Value),
    Matches(regex::Regex),
    Schema(Box<Compiled>),
    Near(Near),
    AtLeast(f64),
    AtMost(f64),
    Count(usize),
    Exists(bool),
    Snapshot(Box<Snapshot>),
    AnyOf(Vec<Condition>),
    Not(Box<Condition>),
}

impl Condition {
    /// Checks a value.
    ///
    /// # Errors
    /// The reason, as the predicate of a sentence about the value.
    pub(super) fn check(&self, value: &Value, source: Source) -> Result<(), String> {
        let holds_for = |conditions: &[Condition]| {
            conditions.iter().any(|condition| condition.check(value, source).is_ok())
        };
        let numbers = || numbers(value, source).into_iter();
        let holds = match self {
            Condition::Equals(wanted, case) => same(value, wanted, *case, source),
            Condition::OneOf(all, case) => {
                all.iter().any(|wanted| same(value, wanted, *case, source))
            }
            // Of several texts only the one that is missing is named, or the one that is there.
            Condition::Contains(texts, case) => {
                let text = folded(value, *case);
                let missing = texts.iter().find(|wanted| !text.contains(&*case.fold(wanted)));
                return missing.map_or(Ok(()), |text| unmet(value, &containing(&[text])));
            }
            Condition::Lacks(texts, case) => {
                let text = folded(value, *case);
                let found = texts.iter().find(|unwanted| text.contains(&*case.fold(unwanted)));
                return found.map_or(Ok(()), |text| unmet(value, &without(&[text])));
            }
            Condition::Includes(wanted) => match (value, wanted) {
                (Value::String(text), Value::String(part)) => text.contains(part),
                (Value::Array(entries), wanted) => entries.iter().any(|entry| equal(entry, wanted)),
                _ => false,
            },
            Condition::Matches(pattern) => pattern.is_match(&text_of(value)),
            Condition::Schema(schema) => return fits(schema, value),
            Condition::Near(near) => numbers().any(|number| near.accepts(&number)),
            Condition::AtLeast(least) => numbers().any(|number| number.as_f64() >= *least),
            Condition::AtMost(most) => numbers().any(|number| number.as_f64() <= *most),
            Condition::Count(wanted) => match count(value, source) {
                Some(found) if found != *wanted => {
                    return Err(format!("has {found} entries, expected {wanted}"));
                }
                found => found.is_some(),
            },
            Condition::Exists(exists) => *exists,
            Condition::Snapshot(snapshot) => return snapshot.check(value),
            Condition::AnyOf(conditions) => holds_for(conditions),
            Condition::Not(condition) => !holds_for(std::slice::from_ref(condition)),
        };
        if holds { Ok(()) } else { unmet(value, self) }
    }

    /// The key and the value of a comparison that no text can meet, if there is one.
    pub(super) fn not_of_a_text(&self) -> Option<(&'static str, String)> {
        let (name, values) = match self {
            Condition::Equals(value, _) => ("equals", std::slice::from_ref(value)),
            Condition::OneOf(values, _) => ("one_of", values.as_slice()),
            Condition::Includes(value) => ("includes", std::slice::from_ref(value)),
            Condition::AnyOf(conditions) => {
                return conditions.iter().find_map(Condition::not_of_a_text);
            }
            Condition::Not(condition) => return condition.not_of_a_text(),
            _ => return None,
        };
        let value = values.first().filter(|_| !values.iter().any(Value::is_string))?;
        Some((name, quoted(value, MAX_COLUMNS)))
    }

    /// Returns whether an answer with nothing in it can be right: that is what is expected, or that
    /// something is missing.
    pub(super) fn can_hold_of_nothing(&self) -> bool {
        match self {
            Condition::Equals(..)
            | Condition::OneOf(..)
            | Condition::Lacks(..)
            | Condition::Count(0)
            | Condition::Exists(false)
            | Condition::Snapshot(_)
            | Condition::Not(_) => true,
            Condition::Matches(pattern) => pattern.is_match(""),
            Condition::AnyOf(conditions) => conditions.iter().any(Condition::can_hold_of_nothing),
            _ => false,
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Value| quoted(value, MAX_COLUMNS);
        match self {
            Condition::Equals(value, _) => f.write_str(&shown(value)),
            Condition::OneOf(values, _) => {
                write!(f, "one of {}", values.iter().map(shown).collect::<Vec<_>>().join(", "))
            }
            Condition::Contains(texts, _) => f.write_str(&containing(texts)),
            Condition::Lacks(texts, _) => f.write_str(&without(texts)),
            Condition::Includes(value) => write!(f, "a list or text with {} in it", shown(value)),
            Condition::Matches(pattern) => write!(f, "text matching {pattern}"),
            Condition::Schema(_) => f.write_str("a value that fits the schema"),
            Condition::Near(near) => near.fmt(f),
            Condition::AtLeast(number) => write!(f, "a number of at least {number}"),
            Condition::AtMost(number) => write!(f, "a number of at most {number}"),
            Condition::Count(count) => write!(f, "{count} entries"),
            Condition::Exists(true) => f.write_str("a value"),
            Condition::Exists(false) => f.write_str("nothing"),
            Condition::Snapshot(_) => f.write_str("its snapshot"),
            Condition::AnyOf(conditions) => {
                let all: Vec<String> = conditions.iter().map(ToString::to_string).collect();
                f.write_str(&all.join(", or "))
            }
            Condition::Not(condition) => write!(f, "anything but {condition}"),
        }
    }
}

fn unmet(value: &Value, expected: &dyn fmt::Display) -> Result<(), String> {
    Err(format!("is {}, expected {expected}", quoted(value, MAX_COLUMNS)))
}

fn fits(schema: &Compiled, value: &Value) -> Result<(), String> {
    match schema.check(value).errors.first() {
        None => Ok(()),
        Some(error) => {
            let top = error.instance_path.is_empty();
            let place = if top { "the top" } else { &error.instance_path };
            Err(format!("does not fit the schema at {place}: {}", error.message))
        }
    }
}

fn containing(texts: &[impl AsRef<str>]) -> String {
    format!("text containing {}", listed(texts, "and"))
}

fn without(texts: &[impl AsRef<str>]) -> String {
    format!("text without {}", listed(texts, "or"))
}

fn listed(texts: &[impl AsRef<str>], joint: &str) -> String {
    let shown = texts.iter().map(|text| quoted(&text.as_ref().into(), MAX_COLUMNS));
    shown.collect::<Vec<_>>().join(&format!(" {joint} "))
}

fn same(found: &Value, wanted: &Value, case: Case, source: Source) -> bool {
    match (found, wanted) {
        (Value::String(found), Value::String(wanted)) if source == Source::Agent => {
            case.fold(found.trim()) == case.fold(wanted.trim())
        }
        (Value::String(found), Value::String(wanted)) => case.fold(found) == case.fold(wanted),
        _ => equal(found, wanted),
    }
}

fn count(value: &Value, source: Source) -> Option<usize> {
    match value {
        Value::Array(entries) => Some(entries.len()),
        Value::Object(fields) => Some(fields.len()),
        Value::String(text) if source != Source::State => Some(text.chars().count()),
        _ => None,
    }
}

fn folded(value: &Value, case: Case) -> Cow<'_, str> {
    match (text_of(value), case) {
        (text, Case::Sensitive) => text,
        (text, Case::Ignored) => text.to_lowercase().into(),
    }
}

/// A value as text: a text as it is, anything else as JSON.
fn text_of(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => text.into(),
        other => other.to_string().into(),
    }
}
