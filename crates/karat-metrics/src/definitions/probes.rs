//! The metrics of made-up and hostile calls: how a server bears what no suite would send.
//!
//! Each is a share of calls or of attacks; which call counts as what is the server evaluation's
//! business.

use crate::registry::{Better, Metric, MetricKind, Rank, Unit};

const CHOSEN: &str = "Inputs are chosen, not drawn: the rate compares versions of one server under the \
                      same seed, and says nothing about how often a user meets it.";

pub(crate) const METRICS: &[Metric] = &[
    Metric {
        id: "schema.rejects_invalid",
        summary: "The share of inputs against the input schema that are answered with an error",
        formula: "invalid inputs that end in a tool or protocol error ÷ invalid inputs that are answered",
        better: Better::Higher,
        unit: Unit::Share,
        kind: MetricKind::Rate,
        rank: Some(Rank::new(40)),
        undefined: "no invalid input was answered",
        notes: CHOSEN,
        ..Metric::DEFAULT
    },
    Metric {
        id: "schema.accepts_valid",
        summary: "The share of inputs that keep the input schema and are not refused as invalid",
        formula: "valid inputs that do not end in a protocol error or a validator's tool error ÷ valid \
                  inputs that are answered",
        better: Better::Higher,
        unit: Unit::Share,
        kind: MetricKind::Rate,
        undefined: "no valid input was answered",
        notes: "A tool error of another kind (there is no such file) is no refusal. Inputs that only \
                break a `format` are left out.",
        ..Metric::DEFAULT
    },
    Metric {
        id: "crash_rate",
        summary: "The share of calls that end the server or its connection",
        formula: "calls during which the server ended ÷ calls",
        better: Better::Lower,
        unit: Unit::Share,
        kind: MetricKind::Rate,
        rank: Some(Rank::new(50)),
        undefined: "no calls",
        notes: CHOSEN,
        ..Metric::DEFAULT
    },
    Metric {
        id: "hang_rate",
        summary: "The share of calls that are not answered in time",
        formula: "calls without an answer in the time of a call ÷ calls",
        better: Better::Lower,
        unit: Unit::Share,
        kind: MetricKind::Rate,
        undefined: "no calls",
        notes: CHOSEN,
        ..Metric::DEFAULT
    },
    Metric {
        id: "invalid_result_rate",
        summary: "The share of results that break the protocol or the output schema",
        formula: "results of a wrong form ÷ results",
        better: Better::Lower,
        unit: Unit::Share,
        kind: MetricKind::Rate,
        undefined: "no results",
        notes: CHOSEN,
        ..Metric::DEFAULT
    },
    Metric {
        id: "leak_rate",
        summary: "The share of answers that give away the inside of the server",
        formula: "answers with a stack trace, a place in its code or a planted secret ÷ answers",
        better: Better::Lower,
        unit: Unit::Share,
        kind: MetricKind::Rate,
        undefined: "no answers",
        notes: CHOSEN,
        ..Metric::DEFAULT
    },
    Metric {
        id: "fuzz.tools",
        summary: "How many tools were called with made-up inputs",
        formula: "a count",
        better: Better::Higher,
        unit: Unit::Count,
        kind: MetricKind::Aggregate,
        ..Metric::DEFAULT
    },
    Metric {
        id: "fuzz.calls",
        summary: "How many made-up inputs were sent",
        formula: "a count; calls that make an input smaller are not in it",
        better: Better::Higher,
        unit: Unit::Count,
        kind: MetricKind::Aggregate,
        ..Metric::DEFAULT
    },
    Metric {
        id: "attacks_held",
        summary: "The share of attacks that did not get through",
        formula: "held ÷ (held + broken), over attack, tool and parameter",
        better: Better::Higher,
        unit: Unit::Share,
        kind: MetricKind::Rate,
        rank: Some(Rank::new(30)),
        undefined: "no attack applied",
        notes: "Broken is what a canary proves: a token from beyond the root, a file that only an \
                obeyed command makes, a call to a listener on 127.0.0.1, an answer beyond the limits.",
        ..Metric::DEFAULT
    },
];
