//! The manifest of a dataset: read, or refused with an error.
#![no_main]

use karat_core::dataset::Manifest;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(manifest) = Manifest::parse("manifest.toml", bytes) {
        let again = Manifest::parse("manifest.toml", manifest.to_toml().as_bytes());
        assert_eq!(again.expect("what we wrote can be read"), manifest);
    }
});
