//! A model upgrade: the same tasks by two models, and one verdict.
//!
//! FAIL: more tasks were lost than allowed, and that is not what runs of one model vary by; or over several
//! runs of each, tasks succeed less often by more than that; or cost or time grew beyond what is allowed.
//! DRIFT: the outcomes hold, and the way there changed: other calls, tasks won, single runs that flipped,
//! tasks that were not measured. PASS: neither.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use karat_core::error::EvalError;
use karat_io::text::first_few;
use karat_metrics::stats::{self, Alternative, sign_flip};
use serde::Serialize;

use crate::scores::{Own, TraceScorer};
use crate::tools::Tools;
use crate::trace::{Setting, Trace};
use crate::trajectories::{Tolerances, compare};

/// The probability below which a loss over several runs is not taken for chance.
const SIGNIFICANT: f64 = 0.05;
/// The settings of the test: all signs of up to 30 differences, else random ones.
const MAX_EXACT: u32 = 30;
const RESAMPLES: u64 = 10_000;

/// The limits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allowed {
    /// Tasks that may be lost.
    pub lost: usize,
    /// The share by which the mean cost may grow.
    pub cost_growth: Option<f64>,
    /// The share by which the mean time may grow.
    pub time_growth: Option<f64>,
}

/// The verdict on an upgrade.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Verdict {
    /// Nothing that matters changed.
    Pass,
    /// The outcomes hold, the behaviour changed.
    Drift,
    /// The new model is worse than allowed.
    Fail,
}

impl Verdict {
    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Pass => "PASS",
            Verdict::Drift => "DRIFT",
            Verdict::Fail => "FAIL",
        }
    }
}

/// A value before and after; none where it was not recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Change {
    /// The mean before.
    pub before: Option<f64>,
    /// The mean after.
    pub after: Option<f64>,
}

impl Change {
    /// The growth as a share of the value before.
    pub fn growth(self) -> Option<f64> {
        let (before, after) = (self.before?, self.after?);
        (before > 0.0).then(|| after / before - 1.0)
    }
}

/// A task whose success changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Flip {
    /// The task.
    pub id: String,
    /// The share of runs that succeeded before.
    pub before: f64,
    /// The share after.
    pub after: f64,
}

/// The comparison of two models.
#[derive(Clone, Debug, Serialize)]
pub struct Upgrade {
    /// The verdict.
    pub verdict: Verdict,
    /// The reasons for it.
    pub reasons: Vec<String>,
    /// The number of tasks that both have measured.
    pub tasks: usize,
    /// Tasks that succeeded mostly before and no longer do.
    pub lost: Vec<Flip>,
    /// Tasks that succeed mostly now and did not before.
    pub gained: Vec<Flip>,
    /// Tasks that succeed mostly before and after, or not, and in fewer runs than before.
    pub less_often: Vec<Flip>,
    /// The same, in more runs than before.
    pub more_often: Vec<Flip>,
    /// Tasks with the same outcome and other calls.
    pub other_calls: Vec<String>,
    /// Tasks that only one of the two has measured.
    pub not_measured: Vec<String>,
    /// The probability of a loss like this if the models were the same.
    pub p: Option<f64>,
    /// The share of successes, each task weighing the same.
    pub success: Change,
    /// The mean cost of a run.
    pub cost: Change,
    /// The mean time of a run, in milliseconds.
    pub ms: Change,
    /// The mean tokens of a run.
    pub tokens: Change,
}

/// The runs of one task.
#[derive(Default)]
struct Runs<'t> {
    success: Vec<f64>,
    /// The first of them.
    traces: Vec<&'t Trace>,
}

/// The number of runs of a task whose calls are compared.
const MAX_COMPARED: usize = 10;

impl Runs<'_> {
    /// Returns whether every run makes the calls of some run before.
    fn calls_as(&self, before: &Runs<'_>) -> bool {
        self.traces.iter().all(|new| {
            let same = |old: &&Trace| compare(old, new, &Tolerances::new()).similarity == Some(1.0);
            before.traces.is_empty() || before.traces.iter().any(same)
        })
    }
}

fn by_task<'t>(traces: &'t [Trace], scorer: &TraceScorer<'_>) -> BTreeMap<&'t str, Runs<'t>> {
    let mut tasks: BTreeMap<&str, Runs<'_>> = BTreeMap::new();
    let counts = |trace: &&Trace| trace.failed.is_none() && trace.setting == Setting::WithTools;
    for trace in traces.iter().filter(counts) {
        let task = tasks.entry(&trace.id).or_default();
        task.success.extend(scorer.score(trace).value(Own::Success));
        if task.traces.len() < MAX_COMPARED {
            task.traces.push(trace);
        }
    }
    tasks
}

/// Compares two models on the tasks that both were measured on.
///
/// # Errors
/// If there is no such task.
pub fn judge(
    before: &[Trace],
    after: &[Trace],
    tools: &Tools,
    allowed: Allowed,
    seed: u64,
) -> Result<Upgrade, EvalError> {
    let scorer = TraceScorer::new(tools, &[]);
    let (old, new) = (by_task(before, &scorer), by_task(after, &scorer));
    let mut found = Upgrade {
        verdict: Verdict::Pass,
        reasons: Vec::new(),
        tasks: 0,
        lost: Vec::new(),
        gained: Vec::new(),
        less_often: Vec::new(),
        more_often: Vec::new(),
        other_calls: Vec::new(),
        not_measured: Vec::new(),
        p: None,
        success: Change::default(),
        cost: change(before, after, |trace| trace.usage.cost),
        ms: change(before, after, |trace| trace.usage.duration_ms),
        tokens: change(before, after, |trace| trace.usage.tokens().map(|tokens| tokens as f64)),
    };
    let (mut rates, mut repeated) = (Vec::new(), true);
    for id in old.keys().chain(new.keys().filter(|id| !old.contains_key(*id))) {
        let rate = |tasks: &BTreeMap<&str, Runs<'_>>| stats::mean(&tasks.get(id)?.success).ok();
        let (Some(was), Some(is)) = (rate(&old), rate(&new)) else {
            found.not_measured.push((*id).to_owned());
            continue;
        };
        let (old, new) = (&old[id], &new[id]);
        repeated &= old.success.len() > 1 && new.success.len() > 1;
        rates.push((was, is));
        let flip = || Flip { id: (*id).to_owned(), before: was, after: is };
        match (was >= 0.5, is >= 0.5) {
            (true, false) => found.lost.push(flip()),
            (false, true) => found.gained.push(flip()),
            _ => {
                match is.total_cmp(&was) {
                    Ordering::Less => found.less_often.push(flip()),
                    Ordering::Greater => found.more_often.push(flip()),
                    Ordering::Equal => {}
                }
                if !new.calls_as(old) {
                    found.other_calls.push((*id).to_owned());
                }
            }
        }
    }
    if rates.is_empty() {
        return Err(EvalError::NothingMeasured(
            "no task has a success or a failure in both recordings; give --tasks with expectations"
                .to_owned(),
        ));
    }
    found.tasks = rates.len();
    let mean = |rates: Vec<f64>| stats::mean(&rates).ok();
    found.success = Change {
        before: mean(rates.iter().map(|(was, _)| *was).collect()),
        after: mean(rates.iter().map(|(_, is)| *is).collect()),
    };
    let differences: Vec<f64> = rates.iter().map(|(was, is)| is - was).collect();
    let test = sign_flip(&differences, Alternative::Less, MAX_EXACT, RESAMPLES, seed);
    found.p = test.ok().map(|test| test.p);
    found.decide(allowed, repeated);
    Ok(found)
}

fn change(before: &[Trace], after: &[Trace], of: impl Fn(&Trace) -> Option<f64>) -> Change {
    let mean = |traces: &[Trace]| {
        let counts = |trace: &&Trace| trace.failed.is_none() && trace.setting == Setting::WithTools;
        stats::mean(&traces.iter().filter(counts).filter_map(&of).collect::<Vec<_>>()).ok()
    };
    Change { before: mean(before), after: mean(after) }
}

impl Upgrade {
    fn decide(&mut self, allowed: Allowed, repeated: bool) {
        let mut reasons = Vec::new();
        let mut say = |verdict: Verdict, reason: String| reasons.push((verdict, reason));
        // A task that always succeeded and never does now is lost whatever the others do.
        let wholly =
            self.lost.iter().filter(|flip| flip.before == 1.0 && flip.after == 0.0).count();
        let chance = repeated && wholly <= allowed.lost && self.p.is_some_and(|p| p >= SIGNIFICANT);
        let named = |flips: &[Flip]| listed(flips.iter().map(|flip| flip.id.as_str()));
        if self.lost.len() > allowed.lost && !chance {
            let (count, max) = (self.lost.len(), allowed.lost);
            say(
                Verdict::Fail,
                format!("{count} tasks lost (allowed {max}): {}", named(&self.lost)),
            );
        } else if !self.lost.is_empty() {
            let p = self.p.unwrap_or(1.0);
            say(
                Verdict::Drift,
                format!(
                    "tasks lost, within what is allowed or what runs vary by (p = {p:.3}): {}",
                    named(&self.lost)
                ),
            );
        }
        let (fewer, significant) = (&self.less_often, self.p.is_some_and(|p| p < SIGNIFICANT));
        let worse = fewer.len() + self.lost.len();
        if repeated && significant && worse > allowed.lost && self.lost.len() <= allowed.lost {
            let p = self.p.unwrap_or(1.0);
            say(
                Verdict::Fail,
                format!("{worse} tasks succeed in fewer runs (p = {p:.3}): {}", named(fewer)),
            );
        } else if !fewer.is_empty() {
            let (count, ids) = (fewer.len(), named(fewer));
            say(Verdict::Drift, format!("{count} tasks succeed in fewer runs: {ids}"));
        }
        if !self.more_often.is_empty() {
            let (count, ids) = (self.more_often.len(), named(&self.more_often));
            say(Verdict::Drift, format!("{count} tasks succeed in more runs: {ids}"));
        }
        for (name, change, allowed) in
            [("cost", self.cost, allowed.cost_growth), ("time", self.ms, allowed.time_growth)]
        {
            let Some(allowed) = allowed else { continue };
            match change.growth() {
                Some(growth) if growth > allowed => say(
                    Verdict::Fail,
                    format!(
                        "{name} grew by {:.1} % (allowed {:.1} %)",
                        growth * 100.0,
                        allowed * 100.0
                    ),
                ),
                Some(_) => {}
                None => {
                    say(
                        Verdict::Fail,
                        format!("{name} was not recorded, and a limit on it is set"),
                    );
                }
            }
        }
        if !self.gained.is_empty() {
            say(
                Verdict::Drift,
                format!("{} tasks gained: {}", self.gained.len(), named(&self.gained)),
            );
        }
        if !self.other_calls.is_empty() {
            let ids = listed(self.other_calls.iter().map(String::as_str));
            say(
                Verdict::Drift,
                format!("{} tasks with other calls: {ids}", self.other_calls.len()),
            );
        }
        if !self.not_measured.is_empty() {
            let ids = listed(self.not_measured.iter().map(String::as_str));
            say(
                Verdict::Drift,
                format!("{} tasks measured in one recording only: {ids}", self.not_measured.len()),
            );
        }
        self.verdict = reasons.iter().map(|(verdict, _)| *verdict).max().unwrap_or(Verdict::Pass);
        self.reasons = reasons.into_iter().map(|(_, reason)| reason).collect();
    }
}

/// The first few ids.
fn listed<'i>(ids: impl Iterator<Item = &'i str>) -> String {
    let all: Vec<&str> = ids.collect();
    first_few(&all, 20)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::trace::{CallMade, Expectation};

    fn run(id: &str, run: u32, output: &str, call: &str, cost: f64) -> Trace {
        let expect = Expectation::parse(r#"{"answer":{"equals":"yes"}}"#).unwrap();
        let mut trace = Trace { run, output: Some(output.into()), ..Trace::of(id) };
        trace.expect = Some(Arc::new(expect));
        trace.calls = vec![CallMade::named(call)];
        trace.usage.cost = Some(cost);
        trace
    }

    fn verdict(before: &[Trace], after: &[Trace], allowed: Allowed) -> Upgrade {
        judge(before, after, &Tools::default(), allowed, 0).unwrap()
    }

    #[test]
    fn the_same_is_a_pass_other_calls_are_drift_and_a_lost_task_fails() {
        let before = [run("a", 1, "yes", "f", 1.0), run("b", 1, "no", "f", 1.0)];
        assert_eq!(verdict(&before, &before, Allowed::default()).verdict, Verdict::Pass);
        let drift = [run("a", 1, "yes", "g", 1.0), run("b", 1, "yes", "f", 1.0)];
        let found = verdict(&before, &drift, Allowed::default());
        assert_eq!(found.verdict, Verdict::Drift);
        assert_eq!(
            (&found.other_calls[..], found.gained[0].id.as_str()),
            (&["a".to_owned()][..], "b")
        );
        let lost = [run("a", 1, "no", "f", 1.0), run("b", 1, "no", "f", 1.0)];
        let found = verdict(&before, &lost, Allowed::default());
        assert_eq!((found.verdict, found.lost[0].id.as_str()), (Verdict::Fail, "a"));
        let one = Allowed { lost: 1, ..Allowed::default() };
        assert_eq!(verdict(&before, &lost, one).verdict, Verdict::Drift);
    }

    #[test]
    fn a_flip_among_many_runs_is_drift_unless_it_is_whole() {
        let runs = |passed: u32| -> Vec<Trace> {
            let answer = |n: u32| if n <= passed { "yes" } else { "no" };
            (1..=4).map(|n| run("a", n, answer(n), "f", 1.0)).collect()
        };
        assert_eq!(verdict(&runs(2), &runs(1), Allowed::default()).verdict, Verdict::Drift);
        assert_eq!(verdict(&runs(4), &runs(0), Allowed::default()).verdict, Verdict::Fail);
        // Half of the runs still is "mostly", and yet it is not the same.
        let found = verdict(&runs(4), &runs(2), Allowed::default());
        assert_eq!((found.verdict, found.less_often[0].id.as_str()), (Verdict::Drift, "a"));
        assert_eq!(verdict(&runs(2), &runs(4), Allowed::default()).verdict, Verdict::Drift);
    }

    #[test]
    fn many_tasks_that_succeed_less_often_are_a_failure_though_none_is_lost() {
        let runs = |passed: u32| -> Vec<Trace> {
            let answer = |n: u32| if n <= passed { "yes" } else { "no" };
            let of =
                |id: u32| (1..=10).map(move |n| run(&format!("t{id}"), n, answer(n), "f", 1.0));
            (0..8).flat_map(of).collect()
        };
        let found = verdict(&runs(10), &runs(6), Allowed::default());
        assert_eq!((found.verdict, found.lost.len()), (Verdict::Fail, 0), "{:?}", found.reasons);
        assert!(found.reasons[0].contains("8 tasks succeed in fewer runs"), "{:?}", found.reasons);
        let all = Allowed { lost: 8, ..Allowed::default() };
        assert_eq!(verdict(&runs(10), &runs(6), all).verdict, Verdict::Drift);
    }

    #[test]
    fn cost_is_limited_and_unknown_cost_does_not_pass() {
        let (before, after) = ([run("a", 1, "yes", "f", 1.0)], [run("a", 1, "yes", "f", 1.3)]);
        let limit = |share| Allowed { cost_growth: Some(share), ..Allowed::default() };
        assert_eq!(verdict(&before, &after, limit(0.2)).verdict, Verdict::Fail);
        assert_eq!(verdict(&before, &after, limit(0.5)).verdict, Verdict::Pass);
        let mut unknown = after;
        unknown[0].usage.cost = None;
        assert_eq!(verdict(&before, &unknown, limit(0.5)).verdict, Verdict::Fail);
        assert!(judge(&before, &[], &Tools::default(), Allowed::default(), 0).is_err());
    }
}
