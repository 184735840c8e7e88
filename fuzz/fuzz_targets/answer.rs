//! How an answer is read, and the answer, split at the first line of dashes: a ranking, or a reason.
#![no_main]

use karat_io::input::parse_json;
use karat_retrieval::dataset::{Dataset, Labels};
use karat_retrieval::systems::answer::{AnswerConfig, AnswerReader};

const CORPUS: &str = r#"{"tools": [{"server": "a__b", "tool": "c", "description": "x"}]}"#;
const GOLDEN: &str = r#"{"id": "q", "query": "x", "labels": [{"tool_id": "a__b:c", "relevance": 2}]}"#;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let (config, answer) = text.split_once("\n---\n").unwrap_or(("{}", text));
    let Ok(config) = parse_json::<AnswerConfig>("config", config.as_bytes()) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (corpus, golden) = (folder.path().join("c.json"), folder.path().join("g.jsonl"));
    std::fs::write(&corpus, CORPUS).expect("written");
    std::fs::write(&golden, GOLDEN).expect("written");
    let dataset = Dataset::from_files(&corpus, &golden, Labels::MustExist).expect("a dataset");
    if let Ok(reader) = AnswerReader::new(&config, &dataset, folder.path(), false) {
        let _ = reader.read(answer.as_bytes());
    }
});
