//! What a case expects of an answer: one place in it, and one condition on what stands there.
//!
//! A matcher never passes for want of something to look at: a path that leads nowhere fails, unless
//! `exists: false` asks for just that. Values are compared as JSON: equal or not, numbers by what
//! they are worth (1 equals 1.0); tolerance only where `near` states one. A matcher that could not
//! fail, or could not pass, is refused when it is read.

use std::fmt::{self, Write as _};

use karat_core::schema::Compiled;
use karat_io::json_path::JsonPath;
use karat_io::text::{clip, printable};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::snapshot::{Snapshot, SnapshotFile};

/// How much of a value is quoted in a message.
const QUOTED: usize = 160;
/// What a regular expression may cost in memory once it is compiled.
const PATTERN_BYTES: usize = 1 << 20;

/// One expectation, as it stands in a suite.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Matcher {
    /// Where: a path into the answer's data, which is `structuredContent` or else the JSON that the
    /// first text block holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json: Option<String>,
    /// Where: a path into the whole result as it was on the wire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Where: the content block of this number, from 0. Its text where it has one, else the block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<usize>,

    /// The value is this one; null is a value like any other.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "stated")]
    pub equals: Option<Value>,
    /// The value is one of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_of: Option<Vec<Value>>,
    /// The text has this in it, or all of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contains: Option<Texts>,
    /// The text has this not in it, nor any of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lacks: Option<Texts>,
    /// The regular expression is found in the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matches: Option<String>,
    /// The value fits the JSON Schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// The number lies this near to another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub near: Option<Near>,
    /// The number is at least this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// The number is at most this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// The list, object or text has this many entries or characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<usize>,
    /// There is something at the place, or there is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exists: Option<bool>,
    /// The content block is of this type, such as `image`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub block_type: Option<String>,
    /// The value is what it was when somebody looked at it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<SnapshotFile>,
}

/// A value that stands in the file, null included: serde takes null for "not there" otherwise.
fn stated<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

/// One text or several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Texts(Vec<String>);

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Texts, D::Error> {
        let wanted = "a text or a list of texts; a number in quotes is a text";
        from.deserialize_any(OneOrSeveral(wanted)).map(Texts)
    }
}

/// Reads one text or a list of them. Of an untagged enum the error would only say that nothing fitted.
pub(super) struct OneOrSeveral(pub(super) &'static str);

impl<'de> Visitor<'de> for OneOrSeveral {
    type Value = Vec<String>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0)
    }

    fn visit_str<E>(self, text: &str) -> Result<Vec<String>, E> {
        Ok(vec![text.to_owned()])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Vec<String>, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list))
    }
}

/// A number and how far another may be from it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Near {
    /// The number.
    pub value: f64,
    /// The largest difference that is still near.
    pub within: f64,
}

/// A matcher whose path, pattern and schema have been read.
#[derive(Debug)]
pub struct Prepared {
    place: Place,
    condition: Condition,
}

#[derive(Debug)]
enum Place {
    Text,
    Data(JsonPath, String),
    Result(JsonPath, String),
    Block(usize),
}

#[derive(Debug)]
enum Condition {
    Equals(Value),
    OneOf(Vec<Value>),
    Contains(Vec<String>),
    Lacks(Vec<String>),
    Matches(regex::Regex),
    Schema(Box<Compiled>),
    Near(Near),
    AtLeast(f64),
    AtMost(f64),
    Count(usize),
    Exists(bool),
    BlockType(String),
    Snapshot(Box<Snapshot>),
}

impl Matcher {
    /// A matcher for text that the answer must have in it.
    #[must_use]
    pub fn containing(text: String) -> Matcher {
        Matcher { contains: Some(Texts(vec![text])), ..Matcher::default() }
    }

    /// Reads path, pattern and schema.
    ///
    /// # Errors
    /// What is wrong with the matcher, in words.
    pub fn prepare(&self) -> Result<Prepared, String> {
        let (place, condition) = (self.place()?, self.condition()?);
        if let (Condition::Exists(_), Place::Text) = (&condition, &place) {
            return Err(
                "exists: every answer has a text; say where, with json, result or block".to_owned()
            );
        }
        if let (Condition::Exists(_), Place::Result(path, _)) = (&condition, &place)
            && path.is_root()
        {
            return Err("exists: every answer has a result; say where in it".to_owned());
        }
        Ok(Prepared { place, condition })
    }

    fn place(&self) -> Result<Place, String> {
        match (&self.json, &self.result, self.block) {
            (None, None, None) => Ok(Place::Text),
            (Some(path), None, None) => Ok(Place::Data(JsonPath::parse(path)?, path.clone())),
            (None, Some(path), None) => Ok(Place::Result(JsonPath::parse(path)?, path.clone())),
            (None, None, Some(block)) => Ok(Place::Block(block)),
            _ => Err("give at most one of json, result and block".to_owned()),
        }
    }

    fn condition(&self) -> Result<Condition, String> {
        let mut conditions = Vec::new();
        if let Some(value) = &self.equals {
            comparable("equals", value)?;
            conditions.push(Condition::Equals(value.clone()));
        }
        if let Some(values) = &self.one_of {
            if values.is_empty() {
                return Err("one_of: nothing is one of no values; give some".to_owned());
            }
            values.iter().try_for_each(|value| comparable("one_of", value))?;
            conditions.push(Condition::OneOf(values.clone()));
        }
        if let Some(texts) = &self.contains {
            conditions.push(Condition::Contains(nonempty("contains", texts)?));
        }
        if let Some(texts) = &self.lacks {
            conditions.push(Condition::Lacks(nonempty("lacks", texts)?));
        }
        if let Some(pattern) = &self.matches {
            let regex = compiled(pattern).map_err(|error| format!("matches: {error}"))?;
            if found_everywhere(pattern) {
                return Err(format!(
                    "matches: {pattern:?} is found in every text; such a matcher cannot fail"
                ));
            }
            conditions.push(Condition::Matches(regex));
        }
        if let Some(schema) = &self.schema {
            if says_nothing(schema) {
                return Err("schema: every value fits it; such a matcher cannot fail. Whether \
                            something is there is asked with exists: true"
                    .to_owned());
            }
            let compiled = Compiled::new(schema).map_err(|error| format!("schema: {error}"))?;
            conditions.push(Condition::Schema(Box::new(compiled)));
        }
        if let Some(near) = self.near {
            finite("near: value", near.value)?;
            finite("near: within", near.within)?;
            if near.within < 0.0 {
                return Err("near: within must be 0 or more".to_owned());
            }
            conditions.push(Condition::Near(near));
        }
        for (name, bound) in [("at_least", self.at_least), ("at_most", self.at_most)] {
            bound.map_or(Ok(()), |bound| finite(name, bound))?;
        }
        conditions.extend(self.at_least.map(Condition::AtLeast));
        conditions.extend(self.at_most.map(Condition::AtMost));
        conditions.extend(self.count.map(Condition::Count));
        conditions.extend(self.exists.map(Condition::Exists));
        conditions.extend(self.block_type.clone().map(Condition::BlockType));
        if let Some(snapshot) = &self.snapshot {
            conditions.push(Condition::Snapshot(Box::new(snapshot.prepare()?)));
        }
        let only = conditions.pop();
        match only {
            Some(condition) if conditions.is_empty() => {
                if matches!(condition, Condition::BlockType(_)) && self.block.is_none() {
                    return Err("type is about a content block: say which, with block".to_owned());
                }
                Ok(condition)
            }
            Some(_) => {
                Err("give exactly one condition; a second one is a second matcher".to_owned())
            }
            None => Err("there is no condition, such as equals, contains or matches".to_owned()),
        }
    }
}

/// The empty text is in every text, so a matcher for it could not fail, or not pass.
fn nonempty(name: &str, texts: &Texts) -> Result<Vec<String>, String> {
    let Texts(texts) = texts;
    if texts.is_empty() {
        return Err(format!("{name}: there is no text in the list"));
    }
    if texts.iter().any(String::is_empty) {
        return Err(format!("{name}: an empty text is in every answer, so this says nothing"));
    }
    Ok(texts.clone())
}

fn compiled(pattern: &str) -> Result<regex::Regex, regex::Error> {
    regex::RegexBuilder::new(pattern).size_limit(PATTERN_BYTES).build()
}

/// Whether a pattern is certainly found in every text: without assertions, what matches the empty text
/// matches at the start of every other. One anchor at one end changes nothing about that.
fn found_everywhere(pattern: &str) -> bool {
    let without_anchor = ["^", r"\A"]
        .iter()
        .find_map(|anchor| pattern.strip_prefix(anchor))
        .or_else(|| ["$", r"\z"].iter().find_map(|anchor| pattern.strip_suffix(anchor)))
        .unwrap_or(pattern);
    let asserts = ["^", "$", r"\A", r"\z", r"\b", r"\B", r"\<", r"\>"];
    !asserts.iter().any(|assertion| without_anchor.contains(assertion))
        && compiled(without_anchor).is_ok_and(|pattern| pattern.is_match(""))
}

/// Whether a schema only has keys that explain it.
fn says_nothing(schema: &Value) -> bool {
    const EXPLAIN: [&str; 10] = [
        "$schema",
        "$id",
        "$comment",
        "$defs",
        "definitions",
        "title",
        "description",
        "default",
        "examples",
        "deprecated",
    ];
    match schema {
        Value::Bool(everything) => *everything,
        Value::Object(keys) => keys.keys().all(|key| EXPLAIN.contains(&key.as_str())),
        _ => false,
    }
}

fn finite(name: &str, number: f64) -> Result<(), String> {
    match number.is_finite() {
        true => Ok(()),
        false => Err(format!("{name} must be a number that is not infinite")),
    }
}

/// Beyond 64 bits a whole number is read as its nearest double, and neighbours would be equal.
fn comparable(name: &str, value: &Value) -> Result<(), String> {
    match value {
        Value::Number(number) if !is_whole(number) && number.as_f64().is_none_or(is_beyond) => {
            Err(format!(
                "{name}: {number} is beyond 64 bits and is not compared exactly; give near, or \
                 contains or matches for the digits"
            ))
        }
        Value::Array(items) => items.iter().try_for_each(|item| comparable(name, item)),
        Value::Object(fields) => fields.values().try_for_each(|field| comparable(name, field)),
        _ => Ok(()),
    }
}

/// Whether a double lies outside of what whole numbers of 64 bits hold.
fn is_beyond(number: f64) -> bool {
    !(-9_223_372_036_854_775_808.0..18_446_744_073_709_551_616.0).contains(&number)
}

/// The parts of an answer that matchers look at.
#[derive(Debug)]
pub struct Answer<'a> {
    result: &'a Value,
    text: String,
    data: Option<std::borrow::Cow<'a, Value>>,
}

impl<'a> Answer<'a> {
    /// Reads the result of a call as it was on the wire.
    #[must_use]
    pub fn new(result: &'a Value) -> Answer<'a> {
        let mut text = String::new();
        for block in blocks(result) {
            if let Some(part) = block_text(block) {
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(part);
            }
        }
        let structured = result.get("structuredContent").filter(|value| !value.is_null());
        let data = structured.map(std::borrow::Cow::Borrowed).or_else(|| {
            let first = blocks(result).iter().find_map(block_text)?;
            serde_json::from_str(first).ok().map(std::borrow::Cow::Owned)
        });
        Answer { result, text, data }
    }

    /// The text of all blocks, one after the other.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The value that a path leads to: first in the data, for keeping it in a variable.
    #[must_use]
    pub fn data_at(&self, path: &JsonPath) -> Option<Value> {
        self.data.as_deref().and_then(|data| path.find(data).first().map(|found| (*found).clone()))
    }
}

fn blocks(result: &Value) -> &[Value] {
    result.get("content").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn block_text(block: &Value) -> Option<&str> {
    block.get("text").or_else(|| block.get("resource")?.get("text")).and_then(Value::as_str)
}

impl Prepared {
    /// Looks at an answer.
    ///
    /// # Errors
    /// Why it does not match, with what was found.
    pub fn check(&self, answer: &Answer<'_>) -> Result<(), String> {
        if let (Place::Block(number), Condition::BlockType(wanted)) = (&self.place, &self.condition)
        {
            return check_type(*number, blocks(answer.result).get(*number), wanted);
        }
        match self.look(answer, &mut |value| self.condition.check(value)) {
            Err(Miss::Nothing(_)) if matches!(self.condition, Condition::Exists(false)) => Ok(()),
            Err(Miss::Nothing(why) | Miss::Other(why)) => Err(why),
            Ok(()) => Ok(()),
        }
    }

    /// Whether an answer with nothing in it can be the right one: it is demanded, or something is that
    /// must not be there.
    #[must_use]
    pub fn can_hold_of_nothing(&self) -> bool {
        match &self.condition {
            Condition::Lacks(_)
            | Condition::Exists(false)
            | Condition::Equals(_)
            | Condition::OneOf(_)
            | Condition::Count(0)
            | Condition::Snapshot(_) => true,
            Condition::Matches(pattern) => pattern.is_match(""),
            _ => false,
        }
    }

    /// The snapshot that is wanted, if it is one.
    pub(super) fn snapshot_mut(&mut self) -> Option<&mut Snapshot> {
        match &mut self.condition {
            Condition::Snapshot(snapshot) => Some(snapshot),
            _ => None,
        }
    }

    /// Whether a snapshot is wanted.
    #[must_use]
    pub fn is_snapshot(&self) -> bool {
        matches!(self.condition, Condition::Snapshot(_))
    }

    /// What a snapshot of this answer holds; `None` if none is wanted.
    ///
    /// # Errors
    /// Nothing is at the place.
    #[must_use]
    pub fn captured(&self, answer: &Answer<'_>) -> Option<Result<Value, String>> {
        let Condition::Snapshot(snapshot) = &self.condition else { return None };
        let mut captured = Value::Null;
        let looked = self.look(answer, &mut |value| {
            captured = snapshot.of(value);
            Ok(())
        });
        Some(match looked {
            Ok(()) => Ok(captured),
            Err(Miss::Nothing(why) | Miss::Other(why)) => Err(why),
        })
    }

    /// Finds what stands at the place and has it judged.
    fn look(
        &self,
        answer: &Answer<'_>,
        judge: &mut dyn FnMut(&Value) -> Result<(), String>,
    ) -> Result<(), Miss> {
        let mut judged = |value: &Value, place: &str| {
            judge(value).map_err(|why| Miss::Other(format!("{place} {why}")))
        };
        let (found, place, several) = match &self.place {
            Place::Text => return judged(&Value::String(answer.text.clone()), "the text"),
            Place::Data(path, written) => {
                let Some(data) = answer.data.as_deref() else {
                    let why =
                        "the answer has no data: no structuredContent, and its text is no JSON";
                    return Err(Miss::Nothing(why.to_owned()));
                };
                (path.find(data), written, path.leads_to_several())
            }
            Place::Result(path, written) => {
                (path.find(answer.result), written, path.leads_to_several())
            }
            Place::Block(number) => {
                let Some(block) = blocks(answer.result).get(*number) else {
                    return Err(Miss::Nothing(format!("there is no content block {number}")));
                };
                let place = format!("content block {number}");
                return match block_text(block) {
                    Some(text) => judged(&Value::String(text.to_owned()), &place),
                    None => judged(block, &place),
                };
            }
        };
        match found.as_slice() {
            [] => Err(Miss::Nothing(format!("nothing is at {place}"))),
            // A path to several places: the condition is about the list of what stands there, also
            // where it happens to have one entry.
            found if several => {
                let list = Value::Array(found.iter().map(|value| (*value).clone()).collect());
                judged(&list, place)
            }
            [value, ..] => judged(value, place),
        }
    }
}

/// Why a matcher does not match.
enum Miss {
    /// Nothing is at the place.
    Nothing(String),
    /// Something is, and it is not what it should be.
    Other(String),
}

fn check_type(number: usize, block: Option<&Value>, wanted: &str) -> Result<(), String> {
    let Some(block) = block else {
        return Err(format!("there is no content block {number}"));
    };
    match block.get("type").and_then(Value::as_str) {
        Some(found) if found == wanted => Ok(()),
        found => {
            let found = quoted(&found.unwrap_or("none").into());
            Err(format!("content block {number} is of type {found}, not {wanted}"))
        }
    }
}

impl Condition {
    fn check(&self, value: &Value) -> Result<(), String> {
        let fail = |what: &str| Err(format!("is {}, {what}", quoted(value)));
        match self {
            Condition::Equals(wanted) if equal(value, wanted) => Ok(()),
            Condition::Equals(wanted) => fail(&format!("not {}", quoted(wanted))),
            Condition::OneOf(wanted) if wanted.iter().any(|wanted| equal(value, wanted)) => Ok(()),
            Condition::OneOf(wanted) => {
                let mut list = String::new();
                for (index, wanted) in wanted.iter().enumerate() {
                    let _ = write!(list, "{}{}", if index > 0 { ", " } else { "" }, quoted(wanted));
                }
                fail(&format!("none of {list}"))
            }
            Condition::Contains(texts) => {
                let text = text_of(value);
                match texts.iter().find(|wanted| !text.contains(wanted.as_str())) {
                    None => Ok(()),
                    Some(wanted) => {
                        fail(&format!("without {}", quoted(&Value::from(wanted.as_str()))))
                    }
                }
            }
            Condition::Lacks(texts) => {
                let text = text_of(value);
                match texts.iter().find(|unwanted| text.contains(unwanted.as_str())) {
                    None => Ok(()),
                    Some(found) => {
                        fail(&format!("with {} in it", quoted(&Value::from(found.as_str()))))
                    }
                }
            }
            Condition::Matches(pattern) if pattern.is_match(&text_of(value)) => Ok(()),
            Condition::Matches(pattern) => fail(&format!("which {pattern} does not match")),
            Condition::Schema(schema) => match schema.check(value).errors.first() {
                None => Ok(()),
                Some(error) => Err(format!(
                    "does not fit the schema at {}: {}",
                    if error.instance_path.is_empty() { "the top" } else { &error.instance_path },
                    error.message
                )),
            },
            Condition::Near(near) => self.number(
                value,
                |number| (number - near.value).abs() <= near.within,
                &format!("not within {} of {}", near.within, near.value),
            ),
            Condition::AtLeast(least) => {
                self.number(value, |number| number >= *least, &format!("below {least}"))
            }
            Condition::AtMost(most) => {
                self.number(value, |number| number <= *most, &format!("above {most}"))
            }
            Condition::Count(wanted) => {
                let count = match value {
                    Value::Array(items) => items.len(),
                    Value::Object(fields) => fields.len(),
                    Value::String(text) => text.chars().count(),
                    _ => return fail("which has nothing to count"),
                };
                if count == *wanted {
                    Ok(())
                } else {
                    Err(format!("has {count} entries, not {wanted}"))
                }
            }
            Condition::Exists(true) => Ok(()),
            Condition::Exists(false) => fail("and should not be there"),
            Condition::BlockType(_) => fail("which is no content block"),
            Condition::Snapshot(snapshot) => snapshot.check(value),
        }
    }

    fn number(&self, value: &Value, holds: impl Fn(f64) -> bool, what: &str) -> Result<(), String> {
        // A number in a text is a number too: most tools answer with text alone.
        let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok());
        let number = number.filter(|number: &f64| number.is_finite());
        match number {
            Some(number) if holds(number) => Ok(()),
            Some(_) => Err(format!("is {}, {what}", quoted(value))),
            None => Err(format!("is {}, not a number", quoted(value))),
        }
    }
}

fn text_of(value: &Value) -> std::borrow::Cow<'_, str> {
    match value {
        Value::String(text) => text.into(),
        other => other.to_string().into(),
    }
}

/// A value for a message: printable, and not too long.
fn quoted(value: &Value) -> String {
    clip(&printable(&value.to_string()), QUOTED).into_owned()
}

/// Equal as JSON: the order of fields does not count, and numbers count by what they are worth.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => x == y || numbers_equal(x, y),
        (Value::Array(x), Value::Array(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(x, y)| equal(x, y))
        }
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len() && x.iter().all(|(key, x)| y.get(key).is_some_and(|y| equal(x, y)))
        }
        _ => a == b,
    }
}

fn is_whole(number: &serde_json::Number) -> bool {
    number.is_i64() || number.is_u64()
}

/// Whole numbers are compared as such: as doubles, large neighbours would be equal.
fn numbers_equal(x: &serde_json::Number, y: &serde_json::Number) -> bool {
    match (x.as_i128(), y.as_i128()) {
        (Some(x), Some(y)) => x == y,
        (Some(whole), None) => y.as_f64().is_some_and(|y| is_worth(y, whole)),
        (None, Some(whole)) => x.as_f64().is_some_and(|x| is_worth(x, whole)),
        (None, None) => x.as_f64() == y.as_f64(),
    }
}

#[allow(clippy::cast_possible_truncation, reason = "a double within 64 bits without a fraction")]
fn is_worth(double: f64, whole: i128) -> bool {
    !is_beyond(double) && double.fract() == 0.0 && double as i128 == whole
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(matcher: Value, result: &Value) -> Result<(), String> {
        let matcher: Matcher = serde_json::from_value(matcher).unwrap();
        matcher.prepare().unwrap().check(&Answer::new(result))
    }

    fn text(text: &str) -> Value {
        json!({"content": [{"type": "text", "text": text}]})
    }

    #[test]
    fn each_condition_can_hold_and_can_fail() {
        let result = json!({
            "content": [{"type": "text", "text": "total 12.5"}, {"type": "image", "data": "AA==", "mimeType": "image/png"}],
            "structuredContent": {"total": 12.5, "items": [{"id": 1}, {"id": 2}], "name": "Ada"},
        });
        for (holds, fails) in [
            (json!({"contains": "12.5"}), json!({"contains": ["12.5", "13"]})),
            (json!({"lacks": "13"}), json!({"lacks": ["total"]})),
            (json!({"matches": r"^total \d+\.\d$"}), json!({"matches": r"^\d+$"})),
            (json!({"json": "$.total", "equals": 12.5}), json!({"json": "$.total", "equals": 12})),
            (
                json!({"json": "$.name", "one_of": ["Bo", "Ada"]}),
                json!({"json": "$.name", "one_of": ["Bo"]}),
            ),
            (
                json!({"json": "$.total", "near": {"value": 12.4, "within": 0.2}}),
                json!({"json": "$.total", "near": {"value": 12.4, "within": 0.05}}),
            ),
            (
                json!({"json": "$.total", "at_least": 12.5}),
                json!({"json": "$.total", "at_least": 13}),
            ),
            (
                json!({"json": "$.total", "at_most": 12.5}),
                json!({"json": "$.total", "at_most": 12}),
            ),
            (json!({"json": "$.items", "count": 2}), json!({"json": "$.items", "count": 3})),
            (
                json!({"json": "$.items[*].id", "equals": [1, 2]}),
                json!({"json": "$.items[*].id", "equals": [2, 1]}),
            ),
            (
                json!({"json": "$.items", "schema": {"items": {"required": ["id"]}}}),
                json!({"json": "$.items", "schema": {"items": {"required": ["x"]}}}),
            ),
            (json!({"json": "$.name", "exists": true}), json!({"json": "$.name", "exists": false})),
            (
                json!({"json": "$.nothing", "exists": false}),
                json!({"json": "$.nothing", "exists": true}),
            ),
            (json!({"block": 1, "type": "image"}), json!({"block": 0, "type": "image"})),
            (json!({"block": 0, "equals": "total 12.5"}), json!({"block": 2, "contains": "total"})),
            (
                json!({"result": "$.content[1].mimeType", "equals": "image/png"}),
                json!({"result": "$.isError", "equals": true}),
            ),
        ] {
            assert_eq!(check(holds.clone(), &result), Ok(()), "{holds}");
            assert!(check(fails.clone(), &result).is_err(), "{fails}");
        }
    }

    #[test]
    fn data_is_read_from_json_in_text_where_there_is_no_structured_content() {
        let result = text(r#"{"id": 7}"#);
        assert_eq!(check(json!({"json": "id", "equals": 7.0}), &result), Ok(()));
        let why = check(json!({"json": "id", "equals": 7}), &text("seven")).unwrap_err();
        assert!(why.contains("has no data"), "{why}");
    }

    #[test]
    fn a_path_that_leads_nowhere_never_passes() {
        let result = text("{}");
        for condition in [
            json!({"equals": null}),
            json!({"lacks": "x"}),
            json!({"count": 0}),
            json!({"at_most": 3}),
        ] {
            let mut matcher = condition;
            matcher["json"] = json!("$.missing");
            assert!(check(matcher.clone(), &result).is_err(), "{matcher}");
        }
    }

    #[test]
    fn large_integers_are_not_equal_to_their_neighbours() {
        let result = text(r#"{"id": 9007199254740993}"#);
        assert_eq!(
            check(json!({"json": "id", "equals": 9_007_199_254_740_993_u64}), &result),
            Ok(())
        );
        assert!(
            check(json!({"json": "id", "equals": 9_007_199_254_740_992_u64}), &result).is_err()
        );
    }

    #[test]
    fn whole_numbers_and_doubles_are_equal_if_they_are_worth_the_same() {
        let result = text(r#"{"id": 9007199254740993, "beyond": 18446744073709551616}"#);
        let check = |matcher: Value| check(matcher, &result);
        assert!(check(json!({"json": "id", "equals": 9_007_199_254_740_992.0})).is_err());
        assert!(check(json!({"json": "beyond", "equals": u64::MAX})).is_err());
        assert!(equal(&json!(3), &json!(3.0)));
        assert!(equal(&json!(-3.0), &json!(-3)));
        assert!(!equal(&json!(3), &json!(3.5)));
    }

    #[test]
    fn a_path_to_several_places_is_judged_as_a_list_also_if_it_finds_one() {
        let one = json!({"content": [], "structuredContent": {"items": [{"name": "abc"}], "rows": [[1, 2]]}});
        for (holds, fails) in [
            (json!({"count": 1}), json!({"count": 3})),
            (json!({"equals": ["abc"]}), json!({"equals": "abc"})),
            (json!({"schema": {"type": "array"}}), json!({"schema": {"type": "string"}})),
        ] {
            let at = |mut matcher: Value| {
                matcher["json"] = json!("$.items[*].name");
                check(matcher, &one)
            };
            assert_eq!(at(holds.clone()), Ok(()), "{holds}");
            assert!(at(fails.clone()).is_err(), "{fails}");
        }
        assert_eq!(check(json!({"json": "$.rows[*]", "equals": [[1, 2]]}), &one), Ok(()));
        assert!(check(json!({"json": "$.rows[*]", "equals": [1, 2]}), &one).is_err());
    }

    #[test]
    fn a_text_that_is_no_finite_number_is_none() {
        for word in ["infinity", "-inf", "nan", "1e999"] {
            for matcher in [json!({"at_least": 5}), json!({"at_most": 5})] {
                let why = check(matcher, &text(word)).unwrap_err();
                assert!(why.contains("not a number"), "{word}: {why}");
            }
        }
        assert_eq!(check(json!({"at_least": 5}), &text(" 5.0 ")), Ok(()));
    }

    #[test]
    fn a_pattern_that_is_found_everywhere_is_told_from_one_that_can_fail() {
        for pattern in
            ["", ".*", "x*", "(?s).*", "^", "$", "^.*", ".*$", r"\A", "a|", "^a|b*", "(?:)"]
        {
            assert!(found_everywhere(pattern), "{pattern}");
            for text in ["", "x", "one\ntwo", "$"] {
                assert!(regex::Regex::new(pattern).unwrap().is_match(text), "{pattern}: {text}");
            }
        }
        for pattern in ["^$", "^.*$", ".", "x", r"\b", r"x*\$", "^a*b", "^[^q]*$", r"^\s*$"] {
            assert!(!found_everywhere(pattern), "{pattern}");
        }
    }

    #[test]
    fn a_matcher_that_could_not_fail_or_not_be_understood_is_refused() {
        for matcher in [
            json!({}),
            json!({"json": "$.a"}),
            json!({"contains": ""}),
            json!({"contains": []}),
            json!({"lacks": ""}),
            json!({"matches": ""}),
            json!({"matches": ".*"}),
            json!({"exists": true}),
            json!({"exists": false}),
            json!({"result": "$", "exists": true}),
            json!({"schema": true}),
            json!({"json": "$.a", "schema": {}}),
            json!({"schema": {"title": "Anything"}}),
            json!({"one_of": []}),
            json!({"json": "$.a", "equals": 123_456_789_012_345_678_901_234_567_890_f64}),
            json!({"json": "$.a", "one_of": [1, [{"x": -1e30}]]}),
            json!({"equals": 1, "contains": "x"}),
            json!({"json": "$.a", "block": 0, "equals": 1}),
            json!({"type": "image"}),
            json!({"matches": "("}),
            json!({"matches": "(a{1000}){1000}"}),
            json!({"schema": {"type": "nonsense"}}),
            json!({"near": {"value": 1.0, "within": -1.0}}),
        ] {
            let read: Matcher = serde_json::from_value(matcher.clone()).unwrap();
            assert!(read.prepare().is_err(), "{matcher}");
        }
    }

    #[test]
    fn messages_show_hostile_text_harmlessly() {
        let why = check(json!({"contains": "x"}), &text("\u{1b}[31m\u{202e}")).unwrap_err();
        assert!(!why.contains('\u{1b}') && !why.contains('\u{202e}'), "{why:?}");
    }
}
