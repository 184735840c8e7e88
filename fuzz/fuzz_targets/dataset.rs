//! A corpus and a golden file, split at the first line of dashes.
#![no_main]

use karat_retrieval::dataset::{Dataset, Labels};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let (corpus, golden) = text.split_once("\n---\n").unwrap_or((text, ""));
    let folder = tempfile::tempdir().expect("a folder");
    let (corpus_path, golden_path) = (folder.path().join("c.json"), folder.path().join("g.jsonl"));
    std::fs::write(&corpus_path, corpus).expect("written");
    std::fs::write(&golden_path, golden).expect("written");
    if let Ok(dataset) = Dataset::from_files(&corpus_path, &golden_path, Labels::MayDangle) {
        let _ = karat_retrieval::audit::audit(&dataset);
    }
});
