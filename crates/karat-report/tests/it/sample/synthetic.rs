//! A retrieval report of any size, from a counter: the same every time, with realistic texts.

use std::collections::BTreeMap;

use karat_core::observed::{Observed, RankedTool, Ranking};
use karat_core::report::{
    Comparison, Gate, Item, ItemError, Kind, Measured, Report, Slice, Verdict,
};

use super::{check, control, delta, interval, measured, report};

const SERVERS: [&str; 8] =
    ["files", "git", "web", "calendar", "database", "issues", "mail", "terminal"];
const VERBS: [&str; 10] = [
    "list",
    "read",
    "create",
    "update",
    "delete",
    "search_everything",
    "move",
    "describe",
    "export",
    "watch_for_changes",
];
const THINGS: [&str; 6] = ["entry", "document", "branch", "attachment", "record", "session"];
const PHRASES: [&str; 6] = [
    "how do I {verb} the {thing} that I used yesterday",
    "{verb} {thing}",
    "please {verb} every {thing} on the server and tell me when it is done",
    "I need to {verb} a {thing}, but only if it is mine",
    "something to {verb} one {thing} after another",
    "can you {verb} this {thing} for me",
];
const KINDS: [&str; 4] = ["direct", "paraphrase", "multi-tool", "vague"];
const SPLITS: [&str; 3] = ["dev", "test", "test"];
const METRICS: [&str; 10] = [
    "recall@1",
    "recall@3",
    "recall@5",
    "recall@10",
    "success@5",
    "mrr",
    "ndcg@10",
    "map",
    "comprehensiveness@5",
    "hard_negative_rate",
];

/// A counter with good bits; no dependency for a fixture.
struct Counter(u64);

impl Counter {
    fn next(&mut self, below: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % below
    }
}

fn tool(counter: &mut Counter) -> String {
    let server = SERVERS[counter.next(SERVERS.len())];
    let verb = VERBS[counter.next(VERBS.len())];
    format!("{server}:{verb}_{}", THINGS[counter.next(THINGS.len())])
}

/// One query with ten results, of which up to two are right.
fn item(number: usize, counter: &mut Counter) -> Item {
    let words = |counter: &mut Counter| {
        let verb = VERBS[counter.next(VERBS.len())].replace('_', " ");
        let phrase = PHRASES[counter.next(PHRASES.len())];
        phrase.replace("{verb}", &verb).replace("{thing}", THINGS[counter.next(THINGS.len())])
    };
    let query = words(counter);
    let mut tools: Vec<String> = Vec::new();
    while tools.len() < 10 {
        let tool = tool(counter);
        if !tools.contains(&tool) {
            tools.push(tool);
        }
    }
    // Small ranks are likelier, and some queries find nothing.
    let first = counter.next(14) * counter.next(14) / 8;
    let trap = counter.next(5);
    let grade = |rank: usize| match rank {
        _ if rank == first => Some(2),
        _ if rank == first + 3 => Some(1),
        _ if rank == trap && number.is_multiple_of(3) => Some(0),
        _ => None,
    };
    let ranked: Vec<RankedTool> = tools
        .iter()
        .enumerate()
        .map(|(rank, tool)| {
            let score = 17.0 / (rank as f64 + 1.3) + counter.next(1000) as f64 / 7919.0;
            RankedTool { tool_id: tool.clone(), score: Some(score), relevance: grade(rank) }
        })
        .collect();
    let found = |k: usize| [first, first + 3].iter().filter(|rank| **rank < k).count() as f64 / 2.0;
    let mrr = if first < 10 { 1.0 / (first as f64 + 1.0) } else { 0.0 };
    let gain =
        |rank: usize, grade: f64| if rank < 10 { grade / (rank as f64 + 2.0).log2() } else { 0.0 };
    let ndcg = (gain(first, 2.0) + gain(first + 3, 1.0)) / (2.0 + 1.0 / 3_f64.log2());
    let negative = number.is_multiple_of(3).then(|| f64::from(u8::from(trap < first)));
    let scores = [
        Some(found(1)),
        Some(found(3)),
        Some(found(5)),
        Some(found(10)),
        Some(f64::from(u8::from(first < 5))),
        Some(mrr),
        Some(ndcg),
        Some(mrr * 0.9),
        Some(f64::from(u8::from(first < 2))),
        negative,
    ];
    let server = tools[first.min(9)].split(':').next().unwrap().to_owned();
    let missed = if first + 3 < 10 { vec![] } else { vec!["files:read_entry".to_owned()] };
    let error = number.is_multiple_of(97).then(|| ItemError {
        class: "timeout".to_owned(),
        message: "no answer within 30 s".to_owned(),
    });
    let failed = error.is_some();
    Item {
        id: format!("q-{number:05}"),
        group: Some(server.clone()),
        tags: BTreeMap::from([
            ("kind".to_owned(), KINDS[counter.next(KINDS.len())].to_owned()),
            ("split".to_owned(), SPLITS[number % SPLITS.len()].to_owned()),
            ("server".to_owned(), server),
        ]),
        metrics: METRICS
            .iter()
            .map(|id| (*id).into())
            .zip(scores.map(|score| score.filter(|_| !failed)))
            .collect(),
        per_run: Vec::new(),
        observed: Some(Observed::Ranking(match failed {
            true => Ranking { query, ..Ranking::default() },
            false => Ranking {
                query,
                first_right: (first < 10).then_some(first + 1),
                outranked_by: tools[..first.min(10)].to_vec(),
                missed,
                ranked: Some(ranked),
            },
        })),
        error,
    }
}

fn mean(items: &[&Item], id: &str) -> Option<Measured> {
    let values: Vec<f64> = items.iter().filter_map(|item| item.metrics[id]).collect();
    let value = values.iter().sum::<f64>() / values.len() as f64;
    let half = 1.0 / (values.len() as f64).sqrt();
    let ends = interval((value - half).max(0.0), (value + half).min(1.0), "bootstrap_clustered");
    (!values.is_empty()).then(|| measured(id, value, values.len() as u64, ends))
}

fn slices(items: &[Item], by: &str) -> Vec<Slice> {
    let mut parts: BTreeMap<&str, Vec<&Item>> = BTreeMap::new();
    for item in items {
        parts.entry(&item.tags[by]).or_default().push(item);
    }
    parts
        .into_iter()
        .map(|(value, items)| Slice {
            by: by.to_owned(),
            value: value.to_owned(),
            metrics: METRICS.iter().filter_map(|id| mean(&items, id)).collect(),
        })
        .collect()
}

/// The report; with a baseline that it improves on and checks that hold.
pub(crate) fn retrieval(count: usize) -> Report {
    let mut counter = Counter(42);
    let items: Vec<Item> = (0..count).map(|number| item(number, &mut counter)).collect();
    let all: Vec<&Item> = items.iter().collect();
    let metrics: Vec<Measured> = METRICS.iter().filter_map(|id| mean(&all, id)).collect();
    let ids = |step: usize| items.iter().step_by(step).skip(1).map(|item| item.id.as_str());
    let deltas = metrics
        .iter()
        .zip(1..)
        .map(|(metric, turn)| {
            let value = metric.value.unwrap_or_default();
            let improved: Vec<&str> = ids(30 + turn).collect();
            let worsened: Vec<&str> = ids(70 + turn).collect();
            let change = if turn % 4 == 0 { -0.004 } else { 0.0125 };
            let mut delta = delta(&metric.id, value - change, value, &improved, &worsened);
            delta.interval = interval(change - 0.01, change + 0.01, "bootstrap_clustered");
            delta.pairs = metric.n;
            delta
        })
        .collect();
    let slices = ["kind", "split", "server"].iter().flat_map(|by| slices(&items, by)).collect();
    Report {
        slices,
        controls: vec![
            control("oracle", "mrr, ndcg@10 and map are 1", 1.0, true),
            control("shuffled", "mrr is below 0.208", 0.0243, true),
            control(
                "descriptions-removed",
                "recall@5, mrr, ndcg@10, map are all below the same \
                engine with descriptions (0.583, 0.421, 0.455, 0.379)",
                0.2871,
                true,
            ),
        ],
        comparison: Some(Comparison {
            against: "the baseline of 2026-07-01, karat 0.1.0".to_owned(),
            deltas,
            ..Comparison::default()
        }),
        gate: Some(Gate {
            verdict: Verdict::Pass,
            checks: vec![
                check(
                    "recall@5",
                    "max_drop",
                    0.02,
                    Verdict::Pass,
                    "recall@5 0.5705 → 0.5830 (allowed drop 0.02)",
                ),
                check("mrr", "min", 0.3, Verdict::Pass, "mrr 0.4210 ≥ 0.3 (min, n = 494)"),
            ],
        }),
        warnings: vec![
            "hard_negative_rate is over 165 queries; the others have no hard negative".to_owned(),
        ],
        ..report(Kind::Ranking, "hybrid search", metrics, items)
    }
}
