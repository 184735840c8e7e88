//! Session files of the Gemini CLI: one document with all messages, as older versions write it, or lines;
//! and the events that it prints with `--output-format stream-json`.
//!
//! The first line names the session. A message is written again, under its id, whenever something is known
//! of it that was not before: its tokens, the results of its calls. `$set` changes what the first line says,
//! or replaces all messages. The calls of a message have their results with them.

use std::collections::HashMap;
use std::path::Path;

use serde_json::{Value, json};

use super::chat::added;
use super::dialog::{Dialog, plain_text};
use super::exact::{long_text, restore};
use super::importer::{Importer, Position, file_stem};
use super::spans::time::nanoseconds;
use crate::trace::fields::{Fields, is_list, is_object, list, typed};
use crate::trace::{Invalid, Trace, Usage};

/// Reads the session of a file.
pub(super) struct GeminiCli {
    id: String,
    messages: Vec<Message>,
    /// The place of each message, by its id.
    places: HashMap<String, usize>,
}

struct Message {
    value: Value,
    /// The recorded JSON, if the value loses digits of its numbers.
    text: Option<String>,
}

impl GeminiCli {
    pub(super) fn new(path: &Path) -> Self {
        GeminiCli { id: file_stem(path), messages: Vec::new(), places: HashMap::new() }
    }

    fn message(&mut self, text: &str) -> Result<(), Invalid> {
        let message = Message { value: typed(text)?, text: long_text(text, &[]) };
        // Answers are printed word by word.
        let said = |message: &Value| {
            let is_part = message.get("delta") == Some(&Value::Bool(true));
            let said = message.get("content").filter(|_| is_part).and_then(Value::as_str);
            said.map(str::to_owned)
        };
        if let Some(last) = self.messages.last_mut()
            && let (Some(before), Some(more)) = (said(&last.value), said(&message.value))
        {
            last.value["content"] = (before + &more).into();
            return Ok(());
        }
        let id = message.value.get("id").and_then(Value::as_str).map(str::to_owned);
        let known = id.as_ref().and_then(|id| self.places.get(id).copied());
        match known.and_then(|place| self.messages.get_mut(place)) {
            Some(before) => *before = message,
            None => {
                if let Some(id) = id {
                    self.places.insert(id, self.messages.len());
                }
                self.messages.push(message);
            }
        }
        Ok(())
    }
}

impl Importer for GeminiCli {
    fn take(&mut self, text: &str, _: Position, out: &mut Vec<Trace>) -> Result<(), Invalid> {
        let line: Value = typed(text)?;
        if !line.is_object() {
            return Err(Invalid::new("should be an object"));
        }
        if let Some(id) = line.get("sessionId").and_then(Value::as_str) {
            // A file with several sessions: the one before is complete.
            if !self.messages.is_empty() {
                self.finish(out);
            }
            self.id = id.to_owned();
        }
        let mut fields = Fields::parse(text)?;
        let set = fields.raw("$set").filter(|set| is_object(set));
        let set = set.and_then(|set| Fields::parse(set).ok()?.raw("messages"));
        if let Some(all) = set.filter(|all| is_list(all)) {
            self.messages.clear();
            self.places.clear();
            list(all)?.into_iter().try_for_each(|message| self.message(message))
        } else if let Some(all) = fields.raw("messages").filter(|all| is_list(all)) {
            list(all)?.into_iter().try_for_each(|message| self.message(message))
        } else if line.get("type").is_some() {
            self.message(text)
        } else {
            Ok(())
        }
    }

    fn finish(&mut self, out: &mut Vec<Trace>) {
        let messages = std::mem::take(&mut self.messages);
        self.places.clear();
        if messages.is_empty() {
            return;
        }
        let mut trace = Trace { run: 0, ..Trace::of(self.id.clone()) };
        let mut dialog = Dialog::default();
        let (mut first, mut last) = (0, 0);
        for Message { value: message, text } in &messages {
            let known = dialog.calls.len();
            let at = message.get("timestamp").map_or(0, |time| nanoseconds(&time.to_string()));
            if at > 0 {
                first = if first == 0 { at } else { first.min(at) };
                last = last.max(at);
            }
            for one in plain(message) {
                if dialog.message(&one) {
                    trace.messages.push(one);
                }
            }
            if let Some(text) = text {
                restore(text, &mut dialog.calls[known..]);
            }
            if let Some(tokens) = message.get("tokens") {
                trace.usage = added(trace.usage, usage(tokens));
            }
            if let Some(stats) = message.get("stats") {
                trace.usage = printed_usage(stats);
            }
            if message.get("type").and_then(Value::as_str) == Some("result")
                && message.get("status").and_then(Value::as_str) == Some("error")
            {
                trace.stopped = Some("error".to_owned());
            }
            if let Some(model) = message.get("model").and_then(Value::as_str) {
                trace.model = Some(model.to_owned());
            }
        }
        dialog.into_trace(&mut trace);
        if last > first {
            trace.usage.duration_ms = Some((last - first) as f64 / 1e6);
        }
        out.push(trace);
    }
}

/// A message as others write it: what was said, then the calls, then their results.
fn plain(message: &Value) -> Vec<Value> {
    let content = message.get("content").cloned().unwrap_or_default();
    match message.get("type").and_then(Value::as_str) {
        // The first message is the program's.
        Some("user") if plain_text(&content).starts_with("<session_context>") => Vec::new(),
        Some("user") => vec![json!({"role": "user", "content": content})],
        Some("gemini") => {
            let calls = message.get("toolCalls").and_then(Value::as_array);
            let calls = calls.map(Vec::as_slice).unwrap_or_default();
            let named: Vec<Value> = calls.iter().map(named).collect();
            let mut all =
                vec![json!({"role": "assistant", "content": content, "tool_calls": named})];
            for call in calls {
                let status = call.get("status").and_then(Value::as_str).unwrap_or_default();
                let result = call.get("result").filter(|result| !result.is_null());
                let Some(result) = result.filter(|_| status != "cancelled") else { continue };
                all.push(json!({
                    "role": "tool",
                    "tool_call_id": call.get("id"),
                    "content": response(result),
                    "is_error": status == "error",
                }));
            }
            all
        }
        // The printed events.
        Some("message") => vec![json!({"role": message.get("role"), "content": content})],
        Some("tool_use") => {
            let call = json!({"id": message.get("tool_id"), "name": message.get("tool_name"), "args": message.get("parameters")});
            vec![json!({"role": "assistant", "tool_calls": [call]})]
        }
        Some("tool_result") => {
            let failed = message.get("status").and_then(Value::as_str) == Some("error");
            let said = message.get("output").filter(|said| !said.is_null());
            let said = said.or_else(|| message.pointer("/error/message"));
            vec![
                json!({"role": "tool", "tool_call_id": message.get("tool_id"), "content": said, "is_error": failed}),
            ]
        }
        // Notes of the program.
        _ => Vec::new(),
    }
}

/// A call under the tool's own name: `mcp_SERVER_TOOL` is not divided, but what is shown is.
fn named(call: &Value) -> Value {
    let shown = call.get("displayName").and_then(Value::as_str).unwrap_or_default();
    let name = call.get("name").and_then(Value::as_str).unwrap_or_default();
    let of_server = shown.strip_suffix(" MCP Server)").and_then(|shown| shown.rsplit_once(" ("));
    let mut plain = json!({"id": call.get("id"), "name": name, "args": call.get("args")});
    if let Some((tool, server)) = of_server.filter(|(tool, _)| name.ends_with(tool)) {
        plain["name"] = tool.into();
        plain["server"] = server.into();
    }
    plain
}

/// The answer of a tool, without what is put around it for the model.
fn response(result: &Value) -> Value {
    let part = result.get(0).unwrap_or(result);
    let inside = part.pointer("/functionResponse/response").unwrap_or(result);
    let stated = ["output", "error"].iter().find_map(|key| inside.get(key));
    stated.unwrap_or(inside).clone()
}

/// The tokens of all exchanges, as they are printed in the end.
fn printed_usage(stats: &Value) -> Usage {
    let count = |key: &str| stats.get(key).and_then(Value::as_u64);
    let input = count("input_tokens");
    // Thoughts are in the total alone.
    let rest = count("total_tokens").zip(input).map(|(total, input)| total.saturating_sub(input));
    Usage {
        input_tokens: input,
        output_tokens: rest.max(count("output_tokens")),
        cached_tokens: count("cached"),
        ..Usage::default()
    }
}

fn usage(tokens: &Value) -> Usage {
    let count = |key: &str| tokens.get(key).and_then(Value::as_u64);
    let thoughts = count("thoughts");
    // Thoughts are counted apart from the rest of the answer; some endpoints count them in.
    let counted_in = match (count("input"), count("output"), count("total")) {
        (Some(input), Some(output), Some(total)) => input.saturating_add(output) == total,
        _ => false,
    };
    let apart = thoughts.filter(|_| !counted_in).unwrap_or_default();
    Usage {
        input_tokens: count("input"),
        output_tokens: count("output").map(|output| output.saturating_add(apart)),
        cached_tokens: count("cached"),
        reasoning_tokens: thoughts,
        ..Usage::default()
    }
}
