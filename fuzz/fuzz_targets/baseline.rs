//! A baseline file: read, or refused with an error.
#![no_main]

use std::path::Path;

use karat_core::baseline::Baseline;

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(baseline) = Baseline::parse(Path::new("baseline.json"), text) {
        let again = Baseline::parse(Path::new("baseline.json"), &baseline.to_text());
        assert_eq!(again.expect("what we wrote can be read"), baseline);
    }
});
