//! The columns of the leaderboard: categories, weighted as BFCL weights them.

use karat_core::aggregate::{LEVEL, better};
use karat_core::report::{Interval, Measured, Slice};

const METRIC: &str = "bfcl.accuracy";

/// The way parts become a column.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Weights {
    /// Every part counts the same.
    Equal,
    /// Every item counts the same.
    Items,
}

/// A column: its name, and its parts, which are categories or earlier columns.
type Column = (&'static str, Weights, &'static [&'static str]);

const COLUMNS: &[Column] = &[
    ("Non-Live Simple AST", Weights::Equal, &["simple_python", "simple_java", "simple_javascript"]),
    (
        "Non-Live AST Acc",
        Weights::Equal,
        &["Non-Live Simple AST", "multiple", "parallel", "parallel_multiple"],
    ),
    (
        "Live Acc",
        Weights::Items,
        &["live_simple", "live_multiple", "live_parallel", "live_parallel_multiple"],
    ),
    ("Relevance Detection", Weights::Equal, &["live_relevance"]),
    ("Irrelevance Detection", Weights::Equal, &["irrelevance", "live_irrelevance"]),
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
];

/// The columns of which every part is there, as slices by `leaderboard`.
pub(crate) fn leaderboard(slices: &[Slice]) -> Vec<Slice> {
    let mut columns: Vec<Slice> = Vec::new();
    for (name, weights, parts) in COLUMNS {
        let find = |part: &&str| {
            let category = slices.iter().filter(|slice| slice.by == "category");
            let mut known = category.chain(&columns);
            known.find(|slice| slice.value == **part)?.metrics.iter().find(|m| m.id == METRIC)
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
    let weight = |part: &Measured| match weights {
        Weights::Equal => 1.0 / parts.len() as f64,
        Weights::Items => part.n as f64 / n as f64,
    };
    let mut value = 0.0;
    let (mut below, mut above) = (0.0, 0.0);
    for part in parts {
        let (rate, interval) = (part.value?, part.interval.as_ref()?);
        let weight = weight(part);
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
    Some(Measured {
        id: METRIC.to_owned(),
        value: Some(value),
        n,
        better: better(METRIC),
        per_run: Vec::new(),
        interval: Some(interval),
        count: None,
        undefined: None,
        left_out: 0,
    })
}
