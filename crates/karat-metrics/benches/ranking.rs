//! Benchmarks of one query: joining and sorting, and computing all measures of the result.
//! Run with `cargo bench -p karat-metrics --bench ranking`.

use divan::{Bencher, black_box};
use karat_metrics::ranking::{JudgedRanking, METRICS, Measure, Rules};

fn main() {
    divan::main();
}

type Judgements = Vec<(String, i64)>;
type Results = Vec<(String, f64)>;

/// A query with ten judged documents and `depth` results, scores with some ties.
fn query(depth: u32) -> (Judgements, Results) {
    let judged =
        (0..10).map(|n| (format!("server:tool_{}", n * depth / 10), i64::from(n % 3))).collect();
    let scored =
        (0..depth).map(|n| (format!("server:tool_{n}"), f64::from(n * 7919 % depth) / 2.0));
    (judged, scored.collect())
}

fn join(judged: &[(String, i64)], scored: &[(String, f64)]) -> JudgedRanking {
    let judged = judged.iter().map(|(id, grade)| (&**id, *grade));
    let scored = scored.iter().map(|(id, score)| (&**id, *score));
    JudgedRanking::from_scored(judged, scored, &Rules::default()).unwrap_or_default()
}

#[divan::bench(args = [10, 100, 1000])]
fn join_and_order(bencher: Bencher<'_, '_>, depth: u32) {
    let (judged, scored) = query(depth);
    bencher.bench_local(|| join(black_box(&judged), black_box(&scored)));
}

#[divan::bench(args = [10, 100, 1000])]
fn all_measures(bencher: Bencher<'_, '_>, depth: u32) {
    let (judged, scored) = query(depth);
    let ranking = join(&judged, &scored);
    let measures: Vec<Measure> =
        METRICS.iter().filter_map(|metric| metric.id.replace("@k", "@10").parse().ok()).collect();
    bencher.bench_local(|| {
        measures.iter().filter_map(|measure| black_box(&ranking).score(*measure).ok()).sum::<f64>()
    });
}
