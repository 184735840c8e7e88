//! Expectations that leave the agent a choice.
//!
//! If a plain list of expected calls is too strict, an [`Expected`] lists the acceptable values of
//! each argument, groups calls that may come in any order, and marks calls that are optional. It is
//! scored by the same three metrics as a plain list (`calls.exact`, `calls.alignment`, `calls.f1`),
//! under the interpretation that suits the calls best: assignments are optimal, not greedy. A plain
//! list converted to an [`Expected`] has the same scores.

use std::borrow::Cow;

use super::assignment::Matching;
use super::{Call, Equality, Value, f1, near};

/// The calls that an agent is expected to make.
///
/// ```
/// use karat_metrics::calls::expected::{Expected, ExpectedCall, Presence, Step};
/// use karat_metrics::calls::{Call, Object};
///
/// let [log, read, write] = ["log", "read", "write"].map(|name| Call::new(name, Object::new()));
/// let optional = ExpectedCall { presence: Presence::Optional, ..ExpectedCall::from(&log) };
/// let both = [&read, &write].map(ExpectedCall::from);
/// let expected = Expected { steps: vec![Step::Call(optional), Step::AnyOrder(both.into())] };
///
/// assert!(expected.exact(&[write.clone(), read.clone()]));
/// assert!(expected.exact(&[log, read.clone(), write]));
/// assert_eq!(expected.f1(&[read]), 2.0 / 3.0);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Expected<'a> {
    /// The steps, one after the other.
    pub steps: Vec<Step<'a>>,
}

/// One step of an expectation.
#[derive(Clone, Debug)]
pub enum Step<'a> {
    /// A call at this position.
    Call(ExpectedCall<'a>),
    /// Calls that may come in any order among themselves.
    AnyOrder(Vec<ExpectedCall<'a>>),
}

/// One expected call.
#[derive(Clone, Debug)]
pub struct ExpectedCall<'a> {
    /// The tool's name.
    pub name: Cow<'a, str>,
    /// The expected arguments, each at most once.
    pub arguments: Vec<ExpectedArgument<'a>>,
    /// The treatment of other arguments.
    pub extra_arguments: ExtraArguments,
    /// Required or optional.
    pub presence: Presence,
}

/// An expected argument.
///
/// ```
/// use karat_metrics::calls::expected::{Accepted, ExpectedArgument, ExpectedCall};
/// use karat_metrics::calls::{Call, Value, json::Reader};
///
/// let call = |arguments| Reader::new(arguments).read_object().map(|a| Call::new("book", a));
/// let mut expected = ExpectedCall::from(&call(r#"{"city": "Paris"}"#)?);
/// // Up to 10 more or less than 200, or left to the tool.
/// expected.arguments.push(ExpectedArgument {
///     name: "price".into(),
///     accepted: Accepted::Near { value: Value::from(200), within: 10.0 },
///     may_be_omitted: true,
/// });
/// assert!(expected.accepts(&call(r#"{"city": "Paris", "price": 205.5}"#)?));
/// assert!(expected.accepts(&call(r#"{"city": "Paris"}"#)?));
/// assert!(!expected.accepts(&call(r#"{"city": "Paris", "price": 250}"#)?));
/// assert!(!expected.accepts(&call(r#"{"price": 200}"#)?));
/// # Ok::<(), karat_metrics::calls::json::JsonError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ExpectedArgument<'a> {
    /// The argument's name.
    pub name: Cow<'a, str>,
    /// The acceptable values.
    pub accepted: Accepted<'a>,
    /// `true` if the argument may be omitted.
    pub may_be_omitted: bool,
}

/// The acceptable values of an argument.
///
/// ```
/// use karat_metrics::calls::Value;
/// use karat_metrics::calls::expected::Accepted;
///
/// let pages = Accepted::OneOf(vec![Value::from(1), Value::from(2)]);
/// assert!(pages.accepts(&Value::from(2)) && !pages.accepts(&Value::from(3)));
/// assert!(Accepted::Anything.accepts(&Value::from(3)));
/// let about = Accepted::Near { value: Value::from(3), within: 0.5 };
/// assert!(about.accepts(&Value::from(3.25)) && !about.accepts(&Value::from(4)));
/// ```
#[derive(Clone, Debug)]
pub enum Accepted<'a> {
    /// Any value.
    Anything,
    /// A value that is JSON-equal to one of these.
    OneOf(Vec<Value<'a>>),
    /// A number within a tolerance.
    Near {
        /// The number.
        value: Value<'a>,
        /// The largest acceptable distance.
        within: f64,
    },
}

/// The treatment of arguments that an expectation does not list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExtraArguments {
    /// They are wrong.
    #[default]
    Refused,
    /// They are ignored.
    Ignored,
}

/// The presence of an expected call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Presence {
    /// The call must be made.
    #[default]
    Required,
    /// The call may be made; if it is, with acceptable arguments, it does not change the scores.
    Optional,
}

impl<'a> From<&Call<'a>> for ExpectedCall<'a> {
    fn from(call: &Call<'a>) -> Self {
        let argument = |(name, value): (&str, &Value<'a>)| ExpectedArgument {
            name: Cow::Owned(name.to_owned()),
            accepted: Accepted::OneOf(vec![value.clone()]),
            may_be_omitted: false,
        };
        ExpectedCall {
            name: call.name.clone(),
            arguments: call.arguments().iter().map(argument).collect(),
            extra_arguments: ExtraArguments::Refused,
            presence: Presence::Required,
        }
    }
}

/// Exactly these calls in this order.
impl<'a> From<&[Call<'a>]> for Expected<'a> {
    fn from(calls: &[Call<'a>]) -> Self {
        Expected { steps: calls.iter().map(|call| Step::Call(call.into())).collect() }
    }
}

impl ExpectedCall<'_> {
    /// Returns `true` if a call meets the expectation in full.
    #[must_use]
    pub fn accepts(&self, call: &Call<'_>) -> bool {
        self.agreement(call).is_some_and(|agreement| agreement.equal == agreement.all)
    }

    /// The agreement of a call's arguments with the expected ones; `None` for another tool.
    fn agreement(&self, call: &Call<'_>) -> Option<Agreement> {
        if self.name != call.name {
            return None;
        }
        let given = call.arguments();
        let mut lookup = given.lookup();
        // The name counts as one more argument, as in `calls.alignment`.
        let mut agreement = Agreement { equal: 1, all: 1 };
        let mut known = 0;
        for (position, argument) in self.arguments.iter().enumerate() {
            match lookup.find(&argument.name, position) {
                Some(value) => {
                    known += 1;
                    agreement.all += 1;
                    agreement.equal += i128::from(argument.accepted.accepts(value));
                }
                None => agreement.all += i128::from(!argument.may_be_omitted),
            }
        }
        if self.extra_arguments == ExtraArguments::Refused {
            agreement.all += given.len().saturating_sub(known) as i128;
        }
        Some(agreement)
    }
}

impl Accepted<'_> {
    /// Returns `true` if a value is acceptable.
    #[must_use]
    pub fn accepts(&self, value: &Value<'_>) -> bool {
        match self {
            Accepted::Anything => true,
            Accepted::OneOf(values) => {
                values.iter().any(|accepted| Equality::Json.values(accepted, value))
            }
            Accepted::Near { value: wanted, within } => near(wanted, *within, value),
        }
    }
}

/// The number of arguments (the name being one) that are as expected, out of all.
struct Agreement {
    equal: i128,
    all: i128,
}

// The worth of a pairing is one whole number: above, the agreement with required calls in units fine
// enough for any float; below, the number of optional calls made. So required calls choose first,
// optional ones break ties, and sums are exact.
const OPTIONAL: i128 = 1;
const REQUIRED: i128 = 1 << 32;
const FULL: i128 = 1 << 60;

/// The scores of the calls under the best interpretation of an expectation.
struct Reading {
    /// Agreement with the required calls, in units of `FULL`.
    agreement: i128,
    required: usize,
    /// Called calls that are not optional ones.
    called: usize,
}

impl Reading {
    fn new(worth: i128, required: usize, called: usize) -> Self {
        let optional = usize::try_from(worth % REQUIRED).unwrap_or(usize::MAX);
        Reading { agreement: worth / REQUIRED, required, called: called.saturating_sub(optional) }
    }

    fn is_exact(&self) -> bool {
        self.called == self.required && self.agreement == self.required as i128 * FULL
    }

    fn alignment(&self) -> f64 {
        match self.required.max(self.called) {
            0 => 1.0,
            longer => self.agreement as f64 / FULL as f64 / longer as f64,
        }
    }
}

/// The scores of calls in order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InOrder {
    /// `calls.exact`
    pub exact: bool,
    /// `calls.alignment`
    pub alignment: f64,
}

impl Expected<'_> {
    /// Returns `true` if some interpretation of the expectation fits all calls (`calls.exact`).
    #[must_use]
    pub fn exact(&self, called: &[Call<'_>]) -> bool {
        self.best_alignment(called, self.common(called)).is_exact()
    }

    /// Returns the share that agrees in order (`calls.alignment`). An optional call that was made as
    /// expected is left out of the calls, and one that was not is left out of the expectation.
    #[must_use]
    pub fn alignment(&self, called: &[Call<'_>]) -> f64 {
        self.best_alignment(called, self.common(called)).alignment()
    }

    /// Returns both scores of the calls in order, found together; `None` if [`Expected::work`] is more than
    /// `max_work`.
    ///
    /// ```
    /// use karat_metrics::calls::expected::Expected;
    /// use karat_metrics::calls::{Call, Object};
    ///
    /// let [a, b] = ["a", "b"].map(|name| Call::new(name, Object::new()));
    /// let expected = Expected::from(&[a.clone(), b][..]);
    /// let in_order = expected.in_order(&[a], 1_000).unwrap();
    /// assert_eq!((in_order.exact, in_order.alignment), (false, 0.5));
    /// ```
    #[must_use]
    pub fn in_order(&self, called: &[Call<'_>], max_work: usize) -> Option<InOrder> {
        let common = self.common(called);
        if self.work_between(called, common) > max_work {
            return None;
        }
        let best = self.best_alignment(called, common);
        Some(InOrder { exact: best.is_exact(), alignment: best.alignment() })
    }

    /// Returns the F1 of the calls in any order, each expectation met by one call at most (`calls.f1`).
    #[must_use]
    pub fn f1(&self, called: &[Call<'_>]) -> f64 {
        // Without a choice there is nothing to search.
        if self.common(called) == (self.steps.len(), 0) && called.len() == self.steps.len() {
            return 1.0;
        }
        let all: Vec<&ExpectedCall<'_>> = self.calls().collect();
        let rows = weights(called, &all, full_worth);
        let mut matching = Matching::new(all.len());
        rows.iter().for_each(|row| matching.add(row));
        let best = Reading::new(matching.total(), self.required(), called.len());
        let matched = usize::try_from(best.agreement).unwrap_or(usize::MAX);
        f1::from_counts(matched, best.required, best.called)
    }

    fn calls(&self) -> impl Iterator<Item = &ExpectedCall<'_>> {
        self.steps.iter().flat_map(|step| match step {
            Step::Call(call) => std::slice::from_ref(call),
            Step::AnyOrder(calls) => calls,
        })
    }

    fn required(&self) -> usize {
        self.calls().filter(|call| call.presence == Presence::Required).count()
    }

    /// The pairing of greatest worth that keeps the order of the steps.
    fn best_alignment(&self, called: &[Call<'_>], (start, end): (usize, usize)) -> Reading {
        let inner = &called[start..called.len() - end];
        // best[j]: the steps so far and the first j called calls.
        let mut best = vec![0_i128; inner.len() + 1];
        for step in &self.steps[start..self.steps.len() - end] {
            match step {
                Step::Call(expected) => extend_by_call(&mut best, expected, inner),
                Step::AnyOrder(group) => best = extended_by_group(&best, group, inner),
            }
        }
        let worth = best[inner.len()] + (start + end) as i128 * FULL * REQUIRED;
        Reading::new(worth, self.required(), called.len())
    }

    /// The number of steps at the start and at the end that are met in full by the call at their place.
    /// No other pairing of them is worth more: each pair has the greatest worth there is, and a pairing
    /// without it can be changed to have it.
    fn common(&self, called: &[Call<'_>]) -> (usize, usize) {
        let is_met = |(step, call): (&Step<'_>, &Call<'_>)| match step {
            Step::Call(expected) => {
                expected.presence == Presence::Required && expected.accepts(call)
            }
            Step::AnyOrder(_) => false,
        };
        let start = self.steps.iter().zip(called).take_while(|pair| is_met(*pair)).count();
        let (steps, calls) = (&self.steps[start..], &called[start..]);
        let end =
            steps.iter().rev().zip(calls.iter().rev()).take_while(|pair| is_met(*pair)).count();
        (start, end)
    }

    /// The work of aligning calls, in comparisons of one call with one expected call. It grows with the
    /// product of both numbers, and in a group without order with the square of the calls; a caller that
    /// scores the traces of others should set a limit.
    #[must_use]
    pub fn work(&self, called: &[Call<'_>]) -> usize {
        self.work_between(called, self.common(called))
    }

    fn work_between(&self, called: &[Call<'_>], (start, end): (usize, usize)) -> usize {
        let inner = called.len() - start - end;
        let steps = &self.steps[start..self.steps.len() - end];
        let work = steps.iter().map(|step| match step {
            Step::Call(_) => inner,
            Step::AnyOrder(group) => inner.saturating_mul(inner).saturating_mul(group.len()),
        });
        work.fold(0, usize::saturating_add)
    }
}

fn extend_by_call(best: &mut [i128], expected: &ExpectedCall<'_>, called: &[Call<'_>]) {
    let mut diagonal = best[0];
    for (j, call) in (1..).zip(called) {
        let paired = diagonal + aligned_worth(call, expected);
        diagonal = best[j];
        best[j] = paired.max(diagonal).max(best[j - 1]);
    }
}

fn extended_by_group(best: &[i128], group: &[ExpectedCall<'_>], called: &[Call<'_>]) -> Vec<i128> {
    let group: Vec<&ExpectedCall<'_>> = group.iter().collect();
    let rows = weights(called, &group, aligned_worth);
    let mut extended = best.to_vec();
    for start in 0..called.len() {
        if start > 0 && best[start] == best[start - 1] {
            // The segment that begins one call earlier is worth at least as much.
            continue;
        }
        let mut matching = Matching::new(group.len());
        for (end, row) in (start + 1..).zip(&rows[start..]) {
            if row.iter().any(|&weight| weight > 0) {
                matching.add(row);
                extended[end] = extended[end].max(best[start] + matching.total());
            }
        }
    }
    // Every longer segment is worth at least as much.
    for end in 1..extended.len() {
        extended[end] = extended[end].max(extended[end - 1]);
    }
    extended
}

/// The worth of a pair in an alignment: graded for required calls, all or nothing for optional ones.
fn aligned_worth(call: &Call<'_>, expected: &ExpectedCall<'_>) -> i128 {
    match (expected.agreement(call), expected.presence) {
        (Some(agreement), Presence::Required) => {
            (FULL * agreement.equal / agreement.all) * REQUIRED
        }
        (Some(agreement), Presence::Optional) if agreement.equal == agreement.all => OPTIONAL,
        _ => 0,
    }
}

/// The worth of a pair where order does not matter: all or nothing.
fn full_worth(call: &Call<'_>, expected: &ExpectedCall<'_>) -> i128 {
    match expected.presence {
        _ if !expected.accepts(call) => 0,
        Presence::Required => REQUIRED,
        Presence::Optional => OPTIONAL,
    }
}

fn weights<'a>(
    called: &[Call<'_>],
    expected: &[&ExpectedCall<'a>],
    worth: impl Fn(&Call<'_>, &ExpectedCall<'a>) -> i128,
) -> Vec<Vec<i128>> {
    let row = |call| expected.iter().map(|expected| worth(call, expected)).collect();
    called.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::super::json;
    use super::*;

    fn call<'a>(name: &'a str, arguments: &'a str) -> Call<'a> {
        Call::new(name, json::Reader::new(arguments).read_object().unwrap())
    }

    fn required<'a>(name: &'a str, arguments: &'a str) -> ExpectedCall<'a> {
        (&call(name, arguments)).into()
    }

    fn optional<'a>(name: &'a str, arguments: &'a str) -> ExpectedCall<'a> {
        ExpectedCall { presence: Presence::Optional, ..required(name, arguments) }
    }

    fn one_of<'a>(name: &'a str, argument: &'a str, values: &'a str) -> ExpectedCall<'a> {
        let Value::List(values) = json::parse(values).unwrap() else { panic!("a list") };
        let accepted = Accepted::OneOf(values);
        let argument = ExpectedArgument { name: argument.into(), accepted, may_be_omitted: false };
        ExpectedCall { arguments: vec![argument], ..required(name, "{}") }
    }

    fn in_order(calls: Vec<ExpectedCall<'_>>) -> Expected<'_> {
        Expected { steps: calls.into_iter().map(Step::Call).collect() }
    }

    fn any_order(calls: Vec<ExpectedCall<'_>>) -> Expected<'_> {
        Expected { steps: vec![Step::AnyOrder(calls)] }
    }

    #[test]
    fn each_of_the_acceptable_values_is_accepted() {
        let expected = in_order(vec![one_of("f", "unit", r#"["C", "celsius"]"#)]);
        assert!(expected.exact(&[call("f", r#"{"unit":"C"}"#)]));
        assert!(expected.exact(&[call("f", r#"{"unit":"celsius"}"#)]));
        assert!(!expected.exact(&[call("f", r#"{"unit":"K"}"#)]));
        assert!(!expected.exact(&[call("f", "{}")]));
        assert_eq!(expected.alignment(&[call("f", r#"{"unit":"K"}"#)]), 0.5);
    }

    #[test]
    fn a_number_at_the_border_of_its_tolerance_is_accepted() {
        let mut wanted = required("f", r#"{"x":0}"#);
        wanted.arguments[0].accepted = Accepted::Near { value: Value::Float(0.3), within: 0.1 };
        let expected = in_order(vec![wanted]);
        assert!(expected.exact(&[call("f", r#"{"x":0.4}"#)]));
        assert!(!expected.exact(&[call("f", r#"{"x":0.41}"#)]));
        assert!(!expected.exact(&[call("f", r#"{"x":1e999}"#)]));
        assert!(!expected.exact(&[call("f", r#"{"x":"0.3"}"#)]));
    }

    #[test]
    fn an_argument_that_may_be_omitted_counts_only_if_given() {
        let mut call_expected = one_of("f", "unit", r#"["C"]"#);
        call_expected.arguments[0].may_be_omitted = true;
        let expected = in_order(vec![call_expected]);
        assert!(expected.exact(&[call("f", "{}")]));
        assert!(expected.exact(&[call("f", r#"{"unit":"C"}"#)]));
        assert!(!expected.exact(&[call("f", r#"{"unit":"K"}"#)]));
        assert!(!expected.exact(&[call("f", r#"{"other":1}"#)]));
    }

    #[test]
    fn an_expectation_can_consist_of_a_name_alone() {
        let expected = in_order(vec![ExpectedCall {
            extra_arguments: ExtraArguments::Ignored,
            ..required("f", "{}")
        }]);
        assert!(expected.exact(&[call("f", r#"{"x":1}"#)]));
        assert!(!expected.exact(&[call("g", "{}")]));
    }

    #[test]
    fn a_group_is_assigned_optimally_where_a_greedy_assignment_fails() {
        // Greedily the first call takes the expectation that only the second could meet.
        let expected = any_order(vec![one_of("f", "x", "[1, 2]"), one_of("f", "x", "[1]")]);
        let called = [call("f", r#"{"x":1}"#), call("f", r#"{"x":2}"#)];
        assert!(expected.exact(&called));
        assert_eq!(expected.f1(&called), 1.0);
    }

    #[test]
    fn the_order_counts_between_groups_and_not_within() {
        let group = |a, b| Step::AnyOrder(vec![required(a, "{}"), required(b, "{}")]);
        let expected = Expected { steps: vec![group("a", "b"), group("c", "d")] };
        let called = |names: [&'static str; 4]| names.map(|name| call(name, "{}"));
        assert!(expected.exact(&called(["b", "a", "d", "c"])));
        assert!(!expected.exact(&called(["a", "c", "b", "d"])));
        assert_eq!(expected.alignment(&called(["a", "c", "b", "d"])), 3.0 / 4.0);
        assert_eq!(expected.f1(&called(["a", "c", "b", "d"])), 1.0);
    }

    #[test]
    fn an_optional_call_does_not_change_the_scores() {
        let expected = in_order(vec![
            required("a", "{}"),
            optional("log", r#"{"level":1}"#),
            required("b", "{}"),
        ]);
        let [a, b] = ["a", "b"].map(|name| call(name, "{}"));
        let log = call("log", r#"{"level":1}"#);
        let wrong_log = call("log", r#"{"level":2}"#);
        for called in [vec![a.clone(), b.clone()], vec![a.clone(), log.clone(), b.clone()]] {
            assert!(expected.exact(&called));
            assert_eq!(expected.alignment(&called), 1.0);
            assert_eq!(expected.f1(&called), 1.0);
        }
        let scores = |called: &[Call<'_>]| (expected.alignment(called), expected.f1(called));
        assert_eq!(scores(std::slice::from_ref(&a)), scores(&[a.clone(), log.clone()]));
        // Made twice or made wrongly, it is an extra call.
        assert_eq!(scores(&[a.clone(), log.clone(), log, b.clone()]), (2.0 / 3.0, 0.8));
        assert_eq!(scores(&[a, wrong_log, b]), (2.0 / 3.0, 0.8));
    }

    #[test]
    fn a_required_call_is_matched_before_an_optional_one() {
        let expected = any_order(vec![optional("f", "{}"), required("f", "{}")]);
        assert!(expected.exact(&[call("f", "{}")]));
        assert!(expected.exact(&[call("f", "{}"), call("f", "{}")]));
        assert!(!expected.exact(&[]));
    }

    #[test]
    fn no_calls_are_right_where_none_are_expected() {
        let nothing = Expected::default();
        assert!(nothing.exact(&[]));
        assert_eq!((nothing.alignment(&[]), nothing.f1(&[])), (1.0, 1.0));
        let extra = [call("f", "{}")];
        assert_eq!((nothing.alignment(&extra), nothing.f1(&extra)), (0.0, 0.0));
        let only_optional = in_order(vec![optional("f", "{}")]);
        assert!(only_optional.exact(&[]));
        assert!(only_optional.exact(&extra));
    }
}
