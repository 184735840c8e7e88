//! Lines on their way out.
//!
//! Whoever sends puts whole lines into one buffer and goes on; one task writes the buffer out. So a
//! sender that is dropped half-way never leaves half a line, and lines that gather while the other
//! side is slow leave in one write.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;

/// Lines that wait to be written.
pub(crate) struct Outbox {
    state: Mutex<State>,
    changed: Notify,
    capacity: usize,
}

#[derive(Default)]
struct State {
    lines: Vec<u8>,
    closed: bool,
}

/// Why a line was not taken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotTaken {
    /// The other side does not read.
    Full { waiting: usize },
    /// There is no other side any more.
    Closed,
}

impl Outbox {
    /// An outbox in which at most `capacity` bytes wait before more are refused.
    pub(crate) fn new(capacity: usize) -> Arc<Outbox> {
        Arc::new(Outbox { state: Mutex::default(), changed: Notify::new(), capacity })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a line, without its end.
    pub(crate) fn push(&self, line: &[u8]) -> Result<(), NotTaken> {
        let mut state = self.state();
        if state.closed {
            return Err(NotTaken::Closed);
        }
        if state.lines.len() > self.capacity {
            return Err(NotTaken::Full { waiting: state.lines.len() });
        }
        state.lines.extend_from_slice(line);
        state.lines.push(b'\n');
        drop(state);
        self.changed.notify_one();
        Ok(())
    }

    /// Takes no more; what waits is still written, and then the other side sees the end.
    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.changed.notify_one();
    }

    /// Writes what comes until the outbox is closed and empty, or the other side is gone.
    pub(crate) async fn drain<W: AsyncWrite + Unpin>(&self, mut to: W) {
        let mut writing = Vec::new();
        loop {
            writing.clear();
            let closed = {
                let mut state = self.state();
                std::mem::swap(&mut state.lines, &mut writing);
                state.closed
            };
            if writing.is_empty() {
                if closed {
                    let _ = to.shutdown().await;
                    return;
                }
                self.changed.notified().await;
                continue;
            }
            if to.write_all(&writing).await.is_err() || to.flush().await.is_err() {
                self.state().closed = true;
                return;
            }
            // A buffer that once was large is not kept so for ever.
            if writing.capacity() > 1 << 20 {
                writing = Vec::new();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn lines_leave_whole_and_in_order() {
        let outbox = Outbox::new(1 << 10);
        let (ours, mut theirs) = tokio::io::duplex(8);
        let writer = Arc::clone(&outbox);
        let task = tokio::spawn(async move { writer.drain(ours).await });
        for line in ["one", "two", "three"] {
            outbox.push(line.as_bytes()).unwrap();
        }
        outbox.close();
        let mut seen = String::new();
        theirs.read_to_string(&mut seen).await.unwrap();
        assert_eq!(seen, "one\ntwo\nthree\n");
        task.await.unwrap();
        assert_eq!(outbox.push(b"late"), Err(NotTaken::Closed));
    }

    #[test]
    fn a_side_that_does_not_read_fills_the_outbox() {
        let outbox = Outbox::new(4);
        outbox.push(b"12345").unwrap();
        assert_eq!(outbox.push(b"6"), Err(NotTaken::Full { waiting: 6 }));
    }
}
