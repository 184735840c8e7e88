//! The lock of a corpus: read, or refused with an error.
#![no_main]

use karat_retrieval::snapshot::lock::Lock;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("lock.json");
    std::fs::write(&path, bytes).expect("written");
    let _ = Lock::read(&path);
});
