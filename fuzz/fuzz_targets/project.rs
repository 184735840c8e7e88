//! The entries of karat.toml: read, or refused with an error that names the line.
#![no_main]

use std::path::Path;

use karat_core::project::read_entry;
use karat_io::input::TomlTable;
use karat_retrieval::Retrieval;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(mut document) = TomlTable::parse(Path::new("karat.toml"), text) else { return };
    for table in document.tables("retrieval").into_iter().flatten() {
        if let Ok((common, config)) = read_entry::<Retrieval>(table) {
            let _ = common.validate();
            let _ = config.system.reference();
        }
    }
});
