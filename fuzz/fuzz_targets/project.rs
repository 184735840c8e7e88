//! karat.toml: read, or refused with an error that names the line.
#![no_main]

use karat_io::input;

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Project {
    #[serde(default)]
    retrieval: Vec<karat_retrieval::Entry>,
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(project) = input::parse_toml::<Project>("karat.toml", bytes) {
        for entry in project.retrieval {
            let _ = entry.gate.validate();
            let _ = entry.system.reference();
        }
    }
});
