//! A recording of MCP sessions (`karat.recording/1`): everything that went over the wire while an
//! agent worked on one task.
//!
//! One file is one trace, called by the file's name; several sessions in it are several servers. The
//! calls are the `tools/call` requests in the order in which they were sent, the tools those that
//! `tools/list` answered. What the agent said is not in such a file.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::importer::{Importer, Position, file_stem};
use crate::trace::fields::{Fields, is_list, list};
use crate::trace::{Arguments, CallError, CallMade, Invalid, ToolDefinition, Trace};

const SCHEMA: &str = "karat.recording/";

pub(super) struct Recording {
    trace: Trace,
    /// Requests without an answer: by session and id, what was asked.
    open: BTreeMap<(u64, String), Asked>,
    /// The servers' names, by session.
    servers: BTreeMap<u64, String>,
    /// The session a call and a tool belong to, until its server's name is known.
    call_sessions: Vec<u64>,
    tool_sessions: Vec<u64>,
    started: bool,
    notes: BTreeMap<String, u64>,
}

enum Asked {
    /// The call of this number.
    Call(usize),
    Other,
}

impl Recording {
    pub(super) fn new(path: &Path) -> Self {
        Recording {
            trace: Trace::of(file_stem(path)),
            open: BTreeMap::new(),
            servers: BTreeMap::new(),
            call_sessions: Vec::new(),
            tool_sessions: Vec::new(),
            started: false,
            notes: BTreeMap::new(),
        }
    }

    fn message(&mut self, text: &str, session: u64, at_ms: f64, sent: bool) -> Result<(), Invalid> {
        if is_list(text) {
            return list(text)?
                .into_iter()
                .try_for_each(|text| self.message(text, session, at_ms, sent));
        }
        let mut fields = Fields::parse(text)?;
        let id = fields.raw("id").map(str::to_owned);
        let method: Option<String> = fields.get("method")?;
        match (sent, method, id) {
            (true, Some(method), Some(id)) => {
                let asked = match method.as_str() {
                    "tools/call" => self.called(fields.raw("params"), session, at_ms)?,
                    _ => Asked::Other,
                };
                self.open.insert((session, id), asked);
            }
            (false, None, Some(id)) => {
                let asked = self.open.remove(&(session, id));
                self.answered(asked.as_ref(), &mut fields, session, at_ms)?;
            }
            // Notifications, and requests of the server, are not part of what the agent called.
            _ => {}
        }
        Ok(())
    }

    fn called(&mut self, params: Option<&str>, session: u64, at_ms: f64) -> Result<Asked, Invalid> {
        let params = params.ok_or_else(|| Invalid::at("message.params", "is missing"))?;
        let mut params = Fields::parse(params).map_err(|error| error.within("message.params"))?;
        let name: String = params.need("name").map_err(|error| error.within("message.params"))?;
        let mut call = CallMade { name, ..CallMade::default() };
        call.arguments = match params.raw("arguments") {
            Some(raw) => Arguments::from_raw(raw),
            None => Arguments::Object("{}".to_owned()),
        };
        call.start_ms = Some(at_ms);
        self.trace.calls.push(call);
        self.call_sessions.push(session);
        Ok(Asked::Call(self.trace.calls.len() - 1))
    }

    fn answered(
        &mut self,
        asked: Option<&Asked>,
        fields: &mut Fields<'_>,
        session: u64,
        at_ms: f64,
    ) -> Result<(), Invalid> {
        let result: Option<Value> = fields.get("result")?;
        if let Some(name) = result.as_ref().and_then(server_name) {
            self.servers.insert(session, name.to_owned());
        }
        if let Some(tools) = result.as_ref().and_then(|r| r.get("tools")).and_then(Value::as_array)
        {
            for tool in tools.iter().filter_map(definition) {
                self.trace.tools.get_or_insert_default().push(tool);
                self.tool_sessions.push(session);
            }
        }
        let Some(&Asked::Call(number)) = asked else { return Ok(()) };
        let error: Option<Value> = fields.get("error")?;
        let Some(call) = self.trace.calls.get_mut(number) else { return Ok(()) };
        call.end_ms = Some(at_ms);
        call.result = result;
        if let Some(error) = error {
            let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
            let class = "protocol_error".to_owned();
            call.error = Some(CallError { class, message: message.to_owned() });
        }
        Ok(())
    }
}

/// The name that a server gives itself: in the answer to `initialize`, or without a handshake in the `_meta` of
/// any answer.
fn server_name(result: &Value) -> Option<&str> {
    let stateless = || result.pointer("/_meta/io.modelcontextprotocol~1serverInfo");
    result.get("serverInfo").or_else(stateless)?.get("name")?.as_str()
}

fn definition(tool: &Value) -> Option<ToolDefinition> {
    Some(ToolDefinition {
        name: tool.get("name")?.as_str()?.to_owned(),
        server: None,
        description: tool.get("description").and_then(Value::as_str).map(str::to_owned),
        input_schema: tool.get("inputSchema").cloned(),
    })
}

impl Importer for Recording {
    fn take(&mut self, text: &str, _: Position, _: &mut Vec<Trace>) -> Result<(), Invalid> {
        let mut fields = Fields::parse(text)?;
        if let Some(schema) = fields.get::<String>("schema")? {
            if !schema.starts_with(SCHEMA) {
                return Err(Invalid::at("schema", format!("{schema:?} is not a recording")));
            }
            self.started = true;
            return Ok(());
        }
        if !self.started {
            return Err(Invalid::new("a recording begins with its schema, karat.recording/1"));
        }
        let session: u64 = fields.need("session")?;
        // Milliseconds of a recording that fit a float exactly for centuries.
        let at_ms = fields.get::<u64>("at_ns")?.unwrap_or_default() as f64 / 1e6;
        let duration = self.trace.usage.duration_ms.get_or_insert(0.0);
        *duration = duration.max(at_ms);
        let from: Option<String> = fields.get("from")?;
        match (fields.raw("message"), from.as_deref()) {
            (Some(message), Some(from)) => {
                let sent = from == "client";
                self.message(message, session, at_ms, sent)
                    .map_err(|error| error.within("message"))?;
            }
            (None, Some(_)) => *self.notes.entry("not JSON on the wire".into()).or_default() += 1,
            _ => {}
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<Trace>) {
        if !self.started {
            return;
        }
        let mut trace = std::mem::take(&mut self.trace);
        for (call, session) in trace.calls.iter_mut().zip(&self.call_sessions) {
            call.server = self.servers.get(session).cloned();
        }
        for (tool, session) in trace.tools.iter_mut().flatten().zip(&self.tool_sessions) {
            tool.server = self.servers.get(session).cloned();
        }
        out.push(trace);
    }

    fn notes(&self) -> BTreeMap<String, u64> {
        self.notes.clone()
    }
}
