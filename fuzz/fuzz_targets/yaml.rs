//! Any YAML: read within bounds, or refused with an error.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = karat_io::input::parse_yaml::<serde_json::Value>("golden.yaml", bytes);
});
