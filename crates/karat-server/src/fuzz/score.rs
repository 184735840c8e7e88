//! From the results of fuzzing to metrics, items and warnings. Pure.

use std::time::Duration;

use karat_core::error::EvalError;
use karat_core::evaluation::{Observations, Scored, conventions};
use karat_core::finding::Finding;
use karat_core::journal::{Entry as Outcome, Outcome as Kept};
use karat_core::observed::{FuzzCounts, Observed};
use karat_core::report::{Item, ItemError, Measured, Report, Verdict};
use karat_io::text::first_few;
use karat_metrics::MetricId;

use super::controls::ControlTally;
use super::result::ToolResult;
use super::{Fuzz, causes, probe};
use crate::probe::live::not_about;
use crate::probe::{counted, rate, waivers};

/// The number of tools that are named in a warning.
const NAMED: usize = 8;

/// The metrics of a report, in its order.
pub(super) const METRICS: [MetricId; 8] =
    [REJECTS_INVALID, ACCEPTS_VALID, CRASHES, HANGS, INVALID_RESULTS, LEAKS, TOOLS, CALLS];

const REJECTS_INVALID: MetricId = MetricId::known("schema.rejects_invalid");
const ACCEPTS_VALID: MetricId = MetricId::known("schema.accepts_valid");
const CRASHES: MetricId = MetricId::known("crash_rate");
const HANGS: MetricId = MetricId::known("hang_rate");
const INVALID_RESULTS: MetricId = MetricId::known("invalid_result_rate");
const LEAKS: MetricId = MetricId::known("leak_rate");
const TOOLS: MetricId = MetricId::known("fuzz.tools");
const CALLS: MetricId = MetricId::known("fuzz.calls");

const CONVENTIONS: [(&str, &str); 4] = [
    (
        "valid",
        "by JSON Schema (2020-12 unless stated); an input that violates only a format is neither valid \
         nor invalid",
    ),
    (
        "refused",
        "a protocol error or an HTTP status about the arguments (-32602, 400, 413, 422 and the like), or an \
         error with the mark of a validator; any tool error refuses an invalid input, unless most valid \
         inputs fail in the same words; so does any other protocol error, if a valid input succeeded and none \
         fails in its words; all other errors and statuses are in neither rate",
    ),
    ("crash", "the server ended, or its connection failed"),
    (
        "interval",
        "Wilson, 95 %; inputs are chosen, not drawn, so it shows how much was tried, not how likely a \
         user is to meet it",
    ),
];

/// The findings in a report, tool by tool, the most important first.
pub fn findings(report: &Report) -> Vec<Finding> {
    findings_in(&report.items)
}

fn findings_in(items: &[Item]) -> Vec<Finding> {
    let of_item = |item: &Item| match &item.observed {
        Some(Observed::Fuzz(tool)) => tool.findings.clone(),
        _ => Vec::new(),
    };
    items.iter().flat_map(of_item).collect()
}

pub(super) fn score(observed: &Observations<'_, Fuzz>) -> Result<Scored, EvalError> {
    let Observations { entry, outcomes, facts, .. } = *observed;
    let fuzzed: Vec<(&str, &ToolResult)> = outcomes.iter().filter_map(result).collect();
    let mut total = FuzzCounts::default();
    let mut controls = ControlTally::default();
    for (_, result) in &fuzzed {
        add(&mut total, &result.observed.counts);
        controls.add(&result.controls);
    }
    let slow: u64 = fuzzed.iter().map(|(_, result)| result.slow).sum();
    if total.answers + total.crashes + total.hangs + slow == 0 {
        let first = facts.lost.as_deref().unwrap_or("no call was made");
        return Err(EvalError::NothingMeasured(format!(
            "nothing was executed: none of {} calls was answered (first: {first})",
            total.calls
        )));
    }
    let mut metrics = rates(&total);
    metrics.push(counted(TOOLS, fuzzed.len() as u64));
    metrics.push(counted(CALLS, total.calls));
    let mut items: Vec<Item> = fuzzed.iter().map(|(tool, result)| item(tool, result)).collect();
    for (item, findings) in items.iter_mut().zip(causes::by_cause(&fuzzed)) {
        if let Some(Observed::Fuzz(tool)) = &mut item.observed {
            tool.findings = findings;
        }
    }
    let mut warnings: Vec<String> =
        fuzzed.iter().flat_map(|(tool, result)| remarks(tool, result)).collect();
    let missed = outcomes.iter().filter(|outcome| result(outcome).is_none());
    let missed: Vec<String> = missed.map(|outcome| outcome.id.clone()).collect();
    warnings.extend(not_reached(&missed));
    if facts.is_late {
        let late = "the run was cut short: another one may get further or less far";
        warnings.push(late.to_owned());
    }
    warnings.extend(facts.warnings.iter().cloned());
    let waivers = &entry.config.waive;
    let tools = items.iter_mut().filter_map(|item| match &mut item.observed {
        Some(Observed::Fuzz(tool)) => Some(tool),
        _ => None,
    });
    let findings = tools.flat_map(|tool| &mut tool.findings);
    let needed = waivers::apply(waivers, &facts.today, findings);
    let mut check = probe::findings_check("findings", &findings_in(&items), entry.config.fail_on);
    let planned: usize = fuzzed.iter().map(|(_, result)| result.planned).sum();
    let tools = outcomes.len();
    check.reason.push_str(&format!(
        "; {} of {planned} inputs to {} of {tools} tools were tried{}",
        total.calls,
        fuzzed.len(),
        not_about(facts.skipped)
    ));
    let is_thin = |result: &ToolResult| {
        result.observed.stopped.is_some()
            && result.observed.counts.calls * 10 < result.planned as u64
    };
    let says_little = |result: &ToolResult| is_thin(result) || is_mostly_unrelated(result);
    if check.verdict == Verdict::Pass
        && (fuzzed.len() < tools || fuzzed.iter().any(|(_, result)| says_little(result)))
    {
        check.verdict = Verdict::Inconclusive;
    }
    let nanos = fuzzed.iter().flat_map(|(_, result)| &result.latencies);
    Ok(Scored {
        metrics,
        checks: std::iter::once(check)
            .chain(waivers::check(waivers, &needed, &facts.today))
            .collect(),
        items,
        controls: controls.controls(),
        conventions: conventions(CONVENTIONS),
        warnings,
        latencies: nanos.map(|nanos| Duration::from_nanos(*nanos)).collect(),
        isolation: facts.isolation.clone(),
        ..Scored::default()
    })
}

/// The result of a tool that had its turn.
fn result(outcome: &Outcome<Option<ToolResult>>) -> Option<(&str, &ToolResult)> {
    match &outcome.outcome {
        Kept::Answer(Some(result)) => Some((&outcome.id, result)),
        _ => None,
    }
}

fn add(sum: &mut FuzzCounts, more: &FuzzCounts) {
    sum.calls += more.calls;
    sum.answers += more.answers;
    sum.crashes += more.crashes;
    sum.hangs += more.hangs;
    sum.results += more.results;
    sum.invalid_results += more.invalid_results;
    sum.leaks += more.leaks;
    sum.valid += more.valid;
    sum.valid_not_refused += more.valid_not_refused;
    sum.valid_succeeded += more.valid_succeeded;
    sum.invalid += more.invalid;
    sum.invalid_refused += more.invalid_refused;
}

fn rates(counts: &FuzzCounts) -> Vec<Measured> {
    let FuzzCounts { calls, answers, results, valid, invalid, .. } = *counts;
    let no_call = "no call was made";
    vec![
        rate(
            REJECTS_INVALID,
            counts.invalid_refused,
            invalid,
            "no answer to an invalid input says whether it was refused",
        ),
        rate(
            ACCEPTS_VALID,
            counts.valid_not_refused,
            valid,
            "no answer to a valid input says whether it was refused",
        ),
        rate(CRASHES, counts.crashes, calls, no_call),
        rate(HANGS, counts.hangs, calls, no_call),
        rate(INVALID_RESULTS, counts.invalid_results, results, "there was no result"),
        rate(LEAKS, counts.leaks, answers, "nothing was answered"),
    ]
}

fn item(tool: &str, result: &ToolResult) -> Item {
    let observed = &result.observed;
    let error = (observed.counts.calls == 0).then(|| ItemError {
        class: "not_called".to_owned(),
        message: observed.stopped.clone().unwrap_or_else(|| "there is no input".to_owned()),
    });
    let rates = rates(&observed.counts).into_iter();
    Item {
        id: tool.to_owned(),
        metrics: rates.map(|measured| (measured.id, measured.value)).collect(),
        observed: Some(Observed::Fuzz(observed.clone())),
        error,
        ..Item::default()
    }
}

/// Returns whether most answers of a tool say nothing about its inputs.
fn is_mostly_unrelated(result: &ToolResult) -> bool {
    result.unrelated * 2 > result.observed.counts.calls
}

/// Warnings about one tool.
fn remarks(tool: &str, result: &ToolResult) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(why) = &result.observed.stopped {
        let (sent, planned) = (result.observed.counts.calls, result.planned);
        remarks.push(format!("{tool}: {sent} of {planned} inputs: {why}"));
    }
    if is_mostly_unrelated(result) {
        let (unrelated, calls) = (result.unrelated, result.observed.counts.calls);
        remarks.push(format!(
            "{tool}: {unrelated} of {calls} calls failed for a reason that is not the input, and are in no rate of \
             valid and invalid inputs"
        ));
    }
    remarks.extend(result.warnings.iter().map(|warning| format!("{tool}: {warning}")));
    if result.unreported > 0 {
        remarks.push(format!("{tool}: {} more findings are not listed", result.unreported));
    }
    remarks
}

/// The tools that had no turn, in one line.
fn not_reached(tools: &[String]) -> Option<String> {
    let count = match tools.len() {
        0 => return None,
        1 => "1 tool was not reached".to_owned(),
        n => format!("{n} tools were not reached"),
    };
    Some(format!("{count}: {}", first_few(tools, NAMED)))
}
