//! What all tables of an agent's report share.

use std::collections::BTreeMap;

use karat_core::aggregate;
use karat_core::report::{Interval, Item};
use karat_metrics::stats;

/// The number of examples in a message.
pub(super) const LISTED: usize = 10;

/// An interval for a report.
pub(crate) fn interval(interval: stats::Interval, method: &str) -> Interval {
    let stats::Interval { low, high } = interval;
    Interval { low, high, level: aggregate::LEVEL, method: method.to_owned() }
}

/// Returns whether a metric lies between 0 and 1.
pub(crate) fn is_share(id: &str) -> bool {
    let counts = ["run.", "gauge.overhead_", "gauge.tokens_", "gauge.ms_"];
    !counts.iter().any(|start| id.starts_with(start))
        && !matches!(id, "calls.first_error" | "gauge.effectiveness" | "outcome.score")
}

/// An item with scores and nothing to show, for averaging.
pub(crate) fn bare_item<'m>(
    id: &str,
    group: Option<String>,
    scores: impl IntoIterator<Item = (&'m str, Option<f64>)>,
) -> Item {
    Item {
        id: id.to_owned(),
        group,
        tags: BTreeMap::new(),
        metrics: scores.into_iter().map(|(id, score)| (id.to_owned(), score)).collect(),
        per_run: Vec::new(),
        observed: None,
        error: None,
    }
}
