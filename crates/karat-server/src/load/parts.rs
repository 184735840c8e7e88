//! Loads of several generators at the same time, put together exactly.
//!
//! A generator leaves its counts and histograms behind. Their sum is the one that a single generator would have
//! had with the same calls, so quantiles of the whole come from the times of all calls, never from quantiles
//! of parts.

use std::time::Duration;

use karat_core::error::EvalError;
use karat_core::evaluation::{Collected, Entry, bins};
use karat_core::gate::Policy;
use karat_core::journal::Outcome as Kept;
use karat_core::report::Report;
use serde::{Deserialize, Serialize};

use super::driver::Phase;
use super::score;
use super::{Facts, Load, Measurement};

/// The name of the format of [`Part`].
pub const SCHEMA: &str = "karat.load-part/1";
/// The version that must have made all parts.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The load of one generator.
#[derive(Serialize, Deserialize)]
pub struct Part {
    /// Always [`SCHEMA`].
    pub schema: String,
    karat: String,
    /// The report of this generator alone.
    report: Report,
    /// The ids of the calls.
    calls: Vec<String>,
    restarts: u64,
    measurement: Measurement,
    /// The rules for the merged report.
    pub policy: Policy,
}

impl Part {
    /// The part of a load that was measured.
    ///
    /// # Errors
    /// If nothing was measured, or a maximum was searched for: the loads of generators that search apart do not
    /// add up.
    pub fn of(
        entry: &Entry<Load>,
        collected: &Collected<Load>,
        report: Report,
    ) -> Result<Part, EvalError> {
        if entry.config.find_max.is_some() {
            return Err(EvalError::config("a search for the highest load cannot be a part"));
        }
        let measured = collected.outcomes.iter().find_map(|outcome| match &outcome.outcome {
            Kept::Answer(Ok(measurement)) => Some(measurement.clone()),
            _ => None,
        });
        let measurement = measured
            .ok_or_else(|| EvalError::NothingMeasured("no load was measured".to_owned()))?;
        Ok(Part {
            schema: SCHEMA.to_owned(),
            karat: VERSION.to_owned(),
            report,
            calls: collected.facts.calls.clone(),
            restarts: collected.facts.restarts,
            measurement,
            policy: entry.common.gate.clone(),
        })
    }
}

/// The report of all parts together.
///
/// # Errors
/// If they are not parts of one load: another version of Karat, other calls, or another plan.
pub fn merge(parts: Vec<Part>) -> Result<Report, EvalError> {
    let count = parts.len();
    let mut parts = parts.into_iter();
    let Some(first) = parts.next() else {
        return Err(EvalError::config("no part to merge"));
    };
    if first.karat != VERSION {
        return Err(EvalError::config(format!(
            "a part was made by karat {}, and this is karat {VERSION}; merge with the version that made it",
            first.karat
        )));
    }
    let Part { mut report, calls, mut restarts, measurement, .. } = first;
    let mut phase = measurement.phase;
    let mut starts = vec![report.environment.started.clone()];
    for (number, part) in parts.enumerate() {
        let differs = |what: &str| {
            EvalError::config(format!("part {} has {what} than the first", number + 2))
        };
        let plan = |report: &Report| report.system.settings.get("load").cloned();
        match () {
            () if part.karat != VERSION => return Err(differs("another version of Karat")),
            () if part.report.dataset != report.dataset || part.calls != calls => {
                return Err(differs("other calls"));
            }
            () if plan(&part.report) != plan(&report) => return Err(differs("another plan")),
            () => {}
        }
        restarts += part.restarts;
        phase.add(part.measurement.phase);
        starts.push(part.report.environment.started.clone());
        report.environment.duration_ms =
            report.environment.duration_ms.max(part.report.environment.duration_ms);
        report.warnings.extend(part.report.warnings);
    }
    let measurement = Measurement { steps: Vec::new(), phase };
    let ids = calls.iter().map(String::as_str);
    let facts = Facts { restarts, ..Facts::default() };
    score::merged(&mut report, &measurement, ids, &facts);
    report.environment.latency_bins = bins(measurement.phase.tally.all.times.each_ms());
    report.conventions.insert(
        "generators".to_owned(),
        format!("{count}, taken to have run at the same time; their histograms are added"),
    );
    starts.sort();
    starts.dedup();
    if let [first, .., last] = starts.as_slice() {
        report.warnings.push(format!(
            "the generators began between {first} and {last}: the total throughput is valid only if they \
             ran at the same time"
        ));
    }
    report.warnings.sort();
    report.warnings.dedup();
    Ok(report)
}

impl Phase {
    fn add(&mut self, other: Phase) {
        self.tally.add_all(other.tally);
        self.elapsed = self.elapsed.max(other.elapsed);
        let both = |(a, b): (Duration, Duration)| a + b;
        self.own_cpu = self.own_cpu.zip(other.own_cpu).map(both);
        self.lost = self.lost.take().or(other.lost);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tally::{Class, Tally};
    use super::*;

    /// Both parts hold what one generator would have held.
    #[test]
    fn two_tallies_add_up_to_the_one_of_all_calls() {
        let (mut whole, mut parts) = (Tally::new(2), [Tally::new(2), Tally::new(2)]);
        for number in 0..10_000_u64 {
            let took = Duration::from_nanos(900 + number * number * 53 % 90_000_000);
            let class = if number % 11 == 0 { Class::Timeout } else { Class::Ok };
            let call = usize::try_from(number % 2).unwrap();
            let since = Duration::from_millis(number);
            whole.add(call, class, took, since);
            parts[usize::from(number % 3 == 0)].add(call, class, took, since);
        }
        let [mut merged, other] = parts;
        merged.add_all(other);
        for share in [0.0, 0.5, 0.9, 0.99, 0.999, 1.0] {
            assert_eq!(merged.all.times.quantile_ms(share), whole.all.times.quantile_ms(share));
            for (ours, theirs) in merged.by_call.iter().zip(&whole.by_call) {
                assert_eq!(ours.times.quantile_ms(share), theirs.times.quantile_ms(share));
            }
        }
        assert_eq!(merged.all.classes, whole.all.classes);
        assert_eq!(merged.seconds, whole.seconds);
        assert!(merged.all.times.each_ms().eq(whole.all.times.each_ms()));
    }
}
