//! Traces in every format: read and scored within bounds, or refused with an error.
#![no_main]

use karat_agent::{CallMetric, Tools, TraceFiles, TraceFormat, TraceSource, recognize, streaming};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // The first byte chooses the format, so that each file of the corpus has one.
    let Some((first, text)) = bytes.split_first() else { return };
    let format = TraceFormat::ALL[usize::from(*first) % TraceFormat::ALL.len()];
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("traces.jsonl");
    std::fs::write(&path, text).expect("written");
    let (tools, metrics) = (Tools::default(), CallMetric::usual());
    let paths = std::slice::from_ref(&path);
    let Ok(formats) = recognize(paths, format) else { return };
    let files = TraceFiles { files: paths, formats: &formats, metrics: &metrics };
    let source = TraceSource { files, tasks: None, max_malformed: 1.0, prices: None };
    let threads = std::num::NonZero::new(1);
    let _ = streaming::score(&source, &tools, threads, &mut |item| {
        for (id, score) in item.values() {
            let Some(score) = score else { continue };
            // Judged elsewhere, on any scale.
            if id == "outcome.score" {
                continue;
            }
            let counts = id.starts_with("run.") || id == "calls.first_error";
            assert!(score.is_finite() && score >= 0.0 && (counts || score <= 1.0), "{id} {score}");
        }
    });
});
