//! The observation of one item: one typed variant for each kind of report.
//!
//! Scorers write these types and every renderer reads them, so a renamed field does not compile in
//! a renderer that shows it. In JSON an observation is the object of its variant with the kind in
//! `kind`; a kind that this build does not know is kept as it is.

mod attack;
mod fuzz;
mod load;
mod outcomes;
mod ranking;
mod resilience;
mod suite;
mod traces;
mod verdicts;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

pub use self::attack::{Attack, AttackEvidence, AttackStatus};
pub use self::fuzz::{Fuzz, FuzzCounts};
pub use self::load::Load;
pub use self::outcomes::{Outcomes, Trial};
pub use self::ranking::{RankedTool, Ranking};
pub use self::resilience::{Resilience, ResilienceOutcome, RunStep, StateChange};
pub use self::suite::Suite;
pub use self::traces::{Difference, ShownCall, ShownExpectation, Step, Traces, Trajectory};
pub use self::verdicts::{DetectorFinding, VerdictOutcome, Verdicts};
use crate::kind::Kind;

/// The observation of one item.
// The large ones are boxed: a report of many traces shows a few of them, and every item has the room.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Observed {
    /// A query and the tools that a search returned for it.
    Ranking(Ranking),
    /// A definition and what detectors reported about it.
    Verdicts(Box<Verdicts>),
    /// A case of a suite.
    Suite(Suite),
    /// A second or a step of a load.
    Load(Load),
    /// A tool and what generated inputs did to it.
    Fuzz(Fuzz),
    /// An attack on a tool.
    Attack(Attack),
    /// A run of a task.
    Traces(Box<Traces>),
    /// Two runs of a task.
    Trajectories(Trajectory),
    /// The runs of a task that were judged elsewhere.
    Outcomes(Outcomes),
    /// A run of a task, with or without an attack.
    Resilience(Resilience),
    /// An observation of a kind that this build does not know.
    #[serde(untagged)]
    Other(Other),
}

/// An observation of a kind that this build does not know.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Other {
    /// Its kind; empty in reports of version 1, which did not name it.
    pub kind: Kind,
    /// Everything else.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

impl Observed {
    /// An observation of an evaluation that core does not know, from the type it serializes.
    ///
    /// # Errors
    /// If the value does not serialize as a JSON object.
    pub fn other(kind: Kind, value: &impl Serialize) -> Result<Observed, serde_json::Error> {
        match serde_json::to_value(value)? {
            Value::Object(fields) => Ok(Observed::Other(Other { kind, fields })),
            _ => Err(serde_json::Error::custom("an observation must be a JSON object")),
        }
    }

    /// The observation of a kind from its fields.
    ///
    /// # Errors
    /// If the fields do not fit the kind.
    pub(crate) fn from_fields(
        kind: Kind,
        fields: Map<String, Value>,
    ) -> Result<Observed, serde_json::Error> {
        let value = Value::Object(fields);
        match kind {
            Kind::Ranking => serde_json::from_value(value).map(Observed::Ranking),
            Kind::Verdicts => serde_json::from_value(value).map(Observed::Verdicts),
            Kind::Suite => serde_json::from_value(value).map(Observed::Suite),
            Kind::Load => serde_json::from_value(value).map(Observed::Load),
            Kind::Fuzz => serde_json::from_value(value).map(Observed::Fuzz),
            Kind::Attack => serde_json::from_value(value).map(Observed::Attack),
            Kind::Traces => serde_json::from_value(value).map(Observed::Traces),
            Kind::Trajectories => serde_json::from_value(value).map(Observed::Trajectories),
            Kind::Outcomes => serde_json::from_value(value).map(Observed::Outcomes),
            Kind::Resilience => serde_json::from_value(value).map(Observed::Resilience),
            Kind::Other(_) => {
                let Value::Object(fields) = value else { return Err(not_an_object()) };
                Ok(Observed::Other(Other { kind, fields }))
            }
        }
    }
}

fn not_an_object() -> serde_json::Error {
    serde_json::Error::custom("an observation must be a JSON object")
}

impl<'de> Deserialize<'de> for Observed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Observed, D::Error> {
        let mut fields = Map::deserialize(deserializer)?;
        let kind = match fields.shift_remove("kind") {
            Some(Value::String(name)) => Kind::from(name),
            Some(_) => return Err(D::Error::custom("`kind` of an observation must be a string")),
            None => Kind::Other("".into()),
        };
        Observed::from_fields(kind, fields).map_err(D::Error::custom)
    }
}

/// The kind of a version 1 report, which did not store it, from the shape of its observations.
pub(crate) fn kind_of_version_1(
    evaluation: &crate::kind::Evaluation,
    observed: &[&Map<String, Value>],
) -> Kind {
    use crate::kind::Evaluation;
    let has = |keys: &[&str]| {
        observed.iter().any(|fields| keys.iter().all(|key| fields.contains_key(*key)))
    };
    match evaluation {
        Evaluation::Retrieval => Kind::Ranking,
        Evaluation::Detection => Kind::Verdicts,
        Evaluation::Server if has(&["counts", "endings"]) => Kind::Fuzz,
        Evaluation::Server if has(&["about", "status"]) => Kind::Attack,
        Evaluation::Server if has(&["load", "holds"]) || has(&["ok", "errors"]) => Kind::Load,
        Evaluation::Server => Kind::Suite,
        Evaluation::Agent if has(&["similarity", "steps", "before"]) => Kind::Trajectories,
        Evaluation::Agent => Kind::Traces,
        Evaluation::Resilience => Kind::Resilience,
        Evaluation::Other(name) => Kind::Other(name.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_kind_reads_back_as_it_was_written() {
        let each = [
            json!({"kind": "ranking", "query": "q", "first_right": 2, "ranked": [{"tool_id": "a:b"}]}),
            json!({"kind": "verdicts", "label": "malicious", "outcome": "true positive"}),
            json!({"kind": "suite", "tool": "add", "attempts": 3, "passed": 2}),
            json!({"kind": "load", "ok": 3, "errors": 0}),
            json!({"kind": "load", "load": 8.0, "holds": false, "why_not": "slow"}),
            json!({"kind": "fuzz", "counts": {"calls": 1}}),
            json!({"kind": "attack", "status": "held"}),
            json!({"kind": "traces", "calls": [{"name": "add", "arguments": {"a": 1}}]}),
            json!({"kind": "trajectories", "similarity": 1.0, "steps": []}),
            json!({"kind": "outcomes", "trials": [{"success": true}]}),
            json!({"kind": "resilience", "outcome": "ignored", "task": "t", "utility": true}),
            json!({"kind": "toy", "anything": [1, 2]}),
        ];
        for value in each {
            let read: Observed = serde_json::from_value(value.clone()).unwrap();
            let typed = !matches!(read, Observed::Other(_));
            assert_eq!(typed, value["kind"] != "toy", "{value}");
            let written = serde_json::to_value(&read).unwrap();
            assert_eq!(written["kind"], value["kind"]);
            assert_eq!(serde_json::from_value::<Observed>(written).unwrap(), read);
        }
    }

    #[test]
    fn a_field_of_the_wrong_type_is_an_error() {
        let wrong = json!({"kind": "suite", "attempts": "three"});
        assert!(serde_json::from_value::<Observed>(wrong).is_err());
    }
}
