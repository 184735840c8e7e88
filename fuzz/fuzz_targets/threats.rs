//! A threat corpus as one document and as lines: read and audited, or refused with an error.
#![no_main]

use karat_detection::audit::audit;
use karat_detection::dataset::Dataset;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["corpus.json", "corpus.jsonl"] {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        if let Ok(dataset) = Dataset::from_file_for_audit(&path) {
            let _ = audit(&dataset);
        }
    }
});
