//! What must hold for an answer or an end state. Values are equal or they are not; a tolerance is one
//! that is stated.

use karat_io::json_path::JsonPath;
use karat_metrics::calls::{Equality, json};
use regex::{Regex, RegexBuilder};
use serde_json::Value;

use super::expectation::nothing_left;
use super::fields::{Fields, Invalid, is_string, list, typed};
use super::near::numbers;

pub use super::near::Near;

/// How large a pattern may become; patterns come from files of others.
const PATTERN_BYTES: usize = 1 << 20;
/// How deep alternatives may nest.
const DEPTH: usize = 16;

/// What must hold for an answer.
#[derive(Clone, Debug)]
pub enum Matcher {
    /// All of these are in it.
    Contains(Vec<String>, Case),
    /// None of these is in it.
    Lacks(Vec<String>, Case),
    /// It is this, apart from white space around it.
    Equals(String, Case),
    /// The pattern is found.
    Regex(Box<Regex>),
    /// One of its numbers is near enough.
    Number(Near),
    /// One of these holds.
    AnyOf(Vec<Matcher>),
}

/// Whether upper and lower case are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// They are.
    Sensitive,
    /// They are not.
    Ignored,
}

impl Case {
    fn fold(self, text: &str) -> String {
        match self {
            Case::Sensitive => text.to_owned(),
            Case::Ignored => text.to_lowercase(),
        }
    }
}

impl Matcher {
    pub(super) fn parse(text: &str) -> Result<Self, Invalid> {
        Matcher::parse_within(text, 0)
    }

    fn parse_within(text: &str, depth: usize) -> Result<Self, Invalid> {
        if depth > DEPTH {
            return Err(Invalid::new("any_of is nested too deeply"));
        }
        let mut fields = Fields::parse(text)?;
        let case = match fields.get::<bool>("ignore_case")? {
            Some(true) => Case::Ignored,
            _ => Case::Sensitive,
        };
        let matcher = if let Some(raw) = fields.raw("contains") {
            Matcher::Contains(texts(raw).map_err(|error| error.within("contains"))?, case)
        } else if let Some(raw) = fields.raw("lacks") {
            Matcher::Lacks(texts(raw).map_err(|error| error.within("lacks"))?, case)
        } else if let Some(text) = fields.get::<String>("equals")? {
            Matcher::Equals(text, case)
        } else if let Some(pattern) = fields.get::<String>("regex")? {
            let built = RegexBuilder::new(&pattern).size_limit(PATTERN_BYTES).build();
            Matcher::Regex(Box::new(
                built.map_err(|error| Invalid::at("regex", error.to_string()))?,
            ))
        } else if let Some(near) = Near::parse(&mut fields, "number")? {
            Matcher::Number(near)
        } else if let Some(all) = fields.list("any_of")? {
            let parse = |text: &&str| Matcher::parse_within(text, depth + 1);
            let all: Result<Vec<_>, _> = all.iter().map(parse).collect();
            Matcher::AnyOf(all.map_err(|error| error.within("any_of"))?)
        } else {
            return Err(Invalid::new(
                "should have one of contains, lacks, equals, regex, number, any_of",
            ));
        };
        nothing_left(&fields)?;
        Ok(matcher)
    }

    /// Whether it holds for an answer; without an answer nothing does.
    pub fn holds(&self, answer: Option<&str>) -> bool {
        let Some(answer) = answer else { return false };
        match self {
            Matcher::Contains(texts, case) => {
                let answer = case.fold(answer);
                texts.iter().all(|text| answer.contains(&case.fold(text)))
            }
            Matcher::Lacks(texts, case) => {
                let answer = case.fold(answer);
                !texts.iter().any(|text| answer.contains(&case.fold(text)))
            }
            Matcher::Equals(text, case) => case.fold(text.trim()) == case.fold(answer.trim()),
            Matcher::Regex(pattern) => pattern.is_match(answer),
            Matcher::Number(near) => numbers(answer).any(|found| near.accepts(&found)),
            Matcher::AnyOf(all) => all.iter().any(|matcher| matcher.holds(Some(answer))),
        }
    }

    /// An answer for which it holds, where one can be made up: what an oracle says.
    pub fn example(&self) -> Option<String> {
        match self {
            Matcher::Contains(texts, _) => Some(texts.join(" ")),
            Matcher::Equals(text, _) => Some(text.clone()),
            Matcher::Number(near) => Some(near.value.clone()),
            Matcher::AnyOf(all) => all.iter().find_map(Matcher::example),
            Matcher::Lacks(..) => Some(String::new()),
            Matcher::Regex(_) => None,
        }
    }
}

fn texts(raw: &str) -> Result<Vec<String>, Invalid> {
    if is_string(raw) {
        return Ok(vec![typed(raw)?]);
    }
    let texts: Vec<String> = list(raw)?.into_iter().map(typed).collect::<Result<_, _>>()?;
    match texts.is_empty() {
        true => Err(Invalid::new("names no text, so any answer would do")),
        false => Ok(texts),
    }
}

/// What must hold for the state at the end.
#[derive(Clone, Debug)]
pub struct Assertion {
    path: JsonPath,
    text: String,
    condition: Condition,
}

#[derive(Clone, Debug)]
enum Condition {
    Equals(Value),
    Contains(Value),
    Number(Near),
    Count(u64),
    Exists(bool),
}

impl Assertion {
    pub(super) fn parse(text: &str) -> Result<Self, Invalid> {
        let mut fields = Fields::parse(text)?;
        let written: String = fields.need("path")?;
        let path = JsonPath::parse(&written).map_err(|message| Invalid::at("path", message))?;
        // `null` is a value like any other here, not a field that was left out.
        let condition = if let Some(text) = fields.present("equals") {
            Condition::Equals(typed(text).map_err(|error| error.within("equals"))?)
        } else if let Some(text) = fields.present("contains") {
            Condition::Contains(typed(text).map_err(|error| error.within("contains"))?)
        } else if let Some(near) = Near::parse(&mut fields, "number")? {
            Condition::Number(near)
        } else if let Some(count) = fields.get("count")? {
            Condition::Count(count)
        } else if let Some(exists) = fields.get("exists")? {
            Condition::Exists(exists)
        } else {
            return Err(Invalid::new("should have one of equals, contains, number, count, exists"));
        };
        nothing_left(&fields)?;
        Ok(Assertion { path, text: written, condition })
    }

    /// The path as it was written.
    pub fn place(&self) -> &str {
        &self.text
    }

    /// Whether it holds for a state. Where the path leads to several values, one must do.
    pub fn holds(&self, state: &Value) -> bool {
        let found = self.path.find(state);
        match &self.condition {
            Condition::Exists(exists) => found.is_empty() != *exists,
            Condition::Equals(wanted) => found.iter().any(|value| equal(value, wanted)),
            Condition::Contains(wanted) => found.iter().any(|value| match (value, wanted) {
                (Value::String(text), Value::String(part)) => text.contains(part.as_str()),
                (Value::Array(all), wanted) => all.iter().any(|value| equal(value, wanted)),
                _ => false,
            }),
            Condition::Number(near) => {
                found.iter().any(|value| value.is_number() && near.accepts(&value.to_string()))
            }
            Condition::Count(count) => found.iter().any(|value| match value {
                Value::Array(all) => all.len() as u64 == *count,
                Value::Object(all) => all.len() as u64 == *count,
                _ => false,
            }),
        }
    }
}

/// JSON equality, by the one rule that arguments are compared with.
pub(crate) fn equal(a: &Value, b: &Value) -> bool {
    let (a, b) = (a.to_string(), b.to_string());
    match (json::parse(&a), json::parse(&b)) {
        (Ok(a), Ok(b)) => Equality::Json.values(&a, &b),
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn holds(matcher: &str, answer: &str) -> bool {
        Matcher::parse(matcher).unwrap().holds(Some(answer))
    }

    #[test]
    fn a_matcher_says_what_it_says() {
        assert!(holds(r#"{"contains":["a","b"]}"#, "b a"));
        assert!(!holds(r#"{"contains":"A"}"#, "a"));
        assert!(holds(r#"{"contains":"A","ignore_case":true}"#, "a"));
        assert!(holds(r#"{"equals":"x y"}"#, " x y\n"));
        assert!(!holds(r#"{"lacks":"sorry"}"#, "so sorry"));
        assert!(holds(r#"{"regex":"^\\d+$"}"#, "12"));
        assert!(!holds(r#"{"number":5}"#, "5.01"));
        assert!(holds(r#"{"number":5,"within":0.01}"#, "5.01"));
        assert!(holds(r#"{"any_of":[{"equals":"x"},{"number":7}]}"#, "it is 7"));
        assert!(!Matcher::parse(r#"{"lacks":"x"}"#).unwrap().holds(None));
        assert!(Matcher::parse(r#"{"contains":[]}"#).is_err());
        assert!(Matcher::parse(r#"{"lacks":[]}"#).is_err());
    }

    #[test]
    fn a_number_is_the_one_that_was_meant() {
        assert!(!holds(r#"{"number":5}"#, "I counted 1e999 things"));
        assert!(!holds(r#"{"number":5,"within":1}"#, "1e999"));
        assert!(!holds(r#"{"number":4111111111111111}"#, "Paid to 4111111111111114."));
        assert!(!holds(r#"{"number":9007199254740992}"#, "9007199254740993"));
        assert!(holds(r#"{"number":9007199254740993}"#, "9007199254740993"));
        assert!(!holds(r#"{"number":5}"#, "It is \u{2212}5 degrees"));
        assert!(holds(r#"{"number":-5}"#, "It is \u{2212}5 degrees"));
        assert!(holds(r#"{"number":-5}"#, "balance: -$5"));
        assert!(holds(r#"{"number":0.5}"#, "It is .5"));
        assert!(!holds(r#"{"number":5}"#, "It is .5"));
        assert!(holds(r#"{"number":0.3,"within":0.1}"#, "0.4"));
        assert!(Matcher::parse(r#"{"number":1e999}"#).is_err());
        let state = json!({"acct": 4_111_111_111_111_114_i64, "text": "5"});
        let holds = |text: &str| Assertion::parse(text).unwrap().holds(&state);
        assert!(!holds(r#"{"path":"acct","number":4111111111111111}"#));
        assert!(holds(r#"{"path":"acct","number":4111111111111111,"within":3}"#));
        assert!(!holds(r#"{"path":"text","number":5}"#));
    }

    #[test]
    fn a_state_is_looked_into_by_its_path() {
        let state = json!({"notes": [{"text": "umbrella", "n": 1}], "open": true});
        let holds = |text: &str| Assertion::parse(text).unwrap().holds(&state);
        assert!(holds(r#"{"path":"$.notes[0].text","equals":"umbrella"}"#));
        assert!(holds(r#"{"path":"$.notes[*].n","equals":1.0}"#));
        assert!(holds(r#"{"path":"notes","count":1}"#));
        assert!(holds(r#"{"path":"notes[0].text","contains":"umb"}"#));
        assert!(holds(r#"{"path":"closed","exists":false}"#));
        assert!(!holds(r#"{"path":"open","equals":1}"#));
        assert!(!holds(r#"{"path":"open","equals":null}"#));
        assert!(!holds(r#"{"path":"closed","equals":null}"#));
        let empty = json!({"note": null, "list": [null]});
        let holds = |text: &str| Assertion::parse(text).unwrap().holds(&empty);
        assert!(holds(r#"{"path":"note","equals":null}"#));
        assert!(holds(r#"{"path":"list","contains":null}"#));
    }
}
