//! OpenTelemetry spans as OTLP JSON, by the GenAI and MCP conventions.
//!
//! Read are batches (`{"resourceSpans": […]}`, also `batches`), single spans, one per line, as file
//! exporters write them, and the spans that SDKs print (attributes as a plain object, times as text).
//! Spans with the same trace id are one trace; it is called by the attribute `karat.task`, else
//! `gen_ai.conversation.id`, else the trace id.
//!
//! Calls are the spans that execute a tool: by `gen_ai.operation.name`, by `mcp.method.name`, or as
//! OpenInference and OpenLLMetry mark them. A call that was seen at several heights (the agent's span,
//! the MCP client's inside it, the MCP server's inside that) is one call. Where no span executes a
//! tool, the calls are those that the models' [`messages`] ask for. Arguments that were not recorded
//! stay so: many exporters leave them out. A trace in which a model called tools and nothing says which
//! is left out and counted: it is no trace without calls.
//!
//! The traces that are still open are bounded: beyond [`OPEN`], the one that was silent longest is
//! handed out, and spans that come for it later are counted.

mod messages;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value};

use self::messages::{Said, definitions, structured};
use super::{Importer, Position};
use crate::trace::fields::{Fields, Invalid, is_object, list};
use crate::trace::{Arguments, CallError, CallMade, Expectation, Trace, Turns};

/// The number of traces that are held open at a time.
const OPEN: usize = 4096;
/// The number of ids of traces that were handed out are remembered, to know late spans.
const REMEMBERED: usize = 65_536;

const LATE: &str = "spans that came after their trace was closed";
const NOT_RECORDED: &str = "traces left out: a model called tools, and the exporter did not record \
    which (message content may have to be switched on)";

#[derive(Default)]
pub(super) struct Spans {
    open: BTreeMap<String, Open>,
    clock: u64,
    done: BTreeSet<String>,
    notes: BTreeMap<String, u64>,
}

#[derive(Default)]
struct Open {
    touched: u64,
    spans: Vec<Span>,
}

/// What is kept of a span.
#[derive(Default)]
struct Span {
    id: String,
    name: String,
    parent: Option<String>,
    start: u128,
    end: u128,
    attributes: Map<String, Value>,
    /// Events by name, each with its attributes.
    events: Vec<(String, Map<String, Value>)>,
    failed: Option<String>,
    /// True if the status says that it went well, which most exporters leave open.
    succeeded: bool,
}

impl Importer for Spans {
    fn take(&mut self, text: &str, _: Position, out: &mut Vec<Trace>) -> Result<(), Invalid> {
        let mut fields = Fields::parse(text)?;
        let batches = fields.any(&["resourceSpans", "resource_spans", "batches"]);
        match batches {
            Some(batches) => {
                for (number, batch) in list(batches)?.into_iter().enumerate() {
                    let place = format!("resourceSpans[{number}]");
                    self.resource(batch, out).map_err(|error| error.within(&place))?;
                }
            }
            None => self.span(text, &Map::new(), out)?,
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<Trace>) {
        for (id, open) in std::mem::take(&mut self.open) {
            self.close(id, open, out);
        }
    }

    fn notes(&self) -> BTreeMap<String, u64> {
        self.notes.clone()
    }
}

impl Spans {
    fn resource(&mut self, text: &str, out: &mut Vec<Trace>) -> Result<(), Invalid> {
        let mut fields = Fields::parse(text)?;
        let resource = match fields.raw("resource") {
            Some(resource) => attributes(Fields::parse(resource)?.raw("attributes")),
            None => Map::new(),
        };
        let scopes = ["scopeSpans", "scope_spans", "instrumentationLibrarySpans"];
        for scope in list(fields.any(&scopes).unwrap_or("[]"))? {
            let mut scope = Fields::parse(scope)?;
            for (number, span) in scope.list("spans")?.unwrap_or_default().into_iter().enumerate() {
                let place = format!("spans[{number}]");
                self.span(span, &resource, out).map_err(|error| error.within(&place))?;
            }
        }
        Ok(())
    }

    fn span(
        &mut self,
        text: &str,
        resource: &Map<String, Value>,
        out: &mut Vec<Trace>,
    ) -> Result<(), Invalid> {
        let (trace_id, mut span) = read_span(text)?;
        for (key, value) in resource {
            if !span.attributes.contains_key(key) {
                span.attributes.insert(key.clone(), value.clone());
            }
        }
        if self.done.contains(&trace_id) {
            self.note(LATE);
            return Ok(());
        }
        self.clock += 1;
        let open = self.open.entry(trace_id).or_default();
        open.touched = self.clock;
        open.spans.push(span);
        if self.open.len() > OPEN {
            let silent = self.open.iter().min_by_key(|(_, open)| open.touched);
            if let Some(id) = silent.map(|(id, _)| id.clone())
                && let Some(open) = self.open.remove(&id)
            {
                if self.done.len() < REMEMBERED {
                    self.done.insert(id.clone());
                }
                self.close(id, open, out);
            }
        }
        Ok(())
    }

    fn close(&mut self, id: String, open: Open, out: &mut Vec<Trace>) {
        match trace(id, open) {
            Closed::Trace(trace) => out.push(*trace),
            Closed::CallsNotRecorded => self.note(NOT_RECORDED),
            Closed::OfNoAgent => {}
        }
    }

    fn note(&mut self, note: &str) {
        *self.notes.entry(note.to_owned()).or_default() += 1;
    }
}

/// What the spans of a trace come to.
enum Closed {
    Trace(Box<Trace>),
    /// Tools were called, and nothing says which.
    CallsNotRecorded,
    /// Other things are traced too.
    OfNoAgent,
}

fn read_span(text: &str) -> Result<(String, Span), Invalid> {
    let mut fields = Fields::parse(text)?;
    let mut trace_id: Option<String> = text_field(&mut fields, &["traceId", "trace_id"]);
    let mut id: Option<String> = text_field(&mut fields, &["spanId", "span_id"]);
    if let Some(context) = fields.any(&["context", "spanContext"]).filter(|text| is_object(text)) {
        let mut context = Fields::parse(context)?;
        trace_id = trace_id.or(text_field(&mut context, &["trace_id", "traceId"]));
        id = id.or(text_field(&mut context, &["span_id", "spanId"]));
    }
    let trace_id = trace_id.ok_or_else(|| Invalid::at("traceId", "is missing"))?;
    let parent = text_field(&mut fields, &["parentSpanId", "parent_span_id", "parent_id"]);
    let start = ["startTimeUnixNano", "start_time_unix_nano", "start_time", "startTime"];
    let end = ["endTimeUnixNano", "end_time_unix_nano", "end_time", "endTime"];
    let mut span = Span {
        id: id.unwrap_or_default(),
        name: text_field(&mut fields, &["name"]).unwrap_or_default(),
        parent: parent.filter(|parent| !parent.is_empty()),
        start: fields.any(&start).map_or(0, nanoseconds),
        end: fields.any(&end).map_or(0, nanoseconds),
        attributes: attributes(fields.raw("attributes")),
        events: Vec::new(),
        failed: None,
        succeeded: false,
    };
    for event in fields.list("events")?.unwrap_or_default() {
        let mut event = Fields::parse(event)?;
        let name: String = event.get("name")?.unwrap_or_default();
        span.events.push((name, attributes(event.raw("attributes"))));
    }
    if let Some(status) = fields.get::<Value>("status")? {
        let code = status.get("code").or_else(|| status.get("status_code")).unwrap_or(&status);
        let (good, bad) = match code {
            Value::Number(code) => (code.as_u64() == Some(1), code.as_u64() == Some(2)),
            Value::String(code) => (
                matches!(code.as_str(), "STATUS_CODE_OK" | "OK"),
                matches!(code.as_str(), "STATUS_CODE_ERROR" | "ERROR"),
            ),
            _ => (false, false),
        };
        span.succeeded = good;
        if bad {
            let message = status.get("message").or_else(|| status.get("description"));
            let words = message.and_then(Value::as_str).unwrap_or("the span ended in an error");
            span.failed = Some(words.to_owned());
        }
    }
    Ok((trace_id, span))
}

fn text_field(fields: &mut Fields<'_>, names: &[&str]) -> Option<String> {
    fields.any(names).and_then(|raw| serde_json::from_str(raw).ok())
}

/// A list of `{key, value: {stringValue: …}}`, or a plain object.
fn attributes(raw: Option<&str>) -> Map<String, Value> {
    let Some(value) = raw.and_then(|raw| serde_json::from_str::<Value>(raw).ok()) else {
        return Map::new();
    };
    match value {
        Value::Object(plain) => plain,
        Value::Array(all) => pairs(all),
        _ => Map::new(),
    }
}

fn pairs(all: Vec<Value>) -> Map<String, Value> {
    all.into_iter()
        .filter_map(|mut pair| {
            let key = pair.get("key")?.as_str()?.to_owned();
            let value = pair.get_mut("value").map(Value::take).unwrap_or_default();
            Some((key, any_value(value)))
        })
        .collect()
}

/// OTLP's tagged values, as plain ones.
fn any_value(value: Value) -> Value {
    let Value::Object(mut tagged) = value else { return value };
    let mut take = |names: [&str; 2]| names.into_iter().find_map(|name| tagged.remove(name));
    if let Some(text) = take(["stringValue", "string_value"]) {
        return text;
    }
    if let Some(number) = take(["intValue", "int_value"]) {
        // Whole numbers of 64 bits are written as text.
        let parsed = number.as_str().and_then(|text| text.parse::<i64>().ok()).map(Value::from);
        return parsed.unwrap_or(number);
    }
    if let Some(plain) = take(["boolValue", "bool_value"]) {
        return plain;
    }
    if let Some(plain) = take(["doubleValue", "double_value"]) {
        return plain;
    }
    let inside = |mut value: Value| match value.get_mut("values").map(Value::take) {
        Some(Value::Array(values)) => values,
        _ => Vec::new(),
    };
    if let Some(all) = take(["arrayValue", "array_value"]) {
        return inside(all).into_iter().map(any_value).collect();
    }
    if let Some(all) = take(["kvlistValue", "kvlist_value"]) {
        return Value::Object(pairs(inside(all)));
    }
    Value::Object(tagged)
}

/// A count of nanoseconds, as a number or a text, or a time of day in UTC.
fn nanoseconds(raw: &str) -> u128 {
    let text = raw.trim().trim_matches('"');
    if let Ok(count) = text.parse::<u128>() {
        return count;
    }
    civil(text).unwrap_or(0)
}

/// `2026-11-15T10:00:00.123456Z`, in nanoseconds since 1970.
fn civil(text: &str) -> Option<u128> {
    let (date, time) = text.split_once(['T', ' '])?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let time = time.trim_end_matches('Z').split(['+']).next()?;
    let mut time = time.splitn(3, ':');
    let hour: i64 = time.next()?.parse().ok()?;
    let minute: i64 = time.next()?.parse().ok()?;
    let second = time.next()?;
    let (second, fraction) = second.split_once('.').unwrap_or((second, ""));
    let second: i64 = second.parse().ok()?;
    if !(1..=12).contains(&month) || !(0..=9999).contains(&year) {
        return None;
    }
    // Days from the civil calendar, March being the first month.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719_468;
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    let digits: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    let whole = u128::try_from(seconds).ok()?.checked_mul(1_000_000_000)?;
    Some(whole + digits.parse::<u128>().ok()?)
}

impl Span {
    fn text(&self, keys: &[&str]) -> Option<&str> {
        keys.iter().find_map(|key| self.attributes.get(*key)?.as_str())
    }

    fn number(&self, keys: &[&str]) -> Option<u64> {
        keys.iter().find_map(|key| self.attributes.get(*key)?.as_u64())
    }

    fn is_tool(&self) -> bool {
        self.text(&["gen_ai.operation.name"]) == Some("execute_tool")
            || self.text(&["mcp.method.name"]) == Some("tools/call")
            || self.text(&["openinference.span.kind"]) == Some("TOOL")
            || self.text(&["traceloop.span.kind"]) == Some("tool")
    }

    fn tool_name(&self) -> Option<&str> {
        let stated = ["gen_ai.tool.name", "tool.name", "mcp.tool.name", "traceloop.entity.name"];
        // By the conventions it ends the span's name too, and some SDKs have it only there.
        let in_name = || {
            let ends = ["tools/call ", "execute_tool "];
            let tool = ends.iter().find_map(|end| Some(self.name.rsplit_once(end)?.1.trim()));
            tool.filter(|tool| !tool.is_empty())
        };
        self.text(&stated).or_else(in_name)
    }

    /// Returns whether a model ended its turn by calling tools.
    fn ended_in_calls(&self) -> bool {
        let words = ["tool_call", "tool_calls", "tool_use", "function_call"];
        let is = |value: &Value| value.as_str().is_some_and(|word| words.contains(&word));
        ["gen_ai.response.finish_reasons", "llm.finish_reason"].iter().any(|key| {
            match self.attributes.get(*key).map(structured) {
                Some(Value::Array(all)) => all.iter().any(is),
                Some(one) => is(&one),
                None => false,
            }
        })
    }

    /// An attribute under one of its names, on the span or in one of its events.
    fn anywhere(&self, keys: &[&str]) -> Option<&Value> {
        let inside = |map: &'_ Map<String, Value>, key: &str| map.get(key).is_some();
        for key in keys {
            if inside(&self.attributes, key) {
                return self.attributes.get(*key);
            }
            let event = self.events.iter().find(|(_, attributes)| inside(attributes, key));
            if let Some((_, attributes)) = event {
                return attributes.get(*key);
            }
        }
        None
    }

    fn call(&self, first: u128) -> Option<CallMade> {
        let mut call = CallMade::named(self.tool_name()?);
        if let Some(server) = self.text(&["mcp.server.name", "karat.server"]) {
            call.server = Some(server.to_owned());
        }
        let arguments = [
            "gen_ai.tool.call.arguments",
            "gen_ai.tool.arguments",
            "mcp.request.arguments",
            "tool_arguments",
            "tool.parameters",
            "input.value",
        ];
        call.arguments = match self.anywhere(&arguments) {
            None => self.wrapped_arguments(),
            Some(Value::String(text)) => Arguments::written(text),
            Some(value) => Arguments::from_raw(&value.to_string()),
        };
        let results = [
            "gen_ai.tool.call.result",
            "gen_ai.tool.result",
            "tool_response",
            "output.value",
            "traceloop.entity.output",
        ];
        call.result = self.anywhere(&results).map(|value| match value {
            Value::String(text) => super::chat::result_of(text.clone()),
            value => value.clone(),
        });
        let class = self.text(&["error.type"]).map(str::to_owned);
        if class.is_some() || self.failed.is_some() {
            let message = self.failed.clone().unwrap_or_default();
            call.error = Some(CallError { class: class.unwrap_or("error".into()), message });
        } else if call.result.is_none() && self.end > 0 && self.tells_errors() {
            // The span ended and says nothing of an error: the call went well, its result was left out.
            call.result = Some(Value::Null);
        }
        call.start_ms = Some(milliseconds(self.start.saturating_sub(first)));
        call.end_ms = (self.end >= self.start && self.end > 0)
            .then(|| milliseconds(self.end.saturating_sub(first)));
        Some(call)
    }

    /// Returns whether the absence of an error means that there was none. MCP clients exist whose spans end alike
    /// whether or not the result had `isError`.
    fn tells_errors(&self) -> bool {
        self.succeeded || self.text(&["mcp.method.name"]).is_none()
    }

    /// OpenLLMetry's input of a tool: the arguments, or next to its name, or as a function was called.
    fn wrapped_arguments(&self) -> Arguments {
        let Some(input) = self.anywhere(&["traceloop.entity.input"]) else {
            return Arguments::NotRecorded;
        };
        let found = structured(input);
        let has = |key: &str| found.get(key).is_some();
        let inside = match &found {
            Value::Object(_) if has("tool_name") => found.get("arguments"),
            Value::Object(fields) if fields.len() == 2 && has("args") => found.get("kwargs"),
            _ => None,
        };
        match (inside, input) {
            (Some(inside), _) => Arguments::from_raw(&inside.to_string()),
            (None, Value::String(text)) => Arguments::written(text),
            (None, value) => Arguments::from_raw(&value.to_string()),
        }
    }
}

fn milliseconds(nanoseconds: u128) -> f64 {
    nanoseconds as f64 / 1e6
}

/// Puts the spans of a trace together.
fn trace(id: String, open: Open) -> Closed {
    let mut spans = open.spans;
    spans.sort_by(|a, b| (a.start, &a.id).cmp(&(b.start, &b.id)));
    let first = spans.iter().map(|span| span.start).filter(|start| *start > 0).min().unwrap_or(0);
    let last = spans.iter().map(|span| span.end).max().unwrap_or(0);
    let find = |keys: &[&str]| spans.iter().find_map(|span| span.text(keys));
    let name = find(&["karat.task"]).or_else(|| find(&["gen_ai.conversation.id", "session.id"]));
    let mut trace = Trace::of(name.map_or(id, str::to_owned));
    let model = find(&["gen_ai.request.model", "gen_ai.response.model", "llm.model_name"]);
    trace.model = model.map(str::to_owned);
    if let Some(run) = spans.iter().find_map(|span| span.number(&["karat.run"])) {
        trace.run = u32::try_from(run).unwrap_or(1).max(1);
    }
    let word = |key: &str| find(&[key]).and_then(|word| serde_json::from_value(word.into()).ok());
    trace.setting = word("karat.setting").unwrap_or_default();
    if let Some(text) = find(&["karat.expect"]) {
        match Expectation::parse(text) {
            Ok(expect) => trace.expect = Some(Arc::new(expect)),
            // Said with the unknown fields: one bad attribute is no reason to lose the trace.
            Err(error) => {
                trace.unknown.insert(format!("karat.expect ({error})"), 1);
            }
        }
    }
    if last > first && first > 0 {
        trace.usage.duration_ms = Some(milliseconds(last - first));
    }
    for span in spans.iter().filter(|span| !span.is_tool()) {
        add_usage(span, &mut trace);
    }
    trace.calls = executed(&spans, first);
    let said = Said::of(&spans);
    if trace.calls.is_empty() {
        trace.calls = said.calls;
    }
    trace.input = said.input;
    trace.output = said.output;
    if said.spoken > 1 {
        trace.turns = Turns::Multi;
    }
    trace.tools = definitions(&spans);
    let marks = ["gen_ai.", "mcp.", "karat.", "llm.", "openinference.", "traceloop."];
    let marked = |key: &String| marks.iter().any(|mark| key.starts_with(mark));
    let of_agent = |span: &Span| span.is_tool() || span.attributes.keys().any(marked);
    if !spans.iter().any(of_agent) {
        return Closed::OfNoAgent;
    }
    if trace.calls.is_empty() && spans.iter().any(Span::ended_in_calls) {
        return Closed::CallsNotRecorded;
    }
    Closed::Trace(Box::new(trace))
}

fn add_usage(span: &Span, trace: &mut Trace) {
    // An agent's span may repeat the sums of the models' spans below it.
    if span.text(&["gen_ai.operation.name"]) == Some("invoke_agent") {
        return;
    }
    let add = |sum: &mut Option<u64>, tokens: Option<u64>| {
        if let Some(tokens) = tokens {
            *sum = Some(sum.unwrap_or_default().saturating_add(tokens));
        }
    };
    let input =
        ["gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt"];
    let output = [
        "gen_ai.usage.output_tokens",
        "gen_ai.usage.completion_tokens",
        "llm.token_count.completion",
    ];
    add(&mut trace.usage.input_tokens, span.number(&input));
    add(&mut trace.usage.output_tokens, span.number(&output));
}

/// The calls by the outermost span of each; what that lacks is taken from the spans inside it.
fn executed(spans: &[Span], first: u128) -> Vec<CallMade> {
    let by_id: BTreeMap<&str, usize> =
        spans.iter().enumerate().map(|(number, span)| (span.id.as_str(), number)).collect();
    let outer = |number: usize| -> Option<usize> {
        let name = spans[number].tool_name();
        let mut found = None;
        let mut at = number;
        // Bounded: parents can be written in a circle.
        for _ in 0..64 {
            let parent = spans[at].parent.as_deref().and_then(|id| by_id.get(id).copied());
            let Some(parent) = parent.filter(|parent| *parent != at) else { break };
            if spans[parent].is_tool() && spans[parent].tool_name() == name {
                found = Some(parent);
            }
            at = parent;
        }
        found
    };
    let mut calls: BTreeMap<usize, CallMade> = BTreeMap::new();
    let mut inner = Vec::new();
    for (number, span) in spans.iter().enumerate().filter(|(_, span)| span.is_tool()) {
        match outer(number) {
            Some(outer) => inner.push((outer, number)),
            None => {
                if let Some(call) = span.call(first) {
                    calls.insert(number, call);
                }
            }
        }
    }
    for (outer, number) in inner {
        let (Some(call), Some(more)) = (calls.get_mut(&outer), spans[number].call(first)) else {
            continue;
        };
        call.server = call.server.take().or(more.server);
        if call.arguments == Arguments::NotRecorded {
            call.arguments = more.arguments;
        }
        if matches!(call.result, None | Some(Value::Null)) && more.result.is_some() {
            call.result = more.result;
        }
        call.error = call.error.take().or(more.error);
    }
    calls.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traces(lines: &[&str]) -> Vec<Trace> {
        let (mut spans, mut out) = (Spans::default(), Vec::new());
        for text in lines {
            spans.take(text, Position::default(), &mut out).unwrap();
        }
        spans.finish(&mut out);
        out
    }

    #[test]
    fn times_of_day_are_read() {
        assert_eq!(civil("1970-01-01T00:00:01.5Z"), Some(1_500_000_000));
        assert_eq!(civil("2000-03-01T00:00:00.0Z"), Some(951_868_800_000_000_000));
        assert_eq!(nanoseconds("\"17\""), 17);
        assert_eq!(nanoseconds("17"), 17);
        assert_eq!(nanoseconds("\"1970-01-01T00:01:02Z\""), 62_000_000_000);
    }

    #[test]
    fn one_call_at_three_heights_is_one_call() {
        let lines = [
            r#"{"traceId":"t","spanId":"c","parentSpanId":"b","startTimeUnixNano":"30","endTimeUnixNano":"40","kind":2,"attributes":[{"key":"mcp.method.name","value":{"stringValue":"tools/call"}},{"key":"gen_ai.tool.name","value":{"stringValue":"add"}},{"key":"mcp.server.name","value":{"stringValue":"demo"}}]}"#,
            r#"{"traceId":"t","spanId":"b","parentSpanId":"a","startTimeUnixNano":"20","endTimeUnixNano":"50","kind":3,"attributes":[{"key":"mcp.method.name","value":{"stringValue":"tools/call"}},{"key":"gen_ai.tool.name","value":{"stringValue":"add"}},{"key":"gen_ai.tool.call.arguments","value":{"kvlistValue":{"values":[{"key":"a","value":{"intValue":"2"}}]}}}]}"#,
            r#"{"traceId":"t","spanId":"a","startTimeUnixNano":"10","endTimeUnixNano":"60","attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"execute_tool"}},{"key":"gen_ai.tool.name","value":{"stringValue":"add"}}]}"#,
        ];
        let traces = traces(&lines);
        let [trace] = &traces[..] else { panic!("{traces:?}") };
        let [call] = &trace.calls[..] else { panic!("{:?}", trace.calls) };
        assert_eq!(call.server.as_deref(), Some("demo"));
        assert_eq!(call.arguments, Arguments::Object(r#"{"a":2}"#.into()));
    }

    #[test]
    fn arguments_that_were_left_out_are_not_recorded() {
        let line = r#"{"context":{"trace_id":"0x1","span_id":"0x2"},"start_time":"2026-01-01T00:00:00.1Z","end_time":"2026-01-01T00:00:00.2Z","status":{"status_code":"OK"},"attributes":{"gen_ai.operation.name":"execute_tool","gen_ai.tool.name":"add"}}"#;
        let traces = traces(&[line]);
        assert_eq!(traces[0].calls[0].arguments, Arguments::NotRecorded);
        assert_eq!(traces[0].calls[0].outcome(), crate::trace::CallOutcome::Succeeded);
    }

    #[test]
    fn calls_of_the_model_stand_in_where_no_span_executes_a_tool() {
        let line = r#"{"traceId":"t","spanId":"a","attributes":{"gen_ai.operation.name":"chat"},"events":[{"name":"gen_ai.client.inference.operation.details","attributes":{"gen_ai.input.messages":"[{\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"content\":\"add\"}]}]","gen_ai.output.messages":"[{\"role\":\"assistant\",\"parts\":[{\"type\":\"tool_call\",\"id\":\"1\",\"name\":\"add\",\"arguments\":{\"a\":1}}]}]"}}]}"#;
        let traces = traces(&[line]);
        assert_eq!(traces[0].input.as_deref(), Some("add"));
        assert_eq!(traces[0].calls[0].arguments, Arguments::Object(r#"{"a":1}"#.into()));
    }

    #[test]
    fn a_model_whose_last_word_is_a_call_has_not_answered() {
        let span = |at: u32, says: &str| {
            format!(
                r#"{{"traceId":"t","spanId":"{at}","startTimeUnixNano":"{at}","attributes":{{"gen_ai.operation.name":"chat","gen_ai.output.messages":"[{{\"role\":\"assistant\",\"parts\":[{says}]}}]"}}}}"#
            )
        };
        let answer = span(1, r#"{\"type\":\"text\",\"content\":\"It is 1.\"}"#);
        let call = span(2, r#"{\"type\":\"tool_call\",\"id\":\"1\",\"name\":\"add\"}"#);
        assert_eq!(traces(&[&answer])[0].output.as_deref(), Some("It is 1."));
        assert_eq!(traces(&[&answer, &call])[0].output, None);
    }

    #[test]
    fn messages_with_a_field_in_each_attribute_are_put_together() {
        let lines = [
            r#"{"traceId":"t","spanId":"a","startTimeUnixNano":"1","endTimeUnixNano":"2","attributes":{"openinference.span.kind":"LLM","llm.tools.0.tool.json_schema":"{\"type\":\"function\",\"function\":{\"name\":\"add\",\"parameters\":{\"type\":\"object\"}}}","llm.input_messages.0.message.role":"user","llm.input_messages.0.message.content":"add","llm.output_messages.0.message.role":"assistant","llm.output_messages.0.message.tool_calls.0.tool_call.id":"c","llm.output_messages.0.message.tool_calls.0.tool_call.function.name":"add","llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments":"{\"a\":1}","llm.finish_reason":"tool_calls"}}"#,
            r#"{"traceId":"t","spanId":"b","startTimeUnixNano":"3","endTimeUnixNano":"4","attributes":{"openinference.span.kind":"LLM","llm.input_messages.0.message.role":"user","llm.input_messages.0.message.content":"add","llm.input_messages.1.message.role":"tool","llm.input_messages.1.message.tool_call_id":"c","llm.input_messages.1.message.content":"{\"sum\":1}","llm.output_messages.0.message.role":"assistant","llm.output_messages.0.message.content":"It is 1."}}"#,
        ];
        let traces = traces(&lines);
        let [trace] = &traces[..] else { panic!("{traces:?}") };
        assert_eq!(trace.input.as_deref(), Some("add"));
        assert_eq!(trace.output.as_deref(), Some("It is 1."));
        assert_eq!(trace.turns, Turns::Single);
        let [call] = &trace.calls[..] else { panic!("{:?}", trace.calls) };
        assert_eq!(call.arguments, Arguments::Object(r#"{"a":1}"#.into()));
        assert_eq!(call.result, Some(serde_json::json!({"sum": 1})));
        let tools = trace.tools.as_deref().unwrap();
        assert!(tools.len() == 1 && tools[0].input_schema.is_some(), "{tools:?}");
    }

    #[test]
    fn results_in_messages_of_the_user_are_no_turn_of_the_user() {
        let messages = r#"[{\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"content\":\"add\"}]},{\"role\":\"user\",\"parts\":[{\"type\":\"tool_call_response\",\"id\":\"c\",\"result\":{\"sum\":1}}]}]"#;
        let line = format!(
            r#"{{"traceId":"t","spanId":"a","attributes":{{"gen_ai.operation.name":"chat","gen_ai.input.messages":"{messages}"}}}}"#
        );
        assert_eq!(traces(&[&line])[0].turns, Turns::Single);
    }

    #[test]
    fn a_tool_that_only_the_name_of_the_span_tells_is_known_and_its_end_is_not() {
        let line = r#"{"traceId":"t","spanId":"a","name":"MCP send tools/call add","startTimeUnixNano":"1","endTimeUnixNano":"2","status":{},"attributes":{"mcp.method.name":"tools/call"}}"#;
        let traces = traces(&[line]);
        assert_eq!(traces[0].calls[0].name, "add");
        assert_eq!(traces[0].calls[0].outcome(), crate::trace::CallOutcome::NotRecorded);
    }

    #[test]
    fn arguments_are_taken_out_of_what_is_wrapped_around_them() {
        let arguments = |input: &str| {
            let line = format!(
                r#"{{"traceId":"t","spanId":"a","attributes":{{"traceloop.span.kind":"tool","traceloop.entity.name":"add","traceloop.entity.input":{}}}}}"#,
                Value::from(input)
            );
            traces(&[&line])[0].calls[0].arguments.clone()
        };
        for input in [
            r#"{"tool_name":"add","arguments":{"a":1}}"#,
            r#"{"args":[],"kwargs":{"a":1}}"#,
            r#"{"a":1}"#,
        ] {
            assert_eq!(arguments(input), Arguments::Object(r#"{"a":1}"#.into()), "{input}");
        }
        assert_eq!(arguments("{oops"), Arguments::Text("{oops".into()));
    }

    #[test]
    fn calls_that_were_left_out_are_no_trace_without_calls() {
        let line = r#"{"traceId":"t","spanId":"a","attributes":{"gen_ai.operation.name":"chat","gen_ai.response.finish_reasons":["tool_calls"]}}"#;
        let (mut spans, mut out) = (Spans::default(), Vec::new());
        spans.take(line, Position::default(), &mut out).unwrap();
        spans.finish(&mut out);
        assert!(out.is_empty(), "{out:?}");
        assert_eq!(spans.notes().get(NOT_RECORDED), Some(&1));
    }

    #[test]
    fn spans_of_other_things_are_no_traces_of_an_agent() {
        assert!(
            traces(&[r#"{"traceId":"t","spanId":"a","attributes":{"http.method":"GET"}}"#])
                .is_empty()
        );
    }
}
