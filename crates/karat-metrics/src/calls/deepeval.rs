//! The deterministic tool metrics of DeepEval 4.3.1 (`ToolCorrectnessMetric` without available tools,
//! `ToolPermissionMetric`), value for value.
//!
//! Nothing is corrected here, with one exception: where one call records parameters and the other
//! does not, DeepEval fails with an `AttributeError`, and such a pair scores 0 here, as in its exact
//! mode.
//! Reasons and verbose logs are not reproduced.

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

use super::{Call, Equality, Object, Value};
use crate::metric::{Better, Metric, Unit};

/// The id of [`ToolCorrectness`] with the default settings.
pub const TOOL_CORRECTNESS: &str = "deepeval.tool_correctness";
/// The id of [`ToolPermission`].
pub const TOOL_PERMISSION: &str = "deepeval.tool_permission";

/// The metrics of this file.
pub(super) const METRICS: &[Metric] = &[
    Metric {
        id: TOOL_CORRECTNESS,
        summary: "Share of the expected tools that were called (DeepEval)",
        formula: "default: for each expected call in order, the best score among the called ones not yet used; sum / expected calls. ordered: weighted longest common subsequence / expected calls. exact: 1 if both lists agree position by position, else 0. Both lists empty: 1; nothing expected but something called: 0",
        better: Better::Higher,
        unit: Unit::Share,
        notes: "As `ToolCorrectnessMetric` of DeepEval 4.3.1 without `available_tools`. A setting is written behind the id: `deepeval.tool_correctness|MODE|PARAMETERS[|OPTION]` with mode `default`, `ordered`, `exact` or `exact+ordered` (exact wins), parameters `name`, `name+input`, `name+output` or `name+input+output`, and option `strict`, `threshold=0.7` or `threshold=none`; the plain id means `|default|name`, threshold 0.5. A pair counts if name and type agree; with `input` it scores the share of equal parameters over the union of keys, nested objects recursively; with `output` it scores 0 unless the outputs are equal. Values are compared by Python's `==`. Extra calls cost nothing except in exact mode. In default mode identical calls count as used together, so expected [A, A] and called [A, A] score **0.5**. Where parameters are recorded on one side only, DeepEval raises an error; here the pair scores 0.",
        has_settings: true,
        ..Metric::DEFAULT
    },
    Metric {
        id: TOOL_PERMISSION,
        summary: "Share of the calls that the agent was allowed to make (DeepEval)",
        formula: "calls of a tool that is on the list of allowed tools (if there is one) and not on the list of denied tools / calls; no calls: 1",
        better: Better::Higher,
        unit: Unit::Share,
        notes: "As `ToolPermissionMetric` of DeepEval 4.3.1: denied wins over allowed, an empty list of allowed tools allows none, threshold 1 unless said otherwise.",
        ..Metric::DEFAULT
    },
];

/// A score and its success.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// From 0 to 1.
    pub score: f64,
    /// `true` if the score reaches the threshold; `None` without one.
    pub success: Option<bool>,
}

/// The score at which a sample succeeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// At this score or above.
    At(f64),
    /// Only with the full score; anything less becomes 0.
    Strict,
    /// Success is not decided.
    None,
}

impl Threshold {
    fn outcome(self, score: f64) -> Outcome {
        match self {
            Threshold::At(threshold) => Outcome { score, success: Some(score >= threshold) },
            Threshold::Strict if score < 1.0 => Outcome { score: 0.0, success: Some(false) },
            Threshold::Strict => Outcome { score, success: Some(true) },
            Threshold::None => Outcome { score, success: None },
        }
    }
}

/// The comparison of the lists of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Greedily, in any order.
    #[default]
    Default,
    /// By the weighted longest common subsequence.
    Ordered,
    /// Position by position, all or nothing.
    Exact,
    /// Both options given: DeepEval then compares as in [`Mode::Exact`].
    ExactOrdered,
}

/// The settings of DeepEval's `ToolCorrectnessMetric`.
///
/// ```
/// use karat_metrics::calls::deepeval::ToolCorrectness;
/// use karat_metrics::calls::{Call, Object};
///
/// let [a, b] = ["a", "b"].map(|name| Call::new(name, Object::new()));
/// let outcome = ToolCorrectness::default().measure(&[b.clone()], &[a, b]);
/// assert_eq!((outcome.score, outcome.success), (0.5, Some(true)));
///
/// let settings: ToolCorrectness = "ordered|name+input|threshold=0.7".parse()?;
/// assert_eq!(settings.id(), "deepeval.tool_correctness|ordered|name+input|threshold=0.7");
/// # Ok::<(), karat_metrics::calls::deepeval::UnknownSetting>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ToolCorrectness {
    /// The comparison of the lists.
    pub mode: Mode,
    /// `true` if input parameters count, in addition to name and type.
    pub input: bool,
    /// `true` if outputs count, in addition to name and type.
    pub output: bool,
    /// The score at which a sample succeeds.
    pub threshold: Threshold,
}

impl Default for ToolCorrectness {
    fn default() -> Self {
        ToolCorrectness {
            mode: Mode::Default,
            input: false,
            output: false,
            threshold: Threshold::At(DEFAULT_THRESHOLD),
        }
    }
}

const DEFAULT_THRESHOLD: f64 = 0.5;

impl ToolCorrectness {
    /// Returns the id with these settings: `deepeval.tool_correctness` and a suffix.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{TOOL_CORRECTNESS}|{self}")
    }

    /// Compares the calls that were made with the expected ones.
    #[must_use]
    pub fn measure(&self, called: &[Call<'_>], expected: &[Call<'_>]) -> Outcome {
        let score = match (called.len(), expected.len()) {
            (0, 0) => 1.0,
            (_, 0) => 0.0,
            _ => match self.mode {
                Mode::Default => self.greedy(called, expected),
                Mode::Ordered => self.ordered(called, expected),
                Mode::Exact | Mode::ExactOrdered => self.exact(called, expected),
            },
        };
        self.threshold.outcome(score)
    }

    fn exact(&self, called: &[Call<'_>], expected: &[Call<'_>]) -> f64 {
        let same = |(called, expected): (&Call<'_>, &Call<'_>)| {
            called.name == expected.name
                && called.kind == expected.kind
                && (!self.input || same_parameters(called, expected))
                && (!self.output || same_output(called, expected))
        };
        let all = called.len() == expected.len() && called.iter().zip(expected).all(same);
        if all { 1.0 } else { 0.0 }
    }

    fn greedy(&self, called: &[Call<'_>], expected: &[Call<'_>]) -> f64 {
        // A set of values in DeepEval: a used call takes all calls equal to it with it, whatever the
        // parameters that count and whatever its type.
        let mut used: Vec<bool> = vec![false; called.len()];
        let mut sum = 0.0;
        for expected in expected {
            let mut best = (0.0, None);
            for (position, candidate) in called.iter().enumerate() {
                if used[position] {
                    continue;
                }
                let score = self.pair_score(expected, candidate);
                if score > best.0 {
                    best = (score, Some(position));
                }
            }
            if let (score, Some(position)) = best {
                sum += score;
                for (other, call) in called.iter().enumerate() {
                    used[other] |= other == position || same_value(call, &called[position]);
                }
            }
        }
        sum / expected.len() as f64
    }

    fn ordered(&self, called: &[Call<'_>], expected: &[Call<'_>]) -> f64 {
        let width = called.len() + 1;
        let keep_all = width.saturating_mul(expected.len() + 1) <= LARGEST_TABLE;
        let mut table =
            vec![0.0_f64; if keep_all { width * (expected.len() + 1) } else { 2 * width }];
        let row = |i: usize| if keep_all { i * width } else { (i % 2) * width };
        for (i, expected) in (1..).zip(expected) {
            let (above, here) = (row(i - 1), row(i));
            for (j, called) in (1..).zip(called) {
                let score = self.pair_score(expected, called);
                let skip = table[above + j].max(table[here + j - 1]);
                let take = if score > 0.0 { table[above + j - 1] + score } else { 0.0 };
                table[here + j] = skip.max(take);
            }
        }
        let total = if keep_all {
            path_total(&table, width)
        } else {
            // The same sum without DeepEval's roundings on the way back through the table.
            table[row(expected.len()) + called.len()]
        };
        total / expected.len() as f64
    }

    /// The score of a made call for an expected one.
    fn pair_score(&self, expected: &Call<'_>, called: &Call<'_>) -> f64 {
        if expected.name != called.name || expected.kind != called.kind {
            return 0.0;
        }
        if self.output && !same_output(expected, called) {
            return 0.0;
        }
        if !self.input || same_parameters(expected, called) {
            return 1.0;
        }
        match (&expected.arguments, &called.arguments) {
            (Some(expected), Some(called)) => shared(expected, called),
            _ => 0.0,
        }
    }
}

/// Up to this many cells the table of the ordered mode is kept whole, so that the sum is formed in
/// DeepEval's way; beyond, only two rows of it are kept.
const LARGEST_TABLE: usize = 1 << 22;

/// Goes back through the table as DeepEval does, adding up what each matched pair contributed.
fn path_total(table: &[f64], width: usize) -> f64 {
    let (mut i, mut j) = (table.len() / width - 1, width - 1);
    let mut total = 0.0;
    while i > 0 && j > 0 {
        let here = table[i * width + j];
        if here == table[(i - 1) * width + j] {
            i -= 1;
        } else if here == table[i * width + j - 1] {
            j -= 1;
        } else {
            total += here - table[(i - 1) * width + j - 1];
            i -= 1;
            j -= 1;
        }
    }
    total
}

/// The share of equal entries over the union of keys, of objects that are not equal.
fn shared(expected: &Object<'_>, called: &Object<'_>) -> f64 {
    let mut in_called = called.lookup();
    let in_both = |(position, (key, value))| Some((value, in_called.find(key, position)?));
    let pairs: Vec<(&Value<'_>, &Value<'_>)> =
        expected.iter().enumerate().filter_map(in_both).collect();
    let union = (expected.len() + called.len() - pairs.len()) as f64;
    let mut sum = 0.0;
    for (expected, called) in pairs {
        if Equality::Python.values(expected, called) {
            sum += 1.0 / union;
        } else if let (Value::Object(expected), Value::Object(called)) = (expected, called) {
            sum += shared(expected, called) / union;
        }
    }
    sum
}

fn same_parameters(a: &Call<'_>, b: &Call<'_>) -> bool {
    match (&a.arguments, &b.arguments) {
        (Some(a), Some(b)) => a.written_alike(b) || Equality::Python.objects(a, b),
        (None, None) => true,
        _ => false,
    }
}

fn same_output(a: &Call<'_>, b: &Call<'_>) -> bool {
    Equality::Python.values(&a.output, &b.output)
}

/// Equality of DeepEval's `ToolCall`, which ignores the type.
fn same_value(a: &Call<'_>, b: &Call<'_>) -> bool {
    a.name == b.name && same_parameters(a, b) && same_output(a, b)
}

/// Writes the suffix of the id: `ordered|name+input|threshold=0.7`.
impl fmt::Display for ToolCorrectness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.mode {
            Mode::Default => "default|name",
            Mode::Ordered => "ordered|name",
            Mode::Exact => "exact|name",
            Mode::ExactOrdered => "exact+ordered|name",
        })?;
        f.write_str(if self.input { "+input" } else { "" })?;
        f.write_str(if self.output { "+output" } else { "" })?;
        match self.threshold {
            Threshold::At(DEFAULT_THRESHOLD) => Ok(()),
            Threshold::At(threshold) => write!(f, "|threshold={threshold}"),
            Threshold::Strict => f.write_str("|strict"),
            Threshold::None => f.write_str("|threshold=none"),
        }
    }
}

/// A suffix that is not a setting of `deepeval.tool_correctness`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownSetting(pub String);

impl fmt::Display for UnknownSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is not a setting of {}: write MODE|PARAMETERS[|OPTION], \
             for example ordered|name+input|threshold=0.7",
            self.0, TOOL_CORRECTNESS
        )
    }
}

impl std::error::Error for UnknownSetting {}

/// Reads what `Display` writes.
impl FromStr for ToolCorrectness {
    type Err = UnknownSetting;

    fn from_str(suffix: &str) -> Result<Self, UnknownSetting> {
        let unknown = || UnknownSetting(suffix.to_owned());
        let mut parts = suffix.split('|');
        let mode = match parts.next() {
            Some("default") => Mode::Default,
            Some("ordered") => Mode::Ordered,
            Some("exact") => Mode::Exact,
            Some("exact+ordered") => Mode::ExactOrdered,
            _ => return Err(unknown()),
        };
        let (input, output) = match parts.next() {
            Some("name") => (false, false),
            Some("name+input") => (true, false),
            Some("name+output") => (false, true),
            Some("name+input+output") => (true, true),
            _ => return Err(unknown()),
        };
        let threshold = match parts.next() {
            None => Threshold::At(DEFAULT_THRESHOLD),
            Some("strict") => Threshold::Strict,
            Some("threshold=none") => Threshold::None,
            Some(option) => {
                let number = option.strip_prefix("threshold=").and_then(|text| text.parse().ok());
                let finite = number.filter(|threshold: &f64| threshold.is_finite());
                Threshold::At(finite.ok_or_else(unknown)?)
            }
        };
        match parts.next() {
            None => Ok(ToolCorrectness { mode, input, output, threshold }),
            Some(_) => Err(unknown()),
        }
    }
}

/// The settings of DeepEval's `ToolPermissionMetric`.
///
/// ```
/// use karat_metrics::calls::deepeval::{Threshold, ToolPermission};
/// use karat_metrics::calls::{Call, Object};
///
/// let denied = ["delete".to_owned()].into();
/// let policy = ToolPermission::new(None, Some(denied), Threshold::At(1.0))?;
/// let calls = ["read", "delete"].map(|name| Call::new(name, Object::new()));
/// assert_eq!(policy.measure(&calls).score, 0.5);
/// # Ok::<(), karat_metrics::calls::deepeval::NoPolicy>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ToolPermission {
    allowed: Option<HashSet<String>>,
    denied: HashSet<String>,
    threshold: Threshold,
}

/// An error: neither allowed nor denied tools were given, so there is nothing to check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPolicy;

impl fmt::Display for NoPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{TOOL_PERMISSION} needs a list of allowed tools or one of denied tools")
    }
}

impl std::error::Error for NoPolicy {}

impl ToolPermission {
    /// Creates a policy. Without a list of allowed tools every tool that is not denied is allowed.
    ///
    /// # Errors
    /// If neither list is given.
    pub fn new(
        allowed: Option<HashSet<String>>,
        denied: Option<HashSet<String>>,
        threshold: Threshold,
    ) -> Result<Self, NoPolicy> {
        if allowed.is_none() && denied.is_none() {
            return Err(NoPolicy);
        }
        Ok(ToolPermission { allowed, denied: denied.unwrap_or_default(), threshold })
    }

    /// Returns the share of permitted calls.
    #[must_use]
    pub fn measure(&self, called: &[Call<'_>]) -> Outcome {
        let permitted = called.iter().filter(|call| self.permits(&call.name)).count();
        let score = if called.is_empty() { 1.0 } else { permitted as f64 / called.len() as f64 };
        self.threshold.outcome(score)
    }

    fn permits(&self, name: &str) -> bool {
        !self.denied.contains(name)
            && self.allowed.as_ref().is_none_or(|allowed| allowed.contains(name))
    }
}

#[cfg(test)]
mod tests {
    use super::super::json;
    use super::*;

    fn call<'a>(name: &'a str, arguments: &'a str) -> Call<'a> {
        Call::new(name, json::Reader::new(arguments).read_object().unwrap())
    }

    fn setting(suffix: &str) -> ToolCorrectness {
        suffix.parse().unwrap()
    }

    #[test]
    fn a_setting_is_written_as_it_is_read() {
        for suffix in [
            "default|name",
            "ordered|name+input",
            "exact|name+output|strict",
            "exact+ordered|name+input+output|threshold=0.7",
            "default|name|threshold=none",
        ] {
            assert_eq!(setting(suffix).to_string(), suffix);
        }
        assert_eq!(setting("default|name|threshold=0.5"), ToolCorrectness::default());
    }

    #[test]
    fn a_suffix_that_is_not_a_setting_is_rejected() {
        for suffix in [
            "",
            "default",
            "sorted|name",
            "default|input",
            "default|name|",
            "default|name|threshold=x",
            "default|name|threshold=nan",
            "default|name|strict|strict",
        ] {
            assert_eq!(suffix.parse::<ToolCorrectness>(), Err(UnknownSetting(suffix.to_owned())));
        }
    }

    #[test]
    fn identical_calls_are_used_together_in_default_mode_only() {
        let twice = [call("A", "{}"), call("A", "{}")];
        assert_eq!(setting("default|name").measure(&twice, &twice).score, 0.5);
        assert_eq!(setting("ordered|name").measure(&twice, &twice).score, 1.0);
        assert_eq!(setting("exact|name").measure(&twice, &twice).score, 1.0);
    }

    #[test]
    fn parameters_recorded_on_one_side_only_score_zero() {
        let without = Call { name: "A".into(), ..Call::default() };
        let with = [call("A", "{}"), call("A", r#"{"x":1}"#)];
        for mode in ["default", "ordered", "exact"] {
            let setting = setting(&format!("{mode}|name+input"));
            for with in &with {
                let score = |a: &Call<'_>, b: &Call<'_>| {
                    setting.measure(std::slice::from_ref(a), std::slice::from_ref(b)).score
                };
                assert_eq!(score(&without, with), 0.0, "{mode}");
                assert_eq!(score(with, &without), 0.0, "{mode}");
                assert_eq!(score(&without, &without), 1.0, "{mode}");
            }
        }
    }

    #[test]
    fn a_strict_threshold_turns_a_partial_score_into_zero() {
        let called = [call("A", "{}")];
        let expected = [call("A", "{}"), call("B", "{}")];
        let half = |suffix: &str| setting(suffix).measure(&called, &expected);
        assert_eq!(half("default|name"), Outcome { score: 0.5, success: Some(true) });
        assert_eq!(half("default|name|strict"), Outcome { score: 0.0, success: Some(false) });
        assert_eq!(half("default|name|threshold=none"), Outcome { score: 0.5, success: None });
    }

    #[test]
    fn a_long_trace_is_scored_in_little_memory_with_the_same_result() {
        let called: Vec<Call<'_>> =
            (0..2100).map(|n| call(["A", "B", "C"][n % 3], r#"{"x":1,"y":2}"#)).collect();
        let expected: Vec<Call<'_>> =
            (0..2100).map(|n| call(["A", "C", "B", "D"][n % 4], r#"{"x":1,"z":2}"#)).collect();
        let whole = setting("ordered|name+input");
        assert!((called.len() + 1) * (expected.len() + 1) > LARGEST_TABLE);
        let long = whole.measure(&called, &expected).score;
        let naive = {
            let mut table = vec![vec![0.0_f64; called.len() + 1]; expected.len() + 1];
            for i in 1..=expected.len() {
                for j in 1..=called.len() {
                    let pair = whole.pair_score(&expected[i - 1], &called[j - 1]);
                    let skip = table[i - 1][j].max(table[i][j - 1]);
                    table[i][j] = skip.max(table[i - 1][j - 1] + pair);
                }
            }
            table[expected.len()][called.len()] / expected.len() as f64
        };
        assert!((long - naive).abs() < 1e-12, "{long} {naive}");
    }

    #[test]
    fn denied_wins_over_allowed() {
        let set = |names: &[&str]| Some(names.iter().map(ToString::to_string).collect());
        let calls = ["a", "b", "c", "a"].map(|name| call(name, "{}"));
        let policy = |allowed, denied| ToolPermission::new(allowed, denied, Threshold::At(1.0));
        let score = |allowed, denied| policy(allowed, denied).unwrap().measure(&calls);
        assert_eq!(score(set(&["a", "b"]), None), Outcome { score: 0.75, success: Some(false) });
        assert_eq!(score(set(&["a", "b"]), set(&["a"])).score, 0.25);
        assert_eq!(score(None, set(&["x"])), Outcome { score: 1.0, success: Some(true) });
        assert_eq!(score(set(&[]), None).score, 0.0);
        assert_eq!(policy(set(&[]), None).unwrap().measure(&[]).score, 1.0);
        assert_eq!(policy(None, None), Err(NoPolicy));
    }
}
