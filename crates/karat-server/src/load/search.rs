//! The most load under which a condition holds: doubled until it breaks, then the gap is halved.
//!
//! Each step is a stretch of its own and stands in the report. A rate holds only if the server also
//! keeps up with it; otherwise a queue grows and no quantile of a short stretch shows it.

use std::sync::Arc;
use std::time::Duration;

use super::drive::{self, Rig, Stretch};
use super::tally::Counted;
use super::{Plan, Shape};

/// How often the load is doubled at most.
const DOUBLINGS: usize = 20;
/// The most calls at once, and in a second, that are tried.
const MOST_AT_ONCE: f64 = 10_000.0;
const MOST_IN_A_SECOND: f64 = 1_000_000.0;
/// How often the gap between what holds and what does not is halved.
const HALVINGS: usize = 5;
/// The gap at which the search ends, as a share of what holds.
const CLOSE_ENOUGH: f64 = 0.05;
/// The share of the asked rate that a server must reach to keep up.
const KEEPS_UP: f64 = 0.95;
/// The share of errors beyond which nothing holds, unless the condition is about errors.
const ERRORS: f64 = 0.01;

/// What must hold, such as `p99<200ms`.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    subject: Subject,
    limit: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Subject {
    Quantile(f64),
    Max,
    ErrorRate,
}

impl Condition {
    /// Reads `p50<20ms`, `p99.9<1s`, `max<2s`, `error_rate<0.5%`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Condition, String> {
        let wrong = || format!("{text:?}: write it as p99<200ms, max<1s or error_rate<1%");
        let (subject, limit) = text.split_once('<').ok_or_else(wrong)?;
        let limit = limit.trim_start_matches('=').trim();
        let subject = match subject.trim() {
            "max" => Subject::Max,
            "error_rate" | "errors" => Subject::ErrorRate,
            quantile => {
                let share = quantile.strip_prefix('p').and_then(|share| share.parse::<f64>().ok());
                let share = share.filter(|share| *share > 0.0 && *share < 100.0);
                Subject::Quantile(share.ok_or_else(wrong)? / 100.0)
            }
        };
        let limit = match subject {
            Subject::ErrorRate => match limit.strip_suffix('%') {
                Some(percent) => percent.trim().parse::<f64>().ok().map(|percent| percent / 100.0),
                None => limit.parse::<f64>().ok(),
            },
            _ => milliseconds(limit),
        };
        let limit = limit.filter(|limit| limit.is_finite() && *limit > 0.0).ok_or_else(wrong)?;
        Ok(Condition { subject, limit })
    }

    /// Why it does not hold, or nothing.
    fn broken(&self, found: &Counted) -> Option<String> {
        let errors = found.error_rate()?;
        let value = match self.subject {
            Subject::Quantile(share) => found.quantile_ms(share),
            Subject::Max => found.max_ms(),
            Subject::ErrorRate => Some(errors),
        };
        if self.subject != Subject::ErrorRate && errors > ERRORS {
            return Some(format!("{:.1} % errors", errors * 100.0));
        }
        match value {
            Some(value) if value < self.limit => None,
            Some(value) => Some(format!("{self} does not hold: {value:.3}")),
            None => Some("no call was answered".to_owned()),
        }
    }
}

fn milliseconds(text: &str) -> Option<f64> {
    for (unit, factor) in [("ms", 1.0), ("us", 1e-3), ("µs", 1e-3), ("s", 1e3)] {
        if let Some(number) = text.strip_suffix(unit) {
            return number.trim().parse::<f64>().ok().map(|number| number * factor);
        }
    }
    None
}

impl std::fmt::Display for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.subject {
            Subject::Quantile(share) => write!(f, "p{} < {} ms", share * 100.0, self.limit),
            Subject::Max => write!(f, "max < {} ms", self.limit),
            Subject::ErrorRate => write!(f, "error_rate < {}", self.limit),
        }
    }
}

/// One step of the search.
#[derive(Clone, Debug)]
pub struct Step {
    /// Calls in a second, or calls at once.
    pub load: f64,
    /// What it reached, in calls a second.
    pub throughput: f64,
    /// The 50th and the 99th percentile, in milliseconds.
    pub p50_p99_ms: (Option<f64>, Option<f64>),
    /// The share of errors.
    pub error_rate: Option<f64>,
    /// Why the condition does not hold here; nothing if it does.
    pub broken: Option<String>,
}

/// Looks for the most load. The stretch is that of the most load that holds, or of the last step.
pub(super) async fn run(
    rig: &Arc<Rig>,
    plan: &Plan,
    condition: &Condition,
    say: &(dyn Fn(&str) + Sync),
) -> (Vec<Step>, Stretch) {
    let mut steps = Vec::new();
    let mut best: Option<(f64, Stretch)> = None;
    let mut broken_at: Option<f64> = None;
    let mut load = match plan.shape {
        Shape::Closed { concurrency } => concurrency as f64,
        Shape::Open { rate } => rate,
    };
    let whole = matches!(plan.shape, Shape::Closed { .. });
    let mut halvings = 0;
    loop {
        let stretch = drive::run(rig, shape(plan.shape, load), plan.ramp, plan.length).await;
        let step = judge(&stretch, plan, load, condition);
        say(&words(&step));
        let (holds, lost) = (step.broken.is_none(), stretch.lost.is_some());
        steps.push(step);
        if lost {
            return (steps, stretch);
        }
        let fallback = if holds {
            best = Some((load, stretch));
            None
        } else {
            broken_at = Some(load);
            Some(stretch)
        };
        let next = next(best.as_ref().map(|(load, _)| *load), broken_at, whole);
        halvings += usize::from(broken_at.is_some());
        match next {
            Some(next) if steps.len() < DOUBLINGS && halvings <= HALVINGS => load = next,
            _ => {
                let stretch = best.map(|(_, stretch)| stretch).or(fallback);
                // There is a best step or the last one is broken.
                let stretch = match stretch {
                    Some(stretch) => stretch,
                    None => drive::run(rig, shape(plan.shape, load), plan.ramp, plan.length).await,
                };
                return (steps, stretch);
            }
        }
    }
}

/// What to try next; nothing when the gap is small.
fn next(holds: Option<f64>, broken: Option<f64>, whole: bool) -> Option<f64> {
    let (low, high) = match (holds, broken) {
        (Some(holds), None) => {
            let most = if whole { MOST_AT_ONCE } else { MOST_IN_A_SECOND };
            return Some(holds * 2.0).filter(|more| *more <= most);
        }
        (holds, Some(broken)) => (holds.unwrap_or(0.0), broken),
        (None, None) => return None,
    };
    let middle = f64::midpoint(low, high);
    let middle = if whole { middle.floor() } else { middle };
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

fn judge(stretch: &Stretch, plan: &Plan, load: f64, condition: &Condition) -> Step {
    let all = &stretch.tally.all;
    let throughput = all.ok() as f64 / stretch.elapsed.as_secs_f64();
    let falls_behind = match plan.shape {
        Shape::Open { .. } => behind(all.answered() as f64, stretch.elapsed, load, plan.ramp),
        Shape::Closed { .. } => None,
    };
    Step {
        load,
        throughput,
        p50_p99_ms: (all.quantile_ms(0.5), all.quantile_ms(0.99)),
        error_rate: all.error_rate(),
        broken: condition.broken(all).or(falls_behind),
    }
}

/// Whether calls are answered more slowly than they come, whatever the answers are.
fn behind(answered: f64, elapsed: Duration, rate: f64, ramp: Duration) -> Option<String> {
    let due = drive::due_by(elapsed, rate, ramp);
    // A few calls at the end of a short stretch are no queue.
    let behind = answered < due * KEEPS_UP && due - answered > 2.0;
    let each = answered / elapsed.as_secs_f64();
    behind.then(|| format!("it does not keep up: {each:.1} calls/s are answered"))
}

fn words(step: &Step) -> String {
    let ms = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.2}"));
    let (p50, p99) = step.p50_p99_ms;
    format!(
        "load {:.1}: {:.1} calls/s, p50 {} ms, p99 {} ms: {}",
        step.load,
        step.throughput,
        ms(p50),
        ms(p99),
        step.broken.as_deref().unwrap_or("holds")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read_with_their_units() {
        for (text, shown) in [
            ("p99<200ms", "p99 < 200 ms"),
            ("p99.9 <= 1s", "p99.9 < 1000 ms"),
            ("max<500us", "max < 0.5 ms"),
            ("error_rate<1%", "error_rate < 0.01"),
        ] {
            assert_eq!(Condition::parse(text).map(|read| read.to_string()), Ok(shown.to_owned()));
        }
        for wrong in ["p99", "p99<200", "p0<1ms", "p100<1ms", "q<1ms", "p99<-1ms", "p99<xs", ""] {
            assert!(Condition::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_queue_is_told_from_a_ramp() {
        let (second, ramp) = (Duration::from_secs(1), Duration::from_secs(2));
        assert_eq!(behind(200.0, 2 * second, 100.0, Duration::ZERO), None);
        assert!(behind(180.0, 2 * second, 100.0, Duration::ZERO).is_some());
        // Half as many come while the rate grows.
        assert_eq!(behind(100.0, 2 * second, 100.0, ramp), None);
        assert!(behind(90.0, 2 * second, 100.0, ramp).is_some());
        assert_eq!(behind(8.0, second / 10, 100.0, Duration::ZERO), None, "two calls are no queue");
    }

    #[test]
    fn the_search_doubles_and_then_halves_the_gap() {
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
        // One that holds nothing ends at the least load.
        assert_eq!(next(None, Some(1.0), true), None);
        assert_eq!(next(None, Some(8.0), true), Some(4.0));
    }
}
