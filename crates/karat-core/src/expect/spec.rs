//! Expectations as people write them, and their compilation.

use std::fmt;
use std::marker::PhantomData;
use std::path::PathBuf;

use karat_io::json_path::JsonPath;
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::condition::Condition;
use super::equality::is_inexact;
use super::matcher::{Matcher, Place};
use super::number::{Near, Number};
use super::snapshot::SnapshotSpec;
use super::{Case, pattern};
use crate::schema::Compiled;

/// The depth to which `any_of` and `not` may be nested.
const MAX_DEPTH: usize = 16;

/// An expectation as it is written: at most one place, exactly one condition. The
/// [module](super) describes the keys.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a matcher such as {contains: text}")]
pub struct MatcherSpec {
    /// The place: a path in the data.
    #[serde(alias = "path")]
    pub json: Option<String>,
    /// The place: a path in the whole result of a tool, as it was on the wire.
    pub result: Option<String>,
    /// The place: the content block with this number, from 0.
    pub block: Option<usize>,

    /// The value; null is a value like any other.
    #[serde(deserialize_with = "stated")]
    pub equals: Option<Value>,
    /// The values, of which it is one.
    pub one_of: Option<Vec<Value>>,
    /// The texts that are all in the text.
    pub contains: Option<Texts>,
    /// The texts of which none is in the text.
    pub lacks: Option<Texts>,
    /// The entry that is in the list, or the text that is in the text.
    #[serde(deserialize_with = "stated")]
    pub includes: Option<Value>,
    /// The regular expression that is found in the text.
    #[serde(alias = "regex")]
    pub matches: Option<String>,
    /// The JSON Schema that the value fits.
    pub schema: Option<Value>,
    /// The number that the value is near to, with its tolerance.
    pub near: Option<Near>,
    /// The number that the value is near to, with `within` as its tolerance.
    pub number: Option<Number>,
    /// The tolerance of `number`; 0 if it is not given.
    pub within: Option<f64>,
    /// The smallest number that will do.
    pub at_least: Option<f64>,
    /// The largest number that will do.
    pub at_most: Option<f64>,
    /// The number of entries of a list or object, or of characters of a text.
    pub count: Option<usize>,
    /// True if there is a value at the place.
    pub exists: Option<bool>,
    /// The type of the content block, such as `image`.
    #[serde(rename = "type")]
    pub block_type: Option<String>,
    /// The value that was accepted earlier.
    pub snapshot: Option<SnapshotSpec>,
    /// Conditions on the same place, of which one holds.
    pub any_of: Option<Vec<MatcherSpec>>,
    /// The condition on the same place that does not hold.
    pub not: Option<Box<MatcherSpec>>,

    /// True if upper and lower case are the same.
    pub ignore_case: bool,
}

/// Reads a value, null included: serde takes null for an absent one otherwise.
fn stated<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

/// One text or several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Texts(Vec<String>);

impl Texts {
    /// A single text.
    pub fn one(text: String) -> Texts {
        Texts(vec![text])
    }
}

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Texts, D::Error> {
        let texts: Vec<Text> = one_or_several(from, TEXTS)?;
        Ok(Texts(texts.into_iter().map(|Text(text)| text).collect()))
    }
}

const TEXTS: &str = "a string or a list of strings; a number in quotes is a string";

/// One text of several. YAML gives a plain `3` to anything that asks for a text, and a user who wrote a
/// number may mean one; so it is asked for as what it is, as a single value is.
struct Text(String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Text, D::Error> {
        struct TextVisitor;

        impl Visitor<'_> for TextVisitor {
            type Value = Text;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(TEXTS)
            }

            fn visit_str<E>(self, text: &str) -> Result<Text, E> {
                Ok(Text(text.to_owned()))
            }
        }

        from.deserialize_any(TextVisitor)
    }
}

/// Reads one path or a list of them.
///
/// # Errors
/// If it is neither.
pub fn paths<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<PathBuf>, D::Error> {
    one_or_several(from, "a path or a list of paths")
}

/// Reads one value or a list of them. The error of an untagged enum would only say that nothing
/// fitted, and not which key is wrong.
///
/// # Errors
/// If it is neither, with the description of what is `expected`.
pub fn one_or_several<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
    expected: &'static str,
) -> Result<Vec<T>, D::Error> {
    struct OneOrSeveral<T>(&'static str, PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for OneOrSeveral<T> {
        type Value = Vec<T>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str(self.0)
        }

        fn visit_unit<E>(self) -> Result<Vec<T>, E> {
            Ok(Vec::new())
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Vec<T>, E> {
            T::deserialize(text.into_deserializer()).map(|one| vec![one])
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Vec<T>, A::Error> {
            T::deserialize(MapAccessDeserializer::new(map)).map(|one| vec![one])
        }

        fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Vec<T>, A::Error> {
            Vec::deserialize(SeqAccessDeserializer::new(list))
        }
    }

    from.deserialize_any(OneOrSeveral(expected, PhantomData))
}

impl MatcherSpec {
    /// An expectation of texts that must be in the text.
    pub fn containing(texts: Texts) -> MatcherSpec {
        MatcherSpec { contains: Some(texts), ..MatcherSpec::default() }
    }

    /// Compiles path, pattern and schema.
    ///
    /// # Errors
    /// If something is wrong with it, or it cannot fail, or cannot pass.
    pub fn compile(&self) -> Result<Matcher, String> {
        let (place, condition) = (self.place()?, self.condition(0)?);
        match (&condition, &place) {
            (Condition::Exists(_), Place::Text) => {
                Err("exists: every answer has a text; give the place with json, result or block"
                    .to_owned())
            }
            (condition, Place::Text) if let Some((name, value)) = condition.not_of_a_text() => {
                Err(format!(
                    "{name}: the text of an answer is a string and never {value}; give the place \
                     with json, or write the value in quotes"
                ))
            }
            (Condition::Exists(_), Place::Result(path, _)) if path.is_root() => {
                Err("exists: every answer has a result; give the place in it".to_owned())
            }
            _ => Ok(Matcher { place, condition }),
        }
    }

    fn place(&self) -> Result<Place, String> {
        let result = |path: &str| Ok(Place::Result(JsonPath::parse(path)?, path.to_owned()));
        match (&self.json, &self.result, self.block, &self.block_type) {
            (None, None, None, None) => Ok(Place::Text),
            (Some(path), None, None, None) => Ok(Place::Data(JsonPath::parse(path)?, path.clone())),
            (None, Some(path), None, None) => result(path),
            (None, None, Some(block), None) => Ok(Place::Block(block)),
            // The type of a block is a field of the result like any other.
            (None, None, Some(block), Some(_)) => result(&format!("$.content[{block}].type")),
            (_, _, _, Some(_)) => {
                Err("type requires block, the number of a content block".to_owned())
            }
            _ => Err("only one of json, result and block is allowed".to_owned()),
        }
    }

    fn condition(&self, depth: usize) -> Result<Condition, String> {
        let case = if self.ignore_case { Case::Ignored } else { Case::Sensitive };
        let conditions = [
            self.equals.as_ref().map(|value| equals(value, case)),
            self.one_of.as_ref().map(|values| one_of(values, case)),
            self.contains
                .as_ref()
                .map(|texts| Ok(Condition::Contains(nonempty("contains", texts)?, case))),
            self.lacks.as_ref().map(|texts| Ok(Condition::Lacks(nonempty("lacks", texts)?, case))),
            self.includes.as_ref().map(|value| {
                comparable("includes", value).map(|()| Condition::Includes(value.clone()))
            }),
            self.matches.as_ref().map(|pattern| matches(pattern, case)),
            self.schema.as_ref().map(schema),
            self.near.as_ref().map(|near| self::near("near", near.clone())),
            self.number.as_ref().map(|value| {
                let within = self.within.unwrap_or(0.0);
                near("number", Near { value: value.clone(), within })
            }),
            self.at_least.map(|bound| finite("at_least", bound).map(Condition::AtLeast)),
            self.at_most.map(|bound| finite("at_most", bound).map(Condition::AtMost)),
            self.count.map(|count| Ok(Condition::Count(count))),
            self.exists.map(|exists| Ok(Condition::Exists(exists))),
            self.block_type.as_ref().map(|name| equals(&name.as_str().into(), case)),
            self.snapshot
                .as_ref()
                .map(|snapshot| Ok(Condition::Snapshot(Box::new(snapshot.compile()?)))),
            self.any_of.as_ref().map(|specs| match specs.as_slice() {
                [] => Err("any_of: the list is empty".to_owned()),
                specs => {
                    let inner = specs.iter().map(|spec| spec.inner("any_of", depth));
                    inner.collect::<Result<_, _>>().map(Condition::AnyOf)
                }
            }),
            self.not
                .as_ref()
                .map(|spec| spec.inner("not", depth).map(|inner| Condition::Not(Box::new(inner)))),
        ];
        let mut stated = conditions.into_iter().flatten();
        let condition = match (stated.next(), stated.next()) {
            (Some(condition), None) => condition?,
            (Some(_), Some(_)) => {
                return Err(
                    "only one condition is allowed; add a second matcher for the other".into()
                );
            }
            (None, _) => {
                return Err("missing condition, such as equals, contains or matches".into());
            }
        };
        if self.within.is_some() && self.number.is_none() {
            return Err("within is the tolerance of number; near has its own".to_owned());
        }
        let about_text = matches!(
            &condition,
            Condition::Equals(Value::String(_), _)
                | Condition::OneOf(..)
                | Condition::Contains(..)
                | Condition::Lacks(..)
                | Condition::Matches(_)
        );
        match self.ignore_case && !about_text {
            true => {
                Err("ignore_case requires equals, one_of, contains, lacks or matches".to_owned())
            }
            false => Ok(condition),
        }
    }

    /// A condition inside `any_of` or `not`: about the place that is given outside.
    fn inner(&self, name: &str, depth: usize) -> Result<Condition, String> {
        if depth == MAX_DEPTH {
            return Err(format!("{name} is nested more than {MAX_DEPTH} deep"));
        }
        if !matches!(self.place(), Ok(Place::Text)) {
            return Err(format!("{name}: give the place outside of it"));
        }
        match self.condition(depth + 1).map_err(|error| format!("{name}: {error}"))? {
            Condition::Exists(_) => {
                Err(format!("{name}: exists cannot be combined with other conditions"))
            }
            Condition::Snapshot(_) => {
                Err(format!("{name}: snapshot cannot be combined with other conditions"))
            }
            condition => Ok(condition),
        }
    }
}

fn equals(value: &Value, case: Case) -> Result<Condition, String> {
    comparable("equals", value)?;
    Ok(Condition::Equals(value.clone(), case))
}

fn one_of(values: &[Value], case: Case) -> Result<Condition, String> {
    if values.is_empty() {
        return Err("one_of: the list is empty, so no value can match".to_owned());
    }
    values.iter().try_for_each(|value| comparable("one_of", value))?;
    Ok(Condition::OneOf(values.to_vec(), case))
}

/// The empty text is in every text: a matcher for it cannot fail, or cannot pass.
fn nonempty(name: &str, Texts(texts): &Texts) -> Result<Vec<String>, String> {
    if texts.is_empty() {
        return Err(format!("{name}: the list is empty"));
    }
    if texts.iter().any(String::is_empty) {
        return Err(format!(
            "{name}: every answer contains the empty string, so this checks nothing"
        ));
    }
    Ok(texts.clone())
}

fn matches(text: &str, case: Case) -> Result<Condition, String> {
    let compiled = pattern(text, case).map_err(|error| format!("matches: {error}"))?;
    match found_everywhere(text) {
        true => Err(format!("matches: {text:?} matches every string, so it cannot fail")),
        false => Ok(Condition::Matches(compiled)),
    }
}

/// Returns whether a pattern is certainly found in every text: without assertions, what matches the
/// empty text matches at the start of every other. One anchor at one end changes nothing about
/// that.
fn found_everywhere(text: &str) -> bool {
    let without_anchor = ["^", r"\A"]
        .iter()
        .find_map(|anchor| text.strip_prefix(anchor))
        .or_else(|| ["$", r"\z"].iter().find_map(|anchor| text.strip_suffix(anchor)))
        .unwrap_or(text);
    let asserts = ["^", "$", r"\A", r"\z", r"\b", r"\B", r"\<", r"\>"];
    !asserts.iter().any(|assertion| without_anchor.contains(assertion))
        && pattern(without_anchor, Case::Sensitive).is_ok_and(|pattern| pattern.is_match(""))
}

fn schema(schema: &Value) -> Result<Condition, String> {
    if accepts_everything(schema) {
        return Err("schema: every value fits it, so it cannot fail; to check that there is a \
                    value, use exists: true"
            .to_owned());
    }
    let compiled = Compiled::new(schema).map_err(|error| format!("schema: {error}"))?;
    Ok(Condition::Schema(Box::new(compiled)))
}

/// Returns whether a schema has no keys but those that explain it.
fn accepts_everything(schema: &Value) -> bool {
    const EXPLAIN: &str = "$schema $id $comment $defs definitions title description default \
                           examples deprecated";
    match schema {
        Value::Bool(everything) => *everything,
        Value::Object(keys) => {
            keys.keys().all(|key| EXPLAIN.split(' ').any(|explains| explains == key))
        }
        _ => false,
    }
}

fn near(name: &str, near: Near) -> Result<Condition, String> {
    if finite(&format!("{name}: within"), near.within)? < 0.0 {
        return Err(format!("{name}: within must be 0 or more"));
    }
    if near.within == 0.0 && near.value.is_inexact() {
        return Err(inexact(name, near.value));
    }
    Ok(Condition::Near(near))
}

fn finite(name: &str, number: f64) -> Result<f64, String> {
    match number.is_finite() {
        true => Ok(number),
        false => Err(format!("{name} must be a finite number")),
    }
}

fn inexact(name: &str, number: impl fmt::Display) -> String {
    format!(
        "{name}: {number} is beyond 64 bits and is not compared exactly; use near with a tolerance, \
         or contains or matches for the digits"
    )
}

/// Beyond 64 bits a whole number is read as its nearest double, and its neighbours would be equal.
fn comparable(name: &str, value: &Value) -> Result<(), String> {
    match value {
        Value::Number(number) if is_inexact(number) => Err(inexact(name, number)),
        Value::Array(items) => items.iter().try_for_each(|item| comparable(name, item)),
        Value::Object(fields) => fields.values().try_for_each(|field| comparable(name, field)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_that_is_found_everywhere_is_recognized() {
        for text in ["", ".*", "x*", "(?s).*", "^", "$", "^.*", ".*$", r"\A", "a|", "^a|b*", "(?:)"]
        {
            assert!(found_everywhere(text), "{text}");
            for subject in ["", "x", "one\ntwo", "$"] {
                assert!(regex::Regex::new(text).unwrap().is_match(subject), "{text}: {subject}");
            }
        }
        for text in ["^$", "^.*$", ".", "x", r"\b", r"x*\$", "^a*b", "^[^q]*$", r"^\s*$"] {
            assert!(!found_everywhere(text), "{text}");
        }
    }
}
