//! Traces of both shapes: scored within 0..1, or refused with an error.
#![no_main]

use std::ops::ControlFlow;

use karat_agent::{CallMetric, Format, Options, score_file};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("traces.jsonl");
    std::fs::write(&path, bytes).expect("written");
    for (format, ids) in [
        (Format::Ragas, ["ragas.tool_call_accuracy", "ragas.tool_call_f1", "calls.alignment"]),
        (
            Format::DeepEval,
            ["deepeval.tool_correctness|ordered|name+input", "calls.exact", "calls.f1"],
        ),
    ] {
        let metrics = ids.map(|id| id.parse::<CallMetric>().expect("a metric")).to_vec();
        let _ = score_file(&path, format, &Options::new(metrics), &mut |item| {
            assert!(item.scores.iter().all(|score| (0.0..=1.0).contains(&score.score)));
            ControlFlow::Continue(())
        });
    }
});
