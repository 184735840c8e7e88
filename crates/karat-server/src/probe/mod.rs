//! What fuzzing and attacking share: which tools are left alone, what a finding is, how it is played
//! again, and how rates over calls become metrics.
//!
//! A rule has an id, a severity and a reason, as the rules of lint have; a finding names its rule, the
//! tool, what was sent and a line that sends it again.

pub mod caution;
pub mod disguise;
pub mod live;
pub mod replay;

use karat_core::aggregate;
use karat_core::report::{Check, Count, Gate, Interval, Measured, Verdict};
use karat_metrics::stats;
use serde::Serialize;

pub use crate::lint::Severity;

/// One kind of finding, with everything that a reader of one wants to know.
#[derive(Debug)]
pub struct Rule {
    /// Its id, stable, as it stands in reports and in an allow-list.
    pub id: &'static str,
    /// How bad a finding of it is.
    pub severity: Severity,
    /// What it is about, in one line.
    pub summary: &'static str,
    /// Why it matters and what to do.
    pub help: &'static str,
}

/// What was found, with the proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Which rule.
    pub rule: &'static str,
    /// How bad.
    pub severity: Severity,
    /// The tool; empty where it is about the server as a whole.
    pub tool: String,
    /// Where in the tool's definition, as a JSON pointer.
    pub at: String,
    /// What is wrong.
    pub message: String,
    /// What was sent, as JSON, clipped.
    pub input: String,
    /// What came back, clipped.
    pub answer: String,
    /// How often it was seen.
    pub seen: u64,
    /// Whether the input by itself did it again.
    pub reproduced: bool,
    /// A command line that sends it again.
    pub replay: String,
}

/// The worst severity among findings.
#[must_use]
pub fn worst(findings: &[Finding]) -> Option<Severity> {
    findings.iter().map(|finding| finding.severity).max()
}

/// A share of calls as a metric, with the interval of a rate.
#[must_use]
pub fn rate(id: &str, hits: u64, of: u64, nothing: &str) -> Measured {
    let value = (of > 0).then(|| ratio(hits, of));
    let interval = stats::wilson(hits, of, aggregate::LEVEL).ok().map(|found| Interval {
        low: found.low,
        high: found.high,
        level: aggregate::LEVEL,
        method: "wilson".to_owned(),
    });
    Measured {
        id: id.to_owned(),
        value,
        n: of,
        better: aggregate::better(id),
        per_run: Vec::new(),
        interval: interval.filter(|_| of > 0),
        count: Some(Count { hits, of }),
        undefined: value.is_none().then(|| nothing.to_owned()),
        left_out: 0,
    }
}

/// A plain count as a metric.
#[must_use]
pub fn counted(id: &str, count: u64) -> Measured {
    Measured {
        id: id.to_owned(),
        value: Some(ratio(count, 1)),
        n: count,
        better: aggregate::better(id),
        per_run: Vec::new(),
        interval: None,
        count: None,
        undefined: None,
        left_out: 0,
    }
}

/// Counts stay far below 2^53.
#[expect(clippy::cast_precision_loss, reason = "counts of calls stay far below 2^53")]
pub(crate) fn ratio(hits: u64, of: u64) -> f64 {
    hits as f64 / of as f64
}

/// The gate over findings: none may be as bad as `least`.
#[must_use]
pub fn gate(findings: &[Finding], least: Option<Severity>, metric: &str) -> Gate {
    let bad: Vec<&Finding> = findings
        .iter()
        .filter(|finding| least.is_some_and(|least| finding.severity >= least))
        .collect();
    let verdict = if bad.is_empty() { Verdict::Pass } else { Verdict::Fail };
    let mut items: Vec<String> = bad.iter().map(|finding| finding.tool.clone()).collect();
    items.sort();
    items.dedup();
    let level = least.map_or("any", Severity::name);
    let reason = match (least, bad.first()) {
        (None, _) => "no finding fails this run".to_owned(),
        (Some(_), None) => format!("no finding of level {level} or worse"),
        (Some(_), Some(first)) => format!(
            "{} of level {level} or worse; the first: {}: {}",
            if bad.len() == 1 { "1 finding".to_owned() } else { format!("{} findings", bad.len()) },
            first.tool,
            first.message
        ),
    };
    let check = Check {
        metric: metric.to_owned(),
        slice: None,
        rule: "findings".to_owned(),
        threshold: Some(0.0),
        value: Some(ratio(bad.len() as u64, 1)),
        baseline: None,
        verdict,
        reason,
        items,
    };
    Gate { verdict, checks: vec![check] }
}
