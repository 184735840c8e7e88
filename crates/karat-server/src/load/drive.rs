//! Making the calls: as many as there are places (closed loop), or when they are due (open loop).
//!
//! In an open loop a call is timed from the moment at which it was due, so a server that stalls is not
//! spared the calls that it held up (no coordinated omission). The pace is kept by a thread of its own:
//! the timers of the runtime tick in milliseconds, which is longer than many answers take.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use karat_mcp::{CallError, Session};
use serde_json::{Map, Value};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::mix::Mix;
use super::own_time;
use super::tally::{Class, Tally};
use super::{Length, Shape};
use crate::system::Server;

/// Calls that may be under way at once in an open loop; beyond it, those that are due wait.
const UNDER_WAY: usize = 10_000;
/// How long the pace rests when too many calls are under way.
const REST: Duration = Duration::from_micros(200);

/// A server, with the arguments of each call as they are on it.
pub(super) struct Connection {
    pub(super) server: Server,
    pub(super) arguments: Vec<Map<String, Value>>,
    /// Held while the server is started again, so that those who wait hear if that failed.
    starting: tokio::sync::Mutex<()>,
}

impl Connection {
    pub(super) fn new(server: Server, arguments: Vec<Map<String, Value>>) -> Connection {
        Connection { server, arguments, starting: tokio::sync::Mutex::new(()) }
    }
}

/// What is loaded.
pub(super) struct Rig {
    pub(super) connections: Vec<Connection>,
    pub(super) mix: Mix,
}

/// One stretch of load.
pub(super) struct Stretch {
    pub(super) tally: Tally,
    pub(super) elapsed: Duration,
    /// Our own processor time for it, where the system tells.
    pub(super) own_cpu: Option<Duration>,
    /// Why it ended early.
    pub(super) lost: Option<String>,
}

/// Loads the server for as long as is said.
pub(super) async fn run(rig: &Arc<Rig>, shape: Shape, ramp: Duration, length: Length) -> Stretch {
    rig.mix.rewind();
    let cpu = own_time();
    let drive = Arc::new(Drive {
        rig: Arc::clone(rig),
        tally: Mutex::new(Tally::new(rig.mix.calls.len())),
        started: Instant::now(),
        length,
        begun: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        lost: Mutex::new(None),
        under_way: AtomicUsize::new(0),
        ended: Notify::new(),
    });
    match shape {
        Shape::Closed { concurrency } => closed(&drive, concurrency, ramp).await,
        Shape::Open { rate } => open(&drive, rate, ramp).await,
    }
    let elapsed = drive.started.elapsed();
    let own_cpu = own_time().zip(cpu).map(|(after, before)| after.saturating_sub(before));
    let tally = drive.tally().clone();
    let lost = drive.lost.lock().unwrap_or_else(PoisonError::into_inner).take();
    Stretch { tally, elapsed, own_cpu, lost }
}

struct Drive {
    rig: Arc<Rig>,
    tally: Mutex<Tally>,
    started: Instant,
    length: Length,
    begun: AtomicU64,
    stop: AtomicBool,
    lost: Mutex<Option<String>>,
    under_way: AtomicUsize,
    ended: Notify,
}

impl Drive {
    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a call that begins at this time still belongs to the stretch.
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

    /// Makes one call. `due` is set where it is timed from another moment than its sending. False
    /// means that the session is gone.
    async fn call(
        &self,
        connection: &Connection,
        session: &Arc<Session>,
        due: Option<Instant>,
    ) -> bool {
        let which = self.rig.mix.next();
        let (Some(call), Some(arguments)) =
            (self.rig.mix.calls.get(which), connection.arguments.get(which))
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
        let words = || {
            let words = match &answered {
                Ok(reply) => reply.texts().concat(),
                Err(error) => error.to_string(),
            };
            session.redactor().hidden(words)
        };
        self.note(which, class, took, since_start, lag, &words);
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
        words: &dyn Fn() -> String,
    ) {
        let mut tally = self.tally();
        tally.add(which, class, took + lag.unwrap_or_default(), since_start);
        if let Some(lag) = lag {
            tally.lagged(lag);
        }
        if class != Class::Ok && !tally.first.contains_key(&class) {
            let id = self.rig.mix.calls.get(which).map_or("", |call| call.id.as_str());
            tally.first.insert(class, format!("{id}: {}", words()));
        }
    }
}

/// Each place makes its next call when it has the answer to the last.
async fn closed(drive: &Arc<Drive>, concurrency: usize, ramp: Duration) {
    let mut places = JoinSet::new();
    for place in 0..concurrency {
        let drive = Arc::clone(drive);
        let begins = ramp.mul_f64(place as f64 / concurrency as f64);
        places.spawn(async move {
            if !begins.is_zero() {
                tokio::time::sleep(begins).await;
            }
            fill_place(&drive, place).await;
        });
    }
    while places.join_next().await.is_some() {}
}

async fn fill_place(drive: &Drive, place: usize) {
    let connections = &drive.rig.connections;
    let Some(connection) = connections.get(place % connections.len()) else { return };
    let Some(mut session) = drive.session(connection).await else { return };
    while drive.may_begin(Instant::now()) {
        if !drive.call(connection, &session, None).await {
            match drive.session(connection).await {
                Some(fresh) => session = fresh,
                None => return,
            }
        }
    }
}

/// Calls begin when they are due, whether or not earlier ones have been answered.
async fn open(drive: &Arc<Drive>, rate: f64, ramp: Duration) {
    let runtime = tokio::runtime::Handle::current();
    let pacer = Arc::clone(drive);
    let pace = tokio::task::spawn_blocking(move || {
        for number in 0_u64.. {
            let due = pacer.started + due(number, rate, ramp);
            if !pacer.may_begin(due) {
                break;
            }
            if let Some(early) = due.checked_duration_since(Instant::now()) {
                std::thread::sleep(early);
            }
            while pacer.under_way.load(Ordering::Relaxed) >= UNDER_WAY {
                std::thread::sleep(REST);
            }
            pacer.under_way.fetch_add(1, Ordering::Relaxed);
            let drive = Arc::clone(&pacer);
            runtime.spawn(async move {
                one_due(&drive, number, due).await;
                if drive.under_way.fetch_sub(1, Ordering::AcqRel) == 1 {
                    drive.ended.notify_one();
                }
            });
        }
    });
    let _ = pace.await;
    while drive.under_way.load(Ordering::Acquire) > 0 {
        // A call that ends between the look and the wait leaves its notice.
        drive.ended.notified().await;
    }
}

async fn one_due(drive: &Drive, number: u64, due: Instant) {
    let connections = &drive.rig.connections;
    let place = usize::try_from(number).unwrap_or_default() % connections.len();
    let Some(connection) = connections.get(place) else { return };
    let Some(session) = drive.session(connection).await else { return };
    drive.call(connection, &session, Some(due)).await;
}

/// How many calls are due by this time: what [`due`] says, the other way round.
pub(super) fn due_by(time: Duration, rate: f64, ramp: Duration) -> f64 {
    let (time, ramp) = (time.as_secs_f64(), ramp.as_secs_f64());
    if time < ramp { rate * time * time / (2.0 * ramp) } else { rate * (time - ramp / 2.0) }
}

/// When the call of this number is due: evenly spaced, after a ramp in which the rate grows evenly.
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
    fn calls_are_due_evenly_after_a_ramp() {
        let second = Duration::from_secs(1);
        assert_eq!(due(0, 10.0, Duration::ZERO), Duration::ZERO);
        assert_eq!(due(25, 10.0, Duration::ZERO), 2 * second + second / 2);
        // Two seconds of ramp to 10 a second hold 10 calls, the first half of the time a quarter.
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
