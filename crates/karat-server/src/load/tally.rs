//! What came of the calls: times, endings, and how many in which second.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use karat_mcp::{CallError, Reply};

use crate::suite::Ending;

/// Seconds beyond this share the last place.
const SECONDS: usize = 100_000;
/// In how many seconds times are kept one second at a time: what an hour takes fits into memory.
const TIMED: usize = 3_600;

/// How a call under load ended. The names are those of suites.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// As it should.
    Ok,
    /// With a tool error.
    ToolError,
    /// With a protocol error.
    ProtocolError,
    /// With no answer in time.
    Timeout,
    /// With the end of the server.
    Crash,
    /// With an answer that the protocol does not know.
    InvalidAnswer,
    /// With a connection that failed.
    Transport,
    /// With a result, where it should have been refused.
    NotRefused,
}

impl Class {
    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Class::Ok => "ok",
            Class::ToolError => "tool_error",
            Class::ProtocolError => "protocol_error",
            Class::Timeout => "timeout",
            Class::Crash => "crash",
            Class::InvalidAnswer => "invalid_answer",
            Class::Transport => "transport",
            Class::NotRefused => "not_refused",
        }
    }

    /// Whether the server answered, rightly or not.
    fn is_answer(self) -> bool {
        matches!(self, Class::Ok | Class::ToolError | Class::ProtocolError | Class::NotRefused)
    }

    /// Whether its time counts: that of an answer, or that of waiting for one.
    fn is_timed(self) -> bool {
        self.is_answer() || self == Class::Timeout
    }

    /// The class of an ending, given how the call should end.
    pub(super) fn of(answered: &Result<Reply, CallError>, wanted: Ending) -> Class {
        match answered {
            Ok(reply) if !reply.is_error => match wanted {
                Ending::Success | Ending::Whatever => Class::Ok,
                Ending::AnyError | Ending::ToolError | Ending::ProtocolError(_) => {
                    Class::NotRefused
                }
            },
            Ok(_) => match wanted {
                Ending::AnyError | Ending::ToolError | Ending::Whatever => Class::Ok,
                Ending::Success | Ending::ProtocolError(_) => Class::ToolError,
            },
            Err(CallError::Protocol { code, .. }) => match wanted {
                Ending::AnyError | Ending::Whatever | Ending::ProtocolError(None) => Class::Ok,
                Ending::ProtocolError(Some(wanted)) if wanted == *code => Class::Ok,
                Ending::Success | Ending::ToolError | Ending::ProtocolError(_) => {
                    Class::ProtocolError
                }
            },
            Err(CallError::Timeout { .. }) => Class::Timeout,
            Err(CallError::Closed { .. }) => Class::Crash,
            Err(CallError::Transport { .. } | CallError::Http { .. }) => Class::Transport,
            Err(CallError::Invalid { .. } | CallError::TooLarge { .. }) => Class::InvalidAnswer,
        }
    }
}

/// Calls that ended, by what came of them.
#[derive(Clone, Debug)]
pub(super) struct Counted {
    pub(super) times: Histogram<u64>,
    pub(super) classes: BTreeMap<Class, u64>,
}

impl Counted {
    fn new() -> Counted {
        let times = match Histogram::new(3) {
            Ok(times) => times,
            // Three digits are within what the library allows.
            Err(_) => unreachable!("three digits are allowed"),
        };
        Counted { times, classes: BTreeMap::new() }
    }

    fn add(&mut self, class: Class, took: Duration) {
        *self.classes.entry(class).or_default() += 1;
        if class.is_timed() {
            // It grows as it must; a time that it cannot hold is beyond every limit of ours.
            let _ = self.times.record(nanos(took));
        }
    }

    pub(super) fn calls(&self) -> u64 {
        self.classes.values().sum()
    }

    pub(super) fn ok(&self) -> u64 {
        self.classes.get(&Class::Ok).copied().unwrap_or_default()
    }

    pub(super) fn answered(&self) -> u64 {
        self.classes.iter().filter(|(class, _)| class.is_answer()).map(|(_, count)| count).sum()
    }

    pub(super) fn error_rate(&self) -> Option<f64> {
        let calls = self.calls();
        (calls > 0).then(|| (calls - self.ok()) as f64 / calls as f64)
    }

    /// A quantile in milliseconds, if there are times.
    pub(super) fn quantile_ms(&self, share: f64) -> Option<f64> {
        let any = !self.times.is_empty();
        any.then(|| self.times.value_at_quantile(share) as f64 / 1e6)
    }

    /// Every time in milliseconds, with how often it came.
    pub(super) fn each_ms(&self) -> impl Iterator<Item = (f64, u64)> {
        let recorded = self.times.iter_recorded();
        recorded.map(|value| (value.value_iterated_to() as f64 / 1e6, value.count_at_value()))
    }

    pub(super) fn max_ms(&self) -> Option<f64> {
        (!self.times.is_empty()).then(|| self.times.max() as f64 / 1e6)
    }
}

/// Everything that a stretch of load brought to light.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    pub(super) all: Counted,
    /// In the order of the mix.
    pub(super) by_call: Vec<Counted>,
    /// For each second from the first call: calls that ended well, and others.
    pub(super) seconds: Vec<(u64, u64)>,
    /// For each of the first seconds the times of the calls that ended in it, to two digits.
    pub(super) timed: Vec<Histogram<u32>>,
    /// How long after it was due a call was sent.
    pub(super) lag: Histogram<u64>,
    /// What the first call of each class of error met with.
    pub(super) first: BTreeMap<Class, String>,
}

impl Tally {
    pub(super) fn new(calls: usize) -> Tally {
        let empty = Counted::new();
        Tally {
            by_call: vec![empty.clone(); calls],
            lag: empty.times.clone(),
            all: empty,
            seconds: Vec::new(),
            timed: Vec::new(),
            first: BTreeMap::new(),
        }
    }

    pub(super) fn add(&mut self, call: usize, class: Class, took: Duration, since_start: Duration) {
        self.all.add(class, took);
        if let Some(counted) = self.by_call.get_mut(call) {
            counted.add(class, took);
        }
        let second = usize::try_from(since_start.as_secs()).unwrap_or(SECONDS).min(SECONDS);
        if self.seconds.len() <= second {
            self.seconds.resize(second + 1, (0, 0));
        }
        let (well, ill) = &mut self.seconds[second];
        *if class == Class::Ok { well } else { ill } += 1;
        if class.is_timed() {
            self.time(second, took);
        }
    }

    fn time(&mut self, second: usize, took: Duration) {
        while self.timed.len() <= second && self.timed.len() < TIMED {
            match Histogram::new(2) {
                Ok(times) => self.timed.push(times),
                Err(_) => return,
            }
        }
        if let Some(times) = self.timed.get_mut(second) {
            let _ = times.record(nanos(took));
        }
    }

    /// A quantile of the times of one second in milliseconds, if there are any.
    pub(super) fn second_ms(&self, second: usize, share: f64) -> Option<f64> {
        let times = self.timed.get(second).filter(|times| !times.is_empty())?;
        Some(times.value_at_quantile(share) as f64 / 1e6)
    }

    pub(super) fn lagged(&mut self, lag: Duration) {
        let _ = self.lag.record(nanos(lag));
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reply(is_error: bool) -> Result<Reply, CallError> {
        let raw = json!({"content": []});
        Ok(Reply { raw, is_error, latency: Duration::ZERO, progress: Vec::new() })
    }

    #[test]
    fn an_ending_is_an_error_unless_it_is_the_wanted_one() {
        let code = -32602;
        let protocol = || Err(CallError::Protocol { code, message: String::new(), data: None });
        for (answered, wanted, class) in [
            (reply(false), Ending::Success, Class::Ok),
            (reply(true), Ending::Success, Class::ToolError),
            (reply(true), Ending::ToolError, Class::Ok),
            (reply(false), Ending::AnyError, Class::NotRefused),
            (protocol(), Ending::Success, Class::ProtocolError),
            (protocol(), Ending::ProtocolError(Some(code)), Class::Ok),
            (protocol(), Ending::ProtocolError(Some(1)), Class::ProtocolError),
            (Err(CallError::Timeout { said: String::new() }), Ending::AnyError, Class::Timeout),
            (Err(CallError::Closed { why: String::new() }), Ending::Whatever, Class::Crash),
        ] {
            assert_eq!(Class::of(&answered, wanted), class, "{answered:?} {wanted:?}");
        }
    }

    #[test]
    fn a_time_out_counts_with_its_time_and_a_crash_has_none() {
        let mut tally = Tally::new(1);
        tally.add(0, Class::Ok, Duration::from_millis(1), Duration::ZERO);
        tally.add(0, Class::Timeout, Duration::from_millis(100), Duration::from_secs(2));
        tally.add(0, Class::Crash, Duration::from_secs(9), Duration::from_secs(2));
        assert_eq!(tally.seconds, [(1, 0), (0, 0), (0, 2)]);
        let second = |second| tally.second_ms(second, 0.5).map(f64::round);
        assert_eq!([0, 1, 2, 3].map(second), [Some(1.0), None, Some(100.0), None]);
        let max = tally.all.max_ms().unwrap();
        assert!((99.0..102.0).contains(&max), "{max}");
        assert_eq!((tally.all.calls(), tally.all.answered()), (3, 1));
        assert_eq!(tally.all.error_rate(), Some(2.0 / 3.0));
        assert_eq!(Tally::new(1).all.error_rate(), None);
    }
}
