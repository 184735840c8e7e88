//! Samples of RAGAS and DeepEval: calls with the calls that were expected.
//!
//! A [`Sample`] borrows what the metrics look at (id, calls, expected calls) from its line and skips
//! the rest, so that millions of samples are scored without copying them. Of a key that is there twice
//! the last one counts, as in Python.
//!
//! ```
//! use karat_metrics::calls::ragas;
//! use karat_metrics::calls::samples::{Sample, SampleFormat};
//!
//! let line = r#"{"user_input": [{"type": "ai", "tool_calls": [{"name": "open", "args": {"id": 1}}]}],
//!     "reference_tool_calls": [{"name": "open", "args": {"id": 2}}]}"#;
//! let mut sample = Sample::default();
//! sample.read(SampleFormat::Ragas, line)?;
//! assert_eq!(ragas::tool_call_accuracy(&sample.called, &sample.expected).score, 0.0);
//!
//! let error = sample.read(SampleFormat::Ragas, r#"{"user_input": [{}]}"#).unwrap_err();
//! assert_eq!(error.to_string(), "user_input[0].type: is missing");
//! # Ok::<(), karat_metrics::calls::samples::Invalid>(())
//! ```

mod deepeval;
mod ragas;

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

use super::json::{JsonError, Problem, Reader};
use super::{Call, Kind, Value, python};

/// The format of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleFormat {
    /// Multi-turn samples of RAGAS: the calls are those of the `ai` messages.
    Ragas,
    /// Test cases of DeepEval, their keys in snake case or in camel case.
    Deepeval,
}

/// One sample.
#[derive(Clone, Debug, Default)]
pub struct Sample<'a> {
    /// Its id, if it has one.
    pub id: Option<Cow<'a, str>>,
    /// The calls that were made, in order.
    pub called: Vec<Call<'a>>,
    /// The calls that were expected, in order.
    pub expected: Vec<Call<'a>>,
}

impl<'a> Sample<'a> {
    /// Reads a line in place of what the sample holds; its memory is used again.
    ///
    /// # Errors
    /// If the line is not valid JSON, or a field is missing or has the wrong type. The sample is
    /// incomplete then.
    pub fn read(&mut self, format: SampleFormat, line: &'a str) -> Result<(), Invalid> {
        self.id = None;
        self.called.clear();
        self.expected.clear();
        let mut reader = Reader::new(line);
        match format {
            SampleFormat::Ragas => ragas::read(&mut reader, self)?,
            SampleFormat::Deepeval => deepeval::read(&mut reader, self)?,
        }
        Ok(reader.end()?)
    }
}

/// A mistake in a record, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// The way to the field, such as `calls[2].name`; empty for the whole record.
    pub place: String,
    /// The mistake.
    pub message: String,
}

impl Invalid {
    /// A mistake in the value itself.
    pub fn new(message: impl Into<String>) -> Self {
        Invalid { place: String::new(), message: message.into() }
    }

    /// A mistake in a field of the value.
    pub fn at(place: impl Into<String>, message: impl Into<String>) -> Self {
        Invalid { place: place.into(), message: message.into() }
    }

    /// The same mistake, seen from the value that contains this one as `step`.
    #[must_use]
    pub fn within(mut self, step: &str) -> Self {
        let dot = if self.place.is_empty() || self.place.starts_with('[') { "" } else { "." };
        self.place = format!("{step}{dot}{}", self.place);
        self
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let colon = if self.place.is_empty() { "" } else { ": " };
        write!(f, "{}{colon}{}", self.place, self.message)
    }
}

impl Error for Invalid {}

impl From<JsonError> for Invalid {
    #[cold]
    fn from(error: JsonError) -> Self {
        match error.problem {
            Problem::WrongKind { expected, found } => wrong_kind(expected, found),
            _ => Invalid::new(error.to_string()),
        }
    }
}

fn wrong_kind(expected: Kind, found: Kind) -> Invalid {
    Invalid::new(format!("should be {expected}, not {found}"))
}

fn missing(field: &str) -> Invalid {
    Invalid::at(field, "is missing")
}

#[cold]
fn unknown_value(value: &str, known: &str) -> Invalid {
    Invalid::new(format!("is {value:?}, should be one of {known}"))
}

/// Reads a list of calls, each by `read_call`, in place of what `calls` holds from `keep` on.
fn read_calls<'a>(
    reader: &mut Reader<'a>,
    calls: &mut Vec<Call<'a>>,
    keep: usize,
    read_call: impl Fn(&mut Reader<'a>) -> Result<Call<'a>, Invalid>,
) -> Result<(), Invalid> {
    calls.truncate(keep);
    reader.list(|reader| {
        let call = read_call(reader)
            .map_err(|error| error.within(&format!("[{}]", calls.len() - keep)))?;
        calls.push(call);
        Ok(())
    })
}

/// Reads an id: a string, or a number as it is written; null counts as missing.
fn read_id<'a>(reader: &mut Reader<'a>) -> Result<Option<Cow<'a, str>>, Invalid> {
    match reader.peek()? {
        Kind::Null => Ok(reader.skip().map(|()| None)?),
        Kind::Number => Ok(Some(Cow::Owned(python::str(&reader.value()?).into_owned()))),
        _ => match reader.value()? {
            Value::String(id) => Ok(Some(id)),
            other => Err(wrong_kind(Kind::String, other.kind())),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_string_or_a_number() {
        let id = |text| read_id(&mut Reader::new(text));
        assert_eq!(id("\"q-1\"").unwrap().as_deref(), Some("q-1"));
        assert_eq!(id("17").unwrap().as_deref(), Some("17"));
        assert_eq!(id("18446744073709551616").unwrap().as_deref(), Some("18446744073709551616"));
        assert_eq!(id("null").unwrap(), None);
        assert_eq!(id("[]").unwrap_err().message, "should be a string, not a list");
    }
}
