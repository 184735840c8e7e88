//! Traces in the shapes of others: read and scored within bounds, or refused with a class.
#![no_main]

use karat_agent::marks::{mark, peer_metrics};
use karat_agent::shapes::{Read, Shape, Traces};
use karat_agent::{Tools, Trace};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // The first byte chooses the shape, so that each file of the corpus is of one.
    let Some((first, text)) = bytes.split_first() else { return };
    let shape = Shape::ALL[usize::from(*first) % Shape::ALL.len()];
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("traces.jsonl");
    std::fs::write(&path, text).expect("written");
    let metrics = peer_metrics();
    let Ok(mut traces) = Traces::open(&path, shape, &metrics) else { return };
    while let Ok(Some(read)) = traces.next_trace() {
        match read {
            Read::Bad(bad) => assert!(bad.line > 0 && !bad.class.is_empty()),
            Read::Trace(_, trace) => scored(&trace),
        }
    }
});

fn scored(trace: &Trace) {
    let marks = mark(trace, &Tools::default(), &peer_metrics());
    for (id, score) in &marks.scores {
        let Ok(score) = score else { continue };
        let counts = id.starts_with("run.") || id == "calls.first_error";
        assert!(score.is_finite() && *score >= 0.0 && (counts || *score <= 1.0), "{id} {score}");
    }
}
