//! Texts and calls as reports show them: clipped.

use karat_core::observed::ShownCall;
use karat_io::text::clip;
use karat_metrics::calls::json;

use crate::trace::{Arguments, CallMade, CallOutcome, Trace};

/// The number of characters of a text.
const MAX_TEXT: usize = 400;
/// The number of calls of a trace.
pub(crate) const MAX_CALLS: usize = 40;

/// A text, clipped.
pub(crate) fn clipped(text: &str) -> String {
    clip(text, MAX_TEXT).into_owned()
}

/// The first calls of a trace.
pub(crate) fn shown_calls(trace: &Trace) -> Vec<ShownCall> {
    trace.calls.iter().take(MAX_CALLS).map(shown).collect()
}

fn shown(call: &CallMade) -> ShownCall {
    let mut shown = ShownCall { name: call.shown(), ..ShownCall::default() };
    match &call.arguments {
        Arguments::NotRecorded => {}
        Arguments::Text(text) => shown.not_json = Some(clipped(text)),
        Arguments::Object(text) if text.len() <= MAX_TEXT && json::parse(text).is_ok() => {
            shown.arguments = Some(call.arguments.value().unwrap_or_default());
        }
        Arguments::Object(text) => shown.arguments = Some(clipped(text).into()),
    }
    if call.outcome() == CallOutcome::Failed {
        let message = call.error.as_ref().map_or("the result is an error", |error| &error.message);
        shown.error = Some(clipped(message));
    }
    shown
}
