//! The mix of calls and their order.
//!
//! Calls are drawn by weight from a seeded sequence, so the same seed gives the same calls in the same
//! order, however fast the server answers.

use std::sync::{Arc, Mutex, PoisonError};

use karat_metrics::stats::random::Draws;
use serde_json::{Map, Value};

use crate::suite::{Case, Ending, Step};

/// One call of the mix.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// The name in the report.
    pub(super) id: String,
    pub(super) tool: String,
    /// The ending that it must have.
    pub(super) ending: Ending,
    /// The frequency, compared with the other calls.
    pub(super) weight: u32,
    /// The arguments, with `${name}` for values that are inserted.
    pub(super) input: Map<String, Value>,
    /// The case whose set-up calls are made once, before the load.
    pub(super) setup: Option<Arc<Case>>,
}

impl Call {
    /// A call to one tool that must succeed.
    pub(super) fn to(tool: &str, input: Map<String, Value>) -> Call {
        Call {
            id: tool.to_owned(),
            tool: tool.to_owned(),
            ending: Ending::Success,
            weight: 1,
            input,
            setup: None,
        }
    }
}

impl From<&Arc<Case>> for Call {
    fn from(case: &Arc<Case>) -> Call {
        let Step { tool, input, ending, .. } = &*case.step;
        Call {
            id: case.id.clone(),
            tool: tool.clone(),
            ending: *ending,
            weight: case.weight,
            input: input.clone(),
            setup: (!case.setup.is_empty()).then(|| Arc::clone(case)),
        }
    }
}

/// The calls, and the order in which they come.
#[derive(Debug)]
pub(super) struct Mix {
    pub(super) calls: Vec<Call>,
    /// The sums of the weights up to and including each call.
    sums: Vec<u64>,
    draws: Mutex<Draws>,
    seed: u64,
}

impl Mix {
    pub(super) fn new(calls: Vec<Call>, seed: u64) -> Mix {
        let mut sum = 0;
        let add = |call: &Call| {
            sum += u64::from(call.weight);
            sum
        };
        let sums = calls.iter().map(add).collect();
        Mix { calls, sums, draws: Mutex::new(Draws::from_seed(seed)), seed }
    }

    /// Begins the sequence again.
    pub(super) fn rewind(&self) {
        *self.draws.lock().unwrap_or_else(PoisonError::into_inner) = Draws::from_seed(self.seed);
    }

    /// The number of the next call.
    pub(super) fn next(&self) -> usize {
        let all = match self.sums.as_slice() {
            [] | [_] => return 0,
            [.., all] => *all,
        };
        let drawn = self.draws.lock().unwrap_or_else(PoisonError::into_inner).below(all);
        self.sums.partition_point(|sum| *sum <= drawn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mix(weights: &[u32], seed: u64) -> Mix {
        let call = |weight: &u32| Call { weight: *weight, ..Call::to("t", Map::new()) };
        Mix::new(weights.iter().map(call).collect(), seed)
    }

    fn first(mix: &Mix, count: usize) -> Vec<usize> {
        (0..count).map(|_| mix.next()).collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_order() {
        let (one, other) = (mix(&[1, 2, 3], 7), mix(&[1, 2, 3], 7));
        let order = first(&one, 100);
        assert_eq!(order, first(&other, 100));
        assert_ne!(order, first(&mix(&[1, 2, 3], 8), 100));
        one.rewind();
        assert_eq!(order, first(&one, 100));
    }

    #[test]
    fn calls_are_drawn_in_proportion_to_their_weights() {
        let order = first(&mix(&[1, 0, 3], 0), 4_000);
        let count = |wanted| order.iter().filter(|call| **call == wanted).count();
        assert_eq!(count(1), 0);
        assert!((900..1_100).contains(&count(0)), "{}", count(0));
        assert_eq!(first(&mix(&[5], 0), 3), [0, 0, 0]);
    }
}
