//! Recordings of sessions: read and ready to be played, or refused with an error.
#![no_main]

use karat_mcp::replay::Recording;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("session.jsonl");
    std::fs::write(&path, bytes).expect("written");
    let _ = Recording::read(&path);
});
