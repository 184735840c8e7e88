//! The gate: policy and baseline in, one of three verdicts out.
//!
//! A system that answers the same every time is compared exactly: a drop beyond the tolerance fails.
//! One that varies is compared by non-inferiority: it passes when the data show that the loss is
//! within the tolerance, fails when they show that it is not, and is inconclusive otherwise, with the
//! number of items that would decide (`against`). Limits are checked on the value and, where
//! asked, certified from the counts. A gate that cannot be evaluated is an error of the project,
//! never a pass.

use std::collections::BTreeMap;

mod against;

use karat_metrics::registry;
use karat_metrics::stats;
use serde::{Deserialize, Serialize};

use self::against::{Against, decide_together, with_baseline};
use crate::align::{Aligned, align};
use crate::baseline::Baseline;
use crate::compare::{self, CompareError, SliceKey};
use crate::paired::{ROUNDING, scores};
use crate::report::{Better, Check, Gate, Item, Measured, NotCompared, Report, Verdict};
use karat_io::text::{first_few, printable};

/// The error probability of every decision.
const ALPHA: f64 = 0.05;
/// The power for which "how many more" is computed.
const POWER: f64 = 0.8;
/// The most item names in one reason; the check carries them all.
const NAMED: usize = 5;

/// The rules of a project for one entry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// Gate over this slice (`split=test`) instead of over all items.
    pub slice: Option<String>,
    /// The largest share of items that may go unanswered. Without it none may, but recorded runs that failed
    /// are part of their record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_errors: Option<f64>,
    /// Items of which none may get worse.
    pub protected: Option<Protected>,
    /// The rules, by metric id; `recall@5 on kind=paraphrase` is a rule over a slice of its own.
    pub metrics: BTreeMap<String, Rule>,
}

/// Items of which none may get worse: a slice, a list, or all of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Protected {
    /// The items, as `property=value`.
    pub slice: Option<String>,
    /// The items, by id.
    #[serde(default)]
    pub ids: Vec<String>,
    /// The metric, such as `success@5`.
    pub metric: String,
}

/// The rules for one metric; at least one must be set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rule {
    /// The amount it may fall below the baseline (metrics where higher is better).
    pub max_drop: Option<f64>,
    /// The amount it may rise above the baseline (metrics where lower is better).
    pub max_rise: Option<f64>,
    /// The floor.
    pub min: Option<f64>,
    /// The ceiling.
    pub max: Option<f64>,
    /// Floor and ceiling must be certified at 95 %, not only kept by the value.
    pub certify: bool,
}

/// The reason why a gate cannot be evaluated: the project or the baseline has to change.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum GateError {
    /// No such metric.
    #[error("gate: unknown metric {id:?}{}; `karat metrics` lists all", hint(nearest))]
    UnknownMetric {
        /// The text as it was written.
        id: String,
        /// The nearest known id.
        nearest: Option<String>,
    },
    /// The metric exists, but this evaluation does not compute it.
    #[error(
        "gate: this evaluation does not compute {id:?}{}; it has: {}",
        printable(place),
        printable(known)
    )]
    NotComputed {
        /// The text as it was written.
        id: String,
        /// The slice, as text, or empty.
        place: String,
        /// The ones that exist.
        known: String,
    },
    /// The slice does not exist.
    #[error("gate: no slice {slice:?}; expected one of {}", printable(known))]
    NoSlice {
        /// The text as it was written.
        slice: String,
        /// The ones that exist.
        known: String,
    },
    /// A rule that says nothing, or the contrary of what was meant.
    #[error("gate: {}: {}", printable(id), printable(message))]
    Rule {
        /// The metric.
        id: String,
        /// The problem.
        message: String,
    },
    /// A rule compares with a baseline, and there is none.
    #[error(
        "gate: {rule} of {} requires a baseline; record one with `karat baseline update`",
        printable(id)
    )]
    NoBaseline {
        /// The metric.
        id: String,
        /// The rule.
        rule: &'static str,
    },
    /// The baseline lacks the metric.
    #[error(
        "gate: the baseline has no {}{}; accept the present scores with `karat baseline update`",
        printable(id),
        printable(place)
    )]
    MissingInBaseline {
        /// The metric.
        id: String,
        /// The slice, as text, or empty.
        place: String,
    },
    /// The baseline was measured in another way.
    #[error(
        "gate: {} cannot be compared with the baseline: {reason}; restore `results`, gate a metric with a \
         smaller cutoff, or accept the present scores with `karat baseline update`",
        printable(id)
    )]
    NotComparable {
        /// The metric.
        id: String,
        /// The difference.
        reason: String,
    },
    /// The data changed, and the metric cannot be taken over a part of the items.
    #[error(
        "gate: {} is not the mean of its items' scores, so it cannot be compared over the items that are the \
         same ({}); gate one that is, or accept the present scores with `karat baseline update`",
        printable(id),
        printable(data)
    )]
    OverFewer {
        /// The metric.
        id: String,
        /// The way the data changed.
        data: String,
    },
    /// The baseline is of other data.
    #[error("gate: {0}")]
    Compare(#[from] CompareError),
}

fn hint(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|id| format!(" (did you mean {id:?}?)")).unwrap_or_default()
}

impl GateError {
    /// The metric, slice or key of the gate that it is about.
    #[must_use]
    pub(crate) fn subject(&self) -> Option<&str> {
        match self {
            GateError::UnknownMetric { id, .. }
            | GateError::NotComputed { id, .. }
            | GateError::Rule { id, .. }
            | GateError::NoBaseline { id, .. }
            | GateError::MissingInBaseline { id, .. }
            | GateError::OverFewer { id, .. }
            | GateError::NotComparable { id, .. } => Some(id),
            GateError::NoSlice { slice, .. } => Some(slice),
            GateError::Compare(_) => None,
        }
    }
}

impl Policy {
    /// Returns whether any rule compares with a baseline.
    pub(crate) fn needs_baseline(&self) -> bool {
        self.protected.is_some()
            || self.metrics.values().any(|rule| rule.max_drop.is_some() || rule.max_rise.is_some())
    }

    /// The rules that need no baseline: floors and ceilings.
    #[must_use]
    pub(crate) fn without_baseline(&self) -> Policy {
        let limits = |rule: &Rule| Rule { max_drop: None, max_rise: None, ..*rule };
        let metrics = self
            .metrics
            .iter()
            .filter(|(_, rule)| rule.min.is_some() || rule.max.is_some())
            .map(|(id, rule)| (id.clone(), limits(rule)))
            .collect();
        Policy { protected: None, metrics, ..self.clone() }
    }

    /// The largest share of questions that may go unanswered.
    pub fn allowed_errors(&self) -> f64 {
        self.max_errors.unwrap_or(0.0)
    }

    /// Finds what is wrong with the policy before anything is run.
    pub fn validate(&self) -> Result<(), GateError> {
        if let Some(share) = self.max_errors.filter(|share| !(0.0..=1.0).contains(share)) {
            return Err(GateError::Rule {
                id: "max_errors".to_owned(),
                message: format!("{share} is not a share between 0 and 1"),
            });
        }
        self.slice_key()?;
        if let Some(protected) = &self.protected {
            protected.key()?;
            known(&protected.metric)?;
            if protected.slice.is_some() && !protected.ids.is_empty() {
                let message = "slice and ids cannot be combined".to_owned();
                return Err(GateError::Rule { id: "protected".to_owned(), message });
            }
        }
        for (target, rule) in &self.metrics {
            let (id, _) = self.target(target)?;
            validate_rule(id, known(id)?, rule)?;
            if registry::find(id).is_some_and(registry::Metric::is_share) {
                validate_share(id, rule)?;
            }
        }
        Ok(())
    }

    /// Finds what a baseline lacks before anything is run.
    pub(crate) fn covered_by(&self, baseline: &Baseline) -> Result<(), GateError> {
        for (target, rule) in &self.metrics {
            if rule.max_drop.is_some() || rule.max_rise.is_some() {
                let (id, slice) = self.target(target)?;
                Against::new(id, "max_drop", slice.as_ref(), Some(baseline))?;
            }
        }
        if let Some(protected) = &self.protected
            && !baseline.items.iter().any(|item| {
                item.metrics.get(protected.metric.as_str()).is_some_and(Option::is_some)
            })
        {
            let place = place(protected.key()?.as_ref());
            return Err(GateError::MissingInBaseline { id: protected.metric.clone(), place });
        }
        Ok(())
    }

    /// The metric and the slice that the name of a rule says.
    ///
    /// # Errors
    /// If the slice is not written as one.
    pub(crate) fn target<'t>(
        &self,
        name: &'t str,
    ) -> Result<(&'t str, Option<SliceKey>), GateError> {
        match name.split_once(" on ") {
            Some((id, slice)) => Ok((id.trim(), Some(parse_slice(slice.trim())?))),
            None => Ok((name, self.slice_key()?)),
        }
    }

    /// The slice that is gated.
    pub(crate) fn slice_key(&self) -> Result<Option<SliceKey>, GateError> {
        self.slice.as_deref().map(parse_slice).transpose()
    }
}

impl Protected {
    fn key(&self) -> Result<Option<SliceKey>, GateError> {
        self.slice.as_deref().map(parse_slice).transpose()
    }
}

fn parse_slice(text: &str) -> Result<SliceKey, GateError> {
    text.parse().map_err(|message| GateError::Rule { id: "slice".to_owned(), message })
}

fn known(id: &str) -> Result<Better, GateError> {
    match registry::find(id) {
        Some(metric) => Ok(metric.better.into()),
        None => Err(GateError::UnknownMetric { id: id.to_owned(), nearest: registry::nearest(id) }),
    }
}

fn validate_rule(id: &str, better: Better, rule: &Rule) -> Result<(), GateError> {
    let wrong =
        |message: &str| Err(GateError::Rule { id: id.to_owned(), message: message.to_owned() });
    let limits = [rule.max_drop, rule.max_rise, rule.min, rule.max];
    if limits.iter().all(Option::is_none) {
        return wrong("the rule is empty; use max_drop, max_rise, min or max");
    }
    if limits.iter().flatten().any(|limit| !limit.is_finite()) {
        return wrong("a limit is not a finite number");
    }
    if rule.max_drop.is_some_and(|limit| limit < 0.0) || rule.max_rise.is_some_and(|l| l < 0.0) {
        return wrong("a tolerance cannot be negative");
    }
    if let (Some(min), Some(max)) = (rule.min, rule.max)
        && min > max
    {
        return wrong(&format!("min = {min} is above max = {max}, so no value can pass"));
    }
    match better {
        Better::Higher if rule.max_rise.is_some() => wrong("higher is better here: use max_drop"),
        Better::Lower if rule.max_drop.is_some() => wrong("lower is better here: use max_rise"),
        _ if rule.certify && rule.min.is_none() && rule.max.is_none() => {
            wrong("certify needs min or max")
        }
        _ => Ok(()),
    }
}

/// Refuses limits that a value from 0 to 1 can never break, or never keep.
fn validate_share(id: &str, rule: &Rule) -> Result<(), GateError> {
    let above = |limit: f64| limit > 1.0;
    let below = |limit: f64| limit < 0.0;
    let useless = [
        ("max_drop", rule.max_drop.filter(|limit| above(*limit)), "fail"),
        ("max_rise", rule.max_rise.filter(|limit| above(*limit)), "fail"),
        ("max", rule.max.filter(|limit| above(*limit)), "fail"),
        ("min", rule.min.filter(|limit| below(*limit)), "fail"),
        ("max", rule.max.filter(|limit| below(*limit)), "hold"),
        ("min", rule.min.filter(|limit| above(*limit)), "hold"),
    ];
    let found = useless.into_iter().find_map(|(key, limit, what)| Some((key, limit?, what)));
    let Some((key, limit, what)) = found else { return Ok(()) };
    let message = format!(
        "the value lies between 0 and 1, so {key} = {limit} can never {what}; write 5 % as 0.05"
    );
    Err(GateError::Rule { id: id.to_owned(), message })
}

/// Compares a fresh report with its baseline and evaluates the policy; the report holds both
/// afterwards. Checks that the evaluation made itself are kept; if one of them is an invariant that
/// does not hold, nothing is compared with the baseline.
pub fn judge(
    report: &mut Report,
    policy: &Policy,
    baseline: Option<&Baseline>,
) -> Result<Verdict, GateError> {
    let own = report.gate.take().map(|gate| gate.checks).unwrap_or_default();
    let broken = |check: &Check| check.rule == "invariant" && check.verdict == Verdict::Fail;
    let (policy, baseline) = match own.iter().any(broken) {
        true => (&policy.without_baseline(), None),
        false => (policy, baseline),
    };
    if let Some(baseline) = baseline {
        let mut slices: Vec<SliceKey> = policy.slice_key()?.into_iter().collect();
        for target in policy.metrics.keys() {
            slices.extend(policy.target(target)?.1);
        }
        slices.sort_unstable();
        slices.dedup();
        let comparison = compare::compare(baseline, report, &slices)?;
        report.warnings.extend(comparison.data.iter().flat_map(|data| data.lines(NAMED)));
        report.warnings.extend(comparison.not_compared.iter().map(|left_out| {
            let NotCompared { metrics, reason } = left_out;
            format!("not compared with the baseline: {} ({reason})", metrics.join(", "))
        }));
        report.comparison = Some(comparison);
    }
    let mut gate = evaluate(policy, report, baseline)?;
    let verdict = own.iter().map(|check| check.verdict).fold(gate.verdict, Ord::max);
    gate.checks.extend(own);
    report.gate = Some(Gate { verdict, ..gate });
    Ok(verdict)
}

/// Fails a report whose policy cannot be applied to it: what was measured is shown, and passes no gate.
pub fn fail_unjudged(report: &mut Report, error: &GateError) {
    let reason = format!("cannot be applied: {}", printable(&error.to_string()));
    let check = Check::of("gate", "policy", Verdict::Fail, reason);
    let mut checks = report.gate.take().map(|gate| gate.checks).unwrap_or_default();
    checks.push(check);
    report.gate = Some(Gate { verdict: Verdict::Fail, checks });
}

/// Evaluates the policy, and that the controls landed where they must.
pub fn evaluate(
    policy: &Policy,
    report: &Report,
    baseline: Option<&Baseline>,
) -> Result<Gate, GateError> {
    policy.validate()?;
    let needed = baseline.filter(|_| policy.needs_baseline());
    let aligned = needed.map(|baseline| align(baseline, report)).transpose()?;
    if let Some(key) = &policy.slice_key()? {
        slice_exists(report, key)?;
    }
    let mut checks: Vec<Check> = report
        .controls
        .iter()
        .map(|control| {
            let (verdict, reason) = if control.ok {
                (Verdict::Pass, format!("as expected: {}", control.expected))
            } else {
                let expected = &control.expected;
                let reason = format!(
                    "unexpected result (expected: {expected}); the harness cannot be trusted"
                );
                (Verdict::Fail, reason)
            };
            Check::of(&control.name, "control", verdict, reason)
        })
        .collect();

    let mut comparisons = Vec::new();
    for (target, rule) in &policy.metrics {
        let (id, slice) = policy.target(target)?;
        if let Some(key) = &slice {
            slice_exists(report, key)?;
        }
        let measured = find(report, slice.as_ref(), id)?;
        if let Some(limit) = rule.max_drop.or(rule.max_rise) {
            let name = if rule.max_drop.is_some() { "max_drop" } else { "max_rise" };
            let before = aligned.as_ref().map(|aligned| aligned.before.as_ref());
            let against = Against::new(id, name, slice.as_ref(), before)
                .map_err(|error| over_fewer(error, id, baseline, aligned.as_ref()))?;
            let Some(aligned) = &aligned else {
                return Err(GateError::NoBaseline { id: id.to_owned(), rule: name });
            };
            same_depth(aligned, id)?;
            let measured = find(&aligned.after, slice.as_ref(), id)?;
            comparisons.push(with_baseline(&against, measured, limit, &aligned.after));
        }
        if let Some(floor) = rule.min {
            checks.push(limit(id, slice.as_ref(), measured, Bound::Floor(floor), rule.certify));
        }
        if let Some(ceiling) = rule.max {
            checks.push(limit(id, slice.as_ref(), measured, Bound::Ceiling(ceiling), rule.certify));
        }
    }
    let mut compared = decide_together(comparisons);
    if let Some(protected) = &policy.protected {
        compared.push(protect(protected, aligned.as_ref())?);
    }
    // A loss with a changed corpus has its likely cause next to it.
    let data = aligned.as_ref().and_then(|aligned| aligned.data.as_ref());
    let changed = data.map(|data| data.lines(NAMED)).unwrap_or_default();
    for check in compared.iter_mut().filter(|check| check.verdict != Verdict::Pass) {
        changed.iter().for_each(|line| check.reason.push_str(&format!("; {line}")));
    }
    checks.extend(compared);
    for check in &mut checks {
        check.reason = printable(&check.reason).into_owned();
    }
    let verdict = checks.iter().map(|check| check.verdict).max().unwrap_or(Verdict::Pass);
    Ok(Gate { verdict, checks })
}

fn slice_exists(report: &Report, key: &SliceKey) -> Result<(), GateError> {
    if report.slices.iter().any(|slice| slice.by == key.by && slice.value == key.value) {
        return Ok(());
    }
    let mut known: Vec<String> =
        report.slices.iter().map(|slice| format!("{}={}", slice.by, slice.value)).collect();
    known.truncate(20);
    Err(GateError::NoSlice { slice: key.to_string(), known: known.join(", ") })
}

fn find<'a>(
    report: &'a Report,
    slice: Option<&SliceKey>,
    id: &str,
) -> Result<&'a Measured, GateError> {
    let found = match slice {
        None => report.metric(id),
        Some(key) => report.slice_metric(&key.by, &key.value, id),
    };
    found.ok_or_else(|| {
        let ids: Vec<&str> = report.metrics.iter().map(|metric| metric.id.as_str()).collect();
        GateError::NotComputed { id: id.to_owned(), place: place(slice), known: ids.join(", ") }
    })
}

fn place(slice: Option<&SliceKey>) -> String {
    slice.map(|key| format!(" over {key}")).unwrap_or_default()
}

/// The side of a limit is the good one.
#[derive(Clone, Copy)]
enum Bound {
    Floor(f64),
    Ceiling(f64),
}

/// A floor or a ceiling, on the value and, if asked, on what the counts can certify.
fn limit(
    id: &str,
    slice: Option<&SliceKey>,
    measured: &Measured,
    bound: Bound,
    certify: bool,
) -> Check {
    let (rule, threshold) = match bound {
        Bound::Floor(floor) => ("min", floor),
        Bound::Ceiling(ceiling) => ("max", ceiling),
    };
    let (verdict, reason) = match measured.value {
        None => (
            Verdict::Fail,
            format!(
                "{id} is undefined ({}), and a limit on an undefined metric fails",
                measured.undefined.as_deref().unwrap_or("no reason given")
            ),
        ),
        Some(value) => limit_defined(id, value, measured, bound, certify),
    };
    Check {
        metric: id.to_owned(),
        slice: slice.map(ToString::to_string),
        rule: rule.to_owned(),
        threshold: Some(threshold),
        value: measured.value,
        baseline: None,
        verdict,
        reason,
        items: Vec::new(),
    }
}

fn limit_defined(
    id: &str,
    value: f64,
    measured: &Measured,
    bound: Bound,
    certify: bool,
) -> (Verdict, String) {
    let (broken, words, limit) = match bound {
        Bound::Floor(min) => (value < min - ROUNDING, ["below the minimum", "at least"], min),
        Bound::Ceiling(max) => (value > max + ROUNDING, ["above the maximum", "at most"], max),
    };
    let is = |words: &str| format!("{id} = {value:.4} is {words} {limit} (n = {})", measured.n);
    if broken {
        return (Verdict::Fail, is(words[0]));
    }
    let kept = is(words[1]);
    if !certify {
        let certified = match (certified(measured, bound), measured.count) {
            (_, None) => "",
            (Ok(_), Some(_)) => ", certified at 95 %",
            (Err(_), Some(_)) => ", not certified at 95 %",
        };
        return (Verdict::Pass, format!("{kept}{certified}"));
    }
    match certified(measured, bound) {
        Ok(bound_value) => {
            (Verdict::Pass, format!("{kept}, certified at 95 %: the bound is {bound_value:.4}"))
        }
        Err(why) => (Verdict::Inconclusive, format!("{kept}, but not certified at 95 %: {why}")),
    }
}

/// The one-sided Clopper-Pearson bound if it keeps the limit, or what would be needed.
fn certified(measured: &Measured, bound: Bound) -> Result<f64, String> {
    let Some(count) = measured.count else {
        return Err("only a rate from one run can be certified".to_owned());
    };
    let confidence = 1.0 - ALPHA;
    let (found, keeps, needed) = match bound {
        Bound::Ceiling(ceiling) => {
            let upper = match count.clustered() {
                Some(rate) => rate.clopper_pearson_upper(confidence),
                None => stats::clopper_pearson_upper(count.hits, count.of, confidence),
            }
            .map_err(|reason| reason.to_string())?;
            let needed = stats::sample_size_for_ceiling(ceiling, count.hits, confidence);
            (upper, upper <= ceiling, needed)
        }
        Bound::Floor(floor) => {
            let lower = match count.clustered() {
                Some(rate) => rate.clopper_pearson_lower(confidence),
                None => stats::clopper_pearson_lower(count.hits, count.of, confidence),
            }
            .map_err(|reason| reason.to_string())?;
            let needed = stats::sample_size_for_floor(floor, count.of - count.hits, confidence);
            (lower, lower >= floor, needed)
        }
    };
    if keeps {
        return Ok(found);
    }
    let missed = match bound {
        Bound::Ceiling(_) => count.hits,
        Bound::Floor(_) => count.of - count.hits,
    };
    let counted = count.groups.map_or_else(String::new, |groups| {
        format!(" of {} groups count as about {:.0} and", groups.number, groups.effective)
    });
    let items = if count.of == 1 { "item" } else { "items" };
    let verb = if count.of == 1 { "certifies" } else { "certify" };
    let at_best = format!("{} {items}{counted} {verb} {found:.4} at best", count.of);
    Err(match needed {
        u64::MAX => at_best,
        // How many more depends on how many groups they come in.
        _ if count.groups.is_some() => format!("{at_best}; items of more groups would help"),
        n => format!("{at_best}; {n} items with no more than {missed} misses are enough"),
    })
}

/// The reason why a metric that the baseline has cannot be compared, if that is the change of the data.
fn over_fewer(
    error: GateError,
    id: &str,
    baseline: Option<&Baseline>,
    aligned: Option<&Aligned<'_>>,
) -> GateError {
    let was_there = baseline.is_some_and(|baseline| baseline.metric(id).is_some());
    let left_out = aligned.filter(|aligned| was_there && aligned.before.metric(id).is_none());
    match left_out.and_then(|aligned| aligned.data.as_ref()) {
        Some(data) => {
            GateError::OverFewer { id: id.to_owned(), data: data.lines(NAMED).join("; ") }
        }
        None => error,
    }
}

/// Refuses a metric that looks further than both sides asked.
fn same_depth(aligned: &Aligned<'_>, id: &str) -> Result<(), GateError> {
    match aligned.depth.filter(|depth| depth.affects(id)) {
        Some(depth) => {
            Err(GateError::NotComparable { id: id.to_owned(), reason: depth.to_string() })
        }
        None => Ok(()),
    }
}

fn protect(protected: &Protected, aligned: Option<&Aligned<'_>>) -> Result<Check, GateError> {
    let id = protected.metric.as_str();
    let key = protected.key()?;
    let Some(aligned) = aligned else {
        return Err(GateError::NoBaseline { id: id.to_owned(), rule: "protected" });
    };
    same_depth(aligned, id)?;
    let report = aligned.after.as_ref();
    if let Some(unknown) = protected.ids.iter().find(|id| {
        let left_out = aligned.data.as_ref().is_some_and(|data| !data.is_same(id));
        !left_out && !report.items.iter().any(|item| item.id == **id)
    }) {
        let message = format!("no item {unknown:?}");
        return Err(GateError::Rule { id: "protected".to_owned(), message });
    }
    let named = |item: &Item| protected.ids.is_empty() || protected.ids.contains(&item.id);
    let within = |item: &&Item| key.as_ref().is_none_or(|key| key.holds(item)) && named(item);
    let members: Vec<&Item> = report.items.iter().filter(within).collect();
    if let Some(key) = key.as_ref().filter(|_| members.is_empty()) {
        slice_exists(report, key)?;
    }
    let earlier = scores(&aligned.before);
    let before = |item: &Item| earlier.get(item.id.as_str())?.get(id).copied().flatten();
    let held: Vec<(&Item, f64)> =
        members.into_iter().filter_map(|item| Some((item, before(item)?))).collect();
    if held.is_empty() {
        return Err(GateError::MissingInBaseline { id: id.to_owned(), place: place(key.as_ref()) });
    }
    let sign = if known(id)? == Better::Higher { 1.0 } else { -1.0 };
    let (mut lost, mut worse, mut gone) = (Vec::new(), Vec::new(), Vec::new());
    for (item, before) in &held {
        let fate = match item.metrics.get(id).copied().flatten() {
            None => &mut gone,
            Some(after) if sign * (after - before) < -ROUNDING => &mut worse,
            Some(_) => continue,
        };
        fate.push(item.id.clone());
        lost.push(item.id.clone());
    }
    let notes: Vec<String> = [(&worse, "got worse"), (&gone, "no longer have a score")]
        .into_iter()
        .filter(|(items, _)| !items.is_empty())
        .map(|(items, what)| {
            format!("{} of {} protected items {what}{}", items.len(), held.len(), list(items))
        })
        .collect();
    let (verdict, reason) = match lost.is_empty() {
        true => (Verdict::Pass, format!("none of {} protected items got worse", held.len())),
        false => (Verdict::Fail, notes.join("; ")),
    };
    let slice = key.as_ref().map(ToString::to_string);
    Ok(Check { slice, items: lost, ..Check::of(id, "protected", verdict, reason) })
}

fn list(items: &[String]) -> String {
    match items.is_empty() {
        true => String::new(),
        false => format!(": {}", first_few(items, NAMED)),
    }
}
