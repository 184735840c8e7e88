//! What the items of a report are about, told from what was observed, and the one property by which a
//! reader wants to sort them out first: outcome, rank, verdict.
//!
//! A report does not name its kind, so it is read from the shape of its items; where nothing fits,
//! items are shown as plain trees. The figures link to values of the property and the script filters by
//! them, so both take them from here.

use karat_core::report::{Evaluation, Item, Report};
use serde::Serialize;
use serde_json::Value;

/// What an item holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    /// A query and what a search answered.
    Ranking,
    /// A text and what detectors said of it.
    Verdicts,
    /// A case of a suite.
    Suite,
    /// A second or a step of a load.
    Load,
    /// A tool and what odd inputs brought to light.
    Fuzz,
    /// An attack on a tool.
    Attack,
    /// A task, the calls that were made and those that were expected.
    Traces,
    /// Two runs of a task.
    Trajectories,
    /// Something else.
    Other,
}

impl Kind {
    pub(super) fn of(report: &Report) -> Kind {
        let observed = report.items.iter().filter(|item| item.error.is_none());
        let Some(item) = observed.clone().find(|item| item.observed.is_object()) else {
            return Kind::Other;
        };
        let has = |keys: &[&str]| keys.iter().all(|key| item.observed.get(key).is_some());
        match report.evaluation {
            Evaluation::Retrieval if has(&["query", "ranked"]) => Kind::Ranking,
            Evaluation::Detection if has(&["label", "outcome"]) => Kind::Verdicts,
            Evaluation::Server if has(&["tool", "attempts", "passed"]) => Kind::Suite,
            Evaluation::Server if has(&["counts", "endings"]) => Kind::Fuzz,
            Evaluation::Server if has(&["about", "status"]) => Kind::Attack,
            Evaluation::Server
                if item.tags.get("kind").is_some_and(|kind| kind == "second" || kind == "step") =>
            {
                Kind::Load
            }
            Evaluation::Agent if has(&["similarity", "steps", "before"]) => Kind::Trajectories,
            Evaluation::Agent if has(&["calls"]) => Kind::Traces,
            _ => Kind::Other,
        }
    }

    /// The name of the property by which items are sorted out.
    pub(super) fn facet(self) -> Option<&'static str> {
        match self {
            Kind::Ranking => Some("found"),
            Kind::Verdicts => Some("outcome"),
            Kind::Suite => Some("result"),
            Kind::Fuzz => Some("findings"),
            Kind::Attack => Some("status"),
            Kind::Traces => Some("task"),
            Kind::Trajectories => Some("calls"),
            Kind::Load | Kind::Other => None,
        }
    }

    /// Its value for an item.
    pub(super) fn value(self, item: &Item) -> Option<&str> {
        if item.error.is_some() {
            return None;
        }
        let observed = &item.observed;
        match self {
            Kind::Ranking => Some(found(observed.get("first_right")?)),
            Kind::Verdicts => observed.get("outcome")?.as_str(),
            Kind::Suite => {
                let (passed, attempts) =
                    (number(observed, "passed")?, number(observed, "attempts")?);
                Some(match passed {
                    0 => "failed",
                    passed if passed < attempts => "passed at times",
                    _ => "passed",
                })
            }
            Kind::Fuzz => Some(gravest(observed.get("findings")?.as_array()?)),
            Kind::Attack => observed.get("status")?.as_str(),
            Kind::Traces => Some(match item.metrics.get("task.success").copied().flatten() {
                None => "not scored",
                Some(1.0) => "done",
                Some(0.0) => "not done",
                Some(_) => "partly done",
            }),
            Kind::Trajectories => {
                let steps = observed.get("steps")?.as_array()?;
                let same = steps.iter().all(|step| step.get("change").is_some_and(|c| c == "same"));
                Some(if same { "the same" } else { "changed" })
            }
            Kind::Load | Kind::Other => None,
        }
    }

    /// The values that a reader looks for, each with the look of its word.
    pub(super) fn tones(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Kind::Ranking => &[("not found", "worse")],
            Kind::Verdicts => &[
                ("false negative", "worse"),
                ("false positive", "worse"),
                ("unsupported", "lost"),
                ("error", "lost"),
            ],
            Kind::Suite => &[("failed", "worse"), ("passed at times", "worse")],
            Kind::Fuzz => &[("error", "worse"), ("warning", "worse"), ("note", "lost")],
            Kind::Attack => &[("broken", "worse"), ("held", "better"), ("not_judged", "lost")],
            Kind::Traces => &[("not done", "worse"), ("partly done", "worse")],
            Kind::Trajectories => &[("changed", "lost")],
            Kind::Load | Kind::Other => &[],
        }
    }
}

/// The places at which the first right tool can stand, as they are counted.
pub(super) const FOUND: [&str; 6] =
    ["rank 1", "rank 2–3", "rank 4–5", "rank 6–10", "below rank 10", "not found"];

fn found(first: &Value) -> &'static str {
    match first.as_u64() {
        None | Some(0) => FOUND[5],
        Some(1) => FOUND[0],
        Some(2..=3) => FOUND[1],
        Some(4..=5) => FOUND[2],
        Some(6..=10) => FOUND[3],
        Some(_) => FOUND[4],
    }
}

/// The severity of the gravest finding.
fn gravest(findings: &[Value]) -> &'static str {
    let has = |severity: &str| {
        findings
            .iter()
            .any(|finding| finding.get("severity").is_some_and(|found| found == severity))
    };
    ["error", "warning", "note"].into_iter().find(|severity| has(severity)).unwrap_or("none")
}

/// A count that was observed.
pub(super) fn number(observed: &Value, key: &str) -> Option<u64> {
    observed.get(key)?.as_u64()
}
