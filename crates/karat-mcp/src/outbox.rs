//! Lines to be written.
//!
//! Senders append whole lines to one buffer, and one task writes the buffer. A sender that is dropped
//! midway never leaves half a line, and lines that gather while the other side is slow are written at
//! once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;

/// Lines to be written.
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

/// A line that was not accepted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PushError {
    /// The other side does not read.
    Full { waiting: usize },
    /// The other side is gone.
    Closed,
}

impl Outbox {
    /// An outbox that refuses lines while more than `capacity` bytes wait.
    pub(crate) fn new(capacity: usize) -> Arc<Outbox> {
        Arc::new(Outbox { state: Mutex::default(), changed: Notify::new(), capacity })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a line, given without its end.
    pub(crate) fn push(&self, line: &[u8]) -> Result<(), PushError> {
        let mut state = self.state();
        if state.closed {
            return Err(PushError::Closed);
        }
        if state.lines.len() > self.capacity {
            return Err(PushError::Full { waiting: state.lines.len() });
        }
        state.lines.extend_from_slice(line);
        state.lines.push(b'\n');
        drop(state);
        self.changed.notify_one();
        Ok(())
    }

    /// Refuses further lines. Waiting lines are still written, then the stream is closed.
    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.changed.notify_one();
    }

    /// Writes lines until the outbox is closed and empty, or the other side is gone.
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
            // Releases the memory of a buffer that was large once.
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
    async fn lines_are_written_whole_and_in_order() {
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
        assert_eq!(outbox.push(b"late"), Err(PushError::Closed));
    }

    #[test]
    fn a_side_that_does_not_read_fills_the_outbox() {
        let outbox = Outbox::new(4);
        outbox.push(b"12345").unwrap();
        assert_eq!(outbox.push(b"6"), Err(PushError::Full { waiting: 6 }));
    }
}
