//! The report on a load: quantiles, throughput, errors by class, each call, each second, each step.

use std::collections::BTreeMap;

use karat_core::aggregate;
use karat_core::provenance::{self, Stopwatch};
use karat_core::report::{
    self, Count, Evaluation, Interval, Item, Measured, Report, Slice, SystemRef,
};
use karat_io::text::{clip, printable};
use karat_mcp::ServerInfo;
use karat_metrics::stats;
use serde_json::json;

use super::drive::Stretch;
use super::mix::Mix;
use super::search::Step;
use super::tally::{Class, Counted};
use super::{Length, Plan, Shape};

/// How much of a server's own words stands in a warning.
const QUOTED: usize = 200;
/// The share of the median by which the harness may be late before it says so.
const LATE: f64 = 0.2;

/// What was found, ready to be reported.
pub(super) struct Findings<'a> {
    pub(super) plan: &'a Plan,
    pub(super) mix: &'a Mix,
    pub(super) info: ServerInfo,
    pub(super) steps: Vec<Step>,
    pub(super) stretch: Stretch,
    pub(super) restarts: u64,
}

impl Findings<'_> {
    pub(super) fn report(&self, stopwatch: &Stopwatch) -> Report {
        Report {
            schema: report::SCHEMA.to_owned(),
            evaluation: Evaluation::Server,
            name: self.plan.name.clone(),
            dataset: self.plan.dataset.clone(),
            system: self.system(),
            runs: 1,
            seed: self.plan.seed,
            conventions: self.conventions(),
            metrics: self.metrics(),
            slices: self.slices(),
            items: self.items(),
            controls: Vec::new(),
            comparison: None,
            gate: None,
            warnings: self.warnings(),
            environment: report::Environment {
                latency_bins: provenance::bins(self.stretch.tally.all.each_ms()),
                ..stopwatch.environment(&[], Some(&self.plan.folder))
            },
        }
    }

    fn system(&self) -> SystemRef {
        let described = self.plan.server.describe();
        let name = if self.info.name.is_empty() { &described } else { &self.info.name };
        SystemRef {
            kind: "mcp".to_owned(),
            name: name.clone(),
            version: Some(self.info.version.clone()).filter(|version| !version.is_empty()),
            settings: BTreeMap::from([
                ("server".to_owned(), described),
                ("protocol".to_owned(), self.info.revision.to_string()),
            ]),
        }
    }

    fn conventions(&self) -> BTreeMap<String, String> {
        let plan = self.plan;
        let shape = match plan.shape {
            Shape::Closed { concurrency } => format!("closed loop, {concurrency} calls at once"),
            Shape::Open { rate } => {
                format!("open loop, {rate} calls/s, timed from when each was due")
            }
        };
        let mut said = BTreeMap::from([
            ("load".to_owned(), shape),
            ("connections".to_owned(), plan.connections.to_string()),
            ("ramp".to_owned(), format!("{} s", plan.ramp.as_secs_f64())),
            ("measured".to_owned(), length(plan.length)),
            ("left out at the start".to_owned(), length(plan.warm_up)),
            ("calls".to_owned(), "how they end is judged, not what they say".to_owned()),
        ]);
        if let Some(condition) = &plan.find_max {
            said.insert("looked for".to_owned(), format!("the most load with {condition}"));
        }
        said
    }

    fn metrics(&self) -> Vec<Measured> {
        let Stretch { tally, elapsed, own_cpu, .. } = &self.stretch;
        let mut metrics = measured(&tally.all, Some(elapsed.as_secs_f64()));
        let calls = tally.all.calls();
        let each = own_cpu.map(|cpu| cpu.as_secs_f64() * 1e6 / calls.max(1) as f64);
        let reason = "the system does not tell the processor time";
        metrics.push(value("harness_cpu_us", each, calls, reason));
        if self.plan.find_max.is_some() {
            let holds = self.steps.iter().filter(|step| step.broken.is_none());
            let most = holds.map(|step| step.load).max_by(f64::total_cmp);
            let id = match self.plan.shape {
                Shape::Closed { .. } => "max_concurrency",
                Shape::Open { .. } => "max_rate",
            };
            let reason = "the condition held at no load that was tried";
            metrics.push(value(id, most, self.steps.len() as u64, reason));
        }
        metrics
    }

    fn slices(&self) -> Vec<Slice> {
        let all = &self.stretch.tally.all;
        let errors = all.classes.iter().filter(|(class, _)| **class != Class::Ok);
        let of_class = |(class, count): (&Class, &u64)| Slice {
            by: "class".to_owned(),
            value: class.name().to_owned(),
            metrics: vec![rate("error_rate", *count, all.calls())],
        };
        let of_call = |(call, counted): (&super::Call, &Counted)| Slice {
            by: "call".to_owned(),
            value: call.id.clone(),
            metrics: measured(counted, None),
        };
        let mut slices: Vec<Slice> = errors.map(of_class).collect();
        if self.mix.calls.len() > 1 {
            slices.extend(self.mix.calls.iter().zip(&self.stretch.tally.by_call).map(of_call));
        }
        slices
    }

    /// Each step and each second: what a reader draws.
    fn items(&self) -> Vec<Item> {
        let steps = self.steps.iter().enumerate().map(|(number, step)| Item {
            id: format!("step-{:02}", number + 1),
            group: None,
            tags: BTreeMap::from([("kind".to_owned(), "step".to_owned())]),
            metrics: BTreeMap::from([
                ("throughput".to_owned(), Some(step.throughput)),
                ("latency.p50".to_owned(), step.p50_p99_ms.0),
                ("latency.p99".to_owned(), step.p50_p99_ms.1),
                ("error_rate".to_owned(), step.error_rate),
            ]),
            per_run: Vec::new(),
            observed: json!({"load": step.load, "holds": step.broken.is_none(), "why_not": step.broken}),
            error: None,
        });
        let whole = self.stretch.elapsed.as_secs_f64();
        let seconds = self.stretch.tally.seconds.iter().enumerate().map(|(second, (well, ill))| {
            // The last second is rarely a whole one, and what comes in it was asked for before.
            let lasts = (whole - second as f64).clamp(1e-9, 1.0);
            let is_whole = lasts >= 1.0 || second == 0;
            let calls = well + ill;
            let errors = (calls > 0).then(|| *ill as f64 / calls as f64);
            Item {
                id: format!("second-{:05}", second + 1),
                group: None,
                tags: BTreeMap::from([("kind".to_owned(), "second".to_owned())]),
                metrics: BTreeMap::from([
                    ("throughput".to_owned(), is_whole.then(|| *well as f64 / lasts)),
                    ("latency.p50".to_owned(), self.stretch.tally.second_ms(second, 0.5)),
                    ("latency.p99".to_owned(), self.stretch.tally.second_ms(second, 0.99)),
                    ("error_rate".to_owned(), errors),
                ]),
                per_run: Vec::new(),
                observed: json!({"ok": well, "errors": ill}),
                error: None,
            }
        });
        steps.chain(seconds).collect()
    }

    fn warnings(&self) -> Vec<String> {
        let tally = &self.stretch.tally;
        let mut warnings: Vec<String> = tally
            .first
            .iter()
            .map(|(class, words)| {
                let count = tally.all.classes.get(class).copied().unwrap_or_default();
                let words = printable(words);
                format!("{count} × {}; the first: {}", class.name(), clip(&words, QUOTED))
            })
            .collect();
        if self.restarts > 0 {
            warnings.push(format!("the server had to be started again {} times", self.restarts));
        }
        let lag = tally.lag.value_at_quantile(0.99) as f64 / 1e6;
        if let Some(p50) = tally.all.quantile_ms(0.5)
            && lag > p50 * LATE
            && !tally.lag.is_empty()
        {
            warnings.push(format!(
                "one call in a hundred was sent {lag:.3} ms or more after it was due (the median \
                 answer took {p50:.3} ms): part of the times is this machine's, not the server's"
            ));
        }
        if self.plan.find_max.is_some() && self.steps.iter().all(|step| step.broken.is_some()) {
            warnings.push("the condition held at no load that was tried".to_owned());
        }
        if self.plan.find_max.is_some() && self.steps.iter().all(|step| step.broken.is_none()) {
            warnings
                .push("the condition held at every load that was tried: the most is more".into());
        }
        if let Length::Time(time) = self.plan.length
            && time < self.plan.ramp
        {
            warnings.push("the measurement ended within the ramp, before the full load".to_owned());
        }
        warnings
    }
}

fn length(length: Length) -> String {
    match length {
        Length::Time(time) => format!("{} s", time.as_secs_f64()),
        Length::Calls(count) => format!("{count} calls"),
    }
}

/// Quantiles, throughput where a time is given, and errors.
fn measured(counted: &Counted, seconds: Option<f64>) -> Vec<Measured> {
    let timed = counted.times.len();
    let none = "no call was answered or timed out";
    let mut metrics: Vec<Measured> = [
        ("latency.p50", counted.quantile_ms(0.5)),
        ("latency.p90", counted.quantile_ms(0.9)),
        ("latency.p99", counted.quantile_ms(0.99)),
        ("latency.p99.9", counted.quantile_ms(0.999)),
        ("latency.max", counted.max_ms()),
    ]
    .into_iter()
    .map(|(id, found)| value(id, found, timed, none))
    .collect();
    if let Some(seconds) = seconds {
        let each = (seconds > 0.0).then(|| counted.ok() as f64 / seconds);
        metrics.push(value("throughput", each, counted.calls(), "no call was made"));
    }
    metrics.push(rate("error_rate", counted.calls() - counted.ok(), counted.calls()));
    metrics
}

fn value(id: &str, found: Option<f64>, n: u64, undefined: &str) -> Measured {
    Measured {
        id: id.to_owned(),
        value: found,
        n,
        better: aggregate::better(id),
        per_run: vec![found],
        interval: None,
        count: None,
        undefined: found.is_none().then(|| undefined.to_owned()),
        left_out: 0,
    }
}

fn rate(id: &str, hits: u64, of: u64) -> Measured {
    let found = (of > 0).then(|| hits as f64 / of as f64);
    let interval = stats::wilson(hits, of, aggregate::LEVEL).ok().map(|found| Interval {
        low: found.low,
        high: found.high,
        level: aggregate::LEVEL,
        method: "wilson".to_owned(),
    });
    Measured {
        interval,
        count: Some(Count { hits, of }),
        ..value(id, found, of, "no call was made")
    }
}
