//! Counts the calls of a load: times, endings, and calls in each second.
//!
//! Times are in HDR histograms. They are stored as pairs of value and count, from which the same
//! histogram can be built again and to which another one can be added exactly.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use hdrhistogram::{Counter, Histogram};
use karat_mcp::{CallError, Reply};
use karat_metrics::stats;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::suite::Ending;

/// The number of seconds that are counted; later ones share the last place.
const MAX_SECONDS: usize = 100_000;
/// The number of seconds with a histogram of their own: the latest. A call is counted when it ends, so an
/// earlier second gets no more of them, and only its quantiles are kept.
const TIMED_SECONDS: usize = 8;
/// The quantiles of each second.
const OF_A_SECOND: [f64; 2] = [0.5, 0.99];

/// The ending of a call under load, with the names of suites.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Class {
    /// The expected one.
    Ok,
    ToolError,
    ProtocolError,
    /// No answer in time.
    Timeout,
    /// The server ended.
    Crash,
    /// An answer that violates the protocol.
    InvalidAnswer,
    /// The connection failed.
    Transport,
    /// A result instead of the expected error.
    NotRefused,
}

impl Class {
    /// Every ending that is an error.
    pub(super) const ERRORS: [Class; 7] = [
        Class::ToolError,
        Class::ProtocolError,
        Class::Timeout,
        Class::Crash,
        Class::InvalidAnswer,
        Class::Transport,
        Class::NotRefused,
    ];

    /// The name in reports.
    pub(super) fn name(self) -> &'static str {
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

    /// Returns whether the server answered, correctly or not.
    fn is_answer(self) -> bool {
        matches!(self, Class::Ok | Class::ToolError | Class::ProtocolError | Class::NotRefused)
    }

    /// Returns whether its time counts: the time of an answer, or of waiting for one.
    fn is_timed(self) -> bool {
        self.is_answer() || self == Class::Timeout
    }

    /// The class of an ending, given the expected one.
    pub(super) fn of(answered: &Result<Reply, CallError>, wanted: Ending) -> Class {
        match answered {
            Ok(reply) if !reply.is_error => match wanted {
                Ending::Success | Ending::Answered | Ending::Denied | Ending::Whatever => Class::Ok,
                Ending::AnyError | Ending::ToolError | Ending::ProtocolError(_) => {
                    Class::NotRefused
                }
            },
            Ok(_) => match wanted {
                Ending::AnyError | Ending::Denied | Ending::ToolError | Ending::Whatever => {
                    Class::Ok
                }
                Ending::Success | Ending::Answered | Ending::ProtocolError(_) => Class::ToolError,
            },
            Err(CallError::Protocol { code, .. }) => match wanted {
                Ending::AnyError
                | Ending::Denied
                | Ending::Whatever
                | Ending::ProtocolError(None) => Class::Ok,
                Ending::ProtocolError(Some(wanted)) if wanted == *code => Class::Ok,
                Ending::Success
                | Ending::Answered
                | Ending::ToolError
                | Ending::ProtocolError(_) => Class::ProtocolError,
            },
            Err(CallError::Timeout { .. }) => Class::Timeout,
            Err(CallError::Closed { .. }) => Class::Crash,
            Err(
                CallError::Transport { .. } | CallError::Http { .. } | CallError::Expired { .. },
            ) => Class::Transport,
            Err(CallError::Invalid { .. } | CallError::TooLarge { .. }) => Class::InvalidAnswer,
        }
    }
}

/// Times in nanoseconds with this number of significant digits; stored as pairs of value and count.
#[derive(Clone, Debug)]
pub(super) struct Times<C: Counter, const DIGITS: u8>(Histogram<C>);

impl<C: Counter, const DIGITS: u8> Default for Times<C, DIGITS> {
    fn default() -> Self {
        match Histogram::new(DIGITS) {
            Ok(times) => Times(times),
            Err(_) => unreachable!("the library allows one to five digits"),
        }
    }
}

impl<C: Counter, const DIGITS: u8> Times<C, DIGITS> {
    fn record(&mut self, time: Duration) {
        // The histogram grows as necessary; a time that does not fit is beyond all time limits.
        let _ = self.0.record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Adds the times of another one, exactly: both have the same number of digits.
    fn add_all(&mut self, other: &Times<C, DIGITS>) {
        // The histogram grows as necessary.
        let _ = self.0.add(&other.0);
    }

    /// The number of times.
    pub(super) fn len(&self) -> u64 {
        self.0.len()
    }

    /// A quantile in milliseconds, if there are times.
    pub(super) fn quantile_ms(&self, share: f64) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.value_at_quantile(share) as f64 / 1e6)
    }

    /// The interval of a quantile in milliseconds, if there are enough times for both of its ends.
    pub(super) fn quantile_interval_ms(&self, share: f64, level: f64) -> Option<(f64, f64)> {
        let n = self.0.len();
        let (low, high) = stats::quantile_ranks(n, share, level).ok()?;
        let at = |rank: u64| self.0.value_at_quantile(rank as f64 / n as f64) as f64 / 1e6;
        Some((at(low), at(high)))
    }

    /// The longest time in milliseconds, if there are times.
    pub(super) fn max_ms(&self) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.max() as f64 / 1e6)
    }

    /// Every time in milliseconds, with its count.
    pub(super) fn each_ms(&self) -> impl Iterator<Item = (f64, u64)> {
        self.pairs().map(|(nanos, count)| (nanos as f64 / 1e6, count.as_u64()))
    }

    fn pairs(&self) -> impl Iterator<Item = (u64, C)> {
        self.0.iter_recorded().map(|value| (value.value_iterated_to(), value.count_at_value()))
    }
}

impl<C: Counter + Serialize, const DIGITS: u8> Serialize for Times<C, DIGITS> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.pairs())
    }
}

impl<'de, C: Counter + Deserialize<'de>, const DIGITS: u8> Deserialize<'de> for Times<C, DIGITS> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut times = Times::default();
        for (value, count) in Vec::<(u64, C)>::deserialize(deserializer)? {
            times.0.record_n(value, count).map_err(D::Error::custom)?;
        }
        Ok(times)
    }
}

/// Calls by their endings, and their times.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct CallStats {
    pub(super) times: Times<u64, 3>,
    pub(super) classes: BTreeMap<Class, u64>,
}

impl CallStats {
    fn add(&mut self, class: Class, took: Duration) {
        *self.classes.entry(class).or_default() += 1;
        if class.is_timed() {
            self.times.record(took);
        }
    }

    fn add_all(&mut self, other: CallStats) {
        for (class, count) in other.classes {
            *self.classes.entry(class).or_default() += count;
        }
        self.times.add_all(&other.times);
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
}

/// The counts of a phase of load.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Tally {
    pub(super) all: CallStats,
    /// In the order of the mix.
    pub(super) by_call: Vec<CallStats>,
    /// The calls that ended well and those that did not, for each second from the first call.
    pub(super) seconds: Vec<(u64, u64)>,
    /// The median and the 99th percentile of the times of the calls that ended in each second, in
    /// milliseconds.
    #[serde(default)]
    by_second: Vec<Option<[f64; 2]>>,
    /// The times of the latest seconds.
    #[serde(skip)]
    timed: VecDeque<(usize, Times<u32, 2>)>,
    /// The delays between the moments at which calls were due and were sent.
    pub(super) lag: Times<u64, 3>,
    /// A description of the first call of each class of errors.
    pub(super) first: BTreeMap<Class, String>,
}

impl Tally {
    pub(super) fn new(calls: usize) -> Tally {
        Tally { by_call: vec![CallStats::default(); calls], ..Tally::default() }
    }

    /// Adds the counts of another generator. The times of single seconds cannot be added, since only their
    /// quantiles are kept.
    pub(super) fn add_all(&mut self, other: Tally) {
        self.all.add_all(other.all);
        for (ours, theirs) in self.by_call.iter_mut().zip(other.by_call) {
            ours.add_all(theirs);
        }
        if self.seconds.len() < other.seconds.len() {
            self.seconds.resize(other.seconds.len(), (0, 0));
        }
        for (ours, theirs) in self.seconds.iter_mut().zip(other.seconds) {
            *ours = (ours.0 + theirs.0, ours.1 + theirs.1);
        }
        self.by_second.clear();
        self.timed.clear();
        self.lag.add_all(&other.lag);
        for (class, text) in other.first {
            self.first.entry(class).or_insert(text);
        }
    }

    pub(super) fn add(&mut self, call: usize, class: Class, took: Duration, since_start: Duration) {
        self.all.add(class, took);
        if let Some(counted) = self.by_call.get_mut(call) {
            counted.add(class, took);
        }
        let second = usize::try_from(since_start.as_secs()).unwrap_or(MAX_SECONDS).min(MAX_SECONDS);
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
        let after = self.timed.partition_point(|(known, _)| *known <= second);
        if after > 0 && self.timed[after - 1].0 == second {
            self.timed[after - 1].1.record(took);
            return;
        }
        if second < self.by_second.len() {
            // The calls of a second that is settled came too late to change its quantiles.
            return;
        }
        let mut times = Times::default();
        times.record(took);
        self.timed.insert(after, (second, times));
        while self.timed.len() > TIMED_SECONDS {
            self.settle_first();
        }
    }

    fn settle_first(&mut self) {
        let Some((second, times)) = self.timed.pop_front() else { return };
        self.by_second.resize(second + 1, None);
        let quantile = |share| times.quantile_ms(share).unwrap_or_default();
        self.by_second[second] = Some(OF_A_SECOND.map(quantile));
    }

    /// Settles what is still counted; no call is added afterwards.
    pub(super) fn finish(&mut self) {
        while !self.timed.is_empty() {
            self.settle_first();
        }
    }

    /// The median and the 99th percentile of one second in milliseconds, if calls ended in it.
    pub(super) fn second_ms(&self, second: usize) -> Option<[f64; 2]> {
        *self.by_second.get(second)?
    }

    pub(super) fn lagged(&mut self, lag: Duration) {
        self.lag.record(lag);
    }
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
    fn an_ending_is_an_error_unless_it_is_the_expected_one() {
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
    fn a_time_out_counts_with_its_time_and_a_crash_without() {
        let mut tally = Tally::new(1);
        tally.add(0, Class::Ok, Duration::from_millis(1), Duration::ZERO);
        tally.add(0, Class::Timeout, Duration::from_millis(100), Duration::from_secs(2));
        tally.add(0, Class::Crash, Duration::from_secs(9), Duration::from_secs(2));
        assert_eq!(tally.seconds, [(1, 0), (0, 0), (0, 2)]);
        tally.finish();
        let second = |second| tally.second_ms(second).map(|[median, _]| median.round());
        assert_eq!([0, 1, 2, 3].map(second), [Some(1.0), None, Some(100.0), None]);
        let max = tally.all.times.max_ms().unwrap();
        assert!((99.0..102.0).contains(&max), "{max}");
        assert_eq!((tally.all.calls(), tally.all.answered()), (3, 1));
        assert_eq!(tally.all.error_rate(), Some(2.0 / 3.0));
        assert_eq!(Tally::new(1).all.error_rate(), None);
    }

    #[test]
    fn only_the_latest_seconds_have_histograms() {
        let mut tally = Tally::new(1);
        let second = Duration::from_secs(1);
        for number in 0..1_000 {
            // Some calls are noted after those of the next second.
            let ended = if number % 5 == 4 { number - 1 } else { number };
            tally.add(0, Class::Ok, Duration::from_millis(u64::from(number)), second * ended);
            assert!(tally.timed.len() <= TIMED_SECONDS);
        }
        tally.finish();
        let median = |second| tally.second_ms(second).map(|[median, _]| (median / 10.0).round());
        let tens = [Some(10.0), Some(10.0), None, None, None];
        assert_eq!([100, 103, 104, 999, 1_000].map(median), tens);
        assert_eq!(tally.seconds.len(), 999);
    }

    #[test]
    fn a_stored_tally_reads_back_the_same() {
        let mut tally = Tally::new(2);
        for number in 0..5_000_u64 {
            let took = Duration::from_nanos(700 + number * number * 37);
            let class = if number % 7 == 0 { Class::ToolError } else { Class::Ok };
            tally.add((number % 2) as usize, class, took, Duration::from_millis(number));
            tally.lagged(took / 3);
        }
        tally.finish();
        tally.first.insert(Class::ToolError, "sum: no".to_owned());
        let stored = serde_json::to_string(&tally).unwrap();
        let read: Tally = serde_json::from_str(&stored).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), stored);
        for share in [0.0, 0.5, 0.9, 0.99, 0.999, 1.0] {
            assert_eq!(read.all.times.quantile_ms(share), tally.all.times.quantile_ms(share));
            assert_eq!(read.lag.quantile_ms(share), tally.lag.quantile_ms(share));
        }
        assert!(read.second_ms(3).is_some() && read.second_ms(3) == tally.second_ms(3));
        assert_eq!(read.all.times.max_ms(), tally.all.times.max_ms());
        assert!(read.all.times.each_ms().eq(tally.all.times.each_ms()));
        assert_eq!((read.all.calls(), read.all.answered()), (5_000, 5_000));
    }
}
