//! The columns of the leaderboard: categories, weighted as BFCL weights them.

use karat_core::aggregate::{self, LEVEL};
use karat_core::report::{Interval, Measured, Slice};
use karat_metrics::MetricId;

const METRIC: MetricId = MetricId::known("bfcl.accuracy");

/// The way parts become a column.
#[derive(Clone, Copy, PartialEq)]
enum Weights {
    /// Every part counts the same.
    Equal,
    /// Every item counts the same.
    Items,
    /// Shares of the parts, in their order.
    Shares(&'static [f64]),
}

/// A column: its name, and its parts, which are categories or earlier columns. A part that has another
/// name in earlier versions is written with both.
type Column = (&'static str, Weights, &'static [&'static str]);

/// The columns of `data_overall.csv`, each after its parts, and the mean of the agentic ones.
const COLUMNS: &[Column] = &[
    (
        "Non-Live Simple AST",
        Weights::Equal,
        &["simple_python|simple", "simple_java|java", "simple_javascript|javascript"],
    ),
    ("Non-Live Multiple AST", Weights::Equal, &["multiple"]),
    ("Non-Live Parallel AST", Weights::Equal, &["parallel"]),
    ("Non-Live Parallel Multiple AST", Weights::Equal, &["parallel_multiple"]),
    (
        "Non-Live AST Acc",
        Weights::Equal,
        &["Non-Live Simple AST", "multiple", "parallel", "parallel_multiple"],
    ),
    ("Live Simple AST", Weights::Equal, &["live_simple"]),
    ("Live Multiple AST", Weights::Equal, &["live_multiple"]),
    ("Live Parallel AST", Weights::Equal, &["live_parallel"]),
    ("Live Parallel Multiple AST", Weights::Equal, &["live_parallel_multiple"]),
    (
        "Live Acc",
        Weights::Items,
        &["live_simple", "live_multiple", "live_parallel", "live_parallel_multiple"],
    ),
    ("Multi Turn Base", Weights::Equal, &["multi_turn_base"]),
    ("Multi Turn Miss Func", Weights::Equal, &["multi_turn_miss_func"]),
    ("Multi Turn Miss Param", Weights::Equal, &["multi_turn_miss_param"]),
    ("Multi Turn Long Context", Weights::Equal, &["multi_turn_long_context"]),
    (
        "Multi Turn Acc",
        Weights::Equal,
        &[
            "multi_turn_base",
            "multi_turn_miss_func",
            "multi_turn_miss_param",
            "multi_turn_long_context",
        ],
    ),
    ("Web Search Base", Weights::Equal, &["web_search_base"]),
    ("Web Search No Snippet", Weights::Equal, &["web_search_no_snippet"]),
    ("Web Search Acc", Weights::Equal, &["web_search_base", "web_search_no_snippet"]),
    ("Memory KV", Weights::Equal, &["memory_kv"]),
    ("Memory Vector", Weights::Equal, &["memory_vector"]),
    ("Memory Recursive Summarization", Weights::Equal, &["memory_rec_sum"]),
    ("Memory Acc", Weights::Equal, &["memory_kv", "memory_vector", "memory_rec_sum"]),
    ("Agentic Acc", Weights::Equal, &["Web Search Acc", "Memory Acc"]),
    ("Relevance Detection", Weights::Equal, &["live_relevance"]),
    ("Irrelevance Detection", Weights::Equal, &["irrelevance", "live_irrelevance"]),
    (
        "Overall Acc",
        Weights::Shares(&[0.1, 0.1, 0.1, 0.3, 0.4]),
        &["Non-Live AST Acc", "Live Acc", "Irrelevance Detection", "Multi Turn Acc", "Agentic Acc"],
    ),
];

/// The columns of which every part is among the categories.
pub(super) fn complete(has: impl Fn(&str) -> bool) -> Vec<&'static str> {
    let mut known: Vec<&'static str> = Vec::new();
    for (name, _, parts) in COLUMNS {
        let there = |part: &&str| part.split('|').any(|part| has(part) || known.contains(&part));
        if parts.iter().all(there) {
            known.push(name);
        }
    }
    known
}

/// The columns of which every part is there, as slices by `leaderboard`.
pub(crate) fn leaderboard(slices: &[Slice]) -> Vec<Slice> {
    let mut columns: Vec<Slice> = Vec::new();
    for (name, weights, parts) in COLUMNS {
        let find = |part: &&str| {
            let category = slices.iter().filter(|slice| slice.by == "category");
            let mut known = category.chain(&columns);
            let named = |slice: &&Slice| part.split('|').any(|part| slice.value == part);
            known.find(named)?.metrics.iter().find(|metric| metric.id == METRIC)
        };
        let parts: Option<Vec<&Measured>> = parts.iter().map(find).collect();
        let Some(metric) = parts.and_then(|parts| mean(&parts, *weights)) else { continue };
        let (by, value) = ("leaderboard".to_owned(), (*name).to_owned());
        columns.push(Slice { by, value, metrics: vec![metric] });
    }
    columns
}

/// The weighted mean of independent rates, its interval from those of the parts (MOVER).
fn mean(parts: &[&Measured], weights: Weights) -> Option<Measured> {
    let n: u64 = parts.iter().map(|part| part.n).sum();
    let weight = |at: usize, part: &Measured| match weights {
        Weights::Equal => 1.0 / parts.len() as f64,
        Weights::Items => part.n as f64 / n as f64,
        Weights::Shares(shares) => shares.get(at).copied().unwrap_or_default(),
    };
    let mut value = 0.0;
    let (mut below, mut above) = (0.0, 0.0);
    for (at, part) in parts.iter().enumerate() {
        let (rate, interval) = (part.value?, part.interval.as_ref()?);
        let weight = weight(at, part);
        value += weight * rate;
        below += (weight * (rate - interval.low)).powi(2);
        above += (weight * (interval.high - rate)).powi(2);
    }
    let interval = Interval {
        low: (value - below.sqrt()).max(0.0),
        high: (value + above.sqrt()).min(1.0),
        level: LEVEL,
        method: "mover_wilson".to_owned(),
    };
    Some(Measured { interval: Some(interval), ..aggregate::value(METRIC, Some(value), n, "") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(category: &str, value: f64, n: u64) -> Slice {
        let mut rate = mean(&[], Weights::Equal).unwrap();
        (rate.value, rate.n) = (Some(value), n);
        Slice { by: "category".to_owned(), value: category.to_owned(), metrics: vec![rate] }
    }

    /// The categories and columns of a published row: gpt-oss-120b, and made-up agentic categories.
    #[test]
    fn columns_are_weighted_as_in_the_published_table() {
        let parts = [
            ("simple_python", 0.8575, 400),
            ("simple_java", 0.56, 100),
            ("simple_javascript", 0.48, 50),
            ("multiple", 0.87, 200),
            ("parallel", 0.0, 200),
            ("parallel_multiple", 0.0, 200),
            ("live_simple", 0.798_45, 258),
            ("live_multiple", 0.735_99, 1053),
            ("live_parallel", 0.0, 16),
            ("live_parallel_multiple", 0.0, 24),
            ("irrelevance", 0.875, 240),
            ("live_irrelevance", 737.0 / 884.0, 884),
            ("multi_turn_base", 0.62, 200),
            ("multi_turn_miss_func", 0.505, 200),
            ("multi_turn_miss_param", 0.475, 200),
            ("multi_turn_long_context", 0.525, 200),
            ("web_search_base", 0.0, 100),
            ("web_search_no_snippet", 0.0, 100),
            ("memory_kv", 0.0, 155),
            ("memory_vector", 0.0, 155),
            ("memory_rec_sum", 0.0, 155),
        ];
        let slices: Vec<Slice> = parts.map(|(name, value, n)| slice(name, value, n)).to_vec();
        let columns = leaderboard(&slices);
        let value = |name: &str| {
            let column = columns.iter().find(|column| column.value == name).unwrap();
            format!("{:.4}", column.metrics[0].value.unwrap())
        };
        assert_eq!(value("Non-Live Simple AST"), "0.6325");
        assert_eq!(value("Non-Live AST Acc"), "0.3756");
        assert_eq!(value("Live Acc"), "0.7261");
        assert_eq!(value("Multi Turn Acc"), "0.5312");
        assert_eq!(value("Irrelevance Detection"), "0.8544");
        assert_eq!(value("Overall Acc"), "0.3550");
        assert_eq!(
            complete(|name| name.starts_with("live_") && name != "live_parallel"),
            [
                "Live Simple AST",
                "Live Multiple AST",
                "Live Parallel Multiple AST",
                "Relevance Detection"
            ]
        );
    }
}
