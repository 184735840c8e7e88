//! A measure as its file defines it.

use super::judged::{Cut, JudgedRanking};
use crate::Score;
use crate::metric::Metric;

/// A metric and the function that computes it.
#[derive(Clone, Copy)]
pub(super) struct Definition {
    pub(super) metric: Metric,
    /// The value for one query at a cut-off. A measure without a cut-off ignores it.
    pub(super) score: fn(&JudgedRanking, Cut) -> Score,
}
