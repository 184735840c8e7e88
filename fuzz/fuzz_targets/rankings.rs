//! A file of rankings (lines, journal, report, TREC run) against a small dataset: scored, or refused.
#![no_main]

use karat_retrieval::dataset::{Dataset, Labels};
use karat_retrieval::rankings::{Absent, Rankings};
use karat_retrieval::{ScoreOptions, score_rankings};

const CORPUS: &str = r#"{"tools": [{"server": "a", "tool": "b", "description": "x"}, {"server": "a", "tool": "c", "description": "y"}]}"#;
const GOLDEN: &str = r#"{"id": "q", "query": "x", "labels": [{"tool_id": "a:b", "relevance": 2}]}"#;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        path
    };
    let (corpus, golden) = (write("c.json", CORPUS), write("g.jsonl", GOLDEN));
    let dataset = Dataset::from_files(&corpus, &golden, Labels::MustExist).expect("a dataset");
    for name in ["r.jsonl", "r.json", "r.trec"] {
        let path = write(name, text);
        let loaded = match name {
            "r.trec" => Rankings::load_trec(&path, Absent::Empty),
            _ => Rankings::load(&path),
        };
        // A run number can be anything that a file says; thousands of runs only take time.
        let Ok(rankings) = loaded else { continue };
        if rankings.runs() > 100 {
            continue;
        }
        let options = ScoreOptions { max_errors: 1.0, ..ScoreOptions::default() };
        if let Ok(report) = score_rankings(dataset.clone(), &rankings, &path, &options) {
            // A number of tokens is not a rate.
            for metric in report.metrics.iter().filter(|metric| metric.id != "answer_tokens") {
                assert!(metric.value.is_none_or(|value| (0.0..=1.0).contains(&value)), "{metric:?}");
            }
        }
    }
});
