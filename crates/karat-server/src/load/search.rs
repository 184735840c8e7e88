//! Searches for the highest load under which a condition holds: doubled until it fails, then bisected.
//!
//! Each step is a phase of its own and is in the report. A rate holds only if the server also keeps up
//! with it; otherwise a queue grows that no quantile of a short phase shows.

use std::sync::Arc;
use std::time::Duration;

use karat_core::run::Progress;
use serde::{Deserialize, Serialize};

use super::condition::Condition;
use super::driver::{self, Phase, Sessions};
use super::plan::{Plan, Shape};

/// The number of steps, and of those that bisect.
const MAX_STEPS: usize = 20;
const MAX_BISECTIONS: usize = 5;
/// The largest numbers of calls at once and in a second.
const MAX_CONCURRENCY: f64 = 10_000.0;
const MAX_RATE: f64 = 1_000_000.0;
/// The gap at which the search ends, as a share of the load that holds.
const CLOSE_ENOUGH: f64 = 0.05;
/// The share of the rate that a server must answer to keep up.
const KEEPS_UP: f64 = 0.95;

/// One step of the search.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Step {
    /// Calls in a second, or calls at once.
    pub load: f64,
    /// The calls that ended well in a second.
    pub throughput: f64,
    /// The 50th and the 99th percentile, in milliseconds.
    pub p50_p99_ms: (Option<f64>, Option<f64>),
    /// The share of errors.
    pub error_rate: Option<f64>,
    /// The reason for which the condition does not hold; none if it does.
    pub broken: Option<String>,
}

/// Searches for the highest load. The phase is that of the highest load that holds, or of the last step.
pub(super) async fn run(
    sessions: &Arc<Sessions>,
    plan: &Plan,
    condition: &Condition,
    progress: &dyn Progress,
) -> (Vec<Step>, Phase) {
    let mut steps = Vec::new();
    let mut best: Option<(f64, Phase)> = None;
    let mut broken_at: Option<f64> = None;
    let mut load = match plan.shape {
        Shape::Closed { concurrency } => concurrency as f64,
        Shape::Open { rate } => rate,
    };
    let is_whole = matches!(plan.shape, Shape::Closed { .. });
    let mut bisections = 0;
    loop {
        let phase = driver::run(sessions, shape(plan.shape, load), plan.ramp, plan.length).await;
        let step = judge(&phase, plan, load, condition);
        progress.working(&step.to_string());
        let (holds, is_lost) = (step.broken.is_none(), phase.lost.is_some());
        steps.push(step);
        if is_lost {
            return (steps, phase);
        }
        let held = best.as_ref().map(|(load, _)| *load);
        let (held, broken) = if holds { (Some(load), broken_at) } else { (held, Some(load)) };
        bisections += usize::from(broken.is_some());
        let next = next(held, broken, is_whole)
            .filter(|_| steps.len() < MAX_STEPS && bisections <= MAX_BISECTIONS);
        match (next, holds) {
            (Some(next), true) => best = Some((std::mem::replace(&mut load, next), phase)),
            (Some(next), false) => load = next,
            (None, true) => return (steps, phase),
            (None, false) => return (steps, best.map_or(phase, |(_, phase)| phase)),
        }
        broken_at = broken;
    }
}

/// The load to try next; none when the gap is small.
fn next(holds: Option<f64>, broken: Option<f64>, is_whole: bool) -> Option<f64> {
    let (low, high) = match (holds, broken) {
        (Some(holds), None) => {
            let most = if is_whole { MAX_CONCURRENCY } else { MAX_RATE };
            return Some(holds * 2.0).filter(|more| *more <= most);
        }
        (holds, Some(broken)) => (holds.unwrap_or(0.0), broken),
        (None, None) => return None,
    };
    let middle = f64::midpoint(low, high);
    let middle = if is_whole { middle.floor() } else { middle };
    let close = high - low <= low * CLOSE_ENOUGH || middle <= low || middle < 0.01;
    (!close).then_some(middle)
}

fn shape(like: Shape, load: f64) -> Shape {
    match like {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a whole number that was doubled and halved a few times"
        )]
        Shape::Closed { .. } => Shape::Closed { concurrency: (load as usize).max(1) },
        Shape::Open { .. } => Shape::Open { rate: load },
    }
}

fn judge(phase: &Phase, plan: &Plan, load: f64, condition: &Condition) -> Step {
    let all = &phase.tally.all;
    let throughput = all.ok() as f64 / phase.elapsed.as_secs_f64();
    let falls_behind = match plan.shape {
        Shape::Open { .. } => behind(all.answered() as f64, phase.elapsed, load, plan.ramp),
        Shape::Closed { .. } => None,
    };
    Step {
        load,
        throughput,
        p50_p99_ms: (all.times.quantile_ms(0.5), all.times.quantile_ms(0.99)),
        error_rate: all.error_rate(),
        broken: condition.broken(all).or(falls_behind),
    }
}

/// The reason for which the server does not keep up: calls are answered more slowly than they begin.
fn behind(answered: f64, elapsed: Duration, rate: f64, ramp: Duration) -> Option<String> {
    let due = driver::due_by(elapsed, rate, ramp);
    // A few calls at the end of a short phase are not a queue.
    let is_behind = answered < due * KEEPS_UP && due - answered > 2.0;
    let each = answered / elapsed.as_secs_f64();
    is_behind.then(|| format!("it does not keep up: {each:.1} calls/s are answered"))
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Step { load, throughput, p50_p99_ms: (p50, p99), broken, .. } = self;
        let ms =
            |value: &Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.2}"));
        let (p50, p99) = (ms(p50), ms(p99));
        let verdict = broken.as_deref().unwrap_or("holds");
        write!(f, "load {load:.1}: {throughput:.1} calls/s, p50 {p50} ms, p99 {p99} ms: {verdict}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_distinguished_from_a_ramp() {
        let (second, ramp) = (Duration::from_secs(1), Duration::from_secs(2));
        assert_eq!(behind(200.0, 2 * second, 100.0, Duration::ZERO), None);
        assert!(behind(180.0, 2 * second, 100.0, Duration::ZERO).is_some());
        // Half as many calls begin while the rate grows.
        assert_eq!(behind(100.0, 2 * second, 100.0, ramp), None);
        assert!(behind(90.0, 2 * second, 100.0, ramp).is_some());
        assert_eq!(
            behind(8.0, second / 10, 100.0, Duration::ZERO),
            None,
            "two calls are not a queue"
        );
    }

    #[test]
    fn the_search_doubles_and_then_bisects() {
        // A server that holds up to 100.
        let (mut holds, mut broken, mut load, mut tried) = (None, None, 10.0, Vec::new());
        loop {
            tried.push(load);
            if load <= 100.0 {
                holds = Some(load);
            } else {
                broken = Some(load);
            }
            match next(holds, broken, true) {
                Some(more) => load = more,
                None => break,
            }
        }
        assert_eq!(tried[..5], [10.0, 20.0, 40.0, 80.0, 160.0]);
        assert!(holds.unwrap() >= 95.0, "{tried:?}");
        // For a server that holds no load the search ends at the lowest one.
        assert_eq!(next(None, Some(1.0), true), None);
        assert_eq!(next(None, Some(8.0), true), Some(4.0));
    }
}
