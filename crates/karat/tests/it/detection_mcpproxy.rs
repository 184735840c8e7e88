//! The published verdicts of mcpproxy's detectors on its two corpora give the published figures.
//!
//! The fixture has ids, labels, categories and verdicts. A description plays no part in scoring, so the
//! corpora here have made-up ones.

use crate::common;

use common::Scratch;
use serde_json::{Value, json};

/// `detection score` of one of the two corpora.
fn scored(name: &str) -> Value {
    let fixture: Value =
        serde_json::from_str(include_str!("../fixtures/mcpproxy_verdicts.json")).unwrap();
    let corpus = &fixture["corpora"][name];
    let detectors: Vec<&str> =
        corpus["detectors"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    let (mut entries, mut verdicts) = (Vec::new(), Vec::new());
    for row in corpus["entries"].as_array().unwrap() {
        let (id, label, category) = (&row[0], &row[1], &row[2]);
        entries.push(json!({
            "id": id, "label": label, "category": category,
            "description": format!("Tool {}.", id.as_str().unwrap()),
            "provenance": {"source": "self-authored", "license": "self-authored"},
        }));
        let verdict = |detector: &&str| {
            let severity = row[3].get(detector);
            json!({
                "detector": detector, "flagged": severity.is_some(),
                "max_severity": severity.unwrap_or(&json!("")), "detections": [],
            })
        };
        verdicts.push(json!({
            "id": id, "label": label, "category": category,
            "verdicts": detectors.iter().map(verdict).collect::<Vec<_>>(),
        }));
    }
    let scratch = Scratch::new();
    scratch.write("corpus.json", json!({"version": "v1", "entries": entries}).to_string());
    let verdicts = json!({"corpus_version": "v1", "detectors": detectors, "entries": verdicts});
    scratch.write("verdicts.json", verdicts.to_string());
    let words =
        ["detection", "score", "--corpus", "corpus.json", "--verdicts", "verdicts.json", "--json"];
    scratch.karat(&words).expect(0).json()
}

/// A rate of one detector as a fraction.
fn rate(report: &Value, detector: &str, metric: &str) -> (f64, u64) {
    let slices = report["slices"].as_array().unwrap();
    let slice = slices
        .iter()
        .find(|slice| slice["by"] == "detector" && slice["value"] == detector)
        .unwrap_or_else(|| panic!("no slice of {detector}"));
    let metrics = slice["metrics"].as_array().unwrap();
    let metric = metrics.iter().find(|found| found["id"] == metric).unwrap();
    (metric["value"].as_f64().unwrap(), metric["n"].as_u64().unwrap())
}

fn fraction(found: u64, of: u64) -> (f64, u64) {
    (found as f64 / of as f64, of)
}

#[test]
fn published_figures_of_the_security_corpus() {
    let report = scored("security");
    let expected = [
        ("sensitive-data", fraction(3, 20), fraction(1, 23)),
        ("baseline.hard", fraction(6, 20), fraction(0, 23)),
        ("baseline.any", fraction(9, 20), fraction(2, 23)),
    ];
    for (detector, recall, fpr) in expected {
        assert_eq!(rate(&report, detector, "recall"), recall, "{detector}");
        assert_eq!(rate(&report, detector, "fpr"), fpr, "{detector}");
    }
}

#[test]
fn published_figures_of_the_detect_corpus() {
    let report = scored("detect");
    let expected = [
        ("baseline.hard", fraction(29, 31), fraction(0, 21)),
        ("baseline.any", fraction(30, 31), fraction(11, 21)),
    ];
    for (detector, recall, hard) in expected {
        assert_eq!(rate(&report, detector, "recall"), recall, "{detector}");
        assert_eq!(rate(&report, detector, "fpr_hard"), hard, "{detector}");
    }
}
