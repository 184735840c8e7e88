//! Benchmarks of the statistics: the bootstrap of a mid-sized dataset, the exact test, an interval, a
//! curve.

use divan::{Bencher, black_box};
use karat_metrics::classification::Scores;
use karat_metrics::stats::*;

fn main() {
    divan::main();
}

fn scores(n: u32) -> Vec<f64> {
    (0..n).map(|i| f64::from(i * 7919 % 1000) / 1000.0).collect()
}

#[divan::bench(args = [100, 400, 2_000])]
fn bootstrap_mean(bencher: Bencher, n: u32) {
    let xs = scores(n);
    bencher.bench(|| Bootstrap::default().mean(black_box(&xs)));
}

#[divan::bench]
fn bootstrap_bca_400(bencher: Bencher) {
    let xs = scores(400);
    let bootstrap = Bootstrap { method: BootstrapMethod::Bca, ..Bootstrap::default() };
    bencher.bench(|| bootstrap.mean(black_box(&xs)));
}

#[divan::bench]
fn sign_flip_outcomes_400(bencher: Bencher) {
    let differences: Vec<f64> = (0..400).map(|i| f64::from(i % 3 - 1)).collect();
    bencher.bench(|| sign_flip(black_box(&differences), Alternative::TwoSided, 30, 10_000, 0));
}

#[divan::bench]
fn sign_flip_recalls_400(bencher: Bencher) {
    let differences: Vec<f64> =
        (0..400).map(|i| f64::from(i % 5 - 2) / f64::from(i % 4 + 1)).collect();
    bencher.bench(|| sign_flip(black_box(&differences), Alternative::TwoSided, 30, 10_000, 0));
}

#[divan::bench]
fn sign_flip_listed_30(bencher: Bencher) {
    let differences: Vec<f64> = (1..=30).map(|i| f64::from(i).sqrt()).collect();
    bencher.bench(|| sign_flip(black_box(&differences), Alternative::TwoSided, 30, 10_000, 0));
}

#[divan::bench]
fn sign_flip_random_400(bencher: Bencher) {
    let differences: Vec<f64> = (1..=400).map(|i| f64::from(i).sqrt()).collect();
    bencher.bench(|| sign_flip(black_box(&differences), Alternative::TwoSided, 30, 10_000, 0));
}

#[divan::bench(args = [400, 1_000_000, u64::MAX])]
fn clopper_pearson_interval(n: u64) -> bool {
    clopper_pearson(black_box(n / 3), n, 0.95).is_ok()
}

#[divan::bench]
fn sample_size(bencher: Bencher) {
    bencher.bench(|| sample_size_for_ceiling(black_box(0.01), 3, 0.95));
}

#[divan::bench(args = [1_000, 100_000])]
fn roc_auc(bencher: Bencher, n: u32) {
    let truth: Vec<bool> = (0..n).map(|i| i % 7 == 0).collect();
    let scores = scores(n);
    bencher.bench(|| Scores::new(black_box(&truth), &scores).map(|scores| scores.roc_auc()));
}
