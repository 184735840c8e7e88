//! Makes the calls: a fixed number at once (closed loop), or each when it is due (open loop).
//!
//! In an open loop a call is timed from the moment at which it was due, so that a server that stalls is
//! charged for the calls that it delayed (no coordinated omission). A thread of its own keeps the pace:
//! the timers of the runtime tick in milliseconds, which is longer than many answers take.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use karat_mcp::{CallError, Session};
use serde_json::{Map, Value};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use serde::{Deserialize, Serialize};

use super::mix::Mix;
use super::plan::{Length, Shape};
use super::tally::{Class, Tally};
use crate::system::Server;

/// The calls that may be under way at once in an open loop; more calls wait.
const MAX_UNDER_WAY: usize = 10_000;
/// The pause of the pacing thread when too many calls are under way.
const PAUSE: Duration = Duration::from_micros(200);

/// A session with a server, and the arguments of each call on it.
pub(super) struct Connection {
    pub(super) server: Server,
    pub(super) arguments: Vec<Map<String, Value>>,
    /// Held while the server is restarted, so that waiting calls learn if that failed.
    starting: tokio::sync::Mutex<()>,
}

impl Connection {
    pub(super) fn new(server: Server, arguments: Vec<Map<String, Value>>) -> Connection {
        Connection { server, arguments, starting: tokio::sync::Mutex::new(()) }
    }
}

/// The sessions that are loaded, and the calls.
pub(super) struct Sessions {
    pub(super) connections: Vec<Connection>,
    pub(super) mix: Mix,
}

/// One phase of load.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Phase {
    pub(super) tally: Tally,
    pub(super) elapsed: Duration,
    /// The processor time of this process, if the system provides it.
    pub(super) own_cpu: Option<Duration>,
    /// The reason for which it ended early.
    pub(super) lost: Option<String>,
}

/// Loads the server.
pub(super) async fn run(
    sessions: &Arc<Sessions>,
    shape: Shape,
    ramp: Duration,
    length: Length,
) -> Phase {
    sessions.mix.rewind();
    let cpu = karat_io::platform::cpu_time();
    let driver = Arc::new(Driver {
        sessions: Arc::clone(sessions),
        tally: Mutex::new(Tally::new(sessions.mix.calls.len())),
        started: Instant::now(),
        length,
        begun: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        lost: Mutex::new(None),
        under_way: AtomicUsize::new(0),
        ended: Notify::new(),
    });
    match shape {
        Shape::Closed { concurrency } => closed(&driver, concurrency, ramp).await,
        Shape::Open { rate } => open(&driver, rate, ramp).await,
    }
    let elapsed = driver.started.elapsed();
    let own_cpu =
        karat_io::platform::cpu_time().zip(cpu).map(|(after, before)| after.saturating_sub(before));
    let mut tally = driver.tally().clone();
    tally.finish();
    let lost = driver.lost.lock().unwrap_or_else(PoisonError::into_inner).take();
    Phase { tally, elapsed, own_cpu, lost }
}

struct Driver {
    sessions: Arc<Sessions>,
    tally: Mutex<Tally>,
    started: Instant,
    length: Length,
    begun: AtomicU64,
    stop: AtomicBool,
    lost: Mutex<Option<String>>,
    under_way: AtomicUsize,
    ended: Notify,
}

impl Driver {
    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a call that begins at this time belongs to the phase.
    fn may_begin(&self, at: Instant) -> bool {
        if self.stop.load(Ordering::Relaxed) {
            return false;
        }
        match self.length {
            Length::Calls(count) => self.begun.fetch_add(1, Ordering::Relaxed) < count,
            Length::Time(time) => at.saturating_duration_since(self.started) < time,
        }
    }

    fn lose(&self, why: &str) {
        self.stop.store(true, Ordering::Relaxed);
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        lost.get_or_insert_with(|| why.to_owned());
    }

    async fn session(&self, connection: &Connection) -> Option<Arc<Session>> {
        let _turn = connection.starting.lock().await;
        if self.stop.load(Ordering::Relaxed) {
            return None;
        }
        match connection.server.session().await {
            Ok(session) => Some(session),
            Err(error) => {
                self.lose(&error.to_string());
                None
            }
        }
    }

    /// Makes one call; `due` is the moment it is timed from if that is not its sending. Returns whether
    /// the session is still usable.
    async fn call(
        &self,
        connection: &Connection,
        session: &Arc<Session>,
        due: Option<Instant>,
    ) -> bool {
        let which = self.sessions.mix.next();
        let (Some(call), Some(arguments)) =
            (self.sessions.mix.calls.get(which), connection.arguments.get(which))
        else {
            return true;
        };
        let begun = Instant::now();
        let answered = session.call(&call.tool, arguments).await;
        let class = Class::of(&answered, call.ending);
        let took = match &answered {
            Ok(reply) => reply.latency,
            Err(_) => begun.elapsed(),
        };
        let lag = due.map(|due| begun.saturating_duration_since(due));
        let since_start = begun.saturating_duration_since(self.started) + took;
        let describe = || {
            let text = match &answered {
                Ok(reply) => reply.texts().concat(),
                Err(error) => error.to_string(),
            };
            session.redactor().hidden(format!("{}: {text}", call.id))
        };
        self.note(which, class, took, since_start, lag, &describe);
        let lost = answered.as_ref().is_err_and(CallError::is_lost);
        if lost {
            connection.server.lose(session).await;
        }
        !lost
    }

    fn note(
        &self,
        which: usize,
        class: Class,
        took: Duration,
        since_start: Duration,
        lag: Option<Duration>,
        describe: &dyn Fn() -> String,
    ) {
        let mut tally = self.tally();
        tally.add(which, class, took + lag.unwrap_or_default(), since_start);
        if let Some(lag) = lag {
            tally.lagged(lag);
        }
        if class != Class::Ok && !tally.first.contains_key(&class) {
            tally.first.insert(class, describe());
        }
    }
}

/// Each worker makes its next call when it has the answer to the last one.
async fn closed(driver: &Arc<Driver>, concurrency: usize, ramp: Duration) {
    let mut workers = JoinSet::new();
    for number in 0..concurrency {
        let driver = Arc::clone(driver);
        let begins = ramp.mul_f64(number as f64 / concurrency as f64);
        workers.spawn(async move {
            if !begins.is_zero() {
                tokio::time::sleep(begins).await;
            }
            work(&driver, number).await;
        });
    }
    while workers.join_next().await.is_some() {}
}

async fn work(driver: &Driver, number: usize) {
    let connections = &driver.sessions.connections;
    let Some(connection) = connections.get(number % connections.len()) else { return };
    let Some(mut session) = driver.session(connection).await else { return };
    while driver.may_begin(Instant::now()) {
        if !driver.call(connection, &session, None).await {
            match driver.session(connection).await {
                Some(fresh) => session = fresh,
                None => return,
            }
        }
    }
}

/// Calls begin when they are due, whether or not earlier ones were answered.
async fn open(driver: &Arc<Driver>, rate: f64, ramp: Duration) {
    let runtime = tokio::runtime::Handle::current();
    let pacer = Arc::clone(driver);
    let pace = tokio::task::spawn_blocking(move || {
        for number in 0_u64.. {
            let due = pacer.started + due(number, rate, ramp);
            if !pacer.may_begin(due) {
                break;
            }
            if let Some(early) = due.checked_duration_since(Instant::now()) {
                std::thread::sleep(early);
            }
            while pacer.under_way.load(Ordering::Relaxed) >= MAX_UNDER_WAY {
                std::thread::sleep(PAUSE);
            }
            pacer.under_way.fetch_add(1, Ordering::Relaxed);
            let driver = Arc::clone(&pacer);
            runtime.spawn(async move {
                call_due(&driver, number, due).await;
                if driver.under_way.fetch_sub(1, Ordering::AcqRel) == 1 {
                    driver.ended.notify_one();
                }
            });
        }
    });
    let _ = pace.await;
    while driver.under_way.load(Ordering::Acquire) > 0 {
        // The notice of a call that ends between the check and the wait is kept.
        driver.ended.notified().await;
    }
}

async fn call_due(driver: &Driver, number: u64, due: Instant) {
    let connections = &driver.sessions.connections;
    let place = usize::try_from(number).unwrap_or_default() % connections.len();
    let Some(connection) = connections.get(place) else { return };
    let Some(session) = driver.session(connection).await else { return };
    driver.call(connection, &session, Some(due)).await;
}

/// The number of calls that are due by this time: the inverse of [`due`].
pub(super) fn due_by(time: Duration, rate: f64, ramp: Duration) -> f64 {
    let (time, ramp) = (time.as_secs_f64(), ramp.as_secs_f64());
    if time < ramp { rate * time * time / (2.0 * ramp) } else { rate * (time - ramp / 2.0) }
}

/// The time at which a call is due: evenly spaced, after a ramp in which the rate grows evenly.
fn due(number: u64, rate: f64, ramp: Duration) -> Duration {
    let (number, ramp) = (number as f64, ramp.as_secs_f64());
    let in_ramp = rate * ramp / 2.0;
    let seconds = if number < in_ramp {
        (2.0 * ramp * number / rate).sqrt()
    } else {
        ramp + (number - in_ramp) / rate
    };
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(karat_portable, ignore = "the time is not known")]
    fn work_is_counted_as_processor_time() {
        let before = karat_io::platform::cpu_time().unwrap();
        // Some systems count in ticks, and a process can be lucky for a few of them.
        let has_counted = (0..100).any(|_| {
            let mut sum = 0_u64;
            for number in 0..20_000_000_u64 {
                sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(number));
            }
            let spent = karat_io::platform::cpu_time().unwrap().saturating_sub(before);
            spent > Duration::from_millis(5)
        });
        assert!(has_counted);
    }

    #[test]
    fn calls_are_evenly_spaced_after_a_ramp() {
        let second = Duration::from_secs(1);
        assert_eq!(due(0, 10.0, Duration::ZERO), Duration::ZERO);
        assert_eq!(due(25, 10.0, Duration::ZERO), 2 * second + second / 2);
        // Two seconds of ramp to 10 a second have 10 calls, the first of them a quarter.
        let ramp = 2 * second;
        assert_eq!(due(10, 10.0, ramp), ramp);
        assert_eq!(due(20, 10.0, ramp), ramp + second);
        let early = (0..10).filter(|number| due(*number, 10.0, ramp) < second).count();
        assert_eq!(early, 3);
        for number in [1, 5, 10, 17] {
            let back = due_by(due(number, 10.0, ramp), 10.0, ramp);
            assert!((back - number as f64).abs() < 1e-6, "{number}: {back}");
        }
        assert_eq!(due_by(second, 10.0, Duration::ZERO), 10.0);
    }
}
