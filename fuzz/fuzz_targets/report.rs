//! A report or check document: read, or refused with an error.
#![no_main]

use std::path::Path;

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(reports) = karat_core::report::parse_reports(Path::new("report.json"), text) {
        // What was read can be written and is read back the same.
        for report in reports {
            let again = serde_json::to_string(&report).expect("a report is JSON");
            let back = karat_core::report::parse_reports(Path::new("report.json"), &again);
            assert_eq!(back.expect("what we wrote can be read"), [report]);
        }
    }
});
