//! The scores of the calls themselves: against the expected ones, forbidden ones, loops.

use std::borrow::Cow;

use karat_metrics::calls::expected::Expected;
use karat_metrics::calls::json::Reader;
use karat_metrics::calls::{self, Call, Object, f1, traces};

use super::score::{Own, Score, TraceScore, yes};
use crate::metric::CallMetric;
use crate::trace::expectation::{Expectation, Hit};
use crate::trace::expected_calls::{NO_ARGUMENTS, object};
use crate::trace::{Arguments, CallMade, Trace};

const NO_EXPECTATION: &str = "no calls are expected or ruled out";
pub(super) const TOO_MANY: &str = "too many calls to align: more than 1,000,000 pairs of calls";
/// The pairs of calls that are compared for one trace. The work of alignment grows with the product of
/// made and expected calls.
pub(super) const MAX_PAIRS: usize = 1_000_000;
const A_CHOICE: &str = "the expectation leaves a choice that this metric cannot express";

/// The calls of a trace as the metrics take them.
pub(super) struct Calls<'t> {
    pub(super) trace: &'t Trace,
    pub(super) expect: Option<&'t Expectation>,
    pub(super) made: Vec<Call<'t>>,
    /// The expected calls, if they leave no choice.
    plain: Option<Vec<Call<'t>>>,
    /// True if the arguments of all calls were recorded.
    pub(super) has_arguments: bool,
}

impl<'t> Calls<'t> {
    pub(super) fn of(trace: &'t Trace, expect: Option<&'t Expectation>) -> Self {
        Calls {
            trace,
            expect,
            made: trace.calls.iter().map(|call| as_call(expect, call)).collect(),
            plain: expect.and_then(|expect| expect.calls.as_ref()?.plain()),
            has_arguments: count(trace, |arguments| *arguments == Arguments::NotRecorded) == 0,
        }
    }

    pub(super) fn score(&self, score: &mut TraceScore) {
        let made = &self.made[..];
        score.unreadable_arguments =
            count(self.trace, |arguments| matches!(arguments, Arguments::Text(_)));
        score.unrecorded_arguments =
            count(self.trace, |arguments| *arguments == Arguments::NotRecorded);
        let expected = match self.expect.and_then(|expect| expect.calls.as_ref()) {
            None => Err(NO_EXPECTATION),
            Some(_) if !self.has_arguments => Err(NO_ARGUMENTS),
            Some(calls) => Ok(&calls.steps),
        };
        let aligned = expected.and_then(|expected| {
            expected.in_order(made, MAX_PAIRS).map(|found| (expected, found)).ok_or(TOO_MANY)
        });
        score.set(Own::Exact, aligned.map(|(_, found)| yes(found.exact)));
        score.set(Own::Alignment, aligned.map(|(_, found)| found.alignment));
        score.set(Own::F1, aligned.and_then(|(expected, _)| self.f1(expected)));
        let first_error = expected.and_then(|expected| {
            let position = traces::first_error(expected, made);
            position.map(|position| position as f64).ok_or("the calls are as expected")
        });
        score.set(Own::FirstError, first_error);
        score.set(Own::Forbidden, forbidden(self.trace, self.expect));
        let exact = score.value(Own::Exact) == Some(1.0);
        score.set(
            Own::Loop,
            match made.is_empty() {
                true => Err("no call was made"),
                false if !self.has_arguments => Err(NO_ARGUMENTS),
                false => Ok(yes(!exact && traces::has_loop(made))),
            },
        );
    }

    /// Every call is compared with every expected one, wherever they are; a plain list is counted instead
    /// where these are too many.
    fn f1(&self, expected: &Expected<'_>) -> Score {
        let wanted = self.expect.map_or(0, |expect| expect.all_calls().count());
        match (self.made.len().saturating_mul(wanted) <= MAX_PAIRS, &self.plain) {
            (true, _) => Ok(expected.f1(&self.made)),
            (false, Some(plain)) => Ok(f1::f1(&self.made, plain)),
            (false, None) => Err(TOO_MANY),
        }
    }

    /// The score by a metric of a peer, if the expectation can be expressed for it.
    pub(super) fn peer_score(&self, metric: &CallMetric, id: &str) -> Score {
        if let Some(score) = self.trace.peer_scores.get(id) {
            return Ok(*score);
        }
        self.expect.and_then(|expect| expect.calls.as_ref()).ok_or(NO_EXPECTATION)?;
        let expected = self.plain.as_ref().ok_or(A_CHOICE)?;
        if !self.has_arguments {
            return Err(NO_ARGUMENTS);
        }
        by_metric(metric, &self.made, expected)
    }
}

/// The score of calls by a metric of calls alone, where they are not too many to compare.
///
/// # Errors
/// With the reason if they are.
pub fn by_metric(metric: &CallMetric, called: &[Call<'_>], expected: &[Call<'_>]) -> Score {
    if called.len().saturating_mul(expected.len()) > MAX_PAIRS {
        return Err(TOO_MANY);
    }
    Ok(metric.measure(called, expected).score)
}

fn count(trace: &Trace, is: impl Fn(&Arguments) -> bool) -> u64 {
    trace.calls.iter().filter(|call| is(&call.arguments)).count() as u64
}

/// Returns whether a forbidden call was made.
pub(super) fn forbidden(trace: &Trace, expect: Option<&Expectation>) -> Score {
    let rules = expect.map_or(&[][..], |expect| &expect.forbidden);
    if rules.is_empty() {
        return Err("nothing is forbidden");
    }
    let mut unknown = None;
    for (call, rule) in trace.calls.iter().flat_map(|call| rules.iter().map(move |r| (call, r))) {
        match rule.hits(call) {
            Hit::Yes => return Ok(1.0),
            Hit::Unknown(reason) => unknown = unknown.or(Some(reason)),
            Hit::No => {}
        }
    }
    unknown.map_or(Ok(0.0), Err)
}

/// A call as the metrics take it, under the name by which the expectation compares it. Arguments that
/// are not JSON become one that nothing expects, so that they never count as no arguments.
pub(crate) fn as_call<'t>(expect: Option<&'t Expectation>, call: &'t CallMade) -> Call<'t> {
    let name = match expect {
        Some(expect) => expect.key(&call.name, call.server.as_deref()),
        None => Cow::Borrowed(call.name.as_str()),
    };
    match &call.arguments {
        // With its text: most calls are written as they are expected, and then nothing else is compared.
        Arguments::Object(text) => match calls::Arguments::read_now(&mut Reader::new(text)) {
            Ok(arguments) => Call::new(name, arguments),
            Err(_) => Call::new(name, unreadable()),
        },
        Arguments::Text(_) => Call::new(name, unreadable()),
        Arguments::NotRecorded => Call { name, ..Call::default() },
    }
}

fn unreadable() -> Object<'static> {
    object("{\"\\u0000not JSON\":null}").unwrap_or_default()
}
