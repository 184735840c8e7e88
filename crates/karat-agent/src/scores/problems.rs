//! Calls that could not be scored in full, counted.

use super::TraceScore;
use crate::read_stats::Counts;

/// Calls that could not be scored in full.
#[derive(Debug, Default)]
pub(crate) struct CallProblems {
    pub(crate) unreadable_arguments: u64,
    pub(crate) unrecorded_arguments: u64,
    pub(crate) not_checked: Counts,
}

impl CallProblems {
    pub(crate) fn add(&mut self, score: &TraceScore) {
        self.unreadable_arguments += score.unreadable_arguments;
        self.unrecorded_arguments += score.unrecorded_arguments;
        for reason in &score.not_checked {
            self.not_checked.add(reason, 1);
        }
    }
}
