//! Metrics of a server under load.

use crate::metric::{Better, Metric, MetricKind, Rank, Unit};

const LATENCY_NOTES: &str = "Ours. Milliseconds, from an HDR histogram of three digits over calls that were \
     answered or timed out; without warm-up. In a \
     closed loop from sending to answer; in an open loop from the moment at which the call was due, \
     so that a stalling server is charged for the calls that it delayed.";

/// A percentile of the time of a call.
const fn latency(id: &'static str, summary: &'static str, formula: &'static str) -> Metric {
    Metric {
        id,
        summary,
        formula,
        better: Better::Lower,
        unit: Unit::Milliseconds,
        kind: MetricKind::Aggregate,
        undefined: "when no call was answered or timed out",
        notes: LATENCY_NOTES,
        ..Metric::DEFAULT
    }
}

pub(crate) const METRICS: &[Metric] = &[
    Metric {
        rank: Some(Rank::new(60)),
        ..latency(
            "latency.p50",
            "The time within which half of the answers came",
            "the least time with at least 50 % of the calls at or below it",
        )
    },
    latency(
        "latency.p90",
        "The time within which nine of ten answers came",
        "the least time with at least 90 % of the calls at or below it",
    ),
    Metric {
        rank: Some(Rank::new(70)),
        ..latency(
            "latency.p99",
            "The time within which 99 of 100 answers came",
            "the least time with at least 99 % of the calls at or below it",
        )
    },
    latency(
        "latency.p99.9",
        "The time within which 999 of 1,000 answers came",
        "the least time with at least 99.9 % of the calls at or below it",
    ),
    latency("latency.max", "The time of the slowest answer", "the longest time of a call"),
    Metric {
        id: "throughput",
        summary: "Answers per second under load",
        formula: "calls that ended as expected ÷ seconds from the first call to the last answer",
        better: Better::Higher,
        unit: Unit::PerSecond,
        kind: MetricKind::Aggregate,
        rank: Some(Rank::new(80)),
        undefined: "when no call was made",
        notes: "Ours. A ramp counts as part of the time, warm-up does not.",
        ..Metric::DEFAULT
    },
    Metric {
        id: "error_rate",
        summary: "Share of calls under load that did not end as expected",
        formula: "calls with an unexpected ending ÷ calls",
        better: Better::Lower,
        unit: Unit::Share,
        kind: MetricKind::Rate,
        rank: Some(Rank::new(90)),
        undefined: "when no call was made",
        notes: "Ours. By class in the slices: tool error, protocol error, time-out, crash, invalid \
                answer, failed connection, and a call that should have been rejected but was not.",
        ..Metric::DEFAULT
    },
    Metric {
        id: "harness_cpu_us",
        summary: "The cost of one call for Karat itself, in microseconds of processor time",
        formula: "processor time of Karat's own process while it measured ÷ calls",
        better: Better::Lower,
        unit: Unit::Microseconds,
        kind: MetricKind::Aggregate,
        undefined: "where the operating system does not report it",
        notes: "Ours. The server's own time is not included, unless the server runs inside Karat.",
        ..Metric::DEFAULT
    },
    Metric {
        id: "max_rate",
        summary: "The highest rate of calls at which the condition of `--find-max` held",
        formula: "the highest tried rate (calls per second) that the server kept up with and that met the condition",
        better: Better::Higher,
        unit: Unit::PerSecond,
        kind: MetricKind::Aggregate,
        undefined: "when no tried rate met the condition",
        notes: "Ours. Found by doubling, then by halving the gap.",
        ..Metric::DEFAULT
    },
    Metric {
        id: "max_concurrency",
        summary: "The highest number of concurrent calls at which the condition of `--find-max` held",
        formula: "the highest tried number of concurrent calls that met the condition",
        better: Better::Higher,
        unit: Unit::Count,
        kind: MetricKind::Aggregate,
        undefined: "when no tried number met the condition",
        notes: "Ours. Found by doubling, then by halving the gap.",
        ..Metric::DEFAULT
    },
];
