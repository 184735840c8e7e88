//! A run journal, torn or foreign: read, or refused with an error.
#![no_main]

use std::collections::BTreeMap;
use std::path::Path;

use karat_core::journal::{Identity, SCHEMA, read_entries};
use karat_core::report::{DatasetRef, Kind, SystemRef};
use karat_retrieval::system::Ranking;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let text = |text: &str| text.to_owned();
    let identity = Identity {
        schema: text(SCHEMA),
        kind: Kind::Ranking,
        name: text("r"),
        dataset: DatasetRef { id: text("d"), version: text("v1"), digest: text("x") },
        system: SystemRef {
            kind: text("k"),
            name: text("n"),
            version: None,
            settings: BTreeMap::new(),
        },
        runs: 2,
        seed: 0,
        part: None,
    };
    let path = Path::new("journal.jsonl");
    if let Ok((whole, _)) = read_entries::<Ranking>(path, &mut &bytes[..], &identity) {
        assert!(whole <= bytes.len() as u64);
    }
});
