//! A verdict file (lines, scan-verdict, SARIF) against a small corpus: scored, or refused with an error.
#![no_main]

use karat_detection::dataset::Dataset;
use karat_detection::{ScoreOptions, score_verdicts};

const CORPUS: &str = r#"{"version": "v1", "entries": [
    {"id": "a", "description": "Reads keys.", "label": "malicious", "category": "tool_poisoning", "provenance": {"source": "self-authored", "license": "self-authored"}},
    {"id": "b", "description": "Adds.", "label": "benign", "category": "hard_negative", "provenance": {"source": "self-authored", "license": "self-authored"}}]}"#;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let folder = tempfile::tempdir().expect("a folder");
    let corpus = folder.path().join("corpus.json");
    std::fs::write(&corpus, CORPUS).expect("written");
    let dataset = Dataset::from_file(&corpus).expect("a corpus");
    for name in ["v.json", "v.jsonl", "v.sarif"] {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        if let Ok(report) = score_verdicts(dataset.clone(), &path, &ScoreOptions::default()) {
            for metric in &report.metrics {
                assert!(
                    metric.value.is_none_or(|value| (-1.0..=1.0).contains(&value)),
                    "{metric:?}"
                );
            }
        }
    }
});
