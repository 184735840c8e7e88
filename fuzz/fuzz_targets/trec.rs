//! TREC judgements and run, split at the first line of dashes.
#![no_main]

use std::io::Cursor;
use std::sync::Arc;

use trec::{Input, Options, score};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mark = b"\n---\n";
    let at = bytes.windows(mark.len()).position(|window| window == mark);
    let (qrels, run) = at.map_or((bytes, &b""[..]), |at| (&bytes[..at], &bytes[at + mark.len()..]));
    let input = |name: &str, bytes: &[u8]| {
        let bytes: Arc<[u8]> = bytes.into();
        Input::new(name, move || Ok(Cursor::new(Arc::clone(&bytes))))
    };
    let (qrels, run) = (input("qrels", qrels), input("run", run));
    // Reported query by query, the files are read another way; the result must be the same.
    let told = score(&qrels, &run, &Options::default(), Some(&mut |_| {}));
    if let Ok(summary) = score(&qrels, &run, &Options::default(), None) {
        assert_eq!(told.expect("readable once, readable twice").evaluated, summary.evaluated);
        for mean in &summary.means {
            if let Ok(value) = mean.over_evaluated.value() {
                assert!((0.0..=1.0 + 1e-9).contains(&value), "{}: {value}", mean.measure);
            }
        }
    }
});
