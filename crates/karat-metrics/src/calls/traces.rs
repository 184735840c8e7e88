//! Properties of a whole trace: its first wrong call, and loops.

use std::collections::BTreeSet;

use super::expected::{Expected, ExpectedCall, Presence, Step};
use super::{Call, Equality, classes};
use crate::metric::{Better, Metric, MetricKind, Unit};

/// The number of equal calls that make a loop.
const REPEATED: usize = 3;
/// The largest number of interpretations of an expectation that are followed at once.
const READINGS: usize = 4096;

/// The metrics of this file.
pub(super) const METRICS: &[Metric] = &[
    Metric {
        id: "calls.first_error",
        summary: "The position of the first wrong call",
        formula: "the position, from 1, of the first call that no interpretation of the expectation allows there; one past the last call if the agent only stopped too early",
        better: Better::Higher,
        unit: Unit::Count,
        undefined: "the calls are as expected, or none were expected",
        notes: "Ours. Averaged over the traces that go wrong, so it shows how far they get and not how many they are: read it together with `calls.exact`.",
        ..Metric::DEFAULT
    },
    Metric {
        id: "calls.loop",
        summary: "The share of traces in which the agent ran in a loop",
        formula: "traces in which the same call with the same arguments was made three times or more, or two or more calls were at once repeated as a block ÷ traces with calls",
        better: Better::Lower,
        unit: Unit::Share,
        kind: MetricKind::Rate,
        undefined: "no trace has a call",
        notes: "Ours. Calls are the same by JSON equality. A repeated block has at most 1,000 calls. A trace whose calls are exactly the expected ones is not a loop.",
        ..Metric::DEFAULT
    },
];

/// Returns the position, from 1, of the first call that is not as expected (`calls.first_error`);
/// `None` if all are.
///
/// ```
/// use karat_metrics::calls::traces::first_error;
/// use karat_metrics::calls::{Call, Expected, Object};
///
/// let [a, b, c] = ["a", "b", "c"].map(|name| Call::new(name, Object::new()));
/// let expected = Expected::from(&[a.clone(), b.clone()][..]);
/// assert_eq!(first_error(&expected, &[a.clone(), c]), Some(2));
/// assert_eq!(first_error(&expected, &[a.clone()]), Some(2));
/// assert_eq!(first_error(&expected, &[a, b]), None);
/// ```
#[must_use]
pub fn first_error(expected: &Expected<'_>, called: &[Call<'_>]) -> Option<usize> {
    // As long as the steps leave no choice there is one reading, and nothing to remember.
    let mut start = 0;
    while let (Some(Step::Call(wanted)), Some(call)) =
        (expected.steps.get(start), called.get(start))
    {
        match wanted.presence {
            Presence::Required if wanted.accepts(call) => start += 1,
            Presence::Required => return Some(start + 1),
            Presence::Optional => break,
        }
    }
    let mut readings = BTreeSet::from([Reading { step: start, met: 0 }]);
    for (position, call) in (start + 1..).zip(&called[start..]) {
        readings = readings
            .iter()
            .flat_map(|reading| reading.skips(expected))
            .flat_map(|reading| reading.after(expected, call))
            .take(READINGS)
            .collect();
        if readings.is_empty() {
            return Some(position);
        }
    }
    let done = |reading: &Reading| {
        reading.skips(expected).into_iter().any(|reading| reading.step == expected.steps.len())
    };
    if readings.iter().any(done) { None } else { Some(called.len() + 1) }
}

/// The progress through an expectation: the current step, and the calls of its group that were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Reading {
    step: usize,
    met: u64,
}

impl Reading {
    /// This interpretation, and those that omit optional calls next.
    fn skips(self, expected: &Expected<'_>) -> Vec<Reading> {
        let mut all = vec![self];
        let mut at = self;
        while let Some(step) = expected.steps.get(at.step) {
            let open = |(number, call): (usize, &ExpectedCall<'_>)| {
                call.presence == Presence::Required && !at.has_met(number)
            };
            let blocked = match step {
                Step::Call(call) => call.presence == Presence::Required,
                Step::AnyOrder(calls) => calls.iter().enumerate().any(open),
            };
            if blocked {
                break;
            }
            at = Reading { step: at.step + 1, met: 0 };
            all.push(at);
        }
        all
    }

    /// The interpretations under which the next call is this one.
    fn after(self, expected: &Expected<'_>, call: &Call<'_>) -> Vec<Reading> {
        match expected.steps.get(self.step) {
            None => Vec::new(),
            Some(Step::Call(wanted)) => {
                let next = Reading { step: self.step + 1, met: 0 };
                if wanted.accepts(call) { vec![next] } else { Vec::new() }
            }
            Some(Step::AnyOrder(calls)) => calls
                .iter()
                .enumerate()
                .take(64)
                .filter(|(number, wanted)| !self.has_met(*number) && wanted.accepts(call))
                .map(|(number, _)| Reading { met: self.met | 1 << number, ..self })
                .collect(),
        }
    }

    /// Calls beyond the 64th of a group count as made: no real task has that many.
    fn has_met(self, number: usize) -> bool {
        number >= 64 || self.met & (1 << number) != 0
    }
}

/// The number of calls of a block whose repetition is looked for: all lengths of a long run would take a
/// time that grows with its square.
const MAX_BLOCK: usize = 1_000;

/// Returns `true` if the calls contain a loop (`calls.loop`): the same call three times, or a block of
/// at most 1,000 calls that is repeated at once.
///
/// ```
/// use karat_metrics::calls::traces::has_loop;
/// use karat_metrics::calls::{Call, Object};
///
/// let calls = |names: &'static str| -> Vec<Call> {
///     names.split(' ').map(|name| Call::new(name, Object::new())).collect()
/// };
/// assert!(has_loop(&calls("a b a b")));
/// assert!(!has_loop(&calls("a b a c")));
/// ```
#[must_use]
pub fn has_loop(called: &[Call<'_>]) -> bool {
    let (classes, _, count) = classes::of(called, &[], Equality::Json);
    let mut counts = vec![0_usize; count];
    for class in &classes {
        counts[*class] += 1;
        if counts[*class] >= REPEATED {
            return true;
        }
    }
    let longest = (classes.len() / 2).min(MAX_BLOCK);
    (2..=longest).any(|length| has_block(&classes, length))
}

/// Returns `true` if a block of this length is followed by itself.
fn has_block(classes: &[usize], length: usize) -> bool {
    let mut alike = 0;
    for (earlier, later) in classes.iter().zip(&classes[length..]) {
        alike = if earlier == later { alike + 1 } else { 0 };
        if alike == length {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::super::json;
    use super::*;

    fn call<'a>(name: &'a str, arguments: &'a str) -> Call<'a> {
        Call::new(name, json::Reader::new(arguments).read_object().unwrap())
    }

    fn calls(names: &'static str) -> Vec<Call<'static>> {
        names.split(' ').filter(|name| !name.is_empty()).map(|name| call(name, "{}")).collect()
    }

    #[test]
    fn the_first_wrong_call_is_found() {
        let expected = Expected::from(&calls("a b c")[..]);
        assert_eq!(first_error(&expected, &calls("a b c")), None);
        assert_eq!(first_error(&expected, &calls("a x c")), Some(2));
        assert_eq!(first_error(&expected, &calls("a b")), Some(3));
        assert_eq!(first_error(&expected, &calls("")), Some(1));
        assert_eq!(first_error(&expected, &calls("a b c d")), Some(4));
    }

    #[test]
    fn every_interpretation_of_a_choice_is_followed() {
        let required = |name| ExpectedCall::from(&call(name, "{}"));
        let optional = |name| ExpectedCall { presence: Presence::Optional, ..required(name) };
        let expected = Expected {
            steps: vec![
                Step::Call(optional("a")),
                Step::AnyOrder(vec![required("a"), required("b"), optional("o")]),
                Step::Call(required("c")),
            ],
        };
        for good in ["a b c", "b a c", "a a b c", "a b o c"] {
            assert_eq!(first_error(&expected, &calls(good)), None, "{good}");
        }
        assert_eq!(first_error(&expected, &calls("a c")), Some(2));
        assert_eq!(first_error(&expected, &calls("a b o o c")), Some(4));
        assert_eq!(first_error(&expected, &calls("a b")), Some(3));
    }

    #[test]
    fn a_loop_is_a_call_made_three_times_or_a_repeated_block() {
        assert!(!has_loop(&calls("")));
        assert!(!has_loop(&calls("a a")));
        assert!(has_loop(&calls("a b a c a")));
        assert!(has_loop(&calls("x a b a b")));
        assert!(!has_loop(&calls("a b c a")));
        let other = [call("f", r#"{"x":1}"#), call("f", r#"{"x":2}"#), call("f", r#"{"x":3}"#)];
        assert!(!has_loop(&other));
        let same = [call("f", r#"{"x":1}"#), call("f", r#"{"x":1.0}"#), call("f", r#"{"x":1}"#)];
        assert!(has_loop(&same));
    }
}
