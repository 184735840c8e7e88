//! What must hold for an answer or an end state. Values are equal or they are not; a tolerance is one
//! that is stated.

use karat_core::json_path::JsonPath;
use karat_metrics::calls::{Equality, json};
use regex::{Regex, RegexBuilder};
use serde_json::Value;

use super::expectation::nothing_left;
use super::fields::{Fields, Invalid, is_string, list, typed};

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

/// A number with the tolerance that was stated.
#[derive(Clone, Copy, Debug)]
pub struct Near {
    value: f64,
    within: f64,
}

impl Near {
    fn parse(fields: &mut Fields<'_>) -> Result<Option<Self>, Invalid> {
        let Some(value) = fields.get::<f64>("number")? else { return Ok(None) };
        let within = fields.get::<f64>("within")?.unwrap_or(0.0);
        if within.is_nan() || within < 0.0 {
            return Err(Invalid::at("within", "must not be negative"));
        }
        Ok(Some(Near { value, within }))
    }

    fn accepts(self, found: f64) -> bool {
        // 0.1 + 0.2 is 0.3 to whoever writes an expectation: the last bits are no difference.
        let rounding = 4.0 * f64::EPSILON * self.value.abs().max(found.abs());
        (found - self.value).abs() <= self.within + rounding
    }
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
        } else if let Some(near) = Near::parse(&mut fields)? {
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
            Matcher::Number(near) => numbers(answer).any(|found| near.accepts(found)),
            Matcher::AnyOf(all) => all.iter().any(|matcher| matcher.holds(Some(answer))),
        }
    }

    /// An answer for which it holds, where one can be made up: what an oracle says.
    pub fn example(&self) -> Option<String> {
        match self {
            Matcher::Contains(texts, _) => Some(texts.join(" ")),
            Matcher::Equals(text, _) => Some(text.clone()),
            Matcher::Number(near) => Some(near.value.to_string()),
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
    list(raw)?.into_iter().map(typed).collect()
}

/// The numbers in a text: `-3`, `1,200`, `2.5e3`.
fn numbers(text: &str) -> impl Iterator<Item = f64> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < bytes.len() {
            if !bytes[at].is_ascii_digit() {
                at += 1;
                continue;
            }
            let (number, end) = number_at(bytes, at);
            at = end;
            if number.is_some() {
                return number;
            }
        }
        None
    })
}

/// The number whose first digit is here, and where it ends.
fn number_at(bytes: &[u8], start: usize) -> (Option<f64>, usize) {
    let digits_from = |from: usize| {
        bytes[from..].iter().position(|b| !b.is_ascii_digit()).map_or(bytes.len(), |n| from + n)
    };
    let before = |n: usize| start.checked_sub(n).map(|at| bytes[at]);
    // A minus belongs to the number unless it joins it to a word or another number, as in 2024-05.
    let negative = before(1) == Some(b'-') && !before(2).is_some_and(|b| b.is_ascii_alphanumeric());
    let mut written = if negative { String::from("-") } else { String::new() };
    let mut end = digits_from(start);
    written.push_str(&String::from_utf8_lossy(&bytes[start..end]));
    if end - start <= 3 {
        while bytes.get(end) == Some(&b',') && digits_from(end + 1) == end + 4 {
            written.push_str(&String::from_utf8_lossy(&bytes[end + 1..end + 4]));
            end += 4;
        }
    }
    if bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
        let fraction = digits_from(end + 1);
        written.push_str(&String::from_utf8_lossy(&bytes[end..fraction]));
        end = fraction;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = end + 1 + sign;
        if bytes.get(exponent).is_some_and(u8::is_ascii_digit) {
            let after = digits_from(exponent);
            written.push_str(&String::from_utf8_lossy(&bytes[end..after]));
            end = after;
        }
    }
    (written.parse().ok(), end)
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
        } else if let Some(near) = Near::parse(&mut fields)? {
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
                found.iter().any(|value| value.as_f64().is_some_and(|value| near.accepts(value)))
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
    fn numbers_are_found_in_prose() {
        let found = |text: &str| numbers(text).collect::<Vec<_>>();
        assert_eq!(found("It is -3.5 or 1,200, not 12,34."), [-3.5, 1200.0, 12.0, 34.0]);
        assert_eq!(found("2.5e3 m, a1b, v2.0"), [2500.0, 1.0, 2.0]);
        assert_eq!(found("on 2024-05-17"), [2024.0, 5.0, 17.0]);
        assert_eq!(found("none"), [0.0; 0]);
    }

    #[test]
    fn a_matcher_says_what_it_says() {
        assert!(holds(r#"{"contains":["a","b"]}"#, "b a"));
        assert!(!holds(r#"{"contains":"A"}"#, "a"));
        assert!(holds(r#"{"contains":"A","ignore_case":true}"#, "a"));
        assert!(holds(r#"{"equals":"x y"}"#, " x y\n"));
        assert!(!holds(r#"{"lacks":"sorry"}"#, "so sorry"));
        assert!(holds(r#"{"regex":"^\\d+$"}"#, "12"));
        assert!(holds(r#"{"number":0.3}"#, &format!("{}", 0.1 + 0.2)));
        assert!(!holds(r#"{"number":5}"#, "5.01"));
        assert!(holds(r#"{"number":5,"within":0.01}"#, "5.01"));
        assert!(holds(r#"{"any_of":[{"equals":"x"},{"number":7}]}"#, "it is 7"));
        assert!(!Matcher::parse(r#"{"lacks":"x"}"#).unwrap().holds(None));
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
