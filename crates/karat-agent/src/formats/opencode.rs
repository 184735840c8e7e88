//! Sessions of opencode: what `opencode export` writes, and the events that `opencode run --format json`
//! prints. Both consist of parts, of which a call has its result and a step its tokens.

use serde_json::{Value, json};

use super::chat::added;
use super::dialog::{arguments_of, error_of, plain_text, result_value};
use super::sessions::Session;
use crate::trace::{Arguments, CallMade, Usage};

/// A whole session, or an event.
pub(super) fn opencode(line: &Value, session: &mut Session) {
    if let Some(messages) = line.get("messages").and_then(Value::as_array) {
        for message in messages {
            let info = message.get("info").unwrap_or(&Value::Null);
            let role = info.get("role").and_then(Value::as_str).unwrap_or("assistant");
            if let Some(model) = info.get("modelID").and_then(Value::as_str) {
                session.trace.model = Some(model.to_owned());
            }
            for time in ["/time/created", "/time/completed"] {
                session.time_at(info.pointer(time));
            }
            let parts = message.get("parts").and_then(Value::as_array);
            parts.into_iter().flatten().for_each(|one| part(one, role, session));
            if info.get("error").is_some_and(|error| !error.is_null()) {
                session.trace.stopped = Some("error".to_owned());
            }
        }
    } else if let Some(one) = line.get("part") {
        part(one, "assistant", session);
    } else if line.get("type").and_then(Value::as_str) == Some("error") {
        session.trace.stopped = Some("error".to_owned());
    }
}

fn part(part: &Value, role: &str, session: &mut Session) {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    match text(part, "type").unwrap_or_default().as_str() {
        // Notes of the program are not the user's words.
        "text" if part.get("synthetic") != Some(&Value::Bool(true)) => {
            session.message(&json!({"role": role, "content": part.get("text")}));
        }
        "tool" => {
            let state = part.get("state").unwrap_or(&Value::Null);
            let mut call = CallMade::named(&text(part, "tool").unwrap_or_default());
            call.arguments = state.get("input").map_or(Arguments::NotRecorded, arguments_of);
            match text(state, "status").as_deref() {
                Some("error") => {
                    let said = state.get("error").map(plain_text).unwrap_or_default();
                    call.result = Some(Value::String(said.clone()));
                    call.error = Some(error_of(said));
                }
                Some("completed") => {
                    call.result = Some(state.get("output").map(result_value).unwrap_or_default());
                }
                _ => {}
            }
            session.dialog.output = None;
            session.dialog.call(text(part, "callID"), call);
        }
        "step-finish" => {
            let count = |path: &str| part.pointer(path).and_then(Value::as_u64);
            let (reasoning, cached) = (count("/tokens/reasoning"), count("/tokens/cache/read"));
            // All kinds are counted apart.
            let sum = |all: [Option<u64>; 3]| {
                let known = all[0].is_some();
                known.then(|| all.into_iter().flatten().fold(0, u64::saturating_add))
            };
            let written = count("/tokens/cache/write");
            let usage = Usage {
                input_tokens: sum([count("/tokens/input"), cached, written]),
                output_tokens: sum([count("/tokens/output"), reasoning, None]),
                cached_tokens: cached,
                reasoning_tokens: reasoning,
                cost: part.get("cost").and_then(Value::as_f64).filter(|cost| *cost > 0.0),
                ..Usage::default()
            };
            session.trace.usage = added(session.trace.usage, usage);
        }
        _ => {}
    }
}
