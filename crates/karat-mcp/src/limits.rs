//! How much of a server's output is taken in.

/// Bounds on what a server may send. Beyond them a call fails with its class; nothing grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one message, however it travels.
    pub message_bytes: usize,
    /// Bytes of a line that is larger than a message: it is passed over, and the session goes on behind
    /// it. Beyond this the server is given up.
    pub line_bytes: usize,
    /// Nested lists and objects in one message; at most 120 whatever is set.
    pub depth: usize,
    /// Pages of one listing.
    pub pages: usize,
    /// Entries of one listing, over all its pages.
    pub entries: usize,
    /// Bytes that are no messages, from one answer to the next, before the session is given up.
    pub noise_bytes: usize,
}

impl Limits {
    /// What the JSON reader bears by itself, with some room.
    const DEEPEST: usize = 120;

    pub(crate) fn depth(&self) -> usize {
        self.depth.min(Self::DEEPEST)
    }
}

impl Default for Limits {
    /// 16 MiB and 64 levels for a message, 2 GiB for a line, 1,000 pages and 100,000 entries for a listing,
    /// 16 MiB of noise.
    fn default() -> Self {
        Limits {
            message_bytes: 16 << 20,
            line_bytes: 2 << 30,
            depth: 64,
            pages: 1_000,
            entries: 100_000,
            noise_bytes: 16 << 20,
        }
    }
}
