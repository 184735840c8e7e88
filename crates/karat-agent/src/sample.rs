//! A sample of a peer: what an agent called, and what it was expected to call.

use std::borrow::Cow;

use karat_metrics::calls::Call;

/// One sample, borrowing from the line it was read from.
#[derive(Clone, Debug, Default)]
pub struct Sample<'a> {
    /// The sample's id, if it has one.
    pub id: Option<Cow<'a, str>>,
    /// The calls that were made, in order.
    pub called: Vec<Call<'a>>,
    /// The calls that were expected, in order.
    pub expected: Vec<Call<'a>>,
}

impl Sample<'_> {
    /// Empties the trace, keeping its memory for the next one.
    pub fn clear(&mut self) {
        self.id = None;
        self.called.clear();
        self.expected.clear();
    }
}
