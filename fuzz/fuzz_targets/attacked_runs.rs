//! Recorded runs under attack, in every format: read and counted, or refused with an error.
#![no_main]

use karat_resilience::recordings::{self, Filter, Format};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a folder");
    for (format, name) in
        [(Format::AgentDojo, "run.json"), (Format::Asb, "log.csv"), (Format::Native, "runs.jsonl")]
    {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("written");
        if let Ok(read) = recordings::read(&path, format, &Filter::default()) {
            for run in read.runs.iter() {
                assert_eq!(run.is_attacked(), run.outcome().is_some());
                assert!(!run.id().is_empty());
            }
        }
    }
});
