//! Reading samples as other tools write them, one JSON object per line.
//!
//! An importer takes from a line what the metrics look at (id, calls, expected calls) and reads past
//! the rest. It says precisely which field is wrong; it does not repair anything. Of a key that
//! comes twice the last one counts, as in Python.

mod deepeval;
mod ragas;

use std::borrow::Cow;
use std::fmt::Display;
use std::str::FromStr;

use karat_metrics::calls::json::{JsonError, Problem, Reader};
use karat_metrics::calls::{Call, Kind, Value, python};

use crate::sample::Sample;

/// Whose samples a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// RAGAS multi-turn samples: `user_input` (or `messages`) and `reference_tool_calls`.
    Ragas,
    /// DeepEval test cases: `tools_called` and `expected_tools`.
    DeepEval,
}

impl Format {
    /// The format's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Ragas => "ragas",
            Format::DeepEval => "deepeval",
        }
    }
}

/// There is no format of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown trace format {0:?}: ragas or deepeval")]
pub struct UnknownFormat(pub String);

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        [Format::Ragas, Format::DeepEval]
            .into_iter()
            .find(|format| format.name() == name)
            .ok_or_else(|| UnknownFormat(name.to_owned()))
    }
}

/// Reads one line into an empty trace.
pub fn read<'a>(
    format: Format,
    line: &'a str,
    depth_limit: usize,
    trace: &mut Sample<'a>,
) -> Result<(), ImportError> {
    let mut reader = Reader::with_depth_limit(line, depth_limit);
    match format {
        Format::Ragas => ragas::read(&mut reader, trace)?,
        Format::DeepEval => deepeval::read(&mut reader, trace)?,
    }
    reader.end()?;
    Ok(())
}

/// Why a line is no sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportError {
    /// The way to the field, for example `user_input[2].tool_calls[0].args`; empty for the sample.
    pub field: String,
    /// What is wrong there.
    pub problem: ImportProblem,
}

/// What can be wrong with a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportProblem {
    /// The line is not JSON, or nests too deep.
    BrokenJson(JsonError),
    /// The field is absent or null.
    Missing,
    /// The field holds another kind of value.
    WrongType {
        /// What it should hold.
        expected: Kind,
        /// What it holds.
        found: Kind,
    },
    /// The field holds a word that is not known there.
    UnknownValue {
        /// What it holds.
        value: String,
        /// What is known there.
        known: &'static str,
    },
}

impl From<JsonError> for ImportError {
    fn from(error: JsonError) -> Self {
        let problem = match error.problem {
            Problem::WrongKind { expected, found } => ImportProblem::WrongType { expected, found },
            _ => ImportProblem::BrokenJson(error),
        };
        ImportError { field: String::new(), problem }
    }
}

impl ImportError {
    fn missing(field: &str) -> Self {
        ImportError { field: field.to_owned(), problem: ImportProblem::Missing }
    }

    /// The same error seen from outside: `step` leads to where the field is.
    #[cold]
    fn within(mut self, step: impl Display) -> Self {
        let dot = if self.field.is_empty() || self.field.starts_with('[') { "" } else { "." };
        self.field = format!("{step}{dot}{}", self.field);
        self
    }
}

/// Reads a list of calls, each by `read_call`, in place of what `calls` holds from `keep` on.
fn read_calls<'a>(
    reader: &mut Reader<'a>,
    calls: &mut Vec<Call<'a>>,
    keep: usize,
    read_call: impl Fn(&mut Reader<'a>) -> Result<Call<'a>, ImportError>,
) -> Result<(), ImportError> {
    calls.truncate(keep);
    reader.list(|reader| {
        let call =
            read_call(reader).map_err(|e| e.within(format_args!("[{}]", calls.len() - keep)))?;
        calls.push(call);
        Ok(())
    })
}

/// Reads an id: a string, or a number as it is written; null is none.
fn read_id<'a>(reader: &mut Reader<'a>) -> Result<Option<Cow<'a, str>>, ImportError> {
    match reader.peek()? {
        Kind::Null => reader.skip().map(|()| None).map_err(ImportError::from),
        Kind::Number => Ok(Some(Cow::Owned(python::str(&reader.value()?).into_owned()))),
        _ => match reader.value()? {
            Value::String(id) => Ok(Some(id)),
            other => {
                let found = other.kind();
                let problem = ImportProblem::WrongType { expected: Kind::String, found };
                Err(ImportError { field: String::new(), problem })
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_known_by_its_name() {
        for format in [Format::Ragas, Format::DeepEval] {
            assert_eq!(format.name().parse(), Ok(format));
        }
        assert_eq!("Ragas".parse::<Format>(), Err(UnknownFormat("Ragas".into())));
    }

    #[test]
    fn an_id_is_a_string_or_a_number() {
        let id = |text| read_id(&mut Reader::new(text));
        assert_eq!(id("\"q-1\"").unwrap().as_deref(), Some("q-1"));
        assert_eq!(id("17").unwrap().as_deref(), Some("17"));
        assert_eq!(id("18446744073709551616").unwrap().as_deref(), Some("18446744073709551616"));
        assert_eq!(id("null").unwrap(), None);
        let wrong = ImportProblem::WrongType { expected: Kind::String, found: Kind::List };
        assert_eq!(id("[]").unwrap_err().problem, wrong);
    }
}
