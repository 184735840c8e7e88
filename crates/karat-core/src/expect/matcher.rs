//! A compiled expectation: a place and a condition.

use std::borrow::Cow;
use std::fmt;

use karat_io::json_path::JsonPath;
use serde_json::Value;

use super::answer::{Answer, Source, block_text};
use super::condition::Condition;
use super::snapshot::Snapshot;

/// An expectation that is ready to be checked. Its `Display` names the place and what is expected.
#[derive(Debug)]
pub struct Matcher {
    pub(super) place: Place,
    pub(super) condition: Condition,
}

/// A place in an answer; paths come with their text.
#[derive(Debug)]
pub(super) enum Place {
    Text,
    Data(JsonPath, String),
    Result(JsonPath, String),
    Block(usize),
}

impl Matcher {
    /// Checks an answer.
    ///
    /// # Errors
    /// The reason for which it does not match, with the value that was found.
    pub fn check(&self, answer: &Answer<'_>) -> Result<(), String> {
        match (self.place.find(answer), &self.condition) {
            (Err(_), Condition::Exists(false)) => Ok(()),
            (Err(why), _) => Err(why),
            (Ok(found), condition) => {
                let mut first = None;
                for value in &found {
                    match condition.check(value, answer.source) {
                        Ok(()) => return Ok(()),
                        Err(why) => first.get_or_insert(why),
                    };
                }
                Err(format!("{} {}", self.place, first.unwrap_or_default()))
            }
        }
    }

    /// Returns whether an answer with nothing in it can be right.
    pub fn can_hold_of_nothing(&self) -> bool {
        self.condition.can_hold_of_nothing()
    }

    /// Returns whether it compares with a snapshot.
    pub fn is_snapshot(&self) -> bool {
        matches!(self.condition, Condition::Snapshot(_))
    }

    /// The snapshot that it compares with.
    pub fn snapshot_mut(&mut self) -> Option<&mut Snapshot> {
        match &mut self.condition {
            Condition::Snapshot(snapshot) => Some(snapshot),
            _ => None,
        }
    }

    /// The value that a snapshot of this answer stores; none if the matcher has no snapshot.
    pub fn captured(&self, answer: &Answer<'_>) -> Option<Result<Value, String>> {
        let Condition::Snapshot(snapshot) = &self.condition else { return None };
        let found = self.place.find(answer);
        Some(found.map(|found| found.first().map_or(Value::Null, |value| snapshot.of(value))))
    }
}

impl fmt::Display for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.condition)
    }
}

impl Place {
    /// The values at the place, of which one must meet the condition: never none of them.
    ///
    /// # Errors
    /// If nothing is there.
    fn find<'a>(&self, answer: &'a Answer<'_>) -> Result<Vec<Cow<'a, Value>>, String> {
        let text = |text: &str| Ok(vec![Cow::Owned(Value::from(text))]);
        let (path, value) = match self {
            Place::Text => {
                return answer
                    .text
                    .as_deref()
                    .map_or(Err("the answer has no text".to_owned()), text);
            }
            Place::Block(number) => {
                let block = answer.block(*number);
                let block = block.ok_or_else(|| format!("no content block {number}"))?;
                return block_text(block).map_or(Ok(vec![Cow::Borrowed(block)]), text);
            }
            Place::Data(path, _) => {
                let none = "the answer has no data: no structuredContent, and its text is not JSON";
                (path, answer.data.as_deref().ok_or(none)?)
            }
            Place::Result(path, _) => {
                (path, answer.result.ok_or("only the answer of a tool has a result")?)
            }
        };
        let found = path.find(value);
        if found.is_empty() {
            return Err(format!("no value at {self}"));
        }
        // A path to several places is about the list of values there, even if it has one entry.
        if path.leads_to_several() && answer.source != Source::State {
            return Ok(vec![Cow::Owned(found.into_iter().cloned().collect())]);
        }
        Ok(found.into_iter().map(Cow::Borrowed).collect())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Text => f.write_str("the text"),
            Place::Data(_, written) | Place::Result(_, written) => f.write_str(written),
            Place::Block(number) => write!(f, "content block {number}"),
        }
    }
}
