//! The common part of chat logs: a conversation is one document, or several exchanges that each repeat
//! the messages before them.
//!
//! Exchanges of one conversation follow each other in the file and have the same id; the longest one
//! counts, and the tokens of all are added. Karat's own fields (`id`, `run`, `setting`, `expect`, …) are
//! read in each document.

use std::sync::Arc;

use serde_json::Value;

use super::{Importer, Position};
use crate::trace::fields::{Fields, is_object, is_string, typed};
use crate::trace::{
    Arguments, CallMade, Expectation, Invalid, ToolDefinition, Trace, Turns, as_id,
};

/// The content of one document.
#[derive(Default)]
pub(super) struct Conversation {
    pub(super) trace: Trace,
    /// The number of user messages.
    pub(super) spoken: usize,
    /// Ids of the calls in the trace, in the same order.
    pub(super) ids: Vec<Option<String>>,
    /// The number of messages, which decides which exchange is the longest.
    pub(super) length: usize,
}

impl Conversation {
    /// Adds a call that the model made.
    pub(super) fn call(&mut self, id: Option<String>, name: &str, arguments: Arguments) {
        let mut call = CallMade::named(name);
        call.arguments = arguments;
        self.trace.calls.push(call);
        self.ids.push(id);
    }

    /// The call with this id that has no result yet; without an id the first such call.
    pub(super) fn waiting(&mut self, id: Option<&str>) -> Option<&mut CallMade> {
        let open = |call: &CallMade| call.result.is_none() && call.error.is_none();
        let position = (0..self.ids.len()).find(|&position| {
            open(&self.trace.calls[position])
                && (id.is_none() || self.ids[position].as_deref() == id)
        })?;
        self.trace.calls.get_mut(position)
    }

    /// Adds a user message.
    pub(super) fn said(&mut self, text: &str) {
        self.spoken += 1;
        if self.trace.input.is_none() {
            self.trace.input = Some(text.to_owned());
        }
        if self.spoken > 1 {
            self.trace.turns = Turns::Multi;
        }
    }
}

pub(super) type ReadConversation = fn(&str) -> Result<Conversation, Invalid>;

/// Joins the exchanges of a conversation.
pub(super) struct Conversations {
    read: ReadConversation,
    open: Option<Conversation>,
}

impl Conversations {
    pub(super) fn new(read: ReadConversation) -> Self {
        Conversations { read, open: None }
    }
}

impl Importer for Conversations {
    fn take(&mut self, text: &str, at: Position, out: &mut Vec<Trace>) -> Result<(), Invalid> {
        let mut next = (self.read)(text)?;
        let named = !next.trace.id.is_empty();
        if !named {
            next.trace.id = at.name();
        }
        match self.open.take() {
            Some(mut open) if named && open.trace.key() == next.trace.key() => {
                let usage = added(&open.trace, &next.trace);
                if next.length >= open.length {
                    next.trace.expect = next.trace.expect.or(open.trace.expect.take());
                    open = next;
                }
                open.trace.usage = usage;
                self.open = Some(open);
            }
            before => {
                out.extend(before.map(|open| open.trace));
                self.open = Some(next);
            }
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<Trace>) {
        out.extend(self.open.take().map(|open| open.trace));
    }
}

fn added(a: &Trace, b: &Trace) -> crate::trace::Usage {
    let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (None, None) => None,
        (a, b) => Some(a.unwrap_or_default().saturating_add(b.unwrap_or_default())),
    };
    let time = |a: Option<f64>, b: Option<f64>| match (a, b) {
        (None, None) => None,
        (a, b) => Some(a.unwrap_or_default() + b.unwrap_or_default()),
    };
    crate::trace::Usage {
        input_tokens: sum(a.usage.input_tokens, b.usage.input_tokens),
        output_tokens: sum(a.usage.output_tokens, b.usage.output_tokens),
        duration_ms: time(a.usage.duration_ms, b.usage.duration_ms),
        cost: time(a.usage.cost, b.usage.cost),
    }
}

/// Reads the fields of Karat's own records.
pub(super) fn overlay(fields: &mut Fields<'_>, trace: &mut Trace) -> Result<(), Invalid> {
    let metadata = fields.raw("metadata");
    let inside = metadata.filter(|text| is_object(text)).and_then(|text| {
        Fields::parse(text).ok().and_then(|mut fields| fields.any(&["task_id", "task", "id"]))
    });
    let id = fields.any(&["task_id", "task", "custom_id"]);
    let plain = fields.raw("id");
    if let Some(id) = id.or(inside).or(plain).and_then(as_id) {
        trace.id = id;
    }
    // Names that others use too: a value that does not fit is theirs.
    let run = fields.get::<u32>("run").ok().flatten();
    trace.run = run.filter(|run| *run > 0).unwrap_or(1);
    if let Ok(Some(setting)) = fields.get("setting") {
        trace.setting = setting;
    }
    if let Ok(Some(turns)) = fields.get("turns") {
        trace.turns = turns;
    }
    trace.case = fields.get("case").ok().flatten();
    trace.tags = fields.get("tags").ok().flatten().unwrap_or_default();
    trace.servers = fields.get("servers").ok().flatten().unwrap_or_default();
    trace.state = fields.get("state")?;
    trace.expected_scores = fields.get("expected_scores")?.unwrap_or_default();
    if let Some(text) = fields.raw("expect") {
        let read = Expectation::parse(text).map_err(|error| error.within("expect"))?;
        trace.expect = Some(Arc::new(read));
    }
    if let Ok(Some(duration)) = fields.get::<f64>("duration_ms") {
        trace.usage.duration_ms = Some(duration);
    }
    Ok(())
}

/// The request and the response of a document: as `request` and `response`, wrapped in `body` as in
/// batch files, or all in one.
pub(super) fn halves<'a>(
    fields: &mut Fields<'a>,
) -> Result<(Option<Fields<'a>>, Option<Fields<'a>>), Invalid> {
    let unwrap = |text: &'a str| -> Result<Fields<'a>, Invalid> {
        let mut inside = Fields::parse(text)?;
        match inside.raw("body").filter(|body| is_object(body)) {
            Some(body) => Fields::parse(body),
            None => Fields::parse(text),
        }
    };
    let request = fields.any(&["request", "body"]);
    let response = fields.raw("response");
    Ok((
        request.map(unwrap).transpose().map_err(|error| error.within("request"))?,
        response.map(unwrap).transpose().map_err(|error| error.within("response"))?,
    ))
}

/// The text of a message: a string, or the `text` of its parts.
pub(super) fn text_of(raw: Option<&str>) -> String {
    let Some(raw) = raw else { return String::new() };
    if is_string(raw) {
        return typed(raw).unwrap_or_default();
    }
    let Ok(parts) = typed::<Value>(raw) else { return String::new() };
    let texts: Vec<&str> = parts
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|part| part.get("text").and_then(Value::as_str))
        .collect();
    texts.join("\n")
}

/// A result as the model got it: an object if the text is one.
pub(super) fn result_of(text: String) -> Value {
    match serde_json::from_str::<Value>(&text) {
        Ok(value @ Value::Object(_)) => value,
        _ => Value::String(text),
    }
}

/// A tool as a request offers it; `None` if it has no name.
pub(super) fn tool(value: &Value, schema: &str) -> Option<ToolDefinition> {
    let name = value.get("name")?.as_str()?;
    let call = CallMade::named(name);
    Some(ToolDefinition {
        name: call.name,
        server: call.server,
        description: value.get("description").and_then(Value::as_str).map(str::to_owned),
        input_schema: value.get(schema).cloned(),
    })
}
