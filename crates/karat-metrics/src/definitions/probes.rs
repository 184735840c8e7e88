//! Metrics of generated and hostile calls.

use crate::metric::{Better, Metric, MetricKind, Rank, Unit};

const CHOSEN: &str = "Inputs are chosen, not sampled: the rate compares versions of one server under the \
                      same seed, and does not estimate how often a user is affected.";

pub(crate) const METRICS: &[Metric] = &[
    Metric {
        id: "schema.rejects_invalid",
        summary: "The share of inputs that violate the input schema and are answered with an error",
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
        summary: "The share of inputs that satisfy the input schema and are not rejected as invalid",
        formula: "valid inputs that do not end in a protocol error or a validator's tool error ÷ valid \
                  inputs that are answered",
        better: Better::Higher,
        unit: Unit::Share,
        kind: MetricKind::Rate,
        undefined: "no valid input was answered",
        notes: "A tool error of another kind (the file does not exist) is not a rejection. Inputs that \
                only violate a `format` are left out.",
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
        formula: "calls without an answer within the time limit ÷ calls",
        better: Better::Lower,
        unit: Unit::Share,
        kind: MetricKind::Rate,
        undefined: "no calls",
        notes: CHOSEN,
        ..Metric::DEFAULT
    },
    Metric {
        id: "invalid_result_rate",
        summary: "The share of results that violate the protocol or the output schema",
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
        summary: "The share of answers that reveal internals of the server",
        formula: "answers with a stack trace, a location in its code or a planted secret ÷ answers",
        better: Better::Lower,
        unit: Unit::Share,
        kind: MetricKind::Rate,
        undefined: "no answers",
        notes: CHOSEN,
        ..Metric::DEFAULT
    },
    Metric {
        id: "fuzz.tools",
        summary: "The number of tools that were called with generated inputs",
        formula: "a count",
        better: Better::Higher,
        unit: Unit::Count,
        kind: MetricKind::Aggregate,
        ..Metric::DEFAULT
    },
    Metric {
        id: "fuzz.calls",
        summary: "The number of generated inputs that were sent",
        formula: "a count, without the calls that shrink a failing input",
        better: Better::Higher,
        unit: Unit::Count,
        kind: MetricKind::Aggregate,
        ..Metric::DEFAULT
    },
    Metric {
        id: "attack_coverage",
        summary: "The share of attacks and tools that were judged",
        formula: "pairs of attack and tool that were held or broken ÷ all pairs",
        better: Better::Higher,
        unit: Unit::Share,
        kind: MetricKind::Rate,
        undefined: "no attack was made",
        notes: "The rest does not apply, was not executed or is not judged.",
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
        notes: "An attack counts as broken if a canary proves it: a token from outside the root, a file \
                that only an executed command creates, a call to a listener on 127.0.0.1, an answer \
                beyond the limits.",
        ..Metric::DEFAULT
    },
];
