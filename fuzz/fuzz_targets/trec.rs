//! TREC judgements and run, split at the first line of dashes.
#![no_main]

use trec::{Options, score};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mark = b"\n---\n";
    let at = bytes.windows(mark.len()).position(|window| window == mark);
    let (qrels, run) = at.map_or((bytes, &b""[..]), |at| (&bytes[..at], &bytes[at + mark.len()..]));
    let folder = tempfile::tempdir().expect("a folder");
    let (qrels_path, run_path) = (folder.path().join("qrels"), folder.path().join("run"));
    std::fs::write(&qrels_path, qrels).expect("written");
    std::fs::write(&run_path, run).expect("written");
    // Reported query by query, the files are read another way; the result must be the same.
    let told = score(&qrels_path, &run_path, &Options::default(), Some(&mut |_| {}));
    if let Ok(summary) = score(&qrels_path, &run_path, &Options::default(), None) {
        assert_eq!(told.expect("readable once, readable twice").evaluated, summary.evaluated);
        for mean in &summary.means {
            if let Ok(value) = mean.over_evaluated.value() {
                assert!((0.0..=1.0 + 1e-9).contains(&value), "{}: {value}", mean.measure);
            }
        }
    }
});
