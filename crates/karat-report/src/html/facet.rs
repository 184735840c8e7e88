//! The facet of a report: the one property by which a reader divides its items first, such as the
//! outcome of a verdict or the rank of the first relevant tool.
//!
//! The figures link to its values and the script filters by them, so both take them from here.

use karat_core::observed::{Observed, Suite, Trajectory};
use karat_core::report::{Item, Kind};
use karat_metrics::metric;

/// A facet and the style classes of those of its values that a reader looks for.
pub(super) struct Facet {
    pub(super) name: &'static str,
    pub(super) tones: &'static [(&'static str, &'static str)],
}

/// The facet of a kind of report; none where there is nothing to divide items by.
pub(super) fn of(kind: &Kind) -> Option<Facet> {
    let (name, tones): (_, &'static [_]) = match kind {
        Kind::Ranking => ("found", &[("not found", "worse")]),
        Kind::Verdicts => (
            "outcome",
            &[
                ("false negative", "worse"),
                ("false positive", "worse"),
                ("unsupported", "lost"),
                ("error", "lost"),
            ],
        ),
        Kind::Suite => ("result", &[("failed", "worse"), ("flaky", "worse")]),
        Kind::Fuzz => ("findings", &[("error", "worse"), ("warning", "worse"), ("note", "lost")]),
        Kind::Attack => (
            "status",
            &[
                ("broken", "worse"),
                ("held", "better"),
                ("not_judged", "lost"),
                ("not_executed", "lost"),
            ],
        ),
        Kind::Traces | Kind::Outcomes => ("task", &[("failed", "worse"), ("partial", "worse")]),
        Kind::Trajectories => ("calls", &[("changed", "lost"), ("not compared", "lost")]),
        Kind::Resilience => (
            "outcome",
            &[
                ("succeeded", "worse"),
                ("attempted", "worse"),
                ("refused", "lost"),
                ("undelivered", "lost"),
                ("ignored", "better"),
            ],
        ),
        Kind::Load | Kind::Other(_) => return None,
    };
    Some(Facet { name, tones })
}

/// The value of the facet for an item; none if it was not answered.
pub(super) fn value(item: &Item) -> Option<&'static str> {
    if item.error.is_some() {
        return None;
    }
    match item.observed.as_ref()? {
        Observed::Ranking(ranking) => Some(rank(ranking.first_right)),
        Observed::Verdicts(verdicts) => verdicts.outcome.map(|outcome| outcome.name()),
        Observed::Suite(case) => Some(result(case)),
        Observed::Fuzz(fuzz) => {
            let worst = fuzz.findings.iter().map(|finding| finding.severity).max();
            Some(worst.map_or("none", |severity| severity.name()))
        }
        Observed::Attack(attack) => Some(attack.status.name()),
        Observed::Traces(_) | Observed::Outcomes(_) => {
            Some(match item.metrics.get(&metric!("task.success")).copied().flatten() {
                None => "not scored",
                Some(1.0) => "succeeded",
                Some(0.0) => "failed",
                Some(_) => "partial",
            })
        }
        Observed::Trajectories(pair) => Some(calls(pair)),
        Observed::Resilience(run) => Some(match (run.outcome, run.utility) {
            (Some(outcome), _) => outcome.name(),
            (None, Some(true)) => "no attack, done",
            (None, _) => "no attack, not done",
        }),
        Observed::Load(_) | Observed::Other(_) => None,
    }
}

/// The ranks of the first relevant tool, as they are counted.
pub(super) const RANKS: [&str; 6] =
    ["rank 1", "rank 2–3", "rank 4–5", "rank 6–10", "below rank 10", "not found"];

fn rank(first: Option<usize>) -> &'static str {
    match first {
        None | Some(0) => RANKS[5],
        Some(1) => RANKS[0],
        Some(2..=3) => RANKS[1],
        Some(4..=5) => RANKS[2],
        Some(6..=10) => RANKS[3],
        Some(_) => RANKS[4],
    }
}

fn result(case: &Suite) -> &'static str {
    match case.passed {
        0 => "failed",
        passed if passed < case.attempts => "flaky",
        _ => "passed",
    }
}

/// Two runs of a task by their calls.
pub(super) const CALLS: [&str; 3] = ["the same", "changed", "not compared"];

fn calls(pair: &Trajectory) -> &'static str {
    match pair {
        pair if pair.is_same() => CALLS[0],
        pair if pair.not_compared.is_some() => CALLS[2],
        _ => CALLS[1],
    }
}
