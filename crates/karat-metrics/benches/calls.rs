//! Benchmarks of reading and comparing calls: `cargo bench -p karat-metrics --bench calls`.
//!
//! Each benchmark works on one sample, so its time is the cost of a sample.

// A benchmark that cannot build its data has nothing to measure.
#![allow(clippy::unwrap_used, missing_docs)]

use divan::{Bencher, black_box};
use karat_metrics::calls::deepeval::ToolCorrectness;
use karat_metrics::calls::json::{self, Reader};
use karat_metrics::calls::{Arguments, Call, Expected, alignment, f1, ragas};

fn main() {
    divan::main();
}

/// The text of the arguments of `count` calls; every third one differs between the variants.
fn texts(count: usize, variant: usize) -> Vec<String> {
    let text = |n: usize| {
        let limit = if n % 3 == 2 { n + variant } else { n };
        format!(
            r#"{{"query": "weather in Paris", "limit": {limit}, "unit": "celsius", "exact": true}}"#
        )
    };
    (0..count).map(text).collect()
}

fn calls(texts: &[String]) -> Vec<Call<'_>> {
    let names = ["search_web", "get_weather", "send_email"];
    let named = texts.iter().zip(names.into_iter().cycle());
    named
        .map(|(text, name)| Call::new(name, Arguments::read(&mut Reader::new(text)).unwrap()))
        .collect()
}

/// Reads both lists anew each time, as scoring a file does, then measures them.
fn with_samples<R>(
    bencher: Bencher<'_, '_>,
    count: usize,
    measure: impl Fn(&[Call<'_>], &[Call<'_>]) -> R,
) {
    let (called, expected) = (texts(count, 0), texts(count, 1));
    bencher.bench_local(|| {
        let (called, expected) = (calls(black_box(&called)), calls(black_box(&expected)));
        black_box(measure(&called, &expected));
    });
}

#[divan::bench]
fn read_value(bencher: Bencher<'_, '_>) {
    let text = texts(1, 0).remove(0);
    bencher.bench_local(|| drop(black_box(json::parse(black_box(&text)))));
}

#[divan::bench(args = [3, 100])]
fn read_only(bencher: Bencher<'_, '_>, count: usize) {
    with_samples(bencher, count, |called, expected| called.len() + expected.len());
}

#[divan::bench(args = [3, 100])]
fn ragas_accuracy(bencher: Bencher<'_, '_>, count: usize) {
    with_samples(bencher, count, ragas::tool_call_accuracy);
}

#[divan::bench(args = [3, 100])]
fn ragas_accuracy_unordered(bencher: Bencher<'_, '_>, count: usize) {
    with_samples(bencher, count, ragas::tool_call_accuracy_unordered);
}

#[divan::bench(args = [3, 100])]
fn ragas_f1(bencher: Bencher<'_, '_>, count: usize) {
    with_samples(bencher, count, ragas::tool_call_f1);
}

#[divan::bench(args = [3, 100])]
fn deepeval_default(bencher: Bencher<'_, '_>, count: usize) {
    let setting: ToolCorrectness = "default|name+input".parse().unwrap();
    with_samples(bencher, count, |called, expected| setting.measure(called, expected));
}

#[divan::bench(args = [3, 100])]
fn deepeval_ordered(bencher: Bencher<'_, '_>, count: usize) {
    let setting: ToolCorrectness = "ordered|name+input".parse().unwrap();
    with_samples(bencher, count, |called, expected| setting.measure(called, expected));
}

#[divan::bench(args = [3, 100])]
fn calls_alignment(bencher: Bencher<'_, '_>, count: usize) {
    with_samples(bencher, count, alignment::alignment);
}

#[divan::bench(args = [3, 100])]
fn calls_f1(bencher: Bencher<'_, '_>, count: usize) {
    with_samples(bencher, count, f1::f1);
}

#[divan::bench(args = [3, 100])]
fn expected_alignment(bencher: Bencher<'_, '_>, count: usize) {
    with_samples(bencher, count, |called, expected| Expected::from(expected).alignment(called));
}
