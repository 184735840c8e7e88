//! Reports have every score of a trace, from the list in which it is defined.

use std::collections::BTreeSet;

use karat_agent::scores::Own;
use karat_agent::{metrics, optional};
use karat_metrics::MetricId;

#[test]
fn a_report_has_every_score_of_a_trace_once() {
    let shown: Vec<MetricId> = metrics().into_iter().chain(optional().map(Own::id)).collect();
    let unique: BTreeSet<&MetricId> = shown.iter().collect();
    assert_eq!(unique.len(), shown.len(), "twice in {shown:?}");
    for id in Own::IDS {
        assert!(unique.contains(id), "{id} is in no section that reports show");
    }
}
