//! Archives (tar, zip, compressed or not): their members within bounds, or refused with an error.
#![no_main]

use karat_io::input::{InputError, Limits, members};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("runs.tar");
    std::fs::write(&path, bytes).expect("written");
    let limits = Limits { bytes: 1 << 20, ..Limits::default() };
    let _ = members::<InputError>(&path, &limits, |_| true, |member| {
        assert!(member.bytes.len() <= 1 << 20, "{} is too large", member.name);
        Ok(())
    });
});
