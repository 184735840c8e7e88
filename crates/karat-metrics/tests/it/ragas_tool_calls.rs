//! RAGAS's tool-call metrics, against RAGAS's own results on every case of the vectors.

use karat_metrics::calls::json::Reader;
use karat_metrics::calls::{Call, ragas};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::peers::{Vectors, vectors};

#[derive(Deserialize)]
struct Case {
    id: String,
    messages: Vec<Message>,
    reference_tool_calls: Vec<RecordedCall>,
    expected: Map<String, Value>,
    warnings: Vec<String>,
}

#[derive(Deserialize)]
struct Message {
    r#type: String,
    tool_calls: Option<Vec<RecordedCall>>,
}

/// Arguments stay as they are written: serde_json would lose details that matter to the metrics.
#[derive(Deserialize)]
struct RecordedCall {
    name: String,
    args: Box<RawValue>,
}

impl RecordedCall {
    fn call(&self) -> Call<'_> {
        let mut reader = Reader::new(self.args.get());
        let arguments = reader.read_object().unwrap();
        reader.end().unwrap();
        Call::new(&self.name, arguments)
    }
}

#[test]
fn every_score_and_warning_of_ragas_is_reproduced() {
    let vectors: Vectors<Case> = vectors("ragas_tool_calls");
    assert_eq!(vectors.cases.len(), vectors.meta.cases);
    let mut failures = Vec::new();
    for case in &vectors.cases {
        check(case, vectors.meta.tolerance, &mut failures);
    }
    assert!(failures.is_empty(), "{} mismatches:\n{}", failures.len(), failures.join("\n"));
}

fn check(case: &Case, tolerance: f64, failures: &mut Vec<String>) {
    let ai_messages = case.messages.iter().filter(|message| message.r#type == "ai");
    let called = ai_messages.filter_map(|message| message.tool_calls.as_ref()).flatten();
    let called: Vec<Call<'_>> = called.map(RecordedCall::call).collect();
    let reference: Vec<Call<'_>> =
        case.reference_tool_calls.iter().map(RecordedCall::call).collect();

    let mut warnings = Vec::new();
    let mut accuracy = |accuracy: ragas::Accuracy| {
        let warning = accuracy.warning.map(|warning| warning.id().to_owned());
        warnings.extend(warning.filter(|warning| !warnings.contains(warning)));
        accuracy.score
    };
    assert!(!case.expected.is_empty(), "{} expects nothing", case.id);
    for (key, expected) in &case.expected {
        let score = match key.as_str() {
            "legacy_accuracy_strict" | "collections_accuracy_strict" => {
                accuracy(ragas::tool_call_accuracy(&called, &reference))
            }
            "legacy_accuracy_unordered" | "collections_accuracy_unordered" => {
                accuracy(ragas::tool_call_accuracy_unordered(&called, &reference))
            }
            "legacy_accuracy_strict_levenshtein" => {
                accuracy(ragas::tool_call_accuracy_levenshtein(&called, &reference))
            }
            "legacy_f1" | "collections_f1" => ragas::tool_call_f1(&called, &reference),
            unknown => panic!("{}: no metric for {unknown}", case.id),
        };
        // RAGAS raised no error anywhere; if a new vector says it did, this is not a number and fails.
        let expected = expected.as_f64().unwrap_or_else(|| panic!("{} {key}: {expected}", case.id));
        if (score - expected).abs() > tolerance * expected.abs().max(1.0) {
            failures.push(format!("{} {key}: {score}, RAGAS has {expected}", case.id));
        }
    }
    if warnings != case.warnings {
        failures.push(format!("{}: warns {warnings:?}, RAGAS {:?}", case.id, case.warnings));
    }
}
