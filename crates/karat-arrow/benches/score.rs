//! The time it takes to score batches and to merge partial results, on one thread.
//!
//! First a million rankings, traces and verdicts each, made batch by batch and scored and added up as a
//! worker would: rows per second, and peak memory, which does not grow with their number. Then the merge
//! and the report of 100 partial results. Then single cases with divan. Making the batches is not
//! measured. Run with `cargo bench -p karat-arrow --bench score`.

#![allow(clippy::print_stdout, reason = "a program that prints")]
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot run should stop")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use divan::Bencher;
use divan::counter::ItemsCount;
use karat_arrow::arrow_array::builder::{
    BooleanBuilder, Float64Builder, Int64Builder, ListBuilder, StringBuilder, StructBuilder,
};
use karat_arrow::arrow_array::{ArrayRef, RecordBatch};
use karat_arrow::arrow_schema::{DataType, Field, Fields};
use karat_arrow::{Kind, Options, Partial, Scorer};
use karat_metrics::stats::random::Draws;

const BATCH: usize = 10_000;

fn main() {
    for (name, kind, make) in CASES {
        in_batches(name, *kind, *make, 1_000_000);
    }
    merge_of_workers(100, 1_000);
    divan::main();
}

type Make = fn(&mut Draws, usize) -> RecordBatch;

const CASES: &[(&str, Kind, Make)] = &[
    ("traces", Kind::Traces, traces),
    ("traces as documents", Kind::Traces, documents),
    ("rankings", Kind::Rankings, rankings),
    ("verdicts", Kind::Verdicts, verdicts),
];

/// Scores and adds up `rows` rows, only a batch of them in memory at a time.
fn in_batches(name: &str, kind: Kind, make: Make, rows: usize) {
    let scorer = Scorer::new(kind, Options::default()).unwrap();
    let mut partial = Partial::new(kind, &Options::default()).unwrap();
    let mut draws = Draws::from_seed(27);
    let (mut scoring, mut adding) = (Duration::ZERO, Duration::ZERO);
    let mut before = None;
    for _ in 0..rows / BATCH {
        let batch = make(&mut draws, BATCH);
        let start = Instant::now();
        let scored = scorer.score(&batch).unwrap();
        scoring += start.elapsed();
        let start = Instant::now();
        partial.add(&scored).unwrap();
        adding += start.elapsed();
        before.get_or_insert_with(peak_kib);
    }
    let per_second = rows as f64 / (scoring + adding).as_secs_f64();
    println!(
        "{rows} {name}: {per_second:.0} per second on one thread (scored in {:.2} s, added in {:.2} s); \
         peak memory {} KiB after the first batch, {} KiB at the end; partial result {} bytes",
        scoring.as_secs_f64(),
        adding.as_secs_f64(),
        before.unwrap_or(0),
        peak_kib(),
        partial.to_bytes().len(),
    );
    partial.report().unwrap();
}

/// Merges the partial results of many workers, by way of bytes, and reports.
fn merge_of_workers(workers: usize, rows: usize) {
    let bytes = partials(workers, rows);
    let start = Instant::now();
    let merged = merge(&bytes);
    let merging = start.elapsed();
    let start = Instant::now();
    merged.report().unwrap();
    println!(
        "{workers} partial results of {} bytes: merged in {:.1} ms, report in {:.1} ms",
        bytes[0].len(),
        merging.as_secs_f64() * 1e3,
        start.elapsed().as_secs_f64() * 1e3,
    );
}

fn partials(workers: usize, rows: usize) -> Vec<Vec<u8>> {
    let scorer = Scorer::new(Kind::Traces, Options::default()).unwrap();
    let mut draws = Draws::from_seed(27);
    let one = |_| {
        let mut partial = Partial::new(Kind::Traces, &Options::default()).unwrap();
        partial.add(&scorer.score(&traces(&mut draws, rows)).unwrap()).unwrap();
        partial.to_bytes()
    };
    (0..workers).map(one).collect()
}

fn merge(bytes: &[Vec<u8>]) -> Partial {
    let mut merged = Partial::new(Kind::Traces, &Options::default()).unwrap();
    for bytes in bytes {
        merged.merge(Partial::from_bytes(bytes).unwrap()).unwrap();
    }
    merged
}

/// The most memory that the program has had, where the system says so.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

#[divan::bench]
fn score_traces(bencher: Bencher<'_, '_>) {
    score(bencher, Kind::Traces, traces);
}

#[divan::bench]
fn score_documents(bencher: Bencher<'_, '_>) {
    score(bencher, Kind::Traces, documents);
}

#[divan::bench]
fn score_rankings(bencher: Bencher<'_, '_>) {
    score(bencher, Kind::Rankings, rankings);
}

#[divan::bench]
fn score_verdicts(bencher: Bencher<'_, '_>) {
    score(bencher, Kind::Verdicts, verdicts);
}

#[divan::bench]
fn merge_a_hundred(bencher: Bencher<'_, '_>) {
    let bytes = partials(100, 1_000);
    bencher.counter(ItemsCount::new(100_usize)).bench_local(|| merge(&bytes));
}

fn score(bencher: Bencher<'_, '_>, kind: Kind, make: Make) {
    let batch = make(&mut Draws::from_seed(27), BATCH);
    let scorer = Scorer::new(kind, Options::default()).unwrap();
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| scorer.score(&batch).unwrap());
}

fn texts(rows: usize, mut value: impl FnMut(usize) -> String) -> ArrayRef {
    let mut column = StringBuilder::new();
    (0..rows).for_each(|row| column.append_value(value(row)));
    Arc::new(column.finish())
}

const TOOLS: [&str; 8] =
    ["search", "open_page", "create_issue", "list_files", "read_file", "send", "add", "query"];

/// The calls that a task expects: one to four, with two arguments each.
fn expected(task: usize) -> Vec<(String, String)> {
    let call = |place: usize| {
        let name = TOOLS[(task * 5 + place * 3) % TOOLS.len()];
        let arguments = format!(
            "{{\"path\":\"/projects/{task}/part-{place}.md\",\"limit\":{},\"recursive\":true}}",
            task % 50
        );
        (name.to_owned(), arguments)
    };
    (0..1 + task % 4).map(call).collect()
}

/// The calls that an agent made: mostly the expected ones.
fn made(draws: &mut Draws, task: usize) -> Vec<(String, String)> {
    let mut calls = expected(task);
    match draws.index(10) {
        0 => _ = calls.pop(),
        1 => calls.push(("search".to_owned(), "{\"q\":\"anything\"}".to_owned())),
        2 => calls[0].1 = "{\"path\":\"/elsewhere\"}".to_owned(),
        3 => calls.reverse(),
        _ => {}
    }
    calls
}

fn calls(rows: &[Vec<(String, String)>]) -> ArrayRef {
    let fields = Fields::from(vec![
        Field::new("name", DataType::Utf8, false),
        Field::new("arguments", DataType::Utf8, true),
    ]);
    let mut list = ListBuilder::new(StructBuilder::from_fields(fields, 0));
    for row in rows {
        for (name, arguments) in row {
            let call = list.values();
            call.field_builder::<StringBuilder>(0).unwrap().append_value(name);
            call.field_builder::<StringBuilder>(1).unwrap().append_value(arguments);
            call.append(true);
        }
        list.append(true);
    }
    Arc::new(list.finish())
}

/// Traces of 2,000 tasks in 200 groups.
fn traces(draws: &mut Draws, rows: usize) -> RecordBatch {
    let tasks: Vec<usize> = (0..rows).map(|_| draws.index(2_000)).collect();
    let made: Vec<_> = tasks.iter().map(|task| made(draws, *task)).collect();
    let wanted: Vec<_> = tasks.iter().map(|task| expected(*task)).collect();
    let mut ms = Float64Builder::new();
    (0..rows).for_each(|_| ms.append_value(draws.index(60_000) as f64 / 3.0));
    RecordBatch::try_from_iter([
        ("id", texts(rows, |row| format!("task-{}", tasks[row]))),
        ("group", texts(rows, |row| format!("server-{}", tasks[row] % 200))),
        ("calls", calls(&made)),
        ("expected_calls", calls(&wanted)),
        ("duration_ms", Arc::new(ms.finish()) as ArrayRef),
    ])
    .unwrap()
}

/// The same as documents of Karat's own format.
fn documents(draws: &mut Draws, rows: usize) -> RecordBatch {
    let list = |calls: &[(String, String)]| {
        let one = |(name, arguments): &(String, String)| {
            format!("{{\"name\":\"{name}\",\"arguments\":{arguments}}}")
        };
        calls.iter().map(one).collect::<Vec<_>>().join(",")
    };
    let trace = |_| {
        let task = draws.index(2_000);
        let (made, wanted) = (made(draws, task), expected(task));
        format!(
            "{{\"id\":\"task-{task}\",\"calls\":[{}],\"expect\":{{\"calls\":[{}]}}}}",
            list(&made),
            list(&wanted)
        )
    };
    RecordBatch::try_from_iter([("trace", texts(rows, trace))]).unwrap()
}

/// Ten results of a thousand tools, two of which are relevant.
fn rankings(draws: &mut Draws, rows: usize) -> RecordBatch {
    let mut ranked = ListBuilder::new(StringBuilder::new());
    let fields = Fields::from(vec![
        Field::new("id", DataType::Utf8, false),
        Field::new("grade", DataType::Int64, false),
    ]);
    let mut relevant = ListBuilder::new(StructBuilder::from_fields(fields, 0));
    for _ in 0..rows {
        let first = draws.index(990);
        for place in 0..10 {
            ranked.values().append_value(format!("server-{}:tool-{}", place % 3, first + place));
        }
        ranked.append(true);
        for grade in 1..3 {
            let judged = relevant.values();
            let tool = first + draws.index(15);
            let id = format!("server-{}:tool-{}", tool.wrapping_sub(first) % 3, tool + grade * 7);
            judged.field_builder::<StringBuilder>(0).unwrap().append_value(id);
            let grade = i64::try_from(grade).unwrap();
            judged.field_builder::<Int64Builder>(1).unwrap().append_value(grade);
            judged.append(true);
        }
        relevant.append(true);
    }
    RecordBatch::try_from_iter([
        ("id", texts(rows, |row| format!("query-{row}"))),
        ("ranked", Arc::new(ranked.finish()) as ArrayRef),
        ("relevant", Arc::new(relevant.finish())),
    ])
    .unwrap()
}

/// Verdicts with scores of two digits, by 500 servers.
fn verdicts(draws: &mut Draws, rows: usize) -> RecordBatch {
    let (mut verdict, mut score) = (BooleanBuilder::new(), Float64Builder::new());
    for _ in 0..rows {
        verdict.append_value(draws.index(3) == 0);
        score.append_value(draws.index(100) as f64 / 100.0);
    }
    RecordBatch::try_from_iter([
        ("id", texts(rows, |row| format!("tool-{row}"))),
        ("group", texts(rows, |_| format!("server-{}", draws.index(500)))),
        ("label", texts(rows, |row| ["malicious", "benign"][row % 2].to_owned())),
        ("verdict", Arc::new(verdict.finish()) as ArrayRef),
        ("score", Arc::new(score.finish())),
    ])
    .unwrap()
}
