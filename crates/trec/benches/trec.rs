//! Benchmarks of scoring two files: `cargo bench -p trec`.

use std::fmt::Write as _;

use divan::Bencher;
use trec::{Input, Options, QueryScores, score};

fn main() {
    divan::main();
}

/// Two files with as many queries, 100 results and 10 judgements each.
struct Files {
    _folder: tempfile::TempDir,
    qrels: Input,
    run: Input,
    bytes: usize,
}

impl Files {
    fn new(queries: u32) -> std::io::Result<Self> {
        let (mut qrels, mut run) = (String::new(), String::new());
        for query in 0..queries {
            for rank in 0..100 {
                let document = (query * 31 + rank * 7919) % 100_000;
                let score = 30.0 - f64::from(rank) / 7.0;
                _ = writeln!(run, "q{query} Q0 d{document} {rank} {score:.6} bench");
                if rank % 10 == 3 {
                    _ = writeln!(qrels, "q{query} 0 d{document} {}", rank % 3);
                }
            }
        }
        let folder = tempfile::tempdir()?;
        let (qrels_path, run_path) = (folder.path().join("qrels"), folder.path().join("run"));
        std::fs::write(&qrels_path, &qrels)?;
        std::fs::write(&run_path, &run)?;
        let bytes = qrels.len() + run.len();
        let (qrels, run) = (Input::file(qrels_path), Input::file(run_path));
        Ok(Self { _folder: folder, qrels, run, bytes })
    }
}

#[divan::bench(args = [100, 1000, 10_000])]
fn summary(bencher: Bencher<'_, '_>, queries: u32) {
    let Ok(files) = Files::new(queries) else { return };
    bencher
        .counter(divan::counter::BytesCount::new(files.bytes))
        .bench_local(|| score(&files.qrels, &files.run, &Options::default(), None).is_ok());
}

#[divan::bench(args = [100, 1000, 10_000])]
fn every_query(bencher: Bencher<'_, '_>, queries: u32) {
    let Ok(files) = Files::new(queries) else { return };
    bencher.counter(divan::counter::BytesCount::new(files.bytes)).bench_local(|| {
        let mut scored = 0;
        let mut count = |_: &QueryScores<'_>| scored += 1;
        let done = score(&files.qrels, &files.run, &Options::default(), Some(&mut count));
        (done.is_ok(), scored)
    });
}
