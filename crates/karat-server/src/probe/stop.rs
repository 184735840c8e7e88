//! Ends a run early, with the results so far: when the user interrupts it, or its time is up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// A request to stop. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct StopRequest(Arc<(AtomicBool, Notify)>);

impl StopRequest {
    /// Makes the request.
    pub fn stop(&self) {
        self.0.0.store(true, Ordering::Relaxed);
        self.0.1.notify_waiters();
    }

    /// True if it was made.
    pub fn is_made(&self) -> bool {
        self.0.0.load(Ordering::Relaxed)
    }

    /// Waits for it.
    pub(crate) async fn made(&self) {
        let notified = self.0.1.notified();
        if !self.is_made() {
            notified.await;
        }
    }
}

/// The time that is left for a run, or for a part of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    /// This much time from now; without end if there is no limit.
    pub(crate) fn after(limit: Option<Duration>) -> Deadline {
        Deadline(limit.and_then(|limit| Instant::now().checked_add(limit)))
    }

    /// The remaining time, if there is a limit.
    pub(crate) fn left(self) -> Option<Duration> {
        self.0.map(|ends| ends.saturating_duration_since(Instant::now()))
    }

    /// True if the time is up.
    pub(crate) fn is_over(self) -> bool {
        self.0.is_some_and(|ends| Instant::now() >= ends)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_request_before_the_wait_counts_too() {
        let stop = StopRequest::default();
        stop.clone().stop();
        stop.made().await;
        assert!(stop.is_made());
    }

    #[test]
    fn without_a_limit_the_time_is_never_up() {
        let (now, never) = (Deadline::after(Some(Duration::ZERO)), Deadline::after(None));
        assert!(now.is_over() && !never.is_over());
    }
}
