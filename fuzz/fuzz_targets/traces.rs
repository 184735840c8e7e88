//! Samples of RAGAS and DeepEval: scored within 0..1, or refused with an error.
#![no_main]

use karat_agent::{CallMetric, Tools, TraceFiles, TraceFormat, TraceSource, streaming};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("traces.jsonl");
    std::fs::write(&path, bytes).expect("written");
    for (format, ids) in [
        (TraceFormat::Ragas, ["ragas.tool_call_accuracy", "ragas.tool_call_f1", "calls.alignment"]),
        (
            TraceFormat::Deepeval,
            ["deepeval.tool_correctness|ordered|name+input", "calls.exact", "calls.f1"],
        ),
    ] {
        let metrics = ids.map(|id| id.parse::<CallMetric>().expect("a metric"));
        let files = TraceFiles {
            files: std::slice::from_ref(&path),
            formats: &[format],
            metrics: &metrics,
        };
        let source = TraceSource { files, tasks: None, max_malformed: 0.0, prices: None };
        let threads = std::num::NonZero::new(1);
        let _ = streaming::score(&source, &Tools::default(), threads, &mut |item| {
            let fits = |score: Option<f64>| score.is_none_or(|score| (0.0..=1.0).contains(&score));
            assert!(item.values().all(|(_, score)| fits(score)));
        });
    }
});
