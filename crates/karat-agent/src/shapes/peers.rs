//! Samples of RAGAS and DeepEval, whose expected calls stand in the sample itself.
//!
//! A sample without an id is called by its line. Only what the peers score is taken; for their own
//! metrics alone, [`crate::score_file`] is the fast way.

use karat_metrics::calls::json::DEPTH_LIMIT;
use karat_metrics::calls::{Call, Object};
use serde_json::Value;

use super::Importer;
use super::chat::{Unnamed, overlay};
use crate::importers::{self, Format, ImportError, ImportProblem};
use crate::metric::CallMetric;
use crate::sample::Sample;
use crate::trace::fields::Fields;
use crate::trace::{Arguments, CallMade, Expectation, Invalid, Trace, Turns};

pub(super) struct Peer {
    pub(super) format: Format,
    /// What is scored on the sample itself, which has more than a trace keeps (a call's kind, its
    /// output as compared).
    pub(super) metrics: Vec<CallMetric>,
    pub(super) unnamed: Unnamed,
}

impl Importer for Peer {
    fn take(&mut self, text: &str, line: u64, out: &mut Vec<Trace>) -> Result<(), Invalid> {
        let mut sample = Sample::default();
        let read = importers::read(self.format, text, DEPTH_LIMIT, &mut sample);
        read.map_err(|error| explain(&error))?;
        let id = match sample.id.as_deref() {
            Some(id) => id.to_owned(),
            None => self.unnamed.name(line),
        };
        let mut trace = Trace::of(id);
        trace.calls = sample.called.iter().map(made).collect();
        let expected: Vec<String> = sample.expected.iter().map(expected).collect();
        let expectation = format!(r#"{{"calls":[{}]}}"#, expected.join(","));
        trace.expect = Some(Expectation::parse(&expectation)?);
        for metric in &self.metrics {
            trace.peer_scores.insert(metric.short_id(), metric.measure(&sample).0.score);
        }
        self.words(text, &mut trace);
        // The same fields that Karat's own records have may stand beside those of the peer.
        overlay(&mut Fields::parse(text)?, &mut trace)?;
        out.push(trace);
        Ok(())
    }
}

impl Peer {
    /// Question and answer, where they are plain to see, and the conversation.
    fn words(&self, text: &str, trace: &mut Trace) {
        let Ok(document) = serde_json::from_str::<Value>(text) else { return };
        let words = |key: &str| document.get(key).and_then(Value::as_str).map(str::to_owned);
        match self.format {
            Format::DeepEval => {
                trace.input = words("input");
                trace.output = words("actual_output").or_else(|| words("actualOutput"));
            }
            Format::Ragas => {
                let messages = document.get("user_input").or_else(|| document.get("messages"));
                let all = messages.and_then(Value::as_array).cloned().unwrap_or_default();
                let of = |kind: &'static str| {
                    move |message: &&Value| {
                        message.get("type").and_then(Value::as_str) == Some(kind)
                    }
                };
                let content = |message: &Value| {
                    message.get("content").and_then(Value::as_str).map(str::to_owned)
                };
                trace.input = all.iter().find(of("human")).and_then(content);
                trace.output =
                    all.last().filter(of("ai")).and_then(content).filter(|text| !text.is_empty());
                if all.iter().filter(of("human")).count() > 1 {
                    trace.turns = Turns::Multi;
                }
                trace.messages = all;
            }
        }
    }
}

fn made(call: &Call<'_>) -> CallMade {
    let mut made = CallMade::named(&call.name);
    made.arguments = match &call.arguments {
        Some(arguments) => Arguments::Object(written(arguments)),
        None => Arguments::Object("{}".to_owned()),
    };
    made.result =
        serde_json::from_str(&call.output.to_string()).ok().filter(|v: &Value| !v.is_null());
    made
}

/// As text from the start: a parsed document would lose large numbers and their kinds.
fn expected(call: &Call<'_>) -> String {
    let name = Value::from(&*call.name);
    format!(r#"{{"name":{name},"arguments":{}}}"#, written(call.arguments()))
}

fn written(object: &Object<'_>) -> String {
    karat_metrics::calls::Value::Object(object.clone()).to_string()
}

fn explain(error: &ImportError) -> Invalid {
    let message = match &error.problem {
        ImportProblem::BrokenJson(problem) => problem.to_string(),
        ImportProblem::Missing => "is missing".to_owned(),
        ImportProblem::WrongType { expected, found } => {
            format!("should be {expected}, not {found}")
        }
        ImportProblem::UnknownValue { value, known } => {
            format!("is {value:?}, should be one of {known}")
        }
    };
    Invalid { place: error.field.clone(), message }
}
