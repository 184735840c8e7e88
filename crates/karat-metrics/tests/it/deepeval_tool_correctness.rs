//! DeepEval's tool correctness, against DeepEval's own results on every case of the vectors.

use karat_metrics::calls::deepeval::{Outcome, ToolCorrectness};
use karat_metrics::calls::json::{self, Reader};
use karat_metrics::calls::{Call, CallKind, Object, Value};
use serde::Deserialize;
use serde_json::Map;
use serde_json::value::RawValue;

use crate::peers::{Vectors, vectors};

#[derive(Deserialize)]
struct Case {
    id: String,
    tools_called: Vec<Tool>,
    expected_tools: Vec<Tool>,
    expected: Map<String, serde_json::Value>,
}

/// Parameters and output stay as they are written: serde_json would lose details that matter to the metric.
#[derive(Deserialize)]
struct Tool {
    name: String,
    r#type: Option<String>,
    input_parameters: Option<Box<RawValue>>,
    output: Option<Box<RawValue>>,
}

impl Tool {
    fn call(&self) -> Call<'_> {
        Call {
            name: self.name.as_str().into(),
            kind: match self.r#type.as_deref() {
                None | Some("FUNCTION") => CallKind::Function,
                Some("MCP") => CallKind::Mcp,
                Some(other) => panic!("type {other}"),
            },
            arguments: self.input_parameters.as_ref().map(|text| object(text.get()).into()),
            output: self
                .output
                .as_ref()
                .map_or(Value::Null, |text| json::parse(text.get()).unwrap()),
        }
    }
}

fn object(text: &str) -> Object<'_> {
    let mut reader = Reader::new(text);
    let object = reader.read_object().unwrap();
    reader.end().unwrap();
    object
}

/// The cases in which DeepEval fails and Karat has a result: the start of the key, and the error.
///
/// The one reason: parameters recorded on one side only. DeepEval calls `.keys()` on `None`.
const DEVIATIONS: &[(&str, &str)] =
    &[("default|name+input", "AttributeError"), ("ordered|name+input", "AttributeError")];

#[test]
fn every_score_and_success_of_deepeval_is_reproduced() {
    let vectors: Vectors<Case> = vectors("deepeval_tool_correctness");
    assert_eq!(vectors.cases.len(), vectors.meta.cases);
    let mut failures = Vec::new();
    for case in &vectors.cases {
        check(case, vectors.meta.tolerance, &mut failures);
    }
    assert!(failures.is_empty(), "{} mismatches:\n{}", failures.len(), failures.join("\n"));
}

fn check(case: &Case, tolerance: f64, failures: &mut Vec<String>) {
    let called: Vec<Call<'_>> = case.tools_called.iter().map(Tool::call).collect();
    let expected: Vec<Call<'_>> = case.expected_tools.iter().map(Tool::call).collect();
    assert!(!case.expected.is_empty(), "{} expects nothing", case.id);
    for (key, peer) in &case.expected {
        let setting: ToolCorrectness = key.parse().unwrap_or_else(|e| panic!("{}: {e}", case.id));
        let ours = setting.measure(&called, &expected);
        let wanted = match peer["error"].as_str() {
            None => Outcome {
                score: peer["score"].as_f64().unwrap(),
                success: Some(peer["success"].as_bool().unwrap()),
            },
            Some(error) => {
                let listed =
                    |(start, listed): &&(&str, &str)| key.starts_with(start) && error == *listed;
                if DEVIATIONS.iter().find(listed).is_none() {
                    failures.push(format!("{} {key}: unlisted error {error}", case.id));
                }
                setting.measure(
                    &with_distinct_parameters(&called),
                    &with_distinct_parameters(&expected),
                )
            }
        };
        let close = (ours.score - wanted.score).abs() <= tolerance * wanted.score.abs().max(1.0);
        if !close || ours.success != wanted.success {
            failures.push(format!("{} {key}: {ours:?}, wanted {wanted:?}", case.id));
        }
    }
}

/// The same calls with a parameter of its own in place of parameters that were not recorded. It is
/// equal to itself and shares nothing with any other, as our result assumes, and DeepEval's formula is
/// defined on it.
fn with_distinct_parameters<'a>(calls: &[Call<'a>]) -> Vec<Call<'a>> {
    let marked = |call: &Call<'a>| {
        let mark = || -> Object<'a> {
            [("parameters were not recorded", Value::Null)].into_iter().collect()
        };
        Call {
            arguments: Some(call.arguments.clone().unwrap_or_else(|| mark().into())),
            ..call.clone()
        }
    };
    calls.iter().map(marked).collect()
}
