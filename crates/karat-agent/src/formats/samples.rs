//! Traces of samples of RAGAS and DeepEval, which hold the expected calls themselves.

use std::sync::Arc;

use karat_metrics::calls::samples::{Sample, SampleFormat};
use karat_metrics::calls::{Call, Object, Value};
use serde_json::Value as Json;

use super::chat::overlay;
use super::{Importer, Position};
use crate::metric::CallMetric;
use crate::trace::fields::Fields;
use crate::trace::{Arguments, CallMade, Expectation, Invalid, Trace, Turns};

/// Makes traces of samples. A sample without an id is named by its line.
pub(super) struct Samples<'m> {
    pub(super) format: SampleFormat,
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
        if self.format == SampleFormat::Deepeval {
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
