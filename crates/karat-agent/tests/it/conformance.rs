//! The vectors of the peers as trace files: their scores must come out, item by item.

use std::path::Path;

use karat_agent::{CallMetric, Tools, TraceFiles, TraceFormat, TraceSource, streaming};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

#[derive(Deserialize)]
struct Vectors<'a> {
    meta: Meta,
    /// As they are written: serde_json would lose what the metrics look at.
    #[serde(borrow)]
    cases: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Meta {
    tolerance: f64,
}

#[derive(Deserialize)]
struct Case {
    id: String,
    expected: Map<String, Value>,
    warnings: Option<Vec<String>>,
}

/// Scores the cases of a vector file as JSONL by one metric for each key, and passes each case with a
/// key and its score to `check`.
fn score_vectors(
    file: &str,
    format: TraceFormat,
    metric_of: fn(&str) -> CallMetric,
    mut check: impl FnMut(&Case, &str, f64, f64),
) {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../karat-metrics/tests/vectors");
    let text = std::fs::read_to_string(vectors.join(file)).unwrap();
    let vectors: Vectors<'_> = serde_json::from_str(&text).unwrap();
    let cases: Vec<Case> =
        vectors.cases.iter().map(|case| serde_json::from_str(case.get()).unwrap()).collect();
    let keys: Vec<&String> = cases[0].expected.keys().collect();

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("traces.jsonl");
    // A line break in JSON is never part of a value, so it can be a space.
    let lines = vectors.cases.iter().map(|case| case.get().replace(['\r', '\n'], " ") + "\n");
    std::fs::write(&path, lines.collect::<String>()).unwrap();

    let metrics: Vec<CallMetric> = keys.iter().map(|key| metric_of(key)).collect();
    let files = TraceFiles { files: &[path], formats: &[format], metrics: &metrics };
    let source = TraceSource { files, tasks: None, max_malformed: 0.0, prices: None };
    let mut remaining = cases.iter();
    let found = streaming::score(&source, &Tools::default(), None, &mut |item| {
        let case = remaining.next().unwrap();
        assert_eq!(item.id, case.id);
        assert!(case.expected.keys().eq(keys.iter().copied()), "{}: other keys", case.id);
        assert_eq!(item.scores.len(), keys.len());
        for (key, score) in keys.iter().zip(item.scores) {
            check(case, key, score.unwrap().unwrap(), vectors.meta.tolerance);
        }
        if let Some(expected) = &case.warnings {
            let warnings: Vec<&str> = item.warning.iter().map(|warning| warning.id()).collect();
            assert_eq!(&warnings, expected, "{}", case.id);
        }
    });
    assert_eq!(found.unwrap().traces, cases.len() as u64);
    assert!(remaining.next().is_none());
}

#[track_caller]
fn assert_close(ours: f64, theirs: f64, tolerance: f64, what: &str) {
    assert!(
        (ours - theirs).abs() <= tolerance * theirs.abs().max(1.0),
        "{what}: {ours}, not {theirs}"
    );
}

#[test]
fn ragas_samples_score_as_in_ragas() {
    fn metric_of(key: &str) -> CallMetric {
        match key.split_once('_').unwrap().1 {
            "accuracy_strict" => CallMetric::RagasAccuracy,
            "accuracy_unordered" => CallMetric::RagasAccuracyUnordered,
            "accuracy_strict_levenshtein" => CallMetric::RagasAccuracyLevenshtein,
            "f1" => CallMetric::RagasF1,
            _ => panic!("no metric for {key}"),
        }
    }
    let file = "ragas_tool_calls.json";
    score_vectors(file, TraceFormat::Ragas, metric_of, |case, key, ours, tolerance| {
        let theirs = case.expected[key].as_f64().unwrap();
        assert_close(ours, theirs, tolerance, &format!("{} {key}", case.id));
    });
}

#[test]
fn deepeval_test_cases_score_as_in_deepeval() {
    fn metric_of(key: &str) -> CallMetric {
        format!("deepeval.tool_correctness|{key}").parse().unwrap()
    }
    let mut compared = 0;
    let file = "deepeval_tool_correctness.json";
    score_vectors(file, TraceFormat::Deepeval, metric_of, |case, key, ours, tolerance| {
        let theirs = &case.expected[key];
        // Where DeepEval ends with an error we have a result; karat-metrics tests which.
        if theirs.get("error").is_none() {
            let what = format!("{} {key}", case.id);
            assert_close(ours, theirs["score"].as_f64().unwrap(), tolerance, &what);
            compared += 1;
        }
    });
    assert!(compared > 0);
}
