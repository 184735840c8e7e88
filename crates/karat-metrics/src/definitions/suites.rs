//! Metrics of test suites: passing cases, and values that satisfy the schemas a server declares.

use crate::metric::{Better, Metric, MetricKind, Rank, Unit};

pub(crate) const METRICS: &[Metric] = &[
    Metric {
        id: "pass_rate",
        summary: "The share of cases that pass",
        formula: "cases whose attempts succeed at the target rate or above ÷ cases",
        better: Better::Higher,
        unit: Unit::Share,
        kind: MetricKind::Rate,
        rank: Some(Rank::new(10)),
        undefined: "no cases",
        notes: "An attempt succeeds if the call ends as expected, every expectation holds, the \
                result satisfies its schema and arrives in time. The target is 0.95 unless the suite \
                states another; with one attempt that means success.",
        ..Metric::DEFAULT
    },
    Metric {
        id: "schema.input",
        summary: "The share of calls whose arguments fit the tool's input schema",
        formula: "calls with valid arguments ÷ calls that expect a result",
        better: Better::Higher,
        unit: Unit::Share,
        kind: MetricKind::Rate,
        undefined: "no call expects a result of a tool that the server has",
        notes: "JSON Schema 2020-12 unless the schema declares another dialect; `format` is \
                not checked.",
        ..Metric::DEFAULT
    },
    Metric {
        id: "schema.output",
        summary: "The share of results that fit the tool's output schema",
        formula: "results with valid structuredContent ÷ results of tools with an output schema",
        better: Better::Higher,
        unit: Unit::Share,
        kind: MetricKind::Rate,
        undefined: "no result of a tool that declares an output schema",
        notes: "A result without structuredContent violates the schema that its tool declares. Errors \
                do not have to satisfy it.",
        ..Metric::DEFAULT
    },
    Metric {
        id: "coverage.tools",
        summary: "The share of the server's tools that the suite calls",
        formula: "tools that are called ÷ tools",
        better: Better::Higher,
        unit: Unit::Share,
        kind: MetricKind::Rate,
        undefined: "the server has no tools",
        ..Metric::DEFAULT
    },
    Metric {
        id: "coverage.parameters",
        summary: "The share of top-level parameters that a call of the suite uses",
        formula: "parameters that are used ÷ parameters of all tools",
        better: Better::Higher,
        unit: Unit::Share,
        kind: MetricKind::Rate,
        undefined: "no tool has parameters",
        ..Metric::DEFAULT
    },
    Metric {
        id: "coverage.errors",
        summary: "The share of tools of which the suite sees an error",
        formula: "tools with a tool error or a protocol error ÷ tools",
        better: Better::Higher,
        unit: Unit::Share,
        kind: MetricKind::Rate,
        undefined: "the server has no tools",
        ..Metric::DEFAULT
    },
];
