//! Texts and calls as reports show them: clipped.

use karat_core::observed::ShownCall;
use karat_io::text::clip;
use karat_metrics::calls::{Equality, json};
use serde_json::Value;

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
            let value = call.arguments.value().unwrap_or_default();
            let is_whole = keeps_digits(text, &value);
            shown.arguments = Some(if is_whole { value } else { text.clone().into() });
        }
        Arguments::Object(text) => shown.arguments = Some(clipped(text).into()),
    }
    if call.outcome() == CallOutcome::Failed {
        let message = call.error.as_ref().map_or("the result is an error", |error| &error.message);
        shown.error = Some(clipped(message));
    }
    shown
}

/// Returns whether a value has every digit of the text that it was read from.
fn keeps_digits(text: &str, value: &Value) -> bool {
    let value = value.to_string();
    match (json::parse(text), json::parse(&value)) {
        (Ok(text), Ok(value)) => Equality::Json.values(&text, &value),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_numbers_are_shown_with_every_digit() {
        for (text, expected) in [
            (r#"{"x": 18446744073709551615}"#, json!({"x": u64::MAX})),
            (r#"{"x": 0.12345678901234567}"#, json!({"x": 0.123_456_789_012_345_67})),
            (r#"{"x": 123456789012345678901}"#, json!(r#"{"x": 123456789012345678901}"#)),
        ] {
            let call = CallMade { arguments: Arguments::from_raw(text), ..CallMade::default() };
            assert_eq!(shown(&call).arguments, Some(expected));
        }
    }
}
