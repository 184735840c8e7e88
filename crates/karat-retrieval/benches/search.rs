//! The time search takes: building an index, answering a query, scoring the answers.
//! Run with `cargo bench -p karat-retrieval --bench search`.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot run should stop")]

use divan::Bencher;
use karat_core::journal::{Entry, Outcome};
use karat_core::report::DatasetRef;
use karat_retrieval::dataset::{Dataset, Label, Query, Tool};
use karat_retrieval::engines::Engine;
use karat_retrieval::engines::bm25::{Bm25, Fields};
use karat_retrieval::score;
use karat_retrieval::system::Ranking;
use serde_json::json;

fn main() {
    divan::main();
}

const WORDS: [&str; 40] = [
    "create",
    "delete",
    "list",
    "update",
    "search",
    "issue",
    "branch",
    "message",
    "channel",
    "file",
    "folder",
    "table",
    "query",
    "index",
    "invoice",
    "customer",
    "payment",
    "event",
    "calendar",
    "meeting",
    "image",
    "video",
    "server",
    "cluster",
    "deploy",
    "metric",
    "alert",
    "dashboard",
    "ticket",
    "comment",
    "user",
    "team",
    "role",
    "token",
    "secret",
    "bucket",
    "object",
    "queue",
    "topic",
    "stream",
];

fn word(n: usize) -> &'static str {
    WORDS[(n.wrapping_mul(2_654_435_761) >> 7) % WORDS.len()]
}

fn tools(count: usize) -> Vec<Tool> {
    (0..count)
        .map(|n| {
            let server = format!("server{:03}", n / 10);
            let name = format!("{}_{}_{n:06}", word(n), word(n + 1));
            let description: Vec<&str> = (0..30).map(|k| word(n * 31 + k)).collect();
            Tool {
                tool_id: format!("{server}:{name}"),
                server,
                tool: name,
                description: description.join(" "),
                input_schema: json!({"properties": {word(n + 2): {"description": word(n + 3)}}}),
                ..Tool::default()
            }
        })
        .collect()
}

fn query(n: usize) -> String {
    [word(n * 3), word(n * 5 + 1), word(n * 7 + 2), word(n * 11 + 3)].join(" ")
}

#[divan::bench(args = [1_000, 10_000])]
fn build_bm25(bencher: Bencher<'_, '_>, count: usize) {
    let tools = tools(count);
    bencher.bench_local(|| Bm25::build(&tools, Fields::All));
}

#[divan::bench(args = [1_000, 10_000])]
fn query_bm25(bencher: Bencher<'_, '_>, count: usize) {
    let engine = Bm25::build(&tools(count), Fields::All);
    let mut n = 0;
    bencher.bench_local(|| {
        n += 1;
        engine.search(&query(n), 20)
    });
}

#[divan::bench(args = [1_000])]
fn score_queries(bencher: Bencher<'_, '_>, count: usize) {
    let tools = tools(1_000);
    let engine = Bm25::build(&tools, Fields::All);
    let queries: Vec<Query> = (0..count)
        .map(|n| Query {
            id: format!("q{n:05}"),
            query: query(n),
            labels: vec![Label { tool_id: tools[n % tools.len()].tool_id.clone(), relevance: 2 }],
            place: n,
            ..Query::default()
        })
        .collect();
    let entries: Vec<Entry<Ranking>> = queries
        .iter()
        .map(|query| Entry {
            run: 0,
            id: query.id.clone(),
            nanos: 1,
            outcome: Outcome::Answer(Ranking::new(engine.search(&query.query, 20))),
        })
        .collect();
    let dataset = Dataset {
        reference: DatasetRef { id: "bench".into(), version: "v1".into(), digest: "-".into() },
        tools,
        queries,
        ..Dataset::default()
    };
    bencher.bench_local(|| score::items(&dataset, &entries));
}
