//! Suites: read, or refused with an error. Every expectation of one that was read can be held
//! against answers of all kinds, and a missing snapshot never passes.
#![no_main]

use std::path::Path;

use karat_server::suite::Suite;
use karat_core::expect::Answer;
use serde_json::json;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let answers = [
        json!({"content": []}),
        json!({"content": [{"type": "text", "text": "{\"a\": [1, 2.5, null]}"}], "isError": true}),
        json!({"content": [{"type": "image"}], "structuredContent": {"a": {"b": "x"}}}),
        json!("no result"),
    ];
    for name in ["suite.yaml", "suite.json"] {
        let Ok(suite) = Suite::parse(Path::new(name), bytes) else { continue };
        if let Some(server) = &suite.server {
            let _ = karat_server::suite::server::read(server);
        }
        for matcher in suite.cases.iter().flat_map(|case| case.steps()).flat_map(|step| &step.matchers) {
            for answer in answers.iter().map(Answer::new) {
                let checked = matcher.check(&answer);
                assert!(!(matcher.is_snapshot() && checked.is_ok()), "a snapshot that is nowhere");
                let _ = matcher.captured(&answer);
            }
        }
    }
});
