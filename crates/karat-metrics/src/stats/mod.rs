//! Metrics of this family.

use crate::registry::Metric;

/// The metrics of this family.
pub const METRICS: &[Metric] = &[];
