//! Metrics of triggers: does the right skill fire, and does none fire where none should?

use crate::metric::{Better, Metric, MetricKind, Unit};

pub(crate) const METRICS: &[Metric] = &[
    Metric {
        id: "trigger.recall",
        summary: "The share of queries that should trigger and do, by the right skill",
        formula: "queries whose first result is a right skill ÷ queries that should trigger",
        better: Better::Higher,
        unit: Unit::Share,
        kind: MetricKind::Rate,
        undefined: "no query should trigger",
        notes: "Ours. The first result is what fires; an empty answer is an abstention.",
        ..Metric::DEFAULT
    },
    Metric {
        id: "trigger.false_fire_rate",
        summary: "The share of queries that should trigger nothing and do",
        formula: "answers with a result ÷ queries with `should_trigger: false`",
        better: Better::Lower,
        unit: Unit::Share,
        kind: MetricKind::Rate,
        undefined: "every query should trigger",
        notes: "Ours. Whichever skill fires, it is wrong.",
        ..Metric::DEFAULT
    },
    Metric {
        id: "trigger.confusion_rate",
        summary: "The share of queries on which the adjacent skill fires",
        formula: "queries whose first result is labelled 0 ÷ queries with a label 0",
        better: Better::Lower,
        unit: Unit::Share,
        kind: MetricKind::Rate,
        undefined: "no query has a label 0",
        notes: "Ours. The adjacent skill is the one that looks right and is not.",
        ..Metric::DEFAULT
    },
];
