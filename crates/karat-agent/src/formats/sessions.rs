//! Session files of coding agents, Claude Code and Codex, and what both print as JSON lines when they are
//! run by scripts. One line is one message or event; a file is one session, and sessions that share a file
//! differ by their id. `opencode` reads the files of opencode in the same way.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::chat::{added, usage_of};
use super::dialog::{Dialog, arguments_of, error_of, plain_text};
use super::exact::restore;
use super::importer::{Importer, Position, file_stem};
use super::spans::time::nanoseconds;
use crate::trace::fields::typed;
use crate::trace::{Arguments, CallMade, Invalid, Trace, Usage};

/// The number of sessions in one file.
const MAX_SESSIONS: usize = 100_000;

#[derive(Default)]
pub(super) struct Session {
    pub(super) trace: Trace,
    pub(super) dialog: Dialog,
    /// The tokens of each message by its id. A message has a line for each of its blocks, all with the tokens of
    /// the message so far: the last one counts.
    usages: BTreeMap<String, Usage>,
    first: u128,
    last: u128,
}

impl Session {
    /// Takes note of a time, for the duration of the session.
    pub(super) fn time_at(&mut self, time: Option<&Value>) {
        let at = time.map_or(0, |time| nanoseconds(&time.to_string()));
        if at > 0 {
            self.first = if self.first == 0 { at } else { self.first.min(at) };
            self.last = self.last.max(at);
        }
    }

    pub(super) fn message(&mut self, message: &Value) {
        if self.dialog.message(message) {
            self.trace.messages.push(message.clone());
        }
    }

    fn close(mut self) -> Trace {
        self.dialog.into_trace(&mut self.trace);
        self.trace.usage = self.usages.into_values().fold(self.trace.usage, added);
        if self.trace.usage.duration_ms.is_none() && self.last > self.first {
            self.trace.usage.duration_ms = Some((self.last - self.first) as f64 / 1e6);
        }
        self.trace
    }
}

/// Reads the sessions of a file.
pub(super) struct Sessions {
    read: fn(&Value, &mut Session),
    /// The name of a session without an id.
    name: String,
    open: BTreeMap<String, Session>,
}

impl Sessions {
    pub(super) fn claude_code(path: &Path) -> Self {
        Sessions::read_by(claude_code, path)
    }

    /// Sessions whose lines are read by this function.
    pub(super) fn read_by(read: fn(&Value, &mut Session), path: &Path) -> Self {
        Sessions { read, name: file_stem(path), open: BTreeMap::new() }
    }

    pub(super) fn codex(path: &Path) -> Self {
        Sessions::read_by(codex, path)
    }
}

impl Importer for Sessions {
    fn take(&mut self, text: &str, _: Position, _: &mut Vec<Trace>) -> Result<(), Invalid> {
        let line: Value = typed(text)?;
        if !line.is_object() {
            return Err(Invalid::new("should be an object"));
        }
        // Lines without the id of a session are of the file's own.
        let stated = ["/sessionId", "/session_id", "/sessionID", "/info/id"];
        let stated = stated.iter().find_map(|place| line.pointer(place)?.as_str());
        let id = stated.unwrap_or(&self.name).to_owned();
        if !self.open.contains_key(&id) && self.open.len() == MAX_SESSIONS {
            return Err(Invalid::new("has too many sessions"));
        }
        let session = self.open.entry(id.clone()).or_insert_with(|| Session {
            trace: Trace { run: 0, ..Trace::of(id) },
            ..Session::default()
        });
        session.time_at(line.get("timestamp"));
        let known = session.dialog.calls.len();
        (self.read)(&line, session);
        restore(text, session.dialog.calls.get_mut(known..).unwrap_or_default());
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<Trace>) {
        let mut all: Vec<Session> = std::mem::take(&mut self.open).into_values().collect();
        // A result alone does not say which calls were made.
        all.retain(|one| !one.trace.messages.is_empty() || !one.dialog.calls.is_empty());
        all.sort_by_key(|session| session.first);
        // What is printed has no prompt and a new id each time: the file name identifies the task.
        if let [one] = &mut all[..]
            && one.dialog.input.is_none()
        {
            one.trace.id.clone_from(&self.name);
        }
        out.extend(all.into_iter().map(Session::close));
    }
}

fn text<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key)?.as_str()
}

fn flag(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool).unwrap_or(false)
}

/// A line of Claude Code: a message of the user or the assistant, or something else.
fn claude_code(line: &Value, session: &mut Session) {
    if text(line, "type") == Some("result") {
        return claude_code_result(line, session);
    }
    // Qwen Code writes the same lines with Gemini's messages in them: the results of tools are lines of
    // their own, and tokens are next to the message.
    let (Some("user" | "assistant" | "tool_result"), Some(message)) =
        (text(line, "type"), line.get("message"))
    else {
        return;
    };
    // Sub-agents have separate conversations; notes of the program are not the user's.
    let of_sub_agent = line.get("parent_tool_use_id").is_some_and(Value::is_string);
    let apart = ["isSidechain", "isMeta", "isCompactSummary"].iter().any(|key| flag(line, key));
    if apart || of_sub_agent {
        return;
    }
    if let Some(usage) = message.get("usage").or_else(|| line.get("usageMetadata")) {
        let id = text(message, "id").or_else(|| text(line, "uuid")).unwrap_or_default().to_owned();
        match id.is_empty() {
            true => session.trace.usage = added(session.trace.usage, usage_of(usage)),
            false => _ = session.usages.insert(id, usage_of(usage)),
        }
    }
    let model = text(message, "model").or_else(|| text(line, "model"));
    if let Some(model) = model.filter(|model| *model != "<synthetic>") {
        session.trace.model = Some(model.to_owned());
    }
    session.message(message);
}

/// The last line that Claude Code prints: the answer, and what the session has used in all.
fn claude_code_result(line: &Value, session: &mut Session) {
    if let Some(answer) = text(line, "result") {
        session.dialog.output = Some(answer.to_owned());
    }
    let counted = std::mem::take(&mut session.usages);
    session.trace.usage = match line.get("usage") {
        Some(usage) => usage_of(usage),
        None => counted.into_values().fold(session.trace.usage, added),
    };
    session.trace.usage.cost = line.get("total_cost_usd").and_then(Value::as_f64);
    session.trace.usage.duration_ms = line.get("duration_ms").and_then(Value::as_f64);
    if flag(line, "is_error") {
        session.trace.stopped = Some(text(line, "subtype").unwrap_or("error").to_owned());
    }
}

/// An event that Codex prints.
fn codex_event(kind: &str, line: &Value, session: &mut Session) {
    match kind {
        "thread.started" => {
            if let Some(id) = text(line, "thread_id") {
                session.trace.id = id.to_owned();
            }
        }
        "turn.completed" => {
            if let Some(usage) = line.get("usage") {
                let cached = usage.get("cached_input_tokens").and_then(Value::as_u64);
                let usage = Usage { cached_tokens: cached, ..usage_of(usage) };
                session.trace.usage = added(session.trace.usage, usage);
            }
        }
        "turn.failed" => session.trace.stopped = Some("error".to_owned()),
        "item.completed" => {
            if let Some(item) = line.get("item") {
                codex_item(item, session);
            }
        }
        _ => {}
    }
}

fn codex_item(item: &Value, session: &mut Session) {
    let given = |key: &str| item.get(key).filter(|value| !value.is_null()).cloned();
    let kind = ["type", "item_type"].iter().find_map(|key| text(item, key)).unwrap_or_default();
    let failed = text(item, "status") == Some("failed");
    let mut call = match kind {
        "agent_message" | "assistant_message" => {
            let said = text(item, "text").unwrap_or_default();
            return session.message(&json!({"role": "assistant", "content": said}));
        }
        "command_execution" => {
            let mut call = CallMade::named("shell");
            call.arguments = arguments_of(&json!({"command": given("command")}));
            call.result = given("aggregated_output");
            call
        }
        "mcp_tool_call" => {
            let mut call = CallMade::named(text(item, "tool").unwrap_or_default());
            call.server = text(item, "server").map(str::to_owned);
            call.arguments =
                given("arguments").map_or(Arguments::NotRecorded, |v| arguments_of(&v));
            call.result = given("result");
            call
        }
        "web_search" => {
            let mut call = CallMade::named("web_search");
            call.arguments = arguments_of(&json!({"query": given("query")}));
            call.result = Some(Value::Null);
            call
        }
        "file_change" => {
            let mut call = CallMade::named("apply_patch");
            call.arguments = arguments_of(&json!({"changes": given("changes")}));
            call.result = Some(Value::Null);
            call
        }
        _ => return,
    };
    if failed {
        let said = given("error").or(call.result.clone()).unwrap_or_default();
        call.error = Some(error_of(plain_text(said.get("message").unwrap_or(&said))));
    }
    session.dialog.output = None;
    session.dialog.call(text(item, "id").map(str::to_owned), call);
}

/// A call that failed. The item with its output, which comes later, does not say so.
fn codex_failure(id: Option<&str>, result: &Value, session: &mut Session) {
    if let Some(id) = id {
        let said = result.get("content").unwrap_or(result);
        session.dialog.outcome(Some(id), None, Value::String(plain_text(said)), true);
    }
}

/// A line of Codex: an item of the Responses API in `payload`, in older files the item itself.
fn codex(line: &Value, session: &mut Session) {
    let Some(payload) = line.get("payload") else {
        let kind = text(line, "type").unwrap_or_default();
        return match kind.contains('.') {
            true => codex_event(kind, line, session),
            false => session.message(line),
        };
    };
    match text(line, "type").unwrap_or_default() {
        "session_meta" => {
            if let Some(id) = text(payload, "id") {
                session.trace.id = id.to_owned();
            }
        }
        "turn_context" => session.trace.model = text(payload, "model").map(str::to_owned),
        // Instructions and the environment come in messages of the user, in tags.
        "response_item" => {
            let content = payload.get("content").map(super::dialog::plain_text);
            let by_program = text(payload, "role") == Some("user")
                && content.is_some_and(|text| {
                    let text = text.trim_start();
                    ["<environment_context", "<user_instructions", "# AGENTS.md"]
                        .iter()
                        .any(|start| text.starts_with(start))
                });
            if !by_program {
                session.message(payload);
            }
        }
        "event_msg" if text(payload, "type") == Some("item_completed") => {
            let item = payload.get("item").unwrap_or(&Value::Null);
            let result = item.get("result").unwrap_or(&Value::Null);
            if text(item, "status") == Some("failed") || flag(result, "isError") {
                codex_failure(text(item, "id"), result, session);
            }
        }
        "event_msg" if text(payload, "type") == Some("mcp_tool_call_end") => {
            let result = payload.get("result").unwrap_or(&Value::Null);
            let done =
                result.get("Ok").filter(|done| !flag(done, "isError") && !flag(done, "is_error"));
            if done.is_none() {
                let result = result.get("Ok").or_else(|| result.get("Err")).unwrap_or(result);
                codex_failure(text(payload, "call_id"), result, session);
            }
        }
        "event_msg" if text(payload, "type") == Some("token_count") => {
            let total = payload.pointer("/info/total_token_usage");
            let number = |key: &str| total.and_then(|total| total.get(key)?.as_u64());
            if total.is_some_and(Value::is_object) {
                // The sum so far, not one exchange.
                session.trace.usage = Usage {
                    input_tokens: number("input_tokens"),
                    output_tokens: number("output_tokens"),
                    cached_tokens: number("cached_input_tokens"),
                    reasoning_tokens: number("reasoning_output_tokens"),
                    ..Usage::default()
                };
            }
        }
        _ => {}
    }
}
