//! From the counts of a load to metrics, slices, items and warnings. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use karat_core::aggregate;
use karat_core::error::EvalError;
use karat_core::evaluation::{Observations, Scored, bins};
use karat_core::journal::Outcome as Kept;
use karat_core::observed::{self, Observed};
use karat_core::report::{Check, Gate, Interval, Item, Measured, Property, Report, Slice, Verdict};
use karat_io::text::{clip, printable};
use karat_metrics::{MetricId, metric};

use super::driver::Phase;
use super::plan::{Length, Plan, Shape};
use super::tally::{CallStats, Class, Tally, Times};
use super::{Facts, Load, Measurement};
use crate::probe::rate;

/// The number of columns of an answer in a warning.
const SHOWN: usize = 200;
/// The lateness of the harness that is reported, as a share of the median.
const LATE: f64 = 0.2;

const NO_CALL: &str = "no call was made";
const NOT_TIMED: &str = "no call was answered or timed out";
const NEVER_HELD: &str = "the condition held at no load that was tried";

/// The ids of the metrics of a report.
pub(super) fn metric_ids(plan: &Plan) -> impl Iterator<Item = MetricId> {
    let of_all = QUANTILES.map(|(id, _)| id).into_iter();
    let rest = [
        metric!("latency.max"),
        metric!("throughput"),
        metric!("error_rate"),
        metric!("harness_cpu_us"),
    ];
    of_all.chain(rest).chain(plan.find_max.is_some().then_some(max_id(plan)))
}

fn max_id(plan: &Plan) -> MetricId {
    match plan.shape {
        Shape::Closed { .. } => metric!("max_concurrency"),
        Shape::Open { .. } => metric!("max_rate"),
    }
}

const QUANTILES: [(MetricId, f64); 4] = [
    (MetricId::known("latency.p50"), 0.5),
    (MetricId::known("latency.p90"), 0.9),
    (MetricId::known("latency.p99"), 0.99),
    (MetricId::known("latency.p99.9"), 0.999),
];

pub(super) fn score(observed: &Observations<'_, Load>) -> Result<Scored, EvalError> {
    let Observations { entry, outcomes, facts, .. } = *observed;
    let plan = entry.config.plan()?;
    let measurement = match outcomes.first().map(|outcome| &outcome.outcome) {
        Some(Kept::Answer(Ok(measurement))) => measurement,
        Some(Kept::Answer(Err(why))) => return Err(EvalError::NothingMeasured(why.clone())),
        Some(Kept::Failure { message, .. }) => {
            return Err(EvalError::NothingMeasured(message.clone()));
        }
        None => return Err(EvalError::NothingMeasured(NO_CALL.to_owned())),
    };
    let tally = &measurement.phase.tally;
    let calls = facts.calls.iter().map(String::as_str);
    Ok(Scored {
        metrics: metrics(measurement, &plan),
        slices: slices(tally, calls),
        items: steps(measurement).chain(seconds(&measurement.phase)).collect(),
        conventions: conventions(&plan),
        warnings: warnings(measurement, &plan, facts),
        checks: crashes(&tally.all).into_iter().collect(),
        latency_bins: Some(bins(tally.all.times.each_ms())),
        isolation: facts.isolation.clone(),
        ..Scored::default()
    })
}

/// Puts the figures of all generators in the place of those of one.
pub(super) fn merged<'a>(
    report: &mut Report,
    measurement: &Measurement,
    calls: impl ExactSizeIterator<Item = &'a str>,
    facts: &Facts,
) {
    let Phase { tally, elapsed, own_cpu, .. } = &measurement.phase;
    report.metrics = figures(tally, elapsed.as_secs_f64(), *own_cpu);
    report.slices = slices(tally, calls);
    report.items = seconds(&measurement.phase).collect();
    report
        .warnings
        .retain(|warning| !warning.contains(" × ") && !warning.contains("started again"));
    report.warnings.extend(first_errors(tally));
    report.warnings.extend(restarted(facts));
    report.gate =
        crashes(&tally.all).map(|check| Gate { verdict: check.verdict, checks: vec![check] });
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Shape::Closed { concurrency } => {
                write!(f, "closed loop, {concurrency} concurrent calls")
            }
            Shape::Open { rate } => {
                write!(f, "open loop, {rate} calls/s, timed from when each was due")
            }
        }
    }
}

/// All settings in one line.
impl std::fmt::Display for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let settings: Vec<String> =
            conventions(self).iter().map(|(name, rule)| format!("{name}: {rule}")).collect();
        f.write_str(&settings.join("; "))
    }
}

fn conventions(plan: &Plan) -> BTreeMap<String, String> {
    let mut rules = vec![
        ("load", plan.shape.to_string()),
        ("connections", plan.connections.to_string()),
        ("ramp", Length::Time(plan.ramp).to_string()),
        ("measured", plan.length.to_string()),
        ("left out at the start", plan.warm_up.to_string()),
        ("calls", "judged by how they end, not by what they say".to_owned()),
    ];
    if let Some(condition) = &plan.find_max {
        rules.push(("searched for", format!("the highest load with {condition}")));
    }
    rules.into_iter().map(|(name, rule)| (name.to_owned(), rule)).collect()
}

fn metrics(measurement: &Measurement, plan: &Plan) -> Vec<Measured> {
    let Phase { tally, elapsed, own_cpu, .. } = &measurement.phase;
    let mut metrics = figures(tally, elapsed.as_secs_f64(), *own_cpu);
    if plan.find_max.is_some() {
        let held = measurement.steps.iter().filter(|step| step.broken.is_none());
        let highest = held.map(|step| step.load).max_by(f64::total_cmp);
        metrics.push(value(max_id(plan), highest, measurement.steps.len() as u64, NEVER_HELD));
    }
    metrics
}

fn figures(tally: &Tally, seconds: f64, own_cpu: Option<Duration>) -> Vec<Measured> {
    let mut metrics = of_calls(&tally.all, Some(seconds));
    let calls = tally.all.calls();
    let each = own_cpu.map(|cpu| cpu.as_secs_f64() * 1e6 / calls.max(1) as f64);
    let unknown = "the system does not provide the processor time";
    metrics.push(value(metric!("harness_cpu_us"), each, calls, unknown));
    metrics
}

fn slices<'a>(tally: &Tally, calls: impl ExactSizeIterator<Item = &'a str>) -> Vec<Slice> {
    let slice = |by: Property, value: &str, metrics: Vec<Measured>| Slice {
        by: by.into(),
        value: value.to_owned(),
        metrics,
    };
    let errors = tally.all.classes.iter().filter(|(class, _)| **class != Class::Ok);
    let mut slices: Vec<Slice> = errors
        .map(|(class, count)| {
            let rate = error_rate(*count, tally.all.calls());
            slice(Property::Class, class.name(), vec![rate])
        })
        .collect();
    if calls.len() > 1 {
        let by_call = calls.zip(&tally.by_call);
        slices.extend(by_call.map(|(id, stats)| slice(Property::Call, id, of_calls(stats, None))));
    }
    slices
}

/// The steps of the search for the highest load.
fn steps(measurement: &Measurement) -> impl Iterator<Item = Item> {
    measurement.steps.iter().enumerate().map(|(number, step)| {
        let (p50, p99) = step.p50_p99_ms;
        let observed = observed::Load::Step {
            load: step.load,
            holds: step.broken.is_none(),
            why_not: step.broken.clone(),
        };
        let id = format!("step-{:02}", number + 1);
        item(id, "step", [Some(step.throughput), p50, p99, step.error_rate], observed)
    })
}

/// The seconds of the measured load.
fn seconds(phase: &Phase) -> impl Iterator<Item = Item> {
    let Phase { tally, elapsed, .. } = phase;
    tally.seconds.iter().enumerate().map(|(second, (ok, errors))| {
        // The last second is rarely a whole one, and its calls began before it.
        let lasts = (elapsed.as_secs_f64() - second as f64).clamp(1e-9, 1.0);
        let is_whole = lasts >= 1.0 || second == 0;
        let calls = ok + errors;
        let metrics = [
            is_whole.then(|| *ok as f64 / lasts),
            tally.second_ms(second).map(|[median, _]| median),
            tally.second_ms(second).map(|[_, p99]| p99),
            (calls > 0).then(|| *errors as f64 / calls as f64),
        ];
        let observed = observed::Load::Second { ok: *ok, errors: *errors };
        item(format!("second-{:05}", second + 1), "second", metrics, observed)
    })
}

fn item(id: String, kind: &str, metrics: [Option<f64>; 4], observed: observed::Load) -> Item {
    let ids = [
        metric!("throughput"),
        metric!("latency.p50"),
        metric!("latency.p99"),
        metric!("error_rate"),
    ];
    Item {
        id,
        tags: BTreeMap::from([(Property::Kind.into(), kind.to_owned())]),
        metrics: ids.into_iter().zip(metrics).collect(),
        observed: Some(Observed::Load(observed)),
        ..Item::default()
    }
}

/// A server that ends under load does not pass, whatever share of its calls that cost.
fn crashes(all: &CallStats) -> Option<Check> {
    let crashed = all.classes.get(&Class::Crash).copied().filter(|count| *count > 0)?;
    let calls = all.calls();
    Some(Check {
        metric: metric!("error_rate").to_string(),
        slice: Some(format!("{}={}", Property::Class.name(), Class::Crash.name())),
        rule: "crashes".to_owned(),
        threshold: Some(0.0),
        value: Some(crashed as f64 / calls as f64),
        baseline: None,
        verdict: Verdict::Fail,
        reason: format!("the server ended during {crashed} of {calls} calls"),
        items: Vec::new(),
    })
}

fn first_errors(tally: &Tally) -> impl Iterator<Item = String> {
    tally.first.iter().map(|(class, text)| {
        let count = tally.all.classes.get(class).copied().unwrap_or_default();
        let text = printable(text);
        format!("{count} × {}; first: {}", class.name(), clip(&text, SHOWN))
    })
}

fn restarted(facts: &Facts) -> Option<String> {
    (facts.restarts > 0)
        .then(|| format!("the server had to be started again {} times", facts.restarts))
}

fn warnings(measurement: &Measurement, plan: &Plan, facts: &Facts) -> Vec<String> {
    let tally = &measurement.phase.tally;
    let mut warnings: Vec<String> = first_errors(tally).collect();
    warnings.extend(restarted(facts));
    if let (Some(p50), Some(lag)) = (tally.all.times.quantile_ms(0.5), tally.lag.quantile_ms(0.99))
        && lag > p50 * LATE
    {
        warnings.push(format!(
            "one call in a hundred was sent {lag:.3} ms or more after it was due (the median answer \
             took {p50:.3} ms): part of the times is this machine's, not the server's"
        ));
    }
    if plan.find_max.is_some() {
        let held = measurement.steps.iter().filter(|step| step.broken.is_none()).count();
        if held == 0 {
            warnings.push(NEVER_HELD.to_owned());
        }
        if held == measurement.steps.len() {
            let all = "the condition held at every load that was tried: the maximum is higher";
            warnings.push(all.to_owned());
        }
    }
    if let Length::Time(time) = plan.length
        && time < plan.ramp
    {
        warnings.push("the measurement ended within the ramp, before the full load".to_owned());
    }
    warnings.extend(facts.warnings.iter().cloned());
    warnings
}

/// Quantiles, throughput if a time is given, and errors.
fn of_calls(stats: &CallStats, seconds: Option<f64>) -> Vec<Measured> {
    let times = &stats.times;
    let mut metrics: Vec<Measured> = QUANTILES.map(|(id, share)| quantile(id, share, times)).into();
    metrics.push(value(metric!("latency.max"), times.max_ms(), times.len(), NOT_TIMED));
    if let Some(seconds) = seconds {
        let each = (seconds > 0.0).then(|| stats.ok() as f64 / seconds);
        metrics.push(value(metric!("throughput"), each, stats.calls(), NO_CALL));
    }
    metrics.push(error_rate(stats.calls() - stats.ok(), stats.calls()));
    metrics
}

/// A quantile of times, with the interval that the ranks of the times give. It is undefined where the
/// sample does not reach it: the longest of 200 times is not their p99.9.
fn quantile(id: MetricId, share: f64, times: &Times<u64, 3>) -> Measured {
    let n = times.len();
    if n == 0 {
        return value(id, None, 0, NOT_TIMED);
    }
    let needed = (1.0 / (1.0 - share)).round();
    if (n as f64) < needed {
        let why = format!("it needs at least {needed} timed calls, and there are {n}");
        return value(id, None, n, &why);
    }
    let ends = times.quantile_interval_ms(share, aggregate::LEVEL);
    let interval = ends.map(|(low, high)| Interval {
        low,
        high,
        level: aggregate::LEVEL,
        method: "order statistics".to_owned(),
    });
    Measured { interval, ..value(id, times.quantile_ms(share), n, NOT_TIMED) }
}

fn value(id: MetricId, value: Option<f64>, n: u64, undefined: &str) -> Measured {
    Measured { per_run: vec![value], ..aggregate::value(id, value, n, undefined) }
}

fn error_rate(errors: u64, calls: u64) -> Measured {
    let measured = rate(metric!("error_rate"), errors, calls, NO_CALL);
    Measured { per_run: vec![measured.value], ..measured }
}
