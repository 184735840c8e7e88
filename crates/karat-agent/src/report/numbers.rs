//! Helpers for all tables of an agent's report.

use karat_core::report::Item;
use karat_metrics::MetricId;

/// The number of examples in a message.
pub(super) const LISTED: usize = 10;

/// An item with scores and nothing to show, for averaging.
pub(crate) fn bare_item(
    id: &str,
    group: Option<String>,
    scores: impl IntoIterator<Item = (MetricId, Option<f64>)>,
) -> Item {
    Item { id: id.to_owned(), group, metrics: scores.into_iter().collect(), ..Item::default() }
}
