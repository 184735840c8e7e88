//! Samples of RAGAS and DeepEval, which hold the expected calls themselves.
//!
//! A [`Sample`] borrows what the metrics look at (id, calls, expected calls) from its line and skips
//! the rest, so that millions of samples are scored without copying them. [`Samples`] makes traces of
//! them. Of a key that is there twice the last one counts, as in Python.

mod deepeval;
mod ragas;

use std::borrow::Cow;
use std::sync::Arc;

use karat_metrics::calls::json::{JsonError, Problem, Reader};
use karat_metrics::calls::{Call, Kind, Object, Value, python};
use serde_json::Value as Json;

use super::chat::overlay;
use super::{Importer, Position, TraceFormat};
use crate::metric::CallMetric;
use crate::trace::fields::Fields;
use crate::trace::{Arguments, CallMade, Expectation, Invalid, Trace, Turns};

/// One sample.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample<'a> {
    /// Its id, if it has one.
    pub(crate) id: Option<Cow<'a, str>>,
    /// The calls that were made, in order.
    pub(crate) called: Vec<Call<'a>>,
    /// The calls that were expected, in order.
    pub(crate) expected: Vec<Call<'a>>,
}

impl<'a> Sample<'a> {
    /// Reads a line in place of what the sample holds; its memory is used again.
    pub(crate) fn read(&mut self, format: TraceFormat, line: &'a str) -> Result<(), Invalid> {
        self.id = None;
        self.called.clear();
        self.expected.clear();
        let mut reader = Reader::new(line);
        match format {
            TraceFormat::Ragas => ragas::read(&mut reader, self)?,
            TraceFormat::Deepeval => deepeval::read(&mut reader, self)?,
            other => return Err(Invalid::new(format!("{} has no samples", other.name()))),
        }
        Ok(reader.end()?)
    }
}

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

/// Makes traces of samples. A sample without an id is named by its line.
pub(super) struct Samples<'m> {
    pub(super) format: TraceFormat,
    /// The metrics that are computed from the sample itself, which has more than a trace keeps (the
    /// kind of a call, its output as it is compared).
    pub(super) metrics: &'m [CallMetric],
}

impl Importer for Samples<'_> {
    fn take(&mut self, text: &str, at: Position, out: &mut Vec<Trace>) -> Result<(), Invalid> {
        let mut sample = Sample::default();
        sample.read(self.format, text)?;
        let mut trace = Trace::of(sample.id.as_deref().map_or_else(|| at.name(), str::to_owned));
        trace.calls = sample.called.iter().map(made).collect();
        let expected: Vec<String> = sample.expected.iter().map(expected).collect();
        let expectation = format!(r#"{{"calls":[{}]}}"#, expected.join(","));
        trace.expect = Some(Arc::new(Expectation::parse(&expectation)?));
        for metric in self.metrics {
            let score = metric.measure(&sample.called, &sample.expected).score;
            trace.peer_scores.insert(metric.id(), score);
        }
        self.conversation(text, &mut trace);
        // The fields of Karat's own records are read too.
        overlay(&mut Fields::parse(text)?, &mut trace)?;
        // The same id twice is a mistake in a file of samples, not another run.
        trace.run = trace.run.max(1);
        out.push(trace);
        Ok(())
    }
}

impl Samples<'_> {
    /// Takes question, answer and messages where they are easy to find.
    fn conversation(&self, text: &str, trace: &mut Trace) {
        let Ok(document) = serde_json::from_str::<Json>(text) else { return };
        let text = |key: &str| document.get(key).and_then(Json::as_str).map(str::to_owned);
        if self.format == TraceFormat::Deepeval {
            trace.input = text("input");
            trace.output = text("actual_output").or_else(|| text("actualOutput"));
            return;
        }
        let messages = document.get("user_input").or_else(|| document.get("messages"));
        let all = messages.and_then(Json::as_array).cloned().unwrap_or_default();
        let of = |kind: &'static str| {
            move |message: &&Json| message.get("type").and_then(Json::as_str) == Some(kind)
        };
        let content =
            |message: &Json| message.get("content").and_then(Json::as_str).map(str::to_owned);
        trace.input = all.iter().find(of("human")).and_then(content);
        trace.output =
            all.last().filter(of("ai")).and_then(content).filter(|text| !text.is_empty());
        if all.iter().filter(of("human")).count() > 1 {
            trace.turns = Turns::Multi;
        }
        trace.messages = all;
    }
}

fn made(call: &Call<'_>) -> CallMade {
    let mut made = CallMade::named(&call.name);
    made.arguments = match &call.arguments {
        Some(arguments) => Arguments::Object(written(arguments)),
        None => Arguments::Object("{}".to_owned()),
    };
    made.result = serde_json::from_str(&call.output.to_string()).ok();
    made.result = made.result.filter(|result: &Json| !result.is_null());
    made
}

/// An expected call as text: a parsed document would lose large numbers and their kinds.
fn expected(call: &Call<'_>) -> String {
    let name = Json::from(&*call.name);
    format!(r#"{{"name":{name},"arguments":{}}}"#, written(call.arguments()))
}

fn written(object: &Object<'_>) -> String {
    Value::Object(object.clone()).to_string()
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
