//! Limits on the size of input.

/// Limits on input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a whole file, after decompression.
    pub bytes: u64,
    /// Bytes of one line, where files are read by lines.
    pub line_bytes: usize,
    /// Nested lists and objects. Never more than 256, because of the stack; TOML stops at 80 within one
    /// value.
    pub depth: usize,
}

impl Limits {
    const MAX_DEPTH: usize = 256;

    /// The default limits without one for the whole file, for files that are read line by line.
    #[must_use]
    pub fn streaming() -> Self {
        Self { bytes: u64::MAX, ..Self::default() }
    }

    pub(super) fn depth(&self) -> usize {
        self.depth.min(Self::MAX_DEPTH)
    }
}

impl Default for Limits {
    /// 256 MiB for a document, 16 MiB for a line, 128 levels.
    fn default() -> Self {
        Self { bytes: 256 << 20, line_bytes: 16 << 20, depth: 128 }
    }
}
