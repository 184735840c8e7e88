//! JSON lines, plain or compressed: read within bounds, or refused with an error.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = karat_io::input::parse_json_lines::<Vec<serde_json::Value>>("golden.jsonl", bytes);
});
