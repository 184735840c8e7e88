//! The measures of all files, joined at compile time.

use super::definition::Definition;
use super::{average_precision, gain, hard_negative, overlap, reciprocal};
use crate::metric::{self, Metric};

const PARTS: &[&[Definition]] = &[
    overlap::MEASURES,
    reciprocal::MEASURES,
    gain::MEASURES,
    average_precision::MEASURES,
    hard_negative::MEASURES,
];

pub(super) const DEFINITIONS: &[Definition; metric::total(PARTS)] = &metric::join(PARTS);

/// The metrics of this family.
pub(super) const METRICS: &[Metric; DEFINITIONS.len()] = &{
    let mut metrics = [DEFINITIONS[0].metric; DEFINITIONS.len()];
    let mut index = 0;
    while index < metrics.len() {
        metrics[index] = DEFINITIONS[index].metric;
        index += 1;
    }
    metrics
};
