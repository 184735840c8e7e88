//! A recorded trace: what an agent called, and what it was expected to call.

use std::borrow::Cow;

use karat_metrics::calls::Call;

/// One sample, borrowing from the line it was read from.
#[derive(Clone, Debug, Default)]
pub struct Trace<'a> {
    /// The sample's id, if it has one.
    pub id: Option<Cow<'a, str>>,
    /// The calls that were made, in order.
    pub called: Vec<Call<'a>>,
    /// The calls that were expected, in order.
    pub expected: Vec<Call<'a>>,
}

impl Trace<'_> {
    /// Empties the trace, keeping its memory for the next one.
    pub fn clear(&mut self) {
        self.id = None;
        self.called.clear();
        self.expected.clear();
    }
}
